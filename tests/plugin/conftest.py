"""Small books, built as a writer builds them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = "INHERIT: {root}/mkdocs.yml\nplugins:\n  archcards: {{}}\n  search: {{}}\n  markdown-exec: {{languages: [python, py, pycon], ansi: 'off'}}\nnav: {nav}\n"


class Book:
    """A folder with a book in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.site = folder / "site"

    def write(self, **pages: str) -> None:
        """Pages by name; two underscores stand for a slash."""
        for name, text in pages.items():
            path = self.docs / f"{name.replace('__', '/')}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        nav = sorted(path.relative_to(self.docs).as_posix() for path in self.docs.rglob("*.md"))
        (self.folder / "mkdocs.yml").write_text(SETTINGS.format(root=ROOT, nav=nav), encoding="utf-8")

    def build(self, **environment: str) -> subprocess.CompletedProcess:
        """Plain `mkdocs build`, told to be quiet."""
        return subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "-q"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"} | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def page(self, name: str) -> str:
        return (self.site / name / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def new_book(tmp_path_factory):
    """Makes an empty book in a folder of its own."""

    def make() -> Book:
        made = Book(tmp_path_factory.mktemp("book"))
        made.docs.mkdir()
        (made.docs / "sources.yml").write_text("", encoding="utf-8")
        return made

    return make


@pytest.fixture
def book(new_book):
    return new_book()


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The page that shows every component, built once."""
    folder = tmp_path_factory.mktemp("demo") / "book"
    shutil.copytree(Path(__file__).with_name("demo"), folder)
    made = Book(folder)
    made.write()
    built = made.build()
    assert built.returncode == 0, built.stderr
    return made
