"""The card of a chapter, from its front matter, which is its only home."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .chapter import Chapter
from .problem import Problem
from .yaml_lines import Node, YamlError, read_yaml

__all__ = ["FIELDS", "Card", "FrontMatter", "read_front_matter"]

FIELDS = (
    "name", "changed_component", "invariant_core", "analytical_consequence",
    "empirical_source_boundary", "later_subject",
)  # fmt: skip
# What Material for MkDocs reads in the front matter of any page.
_MATERIAL = {
    "title", "description", "hide", "icon", "status", "subtitle", "template",
    "search", "tags", "order", "sources",
}  # fmt: skip


_TEXTS = ("title", "description", "subtitle")


@dataclass(frozen=True)
class Card:
    """The six fields of an architecture, as written: facts are not yet put in."""

    name: str
    changed_component: str
    invariant_core: str
    analytical_consequence: str
    empirical_source_boundary: str
    later_subject: str


@dataclass(frozen=True)
class FrontMatter:
    """A page's front matter: its card if it has one, its sources, and its texts by line."""

    card: Card | None
    sources: tuple[str, ...]
    texts: tuple[tuple[int, int, str], ...]  # first and last line, text
    problems: tuple[Problem, ...]


def read_front_matter(chapter: Chapter, known: Collection[str]) -> FrontMatter:
    """Reads the front matter of a chapter; `known` are the keys of `sources.yml`.

    A page with none of the six fields is a plain page and has no card.
    """
    if chapter.front is None:
        return FrontMatter(None, (), (), ())
    try:
        root = read_yaml(chapter.front, first_line=2)
    except YamlError as error:
        return FrontMatter(None, (), (), (chapter.problem(error.line, error.reason),))
    if root.value is None:
        return FrontMatter(None, (), (), ())
    if not isinstance(root.value, dict):
        return FrontMatter(
            None, (), (), (chapter.problem(root.line, "front matter is a mapping of fields"),)
        )
    problems = _problems(chapter, root)
    sources, wrong = _sources(chapter, root, known)
    problems += wrong
    card = None
    if any(name in root.value for name in FIELDS):
        values = {name: _text(root.value.get(name)) for name in FIELDS}
        problems += _card_problems(chapter, root, values)
        if all(values.values()):
            card = Card(**values)
    shown = [root.value[name] for name in (*FIELDS, *_TEXTS) if name in root.value]
    tags = root.value["tags"].value if "tags" in root.value else ()
    shown += tags if isinstance(tags, tuple) else ()
    texts = tuple(
        (node.line, node.last, str(node.value))
        for node in shown
        if node.value is not None and not isinstance(node.value, dict | tuple)
    )
    return FrontMatter(card, sources, texts, tuple(problems))


def _problems(chapter: Chapter, root: Node) -> list[Problem]:
    return [
        chapter.problem(line, f"unknown field {name!r} in the front matter")
        for name, line in root.keys
        if name not in FIELDS and name not in _MATERIAL
    ] + [
        chapter.problem(line, f"the {name} of a page is one text")
        for name, line in root.keys
        if name in _TEXTS and isinstance(root.value[name].value, dict | tuple)
    ]


def _card_problems(chapter: Chapter, root: Node, values: dict[str, str]) -> list[Problem]:
    problems = []
    lines = dict(root.keys)
    for name in FIELDS:
        if name not in lines:
            problems.append(
                chapter.problem(1, f"the card has no {name}; it has exactly {', '.join(FIELDS)}")
            )
        elif isinstance(root.value[name].value, dict | tuple):
            problems.append(chapter.problem(lines[name], f"the card's {name} must be one text"))
        elif not values[name]:
            problems.append(chapter.problem(lines[name], f"the card's {name} is empty"))
    if "sources" not in lines:
        problems.append(chapter.problem(1, "the card has no sources; list keys of sources.yml"))
    return problems


def _sources(
    chapter: Chapter, root: Node, known: Collection[str]
) -> tuple[tuple[str, ...], list[Problem]]:
    node = root.value.get("sources")
    if node is None:
        return (), []
    if not isinstance(node.value, tuple):
        line = dict(root.keys)["sources"]
        return (), [chapter.problem(line, "sources is a list of keys of sources.yml")]
    keys = [str(item.value) for item in node.value]
    problems = [
        chapter.problem(item.line, f"unknown source {key!r}; add it to sources.yml")
        for item, key in zip(node.value, keys, strict=True)
        if key not in known
    ]
    problems += [
        chapter.problem(item.line, f"the source {key!r} is listed twice")
        for n, (item, key) in enumerate(zip(node.value, keys, strict=True))
        if key in keys[:n]
    ]
    return tuple(keys), problems


def _text(node: Node | None) -> str:
    return (
        ""
        if node is None or node.value is None or isinstance(node.value, dict | tuple)
        else str(node.value).strip()
    )
