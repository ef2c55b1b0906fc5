"""What `make mutants` found, as the Evidence page shows it: how much of the broken code is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["mutants_index"]


def mutants_index(root: Path, link: Callable[[str], tuple[str, str] | None]) -> str:
    """The result in `results/mutants.json`, or nothing; `link` gives the address and title of a page under `docs`."""
    file = root / "results" / "mutants.json"
    if not file.is_file():
        return ""
    found = json.loads(file.read_text("utf-8"))
    modules = "".join(
        f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{_score(one)}</td><td>{_interval(one)}</td>'
        f"<td>{'as it is now' if _unchanged(root, name, one) else 'an earlier state'}</td></tr>"
        for name, one in found["modules"].items()
    )
    chapters = "".join(
        f'<tr><th scope="row">{_linked(name, link)}</th><td>{_score(one)}</td></tr>'
        for name, one in found["chapters"].items()
    )
    equivalent = (
        f"; {len(found['equivalent'])} more were set aside because they change nothing" if found["equivalent"] else ""
    )
    return (
        f"<p>Of {found['of']:,} places and ways in which the code can be broken, {found['mutants']} were drawn with a "
        f"seed, in proportion to each module’s share. Tests or chapters noticed {found['first']['killed']} of "
        f"them at first ({_interval(found['first'])} with 95 % confidence, and so of those not drawn), and notice "
        f"{found['killed']} since the survivors led to better tests{equivalent}.</p>"
        '<details class="ac-evidence" data-search-exclude><summary>By module and by chapter</summary>'
        + _table("Modules", ("Module", "Noticed", "95 % interval", "Code"), modules)
        + _table("Chapters: mutants of the code that they use, noticed by their own blocks", ("Chapter", "Noticed"), chapters)
        + "</details>"
    )


def _linked(path: str, link: Callable[[str], tuple[str, str] | None]) -> str:
    found = link(path.removeprefix("docs/"))
    return f'<a href="{escape(found[0])}">{escape(found[1])}</a>' if found else f"<code>{escape(path)}</code>"


def _score(one: Mapping[str, Any]) -> str:
    return f"{one['killed']} of {one['mutants']}"


def _interval(one: Mapping[str, Any]) -> str:
    low, high = one["interval"]
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def _unchanged(root: Path, module: str, one: Mapping[str, Any]) -> bool:
    file = root / "src" / "archcards" / f"{module}.py"
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == one["digest"]


def _table(name: str, columns: tuple[str, ...], rows: str) -> str:
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="ac-table" role="group" tabindex="0" aria-label="{escape(name)}"><table class="ac-paper">'
        f"<caption>{escape(name)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
