"""How far a correct implementation may be off in a narrower dtype."""

import functools
from collections.abc import Mapping

import numpy as np

from ._registry import Case, Published
from .numbers import numbers

__all__ = ["EPSILON", "SAFETY", "error_bounds"]

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a dtype."""

SAFETY = 8.0
_TRIALS = 4


@functools.lru_cache(maxsize=None)
def error_bounds(published: Published, case: Case, dtype: str) -> Mapping[str, float] | None:
    """Bound the error of each result of a case for a dtype.

    $$8\\, \\max\\Bigl(\\max_r \\lVert f(x + \\tfrac{\\epsilon}{2}\\, r \\odot x) - f(x)
    \\rVert_\\infty,\\; \\tfrac{\\epsilon}{2} \\lVert f(x) \\rVert_\\infty\\Bigr)$$

    The inputs are exact in every dtype, so what is off is arithmetic. Each number that goes in is
    moved by half a unit in its last place, by four fixed patterns of signs $r$, and the reference
    is run on that: how far the result moves is how much one rounding per number is worth, at most.
    A computation rounds more often than once; the factor 8 covers the sums of these lengths.

    Args:
        published: The cases of a mechanism.
        case: One of them.
        dtype: `"float32"` or `"bfloat16"`.

    Returns:
        The largest absolute error by result, 0 for counts and choices; nothing where inputs that
        have been moved are no longer legal (probabilities no longer sum to one), or where there are
        no arrays of real numbers.
    """
    half = EPSILON[dtype] / 2
    expected = published.expected(case)
    found = {name: half * _largest(array) for name, array in expected.items()}
    moved = {n: x for n, x in case.arguments.items() if _is_real(x) and n not in published.choices}
    if not moved:
        return None
    for trial in range(_TRIALS):
        signs = {n: np.sign(numbers(*x.shape, seed=50 + trial) + 1 / 128) for n, x in moved.items()}
        with np.errstate(invalid="ignore"):
            near = {n: x * (1 + half * signs[n]) for n, x in moved.items()}
        try:
            results = published.results(published.reference, _moved(case, near))
        except ValueError:
            return None
        for name, array in results.items():
            found[name] = max(found[name], _largest(_difference(array, expected[name])))
    return {
        name: 0.0 if expected[name].dtype.kind in "iub" else SAFETY * bound
        for name, bound in found.items()
    }


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
