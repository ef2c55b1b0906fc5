"""The delta rule: a memory that is moved towards each value instead of added to.

Arrays end in `(..., time, feature)`, heads right before time; leading axes broadcast. The memory is
`(..., key, value)`. A step decays it, reads it for the error, writes, and reads it for the output.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import (
    broadcast_leading,
    integer,
    leading_within,
    one_of,
    real_array,
    real_number,
    same_size,
)
from ._decay import (
    between_steps,
    in_chunks,
    keep,
    log_decays,
    per_step_or_channel,
)

__all__ = ["decay_gate", "delta_rule", "delta_write", "gated_write", "unit_key"]


def delta_write(
    state: Float[ndarray, "*#batch key value"],
    key: Float[ndarray, "*#batch key"],
    value: Float[ndarray, "*#batch value"],
    beta: Float[ndarray, "*#batch"] | float,
) -> Float[ndarray, "... key value"]:
    """Move what a key reads from a memory a fraction of the way to a value.

    $$S' = S + \\beta\\, k\\, (v - S^\\top k)^\\top$$

    A write multiplies the error by $1 - \\beta\\, k \\cdot k$. With a unit key and $\\beta = 1$ it
    overwrites; a key orthogonal to it reads what it read before.

    Args:
        state: The memory.
        key: Where to write.
        value: What the key should read.
        beta: How far to go; any real number.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Schlag et al. 2021, arXiv 2102.11174, section 4.2.

    Example:
        >>> delta_write([[4.0]], [1.0], [10.0], 0.25)
        array([[5.5]])
    """
    return gated_write(state, key, value, beta, 1.0)


def gated_write(
    state: Float[ndarray, "*#batch key value"],
    key: Float[ndarray, "*#batch key"],
    value: Float[ndarray, "*#batch value"],
    beta: Float[ndarray, "*#batch"] | float,
    decay: Float[ndarray, "*#decays"] | float,
) -> Float[ndarray, "... key value"]:
    """Let a memory decay, then move what a key reads from the rest towards a value.

    $$S' = (I - \\beta\\, k k^\\top)\\, \\text{diag}(\\alpha)\\, S + \\beta\\, k v^\\top$$

    The error is read after the decay. With a decay per channel the two factors do not commute.

    Args:
        state: The memory.
        key: Where to write.
        value: What the key should read.
        beta: How far to go; any real number.
        decay: The factor $\\alpha$ itself, from 0 to 1: one, `(...)`, or one per key channel,
            `(..., key)`.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.

    Source:
        Yang et al. 2024, arXiv 2412.06464, section 3.1. Per channel: Kimi Team 2025, arXiv
        2510.26692, section 3.

    Example:
        >>> gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5)
        array([[4.]])
    """
    state = real_array("state", state, min_ndim=2)
    key = real_array("key", key, min_ndim=1)
    value = real_array("value", value, min_ndim=1)
    beta = real_array("beta", beta)
    decay = real_array("decay", decay)
    same_size("key width", ("state", state.shape[-2]), ("key", key.shape[-1]))
    same_size("value width", ("state", state.shape[-1]), ("value", value.shape[-1]))
    outside = decay[(decay < 0) | (decay > 1)]
    if outside.size:
        raise ValueError(f"decay must be from 0 to 1, got {outside[0]}")
    leading = broadcast_leading(
        {
            "state": state.shape[:-2],
            "key": key.shape[:-1],
            "value": value.shape[:-1],
            "beta": beta.shape,
        }
    )
    decay = per_step_or_channel("decay", decay, leading, (), key.shape[-1])
    return _write(state, key, value, beta, decay)


def delta_rule(
    query: Float[ndarray, "*#batch time key"],
    key: Float[ndarray, "*#batch time key"],
    value: Float[ndarray, "*#batch time value"],
    beta: Float[ndarray, "*#batch time"],
    *,
    log_decay: Float[ndarray, "*#decays"] | None = None,
    scale: float = 1.0,
    state: Float[ndarray, "*#batch key value"] | None = None,
    form: str = "recurrent",
    chunk: int = 16,
) -> tuple[Float[ndarray, "... time value"], Float[ndarray, "... key value"]]:
    """Correct a memory at each step and read it with the query.

    $$S_t = (I - \\beta_t k_t k_t^\\top)\\, \\text{diag}(\\alpha_t)\\, S_{t-1}
    + \\beta_t k_t v_t^\\top, \\qquad o_t = \\text{scale}\\; S_t^\\top q_t$$

    Without decay this is DeltaNet; with one decay per step, Gated DeltaNet; with one per step and
    key channel, Kimi Delta Attention.

    The chunked form computes the same with matrix products. Step $i$ of a chunk writes
    $k_i u_i^\\top$, where $u_i$ depends on the memory $S$ at the start of the chunk and on the
    earlier writes: a unit triangular system,

    $$(I + \\text{diag}(\\beta) A)\\, U = \\text{diag}(\\beta)\\, (V - (K \\odot D_0)\\, S), \\qquad
    A_{ij} = \\sum_c k_{ic}\\, k_{jc}\\, d_{ijc} \\text{ for } j < i$$

    with $d_{ij}$ the decay from step $j$ to $i$ and $D_0$ that from the start of the chunk. Its
    inverse $T$ does not depend on the memory, so for all chunks at once

    $$\\hat V = T\\, \\text{diag}(\\beta)\\, V, \\qquad
    \\hat K = T\\, \\text{diag}(\\beta)\\, (K \\odot D_0), \\qquad U = \\hat V - \\hat K S$$

    and chunk after chunk remains only $U$, with which linear attention with $U$ for the values
    does the rest.

    Args:
        query: What reads the memory.
        key: Where each step writes.
        value: What that key should read.
        beta: How far each step goes; any real number, in models from 0 to 1 or to 2.
        log_decay: $\\ln \\alpha$, at most 0; −∞ forgets everything. One per step, `(..., time)`, or
            one per step and key channel, `(..., time, key)`; none unless given.
        scale: Factor on the output.
        state: The memory to start from; zero unless given.
        form: `"recurrent"` or `"chunked"`.
        chunk: Steps $C$ in a chunk of the chunked form; the length need not be a multiple of it.
            A step takes $3 d_k d_v$ multiply-adds with the memory and about $C (3 d_k + 2 d_v)$
            inside its chunk, so that short chunks save work and long ones save calls.

    Returns:
        The outputs and the memory after the last step, from which the next call can go on.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.

    Source:
        Schlag et al. 2021, arXiv 2102.11174, section 4.2. Chunks: Yang et al. 2024, arXiv
        2406.06484, section 3. Decay: Yang et al. 2024, arXiv 2412.06464, section 3. Decay per
        channel: Kimi Team 2025, arXiv 2510.26692, section 3.

    Example:
        >>> key = [[1.0, 0.0], [1.0, 0.0]]
        >>> output, state = delta_rule(key, key, [[5.0], [9.0]], [1.0, 0.5])
        >>> output.ravel()
        array([5., 7.])
    """
    one_of("form", form, ("recurrent", "chunked"))
    query = real_array("query", query, min_ndim=2)
    key = real_array("key", key, min_ndim=2)
    value = real_array("value", value, min_ndim=2)
    beta = real_array("beta", beta, min_ndim=1)
    time, width = query.shape[-2:]
    same_size("time", ("query", time), ("key", key.shape[-2]))
    same_size("width", ("query", width), ("key", key.shape[-1]))
    same_size("time", ("query", time), ("value", value.shape[-2]))
    same_size("time", ("query", time), ("beta", beta.shape[-1]))
    scale = real_number("scale", scale)
    chunk = integer("chunk", chunk, minimum=1)
    memory = np.zeros((width, value.shape[-1]))
    if state is not None:
        memory = real_array("state", state, min_ndim=2)
        same_size("key width", ("key", width), ("state", memory.shape[-2]))
        same_size("value width", ("value", value.shape[-1]), ("state", memory.shape[-1]))
    leading = broadcast_leading(
        {
            "query": query.shape[:-2],
            "key": key.shape[:-2],
            "value": value.shape[:-2],
            "beta": beta.shape[:-1],
            "state": memory.shape[:-2],
        }
    )
    log_decay = log_decays(log_decay, leading, time, width)

    memory = np.broadcast_to(memory, (*leading, *memory.shape[-2:])).copy()
    if form == "recurrent":
        output, memory = _recurrent(query, key, value, beta, log_decay, memory)
    else:
        arrays = query, key, value, beta[..., None], log_decay
        output, memory = in_chunks(_chunks, arrays, memory, chunk)
    return scale * output, memory


def _write(state, key, value, beta, decay):
    if decay is not None:
        state = decay[..., :, None] * state
    error = value - np.einsum("...k,...kv->...v", key, state)
    return state + (beta[..., None] * key)[..., :, None] * error[..., None, :]


def _recurrent(query, key, value, beta, log_decay, memory):
    output = np.empty((*memory.shape[:-2], key.shape[-2], memory.shape[-1]))
    for t in range(key.shape[-2]):
        decay = None if log_decay is None else np.exp(log_decay[..., t, :])
        memory = _write(memory, key[..., t, :], value[..., t, :], beta[..., t], decay)
        output[..., t, :] = np.einsum("...k,...kv->...v", query[..., t, :], memory)
    return output, memory


def _chunks(query, key, value, beta, log_decay, memory):
    """Run the rule over chunks of steps; only what is in the loop depends on the memory."""
    (overlaps, scores), (erase, read), write, kept = between_steps((key, query), key, log_decay)
    solve = _inverse_unit_lower(beta * overlaps) * beta.mT
    erase, value = solve @ erase, solve @ value
    output = np.empty((*memory.shape[:-2], *value.shape[-3:]))
    for c in range(value.shape[-3]):
        chunk = np.s_[..., c, :, :]
        writes = value[chunk] - erase[chunk] @ memory
        output[chunk] = read[chunk] @ memory + scores[chunk] @ writes
        memory = keep(memory, kept, chunk) + write[chunk].mT @ writes
    return output, memory


def _inverse_unit_lower(below):
    """Invert I + L row by row, where L is what stands below the diagonal: no row needs a later one.

    $$T_i = e_i - \\sum_{j < i} L_{ij}\\, T_j$$

    The product of (I + L^(2^i)), which is shorter, loses all digits where keys repeat: the powers
    have entries as large as binomial coefficients.
    """
    steps = below.shape[-1]
    inverse = np.broadcast_to(np.eye(steps), below.shape).copy()
    for i in range(1, steps):
        inverse[..., i, None, :i] = -below[..., i, None, :i] @ inverse[..., :i, :i]
    return inverse


def unit_key(x: Float[ndarray, "*batch key"], eps: float = 1e-6) -> Float[ndarray, "*batch key"]:
    """Scale vectors to unit length, with epsilon inside the root.

    $$\\frac{x}{\\sqrt{x \\cdot x + \\varepsilon}}$$

    A vector much shorter than $\\sqrt{\\varepsilon}$ stays short; one of that length gets
    $1/\\sqrt 2$.

    Raises:
        ValueError: If a number is not finite, or epsilon is negative.

    Source:
        flash-linear-attention, `fla.modules.l2norm`.

    Example:
        >>> unit_key([3.0, 4.0], eps=0.0)
        array([0.6, 0.8])
    """
    x = real_array("x", x, min_ndim=1)
    eps = real_number("eps", eps, minimum=0)
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + eps)
    if (length == 0).any():
        raise ValueError("x must not be zero where eps is 0, got a vector of zeros")
    return x / length


def decay_gate(
    x: Float[ndarray, "*shape"],
    log_rate: Float[ndarray, "*#shape"] | float,
    bias: Float[ndarray, "*#shape"] | float,
) -> Float[ndarray, "*shape"] | np.float64:
    """Turn a projection of the input into a log-decay.

    $$\\ln \\alpha = -e^r\\, \\ln(1 + e^{x + b})$$

    Args:
        x: The projection, one for each decay.
        log_rate: $r$, the logarithm of a rate; broadcasts to `x`, usually one a head.
        bias: $b$; broadcasts to `x`.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Gu & Dao 2023, arXiv 2312.00752, section 3; for the delta rule Yang et al. 2024, arXiv
        2412.06464, section 3.

    Example:
        >>> decay_gate([0.0], 0.0, 0.0).round(3)
        array([-0.693])
    """
    x = real_array("x", x)
    log_rate = real_array("log_rate", log_rate)
    bias = real_array("bias", bias)
    leading_within("log_rate", log_rate.shape, x.shape)
    leading_within("bias", bias.shape, x.shape)
    return -np.exp(log_rate) * np.logaddexp(0, x + bias)
