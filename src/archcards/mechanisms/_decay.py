"""What the recurrent mechanisms share: decay between two steps, and the reading of a chunk.

The decay from step j to step i is the exponential of the *sum* of the log-decays in between. It is
never a quotient of cumulative products, nor a difference of cumulative sums: where a step forgets
everything (log-decay of minus infinity) those are 0/0 and infinity minus infinity, and where decay
is strong one factor overflows. Sums of numbers that are all at most zero do neither.
"""

import numpy as np
from einops import rearrange
from numpy import ndarray

from ._checks import leading_within, real_array

__all__: list[str] = []


def log_decays(log_decay, leading: tuple[int, ...], time: int, width: int) -> ndarray | None:
    """Return log-decays with a last axis of length 1 (one per step) or `width` (per channel)."""
    if log_decay is None:
        return None
    array = real_array("log_decay", log_decay, minus_infinity=True)
    if array.max(initial=-np.inf) > 0:
        raise ValueError(f"log_decay must be at most 0, got {array.max()}")
    return per_step_or_channel("log_decay", array, leading, (time,), width)


def per_step_or_channel(
    name: str, array: ndarray, leading: tuple[int, ...], steps: tuple[int, ...], width: int
) -> ndarray:
    """Give a decay of shape (..., *steps) or (..., *steps, width) a last axis of 1 or `width`.

    Where a shape can be read in both ways, the one with all leading axes is meant.
    """
    shape = array.shape
    per_step, per_channel = _fits(shape, leading, steps), _fits(shape, leading, (*steps, width))
    if per_step and per_channel:
        full = len(leading) + len(steps)
        if len(shape) not in (full, full + 1):
            raise ValueError(
                f"{name} must have all leading axes {leading} where its shape could be one per "
                f"step and one per channel, got {shape}"
            )
        per_step = len(shape) == full
    if not per_step and not per_channel:
        wanted = ", ".join(["...", *map(str, steps)])
        raise ValueError(
            f"{name} must have shape ({wanted}) or ({wanted}, {width}) with leading axes that "
            f"broadcast to {leading}, got {shape}"
        )
    return array[..., None] if per_step else array


def _fits(shape, leading, tail):
    split = len(shape) - len(tail)
    if split < 0 or shape[split:] != tail:
        return False
    try:
        leading_within("", shape[:split], leading)
    except ValueError:
        return False
    return True


def segment_sums(log_decay: ndarray) -> ndarray:
    """Sum the log-decays of steps j+1 … i, at [..., i, j]; minus infinity where j is after i."""
    time = log_decay.shape[-1]
    j, i = np.ogrid[:time, :time]
    sums = np.cumsum(np.where(i > j, log_decay[..., None, :], 0.0), axis=-1)
    return np.where(i >= j, sums, -np.inf).mT


def decay_from_start(log_decay: ndarray) -> ndarray:
    """Decay that the memory from before the first step has met when each step reads it."""
    return np.exp(np.cumsum(log_decay, axis=-2))


def decay_to_end(log_decay: ndarray) -> ndarray:
    """Decay that what each step writes will meet by the end of the last step."""
    later = np.concatenate([log_decay[..., 1:, :], np.zeros_like(log_decay[..., :1, :])], axis=-2)
    return np.exp(np.cumsum(later[..., ::-1, :], axis=-2)[..., ::-1, :])


def decayed_scores(left: ndarray, right: ndarray, log_decay: ndarray | None) -> ndarray:
    """Score each step i against the steps j ≤ i: Σ_c left[i, c] right[j, c] decay[j→i, c].

    One decay per step multiplies the whole score. One per channel stays inside the sum, and the
    split e^Gᵢ · e^−Gⱼ overflows. So blocks of 2, 4, 8, ... steps are halved, and where
    j < middle ≤ i the decay is split at the middle, into two factors that are both at most 1.
    """
    if log_decay is None:
        return np.tril(left @ right.mT)
    if log_decay.shape[-1] == 1:
        return (left @ right.mT) * np.exp(segment_sums(log_decay[..., 0]))
    steps = left.shape[-2]
    size = power_of_two(steps)
    widths = (0, size - steps), (0, 0)
    left, right, log_decay = (
        np.pad(x, ((0, 0),) * (x.ndim - 2) + widths) for x in (left, right, log_decay)
    )
    own = np.sum(left * right, axis=-1)
    leading = np.broadcast_shapes(own.shape[:-1], log_decay.shape[:-2])
    scores = np.zeros((*leading, size, size))
    np.einsum("...ii->...i", scores)[...] = own
    half = 1
    while half < size:
        in_blocks = "... (block step) channel -> ... block step channel"
        q, k, g = (rearrange(x, in_blocks, step=2 * half) for x in (left, right, log_decay))
        early, late = np.s_[..., :half, :], np.s_[..., half:, :]
        to_read, from_write = decay_from_start(g[late]), decay_to_end(g[early])
        square = (q[late] * to_read) @ (k[early] * from_write).mT
        diagonal_blocks(scores, 2 * half)[..., half:, :half] = square
        half *= 2
    return scores[..., :steps, :steps]


def power_of_two(steps: int) -> int:
    """Return the smallest power of two that is at least `steps`."""
    return 1 << (steps - 1).bit_length()


def diagonal_blocks(matrix: ndarray, size: int) -> ndarray:
    """View the square blocks on the diagonal, (..., block, row, column)."""
    blocks = rearrange(matrix, "... (p i) (q j) -> ... p i q j", i=size, j=size)
    return np.einsum("...pipj->...pij", blocks)


def read_chunk(
    scores: ndarray,
    query: ndarray,
    key: ndarray,
    writes: ndarray,
    log_decay: ndarray | None,
    memory: ndarray,
) -> tuple[ndarray, ndarray]:
    """Read and write a memory $S$ in one chunk of steps whose writes $U$ are known.

    $$O = (Q \\odot D_0)\\, S + \\text{scores}\\; U, \\qquad
    S' = \\text{diag}(d)\\, S + (K \\odot D_1)^\\top U$$

    where $D_0$ decays from the start of the chunk to each step, $D_1$ from each step to its end,
    and $d$ over the whole chunk.
    """
    if log_decay is None:
        return query @ memory + scores @ writes, memory + key.mT @ writes
    from_start = decay_from_start(log_decay)
    output = (query * from_start) @ memory + scores @ writes
    kept = from_start[..., -1, :, None] * memory
    return output, kept + (key * decay_to_end(log_decay)).mT @ writes
