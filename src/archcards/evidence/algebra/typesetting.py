"""Expressions as TeX, as they were written: nothing is expanded, ordered or simplified."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from .expressions import Expression

__all__ = ["symbol_tex", "to_tex"]

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
# How tightly an expression holds together: a + b, a · b, a b, what may follow a factor, a^b, a.
_SUM, _DOT, _PRODUCT, _FACTOR, _POWER, _ATOM = range(6)
_ORDER = {
    ast.LtE: r"\le", ast.Lt: "<", ast.GtE: r"\ge", ast.Gt: ">", ast.Eq: "=", ast.NotEq: r"\ne",
}  # fmt: skip
_NAMED = {"log": r"\log", "sin": r"\sin", "cos": r"\cos", "min": r"\min", "max": r"\max",
          "diag": r"\operatorname{diag}", "softmax": r"\operatorname{softmax}"}  # fmt: skip


def symbol_tex(name: str) -> str:
    r"""A symbol's name as TeX.

    Example:
        >>> [symbol_tex(name) for name in ("beta", "k_new", "s1", "lambda_", "m_j")]
        ['\\beta', 'k_{\\mathrm{new}}', 's_{1}', '\\lambda', 'm_{j}']
    """
    stem, *subscripts = name.rstrip("_").split("_")
    digits = re.fullmatch(r"([A-Za-z]+)(\d+)", stem)
    if digits:
        stem, subscripts = digits[1], [digits[2], *subscripts]
    return _letters(stem) + (f"_{{{','.join(map(_letters, subscripts))}}}" if subscripts else "")


def _letters(word: str) -> str:
    if word in _GREEK:
        return f"\\{word}"
    return word if len(word) == 1 or word.isdigit() else rf"\mathrm{{{word}}}"


def to_tex(expression: Expression, names: Mapping[str, str] | None = None) -> str:
    r"""The expression as TeX; `names` has the TeX of symbols that are not typeset by their name.

    Example:
        >>> from .expressions import parse
        >>> to_tex(parse("beta * (v - S.T @ k) / (k.T @ k)"))
        '\\frac{\\beta \\left(v - S^{\\top} k\\right)}{k^{\\top} k}'
    """
    return _Typesetter(names or {}).tex(expression.node)


class _Typesetter:
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def tex(self, node: ast.expr) -> str:
        return self._typeset(node)[0]

    def _held(self, node: ast.expr, least: int) -> str:
        """The expression, in parentheses if it holds together less tightly than `least`."""
        text, tightness = self._typeset(node)
        return text if tightness >= least else rf"\left({text}\right)"

    def _typeset(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Constant(value=value):
                return str(value), _ATOM
            case ast.Name(id=name):
                return self.names.get(name) or symbol_tex(name), _ATOM
            case ast.UnaryOp(op=op, operand=operand):
                return ("-" if isinstance(op, ast.USub) else "+") + self._held(operand, _DOT), _SUM
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(left, op, right)
            case ast.Attribute(value=value):
                return self._power(value, r"\top"), _POWER
            case ast.Subscript(value=value, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                base = self._held(value, _ATOM)
                base = f"{{{base}}}" if "_" in base or "^" in base else base
                return f"{base}_{{{', '.join(map(self.tex, parts))}}}", _ATOM
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return rf"\left[{self.tex(left)} {_ORDER[type(op)]} {self.tex(right)}\right]", _ATOM
            case ast.List(elts=items):
                rows = [item.elts if isinstance(item, ast.List) else [item] for item in items]
                return self._matrix(rows), _ATOM
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
        raise ValueError(f"{ast.unparse(node)!r} has no meaning")

    def _binary(self, left: ast.expr, op: ast.operator, right: ast.expr) -> tuple[str, int]:
        match op:
            case ast.Add():
                return f"{self.tex(left)} + {self._held(right, _DOT)}", _SUM
            case ast.Sub():
                return f"{self.tex(left)} - {self._held(right, _DOT)}", _SUM
            case ast.Div():
                return rf"\frac{{{self.tex(left)}}}{{{self.tex(right)}}}", _POWER
            case ast.Pow():
                return self._power(left, self.tex(right)), _POWER
        first = self._held(left, _PRODUCT)
        second = self.tex(right) if _is_sum(right) else self._held(right, _FACTOR)
        if _open_ended(left):  # what follows a sum would seem to belong to its term
            first = rf"\left({first}\right)"
        digits = second[0].isdigit() or (first[-1].isdigit() and second.startswith(r"\frac"))
        return first + (r" \cdot " if digits else " ") + second, _PRODUCT

    def _power(self, base: ast.expr, exponent: str) -> str:
        text = self._held(base, _ATOM)
        return f"{text}^{{{exponent}}}"

    def _matrix(self, rows: list[list[ast.expr]]) -> str:
        body = r" \\ ".join(" & ".join(map(self.tex, row)) for row in rows)
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"

    def _call(self, name: str, args: list[ast.expr]) -> tuple[str, int]:
        inner = ", ".join(map(self.tex, args))
        match name:
            case "sum" | "prod":
                index, low, high = map(self.tex, args[:3])
                # A sum reaches to the end of its term, so that a product needs no parentheses there.
                term = self._held(args[3], _DOT)
                return rf"\{name}_{{{index}={low}}}^{{{high}}} {term}", _PRODUCT
            case "exp":
                tall = any(mark in inner for mark in (r"\frac", r"\sum", "^", r"\begin"))
                return (rf"\exp\left({inner}\right)", _ATOM) if tall else (f"e^{{{inner}}}", _POWER)
            case "sqrt":
                return rf"\sqrt{{{inner}}}", _ATOM
            case "abs":
                return rf"\left|{inner}\right|", _ATOM
            case "norm":
                return rf"\left\lVert {inner} \right\rVert", _ATOM
            case "dot":
                return rf"{self._held(args[0], _FACTOR)} \cdot {self._held(args[1], _FACTOR)}", _DOT
            case "outer":
                transposed = self._power(args[1], r"\top")
                return f"{self._held(args[0], _FACTOR)} {transposed}", _FACTOR
            case "hadamard":
                return rf"{self._held(args[0], _FACTOR)} \odot {self._held(args[1], _FACTOR)}", _DOT
            case "eye":
                return f"I_{{{inner}}}", _ATOM
            case "ones":
                return rf"\mathbf{{1}}_{{{inner}}}", _ATOM
            case "concat":
                return self._matrix([[arg] for arg in args]), _ATOM
        return rf"{_NAMED[name]}\left({inner}\right)", _ATOM


def _open_ended(node: ast.expr) -> bool:
    """Whether an expression ends in a sum whose term could seem to go on."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        return _open_ended(node.right)
    return _is_sum(node)


def _is_sum(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="sum" | "prod")):
            return True
    return False
