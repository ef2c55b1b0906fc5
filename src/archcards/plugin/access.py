"""Names, keys and marks that the theme leaves out, for those who hear a page, have no pointer or print it."""

from __future__ import annotations

import re
from collections import Counter
from html import escape

from .markup import elements, plain_text
from .render import slug

__all__ = ["named", "outward", "reachable_tables"]

_MENU = re.compile(
    r'<nav class="md-nav" data-md-level="(?P<level>\d+)" aria-labelledby="[^"]*" aria-expanded="\w+">'
    r'(?P<rest>\s*<label class="md-nav__title"[^>]*>(?P<title>.*?)</label>)',
    re.S,
)
_SECTIONS = re.compile(r'<nav class="md-nav" aria-label="([^"]*)">')
_OPTION = re.compile(r'(<input class="md-option"[^>]*? aria-label=")([^"]*)(")')
_HEAD = re.compile(r"<th\b(?![^>]*\bscope=)")
_PATH = re.compile(r'<nav class="md-path" aria-label="[^"]*"')
_TAGS = '<nav class="md-tags"'
_PROGRESS = 'data-md-component="progress" role="progressbar"'
_SEARCH = '<div class="md-search" data-md-component="search" role="dialog">'


def named(page: str) -> str:
    """The page with a name of its own for each landmark and dialog.

    The theme names a button for the colours it is shown in by the colours that the next one gives.
    """

    def menu(found: re.Match) -> str:
        name = escape(f"Pages: {plain_text(found['title'])}")
        return f'<nav class="md-nav" data-md-level="{found["level"]}" aria-label="{name}">{found["rest"]}'

    page = _MENU.sub(menu, page)
    names = [found[2] for found in _OPTION.finditer(page)]
    turned = iter(names[-1:] + names[:-1])
    page = _OPTION.sub(lambda found: found[1] + next(turned) + found[3], page)
    page = _PATH.sub('<nav class="md-path" aria-label="Where this page is"', page)
    page = page.replace(_TAGS, f'{_TAGS} aria-label="Tags"')
    page = _SECTIONS.sub(r'<nav class="md-nav" aria-label="Sections of \1">', page)
    # A line that says no value is for the eye; to others the page that has come says so itself.
    page = page.replace(_PROGRESS, 'data-md-component="progress" aria-hidden="true"')
    return page.replace(_SEARCH, _SEARCH.replace(">", ' aria-label="Search">'))


def outward(page: str) -> str:
    """The page, whose links to other hosts say so: on paper their addresses stand beside them.

    The theme's script makes every address a full one, so that later nothing tells them apart.

    Example:
        >>> outward('<a href="https://arxiv.org/">, <a href="../cards/">')
        '<a href="https://arxiv.org/" rel="external">, <a href="../cards/">'
    """
    return re.sub(r'(<a href="https?://[^"]*")>', r'\1 rel="external">', page)


def reachable_tables(html: str) -> str:
    """The page's content with its plain tables in a frame that scrolls, also by keyboard.

    A table without a caption is named by the heading that it stands under, and by its place where there are more. Its
    address is made from the heads of its columns or, where another has the same, from its name.
    """
    headings = [
        (start, plain_text(inner.partition('<a class="headerlink"')[0]))
        for start, _, _, inner in elements(html, r"<h[1-6]\b[^>]*>")
    ]
    found = list(elements(html, r"<table>"))
    columns = [" ".join(plain_text(head) for *_, head in elements(inner, r"<th\b[^>]*>")) for *_, inner in found]
    pieces, position, seen = [], 0, Counter()
    for (start, end, _, inner), heads in zip(found, columns, strict=True):
        heading = next((text for place, text in reversed(headings) if place < start), "")
        title = heading or "Table"
        seen[title] += 1
        if seen[title] > 1:
            title = f"{title}, {seen[title]}"
        name = f"Table: {title}" if heading else title
        alone = heads.strip() and columns.count(heads) == 1
        address = f"table-of-{slug(heads)}" if alone else f"table-under-{slug(title)}"
        inner = _HEAD.sub('<th scope="col"', inner)
        pieces.append(html[position:start])
        pieces.append(
            f'<div class="ac-table" id="{address}" role="group" tabindex="0" aria-label="{escape(name)}">'
            f'<table class="ac-paper"><caption class="ac-unseen">{escape(title)}</caption>{inner}</table></div>'
        )
        position = end
    return "".join(pieces) + html[position:]
