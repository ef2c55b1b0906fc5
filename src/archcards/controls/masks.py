"""Masks, wrong in named ways."""

import numpy as np

from ._reference import causal, edges, sliding_window, with_global, with_sinks
from ._registry import convention, mistake

__all__: list[str] = []


def _keys(queries, keys):
    return queries if keys is None else keys


@mistake("causal", "aligned to the top left")
def causal_aligned_to_the_top_left(queries, keys=None, *, offset=None):
    """Put the first query at position 0, however many keys a cache already holds.

    Seen in: PyTorch's `is_causal=True` (pytorch #108108), mlx #2835, onnx #8068.
    """
    return causal(queries, keys, offset=0 if offset is None else offset)


@mistake("causal", "the query cannot read itself")
def causal_without_the_diagonal(queries, keys=None, *, offset=None):
    """Hide the diagonal too, so that the first query reads nothing.

    Seen in: `triu(ones)` as the hidden part, where `triu(ones, diagonal=1)` is meant.
    """
    offset = _keys(queries, keys) - queries if offset is None else offset
    return causal(queries, keys, offset=offset - 1)


@mistake("causal", "diagonal one too far")
def causal_with_one_future_key(queries, keys=None, *, offset=None):
    """Let each query read the key after it, which holds the token to be predicted.

    Seen in: masks built for inputs that were meant to be shifted, and were not.
    """
    offset = _keys(queries, keys) - queries if offset is None else offset
    return causal(queries, keys, offset=offset + 1)


@convention("causal", "mask upside down")
def causal_of_hidden_keys(queries, keys=None, *, offset=None):
    """Return what may not be read.

    Seen in: `torch.nn.MultiheadAttention` (`attn_mask`, `key_padding_mask`), where
    `scaled_dot_product_attention` of the same library takes True as readable.
    """
    return ~causal(queries, keys, offset=offset)


@convention("sliding_window", "window counts only the keys before")
def window_before_the_query(queries, keys=None, *, window, offset=None):
    """Read the query itself and `window` keys before it: one more than a window that counts it.

    Seen in: flash-attention's `window_size=(window, 0)`, to be given window − 1; transformers
    #39408, #40163.
    """
    return sliding_window(queries, keys, window=window + 1, offset=offset)


@mistake("sliding_window", "one key short")
def window_one_short(queries, keys=None, *, window, offset=None):
    """Subtract the query from a window that was already given without it.

    Seen in: ports between the two conventions of a window's size (transformers #39408, #40163).
    """
    near = sliding_window(queries, keys, window=window, offset=offset)
    query, key = _positions(queries, keys, offset)
    return near & (key > query - window + 1)


@mistake("sliding_window", "the query itself is left out")
def window_without_the_query(queries, keys=None, *, window, offset=None):
    """Read the `window` keys before the query, but not the query itself.

    Seen in: strict comparisons at both ends, as in the band j < p, p − j ≤ window.
    """
    query, key = _positions(queries, keys, offset)
    return (key < query) & (query - key <= window)


@mistake("sliding_window", "the future is not hidden")
def window_into_the_future(queries, keys=None, *, window, offset=None):
    """Bound the distance on both sides, and leave causality to someone else.

    Seen in: |p − j| < window without the causal triangle, as in an encoder's local attention.
    """
    query, key = _positions(queries, keys, offset)
    return abs(query - key) < window


@convention("sliding_window", "window on both sides")
def window_of_both_sides(queries, keys=None, *, window, offset=None):
    """Read half a window on either side of the query, and the query itself.

    Seen in: Longformer's `attention_window` (arXiv 2004.05150, section 3.1), an encoder's mask.
    """
    query, key = _positions(queries, keys, offset)
    return abs(query - key) <= window // 2


@mistake("sliding_window", "aligned to the top left")
def window_aligned_to_the_top_left(queries, keys=None, *, window, offset=None):
    """Put the first query at position 0, however many keys a cache already holds.

    Seen in: windows built from `arange` of the chunk alone; compare pytorch #108108.
    """
    return sliding_window(queries, keys, window=window, offset=0 if offset is None else offset)


@mistake("chunked_causal", "a sliding window of the same size")
def chunk_as_a_window(queries, keys=None, *, chunk, offset=None):
    """Read the last `chunk` keys, across the border between chunks.

    Seen in: engines that hand `attention_chunk_size` to a kernel's sliding window.
    """
    return sliding_window(queries, keys, window=chunk, offset=offset)


@mistake("chunked_causal", "chunks counted from the first query")
def chunks_from_the_first_query(queries, keys=None, *, chunk, offset=None):
    """Start the first chunk at the first query and not at position 0.

    Seen in: masks made for one forward pass and reused behind a cache.
    """
    query, key = _positions(queries, keys, offset)
    start = query[:1]
    return (key <= query) & ((key - start) // chunk == (query - start) // chunk)


@mistake("chunked_causal", "the future of the chunk is read")
def chunks_both_ways(queries, keys=None, *, chunk, offset=None):
    """Attend both ways inside a chunk.

    Seen in: block-diagonal masks that are not intersected with the causal one.
    """
    query, key = _positions(queries, keys, offset)
    return key // chunk == query // chunk


@mistake("with_sinks", "sinks before they are reached")
def sinks_from_the_start(mask, count, *, offset=None):
    """Let the first queries read sinks of their future.

    Seen in: `mask[:, :count] = True`, which is right only from query `count − 1` on.
    """
    mask = np.array(mask)
    mask[..., :count] = True
    return mask


@mistake("with_sinks", "aligned to the top left")
def sinks_aligned_to_the_top_left(mask, count, *, offset=None):
    """Take the first query for position 0, so that a decoding step has not reached its sinks.

    Seen in: masks built from `arange` of the chunk alone; compare pytorch #108108.
    """
    return with_sinks(mask, count, offset=0 if offset is None else offset)


@convention("with_sinks", "the sinks take the place of the oldest keys")
def sinks_within_the_budget(mask, count, *, offset=None):
    """Give each query as many keys as before: the sinks displace the oldest ones.

    Seen in: caches with one budget for sinks and window together (`window_length` and
    `num_sink_tokens` in transformers' `SinkCache`), where the paper adds the two.
    """
    mask = np.asarray(mask)
    widened = with_sinks(mask, count, offset=offset)
    excess = widened.sum(-1, keepdims=True) - mask.sum(-1, keepdims=True)
    rest = widened.copy()
    rest[..., :count] = False
    return widened & ~(rest & (rest.cumsum(-1) <= excess))


@mistake("with_global", "global tokens are read but do not read")
def global_columns_only(mask, tokens, *, causal=True):
    """Add the columns and forget the rows.

    Seen in: global tokens treated as attention sinks.
    """
    queries, keys = np.shape(mask)[-2:]
    query, key = _positions(queries, keys, None)
    added = np.isin(key, tokens) & ((key <= query) | (not causal))
    return mask | added


@mistake("with_global", "global tokens read but are not read")
def global_rows_only(mask, tokens, *, causal=True):
    """Add the rows and forget the columns: nothing flows back from the global tokens.

    Seen in: symmetric attention written as one assignment.
    """
    queries, keys = np.shape(mask)[-2:]
    query, key = _positions(queries, keys, None)
    added = np.isin(query, tokens) & ((key <= query) | (not causal))
    return mask | added


@mistake("with_global", "rows counted from the first query")
def global_rows_without_offset(mask, tokens, *, causal=True):
    """Take a token's position for its row, also where queries follow a cache.

    Seen in: `mask[tokens, :] = True` on a mask with fewer queries than keys.
    """
    queries, keys = np.shape(mask)[-2:]
    query, key = _positions(queries, keys, None)
    added = np.isin(np.arange(queries)[:, None], tokens) | np.isin(key, tokens)
    return mask | (added & ((key <= query) | (not causal)))


@convention("with_global", "both ways in time")
def global_both_ways(mask, tokens, *, causal=True):
    """Let all queries read the global tokens, also those of their future.

    Seen in: Longformer and BigBird, which are encoders; in a decoder it leaks the future.
    """
    return with_global(mask, tokens, causal=False)


@mistake("edges", "every pair counted")
def edges_of_the_square(mask):
    """Count the entries of the mask, readable or not.

    Seen in: FLOP formulas that charge T² for causal attention (compare Megatron-LM #3280).
    """
    return int(np.size(mask))


@mistake("edges", "half the square")
def edges_of_half_the_square(mask):
    """Take T²/2 for T(T+1)/2: the diagonal is half lost.

    Seen in: FLOP formulas with a factor 1/2 for causality; close for long texts, never exact.
    """
    return np.size(mask) / 2


@mistake("edges", "each row as full as the last")
def edges_of_full_rows(mask):
    """Charge every query the span of the last one: the first rows of a window are shorter.

    Seen in: T·W for a window of W; the exact count is T·W − W(W−1)/2 (Megatron-LM #3280 takes W/2
    where the mean span over S tokens is W − W(W−1)/(2S)).
    """
    mask = np.asarray(mask)
    return mask.shape[-2] * edges(mask[..., -1:, :])


def _positions(queries, keys, offset):
    keys = _keys(queries, keys)
    offset = keys - queries if offset is None else offset
    return offset + np.arange(queries)[:, None], np.arange(keys)
