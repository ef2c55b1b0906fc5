"""What belongs together: chapters, models and names of the package, each leading to the others.

Nothing of it is written by hand: a chapter uses what its blocks import, a model has what the ledger
finds in its configuration, and `model_page.CHAPTERS` says which chapter explains what.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from typing import Any

from .book import Book, BookPage
from .model import Model
from .model_page import CHAPTERS

__all__ = ["Related", "imported", "short_tags", "title_of"]

NAMES = {
    "grouped heads": ("grouped_attention",),
    "window": ("sliding_window",),
    "chunks": ("chunked_causal",),
    "latent": ("latent_attention", "latent_read"),
    "rotary": ("rotate", "rope_frequencies"),
    "experts": ("mixture", "route_top_k", "route_sigmoid", "route_group_max", "route_switch"),
    "linear attention": ("linear_attention",),
    "delta rule": ("delta_rule", "gated_write"),
    "kimi delta": ("delta_rule",),
    "state space": ("selective_scan",),
    "state space dual": ("state_space_dual",),
    "images": ("patchify", "embed_patches"),
}
"""Names of `archcards.mechanisms` that compute what a configuration has."""

_PACKAGES = ("archcards.mechanisms", "archcards.ledger", "archcards.conform")
_DOCUMENTED = re.compile(
    r'<h\d id="(?P<name>archcards\.[\w.]+)" class="doc doc-heading">.*?<div class="doc doc-contents[^"]*">', re.S
)

Link = Callable[[str], tuple[str, str] | None]
"""Gives address and title of a page under `docs`, seen from the page being drawn."""


_TAG = re.compile(r'(class="md-tag">\s*|class="md-ellipsis">\s*(?:<span class="md-typeset">\s*)?)(?:Mechanism|Model family|Part)/')


def short_tags(page: str) -> str:
    """The page with its tags drawn without the group that each belongs to.

    Example:
        >>> short_tags('<span class="md-tag">Mechanism/window</span>')
        '<span class="md-tag">window</span>'
    """
    return _TAG.sub(r"\1", page)


def title_of(mapping: Any) -> str:
    """What a page is sorted by in the list of tags: its title, whatever its capitals; `mkdocs.yml` names it."""
    return str(mapping.item.title).casefold()


def imported(code: str) -> Iterator[str]:
    """The full names, where they are defined, of what a block imports from the package.

    Example:
        >>> list(imported("from archcards.mechanisms import causal"))
        ['archcards.mechanisms.masks.causal']
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a transcript
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGES):
            module = import_module(node.module)
            for alias in node.names:
                found = getattr(module, alias.name, None)
                home = getattr(found, "__module__", None)
                if home and home.startswith("archcards."):
                    yield f"{home}.{alias.name}"


@dataclass(frozen=True)
class Related:
    """The book with its models, asked for what belongs to what."""

    book: Book
    models: Mapping[str, Model]

    @cached_property
    def used(self) -> dict[str, list[str]]:
        """The names that each chapter uses, by its path."""
        return {
            uri: sorted({name for fence in page.proved.chapter.blocks if fence.executed for name in imported(fence.code)})
            for uri, page in self.book.pages.items()
            if page.proved.card
        }

    def traits(self, src_uri: str) -> list[str]:
        """What a chapter explains, or a model has."""
        model = self._by_page.get(src_uri)
        if model is not None:
            return [trait for trait in model.traits if trait in CHAPTERS]
        return [trait for trait, chapters in CHAPTERS.items() if src_uri in chapters and trait != "causal"]

    def tags(self, src_uri: str, part: str) -> list[str]:
        """The tags of a chapter or a model, whose part of the book is `part`: none for other pages."""
        model, page = self._by_page.get(src_uri), self.book.pages.get(src_uri)
        if model is None and (page is None or not page.proved.card):
            return []
        tags = [f"Mechanism/{trait}" for trait in self.traits(src_uri) if trait != "causal"]
        if model is not None:
            return [*tags, f"Model family/{model.architecture.model_type}"]
        return [*tags, f"Part/{part}"]

    @cached_property
    def _by_page(self) -> dict[str, Model]:
        return {model.src_uri: model for model in self.models.values()}

    def section(self, page: BookPage, link: Link, addresses: Mapping[str, str]) -> str:
        """The end of a chapter: the names that it uses, and the models that have what it explains.

        `addresses` has those of documented names, seen from the page.
        """
        parts = []
        names = [
            f'<a href="{escape(addresses[name])}"><code>{escape(name.rpartition(".")[2])}</code></a>'
            for name in self.used.get(page.src_uri, ())
            if name in addresses
        ]
        if names:
            parts.append(f"<p>From the package: {', '.join(names)}</p>")
        for trait in self.traits(page.src_uri):
            linked = [
                f'<a href="{escape(known[0])}">{escape(known[1])}</a>'
                for model in self.models.values()
                if trait in model.traits and (known := link(model.src_uri))
            ]
            if linked:
                count = f"{trait}: {len(linked)} model{'s' * (len(linked) != 1)}"
                parts.append(
                    f'<details class="ac-code"><summary>{escape(count)}</summary>'
                    f"<p>{', '.join(linked)}</p></details>"
                )
        if not parts:
            return ""
        return (
            '<section class="ac-related" aria-labelledby="in-this-book" data-search-exclude>'
            f'<h2 id="in-this-book" data-search-exclude>In this book</h2>{"".join(parts)}</section>'
        )

    def documented(self, html: str, link: Link, elsewhere: Callable[[str, Link], str | None]) -> str:
        """A page of the reference, each name on it with the chapters that use it and the models that have it.

        `elsewhere` gives the address of what other libraries call a mechanism.
        """

        def add(found: re.Match) -> str:
            chapters = [known for uri, names in self.used.items() if found["name"] in names and (known := link(uri))]
            lines = []
            if chapters:
                lines.append(f"Used in {_listed(chapters)}.")
            name = found["name"].rpartition(".")[2]
            index = link("tags.md")
            counts = [
                (f"{index[0]}#tag:mechanism/{trait.replace(' ', '-')}", f"{trait}, {count} model{'s' * (count != 1)}")
                for trait, names in NAMES.items()
                if index and name in names and found["name"].startswith("archcards.mechanisms.")
                if (count := sum(trait in model.traits for model in self.models.values()))
            ]
            if counts:
                lines.append(f"Models that have it: {_listed(counts)}.")
            if found["name"].startswith("archcards.mechanisms.") and (place := elsewhere(name, link)):
                lines.append(f'<a href="{escape(place)}">In other libraries</a>.')
            return found.group() + (f'<p class="ac-used" data-search-exclude>{" ".join(lines)}</p>' if lines else "")

        return _DOCUMENTED.sub(add, html)


def _listed(links: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f'<a href="{escape(href)}">{escape(text)}</a>' for href, text in links)
