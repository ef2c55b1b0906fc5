"""The ledger beside the models that Transformers builds: their parameters, and what their caches hold.

The library's models are built from the recorded configurations of every family: without weights to
count parameters, and with random ones to feed them tokens and count what they keep. Where the library
keeps something else than the ledger counts, the difference has a name and is computed, and a test holds
that it is needed.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from in_transformers import built, parameters_of, steps

from archcards.ledger import cache, parameters, read_config
from archcards.ledger.architecture import Attention, CompressedAttention, Recurrence

RECORDED = json.loads(
    (Path(__file__).parents[1] / "ledger" / "library_counts.json").read_text("utf-8")
)

ABSENT = object()


def with_changes(config, changes):
    """The configuration with other fields, or without them; those of a text model one by one."""
    changed = config | changes
    if "text_config" in changes:
        changed["text_config"] = with_changes(config["text_config"], changes["text_config"])
    return {name: value for name, value in changed.items() if value is not ABSENT}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Matrices this small are slower on several threads, and much slower on cores that are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Parameters.


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["config"]["model_type"])
def test_the_library_builds_as_many_parameters_as_recorded_and_as_the_ledger_counts(case):
    counted = parameters(read_config(case["config"])).total
    assert parameters_of(built(case["config"])) == case["total"] == counted


# Where the library ties its tables otherwise than the published weights: how many tables more or fewer
# it has than the ledger counts. It ties all of T5, whatever a file says, and Mistral 3 where the file is
# silent, though the weights of T5 1.1, FLAN-T5 and Mistral Small 3.1 hold both tables; an untied Switch
# Transformer gets a table for each of its stacks; and it no longer reads the word of Qwen3-VL's text model,
# in which its earlier releases kept it.
TIES = [
    ("t5", {"tie_word_embeddings": False}, -1),
    ("mt5", {"tie_word_embeddings": False}, -1),
    ("umt5", {"tie_word_embeddings": False}, -1),
    ("switch_transformers", {"tie_word_embeddings": False}, 2),
    ("mistral3", {"tie_word_embeddings": ABSENT, "text_config": {"tie_word_embeddings": False}}, -1),
    ("qwen3_vl", {"tie_word_embeddings": ABSENT, "text_config": {"tie_word_embeddings": True}}, 1),
]


@pytest.mark.parametrize("model_type, changes, more", TIES, ids=[one[0] for one in TIES])
def test_tables_that_the_library_ties_otherwise(model_type, changes, more):
    config = next(c["config"] for c in RECORDED if c["config"]["model_type"] == model_type)
    config = with_changes(config, changes)
    counted = parameters(read_config(config))
    assert parameters_of(built(config)) == counted.total + more * counted.input_embedding


# Caches and states.

WINDOW = 8
PROMPTS = (1, WINDOW - 1, 20)  # and two tokens more each: below the windows, full, and beyond
SOURCE = 13

WINDOW_FIELDS = {
    "gpt_neo": "window_size",
    "llama4_text": "attention_chunk_size",
    "recurrent_gemma": "attention_window_size",
}

# What of a recorded configuration is made smaller, or so that the library can run it: it was recorded
# for its count, and for that a model need not run.
LATENT = {
    "head_dim": 8,
    "n_group": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "qk_rope_head_dim": 8,
    "topk_group": 1,
}
INDEXED = LATENT | {
    "index_head_dim": 16,
    "index_n_heads": 2,
    "index_topk": 8,
    "intermediate_size": 64,
    "kv_lora_rank": 16,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "q_lora_rank": 12,
    "qk_head_dim": 16,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
THREE_AXES = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]}
ONE_ATTENDS = {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}
CHANGES = {
    "bamba": {"attn_layer_indices": [1]},
    "codegen": {"rotary_dim": 8},
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "deepseek_v32": INDEXED,
    "deepseek_v4": {
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 6}
    },
    "glm_moe_dsa": INDEXED,
    "gptj": {"rotary_dim": 8},
    "granitemoehybrid": ONE_ATTENDS,
    "kimi_linear": {
        "num_attention_heads": 4,
        "num_experts": 4,
        "num_experts_per_token": 2,
        "num_key_value_heads": 4,
    },
    "mllama": {"text_config": {"cross_attention_layers": [1]}},
    "qwen2_5_vl": {"text_config": {"rope_parameters": THREE_AXES}},
    "qwen2_vl": {"text_config": {"rope_parameters": THREE_AXES}},
    "qwen3_5": {"text_config": ONE_ATTENDS},
    "qwen3_5_moe": {"text_config": ONE_ATTENDS},
    "qwen3_5_moe_text": ONE_ATTENDS | {"mlp_only_layers": []},
    "qwen3_moe": {"head_dim": 8, "use_sliding_window": True},
    "qwen3_next": ONE_ATTENDS | {"mlp_only_layers": []},
    "recurrent_gemma": {"num_hidden_layers": 3},
}

# Llama 4's model with a tower needs an image in 5.24, and Mistral 3's is too large for a test; their
# text models run under names of their own.
NOT_RUN = {"llama4", "mistral3"}


def mixers(architecture):
    return [mixer for layer in architecture.layers for mixer in layer.mixers]


def limited(mixer):
    """Whether it reads a window or a chunk."""
    return isinstance(mixer, CompressedAttention) or (
        isinstance(mixer, Attention) and mixer.reach.size is not None
    )


def speaks(config):
    """Whether it is a language model that decodes, not a body, a classifier or an encoder."""
    architecture = read_config(config)
    return architecture.decodes and architecture.head.table is not None


def runnable():
    """Of each family that decodes, the smallest recorded configuration, with short windows."""
    smallest = {}
    for case in sorted(RECORDED, key=lambda case: case["total"]):
        if speaks(case["config"]):
            smallest.setdefault(case["config"]["model_type"], case["config"])
    for model_type, config in sorted(smallest.items()):
        if model_type not in NOT_RUN:
            config = with_changes(config, CHANGES.get(model_type, {}))
            if any(map(limited, mixers(read_config(config)))):
                window = {WINDOW_FIELDS.get(model_type, "sliding_window"): WINDOW}
                nested = {"text_config": window} if "text_config" in config else window
                config = with_changes(config, nested)
            yield pytest.param(config, id=model_type)


# What the library keeps otherwise than the ledger counts it. Each is a change of a mixer.


def window_without_the_query(mixer, family):
    """A window or chunk of W is kept as W - 1: the next query brings its own key."""
    if isinstance(mixer, CompressedAttention):
        return mixer._replace(window=mixer.window - 1)
    if family != "gpt_neo" and limited(mixer):
        return mixer._replace(reach=mixer.reach._replace(size=mixer.reach.size - 1))
    return mixer


def window_kept_whole(mixer, family):
    """GPT-Neo's windows are a mask over a cache that holds everything."""
    if family == "gpt_neo" and limited(mixer):
        return mixer._replace(reach=mixer.reach._replace(kind="full", size=None))
    return mixer


def inputs_as_many_as_the_kernel(mixer, family):
    """A convolution of width k keeps k inputs: the oldest is dropped when the next one comes."""
    if isinstance(mixer, Recurrence) and mixer.inputs and family != "recurrent_gemma":
        return mixer._replace(kernel=mixer.kernel + 1)
    return mixer


def heads_repeated(mixer, family):
    """Falcon's newer decoder repeats keys and values for every query head before it keeps them."""
    grouped = family == "falcon" and mixer.kv_heads > 1
    return mixer._replace(kv_heads=mixer.heads) if grouped else mixer


def shared_vector_twice(mixer, family):
    """DeepSeek-V4's layers without compression keep their one vector as the key and as the value."""
    if isinstance(mixer, CompressedAttention) and not mixer.stride:
        return mixer._replace(width=2 * mixer.width)
    return mixer


DIFFERENCES = (
    window_without_the_query,
    window_kept_whole,
    inputs_as_many_as_the_kernel,
    heads_repeated,
    shared_vector_twice,
)


def unfinished(architecture, tokens):
    """What DeepSeek-V4's compressors keep besides their entries, which the ledger leaves out and says so.

    For each token since the last entry a vector and its gates; those of a layer whose entries overlap
    are in two halves, and of the last entry's tokens it keeps one half once more.
    """
    total = 0
    for mixer in mixers(architecture):
        if isinstance(mixer, CompressedAttention) and mixer.stride:
            overlaps = mixer.indexer is not None
            width = mixer.width + (mixer.indexer.width if overlaps else 0)
            total += 2 * width * (1 + overlaps) * (tokens % mixer.stride)
            if overlaps and tokens >= mixer.stride:
                total += 2 * width * mixer.stride
    return total


def counted(architecture, tokens, differences=DIFFERENCES):
    """The ledger's scalars by what they are, where the library keeps it with these differences."""
    layers = []
    for layer in architecture.layers:
        changed = layer.mixers
        for difference in differences:
            changed = tuple(difference(mixer, architecture.model_type) for mixer in changed)
        layers.append(layer._replace(mixers=changed))
    kept = cache(architecture._replace(layers=tuple(layers)), tokens, 1, SOURCE)
    found = Counter()
    for term in kept.terms:
        # The library has one kind of layer for windows and chunks, and keeps latents where others keep keys.
        kind = {"chunk_keys_values": "window_keys_values", "latent": "keys_values"}.get(
            term.kind, term.kind
        )
        found[kind] += term.scalars(tokens, SOURCE)
    assert sum(found.values()) == kept.scalars
    found["unfinished"] = unfinished(architecture, tokens)
    return +found


@torch.no_grad()
@pytest.mark.parametrize("config", list(runnable()))
def test_the_library_holds_what_the_ledger_counts(config):
    torch.manual_seed(0)
    architecture = read_config(config)
    model = built(config, "cpu")
    assert parameters_of(model) == parameters(architecture).total
    reads_a_source = any(term.source for term in cache(architecture, 1).terms)
    held = dict(steps(model, PROMPTS, SOURCE if reads_a_source else None))
    assert sorted(held) == sorted(prompt + more for prompt in PROMPTS for more in range(3))
    for tokens, found in held.items():
        assert found == counted(architecture, tokens), tokens
    # Each difference that changes a mixer of this model is needed; none hides another.
    for left_out in DIFFERENCES:
        others = [one for one in DIFFERENCES if one is not left_out]
        if any(left_out(mixer, architecture.model_type) != mixer for mixer in mixers(architecture)):
            assert any(counted(architecture, tokens, others) != found for tokens, found in held.items())


def test_every_family_that_decodes_is_run_or_said_not_to_be():
    decoding = {
        case["config"]["model_type"] for case in RECORDED if read_config(case["config"]).decodes
    }
    assert decoding == NOT_RUN | {param.id for param in runnable()}
