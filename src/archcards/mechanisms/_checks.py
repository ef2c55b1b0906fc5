"""Checks of arguments, shared by all mechanisms.

Each refuses with a one-line `ValueError` that names the argument, what was expected and what came.
They run before any work, so a wrong argument never becomes a wrong number.
"""

import math
import operator
from collections.abc import Iterable, Mapping

import numpy as np

__all__ = [
    "boolean_array",
    "broadcast_leading",
    "function",
    "instance",
    "integer",
    "leading_within",
    "mask_array",
    "one_of",
    "real_array",
    "real_number",
    "same_shape",
    "same_size",
    "shown",
]


def real_array(
    name: str,
    value,
    *,
    ndim: int | None = None,
    min_ndim: int = 0,
    shape: tuple[int | None, ...] | None = None,
    minus_infinity: bool = False,
    infinity: bool = False,
) -> np.ndarray:
    """Return `value` as a float64 array of finite numbers.

    Lists and other real dtypes are converted; booleans are refused with complex and object arrays,
    because a mask that lands in the place of a number is a mistake and not a conversion.

    Args:
        name: The argument's name in the caller's signature.
        value: What the caller was given.
        ndim: The exact number of axes.
        min_ndim: The smallest number of axes.
        shape: The exact shape; `None` leaves an axis free.
        minus_infinity: Whether −∞ is legal.
        infinity: Whether −∞ and +∞ are legal.
    """
    array = _array(name, value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    with np.errstate(over="ignore"):  # a long double beyond float64 is reported below as infinite
        array = array.astype(np.float64, copy=False)
    _check_axes(name, array, ndim, min_ndim)
    if shape is not None and not _fits(array.shape, shape):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        wanted += "," if len(shape) == 1 else ""
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    if infinity:
        bad, wanted = np.isnan(array), "numbers, not NaN"
    elif minus_infinity:
        bad, wanted = np.isnan(array) | (array == np.inf), "finite or -inf"
    else:
        bad, wanted = ~np.isfinite(array), "finite"
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at index {place}" if place else ""
        raise ValueError(f"{name} must be {wanted}, got {array[place]}{where}")
    return array


def boolean_array(name: str, value, *, ndim: int | None = None, min_ndim: int = 0) -> np.ndarray:
    """Return `value` as a boolean array; 0/1 integers and additive masks are refused."""
    array = _array(name, value)
    if array.dtype != np.bool_:
        raise ValueError(
            f"{name} must be boolean (True = may be read), got dtype {array.dtype}"
        )
    _check_axes(name, array, ndim, min_ndim)
    return array


def mask_array(name: str, value, queries: int | None = None, keys: int | None = None) -> np.ndarray:
    """Return a mask `(..., query, key)`; its last two axes must have the stated sizes."""
    array = boolean_array(name, value, min_ndim=2)
    for axis, size in (("query", queries), ("key", keys)):
        got = array.shape[-2 if axis == "query" else -1]
        if size is not None and got != size:
            raise ValueError(
                f"{name} must have {size} entries along its {axis} axis, got shape {array.shape}"
            )
    return array


def integer(
    name: str, value, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return `value` as an `int` within the bounds; booleans and floats are refused."""
    bounds = _bounds(minimum, maximum)
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer{bounds}, got {shown(value)}") from None
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        raise ValueError(f"{name} must be an integer{bounds}, got {number}")
    if number.bit_length() > 63:  # longer than any array
        raise ValueError(f"{name} must be an integer of 64 bits, got {shown(number)}")
    return number


def real_number(
    name: str,
    value,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    infinity: bool = False,
) -> float:
    """Return `value` as a finite `float` within the bounds (`above`, `below`: exclusive)."""
    bounds = _bounds(minimum, maximum, above, below)
    array = _array(name, value)
    kind = "number" if infinity else "finite number"
    if array.ndim or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be a {kind}{bounds}, got {shown(value)}")
    number = float(array)
    outside = (
        (minimum is not None and number < minimum)
        or (maximum is not None and number > maximum)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    )
    if outside or math.isnan(number) or (math.isinf(number) and not infinity):
        raise ValueError(f"{name} must be a {kind}{bounds}, got {number}")
    return number


def one_of(name: str, value: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of the options."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        names = " or ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be {names}, got {shown(value)}")
    return value


def instance(name: str, value, kind: type):
    """Return `value` if it is a record of that kind."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise ValueError(f"{name} must be {article} {kind.__name__}, got {shown(value)}")
    return value


def function(name: str, value):
    """Return `value` if it can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be a function, got {shown(value)}")
    return value


def same_size(axis: str, first: tuple[str, int], second: tuple[str, int]) -> int:
    """Return the common size of an axis that two arguments share.

    Example:
        >>> same_size("width", ("query", 4), ("key", 4))
        4
    """
    (name, size), (other, other_size) = first, second
    if size != other_size:
        raise ValueError(f"{other} must have the {axis} of {name}, {size}, got {other_size}")
    return size


def same_shape(first: tuple[str, np.ndarray], second: tuple[str, np.ndarray]) -> tuple[int, ...]:
    """Return the common shape of two arguments; nothing is broadcast."""
    (name, array), (other, other_array) = first, second
    if array.shape != other_array.shape:
        raise ValueError(
            f"{other} must have the shape of {name}, {array.shape}, got {other_array.shape}"
        )
    return array.shape


def broadcast_leading(leading: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common leading axes of several arguments, given as name → leading shape."""
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = ", ".join(f"{name} {shape}" for name, shape in leading.items())
        raise ValueError(
            f"{' and '.join(leading)} must have leading axes that broadcast, got {shapes}"
        ) from None


def leading_within(name: str, shape: tuple[int, ...], leading: tuple[int, ...]) -> None:
    """Refuse leading axes that would enlarge those of the result."""
    try:
        fits = np.broadcast_shapes(shape, leading) == leading
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name} must broadcast to the leading axes {leading}, got {shape}")


def _array(name, value):
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be a rectangular array, got {shown(value)}") from None


def _check_axes(name, array, ndim, min_ndim):
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {_axes(ndim)}, got shape {array.shape}")
    if array.ndim < min_ndim:
        raise ValueError(f"{name} must have at least {_axes(min_ndim)}, got shape {array.shape}")


def _axes(count):
    return f"{count} axis" if count == 1 else f"{count} axes"


def _fits(shape, wanted):
    return len(shape) == len(wanted) and all(
        size is None or size == got for got, size in zip(shape, wanted, strict=True)
    )


def _bounds(minimum=None, maximum=None, above=None, below=None):
    bounds = (("at least", minimum), ("at most", maximum), ("above", above), ("below", below))
    text = " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)
    return f" {text}" if text else ""


def shown(value) -> str:
    """Return how an error shows a value: one line, and not too long."""
    text = " ".join(repr(value).split())  # one line, whatever the value's repr does
    return text if len(text) <= 60 else f"{text[:57]}..."
