"""How code is broken in one place: a change to a module's syntax tree, of each kind that matters here."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of", "mutated"]

BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
TURNED = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.MatMult, ast.Pow, ast.Mod)
NAMES = {
    "maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "tril": "triu", "triu": "tril",
    "floor": "ceil", "ceil": "floor", "any": "all", "all": "any", "sin": "cos", "cos": "sin",
    "argmax": "argmin", "argmin": "argmax", "cumsum": "cumprod", "zeros": "ones", "ones": "zeros",
}  # fmt: skip
MOVES = {"swapaxes", "moveaxis", "transpose"}


@dataclass(frozen=True)
class Mutant:
    """One change: where, of which kind, and what it makes of the code."""

    module: str  # such as "mechanisms/masks"
    line: int
    column: int
    kind: str
    before: str
    after: str
    number: int  # its place among the module's mutants

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line}:{self.column}: {self.kind}: {self.before} → {self.after}"


Edit = Callable[[], None]


def _edits(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Edit, ast.AST]]:
    """Each change that can be made to a tree: the node it is about, its kind, how, and what shows it."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "type_params"):
                continue
            for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.expr):
                    def put(new: ast.expr, parent=parent, name=name, place=place) -> None:
                        if place is None:
                            setattr(parent, name, new)
                        else:
                            getattr(parent, name)[place] = new
                    yield from _of_expression(node, put, parent)
                elif isinstance(node, ast.stmt) and place is not None:
                    yield from _of_statement(node, value, place)


def _of_expression(node: ast.expr, put: Callable, parent: ast.AST):
    def becomes(kind: str, new: ast.expr):
        return node, kind, lambda: put(ast.copy_location(new, node)), new

    match node:
        case ast.Compare(ops=[op]):
            if type(op) in BOUNDS:
                yield becomes("bound", ast.Compare(node.left, [BOUNDS[type(op)]()], node.comparators))
            if type(op) in TURNED:
                yield becomes("comparison", ast.Compare(node.left, [TURNED[type(op)]()], node.comparators))
        case ast.BinOp(left=left, op=op, right=right) if not _textual(node):
            if type(op) in OTHER:
                yield becomes("operator", ast.BinOp(left, OTHER[type(op)](), right))
            if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.MatMult):
                yield becomes("dropped term", left)
                if isinstance(op, ast.Add | ast.Mult):
                    yield becomes("dropped term", right)
            if isinstance(op, SWAPPED):
                yield becomes("swapped operands", ast.BinOp(right, op, left))
        case ast.BoolOp(op=op, values=values):
            other = ast.And() if isinstance(op, ast.Or) else ast.Or()
            yield becomes("condition", ast.BoolOp(other, values))
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            if not isinstance(operand, ast.Constant):
                yield becomes("dropped sign", operand)
        case ast.Constant(value=bool() as value):
            yield becomes("constant", ast.Constant(not value))
        case ast.Constant(value=int() as value):
            yield becomes("constant", ast.Constant(value + 1))
        case ast.Constant(value=float() as value):
            yield becomes("constant", ast.Constant(value * 1.5 if value else 1.0))
        case ast.Attribute(value=inner, attr="T" | "mT"):
            yield becomes("transpose", inner)
        case ast.Call(func=func, args=args):
            called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if called in MOVES and args:
                yield becomes("transpose", args[0])
            if called in NAMES:
                other = copy.copy(func)
                setattr(other, "attr" if isinstance(func, ast.Attribute) else "id", NAMES[called])
                yield becomes("function", ast.Call(other, args, node.keywords))
            if len(args) >= 2 and all(isinstance(a, ast.Name | ast.Attribute | ast.Subscript) for a in args[:2]):
                if called not in ("isinstance", "hasattr", "getattr", "issubclass"):
                    yield becomes("swapped arguments", ast.Call(func, [args[1], args[0], *args[2:]], node.keywords))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield becomes("branches", ast.IfExp(test, orelse, body))


def _of_statement(node: ast.stmt, body: list[ast.stmt], place: int):
    def becomes(kind: str, new: list[ast.stmt], shown: ast.AST, length: int = 1):
        def edit() -> None:
            body[place : place + length] = new
        return node, kind, edit, shown

    nothing = ast.copy_location(ast.Pass(), node)
    update = ast.Assign | ast.AugAssign
    if isinstance(node, ast.Raise | ast.AugAssign):
        yield becomes("refusal" if isinstance(node, ast.Raise) else "dropped update", [nothing], nothing)
    following = body[place + 1] if place + 1 < len(body) else None
    if isinstance(node, update) and isinstance(following, update) and _depend(node, following):
        yield becomes("order", [following, node], following, 2)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield becomes("dropped call", [nothing], nothing)


def _textual(node: ast.BinOp) -> bool:
    """Whether it joins texts, types or patterns, whose changes are no mistakes of computation."""
    return any(
        isinstance(part, ast.JoinedStr) or isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
        for part in ast.walk(node)
    ) or isinstance(node.op, ast.BitOr) and "None" in ast.unparse(node)


def _depend(*nodes: ast.stmt) -> bool:
    """Whether one of two updates changes what the other uses."""
    used = [{name.id for name in ast.walk(node) if isinstance(name, ast.Name)} for node in nodes]
    changed = [
        {name.id for target in getattr(node, "targets", None) or [node.target] for name in ast.walk(target)
         if isinstance(name, ast.Name)}
        for node in nodes
    ]  # fmt: skip
    return bool(changed[0] & used[1] or changed[1] & used[0])


def _skipped(tree: ast.Module) -> set[int]:
    """What is not broken: docstrings' neighbours such as `__all__`, messages of errors, annotations."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Raise):
            parts = [node.exc] if node.exc else []
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            parts = [node]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation] if node.annotation else []
        elif isinstance(node, ast.FunctionDef):
            parts = [*node.decorator_list, *([node.returns] if node.returns else [])]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        skipped |= {id(inner) for part in parts for inner in ast.walk(part)}
    return skipped


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module.

    Example:
        >>> [(m.kind, m.after) for m in mutants_of("m", "def f(a, b):\\n    return a - b")]
        [('operator', 'a + b'), ('dropped term', 'a'), ('swapped operands', 'b - a')]
    """
    tree = ast.parse(source)
    skipped = _skipped(tree)
    return [
        Mutant(module, node.lineno, node.col_offset + 1, kind, _shown(node), _shown(new), number)
        for number, (node, kind, _, new) in enumerate(_edits(tree))
        if id(node) not in skipped
    ]


def mutated(source: str, number: int) -> ast.Module:
    """The module's tree with the change of that number made."""
    tree = ast.parse(source)
    for place, (_, _, edit, _) in enumerate(_edits(tree)):
        if place == number:
            edit()
            break
    return ast.fix_missing_locations(tree)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:59] + "…"
