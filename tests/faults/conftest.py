"""Books of faults: each kind once, told in the files beside this one.

A file has its faults below lines of four equals signs; a fault is a page, and more files below lines of
four plus signs. Behind a line that must be reported stands ◀ and the reason, or several. ␍, ␌ and ⏎
stand for a carriage return, a form feed and U+2028.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDDEN = str.maketrans({"␍": "\r", "␌": "\f", "⏎": "\u2028"})
SHORT = {
    r"numeral (\S+)": r"the numeral \1 is typed into prose; register a fact or quote a source, and write "
    "{{ name }} (a proper name goes into names.txt)",
    r"numeral in TeX (\S+)": r"the numeral \1 is typed into a formula; a formula may hold single digits, "
    "exponents and subscripts: register a fact and write {{ name }}",
    r"undefined (\w+)": r"the fact \1 is not defined on this page",
    "stray": "{{ begins no fact; write {{ name }} or {{ name:format}}, with the spaces",
    "unproved equation": 'a displayed equation is proved by derive(...) or stands in a !!! definition "Name"',
}
SOUND = """---
sources: [sound2020]
---

# Sound

```python exec="true" source="above" id="sound-block"
from archcards.evidence import check, fact
from archcards.mechanisms import causal, edges
sound_page_value = fact("edges_of_the_sound_page", edges(causal(8)))
check("The triangle has its edges", edges(causal(8)), 8 * 9 // 2, controls={"no diagonal": lambda: 28})
```

There are {{ edges_of_the_sound_page }} edges, $x^2$ and {{ sound2020.tokens:,}} tokens, of {{ build.pages }} pages.

## Sources
"""
SOURCES = """sound2020:
  title: Sound
  authors: A. Author
  year: 2020
  arxiv: "2004.05150"
  verified: for these tests
  quotes:
    tokens: {value: 4096, where: Table 1}
"""
SETTINGS = """INHERIT: {root}/mkdocs.yml
nav: {nav}
plugins:
  archcards: {{}}
  search: {{}}
  markdown-exec: {{languages: [python, py, pycon], ansi: 'off'}}
  mkdocstrings: {{handlers: {{python: {{paths: [src]}}}}}}
"""


@dataclass(frozen=True)
class Fault:
    """What one fault puts into a book: texts by file, each line with the reasons it must be given."""

    name: str
    files: dict[str, list[tuple[str, list[str]]]]

    @property
    def page(self) -> str:
        return f"docs/faults/{re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')}.md"


def read_faults(file: Path) -> list[Fault]:
    """The faults of a file, in order."""
    faults = []
    for line in file.read_text(encoding="utf-8").split("\n")[:-1]:
        if line.startswith("==== "):
            faults.append(Fault(line[5:], {}))
            faults[-1].files[faults[-1].page] = []
        elif line.startswith("++++ "):
            faults[-1].files[line[5:]] = []
        else:
            text, *reasons = line.split(" ◀ ")
            *_, lines = faults[-1].files.values()
            lines.append((text.translate(HIDDEN), [_whole(reason) for reason in reasons]))
    return faults


def _whole(reason: str) -> str:
    for short, whole in SHORT.items():
        if match := re.fullmatch(short, reason):
            return match.expand(whole)
    return reason


FAULTS = {fault.name: fault for file in sorted(Path(__file__).parent.glob("*.txt")) for fault in read_faults(file)}


class Book:
    """A folder with a book that was published once, and faults that were put into it since."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"
        self.expected: dict[str, set[tuple[str, int, str]]] = {}
        self.lines = {"docs/index.md": SOUND.split("\n")[:-1], "docs/sources.yml": SOURCES.split("\n")[:-1]}
        for name in ("index.html", "evidence.json", "faults/one/index.html"):
            (self.site / name).parent.mkdir(parents=True, exist_ok=True)
            (self.site / name).write_text(f"the old {name}\n")
        self.before = self.published()

    def put(self, *faults: Fault) -> "Book":
        """Adds faults; what two of them put into one file stands below one another."""
        for fault in faults:
            expected = self.expected.setdefault(fault.name, set())
            for path, told in fault.files.items():
                lines = self.lines.setdefault(path, [])
                for text, reasons in told:
                    lines.append(text)
                    expected.update((path, len(lines), reason) for reason in reasons)
        for path, lines in self.lines.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8", newline="")
        pages = sorted(path.removeprefix("docs/") for path in self.lines if re.match(r"docs/.*\.md$", path))
        (self.folder / "mkdocs.yml").write_text(SETTINGS.format(root=ROOT, nav=pages), encoding="utf-8")
        return self

    def run(self, *command: str, first: Callable | None = None, **environment: str) -> subprocess.CompletedProcess:
        """A command of Python's, in the book's folder, which its pages find at the end of their path.

        Its process does `first` before it becomes that command.
        """
        path = os.pathsep.join([str(ROOT / "src"), str(self.folder)])
        return subprocess.run(
            [sys.executable, "-m", *command], cwd=self.folder, capture_output=True, text=True, timeout=300,
            env=os.environ | {"PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"} | environment, preexec_fn=first,
        )  # fmt: skip

    def published(self) -> dict[str, bytes]:
        """Every file of the site."""
        return {p.relative_to(self.site).as_posix(): p.read_bytes() for p in self.site.rglob("*") if p.is_file()}

    @staticmethod
    def told(output: str) -> set[tuple[str, int, str]]:
        """The faults that a command reported."""
        found = re.findall(r"^((?:docs|src|site)/[^\n:]+|mkdocs\.yml):(\d+): ([^\n]*)$", output, re.MULTILINE)
        return {(path, int(line), reason) for path, line, reason in found}


@pytest.fixture(scope="session")
def new_book(tmp_path_factory):
    """Makes a book with a sound page in it and a site that was published before."""
    return lambda: Book(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="session", params=FAULTS.values(), ids=FAULTS.keys())
def fault(request):
    """Each fault of the files in this folder."""
    return request.param


@pytest.fixture(scope="session")
def faults():
    return FAULTS


@pytest.fixture(scope="session")
def root():
    return ROOT


def pytest_addoption(parser):
    parser.addoption("--alone", action="store_true", help="build a site for each fault alone, which takes minutes")


def pytest_ignore_collect(collection_path, config):
    """The sites of one fault each are built when they are asked for."""
    return True if collection_path.name == "test_alone.py" and not config.getoption("alone", False) else None
