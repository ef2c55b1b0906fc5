"""A check holds, fails, and above all cannot pass on nothing."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from archcards.evidence import CheckFailed, check
from archcards.evidence.comparison import shared
from archcards.evidence.record import recording

FAR = {"far off": lambda: np.array([5.0, 5.0])}


def reasons(actual, expected, *, controls=FAR, claim="it holds", **options):
    """Why the check fails, on a page, where all the reasons are recorded."""
    with recording("docs/x.md") as recorder:
        result = check(claim, actual, expected, controls=controls, **options)
    assert recorder.events == [result]
    assert result.passed == (not result.reasons) == bool(result)
    assert all("\n" not in reason for reason in result.reasons)
    return " | ".join(result.reasons)


def test_a_check_that_holds_says_what_its_controls_did():
    result = check("it holds", np.arange(1.0, 3.0), [1.0, 2.0 + 1e-13], controls=FAR)
    assert result.passed
    assert result.tolerance == 1e-11
    assert 0 < result.error < 1e-11
    [mistake] = result.controls
    assert (mistake.name, mistake.shown, mistake.caught) == ("far off", "2.0", True)
    assert mistake.error == pytest.approx(2.0)  # |5 - 1| over the largest expected magnitude, 2


@pytest.mark.parametrize(
    ("expected", "relation", "control", "shown", "error"),
    [
        ([20, 30], "<", [23, 30], "3", 3.0),
        ([20, 30], ">", [21, 26], "4", 4.0),
        ([20.0, 30.0], "<", [20.5, 29.0], "0.50", 0.5),
        ([20, 30], "<", [20, 29], "0", 0.0),
        (np.array([20, 30], np.uint8), "<", np.array([23, 35], np.uint8), "5", 5.0),
    ],
)
def test_a_control_of_an_order_tells_by_how_much_it_is_on_the_wrong_side(expected, relation, control, shown, error):
    actual = np.array([1, 2] if relation == "<" else [40, 50])
    result = check("in order", actual, expected, relation=relation, controls={"c": lambda: np.asarray(control)})
    [mistake] = result.controls
    assert (mistake.shown, mistake.error, mistake.caught) == (shown, error, True)


@pytest.mark.parametrize(
    ("apart", "told"),
    [
        (1e-5, "expected 1.33333, got 1.33334"),
        (1e-8, "expected 1.33333333, got 1.33333334"),
        (1e-11, "expected 1.33333333333, got 1.33333333334"),
        (1e-14, "expected 1.33333333333333, got 1.33333333333334"),
        (2**-51, "expected 1.3333333333333333, got 1.3333333333333337"),
    ],
)
def test_numbers_are_told_in_as_many_digits_as_tell_them_apart(apart, told):
    assert told in reasons(np.array([4 / 3 + apart, 0.0]), np.array([4 / 3, 0.0]), tolerance=1e-17)


def test_a_wide_tolerance_says_why_and_a_narrow_one_need_not():
    values = np.array([1.0, 2.0]), [1.0, 2.0]
    wide = check("c", *values, controls=FAR, tolerance=1e-5, because="the device rounds to float32")
    assert (wide.tolerance, wide.because) == (1e-5, "the device rounds to float32")
    assert check("c", *values, controls=FAR).because is None


def test_a_check_that_does_not_hold_raises_outside_a_page():
    with pytest.raises(CheckFailed, match=r"it holds: off by 0\.050: expected 2, got 1\.9 at \[1\]"):
        check("it holds", np.linspace(1.0, 1.9, 2), [1.0, 2.0], controls=FAR, tolerance=1e-9)


def test_the_error_is_relative_above_one_and_absolute_below():
    big = {"far off": lambda: np.array([0.0, 0.0])}
    assert reasons([1e12, 1.0], [1e12 + 1, 1.0], controls=big) == ""
    assert "off by 1.0e-12" in reasons([1e12, 1.0], [1e12 + 1, 1.0], controls=big, tolerance=1e-13)
    small = {"far off": lambda: 1.0}
    assert "off by" in reasons(1e-9, 2e-9, controls=small)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "reason"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], {}, r"shape (2,), and (3,) was expected"),
        ([1.0, 2.0], 1.0, {}, "shape"),
        ([[1.0, 2.0]], [1.0, 2.0], {}, "shape"),
        ([], [], {}, "is empty"),
        (np.zeros((3, 0)), np.zeros((3, 0)), {}, "is empty"),
        ([1.0, math.nan], [1.0, math.nan], {}, "NaN at [1]"),
        ([1.0, 2.0], [1.0, math.nan], {}, "NaN"),
        ([1.0, math.nan], [1.0, 2.0], {}, "NaN"),
        ([1.0, math.nan], [1.0, math.nan], {"allow_infinite": True}, "NaN"),
        ([1.0, math.inf], [1.0, math.inf], {}, "infinity at [1]"),
        ([1.0, math.inf], [1.0, -math.inf], {"allow_infinite": True}, "differ in an infinity"),
        ([math.inf, 1.0], [1.0, math.inf], {"allow_infinite": True}, "differ in an infinity"),
        ([1.0, math.inf], [1.0, 2.0], {"allow_infinite": True}, "differ in an infinity"),
        (np.array([1.0, None]), np.array([1.0, None]), {}, "real numbers"),
        ([1j, 2.0], [1j, 2.0], {}, "complex"),
        (np.str_("word"), 1.0, {}, "the actual value must be real numbers, and it is str_"),
        (1.0, "word", {}, "the expected value must be real numbers, and it is str"),
        (["a", "b"], ["a", "b"], {}, "the expected value must be real numbers, and it is an array of <U1"),
        (None, None, {}, "same object or memory"),
        ([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]], {}, "differ in length"),
        ((np.ones(2), np.ones(2)), (np.ones(2), np.ones(2)), {}, "tuple of several values"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), [1.0, 2.0], {}, "masked array"),
        ([True, False], [1.0, 0.0], {}, "mix truth values and real numbers"),
        (2**60 + 1, float(2**60), {"controls": {"c": lambda: 0.0}}, "too large"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": 0}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": -1e-11}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": math.nan}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": math.inf, "because": "so"}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": "1e-11"}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": True}, "tolerance"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": 1e-5}, "needs because"),
        ([1.0, 2.0], [1.0, 2.0], {"tolerance": 1e-5, "because": " "}, "because must be"),
        ([1.0, 2.0], [1.0, 2.0], {"controls": {}}, "there is no control"),
        ([1.0, 2.0], [1.0, 2.0], {"controls": None}, "controls must map"),
        ([1.0, 2.0], [1.0, 2.0], {"controls": {"c": np.zeros(2)}}, "must be a function"),
        ([1.0, 2.0], [1.0, 2.0], {"controls": {"": lambda: np.zeros(2)}}, "must say what the mistake is"),
        ([1.0, 2.0], [1.0, 2.0], {"relation": "<="}, "relation must be"),
        ([1.0, 2.0], [1.0, 2.0], {"claim": "  "}, "claim must be"),
        ([1.0, 2.0], [1.0, 2.0], {"claim": None}, "claim must be"),
    ],
)  # fmt: skip
def test_a_check_cannot_pass_on_nothing(actual, expected, options, reason):
    assert reason in reasons(actual, expected, **options)


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (lambda: np.array([1.0, 2.0]), "not caught"),
        (lambda: np.array([1.0, 2.0 + 1.9e-8]), "not caught"),
        (lambda: np.array([1.0]), "shape (1,) and is no comparison"),
        (lambda: np.array([[5.0, 5.0]]), "no comparison"),
        (lambda: None, "real numbers"),
        (lambda: np.array([]), "empty"),
        (lambda: 1 / 0, "raises instead of recomputing the claim (ZeroDivisionError"),
        (lambda missing: missing, "raises instead"),
    ],
)
def test_a_control_that_is_not_off_fails_the_check(control, reason):
    assert reason in reasons([1.0, 2.0], [1.0, 2.0], controls={"far": FAR["far off"], "c": control})


def test_what_differs_is_shown_in_digits_that_differ():
    told = [reasons(1.0 + by, 1.0, tolerance=by / 1e4, controls={"c": lambda: 9.0}) for by in (1e-3, 1e-7, 1e-11, 1e-15)]
    shown = ["1.001", "1.0000001", "1.00000000001", "1.0000000000000011"]
    assert [one.split("got ")[1].split(" ")[0] for one in told] == shown


@pytest.mark.parametrize(("wild", "shown"), [(math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "∞")])
def test_a_mistake_may_show_as_no_number_at_all(wild, shown):
    result = check("c", np.ones(2), [1.0, 1.0], controls={"wild": lambda: np.array([1.0, wild])})
    assert (result.controls[0].shown, result.controls[0].error, result.controls[0].caught) == (shown, None, True)


def test_a_mistake_may_divide_by_zero_without_a_warning():
    zero = np.zeros(2)
    assert check("c", np.ones(2), [1.0, 1.0], controls={"0/0": lambda: zero / zero}).passed


def test_memory_that_is_shared_is_refused():
    array = np.arange(6.0)
    assert "same object or memory" in reasons(array, array)
    assert "same object or memory" in reasons(array[:4], array[2:])
    assert "same object or memory" in reasons(array.reshape(2, 3), array.reshape(2, 3).T.T)
    assert reasons(array[:2], array[2:4] - 2, controls={"c": lambda: np.array([9.0, 9.0])}) == ""
    number = float("0.25")
    assert "same object or memory" in reasons(number, number, controls={"c": lambda: 1.0})
    row = [1.0, 2.0]
    assert "same object or memory" in reasons(row, row)


def test_memory_whose_overlap_is_hard_to_decide_counts_as_shared():
    """Whether a sum of 1049 multiples each of five strides meets an offset is a knapsack problem."""
    memory = np.zeros(192_163_377, dtype=np.int8)  # never written, so that it takes no memory
    one = as_strided(memory, strides=(36674, 61119, 85569), shape=(1049, 1049, 1049))
    other = as_strided(memory[64_023_025:], strides=(12223, 12224, 1), shape=(1049, 1049, 1))
    assert shared(one, other)
    assert shared(other, one)


def test_a_control_cannot_change_what_it_is_compared_with():
    actual, expected = np.array([1.0, 2.0]), np.array([1.0, 2.0])

    def vandal():
        expected[:] = 7.0
        return actual

    assert "not caught" in reasons(actual, expected, controls={"vandal": vandal})


def test_integers_are_compared_exactly_however_large():
    large = 10**30
    assert reasons(large + 0, 10**29 * 10, controls={"c": lambda: large + 1}) == ""
    assert "off by 1:" in reasons(large + 1, large, controls={"c": lambda: 0})
    assert "must differ" in reasons(large + 0, 10**29 * 10, controls={"c": lambda: 10**30})
    unsigned = np.array([1, 2], dtype=np.uint64)
    assert "off by 1:" in reasons(unsigned, np.array([2, 2]), controls={"c": lambda: np.array([0, 0])})
    result = check("c", sum([4096, 4096]), 8192, controls={"c": lambda: 8191})
    assert result.tolerance is None
    assert result.controls[0].shown == "1"


def test_truth_values_are_compared_exactly_and_may_meet_a_drawn_mask():
    mask = np.tril(np.ones((2, 2), bool))
    flipped = {"upper": lambda: ~mask}
    assert reasons(mask, [[1, 0], [1, 1]], controls=flipped) == ""
    assert "off by" in reasons(mask, np.ones((2, 2), bool), controls=flipped)
    result = check("c", mask, np.array([[True, False], [True, True]]), controls=flipped)
    assert result.controls[0].shown == "4 entries"


def test_allowed_infinities_leave_the_finite_entries_to_be_compared():
    scores = np.array([0.5, -np.inf])
    wrong = {"masked by 0": lambda: np.array([0.5, 0.0])}
    assert reasons(scores, [0.5, -math.inf], controls=wrong, allow_infinite=True) == ""
    assert "off by 0.5" in reasons(scores, [0.0, -math.inf], controls=wrong, allow_infinite=True)


class TestOrder:
    def test_less_and_greater_hold_for_all_entries(self):
        control = {"c": lambda: np.array([1.0, 9.0])}
        assert reasons([1.0, 2.0], [2.0, 3.0], relation="<", controls=control) == ""
        assert "not <" in reasons([1.0, 3.0], [2.0, 3.0], relation="<", controls=control)
        assert "not >" in reasons([1.0, 2.0], [2.0, 1.0], relation=">", controls=control)

    @pytest.mark.parametrize(("relation", "worst"), [("<", "expected < 5, got 9"), (">", "expected > 6, got 2")])
    def test_the_entry_that_is_most_out_of_order_is_told(self, relation, worst):
        actual, expected = np.array([[2, 9], [5, 4]]), np.array([[6, 5], [5, 7]])
        told = reasons(actual, expected, relation=relation, controls={"same": lambda: expected.copy()})
        assert told.endswith(f"the expected one: {worst}")

    def test_rounding_is_no_order(self):
        assert "not >" in reasons(0.1 + 0.2, 0.3, relation=">", controls={"c": lambda: 0.0})

    def test_a_control_has_to_violate_the_relation(self):
        assert "not caught" in reasons(1.0, 2.0, relation="<", controls={"c": lambda: 1.5})
        assert reasons(1.0, 2.0, relation="<", controls={"c": lambda: 2.0}) == ""

    def test_unsigned_integers_do_not_wrap(self):
        one, two = np.uint8(1), np.uint8(2)
        assert reasons(one, two, relation="<", controls={"c": lambda: np.uint8(3)}) == ""
        assert "not >" in reasons(one, two, relation=">", controls={"c": lambda: np.uint8(1)})

    def test_different_means_by_far_more_than_rounding(self):
        same = {"they commute": lambda: 2.0}
        assert reasons(1.0, 2.0, relation="!=", controls=same) == ""
        assert "equal up to rounding" in reasons(2.0 + 1e-12, 2.0, relation="!=", controls=same)
        assert "equal up to rounding" in reasons(2.0 + 1e-9, 2.0, relation="!=", controls=same)
        assert "not caught" in reasons(1.0, 2.0, relation="!=", controls={"c": lambda: 3.0})

    def test_truth_values_have_no_order_and_nan_no_place_in_it(self):
        assert "no order" in reasons(False, np.True_, relation="<", controls={"c": lambda: True})
        nan = float("nan")
        assert "NaN" in reasons(nan, 2.0, relation="<", controls={"c": lambda: 3.0})
        assert "NaN" in reasons(1.0, 2.0, relation="<", controls={"c": lambda: nan})


class TestOnAPage:
    def test_a_failed_check_is_recorded_and_the_block_goes_on(self, run_page):
        first, second = run_page(
            """
            x = 1.0
            check("first",
                  x + 1,
                  x, controls={"c": lambda: 9.0})
            result = check("second", x + 1, 2.0, controls={"c": lambda: 9.0})
            """,
            check=check,
        )
        assert (first.passed, first.line, first.first, first.last) == (False, 3, 3, 5)
        assert (second.passed, second.line, second.first) == (True, 6, 6)

    def test_the_statement_is_more_than_the_call(self, run_page):
        [event] = run_page(
            """
            x = 1.0
            results = [
                1,
                check("inside", x + 1, 2.0, controls={"c": lambda: 9.0}),
            ]
            """,
            check=check,
        )
        assert (event.line, event.first, event.last) == (5, 3, 6)

    def test_the_statement_is_the_innermost_around_the_call(self, run_page):
        events = run_page(
            """
            if True:
                with open("/dev/null"):
                    check("inside", 2.0, 2, controls={"c": lambda: 9.0})
                    check("below",
                          3.0, 3, controls={"c": lambda: 9.0})
            """,
            check=check,
        )
        assert [(event.line, event.first, event.last) for event in events] == [(4, 4, 4), (5, 5, 6)]

    def test_the_statement_is_none_that_ends_before_the_call(self, run_page):
        [event] = run_page(
            """
            if True:
                with open("/dev/null"):
                    x = (1.0 +
                         1.0)
            check("after", x, 2, controls={"c": lambda: 9.0})
            if True:
                y = x
            """,
            check=check,
        )
        assert (event.line, event.first, event.last) == (6, 6, 6)

    def test_a_claim_occurs_once_on_a_page(self, run_page):
        _, again = run_page(
            """
            for n in (1, 2):
                check("counted", n + 1, 1 + n, controls={"c": lambda: 9})
            """,
            check=check,
        )
        assert "made before, on line 3" in again.reasons[0]

    def test_no_expression_vouches_for_itself(self, run_page):
        events = run_page(
            """
            def f(x): return [x + 0.5]
            check("a", f(1), f(1), controls={"c": lambda: [9.0]})
            check(claim="b", expected=f(1), actual=f(1), controls={"c": lambda: [9.0]})
            check("typed", 36, f(36), controls={"c": lambda: [9.0]})
            check("typed list", [2 * 18], f(36), controls={"c": lambda: [9.0]})
            check("sound", f(1), [1.5], controls={"c": lambda: [9.0]})
            """,
            check=check,
        )
        assert ["same expression" in " ".join(e.reasons) for e in events] == [True, True, False, False, False]
        assert "typed, not computed" in events[2].reasons[0]
        assert "typed, not computed" in events[3].reasons[0]
        assert events[4].passed

    def test_a_number_is_typed_under_a_name_too_and_a_list_may_have_been_filled(self, run_page):
        typed, again, filled = run_page(
            """
            two, rows = 2, []
            rows.append(len("ab") / 1)
            check("typed", two, len("ab"), controls={"c": lambda: 3})
            two_of = two
            two_of += len("a")
            check("computed", two_of, 3, controls={"c": lambda: 2})
            check("filled", rows, [2.0], controls={"c": lambda: [3.0]})
            """,
            check=check,
        )
        assert "typed, not computed" in typed.reasons[0] and again.passed and filled.passed


def test_where_a_mistake_was_seen_is_found_through_the_lambda():
    late = SimpleNamespace(seen="a repository, #1")
    registry = {"late": late}
    result = check("c", np.ones(1), [1.0], controls={"late": lambda: [2.0 if registry["late"] else 3.0]})
    assert result.controls[0].seen == "a repository, #1"


finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=1, max_size=5), st.data())
def test_the_verdict_is_that_of_the_definition(expected, data):
    actual = [e + data.draw(st.sampled_from([0.0, 1e-13, 1e-9, 1e-3])) for e in expected]
    error = max(abs(a - e) for a, e in zip(actual, expected)) / max(1.0, *map(abs, expected))
    found = reasons(actual, expected, tolerance=1e-10, controls={"c": lambda: [e + 1e7 for e in expected]})
    assert (found == "") == (error < 1e-10)
