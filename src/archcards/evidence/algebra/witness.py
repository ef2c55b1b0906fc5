"""Counterexamples: numbers that satisfy what is given, and at which two lines differ.

The lines are evaluated in floating point from their syntax, without any of the algebra that proves
them, so that a proof and the search for a counterexample check each other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .expressions import Arithmetic, Undefined, Value

__all__ = ["Point", "floats", "points", "precise"]

_SATISFIED = 1e-9
_KINDS = ((1, 2), (1, 2, 3, 4, 5, 7), (1, 0, 2, -1), (1, 2, 0, -1, 3, -2, 4, 5, 7, -3))


@functools.cache
def floats() -> Arithmetic:
    """Arithmetic over floating-point numbers (and exact integers and fractions where there are any)."""
    return Arithmetic(
        float,
        {
            "exp": math.exp, "log": _defined(math.log), "sqrt": _defined(math.sqrt),
            "sin": math.sin, "cos": math.cos, "abs": abs,
        },
        maximum=max, divide=_divide, power=_power, sum_between=_sum_between,
    )  # fmt: skip


@functools.cache
def precise() -> Arithmetic:
    """Arithmetic with fifty digits, in which a difference is no matter of rounding."""
    import mpmath

    context = mpmath.mp.clone()
    context.dps = 50

    def real(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def at(*numbers: Any) -> Any:
            result = function(*map(context.convert, numbers))
            if not context.isfinite(result) or context.im(result) != 0:
                raise Undefined("no real number")
            return result

        return at

    names = {name: getattr(context, name) for name in ("exp", "log", "sqrt", "sin", "cos")}
    return Arithmetic(
        context.convert,
        {name: real(function) for name, function in names.items()} | {"abs": abs},
        maximum=max, divide=_divide, power=_precise_power(real(context.power)),
        sum_between=_sum_between,
    )  # fmt: skip


def _precise_power(power: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def at(base: Any, exponent: Any) -> Any:
        whole = isinstance(base, int) and isinstance(exponent, int)
        return _power(base, exponent) if whole else power(base, exponent)

    return at


def _defined(function: Callable[[float], float]) -> Callable[[float], float]:
    def at(x: float) -> float:
        try:
            return function(x)
        except ValueError as error:
            raise Undefined(str(error)) from None

    return at


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, int | Fraction) and isinstance(b, int | Fraction):
        quotient = Fraction(a) / Fraction(b)
        return int(quotient) if quotient.denominator == 1 else quotient
    return a / b


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        return base**exponent if exponent >= 0 else _divide(1, base**-exponent)
    result = base**exponent
    if isinstance(result, complex):
        raise Undefined("a root of a negative number")
    return result


def _sum_between(_: str, low: float, high: float, term: Callable[[Any], Any]) -> float:
    if low != int(low) or high != int(high) or high < low - 1:
        raise Undefined("a sum needs integer bounds in their order")
    return sum((term(i) for i in range(int(low), int(high) + 1)), 0)


@dataclass(frozen=True)
class Point:
    """A value for each free symbol, rows of numbers."""

    values: Mapping[str, np.ndarray]

    def scope(self, number: Callable[[float], Any] = float) -> dict[str, Value]:
        """Its values by name, each made a `number`."""
        values = {name: Value(tuple(map(tuple, array.tolist()))) for name, array in self.values.items()}
        return {name: value.map(number) for name, value in values.items()}

    def told(self, names: set[str], symbols: Sequence[str]) -> str:
        """The point in a line, for the symbols among `names`."""
        return ", ".join(f"{name} = {_told(self.values[name])}" for name in symbols if name in names)


def _told(array: np.ndarray) -> str:
    rows = [", ".join(f"{x:.4g}".replace("-", "−") for x in row) for row in array]
    if array.shape == (1, 1):
        return rows[0]
    return "(" + (", " if array.shape[1] == 1 else "; ").join(rows) + ")"


def points(
    shapes: Mapping[str, tuple[int, int]],
    positive: set[str],
    residuals: Callable[[Point], np.ndarray],
    bound: set[str],
) -> Iterator[Point]:
    """Yields points at which all residuals vanish: small integers first, the same ones each time.

    `bound` are the symbols on which the residuals depend.

    Then come points between the integers, found by Newton's method from random starts where they
    have to satisfy something.
    """
    rng = np.random.default_rng(184)
    for attempt in range(160):
        choices = _KINDS[attempt % len(_KINDS)]
        point = Point({n: _drawn(rng, s, choices, n in positive) for n, s in shapes.items()})
        if _size(residuals, point) < _SATISFIED:
            yield point
    for _ in range(40):
        point = _solved(_random(rng, shapes, positive), residuals, sorted(bound & set(shapes)))
        if point is not None and all((point.values[n] > 0).all() for n in positive if n in shapes):
            yield point


def _drawn(
    rng: np.random.Generator, shape: tuple[int, int], choices: Sequence[int], positive: bool
) -> np.ndarray:
    allowed = [c for c in choices if c > 0] if positive else list(choices)
    return rng.choice(allowed, size=shape).astype(float)


def _random(
    rng: np.random.Generator, shapes: Mapping[str, tuple[int, int]], positive: set[str]
) -> Point:
    scale = rng.choice([0.25, 1.0])
    drawn = {name: scale * rng.integers(-40, 41, size=shape) / 20 for name, shape in shapes.items()}
    return Point({name: abs(x) + 0.05 if name in positive else x for name, x in drawn.items()})


def _size(residuals: Callable[[Point], np.ndarray], point: Point) -> float:
    try:
        return float(np.abs(residuals(point)).max(initial=0.0))
    except (ArithmeticError, ValueError):
        return math.inf


def _solved(
    start: Point, residuals: Callable[[Point], np.ndarray], names: Sequence[str]
) -> Point | None:
    """Newton's method with the smallest step, for fewer equations than unknowns."""
    if not names:
        return start if _size(residuals, start) < _SATISFIED else None
    shapes = [start.values[name].shape for name in names]
    splits = np.cumsum([rows * columns for rows, columns in shapes])[:-1]

    def point(x: np.ndarray) -> Point:
        parts = zip(names, np.split(x, splits), shapes, strict=True)
        return Point({**start.values, **{name: part.reshape(shape) for name, part, shape in parts}})

    x = np.concatenate([start.values[name].ravel() for name in names])
    try:
        for _ in range(20):
            value = residuals(point(x))
            if np.abs(value).max(initial=0.0) < 1e-13:
                break
            steps = 1e-6 * np.eye(x.size)
            slope = [(residuals(point(x + h)) - residuals(point(x - h))) / 2e-6 for h in steps]
            x = x - np.linalg.lstsq(np.stack(slope, axis=1), value, rcond=1e-9)[0]
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    end = point(x)
    return end if _size(residuals, end) < _SATISFIED else None
