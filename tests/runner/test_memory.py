"""A remembered run is used only if nothing that the page could have seen has changed."""

import os
import time

import pytest

from archcards.evidence import memory as module
from archcards.evidence.book import prove
from archcards.evidence.memory import Memory


@pytest.fixture
def book(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "page.md").write_text('```python exec="true"\nprint("a")\n```\n')
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(module, "_PACKAGE", package)
    return tmp_path


@pytest.fixture
def again(book):
    """Whether the page is run when the book is proved after a change."""
    remembered = Memory()

    def run():
        verdict = prove(book / "docs", memory=remembered)
        return verdict.pages["docs/page.md"].run

    before = [run()]

    def again():
        now = run()
        ran, before[0] = now is not before[0], now
        return ran

    return again


def test_nothing_changed(again):
    assert not again()


def test_the_page_changed(book, again):
    page = book / "docs" / "page.md"
    page.write_text(page.read_text() + "\ntext\n")
    assert again() and not again()


def test_another_page_changed(book, again):
    (book / "docs" / "other.md").write_text("")
    assert again()  # a page may look which files there are
    (book / "docs" / "other.md").write_text("text\n")
    assert not again()


def test_the_package_changed(book, again):
    (book / "package" / "module.py").write_text("x = 2\n")
    assert again() and not again()


def test_the_environment_changed(again, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    assert again()


def write(book, code):
    (book / "docs" / "page.md").write_text(
        f'```python exec="true"\nimport pathlib\nroot = {str(book)!r}\n{code}\n```\n'
    )


def test_a_file_that_the_page_read_changed(book, again):
    data = book / "data.json"
    data.write_text("1")
    os.utime(data, (time.time() - 60,) * 2)
    write(book, "print(pathlib.Path(root, 'data.json').read_text())")
    assert again() and not again()
    data.write_text("2")
    os.utime(data, (time.time() - 60,) * 2)
    assert again() and not again()


def test_a_file_that_changed_just_before_the_run_may_change_again_at_the_same_time(book, again):
    """There are file systems whose times are two seconds apart."""
    data = book / "data.json"
    data.write_text("1")
    (book / "old.json").write_text("1")
    write(book, "print(*(pathlib.Path(root, name).read_text() for name in ('old.json', 'data.json')))")
    os.utime(book / "old.json", (time.time() - 60,) * 2)
    os.utime(data, (time.time() - 1,) * 2)
    assert again() and again()


def test_a_page_that_lists_a_folder_elsewhere_is_not_remembered(book, again, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write(book, f"print(sorted(pathlib.Path({str(elsewhere)!r}).iterdir()))")
    assert again() and again()


def test_a_module_that_the_page_imported_changed(book, again, monkeypatch):
    own = book / "own.py"
    own.write_text("x = 1\n")
    os.utime(own, (time.time() - 60,) * 2)
    monkeypatch.setenv("PYTHONPATH", str(book))
    write(book, "import own\nprint(own.x)")
    assert again() and not again()
    own.write_text("x = 2\n")
    os.utime(own, (time.time() - 50,) * 2)
    assert again() and not again()


def test_a_page_that_looks_which_files_there_are(book, again):
    (book / "data" / "inner").mkdir(parents=True)
    write(book, "print(sorted(p.name for p in pathlib.Path(root, 'data').rglob('*')))")
    assert again() and not again()
    (book / "data" / "inner" / "new.json").write_text("1")
    assert again() and not again()


@pytest.mark.parametrize(
    "code",
    [
        "import os\nprint(os.listdir(pathlib.Path(root, '.git')))",
        "import subprocess\nsubprocess.run(['true'])",
        "print(list(pathlib.Path(root).parent.iterdir()))",
        "1 / 0",
    ],
)
def test_what_cannot_be_followed_is_not_remembered(book, again, code):
    (book / ".git" / "refs").mkdir(parents=True)  # whose files' names no run depends on
    write(book, code)
    assert again() and again()


def test_a_change_during_the_run(book):
    remembered = Memory()
    look = remembered._look
    states = iter(["before", "after"])
    remembered._look = lambda *args: next(states) if remembered._world != "done" else look(*args)
    prove(book / "docs", memory=remembered)
    assert remembered._runs == {}


def test_what_a_source_prints_changed(book, again):
    source = "a:\n  title: t\n  authors: a\n  year: 2020\n  url: https://a.org\n  verified: v\n"
    quotes = "  quotes: {{n: {{value: {}, where: Table 1}}}}\n"
    page, sources = book / "docs" / "page.md", book / "docs" / "sources.yml"
    sources.write_text(source + quotes.format(3))
    page.write_text("---\nsources: [a]\n---\n\n" + page.read_text())
    assert again()
    sources.write_text(source + quotes.format(4))
    assert again() and not again()
