"""FLOPs against published figures, against loops over every pair, and against each other."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.ledger import (
    bundled,
    bundled_names,
    flops,
    image_sequence,
    parameters,
    read_config,
    torchtitan,
    training_per_token,
)
from archcards.ledger.architecture import Tensor
from archcards.ledger.bundled import bundled_config
from archcards.ledger.flops import absorbed, compressed_pairs

DECODERS = sorted(name for name in bundled_names() if bundled(name).decodes)


def test_vit_base():
    counted = flops(bundled("vit-base-patch16-224"))
    assert counted.per_sequence.total == 35_127_656_448
    assert counted.context == 197


def test_a_matrix_of_the_encoder_beside_its_layers_meets_each_token_of_the_source():
    model = bundled("t5-small")
    more = model.encoder.others + (Tensor("bridge", (512, 512)),)
    bridged = model._replace(encoder=model.encoder._replace(others=more))
    plain, found = (flops(one, 5, source_length=7).per_sequence.matmul for one in (model, bridged))
    assert found - plain == 2 * 7 * 512 * 512


# Small models, and the FLOPs that PyTorch's counter sees in one forward pass of the transformers
# library (5.24). It multiplies whole score matrices, so each layer is charged all T x T pairs.
LIBRARY = json.loads(Path(__file__).with_name("library_flops.json").read_text("utf-8"))


@pytest.mark.parametrize("case", LIBRARY, ids=lambda case: case["config"]["model_type"])
def test_as_many_flops_as_the_library_does(case):
    model, tokens = read_config(case["config"]), case["tokens"]
    scores = 0
    for layer in model.layers + (model.encoder.layers if model.encoder else ()):
        for mixer in layer.mixers:
            key = getattr(mixer, "key_width", 0) or mixer.content_width + mixer.rope_width
            scores += 2 * mixer.heads * (key + mixer.value_width) * tokens * tokens
    counted = flops(model, tokens, tokens if model.encoder else 0).per_sequence
    assert counted.matmul + scores == case["total"]


def test_gpt_oss_as_torchtitan_counts():
    model = bundled("gpt-oss-120b")
    assert torchtitan(model, 4096) == 34_534_221_696
    assert torchtitan(model, 4096, exact_pairs=True) == 32_720_969_088


def test_latent_attention_as_torchtitan_counts():
    """Keys of 128 and 64 numbers, values of 128, in each of 128 heads of 61 layers."""
    model = bundled("DeepSeek-V3")
    weights = 6 * parameters(model).active.without_input_embedding
    assert torchtitan(model, 1000) - weights == 6 * 61 * 128 * (128 + 64 + 128) * 1000
    assert torchtitan(model, 1000, exact_pairs=True) - weights == 6 * 61 * 128 * (128 + 64 + 128) * 1001 // 2


@pytest.mark.parametrize(
    "name, changes, printed",
    [
        # arXiv 2505.09343, table 2: training GFLOPs per token at 4096, to the printed digits.
        ("DeepSeek-V3", {}, 250),
        (
            "DeepSeek-V3",
            {
                "hidden_size": 5120,
                "intermediate_size": 12288,
                "num_hidden_layers": 60,
                "first_k_dense_replace": 1,
                "n_routed_experts": 160,
                "n_shared_experts": 2,
                "num_experts_per_tok": 6,
                "moe_intermediate_size": 1536,
                "vocab_size": 102400,
                "model_type": "deepseek_v2",
            },
            155,
        ),
    ],
)
def test_deepseek_training_flops(name, changes, printed):
    model = read_config({**bundled_config(name), **changes})
    per_token = 6 * parameters(model).active.without_input_embedding
    per_token += 3 * len(model.layers) * 2 * 128 * (192 + 128) * 4096 // 2
    assert per_token // 10**9 == printed
    # Ours leaves out norms and counts the diagonal's half pair: within a thousandth.
    assert abs(training_per_token(model, 4096) / per_token - 1) < 1e-3


@pytest.mark.parametrize("name", DECODERS)
def test_a_sequence_costs_the_sum_of_its_steps(name):
    model = bundled(name)
    if model.encoder:
        pytest.skip("the encoder runs once, not per step")
    length = 9
    steps = [flops(model, t).per_token for t in range(1, length + 1)]
    whole = flops(model, length).per_sequence
    assert whole.matmul == sum(step.matmul for step in steps)
    assert whole.attention == sum(step.attention for step in steps)


@pytest.mark.parametrize(
    "name", ["gpt-oss-120b", "gemma-3-1b", "Llama-4-Scout", "DeepSeek-V4-Flash", "DeepSeek-V3.2"]
)
@pytest.mark.parametrize(
    "length", [2, 128, 129, 512, 513, 2047, 2048, 2049, 8191, 8192, 8193, 10**6]
)
def test_each_step_is_what_the_sequence_grows_by(name, length):
    model = bundled(name)
    longer, shorter = flops(model, length), flops(model, length - 1)
    assert (
        longer.per_sequence.attention - shorter.per_sequence.attention == longer.per_token.attention
    )
    assert longer.per_sequence.matmul - shorter.per_sequence.matmul == longer.per_token.matmul


@given(st.integers(1, 300), st.integers(1, 9), st.none() | st.integers(1, 40))
def test_compressed_pairs(length, stride, top):
    read = scored = 0
    for position in range(1, length + 1):
        entries = sum(1 for t in range(1, position + 1) if t % stride == 0)
        scored += entries
        read += entries if top is None else min(entries, top)
    assert compressed_pairs(length, stride, top, False) == (read, scored)


def test_matmul_flops_are_two_per_active_weight_that_multiplies():
    counted, model = flops(bundled("Meta-Llama-3.1-8B"), 1), bundled("Meta-Llama-3.1-8B")
    active = parameters(model).active.without_input_embedding
    norms = (2 * 32 + 1) * 4096
    assert counted.per_token.matmul == 2 * (active - norms)
    assert counted.per_token.attention == 2 * 32 * 32 * 256


@pytest.mark.parametrize(
    ("name", "memory", "pairs"),
    [
        # A gated linear unit decays and adds, channel by channel: nothing reads it but the layer itself.
        ("recurrentgemma-2b", 18 * 2560, 8 * 10 * 2 * 256),
        # A state space writes each entry and reads it.
        ("mamba-130m", 2 * 24 * 1536 * 16, 0),
        ("Mamba-Codestral", 2 * 64 * 128 * 64 * 128, 0),
        ("Jamba", 2 * 28 * 8192 * 16, 4 * 32 * 2 * 128),
        ("MiniMax-Text-01", 2 * 70 * 64 * 128 * 128, 10 * 64 * 2 * 128),
        # The delta rule also reads what it is about to correct.
        ("Qwen3-Next", 3 * 36 * 32 * 128 * 128, 12 * 16 * 2 * 256),
        ("Kimi-Linear", 3 * 20 * 32 * 128 * 128, 7 * 32 * (128 + 64 + 128)),
    ],
)
def test_a_step_writes_and_reads_each_memory(name, memory, pairs):
    assert flops(bundled(name), 1).per_token.attention == 2 * (memory + pairs)


def test_grouped_heads_do_not_make_scores_cheaper():
    config = bundled_config("Meta-Llama-3.1-8B")
    wide = read_config({**config, "num_key_value_heads": 32})
    assert (
        flops(wide, 500).per_token.attention == flops(read_config(config), 500).per_token.attention
    )


def test_a_tied_head_multiplies():
    config = bundled_config("Qwen3-8B")
    tied = read_config({**config, "tie_word_embeddings": True})
    assert flops(tied, 10) == flops(read_config(config), 10)


@pytest.mark.parametrize("name", ["Qwen3-Next", "Kimi-Linear", "Nemotron-H", "MiniMax-Text-01"])
def test_chunkwise_form(name):
    model = bundled(name)
    plain = flops(model, 256).per_sequence
    # A chunk of one step adds to the recurrence only the scores with itself.
    single = flops(model, 256, chunk=1).per_sequence
    extra = sum(
        (m.score_heads or m.heads) * m.key_width + m.heads * m.value_width
        for layer in model.layers
        for m in layer.mixers
        if getattr(m, "chunks", False)
    )
    assert single.attention - plain.attention == 2 * 256 * extra
    assert flops(model, 256, chunk=64).per_sequence.matmul == plain.matmul
    # Whole chunks add up: eight chunks cost eight times one.
    costs = [
        flops(
            model._replace(
                layers=tuple(
                    layer for layer in model.layers if getattr(layer.mixer, "chunks", False)
                )
            ),
            n,
            chunk=32,
        ).per_sequence.attention
        for n in (32, 256)
    ]
    assert costs[1] == 8 * costs[0]


@pytest.mark.parametrize("name", ["mamba-130m", "falcon-mamba", "Jamba", "Zamba-7B", "recurrentgemma"])
def test_channels_with_decays_of_their_own_have_no_chunkwise_form(name):
    """Mamba's and RG-LRU's steps are no product of matrices, so a chunk changes nothing."""
    assert flops(bundled(name), 256, chunk=64) == flops(bundled(name), 256)


def test_chunkwise_delta_rule_by_loops():
    # One head, two key and three value channels, chunks of four over ten steps.
    model = bundled("Qwen3-Next")
    mixer = model.layers[0].mixer._replace(heads=1, key_width=2, value_width=3)
    only = model._replace(layers=(model.layers[0]._replace(mixers=(mixer,)),))
    count = 0
    for steps in (4, 4, 2):
        for row in range(steps):
            for column in range(steps):
                if column < row:
                    count += 2  # keys with earlier keys
                    count += 2 + 3  # substitution, both right-hand sides
                if column <= row:
                    count += 2 + 3  # scores and weighted values
            count += 3 * 2 * 3  # memory: error, output, write
    assert flops(only, 10, chunk=4).per_sequence.attention == 2 * count


def test_absorbed_latent_attention():
    model = bundled("DeepSeek-V3")
    pairs = 61 * 128 * 1000
    assert flops(model, 1000).per_token.attention == 2 * pairs * (192 + 128)
    assert absorbed(model, 1000) == 2 * pairs * (512 + 64 + 512)


def test_the_encoder_runs_once_per_source():
    model = bundled("t5-small")
    with_source, without = flops(model, 5, 7), flops(model, 5)
    assert with_source.per_token.matmul == without.per_token.matmul
    # A step reads the seven source positions in six layers of eight heads of 64.
    assert with_source.per_token.attention - without.per_token.attention == 2 * 7 * 6 * 8 * 128
    encoder = 7 * 6 * (4 * 512 * 512 + 2 * 512 * 2048)
    cross = 7 * 6 * 2 * 512 * 512
    assert with_source.per_sequence.matmul - without.per_sequence.matmul == 2 * (encoder + cross)


@pytest.mark.parametrize(
    "name, length",
    [("vit-base-patch16-224", 197), ("vit-huge-patch14-224", 257), ("medgemma-27b-it", 4096)],
)
def test_image_sequence(name, length):
    assert image_sequence(bundled(name)) == length


def test_an_encoders_token_has_its_share_of_the_whole():
    """Of BERT's nine tokens each passes twelve layers and reads nine keys; the pooler works once."""
    counted = flops(bundled("bert-base"), 9).per_token
    assert counted.matmul == 2 * 12 * (4 * 768 * 768 + 2 * 768 * 3072) + 2 * 768 * 768 // 9
    assert counted.attention == 2 * 12 * 12 * (64 + 64) * 9


def test_image_sequence_of_text():
    with pytest.raises(ValueError, match="architecture: expected .* came gpt2"):
        image_sequence(bundled("gpt2"))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(DECODERS), st.integers(1, 10**12))
def test_bounded_and_whole(name, context):
    counted = flops(bundled(name), context)
    for work in (counted.per_token, counted.per_sequence):
        assert isinstance(work.matmul, int) and isinstance(work.attention, int)
        assert work.matmul > 0 and work.attention >= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flops(bundled("gpt2"), 0), f"context: expected a whole number from 1 to {10**12}, came 0"),
        (lambda: flops(bundled("gpt2"), 10**12 + 1), f"context: expected a whole number from 1 to {10**12}, came {10**12 + 1}"),
        (lambda: flops(bundled("gpt2")), "context: expected a number of tokens, came nothing"),
        (lambda: flops(bundled("gpt2"), 5, -1), f"source_length: expected a whole number from 0 to {10**12}, came -1"),
        (lambda: flops(bundled("gpt2"), 5, chunk=0), f"chunk: expected a whole number from 1 to {10**12}, came 0"),
        (lambda: torchtitan(bundled("gpt2"), 0), f"context: expected a whole number from 1 to {10**12}, came 0"),
        (
            lambda: torchtitan(bundled("Qwen3-Next"), 10),
            "architecture: expected softmax attention in every layer (what torchtitan's formula covers), came Recurrence",
        ),
        (
            lambda: torchtitan(bundled("DeepSeek-V3.2"), 10),
            "architecture: expected softmax attention in every layer (what torchtitan's formula covers), came LatentAttention",
        ),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == message
