"""A model's record gives every number of the ledger by its stated formula, counted here key by key."""

import json
from pathlib import Path

import pytest

from archcards.ledger import (
    bundled,
    bundled_config,
    bundled_names,
    cache,
    flops,
    parameters,
    read_config,
    training_per_token,
)
from archcards.ledger.cache import FORMATS
from archcards.ledger.portable import answer, record

CONTEXTS = (1, 2, 127, 1025, 9000)


def read_at(read, position, source):
    """How many things the query at `position` (counted from 1) reads."""
    size, stride = read["size"], read["stride"]
    match read["reads"]:
        case "full":
            return position
        case "window" | "top":
            return min(position, size)
        case "chunk":
            return (position - 1) % size + 1
        case "source":
            return source
        case "memory":
            return 1
        case "compressed":
            return position // stride if size is None else min(position // stride, size)
    raise AssertionError(read)


def work(model, context, source):
    """Multiply-adds of the weights, and of the past, of a sequence and of its last token."""
    weights = model["flops"]["weights"]
    once = weights["token"] * context + weights["source"] * source + weights["sequence"]
    past = last = 0
    for read in model["flops"]["reading"]:
        length = source if read["over"] == "source" else context
        if read["reads"] == "all":
            number = length * length
        elif read["reads"] == "around":
            number = sum(min(i + read["size"], length - 1) - max(i - read["size"], 0) + 1 for i in range(length))
        else:
            number = sum(read_at(read, position, source) for position in range(1, length + 1))
        past += read["multiply_adds"] * number
        if read["over"] == "context" and model["decodes"]:
            last += read["multiply_adds"] * read_at(read, context, source)
    return (once, past), (weights["token"], last)


LIBRARY = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))
# Windows to both sides, sound, and an image that a decoder reads: no bundled model has these.
UNLIKE = ["modernbert", "whisper", "mllama"]


@pytest.mark.parametrize("name", [*bundled_names(), *UNLIKE])
def test_work_of_every_context(name):
    if name in UNLIKE:
        architecture = read_config(next(case["config"] for case in LIBRARY if case["config"]["model_type"] == name))
    else:
        architecture = bundled(name)
    model = record(architecture)
    for context in CONTEXTS:
        source = 77 if model["encoder"] else 0
        counted = flops(architecture, context, source)
        assert counted.context == (model["image_sequence"] or context)
        (weights, past), (token, last) = work(model, counted.context, source)
        assert (counted.per_sequence.matmul, counted.per_sequence.attention) == (2 * weights, 2 * past)
        if model["decodes"]:
            assert (counted.per_token.matmul, counted.per_token.attention) == (2 * token, 2 * last)
        (weights, past), _ = work(model, counted.context, 0)
        assert training_per_token(architecture, counted.context) == 6 * (weights + past) // counted.context


@pytest.mark.parametrize("name", bundled_names())
def test_cache_of_every_context_and_rank(name):
    architecture = bundled(name)
    model = record(architecture)
    by_rank = {ranks: kept for kept in model["cache"] for ranks in kept["ranks"]}
    assert sorted(by_rank) == [1, 2, 4, 8, 16, 32, 64]
    for ranks, kept in by_rank.items():
        if "refused" in kept:
            with pytest.raises(ValueError) as refused:
                cache(architecture, 8192, ranks=ranks)
            assert str(refused.value) == kept["refused"]
            continue
        for context in CONTEXTS:
            counted = cache(architecture, context, 3, 50, dtype="q5_0", state_dtype="fp32", ranks=ranks)
            scalars = bits = 0
            for term in kept["terms"]:
                length = min(50 if term["source"] else context, term["limit"] or 10**15)
                held = length // term["stride"]
                scalars += term["layers"] * term["scalars_per_token"] * held + term["fixed_scalars"]
                form = FORMATS["fp32" if term["kind"] == "memory" else "q5_0"]
                row = sum(number * form.of_row(width) for number, width in term["rows"])
                bits += row if term["fixed_scalars"] else row * term["layers"] * held
            assert counted.scalars == 3 * scalars
            assert counted.bytes == 3 * -(-bits // 8)


def test_parameters_are_the_ledger_s():
    model = record(bundled("DeepSeek-V3"))
    assert model["parameters"]["total"] == parameters(bundled("DeepSeek-V3")).total


@pytest.mark.parametrize(
    ("name", "source"),
    [("t5-small", True), ("switch-base-8", True), ("whisper", True), ("mllama", True),
     ("gpt2", False), ("bert-base", False), ("vit-base", False), ("Jamba", False)],
)  # fmt: skip
def test_which_models_have_a_source(name, source):
    """A page asks for the source's length where there is one: an encoder's text or sound, or an image."""
    config = next((case["config"] for case in LIBRARY if case["config"]["model_type"] == name), None)
    assert record(read_config(config) if config and name != "gpt2" else bundled(name))["encoder"] is source


def test_an_answer_is_a_record_or_one_line():
    config = bundled_config("Qwen3-0.6B")
    assert json.loads(answer(json.dumps(config))) == record(bundled("Qwen3-0.6B"))
    for text in ("", "{", '{"model_type": "perceptron"}', '{"a": 1, "a": 2}'):
        error = json.loads(answer(text))["error"]
        assert "expected" in error and "\n" not in error


def test_integers_that_floats_would_round_are_strings():
    config = bundled_config("Qwen3-0.6B") | {"intermediate_size": 2 * 10**11 + 1}
    answered = json.loads(answer(json.dumps(config)))
    exact = 3 * config["hidden_size"] * config["intermediate_size"] * config["num_hidden_layers"]
    assert answered["parameters"]["components"]["feed_forward"] == str(exact)
    assert exact > 2**53
    config = bundled_config("Qwen3-0.6B") | {"hidden_size": 2**17}
    for vocabulary, told in ((2**36, str(2**53)), (2**36 - 1, 2**53 - 2**17)):  # the first that floats do not tell apart
        answered = json.loads(answer(json.dumps(config | {"vocab_size": vocabulary})))
        assert told in answered["parameters"]["components"].values()
