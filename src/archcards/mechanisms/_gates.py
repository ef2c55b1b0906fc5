"""The logistic sigmoid, which gates are made of."""

import numpy as np
from numpy import ndarray

__all__: list[str] = []


def sigmoid(x: ndarray) -> ndarray:
    """Exact in both tails, where 1 / (1 + exp(-x)) overflows or loses its digits."""
    return np.exp(-np.logaddexp(0.0, -x))
