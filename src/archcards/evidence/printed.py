"""`as_printed`: whether a figure that somebody printed is the computed one, to the digits printed."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

__all__ = ["as_printed"]


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
    decimals = max(0, -int(shown.as_tuple().exponent))
    return abs(Fraction(computed) / unit - Fraction(shown)) <= Fraction(1, 2 * 10**decimals)
