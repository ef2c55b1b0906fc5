"""What the site says about itself: cards, bibliography, and the list of all evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from archcards.evidence.cards import Card
from archcards.evidence.record import Check, Derivation, Fact
from archcards.evidence.sources import Source

from . import render
from .book import Address, BookPage

__all__ = [
    "addresses_switch",
    "bibliography",
    "card",
    "cards_index",
    "chapters_index",
    "evidence_index",
    "quotes_index",
    "sources_switch",
]

Place = Callable[[BookPage, str], str]
"""Fills in the facts of a page."""

_FIELDS = {
    "changed_component": "What changes",
    "invariant_core": "What stays",
    "analytical_consequence": "What follows by algebra",
    "empirical_source_boundary": "Where the algebra ends",
    "later_subject": "What comes later",
}


def card(card: Card, *, href: str = "", name: str = "") -> str:
    """A card, drawn from a chapter's front matter; with `href` its name leads to the chapter."""
    title = render.inline(card.name)
    if href:
        title = f'<a href="{escape(href)}">{title}</a>'
    rows = []
    for field, label in _FIELDS.items():
        boundary = ' class="ac-card__boundary"' if field == "empirical_source_boundary" else ""
        rows.append(f"<dt>{label}</dt><dd{boundary}>{render.inline(getattr(card, field))}</dd>")
    anchor = f' id="{escape(name)}"' if name else ""
    return (
        f'<section class="ac-card"{anchor} aria-label="Card: {escape(card.name)}">'
        f'<p class="ac-card__name">{title}</p><dl>{"".join(rows)}</dl></section>'
    )


def sources_switch() -> str:
    """The box that shows, for a whole page, where its numbers come from. It needs no script."""
    return (
        '<label class="ac-sources" data-search-exclude><input type="checkbox" autocomplete="off">'
        "Show where numbers come from <kbd>e</kbd></label>"
    )


def addresses_switch(content: str) -> str:
    """The same box for a page whose numbers say themselves where they come from; empty if there is nothing to cite.

    What it shows is made by a script, and so the box is there only with one.
    """
    if not re.search(r'<(?:div|figure|fieldset) class="ac-(?:table|figure|stack|check|derivation|switch)\b[^>]* id="', content):
        return ""
    return (
        '<label class="ac-sources ac-sources--addresses"><input type="checkbox" autocomplete="off">'
        "Show an address beside each table and figure <kbd>e</kbd></label>"
    )


def cards_index(
    pages: Iterable[BookPage], address: Address, place: Place
) -> str:
    """All cards; their facts are those of their own pages, so `place` fills them in here."""
    return "\n".join(
        place(page, card(page.proved.card, href=address(page, ""), name=f"card-{render.slug(page.stem)}"))
        for page in pages
        if page.proved.card
    )


def chapters_index(parts: Iterable[tuple[str, Sequence[tuple[str, str, BookPage]]]]) -> str:
    """A map of the book: the chapters of each part by title and address."""
    sections = []
    for part, chapters in parts:
        rows = "".join(f'<li><a href="{escape(href)}">{escape(title)}</a></li>' for title, href, _ in chapters)
        sections.append(f'<section class="ac-part"><h3>{escape(part)}</h3><ul>{rows}</ul></section>')
    return f'<div class="ac-map">{"".join(sections)}</div>'


def bibliography(sources: Iterable[Source]) -> str:
    """The sources of a page, in the order in which its front matter names them.

    Example:
        >>> source = Source("a2024", "Draws `q`", "Ann Lee", "2024", "https://arxiv.org/abs/2401.1", "", 1)
        >>> bibliography([source]).partition("<em>")[2]
        'Draws <code>q</code></em>. <a href="https://arxiv.org/abs/2401.1">arXiv:2401.1</a></li></ul>'
    """
    rows = []
    for source in sources:
        shown = source.url.removeprefix("https://").removeprefix("www.").rstrip("/")
        shown = shown.replace("arxiv.org/abs/", "arXiv:")
        quoted = "; ".join(
            f"{render.in_unit(quote.value, quote.unit)} ({escape(quote.where)})"
            for quote in source.quotes.values()
        )
        quoted = f'<br><span class="ac-address">Quoted from it: {quoted}</span>' if quoted else ""
        rows.append(
            f'<li id="source-{render.slug(source.key)}">{escape(source.authors)} ({escape(source.year)}). '
            f'<em>{render.inline(source.title)}</em>. <a href="{escape(source.url)}">{escape(shown)}</a>{quoted}</li>'
        )
    return f'<ul class="ac-bibliography">{"".join(rows)}</ul>' if rows else ""


def evidence_index(
    pages: Iterable[BookPage],
    address: Address,
    place: Place,
    title: Callable[[BookPage], str],
) -> str:
    """Everything that the site states and computed, page by page."""
    return "\n".join(
        place(page, _evidence_of(page, address, title(page)))
        for page in pages
        if page.proved.events
    )


def quotes_index(sources: Iterable[Source]) -> str:
    """The numbers that the book quotes, each with its source."""
    rows = "".join(
        f'<tr><th scope="row">{render.code_name(f"{source.key}.{quote.name}")}</th>'
        f"<td>{render.in_unit(quote.value, quote.unit)}</td>"
        f'<td><a href="{escape(source.url)}">{render.inline(source.title)}</a>, {escape(quote.where)}</td></tr>'
        for source in sources
        for quote in source.quotes.values()
    )
    return _listing("Quoted numbers", ("Name", "Value", "Printed in"), rows, "all pages") if rows else ""


def _evidence_of(page: BookPage, address: Address, title: str) -> str:
    checks, derivations, facts = page.of(Check), page.of(Derivation), page.of(Fact)
    parts = []
    if checks:
        rows = "".join(
            f'<tr><th scope="row"><a href="{address(page, page.anchors.of(check))}">'
            f"{render.inline(check.claim)}</a></th><td>{render.tolerance(check)}</td>"
            f"<td>{_caught(check)}</td><td>{check.line}</td></tr>"
            for check in checks
        )
        parts.append(_listing("Checks", ("Claim", "Holds", "Mistakes caught", "Line"), rows, title))
    if derivations:
        rows = "".join(
            f'<tr><th scope="row"><a href="{address(page, page.anchors.of(one))}">'
            f"{render.inline(one.title)}</a></th>"
            f"<td>{len(one.steps) - 1}</td><td>{render.sizes(one.sizes) or 'any'}</td>"
            f"<td>{one.line}</td></tr>"
            for one in derivations
        )
        parts.append(_listing("Derivations", ("Title", "Steps", "Sizes", "Line"), rows, title))
    if facts:
        rows = "".join(
            f'<tr><th scope="row"><a href="{address(page, page.anchors.of(fact))}">'
            f"{render.code_name(fact.name)}</a></th>"
            f"<td>{_value(fact)}</td><td>{'chosen' if fact.given else 'computed'}</td>"
            f"<td>{fact.line}</td></tr>"
            for fact in facts
        )
        parts.append(_listing("Facts", ("Name", "Value", "How", "Line"), rows, title))
    counts = ", ".join(
        f"{len(found)} {word if len(found) != 1 else word.removesuffix('s')}"
        for found, word in ((checks, "checks"), (derivations, "derivations"), (facts, "facts"))
        if found
    )
    if not parts:
        return ""
    return (
        f'<h2 class="ac-listed" id="{render.slug(page.src_uri.removesuffix(".md"))}">'
        f'<a href="{address(page, "")}">{title}</a></h2>'
        f'<details class="ac-evidence" data-search-exclude><summary>{counts}, from <code>{escape(page.path)}'
        f"</code></summary>{''.join(parts)}</details>"
    )


def _listing(name: str, columns: Sequence[str], rows: str, title: str) -> str:
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="ac-table" id="table-{render.slug(f"{name} {title}")}" role="group" tabindex="0" '
        f'aria-label="{escape(name)}: {escape(title)}">'
        f'<table class="ac-paper"><caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _caught(check: Check) -> str:
    return "<br>".join(
        f"{render.inline(control.name)}: {escape(control.shown)}" for control in check.controls
    )


def _value(fact: Fact) -> str:
    shown = f"{fact.value:,}" if type(fact.value) is int else f"{fact.value:.6g}" if type(
        fact.value
    ) is float else str(fact.value)
    return render.in_unit(shown, fact.unit)
