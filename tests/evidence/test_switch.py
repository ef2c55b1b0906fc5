"""A switch shows the output of a check with each mistake in its place."""

import math

import numpy as np
import pytest

from archcards.evidence import check, switch

ROW = np.array([[0.5, -1.25], [2.0, 0.0]])


def held(wrong=None, actual=None, claim="it holds"):
    actual = ROW.copy() if actual is None else actual
    wrong = {"late": lambda: ROW.copy() + 1.5} if wrong is None else wrong
    return check(claim, actual, actual.copy(), controls=wrong)


def test_the_first_option_is_correct_and_the_others_are_the_mistakes():
    shown = switch(held({"late": lambda: ROW.copy() + 1.5, "gone": lambda: ROW * math.nan}), caption="Output.")
    assert [(o.name, o.error) for o in shown.options] == [("correct", ""), ("late", "0.75"), ("gone", "NaN")]
    assert shown.options[0].rows == (("0.50", "−1.25"), ("2.00", "0.00"))
    assert shown.options[1].rows == (("2.00", "0.25"), ("3.50", "1.50"))
    assert shown.options[2].rows == (("NaN", "NaN"), ("NaN", "NaN"))
    assert shown.claim == "it holds"


def test_shades_are_on_one_scale_for_all_options():
    shown = switch(held(), caption="Output.")
    assert shown.options[0].shades[0][1] == 0  # the smallest of all
    assert shown.options[1].shades[1][0] == 8  # the largest of all
    assert max(max(row) for row in shown.options[0].shades) < 8


def test_infinities_alone_are_the_ends_of_the_scale():
    ends = np.array([-np.inf, np.inf])
    turned = {"turned": lambda: -ends}
    result = check("c", ends, ends.copy(), allow_infinite=True, controls=turned)
    shown = switch(result, caption="Ends.")
    assert [option.shades for option in shown.options] == [((0, 8),), ((8, 0),)]
    assert [option.rows for option in shown.options] == [(("−∞", "∞"),), (("∞", "−∞"),)]


def test_integers_and_truth_values_have_no_decimals():
    mask = np.tri(2, dtype=bool)
    shown = switch(held({"all": lambda: np.ones((2, 2), bool)}, mask), caption="Mask.")
    assert shown.options[0].rows == (("1", "0"), ("1", "1"))
    assert shown.options[1].error == "1 entry"


def test_integers_beside_a_mistake_with_a_fraction_have_its_decimals():
    shown = switch(held({"half": lambda: np.array([[0.5, 1.5]])}, np.array([[1, 3]])), caption="Mixed.")
    assert [option.rows for option in shown.options] == [(("1.00", "3.00"),), (("0.50", "1.50"),)]


def test_nothing_to_see_is_refused_even_where_it_is_no_number():
    with pytest.raises(ValueError, match="what is shown is the same for every mistake"):
        switch(held(), caption="Nothing.", show=lambda _: [[math.nan, 1.0]])


def test_long_numbers_are_in_groups_of_three():
    shown = switch(held({"half": lambda: 5e8}, np.array(1_000_000_000)), caption="Scalars.", show=lambda x: [[float(x)]])
    assert [option.rows for option in shown.options] == [(("1,000,000,000",),), (("500,000,000",),)]


def test_show_picks_what_is_shown_and_labels_name_it():
    large = np.arange(400.0).reshape(20, 20)
    result = held({"off": lambda: large + 1}, large)
    shown = switch(result, caption="Corner.", show=lambda x: x[:2, :3], labels=(["q0", "q1"], []))
    assert shown.options[1].rows[0] == ("1.0", "2.0", "3.0")
    assert shown.labels == (("q0", "q1"), ())


def test_an_infinity_and_a_rounded_zero_are_written_as_such():
    scores = np.array([1.0, -np.inf, -0.001])
    result = check(
        "c", scores.copy(), scores + 0, allow_infinite=True, controls={"c": lambda: np.zeros(3)}
    )
    assert switch(result, caption="Scores.").options[0].rows == (("1.00", "−∞", "0.00"),)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"caption": ""}, "caption"),
        ({"caption": "c", "show": lambda x: x[None]}, "at most 16 by 16"),
        ({"caption": "c", "show": lambda x: np.ones((1, 17)) * x.sum()}, "reduce it with show="),
        ({"caption": "c", "show": lambda x: x[:0]}, "real numbers"),
        ({"caption": "c", "show": lambda x: "word"}, "real numbers"),
        ({"caption": "c", "show": lambda x: 1.0}, "the same for every mistake"),
        ({"caption": "c", "show": lambda x: np.ones(2 if x[0, 0] < 1 else 3)}, "shows shape"),
        ({"caption": "c", "labels": (["a"], [])}, "2 rows, and 1 labels"),
        ({"caption": "c", "labels": "ab c"}, "two lists"),
    ],
)
def test_what_cannot_be_shown_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        switch(held(), **options)


def test_only_a_check_can_be_switched():
    with pytest.raises(ValueError, match="what check returned"):
        switch(np.ones(3), caption="c")


def test_a_failed_check_is_not_shown_again(run_page):
    events = run_page("switch(check('c', 1 + x, x, controls={'c': lambda: 9.0}), caption='c')",
                      switch=switch, check=check, x=1.0)  # fmt: skip
    assert [event.kind for event in events] == ["check"]
