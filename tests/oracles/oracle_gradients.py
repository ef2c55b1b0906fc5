"""Gradients of the published cases, by PyTorch's automatic differentiation in float64.

Each function below is a mechanism in PyTorch, term by term; its results are held to the reference,
and then it is differentiated. The gradient published for a case is that of Σ g·y over its results
y, with the fixed numbers g = numbers(*y.shape, seed=90), 91 for the second result and so on.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from comparison import gradients
from float64 import float64

from archcards import cases
from archcards.cases.numbers import numbers


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


FUNCTIONS = {
    "attention": attention,
    "grouped_attention": attention,
    "delta_rule": delta_rule,
    "selective_scan": selective_scan,
    "state_space_dual": state_space_dual,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "causal_convolution": causal_convolution,
    "softmax": softmax,
}


@pytest.mark.parametrize("mechanism", FUNCTIONS)
def test_gradients(mechanism):
    published = cases.of(mechanism)
    for case in published.cases:
        if case.size > 2000 or case.arguments.get("empty"):
            continue  # long cases say nothing new; a row that reads nothing has no gradient
        with float64(gradients=True):
            given, variables = {}, {}
            for name, value in case.arguments.items():
                if isinstance(value, np.ndarray):
                    value = torch.tensor(value)
                    if value.is_floating_point() and torch.isfinite(value).all():
                        variables[name] = value.requires_grad_()
                given[name] = value
            found = FUNCTIONS[mechanism](**given)
            found = found if isinstance(found, tuple) else (found,)
            for (name, expected), y in zip(published.expected(case).items(), found, strict=True):
                error = abs(y.detach().numpy() - expected).max()
                assert error <= 1e-10 * max(1, abs(expected).max()), (case.name, name)
            total = sum(
                (torch.tensor(numbers(*y.shape, seed=90 + i)) * y).sum() for i, y in enumerate(found)
            )
            for name, gradient in zip(
                variables, torch.autograd.grad(total, list(variables.values())), strict=True
            ):
                gradients(mechanism, case.slug, name, gradient.numpy())
