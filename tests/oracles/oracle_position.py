"""Rotary positions, ALiBi and latent attention against Transformers."""

from unittest import mock

import numpy as np
import torch
from comparison import oracle
from packages import TRANSFORMERS
from transformers import DeepseekV2Config, DeepseekV3Config, DynamicCache, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deepseek_v2 import modeling_deepseek_v2
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Attention,
    apply_rotary_pos_emb_interleave,
)
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj_rotate
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama_rotate

from archcards import mechanisms

ROPE = "transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS"


def parameters(scaling):
    """What Transformers calls a scaling: its kind and its settings."""
    match scaling:
        case mechanisms.Linear():
            return {"rope_type": "linear", "factor": scaling.factor}
        case mechanisms.DynamicNTK():
            return {"rope_type": "dynamic", "factor": scaling.factor}
        case mechanisms.YaRN():
            names = "factor", "beta_fast", "beta_slow", "truncate"
            optional = "mscale", "mscale_all_dim", "attention_factor"
            found = {n: getattr(scaling, n) for n in (*names, *optional)}
            return {"rope_type": "yarn"} | {n: v for n, v in found.items() if v is not None}
        case mechanisms.Llama3():
            if scaling.low_freq_factor == scaling.high_freq_factor:
                raise NotImplementedError("it divides by the difference of the factors")
            names = "factor", "low_freq_factor", "high_freq_factor"
            return {"rope_type": "llama3"} | {n: getattr(scaling, n) for n in names}
        case mechanisms.LongRoPE():
            names = "factor", "short_factor", "long_factor"
            found = {n: getattr(scaling, n) for n in names}
            return {"rope_type": "longrope"} | {
                n: list(v) if isinstance(v, tuple) else v for n, v in found.items()
            }
        case mechanisms.Proportional():
            found = {"partial_rotary_factor": scaling.share, "factor": scaling.factor}
            return {"rope_type": "proportional"} | found
    raise NotImplementedError("it has no such scaling")


@oracle("rope_frequencies", ROPE, TRANSFORMERS, follows="mscale needs mscale_all_dim")
def test_rope_frequencies(rotary_dim, *, base=10_000.0, scaling=None, length=None):
    trained = getattr(scaling, "trained_length", 4096)
    config = LlamaConfig(
        hidden_size=4 * rotary_dim, num_attention_heads=4, num_key_value_heads=4,
        head_dim=rotary_dim, max_position_embeddings=trained,
    )  # fmt: skip
    if scaling is None:
        config.rope_parameters = {"rope_type": "default", "rope_theta": base}
        return LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    found = parameters(scaling)
    config.rope_parameters = found | {
        "rope_theta": base,
        "original_max_position_embeddings": trained,
    }
    return ROPE_INIT_FUNCTIONS[found["rope_type"]](config, seq_len=length)


def angles(positions, frequencies):
    angle = torch.as_tensor(positions)[:, None] * torch.as_tensor(frequencies.inverse)
    factor = frequencies.attention_factor
    return factor * torch.cos(angle), factor * torch.sin(angle)


@oracle("rotate", "transformers.models.llama.modeling_llama.apply_rotary_pos_emb", TRANSFORMERS, where={"layout": "half"})
def test_llama(x, positions, frequencies):
    width = frequencies.rotary_dim
    cos, sin = (torch.cat([a, a], -1)[None] for a in angles(positions, frequencies))
    turned, _ = llama_rotate(x[..., :width], x[..., :width], cos, sin)
    return torch.cat([turned, x[..., width:]], -1)


@oracle("rotate", "transformers.models.gptj.modeling_gptj.apply_rotary_pos_emb", TRANSFORMERS, where={"layout": "interleaved"})
def test_gptj(x, positions, frequencies):
    width = frequencies.rotary_dim
    cos, sin = (a[None] for a in angles(positions, frequencies))
    turned = gptj_rotate(x[..., :width].transpose(1, 2), sin, cos).transpose(1, 2)
    return torch.cat([turned, x[..., width:]], -1)


@oracle("rotate", "transformers.models.deepseek_v3.modeling_deepseek_v3.apply_rotary_pos_emb_interleave", TRANSFORMERS, where={"layout": "interleaved"})
def test_deepseek(x, positions, frequencies):
    """It leaves the channels de-interleaved: pairs of neighbours become pairs half a head apart."""
    width = frequencies.rotary_dim
    cos, sin = (torch.cat([a, a], -1)[None] for a in angles(positions, frequencies))
    turned, _ = apply_rotary_pos_emb_interleave(x[..., :width], x[..., :width], cos, sin)
    turned = torch.stack(turned.chunk(2, -1), -1).flatten(-2)
    return torch.cat([turned, x[..., width:]], -1)


@oracle("alibi_slopes", "transformers.models.bloom.modeling_bloom.build_alibi_tensor", TRANSFORMERS)
def test_alibi_slopes(heads):
    bias = build_alibi_tensor(torch.ones(1, 2, dtype=torch.int64), heads, torch.float64)
    return bias[:, 0, 1]


# Latent attention


def layer_of(kind, config_of, weights, scale):
    """The layer of another library with our weights."""
    heads, nope, rank = weights.up_key.shape
    rope, d_model = weights.rope_key.shape
    value = weights.up_value.shape[1]
    query_rank = None if weights.query_down is None else weights.query_down.shape[0]
    config = config_of(
        hidden_size=d_model, num_attention_heads=heads, num_key_value_heads=heads,
        q_lora_rank=query_rank, kv_lora_rank=rank, qk_nope_head_dim=nope, qk_rope_head_dim=rope,
        v_head_dim=value, attn_implementation="eager", num_hidden_layers=1,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )  # fmt: skip
    layer = kind(config, layer_idx=0)

    def put(module, array):
        module.weight.data = torch.tensor(np.asarray(array), dtype=torch.float64)

    put(layer.kv_a_proj_with_mqa, np.concatenate([weights.kv_down, weights.rope_key]))
    put(layer.kv_a_layernorm, weights.kv_norm)
    put(layer.kv_b_proj, np.concatenate([weights.up_key, weights.up_value], 1).reshape(-1, rank))
    put(layer.o_proj, np.moveaxis(weights.output, 0, 1).reshape(d_model, -1))
    if query_rank is None:
        put(layer.q_proj, np.reshape(weights.query, (-1, d_model)))
    else:
        put(layer.q_a_proj, weights.query_down)
        put(layer.q_a_layernorm, weights.query_norm)
        put(layer.q_b_proj, np.reshape(weights.query_up, (-1, query_rank)))
    if scale is not None:
        layer.scaling = scale
    return layer, config


def run(layer, config, x, frequencies, cache, turn, halves):
    rope = config.qk_rope_head_dim
    frequencies = frequencies or mechanisms.rope_frequencies(rope)
    held, past = DynamicCache(config=config), 0
    if cache is not None:
        latent, rope_key = (torch.as_tensor(part, dtype=torch.float64) for part in cache)
        past = latent.shape[0]
        if halves:
            rope_key = torch.cat([rope_key[:, ::2], rope_key[:, 1::2]], -1)
        held.update(latent[None, None], rope_key[None, None], 0)
    positions = past + np.arange(x.shape[0])
    mask = np.arange(past + x.shape[0]) <= positions[:, None]
    hidden = torch.zeros(mask.shape).masked_fill(~torch.as_tensor(mask), -torch.inf)
    output = layer(
        hidden_states=x[None], position_embeddings=turn(*angles(positions, frequencies)),
        attention_mask=hidden[None, None], cache=held,
    )[0]  # fmt: skip
    latent, rope_key = held.layers[0].keys[0, 0], held.layers[0].values[0, 0]
    if halves:
        rope_key = torch.stack(rope_key.chunk(2, -1), -1).flatten(-2)
    return output[0], latent, rope_key


@oracle("latent_attention", "transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3Attention", TRANSFORMERS)
def test_deepseek_v3(x, weights, frequencies=None, scale=None, cache=None):
    """Its cache holds rotated keys de-interleaved."""
    layer, config = layer_of(DeepseekV3Attention, DeepseekV3Config, weights, scale)

    def turn(cos, sin):
        return torch.cat([cos, cos], -1)[None], torch.cat([sin, sin], -1)[None]

    return run(layer, config, x, frequencies, cache, turn, halves=True)


@oracle("latent_attention", "transformers.models.deepseek_v2.modeling_deepseek_v2.DeepseekV2Attention", TRANSFORMERS)
def test_deepseek_v2(x, weights, frequencies=None, scale=None, cache=None):
    layer, config = layer_of(DeepseekV2Attention, DeepseekV2Config, weights, scale)

    def turn(cos, sin):
        return torch.complex(cos, sin)[None]

    def whole(*channels_and_angles):  # it cannot view heads of odd width as complex numbers
        *channels, turns = channels_and_angles
        return rotate(*(x.clone() for x in channels), turns)

    rotate = modeling_deepseek_v2.apply_rotary_emb
    with mock.patch.object(modeling_deepseek_v2, "apply_rotary_emb", whole):
        return run(layer, config, x, frequencies, cache, turn, halves=False)
