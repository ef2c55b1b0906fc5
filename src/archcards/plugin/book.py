"""The proved book as the site sees it: pages with addresses for their evidence and values for their prose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

from archcards.evidence.book import Page, Verdict, prove
from archcards.evidence.memory import Memory
from archcards.evidence.record import Event

from .facts import Value
from .render import Anchors, slug

__all__ = ["Address", "Book", "BookPage"]

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class BookPage:
    """One page of the proved book."""

    proved: Page
    src_uri: str

    @property
    def path(self) -> str:
        return self.proved.path

    @property
    def stem(self) -> str:
        return PurePosixPath(self.src_uri).stem

    @property
    def lines(self) -> tuple[str, ...]:
        return self.proved.chapter.lines

    def of(self, kind: type[E]) -> list[E]:
        """The page's events of one kind, in order."""
        return [event for event in self.proved.events if isinstance(event, kind)]

    @cached_property
    def anchors(self) -> Anchors:
        return Anchors(self.proved.events)

    def values(self, address: Address = lambda page, anchor: "") -> dict[str, Value]:
        """What the references of the page stand for, and where each came from."""
        known = {
            name: Value(fact.value, "counted by the build", address(None, ""))
            for name, fact in self.proved.build.items()
        }
        for source in self.proved.sources.values():
            for quote in source.quotes.values():
                origin = f"printed in {quote.where} of {source.title} ({source.year})"
                known[f"{source.key}.{quote.name}"] = Value(
                    quote.value, origin, address(self, f"source-{slug(source.key)}"), quoted=True
                )
        for fact in self.proved.facts.values():
            how = "a choice of the text" if fact.given else "computed"
            origin = f"{how}, line {fact.line} of this page’s source"
            known[fact.name] = Value(fact.value, origin, address(self, self.anchors.of(fact)))
        return known


Address = Callable[[BookPage | None, str], str]
"""Gives the address of an anchor on a page (None: the Evidence page), seen from the page being drawn."""


@dataclass(frozen=True)
class Book:
    """All pages by their path under `docs`, and the verdict on them."""

    verdict: Verdict
    pages: Mapping[str, BookPage]

    @classmethod
    def prove(cls, docs: Path, memory: Memory | None = None) -> Book:
        """Runs and judges every page under `docs`; see `archcards.evidence.book.prove`."""
        return cls.of(prove(docs, memory=memory))

    @classmethod
    def of(cls, verdict: Verdict) -> Book:
        """The book of a verdict."""
        uris = {path: path.split("/", 1)[1] for path in verdict.pages}
        return cls(verdict, {uris[path]: BookPage(page, uris[path]) for path, page in verdict.pages.items()})

    def in_order(self, place: Callable[[str], object]) -> Book:
        """The same book, its pages in another order."""
        return Book(self.verdict, {name: self.pages[name] for name in sorted(self.pages, key=place)})
