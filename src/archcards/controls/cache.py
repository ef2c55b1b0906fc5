"""The key/value cache, wrong in named ways."""

import numpy as np

from ._reference import KVCache, causal, grouped_attention, sliding_window
from ._registry import mistake

__all__: list[str] = []


def _chunked(query, key, value, chunks, held_and_mask):
    """Attend chunk by chunk; `held_and_mask(start, stop)` gives positions held and their mask."""
    query, key, value = (np.asarray(x, dtype=float) for x in (query, key, value))
    outputs, start = [], 0
    for size in chunks:
        stop = start + size
        held, mask = held_and_mask(start, stop)
        keys, values = key[..., held, :], value[..., held, :]
        part = query[..., start:stop, :]
        outputs.append(grouped_attention(part, keys, values, mask, empty="zeros"))
        start = stop
    return np.concatenate(outputs, axis=-2)


def _visible(start, stop, held, window):
    """The right mask between queries start … stop − 1 and keys at the positions held."""
    query = np.arange(start, stop)[:, None]
    mask = held <= query
    return mask if window is None else mask & (held > query - window)


@mistake("cached_attention", "trimmed to the window first")
def cached_trimmed_first(query, key, value, *, chunks, window=None):
    """Cut the cache to `window` keys, chunk included: the chunk's first queries lose keys.

    Seen in: rasbt/LLMs-from-scratch #1008, #1013; window + chunk − 1 keys are needed.
    """

    def held_and_mask(start, stop):
        first = 0 if window is None else max(stop - window, 0)
        held = np.arange(first, stop)
        return held, _visible(start, stop, held, window)

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("cached_attention", "ring buffer without positions")
def cached_in_a_ring(query, key, value, *, chunks, window=None):
    """Write position p into slot p mod window, then mask by slot and not by the position it holds.

    Early queries of a chunk read keys of their future, and have lost keys of their past.

    Seen in: litgpt #2182.
    """

    def held_and_mask(start, stop):
        slots = np.arange(stop if window is None else min(window, stop))
        positions = slots + (stop - 1 - slots) // len(slots) * len(slots)
        return positions, slots <= np.arange(start, stop)[:, None]

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("cached_attention", "no window inside the chunk")
def cached_without_inner_window(query, key, value, *, chunks, window=None):
    """Hold the right keys but mask them causally only: late queries read beyond their window.

    Seen in: engines that take the cache's size for the window's mask.
    """

    def held_and_mask(start, stop):
        first = 0 if window is None else max(start - window + 1, 0)
        return np.arange(first, stop), causal(stop - start, stop - first)

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("cached_attention", "one key too few is kept")
def cached_one_short(query, key, value, *, chunks, window=None):
    """Keep window − 2 keys before the chunk: the query was subtracted twice.

    Seen in: ports between the two conventions of a window's size (transformers #39408, #40163).
    """

    def held_and_mask(start, stop):
        first = 0 if window is None else max(start - max(window - 2, 0), 0)
        held = np.arange(first, stop)
        return held, _visible(start, stop, held, window)

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("cached_attention", "aligned to the top left")
def cached_aligned_to_the_top_left(query, key, value, *, chunks, window=None):
    """Build the mask of a chunk as if no keys came before it.

    Seen in: `is_causal=True` behind a cache (pytorch #108108): a decoding step reads one key only.
    """

    def held_and_mask(start, stop):
        first = 0 if window is None else max(start - window + 1, 0)
        size, held = stop - start, stop - first
        if window is None:
            return np.arange(first, stop), causal(size, held, offset=0)
        return np.arange(first, stop), sliding_window(size, held, window=window, offset=0)

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("cached_attention", "each chunk reads itself only")
def cached_without_the_past(query, key, value, *, chunks, window=None):
    """Forget the cache between chunks.

    Seen in: chunked prefill that passes the new keys where the cached ones belong.
    """

    def held_and_mask(start, stop):
        held = np.arange(start, stop)
        return held, _visible(start, stop, held, window)

    return _chunked(query, key, value, chunks, held_and_mask)


@mistake("KVCache", "trimmed to the window first")
class TrimmedCache(KVCache):
    """Hold `window` keys while a chunk attends, where its first query needs more.

    Seen in: rasbt/LLMs-from-scratch #1008, #1013.
    """

    def append(self, key, value):
        """Take in a chunk and cut at once."""
        super().append(key, value)
        self.trim()


@mistake("KVCache", "never trimmed")
class UntrimmedCache(KVCache):
    """Keep everything: right with a mask, but the memory of full attention.

    Seen in: gguf-parser-go #32, which charges gpt-oss-20b the full context on its window layers.
    """

    def __init__(self, window=None):
        super().__init__(None)
