"""Masks, wrong in named ways."""

import numpy as np

from ..mechanisms import causal, sliding_window
from ._registry import convention, mistake

__all__: list[str] = []


@mistake("causal", "aligned to the top left")
def causal_aligned_to_the_top_left(queries, keys=None, *, offset=None):
    """Put the first query at position 0 however many keys a cache already holds.

    Seen in: PyTorch's `is_causal=True` (pytorch #108108), mlx #2835, onnx #8068.
    """
    return causal(queries, keys, offset=0 if offset is None else offset)


@mistake("causal", "diagonal one too far")
def causal_diagonal_one_too_far(queries, keys=None, *, offset=None):
    """Let each query read the key right after its own position: the answer it should predict.

    Seen in: `tril(diagonal=1)` where 0 is meant, and targets shifted twice or not at all.
    """
    keys = queries if keys is None else keys
    return causal(queries, keys, offset=1 + (keys - queries if offset is None else offset))


@mistake("causal", "mask upside down")
def causal_upside_down(queries, keys=None, *, offset=None):
    """Mark the pairs that must not be read, as a mask of what is hidden would.

    Seen in: PyTorch, where `True` takes part in `scaled_dot_product_attention` and is hidden in
    `MultiheadAttention`.
    """
    return ~causal(queries, keys, offset=offset)


@convention("sliding_window", "window counts only the keys before")
def sliding_window_beside_the_query(queries, keys=None, *, window, offset=None):
    """Count the keys before the query, which then reads one key more.

    Seen in: flash-attention's `window_size=(window, 0)`; transformers #39408, #40163.
    """
    return sliding_window(queries, keys, window=window + 1, offset=offset)


@convention("sliding_window", "window on both sides")
def sliding_window_on_both_sides(queries, keys=None, *, window, offset=None):
    """Reach half of the window to each side of the query, also into its future.

    Seen in: Longformer (arXiv 2004.05150), whose window is the total of both sides.
    """
    keys = queries if keys is None else keys
    offset = keys - queries if offset is None else offset
    return abs(offset + np.arange(queries)[:, None] - np.arange(keys)) <= window // 2
