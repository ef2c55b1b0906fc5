"""What tables about models have in common: their frame, their numbers, the link to a model's page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from html import escape

from .model import Model
from .render import slug

__all__ = ["GIB", "Link", "anchor", "gib", "growth", "short", "table"]

GIB = 2**30

Link = Callable[[str], tuple[str, str] | None]
"""Gives address and title of a page under `docs`, seen from the page being drawn; None if there is none."""


def table(
    caption: str,
    columns: Iterable[str],
    rows: Iterable[str],
    *,
    note: str = "",
    numbers: int = 0,
    search: bool = False,
) -> str:
    """A table that scrolls sideways where it is wider than the page; the last `numbers` columns are numbers."""
    columns = list(columns)
    text = len(columns) - numbers
    head = "".join(
        f'<th scope="col" class="ac-{"text" if place < text else "number"}">{column}</th>'
        for place, column in enumerate(columns)
    )
    hidden = "" if search else " data-search-exclude"
    after = f"<p{hidden}>{escape(note)}</p>" if note else ""
    return (
        f'<div class="ac-table" id="table-{slug(caption)}" role="region" tabindex="0" aria-label="{escape(caption)}"{hidden}>'
        f'<table class="ac-paper"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div>{after}'
    )


def anchor(model: Model, link: Link) -> str:
    known = link(model.src_uri)
    return f'<a href="{escape(known[0])}">{escape(model.short)}</a>' if known else escape(model.short)


def short(count: int) -> str:
    """Four digits and a unit, for a table to be skimmed; the exact number stands on the model's page."""
    for unit, name in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:,}"


def gib(size: int) -> str:
    digits = 3 if size < 100 * GIB else 1
    return f"{size / GIB:,.{digits}f} GiB"


def growth(scalars: int | Fraction) -> str:
    if isinstance(scalars, int):
        return f"{scalars:,}"
    return f"{float(scalars):,.2f} on average"
