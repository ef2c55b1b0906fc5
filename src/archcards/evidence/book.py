"""The whole book: every chapter read, run and judged in one go.

`prove(docs)` is what `archcards check`, the tests and the site share; it never stops at the first
fault, so that a writer sees all of them at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .cards import Card, FrontMatter, read_front_matter
from .chapter import Chapter, read_chapter
from .memory import Memory
from .problem import Problem, decoded
from .prose import FactUse, substitute
from .record import Check, Derivation, Event, Fact, Figure, Table
from .rules import (
    docstring_problems,
    exercise_problems,
    snippet_problems,
    text_problems,
    unique_problems,
)
from .runner import Block, Limits, Run, run_chapters
from .sources import Quote, Source, read_names, read_sources

__all__ = ["Page", "Verdict", "prove", "read_book"]


_OTHER_PAGES = {".markdown", ".mdown", ".mkdn", ".mkd", ".html", ".htm", ".xhtml"}


@dataclass(frozen=True)
class Page:
    """One page of the book, proved or not.

    `facts` are those of the page itself; `value` and `format` also know the quoted numbers of its
    sources and those of the build.
    """

    chapter: Chapter
    front: FrontMatter
    run: Run
    sources: Mapping[str, Source]  # those that the page lists
    build: Mapping[str, Fact]
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> str:
        """The page as messages call it: `docs/part/page.md`."""
        return self.chapter.path

    @property
    def card(self) -> Card | None:
        """Its card, if it is a chapter; facts are not yet put in (see `resolve`)."""
        return self.front.card

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Its blocks, in order."""
        return self.run.blocks

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened on it, in order."""
        return tuple(event for block in self.blocks for event in block.events)

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """Its facts by name."""
        facts: dict[str, Fact] = {}
        for event in self.events:
            if isinstance(event, Fact):
                facts.setdefault(event.name, event)
        return facts

    def lookup(self, name: str) -> Fact | Quote:
        """The fact or quoted number of that name; `KeyError` says why there is none."""
        if name in self.facts:
            return self.facts[name]
        if name in self.build:
            return self.build[name]
        key, _, rest = name.partition(".")
        if not rest:
            raise KeyError(f"the fact {name} is not defined on this page")
        if key == "build":
            raise KeyError(
                f"the build has no number {name}; it has {', '.join(sorted(self.build))}"
            )
        if key not in self.sources:
            raise KeyError(
                f"the page does not list {key} among its sources, so it cannot quote {name}"
            )
        if rest not in self.sources[key].quotes:
            raise KeyError(f"the source {key} quotes no number {rest}; add it to sources.yml")
        return self.sources[key].quotes[rest]

    def format(self, name: str, spec: str = "") -> str:
        """The fact as prose shows it; `KeyError` or `ValueError` says what is wrong."""
        found = self.lookup(name)
        value = found.value
        if isinstance(found, Quote) and spec not in ("", ","):
            raise ValueError(
                f"the quoted number {name} is shown as its source prints it, "
                f"its digits grouped at most: {{{{ {name}:,}}}}"
            )
        if isinstance(value, float) and not spec and len(repr(value)) > 8:
            raise ValueError(
                f"the fact {name} has many digits; say how many to show, such as {{{{ {name}:.3f}}}}"
            )
        try:
            return format(value, spec)
        except (ValueError, TypeError) as error:
            raise ValueError(f"the fact {name} cannot be shown as {spec!r}: {error}") from None

    def resolve(self, text: str) -> str:
        """The text with its facts put in."""

        def shown(use: FactUse) -> str:
            number = self.format(use.name, use.spec)
            return f"{{{number}}}" if use.tex and len(number) > 1 else number  # one thing: 2^{16}

        return substitute(text, shown)


@dataclass(frozen=True)
class Verdict:
    """The book as it was proved: pages by path, and every problem of all of them, sorted."""

    pages: Mapping[str, Page]
    problems: tuple[Problem, ...]
    sources: Mapping[str, Source]
    build: Mapping[str, Fact]
    seconds: float = field(default=0.0, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the book may be published."""
        return not self.problems

    def summary(self) -> str:
        """The one line that a build ends with."""
        count = {name.removeprefix("build."): fact.value for name, fact in self.build.items()}
        told = [
            f"{count[n]} {n}" for n in ("chapters", "checks", "controls", "facts", "derivations")
        ]
        return ", ".join([*told, f"{self.seconds:.1f} seconds"])


def read_book(docs: Path) -> list[Chapter]:
    """Reads every page under `docs`, in the order of their paths."""
    files = [file for file in _files(docs) if file.suffix == ".md"]
    return [
        read_chapter(f"{docs.name}/{p.relative_to(docs).as_posix()}", p.read_bytes()) for p in files
    ]


def _files(docs: Path) -> list[Path]:
    """The files that a site is made of: all but hidden ones and those in hidden folders."""
    return sorted(
        file for file in docs.rglob("*") if file.is_file() and not _hidden(file, docs)
    )


def _hidden(place: Path, docs: Path) -> bool:
    return any(part.startswith(".") for part in place.relative_to(docs).parts)


def _unread(docs: Path) -> list[Problem]:
    """Files that a site generator would publish as pages and that this book would not prove."""
    links = sorted(place for place in docs.rglob("*") if place.is_symlink() and not place.is_file())
    linked = [
        Problem(
            f"{docs.name}/{place.relative_to(docs).as_posix()}",
            1,
            "a link to a folder, whose pages are not proved; move them here"
            if place.is_dir()
            else "a link to a file that is not there",
        )
        for place in links
        if not _hidden(place, docs)
    ]
    return linked + [
        Problem(
            f"{docs.name}/{file.relative_to(docs).as_posix()}",
            1,
            "a page that is not proved; pages end in .md",
        )
        for file in _files(docs)
        if file.suffix.lower() in _OTHER_PAGES
        or (file.suffix != ".md" and file.suffix.lower() == ".md")
    ]


def prove(
    docs: str | Path,
    *,
    only: Iterable[str] | None = None,
    limits: Limits = Limits(),
    root: str | Path | None = None,
    memory: Memory | None = None,
) -> Verdict:
    """Reads, runs and judges the book in the folder `docs`.

    `only` are the paths (`docs/part/page.md`) of the pages to judge, all unless told; `root` is the
    repository, into which no page may write: the folder that holds `docs` unless told.
    A server hands the same `memory` to each call, so that only pages with something new are run.
    """
    begun = time.perf_counter()
    docs = Path(docs).resolve()
    root = docs.parent if root is None else Path(root).resolve()
    everything = read_book(docs)
    wanted = {chapter.path for chapter in everything} if only is None else set(only)
    chapters = [chapter for chapter in everything if chapter.path in wanted]
    doubles: dict[str, list[Problem]] = {chapter.path: [] for chapter in everything}
    for problem in unique_problems(everything):
        doubles[problem.path].append(problem)
    sources, problems = read_sources(f"{docs.name}/sources.yml", docs / "sources.yml")
    names = read_names(docs / "names.txt")
    if (docs / "names.txt").exists():
        problems += decoded(f"{docs.name}/names.txt", (docs / "names.txt").read_bytes())[1]
    fronts = [read_front_matter(c, sources) for c in chapters]
    lists = [{key: sources[key] for key in f.sources if key in sources} for f in fronts]
    printed = [{key: source.printed for key, source in listed.items()} for listed in lists]
    runs = run_chapters(chapters, root, limits, memory, printed)
    build = _build_facts(fronts, runs)
    pages = {}
    for chapter, front, listed, run in zip(chapters, fronts, lists, runs, strict=True):
        page = Page(chapter, front, run, listed, build)
        found = sorted({
            *chapter.problems, *front.problems, *run.problems, *doubles[chapter.path],
            *snippet_problems(chapter, (root, docs)),
            *text_problems(page, names), *exercise_problems(page),
        })  # fmt: skip
        pages[chapter.path] = Page(chapter, front, run, listed, build, tuple(found))
        problems += found
    if only is None:
        problems += [*_unread(docs), *docstring_problems(root)]
    return Verdict(pages, tuple(sorted(problems)), sources, build, time.perf_counter() - begun)


def _build_facts(fronts: list[FrontMatter], runs: list[Run]) -> dict[str, Fact]:
    """The numbers about the build itself."""
    events = [event for run in runs for block in run.blocks for event in block.events]
    checks = [e for e in events if isinstance(e, Check)]
    derivations = [e for e in events if isinstance(e, Derivation)]
    numbers = {
        "chapters": sum(front.card is not None for front in fronts),
        "pages": len(runs),
        "blocks": sum(len(run.blocks) for run in runs),
        "checks": len(checks),
        "controls": sum(len(check.controls) for check in checks),
        "facts": sum(isinstance(event, Fact) for event in events),
        "derivations": len(derivations),
        "steps": sum(step.status != "start" for d in derivations for step in d.steps),
        "figures": sum(isinstance(event, Figure) for event in events),
        "tables": sum(isinstance(event, Table) for event in events),
    }
    return {
        f"build.{name}": Fact(
            line=0, name=f"build.{name}", value=n, repr=repr(n), unit=None, given=False
        )
        for name, n in numbers.items()
    }
