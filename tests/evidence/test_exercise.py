"""Exercises that grade themselves."""

import numpy as np
import pytest

from archcards.evidence import CheckFailed
from archcards.evidence.exercise import grade, seal, unseal

VALUE = """
from archcards.evidence import check
top = data.max()
check("The largest", top, sorted(data)[-1], controls={"the smallest": lambda: data.min()})
"""
FUNCTION = """
from archcards.evidence import check
square = np.arange(4.0)
check("Doubles", double(square), square + square, controls={"squares": lambda: square**2})
"""


@pytest.fixture
def names():
    return {"np": np, "data": np.array([1.5, 4.25, 3.0])}


def test_a_right_value_passes_with_its_claim(names):
    assert repr(grade(4.25, seal("Max", VALUE), names)) == "✓ Max: right. The largest"
    right = grade(lambda x: x + x, seal("Double", FUNCTION, "double"), names)
    assert repr(right) == "✓ Double: right. Doubles"


@pytest.mark.parametrize("answer", [4.0, 1.5, [4.25], "four", np.nan])
def test_a_wrong_value_fails(names, answer):
    with pytest.raises(CheckFailed, match="Max: "):
        grade(answer, seal("Max", VALUE), names)


def test_a_known_mistake_is_named(names):
    with pytest.raises(CheckFailed, match="the smallest"):
        grade(1.5, seal("Max", VALUE), names)


@pytest.mark.parametrize("answer", [None, ...])
def test_no_answer_is_told(names, answer):
    with pytest.raises(CheckFailed, match="no answer yet"):
        grade(answer, seal("Max", VALUE), names)


def test_a_function_is_run_on_the_solutions_data(names):
    grade(lambda x: 2 * x, seal("Double", FUNCTION, "double"), names)
    with pytest.raises(CheckFailed, match="this mistake: squares"):
        grade(lambda x: x * x, seal("Double", FUNCTION, "double"), names)
    with pytest.raises(CheckFailed):
        grade(lambda x: ..., seal("Double", FUNCTION, "double"), names)
    with pytest.raises(CheckFailed, match="ZeroDivisionError"):
        grade(lambda x: 1 // 0, seal("Double", FUNCTION, "double"), names)


def test_grading_leaves_no_trace(names):
    names["rng"] = np.random.default_rng(3)
    code = VALUE.replace("top =", "shift = rng.normal()\ntop = shift - shift +")
    before = set(names)
    for _ in range(2):
        grade(4.25, seal("Max", code), names)
    assert set(names) == before
    assert names["rng"].normal() == np.random.default_rng(3).normal()


def test_a_function_is_held_against_every_check_and_a_value_against_the_first(names):
    more = FUNCTION + 'check("Of one number", double(3.0), 3.0 + 3.0, controls={"the square": lambda: 9.0})\n'
    assert grade(lambda x: x + x, seal("Double", more, "double"), names).claim == "Of one number"
    with pytest.raises(CheckFailed, match="Double"):
        grade(lambda x: x + x if isinstance(x, np.ndarray) else x, seal("Double", more, "double"), names)
    two = VALUE + 'check("The smallest", data.min(), sorted(data)[0], controls={"the largest": lambda: top})\n'
    assert grade(4.25, seal("Max", two), names).claim == "The largest"


def test_a_sealed_solution_does_not_show_itself():
    sealed = seal("Max", VALUE)
    assert "max" not in sealed and "check" not in sealed
    assert unseal(sealed) == {"title": "Max", "code": VALUE, "name": ""}
    long = seal("Max", "\n".join(f"# {n * n}" for n in range(900))).splitlines()
    assert len(long) > 2 and {len(line) for line in long[:-1]} == {100}  # lines that a cell shows whole
