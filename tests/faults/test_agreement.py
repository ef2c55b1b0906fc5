"""`archcards check`, pytest, `archcards build` and plain `mkdocs build` come to the same verdict."""

import shutil

import pytest

COMMANDS = {
    "archcards check": ("archcards", "check"),
    "pytest": ("pytest", "docs", "-q", "-p", "no:cacheprovider"),
    "archcards build": ("archcards", "build"),
    "mkdocs build": ("mkdocs", "build", "-q"),
}
KINDS = (
    "a numeral in a table",
    "a fact with an unfit format",
    "a source that is not listed",
    "a source without a title",
    "an equation that nothing proves",
    "TeX that does not parse",
    "TeX in a claim that does not parse",
    "an option that is misspelt",
    "a docstring that executes",
    "an exception keeps the later blocks from running",
    "randomness without a seed",
    "a check that fails",
    "a step that is false",
    "output that closes what it did not open",
    "a link to a page that is not there",
    "a link to an anchor that is not there",
    "an image without alternative text",
    "an API page of a module that is not there",
    "a numeral in a tag",
    "a template and an icon that the theme lacks",
    "a source that no section lists",
    "a link that a block prints in parts",
    "a footnote that is nowhere",
    "a check of what was typed under a name",
    "a quoted number that is rounded",
)


# What only the finished pages of the whole book show: `archcards check CHAPTER` draws no pages.
ON_FINISHED_PAGES = {
    "TeX that does not parse",
    "TeX in a claim that does not parse",
    "output that closes what it did not open",
    "a link to a page that is not there",
    "a link to an anchor that is not there",
    "an image without alternative text",
    "an API page of a module that is not there",
    "a template and an icon that the theme lacks",
    "a source that no section lists",
    "a link that a block prints in parts",
}


def checkout(book, root):
    """Makes the book a checkout, with a package of its own, so that every command is about it."""
    shutil.copytree(root / "src" / "archcards", book.folder / "src" / "archcards",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    shutil.copy(root / "conftest.py", book.folder)
    (book.folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\nfilterwarnings = error\n")
    return book


@pytest.fixture(scope="module")
def sound(new_book, root):
    return checkout(new_book().put(), root)


@pytest.fixture(scope="module")
def faulty(new_book, root, faults):
    book = checkout(new_book().put(*(faults[name] for name in KINDS)), root)
    (book.folder / "elsewhere").mkdir()
    (book.folder / "elsewhere" / "page.md").write_text("# Elsewhere\n\nThere are 36.\n")
    (book.folder / "docs" / "linked").symlink_to("../elsewhere")
    reason = "a link to a folder, whose pages are not proved; move them here"
    book.expected["a folder that is a link"] = {("docs/linked", 1, reason)}
    return book


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_sound_book(sound, command):
    done = sound.run(*command, PYTHONPATH=str(sound.folder / "src"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_book_with_a_fault_of_each_kind(faulty, command):
    done = faulty.run(*command, PYTHONPATH=str(faulty.folder / "src"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert faulty.told(done.stdout + done.stderr) == set().union(*faulty.expected.values())
    assert faulty.published() == faulty.before


def test_chapters_by_name_are_judged_as_in_the_whole_book_apart_from_what_only_finished_pages_show(faulty, faults):
    pages = [faults[name].page.removeprefix("docs/") for name in KINDS]
    done = faulty.run("archcards", "check", *pages, PYTHONPATH=str(faulty.folder / "src"))
    assert done.returncode == 1, done.stdout + done.stderr
    expected = set().union(*(faulty.expected[name] for name in KINDS if name not in ON_FINISHED_PAGES))
    told = faulty.told(done.stdout + done.stderr)
    assert {fault for fault in told if fault[0].endswith(".md")} == {f for f in expected if f[0].endswith(".md")}
    assert told <= set().union(*faulty.expected.values()) and faulty.published() == faulty.before
