"""`archcards check`: the verdicts on chapters in the terminal, without a site."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from .book import Verdict, prove
from .problem import Problem

__all__ = ["NoSuchChapter", "check_chapters", "find_chapters", "show"]


class NoSuchChapter(ValueError):
    """A name that fits no chapter, or more than one."""


def check_chapters(
    root: Path, wanted: Sequence[str] = (), rehearse: Callable[[Path, Verdict], list[Problem]] | None = None
) -> int:
    """Judges chapters (all, if none is named) of the checkout at `root`: 1 on any fault, else 0.

    `rehearse` draws the pages of a whole book and tells what only they show.

    Raises:
        NoSuchChapter: If a name fits no chapter, or more than one.
    """
    only = find_chapters(root / "docs", wanted) if wanted else None
    verdict = prove(root / "docs", only=only)
    if only is None and rehearse is not None:
        verdict = replace(verdict, problems=tuple(sorted({*verdict.problems, *rehearse(root, verdict)})))
    show(verdict.problems)
    print(
        ("not proved: " + _count(verdict) if verdict.problems else "proved: ") + verdict.summary()
    )
    return 0 if verdict.ok else 1


def find_chapters(docs: Path, wanted: Iterable[str]) -> list[str]:
    """The paths of the chapters so named: by file, by path below `docs` or by the end of either.

    Raises:
        NoSuchChapter: If a name fits no chapter, or more than one.
    """
    paths = [
        f"{docs.name}/{file.relative_to(docs).as_posix()}" for file in sorted(docs.rglob("*.md"))
    ]
    found = []
    for name in wanted:
        file = Path(name)
        if file.is_file() and file.resolve().is_relative_to(docs.resolve()):
            name = f"{docs.name}/{file.resolve().relative_to(docs.resolve()).as_posix()}"
        ending = name.replace("\\", "/").removeprefix("./").removesuffix(".md") + ".md"
        exact = [path for path in paths if path in (ending, f"{docs.name}/{ending}")]
        fitting = exact or [path for path in paths if path.endswith("/" + ending)]
        if not fitting:
            raise NoSuchChapter(f"there is no chapter {name} in {docs}")
        if len(fitting) > 1:
            raise NoSuchChapter(f"{name} fits more than one chapter: {', '.join(fitting)}")
        found += fitting
    return found


def show(problems: Iterable[Problem]) -> None:
    """Prints each problem, and below it the line of the file that it is about."""
    for problem in problems:
        print(problem)
        if problem.source:
            print("    " + _short(problem.source))
    sys.stdout.flush()


def _short(line: str) -> str:
    return line if len(line) <= 100 else line[:99] + "…"


def _count(verdict: Verdict) -> str:
    n = len(verdict.problems)
    pages = len({problem.path for problem in verdict.problems})
    return f"{n} problem{'s' * (n != 1)} in {pages} file{'s' * (pages != 1)}; "
