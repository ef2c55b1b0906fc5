"""The blocks of Mamba-1 and Mamba-2: projections, a short convolution, a state space and a gate.

Projection matrices are `(input, output)`, so that `x @ weight` applies them.
"""

from dataclasses import dataclass

import numpy as np
from einops import rearrange
from jaxtyping import Float
from numpy import ndarray

from ._checks import instance, integer, real_array, same_size
from .norms import gated_norm
from .ssm import causal_convolution, selective_scan, silu, state_space_dual

__all__ = [
    "Mamba2Weights",
    "MambaWeights",
    "RecurrentCache",
    "mamba2_block",
    "mamba_block",
]


@dataclass(frozen=True, eq=False)
class RecurrentCache:
    """What a recurrent block keeps between calls: its size does not depend on the past's length.

    Attributes:
        inputs: The last $W - 1$ inputs of the convolution.
        state: The state of the recurrence.

    Example:
        >>> RecurrentCache(np.zeros((3, 8)), np.zeros((8, 4))).scalars
        56
    """

    inputs: Float[ndarray, "*batch past channel"]
    state: Float[ndarray, "..."]

    @property
    def scalars(self) -> int:
        """Number of scalars held."""
        return self.inputs.size + self.state.size


@dataclass(frozen=True, eq=False)
class MambaWeights:
    """Weights of a Mamba-1 block; `inner` channels, states of size `N`, steps of rank `rank`.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.
    """

    input: Float[ndarray, "model 2*inner"]
    convolution: Float[ndarray, "inner width"]
    convolution_bias: Float[ndarray, " inner"]
    selection: Float[ndarray, "inner rank+2*N"]
    dt: Float[ndarray, "rank inner"]
    dt_bias: Float[ndarray, " inner"]
    A_log: Float[ndarray, "inner N"]
    D: Float[ndarray, " inner"]
    output: Float[ndarray, "inner model"]

    def __post_init__(self):
        inner, N = real_array("A_log", self.A_log, ndim=2).shape
        rank = real_array("dt", self.dt, ndim=2).shape[0]
        _freeze(
            self,
            input=(None, 2 * inner),
            convolution=(inner, None),
            convolution_bias=(inner,),
            selection=(inner, rank + 2 * N),
            dt=(rank, inner),
            dt_bias=(inner,),
            A_log=(inner, N),
            D=(inner,),
            output=(inner, None),
        )


@dataclass(frozen=True, eq=False)
class Mamba2Weights:
    """Weights of a Mamba-2 block; `inner` = heads · P channels, states of size `N` in `groups`.

    The input projection makes, in this order: gate (inner), x (inner), B and C (groups · N each),
    dt (head). The convolution runs over x, B and C.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.
    """

    input: Float[ndarray, "model 2*inner+2*groups*N+head"]
    convolution: Float[ndarray, "inner+2*groups*N width"]
    convolution_bias: Float[ndarray, " inner+2*groups*N"]
    dt_bias: Float[ndarray, " head"]
    A_log: Float[ndarray, " head"]
    D: Float[ndarray, " head"]
    norm: Float[ndarray, " inner"]
    output: Float[ndarray, "inner model"]
    groups: int = 1

    def __post_init__(self):
        groups = integer("groups", self.groups, minimum=1)
        heads = real_array("A_log", self.A_log, ndim=1).size
        inner = real_array("norm", self.norm, ndim=1).size
        channels = real_array("convolution", self.convolution, ndim=2).shape[0]
        for name, size, parts in (
            ("norm", inner, heads),
            ("norm", inner, groups),
            ("A_log", heads, groups),
            ("convolution", channels - inner, 2 * groups),
        ):
            if parts == 0 or size <= 0 or size % parts:
                raise ValueError(f"{name} must divide into {parts} equal parts, got {size}")
        _freeze(
            self,
            input=(None, inner + channels + heads),
            convolution=(channels, None),
            convolution_bias=(channels,),
            dt_bias=(heads,),
            A_log=(heads,),
            D=(heads,),
            norm=(inner,),
            output=(inner, None),
        )


def _freeze(weights, **shapes):
    for name, shape in shapes.items():
        array = real_array(name, getattr(weights, name), shape=shape)
        object.__setattr__(weights, name, array)
    same_size("model width", ("input", weights.input.shape[0]), ("output", weights.output.shape[1]))


def mamba_block(
    x: Float[ndarray, "*batch time model"],
    weights: MambaWeights,
    *,
    cache: RecurrentCache | None = None,
    form: str = "recurrent",
) -> tuple[Float[ndarray, "*batch time model"], RecurrentCache]:
    """Mix a sequence by the block of Mamba-1, without its norm and residual.

    $$[u, z] = x W_{\\text{in}}, \\quad u' = \\text{silu}(\\text{conv}(u)), \\quad
    [r, B, C] = u' W_{\\text{sel}}$$

    $$y = \\text{scan}(u', r W_{\\Delta}, -e^{A_{\\log}}, B, C)$$

    with the skip $D u'$ and the gate $\\text{silu}(z)$ inside the scan; the output is
    $y\\, W_{\\text{out}}$.

    Args:
        x: The input.
        weights: The weights.
        cache: What the previous call returned; nothing came before unless given.
        form: As in `selective_scan`.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Gu & Dao 2023, arXiv 2312.00752, section 3.4 and figure 3.

    Example:
        >>> zeros, one = np.zeros, np.ones((1, 1))
        >>> weights = MambaWeights(
        ...     input=np.ones((1, 2)), convolution=one, convolution_bias=zeros(1),
        ...     selection=zeros((1, 3)), dt=one, dt_bias=zeros(1), A_log=zeros((1, 1)),
        ...     D=np.ones(1), output=one)
        >>> y, cache = mamba_block([[0.0], [1.0]], weights)  # B is zero: only the skip is left
        >>> np.allclose(y[1], silu(1.0) ** 2)
        True
    """
    x = _input(x, weights, MambaWeights, cache)
    (rank, inner), N = weights.dt.shape, weights.A_log.shape[1]
    u, z = np.split(x @ weights.input, [inner], axis=-1)
    u, inputs = _convolved(u, weights, cache)
    low_rank, B, C = np.split(u @ weights.selection, [rank, rank + N], axis=-1)
    y, state = selective_scan(
        u,
        low_rank @ weights.dt,
        -np.exp(weights.A_log),
        B,
        C,
        D=weights.D,
        z=z,
        dt_bias=weights.dt_bias,
        dt_softplus=True,
        state=None if cache is None else cache.state,
        form=form,
    )
    return y @ weights.output, RecurrentCache(inputs, state)


def mamba2_block(
    x: Float[ndarray, "*batch time model"],
    weights: Mamba2Weights,
    *,
    cache: RecurrentCache | None = None,
    dt_limit: tuple[float, float] = (0.0, np.inf),
    eps: float = 1e-5,
    form: str = "recurrent",
    chunk: int = 64,
) -> tuple[Float[ndarray, "*batch time model"], RecurrentCache]:
    """Mix a sequence by the block of Mamba-2, without its outer norm and residual.

    $$[z, s, \\Delta] = x W_{\\text{in}}, \\quad [u, B, C] = \\text{silu}(\\text{conv}(s)), \\quad
    y = \\text{ssd}(u, \\Delta, -e^{A_{\\log}}, B, C) + D u$$

    and the output is the gated norm of $y$ by $z$, one for each group, times $W_{\\text{out}}$.

    Args:
        x: The input.
        weights: The weights.
        cache: What the previous call returned; nothing came before unless given.
        dt_limit: As in `state_space_dual`.
        eps: Of the norm.
        form: As in `state_space_dual`.
        chunk: As in `state_space_dual`.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.

    Source:
        Dao & Gu 2024, arXiv 2405.21060, section 7.1 and figure 6.
    """
    x = _input(x, weights, Mamba2Weights, cache)
    inner, heads, groups = weights.norm.size, weights.A_log.size, weights.groups
    z, inputs, dt = np.split(x @ weights.input, [inner, -heads], axis=-1)
    convolved, past = _convolved(inputs, weights, cache)
    u, B, C = np.split(convolved, [inner, (inner + convolved.shape[-1]) // 2], axis=-1)
    y, state = state_space_dual(
        rearrange(u, "... time (head p) -> ... head time p", head=heads),
        rearrange(dt, "... time head -> ... head time"),
        -np.exp(weights.A_log),
        rearrange(B, "... time (group n) -> ... group time n", group=groups),
        rearrange(C, "... time (group n) -> ... group time n", group=groups),
        D=weights.D,
        dt_bias=weights.dt_bias,
        dt_limit=dt_limit,
        state=None if cache is None else cache.state,
        form=form,
        chunk=chunk,
    )
    y = rearrange(y, "... head time p -> ... time (head p)")
    y = gated_norm(y, z, weights.norm, groups=groups, eps=eps)
    return y @ weights.output, RecurrentCache(past, state)


def _input(x, weights, kind, cache):
    instance("weights", weights, kind)
    if cache is not None:
        instance("cache", cache, RecurrentCache)
    x = real_array("x", x, min_ndim=2)
    same_size("model width", ("input", weights.input.shape[0]), ("x", x.shape[-1]))
    return x


def _convolved(inputs, weights, cache):
    """Return the activated convolution and the inputs that the next call needs."""
    past = weights.convolution.shape[1] - 1
    shape = (*inputs.shape[:-2], past, inputs.shape[-1])
    before = np.zeros(shape) if cache is None else real_array("cache", cache.inputs, shape=shape)
    extended = np.concatenate([before, inputs], axis=-2)
    convolved = causal_convolution(extended, weights.convolution, weights.convolution_bias)
    return silu(convolved[..., past:, :]), extended[..., inputs.shape[-2] :, :]
