"""Linear attention: without a softmax, a memory of fixed size can stand for all the keys.

Arrays end in `(..., time, feature)`, heads right before time; leading axes broadcast. The memory is
`(..., key, value)`. A step decays it, writes, and then reads.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import broadcast_leading, integer, one_of, real_array, real_number, same_size
from ._decay import between_steps, in_chunks, keep, log_decays

__all__ = ["elu_plus_one", "linear_attention"]


def elu_plus_one(x: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    """Map real numbers to positive ones, so that scores of such features can be normalised.

    $$\\phi(x) = x + 1 \\text{ where } x > 0, \\qquad e^x \\text{ elsewhere}$$

    Raises:
        ValueError: If a number is not finite.

    Source:
        Katharopoulos et al. 2020, arXiv 2006.16236, equation 7.

    Example:
        >>> elu_plus_one([0.0, 2.0])
        array([1., 3.])
    """
    x = real_array("x", x)
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def linear_attention(
    query: Float[ndarray, "*#batch time key"],
    key: Float[ndarray, "*#batch time key"],
    value: Float[ndarray, "*#batch time value"],
    *,
    log_decay: Float[ndarray, "*#decays"] | None = None,
    normalise: bool = False,
    scale: float = 1.0,
    state: Float[ndarray, "*#batch key value"] | tuple[ndarray, ndarray] | None = None,
    form: str = "recurrent",
    chunk: int = 64,
) -> tuple[Float[ndarray, "... time value"], Float[ndarray, "... key value"] | tuple]:
    """Add each key and value to a memory and read it with the query.

    $$S_t = \\text{diag}(\\alpha_t)\\, S_{t-1} + k_t v_t^\\top, \\qquad
    o_t = \\text{scale}\\; S_t^\\top q_t$$

    and with `normalise`, where the normaliser $z$ is the memory of a value that is always 1,

    $$z_t = \\alpha_t \\odot z_{t-1} + k_t, \\qquad o_t = \\frac{S_t^\\top q_t}{z_t \\cdot q_t}$$

    so that the scale cancels. The three forms compute the same: step by step; all pairs at once,
    $(Q K^\\top \\odot \\text{decay})\\, V$; or pairs inside a chunk and the memory between chunks.

    Args:
        query: What reads the memory.
        key: Where each step writes.
        value: What each step writes.
        log_decay: $\\ln \\alpha$, at most 0; −∞ forgets everything. One per step, `(..., time)`, or
            one per step and key channel, `(..., time, key)`; none unless given.
        normalise: Whether to divide by the query's sum of scores. The state is then a pair.
        scale: Factor on the output.
        state: The memory to start from, or the pair (memory, normaliser `(..., key)`); zero unless
            given.
        form: `"recurrent"`, `"parallel"` or `"chunked"`.
        chunk: Steps in a chunk of the chunked form; the length need not be a multiple of it.

    Returns:
        The outputs and the state after the last step, from which the next call can go on.

    Raises:
        ValueError: If shapes do not fit, a number is out of range, or a normaliser is zero.

    Source:
        Katharopoulos et al. 2020, arXiv 2006.16236, section 3.4. Decay per head: Sun et al. 2023,
        arXiv 2307.08621, section 2. Decay per channel and chunks: Yang et al. 2023, arXiv
        2312.06635, sections 2-4.

    Example:
        >>> ones, value = [[1.0], [1.0], [1.0]], [[1.0], [2.0], [6.0]]
        >>> output, state = linear_attention(ones, ones, value)
        >>> output.ravel(), state.ravel()
        (array([1., 3., 9.]), array([9.]))
        >>> linear_attention(ones, ones, value, normalise=True)[0].ravel()
        array([1. , 1.5, 3. ])
    """
    one_of("form", form, ("recurrent", "parallel", "chunked"))
    query = real_array("query", query, min_ndim=2)
    key = real_array("key", key, min_ndim=2)
    value = real_array("value", value, min_ndim=2)
    time, width = query.shape[-2:]
    same_size("time", ("query", time), ("key", key.shape[-2]))
    same_size("width", ("query", width), ("key", key.shape[-1]))
    same_size("time", ("query", time), ("value", value.shape[-2]))
    scale = real_number("scale", scale)
    chunk = integer("chunk", chunk, minimum=1)
    memory = _memory(state, normalise, width, value.shape[-1])
    leading = broadcast_leading(
        {"query": query.shape[:-2], "key": key.shape[:-2], "value": value.shape[:-2]}
        | ({} if state is None else {"state": memory.shape[:-2]})
    )
    log_decay = log_decays(log_decay, leading, time, width)

    if normalise:  # the normaliser is one more value channel, always 1
        value = np.concatenate([value, np.ones_like(value[..., :1])], axis=-1)
    memory = np.broadcast_to(memory, (*leading, *memory.shape[-2:])).copy()
    if form == "recurrent":
        output, memory = _recurrent(query, key, value, log_decay, memory)
    else:
        chunk = max(time, 1) if form == "parallel" else chunk
        arrays = query, key, value, log_decay
        output, memory = in_chunks(_chunks, arrays, memory, chunk)
    if not normalise:
        return scale * output, memory
    mass = output[..., -1:]
    if (mass == 0).any():
        place = tuple(int(i) for i in np.argwhere(mass[..., 0] == 0)[0])
        raise ValueError(f"normaliser must not be orthogonal to a query, got 0 at step {place}")
    return output[..., :-1] / mass, (memory[..., :-1], memory[..., -1])


def _recurrent(query, key, value, log_decay, memory):
    output = np.empty((*memory.shape[:-2], key.shape[-2], memory.shape[-1]))
    for t in range(key.shape[-2]):
        if log_decay is not None:
            memory = np.exp(log_decay[..., t, :, None]) * memory
        memory = memory + key[..., t, :, None] * value[..., t, None, :]
        output[..., t, :] = np.einsum("...k,...kv->...v", query[..., t, :], memory)
    return output, memory


def _chunks(query, key, value, log_decay, memory):
    """Run over chunks of steps; only what is in the loop depends on the memory."""
    (scores,), (read,), write, kept = between_steps((query,), key, log_decay)
    output = np.empty((*memory.shape[:-2], *value.shape[-3:]))
    output[...] = scores @ value
    for c in range(value.shape[-3]):
        chunk = np.s_[..., c, :, :]
        output[chunk] += read[chunk] @ memory
        memory = keep(memory, kept, chunk) + write[chunk].mT @ value[chunk]
    return output, memory


def _memory(state, normalise, key_width, value_width):
    """Return the memory to start from, the normaliser as its last value channel."""
    if state is None:
        return np.zeros((key_width, value_width + bool(normalise)))
    normaliser = None
    if normalise:
        if not isinstance(state, tuple | list) or len(state) != 2:
            raise ValueError(
                "state must be the pair (memory, normaliser) when normalise is true, "
                f"got {type(state).__name__}"
            )
        state, normaliser = state
    memory = real_array("state", state, min_ndim=2)
    if memory.shape[-2:] != (key_width, value_width):
        raise ValueError(
            f"state must have shape (..., {key_width}, {value_width}), got {memory.shape}"
        )
    if normaliser is None:
        return memory
    normaliser = real_array("state's normaliser", normaliser, shape=memory.shape[:-1])
    return np.concatenate([memory, normaliser[..., None]], axis=-1)
