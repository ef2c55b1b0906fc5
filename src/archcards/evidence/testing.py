"""The book as pytest items: one for each check and derivation, and one for each page.

The `conftest.py` of the root says `pytest_plugins = ["archcards.evidence.testing"]`; then
`pytest docs` collects the book, runs each page once, and names the items by page and line:
`docs/attention/chunked-prefill.md::41 a prefilled chunk reads what the full pass reads`. What is
wrong with a page beside its checks fails the page's own item, `docs/…md::page`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .book import Verdict, prove
from .problem import Problem
from .record import Check, Derivation

__all__ = ["Item", "pytest_collect_file", "verdict_of"]

_verdicts = pytest.StashKey[dict[Path, Verdict]]()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects the pages of the book, which is the folder `docs` of the tests' root."""
    docs = parent.config.rootpath / "docs"
    if not file_path.is_relative_to(docs):
        return None
    if file_path.suffix == ".md":
        page = PageFile.from_parent(parent, path=file_path)
        page.docs = docs
        return page
    if file_path == docs / "sources.yml":
        book = BookFile.from_parent(parent, path=file_path)
        book.docs = docs
        return book
    return None


def verdict_of(config: pytest.Config, docs: Path) -> Verdict:
    """The verdict on the book, reached once in a session."""
    verdicts = config.stash.setdefault(_verdicts, {})
    if docs not in verdicts:
        verdicts[docs] = prove(docs)
    return verdicts[docs]


class PageFile(pytest.File):
    """A page of the book."""

    docs: Path

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each check and derivation, and one for the rest."""
        verdict = verdict_of(self.config, self.docs)
        name = f"{self.docs.name}/{self.path.relative_to(self.docs).as_posix()}"
        page = verdict.pages.get(name)
        if page is None:  # in a linked folder, of which the book tells as a whole
            return
        claimed = set()
        for event in page.events:
            if isinstance(event, Check | Derivation):
                name = event.claim if isinstance(event, Check) else event.title
                reasons = [p for p in page.problems if p.line == event.line and _about(p, event)]
                claimed.update(reasons)
                yield Item.from_parent(
                    self, name=f"{event.line} {name}", line=event.line, problems=reasons
                )
        rest = [problem for problem in page.problems if problem not in claimed]
        yield Item.from_parent(self, name="page", line=1, problems=rest)


class BookFile(pytest.File):
    """What is wrong with the book outside its pages: the sources, the docstrings."""

    docs: Path

    def collect(self) -> Iterator[pytest.Item]:
        """One item."""
        verdict = verdict_of(self.config, self.docs)
        rest = [problem for problem in verdict.problems if problem.path not in verdict.pages]
        yield Item.from_parent(self, name="sources and docstrings", line=1, problems=rest)


class Item(pytest.Item):
    """Passes if there is no problem."""

    def __init__(self, *, line: int, problems: list[Problem], **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.line = line
        self.problems = problems

    def runtest(self) -> None:
        """Fails with all problems, one a line."""
        if self.problems:
            told = []
            for problem in self.problems:
                told += [
                    str(problem),
                    *([f"    {problem.source}"] if problem.source else []),
                    problem.detail,
                ]
            pytest.fail("\n".join(filter(None, told)), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the claim stands."""
        return self.path, self.line - 1, self.name


def _about(problem: Problem, event: Check | Derivation) -> bool:
    kind = "check" if isinstance(event, Check) else "derivation"
    return problem.reason in {f"the {kind} fails: {reason}" for reason in event.reasons}
