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
