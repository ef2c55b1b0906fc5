"""Words of readers lead to sections, and symptoms to controls."""

import json
import re
from pathlib import Path

from archcards import controls
from archcards.plugin.finding import Finding

ROOT = Path(__file__).parents[2]
INDEX = json.dumps({"docs": [
    {"location": "a/", "title": "A", "text": "x"},
    {"location": "a/#b", "title": "B", "text": "y", "tags": ["of the page"]},
]})  # fmt: skip


def test_phrases_become_words_of_their_section_alone(tmp_path):
    (tmp_path / "search.yml").write_text("a.md#b: [zero-order hold, W_UK]\n")
    finding = Finding.read(tmp_path)
    plain, section = json.loads(finding.put_into(INDEX, {"a.md": "a/"}))["docs"]
    assert "tags" not in plain
    assert section["tags"] == ["hold", "order", "w_uk", "zero"]
    assert finding.faults == []


def test_a_section_that_does_not_exist_is_a_fault_at_its_line(tmp_path):
    (tmp_path / "search.yml").write_text("a.md#b: [x]\n\na.md#gone: [y]\nb.md: [z]\n")
    finding = Finding.read(tmp_path)
    finding.put_into(INDEX, {"a.md": "a/"})
    assert finding.faults == [(3, "the site has no section a.md#gone"), (4, "the site has no section b.md")]


def test_what_is_no_list_is_a_fault(tmp_path):
    (tmp_path / "search.yml").write_text("a.md: word\na.md#b: [x]\n")
    finding = Finding.read(tmp_path)
    assert finding.faults == [(1, "the phrases of a.md are a list of words")]
    assert list(finding.phrases) == ["a.md#b"]
    (tmp_path / "search.yml").write_text("a.md: [\n")
    assert len(Finding.read(tmp_path).faults) == 1


def test_every_symptom_names_a_control_that_exists():
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+) \| \[", (ROOT / "docs" / "symptoms.md").read_text("utf-8"), re.M)
    assert len(rows) > 30
    for row in rows:
        for part in row.split("; "):
            mechanism, names = re.fullmatch(r"`(\w+)`: (.+)", part).groups()
            for name in re.findall(r"`([^`]+)`", names):
                assert name in controls.of(mechanism), f"{mechanism}: {name}"
