"""Linear attention, the delta family and state spaces against fla-core, Transformers and PyTorch."""

import numpy as np
import torch
import torch.nn.functional as F
from comparison import oracle
from packages import FLA, TORCH, TRANSFORMERS, naive
from transformers import DynamicCache, Mamba2Config, MambaConfig
from transformers.models.mamba.modeling_mamba import (
    MambaMixer,
    mamba_selective_scan,
    mamba_selective_state_update,
)
from transformers.models.mamba.modeling_mamba import causal_conv1d_fn as transformers_convolution
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer, MambaRMSNormGated, mamba2_chunk_scan
from transformers.models.qwen3_next import modeling_qwen3_next as qwen

delta, gated, kimi = naive("delta_rule"), naive("gated_delta_rule"), naive("kda")
linear, simple, gla = naive("linear_attn"), naive("simple_gla"), naive("gla")

SCALED = {"follows": "query scaled by 1/sqrt(d)"}
LATER = {"axes": "batch time head"}


def per_step(log_decay, like):
    """One log-decay a step: zeros unless given."""
    if log_decay is not None and log_decay.ndim == 4:
        raise NotImplementedError("it has one decay per step")
    return torch.zeros_like(like) if log_decay is None else log_decay


def per_channel(log_decay, like):
    """One log-decay a step and key channel."""
    if log_decay is None:
        return torch.zeros_like(like)
    return log_decay if log_decay.ndim == 4 else log_decay[..., None] + torch.zeros_like(like)


def finite(log_decay):
    if log_decay is not None and torch.isinf(log_decay).any():
        raise NotImplementedError("it takes differences of sums of decays")
    return log_decay


# The delta rule


@oracle("delta_rule", "fla.ops.delta_rule.naive.delta_rule_recurrence", FLA, **SCALED)
def test_delta_recurrent(query, key, value, beta, state=None):
    return delta.delta_rule_recurrence(query, key, value, beta, state)


@oracle("delta_rule", "fla.ops.delta_rule.naive.delta_rule_chunkwise", FLA, **SCALED)
def test_delta_chunked(query, key, value, beta):
    time = query.shape[-2]
    chunk = next(size for size in (35, 7, 5, 6, 1) if time % size == 0)
    return delta.delta_rule_chunkwise(query, key, value, beta, chunk_size=chunk)


GATED = "fla.ops.gated_delta_rule.naive."


@oracle("delta_rule", GATED + "naive_recurrent_gated_delta_rule", FLA, **SCALED, **LATER)
def test_gated_recurrent(query, key, value, beta, log_decay=None, state=None):
    g = per_step(log_decay, beta)
    return gated.naive_recurrent_gated_delta_rule(
        query, key, value, beta, g, initial_state=state, output_final_state=True
    )


@oracle("delta_rule", GATED + "naive_chunk_gated_delta_rule", FLA, **SCALED, **LATER)
def test_gated_chunked(query, key, value, beta, log_decay=None, state=None):
    g = finite(per_step(log_decay, beta))
    return gated.naive_chunk_gated_delta_rule(
        query, key, value, g, beta, initial_state=state, output_final_state=True
    )


@oracle("delta_rule", "fla.ops.kda.naive.naive_recurrent_kda", FLA, **LATER)
def test_kimi_recurrent(query, key, value, beta, log_decay=None, state=None, scale=1.0):
    g = per_channel(log_decay, key)
    return kimi.naive_recurrent_kda(query, key, value, g, beta, scale, state, True)


@oracle("delta_rule", "fla.ops.kda.naive.naive_chunk_kda", FLA, **LATER)
def test_kimi_chunked(query, key, value, beta, log_decay=None, state=None, scale=1.0):
    g, time = finite(per_channel(log_decay, key)), query.shape[1]
    if (g < -100).any():
        raise NotImplementedError("it takes exponentials that overflow where decay is strong")
    chunk = next(size for size in (35, 7, 5, 6, 1) if time % size == 0)
    return kimi.naive_chunk_kda(query, key, value, g, beta, scale, state, True, chunk)


QWEN = "transformers.models.qwen3_next.modeling_qwen3_next."


@oracle("delta_rule", QWEN + "torch_recurrent_gated_delta_rule", TRANSFORMERS, **SCALED, **LATER)
def test_qwen_recurrent(query, key, value, beta, log_decay=None, state=None):
    g = per_step(log_decay, beta)
    return qwen.torch_recurrent_gated_delta_rule(query, key, value, g, beta, state, True)


@oracle("delta_rule", QWEN + "torch_chunk_gated_delta_rule", TRANSFORMERS, **SCALED, **LATER)
def test_qwen_chunked(query, key, value, beta, log_decay=None, state=None):
    g = finite(per_step(log_decay, beta))
    return qwen.torch_chunk_gated_delta_rule(query, key, value, g, beta, 64, state, True)


def _one_step(state, key, value, beta, decay):
    one = [x[:, None, None] for x in (key, value, beta)]
    g = torch.log(decay)[:, None, None]
    g = g if decay.ndim == 2 else g[..., None] + torch.zeros_like(one[0])
    _, new = kimi.naive_recurrent_kda(one[0], one[0], one[1], g, one[2], 1.0, state[:, None], True)
    return new[:, 0]


@oracle("gated_write", "fla.ops.kda.naive.naive_recurrent_kda", FLA)
def test_gated_write(state, key, value, beta, decay):
    return _one_step(state, key, value, beta, decay)


@oracle("delta_write", "fla.ops.kda.naive.naive_recurrent_kda", FLA)
def test_delta_write(state, key, value, beta):
    return _one_step(state, key, value, beta, torch.ones_like(beta))


@oracle("unit_key", QWEN + "l2norm", TRANSFORMERS)
def test_unit_key(x, eps=1e-6):
    return qwen.l2norm(x, eps=eps)


@oracle("decay_gate", "torch.nn.functional.softplus", TORCH)
def test_decay_gate(x, log_rate, bias):
    return -torch.exp(torch.as_tensor(log_rate)) * F.softplus(x + bias)


# Linear attention


@oracle("elu_plus_one", "torch.nn.functional.elu", TORCH)
def test_elu_plus_one(x):
    return F.elu(x) + 1


LINEAR = "fla.ops.linear_attn.naive."


@oracle("linear_attention", LINEAR + "naive_recurrent_linear_attn", FLA, where={"log_decay": None, "normalise": False}, **LATER)
def test_linear_recurrent(query, key, value, state=None, scale=1.0):
    return linear.naive_recurrent_linear_attn(query, key, value, scale, state, True)


# It adds 1e-10 to the normaliser.
@oracle("linear_attention", LINEAR + "naive_recurrent_linear_attn", FLA, tolerance=1e-9,
        where={"normalise": True, "log_decay": None}, **LATER)  # fmt: skip
def test_linear_normalised(query, key, value, state=None):
    if state is not None:
        memory, normaliser = state
        state = memory, normaliser[:, None]
    output, (memory, normaliser) = linear.naive_recurrent_linear_attn(
        query, key, value, 1.0, state, True, normalize=True
    )
    return output, memory, normaliser[:, 0]


GLA = "fla.ops.simple_gla.naive."


@oracle("linear_attention", GLA + "naive_recurrent_simple_gla", FLA, where={"normalise": False}, **LATER)
def test_simple_recurrent(query, key, value, log_decay=None, state=None, scale=1.0):
    g = per_step(log_decay, query[..., 0])
    return simple.naive_recurrent_simple_gla(query, key, value, g, scale, state)


@oracle("linear_attention", GLA + "naive_chunk_simple_gla", FLA, where={"normalise": False}, **LATER)
def test_simple_chunked(query, key, value, log_decay=None, state=None, scale=1.0):
    g = finite(per_step(log_decay, query[..., 0]))
    return simple.naive_chunk_simple_gla(query, key, value, g, state, True, scale=scale)


@oracle("linear_attention", "fla.ops.gla.naive.naive_recurrent_gla", FLA, where={"normalise": False}, **SCALED, **LATER)
def test_gla_recurrent(query, key, value, log_decay=None, state=None):
    g = per_channel(log_decay, key)
    return gla.naive_recurrent_gla(query, key, value, g, state, True)


# State spaces


MAMBA = "transformers.models.mamba.modeling_mamba."


@oracle("selective_scan", MAMBA + "mamba_selective_scan", TRANSFORMERS, where={"discretisation": "exponential_euler"},
        axes={"*": "batch channel time", "B": "batch N time", "C": "batch N time", "state": "batch channel N"})  # fmt: skip
def test_scan(u, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
    return mamba_selective_scan(u, dt, A, B, C, D, z, dt_bias, dt_softplus, return_last_state=True)


@oracle("selective_scan", MAMBA + "mamba_selective_state_update", TRANSFORMERS, where={"discretisation": "exponential_euler"})
def test_scan_steps(u, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, state=None):
    """One step after the other; it writes into the state that it is given."""
    state = torch.zeros(u.shape[0], *A.shape) if state is None else state.clone()
    output = [
        mamba_selective_state_update(
            state, u[:, t], dt[:, t], A, B[:, t], C[:, t], D, dt_bias, dt_softplus,
            z=None if z is None else z[:, t],
        )
        for t in range(u.shape[1])
    ]  # fmt: skip
    return torch.stack(output, 1), state


@oracle("causal_convolution", MAMBA + "causal_conv1d_fn", TRANSFORMERS, axes="batch channel time")
def test_convolution(x, weight, bias=None):
    return transformers_convolution(x, weight, bias)


@oracle("causal_convolution", "torch.nn.functional.conv1d", TORCH, axes="batch channel time")
def test_padded_convolution(x, weight, bias=None):
    padded = F.pad(x, (weight.shape[1] - 1, 0))
    return F.conv1d(padded, weight[:, None], bias, groups=x.shape[1])


MAMBA2 = "transformers.models.mamba2.modeling_mamba2."


@oracle("state_space_dual", MAMBA2 + "mamba2_chunk_scan", TRANSFORMERS, follows="state as (P, N)",
        axes="batch time head group")  # fmt: skip
def test_dual(x, dt, A, B, C, D=None, dt_bias=None, dt_softplus=True, dt_limit=(0.0, float("inf")), state=None):
    return mamba2_chunk_scan(
        x, dt, A, B, C, 16, D, dt_bias, state, dt_softplus, dt_limit, return_final_states=True
    )


@oracle("gated_norm", MAMBA2 + "MambaRMSNormGated", TRANSFORMERS, where={"order": "gate_first"})
def test_gated_norm(y, z, weight=None, groups=1):
    norm = MambaRMSNormGated(y.shape[-1], y.shape[-1] // groups, eps=1e-5)
    norm.weight.data = torch.ones(y.shape[-1]) if weight is None else weight
    return norm(y, z)


@oracle("gated_norm", QWEN + "Qwen3NextRMSNormGated", TRANSFORMERS, where={"order": "norm_first"})
def test_gated_norm_of_qwen(y, z, weight=None, groups=1):
    if groups > 1:
        raise NotImplementedError("its heads are axes of their own")
    norm = qwen.Qwen3NextRMSNormGated(y.shape[-1], eps=1e-5)
    norm.weight.data = torch.ones(y.shape[-1]) if weight is None else weight
    return norm(y, z)


# The blocks


def put(parameter, array):
    parameter.data = torch.as_tensor(np.asarray(array)).reshape(parameter.shape)


def run_block(mixer, config, x, weights, cache, turn):
    """A block of Transformers with our weights, and its cache, whose states may lie otherwise."""
    put(mixer.in_proj.weight, weights.input.T)
    put(mixer.conv1d.weight, weights.convolution)
    put(mixer.conv1d.bias, weights.convolution_bias)
    put(mixer.A_log, weights.A_log)
    put(mixer.D, weights.D)
    put(mixer.out_proj.weight, weights.output.T)
    held = DynamicCache(config=config)
    if cache is not None:
        # It keeps as many inputs as the convolution is wide, of which the first is never used.
        past = torch.as_tensor(cache.inputs).transpose(1, 2)
        held.update_conv_state(F.pad(past, (1, 0)), 0)
        held.update_recurrent_state(turn(torch.as_tensor(cache.state)), 0)
    output = mixer.eval()(x, cache=held)
    inputs = held.layers[0].conv_states[0][..., 1:].transpose(1, 2)
    return output, inputs, turn(held.layers[0].recurrent_states[0])


@oracle("mamba_block", MAMBA + "MambaMixer", TRANSFORMERS)
def test_mamba_block(x, weights, cache=None):
    if cache is not None and x.shape[1] > 1:
        raise NotImplementedError("it goes on from a past one step at a time")
    (rank, inner), N = weights.dt.shape, weights.A_log.shape[1]
    config = MambaConfig(
        hidden_size=x.shape[-1], intermediate_size=inner, state_size=N, time_step_rank=rank,
        conv_kernel=weights.convolution.shape[1], num_hidden_layers=1,
    )  # fmt: skip
    config.intermediate_size = inner
    mixer = MambaMixer(config, layer_idx=0)
    put(mixer.x_proj.weight, weights.selection.T)
    put(mixer.dt_proj.weight, weights.dt.T)
    put(mixer.dt_proj.bias, weights.dt_bias)
    return run_block(mixer, config, x, weights, cache, lambda state: state)


@oracle("mamba2_block", MAMBA2 + "Mamba2Mixer", TRANSFORMERS)
def test_mamba2_block(x, weights, cache=None, dt_limit=(0.0, float("inf")), eps=1e-5):
    heads, inner = weights.A_log.size, weights.norm.size
    channels, width = weights.convolution.shape
    config = Mamba2Config(
        hidden_size=x.shape[-1], num_heads=heads, head_dim=inner // heads, expand=inner // x.shape[-1],
        state_size=(channels - inner) // (2 * weights.groups), n_groups=weights.groups,
        conv_kernel=width, layer_norm_epsilon=eps, time_step_limit=dt_limit, num_hidden_layers=1,
        chunk_size=16,
    )  # fmt: skip
    mixer = Mamba2Mixer(config, layer_idx=0)
    put(mixer.dt_bias, weights.dt_bias)
    put(mixer.norm.weight, weights.norm)
    return run_block(mixer, config, x, weights, cache, lambda state: state.transpose(-1, -2))
