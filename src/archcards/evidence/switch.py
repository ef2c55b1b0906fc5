"""`switch`: the output of a check, and what each of its mistakes makes of it, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .record import Check, Option, Switch, current_recorder

__all__ = ["switch"]

LARGEST = 16
SHADES = 8


def switch(
    check: Check,
    *,
    caption: str,
    show: Callable[[np.ndarray], Any] | None = None,
    labels: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> Switch | None:
    """Lets the reader switch between the correct output and that of each control of a check.

    Args:
        check: what `check` returned, with `==` as its relation.
        caption: what the numbers are.
        show: what to show of an output: gives a number, a row, or a matrix of at most 16 by 16.
        labels: of the rows and of the columns; either may be empty.

    Returns:
        The switch, or None on a page where the check failed or the switch was refused.

    Raises:
        ValueError: it cannot be shown, outside a page. On a page that is recorded as a failure.

    Example:
        >>> from archcards.evidence import check
        >>> data = [1, 2, 6]
        >>> median = {"the median": lambda: np.median(data)}
        >>> shown = switch(check("the mean", np.mean(data), 3.0, controls=median), caption="A mean.")
        >>> [(option.name, option.error, option.rows) for option in shown.options]
        [('correct', '', (('3.00',),)), ('the median', '0.33', (('2.00',),))]
    """
    recorder = current_recorder()
    if isinstance(check, Check) and not check.passed:
        return None  # the check's own failure already ends the build
    try:
        result = _switch(check, caption, show, labels, recorder.call().line, recorder.next_id())
    except ValueError as reason:
        recorder.refuse(f"switch: {reason}")
        return None
    recorder.emit(result)
    return result


def _switch(check: Any, caption: Any, show: Any, labels: Any, line: int, name: str) -> Switch:
    if not isinstance(check, Check) or check.actual is None:
        raise ValueError(f"expected what check returned, and it is {type(check).__name__}")
    if not isinstance(caption, str) or not caption.strip():
        raise ValueError(f"caption must say what the numbers are, and it is {caption!r}")
    values = [check.actual, *(mistake.value for mistake in check.controls)]
    arrays = [_shown(value, show) for value in values]
    shape = arrays[0].shape
    for mistake, array in zip(check.controls, arrays[1:], strict=True):
        if array.shape != shape:
            told = f"shape {array.shape}, and the correct output {shape}"
            raise ValueError(f"{mistake.name!r} shows {told}")
    if all(np.array_equal(arrays[0], array, equal_nan=True) for array in arrays[1:]):
        raise ValueError("what is shown is the same for every mistake: show another part")
    decimals, shades = _decimals(arrays), _shades(arrays)
    names = ["correct", *(mistake.name for mistake in check.controls)]
    errors = ["", *(mistake.shown for mistake in check.controls)]
    options = tuple(
        Option(name=n, error=e, rows=_cells(array, decimals), shades=s)
        for n, e, array, s in zip(names, errors, arrays, shades, strict=True)
    )
    return Switch(
        line=line, id=name, caption=caption, claim=check.claim, options=options,
        labels=_labels(labels, shape),
    )  # fmt: skip


def _shown(value: np.ndarray, show: Callable[[np.ndarray], Any] | None) -> np.ndarray:
    array = np.asarray(value.copy() if show is None else show(value.copy()))
    if array.dtype.kind == "O":
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf" or array.size == 0:
        raise ValueError(f"it shows real numbers, and it is {array.dtype} of shape {array.shape}")
    if array.ndim > 2 or max(array.shape, default=1) > LARGEST:
        most = f"{LARGEST} by {LARGEST}"
        raise ValueError(f"it shows at most {most}, and this is {array.shape}: reduce it with show=")
    return np.atleast_2d(array)


def _decimals(arrays: list[np.ndarray]) -> int:
    """As many as give the largest number three digits; none for integers."""
    if all(array.dtype.kind in "biu" for array in arrays):
        return 0
    every = np.concatenate([array.astype(np.float64).ravel() for array in arrays])
    largest = float(np.max(np.abs(every[np.isfinite(every)]), initial=0.0))
    return 2 if largest == 0 else min(max(2 - math.floor(math.log10(largest)), 0), 6)


def _cells(array: np.ndarray, decimals: int) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_cell(x, decimals) for x in row) for row in array.tolist())


def _cell(x: float | bool, decimals: int) -> str:
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    text = f"{float(x):,.{decimals}f}" if decimals else f"{round(x):,}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    return text.replace("-", "−")


def _shades(arrays: list[np.ndarray]) -> list[tuple[tuple[int, ...], ...]]:
    every = np.concatenate([array.astype(np.float64).ravel() for array in arrays])
    finite = every[np.isfinite(every)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    span = high - low or 1.0
    scaled = [np.clip((array.astype(np.float64) - low) / span * SHADES, 0, SHADES) for array in arrays]
    rounded = [np.nan_to_num(s, nan=0.0).round(6).round().astype(int) for s in scaled]
    return [tuple(map(tuple, s.tolist())) for s in rounded]


def _labels(labels: Any, shape: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if labels is None:
        return ((), ())
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise ValueError("labels are two lists, for rows and for columns")
    for what, given, size in zip(("rows", "columns"), labels, shape, strict=True):
        if len(given) not in (0, size):
            raise ValueError(f"there are {size} {what}, and {len(given)} labels for them")
    return tuple(map(str, labels[0])), tuple(map(str, labels[1]))
