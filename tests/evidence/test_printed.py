"""Printed figures: equal to the computed ones to the digits that were printed, and not otherwise."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.evidence import as_printed, beside_printed
from archcards.evidence.quote import quoting


@given(st.integers(0, 10**13), st.integers(0, 6), st.sampled_from([1, 10**3, 10**9, 2**30]))
def test_what_rounding_gives_is_as_printed_and_one_digit_more_or_less_is_not(count, decimals, unit):
    digits = round(Fraction(count, unit) * 10**decimals)
    assert as_printed(count, Decimal(digits).scaleb(-decimals), unit=unit)
    for away in (-2, 2):
        assert not as_printed(count, Decimal(digits + away).scaleb(-decimals), unit=unit)


def test_trailing_zeros_are_digits():
    assert as_printed(54_004_000_000, "54.0", unit=10**9)
    assert not as_printed(54_004_000_000, "54.000", unit=10**9)


@pytest.mark.parametrize(("printed", "unit"), [("131K", 1), ("nan", 1), ("1", 0)])
def test_what_is_no_number_is_refused(printed, unit):
    with pytest.raises(ValueError, match="must be"):
        as_printed(1, printed, unit=unit)


def test_cells_are_shown_with_the_digits_printed_and_counted():
    quoting({"invented2026": {"a": "12.0", "b": 7, "c": "1.2"}})
    rows = [("one", "invented2026.a", 12_040), ("two", "invented2026.b", 7_900), ("three", "invented2026.c", 1_249)]
    assert beside_printed("Invented", rows, unit=1000, unit_name="thousands") == (2, 3)
    assert beside_printed("Invented", [("one", "invented2026.a", 12_060)], unit=1000, unit_name="thousands") == (0, 1)
    with pytest.raises(ValueError, match="there is no source invented2026"):
        beside_printed("Invented", [("four", "invented2026.d", 1)], unit_name="ones")


def test_cells_stand_digit_under_digit(run_page):
    [event] = run_page(
        """
        beside_printed("Invented", [("one", "invented2026.a", 1_099), ("two", "invented2026.b", 1_234_567),
                                    ("three", "invented2026.c", 449)],
                       unit=1000, unit_name="thousands", row_name="model")
        """,
        quotes={"invented2026": {"a": "1.10", "b": 1234, "c": "0.5"}},
        beside_printed=beside_printed,
    )
    assert event.columns == ("model", "printed, thousands", "computed, thousands", "to the digits printed")
    # Two decimals more than the printed one that has most; what is printed keeps its zeros.
    assert event.rows == (
        ("one", "1.10", "1.0990", "equal"),
        ("two", "1,234", "1,234.5670", "not equal"),
        ("three", "0.5", "0.4490", "not equal"),
    )
    assert event.kinds == ("text", "number", "number", "text")
    assert event.values[0][2] == 1.099


def test_figures_without_decimals_are_met_by_two_and_rows_are_cells_unless_named(run_page):
    [event] = run_page(
        'beside_printed("Invented", [("one", "invented2026.b", 155_312)], unit=1000, unit_name="K")',
        quotes={"invented2026": {"b": 155}},
        beside_printed=beside_printed,
    )
    assert event.columns[0] == "cell"
    assert event.rows == (("one", "155", "155.31", "equal"),)
