"""Proofs that expressions are equal, by polynomial identity.

Every exponential, logarithm, root, sine, absolute value and positive part becomes an indeterminate,
with the relations that these functions satisfy:

- exp(a + b) = exp(a) exp(b), so that one indeterminate stands for each independent exponent;
- cos and sin of a sum by the addition formulas, with c² + s² = 1 for each independent angle;
- r**q = b for the q-th root r of b;
- |x|² = x², and for the positive part p = max(x, 0): p² = p x.

Each relation has a power of its own indeterminate in front, so that together they are a Gröbner
basis as they stand.

What is left are rational functions over the rational numbers. Two are equal if the numerator of
their difference lies in the ideal of all the relations, those of the functions and those that were
given; a Gröbner basis decides it. Denominators are taken to be different from zero.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sympy
from sympy.polys.groebnertools import groebner
from sympy.polys.orderings import grevlex, lex
from sympy.polys.polyerrors import BasePolynomialError
from sympy.polys.rings import PolyElement, PolyRing

from .expressions import Arithmetic, ExpressionError

__all__ = ["all_zero", "exact"]


class _positive_part(sympy.Function):  # a function's name, as SymPy has them
    """max(x, 0), which SymPy is not to compare or rewrite."""

    is_real = True
    is_nonnegative = True


@functools.cache
def exact() -> Arithmetic:
    """Arithmetic over SymPy's expressions."""
    functions: dict[str, Callable[[Any], Any]] = {
        name: getattr(sympy, name) for name in ("exp", "log", "sqrt", "sin", "cos")
    }
    return Arithmetic(
        sympy.sympify,
        functions | {"abs": sympy.Abs},
        maximum=lambda x, zero: _positive_part(x - zero),
        divide=_divide,
        power=lambda base, exponent: sympy.Pow(sympy.sympify(base), sympy.sympify(exponent)),
        sum_between=_sum_between,
    )


def _divide(a: Any, b: Any) -> Any:
    quotient = sympy.sympify(a) / sympy.sympify(b)
    if quotient.has(sympy.zoo, sympy.nan):
        raise ZeroDivisionError
    return int(quotient) if quotient.is_Integer else quotient


def _sum_between(name: str, low: Any, high: Any, term: Callable[[Any], Any]) -> Any:
    """A sum of a polynomial in its index, in closed form.

    i**k is the difference from i to i + 1 of B(i) / (k + 1), where B is Bernoulli's polynomial of
    degree k + 1.
    """
    index = sympy.Dummy(name)
    summand = sympy.expand(term(index))
    if not summand.is_polynomial(index):
        raise ExpressionError(f"the term of a sum between symbols must be a polynomial in {name}")
    total = sympy.Integer(0)
    for (power,), coefficient in sympy.Poly(summand, index).terms():
        bernoulli = functools.partial(sympy.bernoulli, power + 1)
        grown = bernoulli(sympy.sympify(high) + 1) - bernoulli(sympy.sympify(low))
        total += coefficient * grown / (power + 1)
    return sympy.expand(total)


def all_zero(differences: Sequence[Any], relations: Sequence[Any]) -> bool:
    """Whether every difference is zero wherever all the relations (taken as `= 0`) hold.

    Example:
        >>> x, k, c = sympy.symbols("x k c")
        >>> all_zero([sympy.exp(x) * sympy.exp(-x / 2) - sympy.exp(x / 2)], [])
        True
        >>> all_zero([k**3 - k], [k**2 - 1]), all_zero([k - 1], [k**2 - 1])
        (True, False)
    """
    differences = [sympy.sympify(d) for d in differences]
    relations = [sympy.sympify(r) for r in relations]
    try:
        return _vanish(differences, relations)
    except (ArithmeticError, ValueError, BasePolynomialError):
        return False  # outside what the algebra knows, such as the root of a negative number


def _vanish(differences: Sequence[Any], relations: Sequence[Any]) -> bool:
    indeterminates = _Indeterminates()
    for _ in range(2):  # the first round finds the common denominators of exponents and angles
        indeterminates.start()
        given = [indeterminates.replace(relation) for relation in relations]
        indeterminates.known = given
        replaced = [indeterminates.replace(difference) for difference in differences]
    return _in_ideal(replaced, [*given, *indeterminates.relations], indeterminates.order)


class _Indeterminates:
    """Puts a symbol in the place of everything that is no rational function."""

    def __init__(self) -> None:
        self._fractions: dict[Any, int] = {}
        self.known: list[Any] = []

    def start(self) -> None:
        self.relations: list[Any] = []
        self.order: list[Any] = []
        self._symbols: dict[Any, Any] = {}
        self._seen: dict[Any, Any] = {}

    def replace(self, expression: Any) -> Any:
        if expression not in self._seen:
            self._seen[expression] = self._replace(expression)
        return self._seen[expression]

    def _replace(self, e: Any) -> Any:
        if e.is_Symbol or e.is_Rational:
            return e
        if e.is_Add or e.is_Mul:
            return e.func(*map(self.replace, e.args))
        if isinstance(e, sympy.exp):
            return self._exponential(self.replace(e.args[0]))
        if e is sympy.E:
            return self._exponential(sympy.Integer(1))
        if e.is_Pow:
            return self._power(self.replace(e.base), e.exp)
        if isinstance(e, sympy.sin | sympy.cos):
            cosine, sine = self._direction(self.replace(e.args[0]))
            return sine if isinstance(e, sympy.sin) else cosine
        argument = self._canonical(self.replace(e.args[0])) if len(e.args) == 1 else None
        if isinstance(e, sympy.log):
            return self._logarithm(argument)
        if isinstance(e, sympy.Abs):
            return self._absolute(argument)
        if isinstance(e, _positive_part):
            return self._positive_part(argument)
        raise ExpressionError(f"{e} has no algebra")

    def _symbol(
        self, kind: str, argument: Any, relation: Callable[[Any, Any], Any] | None = None
    ) -> Any:
        key = kind, argument
        if key not in self._symbols:
            symbol = sympy.Symbol(f"{kind}({argument})", real=True)
            self._symbols[key] = symbol
            self.order.insert(0, symbol)  # the newest first, so that its relation has it in front
            if relation is not None:
                self.relations.append(relation(symbol, argument))
        return self._symbols[key]

    def _canonical(self, argument: Any) -> Any:
        """One form for equal arguments: in lowest terms, and reduced by what is given."""
        numerator, denominator = sympy.fraction(sympy.cancel(argument))
        return self._reduced(numerator) / denominator

    def _reduced(self, polynomial: Any) -> Any:
        polynomial = sympy.expand(polynomial)
        if polynomial.is_Rational or not self.known:
            return polynomial
        return _reduced(polynomial, self.known)

    def _terms(self, argument: Any) -> Iterable[tuple[Any, Any]]:
        """The argument as a sum of rational coefficients times what cannot be taken apart.

        Terms over the same denominator are divided by it, so that x/d + x and (x + d x)/d agree.
        """
        over: dict[Any, Any] = {}
        for term in sympy.Add.make_args(sympy.expand(argument)):
            numerator, denominator = _fraction(term)
            over[denominator] = over.get(denominator, 0) + numerator
        whole, broken = over.pop(sympy.S.One, sympy.S.Zero), []
        for denominator, numerator in over.items():
            numerator, denominator = _fraction(sympy.cancel(numerator / denominator))
            if denominator == 1:
                whole += numerator
                continue
            [quotient], rest = sympy.reduced(numerator, [denominator])
            whole += quotient
            broken += [term / denominator for term in sympy.Add.make_args(sympy.expand(rest))]
        for term in [*sympy.Add.make_args(self._reduced(whole)), *broken]:
            yield term.as_coeff_Mul()

    def _whole(self, kind: str, coefficient: Any, rest: Any) -> tuple[int, int]:
        """The coefficient as a whole number of the smallest fraction of `rest` in use."""
        key = kind, rest
        self._fractions[key] = math.lcm(self._fractions.get(key, 1), int(coefficient.q))
        return int(coefficient * self._fractions[key]), self._fractions[key]

    def _exponential(self, argument: Any) -> Any:
        product = sympy.Integer(1)
        for coefficient, rest in self._terms(argument):
            taken = [a for (kind, a), s in self._symbols.items() if kind == "log" and s == rest]
            if taken:
                product *= self._power(taken[0], coefficient)
            elif coefficient != 0:
                times, parts = self._whole("exp", coefficient, rest)
                product *= self._symbol("exp", rest / parts) ** times
        return product

    def _power(self, base: Any, exponent: Any) -> Any:
        if exponent.is_Integer:
            return base**exponent
        if not exponent.is_Rational:
            exponent = self.replace(exponent)
            return self._exponential(exponent * self._logarithm(self._canonical(base)))
        base = self._canonical(base)
        simple = base**exponent
        if simple.is_Rational or (simple.is_Pow and simple.exp.is_Integer) or simple.is_Symbol:
            return simple
        if simple.is_Mul:  # factors that are known to be positive come out of a root
            outside = [f for f in simple.args if not (f.is_Pow and not f.exp.is_Integer)]
            inside = [f for f in simple.args if f.is_Pow and not f.exp.is_Integer]
            return sympy.Mul(*outside, *(self._root(self._canonical(f.base), f.exp) for f in inside))
        return self._root(base, exponent)

    def _root(self, base: Any, exponent: Any) -> Any:
        degree = int(exponent.q)
        numerator, denominator = sympy.fraction(base)
        if degree == 2 and not denominator.is_Rational:  # sqrt(n / d) = sqrt(n d) / |d|
            root = self._root(sympy.expand(numerator * denominator), sympy.Rational(1, 2))
            return (root / self._absolute(denominator)) ** int(exponent.p)
        return self._symbol(f"root{degree}", base, lambda r, b: r**degree - b) ** int(exponent.p)

    def _absolute(self, argument: Any) -> Any:
        parts = [self._without_sign(part)[0] for part in sympy.fraction(argument)]
        over, under = (
            sympy.Abs(part) if part.is_Rational or part.is_positive
            else self._symbol("abs", part, lambda r, x: r**2 - x**2) for part in parts
        )  # fmt: skip
        return over / under

    def _direction(self, angle: Any) -> tuple[Any, Any]:
        cosine, sine = sympy.Integer(1), sympy.Integer(0)
        for coefficient, rest in self._terms(angle):
            if coefficient == 0:
                continue
            times, parts = self._whole("angle", coefficient, rest)
            c = self._symbol("cos", rest / parts)
            s = self._symbol("sin", rest / parts, lambda s, _, c=c: s**2 + c**2 - 1)
            for _ in range(abs(times)):
                turn = s if times > 0 else -s
                cosine, sine = cosine * c - sine * turn, sine * c + cosine * turn
                cosine, sine = sympy.expand(cosine), sympy.expand(sine)
        return cosine, sine

    def _logarithm(self, argument: Any) -> Any:
        total = sympy.Integer(0)
        expanded = sympy.expand_log(sympy.log(sympy.factor(argument)))
        for term in sympy.Add.make_args(expanded):
            for logarithm in term.atoms(sympy.log):
                term = term.subs(logarithm, self._symbol("log", logarithm.args[0]))
            total += term
        return total

    def _without_sign(self, argument: Any) -> tuple[Any, bool]:
        """The argument or its opposite, so that both give the same, and whether it was turned round."""
        numerator, denominator = sympy.fraction(argument)
        generators = sorted(argument.free_symbols, key=str)
        turned = sympy.Poly(numerator, *generators).LC() < 0 if generators else argument < 0
        return (sympy.expand(-numerator) / denominator if turned else argument), bool(turned)

    def _positive_part(self, argument: Any) -> Any:
        if argument.is_Rational:
            return max(argument, sympy.Integer(0))
        upright, turned = self._without_sign(argument)
        numerator, denominator = sympy.fraction(upright)
        # max(n / d, 0) = max(n d, 0) / d², which needs no division in its relation.
        scaled = sympy.expand(numerator * denominator)
        part = self._symbol("positive", scaled, lambda r, x: r**2 - r * x) / denominator**2
        return part - upright if turned else part  # max(-x, 0) = max(x, 0) - x


def _fraction(e: Any) -> tuple[Any, Any]:
    """Numerator and denominator, the latter without a common factor of its coefficients."""
    numerator, denominator = sympy.fraction(e)
    if denominator.is_Rational:
        return numerator / denominator, sympy.S.One
    number, denominator = sympy.primitive(denominator)
    return numerator / number, denominator


def _reduced(numerator: Any, known: list[Any]) -> Any:
    relations = [k for k in known if k.is_polynomial()]
    symbols = set().union(numerator.free_symbols, *(k.free_symbols for k in relations))
    generators = sorted(symbols, key=str)
    ring = PolyRing(generators, sympy.QQ, grevlex)
    basis = _basis([ring.from_expr(sympy.expand(k)) for k in relations], ring)
    return ring.from_expr(numerator).rem(basis).as_expr() if basis else numerator


class _Ratio:
    """A fraction of polynomials whose denominator stays in factors, so that equal ones are seen."""

    def __init__(self, top: PolyElement, below: dict[PolyElement, int]) -> None:
        self.top, self.below = top, below

    def __add__(self, other: _Ratio) -> _Ratio:
        below = {f: max(self.below.get(f, 0), other.below.get(f, 0)) for f in self.below | other.below}
        return _Ratio(self._over(below) + other._over(below), below)

    def __mul__(self, other: _Ratio) -> _Ratio:
        below = {f: self.below.get(f, 0) + other.below.get(f, 0) for f in self.below | other.below}
        return _Ratio(self.top * other.top, below)

    def __pow__(self, power: int) -> _Ratio:
        if power >= 0:
            return _Ratio(self.top**power, {f: n * power for f, n in self.below.items()})
        ring = self.top.ring
        if not self.top:
            raise ExpressionError("a line divides by zero")
        top = math.prod((f ** (n * -power) for f, n in self.below.items()), start=ring.one)
        if len(self.top) == 1:  # a single term: each of its symbols is a factor
            [(exponents, leading)] = self.top.terms()
            factors = {g: n for g, n in zip(ring.gens, exponents, strict=True) if n}
        else:
            leading = self.top.LC
            factors = {self.top.monic(): 1}
        return _Ratio(top * (1 / leading) ** -power, {f: n * -power for f, n in factors.items()})

    def _over(self, below: dict[PolyElement, int]) -> PolyElement:
        missing = {f: n - self.below.get(f, 0) for f, n in below.items()}
        return math.prod((f**n for f, n in missing.items() if n), start=self.top)


def _ratio(e: Any, ring: PolyRing, seen: dict[Any, _Ratio]) -> _Ratio:
    if e not in seen:
        if e.is_Add:
            seen[e] = functools.reduce(lambda a, b: a + b, (_ratio(a, ring, seen) for a in e.args))
        elif e.is_Mul:
            seen[e] = functools.reduce(lambda a, b: a * b, (_ratio(a, ring, seen) for a in e.args))
        elif e.is_Pow:
            seen[e] = _ratio(e.base, ring, seen) ** int(e.exp)
        else:
            seen[e] = _Ratio(ring.from_expr(e), {})
    return seen[e]


def _in_ideal(differences: list[Any], relations: list[Any], order: list[Any]) -> bool:
    symbols = set().union(*(e.free_symbols for e in [*differences, *relations]))
    generators = [s for s in order if s in symbols] + sorted(symbols - set(order), key=str)
    if not generators:
        return all(sympy.simplify(d) == 0 for d in differences)
    ring = PolyRing(generators, sympy.QQ, lex)
    seen: dict[Any, _Ratio] = {}
    ratios = [_ratio(d, ring, seen) for d in differences]
    bounds = [_ratio(r, ring, seen) for r in relations]
    tops = [r.top for r in ratios if r.top]
    if not tops:
        return True
    basis = _basis([b.top for b in bounds], ring)
    left = [top.rem(basis) for top in tops] if basis else tops
    if not any(left):
        return True
    divisors = {f for ratio in [*ratios, *bounds] for f in ratio.below}
    if not basis or not divisors:
        return False
    return _in_ideal_where_defined(left, basis, divisors, ring)


def _in_ideal_where_defined(
    tops: list[PolyElement], basis: list[PolyElement], divisors: set[PolyElement], ring: PolyRing
) -> bool:
    """Tries again with an inverse for what is divided by, which makes the ideal larger."""
    inverse = sympy.Dummy("inverse")
    larger = PolyRing([inverse, *ring.symbols], sympy.QQ, lex)
    factors = (larger.from_expr(f.as_expr()) for f in sorted(divisors, key=str))
    product = math.prod(factors, start=larger.one)
    invertible = larger.gens[0] * product - 1
    whole = _basis([*(larger.from_expr(b.as_expr()) for b in basis), invertible], larger)
    return not any(larger.from_expr(top.as_expr()).rem(whole) for top in tops)


def _basis(polynomials: list[PolyElement], ring: PolyRing) -> list[PolyElement]:
    polynomials = [p for p in polynomials if p]
    leading = [p.LM for p in polynomials]
    coprime = all(
        not any(a and b for a, b in zip(one, other, strict=True))
        for n, one in enumerate(leading)
        for other in leading[:n]
    )
    # Polynomials whose leading terms have no symbol in common already are a Gröbner basis.
    return polynomials if coprime else list(groebner(polynomials, ring))
