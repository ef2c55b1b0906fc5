"""The expressions of a derivation: a small language over scalars, vectors and matrices.

It has Python's syntax and these meanings (an expression is typeset as written, see `typesetting`):

| written | means |
|---|---|
| `a + b`, `-a`, `a * b`, `a / b`, `a**n` | as usual; `*` and `/` take a scalar on one side |
| `A @ B`, `A.T` | the matrix product, the transpose; a vector is a column |
| `x[i]`, `A[i, j]`, `A[i]` | an entry; a row of a matrix, as a vector. Indices start at 0 |
| `[a, b]`, `[[a, b], [c, d]]` | a vector, a matrix |
| `sum(i, a, b, term)`, `prod(i, a, b, term)` | over i = a, ..., b, both included |
| `(i <= j)` | 1 if it holds, else 0, for integers |
| `exp log sqrt sin cos abs` | entry by entry |
| `min(a, b)`, `max(a, b)` | of scalars |
| `dot outer norm diag eye ones hadamard softmax concat` | of vectors; `eye(d)`, `ones(d)` by size |

The same expression is evaluated over floats (for counterexamples) and over SymPy's symbols (for
proofs): what differs stands in an `Arithmetic`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = [
    "FUNCTIONS",
    "Arithmetic",
    "Expression",
    "ExpressionError",
    "Undefined",
    "Value",
    "apart",
    "parse",
    "scalar",
]

Rows = tuple[tuple[Any, ...], ...]


class ExpressionError(ValueError):
    """An expression that means nothing: unknown names, shapes that do not fit."""


class Undefined(ArithmeticError):
    """An expression has no value here: a division by zero, a root of a negative number."""


@dataclass(frozen=True)
class Value:
    """A matrix of whatever numbers the arithmetic has; a vector has one column, a scalar one entry."""

    rows: Rows

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0])

    @property
    def is_scalar(self) -> bool:
        return self.shape == (1, 1)

    @property
    def entries(self) -> list[Any]:
        return [x for row in self.rows for x in row]

    def map(self, function: Callable[[Any], Any]) -> Value:
        return Value(tuple(tuple(function(x) for x in row) for row in self.rows))

    @property
    def transposed(self) -> Value:
        return Value(tuple(zip(*self.rows, strict=True)))


def scalar(x: Any) -> Value:
    """A single number as a value."""
    return Value(((x,),))


@dataclass(frozen=True)
class Arithmetic:
    """The functions in which one kind of numbers differs from another.

    `number` makes one of these numbers from a float or a fraction; `functions` has `exp`, `log`,
    `sqrt`, `sin`, `cos`, `abs` of one number; `maximum` of two; `divide` and `power` are `/` and
    `**`; and `sum_between(index, low, high, term)` serves bounds that are no integers, where `term`
    maps a number to a number.
    """

    number: Callable[[Any], Any]
    functions: Mapping[str, Callable[[Any], Any]]
    maximum: Callable[[Any, Any], Any]
    divide: Callable[[Any, Any], Any]
    power: Callable[[Any, Any], Any]
    sum_between: Callable[[str, Any, Any, Callable[[Any], Any]], Any]


@dataclass(frozen=True)
class Expression:
    """An expression as written, and its syntax."""

    source: str
    node: ast.expr

    @property
    def names(self) -> set[str]:
        """All names in it but those of functions."""
        called = {id(n.func) for n in ast.walk(self.node) if isinstance(n, ast.Call)}
        return {n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and id(n) not in called}

    def evaluate(self, arithmetic: Arithmetic, scope: Mapping[str, Value]) -> Value:
        """Its value, where `scope` holds those of its names.

        Raises:
            ExpressionError: it means nothing.
            Undefined: it has no value at these numbers.
        """
        try:
            return _Evaluation(arithmetic).visit(self.node, dict(scope))
        except ExpressionError as error:
            raise ExpressionError(f"{error}, in {self.source!r}") from None
        except (ZeroDivisionError, OverflowError) as error:
            raise Undefined(str(error)) from None


def parse(source: Any) -> Expression:
    """Reads one expression.

    Raises:
        ExpressionError: it is no expression of this language.
    """
    if not isinstance(source, str) or not source.strip():
        raise ExpressionError(f"an expression must be text, and it is {source!r}")
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ExpressionError(f"{source!r} is no expression: {getattr(error, 'msg', error)}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ExpressionError(f"{type(node).__name__} has no meaning, in {source!r}")
        if isinstance(node, ast.Attribute) and node.attr != "T":
            raise ExpressionError(f".{node.attr} has no meaning, in {source!r}")
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
            if name not in FUNCTIONS or node.keywords:
                raise ExpressionError(f"there is no function {name}, in {source!r}")
            _check_arguments(name, node.args)
    return Expression(" ".join(source.split()), tree)


def _check_arguments(name: str, args: list[ast.expr]) -> None:
    if name in ("sum", "prod"):
        if len(args) != 4 or not isinstance(args[0], ast.Name):
            how = f"{name}(i, 0, n - 1, x[i])"
            raise ExpressionError(f"{name} takes an index, two bounds and a term: {how}")
        return
    wanted = 2 if name in _OF_TWO else 1
    if len(args) != wanted and not (name == "concat" and args):
        raise ExpressionError(f"{name} takes {wanted} of them, and there are {len(args)}")


def apart(left: Value, right: Value) -> list[tuple[Any, Any]]:
    """The entries of two values side by side; a bare 0 stands for zero of any shape."""
    if left.shape == right.shape:
        return list(zip(left.entries, right.entries, strict=True))
    if _is_zero(left):
        return [(0, x) for x in right.entries]
    if _is_zero(right):
        return [(x, 0) for x in left.entries]
    raise ExpressionError(f"shape {_told(right)} cannot equal shape {_told(left)}")


_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Call,
    ast.Compare, ast.List, ast.Tuple, ast.Load, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
_OF_TWO = ("min", "max", "dot", "outer", "hadamard")
_ELEMENTWISE = ("exp", "log", "sqrt", "sin", "cos", "abs")
FUNCTIONS = frozenset(
    [*_ELEMENTWISE, "min", "max", "sum", "prod", "dot", "outer", "norm", "diag", "eye", "ones",
     "hadamard", "softmax", "concat"]
)  # fmt: skip


class _Evaluation:
    def __init__(self, arithmetic: Arithmetic) -> None:
        self.do = arithmetic

    def visit(self, node: ast.expr, scope: dict[str, Value]) -> Value:
        match node:
            case ast.Constant(value=bool() | str() | bytes() | complex() | None):
                raise ExpressionError(f"{node.value!r} is no number")
            case ast.Constant(value=int() as number):
                return scalar(number)
            case ast.Constant(value=float() as number) if math.isfinite(number):
                return scalar(Fraction(repr(number)))
            case ast.Name(id=name):
                if name not in scope:
                    raise ExpressionError(f"the symbol {name} is not declared")
                return scope[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.visit(operand, scope).map(lambda x: -x)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.visit(operand, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.visit(left, scope), self.visit(right, scope))
            case ast.Attribute(value=value, attr="T"):
                return self.visit(value, scope).transposed
            case ast.Subscript(value=value, slice=index):
                return self._entry(self.visit(value, scope), index, scope)
            case ast.List(elts=items) if items:
                return self._literal(items, scope)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                low = self._integer(self.visit(left, scope), "a comparison")
                high = self._integer(self.visit(right, scope), "a comparison")
                return scalar(int(_COMPARISONS[type(op)](low, high)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, args, scope)
        raise ExpressionError(f"{ast.unparse(node)!r} has no meaning")

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        match op:
            case ast.Add() | ast.Sub():
                sign = 1 if isinstance(op, ast.Add) else -1
                return self.add(left, right.map(lambda x: sign * x if sign < 0 else x))
            case ast.Mult():
                if left.is_scalar:
                    return right.map(lambda x: left.rows[0][0] * x)
                if right.is_scalar:
                    return left.map(lambda x: x * right.rows[0][0])
                raise ExpressionError(
                    f"* takes a scalar, and the shapes are {_told(left)} and {_told(right)}: "
                    "use @ or hadamard"
                )
            case ast.MatMult():
                return self.product(left, right)
            case ast.Div():
                if not right.is_scalar:
                    raise ExpressionError(f"/ takes a scalar below, and its shape is {_told(right)}")
                return left.map(lambda x: self.do.divide(x, right.rows[0][0]))
            case ast.Pow():
                if not (left.is_scalar and right.is_scalar):
                    raise ExpressionError("** takes scalars")
                return scalar(self.do.power(left.rows[0][0], right.rows[0][0]))
        raise ExpressionError(f"the operator {type(op).__name__} has no meaning")

    def add(self, left: Value, right: Value) -> Value:
        if _is_zero(left):
            return right
        if _is_zero(right):
            return left
        if left.shape != right.shape:
            raise ExpressionError(f"shapes {_told(left)} and {_told(right)} cannot be added")
        pairs = zip(left.rows, right.rows, strict=True)
        return Value(tuple(tuple(a + b for a, b in zip(*rows, strict=True)) for rows in pairs))

    def product(self, left: Value, right: Value) -> Value:
        if left.shape[1] != right.shape[0]:
            raise ExpressionError(f"shapes {_told(left)} and {_told(right)} cannot be multiplied")
        columns = right.transposed.rows
        return Value(tuple(tuple(self._total([a * b for a, b in zip(row, column, strict=True)])
                                 for column in columns) for row in left.rows))  # fmt: skip

    @staticmethod
    def _total(terms: list[Any]) -> Any:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _literal(self, items: list[ast.expr], scope: dict[str, Value]) -> Value:
        rows = [item.elts if isinstance(item, ast.List) else [item] for item in items]
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ExpressionError("the rows of a matrix differ in length")
        values = [[self.visit(item, scope) for item in row] for row in rows]
        if not all(value.is_scalar for row in values for value in row):
            raise ExpressionError("a matrix holds scalars: stack vectors with concat")
        return Value(tuple(tuple(value.rows[0][0] for value in row) for row in values))

    def _entry(self, value: Value, index: ast.expr, scope: dict[str, Value]) -> Value:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        places = [self._integer(self.visit(part, scope), "an index") for part in parts]
        for place, size in zip(places, value.shape, strict=False):
            if not 0 <= place < size:
                raise ExpressionError(f"index {place} is outside 0, ..., {size - 1}")
        if len(places) == 2:
            return scalar(value.rows[places[0]][places[1]])
        if len(places) == 1:
            return Value((value.rows[places[0]],)).transposed
        raise ExpressionError("a matrix has one index or two")

    def _call(self, name: str, args: list[ast.expr], scope: dict[str, Value]) -> Value:
        if name in ("sum", "prod"):
            return self._repeated(name, args, scope)
        values = [self.visit(arg, scope) for arg in args]
        if name in _ELEMENTWISE:
            return values[0].map(self.do.functions[name])
        return getattr(self, f"_{name}")(*values)

    def _repeated(self, name: str, args: list[ast.expr], scope: dict[str, Value]) -> Value:
        index, term = args[0].id, args[3]
        if index in scope:
            raise ExpressionError(f"the index {index} of {name} is already a symbol")
        low, high = (self._scalar(self.visit(arg, scope), "a bound") for arg in args[1:3])
        if isinstance(low, int) and isinstance(high, int):
            values = [self.visit(term, scope | {index: scalar(i)}) for i in range(low, high + 1)]
            total = scalar(0) if name == "sum" else scalar(1)
            for value in values:
                if name == "prod" and not value.is_scalar:
                    raise ExpressionError("prod takes scalars: the order of matrices would not be said")
                if name == "sum":
                    total = self.add(total, value)
                else:
                    total = scalar(total.rows[0][0] * value.rows[0][0])
            return total
        if name == "prod":
            raise ExpressionError("the bounds of prod must be integers at the stated sizes")

        def at(i: Any) -> Any:
            return self._scalar(self.visit(term, scope | {index: scalar(i)}), "the term of a sum")

        return scalar(self.do.sum_between(index, low, high, at))

    def _min(self, a: Value, b: Value) -> Value:
        a, b = (self._scalar(x, "min") for x in (a, b))
        return scalar(a - self.do.maximum(a - b, 0))

    def _max(self, a: Value, b: Value) -> Value:
        a, b = (self._scalar(x, "max") for x in (a, b))
        return scalar(b + self.do.maximum(a - b, 0))

    def _dot(self, a: Value, b: Value) -> Value:
        return self.product(self._vector(a, "dot").transposed, self._vector(b, "dot"))

    def _outer(self, a: Value, b: Value) -> Value:
        return self.product(self._vector(a, "outer"), self._vector(b, "outer").transposed)

    def _norm(self, a: Value) -> Value:
        return self._dot(a, a).map(self.do.functions["sqrt"])

    def _diag(self, a: Value) -> Value:
        entries = self._vector(a, "diag").entries
        places = range(len(entries))
        return Value(tuple(tuple(entries[i] if i == j else 0 for j in places) for i in places))

    def _eye(self, size: Value) -> Value:
        return self._diag(self._ones(size))

    def _ones(self, size: Value) -> Value:
        count = self._integer(size, "a size")
        if count < 1:
            raise ExpressionError(f"a size must be positive, and it is {count}")
        return Value(((1,),) * count)

    def _hadamard(self, a: Value, b: Value) -> Value:
        if a.shape != b.shape:
            told = f"{_told(a)} and {_told(b)}"
            raise ExpressionError(f"hadamard takes equal shapes, and they are {told}")
        pairs = zip(a.rows, b.rows, strict=True)
        return Value(tuple(tuple(x * y for x, y in zip(*rows, strict=True)) for rows in pairs))

    def _softmax(self, a: Value) -> Value:
        weights = [self.do.functions["exp"](x) for x in self._vector(a, "softmax").entries]
        mass = self._total(weights)
        return Value(tuple((self.do.divide(w, mass),) for w in weights))

    def _concat(self, *values: Value) -> Value:
        return Value(tuple(row for value in values for row in self._vector(value, "concat").rows))

    @staticmethod
    def _vector(value: Value, what: str) -> Value:
        if value.shape[1] != 1:
            raise ExpressionError(f"{what} takes vectors, and the shape is {_told(value)}")
        return value

    @staticmethod
    def _scalar(value: Value, what: str) -> Any:
        if not value.is_scalar:
            raise ExpressionError(f"{what} must be a scalar, and its shape is {_told(value)}")
        return value.rows[0][0]

    def _integer(self, value: Value, what: str) -> int:
        number = self._scalar(value, what)
        if not isinstance(number, int):
            raise ExpressionError(f"{what} must be an integer at the stated sizes, and it is {number}")
        return number


_COMPARISONS = {
    ast.LtE: lambda a, b: a <= b, ast.Lt: lambda a, b: a < b, ast.GtE: lambda a, b: a >= b,
    ast.Gt: lambda a, b: a > b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
}  # fmt: skip


def _is_zero(value: Value) -> bool:
    return value.is_scalar and isinstance(value.rows[0][0], int) and value.rows[0][0] == 0


def _told(value: Value) -> str:
    return " × ".join(map(str, value.shape))
