"""A real preview server, while its writer edits: nothing stale, and faults at their place."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from archcards.evidence import runner
from archcards.evidence.runner import run_chapters

ROOT = Path(__file__).parents[2]
SOURCES = """paper:
  title: A Paper
  authors: Someone
  year: 2020
  url: https://paper.test/
  verified: for show
  quotes:
    heads: {value: 8, where: "Table 1"}
"""
PAGE = """---
sources: [paper]
---

# Page

```python exec="true" id="block"
from archcards.evidence import fact
from own_code import answer
fact("answer", answer())
```

The answer is {{ answer }}, of {{ paper.heads }} heads.

## Sources
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def served(book):
    port = free_port()
    log = book.folder / "server.log"
    with open(log, "w") as told:
        server = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "--livereload", "-a", f"127.0.0.1:{port}"],
            cwd=book.folder,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{book.folder / 'src'}", "NO_MKDOCS_2_WARNING": "1"},
            stdout=told,
            stderr=told,
        )
    try:
        yield lambda path="": _wait(f"http://127.0.0.1:{port}/{path}", server, log)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def _wait(url, server, log):
    """What the page says once the server has settled."""
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def until(page, expected, gone="nothing of the sort", seconds=60):
    """Reloads until the page says what it should and no longer what it should not."""
    deadline = time.monotonic() + seconds
    while True:
        text = re.sub(r"<[^>]*>", "", page())
        if expected in text and gone not in text:
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.2)


def test_every_edit_shows_and_faults_come_and_go(book):
    code = book.folder / "src" / "own_code.py"
    code.parent.mkdir()
    code.write_text("def answer():\n    return 42\n")
    (book.docs / "sources.yml").write_text(SOURCES)
    book.write(index=PAGE)
    with served(book) as page:
        until(page, "The answer is 42, of 8 heads.")
        book.write(index=PAGE.replace("The answer is", "And the answer is"))  # prose
        until(page, "And the answer is 42")
        code.write_text("def answer():\n    return 4_200\n")  # a module in src
        until(page, "And the answer is 4200")
        (book.docs / "sources.yml").write_text(SOURCES.replace("value: 8", "value: 16"))  # a source
        until(page, "of 16 heads")
        book.write(index=PAGE.replace("sources:", "title: Under a new name\nsources:"))  # front matter
        until(page, "Under a new name")
        book.write(index=PAGE.replace("sources: [paper]", "title: Nothing listed"))  # and what it no longer lists
        text = until(page, "This page cannot be published", gone="Under a new name")
        assert "Line 13" in text and "paper" in text
        book.write(index=PAGE.replace("answer()", "nonsense()"))  # a block that raises
        text = until(page, "NameError")
        assert "Line 10" in text and "This page cannot be published" in text and "does not list" not in text
        book.write(index=PAGE + "\nSee [that](nowhere.md).\n")  # a dead link
        assert "Line 17" in until(page, "link to nowhere.md, which the site does not have")
        (book.docs / "index.md").write_bytes("# Größe\n".encode("latin-1"))  # no text
        until(page, "not UTF-8")
        book.write(index=PAGE.replace("sources: [", "template: nowhere.html\nsources: ["))  # what the theme lacks
        until(page, "the theme has no template nowhere.html")
        book.write(index=PAGE + "\nSeventeen is 17.\n")  # a numeral in prose
        text = until(page, "the numeral 17")
        assert "NameError" not in text
        (book.docs / "names.txt").write_text("Seventeen is 17\n")  # which is a name now
        until(page, "The answer is 4200, of 16 heads.", gone="cannot be published")
        book.write(index=PAGE.replace('fact("answer", answer())', 'fact("reply", answer())'))  # a name that is gone
        until(page, "answer is not defined on this page")
        book.write(index=PAGE, other="# Other\n\nNew.\n")  # a new page
        until(lambda: page("other/"), "New.")
        assert "cannot be published" not in page()


def test_what_has_not_changed_is_not_compiled_again(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # which changes how Python compiles
    times = []
    for _ in range(2):
        run_chapters([], tmp_path)
        times.append({path: path.stat().st_mtime_ns for path in Path(runner.__file__).parent.rglob("*.pyc")})
    assert times[0] and times[0] == times[1]  # else a server would take it for an edit, for ever
