"""`table`: rows of computed values, with a caption."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .record import Table, current_recorder

__all__ = ["table"]

Column = str | tuple[str, str]

_NUMERAL = re.compile(r"[+-]?[0-9][0-9,]*(\.[0-9]+)?")


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, caption: str) -> Table | None:
    """Shows a table.

    Args:
        columns: a name each, or a name and a format for its numbers, such as `("bytes", ",")`.
        rows: a value for each column: numbers, truth values, or text. None leaves a cell empty. Text
            that is a numeral is aligned as a number.
        caption: what the table shows, understood without the table.

    Returns:
        The table, or None on a page that it was refused on.

    Raises:
        ValueError: it cannot be shown, outside a page. On a page that is recorded as a failure.

    Example:
        >>> table(["heads", ("cache", ",")], [(h, 2 * 4 * h * 16 * 8) for h in (8, 2, 1)],
        ...       caption="Scalars in the cache, by key/value heads.")
        heads | cache
        8     | 8,192
        2     | 2,048
        1     | 1,024
        Scalars in the cache, by key/value heads.
    """
    recorder = current_recorder()
    try:
        result = _table(columns, rows, caption, recorder.call().line)
    except ValueError as reason:
        recorder.refuse(f"table: {reason}")
        return None
    recorder.emit(result)
    return result


def _table(columns: Any, rows: Any, caption: Any, line: int) -> Table:
    if not isinstance(caption, str) or not caption.strip():
        raise ValueError(f"caption must say what the table shows, and it is {caption!r}")
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns must be a list of names, and it is {columns!r}")
    named = [(column, "") if isinstance(column, str) else tuple(column) for column in columns]
    for column in named:
        words = all(isinstance(part, str) for part in column)
        if len(column) != 2 or not words or not column[0].strip():
            raise ValueError(f"a column is a name, or a name and a format, and it is {column!r}")
    names, formats = zip(*named, strict=True)
    if len(set(names)) < len(names):
        raise ValueError(f"columns must differ in name, and they are {', '.join(names)}")
    rows = [list(row) for row in rows]
    if not rows:
        raise ValueError("there is no row: a table shows something")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} values for {len(names)} columns")
    values = [[_plain(item, f"row {n}, column {name}") for item, name in zip(row, names, strict=True)]
              for n, row in enumerate(rows, start=1)]  # fmt: skip
    shown = [[_shown(item, spec, name) for item, spec, name in zip(row, formats, names, strict=True)]
             for row in values]  # fmt: skip
    kinds = [_kind(column) for column in zip(*values, strict=True)]
    return Table(
        line=line, columns=names, kinds=tuple(kinds), rows=tuple(map(tuple, shown)),
        values=tuple(map(tuple, values)), caption=caption,
    )  # fmt: skip


def _kind(column: Sequence[Any]) -> str:
    """What a column holds; a number may be text, to keep the zeros that its source prints."""
    words = [value for value in column if isinstance(value, str | bool)]
    numerals = all(isinstance(word, str) and _NUMERAL.fullmatch(word) for word in words)
    return "number" if numerals else "text"


def _plain(value: Any, where: str) -> int | float | str | bool | None:
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Real):
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(f"{where} must be a finite number, and it is {value}")
        return value
    raise ValueError(f"{where} must be a number or text, and it is {type(value).__name__}")


def _shown(value: Any, spec: str, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    try:
        return format(value, spec) if spec or isinstance(value, int) else format(value, ".6g")
    except ValueError:
        raise ValueError(f"column {name}: the format {spec!r} does not fit {value!r}") from None
