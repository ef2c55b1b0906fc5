"""`archcards check` and pytest give the verdicts of one run of each page."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import archcards
from archcards.evidence.command import NoSuchChapter, check_chapters, find_chapters

CLAIMS = """# Claims

```python exec="true"
from archcards.evidence import check, fact
n = fact("n", len("abc"))
check("three is three", n, 3, controls={"off by one": lambda: n + 7})
check("three is four", n, 4, controls={"off by one": lambda: n + 7})
```

{{ n }} and 36
"""


@pytest.fixture
def book(tmp_path):
    docs = tmp_path / "docs"
    (docs / "part").mkdir(parents=True)
    (docs / "sources.yml").write_text("")
    (docs / "part" / "claims.md").write_text(CLAIMS)
    (docs / "index.md").write_text("# Home\n")
    (docs / "part" / "index.md").write_text("# Part\n")
    return tmp_path


def test_the_command_tells_every_problem_with_its_line(book, capsys):
    assert check_chapters(book) == 1
    lines = capsys.readouterr().out.split("\n")
    assert lines[:4] == [
        "docs/part/claims.md:7: the check fails: off by 1: expected 4, got 3 (compared exactly)",
        '    check("three is four", n, 4, controls={"off by one": lambda: n + 7})',
        "docs/part/claims.md:10: the numeral 36 is typed into prose; register a fact or quote a source, "
        "and write {{ name }} (a proper name goes into names.txt)",
        "    {{ n }} and 36",
    ]
    assert re.fullmatch(
        r"not proved: 2 problems in 1 file; 0 chapters, 2 checks, 2 controls, 1 facts, 0 derivations, \d+\.\d seconds",
        lines[4],
    )


def test_the_command_judges_the_chapters_it_is_given(book, capsys):
    assert check_chapters(book, ["docs/index.md"]) == 0
    assert capsys.readouterr().out.startswith("proved: 0 chapters, 0 checks, ")


def test_chapters_are_found_by_file_and_by_the_end_of_their_path(book, monkeypatch):
    docs = book / "docs"
    for name in (
        "claims",
        "claims.md",
        "part/claims",
        "docs/part/claims.md",
        str(docs / "part" / "claims.md"),
    ):
        assert find_chapters(docs, [name]) == ["docs/part/claims.md"]
    assert find_chapters(docs, ["index", "part/index"]) == ["docs/index.md", "docs/part/index.md"]
    monkeypatch.chdir(docs / "part")
    assert find_chapters(docs, ["./claims.md"]) == ["docs/part/claims.md"]
    with pytest.raises(NoSuchChapter, match="there is no chapter laims in "):
        find_chapters(docs, ["laims"])
    (docs / "other").mkdir()
    (docs / "other" / "claims.md").write_text("")
    with pytest.raises(
        NoSuchChapter, match="claims fits more than one chapter: docs/other/claims.md, docs/part/"
    ):
        find_chapters(docs, ["claims"])


def test_each_check_is_a_pytest_item(book):
    (book / "conftest.py").write_text('pytest_plugins = ["archcards.evidence.testing"]\n')
    (book / "pytest.ini").write_text("[pytest]\n")
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(archcards.__file__).parents[1])]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "docs",
         "--junitxml", "report.xml", "-o", "junit_family=xunit1"],
        cwd=book, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True,
    )  # fmt: skip
    verdicts = dict(re.findall(r"^(docs/\S+::.*?) (PASSED|FAILED) ", ran.stdout, re.MULTILINE))
    assert verdicts == {
        "docs/index.md::page": "PASSED",
        "docs/part/claims.md::6 three is three": "PASSED",
        "docs/part/claims.md::7 three is four": "FAILED",
        "docs/part/claims.md::page": "FAILED",
        "docs/part/index.md::page": "PASSED",
        "docs/sources.yml::sources and docstrings": "PASSED",
    }
    # Where an editor jumps to; pytest counts lines from zero.
    cases = [case.attrib for case in ElementTree.parse(book / "report.xml").iter("testcase")]
    assert {(case["file"], case["name"], int(case["line"]) + 1) for case in cases} == {
        ("docs/index.md", "page", 1),
        ("docs/part/claims.md", "6 three is three", 6),
        ("docs/part/claims.md", "7 three is four", 7),
        ("docs/part/claims.md", "page", 1),
        ("docs/part/index.md", "page", 1),
        ("docs/sources.yml", "sources and docstrings", 1),
    }
    assert ran.returncode == 1
    assert (
        "docs/part/claims.md:7: the check fails: off by 1: expected 4, got 3 (compared exactly)"
        in ran.stdout
    )
    assert "docs/part/claims.md:10: the numeral 36 is typed into prose" in ran.stdout
