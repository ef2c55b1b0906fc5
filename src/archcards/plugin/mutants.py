"""What `make mutants` found, as the Evidence page shows it: how much of the broken code is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from . import render

__all__ = ["mutants_index"]

SCORES = ("Noticed at first", "95% interval", "Noticed now")


def mutants_index(root: Path, link: Callable[[str], tuple[str, str] | None]) -> str:
    """The result in `results/mutants.json`, or nothing; `link` gives the address and title of a page under `docs`."""
    file = root / "results" / "mutants.json"
    if not file.is_file():
        return ""
    found = json.loads(file.read_text("utf-8"))
    rooms = "".join(
        f'<tr><th scope="row">{render.code_name(f"archcards.{name}")}</th>{_scores(one)}</tr>'
        for name, one in found["rooms"].items()
    )
    modules = "".join(
        f'<tr><th scope="row">{render.code_name(name)}</th>{_scores(one)}'
        f"<td>{'as it is now' if _unchanged(root, name, one) else 'an earlier state'}</td></tr>"
        for name, one in found["modules"].items()
    )
    chapters = "".join(
        f'<tr><th scope="row">{_linked(name, link)}</th>{_number(_score(one))}</tr>'
        for name, one in found["chapters"].items()
    )
    first, aside = found["first"], found["equivalent"]
    # What was known to change nothing was not run; what was found so afterwards no longer counts.
    later = first["mutants"] - found["mutants"]
    known = len(aside) - later
    equivalent = f" {known} more were drawn and set aside, because they change nothing." if known else ""
    since = f", without {later} that were found since to change nothing" if later else ""
    return (
        f"<p>Of {found['of']:,} places and ways in which the code can be broken, {first['mutants']} were drawn with a "
        f"seed, in proportion to each module’s share.{equivalent} Tests or chapters noticed {first['killed']} at first: "
        f"with 95% confidence, {_interval(first)} of all. The survivors led to better tests, and {found['killed']} of "
        f"{found['mutants']} are noticed now{since}; since those tests were written for them, that says nothing of the rest.</p>"
        + _table("Rooms", ("Room", *SCORES), rooms)
        + '<details class="ac-evidence" data-search-exclude><summary>By module and by chapter, and what survives</summary>'
        + _table("Modules", ("Module", *SCORES, "Code"), modules)
        + _table("Chapters: mutants of the mechanisms and the ledger that were tried on them, noticed by their own checks",
                 ("Chapter", "Noticed"), chapters)
        + _listed("Not noticed", {name: "" for name in found["survivors"]})
        + _listed("Set aside, because they change nothing", aside)
        + "</details>"
    )  # fmt: skip


def _listed(title: str, mutants: Mapping[str, str]) -> str:
    if not mutants:
        return ""
    items = "".join(
        f"<li><code>{escape(name)}</code>{': ' + escape(why) if why else ''}</li>" for name, why in mutants.items()
    )
    return f"<p>{title}:</p><ul>{items}</ul>"


def _linked(path: str, link: Callable[[str], tuple[str, str] | None]) -> str:
    found = link(path.removeprefix("docs/"))
    return f'<a href="{escape(found[0])}">{escape(found[1])}</a>' if found else f"<code>{escape(path)}</code>"


def _scores(one: Mapping[str, Any]) -> str:
    return f"{_number(_score(one['first']))}{_number(_interval(one['first']))}{_number(_score(one))}"


def _number(text: str) -> str:
    return f'<td class="ac-number">{text}</td>'


def _score(one: Mapping[str, Any]) -> str:
    return f"{one['killed']} of {one['mutants']}"


def _interval(one: Mapping[str, Any]) -> str:
    low, high = one["interval"]
    return f"{100 * low:.0f}–{100 * high:.0f}%"


def _unchanged(root: Path, module: str, one: Mapping[str, Any]) -> bool:
    file = root / "src" / "archcards" / f"{module}.py"
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == one["digest"]


def _table(name: str, columns: tuple[str, ...], rows: str) -> str:
    numbers = {*SCORES, "Noticed"}
    head = "".join(
        f'<th scope="col" class="ac-{"number" if column in numbers else "text"}">{column}</th>' for column in columns
    )
    return (
        f'<div class="ac-table" id="table-{render.slug(name)}" role="group" tabindex="0" aria-label="{escape(name)}">'
        f'<table class="ac-paper">'
        f"<caption>{escape(name)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
