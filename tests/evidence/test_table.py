"""A table shows computed values, aligned and formatted."""

import math

import numpy as np
import pytest

from archcards.evidence import table


def test_cells_are_formatted_and_kept_as_computed(run_page):
    [event] = run_page(
        """
        table(["model", ("scalars", ","), ("share", ".1%"), "ratio", "exact"],
              [("A", np.int64(8192), 1.0, 1 / 3, True), ("B", 1024, 0.125, 2.0, None)], caption="A caption.")
        """,
        table=table,
        np=np,
    )
    assert event.line == 2
    assert event.columns == ("model", "scalars", "share", "ratio", "exact")
    assert event.kinds == ("text", "number", "number", "number", "text")
    assert event.rows == (
        ("A", "8,192", "100.0%", "0.333333", "yes"), ("B", "1,024", "12.5%", "2", ""),
    )  # fmt: skip
    assert event.values[0] == ("A", 8192, 1.0, 1 / 3, True)
    assert type(event.values[0][1]) is int


@pytest.mark.parametrize(
    ("columns", "rows", "caption", "reason"),
    [
        (["a"], [], "c", "no row"),
        ([], [[]], "c", "columns"),
        ("ab", [[1, 2]], "c", "columns"),
        (["a", "b"], [[1, 2], [1]], "c", "row 2 has 1 values for 2 columns"),
        (["a", "a"], [[1, 2]], "c", "differ"),
        ([("a", ",", "x")], [[1]], "c", "a column is"),
        ([""], [[1]], "c", "a column is"),
        (["a"], [[1]], "", "caption"),
        (["a"], [[1]], None, "caption"),
        (["a"], [[math.nan]], "c", "row 1, column a must be a finite"),
        (["a"], [[np.inf]], "c", "finite"),
        (["a"], [[np.ones(2)]], "c", "number or text"),
        (["a"], [[1j]], "c", "number or text"),
        ([("a", "d")], [[1.5]], "c", "does not fit"),
    ],
)
def test_what_is_no_table_is_refused(run_page, columns, rows, caption, reason):
    with pytest.raises(ValueError, match=reason):
        table(columns, rows, caption=caption)
    [event] = run_page("table(columns, rows, caption=caption)", table=table, columns=columns, rows=rows, caption=caption)
    assert event.kind == "failure"
    assert reason in event.reason


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1.10", "2,048", "-3", "+4.5", None], "number"),
        ([1, "2.0"], "number"),
        (["1.10", "none"], "text"),
        (["1.", "2"], "text"),
        ([".5", "2"], "text"),
        (["8B", "2"], "text"),
        (["p8", "2"], "text"),
        (["", "2"], "text"),
        ([True, "2"], "text"),
        ([",5", "2"], "text"),
    ],
)
def test_numerals_in_text_are_aligned_as_numbers_if_nothing_else_stands_in_their_column(run_page, column, kind):
    [event] = run_page('table(["a"], [[cell] for cell in column], caption="c")', table=table, column=column)
    assert event.kinds == (kind,)
