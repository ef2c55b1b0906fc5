"""How a page, and each piece of evidence on it, is cited, and where its errors are reported.

The texts are made here once for each page, with places for what is cited; a page's script fills them
for a check, a fact, a table or a figure, and the page itself stands cited at its end without a script.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import quote, urlsplit

from archcards.evidence.yaml_lines import YamlError, read_yaml

from .render import slug

__all__ = ["BadForm", "Edition", "edition", "form", "section"]


class BadForm(ValueError):
    """The address of the form for reports cannot be used."""


@dataclass(frozen=True)
class Edition:
    """What a citation names beside the page: the work, its authors, and what it was built from."""

    title: str
    authors: str
    version: str
    commit: str
    time: int
    """Seconds since 1970, that of the commit; 0 where it is not known."""

    @property
    def stated(self) -> str:
        """`version 0.1.0, commit 1ef5cb1d4c5e, 30 November 2026`, as far as it is known."""
        parts = [
            f"version {self.version}" if self.version else "",
            f"commit {self.commit}" if self.commit else "",
            f"{self._date.day} {_MONTHS[self._date.month - 1]} {self._date.year}" if self.time else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def year(self) -> str:
        return str(self._date.year) if self.time else ""

    @property
    def _date(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


# Names of months must not depend on the locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def edition(root: Path, title: str, time: int) -> Edition:
    """The edition of a checkout, from its `CITATION.cff` and its commit; `title` where it has none."""
    told: Mapping = {}
    file = root / "CITATION.cff"
    if file.is_file():
        try:
            told = read_yaml(file.read_text("utf-8")).plain() or {}
        except YamlError:
            told = {}
    names = [author.get("name") or _person(author) for author in told.get("authors", ())]
    title = str(told.get("title", title))
    return Edition(title, " and ".join(names) or f"The authors of {title}", str(told.get("version", "")), _commit(root), time)


def _person(author: Mapping) -> str:
    return f"{author.get('given-names', '')} {author.get('family-names', '')}".strip()


def _commit(root: Path) -> str:
    """The commit that is built, with `-dirty` after it where files differ from it."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.strip()


def form(given: str, repository: str) -> str:
    """The address of the form for new reports, with `{title}` and `{body}` in it; empty if there is none.

    `given` is the site's own setting; else the form is that of the repository's host: GitLab's, or that
    of GitHub, Gitea and Forgejo.

    Raises:
        BadForm: it is no address of the web, or has no place for the title and the body.

    Example:
        >>> form("", "https://code.example/ours/book/")
        'https://code.example/ours/book/issues/new?title={title}&body={body}'
        >>> form("", "")
        ''
    """
    if not given and repository:
        repository = repository.rstrip("/")
        if "gitlab" in (urlsplit(repository).hostname or ""):
            given = f"{repository}/-/issues/new?issue[title]={{title}}&issue[description]={{body}}"
        else:
            given = f"{repository}/issues/new?title={{title}}&body={{body}}"
    if not given:
        return ""
    if urlsplit(given).scheme not in {"http", "https"}:
        raise BadForm(f"the form for reports has an address of http or https, not {given!r}")
    for place in ("{title}", "{body}"):
        if place not in given:
            raise BadForm(f"the form for reports has {place} in its address; {given!r} has not")
    return given


def section(edition: Edition, page: str, address: str, report: str, offers: str = "") -> str:
    """The end of a page: how it is cited, and where an error on it is reported.

    `page` is the title of the page, `address` its permanent address, `report` the address of the form;
    `offers` is what leads to citations of its parts.
    """
    texts = {
        "citation": ". ".join(
            filter(None, [edition.authors, "{title}", ", ".join(filter(None, [edition.title, edition.stated])), "{address}"])
        ),
        "bibtex": _bibtex(edition),
        "report": f"{{title}}\n{{address}}\n{edition.stated}\n\nWhat is wrong, and what would be right:\n",
    }
    whole = {"{title}": f"“{page}”", "{address}": address, "{key}": f"{slug(edition.title)}-{slug(page)}"}
    shown = {name: _filled(text, whole) for name, text in texts.items()}
    bibtex = _filled(texts["bibtex"], {**whole, "{title}": _tex(page)})
    data = "".join(f' data-{name}="{escape(text)}"' for name, text in {**texts, "page": page, "address": address, "form": report}.items())
    if report:
        filled = _filled(report, {"{title}": quote(f"Error: {page}", safe=""), "{body}": quote(shown["report"], safe="")})
        where = f'<p><a href="{escape(filled)}">Report an error on this page</a></p>'
    else:
        where = ""
    return (
        f'<section class="ac-citing" aria-labelledby="cite-this-page" data-search-exclude{data}>'
        f'<h2 id="cite-this-page" data-search-exclude>Cite this page</h2>'
        f"<p>{escape(shown['citation'])}</p>"
        f'<details class="ac-code"><summary>BibTeX</summary><pre tabindex="0">'
        f"<code>{escape(bibtex, quote=False)}</code></pre></details>"
        f"{where}{offers}</section>"
    )


def _bibtex(edition: Edition) -> str:
    fields = {
        "author": f"{{{_tex(edition.authors)}}}",
        "title": "{title}",
        "howpublished": ", ".join(filter(None, [_tex(edition.title), edition.stated])),
        "year": edition.year,
        "url": "{address}",
    }
    rows = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{{key}},\n{rows}}}\n"


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its places filled, each once: what is put in is not looked at again."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found.group()], text)


def _tex(text: str) -> str:
    """Text for BibTeX; formulas stay as they are."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(
        piece if piece.startswith("$") and piece.endswith("$") and len(piece) > 1 else re.sub(r"[&%#_{}]", r"\\\g<0>", piece)
        for piece in pieces
    )
