"""Selective state spaces: a recurrence whose step size, input and read-out depend on the input.

Arrays end in `(..., time, feature)`, heads right before time; leading axes broadcast. The state of
Mamba-1 is `(..., channel, N)`, that of Mamba-2 `(..., head, N, P)`, which is `(..., key, value)`.
A step decays the state, writes, and then reads.
"""

import math

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import broadcast_leading, one_of, real_array, real_number, same_size, shown
from ._gates import sigmoid
from .linear import linear_attention

__all__ = ["causal_convolution", "selective_scan", "silu", "state_space_dual"]


def selective_scan(
    u: Float[ndarray, "*#batch time channel"],
    dt: Float[ndarray, "*#batch time channel"],
    A: Float[ndarray, "channel N"],
    B: Float[ndarray, "*#batch time N"],
    C: Float[ndarray, "*#batch time N"],
    *,
    D: Float[ndarray, " channel"] | None = None,
    z: Float[ndarray, "*#batch time channel"] | None = None,
    dt_bias: Float[ndarray, " channel"] | None = None,
    dt_softplus: bool = False,
    discretisation: str = "exponential_euler",
    state: Float[ndarray, "*#batch channel N"] | None = None,
    form: str = "recurrent",
) -> tuple[Float[ndarray, "... time channel"], Float[ndarray, "... channel N"]]:
    """Scan the diagonal state spaces of Mamba-1, one for each channel.

    $$h_t = \\bar A_t \\odot h_{t-1} + \\bar B_t u_t, \\qquad
    y_t = (C_t \\cdot h_t + D u_t)\\, \\text{silu}(z_t), \\qquad \\bar A_t = e^{\\Delta_t A}$$

    $$\\text{Euler: } \\bar B_t = \\Delta_t B_t, \\qquad
    \\text{zero-order hold: } \\bar B_t = \\frac{e^{\\Delta_t A} - 1}{A}\\, B_t$$

    The paper derives the hold and its code computes Euler's rule; the ratio
    $(e^{\\Delta A} - 1) / (\\Delta A)$ tends to 1 for small steps. The associative form computes
    the same by composing steps in pairs, so that all prefixes are known after $\\log_2$ rounds,

    $$(a_2, b_2) \\circ (a_1, b_1) = (a_2 a_1,\\; a_2 b_1 + b_2)$$

    Args:
        u: The input.
        dt: The step size $\\Delta$ of each channel; at least 0 once bias and softplus are applied.
        A: The rates, at most 0: models store $\\ln(-A)$.
        B: How the input enters the state.
        C: How the state is read.
        D: What of the input is added to the output, before the gate.
        z: The gate, before its silu; no gate unless given.
        dt_bias: Added to `dt`, before the softplus.
        dt_softplus: Whether to take the softplus of `dt`.
        discretisation: `"exponential_euler"` or `"zero_order_hold"`.
        state: The state to start from; zero unless given.
        form: `"recurrent"` or `"associative"`.

    Returns:
        The outputs and the state after the last step, from which the next call can go on.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.

    Source:
        Gu & Dao 2023, arXiv 2312.00752, equations 1-4 and algorithm 2; the scan: section 3.3.

    Example:
        >>> ones, halved = [[1.0], [1.0]], [[-np.log(2.0)]]
        >>> y, state = selective_scan([[4.0], [0.0]], ones, halved, ones, ones)
        >>> y.ravel()
        array([4., 2.])
    """
    one_of("discretisation", discretisation, ("exponential_euler", "zero_order_hold"))
    one_of("form", form, ("recurrent", "associative"))
    u = real_array("u", u, min_ndim=2)
    time, channels = u.shape[-2:]
    A = _rates(A, 2)
    same_size("channel", ("u", channels), ("A", A.shape[0]))
    gate = None if z is None else _steps("z", z, time, channels, "channel")
    B = _steps("B", B, time, A.shape[1], "N")
    C = _steps("C", C, time, A.shape[1], "N")
    dt = _steps("dt", dt, time, channels, "channel")
    skip = 0.0 if D is None else real_array("D", D, shape=(channels,))
    bias = 0.0 if dt_bias is None else real_array("dt_bias", dt_bias, shape=(channels,))
    h = np.zeros(A.shape) if state is None else real_array("state", state, min_ndim=2)
    same_size("channel", ("u", channels), ("state", h.shape[-2]))
    same_size("N", ("A", A.shape[1]), ("state", h.shape[-1]))
    arrays = {"u": u, "dt": dt, "B": B, "C": C, "state": h} | ({} if z is None else {"z": gate})
    leading = broadcast_leading({name: array.shape[:-2] for name, array in arrays.items()})
    dt = _step_sizes(dt + bias, dt_softplus)

    h = np.broadcast_to(h, (*leading, *A.shape)).copy()
    scan = _scan_steps if form == "recurrent" else _scan_pairs
    y, h = scan(u, dt, A, B, C, h, discretisation == "zero_order_hold")
    y = y + skip * u
    return (y if gate is None else y * silu(gate)), h


def _discretised(u, dt, A, B, hold):
    """Return the decay of the state in each step and what is added to it: (..., channel, N)."""
    exponent = dt[..., None] * A
    added = (dt * u)[..., None] * B[..., None, :]
    if hold:
        with np.errstate(invalid="ignore"):
            ratio = np.where(exponent == 0, 1.0, np.expm1(exponent) / exponent)
        added = ratio * added
    return np.exp(exponent), added


def _scan_steps(u, dt, A, B, C, h, hold):
    y = np.empty((*h.shape[:-2], *u.shape[-2:]))
    for t in range(u.shape[-2]):
        decay, added = _discretised(u[..., t, :], dt[..., t, :], A, B[..., t, :], hold)
        h = decay * h + added
        y[..., t, :] = np.einsum("...cn,...n->...c", h, C[..., t, :])
    return y, h


def _scan_pairs(u, dt, A, B, C, h, hold):
    time = u.shape[-2]
    decay, added = _discretised(u, dt, A, B, hold)
    states = np.broadcast_to(added, (*h.shape[:-2], *added.shape[-3:])).copy()
    states[..., :1, :, :] += decay[..., :1, :, :] * h[..., None, :, :]
    reach = 1  # states[t] and decay[t] stand for the steps t - reach + 1 … t
    while reach < time:
        later, earlier = np.s_[..., reach:, :, :], np.s_[..., :-reach, :, :]
        states[later] += decay[later] * states[earlier]
        decay[later] = decay[later] * decay[earlier]
        reach *= 2
    y = np.einsum("...tcn,...tn->...tc", states, C)
    return y, states[..., -1, :, :].copy() if time else h


def state_space_dual(
    x: Float[ndarray, "*#batch head time P"],
    dt: Float[ndarray, "*#batch head time"],
    A: Float[ndarray, " head"],
    B: Float[ndarray, "*#batch group time N"],
    C: Float[ndarray, "*#batch group time N"],
    *,
    D: Float[ndarray, " head"] | Float[ndarray, "head P"] | None = None,
    dt_bias: Float[ndarray, " head"] | None = None,
    dt_softplus: bool = True,
    dt_limit: tuple[float, float] = (0.0, math.inf),
    state: Float[ndarray, "*#batch head N P"] | None = None,
    form: str = "recurrent",
    chunk: int = 64,
) -> tuple[Float[ndarray, "... head time P"], Float[ndarray, "... head N P"]]:
    """Scan the state spaces of Mamba-2, whose channels share one decay in each head.

    $$h_t = e^{\\Delta_t A}\\, h_{t-1} + B_t\\, (\\Delta_t x_t)^\\top, \\qquad
    y_t = h_t^\\top C_t + D \\odot x_t$$

    The duality: this *is* linear attention with $C$ for queries, $B$ for keys, $\\Delta x$ for
    values and $\\Delta A$ for log-decay. Its matrix form multiplies by the semiseparable
    $M_{ij} = C_i \\cdot B_j\\, e^{\\Delta_{j+1} A + \\dots + \\Delta_i A}$.

    Args:
        x: The input.
        dt: The step size $\\Delta$ of each head, before bias, softplus and limit, in that order.
        A: The rates, at most 0: models store $\\ln(-A)$.
        B: How the input enters the state; group $j$ serves `heads / groups` heads in a row.
        C: How the state is read; in the groups of `B`.
        D: What of the input is added to the output: one a head, or one a channel.
        dt_bias: Added to `dt`.
        dt_softplus: Whether to take the softplus of `dt`.
        dt_limit: The bounds that step sizes are then held to.
        state: The state to start from; zero unless given.
        form: `"recurrent"`, `"chunked"` or `"matrix"`.
        chunk: Steps in a chunk of the chunked form; the length need not be a multiple of it.

    Returns:
        The outputs and the state after the last step, from which the next call can go on.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.

    Source:
        Dao & Gu 2024, arXiv 2405.21060, sections 3, 5 and 6.

    Example:
        >>> x, ones, halved = [[[1.0], [0.0]]], [[[1.0], [1.0]]], [-np.log(2.0)]
        >>> y, state = state_space_dual(x, [[1.0, 1.0]], halved, ones, ones, dt_softplus=False)
        >>> y.ravel()
        array([1. , 0.5])
    """
    one_of("form", form, ("recurrent", "chunked", "matrix"))
    x = real_array("x", x, min_ndim=3)
    heads, time, width = x.shape[-3:]
    A = _rates(A, 1)
    same_size("head", ("x", heads), ("A", A.shape[0]))
    dt = real_array("dt", dt, min_ndim=2)
    same_size("head", ("x", heads), ("dt", dt.shape[-2]))
    same_size("time", ("x", time), ("dt", dt.shape[-1]))
    B = real_array("B", B, min_ndim=3)
    C = real_array("C", C, min_ndim=3)
    groups, _, N = B.shape[-3:]
    same_size("time", ("x", time), ("B", B.shape[-2]))
    same_size("time", ("x", time), ("C", C.shape[-2]))
    same_size("group", ("B", groups), ("C", C.shape[-3]))
    same_size("N", ("B", N), ("C", C.shape[-1]))
    if groups == 0 or heads % groups:
        raise ValueError(f"B must have groups that divide the {heads} heads of x, got {groups}")
    bias = np.zeros(heads) if dt_bias is None else real_array("dt_bias", dt_bias, shape=(heads,))
    skip = np.zeros(heads) if D is None else real_array("D", D, min_ndim=1)
    if skip.shape not in ((heads,), (heads, width)):
        raise ValueError(f"D must have shape ({heads},) or ({heads}, {width}), got {skip.shape}")
    skip = skip.reshape(heads, 1, -1)
    limits = _limits(dt_limit)
    shapes = {"x": x.shape[:-3], "dt": dt.shape[:-2], "B": B.shape[:-3], "C": C.shape[:-3]}
    if state is not None:
        state = real_array("state", state, min_ndim=3)
        same_size("head", ("x", heads), ("state", state.shape[-3]))
        same_size("N", ("B", N), ("state", state.shape[-2]))
        same_size("P", ("x", width), ("state", state.shape[-1]))
        shapes["state"] = state.shape[:-3]
    leading = broadcast_leading(shapes)
    dt = _step_sizes(dt + bias[:, None], dt_softplus, limits)

    B, C = (np.repeat(array, heads // groups, axis=-3) for array in (B, C))
    y, state = linear_attention(
        C,
        B,
        dt[..., None] * x,
        log_decay=np.broadcast_to(dt * A[:, None], (*leading, heads, time)),
        state=state,
        form="parallel" if form == "matrix" else form,
        chunk=chunk,
    )
    return y + skip * x, state


def causal_convolution(
    x: Float[ndarray, "*batch time channel"],
    weight: Float[ndarray, "channel width"],
    bias: Float[ndarray, " channel"] | None = None,
) -> Float[ndarray, "*batch time channel"]:
    """Weigh the last few inputs of each channel; before the first input there are zeros.

    $$y_t = \\text{bias} + \\sum_{w=1}^{W} \\text{weight}_w \\odot x_{t - W + w}$$

    The last weight is that of the present input. To go on after a past, put its last $W - 1$ inputs
    before `x` and drop as many outputs.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Gu & Dao 2023, arXiv 2312.00752, section 3.4; weights laid out as in its code.

    Example:
        >>> causal_convolution([[1.0], [2.0], [4.0]], [[10.0, 1.0]]).ravel()
        array([ 1., 12., 24.])
    """
    x = real_array("x", x, min_ndim=2)
    weight = real_array("weight", weight, ndim=2)
    channels, width = weight.shape
    same_size("channel", ("x", x.shape[-1]), ("weight", channels))
    if width == 0:
        raise ValueError("weight must have at least one tap, got none")
    bias = 0.0 if bias is None else real_array("bias", bias, shape=(channels,))
    padding = np.zeros((*x.shape[:-2], width - 1, channels))
    past = np.concatenate([padding, x], axis=-2)
    time = x.shape[-2]
    return bias + sum(weight[:, w] * past[..., w : w + time, :] for w in range(width))


def silu(x: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"] | np.float64:
    """Gate a number by its own logistic sigmoid.

    $$\\text{silu}(x) = \\frac{x}{1 + e^{-x}}$$

    Raises:
        ValueError: If a number is not finite.

    Source:
        Ramachandran et al. 2017, arXiv 1710.05941.

    Example:
        >>> silu([0.0, -1000.0])
        array([ 0., -0.])
    """
    x = real_array("x", x)
    return x * sigmoid(x)


def _rates(A, ndim):
    A = real_array("A", A, ndim=ndim)
    if A.max(initial=-math.inf) > 0:
        raise ValueError(f"A must be at most 0, as -exp(A_log) is, got {A.max()}")
    return A


def _steps(name, value, time, width, axis):
    """Return an array `(..., time, width)`."""
    array = real_array(name, value, min_ndim=2)
    same_size("time", ("u", time), (name, array.shape[-2]))
    same_size(axis, ("A", width), (name, array.shape[-1]))
    return array


def _limits(dt_limit):
    if not isinstance(dt_limit, tuple | list) or len(dt_limit) != 2:
        raise ValueError(f"dt_limit must be a pair (low, high), got {shown(dt_limit)}")
    low = real_number("dt_limit's low", dt_limit[0], minimum=0)
    return low, real_number("dt_limit's high", dt_limit[1], minimum=low, infinity=True)


def _step_sizes(dt, softplus, limits=(0, math.inf)):
    """Return the step sizes: the softplus is taken before the limits apply."""
    dt = np.logaddexp(0, dt) if softplus else dt
    if dt.min(initial=math.inf) < 0:
        raise ValueError(f"dt must be at least 0 after dt_bias, or take a softplus, got {dt.min()}")
    return np.clip(dt, *limits)
