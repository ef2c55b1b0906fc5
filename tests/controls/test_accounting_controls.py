"""The miscounted caches: each differs from the ledger's count, by the factor that its name says."""

import pytest

from archcards import controls
from archcards.ledger import (
    bundled_config,
    cache,
    edges,
    parameters,
    read_config,
    training_per_token,
)

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


LLAMA = bundled_config("Meta-Llama-3.1-8B")
GPT2 = bundled_config("gpt2")


def vary(config, **fields):
    return read_config(config | fields)


def test_a_tied_head_adds_the_table_once_more():
    for config in (GPT2, bundled_config("Llama-3.2-1B")):
        right = parameters(read_config(config))
        wrong = controls.parameter_count["tied head counted again"](config)
        assert wrong - right.total == right.input_embedding


def test_a_gate_left_out_is_one_matrix_a_layer():
    wrong = controls.parameter_count["two matrices for a gated feed-forward network"](LLAMA)
    layer = LLAMA["hidden_size"] * LLAMA["intermediate_size"]
    right = parameters(read_config(LLAMA)).total
    assert right - wrong == layer * LLAMA["num_hidden_layers"]


def test_ungrouped_projections_are_those_of_a_model_without_groups():
    wrong = controls.parameter_count["key and value projections as wide as the query's"](LLAMA)
    ungrouped = vary(LLAMA, num_key_value_heads=LLAMA["num_attention_heads"])
    assert wrong == parameters(ungrouped).total


def test_the_rule_of_twelve_leaves_out_more_than_a_tenth():
    wrong = controls.parameter_count["twelve times layers times width squared"](LLAMA)
    assert wrong < 0.9 * parameters(read_config(LLAMA)).total


@pytest.mark.parametrize("context", [1, 7, 4096])
def test_miscounted_operations_are_off_by_what_their_names_say(context):
    right = training_per_token(read_config(LLAMA), context)
    wrong = {name: control(LLAMA, context) for name, control in controls.training_flops.items()}
    assert wrong["forward pass only"] == right // 3
    assert wrong["multiply-adds called FLOPs"] == right // 2
    head = LLAMA["vocab_size"] * LLAMA["hidden_size"]
    assert wrong["vocabulary term counted twice"] - right == 6 * head
    pairs = 12 * LLAMA["num_hidden_layers"] * LLAMA["hidden_size"]  # of every key, forward and back
    assert 2 * (wrong["every pair counted"] - right) == pairs * (context - 1)
    kept = LLAMA["num_key_value_heads"] / LLAMA["num_attention_heads"]
    assert 2 * (right - wrong["scores counted by key/value heads"]) == (1 - kept) * pairs * (context + 1)


def test_mean_spans_are_off_where_a_window_is_shorter_than_the_text():
    right = edges.sliding_window(2048, window=512) / 2048
    wrong = {name: control(2048, 512) for name, control in controls.mean_span.items()}
    assert wrong["half the window"] < right < wrong["the whole window"] < wrong["the whole context"]
    assert controls.mean_span["the whole context"](512, 512) == edges.causal(512) / 512
