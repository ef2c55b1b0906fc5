"""Encoders whose tables, layers or windows are unlike BERT's: totals as published, work by hand."""

import json
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, bundled, bundled_names, cache, flops, parameters, read_config
from archcards.ledger.architecture import Attention
from archcards.ledger.describe import notes

BASE = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "max_position_embeddings": 512,
}  # fmt: skip
ELECTRA = BASE | {"model_type": "electra", "embedding_size": 768, "vocab_size": 30522}
ALBERT = BASE | {"model_type": "albert", "embedding_size": 128, "vocab_size": 30000, "architectures": ["AlbertModel"]}
MPNET = BASE | {"model_type": "mpnet", "max_position_embeddings": 514, "vocab_size": 30527}
MODERN = BASE | {
    "model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "vocab_size": 50368, "num_hidden_layers": 22,
    "intermediate_size": 1152, "max_position_embeddings": 8192, "global_attn_every_n_layers": 3, "local_attention": 128,
    "tie_word_embeddings": True, "position_embedding_type": "absolute", "reference_compile": False,
    "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "norm_bias": False, "decoder_bias": True,
    "sparse_prediction": False, "classifier_pooling": "mean",
}  # fmt: skip


NOMIC = {
    "model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "swiglu", "causal": False,
    "fused_bias_fc": True, "fused_dropout_add_ln": True, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "n_embd": 768,
    "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions": 8192, "pad_vocab_size_multiple": 64,
    "parallel_block": False, "prenorm": False, "qkv_proj_bias": False, "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None, "scale_attn_weights": True, "summary_type": "cls_index", "summary_use_proj": True,
    "type_vocab_size": 2, "use_flash_attn": True, "use_rms_norm": False, "use_xentropy": True, "vocab_size": 30528,
}  # fmt: skip


GTE = BASE | {
    "model_type": "new", "architectures": ["NewModel"], "vocab_size": 250048, "type_vocab_size": 1, "pack_qkv": True,
    "position_embedding_type": "rope", "layer_norm_type": "layer_norm", "logn_attention_scale": False,
    "logn_attention_clip1": False, "unpad_inputs": False, "use_memory_efficient_attention": False, "rope_theta": 20000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total"),
    [(MPNET, 109_486_464), (ALBERT, 11_683_584), (MODERN, 149_655_232), (NOMIC, 136_731_648), (GTE, 305_368_320)],
    ids=["all-mpnet-base-v2", "ALBERT base v2", "ModernBERT base", "nomic-embed-text-v1.5", "gte-multilingual-base"],
)
def test_published_totals(config, total):
    assert parameters(read_config(config)).total == total


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        (BASE | {"model_type": "bert", "vocab_size": 30522}, 512),
        (BASE | {"model_type": "ernie", "vocab_size": 30522}, 512),
        (BASE | {"model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514}, 512),
        (MPNET, 512),
    ],
    ids=["BERT", "ERNIE", "RoBERTa", "MPNet"],
)
def test_the_longest_text_leaves_out_rows_that_are_never_reached(config, longest):
    model = read_config(config)
    for context, told in ((longest, False), (longest + 1, True)):
        found = notes(model, cache(model, context), flops(model, context))
        assert (f"{context} tokens are more than the {longest} the configuration allows for" in found) is told


def test_a_table_without_a_row_that_is_reached_is_refused():
    assert read_config(MPNET | {"max_position_embeddings": 3}).trained_length == 1
    with pytest.raises(UnsupportedConfig, match="max_position_embeddings: expected .* at least 3, came 2"):
        read_config(MPNET | {"max_position_embeddings": 2})


def test_electra_base_is_bert_base_without_its_pooler():
    pooler = 768 * 768 + 768
    body = parameters(read_config(ELECTRA)).total
    assert body == parameters(bundled("bert-base")).total - pooler
    discriminator = read_config(ELECTRA | {"architectures": ["ElectraForPreTraining"]})
    assert parameters(discriminator).total == body + pooler + 769
    small = read_config(ELECTRA | {"embedding_size": 128})
    # Three narrower tables with their norm, and a projection with its bias.
    tables = 30522 + 512 + 2 + 2
    assert parameters(small).total == body - tables * (768 - 128) + 128 * 768 + 768


def test_albert_stores_a_layer_once_and_works_through_it_each_time():
    model = read_config(ALBERT)
    layer = 4 * 768 * 768 + 2 * 768 * 3072
    assert flops(model, 100).per_sequence.matmul == 2 * (100 * (12 * layer + 128 * 768) + 768 * 768)
    deep = read_config(ALBERT | {"num_hidden_layers": 24})
    assert parameters(deep).total == parameters(model).total


def test_modernbert_reads_64_tokens_to_each_side_in_14_of_22_layers():
    length = 1000
    near = sum(min(i + 64, length - 1) - max(i - 64, 0) + 1 for i in range(length))
    worked = flops(read_config(MODERN), length).per_sequence
    assert worked.attention == 2 * 2 * 768 * (8 * length * length + 14 * near)
    layer = 4 * 768 * 768 + 3 * 768 * 1152
    assert worked.matmul == 2 * length * (22 * layer + 768 * 768 + 768 * 50368)


@pytest.mark.parametrize("config", [ELECTRA, ALBERT, MPNET, MODERN, NOMIC, GTE], ids=lambda config: config["model_type"])
def test_encoders_keep_nothing(config):
    assert cache(read_config(config), 512, 3).bytes == 0


def test_what_reads_later_positions_too_is_no_cache():
    """In encoders, towers and models of images alike."""
    cases = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))
    models = [read_config(case["config"]) for case in cases] + [bundled(name) for name in bundled_names()]
    seen = set()
    for model in models:
        stacks = [part.layers for part in (model, model.encoder, model.vision) if part]
        for mixer in {mixer for layers in stacks for layer in layers for mixer in layer.mixers if isinstance(mixer, Attention)}:
            if mixer.reach.kind in ("all", "around"):
                seen.add(model.model_type)
                assert not mixer.cached, model.model_type
    assert {"bert", "modernbert", "t5", "whisper", "bart", "vit", "dinov3_vit", "siglip", "gemma3", "mllama"} <= seen


def test_norms_before_each_half_bring_one_after_the_stack_and_take_that_of_the_embeddings():
    """So XLM-RoBERTa XL has as many parameters as an XLM-RoBERTa of its size."""
    sizes = BASE | {"vocab_size": 1000, "type_vocab_size": 1}
    after = read_config(sizes | {"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"]})
    before = read_config(sizes | {"model_type": "xlm-roberta-xl", "architectures": ["XLMRobertaXLModel"]})
    assert parameters(before).total == parameters(after).total
    assert flops(before, 50) == flops(after, 50)


def test_ernies_tasks_are_a_table_of_their_own():
    sizes = BASE | {"model_type": "ernie", "architectures": ["ErnieModel"], "vocab_size": 40000}
    without, tasks = (parameters(read_config(sizes | {"use_task_id": used})).total for used in (False, True))
    assert tasks - without == 3 * 768
