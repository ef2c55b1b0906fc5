"""Selective state spaces, wrong in named ways."""

import math

import numpy as np

from ._reference import causal_convolution, selective_scan, silu, state_space_dual
from ._recurrence import causal, chunk_by_chunk, step_by_step
from ._registry import convention, mistake

__all__: list[str] = []


# Mamba-1: scans that are the reference with other arguments


@convention("selective_scan", "other discretisation of B")
def scan_by_the_other_rule(
    u, dt, A, B, C, *, discretisation="exponential_euler", **options
):
    """Enter the input by zero-order hold where Euler's rule is asked for, and the reverse.

    Seen in: arXiv 2312.00752, which derives the hold while its code computes Euler's rule (mamba
    #114, annotated-mamba #4).
    """
    rules = {"exponential_euler": "zero_order_hold", "zero_order_hold": "exponential_euler"}
    return selective_scan(u, dt, A, B, C, discretisation=rules[discretisation], **options)


@mistake("selective_scan", "skip after the gate")
def scan_with_late_skip(u, dt, A, B, C, *, D=None, **options):
    """Add D u to the gated output, so that the gate does not reach it.

    Seen in: readings of the block's figure, arXiv 2312.00752, figure 3, which leaves D out.
    """
    y, state = selective_scan(u, dt, A, B, C, **options)
    return (y if D is None else y + np.multiply(D, u)), state


@mistake("selective_scan", "skip left out")
def scan_without_skip(u, dt, A, B, C, *, D=None, **options):
    """Drop D u.

    Seen in: ports of the equations, in which D is left out as a residual connection.
    """
    return selective_scan(u, dt, A, B, C, **options)


@mistake("selective_scan", "gate without its silu")
def scan_with_a_linear_gate(u, dt, A, B, C, *, z=None, **options):
    """Multiply by z itself.

    Seen in: ports that expect the activation inside the projection.
    """
    y, state = selective_scan(u, dt, A, B, C, **options)
    return (y if z is None else y * np.asarray(z)), state


@convention("selective_scan", "state as (N, channel)")
def scan_with_transposed_state(u, dt, A, B, C, *, state=None, **options):
    """Keep the transpose of the state: the outputs agree.

    Seen in: kernels that put channels last for contiguous loads.
    """
    state = None if state is None else np.swapaxes(state, -1, -2)
    y, state = selective_scan(u, dt, A, B, C, state=state, **options)
    return y, np.swapaxes(state, -1, -2)


# Mamba-1: scans with a changed step


def _positive(dt, softplus):
    return np.logaddexp(0, dt) if softplus else np.asarray(dt, dtype=float)


def _step_size(dt, bias, softplus):
    return _positive(dt + bias, softplus)


def _hold(step, A):
    """∫ e^(A s) ds over a step: what the input is multiplied by under zero-order hold."""
    safe = np.where(A == 0, 1.0, A)
    return np.where(A == 0, step, np.expm1(step * A) / safe)


def _scan(
    u,
    dt,
    A,
    B,
    C,
    *,
    D=None,
    z=None,
    dt_bias=None,
    dt_softplus=False,
    discretisation="exponential_euler",
    state=None,
    form="recurrent",
    **change,
):
    """The reference written out, with the steps that controls change as arguments."""
    u, dt, A, B, C = (np.asarray(x, dtype=float) for x in (u, dt, A, B, C))
    bias = 0.0 if dt_bias is None else np.asarray(dt_bias, dtype=float)
    dt = change.get("step_size", _step_size)(dt, bias, dt_softplus)
    A = change.get("rate", np.array)(A)
    hold = discretisation == "zero_order_hold"
    length = change.get("length", _hold if hold else lambda step, A: step)
    h = np.zeros(A.shape) if state is None else np.asarray(state, dtype=float)
    outputs = []
    for t in range(u.shape[-2]):
        step = dt[..., t, :, None]
        decay = change.get("decay", np.exp)(step * A)
        factor = length(step, A) * B[..., t, None, :]
        old, h = h, decay * h + factor * u[..., t, :, None]
        outputs.append(np.sum((old if change.get("early") else h) * C[..., t, None, :], axis=-1))
    y = np.stack(np.broadcast_arrays(*outputs), axis=-2)
    y = y if D is None else y + np.multiply(D, u)
    return (y if z is None else y * silu(z)), h


def _late_bias(dt, bias, softplus):
    return _positive(dt, softplus) + bias


@mistake("selective_scan", "softplus before the bias", _scan, step_size=_late_bias)
def scan_with_late_bias():
    """Add the bias to the softplus.

    Seen in: projections whose own bias is kept apart, so that the two are added in the wrong order.
    """


def _as_it_comes(dt, bias, softplus):
    return dt + bias


@mistake("selective_scan", "softplus left out", _scan, step_size=_as_it_comes)
def scan_without_softplus():
    """Take the step size as it comes, negative ones included.

    Seen in: calls that forget `delta_softplus=True`, whose default is false.
    """


@mistake("selective_scan", "sign of A forgotten", _scan, rate=np.negative)
def scan_that_grows():
    """Take A = exp(A_log) for A = −exp(A_log): the state grows.

    Seen in: ports that load `A_log` and skip the minus sign.
    """


def _stored(A):
    return np.log(-A)


@mistake("selective_scan", "logarithm in place of A", _scan, rate=_stored)
def scan_by_the_stored_logarithm():
    """Use the stored A_log as A: rates below 1 decay by the wrong number, rates above 1 grow.

    Seen in: ports that load `A_log` and skip `-exp(A_log)`.
    """


def _no_length(step, A):
    return 1.0


@mistake("selective_scan", "B not multiplied by the step", _scan, length=_no_length)
def scan_with_an_undiscretised_input():
    """Discretise A and leave B as it is.

    Seen in: implementations that treat B as discrete already, as gated linear attention is.
    """


def _first_order(exponent):
    return 1 + exponent


@mistake("selective_scan", "first-order decay", _scan, decay=_first_order)
def scan_by_first_order():
    """Use 1 + ΔA in place of its exponential: unstable where a step exceeds −2/A.

    Seen in: Euler's rule taken for both, where the code takes it for B alone.
    """


@mistake("selective_scan", "read before the write", _scan, early=True)
def scan_read_early():
    """Read the output from the state of the step before.

    Seen in: loops that compute the output at the top.
    """


# Mamba-2


@mistake("state_space_dual", "dt limit before the softplus")
def dual_with_early_limit(
    x, dt, A, B, C, *, dt_bias=None, dt_softplus=True, dt_limit=(0.0, math.inf), **options
):
    """Hold the raw projection to the limits, and take the softplus then.

    Seen in: ports in which the clamp moved into the projection.
    """
    raw = np.asarray(dt, dtype=float)
    raw = raw if dt_bias is None else raw + np.asarray(dt_bias)[:, None]
    return state_space_dual(x, np.clip(raw, *dt_limit), A, B, C, dt_softplus=dt_softplus, **options)


@mistake("state_space_dual", "dt limit not applied")
def dual_without_limit(x, dt, A, B, C, *, dt_limit=(0.0, math.inf), **options):
    """Ignore the limits.

    Seen in: a library that applies them in the prefill and not in its decoding step.
    """
    return state_space_dual(x, dt, A, B, C, **options)


@mistake("state_space_dual", "softplus before the bias")
def dual_with_late_bias(x, dt, A, B, C, *, dt_bias=None, dt_softplus=True, **options):
    """Add the bias to the softplus.

    Seen in: projections whose own bias is kept apart, so that the two are added in the wrong order.
    """
    dt = _positive(dt, dt_softplus)
    dt = dt if dt_bias is None else np.maximum(dt + np.asarray(dt_bias)[:, None], 0)
    return state_space_dual(x, dt, A, B, C, dt_softplus=False, **options)


@mistake("state_space_dual", "groups tiled")
def dual_with_tiled_groups(x, dt, A, B, C, **options):
    """Serve head h by group h mod groups, where a group serves heads in a row.

    Seen in: `repeat` for `repeat_interleave`.
    """
    heads = np.shape(x)[-3]
    order = np.arange(heads) % np.shape(B)[-3]
    B, C = (np.asarray(array)[..., order, :, :] for array in (B, C))
    return state_space_dual(x, dt, A, B, C, **options)


@mistake("state_space_dual", "skip multiplied by the step")
def dual_with_scaled_skip(x, dt, A, B, C, *, D=None, **options):
    """Add D Δ x: the input was overwritten by Δ x before the skip.

    Seen in: ports around the reference `ssd`, which takes x · dt.
    """
    y, state = state_space_dual(x, dt, A, B, C, **options)
    if D is None:
        return y, state
    step = _step(dt, options)
    return y + _skip(D) * step[..., None] * np.asarray(x), state


@mistake("state_space_dual", "x multiplied by the step twice")
def dual_of_scaled_input(x, dt, A, B, C, *, D=None, **options):
    """Pass x · dt to a function that multiplies by dt itself.

    Seen in: the reference's minimal `ssd`, which takes x · dt and A · dt, beside its kernel, which
    takes x, dt and A.
    """
    step = _step(dt, options)
    y, state = state_space_dual(step[..., None] * np.asarray(x), dt, A, B, C, **options)
    return (y if D is None else y + _skip(D) * np.asarray(x)), state


@convention("state_space_dual", "x and A multiplied by the step beforehand")
def dual_of_discretised_input(x, dt, A, B, C, *, D=None, **options):
    """Take x as x · dt already; only the decay still needs dt.

    Seen in: the reference's minimal `ssd`, arXiv 2405.21060, listing 1.
    """
    step = _step(dt, options)[..., None]
    x = np.asarray(x, dtype=float)
    scaled = np.where(step > 0, x / np.where(step > 0, step, 1.0), 0.0)
    y, state = state_space_dual(scaled, dt, A, B, C, **options)
    return (y if D is None else y + _skip(D) * x), state


@convention("state_space_dual", "state as (P, N)")
def dual_with_transposed_state(x, dt, A, B, C, *, state=None, **options):
    """Keep the transpose of the state: the outputs agree.

    Seen in: the state of mamba_ssm, `(batch, head, P, N)`.
    """
    state = None if state is None else np.swapaxes(state, -1, -2)
    y, state = state_space_dual(x, dt, A, B, C, state=state, **options)
    return y, np.swapaxes(state, -1, -2)


def _step(dt, options):
    """The step sizes that the reference would use."""
    dt = np.asarray(dt, dtype=float)
    bias = options.get("dt_bias")
    dt = dt if bias is None else dt + np.asarray(bias)[:, None]
    dt = _positive(dt, options.get("dt_softplus", True))
    return np.clip(dt, *options.get("dt_limit", (0.0, math.inf)))


def _skip(D):
    D = np.asarray(D, dtype=float)
    return D.reshape(D.shape[0], 1, -1)


def _dual(run):
    """Give `run(query, key, value, exponent, chunk, state)` the mechanism's signature."""

    def dual(
        x,
        dt,
        A,
        B,
        C,
        *,
        D=None,
        dt_bias=None,
        dt_softplus=True,
        dt_limit=(0.0, math.inf),
        state=None,
        form="recurrent",
        chunk=64,
    ):
        x = np.asarray(x, dtype=float)
        options = {"dt_bias": dt_bias, "dt_softplus": dt_softplus, "dt_limit": dt_limit}
        step = _step(dt, options)[..., None]
        group = x.shape[-3] // np.shape(B)[-3]
        B, C = (np.repeat(np.asarray(array, dtype=float), group, axis=-3) for array in (B, C))
        y, state = run(C, B, step * x, step * np.asarray(A)[:, None, None], chunk, state)
        return (y if D is None else y + _skip(D) * x), state

    dual.__doc__, dual.__name__ = run.__doc__, run.__name__
    return dual


@mistake("state_space_dual", "sign of A forgotten")
@_dual
def dual_that_grows(query, key, value, exponent, chunk, state):
    """Take A = exp(A_log) for A = −exp(A_log): the state grows.

    Seen in: ports that load `A_log` and skip the minus sign.
    """

    def step(memory, key, value, beta, decay):
        memory = decay * memory + key * value
        return memory, memory

    return step_by_step(query, key, value, 1.0, np.exp(-exponent), step, state=state)


@mistake("state_space_dual", "read before the write")
@_dual
def dual_read_early(query, key, value, exponent, chunk, state):
    """Read the output from the state of the step before.

    Seen in: loops that compute the output at the top.
    """

    def step(memory, key, value, beta, decay):
        return memory, decay * memory + key * value

    return step_by_step(query, key, value, 1.0, np.exp(exponent), step, state=state)


@mistake("state_space_dual", "causal mask in place of the decay mask")
@_dual
def dual_under_the_causal_mask(query, key, value, exponent, chunk, state):
    """Multiply C Bᵀ by 0 and 1 inside a chunk, not by the decays.

    Seen in: ports that take the duality for plain linear attention.
    """
    return chunk_by_chunk(
        query, key, value, 1.0, exponent, chunk=chunk, state=state, scores=causal
    )


# The convolution and the norm of the blocks


@mistake("causal_convolution", "centred")
def convolution_that_looks_ahead(x, weight, bias=None):
    """Pad both sides alike: half of the taps read the future.

    Seen in: `Conv1d(padding="same")`; or padding W − 1 on both sides and cutting at the wrong end.
    """
    ahead = (np.shape(weight)[-1] - 1) // 2
    x = np.asarray(x, dtype=float)
    later = np.zeros((*x.shape[:-2], ahead, x.shape[-1]))
    y = causal_convolution(np.concatenate([x, later], axis=-2), weight, bias)
    return y[..., ahead:, :]


@convention("causal_convolution", "taps reversed")
def convolution_in_mathematics(x, weight, bias=None):
    """Let the first weight be that of the present: a convolution, not a correlation.

    Seen in: `numpy.convolve` and textbooks; deep-learning libraries correlate.
    """
    return causal_convolution(x, np.asarray(weight)[:, ::-1], bias)


@mistake("causal_convolution", "one step late")
def convolution_of_the_past(x, weight, bias=None):
    """Leave the present out.

    Seen in: decoding loops that push the new input into the buffer after they have read it.
    """
    x = np.asarray(x, dtype=float)
    late = np.concatenate([np.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    return causal_convolution(late, weight, bias)
