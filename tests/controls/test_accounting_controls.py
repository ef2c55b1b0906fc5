"""The miscounted caches: each differs from the ledger's count, by the factor that its name says."""

import pytest

from archcards import controls
from archcards.ledger import bundled_config, cache, read_config

QWEN = bundled_config("Qwen/Qwen3-0.6B")

# Qwen3 0.6B: hidden size over heads is half the head width; a group has two query heads.
WRONG_BY = {
    "head width taken as hidden / heads": (1, 2),
    "every query head cached": (2, 1),
    "keys without values": (1, 2),
    "one layer counted": (1, QWEN["num_hidden_layers"]),
}


@pytest.mark.parametrize("name", controls.of("cache_scalars"))
@pytest.mark.parametrize("context", [1, 4096])
def test_a_miscount_is_off_by_the_factor_that_its_name_says(name, context):
    times, over = WRONG_BY[name]
    right = cache(read_config(QWEN), context).scalars
    assert controls.cache_scalars[name](QWEN, context) * over == right * times
