"""Towers of images and of text, in pairs and alone: totals as published, work by hand."""

import json
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, cache, flops, image_sequence, parameters, read_config
from archcards.ledger.describe import mixer_words

CLIP = {
    "model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 512, "logit_scale_init_value": 2.6592,
    "text_config": {"model_type": "clip_text_model", "tie_word_embeddings": True, "is_decoder": False},
    "vision_config": {"model_type": "clip_vision_model", "patch_size": 32}, "text_config_dict": None,
    "vision_config_dict": None,
}  # fmt: skip
LARGE = CLIP | {
    "projection_dim": 768,
    "text_config_dict": {
        "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
        "projection_dim": 768,
    },
    "vision_config_dict": {
        "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
        "patch_size": 14, "projection_dim": 768,
    },
}  # fmt: skip
SIGLIP = {
    "model_type": "siglip", "architectures": ["SiglipModel"], "text_config": {"model_type": "siglip_text_model"},
    "vision_config": {"model_type": "siglip_vision_model"}, "initializer_factor": 1.0,
}  # fmt: skip
SO400M = {"hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27}
SIGLIP_LARGE = SIGLIP | {
    "text_config": SIGLIP["text_config"] | SO400M,
    "vision_config": SIGLIP["vision_config"] | SO400M | {"image_size": 384, "patch_size": 14},
}
PROMPT = {
    "model_type": "clip_text_model", "architectures": ["CLIPTextModel"], "hidden_size": 768, "intermediate_size": 3072,
    "num_attention_heads": 12, "num_hidden_layers": 12, "projection_dim": 768, "vocab_size": 49408, "dropout": 0.0,
}  # fmt: skip


def test_a_causal_text_tower_borrows_nothing():
    words = [mixer_words(read_config(one).layers[0].mixers[0]) for one in (CLIP, SIGLIP)]
    assert words == ["attention 8/8 x 64", "attention 12/12 x 64, both ways"]
    assert cache(read_config(CLIP), 77).scalars == 0


def dinov2(hidden, layers, heads, **more):
    return {
        "model_type": "dinov2", "architectures": ["Dinov2Model"], "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "image_size": 518, "patch_size": 14, "mlp_ratio": 4, "qkv_bias": True,
        "layerscale_value": 1.0, "use_swiglu_ffn": False, "out_features": ["stage12"], "out_indices": [12],
        "stage_names": ["stem"], "reshape_hidden_states": True, "apply_layernorm": True,
    } | more  # fmt: skip


DINOV3 = {
    "model_type": "dinov3_vit", "architectures": ["DINOv3ViTModel"], "hidden_size": 1024, "intermediate_size": 4096,
    "num_hidden_layers": 24, "num_attention_heads": 16, "num_register_tokens": 4, "key_bias": False, "patch_size": 16,
    "pos_embed_rescale": 2.0,
}  # fmt: skip
TOTALS = {
    "CLIP B/32": (CLIP, 151_277_313),
    "CLIP L/14": (LARGE, 427_616_513),
    "SigLIP B/16": (SIGLIP, 203_155_970),
    "SigLIP So400m": (SIGLIP_LARGE, 877_960_498),
    "the text encoder of Stable Diffusion 1.5": (PROMPT, 123_060_480),
    "DINOv2 S": (dinov2(384, 12, 6), 22_056_576),
    "DINOv2 B": (dinov2(768, 12, 12), 86_580_480),
    "DINOv2 L": (dinov2(1024, 24, 16), 304_368_640),
    "DINOv2 g": (dinov2(1536, 40, 24, use_swiglu_ffn=True), 1_136_480_768),
    "DINOv3 L": (DINOV3, 303_129_600),
}


@pytest.mark.parametrize("name", TOTALS)
def test_published_totals(name):
    config, total = TOTALS[name]
    assert parameters(read_config(config)).total == total


def test_an_older_file_s_dictionary_is_what_counts():
    """It replaces the newer object whole: sizes that it leaves out are the library's, not the other's."""
    config = CLIP | {"text_config": CLIP["text_config"] | {"num_hidden_layers": 3}, "text_config_dict": {}}
    assert parameters(read_config(config)) == parameters(read_config(CLIP))


def test_a_text_tower_keeps_nothing_and_reads_what_is_before():
    model = read_config(PROMPT)
    assert cache(model, 77).bytes == 0
    layer = 4 * 768 * 768 + 2 * 768 * 3072
    # 77 · 78 / 2 pairs, scores and sums over 768.
    assert flops(model, 77).per_sequence == (2 * 77 * 12 * layer, 2 * 12 * 2 * 768 * 77 * 78 // 2)
    both_ways = read_config(SIGLIP["text_config"] | {"architectures": ["SiglipTextModel"]})
    assert flops(both_ways, 64).per_sequence.attention == 2 * 12 * 2 * 768 * 64 * 64


def test_an_image_tower_alone_reads_an_image():
    config = {"model_type": "clip_vision_model", "patch_size": 32}
    model = read_config(config)
    # 7 by 7 patches and the class token.
    assert image_sequence(model) == 50
    layer = 4 * 768 * 768 + 2 * 768 * 3072
    assert flops(model).per_sequence.matmul == 2 * (49 * 3 * 32 * 32 * 768 + 50 * 12 * layer)
    projected = read_config(config | {"architectures": ["CLIPVisionModelWithProjection"]})
    assert flops(projected).per_sequence.matmul - flops(model).per_sequence.matmul == 2 * 768 * 512
    with pytest.raises(UnsupportedConfig, match="^patch_size: expected at most image_size, 224, came 225"):
        read_config(config | {"patch_size": 225})


@pytest.mark.parametrize(
    ("model_type", "tokens", "rows"),
    [("vit", 1, 16), ("deit", 2, 17), ("dinov2", 1, 16), ("dinov2_with_registers", 1 + 3, 16), ("dinov3_vit", 1 + 3, None)],
)
def test_an_image_wider_than_it_is_high(model_type, tokens, rows):
    """31 by 80 in patches of 8 by 16: three rows of five, and what is left over is in none."""
    cases = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))
    config = next(case["config"] for case in cases if case["config"]["model_type"] == model_type)
    registers = {"num_register_tokens": 3} if tokens == 4 else {}
    model = read_config(config | registers | {"image_size": [31, 80], "patch_size": [8, 16]})
    assert image_sequence(model) == 15 + tokens
    assert [tensor.shape[0] for tensor in model.embeddings.positions] == ([] if rows is None else [rows])
    [kernel] = [tensor for tensor in model.embeddings.others if tensor.per == "patch" and tensor.multiply_adds]
    assert kernel.multiply_adds == model.hidden * config["num_channels"] * 8 * 16
    assert flops(model).per_sequence.attention == 2 * len(model.layers) * 2 * model.hidden * (15 + tokens) ** 2


def test_registers_are_tokens_too():
    model = read_config(DINOV3)
    assert image_sequence(model) == 14 * 14 + 1 + 4
    assert image_sequence(read_config(dinov2(768, 12, 12))) == 37 * 37 + 1
    layer = 4 * 1024 * 1024 + 2 * 1024 * 4096
    worked = flops(model).per_sequence
    assert worked == (2 * (196 * 3 * 16 * 16 * 1024 + 201 * 24 * layer), 2 * 24 * 2 * 1024 * 201 * 201)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["CLIPForImageClassification"]}, "architectures: expected CLIPModel"),
        ({"text_config": None}, "text_config: expected an object with the tower's fields"),
        ({"vision_config": {"num_hidden_layers_of_something": 3}}, "vision_config.num_hidden_layers_of_something: "),
        ({"vision_config": {"num_attention_heads": 7}}, "vision_config.num_attention_heads: expected a divisor"),
        ({"text_config": {"vocab_size": 0}}, "text_config.vocab_size: expected a whole number"),
        ({"text_config": {"model_type": "bert"}}, "text_config.model_type: expected 'clip_text_model'"),
    ],
)
def test_refused_by_name(changes, message):
    with pytest.raises(UnsupportedConfig) as refused:
        read_config(CLIP | changes)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "clip_vision_model"}, "image_size"),
        (DINOV3, "num_register_tokens"),
        (DINOV3 | {"model_type": "dinov2_with_registers", "architectures": None}, "num_register_tokens"),
    ],
)
def test_a_sequence_too_long_to_count_with_is_refused(config, field):
    with pytest.raises(UnsupportedConfig, match=f"^{field}: expected a whole number of at least [01] and at most "):
        read_config(config | {field: 10**12})
