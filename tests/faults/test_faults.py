"""Every fault ends the build at its line, with its reason, whatever else is wrong."""

import pytest


@pytest.fixture(scope="module")
def refused(new_book, faults):
    """All faults in one book, and what plain `mkdocs build` says of it."""
    book = new_book().put(*faults.values())
    return book, book.run("mkdocs", "build", "-q")


def test_each_fault_is_reported_at_its_line(refused, fault):
    book, built = refused
    expected = book.expected[fault.name]
    own = {path for path in fault.files if path != "docs/sources.yml"}
    assert {told for told in book.told(built.stderr) if told[0] in own or told in expected} == expected


def test_each_message_shows_the_offending_line(refused, fault):
    book, built = refused
    for path, line, reason in book.expected[fault.name]:
        if path.endswith((".md", ".yml")):
            text = " ".join(book.lines[path][line - 1].split())
            assert f"{path}:{line}: {reason}\n    {text[:30]}" in built.stderr


def test_nothing_else_is_blamed_and_nothing_is_published(refused):
    book, built = refused
    expected = set().union(*book.expected.values())
    assert built.returncode != 0
    assert book.told(built.stderr) == expected
    assert "\nTraceback" not in built.stderr
    assert book.published() == book.before
    assert not [path.name for path in book.folder.iterdir() if path.name.startswith(".site-")]


def test_there_are_enough(faults):
    assert len(faults) >= 40
