"""The pages of the book as a pytest item: `docs/index.md::site` fails with what only finished pages show.

It stands beside the items of `archcards.evidence.testing`, whose verdict it shares, so that the tests, `archcards
check` and a build come to the same verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from archcards.evidence.testing import Item, verdict_of

from .command import rehearse

__all__ = ["pytest_collect_file"]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects the site, at the book's first page."""
    if file_path == parent.config.rootpath / "docs" / "index.md":
        return SiteFile.from_parent(parent, path=file_path)
    return None


class SiteFile(pytest.File):
    """The finished pages."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item."""
        yield SiteItem.from_parent(self, name="site", line=1, problems=[])


class SiteItem(Item):
    """Passes if the pages, drawn in a folder that is thrown away, have nothing against them."""

    def runtest(self) -> None:
        """Fails with all problems, one a line."""
        docs = self.path.parent
        self.problems = rehearse(docs.parent, verdict_of(self.config, docs))
        super().runtest()
