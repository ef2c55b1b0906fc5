"""How far a correct implementation may be off in a narrower dtype."""

import functools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ._registry import Case, Published
from .numbers import numbers

__all__ = ["EPSILON", "SAFETY", "bound", "error_bounds", "nearby"]

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a dtype."""

SAFETY = 8.0
_TRIALS = 4
_SMALLEST = 2.0**-126  # the smallest normal number of both


@functools.lru_cache(maxsize=None)
def error_bounds(published: Published, case: Case, dtype: str) -> Mapping[str, float]:
    """Bound the error of each result of a case for a dtype.

    $$8\\, \\max\\Bigl(\\max_r \\lVert f(x + \\tfrac{\\epsilon}{2}\\, r \\odot x) - f(x)
    \\rVert_\\infty,\\; \\tfrac{\\epsilon}{2} \\lVert f(x) \\rVert_\\infty\\Bigr)$$

    The inputs are exact in every dtype, so what is off is arithmetic. Each number that goes in is
    moved by half a unit in its last place, by four fixed patterns of signs $r$, and the reference
    is run on that: how far the result moves is how much one rounding per number is worth, at most.
    A computation rounds more often than once; the factor 8 covers the sums of these lengths. No
    bound is below the smallest normal number of the dtype.

    Args:
        published: The cases of a mechanism.
        case: One of them.
        dtype: `"float32"` or `"bfloat16"`.

    Returns:
        The largest absolute error by result, 0 for counts and choices. Where no real array goes in,
        or inputs that have been moved are no longer legal (probabilities no longer sum to one),
        8 ε of the largest result, or of 1 where that is less.
    """
    expected = published.expected(case)
    exact = {n: x for n, x in case.arguments.items() if _is_real(x) and n not in published.choices}
    try:
        moved = [
            published.results(published.reference, _moved(case, near))
            for near in (nearby(exact, dtype) if exact else ())
        ]
    except ValueError:
        moved = []
    return {
        name: bound(x, [near[name] for near in moved], dtype, 0.0 if moved else 2 * max(1.0, _largest(x)))
        for name, x in expected.items()
    }


def nearby(arrays: Mapping[str, np.ndarray], dtype: str) -> Iterator[dict[str, np.ndarray]]:
    """The arrays with each number moved by half a unit in its last place, up or down, four times.

    Example:
        >>> [float(near["x"][0]) for near in nearby({"x": np.ones(1)}, "bfloat16")]
        [0.99609375, 0.99609375, 0.99609375, 0.99609375]
    """
    for trial in range(_TRIALS):
        signs = {n: _signs(x.shape, *divmod(trial, 2)) for n, x in arrays.items()}
        with np.errstate(invalid="ignore"):
            yield {n: x * (1 + EPSILON[dtype] / 2 * signs[n]) for n, x in arrays.items()}


def _signs(shape, pattern, turned):
    """One of the patterns of signs, or the same with every other sign turned."""
    signs = np.sign(numbers(*shape, seed=50 + pattern) + 1 / 128)
    return signs * np.where(np.arange(signs.size) % 2, 1 - 2 * turned, 1).reshape(shape)


def bound(expected: np.ndarray, moved: Iterable[np.ndarray], dtype: str, size: float = 0.0) -> float:
    """The error allowed to a result, from what it is near the exact arguments; 0 for a whole number.

    Args:
        expected: The result.
        moved: The same from arguments that were moved.
        dtype: The narrower type.
        size: The size of the numbers that the result is a sum of, where they cancel.
    """
    if np.asarray(expected).dtype.kind in "iub":
        return 0.0
    changes = [_largest(_difference(near, expected)) for near in moved]
    rounding = EPSILON[dtype] / 2 * max(size, _largest(expected))
    return max(_SMALLEST, SAFETY * max([rounding, *changes]))


def _moved(case, near):
    return Case(case.name, {**case.arguments, **near}, case.degenerate)


def _is_real(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _difference(actual, expected):
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(expected), np.asarray(actual, dtype=float) - expected, 0.0)


def _largest(array):
    array = np.abs(np.asarray(array, dtype=float))
    return float(array[np.isfinite(array)].max(initial=0.0))
