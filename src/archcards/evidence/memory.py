"""Remembers, while a server runs, what pages did, so that an edit runs only the page that changed.

A remembered run is used only if nothing that it could have seen has changed: the page, what its
sources print, the package's source and data, every other file that the page opened, the names of the
repository's files, the limits, and the environment. A page that starts another program, or reads a
folder outside the repository, is run each time, and so is one with which something is wrong.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chapter import Chapter
    from .runner import Limits, Run

__all__ = ["Memory", "names_count"]

_PACKAGE = Path(__file__).parents[1]
_SKIPPED = {
    ".git",
    ".venv",
    ".cache",
    "site",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".hypothesis",
}


@dataclass
class Memory:
    """The runs of one book, by page; hand the same one to each `prove`."""

    _runs: dict[str, tuple[str, dict[str, str], Run]] = field(default_factory=dict)
    _world: str = ""

    def look(self, root: Path, limits: Limits, environment: Mapping[str, str]) -> None:
        """Takes in the state of everything that all pages share, before the run."""
        self._world = self._look(root, limits, environment)

    def look_again(self, root: Path, limits: Limits, environment: Mapping[str, str]) -> None:
        """Forgets everything if that state changed during the run."""
        if self._look(root, limits, environment) != self._world:
            self._runs.clear()

    def _look(self, root: Path, limits: Limits, environment: Mapping[str, str]) -> str:
        parts = [sys.version, repr(sys.path), repr(sorted(environment.items())), repr(limits)]
        parts += [f"{file}\0{_digest(file)}" for file in _files(_PACKAGE)]
        parts += _names(root)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def recall(self, chapter: Chapter, quotes: Mapping[str, Any]) -> Run | None:
        """The page's run, if nothing has changed since."""
        key, seen, run = self._runs.get(chapter.path, ("", {}, None))
        if run is None or key != self._key(chapter, quotes) or run.chapter != chapter:
            return None
        return run if all(_digest(file) == digest for file, digest in seen.items()) else None

    def keep(
        self, run: Run, quotes: Mapping[str, Any], seen: Iterable[str] | None, begun: float
    ) -> None:
        """Remembers a run that read the files `seen` (None: it did what cannot be followed).

        `begun` is the time at which it began: a file that changed since may not be what it read.
        """
        self._runs.pop(run.chapter.path, None)
        if seen is None or run.problems or not run.complete:
            return
        digests = {file: _digest(file) for file in seen}
        if any(os.path.exists(file) and os.stat(file).st_mtime >= begun - 2 for file in digests):
            return
        self._runs[run.chapter.path] = (self._key(run.chapter, quotes), digests, run)

    def _key(self, chapter: Chapter, quotes: Mapping[str, Any]) -> str:
        told = f"{self._world}\0{chapter.path}\0{chapter.text}\0{quotes!r}"
        return hashlib.sha256(told.encode()).hexdigest()


def _digest(file: str | Path) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.errno}"


def _files(folder: Path) -> list[str]:
    return sorted(
        str(file)
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )


def _names(root: Path) -> list[str]:
    """The names of the repository's files, without what tools keep there for themselves."""
    names = []
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if not _skipped(name))
        names += [os.path.join(folder, name) for name in sorted(files)]
    return names


def names_count(folder: str, root: str) -> bool:
    """Whether the names of the files in this folder are among those that a run depends on."""
    inner = os.path.relpath(folder, root).split(os.sep)
    return inner[0] != os.pardir and not any(map(_skipped, inner))


def _skipped(name: str) -> bool:
    return name in _SKIPPED or name.startswith((".site", "site."))
