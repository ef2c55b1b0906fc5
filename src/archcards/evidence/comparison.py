"""How far a value is from another, and all the ways in which that question makes no sense.

A value is a real number or an array of them. Integers and truth values are compared exactly, other
numbers by the largest absolute difference, relative to the largest expected magnitude where that
exceeds 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["Comparison", "NotComparable", "compare", "numbers", "shared", "two_digits"]

_EXACT = "biu"
_LARGEST_EXACT = 2**53


class NotComparable(Exception):
    """Why there is nothing to compare, in one line."""


@dataclass(frozen=True)
class Comparison:
    """The outcome: `error` (None if not finite), `shown` for readers, `exact`, and the worst place."""

    error: float | None
    shown: str
    exact: bool
    place: str


def two_digits(x: float) -> str:
    """A non-negative number with two significant digits, the way a reader writes it.

    Example:
        >>> [two_digits(x) for x in (0.0, 1.29, 549.0, 3.14e-5, float("inf"), float("nan"))]
        ['0', '1.3', '550', '3.1e-5', '∞', 'NaN']
    """
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞"
    if x == 0:
        return "0"
    mantissa, exponent = f"{x:.1e}".split("e")
    if -4 <= int(exponent) < 6:
        return f"{float(f'{x:.1e}'):.{max(1 - int(exponent), 0)}f}"
    return f"{mantissa}e{int(exponent)}"


def numbers(what: str, value: Any) -> np.ndarray:
    """A copy of `value` as an array of truth values, integers or float64.

    Integers that no machine integer holds stay exact, as Python's own.

    Raises:
        NotComparable: it holds anything else, or nothing.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise NotComparable(f"{what} is a masked array, which hides entries: compare its data")
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        return np.array(int(value), dtype=object)
    if _several(value):
        raise NotComparable(f"{what} is a tuple of several values: check each on its own")
    try:
        array = np.array(value)
    except ValueError:
        raise NotComparable(f"{what} is not an array: its rows differ in length") from None
    if array.size == 0:
        raise NotComparable(f"{what} is empty (shape {array.shape}): there is nothing to compare")
    if array.dtype.kind == "O" and all(isinstance(x, int) for x in array.flat):
        return array
    if array.dtype.kind == "c":
        raise NotComparable(f"{what} is complex: compare real and imaginary parts, or magnitudes")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind not in _EXACT:
        kind = type(value).__name__ if array.ndim == 0 else f"an array of {array.dtype}"
        raise NotComparable(f"{what} must be real numbers, and it is {kind}")
    return array


def _several(value: Any) -> bool:
    """Whether it is a tuple of arrays, or holds tuples, such as an output with its state."""
    if not isinstance(value, tuple | list):
        return False
    inside = tuple if isinstance(value, list) else tuple | list | np.ndarray
    return any(isinstance(item, inside) for item in value)


def shared(actual: Any, expected: Any) -> bool:
    """Whether both are the same object, or arrays on the same memory."""
    if isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
        try:
            return np.shares_memory(actual, expected, max_work=100_000)
        except np.exceptions.TooHardError:
            return np.may_share_memory(actual, expected)
    if isinstance(actual, Real | np.generic):
        # Small integers and truth values are one object each, whoever computed them.
        truth = isinstance(actual, bool | np.bool_)
        small = truth or (isinstance(actual, Integral) and -6 < actual < 257)
        return actual is expected and not small
    return actual is expected


def compare(
    actual: np.ndarray,
    expected: np.ndarray,
    what: str = "the actual value",
    *,
    allow_infinite: bool = False,
) -> Comparison:
    """Compares two arrays that `numbers` made.

    Raises:
        NotComparable: shapes differ, there is a NaN, or an infinity that is not allowed or stands
            elsewhere or with another sign.
    """
    if actual.shape != expected.shape:
        raise NotComparable(f"{what} has shape {actual.shape}, and {expected.shape} was expected")
    kinds = {_kind(actual), _kind(expected)}
    if kinds == {"truth", "real"}:
        raise NotComparable(f"{what} and the expected one mix truth values and real numbers")
    if "real" not in kinds:
        return _exactly(actual, expected, truth=kinds == {"truth"})
    actual, expected = _as_float(what, actual), _as_float("the expected value", expected)
    for name, array in ((what, actual), ("the expected value", expected)):
        if np.isnan(array).any():
            raise NotComparable(f"{name} has NaN at {_place(np.isnan(array))}")
    infinite = np.isinf(actual) | np.isinf(expected)
    if infinite.any():
        if not allow_infinite:
            raise NotComparable(
                f"there is an infinity at {_place(infinite)}: "
                "say allow_infinite=True if it belongs there"
            )
        apart = infinite & (actual != expected)
        if apart.any():
            place = _place(apart)
            raise NotComparable(f"{what} and the expected one differ in an infinity at {place}")
    finite = ~infinite
    if not finite.any():
        return Comparison(0.0, "0", False, "")
    with np.errstate(over="ignore"):
        apart = np.abs(np.where(finite, actual, 0.0) - np.where(finite, expected, 0.0))
    error = float(apart.max()) / max(1.0, float(np.abs(expected[finite]).max()))
    worst = np.unravel_index(int(apart.argmax()), apart.shape)
    came = _told_apart(float(expected[worst]), float(actual[worst]))
    where = f" at {_index(worst)}" if worst else ""
    return Comparison(error if math.isfinite(error) else None, two_digits(error), False, came + where)


def _told_apart(expected: float, actual: float) -> str:
    """Both values, in as many digits as it takes to see that they differ."""
    for digits in (6, 9, 12, 15, 17):
        told = f"{expected:.{digits}g}", f"{actual:.{digits}g}"
        if told[0] != told[1]:
            break
    return f"expected {told[0]}, got {told[1]}"


def _exactly(actual: np.ndarray, expected: np.ndarray, *, truth: bool) -> Comparison:
    differ = np.asarray(actual != expected, dtype=bool)
    if not differ.any():
        return Comparison(0.0, "0", True, "")
    worst = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(differ)))[: differ.ndim]
    where = f" at {_index(worst)}" if worst else ""
    came = f"expected {expected[worst]}, got {actual[worst]}{where}"
    if truth:
        count = int(differ.sum())
        return Comparison(float(count), f"{count:,} {'entry' if count == 1 else 'entries'}", True, came)
    largest = max(abs(int(a) - int(e)) for a, e in zip(actual[differ], expected[differ], strict=True))
    return Comparison(float(largest), f"{largest:,}", True, came)


def _kind(array: np.ndarray) -> str:
    return {"b": "truth", "f": "real"}.get(array.dtype.kind, "integer")


def _as_float(what: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f" and any(abs(int(x)) > _LARGEST_EXACT for x in array.flat):
        raise NotComparable(f"{what} has integers too large to compare with real numbers exactly")
    return array.astype(np.float64)


def _place(where: np.ndarray) -> str:
    return _index(np.argwhere(where)[0]) if where.ndim else "its only entry"


def _index(index: Any) -> str:
    return "[" + ", ".join(str(int(i)) for i in index) + "]"
