"""A layer in words, as the model cards of the families say it."""

import pytest

from archcards.ledger import UnsupportedConfig, bundled, bundled_config, read_config
from archcards.ledger.describe import mixer_words

WORDS = {
    ("Meta-Llama-3.1-8B", 0): "attention 32/8 x 128",
    ("google/gemma-2-2b", 0): "attention 8/4 x 256, window 4096",
    ("Llama-4-Scout-17B-16E-Instruct", 0): "attention 40/8 x 128, chunks of 8192",
    ("google-bert/bert-base-uncased", 0): "attention 12/12 x 64, both ways",
    ("google/gemma-4-E2B", -1): "attention 8/1 x 512, borrowed keys and values",
    ("deepseek-ai/DeepSeek-V3.2", 0): "latent attention 128 heads, 512 + 64, 2048 chosen",
    ("deepseek-ai/DeepSeek-V3", 0): "latent attention 128 heads, 512 + 64",
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 0): "gated delta 32 x 128 x 128",
}


@pytest.mark.parametrize(("model", "layer"), WORDS)
def test_words(model, layer):
    assert mixer_words(bundled(model).layers[layer].mixers[0]) == WORDS[model, layer]


def test_values_narrower_than_keys_are_told():
    mixer = bundled("Meta-Llama-3.1-8B").layers[0].mixers[0]
    assert mixer_words(mixer._replace(value_width=64)) == "attention 32/8 x 128/64"


def test_kinds_of_layers_that_are_not_listed_are_refused():
    config = {name: value for name, value in bundled_config("Zyphra/Zamba-7B-v1").items() if name != "layers_block_type"}
    with pytest.raises(UnsupportedConfig, match="layers_block_type"):
        read_config(config | {"model_type": "zamba2"})
