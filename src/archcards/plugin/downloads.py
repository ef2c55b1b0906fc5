"""What readers can take away: notebooks, code, exercises, tables, figures, sources, and the package itself.

Everything is made from the proved book, and is the same in each build of one commit.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from posixpath import dirname
from tempfile import TemporaryDirectory

from archcards.evidence.record import Figure, Table
from archcards.evidence.sources import Source

from . import facts
from .book import Book, BookPage
from .notebooks import Takeaway

__all__ = ["Downloads", "bibliography", "wheel"]

WHEELS = "wheels"


@dataclass
class Downloads:
    """The files of a site that are there to be taken away.

    `url` is the address of the site; `address` gives that of a page by its path under `docs`,
    relative to the site, and `title` its title.
    """

    book: Book
    root: Path
    url: str
    address: Callable[[str], str | None] = field(repr=False)
    title: Callable[[BookPage], str] = field(repr=False)

    def __post_init__(self) -> None:
        self.wheel, self._wheel = wheel(self.root)

    @property
    def chapters(self) -> list[BookPage]:
        """The chapters that ran to their end: what is at fault is not given away."""
        pages = (page.proved for page in self.book.pages.values())
        whole = {page.path for page in pages if page.card and page.run.complete and not page.problems}
        return [page for page in self.book.pages.values() if page.path in whole]

    def files(self, summary: str, outline: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> dict[str, bytes]:
        """Every file by its path in the site. `outline` has the other pages for `llms.txt`, by section."""
        made = {f"{WHEELS}/{self.wheel}": self._wheel}
        made["references.bib"] = bibliography(self.book.verdict.sources).encode()
        made["llms.txt"] = self._llms(summary, outline).encode()
        for page in self.chapters:
            made |= self._of(page)
        return made

    def links(self, page: BookPage) -> str:
        """The quiet line at the end of a chapter that offers its files."""
        stem, away = page.stem, self._takeaway(page)
        offers = [
            (f"{stem}.ipynb", "Notebook"),
            (f"{stem}.py", "Python"),
            (f"{stem}.md", "Markdown"),
        ]
        if away.has_exercises:
            offers += [
                (f"{stem}-exercises.md", "Exercises, a sheet"),
                (f"{stem}-exercises.ipynb", "Exercises, graded notebook"),
            ]
        top = "../" * self.address(page.src_uri).count("/")
        offers += [(f"{top}references.bib", "All sources, BibTeX"), (f"{top}{WHEELS}/{self.wheel}", "The package, a wheel")]
        whole = " ".join(_item(href, name) for href, name in offers)
        parts = "".join(
            _item(f"{name}.{'csv' if isinstance(event, Table) else 'svg'}", _plain(event.caption, page))
            for name, event in self._pieces(page)
        )
        parts = f'<details class="ac-code"><summary>Its tables and figures</summary><ul>{parts}</ul></details>' if parts else ""
        return (
            '<section class="ac-takeaway" aria-labelledby="take-it-away" data-search-exclude>'
            f'<h2 id="take-it-away" data-search-exclude>Take it away</h2><ul>{whole}</ul>{parts}</section>'
        )

    def everything(self, top: str) -> str:
        """A list of what is there to be taken away of the whole site, whose top is at `top`."""
        offers = [
            ("evidence.json", "every block, check, fact, derivation and quoted number, with its page and line"),
            ("references.bib", "the sources, as BibTeX"),
            ("objects.inv", "the names of the package and their addresses, for Sphinx and mkdocstrings"),
            ("llms.txt", "the chapters as Markdown, for language models"),
            (f"{WHEELS}/{self.wheel}", "the package, which the notebooks install"),
        ]
        rows = "".join(
            f'<li><a href="{escape(top + path)}" download><code>{escape(path)}</code></a>: {what}</li>' for path, what in offers
        )
        return f"<ul>{rows}</ul>"

    def _takeaway(self, page: BookPage) -> Takeaway:
        def link(src_uri: str) -> str | None:
            address = self.address(src_uri)
            return None if address is None else self.url + address

        url = link(page.src_uri) or self.url
        return Takeaway(page, self.title(page), url, f"{self.url}{WHEELS}/{self.wheel}", link)

    def _of(self, page: BookPage) -> dict[str, bytes]:
        away = self._takeaway(page)
        place = f"{self.address(page.src_uri)}{page.stem}"
        made = {
            f"{place}.ipynb": away.notebook(),
            f"{place}.py": away.script(),
            f"{place}.md": away.markdown(),
        }
        if away.has_exercises:
            made[f"{place}-exercises.md"] = away.exercises()
            made[f"{place}-exercises.ipynb"] = away.graded()
        for name, event in self._pieces(page):
            path = f"{dirname(place)}/{name}"
            if isinstance(event, Table):
                made[f"{path}.csv"] = _csv(event, page)
            else:
                made[f"{path}.svg"] = _drawing(event)
        return {path: content.encode() for path, content in made.items()}

    def _pieces(self, page: BookPage) -> list[tuple[str, Table | Figure]]:
        """The tables and figures of a page, each under the name of its address."""
        events = [event for event in page.proved.events if isinstance(event, Table | Figure)]
        return [(page.anchors.of(event), event) for event in events]

    def _llms(self, summary: str, outline: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> str:
        lines = ["# Architecture Cards", "", f"> {summary}", "", "## Chapters", ""]
        for page in self.chapters:
            changes = facts.plain(page.proved.card.changed_component, page.values())
            place = f"{self.url}{self.address(page.src_uri)}{page.stem}"
            lines.append(f"- [{self.title(page)}]({place}.md): {changes}")
        for section, entries in outline:
            lines += ["", f"## {section}", ""]
            lines += [f"- [{name}]({self.url}{address})" for name, address in entries]
        lines += [
            "", "## Optional", "",
            f"- [All evidence: blocks, checks, facts, derivations, quoted numbers]({self.url}evidence.json)",
            f"- [Sources]({self.url}references.bib)",
            f"- [The package]({self.url}{WHEELS}/{self.wheel})",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def wheel(root: Path) -> tuple[str, bytes]:
    """The package of a checkout as a wheel: its name, and its bytes.

    The times in it are that of the commit, by `SOURCE_DATE_EPOCH`.
    """
    from hatchling.builders.wheel import WheelBuilder  # only a site with downloads needs it

    with TemporaryDirectory() as folder:
        built = [Path(path) for path in WheelBuilder(str(root)).build(directory=folder, versions=["standard"])]
        return built[0].name, built[0].read_bytes()


def bibliography(sources: Mapping[str, Source]) -> str:
    """The sources as BibTeX.

    Example:
        >>> source = Source("a2024", "On A & B", "Ann Lee, Bo Roe", "2024", "https://arxiv.org/abs/2401.1", "", 1)
        >>> print(bibliography({"a2024": source}))
        @misc{a2024,
          title = {On A \\& B},
          author = {Ann Lee and Bo Roe},
          year = {2024},
          url = {https://arxiv.org/abs/2401.1},
          eprint = {2401.1},
          archivePrefix = {arXiv},
        }
        <BLANKLINE>
    """
    entries = []
    for key, source in sorted(sources.items()):
        fields = {
            "title": _tex(source.title),
            "author": _tex(" and ".join(re.split(r",\s+(?:and\s+)?|\s+and\s+", source.authors))),
            "year": source.year,
            "url": source.url,
        }
        if found := re.fullmatch(r"https://arxiv\.org/abs/(.+)", source.url):
            fields |= {"eprint": found[1], "archivePrefix": "arXiv"}
        rows = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
        entries.append(f"@misc{{{key},\n{rows}}}\n")
    return "\n".join(entries)


def _tex(text: str) -> str:
    return re.sub(r"[&%#_$]", lambda found: "\\" + found.group(), text).replace("{", "").replace("}", "")


def _item(href: str, name: str) -> str:
    return f'<li><a href="{escape(href)}" download>{escape(name)}</a></li>'


def _plain(caption: str, page: BookPage) -> str:
    """The first words of a caption, as a name."""
    text = re.sub(r"[`$\\{}]", "", facts.plain(caption, page.values()))
    return re.split(r"(?<=[.:;])\s", text)[0].rstrip(".:;")


def _csv(table: Table, page: BookPage) -> str:
    """The values as computed, not as displayed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(facts.plain(column, page.values()) for column in table.columns)
    writer.writerows(
        [facts.plain(value, page.values()) if isinstance(value, str) else value for value in row]
        for row in table.values
    )
    return out.getvalue()


def _drawing(figure: Figure) -> str:
    """A drawing of its own: outside the site, colours have no names. A policy may forbid styles, not attributes."""
    svg = re.sub(r"var\(--[\w-]+, (#[0-9a-f]{6})\)", r"\1", figure.svg)
    svg = re.sub(r"var\(--[\w-]+, ([^()]+)\)", r"\1", svg)
    svg = re.sub(r' style="([^"]*)"', lambda found: _attributes(found[1]), svg)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{svg}\n'


def _attributes(declarations: str) -> str:
    """Declarations as attributes of SVG, which has one for each property that the drawings use.

    Example:
        >>> _attributes("fill: none; stroke-width: 0.8")
        ' fill="none" stroke-width="0.8"'
    """
    pairs = (one.partition(":") for one in declarations.split(";") if one.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)
