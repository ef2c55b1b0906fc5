"""What a derivation states, read from the arguments of `derive`, and refused if it means nothing."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .expressions import FUNCTIONS, Expression, parse
from .typesetting import symbol_tex, to_tex

__all__ = ["Shape", "Statement", "read_control", "read_statement"]

Shape = tuple[str | int, ...]

MOST = 16  # combinations of sizes


@dataclass(frozen=True)
class Statement:
    """What a derivation states: its lines, what it takes as known, and at which sizes."""

    title: str
    shapes: Mapping[str, Shape]
    steps: list[tuple[Expression, str]]
    definitions: dict[str, Expression]
    relations: list[tuple[Expression, Expression]]
    sizes: list[dict[str, int]]
    positive: frozenset[str]
    tex: Mapping[str, str]

    @property
    def equations(self) -> Iterable[str]:
        """What is given, as TeX."""
        for name, right in self.definitions.items():
            yield f"{self.symbol(name)} = {self.typeset(right)}"
        for left, right in self.relations:
            yield f"{self.typeset(left)} = {self.typeset(right)}"

    def symbol(self, name: str) -> str:
        """A symbol as TeX."""
        return self.tex.get(name) or symbol_tex(name)

    def typeset(self, expression: Expression) -> str:
        """An expression as TeX."""
        return to_tex(expression, self.tex)

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of a symbol at these sizes."""
        rows_columns = [sizes[s] if isinstance(s, str) else s for s in self.shapes[name]]
        return tuple([*rows_columns, 1, 1][:2])

    @property
    def free(self) -> list[str]:
        """The symbols that are not defined by others."""
        return [name for name in self.shapes if name not in self.definitions]


def read_statement(
    title: Any, symbols: Any, steps: Any, given: Any, sizes: Any, positive: Any, tex: Mapping[str, str]
) -> Statement:
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
    return Statement(
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
        if not values or not all(type(v) is int and v >= least for v in values):
            raise ValueError(f"the size {name} must be positive integers, and it is {value!r}")
        choices[name] = values
    combined = [dict(zip(choices, sizes, strict=True)) for sizes in itertools.product(*choices.values())]
    open_sizes = [name for name in named if name not in stated]
    # Two assignments, in which neighbours differ, so that a product in the wrong order does not fit.
    defaults = [
        {name: (2, 3)[(i + turn) % 2] for i, name in enumerate(open_sizes)} for turn in range(2)
    ]
    result = [one | default for one in combined for default in (defaults if open_sizes else [{}])]
    if len(result) > MOST:
        raise ValueError(f"there are {len(result)} combinations of sizes, and at most {MOST} are tried")
    order = [*named, *(name for name in stated if name not in named)]
    return [{name: one[name] for name in order} for one in result]


def read_control(control: Any, statement: Statement) -> tuple[int, tuple[Expression, str]]:
    if not isinstance(control, tuple | list) or len(control) != 2:
        raise ValueError("control must be (index, expression) or (expression, reason)")
    index, line = len(statement.steps) - 1, control
    if isinstance(control[0], int):
        index = control[0]
        if not 0 < index < len(statement.steps):
            last = len(statement.steps) - 1
            raise ValueError(f"the control replaces step {index}, and there are 1 to {last}")
        line = (control[1], "the mistake")
    wrong = _line(line)
    if ast.dump(wrong[0].node) == ast.dump(statement.steps[index][0].node):
        raise ValueError("the control is the step itself: break it")
    return index, wrong
