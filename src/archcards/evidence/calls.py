"""Where an evidence function was called from: the line, the statement and the syntax of the call.

A page is run from Markdown under its own file name, so the innermost frame with that name is the
line a reader can click on, however many functions lie between it and the call.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType

__all__ = ["Call", "find_call", "is_typed", "never_computed"]

_CONVERSIONS = {"abs", "bool", "float", "int", "round", "str", "float64", "int64", "array", "asarray"}
_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Call:
    """One call as it stands in the source.

    `line` is the line of the call, `first` and `last` are those of the statement around it. `node`
    and `tree` are the call's syntax and that of the whole source, or None where the source is not
    at hand (typed into an old REPL), or where the page called through another module.
    """

    line: int
    first: int
    last: int
    node: ast.Call | None = None
    tree: ast.Module | None = None


def find_call(page: str | None, *, fallback: int = 1) -> Call:
    """Finds the call that led here: in `page`, or, without one, in the first frame outside.

    Where no frame belongs to the page (a thread that the page started), the line is `fallback`.
    """
    outside = _first_frame_outside()
    frame = outside
    while page is not None and frame is not None and frame.f_code.co_filename != page:
        frame = frame.f_back
    if frame is None:
        return Call(fallback, fallback, fallback)
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line, end, column, end_column = position
    if line is None or end is None:  # -X no_debug_ranges
        return Call(frame.f_lineno, frame.f_lineno, frame.f_lineno)
    tree = _parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    if tree is None:
        return Call(line, line, end)
    node, statement = _at(tree, (line, end, column, end_column))
    first, last = (statement.lineno, statement.end_lineno) if statement else (line, end)
    return Call(line, first, last or first, node if frame is outside else None, tree)


def is_typed(node: ast.expr) -> bool:
    """Whether an expression holds nothing but literals: numbers, words, signs and arithmetic on them,
    lists of them, and conversions such as `int(...)` of them."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return is_typed(operand)
        case ast.BinOp(left=left, right=right):
            return is_typed(left) and is_typed(right)
        case ast.JoinedStr(values=values):
            return all(isinstance(part, ast.Constant) for part in values)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(map(is_typed, items))
        case ast.Call(func=function, args=args, keywords=keywords):
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            return name in _CONVERSIONS and all(map(is_typed, [*args, *(k.value for k in keywords)]))
    return False


def never_computed(node: ast.expr, tree: ast.Module | None) -> bool:
    """Whether an expression is made of literals only, or is a name that only ever holds such a one."""
    if isinstance(node, ast.Name) and tree is not None:
        return _only_ever_typed(node.id, tree)
    return is_typed(node)


def _only_ever_typed(name: str, tree: ast.Module) -> bool:
    literals = bindings = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            bindings += 1
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            bindings += 1
        elif isinstance(node, ast.alias) and (node.asname or node.name) == name:
            bindings += 1
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            literals += sum(_assigns_typed(target, node.value, name) for target in targets)
    return 0 < bindings == literals


def _assigns_typed(target: ast.expr, value: ast.expr, name: str) -> int:
    if isinstance(target, ast.Name):
        return int(target.id == name and is_typed(value))
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        pairs = zip(target.elts, value.elts, strict=False)
        return sum(_assigns_typed(part, given, name) for part, given in pairs)
    return 0


def _first_frame_outside() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _within(frame):
        frame = frame.f_back
    return frame


def _within(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


@functools.lru_cache(maxsize=64)
def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError):
        return None


def _at(tree: ast.Module, position: tuple) -> tuple[ast.Call | None, ast.stmt | None]:
    """The call at exactly this position, and the innermost statement that spans its lines."""
    call, statement = None, None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            if node.lineno <= position[0] and (node.end_lineno or 0) >= position[1]:
                statement = node  # ast.walk goes outside in, so the last match is the innermost
        elif isinstance(node, ast.Call) and position == (
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
        ):
            call = node
    return call, statement
