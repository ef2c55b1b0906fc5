"""What readers type into the search box: abbreviations, symbols and symptoms, by the section that answers.

`docs/search.yml` lists them. They become tags of the section's entry in the search index, which count more
than titles and text; nobody sees them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archcards.evidence.yaml_lines import YamlError, read_yaml

__all__ = ["Finding"]

FILE = "search.yml"


@dataclass
class Finding:
    """The phrases of a book by section (`part/page.md#section`), with the line of each section."""

    phrases: Mapping[str, list[str]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def read(cls, docs: Path) -> Finding:
        """Reads `search.yml`, if the book has one."""
        file = docs / FILE
        if not file.exists():
            return cls()
        try:
            root = read_yaml(file.read_text("utf-8"))
        except YamlError as error:
            return cls(faults=[(error.line, error.reason)])
        plain = root.plain() or {}
        wrong = [
            (line, f"the phrases of {key} are a list of words")
            for key, line in root.keys
            if not isinstance(plain[key], list) or not all(isinstance(one, str) for one in plain[key])
        ]
        refused = {line for line, _ in wrong}
        lines = {key: line for key, line in root.keys if line not in refused}
        return cls({key: plain[key] for key in lines}, lines, wrong)

    def put_into(self, index: str, address: Mapping[str, str]) -> str:
        """The search index with the phrases in it; `address` has that of each page, by its path.

        A section that the index does not have is a fault.

        Example:
            >>> index = '{"docs": [{"location": "a/#b", "title": "B", "text": ""}]}'
            >>> finding = Finding({"a.md#b": ["top-k order", "GQA"]}, {"a.md#b": 1})
            >>> finding.put_into(index, {"a.md": "a/"})
            '{"docs":[{"location":"a/#b","title":"B","text":"","tags":["gqa","k","order","top"]}]}'
        """
        data = json.loads(index)
        separator = data.get("config", {}).get("separator", r"[\s\-]+")  # as the search splits a query
        for entry in data["docs"]:
            entry.pop("tags", None)  # those of pages, which would put whole pages before their sections
        entries = {entry["location"]: entry for entry in data["docs"]}
        for section, phrases in self.phrases.items():
            page, _, anchor = section.partition("#")
            entry = entries.get(f"{address.get(page, page)}{'#' + anchor if anchor else ''}")
            if entry is None:
                self.faults.append((self.lines[section], f"the site has no section {section}"))
                continue
            words = {word for phrase in phrases for word in re.split(separator, phrase.lower()) if word}
            entry["tags"] = sorted(words)
        return json.dumps(data, separators=(",", ":"))
