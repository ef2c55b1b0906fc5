"""The command: what it prints, and how it refuses."""

import io
import json
import os
import re
import subprocess
import sys
from importlib import resources

import jsonschema
import pytest

from archcards import cli
from archcards.ledger import bundled_names
from archcards.ledger._command import _both
from archcards.ledger.bundled import bundled_config
from archcards.ledger.reading import LARGEST_FILE

SCHEMA = json.loads(resources.files("archcards.ledger").joinpath("schema.json").read_text("utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def run(capsys):
    def run(*arguments):
        status = cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def refused(run):
    """Runs bad input: status 2 and one line, which is returned."""

    def refused(*arguments):
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("archcards: ") and err.count("\n") == 1 and len(err) < 600
        return err

    return refused


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", bundled_names())
def test_json_of_every_model(run, name):
    status, out, err = run("ledger", name, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    VALID.validate(record)
    assert record["model"] == name
    assert record["model_type"] == bundled_config(name)["model_type"]
    parameters = record["parameters"]
    assert sum(parameters["components"].values()) == parameters["total"]
    text = bundled_config(name)
    text = text.get("text_config", text)
    layers = next(
        text[field] for field in ("num_hidden_layers", "n_layer", "num_layers") if field in text
    )
    assert sum(layer["count"] for layer in record["layers"]) == layers


@pytest.mark.parametrize("name", bundled_names())
def test_the_table_of_every_model_fits_80_columns(run, name):
    status, out, err = run("ledger", name, "--context", "131072", "--memory", "80GB")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "Notes" in out


@pytest.mark.parametrize(
    "first, second",
    [("gemma-2b", "gemma-2-2b"), ("DeepSeek-V3", "Qwen3-Next"), ("vit-base", "t5-small")],
)
def test_two_models_beside_each_other(run, first, second):
    status, out, err = run("ledger", first, "--beside", second, "--context", "131072")
    assert (status, err) == (0, "") and max(map(len, out.splitlines())) <= 80
    records = [
        json.loads(run("ledger", name, "--context", "131072", "--json")[1])
        for name in (first, second)
    ]
    shown = {line[:30].strip(): line[30:].split() for line in out.splitlines() if line[30:].strip()}
    assert shown["Parameters"] == [f"{one['parameters']['total']:,}" for one in records]
    assert shown["bytes, bf16"] == [f"{one['cache']['bytes']:,}" for one in records]
    assert shown["FLOPs of one token"] == [f"{one['flops']['per_token']['total']:,}" for one in records]
    # Every kind of layer of each is named; unwrapped, since a long one takes two lines.
    told = " ".join(out.split())
    for record, mark in zip(records, "<>", strict=True):
        for layer in record["layers"]:
            words = " ".join(layer["kind"].split())
            assert f"{mark} {words}" in told or f"both {words}" in told


def test_models_beside_each_other_read_the_source(run):
    options = ("--context", "64", "--source-length", "300")
    step = json.loads(run("ledger", "t5-small", *options, "--json")[1])["flops"]["per_token"]["total"]
    _, out, _ = run("ledger", "t5-small", "--beside", "gpt2", *options)
    (line,) = [line for line in out.splitlines() if line.startswith("FLOPs of one token")]
    assert line.split()[4] == f"{step:,}"
    unread = json.loads(run("ledger", "t5-small", "--context", "64", "--json")[1])
    assert unread["flops"]["per_token"]["total"] < step  # what the comparison must not print


def test_a_model_beside_itself_has_all_layers_in_common(run):
    _, out, _ = run("ledger", "gpt-oss-120b", "--beside", "gpt-oss-120b")
    layers = out.split("Layers, from the input up\n")[1]
    assert "both attention" in layers and "<" not in layers and ">" not in layers


@pytest.mark.parametrize("more", [["--json"], ["--context", "1,2"], ["--memory", "1GB"]])
def test_beside_is_one_comparison(refused, more):
    assert "beside: expected one context" in refused("ledger", "gpt2", "--beside", "gpt2", *more)


def right(left, number):
    """A line with a number, or words, at its right margin."""
    text = f"{number:,}" if isinstance(number, int) else number
    return f"{left}{text:>{80 - len(left)}}"


def test_the_whole_table_of_gpt_2(run):
    """Every number by hand: 12 layers of width 768, four tokens, two bytes a number."""
    table, attention, network = 50257 * 768, 4 * (768 * 768 + 768), 2 * 768 * 3072 + 3072 + 768
    norms = 25 * 2 * 768
    body = 1024 * 768 + 12 * (attention + network) + norms
    token = 2 * (12 * (4 * 768 * 768 + 2 * 768 * 3072) + table)
    read = 2 * 12 * 2 * 768  # by one key of each layer
    everything = 4 * token + (1 + 2 + 3 + 4) * read
    assert run("ledger", "gpt2", "--context", "4,8", "--memory", "1MB")[1].splitlines() == [
        "openai-community/gpt2 (gpt2)",
        "",
        right("Layers", 12),
        "  12 x attention 12/12 x 64 | feed-forward 3072",
        "",
        right("Parameters", 124_439_808),
        right("  input embedding", table),
        right("  positions", 1024 * 768),
        right("  attention", 12 * attention),
        right("  feed forward", 12 * network),
        right("  norms", norms),
        right("  stored at 2 bytes each", "0.249 GB = 0.232 GiB"),
        "",
        right("Active per token, with both embeddings", 124_439_808),
        right("  without the input table", 124_439_808),
        right("  without either", body),
        "",
        right("Cache of 4 tokens, batch 1, bf16", "0.000147 GB = 0.000137 GiB"),
        right("  keys values: 12 layers x 1,536 x 4", 12 * 1536 * 4),
        right("  scalars, all sequences", 12 * 1536 * 4),
        right("  a token adds", 12 * 1536),
        "",
        right("Cache of 8 tokens, batch 1", "0.000295 GB = 0.000275 GiB"),
        "",
        right("In 0.001000 GB = 0.000931 GiB fit, at batch 1", f"{10**6 // (12 * 1536 * 2)} tokens"),
        right("  or, at 4 tokens", f"{10**6 // (12 * 1536 * 2 * 4)} sequences"),
        "",
        right("FLOPs of one token after 3", token + 4 * read),
        right("  weights", token),
        right("  attention and memory", 4 * read),
        right("FLOPs of all 4 tokens", everything),
        right("  weights", 4 * token),
        right("  attention and memory", 10 * read),
        right("Training FLOPs a token, three times forward", 3 * everything // 4),
        "",
        "Notes",
        "  - tied: the output head is the token table, counted once",
        "  - the FLOPs of all tokens include the output head at every position",
        "  - text weights only",
        "  - what fits in the memory is the cache alone: the weights need room of their",
        "    own",
    ]


def test_the_whole_comparison_of_gpt_2_with_t5_small(run):
    """T5's decoder: six layers of 512 that read eight tokens, and four of the source."""
    weights = 6 * (6 * 512 * 512 + 2 * 512 * 2048) + 32128 * 512
    gpt2 = 2 * (12 * 12 * 768 * 768 + 50257 * 768 + 8 * 12 * 2 * 768)
    pairs = {
        "Parameters": (124_439_808, 60_506_624),
        "  active, both embeddings": (124_439_808, 60_506_624),
        "  active, no input table": (124_439_808, 60_506_624),
        "Cached at 8, scalars": (12 * 1536 * 8, 6 * 1024 * (8 + 4)),
        "  bytes, bf16": (2 * 12 * 1536 * 8, 2 * 6 * 1024 * (8 + 4)),
        "  a token adds": (12 * 1536, 6 * 1024),
        "  fixed": (0, 0),
        "FLOPs of one token": (gpt2, 2 * (weights + 6 * 1024 * (8 + 4))),
    }
    assert run("ledger", "gpt2", "--beside", "t5-small", "--context", "8", "--source-length", "4")[1].splitlines() == [
        f"{'gpt2':>55}{'t5-small':>25}",
        *(f"{words:<30}{one:>25,}{other:>25,}" for words, (one, other) in pairs.items()),
        "",
        "Layers, from the input up",
        "  1 to 6",
        "    < attention 12/12 x 64 | feed-forward 3072",
        "    > attention 8/8 x 64 | cross-attention 8/8 x 64 | feed-forward 2048",
        "  7 to 12",
        "    < attention 12/12 x 64 | feed-forward 3072",
        "    > none",
    ]


def test_options(run):
    status, out, _ = run(
        "ledger",
        "gpt-oss-120b",
        "--json",
        "--context",
        "4096,8192",
        "--batch",
        "1,2",
        "--dtype",
        "fp8",
        "--flops",
        "torchtitan",
        "--memory",
        "1.5GiB",
        "--ranks",
        "2",
        "--reserve",
        "full",
    )
    record = json.loads(out)
    VALID.validate(record)
    assert status == 0
    assert record["flops"]["training_per_token"]["torchtitan"] == 34_534_221_696
    assert [(one["context"], one["batch"]) for one in record["sweep"]] == [
        (4096, 1),
        (4096, 2),
        (8192, 1),
        (8192, 2),
    ]
    assert record["sweep"][-1]["bytes"] == 36864 // 2 * 8192 * 2
    assert record["fits"]["memory"] == 3 * 2**29
    assert record["fits"]["largest_context"] == 3 * 2**29 // (36864 // 2)


# What the table says of caches, with its numbers from the models' papers and files by hand.
CACHES = {
    ("Jamba", "--context", "5000", "--batch", "2", "--state-dtype", "fp32"): [
        ("Cache of 5,000 tokens, batch 2, bf16, memory fp32", "0.196 GB = 0.182 GiB"),
        ("  memory: 28 layers, fixed", 28 * 8192 * 16),
        ("  convolution inputs: 28 layers, fixed", 28 * 8192 * 3),
        ("  keys values: 4 layers x 2,048 x 5,000", 4 * 2 * 8 * 128 * 5000),
        ("  scalars, all sequences", 2 * (28 * 8192 * 19 + 4 * 2048 * 5000)),
        ("  a token adds", 4 * 2048),
    ],
    ("gpt-oss-120b", "--context", "300"): [
        ("Cache of 300 tokens, batch 1, bf16", "0.015778 GB = 0.014694 GiB"),
        ("  window keys values: 18 layers x 1,024 x 128 (at most 128)", 18 * 1024 * 128),
        ("  keys values: 18 layers x 1,024 x 300", 18 * 1024 * 300),
        ("  scalars, all sequences", 18 * 1024 * 428),
        ("  a token adds", 36 * 1024),
        ("  beyond every limit", 18 * 1024),
    ],
    ("t5-small", "--context", "10", "--source-length", "7"): [
        ("Cache of 10 tokens, batch 1, bf16", "0.000209 GB = 0.000195 GiB"),
        ("  keys values: 6 layers x 1,024 x 10", 6 * 1024 * 10),
        ("  cross keys values: 6 layers x 1,024 x 7", 6 * 1024 * 7),
        ("  scalars, all sequences", 6 * 1024 * 17),
        ("  a token adds", 6 * 1024),
        ("  a source token adds", 6 * 1024),
    ],
    ("DeepSeek-V4", "--context", "4100"): [
        ("  window keys values: 43 layers x 512 x 128 (at most 128)", 43 * 512 * 128),
        ("  compressed keys values: 21 layers x 512 x 1,025 (one per 4)", 21 * 512 * 1025),
        ("  compressed indexer keys: 21 layers x 128 x 1,025 (one per 4)", 21 * 128 * 1025),
        ("  compressed keys values: 20 layers x 512 x 32 (one per 128)", 20 * 512 * 32),
        ("  a token adds", 43 * 512 + 21 * 640 // 4 + 20 * 512 // 128),
        ("  beyond every limit", 21 * 640 // 4 + 20 * 512 // 128),
    ],
}


@pytest.mark.parametrize("command", CACHES, ids=lambda command: command[0])
def test_the_table_of_a_cache(run, command):
    status, out, _ = run("ledger", *command)
    lines = out.splitlines()
    for words, number in CACHES[command]:
        told = f"{number:,}" if isinstance(number, int) else number
        assert f"{words}{told:>{80 - len(words)}}" in lines, words
    assert status == 0


LAYERS = {
    "Meta-Llama-3.1-8B": (32, ["  32 x attention 32/8 x 128 | gated feed-forward 14336"]),
    "gpt2": (12, ["  12 x attention 12/12 x 64 | feed-forward 3072"]),
    "bloom": (70, ["  70 x attention 112/112 x 128 | feed-forward 57344"]),
    "DeepSeek-V3": (61, [
        "  3 x latent attention 128 heads, 512 + 64 | gated feed-forward 18432",
        "  58 x latent attention 128 heads, 512 + 64 | 8 of 256 experts + shared",
    ]),
    "gpt-oss-120b": (36, [
        "  18 times",
        "    1 x attention 64/8 x 64, window 128 | 4 of 128 experts",
        "    1 x attention 64/8 x 64 | 4 of 128 experts",
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 bytes"), (99_999, "99,999 bytes"), (100_000, "0.000100 GB = 0.000093 GiB"),
        (10**8 - 1, "0.100000 GB = 0.093132 GiB"), (10**8, "0.100 GB = 0.093132 GiB"),
        (2**30 // 10 - 1, "0.107 GB = 0.100000 GiB"), (2**30 // 10, "0.107 GB = 0.100 GiB"),
        (10**9 + 499_999, "1.000 GB = 0.932 GiB"), (10**9 + 500_000, "1.001 GB = 0.932 GiB"),
        (5000 * 2**30, "5,368.709 GB = 5,000.000 GiB"),
    ],
)  # fmt: skip
def test_bytes_are_told_in_both_units(size, told):
    assert _both(size) == told


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        ("7", 7), ("7B", 7), ("7kB", 7_000), ("7MB", 7_000_000), ("7 gb", 7_000_000_000), ("7TB", 7_000_000_000_000),
        ("7KiB", 7_168), ("7MiB", 7_340_032), ("7GiB", 7_516_192_768), ("7TiB", 7_696_581_394_432),
        ("1.5GB", 1_500_000_000), ("0.25KiB", 256), ("1.000001MB", 1_000_001), (" 1.1B ", 1),
    ],
)  # fmt: skip
def test_a_size_of_memory(run, memory, size):
    assert json.loads(run("ledger", "gpt2", "--memory", memory, "--json")[1])["fits"]["memory"] == size


def test_at_most_1024_pairs_of_context_and_batch(run, refused):
    counts = [",".join(str(n) for n in range(1, most + 1)) for most in (32, 33)]
    status, out, _ = run("ledger", "gpt2", "--json", "--context", counts[0], "--batch", counts[0])
    assert status == 0 and len(json.loads(out)["sweep"]) == 1024
    expected = "context: expected at most 1024 pairs with batch, came 1056"
    assert expected in refused("ledger", "gpt2", "--context", counts[0], "--batch", counts[1])
    counts = [",".join(str(n) for n in range(1, most + 1)) for most in (25, 41)]
    assert "came 1025" in refused("ledger", "gpt2", "--context", counts[0], "--batch", counts[1])


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("gpt2", {
            "Parameters": 124_439_808,
            "  stored at 2 bytes each": "0.249 GB = 0.232 GiB",
            "Active per token, with both embeddings": 124_439_808,
            "  without the input table": 124_439_808,  # it is the head's too
            "  without either": 124_439_808 - 50257 * 768,
        }),
        ("DeepSeek-V3", {
            "Parameters": 671_026_404_352,
            "  input embedding": 129_280 * 7168,
            "  feed forward": 3 * 3 * 7168 * 18432,
            "  router": 58 * 256 * 7168,
            "  routed experts": 58 * 256 * 3 * 7168 * 2048,
            "  shared experts": 58 * 3 * 7168 * 2048,
            "  stored at 2 bytes each": "1,342.053 GB = 1,249.884 GiB",
        }),
    ],
)  # fmt: skip
def test_the_table_of_the_parameters(run, model, told):
    lines = run("ledger", model)[1].splitlines()
    for words, number in told.items():
        number = f"{number:,}" if isinstance(number, int) else number
        assert f"{words}{number:>{80 - len(words)}}" in lines, words


def test_the_parts_of_the_parameters_are_set_in(run):
    out = run("ledger", "DeepSeek-V4-Flash")[1]
    part = out[out.index("Parameters ") : out.index("Cache of")]
    labels = [re.split(r"  +", line.lstrip())[0] for line in part.splitlines()]
    margins = [len(line) - len(line.lstrip()) for line in part.splitlines()]
    assert all(len(line) in (0, 80) for line in part.splitlines())
    assert labels[0] == "Parameters" and margins[0] == 0
    below = labels.index("Active per token, with both embeddings")
    assert "beside them, multi-token prediction" in labels[:below]
    assert labels[below - 2 :] == [
        "stored at 2 bytes each", "", "Active per token, with both embeddings", "without the input table", "without either", "",
    ]  # fmt: skip
    assert {margin for margin, label in zip(margins, labels, strict=True) if label and not label[0].isupper()} == {2}


@pytest.mark.parametrize("name", LAYERS)
def test_the_table_of_layers(run, name):
    number, lines = LAYERS[name]
    out = run("ledger", name)[1]
    assert "\n".join([f"Layers{number:>74}", *lines, "", "Parameters "]) in out


def test_a_pattern_that_comes_twice_is_told_once(run, tmp_path):
    config = bundled_config("Qwen3-0.6B") | {
        "use_sliding_window": True, "sliding_window": 64, "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = run("ledger", tmp_path / "config.json")[1]
    layer = "attention 16/8 x 128{} | gated feed-forward 3072"
    lines = ["  2 times", f"    1 x {layer.format(', window 64')}", f"    1 x {layer.format('')}", ""]
    assert "\n".join([f"Layers{4:>74}", *lines]) in out


def test_layers_without_a_pattern_are_told_up_to_a_dozen_lines(run, tmp_path):
    lengths = [1, 3, 1, 2, 5, 1, 4, 2, 7, 1, 3, 2, 6, 4, 2, 1]
    kinds = ["sliding_attention", "full_attention"]
    layers = [kinds[n % 2] for n, length in enumerate(lengths) for _ in range(length)]
    config = bundled_config("Qwen3-0.6B") | {
        "use_sliding_window": True, "sliding_window": 64, "layer_types": layers, "num_hidden_layers": len(layers),
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = run("ledger", tmp_path / "config.json")[1]
    told = out[out.index("Layers") : out.index("Parameters")]
    shown = [line for line in told.splitlines()[1:] if line]
    rest = int(re.fullmatch(r"  and ([0-9]+) more layers", shown.pop())[1])
    counts, times = [], 1
    for line in shown:
        if found := re.fullmatch(r"  ([0-9]+) times", line):
            times = int(found[1])
        else:
            times = 1 if not line.startswith("    ") else times
            counts.append(times * int(line.split(" x ")[0]))
    assert sum(counts) + rest == len(layers) and rest > 0


def test_ranks_beyond_the_heads_copy_them(run):
    notes = {n: json.loads(run("ledger", "Meta-Llama-3.1-8B", "--ranks", n, "--json")[1])["notes"] for n in (1, 8, 16)}
    assert not any("rank" in note for note in notes[1])
    assert "the cache is one rank's of 8" in notes[8]
    assert any(
        note.startswith("the cache is one rank's of 16; with fewer key/value heads than that (8), heads are copied")
        for note in notes[16]
    )


def told(run, *arguments):
    """What the command says, unwrapped; and the notes of its JSON."""
    table = " ".join(run("ledger", *arguments)[1].split())
    return table, json.loads(run("ledger", *arguments, "--json")[1])["notes"]


def test_ranks_that_do_not_divide_the_heads_are_one_line(run):
    status, out, err = run("ledger", "Meta-Llama-3.1-8B", "--ranks", "64")
    assert (status, out) == (2, "")
    assert err.endswith("ranks: expected a divisor of the 32 query heads, came 64\n") and err.count("\n") == 1


def test_what_fits_is_told_to_be_the_cache_alone(run):
    expected = "what fits in the memory is the cache alone: the weights need room of their own"
    table, remarks = told(run, "gpt2", "--memory", "1GB")
    assert expected in table and expected in remarks
    assert expected not in told(run, "gpt2")[1]


def test_options_about_a_cache_that_is_not_there(run):
    table, remarks = told(run, "bert", "--memory", "1GB", "--ranks", "2", "--batch", "1,2")
    assert "nothing is cached, so the memory limits neither context nor batch" in remarks
    assert "Cache of" not in table and "one rank" not in table


def test_a_source_without_an_encoder_is_told(run):
    expected = "source length 7: this model has no encoder, so it counts for nothing"
    assert expected in told(run, "gpt2", "--source-length", "7")[1]
    assert expected not in told(run, "t5-small", "--source-length", "7")[1]


def test_a_sweep_and_both_ways_of_counting_as_lines(run):
    out = run("ledger", "gpt-oss-120b", "--context", "4096,8192", "--dtype", "fp8", "--flops", "torchtitan")[1]
    told = "Cache of 8,192 tokens, batch 1"
    kept = 18 * 1024 * (8192 + 128)
    assert f"{told}{f'{kept / 10**9:.3f} GB = {kept / 2**30:.3f} GiB':>{80 - len(told)}}" in out.splitlines()
    for words, number in (("  as torchtitan counts them", 34_534_221_696), ("  the same with the visible pairs only", 32_720_969_088)):
        assert f"{words}{number:>{80 - len(words)},}" in out.splitlines()


def test_the_table_and_the_json_of_a_model_have_the_same_numbers(run):
    for name in ("Jamba", "DeepSeek-V3", "vit-base", "Nemotron-H"):
        record = json.loads(run("ledger", name, "--json")[1])
        out = run("ledger", name)[1]
        counted, work = record["parameters"], record["flops"]
        beside = counted["multi_token_prediction"]
        expected = [
            ("Layers", sum(layer["count"] for layer in record["layers"])),
            ("Parameters", counted["total"]),
            *((f"  {name.replace('_', ' ')}", n) for name, n in counted["components"].items()),
            *([("  beside them, multi-token prediction", beside)] if beside else []),
            ("Active per token, with both embeddings", counted["active"]["with_embeddings"]),
            ("  without the input table", counted["active"]["without_input_embedding"]),
            ("  without either", counted["active"]["without_embeddings"]),
        ]
        for part in ("per_token", "per_sequence"):
            expected += [("  weights", work[part]["matmul"]), ("  attention and memory", work[part]["attention"])]
            assert work[part]["matmul"] + work[part]["attention"] == work[part]["total"]
        for words, number in expected:
            assert f"\n{words}{number:>{80 - len(words)},}\n" in out, words
        assert ("multi-token prediction" in out) == bool(beside)


def test_gigabytes_of_both_kinds(run):
    _, out, _ = run("ledger", "Meta-Llama-3.1-8B", "--context", "131072")
    assert "17.180 GB = 16.000 GiB" in out


def test_standard_input(run, monkeypatch):
    data = json.dumps(bundled_config("gpt2")).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    status, out, _ = run("ledger", "-", "--json")
    assert status == 0 and json.loads(out)["parameters"]["total"] == 124_439_808


def test_no_standard_input_at_all(refused, monkeypatch):
    """As where a process is started with it closed."""
    monkeypatch.setattr(sys, "stdin", None)
    assert refused("ledger", "-") == "archcards: standard input: expected a configuration, came nothing\n"


def test_a_source_without_an_end_is_read_to_one_byte_beyond_the_limit(refused, monkeypatch, tmp_path):
    """Standard input has no size to ask for, and what a device or a pipe says of its size is nothing."""
    expected = f"expected at most {LARGEST_FILE} bytes, came {LARGEST_FILE + 1}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (LARGEST_FILE + 10))))
    assert refused("ledger", "-") == f"archcards: standard input: {expected}"
    (tmp_path / "pipe.json").write_bytes(b" " * (LARGEST_FILE + 10))
    monkeypatch.setattr(os.path, "getsize", lambda path: 0)
    assert refused("ledger", tmp_path / "pipe.json").endswith(expected)


def test_a_file_and_its_folder(run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(bundled_config("gpt2")))
    outs = [
        json.loads(run("ledger", path, "--json")[1])
        for path in (tmp_path, tmp_path / "config.json")
    ]
    assert outs[0]["parameters"] == outs[1]["parameters"]


@pytest.mark.parametrize(
    "given, name",
    [
        ("mixtral", "mistralai/Mixtral-8x7B-v0.1"),
        ("QWEN3 0.6b", "Qwen/Qwen3-0.6B"),
        ("openai__gpt-oss-120b", "openai/gpt-oss-120b"),
        ("gpt2", "openai-community/gpt2"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("Meta-Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B"),
    ],
)
def test_forgiving_names(run, given, name):
    assert json.loads(run("ledger", given, "--json")[1])["model"] == name


def test_models(run):
    status, out, _ = run("models")
    assert status == 0
    assert len(out.splitlines()) == len(bundled_names())
    assert max(map(len, out.splitlines())) <= 80
    assert right("openai-community/gpt2  (gpt2)", 124_439_808) in out.splitlines()
    families = run("models", "--families")[1].splitlines()
    assert {"llama", "mamba2", "vit"} <= {line.split()[0] for line in families}
    assert all(len(line) <= 80 and len(line.split()) > 1 for line in families)
    for record in json.loads(run("models", "--json")[1]):
        assert record["parameters"]["total"] > 0


def test_suggestions(refused):
    assert "mistralai/Mixtral-8x7B-v0.1" in refused("ledger", "mixtrall-8x7b")
    assert "Qwen/Qwen3-8B" in refused("ledger", "qwen3")
    assert "archcards models" in refused("ledger", "zzzzzzzzzzzzz")


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "came an empty file"),
        (b" \n", "came an empty file"),
        (b"{", "line 1, column 2"),
        (b"\xff\xfe{}", "UTF-8"),
        (b"[1]", "expected a JSON object, came a list of 1"),
        (b"3", "expected a JSON object, came 3"),
        (b'"llama"', "expected a JSON object"),
        (b"null", "came null"),
        (b'{"model_type": "llama", "model_type": "llama"}', "'model_type' twice"),
        (b'{"model_type": "llama", "rms_norm_eps": NaN}', "came NaN"),
        (b'{"model_type": "llama", "rms_norm_eps": -Infinity}', "came -Infinity"),
        (b'{"model_type": "llama", "rms_norm_eps": 1e999}', "came 1e999"),
        (b'{"model_type": "llama", "vocab_size": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"{}", "model_type: expected the name of a model family, came nothing"),
        (b'{"model_type": null}', "model_type"),
        (b'{"model_type": 3}', "model_type: expected a string, came 3"),
        (b'{"model_type": "no\\nsuch"}', "model_type: expected a family"),
        (b'{"model_type": "' + b"x" * 10_000 + b'"}', "model_type: expected a family"),
        (
            b'{"model_type": "llama"}',
            "hidden_size: expected a whole number of at least 1, came nothing",
        ),
    ],
)
def test_bad_files(refused, tmp_path, content, expected):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert expected in refused("ledger", path)


def test_a_huge_file_is_not_read(refused, tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    assert "expected at most 4194304 bytes, came 104857600" in refused("ledger", path)


def test_missing_files_and_folders(refused, tmp_path):
    assert "No such file" in refused("ledger", tmp_path / "none.json")
    assert "a directory without one" in refused("ledger", tmp_path)
    refused("ledger", "nul\0byte.json")
    refused("ledger", "x" * 5000)
    refused("ledger", "")


@pytest.mark.parametrize(
    "field, value, expected",
    [
        ("hidden_size", -1, "hidden_size: expected a whole number of at least 1, came -1"),
        ("hidden_size", 0, "hidden_size: expected a whole number of at least 1, came 0"),
        ("hidden_size", 4096.0, "came 4096.0"),
        ("hidden_size", True, "came true"),
        ("hidden_size", "4096", "came '4096'"),
        ("hidden_size", None, "came null"),
        ("hidden_size", [4096], "came a list of 1"),
        ("hidden_size", 10**30, "at most 1000000000000"),
        (
            "hidden_size",
            4097,
            "num_attention_heads: expected a divisor of the hidden size, 4097, came 32",
        ),
        ("num_hidden_layers", 10**9, "num_hidden_layers"),
        (
            "num_key_value_heads",
            7,
            "num_key_value_heads: expected a divisor of num_attention_heads, 32, came 7",
        ),
        ("tie_word_embeddings", "no", "tie_word_embeddings: expected true or false, came 'no'"),
        ("num_experts", 8, "num_experts: expected no such field"),
        ("layer_types", ["full_attention"], "layer_types"),
        ("architectures", ["LlamaForRewardModel"], "architectures"),
        ("architectures", [3], "architectures"),
        ("architectures", "Llama", "architectures: expected a list"),
    ],
)
def test_bad_fields(refused, tmp_path, field, value, expected):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**bundled_config("Meta-Llama-3.1-8B"), field: value}))
    assert expected in refused("ledger", path)


def test_the_path_of_a_nested_field(refused, tmp_path):
    config = bundled_config("gemma-4-E2B")
    config["text_config"]["layer_types"][3] = "square"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert "text_config.layer_types[3]: expected one of" in refused("ledger", path)
    config["text_config"]["layer_types"] = ["full_attention"]
    path.write_text(json.dumps(config))
    assert "text_config.layer_types: expected a list of 35 items, came a list of 1" in refused(
        "ledger", path
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--context", "0"),
        ("--context", str(10**30)),
        ("--context", "-1"),
        ("--context", "4k"),
        ("--context", ""),
        ("--context", "1,,2"),
        ("--context", "9" * 5000),
        ("--context", "٣"),
        ("--context", ",".join("1" * 100)),
        ("--batch", "0"),
        ("--batch", "1.5"),
        ("--source-length", "-3"),
        ("--dtype", "float"),
        ("--state-dtype", "?"),
        ("--reserve", "all"),
        ("--ranks", "3"),
        ("--ranks", "64"),
        ("--ranks", "0"),
        ("--memory", "80 apples"),
        ("--memory", ""),
        ("--memory", "1e9"),
        ("--flops", "mine"),
        ("--nonsense",),
    ],
)
def test_bad_options(refused, arguments):
    refused("ledger", "Meta-Llama-3.1-8B", *arguments)


@pytest.mark.parametrize("option", ["--context", "--batch"])
def test_at_most_64_values_of_an_option(run, refused, option):
    counts = [str(n) for n in range(1, 66)]
    status, out, _ = run("ledger", "gpt2", "--json", option, ",".join(counts[:64]))
    assert status == 0 and len(json.loads(out)["sweep"]) == 64
    expected = f"{option.removeprefix('--')}: expected at most 64 values, came 65"
    assert expected in refused("ledger", "gpt2", option, ",".join(counts))


@pytest.mark.parametrize("option", ["--ranks", "--source-length"])
@pytest.mark.parametrize("given", ["1.5", "2,4", "x", ""])
def test_one_number_is_asked_for_where_one_is_taken(refused, option, given):
    name = option.removeprefix("--").replace("-", "_")
    said = refused("ledger", "gpt2", option, given).replace("source-length", "source_length")
    assert f"{name}: expected a whole number, came {given!r}" in said


def test_needs_nothing_but_the_standard_library():
    """Imports the ledger where no package is installed, as a browser would."""
    code = (
        "import sys\n"
        "import archcards.ledger._command\n"
        "import archcards.ledger as ledger\n"
        "for name in ledger.bundled_names(): ledger.parameters(ledger.bundled(name))\n"
        "outside = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)\n"
        "others = {m for m in sys.modules if m.startswith('archcards.')"
        " and not m.startswith('archcards.ledger')}\n"
        "print(sorted((outside - {'archcards', '__main__'}) | others))\n"
    )
    root = str(resources.files("archcards").joinpath("..").resolve())
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout.strip() == "[]", found.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
def test_a_full_disk_is_told_in_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "archcards", "ledger", "gpt2"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("archcards: standard output: expected room")


def test_imports_only_what_it_needs():
    slow = {
        "numpy",
        "sympy",
        "matplotlib",
        "einops",
        "dataclasses",
        "inspect",
        "importlib.resources",
        "fractions",
    }
    code = (
        "import sys, io, contextlib\n"
        "from archcards.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['ledger', 'mixtral', '--json'])\n"
        f"print(sorted({slow!r} & set(sys.modules)))\n"
    )
    root = str(resources.files("archcards").joinpath("..").resolve())
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout.strip() == "[]", found.stderr
