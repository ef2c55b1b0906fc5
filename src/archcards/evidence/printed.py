"""Figures that somebody printed: whether they are the computed ones, to the digits printed."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple

from .quote import as_quoted
from .table import table

__all__ = ["Agreement", "as_printed", "beside_printed"]

_MORE_DIGITS = 2
"""How many decimals a computed number is shown with beyond those of the printed ones beside it."""


def as_printed(computed: int | float | Fraction, printed: int | float | str, *, unit: int = 1) -> bool:
    r"""Whether `printed` is what `computed` becomes when it is rounded to as many digits.

    $$\left|\frac{\text{computed}}{\text{unit}} - \text{printed}\right| \le \frac{1}{2}\,10^{-\text{decimals}}$$

    A tie may have been rounded either way. A figure without decimals is read as exact to its last
    digit, trailing zeros too.

    Args:
        computed: the exact number.
        printed: the figure as it stands in the source: text keeps its trailing zeros.
        unit: what the figure counts in: 10**9 for billions.

    Raises:
        ValueError: `printed` is no number, or `unit` is not positive.

    Example:
        >>> as_printed(5_132_849_472, "5.13", unit=10**9), as_printed(5_132_849_472, "5.1", unit=10**9)
        (True, True)
        >>> as_printed(5_132_849_472, "5.10", unit=10**9)
        False
    """
    if unit <= 0:
        raise ValueError(f"unit must be positive, got {unit}")
    try:
        shown = Decimal(str(printed))
    except InvalidOperation:
        raise ValueError(f"printed must be a number, got {printed!r}") from None
    if not shown.is_finite():
        raise ValueError(f"printed must be a finite number, got {printed!r}")
    return abs(Fraction(computed) / unit - Fraction(shown)) <= Fraction(1, 2 * 10 ** _decimals(shown))


def _decimals(printed: Decimal) -> int:
    """How many digits stand behind the point."""
    return max(0, -int(printed.as_tuple().exponent))


class Agreement(NamedTuple):
    """How many cells of a printed table are the computed ones, of how many."""

    equal: int
    cells: int


def beside_printed(
    caption: str,
    rows: Iterable[tuple[str, str, int | float | Fraction]],
    *,
    unit_name: str,
    unit: int = 1,
    row_name: str = "cell",
) -> Agreement:
    """Shows the cells of a printed table beside the computed ones, each called equal or not.

    The computed numbers have two decimals more than the printed one that has most, all of them as many,
    so that they stand digit under digit.

    Args:
        caption: what the table shows, and where it is printed.
        rows: for each cell what it is, the quote that prints it (`source.name`), and the exact number.
        unit_name: what the printed figures count in.
        unit: how many that is: 10**9 for billions.
        row_name: what a row is about, for its heading: a model, a part.

    Returns:
        How many cells are equal, and how many there are.

    Raises:
        ValueError: a source quotes no such number.

    Example:
        >>> beside_printed("gpt-oss, Table 1", [("120b, total", "gpt_oss2025.total_120b", 116_829_156_672)],
        ...                unit=10**9, unit_name="billions")
        Agreement(equal=1, cells=1)
    """
    shown, decimals = [], 0
    for what, quote, computed in rows:
        printed = as_quoted(quote)
        same = as_printed(computed, printed, unit=unit)
        figure = Decimal(str(printed))
        decimals = max(decimals, _decimals(figure))
        number = float(Fraction(computed) / unit)
        shown.append((what, f"{figure:,}", number, "equal" if same else "not equal"))
    table(
        [
            row_name,
            f"printed, {unit_name}",
            (f"computed, {unit_name}", f",.{decimals + _MORE_DIGITS}f"),
            "to the digits printed",
        ],
        shown,
        caption=caption,
    )
    return Agreement(sum(row[-1] == "equal" for row in shown), len(shown))
