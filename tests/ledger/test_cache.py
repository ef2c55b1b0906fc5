"""Caches: against a simulation token by token, and against figures that readers had to correct."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.ledger import bundled, bundled_names, cache, largest_batch, largest_context
from archcards.ledger.architecture import Attention, CompressedAttention, LatentAttention
from archcards.ledger.cache import FORMATS, Format

MODELS = {name: bundled(name) for name in bundled_names()}
DECODERS = sorted(name for name, model in MODELS.items() if model.decodes)


def simulated(architecture, tokens, source=0):
    """Scalars held after appending tokens one by one and dropping what no layer may read."""
    total = 0
    for layer in architecture.layers:
        for mixer in layer.mixers:
            if isinstance(mixer, Attention):
                if not mixer.cached:
                    continue
                row = mixer.kv_heads * (mixer.key_width + mixer.value_width)
                held = []
                for token in range(source if mixer.cross else tokens):
                    held.append(token)
                    if mixer.reach.kind in ("window", "chunk"):
                        held = held[-mixer.reach.size :]
                total += row * len(held)
            elif isinstance(mixer, LatentAttention):
                total += tokens * (mixer.latent_width + mixer.rope_width)
                total += tokens * mixer.indexer.width if mixer.indexer else 0
            elif isinstance(mixer, CompressedAttention):
                total += min(tokens, mixer.window) * mixer.width
                finished = (
                    sum((t + 1) % mixer.stride == 0 for t in range(tokens)) if mixer.stride else 0
                )
                total += finished * (mixer.width + (mixer.indexer.width if mixer.indexer else 0))
            else:
                total += mixer.heads * mixer.key_width * mixer.value_width
                total += (mixer.kernel - 1) * sum(units * width for units, width in mixer.inputs)
    return total


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("tokens", [1, 7, 130, 515])
def test_simulation(name, tokens):
    assert cache(MODELS[name], tokens, 3, 11).scalars == 3 * simulated(MODELS[name], tokens, 11)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(DECODERS), st.integers(1, 10**6), st.integers(0, 5000))
def test_terms_add_up(name, context, source):
    kept = cache(MODELS[name], context, 1, source)
    total = 0
    for term in kept.terms:
        length = source if term.source else context
        filled = length if term.limit is None else min(length, term.limit)
        total += term.layers * term.scalars_per_token * (filled // term.stride) + term.fixed_scalars
    assert kept.scalars == total
    assert kept.bytes == 2 * total


@pytest.mark.parametrize(
    "name, context, options, expected",
    [
        # Calculators and bug reports had these wrong; see the cases' models for the reason.
        ("deepseek-ai/DeepSeek-V3", 65536, {"dtype": "int4"}, 35136 * 65536 // 2),
        ("openai/gpt-oss-120b", 1, {}, 73728),
        ("deepseek-ai/DeepSeek-V4-Flash", 32768, {}, 231_079_936),
        ("tiiuae/falcon-7b", 1000, {}, 4096 * 1000 * 2),
        ("google/gemma-4-E2B", 10**6, {}, 2 * (3072 * 10**6 + 6144 * 512)),
    ],
)
def test_bytes(name, context, options, expected):
    assert cache(MODELS[name], context, **options).bytes == expected


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if any(hasattr(x, "kernel") for y in m.layers for x in y.mixers)])
def test_past_inputs_of_a_convolution_are_what_the_cache_keeps(name):
    """Kernel minus one inputs of each recurrent layer, whatever else the model keeps."""
    mixers = [mixer for layer in MODELS[name].layers for mixer in layer.mixers if hasattr(mixer, "kernel")]
    terms = [term for term in cache(MODELS[name], 1000).terms if term.kind == "convolution_inputs"]
    assert sum(mixer.past_inputs for mixer in mixers) == sum(term.fixed_scalars for term in terms)


def test_without_a_source_there_is_nothing_of_one():
    model = bundled("t5-small")
    assert cache(model, 100) == cache(model, 100, source_length=0) != cache(model, 100, source_length=1)


def test_scalars_per_token_of_a_state_space_model_is_nothing():
    kept = cache(bundled("Nemotron-H-8B"), 10)
    assert (kept.scalars_per_token, kept.fixed_scalars) == (8192, 25_903_104)


def test_encoder_decoder_has_a_cache_per_source_token():
    kept = cache(bundled("switch-base-8"), 100, 2, 30)
    assert kept.scalars_per_source_token == 18432
    assert kept.scalars == 2 * (18432 * 100 + 18432 * 30)


def test_reserving_full_pages():
    model = bundled("gpt-oss-120b")
    assert cache(model, 8192, reserve="full").scalars == 36864 * 8192
    assert cache(model, 100, reserve="full").scalars == cache(model, 100).scalars


def test_a_growth_that_is_no_whole_number():
    model = bundled("DeepSeek-V4-Flash")
    layer = model.layers[2]
    odd = layer.mixers[0]._replace(stride=3)
    kept = cache(model._replace(layers=(layer._replace(mixers=(odd,)),)), 7)
    # A window of 512, and per three tokens 512 and 128 more.
    assert kept.scalars_per_token == Fraction(512 * 3 + 512 + 128, 3)
    assert kept.scalars == 512 * 7 + 640 * 2


@pytest.mark.parametrize("ranks, heads", [(1, 8), (2, 4), (8, 1), (16, 1), (32, 1)])
def test_ranks_divide_and_then_repeat_key_value_heads(ranks, heads):
    model = bundled("Meta-Llama-3.1-8B")
    assert cache(model, 10, ranks=ranks).scalars == 32 * heads * 2 * 128 * 10


def test_every_rank_holds_the_whole_latent():
    model = bundled("DeepSeek-V3")
    assert cache(model, 10, ranks=8).scalars == cache(model, 10).scalars


# What an engine refuses, as vLLM does. Among heads that ranks divide, key/value heads may still not go up.
REFUSED = [
    ("Meta-Llama-3.1-8B", 3, "divisor of the 32 query heads"),
    ("Meta-Llama-3.1-8B", 64, "divisor of the 32 query heads"),
    ("falcon-7b", 2, "divisor of the 71 query heads"),
    ("DeepSeek-V3", 256, "divisor of the 128 query heads"),
    ("DeepSeek-V4-Flash", 128, "divisor of the 64 query heads"),
    ("MiniMax-M2.5", 6, "divisor or a multiple of the 8 key/value heads"),
    ("MiniMax-M2.5", 12, "divisor or a multiple of the 8 key/value heads"),
    ("Codestral", 16, "divisor of the 8 mamba2 groups"),
    ("Codestral", 256, "divisor of the 128 mamba2 heads"),
    ("Qwen3-Next", 32, "divisor of the 16 gated delta groups"),
    ("mamba-130m", 5, "divisor of the 1536 mamba channels"),
    ("recurrentgemma-2b", 4096, "divisor of the 2560 rg lru channels"),
    ("bert-base", 8, "divisor of the 12 query heads"),
    ("vit-huge", 32, "divisor of the 16 query heads"),
    ("t5-small", 3, "divisor of the 8 query heads"),
]


@pytest.mark.parametrize("name, ranks, expected", REFUSED)
def test_ranks_that_do_not_divide(name, ranks, expected):
    with pytest.raises(ValueError, match=f"^ranks: expected a {expected}, came {ranks}$"):
        cache(bundled(name), 10, ranks=ranks)


def test_ranks_that_do_divide():
    falcon = bundled("falcon-7b")  # 71 query heads, one key/value head
    assert cache(falcon, 10, ranks=71).scalars == cache(falcon, 10).scalars
    minimax = bundled("MiniMax-M2.5")  # 48 and 8
    by_ranks = [cache(minimax, 10, ranks=ranks).scalars for ranks in (1, 2, 8, 16, 24, 48)]
    assert [by_ranks[0] // held for held in by_ranks] == [1, 2, 8, 8, 8, 8]


def test_ranks_divide_the_heads_of_both_sides():
    model = bundled("t5-small")
    fewer = model.encoder.layers[0].mixer._replace(heads=4)
    encoder = model.encoder._replace(layers=(model.encoder.layers[0]._replace(mixers=(fewer,)),))
    assert cache(model, 10, ranks=8).scalars < cache(model, 10).scalars
    with pytest.raises(ValueError, match="^ranks: expected a divisor of the 4 query heads, came 8$"):
        cache(model._replace(encoder=encoder), 10, ranks=8)


def test_a_layer_that_reads_another_layer_s_cache_has_query_heads_too():
    model = bundled("gemma-4-E2B")
    reading = [layer for layer in model.layers if not layer.mixers[0].cached]
    with pytest.raises(ValueError, match="divisor of the 8 query heads, came 3$"):
        cache(model._replace(layers=tuple(reading)), 10, ranks=3)


def test_a_single_group_is_on_every_rank():
    """Granite 4's convolution: 48 heads of 64 channels, and one group of 256 that all of them share."""
    kept = [cache(bundled("granite-4.0-h-1b"), 1, ranks=ranks).terms for ranks in (1, 4)]
    inputs = [next(term for term in terms if term.kind == "convolution_inputs") for terms in kept]
    whole, quarter = (term.fixed_scalars // term.layers for term in inputs)
    assert (whole, quarter) == (3 * (48 * 64 + 256), 3 * (12 * 64 + 256))


def test_ranks_divide_recurrent_memory():
    whole, half = (cache(bundled("Qwen3-Next"), 1, ranks=ranks) for ranks in (1, 2))
    assert half.fixed_scalars * 2 == whole.fixed_scalars


@pytest.mark.parametrize(
    "form, bits",
    [("q8_0", 8.5), ("q4_0", 4.5), ("mxfp4", 4.25), ("nvfp4", 4.5), ("mxfp8", 8.25), ("fp32", 32)],
)
def test_block_scales(form, bits):
    assert cache(bundled("Qwen3-8B"), 100, dtype=form).bytes == 73728 * 100 * bits / 8


def test_a_block_does_not_reach_across_vectors():
    # Two rows of 40 need two blocks of 32 each: 4 scales, not 3.
    form = Format(8, 32, 8)
    assert form.of_row(40) == 40 * 8 + 2 * 8


def test_memory_has_its_own_format():
    model = bundled("falcon-mamba-7b")
    memory = 64 * 8192 * 16
    assert cache(model, 1, state_dtype="fp32").bytes == 4 * memory + 2 * 64 * 8192 * 3


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 64 * 32), ("bf16", 64 * 16), ("fp16", 64 * 16), ("fp8", 64 * 8), ("int8", 64 * 8), ("int4", 64 * 4),
        # Sixty-four scalars are two blocks of 32 or four of 16, each with a scale of 8 or 16 bits.
        ("mxfp8", 64 * 8 + 2 * 8), ("mxfp4", 64 * 4 + 2 * 8), ("nvfp4", 64 * 4 + 4 * 8),
        ("q8_0", 64 * 8 + 2 * 16), ("q4_0", 64 * 4 + 2 * 16), ("q5_0", 64 * 5 + 2 * 16),
    ],
)  # fmt: skip
def test_the_bits_of_a_row(name, bits):
    assert FORMATS[name].of_row(64) == bits
    scaled = bits % (64 * FORMATS[name].bits) > 0
    assert FORMATS[name].of_row(65) == bits + FORMATS[name].bits + (FORMATS[name].scale_bits if scaled else 0)


def test_a_format_without_scales_has_no_blocks():
    plain = {name: (form.block, form.scale_bits) for name, form in FORMATS.items() if not form.block or not form.scale_bits}
    assert plain == dict.fromkeys(("fp32", "bf16", "fp16", "fp8", "int8", "int4"), (0, 0))


def test_a_format_of_ones_own():
    """Six bits, and a scale of eight for each 64 of the 128 numbers of a head."""
    model = bundled("Qwen3-8B")
    rows = 36 * 2 * 8 * 100
    assert cache(model, 100, dtype=Format(6, 64, 8)).bytes == rows * (128 * 6 + 2 * 8) // 8


def test_every_format_is_among_these():
    assert len(FORMATS) == 12


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(DECODERS),
    st.integers(0, 10**12),
    st.integers(1, 50),
    st.sampled_from(sorted(FORMATS)),
)
def test_the_largest_context_is_the_exact_inverse(name, memory, batch, form):
    model = MODELS[name]
    found = largest_context(model, memory, batch, dtype=form)
    if found is None:
        assert cache(model, 10**12, batch, dtype=form).bytes <= memory
        return
    if found:
        assert cache(model, found, batch, dtype=form).bytes <= memory
    assert cache(model, found + 1, batch, dtype=form).bytes > memory


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(DECODERS), st.integers(0, 10**12), st.integers(1, 10**6))
def test_the_largest_batch_is_the_exact_inverse(name, memory, context):
    model = MODELS[name]
    found = largest_batch(model, memory, context)
    assert found * cache(model, context).bytes <= memory < (found + 1) * cache(model, context).bytes


LENGTHS = f"expected a whole number from 1 to {10**12}"
NAMES = "expected one of fp32, bf16, fp16, fp8, int8, int4, mxfp8, mxfp4, nvfp4, q8_0, q4_0, q5_0"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0,), {}, f"context: {LENGTHS}, came 0"),
        ((10**12 + 1,), {}, f"context: {LENGTHS}, came {10**12 + 1}"),
        # What is shown of a number has fewer than forty characters.
        ((10**38,), {}, f"context: {LENGTHS}, came 1{38 * '0'}"),
        ((10**39,), {}, f"context: {LENGTHS}, came 1{35 * '0'}..."),
        ((1.0,), {}, f"context: {LENGTHS}, came 1.0"),
        ((True,), {}, f"context: {LENGTHS}, came True"),
        (("8",), {}, f"context: {LENGTHS}, came '8'"),
        ((1, 0), {}, f"batch: {LENGTHS}, came 0"),
        ((1, 10**12 + 1), {}, f"batch: {LENGTHS}, came {10**12 + 1}"),
        ((1, 1, -1), {}, f"source_length: expected a whole number from 0 to {10**12}, came -1"),
        ((1,), {"dtype": "bf17"}, f"dtype: {NAMES}, came 'bf17'"),
        ((1,), {"dtype": 41 * "x"}, f"dtype: {NAMES}, came '{40 * 'x'}'"),
        ((1,), {"state_dtype": 8}, f"state_dtype: {NAMES}, came '8'"),
        ((1,), {"reserve": "half"}, "reserve: expected need or full, came 'half'"),
        ((1,), {"ranks": 0}, "ranks: expected a whole number from 1 to 1048576, came 0"),
        ((1,), {"ranks": 2**20 + 1}, "ranks: expected a whole number from 1 to 1048576, came 1048577"),
    ],
)
def test_refuses(arguments, options, message):
    with pytest.raises(ValueError) as refused:
        cache(bundled("Qwen3-8B"), *arguments, **options)
    assert str(refused.value) == message


def test_the_longest_context_of_all_is_counted():
    assert cache(bundled("Qwen3-8B"), 10**12).scalars == 73728 * 10**12


def test_memory_within_bounds():
    model = bundled("Qwen3-8B")
    assert largest_batch(model, 10**30, 1) == 10**30 // (73728 * 2)
    for memory in (-1, 10**30 + 1):
        for most in (lambda: largest_batch(model, memory, 1), lambda: largest_context(model, memory)):
            with pytest.raises(ValueError, match=f"^memory: expected a whole number from 0 to {10**30}, came "):
                most()


def test_an_encoder_has_no_cache():
    assert cache(bundled("bert-base"), 100).terms == ()
    with pytest.raises(ValueError, match="memory: expected"):
        largest_batch(bundled("bert-base"), 100, 10)
