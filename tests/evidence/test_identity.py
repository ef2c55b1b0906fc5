"""The prover proves what is true for all arguments, and never what is false in numbers."""

import math

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from archcards.evidence.algebra.expressions import Value, parse, scalar
from archcards.evidence.algebra.identity import all_zero, exact

SYMBOLS = {name: scalar(sympy.Symbol(name, real=True)) for name in "xyz"}


def equal(left, right, given=()):
    def value(source):
        return parse(source).evaluate(exact(), SYMBOLS).rows[0][0]

    relations = [value(a) - value(b) for a, b in (equation.split("==") for equation in given)]
    return all_zero([value(left) - value(right)], relations)


def in_numbers(source, point):
    """Python's own arithmetic, which knows nothing of the package."""
    return eval(source, {"exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "sqrt": math.sqrt, "abs": abs,
                         "max": max, "min": min, **dict(zip("xyz", point, strict=True))})  # fmt: skip


POINTS = [(0.5, -1.25, 0.75), (-0.4, 0.3, 1.1), (1.3, 0.9, -0.6), (0.2, -0.7, -1.4)]

expressions = st.recursive(
    st.sampled_from(["x", "y", "z", "2", "(x - y)", "x * z", "(1 / 2)"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("{}({})".format, st.sampled_from(["exp", "sin", "cos", "abs"]), inner),
        st.builds("sqrt(1 + ({})**2)".format, inner),
        st.builds("({}) / (2 + cos({}))".format, inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["max", "min"]), inner, inner),
    ),
    max_leaves=3,
)

TRUE = [
    ("({a} + {b})**2", "{a}**2 + 2 * {a} * {b} + {b}**2"),
    ("exp({a} + {b})", "exp({a}) * exp({b})"),
    ("exp(2 * ({a}))", "exp({a}) / exp(-({a}))"),
    ("exp(({a}) / 3)**3", "exp({a})"),
    ("sin({a} + {b})", "sin({a}) * cos({b}) + cos({a}) * sin({b})"),
    ("cos(3 * ({a}))", "4 * cos({a})**3 - 3 * cos({a})"),
    ("sin(({a}) / 2)**2", "(1 - cos({a})) / 2"),
    ("sqrt(1 + ({a})**2)**4", "(1 + ({a})**2)**2"),
    ("abs({a})**2 * abs({b})**2", "(({a}) * ({b}))**2"),
    ("max({a}, {b}) + min({a}, {b})", "{a} + {b}"),
    ("max({a}, {b}) * min({a}, {b})", "({a}) * ({b})"),
    ("max({a}, {b})", "max({b}, {a})"),
    ("1 / (2 + cos({a})) - 1 / (3 + cos({b}))", "(1 + cos({b}) - cos({a})) / ((2 + cos({a})) * (3 + cos({b})))"),
]


@settings(max_examples=4, deadline=None)
@pytest.mark.parametrize(("left", "right"), TRUE)
@given(a=expressions, b=expressions)
def test_what_is_true_for_all_arguments_is_proved(left, right, a, b):
    a, b = f"({a})", f"({b})"
    left, right = left.format(a=a, b=b), right.format(a=a, b=b)
    for point in POINTS:  # the templates themselves are checked, in numbers
        assert in_numbers(left, point) == pytest.approx(in_numbers(right, point), rel=1e-6, abs=1e-6)
    assert equal(left, right)


@settings(max_examples=25, deadline=None)
@given(left=expressions, right=expressions)
def test_what_differs_in_numbers_is_never_proved(left, right):
    differences = [in_numbers(left, p) - in_numbers(right, p) for p in POINTS]
    assume(max(map(abs, differences)) > 1e-6)
    assert not equal(left, right)


# In exponents, and of sums that are turned over: what the decision takes apart and puts together.
FRACTIONS = [
    ("exp(x / y + x)", "exp((x + y * x) / y)"),
    ("exp(x / y) * exp(z / y)", "exp((x + z) / y)"),
    ("exp((x * y + z) / y)", "exp(x) * exp(z / y)"),
    ("exp((x * x - y * y) / (x - y))", "exp(x + y)"),
    ("exp((x * y + x) / (y + 1))", "exp(x)"),
    ("exp(2 * x / y)", "exp(x / y)**2"),
    ("exp((2 * x + 1) / (2 * y))", "exp(x / y) * exp(1 / (2 * y))"),
    ("exp((x**3 + 1) / (x * x))", "exp(x) * exp(1 / (x * x))"),
    ("exp(x / (y * z) + 1 / y)", "exp((x + z) / (y * z))"),
    ("exp((x + y) / (3 * z))**3", "exp(x / z) * exp(y / z)"),
    ("exp((x * x + y) / (x + 1))", "exp(x - 1) * exp((y + 1) / (x + 1))"),
    ("exp(x * y / (x * z))", "exp(y / z)"),
    ("exp(2 * log(x * x + 1) + y)", "(x * x + 1)**2 * exp(y)"),
    ("exp(y - 3 * log(x * x + 1))", "exp(y) / (x * x + 1)**3"),
    ("exp(log(exp(x) + 1) / 2)**2", "exp(x) + 1"),
    ("(exp(x) / (1 + exp(x)))**-2", "(1 + exp(-x))**2"),
    ("(exp(x) + 1 / y)**-2", "y**2 / (y * exp(x) + 1)**2"),
    ("(3 * exp(x) + 1 / y**2)**-3", "y**6 / (3 * y**2 * exp(x) + 1)**3"),
    ("1 / (exp(x) / y)**2 + 1 / (2 * exp(x) / y)", "y**2 * exp(-2 * x) + y * exp(-x) / 2"),
    ("(2 * exp(x) / y + 2 / y)**-2", "y**2 / (4 * (exp(x) + 1)**2)"),
    ("1 / (exp(x) * y / 3)**2", "9 * exp(-2 * x) / y**2"),
    ("(exp(x) / (3 * y + z) + 1 / (3 * y + z)**2)**-2", "(3 * y + z)**4 / (exp(x) * (3 * y + z) + 1)**2"),
]
WRONG = [
    ("exp(2 * log(x * x + 1))", "2 * (x * x + 1)"), ("exp(2 * log(x * x + 1))", "x * x + 1"),
    ("exp(x / y)", "exp(x * y)"), ("exp(x / y)", "exp(x)"), ("exp(x / y)", "exp(y / x)"),
    ("exp((x + 1) / y)", "exp(x / y)"), ("exp((x + 1) / y)", "exp(x) * exp(1 / y)"),
    ("exp((x * x + y) / (x + 1))", "exp(x - 1)"), ("exp((2 * x + 1) / (2 * y))", "exp(x / y)"),
    ("(exp(x) + 1 / y)**-2", "y / (y * exp(x) + 1)**2"), ("(exp(x) + 1 / y)**-2", "1 / (y * exp(x) + 1)**2"),
    ("(exp(x) + 1 / y**2)**-1", "y / (y**2 * exp(x) + 1)"), ("1 / (exp(x) * y / 3)**2", "3 * exp(-2 * x) / y**2"),
    ("(2 * exp(x) / y + 2 / y)**-2", "y**2 / (2 * (exp(x) + 1)**2)"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), FRACTIONS)
def test_fractions_agree_however_they_are_written(left, right):
    for point in POINTS:
        assert in_numbers(left, point) == pytest.approx(in_numbers(right, point), rel=1e-9)
    assert equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("log((x * x + 1) * (y * y + 2))", "log(x * x + 1) + log(y * y + 2)"),
        ("log((x * x + 1)**3 / (y * y + 2))", "3 * log(x * x + 1) - log(y * y + 2)"),
        ("log(x * (y + 1) - x * y - x + 1)", "0"),
    ],
)
def test_the_logarithm_of_a_product_is_the_sum_of_those_of_its_factors(left, right):
    for point in POINTS:
        assert in_numbers(left, point) == pytest.approx(in_numbers(right, point), abs=1e-12)
    assert equal(left, right)
    assert not equal(left, f"({right}) + 1")


@pytest.mark.parametrize(("left", "right"), WRONG)
def test_fractions_that_differ_are_told_apart(left, right):
    assert max(abs(in_numbers(left, p) - in_numbers(right, p)) for p in POINTS) > 0.01
    assert not equal(left, right)


def test_a_number_scales_a_matrix_from_either_side():
    x, y = sympy.symbols("x y", real=True)
    symbols = {"A": Value(((x, 2), (3, y))), "y": scalar(y)}
    for source in ("A * y", "y * A"):
        assert parse(source).evaluate(exact(), symbols).rows == ((x * y, 2 * y), (3 * y, y * y))


def test_relations_are_used_and_no_more_than_they_say():
    unit = ["x * x + y * y == 1"]
    assert equal("(x * x + y * y)**3 * z", "z", unit)
    assert equal("x**4 - y**4", "x**2 - y**2", unit)
    assert not equal("x", "1", unit)
    assert not equal("exp(x)", "y * y + 1", ["log(y * y + 1) == z"])  # the logarithm of something else
    assert not equal("x + y", "1", unit)
    assert equal("exp(x * x) * exp(y * y)", "exp(1)", unit)


def test_a_relation_that_has_to_be_divided_is_used():
    assert equal("x / y", "z", ["x * y == z * y * y"])
    assert not equal("x", "z * y", ["x * y == z * y * y"])  # not where y is zero
    assert not equal("1 / y", "0", ["x * y == z * y * y"])
    assert not equal("x / y", "z + 1", ["x * y == z * y * y"])


def test_integers_between_symbols_are_summed_as_by_hand():
    x = sympy.Symbol("x", real=True)
    for power in range(5):
        closed = parse(f"sum(i, 2, x, i**{power} + 1)").evaluate(exact(), {"x": scalar(x)}).rows[0][0]
        for n in range(1, 8):
            assert closed.subs(x, n) == sum(i**power + 1 for i in range(2, n + 1))


def test_the_root_of_a_negative_number_is_beyond_the_algebra():
    assert not equal("sqrt(-1) * x", "x")
    assert not equal("sqrt(-(x**2) - 1)", "sqrt(-(x**2) - 1) + x")


# In numbers, for x and y of one sign: sqrt(x / y) = sqrt(x y) / |y|, which needs no sign of either.
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("sqrt(x / y) * abs(y)", "sqrt(x * y)"),
        ("sqrt(x / y)**3 * y * abs(y)", "x * sqrt(x * y)"),
        ("1 / sqrt(x / y)", "abs(y) / sqrt(x * y)"),
    ],
)
def test_the_root_of_a_fraction_is_that_of_a_product_over_a_magnitude(left, right):
    for point in [(2.0, 3.0, 0.0), (-2.0, -3.0, 0.0), (0.25, 7.0, 0.0)]:
        assert in_numbers(left, point) == pytest.approx(in_numbers(right, point))
    assert equal(left, right)
    assert not equal(left, f"({right}) * abs(y)")


@pytest.mark.parametrize(
    ("left", "right"),
    [("abs(x / 2)", "abs(x) / 2"), ("abs(-3 * x / 2)", "abs(x) * 3 / 2"), ("abs(-2) * x", "2 * x"), ("abs(1 / (3 * x))", "1 / (3 * abs(x))"),
     ("abs(x * y)**2", "(x * y)**2"), ("abs(x - y)", "abs(y - x)"), ("abs(x * (y + 1) - x * y - x - 5)", "5")],
)  # fmt: skip
def test_a_magnitude_keeps_no_sign_and_every_factor(left, right):
    for point in POINTS:
        assert in_numbers(left, point) == pytest.approx(in_numbers(right, point))
    assert equal(left, right)
    assert not equal(left, f"-({right})")


def test_a_magnitude_of_what_is_given_as_a_number_is_that_number():
    unit = ["x * x + y * y == 1"]
    assert equal("abs(x * x + y * y - 4) * z", "3 * z", unit)
    assert not equal("abs(x * x + y * y - 4) * z", "-3 * z", unit)


@pytest.mark.parametrize(
    ("comparison", "which"),
    [("==", [2]), ("!=", [0, 1, 3, 4]), ("<", [0, 1]), ("<=", [0, 1, 2]), (">", [3, 4]), (">=", [2, 3, 4])],
)
def test_a_comparison_picks_its_terms(comparison, which):
    assert equal(f"sum(i, 0, 4, (i {comparison} 2) * x**i)", " + ".join(f"x**{i}" for i in which))
