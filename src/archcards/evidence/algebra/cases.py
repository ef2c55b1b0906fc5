"""A derivation at one assignment of sizes, where each of its lines is proved or refuted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .expressions import Arithmetic, Expression, ExpressionError, Undefined, Value, apart, scalar
from .statement import Statement
from .witness import Point, floats, points, precise

__all__ = ["Case"]

POINTS = 12  # at which two lines are compared in numbers
_DIFFERENT = 1e-6


class Case:
    """A derivation at one assignment of sizes: proves and refutes steps there."""

    def __init__(self, statement: Statement, sizes: Mapping[str, int]) -> None:
        self.statement = statement
        self.sizes = {name: scalar(size) for name, size in sizes.items()}
        self.shapes = {name: statement.shape(name, sizes) for name in statement.shapes}
        self.told = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        self.positive = set(statement.positive)
        self._exact_scope: dict[str, Value] | None = None
        self._exact_values: dict[str, Value] = {}
        shapes = {name: self.shapes[name] for name in statement.free}
        related = {name for pair in statement.relations for side in pair for name in side.names}
        bound = self._with_definitions(related | self.positive)
        self._points = points(shapes, self.positive, self._residuals, bound)
        self._found: list[tuple[Point, dict[str, Value]]] = []

    def value(self, expression: Expression) -> Value:
        """The expression over SymPy's symbols."""
        if expression.source not in self._exact_values:
            try:
                self._exact_values[expression.source] = expression.evaluate(self._exact, self._symbols)
            except Undefined:
                raise ExpressionError(f"a division by zero, in {expression.source!r}") from None
        return self._exact_values[expression.source]

    @property
    def _exact(self) -> Arithmetic:
        from .identity import exact

        return exact()

    @property
    def _symbols(self) -> dict[str, Value]:
        if self._exact_scope is None:
            import sympy

            free = {}
            for name in self.statement.free:
                rows, columns = self.shapes[name]
                known = {"positive": True} if name in self.positive else {"real": True}
                free[name] = Value(tuple(
                    tuple(sympy.Symbol(f"{name}_{i}_{j}", **known) for j in range(columns))
                    for i in range(rows)
                ))  # fmt: skip
            self._exact_scope = self._completed(free, self._exact)
        return self._exact_scope

    def _completed(self, free: dict[str, Value], arithmetic: Arithmetic) -> dict[str, Value]:
        """Adds the sizes, and what is defined; checks the shapes of the latter."""
        scope = free | self.sizes
        for name, definition in self.statement.definitions.items():
            value = definition.evaluate(arithmetic, scope)
            if value.shape != self.shapes[name]:
                raise ExpressionError(
                    f"{name} is declared {self.shapes[name]} and defined with shape {value.shape}"
                )
            scope[name] = value
        return scope

    def proved(self, before: Expression, after: Expression) -> bool:
        """Whether the difference lies in the ideal of what is given."""
        from .identity import all_zero

        def differences(left: Expression, right: Expression) -> list[Any]:
            return [a - b for a, b in apart(self.value(left), self.value(right))]

        relations = [d for equation in self.statement.relations for d in differences(*equation)]
        return all_zero(differences(before, after), relations)

    def refuted(self, before: Expression, after: Expression) -> tuple[str, int]:
        """A counterexample in a line, or nothing; and at how many points both lines are defined."""
        self.value(before), self.value(after)
        tried = 0
        for point, scope in self._satisfying:
            if tried == POINTS:
                break
            try:
                pairs = apart(before.evaluate(floats(), scope), after.evaluate(floats(), scope))
            except Undefined:
                continue
            tried += 1
            for place, (a, b) in enumerate(pairs):
                if _differ(a, b) and self._surely_differ(before, after, point, place):
                    where = self._place(point, before.names | after.names)
                    return f"{where}: {_number(a)} before, {_number(b)} after", tried
        return "", tried

    def _place(self, point: Point, names: set[str]) -> str:
        place = point.told(self._with_definitions(names), self.statement.free)
        return "; ".join(filter(None, [self.told, place]))

    def _with_definitions(self, names: set[str]) -> set[str]:
        """The names, and those in what they are defined by."""
        for name, definition in reversed(self.statement.definitions.items()):
            names = names | definition.names if name in names else names
        return names

    def _surely_differ(self, before: Expression, after: Expression, point: Point, place: int) -> bool:
        """Whether they differ there with fifty digits as well: in floats it might be rounding."""
        arithmetic = precise()
        try:
            scope = self._completed(point.scope(arithmetic.number), arithmetic)
            a, b = apart(before.evaluate(arithmetic, scope), after.evaluate(arithmetic, scope))[place]
        except Undefined:
            return False
        return _differ(arithmetic.number(a), arithmetic.number(b))

    @property
    def _satisfying(self) -> Iterator[tuple[Point, dict[str, Value]]]:
        """Points that satisfy what is given, with all symbols: those found before, then new ones."""
        yield from list(self._found)
        for point in self._points:
            try:
                scope = self._completed(point.scope(), floats())
            except Undefined:
                continue
            self._found.append((point, scope))
            yield point, scope

    def _residuals(self, point: Point) -> np.ndarray:
        scope = self._completed(point.scope(), floats())
        off = [
            a - b
            for left, right in self.statement.relations
            for a, b in apart(left.evaluate(floats(), scope), right.evaluate(floats(), scope))
        ]
        defined = self.positive & set(self.statement.definitions)
        if any(x <= 0 for name in defined for x in scope[name].entries):
            raise Undefined("what is positive is not")
        return np.array(off, dtype=float)


def _differ(a: Any, b: Any) -> bool:
    return not abs(a - b) <= _DIFFERENT * max(1.0, abs(a), abs(b))


def _number(x: Any) -> str:
    return f"{float(x):.4g}".replace("-", "−")
