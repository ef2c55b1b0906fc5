"""`quoted`: a number that a source prints, for code to compare with what it computes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .record import current_recorder

__all__ = ["as_quoted", "quoted", "quoting"]

_given: dict[str, dict[str, Any]] = {}
"""What a notebook has said its sources print: it has no `docs/sources.yml` to read."""


def quoting(printed: Mapping[str, Mapping[str, Any]] | None = None) -> Mapping[str, Mapping[str, Any]]:
    """Makes numbers known that sources print, by source and name, where there is no checkout to read.

    Returns:
        All that were made known.

    Example:
        >>> _ = quoting({"jiang2023": {"window": 4096}})
        >>> quoted("jiang2023.window")
        4096
    """
    for key, values in (printed or {}).items():
        _given.setdefault(key, {}).update(values)
    return _given


def quoted(name: str) -> int | float:
    """The number that a source prints, from the `quotes` of `docs/sources.yml`, where it was typed once.

    On a page only the sources that the page lists can be quoted; elsewhere, what `quoting` made
    known and all sources of the checkout can.

    Args:
        name: `source.name`, as in prose: `{{ source.name }}`.

    Returns:
        The number. One that is kept as text, so that prose shows it as printed (`"54.0"`), is read
        as a number too.

    Raises:
        ValueError: the page does not list the source, the source quotes no such number, or what it
            quotes is no number (`131K`).

    Example:
        >>> quoted("gemma2025.with_cache_27b") - quoted("gemma2025.weights_27b") < 19
        True
    """
    value = as_quoted(name)
    number = _number(value)
    if number is None:
        raise ValueError(f"{name} is {value!r}, which is no number: quote it in prose only")
    return number


def as_quoted(name: str) -> Any:
    """What `docs/sources.yml` has for a quote: text where the digits as printed matter (`"54.0"`).

    Raises:
        ValueError: the page does not list the source, or the source quotes no such number.
    """
    key, _, rest = name.partition(".") if isinstance(name, str) else ("", "", "")
    if not key or not rest:
        raise ValueError(f"name must be source.name, such as jiang2023.window, got {name!r}")
    recorder = current_recorder()
    quotes = recorder.quotes
    if recorder.page is None:
        quotes = _given if rest in _given.get(key, {}) else _of_the_checkout()
    if key not in quotes and recorder.page is None:
        raise ValueError(f"there is no source {key}; add it to sources.yml")
    if key not in quotes:
        raise ValueError(f"the page does not list {key} among its sources, so it cannot quote {name}")
    if rest not in quotes[key]:
        raise ValueError(f"the source {key} quotes no number {rest}; add it to sources.yml")
    return quotes[key][rest]


def _number(value: Any) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(value) if isinstance(value, str) else value
        except ValueError:
            continue
        if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
            return number
    return None


def _of_the_checkout() -> Mapping[str, Mapping[str, Any]]:
    from ..checkout import NotACheckout, find_checkout
    from .sources import read_sources  # a page needs no YAML

    try:
        file = find_checkout() / "docs" / "sources.yml"
    except NotACheckout as error:
        raise ValueError(f"there are no sources to quote from: {error}") from None
    sources, _ = read_sources("docs/sources.yml", file)
    return {key: source.printed for key, source in sources.items()}
