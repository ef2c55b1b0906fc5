"""What the recurrent mechanisms share: decay between two steps, and chunks of steps.

The decay from step j to step i is the exponential of the *sum* of the log-decays in between, or the
product of the decays. It is never a quotient of cumulative products, nor a difference of cumulative
sums: where a step forgets everything (log-decay of minus infinity) those are 0/0 and infinity minus
infinity, and where decay is strong one factor overflows. Sums of numbers that are all at most zero
do neither, nor do products of numbers from 0 to 1.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from einops import rearrange
from numpy import ndarray

from ._checks import leading_within, real_array

__all__: list[str] = []

# Steps whose chunks are prepared together: enough to share the cost of each call, and few enough
# that for some heads all that is prepared stays in the processor's cache until it is read.
SPAN = 256


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


class Between(NamedTuple):
    """What happens between the steps of each chunk, for several arrays of rows that read."""

    scores: Sequence[ndarray]  # of each row i with the keys j ≤ i, decayed from j to i
    from_start: Sequence[ndarray]  # the rows, decayed from the start of the chunk
    to_end: ndarray  # the keys, decayed to the end of the chunk
    kept: ndarray | None  # the decay over the whole chunk, (..., channel, 1); none if it is 1


def between_steps(rows: Sequence[ndarray], key: ndarray, log_decay: ndarray | None) -> Between:
    """Score each row i of a chunk with the keys j ≤ i: Σ_c row[i, c] key[j, c] decay[j→i, c].

    Without decay, or with one per step, which multiplies the whole score, that is one product of
    matrices.
    """
    if log_decay is None:
        return Between([np.tril(row @ key.mT) for row in rows], rows, key, None)
    if log_decay.shape[-1] != 1:
        return _between_channels(rows, key, log_decay)
    decay = np.exp(segment_sums(log_decay[..., 0]))
    start = decay_from_start(log_decay)
    return Between(
        [(row @ key.mT) * decay for row in rows],
        [row * start for row in rows],
        key * decay_to_end(log_decay),
        start[..., -1:, :],
    )


def _between_channels(rows, key, log_decay):
    """Do the same with one decay per channel, which stays inside the sum.

    Its split at the start of the chunk, e^Gᵢ · e^−Gⱼ, overflows. So blocks of 1, 2, 4, ... steps
    are joined in pairs. Rows are kept decayed from the start of their block, keys to its end: where
    j is in the earlier block and i in the later, the product of the two is split at the border,
    and both factors are at most 1.
    """
    steps = key.shape[-2]
    size = power_of_two(steps)
    arrays = (_padded(x, size) for x in (*rows, key, log_decay))
    *rows, key, log_decay = np.broadcast_arrays(*arrays)
    row, decay = np.stack(rows), np.exp(log_decay)
    own = np.sum(row * key, axis=-1)
    row, key = row * decay, key.copy()
    scores = np.zeros((*row.shape[:-1], size))
    np.einsum("...ii->...i", scores)[...] = own
    kept, half = decay[..., None, :], 1
    while half < size:
        in_pairs = "... (pair block step) channel -> block ... pair step channel"
        (_, later), (earlier, _) = (rearrange(x, in_pairs, block=2, step=half) for x in (row, key))
        diagonal_blocks(scores, 2 * half)[..., half:, :half] = later @ earlier.mT
        first, second = kept[..., ::2, :, :], kept[..., 1::2, :, :]
        later *= first
        earlier *= second
        kept, half = first * second, 2 * half
    rows, key = row[..., :steps, :], key[..., :steps, :]
    return Between(scores[..., :steps, :steps], rows, key, kept[..., 0, :, :].mT)


def in_chunks(rule: Callable, arrays: Sequence[ndarray | None], memory: ndarray, chunk: int):
    """Run a rule over (..., time, feature) with its arrays cut to (..., chunk, step, feature).

    Steps of zeros fill the last chunk: they decay nothing and write nothing.
    """
    time = arrays[0].shape[-2]
    chunk = max(1, min(chunk, time))
    span = max(1, SPAN // chunk) * chunk
    cut = "... (chunk step) feature -> ... chunk step feature"
    output = np.empty((*memory.shape[:-2], time, memory.shape[-1]))
    for start in range(0, time, span):
        end = min(start + span, time)
        size = -(-(end - start) // chunk) * chunk
        chunks = (
            None if x is None else rearrange(_padded(x[..., start:end, :], size), cut, step=chunk)
            for x in arrays
        )
        read, memory = rule(*chunks, memory)
        read = rearrange(read, "... chunk step feature -> ... (chunk step) feature")
        output[..., start:end, :] = read[..., : end - start, :]
    return output, memory


def _padded(array, steps):
    missing = steps - array.shape[-2]
    if not missing:
        return array
    return np.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, missing), (0, 0)])


def keep(memory: ndarray, kept: ndarray | None, chunk) -> ndarray:
    """Let a memory decay over a chunk."""
    return memory if kept is None else kept[chunk] * memory


def power_of_two(steps: int) -> int:
    """Return the smallest power of two that is at least `steps`."""
    return 1 << (steps - 1).bit_length()


def diagonal_blocks(matrix: ndarray, size: int) -> ndarray:
    """View the square blocks on the diagonal, (..., block, row, column)."""
    blocks = rearrange(matrix, "... (p i) (q j) -> ... p i q j", i=size, j=size)
    return np.einsum("...pipj->...pij", blocks)
