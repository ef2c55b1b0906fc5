"""Mechanisms in PyTorch, term by term: written to be differentiated, not to be fast."""

import math

import torch
import torch.nn.functional as F

__all__ = ["FUNCTIONS"]


def attention(query, key, value, mask=None, scale=None, bias=None, sink=None, softcap=None, empty=None):
    groups = query.shape[-3] // key.shape[-3]
    key, value = (x.repeat_interleave(groups, dim=-3) for x in (key, value))
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    if sink is not None:
        column = sink[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1] @ value
    return torch.softmax(scores, -1) @ value


def delta_rule(query, key, value, beta, log_decay=None, scale=1.0, state=None):
    S = 0 * key[:, :, 0, :, None] * value[:, :, 0, None] if state is None else state
    output = []
    for t in range(query.shape[2]):
        if log_decay is not None:
            decay = torch.exp(log_decay[:, :, t])
            S = S * (decay[..., None] if decay.ndim == 3 else decay[..., None, None])
        error = value[:, :, t] - torch.einsum("bhk,bhkv->bhv", key[:, :, t], S)
        S = S + beta[:, :, t, None, None] * key[:, :, t, :, None] * error[:, :, None]
        output.append(scale * torch.einsum("bhk,bhkv->bhv", query[:, :, t], S))
    return torch.stack(output, 2), S


def selective_scan(u, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, state=None,
                   discretisation="exponential_euler"):  # fmt: skip
    dt = dt if dt_bias is None else dt + dt_bias
    dt = F.softplus(dt) if dt_softplus else dt
    h, output = torch.zeros(()) if state is None else state, []
    for t in range(u.shape[1]):
        step = dt[:, t, :, None]
        rise = step if discretisation == "exponential_euler" else torch.expm1(step * A) / A
        h = torch.exp(step * A) * h + rise * B[:, t, None] * u[:, t, :, None]
        output.append(torch.einsum("bcn,bn->bc", h, C[:, t]))
    y = torch.stack(output, 1)
    y = y if D is None else y + D * u
    return (y if z is None else y * F.silu(z)), h


def state_space_dual(x, dt, A, B, C, D=None, dt_bias=None, dt_softplus=True, dt_limit=(0.0, math.inf),
                     state=None):  # fmt: skip
    B, C = (g.repeat_interleave(x.shape[1] // g.shape[1], dim=1) for g in (B, C))
    dt = dt if dt_bias is None else dt + dt_bias[:, None]
    dt = torch.clamp(F.softplus(dt) if dt_softplus else dt, *dt_limit)
    h, output = torch.zeros(()) if state is None else state, []
    for t in range(x.shape[2]):
        step = dt[:, :, t, None, None]
        write = B[:, :, t, :, None] * x[:, :, t, None]
        h = torch.exp(step * A[:, None, None]) * h + step * write
        output.append(torch.einsum("bhnp,bhn->bhp", h, C[:, :, t]))
    y = torch.stack(output, 2)
    return (y if D is None else y + D[:, None, None] * x), h


def rms_norm(x, weight=None, eps=1e-6):
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    y = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def causal_convolution(x, weight, bias=None):
    width = weight.shape[1]
    padded = F.pad(x, (0, 0, width - 1, 0))
    y = sum(padded[:, i : i + x.shape[1]] * weight[:, i] for i in range(width))
    return y if bias is None else y + bias


def softmax(scores, axis=-1):
    return torch.softmax(scores, axis)


def attention_weights(query, key, mask=None, scale=None, bias=None, sink=None, softcap=None, empty=None):
    """What attention gives for values that are the rows of the identity."""
    value = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    return attention(query, key, value, mask, scale, bias, sink, softcap)


def blockwise_attention(query, key, value, mask=None, block=1, scale=None):
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


def latent_read(query, rope_query, latent, rope_key, up_key, up_value, scale, mask=None):
    scores = torch.einsum("hqn,hnr,kr->hqk", query, up_key, latent)
    scores = scale * (scores + torch.einsum("hqn,kn->hqk", rope_query, rope_key))
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("hqk,hvr,kr->hqv", torch.softmax(scores, -1), up_value, latent)


def linear_attention(query, key, value, log_decay=None, normalise=False, scale=1.0, state=None):
    decays = 0 * key if log_decay is None else log_decay
    decays = torch.exp(decays if decays.ndim == 4 else decays[..., None])
    S = 0 * key[:, :, 0, :, None] * value[:, :, 0, None] if state is None else state
    S, total = S if isinstance(S, tuple) else (S, 0 * key[:, :, 0])
    output = []
    for t in range(query.shape[2]):
        S = decays[:, :, t, :, None] * S + key[:, :, t, :, None] * value[:, :, t, None]
        total = decays[:, :, t] * total + key[:, :, t]
        read = scale * torch.einsum("bhk,bhkv->bhv", query[:, :, t], S)
        mass = scale * (query[:, :, t] * total).sum(-1, keepdim=True)
        output.append(read / mass if normalise else read)
    return (torch.stack(output, 2), S, total) if normalise else (torch.stack(output, 2), S)


def gated_write(state, key, value, beta, decay):
    S = (decay[..., None] if decay.ndim == 2 else decay[:, None, None]) * state
    error = value - torch.einsum("bk,bkv->bv", key, S)
    return S + beta[:, None, None] * key[:, :, None] * error[:, None]


def delta_write(state, key, value, beta):
    return gated_write(state, key, value, beta, torch.ones_like(beta))


def unit_key(x, eps=1e-6):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps)


def decay_gate(x, log_rate, bias):
    return -torch.exp(torch.as_tensor(log_rate)) * torch.logaddexp(x + bias, torch.zeros(()))


def elu_plus_one(x):
    return torch.where(x > 0, x + 1, torch.exp(torch.clamp(x, max=0)))


def gate_output(output, gate):
    return output * torch.sigmoid(gate)


def gated_norm(y, z, weight=None, groups=1, eps=1e-5, order="gate_first"):
    gate = z * torch.sigmoid(z)
    y = y * gate if order == "gate_first" else y
    normed = rms_norm(y.unflatten(-1, (groups, -1)), eps=eps).flatten(-2)
    normed = normed if weight is None else normed * weight
    return normed if order == "gate_first" else normed * gate


def qk_norm(query, key, query_weight=None, key_weight=None, eps=1e-6):
    return rms_norm(query, query_weight, eps), rms_norm(key, key_weight, eps)


def rotate(x, positions, frequencies, layout="half"):
    angle = torch.as_tensor(positions)[..., None] * torch.as_tensor(frequencies.inverse)
    cos, sin = (f(angle).to(x.dtype) * frequencies.attention_factor for f in (torch.cos, torch.sin))
    width, interleaved = 2 * angle.shape[-1], layout == "interleaved"
    part = x[..., :width]
    first, second = part.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else part.chunk(2, -1)
    turned = [first * cos - second * sin, first * sin + second * cos]
    turned = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    return torch.cat([turned, x[..., width:]], -1)


def router_z_loss(logits):
    return (torch.logsumexp(logits, -1) ** 2).mean()


def embed_patches(pixels, kernel, bias=None, class_token=None, positions=None):
    tokens = F.conv2d(pixels[None], kernel, bias, stride=kernel.shape[-2:])[0].flatten(1).T
    tokens = tokens if class_token is None else torch.cat([class_token[None], tokens])
    return tokens if positions is None else tokens + positions


FUNCTIONS = {
    function.__name__: function
    for function in (
        attention, attention_weights, blockwise_attention, causal_convolution, decay_gate, delta_rule,
        delta_write, elu_plus_one, embed_patches, gate_output, gated_norm, gated_write, latent_read,
        layer_norm, linear_attention, qk_norm, rms_norm, rotate, router_z_loss, selective_scan, softmax,
        state_space_dual, unit_key,
    )
} | {"grouped_attention": attention}  # fmt: skip
"""The mechanisms that have published gradients."""
