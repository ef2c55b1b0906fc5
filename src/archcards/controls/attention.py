"""Softmax attention, wrong in named ways."""

import numpy as np

from ..mechanisms import attention_weights
from ._registry import mistake

__all__: list[str] = []


@mistake("attention", "masked after the softmax")
def attention_masked_after_the_softmax(query, key, value, mask=None, *, scale=None, **others):
    """Zero the weights of hidden keys but leave them in the denominator; rows sum to less than one.

    Seen in: home-made attention that multiplies the weights by the mask.
    """
    weights = attention_weights(query, key, scale=scale, **others)
    return (weights if mask is None else weights * mask) @ np.asarray(value, dtype=float)
