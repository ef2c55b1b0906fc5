"""What a configuration says twice must agree, and what a family cannot do without is asked for by its name."""

import json
import re
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, read_config
from archcards.ledger.families import READERS

CONFIGS = {}
for case in json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8")):
    CONFIGS.setdefault(case["config"]["model_type"], case["config"])
ABSENT = object()
CONV, FULL, MAMBA = "conv", "full_attention", "linear_attention"

REFUSED = [
    ("kimi_linear", {"q_lora_rank": ABSENT}, "q_lora_rank: expected the query's rank, or null for a full query projection, came nothing"),
    ("deepseek_v2", {"intermediate_size": ABSENT}, "intermediate_size: expected the width of the dense layers, came nothing"),
    ("deepseek_v32", {"first_k_dense_replace": 2}, "mlp_layer_types: expected the layers that first_k_dense_replace names"),
    ("deepseek_v32", {"index_topk_pattern": "FFSFF", "indexer_types": ["full"] * 5},
     "indexer_types: expected the layers that the pattern or index_topk_freq names"),
    ("deepseek_v32", {"index_topk_pattern": "FFSF"}, "index_topk_pattern: expected 5 letters, F (its own) or S (shared)"),
    ("deepseek_v32", {"index_topk_pattern": "FFSFX"}, "index_topk_pattern: expected 5 letters, F (its own) or S (shared)"),
    ("deepseek_v4", {"compress_rates": {"another": 4}}, "compress_rates.another: expected no key but"),
    ("deepseek_v4", {"layer_types": ABSENT}, "compress_ratios: expected the stride of each layer, came nothing"),
    ("deepseek_v4", {"compress_ratios": [0, 0, 4, 128, 4, 128, 5]}, "compress_ratios: expected ratios 0, 4 or 128"),
    ("deepseek_v4", {"compress_ratios": [0, 0, 4, 128, 4, 128, 4]}, "layer_types: expected the layers that compress_ratios names"),
    ("deepseek_v4", {"compress_ratios": [0, 4]}, "compress_ratios: expected a list of 7 items, one a layer (or 8, with the prediction modules)"),
    ("gpt_neo", {"attention_types": [[["global", "local"], 0]]}, "attention_types: expected pairs of a list of kinds and how often it repeats"),
    ("gpt_neo", {"attention_types": [["global", 4]]}, "attention_types: expected pairs of a list of kinds and how often it repeats"),
    ("gpt_neo", {"attention_types": [[["local", "global"], 2]]}, "attention_layers: expected the kinds that attention_types repeats"),
    ("gpt_neo", {"attention_types": [[["global", "local"], 1]], "attention_layers": ABSENT},
     "attention_types: expected global or local for each of 4 layers"),
    ("gpt_neo", {"attention_types": ABSENT, "attention_layers": ABSENT}, "attention_types: expected global or local for each of 4 layers"),
    ("mpt", {"attn_config": {"alibi": False}}, "attn_config.alibi: expected true, came false"),
    ("gemma3_text", {"layer_types": ABSENT, "sliding_window_pattern": "LX"},
     "sliding_window_pattern: expected a number of layers, or a string of L (window) and G (full)"),
    ("gemma3n_text", {"num_kv_shared_layers": ABSENT}, "num_kv_shared_layers: expected fewer than the 15 layers, came nothing"),
    ("lfm2", {"intermediate_size": 1}, "intermediate_size: expected at least 2, of which two thirds count, came 1"),
    ("t5", {"feed_forward_proj": "gated-gelu", "is_gated_act": False},
     "is_gated_act: expected true, since feed_forward_proj is gated-gelu, came false"),
    ("umt5", {"feed_forward_proj": "gated-gelu", "is_gated_act": None},
     "is_gated_act: expected true, since feed_forward_proj is gated-gelu, came null"),
    ("qwen2_vl", {"text_config": CONFIGS["qwen2_vl"]["text_config"] | {"head_dim": 8}}, "text_config.head_dim: expected the heads' share of hidden_size, came 8"),
    ("gemma3n_text", {"num_hidden_layers": 10, "layer_types": ABSENT, "num_kv_shared_layers": 8, "intermediate_size": 64},
     "num_kv_shared_layers: expected fewer, so that each kind of layer has one to borrow from"),
    ("gemma4_text", {"use_bidirectional_attention": "all"}, "use_bidirectional_attention: expected vision or null"),
    ("exaone_moe", {"is_moe_layer": [True] * 8}, "is_moe_layer: expected the layers that first_k_dense_replace names"),
    ("jamba", {"attn_layer_offset": 4}, "attn_layer_offset: expected less than attn_layer_period, 4"),
    ("jamba", {"expert_layer_offset": 3}, "expert_layer_offset: expected less than expert_layer_period, 3"),
    ("jamba", {"layers_block_type": ["mamba"] * 9}, "layers_block_type: expected the layers that attn_layer_period implies"),
    ("bamba", {"layer_types": ["full_attention"] * 9}, "layer_types: expected the layers that attn_layer_indices names"),
    ("granitemoehybrid", {"layer_types": ABSENT}, "layer_types: expected a list with the kind of each layer"),
    ("granitemoehybrid", {"layer_types": ["hybrid"] * 8}, "layer_types: expected mamba or attention"),
    ("granitemoehybrid", {"intermediate_size": ABSENT}, "intermediate_size: expected the width of an expert"),
    ("lfm2", {"layer_types": ABSENT, "full_attn_idxs": ABSENT}, "layer_types: expected the kind of each layer, here or in full_attn_idxs"),
    ("lfm2", {"full_attn_idxs": [0]}, "layer_types: expected the layers that full_attn_idxs names"),
    ("lfm2", {"block_dim": 65}, "block_dim: expected 64, came 65"),
    ("lfm2", {"conv_dim": 65}, "conv_dim: expected 64, came 65"),
    ("lfm2", {"conv_dim_out": 65}, "conv_dim_out: expected 64, came 65"),
    ("llama", {"layer_types": ["full_attention", "sliding_attention"]},
     "layer_types[1]: expected one of full_attention, came 'sliding_attention'"),
    ("qwen3_moe", {"intermediate_size": ABSENT, "mlp_only_layers": [0]},
     "intermediate_size: expected the width of the dense layers, came nothing"),
    ("lfm2", {"block_ffn_dim_multiplier": 0}, "block_ffn_dim_multiplier: expected a factor from 0 to 100, came 0"),
    ("lfm2", {"block_ffn_dim_multiplier": 101}, "block_ffn_dim_multiplier: expected a factor from 0 to 100, came 101"),
    ("lfm2", {"block_ffn_dim_multiplier": "2"}, "block_ffn_dim_multiplier: expected a number, came '2'"),
    ("recurrent_gemma", {"block_types": ["recurrent", "mamba"]}, "block_types[1]: expected recurrent or attention, came 'mamba'"),
    ("recurrent_gemma", {"intermediate_size": 127}, "intermediate_size: expected an even number"),
    ("qwen3_5_text", {"mlp_only_layers": [0]}, "mlp_only_layers: expected an empty list"),
    ("kimi_linear", {"layer_types": ABSENT}, "layer_types: expected the kind of each layer, here or in linear_attn_config"),
    ("kimi_linear", {"linear_attn_config": {"num_heads": 4, "head_dim": 8, "full_attn_layers": [1], "kda_layers": [2, 3]}},
     "linear_attn_config.kda_layers: expected with full_attn_layers each layer once, counted from 1"),
    ("kimi_linear", {"linear_attn_config": {"num_heads": 4, "head_dim": 8, "full_attn_layers": [1]}},
     "layer_types: expected the layers that linear_attn_config names"),
    ("llama4_text", {"no_rope_layers": [1]}, "no_rope_layers: expected a list of"),
    ("llama4_text", {"attention_chunk_size": None}, "attention_chunk_size: expected a chunk, since layer_types has chunked layers"),
    ("nemotron_h", {"layers_block_type": ABSENT}, "hybrid_override_pattern: expected a letter for each layer, came nothing"),
    ("nemotron_h", {"layers_block_type": ABSENT, "hybrid_override_pattern": "MX"}, "hybrid_override_pattern: expected the letters"),
    ("nemotron_h", {"num_hidden_layers": 4}, "num_hidden_layers: expected 5, as many as the pattern has letters"),
    ("t5", {"feed_forward_proj": "gated-gelu-new"}, "feed_forward_proj: expected an activation, or gated- and an activation"),
    ("switch_transformers", {"encoder_sparse_step": ABSENT}, "num_sparse_encoder_layers: expected at least 1, or encoder_sparse_step"),
    ("deepseek_v32", {"q_lora_rank": ABSENT}, "q_lora_rank: expected a rank, since the indexer reads the query's latent, came nothing"),
    ("persimmon", {"num_key_value_heads": 1}, "num_key_value_heads: expected "),
    ("llama", {"hidden_" + 53 * "x": 5}, f"hidden_{53 * 'x'}: expected no such field in this family (it may change the counts), came 5"),
    ("llama", {"hidden_" + 54 * "x": 5}, f"'hidden_{49 * 'x'}...: expected no such field in this family"),
    ("recurrent_gemma", {"lru_width": 98}, "num_attention_heads: expected a divisor of lru_width, 98, came 4"),
    ("zamba2", {"mamba_d_state": ABSENT, "state_size": 65}, "state_size: expected 64, came 65"),
    ("zamba2", {"state_size": 65}, "state_size: expected 64, came 65"),
    ("smollm3", {"no_rope_layers": [1, 1, 1, 2, 1, 1, 1, 0]}, "no_rope_layers[3]: expected a whole number from 0 to 1, came 2"),
    ("minimax_m2", {"attn_type_list": [1, 0]}, "attn_type_list: expected 1 for every layer (softmax attention)"),
    ("dinov2", {"patch_size": 33}, "patch_size: expected at most image_size, 32, came 33"),
    ("dinov2", {"architectures": ["Dinov2ForDepth"]}, "architectures: expected Dinov2ForImageClassification or Dinov2Model"),
    ("gemma3", {"text_config": ABSENT}, "text_config: expected an object with the text model's fields, came nothing"),
    ("gemma3n", {"text_config": CONFIGS["gemma3n_text"] | {"model_type": "llama"}}, "text_config.model_type: expected 'gemma3n_text', came 'llama'"),
    ("gemma3n", {}, "text_config: expected an object with the text model's fields, came nothing"),
    ("gemma4_text", {"per_layer_config": {"5": {}}}, "per_layer_config: expected a key for each full layer, came an object of 1"),
    ("gemma4_text", {"per_layer_config": {"5": {}, "8": {}, "7": {}}}, "per_layer_config: expected a key for each full layer"),
    ("gemma4_text", {"per_layer_config": {"5": None, "8": {}}}, "per_layer_config.5: expected an object, came null"),
    ("gemma4_text", {"per_layer_config": {"5": {"head_dim": 512}, "8": {"head_dim": 64}}},
     "per_layer_config.8: expected the same heads in every full layer, came an object of 1"),
    ("gemma4_text", {"num_kv_shared_layers": 4}, "num_kv_shared_layers: expected fewer, so that each kind of layer has one to borrow from, came 4"),
    ("youtu", {"intermediate_size": ABSENT}, "intermediate_size: expected the width of the feed-forward networks, came nothing"),
    ("nemotron_h", {"layers_block_type": []}, "layers_block_type: expected between 1 and 2000 layers, came a list of 0"),
    ("nemotron_h", {"layers_block_type": ["mlp"] * 2001}, "layers_block_type: expected between 1 and 2000 layers, came a list of 2001"),
    ("qwen3_5_text", {"mtp_use_dedicated_embeddings": True}, "mtp_use_dedicated_embeddings: expected false, came true"),
    ("qwen2_vl", {"vision_config.spatial_patch_size": 15}, "vision_config.spatial_patch_size: expected 14, came 15"),
    ("qwen2_vl", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'qwen2_vl_vision' or 'qwen2_vl', came 'vit'"),
    ("qwen2_vl", {"vision_config.num_heads": 5}, "vision_config.num_heads: expected a divisor of embed_dim, 32, came 5"),
    ("qwen2_5_vl", {"vision_config.spatial_patch_size": 15}, "vision_config.spatial_patch_size: expected 14, came 15"),
    ("qwen2_5_vl", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'qwen2_5_vl_vision' or 'qwen2_5_vl', came 'vit'"),
    ("qwen2_5_vl", {"vision_config.num_heads": 5}, "vision_config.num_heads: expected a divisor of the tower's hidden size, "),
    ("mistral3", {"vision_config.head_dim": 3}, "vision_config.head_dim: expected "),
    ("mistral3", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'pixtral', came 'vit'"),
    ("llama4", {"vision_config.multi_modal_projector_bias": True}, "vision_config.multi_modal_projector_bias: expected false, came true"),
    ("llama4", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'llama4_vision_model', came 'vit'"),
    ("gemma3", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'siglip_vision_model', came 'vit'"),
    ("gemma3", {"vision_config.num_key_value_heads": 1}, "vision_config.num_key_value_heads: expected "),
    ("gemma4", {"vision_config.model_type": "vit"}, "vision_config.model_type: expected 'gemma4_vision', came 'vit'"),
    ("gemma4", {"vision_config.global_head_dim": 9}, "vision_config.global_head_dim: expected 8, came 9"),
    ("gemma4", {"vision_config.attention_bias": True}, "vision_config.attention_bias: expected false, came true"),
    ("gemma4", {"vision_config.num_key_value_heads": 3}, "vision_config.num_key_value_heads: expected a divisor of num_attention_heads, 4, came 3"),
    ("zamba2", {"use_shared_mlp_adapter": False}, "use_shared_mlp_adapter: expected true, came false"),
    ("vit", {"id2label": {}}, "id2label: expected an object with a name for each class"),
    ("vit", {"id2label": {"0": "a"}, "num_labels": 2}, "num_labels: expected 1, as many as id2label names"),
    ("vit", {"patch_size": 10_000}, "patch_size: expected at most image_size"),
    ("perceptron", {}, "model_type: expected a family that the ledger reads (archcards models --families lists them), came 'perceptron'"),
    ("llama4", {"text_config": ABSENT}, "text_config: expected an object with the text model's fields"),
    ("qwen3_vl", {"vision_config.out_hidden_size": 63}, "vision_config.out_hidden_size: expected 64, the text model's hidden size"),
    ("llama4", {"vision_config.projector_output_dim": 41}, "vision_config.projector_output_dim: expected 40, as projector_input_dim"),
]  # fmt: skip


def changed(model_type, changes):
    config = json.loads(json.dumps(CONFIGS.get(model_type, {"model_type": model_type})))
    for path, value in changes.items():
        place, (*outer, name) = config, path.split(".")
        for part in outer:
            place = place[part]
        place.pop(name, None)
        if value is not ABSENT:
            place[name] = value
    return config


@pytest.mark.parametrize(
    ("model_type", "changes", "message"), REFUSED, ids=[f"{t}: {m.split(':')[0]}" for t, _, m in REFUSED]
)
def test_refused_in_one_line(model_type, changes, message):
    if model_type in CONFIGS:
        read_config(CONFIGS[model_type])
    with pytest.raises(UnsupportedConfig, match="^" + re.escape(message)) as refused:
        read_config(changed(model_type, changes))
    assert "\n" not in str(refused.value)


# Objects inside a configuration that a reader takes field by field.
INSIDE = [
    (config, name)
    for config in [*CONFIGS.values(), {"model_type": "gemma3n", "text_config": CONFIGS["gemma3n_text"]}]
    for name in ("text_config", "vision_config", "attn_config")
    if name in config and READERS[config["model_type"]] != "vision_language:text_only"
]


@pytest.mark.parametrize(("config", "name"), INSIDE, ids=lambda value: value if isinstance(value, str) else value["model_type"])
def test_what_may_count_is_refused_inside_too(config, name):
    """A field that nobody reads is no less of a danger one level down, and is told by its path."""
    message = f"^{name}.hidden_something: expected no such field in this family .it may change the counts., came 5$"
    read_config(config)
    with pytest.raises(UnsupportedConfig, match=message):
        read_config(config | {name: config[name] | {"hidden_something": 5}})


# The least and the greatest number that a field may have (none: the largest size of all), and what it takes besides.
LIMITS = [
    ("deepseek_v3", "first_k_dense_replace", 0, None, {"mlp_layer_types": ABSENT}),
    ("deepseek_v3", "n_shared_experts", 0, None, {}),
    ("deepseek_v3", "num_nextn_predict_layers", 0, 64, {}),
    ("deepseek_v32", "index_skip_topk_offset", 0, None, {"indexer_types": ABSENT}),
    ("deepseek_v4", "num_nextn_predict_layers", 0, 64, {}),
    ("deepseek_v4", "hc_mult", 1, 1000, {}),
    ("glm4_moe", "n_shared_experts", 0, None, {}),
    ("glm4_moe", "num_nextn_predict_layers", 0, 64, {}),
    ("ernie4_5_moe", "moe_num_shared_experts", 0, None, {}),
    ("solar_open", "n_shared_experts", 0, None, {}),
    ("granitemoeshared", "shared_intermediate_size", 0, None, {}),
    ("exaone_moe", "sliding_window", 0, None, {"layer_types": ABSENT}),
    ("exaone4", "sliding_window", 0, None, {"layer_types": ABSENT}),
    ("qwen2", "sliding_window", 0, None, {}),
    ("qwen2", "max_window_layers", 0, None, {}),
    ("afmoe", "num_dense_layers", 0, None, {}),
    ("afmoe", "num_shared_experts", 0, None, {}),
    ("ernie4_5_moe", "moe_layer_start_index", 0, None, {"mlp_layer_types": ABSENT}),
    ("dots1", "n_shared_experts", 0, None, {}),
    ("granitemoehybrid", "num_local_experts", 0, None, {}),
    ("minimax_m2", "num_mtp_modules", 0, None, {}),
    ("nemotron_h", "num_nextn_predict_layers", 0, 64, {}),
    ("jamba", "attn_layer_offset", 0, None, {"attn_layer_period": 10**12}),
    ("jamba", "expert_layer_offset", 0, None, {"expert_layer_period": 10**12}),
    ("zamba", "attn_layer_offset", 0, None, {}),
    ("zamba2", "num_mem_blocks", 1, 9, {}),
    ("lfm2_moe", "num_dense_layers", 0, None, {}),
    ("gemma3n_text", "num_kv_shared_layers", 0, 14, {}),
    ("gemma3n_text", "altup_num_inputs", 1, 1000, {}),
    ("gemma4_text", "num_kv_shared_layers", 0, 8, {}),
    ("gemma4_text", "hidden_size_per_layer_input", 0, None, {}),
    ("modernbert", "local_attention", 2, None, {}),
    ("dinov2_with_registers", "num_register_tokens", 0, 10_000, {}),
    ("dinov3_vit", "num_register_tokens", 0, 10_000, {}),
    ("gte", "type_vocab_size", 0, None, {}),
    ("t5", "num_decoder_layers", 1, 2000, {}),
    ("switch_transformers", "num_sparse_encoder_layers", 0, 4, {}),
    ("kimi_linear", "num_shared_experts", 0, None, {}),
    ("qwen3_5_text", "mtp_num_hidden_layers", 0, 64, {}),
    ("llama", "num_hidden_layers", 1, 2000, {}),
    ("nemotron_h", "num_hidden_layers", 1, 2000, {}),
]  # fmt: skip


@pytest.mark.parametrize(("model_type", "field", "least", "most", "besides"), LIMITS)
def test_a_number_is_read_up_to_its_limits_and_no_further(model_type, field, least, most, besides):
    def told(value):
        try:
            read_config(changed(model_type, besides | {field: value}))
        except UnsupportedConfig as error:
            return str(error)
        return ""

    expected = f"{field}: expected a whole number of at least {least}"
    for value in (least, most or 10**12):
        assert not told(value).startswith(expected), told(value)
    assert told(least - 1) == f"{expected}, came {least - 1}"
    most = most or 10**12
    assert told(most + 1) == f"{expected} and at most {most}, came {most + 1}"
