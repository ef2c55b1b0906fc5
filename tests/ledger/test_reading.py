"""A configuration is a file of bounded size."""

import json

import pytest

from archcards.ledger import UnsupportedConfig, bundled_config, parameters, read_config
from archcards.ledger.reading import LARGEST_FILE


def test_the_largest_file_is_read_and_no_larger(tmp_path):
    text = json.dumps(bundled_config("openai-community/gpt2"))
    file = tmp_path / "config.json"
    file.write_text(text.ljust(LARGEST_FILE))
    assert parameters(read_config(file)).total == 124_439_808
    file.write_text(text.ljust(LARGEST_FILE + 1))
    with pytest.raises(UnsupportedConfig, match=f"expected at most {LARGEST_FILE} bytes, came {LARGEST_FILE + 1}"):
        read_config(file)
