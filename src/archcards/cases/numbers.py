"""The numbers in the cases: without pattern, without chance, and exact in every dtype."""

import numpy as np

__all__ = ["between", "numbers"]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Multiples of 1/64 from −2 to below 2.

    They have eight binary digits and thus are bfloat16 numbers. They come from a linear
    congruential generator (Numerical Recipes, section 7.1), so that any language can make them.

    Example:
        >>> numbers(4, seed=1) * 64
        array([ -57., -105.,   56.,   -2.])
    """
    found = np.empty(int(np.prod(shape, dtype=int)))
    x = (1 + seed) * 2654435761 % 2**32
    for i in range(found.size):
        x = (1664525 * x + 1013904223) % 2**32
        found[i] = (x >> 24) - 128
    return found.reshape(shape) / 64


def between(*shape: int, seed: int = 0) -> np.ndarray:
    """Multiples of 1/256 from 0 to below 1, such as gates.

    Example:
        >>> between(4, seed=1) * 256
        array([ 71.,  23., 184., 126.])
    """
    return (numbers(*shape, seed=seed) + 2) / 4
