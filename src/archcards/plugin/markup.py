"""Read and rewrite finished HTML without changing a byte that is not meant.

A parser that builds a tree and serialises it again would normalise what other tools wrote. Here a
page is a list of tokens (tags, comments, text) which joined again give the page.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Token", "attributes", "elements", "plain_text", "rewrite", "strays", "tag", "tokens"]

_TOKEN = re.compile(r"""<!--.*?-->|</?[a-zA-Z!](?:[^<>"']|"[^"]*"|'[^']*')*>""", re.S)
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+))?""")
_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_RAW = {"script", "style", "textarea"}
_VOID = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a page: `kind` is `open`, `close`, `comment`, `raw` (inside a script) or `text`."""

    kind: str
    text: str
    name: str = ""
    inside: tuple[str, ...] = ()
    """Names of the elements around it, outermost first."""

    @property
    def attributes(self) -> dict[str, str]:
        return attributes(self.text)


def tokens(page: str) -> Iterator[Token]:
    """Split a page into tokens, each knowing the elements it stands in."""
    stack: list[str] = []
    position = 0
    while position < len(page):
        found = _TOKEN.search(page, position)
        if found is None:
            yield Token("text", page[position:], inside=tuple(stack))
            return
        if found.start() > position:
            yield Token("text", page[position : found.start()], inside=tuple(stack))
        text, position = found.group(), found.end()
        named = _NAME.match(text)
        if named is None:
            yield Token("comment", text, inside=tuple(stack))
            continue
        name = named.group(1).lower()
        if text.startswith("</"):
            if name in stack:
                while stack.pop() != name:
                    pass
            yield Token("close", text, name, tuple(stack))
            continue
        yield Token("open", text, name, tuple(stack))
        if name in _VOID or text.endswith("/>"):
            continue
        stack.append(name)
        if name in _RAW:
            end = re.compile(rf"</{name}\s*>", re.I).search(page, position)
            stop = end.start() if end else len(page)
            if stop > position:
                yield Token("raw", page[position:stop], inside=tuple(stack))
            position = stop


def strays(page: str) -> list[str]:
    """Names of elements that are closed more often than they were opened: they end what is around.

    Example:
        >>> strays("<p>a</p></div>")
        ['div']
    """
    opened: Counter[str] = Counter()
    found = []
    for token in tokens(page):
        if token.kind == "open" and not token.text.endswith("/>"):
            opened[token.name] += 1
        elif token.kind == "close":
            opened[token.name] -= 1
            if opened[token.name] < 0:
                found.append(token.name)
                opened[token.name] = 0
    return list(dict.fromkeys(found))


def attributes(opening: str) -> dict[str, str]:
    """The attributes of an opening tag, values unescaped."""
    named = _NAME.match(opening)
    body = opening[named.end() :].rstrip(">").rstrip("/") if named else ""
    found = {}
    for name, value in _ATTRIBUTE.findall(body):
        if value[:1] in "\"'":
            value = value[1:-1]
        found.setdefault(name.lower(), html.unescape(value))
    return found


def tag(name: str, given: dict[str, str | None], *, close: bool = False) -> str:
    """An opening tag from attributes; `None` leaves an attribute out."""
    body = "".join(
        f' {key}="{html.escape(value)}"' for key, value in given.items() if value is not None
    )
    return f"<{name}{body}{' /' if close else ''}>"


def rewrite(page: str, change: Callable[[Token], str]) -> str:
    """The page with each token replaced by what `change` makes of it."""
    return "".join(change(token) for token in tokens(page))


def elements(page: str, pattern: str) -> Iterator[tuple[int, int, str, str]]:
    """Elements whose opening tag matches `pattern`: start, end, opening tag and inner HTML."""
    opening = re.compile(pattern, re.S)
    position = 0
    while found := opening.search(page, position):
        name = _NAME.match(found.group()).group(1)
        depth, inner = 1, found.end()
        for other in re.compile(rf"<(/?){name}\b[^>]*>", re.I).finditer(page, inner):
            depth += -1 if other.group(1) else 1
            if depth == 0:
                yield found.start(), other.end(), found.group(), page[inner : other.start()]
                position = other.end()
                break
        else:
            position = inner


def plain_text(fragment: str) -> str:
    """What a reader reads of a fragment, white space collapsed."""
    text = "".join(token.text for token in tokens(fragment) if token.kind == "text")
    return " ".join(html.unescape(text).split())
