"""The list of controls, each with an address of its own, and links to it from pages that name one."""

from __future__ import annotations

import html
import re
from functools import cache

from archcards import controls

from .layout import table
from .markup import plain_text
from .render import inline, slug

__all__ = ["PAGE", "anchor", "index", "linked"]

PAGE = "api/controls.md"
"""The page under `docs` that has the list."""

_NAMED = re.compile(r"<code>(\w+)</code>: (<code>[^<]*</code>(?:, <code>[^<]*</code>)*)")
_CODE = re.compile(r"<code>([^<]*)</code>")
_SEEN = re.compile(r"<li>((?:(?!</?li>).)*?)(: seen in )(.*?)</li>", re.S)


def anchor(mechanism: str, name: str) -> str:
    """The address of a control on its page.

    Example:
        >>> anchor("cached_attention", "trimmed to the window first")
        'control-cached-attention-trimmed-to-the-window-first'
    """
    return f"control-{slug(mechanism)}-{slug(name)}"


def index() -> str:
    """Every control by mechanism, with what it is and where it was seen."""
    rows = []
    for mechanism in controls.MECHANISMS:
        rows.append(f'<tr class="ac-sum"><th scope="rowgroup" colspan="3"><code>{mechanism}</code></th></tr>')
        for name, control in controls.of(mechanism).items():
            address = anchor(mechanism, name)
            rows.append(
                f'<tr id="{address}"><th scope="row"><a href="#{address}">{inline(name)}</a></th>'
                f"<td>{control.kind}</td><td>{inline(control.seen)}</td></tr>"
            )
    caption = "Every control of the site, by mechanism; its name is its permanent address."
    return table(caption, ("control", "kind", "seen in"), rows, search=True)


def linked(page: str, address: str) -> str:
    """The page with links to the controls that it names; `address` is that of the list, seen from it.

    A name is that of a control after its mechanism, both as code, as in `causal`: `aligned to the top
    left`; and that of a mistake which a check says was seen somewhere.
    """

    def name(mechanism: str, found: re.Match) -> str:
        known = mechanism in controls.MECHANISMS and html.unescape(found[1]) in controls.of(mechanism)
        target = anchor(mechanism, html.unescape(found[1]))
        return f'<a href="{address}#{target}">{found.group()}</a>' if known else found.group()

    def names(found: re.Match) -> str:
        return f"<code>{found[1]}</code>: " + _CODE.sub(lambda one: name(found[1], one), found[2])

    def seen(found: re.Match) -> str:
        noted = _by_note().get(found[3], [])
        alike = [one for one in noted if one[1] == plain_text(found[1])] or noted
        if len(alike) != 1:
            return found.group()
        return f'<li><a href="{address}#{anchor(*alike[0])}">{found[1]}</a>{found[2]}{found[3]}</li>'

    page = _NAMED.sub(names, page)
    return re.sub(r'<ul class="ac-seen">.*?</ul>', lambda notes: _SEEN.sub(seen, notes.group()), page, flags=re.S)


@cache
def _by_note() -> dict[str, list[tuple[str, str]]]:
    """Mechanism and name of the controls that have a note, by the note as a check shows it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for mechanism in controls.MECHANISMS:
        for name, control in controls.of(mechanism).items():
            found.setdefault(inline(control.seen), []).append((mechanism, name))
    return found
