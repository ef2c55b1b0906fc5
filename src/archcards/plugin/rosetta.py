"""What other libraries call each public name of the mechanisms, and how their conventions differ.

`docs/rosetta.yml` says it, each entry with the file in which it was read; pages say where the tables stand.
Every public name is in the file, and every name, control and library in the file exists.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from archcards import controls, mechanisms
from archcards.evidence.numerals import find_numerals
from archcards.evidence.yaml_lines import Node, YamlError, read_yaml

from .controls_page import PAGE as CONTROLS
from .controls_page import anchor
from .render import inline

__all__ = ["FILE", "Rosetta", "public_names"]

FILE = "rosetta.yml"
NOTHING = "—"

_FIELDS = ("called", "arguments", "differs", "controls", "seen", "commit")
_SHOWN = ("called", "arguments", "differs")
_COLUMNS = ("called", "arguments and layout", "differs from here by")
_COMMIT = re.compile(r"(?:[0-9a-f]{40})?")

Link = Callable[[str], tuple[str, str] | None]


@dataclass(frozen=True)
class Library:
    """A library, and the release in which an entry was read unless it names a commit."""

    name: str
    repository: str
    release: str
    root: str

    def address(self, path: str, commit: str) -> str:
        return f"https://github.com/{self.repository}/blob/{commit or self.release}/{self.root}{path}"


@dataclass(frozen=True)
class Entry:
    """One library's counterpart of one public name."""

    library: Library
    called: str
    arguments: str
    differs: str
    controls: tuple[str, ...]
    address: str


@dataclass(frozen=True)
class Name:
    """A public name with its counterparts, and the libraries that were searched and have none."""

    name: str
    entries: tuple[Entry, ...]
    without: tuple[Library, ...]


def public_names() -> dict[str, str]:
    """Every public name of the mechanisms, with the module that has it.

    Example:
        >>> public_names()["sliding_window"]
        'masks'
    """
    found = {}
    for module in pkgutil.iter_modules(mechanisms.__path__):
        if not module.name.startswith("_"):
            public = importlib.import_module(f"{mechanisms.__name__}.{module.name}").__all__
            found |= dict.fromkeys(public, module.name)
    return found


class Rosetta:
    """The tables of `docs/rosetta.yml`; what is wrong with the file goes to `faults`, with its line."""

    def __init__(self, docs: Path, names: Sequence[str] = ()) -> None:
        self.docs = docs
        self.exempt = names
        """Names that may hold a numeral."""
        self.faults: list[tuple[int, str]] = []
        self.modules = public_names()
        self._placed: set[str] = set()
        self._lines: dict[str, int] = {}
        self.subjects = self._read()

    # Reading

    def _read(self) -> dict[str, list[Name]]:
        file = self.docs / FILE
        if not file.exists():
            return {}
        try:
            root = read_yaml(file.read_text("utf-8")).value
            libraries = {name: _library(name, node) for name, node in root["libraries"].value.items()}
            subjects = root["subjects"]
        except YamlError as error:
            self.faults.append((error.line, error.reason))
            return {}
        except (AttributeError, KeyError, TypeError) as error:
            self.faults.append((1, f"the file has libraries and subjects: {type(error).__name__} {error}"))
            return {}
        self._lines = dict(subjects.keys)
        read, seen = {}, set()
        for subject, _ in subjects.keys:
            read[subject] = []
            for name, line in subjects.value[subject].keys:
                if name not in self.modules:
                    self.faults.append((line, f"{name} is no public name of the mechanisms"))
                elif name in seen:
                    self.faults.append((line, f"{name} is given twice"))
                else:
                    seen.add(name)
                    read[subject].append(self._name(name, subjects.value[subject].value[name], libraries))
        for name in sorted(set(self.modules) - seen):
            self.faults.append((1, f"the public name {name} of {self.modules[name]} is missing"))
        return read

    def _name(self, name: str, node: Node, libraries: Mapping[str, Library]) -> Name:
        entries, without = [], []
        for library, line in node.keys:
            if library not in libraries:
                self.faults.append((line, f"{name}: {library} is none of the libraries"))
                continue
            given = node.value[library]
            if given.value == NOTHING:
                without.append(libraries[library])
                continue
            for one in given.value if isinstance(given.value, tuple) else (given,):
                if entry := self._entry(name, libraries[library], one):
                    entries.append(entry)
        order = list(libraries.values())
        entries.sort(key=lambda entry: order.index(entry.library))
        return Name(name, tuple(entries), tuple(sorted(without, key=order.index)))

    def _entry(self, name: str, library: Library, node: Node) -> Entry | None:
        where = f"{name}, {library.name}"
        fields = node.plain()
        if not isinstance(fields, dict) or not fields.get("called") or not fields.get("seen"):
            self.faults.append((node.line, f"{where}: an entry says what it is called and where it was seen"))
            return None
        for field, line in node.keys:
            if field not in _FIELDS:
                self.faults.append((line, f"{where}: unknown field {field!r}"))
        if not _COMMIT.fullmatch(fields.get("commit", "")):
            self.faults.append((node.value["commit"].line, f"{where}: a commit has forty hexadecimal digits"))
        known = controls.of(name) if name in controls.MECHANISMS else {}
        for control in fields.get("controls", ()):
            if control not in known:
                self.faults.append((node.value["controls"].line, f"{where}: no control {control!r} of {name}"))
        text = {field: str(fields.get(field) or "") for field in _SHOWN}
        for field, words in text.items():
            for numeral in find_numerals(words, self.exempt):
                self.faults.append((node.value[field].line, f"{where}: {numeral.reason}"))
        address = library.address(fields["seen"], fields.get("commit", ""))
        return Entry(library, **text, controls=tuple(fields.get("controls", ())), address=address)

    # Drawing

    def fill(self, of: str, link: Link) -> str:
        """A subject, folded: its names, and when it is opened a table for each.

        A name's heading has the address. A browser opens what a link, a search hit or a search in the
        page leads to, without a script.
        """
        if of not in self.subjects:
            self.faults.append((1, f"a page has a place for the subject {of}, which is missing"))
            return ""
        self._placed.add(of)
        names = self.subjects[of]
        told = ", ".join(f"<code>{escape(name.name)}</code>" for name in names)
        tables = "".join(self._table(name, link) for name in names)
        return (
            '<details class="ac-fold ac-rosetta">'
            f"<summary>In other libraries: {told}</summary>{tables}</details>"
        )

    def entry(self, name: str, link: Link) -> str | None:
        """The address of what other libraries call a public name; None where no page says it."""
        for subject, names in self.subjects.items():
            if any(one.name == name for one in names) and subject in self._pages:
                known = link(self._pages[subject])
                return f"{known[0]}#elsewhere-{name}" if known else None
        return None

    def unplaced(self) -> Iterator[tuple[int, str]]:
        """Subjects that no page shows, when all pages are drawn."""
        for subject in self.subjects:
            if subject not in self._placed:
                yield self._lines[subject], f"no page shows the subject {subject}"

    def _table(self, name: Name, link: Link) -> str:
        module = self.modules[name.name]
        page = self._api_pages.get(module)
        known = link(page) if page else None
        shown = f"<code>{escape(name.name)}</code>"
        if known:
            shown = f'<a href="{escape(known[0])}#{mechanisms.__name__}.{module}.{name.name}">{shown}</a>'
        address = f"elsewhere-{escape(name.name)}"
        rows = "".join(_row(name.name, entry, link) for entry in name.entries)
        if name.without:
            names = ", ".join(library.name for library in name.without)
            rows += (
                f'<tr class="ac-rosetta__none" role="row"><th scope="row" role="rowheader">{escape(names)}</th>'
                f'<td colspan="3" role="cell"><span aria-label="no counterpart">{NOTHING}</span></td></tr>'
            )
        head = "".join(
            f'<th scope="col" role="columnheader">{column}</th>' for column in ("library", *_COLUMNS)
        )
        return (
            f'<h4 id="{address}">{shown}<a class="headerlink" href="#{address}" '
            'title="Permanent address of this section">#</a></h4>'
            f'<p class="ac-rosetta__ours"><code>{escape(name.name + _signature(name.name))}</code></p>'
            f'<table class="ac-paper" role="table"><caption class="ac-unseen">'
            f"{escape(name.name)} in other libraries</caption>"
            f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
            f'<tbody role="rowgroup">{rows}</tbody></table>'
        )

    @cached_property
    def _pages(self) -> dict[str, str]:
        """The page under `docs` that shows each subject."""
        place = re.compile(r'<div data-ac="rosetta" data-of="(\w+)"></div>')
        return {
            subject: file.relative_to(self.docs).as_posix()
            for file in sorted(self.docs.rglob("*.md"))
            for subject in place.findall(file.read_text("utf-8"))
        }

    @cached_property
    def _api_pages(self) -> dict[str, str]:
        """The page under `docs` that documents each module."""
        found = {}
        for file in sorted(self.docs.rglob("*.md")):
            for module in re.findall(rf"^::: {mechanisms.__name__}\.(\w+)$", file.read_text("utf-8"), re.M):
                found[module] = file.relative_to(self.docs).as_posix()
        return found


def _library(name: str, node: Node) -> Library:
    fields = node.plain()
    return Library(name, fields["repository"], fields["release"], fields.get("root", ""))


def _signature(name: str) -> str:
    """The arguments of a public name, without their types."""
    parameters = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in inspect.signature(getattr(mechanisms, name)).parameters.values()
    ]
    return str(inspect.Signature(parameters))


def _row(name: str, entry: Entry, link: Link) -> str:
    cells = [f'<a href="{escape(entry.address)}">{inline(entry.called)}</a>', inline(entry.arguments)]
    differs = inline(entry.differs) or "nothing else"
    if entry.controls:
        page = link(CONTROLS)
        named = ", ".join(
            f'<a href="{escape(page[0])}#{anchor(name, one)}">“{escape(one)}”</a>' if page else f"“{escape(one)}”"
            for one in entry.controls
        )
        words = "control" if len(entry.controls) == 1 else "controls"
        differs += f' <span class="ac-rosetta__control">{words} {named}</span>'
    drawn = "".join(
        f'<td role="cell" data-column="{column}">{cell}</td>'
        for column, cell in zip(_COLUMNS, [*cells, differs], strict=True)
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{escape(entry.library.name)}</th>{drawn}</tr>'
