"""Families whose code stands beside their weights: what that code is reported to count is the only oracle."""

import pytest

from archcards.ledger import UnsupportedConfig, cache, parameters, read_config

COMMON = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "auto_map": {}}
INTERNLM2 = COMMON | {
    "model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": False, "intermediate_size": 14336,
    "num_key_value_heads": 8, "vocab_size": 92544, "tie_word_embeddings": False, "max_position_embeddings": 32768,
}  # fmt: skip
QWEN = COMMON | {
    "model_type": "qwen", "architectures": ["QWenLMHeadModel"], "intermediate_size": 22016, "kv_channels": 128,
    "no_bias": True, "vocab_size": 151936, "tie_word_embeddings": False, "seq_length": 8192, "rotary_pct": 1.0,
    "use_dynamic_ntk": True, "use_logn_attn": True, "use_flash_attn": "auto", "attn_dropout_prob": 0.0,
    "scale_attn_weights": True, "use_cache_quantization": False, "use_cache_kernel": False, "fp16": False,
}  # fmt: skip
BAICHUAN = COMMON | {
    "model_type": "baichuan", "architectures": ["BaichuanForCausalLM"], "intermediate_size": 11008,
    "vocab_size": 125696, "tie_word_embeddings": False, "model_max_length": 4096, "z_loss_weight": 0,
}  # fmt: skip
CHATGLM = {
    "model_type": "chatglm", "architectures": ["ChatGLMModel"], "hidden_size": 4096, "num_attention_heads": 32,
    "num_layers": 28, "ffn_hidden_size": 13696, "kv_channels": 128, "multi_query_attention": True,
    "multi_query_group_num": 2, "padded_vocab_size": 65024, "vocab_size": 65000, "add_bias_linear": False,
    "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "original_rope": True, "quantization_bit": 0,
    "pre_seq_len": None, "prefix_projection": False, "apply_residual_connection_post_layernorm": False,
    "apply_query_key_layer_scaling": True, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True,
    "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek", "architectures": ["DeepseekForCausalLM"], "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 16, "num_hidden_layers": 28, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "scoring_func": "softmax", "aux_loss_alpha": 0.001, "vocab_size": 102400,
    "tie_word_embeddings": False, "attention_bias": False,
}  # fmt: skip
MINICPM = {
    "model_type": "minicpm", "hidden_size": 2304, "intermediate_size": 5760, "num_attention_heads": 36,
    "num_key_value_heads": 36, "num_hidden_layers": 40, "vocab_size": 122753, "scale_emb": 12, "dim_model_base": 256,
    "scale_depth": 1.4,
}  # fmt: skip
SMALL = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 16, "num_hidden_layers": 24}
TOTALS = {
    "InternLM2 7B": (INTERNLM2, 7_737_708_544),
    "InternLM2 1.8B": (INTERNLM2 | SMALL, 1_889_110_016),
    "Qwen 7B": (QWEN, 7_721_324_544),
    "Qwen 14B": (QWEN | {"hidden_size": 5120, "intermediate_size": 27392, "num_attention_heads": 40,
                         "num_hidden_layers": 40, "vocab_size": 152064}, 14_167_290_880),
    "Baichuan 7B": (BAICHUAN | {"vocab_size": 64000}, 7_000_559_616),
    "Baichuan 2 7B": (BAICHUAN, 7_505_973_248),
    "Baichuan 2 13B": (BAICHUAN | {"hidden_size": 5120, "intermediate_size": 13696, "num_attention_heads": 40,
                                   "num_hidden_layers": 40}, 13_896_668_160),
    "ChatGLM3 6B": (CHATGLM, 6_243_584_000),
    "GLM-4 9B": (CHATGLM | {"num_layers": 40, "padded_vocab_size": 151552, "rope_ratio": 500}, 9_399_951_360),
    "DeepSeek-MoE 16B": (DEEPSEEK, 16_375_728_128),
    "MiniCPM 2B": (MINICPM, 2_724_880_896),
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
def test_published_totals(name):
    config, total = TOTALS[name]
    assert parameters(read_config(config)).total == total


def test_chatglm_keeps_two_heads_of_keys_a_layer():
    assert cache(read_config(CHATGLM), 1).scalars == 28 * 2 * 2 * 128
    every = read_config(CHATGLM | {"multi_query_attention": False})
    assert cache(every, 1).scalars == 28 * 2 * 32 * 128


@pytest.mark.parametrize(
    ("absent", "heads", "biases"),
    [
        ((), 2, 32 + 2 * 2),
        (("multi_query_group_num",), 1, 32 + 2),
        (("multi_query_attention",), 32, 32 + 2 * 32),
        (("multi_query_group_num", "multi_query_attention"), 32, 32 + 2 * 32),
        (("add_qkv_bias",), 2, 0),
    ],
)
def test_what_chatglms_own_configuration_has_where_the_file_is_silent(absent, heads, biases):
    """One group of heads, which are not shared, and no biases."""
    model = read_config({name: value for name, value in CHATGLM.items() if name not in absent})
    assert cache(model, 1).scalars == 28 * 2 * heads * 128
    found = sum(tensor.size for layer in model.layers for tensor in layer.mixer.tensors if tensor.role == "vector")
    assert found == 28 * biases * 128


@pytest.mark.parametrize("bits", [0, 4, 8])
def test_a_quantised_chatglm_counts_the_same(bits):
    assert read_config(CHATGLM | {"quantization_bit": bits}) == read_config(CHATGLM)


def test_what_a_careful_reader_would_ask():
    assert "intermediate_size 22016 is the width of gate and up together: 11008 each" in read_config(QWEN).notes
    told = "ChatGLMModel: the file names the body alone, and its weights have the head"
    assert told in read_config(CHATGLM).notes
    assert told not in read_config(CHATGLM | {"architectures": ["ChatGLMForConditionalGeneration"]}).notes


def test_a_field_is_told_under_the_name_that_the_file_has():
    for config, field in ((CHATGLM, "padded_vocab_size"), (CHATGLM, "ffn_hidden_size"), (QWEN, "kv_channels")):
        with pytest.raises(UnsupportedConfig, match=f"^{field}: expected a whole number of at least 1, came 0$"):
            read_config(config | {field: 0})


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (QWEN, {"no_bias": False}, "no_bias: expected true"),
        (QWEN, {"num_key_value_heads": 8}, "num_key_value_heads: expected 32"),
        (QWEN, {"intermediate_size": 22017}, "intermediate_size: expected an even number"),
        (CHATGLM, {"pre_seq_len": 128}, "pre_seq_len: expected 0"),
        (CHATGLM, {"add_bias_linear": True}, "add_bias_linear: expected false"),
        (CHATGLM, {"quantization_bit": 5}, "quantization_bit: expected 0 or 4 or 8, came 5"),
        (CHATGLM, {"post_layer_norm": False}, "post_layer_norm: expected true"),
        (CHATGLM, {"interleaved_qkv": True}, "interleaved_qkv: expected false"),
        (CHATGLM, {"prefix_projection": True}, "prefix_projection: expected false"),
        (CHATGLM, {"rmsnorm": False}, "rmsnorm: expected true"),
        (MINICPM, {"num_experts": 8}, "num_experts: expected 0"),
        (MINICPM, {"sparse_config": {"kernel_size": 32}}, "sparse_config: expected no such field"),
        (DEEPSEEK, {"n_routed_experts": None}, "n_routed_experts: expected a whole number"),
    ],
)
def test_refused_by_name(config, changes, message):
    with pytest.raises(UnsupportedConfig) as refused:
        read_config(config | changes)
    assert str(refused.value).startswith(message)


def test_the_text_model_of_internvl_is_under_another_name_and_has_its_own_class():
    config = {
        "model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "llm_config": INTERNLM2 | SMALL,
        "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 1024}, "tie_word_embeddings": False,
        "downsample_ratio": 0.5, "select_layer": -1, "use_llm_lora": 0,
    }  # fmt: skip
    assert parameters(read_config(config)).text == TOTALS["InternLM2 1.8B"][1]
    with pytest.raises(UnsupportedConfig, match="^llm_config.hidden_size: expected"):
        read_config(config | {"llm_config": {"model_type": "internlm2"}})


def test_the_text_model_of_an_omni_model_is_the_thinker_s():
    text = {
        "model_type": "qwen2_5_omni_text", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    }  # fmt: skip
    thinker = {"model_type": "qwen2_5_omni_thinker", "text_config": text, "audio_config": {}, "vision_config": {}}
    config = {"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {}, "enable_audio_output": True}
    assert parameters(read_config(config)).total == 7_615_616_512
    with pytest.raises(UnsupportedConfig, match="^thinker_config: expected an object"):
        read_config({"model_type": "qwen2_5_omni"})
    with pytest.raises(UnsupportedConfig, match="^thinker_config.text_config: expected an object"):
        read_config({"model_type": "qwen2_5_omni", "thinker_config": {}})
