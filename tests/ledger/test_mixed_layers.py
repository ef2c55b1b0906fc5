"""Models whose layers differ in more than their reach: convolutions, heads, experts taken."""

import pytest

from archcards.ledger import UnsupportedConfig, cache, flops, parameters, read_config

LFM2 = {
    "model_type": "lfm2_moe", "vocab_size": 65536, "hidden_size": 2048, "intermediate_size": 7168,
    "moe_intermediate_size": 1792, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 8,
    "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4, "use_expert_bias": True, "conv_L_cache": 3,
    "conv_bias": False, "norm_topk_prob": True, "routed_scaling_factor": 1.0,
    "layer_types": ["full_attention" if layer in (2, 6, 10, 14, 18, 21) else "conv" for layer in range(24)],
}  # fmt: skip
MIMO = {
    "model_type": "mimo_v2_flash", "vocab_size": 152576, "hidden_size": 4096, "intermediate_size": 16384,
    "moe_intermediate_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4,
    "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
    "swa_head_dim": 192, "swa_v_head_dim": 128, "sliding_window": 128, "sliding_window_size": 128,
    "hybrid_layer_pattern": [int(layer != 0 and (layer + 1) % 6 != 0) for layer in range(48)],
    "moe_layer_freq": [0] + [1] * 47, "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": None, "attention_value_scale": 0.707,
    "swa_rope_theta": 10000, "partial_rotary_factor": 0.334, "tie_word_embeddings": False,
}  # fmt: skip
HUNYUAN = {
    "model_type": "hunyuan_v1_moe", "vocab_size": 128167, "hidden_size": 4096, "intermediate_size": 3072,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "attention_head_dim": 128, "num_experts": 64, "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32,
    "num_shared_expert": [1] * 32, "tie_word_embeddings": True, "use_qk_norm": True, "use_mixed_mlp_moe": True,
    "moe_layer_num_skipped": 0, "use_cla": False, "use_mla": False, "norm_type": "rms", "cla_share_factor": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total"), [(LFM2, 8_339_929_856), (HUNYUAN, 80_393_183_232)], ids=["LFM2 8B-A1B", "Hunyuan A13B"]
)
def test_published_totals(config, total):
    assert parameters(read_config(config)).total == total


def test_lfm2_with_experts_keeps_keys_in_six_layers_and_two_inputs_in_the_others():
    kept = cache(read_config(LFM2), 1000)
    assert kept.scalars_per_token == 6 * 2 * 8 * 64
    assert kept.fixed_scalars == 18 * 2 * 2048
    used = parameters(read_config(LFM2)).active.with_embeddings
    assert parameters(read_config(LFM2)).total - used == 22 * 28 * 3 * 2048 * 1792


def test_mimos_windows_have_twice_the_key_value_heads():
    """9 layers of 4 heads grow for ever; 39 of 8 heads hold a window: 128 tokens before, and itself."""
    model = read_config(MIMO)
    kept = cache(model, 1000)
    assert kept.scalars_per_token_beyond == 9 * 4 * (192 + 128)
    assert kept.scalars == 9 * 4 * 320 * 1000 + 39 * 8 * 320 * 129
    # 309 billion, 15 of them for a token.
    assert round(parameters(model).total / 10**9) == 309
    assert round(parameters(model).active.with_embeddings / 10**9) == 15
    pairs = 9 * 500 * 501 // 2 + 39 * sum(min(i, 129) for i in range(1, 501))
    assert flops(model, 500).per_sequence.attention == 2 * 64 * 320 * pairs


def test_mimos_layers_may_be_named_or_left_out():
    numbers = MIMO["hybrid_layer_pattern"]
    words = [("full_attention", "sliding_attention")[number] for number in numbers]
    silent = {k: v for k, v in MIMO.items() if k not in ("hybrid_layer_pattern", "moe_layer_freq")}
    for config in (silent, MIMO | {"layer_types": words}, silent | {"layer_types": words}):
        assert read_config(config) == read_config(MIMO)
    with pytest.raises(UnsupportedConfig, match="^layer_types: expected the layers that hybrid_layer_pattern names"):
        read_config(MIMO | {"layer_types": words[::-1]})


def test_hunyuan_takes_experts_layer_by_layer():
    """Each expert not taken is three matrices of 4096 by 3072 that a token does not meet."""
    every, less = read_config(HUNYUAN), read_config(HUNYUAN | {"moe_topk": [8] * 31 + [3]})
    assert parameters(every).total == parameters(less).total
    idle = parameters(every).active.with_embeddings - parameters(less).active.with_embeddings
    assert idle == 5 * 3 * 4096 * 3072
    for field, value in (("moe_intermediate_size", [3072] * 31 + [2048]), ("num_shared_expert", 2)):
        with pytest.raises(UnsupportedConfig, match=f"^{field}: expected (3072|1) in each layer"):
            read_config(HUNYUAN | {field: value})
    with pytest.raises(UnsupportedConfig, match="^moe_topk: expected at most 64"):
        read_config(HUNYUAN | {"moe_topk": 65})


MLLAMA = {
    "model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "image_token_index": 128256,
    "text_config": {"model_type": "mllama_text_model", "intermediate_size": 14336, "max_position_embeddings": 131072},
    "vision_config": {"model_type": "mllama_vision_model", "image_size": 560, "vision_output_dim": 7680},
}  # fmt: skip


def test_llama_3_2_vision_keeps_the_keys_of_an_image_in_eight_layers():
    model = read_config(MLLAMA)
    assert parameters(model).total == 10_670_220_835
    image = 4 * (40 * 40 + 1)  # four tiles of 560 by 560 pixels in patches of 14, a class token each
    kept = cache(model, 100, source_length=image)
    assert (kept.scalars_per_token, kept.scalars_per_source_token) == (32 * 2 * 8 * 128, 8 * 2 * 8 * 128)
    assert kept.scalars == 65_536 * 100 + 16_384 * image
    seen, blind = flops(model, 100, image), flops(model, 100)
    assert seen.per_sequence.matmul - blind.per_sequence.matmul == 2 * 8 * 2 * 4096 * 1024 * image
    assert seen.per_sequence.attention - blind.per_sequence.attention == 2 * 8 * 2 * 4096 * 100 * image
    assert seen.per_token.matmul == blind.per_token.matmul
    assert blind.per_sequence.attention == 2 * 32 * 2 * 4096 * 100 * 101 // 2


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("text_config", {"cross_attention_layers": [3, 40]}, "cross_attention_layers[1]: expected a whole number"),
        ("text_config", {"num_hidden_layers": 20}, "cross_attention_layers: expected layers below 20"),
        ("text_config", {"tie_word_embeddings": True}, "tie_word_embeddings: expected false"),
        ("vision_config", {"vision_output_dim": 1280}, "vision_output_dim: expected 6 times hidden_size, 7680"),
        ("vision_config", {"patch_size": 561}, "patch_size: expected at most image_size, 560"),
        ("vision_config", {"attention_heads": 7}, "attention_heads: expected a divisor of hidden_size, 1280"),
    ],
)
def test_what_llama_3_2_vision_refuses(part, changes, message):
    with pytest.raises(UnsupportedConfig) as refused:
        read_config(MLLAMA | {part: MLLAMA[part] | changes})
    assert str(refused.value).startswith(f"{part}.{message}")


def test_the_text_of_llama_3_2_vision_alone():
    text, blind = read_config(MLLAMA["text_config"]), read_config(MLLAMA | {"vision_config": None})
    assert parameters(text) == parameters(blind) == parameters(read_config(MLLAMA))._replace(
        total=9_775_192_080, vision=0, components=parameters(text).components
    )
    assert "the file describes no vision tower: text weights only" in blind.notes
    with pytest.raises(UnsupportedConfig, match="^text_config: expected an object"):
        read_config(MLLAMA | {"text_config": None})
