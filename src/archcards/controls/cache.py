"""Attention through a key/value cache, wrong in named ways."""

import numpy as np

from ..mechanisms import causal, grouped_attention, sliding_window
from ._registry import mistake

__all__: list[str] = []


def _chunked(query, key, value, chunks, held, mask):
    """Attend chunk by chunk over the positions `held(start, stop)` with `mask(start, stop, positions)`."""
    query, key, value = (np.asarray(x, dtype=float) for x in (query, key, value))
    outputs, start = [], 0
    for size in chunks:
        stop = start + size
        positions = held(start, stop)
        outputs.append(
            grouped_attention(
                query[..., start:stop, :],
                key[..., positions, :],
                value[..., positions, :],
                mask(start, stop, positions),
                empty="zeros",
            )
        )
        start = stop
    return np.concatenate(outputs, axis=-2)


@mistake("cached_attention", "aligned to the top left")
def cached_attention_aligned_to_the_top_left(query, key, value, *, chunks, window=None):
    """Mask each chunk as if it began the text, however many keys the cache holds.

    Seen in: PyTorch's `is_causal=True` over a cache (pytorch #103082, #108108).
    """

    def mask(start, stop, positions):
        if window is None:
            return causal(stop - start, len(positions), offset=0)
        return sliding_window(stop - start, len(positions), window=window, offset=0)

    return _chunked(query, key, value, chunks, lambda start, stop: np.arange(stop), mask)


@mistake("cached_attention", "trimmed to the window first")
def cached_attention_trimmed_to_the_window_first(query, key, value, *, chunks, window=None):
    """Cut the cache to the window as soon as a chunk is appended, before its queries have read.

    Seen in: rasbt/LLMs-from-scratch #1008, #1013.
    """

    def held(start, stop):
        return np.arange(stop)[-(window or stop) :]

    def mask(start, stop, positions):
        query = np.arange(start, stop)[:, None]
        return positions <= query

    return _chunked(query, key, value, chunks, held, mask)


@mistake("cached_attention", "ring buffer without positions")
def cached_attention_ring_without_positions(query, key, value, *, chunks, window=None):
    """Overwrite the oldest slots of a ring, then mask by slot instead of by the position it holds.

    Seen in: Lightning-AI/litgpt #2182, where early queries of a long prompt read their future.
    """

    def held(start, stop):
        slots = np.arange(min(window or stop, stop))
        return slots + (stop - 1 - slots) // len(slots) * len(slots)

    def mask(start, stop, positions):
        return causal(stop, len(positions), offset=0)[start:]

    return _chunked(query, key, value, chunks, held, mask)
