"""A layer in words, as the model cards of the families say it."""

import json
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, bundled, bundled_config, cache, flops, read_config
from archcards.ledger.describe import in_step, layer_kinds, mixer_words, notes, repeats

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


def test_a_short_convolution_has_channels_and_no_memory():
    config = {
        "model_type": "lfm2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
        "num_key_value_heads": 2, "intermediate_size": 96, "block_auto_adjust_ff_dim": False,
        "layer_types": ["conv", "full_attention"],
    }  # fmt: skip
    assert layer_kinds(read_config(config).layers[0]) == "short convolution 64 | gated feed-forward 96"


def test_values_narrower_than_keys_are_told():
    mixer = bundled("Meta-Llama-3.1-8B").layers[0].mixers[0]
    assert mixer_words(mixer._replace(value_width=64)) == "attention 32/8 x 128/64"


def test_kinds_of_layers_that_are_not_listed_are_refused():
    config = {name: value for name, value in bundled_config("Zyphra/Zamba-7B-v1").items() if name != "layers_block_type"}
    with pytest.raises(UnsupportedConfig, match="layers_block_type"):
        read_config(config | {"model_type": "zamba2"})


# What a reader of the configuration alone would get wrong, and must be told.
NOTES = {
    "ai21labs/Jamba-v0.1": "32 query heads share 8 key/value heads",
    "deepseek-ai/DeepSeek-V2-Lite": "q_lora_rank is null: the query has a full projection, not a low-rank one",
    "facebook/opt-350m": "the token table is 512 wide and projected to and from 1024",
    "google-bert/bert-base-uncased": "BertModel: with the pooler, without an output head",
    "google-t5/t5-small": "the decoder's cache: its own keys and values per token, and the encoder's keys and values "
    "once per source token",
    "google/gemma-2-2b": "13 of 26 layers read a window of 4096 tokens (sliding_window)",
    "google/gemma-2b": "8 query heads share 1 key/value head",
    "google/gemma-4-E2B": "per-layer embeddings: a second table of 262144 by 8960, which counts as active in every "
    "convention",
    "google/recurrentgemma-2b": "intermediate_size 15360 is both halves of the gated network: each is 7680 wide",
    "google/vit-base-patch16-224": "with the classifier of 1000 classes; image of 224 by 224",
    "Llama-4-Scout-17B-16E-Instruct": "36 of 48 layers attend within chunks of 8192 positions: of T tokens they need the "
    "last (T - 1) mod 8192 + 1; counted is a store that keeps 8192",
    "mistralai/Mamba-Codestral-7B-v0.1": "no attention: the cache is a fixed state per sequence",
    "openai/gpt-oss-120b": "head_dim 64 times 64 heads is 4096, not the hidden size 2880: the config's head_dim is what "
    "counts",
    "tiiuae/falcon-7b": "multi_query: 71 query heads share one key/value head",
    "tiiuae/falcon-mamba-7b": "intermediate_size 8192 counts, not expand 16 times 4096",
    "Zyphra/Zamba-7B-v1": "one attention block serves 13 layers: its parameters once, its cache per use",
}  # fmt: skip


def test_what_repeats_is_told_by_its_shortest_unit():
    for words, told in (
        ("aaaa", [(4, [(1, "a")])]),
        ("abababab", [(4, [(1, "a"), (1, "b")])]),
        ("aabaabaab", [(3, [(2, "a"), (1, "b")])]),
        ("aaab", [(3, [(1, "a")]), (1, [(1, "b")])]),
        ("abbb", [(1, [(1, "a")]), (3, [(1, "b")])]),
        ("cabab", [(1, [(1, "c")]), (2, [(1, "a"), (1, "b")])]),
        ("abcab", [(1, [(1, "a")]), (1, [(1, "b")]), (1, [(1, "c")]), (1, [(1, "a")]), (1, [(1, "b")])]),
    ):
        assert repeats(list(words)) == told
        assert "".join(times * "".join(count * one for count, one in unit) for times, unit in told) == words


def test_a_pattern_is_no_longer_than_asked():
    words = "abcabc"
    assert repeats(list(words), longest=3) == [(2, [(1, "a"), (1, "b"), (1, "c")])]
    assert repeats(list(words), longest=2) == [(1, [(1, word)]) for word in words]
    for length, times in ((16, 2), (17, 1)):
        unit = [str(n) for n in range(length)]
        assert repeats(unit * 2)[0][0] == times


@pytest.mark.parametrize("model", NOTES)
def test_notes(model):
    assert NOTES[model] in bundled(model).notes


def test_latent_layers_among_others_are_told_in_the_absorbed_form():
    """Kimi Linear: 7 latent layers whose 32 heads read 576 + 512 numbers a token, and 20 memories, each met thrice."""
    model = bundled("Kimi-Linear")
    work = 2 * (7 * 32 * 1000 * (576 + 512) + 3 * 20 * 32 * 128 * 128)
    told = notes(model, cache(model, 1000), flops(model, 1000))
    assert any(note.endswith(f"in the absorbed form has {work:,} attention FLOPs") for note in told)


@pytest.mark.parametrize(
    ("model", "text", "tower"),
    [("Qwen3-8B", True, False), ("medgemma-27b-it", False, True), ("vit-base-patch16-224", False, False)],
)
def test_what_is_counted_of_a_tower_is_told(model, text, tower):
    one = bundled(model)
    told = notes(one, cache(one, 100), flops(one, 100))
    assert ("text weights only" in told) == text
    assert any(note.startswith("with the vision tower") for note in told) == tower


@pytest.mark.parametrize(("model", "recurrent"), [("mamba-130m-hf", True), ("Qwen3-Next", True), ("Qwen3-8B", False),
                                                    ("DeepSeek-V3", False), ("DeepSeek-V4-Flash", False)])  # fmt: skip
def test_memories_in_recurrent_form_are_told(model, recurrent):
    one = bundled(model)
    told = notes(one, cache(one, 100), flops(one, 100))
    assert ("attention FLOPs include the reads and writes of recurrent memory, in recurrent form" in told) == recurrent


def about(model, words, context=100, ranks=1, source=0):
    """The notes that have these words."""
    one = bundled(model)
    told = notes(one, cache(one, context, 1, source, ranks=ranks), flops(one, context, source))
    return [note for note in told if words in note]


@pytest.mark.parametrize(("context", "needed", "counted"), [(1, 1, 1), (8191, 8191, 8191), (8192, 8192, 8192), (8193, 1, 8192), (16384, 8192, 8192)])
def test_what_a_chunked_layer_needs_begins_anew_with_each_chunk(context, needed, counted):
    expected = f"at {context} tokens a chunked layer needs {needed} of the {counted} tokens counted"
    assert about("Llama-4-Scout", "chunked layer", context) == [expected]


def test_a_context_is_told_where_it_is_longer_than_the_configuration_allows():
    assert about("gpt2", "allows for", 1024) == []
    assert about("gpt2", "allows for", 1025) == ["1025 tokens are more than the 1024 the configuration allows for"]


def test_heads_are_told_to_be_copied_where_there_are_fewer_than_ranks():
    told = "the cache is one rank's of"
    assert about("Qwen3-8B", told) == []
    assert about("Qwen3-8B", told, ranks=2) == [f"{told} 2"]
    assert about("Qwen3-8B", told, ranks=8) == [f"{told} 8"]
    # Memories and latents are no heads of keys.
    assert about("Jamba", told, ranks=8) == [f"{told} 8"]
    assert about("Kimi-Linear", told, ranks=16) == [f"{told} 16"]
    assert about("Jamba", told, ranks=16) == about("Qwen3-8B", told, ranks=16)
    assert about("Qwen3-8B", told, ranks=16) == [f"{told} 16; with fewer key/value heads than that (8), heads are copied"]


def test_an_image_that_is_missing_is_told():
    """Llama 3.2 Vision keeps keys and values of what a tower gives, and the tower is not counted."""
    cases = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))
    one = read_config(next(case["config"] for case in cases if case["config"]["model_type"] == "mllama"))
    for source, told in ((0, ["source length 0: the cross-attention cache is left out"]), (1, [])):
        found = notes(one, cache(one, 100, 1, source), flops(one, 100, source))
        assert [note for note in found if "source length" in note] == told


@pytest.mark.parametrize(
    ("model", "source", "told"),
    [
        ("t5-small", 0, ["source length 0: the encoder's FLOPs and the cross-attention cache are left out"]),
        ("t5-small", 1, []),
        ("gpt2", 0, []),
        ("gpt2", 1, ["source length 1: this model has no encoder, so it counts for nothing"]),
    ],
)
def test_a_source_is_told_where_it_is_missing_and_where_it_counts_for_nothing(model, source, told):
    assert about(model, "source length", source=source) == told


def test_heads_that_share_nothing_are_no_surprise():
    assert bundled("Llama-2-7b-chat-hf").notes == ()


@pytest.mark.parametrize("model", ["meta-llama/Meta-Llama-3.1-8B", "Qwen/Qwen3-8B"])
def test_no_more_notes_than_there_are_surprises(model):
    assert bundled(model).notes == ("32 query heads share 8 key/value heads",)


def _numbers(span):
    """The layers that `1 to 3, 5 to 7, …, 13 to 15 (12 layers)` names, spelled out."""
    named, _, told = span.partition(" (")
    runs = [range(int(first), int(last or first) + 1) for first, _, last in
            (run.partition(" to ") for run in named.split(", ") if run != "…")]  # fmt: skip
    if "…" in named:
        one, two, last = runs
        step = two[0] - one[0]
        runs = [range(one[0] + up, one[-1] + up + 1) for up in range(0, last[0] - one[0] + 1, step)]
        assert runs[-1] == last
    numbers = [number for run in runs for number in run]
    assert bool(told) == ("…" in named) and (not told or told == f"{len(numbers)} layers)")
    return numbers


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gemma-2b", "gemma-2-2b"),
        ("Qwen3-Next-80B-A3B-Instruct", "Kimi-Linear-48B-A3B-Instruct"),
        ("DeepSeek-V3", "DeepSeek-V3.2"),
        ("Jamba-v0.1", "Mixtral-8x7B"),
        ("gpt2", "gpt2"),
    ],
)
def test_two_stacks_in_step_name_every_layer_once_and_say_what_it_is(first, second):
    stacks = [[layer_kinds(layer) for layer in bundled(name).layers] for name in (first, second)]
    told = {number: pair for span, *pair in in_step(bundled(first), bundled(second)) for number in _numbers(span)}
    named = [number for span, *_ in in_step(bundled(first), bundled(second)) for number in _numbers(span)]
    depth = max(map(len, stacks))
    assert sorted(named) == list(range(1, depth + 1))
    for number, pair in told.items():
        assert pair == [stack[number - 1] if number <= len(stack) else "" for stack in stacks]


def test_a_pattern_is_written_so_that_its_layers_can_be_counted_off():
    spans = [span for span, *_ in in_step(bundled("gemma-2b"), bundled("gemma-2-2b"))]
    assert spans == ["1, 3, …, 17 (9 layers)", "2, 4, …, 18 (9 layers)", "19, 21, 23, 25", "20, 22, 24, 26"]
    spans = [span for span, *_ in in_step(bundled("Qwen3-30B-A3B"), bundled("Qwen3-Next-80B-A3B-Instruct"))]
    assert spans == ["1 to 3, 5 to 7, …, 45 to 47 (36 layers)", "4, 8, …, 48 (12 layers)"]
    spans = [span for span, *_ in in_step(bundled("Qwen3-Next-80B-A3B-Instruct"), bundled("Kimi-Linear-48B-A3B-Instruct"))]
    assert spans[6:] == ["28, 32, …, 44 (5 layers)", "29 to 31, 33 to 35, …, 45 to 47 (15 layers)", "48"]
    assert [span for span, *_ in in_step(bundled("gpt2"), bundled("gpt2"))] == ["1 to 12"]
