"""A fact is computed, or says that it was given."""

import math
from fractions import Fraction

import numpy as np
import pytest

from archcards.evidence import fact

TYPED = [
    "fact('x', 3)",
    "fact('x', -3.5)",
    "fact('x', 2 * 4096)",
    "fact('x', 8 * 9 // 2)",
    "fact('x', 'word')",
    "fact('x', f'word')",
    "fact(value=3, name='x')",
    "fact('x', value=3)",
    "fact('x', int('3'))",
    "fact('x', np.float64(3))",
    "fact('x', True)",
    "n = 3\nfact('x', n)",
    "m, n = 2, 3\nfact('x', n)",
    "n: int = 3\nfact('x',\n    n,\n)",
    "a = [0]\nn = 3\na[0] = 4\nfact('x', n)",
    "from math import pi as m\nn = 3\nfact('x', n)",
]
COMPUTED = [
    "pair = 'x', sum(range(4))\nfact(*pair)",
    "n = 3\nfact('x', n * n)",
    "fact('x', sum(range(4)))",
    "fact('x', math.log(4 / 3, 4))",
    "n = sum(range(4))\nfact('x', n)",
    "n = 3\nn += 1\nfact('x', n)",
    "for n in [3]:\n    fact('x', n)",
    "def f(n):\n    fact('x', n)\nf(3)",
    "n = 3\ndef f(n):\n    fact('x', n)\nf(n + 1)",
    "n = 3\nfrom math import pi as n\nfact('x', n)",
    "pi = 3\nfrom math import pi\nfact('x', pi)",
    "fact('x', 3, given=True)",
]


@pytest.mark.parametrize("source", TYPED)
def test_a_typed_value_is_refused(run_page, source):
    [event] = run_page(source, fact=fact, np=np)
    assert event.kind == "failure"
    assert "typed, not computed" in event.reason


@pytest.mark.parametrize("source", COMPUTED)
def test_a_computed_or_given_value_is_not(run_page, source):
    [event] = run_page(source, fact=fact, math=math)
    assert event.kind == "fact"
    assert event.given == ("given" in source)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.array(3), 3),
        (np.bool_(True), True),
        (2**100, 2**100),
        (math.pi, math.pi),
        ("Llama", "Llama"),
    ],
)
def test_numbers_of_every_kind_come_back_as_plain_ones(value, plain):
    result = fact("x", value)
    assert result == plain
    assert type(result) is type(plain)


@pytest.mark.parametrize(
    ("name", "value", "options", "reason"),
    [
        ("x", np.ones(3), {}, "array of shape"),
        ("x", np.ones(1), {}, "array of shape"),
        ("x", math.nan, {}, "finite"),
        ("x", math.inf, {}, "finite"),
        ("x", np.float64("-inf"), {}, "finite"),
        ("x", 1j, {}, "number or a word"),
        ("x", None, {}, "number or a word"),
        ("x", Fraction(1, 3), {}, "number or a word"),
        ("x", [1], {}, "number or a word"),
        ("x", "", {}, "empty word"),
        ("X", 1, {}, "lower case"),
        ("1x", 1, {}, "lower case"),
        ("x-y", 1, {}, "lower case"),
        ("x\n", 1, {}, "lower case"),
        ("", 1, {}, "lower case"),
        (3, 1, {}, "lower case"),
        ("x", 1, {"unit": ""}, "unit"),
        ("x", 1, {"given": 1}, "given"),
    ],
)
def test_what_is_no_fact_is_refused(name, value, options, reason):
    with pytest.raises(ValueError, match=reason):
        fact(name, value, **options)


def test_a_name_occurs_once_on_a_page(run_page):
    one, two = run_page("fact('x', sum([1]))\nfact('x', sum([2]))", fact=fact)
    assert (one.value, one.line) == (1, 1)
    assert (two.line, two.reason) == (
        2, "the fact x was defined before, on line 1: choose another name",
    )  # fmt: skip
