"""`derive`: a derivation that is proved line by line, and a broken step that is refuted.

Each line is an expression in the language of `archcards.evidence.algebra.expressions`. It is typeset
as it was written, evaluated at small sizes, and proved equal to the line before as an identity of
polynomials. Independently of that it is evaluated in numbers, which refutes a wrong step by a
counterexample. What is neither proved nor refuted is undecided, and does not pass.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .algebra.expressions import (
    FUNCTIONS, Arithmetic, Expression, ExpressionError, Undefined, Value, apart, parse, scalar,
)  # fmt: skip
from .algebra.typesetting import symbol_tex, to_tex
from .algebra.witness import Point, floats, points, precise
from .record import CheckFailed, Derivation, Step, Symbol, current_recorder

__all__ = ["derive"]

Shape = tuple[str | int, ...]

POINTS = 12  # at which two lines are compared in numbers
LARGEST = 16  # combinations of sizes
_DIFFERENT = 1e-6


def derive(
    title: str,
    symbols: Mapping[str, Shape],
    steps: Sequence[tuple[str, str]],
    *,
    given: Sequence[str] = (),
    control: tuple[int | str, str],
    sizes: Mapping[str, int | Iterable[int]] | None = None,
    positive: Sequence[str] = (),
    tex: Mapping[str, str] | None = None,
) -> Derivation | None:
    """Proves that each line of a derivation equals the line before.

    Args:
        title: what is derived.
        symbols: a symbol's name to its shape: `()` for a scalar, `("d",)` for a column, `("d", "v")`
            for a matrix, in named sizes or integers. Symbols are real.
        steps: the lines, each an expression and its reason; the first is the start.
        given: what is known, `"k.T @ k == 1"`. `"u == ..."` for a symbol u that does not occur on
            the right defines u, and u stands for that expression.
        control: a mistake that must be refuted: `(index, expression)` in the place of that step, or
            `(expression, reason)` in the place of the last one.
        sizes: a size's name to the size at which to prove, or to several of them; the names may be
            used as integers in expressions. Unless given, two small sizes each.
        positive: names of symbols that are positive.
        tex: TeX of symbols that are not to be typeset by their name.

    Returns:
        The lines, typeset, and what became of them; None on a page that refused it.

    Raises:
        CheckFailed: a step is refuted or undecided, or the control is not refuted, outside a page.
            On a page that is recorded.
        ValueError: an expression means nothing, outside a page.

    Example:
        >>> derive("a write with a unit key is read back",
        ...        {"S": ("d", "v"), "k": ("d",), "t": ("v",)},
        ...        [("(S + outer(k, t - S.T @ k)).T @ k", "read after the write"),
        ...         ("S.T @ k + (t - S.T @ k) * (k.T @ k)", "distribute"),
        ...         ("t", "the key has length one")],
        ...        given=["k.T @ k == 1"],
        ...        control=("t + S.T @ k", "forgets to take off what was stored"))
        ✓ a write with a unit key is read back
              (S + outer(k, t - S.T @ k)).T @ k    [read after the write]
            ✓ S.T @ k + (t - S.T @ k) * (k.T @ k)    [distribute]
            ✓ t    [the key has length one]
    """
    recorder = current_recorder()
    call = recorder.call()
    try:
        problem = _read(title, symbols, steps, given, sizes, positive, tex or {})
        index, wrong = _read_control(control, problem)
        event = _decided(problem, index, wrong, call.line)
    except ValueError as reason:
        recorder.refuse(f"derivation {title!r}: {reason}")
        return None
    recorder.emit(event)
    if not event.passed and recorder.raises:
        raise CheckFailed(f"{title}: " + "; ".join(event.reasons))
    return event


@dataclass(frozen=True)
class _Problem:
    title: str
    shapes: Mapping[str, Shape]
    steps: list[tuple[Expression, str]]
    definitions: dict[str, Expression]
    relations: list[tuple[Expression, Expression]]
    sizes: list[dict[str, int]]
    positive: frozenset[str]
    tex: Mapping[str, str]

    def typeset(self, expression: Expression) -> str:
        return to_tex(expression, self.tex)

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, int]:
        rows_columns = [sizes[s] if isinstance(s, str) else s for s in self.shapes[name]]
        return tuple([*rows_columns, 1, 1][:2])

    @property
    def free(self) -> list[str]:
        return [name for name in self.shapes if name not in self.definitions]


def _read(
    title: Any, symbols: Any, steps: Any, given: Any, sizes: Any, positive: Any, tex: Mapping[str, str]
) -> _Problem:
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"the title must say what is derived, and it is {title!r}")
    if not isinstance(symbols, Mapping) or not symbols:
        raise ValueError("symbols must map each symbol to its shape")
    for name, shape in symbols.items():
        if not isinstance(name, str) or not name.isidentifier() or name in FUNCTIONS:
            raise ValueError(f"a symbol is an identifier that is no function, and it is {name!r}")
        if not isinstance(shape, tuple) or len(shape) > 2 or not all(
            isinstance(s, str) and s.isidentifier() or isinstance(s, int) and s > 0 for s in shape
        ):
            raise ValueError(f'the shape of {name} is (), ("d",) or ("d", "v"), and it is {shape!r}')
    if isinstance(steps, str) or len(steps) < 2:
        raise ValueError("there must be a start and at least one step")
    lines = [_line(step) for step in steps]
    for (before, _), (after, _) in itertools.pairwise(lines):
        if ast.dump(before.node) == ast.dump(after.node):
            raise ValueError(f"the step {after.source!r} repeats the line before")
    if isinstance(given, str):
        raise ValueError("given must be a list of equations")
    equations = [_equation(text) for text in given]
    definitions, relations = _definitions(equations, symbols)
    if isinstance(positive, str) or not set(positive) <= set(symbols):
        raise ValueError(f"positive must list symbols, and it is {positive!r}")
    if not set(tex) <= set(symbols):
        raise ValueError(f"tex names what is no symbol: {', '.join(sorted(set(tex) - set(symbols)))}")
    assigned = _sizes(symbols, sizes)
    return _Problem(
        title, symbols, lines, definitions, relations, assigned, frozenset(positive), dict(tex)
    )


def _line(step: Any) -> tuple[Expression, str]:
    if not isinstance(step, tuple | list) or len(step) != 2:
        raise ValueError(f"a step is an expression and its reason, and it is {step!r}")
    source, reason = step
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"the step {source!r} needs a reason")
    return parse(source), reason


def _equation(text: Any) -> tuple[Expression, Expression]:
    tree = parse(text).node
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or not isinstance(tree.ops[0], ast.Eq):
        raise ValueError(f"what is given is an equation with ==, and it is {text!r}")
    return tuple(Expression(ast.unparse(side), side) for side in (tree.left, tree.comparators[0]))


def _definitions(
    equations: list[tuple[Expression, Expression]], symbols: Mapping[str, Shape]
) -> tuple[dict[str, Expression], list[tuple[Expression, Expression]]]:
    """Tells definitions `u == ...` from relations; definitions may use those before them."""
    definitions: dict[str, Expression] = {}
    relations = []
    for left, right in equations:
        node = left.node
        defines = isinstance(node, ast.Name) and node.id in symbols and node.id not in definitions
        used_before = any(node.id in e.names for e in definitions.values()) if defines else True
        if defines and node.id not in right.names and not used_before:
            definitions[node.id] = right
        else:
            relations.append((left, right))
    return definitions, relations


def _sizes(symbols: Mapping[str, Shape], sizes: Any) -> list[dict[str, int]]:
    named = list(dict.fromkeys(s for shape in symbols.values() for s in shape if isinstance(s, str)))
    stated = {} if sizes is None else dict(sizes)
    for name in stated:
        if not isinstance(name, str) or name in symbols:
            raise ValueError(f"a size must have a name that is no symbol, and it is {name!r}")
    clash = [name for name in named if name in symbols]
    if clash:
        raise ValueError(f"{clash[0]} is a symbol and a size")
    choices = {}
    for name, value in stated.items():
        values = list(value) if isinstance(value, Iterable) else [value]
        least = 1 if name in named else 0
        if not values or not all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values):
            raise ValueError(f"the size {name} must be a positive integer or several, and it is {value!r}")
        choices[name] = values
    combined = [dict(zip(choices, combination, strict=True)) for combination in itertools.product(*choices.values())]
    open_sizes = [name for name in named if name not in stated]
    # Two assignments, in which neighbours differ, so that a product in the wrong order does not fit.
    defaults = [{name: (2, 3)[(i + turn) % 2] for i, name in enumerate(open_sizes)} for turn in range(2)]
    result = [one | default for one in combined for default in (defaults if open_sizes else [{}])]
    if len(result) > LARGEST:
        raise ValueError(f"there are {len(result)} combinations of sizes, and at most {LARGEST} are tried")
    order = [*named, *(name for name in stated if name not in named)]
    return [{name: one[name] for name in order} for one in result]


def _read_control(control: Any, problem: _Problem) -> tuple[int, tuple[Expression, str]]:
    if not isinstance(control, tuple | list) or len(control) != 2:
        raise ValueError("control must be (index, expression) or (expression, reason)")
    index, line = len(problem.steps) - 1, control
    if isinstance(control[0], int):
        index = control[0]
        if not 0 < index < len(problem.steps):
            raise ValueError(f"the control replaces step {index}, and there are 1 to {len(problem.steps) - 1}")
        line = (control[1], "the mistake")
    wrong = _line(line)
    if ast.dump(wrong[0].node) == ast.dump(problem.steps[index][0].node):
        raise ValueError("the control is the step itself: break it")
    return index, wrong


def _decided(problem: _Problem, index: int, wrong: tuple[Expression, str], line: int) -> Derivation:
    cases = [_Case(problem, sizes) for sizes in problem.sizes]
    told = tuple(case.told for case in cases if case.told)
    start, reason = problem.steps[0]
    for case in cases:
        case.value(start)  # a start that means nothing is found at once
    steps = [Step(source=start.source, tex=problem.typeset(start), reason=reason, status="start", sizes=told)]
    reasons = []
    for (before, _), (after, reason) in itertools.pairwise(problem.steps):
        step = _step(problem, cases, before, after, reason)
        steps.append(step)
        if step.status == "refuted":
            reasons.append(f"the step {step.source!r} is refuted: {step.witness}")
        elif step.status == "undecided":
            reasons.append(f"the step {step.source!r} is undecided: {step.witness or 'take a smaller step'}")
    broken = _step(problem, cases, problem.steps[index - 1][0], wrong[0], wrong[1])
    if broken.status != "refuted":
        told_how = "true" if broken.status == "proved" else "not refuted"
        reasons.append(f"the control {broken.source!r} is {told_how}: break the step by a real mistake")
    return Derivation(
        line=line, title=problem.title, symbols=tuple(_symbols(problem)),
        given=tuple(_equations_tex(problem)), steps=tuple(steps), control=broken, control_of=index,
        sizes=told, passed=not reasons, reasons=tuple(reasons),
    )  # fmt: skip


def _symbols(problem: _Problem) -> Iterable[Symbol]:
    for name, shape in problem.shapes.items():
        yield Symbol(name=name, tex=problem.tex.get(name) or symbol_tex(name), shape=tuple(map(str, shape)))


def _equations_tex(problem: _Problem) -> Iterable[str]:
    for name, right in problem.definitions.items():
        yield f"{problem.tex.get(name) or symbol_tex(name)} = {problem.typeset(right)}"
    for left, right in problem.relations:
        yield f"{problem.typeset(left)} = {problem.typeset(right)}"


def _step(problem: _Problem, cases: list[_Case], before: Expression, after: Expression, reason: str) -> Step:
    step = Step(
        source=after.source, tex=problem.typeset(after), reason=reason, status="proved",
        sizes=tuple(case.told for case in cases if case.told),
    )  # fmt: skip
    undecided = None
    for case in cases:
        refuted, tried = case.refuted(before, after)
        if refuted:
            return replace(step, status="refuted", witness=refuted)
        if tried < 3:
            undecided = undecided or "no numbers were found that satisfy what is given and at which both lines are defined"
        elif not undecided and not case.proved(before, after):
            at = f" at {case.told}" if case.told else ""
            undecided = f"the algebra does not decide it{at}, and no counterexample was found: take a smaller step"
    return replace(step, status="undecided", witness=undecided) if undecided else step


class _Case:
    """The problem at one assignment of sizes."""

    def __init__(self, problem: _Problem, sizes: Mapping[str, int]) -> None:
        self.problem = problem
        self.sizes = {name: scalar(size) for name, size in sizes.items()}
        self.shapes = {name: problem.shape(name, sizes) for name in problem.shapes}
        self.told = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        self.positive = set(problem.positive)
        self._exact_scope: dict[str, Value] | None = None
        self._exact_values: dict[str, Value] = {}
        shapes = {name: self.shapes[name] for name in problem.free}
        self._points = points(shapes, self.positive, self._residuals)
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
        from .algebra.identity import exact

        return exact()

    @property
    def _symbols(self) -> dict[str, Value]:
        if self._exact_scope is None:
            import sympy

            free = {}
            for name in self.problem.free:
                rows, columns = self.shapes[name]
                known = {"positive": True} if name in self.positive else {"real": True}
                free[name] = Value(tuple(
                    tuple(sympy.Symbol(f"{name}_{i}_{j}", **known) for j in range(columns)) for i in range(rows)
                ))  # fmt: skip
            self._exact_scope = self._completed(free, self._exact)
        return self._exact_scope

    def _completed(self, free: dict[str, Value], arithmetic: Arithmetic) -> dict[str, Value]:
        """Adds the sizes, and what is defined; checks the shapes of the latter."""
        scope = free | self.sizes
        for name, definition in self.problem.definitions.items():
            value = definition.evaluate(arithmetic, scope)
            if value.shape != self.shapes[name]:
                raise ExpressionError(
                    f"{name} is declared {self.shapes[name]} and defined with shape {value.shape}"
                )
            scope[name] = value
        return scope

    def proved(self, before: Expression, after: Expression) -> bool:
        """Whether the difference lies in the ideal of what is given."""
        from .algebra.identity import all_zero

        relations = [
            a - b
            for left, right in self.problem.relations
            for a, b in apart(self.value(left), self.value(right))
        ]
        return all_zero([a - b for a, b in apart(self.value(before), self.value(after))], relations)

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
                    used = before.names | after.names
                    used |= {n for d, e in self.problem.definitions.items() if d in used for n in e.names}
                    where = point.told(used, self.problem.free)
                    sized = f"{self.told}; " if self.told and where else self.told
                    return f"{sized}{where}: {_number(a)} before, {_number(b)} after", tried
        return "", tried

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
            for left, right in self.problem.relations
            for a, b in apart(left.evaluate(floats(), scope), right.evaluate(floats(), scope))
        ]
        defined_positive = [scope[name].entries for name in self.positive if name in self.problem.definitions]
        if any(x <= 0 for entries in defined_positive for x in entries):
            raise Undefined("what is positive is not")
        return np.array(off, dtype=float)


def _differ(a: Any, b: Any) -> bool:
    return not abs(a - b) <= _DIFFERENT * max(1.0, abs(a), abs(b))


def _number(x: Any) -> str:
    return f"{float(x):.4g}".replace("-", "−")
