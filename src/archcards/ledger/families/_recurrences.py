"""Layers whose memory does not grow: state spaces, the delta rule, linear attention, RG-LRU."""

from ..architecture import Recurrence, Tensor
from ._blocks import linear, rms_norm, vector

__all__ = [
    "gated_delta",
    "kimi_delta",
    "lightning",
    "mamba",
    "mamba2",
    "real_gated",
    "short_convolution",
]


def convolution(channels: int, width: int, bias: bool) -> tuple[Tensor, ...]:
    """A causal convolution along time, one kernel a channel."""
    kernel = (Tensor("convolution", (channels, width), "kernel"),)
    return (*kernel, vector("convolution bias", channels)) if bias else kernel


def mamba(
    hidden: int,
    inner: int,
    state: int,
    rank: int,
    kernel: int,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    norms: bool = False,
    heads: int = 1,
) -> Recurrence:
    """Mamba's selective scan: `inner` channels with `state` memory entries each.

    `heads` split the input-dependent projections (Zamba); `norms` are Jamba's, on step, B and C.
    """
    share = inner // heads
    tensors = (
        *linear("in", hidden, 2 * inner, bias),
        *convolution(inner, kernel, conv_bias),
        Tensor("step, B and C", (heads, rank + 2 * state, share)),
        Tensor("step up", (heads, share, rank)),
        vector("step bias", inner),
        vector("A", inner, state),
        vector("D", inner),
        *linear("out", inner, hidden, bias),
    )
    if norms:
        tensors += rms_norm("step", rank) + rms_norm("B", state) + rms_norm("C", state)
    return Recurrence(
        "mamba",
        inner,
        state,
        1,
        2,
        tensors,
        inputs=((inner, 1),),
        kernel=kernel,
        chunks=False,
        component="mamba",
    )


def mamba2(
    hidden: int,
    heads: int,
    width: int,
    groups: int,
    state: int,
    kernel: int,
    *,
    bias: bool = False,
    conv_bias: bool = True,
    norm: bool = True,
    out_bias: bool | None = None,
) -> Recurrence:
    """Mamba-2: `heads` memories of `state` by `width`; B and C shared by the heads of a group."""
    inner = heads * width
    channels = inner + 2 * groups * state
    tensors = (
        *linear("in", hidden, inner + channels + heads, bias),
        *convolution(channels, kernel, conv_bias),
        vector("step bias", heads),
        vector("A", heads),
        vector("D", heads),
        *(rms_norm("gated", inner) if norm else ()),
        *linear("out", inner, hidden, bias if out_bias is None else out_bias),
    )
    return Recurrence(
        "mamba2",
        heads,
        state,
        width,
        2,
        tensors,
        inputs=((heads, width), (groups, 2 * state)),
        kernel=kernel,
        score_heads=groups,
        component="mamba",
    )


def gated_delta(
    hidden: int, key_heads: int, value_heads: int, key_width: int, value_width: int, kernel: int
) -> Recurrence:
    """Gated DeltaNet as Qwen3-Next has it: a memory per value head, one decay per head."""
    keys, values = key_heads * key_width, value_heads * value_width
    tensors = (
        *linear("query, key, value and gate", hidden, 2 * keys + 2 * values),
        *linear("beta and decay", hidden, 2 * value_heads),
        *convolution(2 * keys + values, kernel, False),
        vector("decay bias", value_heads),
        vector("A", value_heads),
        *rms_norm("gated", value_width),
        *linear("output", values, hidden),
    )
    return Recurrence(
        "gated_delta",
        value_heads,
        key_width,
        value_width,
        3,
        tensors,
        inputs=((key_heads, 2 * key_width), (value_heads, value_width)),
        kernel=kernel,
        component="linear_attention",
    )


def kimi_delta(hidden: int, heads: int, width: int, kernel: int) -> Recurrence:
    """Kimi Delta Attention: one decay per key channel, from a projection of low rank."""
    inner = heads * width
    tensors = (
        *linear("query", hidden, inner),
        *linear("key", hidden, inner),
        *linear("value", hidden, inner),
        *convolution(3 * inner, kernel, False),
        *linear("decay down", hidden, width),
        *linear("decay up", width, inner),
        vector("decay bias", inner),
        vector("A", heads),
        *linear("beta", hidden, heads),
        *linear("gate down", hidden, width),
        *linear("gate up", width, inner),
        *rms_norm("gated", width),
        *linear("output", inner, hidden),
    )
    return Recurrence(
        "kimi_delta",
        heads,
        width,
        width,
        3,
        tensors,
        inputs=((heads, 3 * width),),
        kernel=kernel,
        component="linear_attention",
    )


def lightning(hidden: int, heads: int, width: int) -> Recurrence:
    """Lightning attention (MiniMax-01): linear attention with a fixed decay per head."""
    inner = heads * width
    tensors = (
        *linear("query, key and value", hidden, 3 * inner),
        *linear("gate", hidden, inner),
        *rms_norm("output", inner),
        *linear("output", inner, hidden),
    )
    return Recurrence("lightning", heads, width, width, 2, tensors, component="linear_attention")


def real_gated(hidden: int, width: int, heads: int, kernel: int) -> Recurrence:
    """RG-LRU (RecurrentGemma): one number a channel; both gates by blocks of a head's width."""
    block = width // heads
    gates = (
        Tensor("input gate", (heads, block, block)),
        vector("input gate bias", width),
        Tensor("recurrence gate", (heads, block, block)),
        vector("recurrence gate bias", width),
    )
    tensors = (
        *linear("branch", hidden, width, True),
        *linear("in", hidden, width, True),
        *convolution(width, kernel, True),
        *gates,
        vector("recurrence", width),
        *linear("out", width, hidden, True),
    )
    return Recurrence(
        "rg_lru", width, 1, 1, 1, tensors, inputs=((width, 1),), kernel=kernel, chunks=False
    )


def short_convolution(hidden: int, kernel: int, bias: bool) -> Recurrence:
    """A gated convolution along time and nothing else (LFM2): it keeps only its past inputs."""
    tensors = (
        *linear("in", hidden, 3 * hidden, bias),
        *convolution(hidden, kernel, bias),
        *linear("out", hidden, hidden, bias),
    )
    return Recurrence(
        "short_convolution",
        hidden,
        0,
        0,
        0,
        tensors,
        inputs=((hidden, 1),),
        kernel=kernel,
        chunks=False,
        component="convolution",
    )
