"""Faults of files as such, which no text of a page can show: each at its place, and the others are told too."""

import pytest

PLAIN = "# Plain\n\nText.\n"


@pytest.fixture(scope="module")
def refused(new_book):
    book = new_book().put()
    docs = book.folder / "docs"
    (book.folder / "elsewhere").mkdir()
    (book.folder / "elsewhere" / "page.md").write_text("# Elsewhere\n\nThere are 36.\n")
    (docs / "linked").symlink_to("../elsewhere")
    (docs / "gone.md").symlink_to("nowhere.md")
    (docs / "gone.png").symlink_to("nowhere.png")
    (docs / "wide.md").write_bytes(PLAIN.encode("utf-16"))
    (docs / "names.txt").write_bytes("Name 3\nGröße 4\n".encode("latin-1"))
    (docs / "plain.md").write_text(PLAIN)
    (docs / "plain").mkdir()
    (docs / "plain" / "index.md").write_text(PLAIN)
    (docs / "evidence.json").write_text("{}")
    (book.folder / "src").mkdir()
    (book.folder / "src" / "latin.py").write_bytes('# coding: latin-1\nname = "Größe"\n'.encode("latin-1"))
    (book.folder / "src" / "broken.py").write_text('"""\n```python exec="true"\n```\n"""\nx = (\n')
    settings = (book.folder / "mkdocs.yml").read_text().split("\n")
    settings[1] = """nav:
  - index.md
  - Part of 36:
      - The 37: plain.md
      - All {{ nothing }}: wide.md
  - linked/page.md
  - absent.md
  - plain/index.md"""
    (book.folder / "mkdocs.yml").write_text("\n".join(settings))
    return book, book.run("mkdocs", "build", "-q")


@pytest.mark.parametrize(
    "expected",
    [
        ("docs/linked", 1, "a link to a folder, whose pages are not proved; move them here"),
        ("docs/gone.md", 1, "a link to a file that is not there"),
        ("docs/gone.png", 1, "a link to a file that is not there"),
        ("docs/wide.md", 1, "not UTF-8; save the file as UTF-8"),
        ("docs/plain/index.md", 1, "its place on the site is that of docs/plain.md; rename one of them"),
        ("docs/evidence.json", 1, "the build makes a file of this name; choose another"),
        ("docs/names.txt", 2, "not UTF-8; save the file as UTF-8"),
        ("src/broken.py", 5, "cannot be read: '(' was never closed"),
        ("mkdocs.yml", 4, "the numeral 36 is typed into prose"),
        ("mkdocs.yml", 5, "the numeral 37 is typed into prose"),
        ("mkdocs.yml", 6, "{{ nothing }} stands for nothing here"),
        ("mkdocs.yml", 8, "A reference to 'absent.md' is included in the 'nav' configuration"),
    ],
    ids=lambda fault: f"{fault[0]}:{fault[1]}",
)
def test_a_fault_is_told_at_its_place(refused, expected):
    book, built = refused
    assert [t for t in book.told(built.stderr) if t[:2] == expected[:2] and t[2].startswith(expected[2])]


def test_nothing_else_is_blamed_and_nothing_is_published(refused):
    book, built = refused
    assert built.returncode == 1 and "Traceback" not in built.stderr
    blamed = {
        "docs/linked", "docs/gone.md", "docs/gone.png", "docs/wide.md", "docs/plain/index.md", "docs/evidence.json",
        "docs/names.txt", "src/broken.py", "mkdocs.yml",
    }  # fmt: skip
    assert {path for path, _, _ in book.told(built.stderr)} == blamed
    assert book.published() == book.before


def test_sources_that_are_no_text(new_book):
    book = new_book().put()
    sources = book.folder / "docs" / "sources.yml"
    sources.write_bytes(sources.read_text().replace("A. Author", "Größe").encode("latin-1"))
    built = book.run("mkdocs", "build", "-q")
    assert built.returncode == 1 and "Traceback" not in built.stderr
    assert ("docs/sources.yml", 3, "not UTF-8; save the file as UTF-8") in book.told(built.stderr)
