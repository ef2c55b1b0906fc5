"""Names and keys that the theme leaves out, for those who hear a page or have no pointer."""

from __future__ import annotations

import re
from html import escape

from .markup import elements, plain_text

__all__ = ["named", "reachable_tables"]

_MENU = re.compile(
    r'<nav class="md-nav" data-md-level="(?P<level>\d+)" aria-labelledby="[^"]*" aria-expanded="\w+">'
    r'(?P<rest>\s*<label class="md-nav__title"[^>]*>(?P<title>.*?)</label>)',
    re.S,
)
_SECTIONS = re.compile(r'<nav class="md-nav" aria-label="([^"]*)">')
_SEARCH = '<div class="md-search" data-md-component="search" role="dialog">'


def named(page: str) -> str:
    """The page with a name of its own for each landmark and dialog."""

    def menu(found: re.Match) -> str:
        name = escape(f"Pages: {plain_text(found['title'])}")
        return f'<nav class="md-nav" data-md-level="{found["level"]}" aria-label="{name}">{found["rest"]}'

    page = _MENU.sub(menu, page)
    page = _SECTIONS.sub(r'<nav class="md-nav" aria-label="Sections of \1">', page)
    return page.replace(_SEARCH, _SEARCH.replace(">", ' aria-label="Search">'))


def reachable_tables(html: str) -> str:
    """The page's content with its plain tables in a frame that scrolls, also by keyboard."""
    pieces, position = [], 0
    for start, end, _, inner in elements(html, r"<table>"):
        pieces.append(html[position:start])
        pieces.append(
            '<div class="ac-table" role="group" tabindex="0" aria-label="Table">'
            f'<table class="ac-paper">{inner}</table></div>'
        )
        position = end
    return "".join(pieces) + html[position:]
