"""What the book cites and the numbers it quotes (`docs/sources.yml`), and the names that hold a numeral
(`docs/names.txt`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .problem import Problem, decoded
from .yaml_lines import Node, YamlError, read_yaml

__all__ = ["Quote", "Source", "read_names", "read_sources"]

_REQUIRED = ("title", "authors", "year", "verified")
_FIELDS = {*_REQUIRED, "arxiv", "url", "doi", "venue", "note", "quotes"}
_QUOTE_FIELDS = {"value", "where", "unit", "note"}
_KEY = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Quote:
    """A number that a source prints: `where` in it (a table, a section), and its unit."""

    source: str
    name: str
    value: Any
    where: str
    unit: str | None
    line: int


@dataclass(frozen=True)
class Source:
    """One work that the book cites."""

    key: str
    title: str
    authors: str
    year: str
    url: str
    verified: str
    line: int
    quotes: Mapping[str, Quote] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def printed(self) -> dict[str, Any]:
        """What it prints: the quoted values by name."""
        return {name: quote.value for name, quote in self.quotes.items()}


def read_sources(path: str, file: Path) -> tuple[dict[str, Source], list[Problem]]:
    """Reads `sources.yml`; an incomplete source is a problem. `path` is what messages call the file."""
    if not file.exists():
        return {}, []
    text, problems = decoded(path, file.read_bytes())
    lines = text.split("\n")

    def report(line: int, reason: str) -> None:
        problems.append(
            Problem(path, line, reason, lines[line - 1].strip() if line <= len(lines) else "")
        )

    try:
        root = read_yaml(text)
    except YamlError as error:
        report(error.line, error.reason)
        return {}, problems
    if root.value is None:
        return {}, problems
    if not isinstance(root.value, dict):
        report(root.line, "sources are a mapping from keys to their fields")
        return {}, problems
    sources = {}
    for key, line in root.keys:
        entry = root.value[key]
        if not _KEY.fullmatch(key):
            report(line, f"the source key {key!r} must be small letters, digits and underscores")
        elif not isinstance(entry.value, dict):
            report(
                line,
                f"the source {key} has no fields; give {', '.join(_REQUIRED)} and arxiv, doi or url",
            )
        else:
            sources[key] = _source(key, line, entry, report)
    return sources, problems


def _source(key: str, line: int, entry: Node, report: Any) -> Source:
    fields = entry.value
    for name, at in entry.keys:
        if name not in _FIELDS:
            report(at, f"unknown field {name!r} of the source {key}")
    for name in _REQUIRED:
        if name not in fields:
            report(line, f"the source {key} has no {name}")
        elif not str(fields[name].plain() or "").strip():
            report(fields[name].line, f"the field {name} of the source {key} is empty")
    plain = entry.plain()
    url = plain.get("url") or (
        f"https://arxiv.org/abs/{plain['arxiv']}" if plain.get("arxiv") else ""
    )
    url = url or (f"https://doi.org/{plain['doi']}" if plain.get("doi") else "")
    if not url:
        report(line, f"the source {key} has no arxiv, doi or url; readers could not find it")
    quotes = _quotes(key, fields["quotes"], report) if "quotes" in fields else {}
    text = {name: str(plain.get(name) or "") for name in _REQUIRED}
    return Source(key=key, url=str(url), line=line, quotes=MappingProxyType(quotes), **text)


def _quotes(key: str, node: Node, report: Any) -> dict[str, Quote]:
    quotes: dict[str, Quote] = {}
    if not isinstance(node.value, dict):
        report(node.line, f"the quotes of the source {key} are a mapping from names to values")
        return quotes
    for name, line in node.keys:
        entry = node.value[name].plain()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            report(
                line,
                f"the quoted number {name!r} of {key} must have letters, digits and underscores for a name",
            )
        elif not isinstance(entry, dict) or entry.get("value") is None or not entry.get("where"):
            report(
                line, f"the quoted number {key}.{name} needs a value and where the source prints it"
            )
        elif isinstance(entry["value"], bool | list | dict):
            report(line, f"the quoted number {key}.{name} is one number, or text as printed")
        elif unknown := set(entry) - _QUOTE_FIELDS:
            report(line, f"unknown field {sorted(unknown)[0]!r} of the quoted number {key}.{name}")
        else:
            quotes[name] = Quote(
                key, name, entry["value"], str(entry["where"]), entry.get("unit"), line
            )
    return quotes


def read_names(file: Path) -> tuple[str, ...]:
    """The exempt names, longest first; a line that begins with `#` is a comment."""
    if not file.exists():
        return ()
    text, _ = decoded(file.name, file.read_bytes())
    lines = (line.strip() for line in text.split("\n"))
    return tuple(
        sorted(
            {line for line in lines if line and not line.startswith("#")},
            key=lambda n: (-len(n), n),
        )
    )
