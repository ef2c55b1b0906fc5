"""Numbers in a page's HTML: `{{ name }}` becomes the value that a block computed or a source printed."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .markup import Token, tag, tokens

__all__ = ["REFERENCE", "Reference", "Value", "in_tex", "place", "plain"]

REFERENCE = re.compile(r"\{\{ (?P<name>[A-Za-z_]\w*(?:\.\w+)*)(?::(?P<format>[^{}\n]*?))? ?\}\}")
_UNTOUCHED = {"code", "pre", "script", "style", "math", "textarea", "kbd", "samp"}
# Inside these a link would be a link in a link, or a button in a button.
_NO_LINK = {"a", "button", "summary", "label", "legend", "h1", "h2", "h3", "h4", "h5", "h6", "svg"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


@dataclass(frozen=True)
class Value:
    """What a reference stands for, and where a reader finds out where it comes from."""

    value: object
    origin: str
    """A sentence: how the number came about."""
    href: str
    """Address of the block or the source."""
    quoted: bool = False


@dataclass(frozen=True)
class Reference:
    """A reference as it was met: in which kind of place, and under what name."""

    name: str
    place: str


def plain(text: str, values: Mapping[str, Value]) -> str:
    """Text with the values of its references; an unknown one stays as it is.

    Example:
        >>> plain("{{ edges:,}} of {{ all }}", {"edges": Value(8192, "", "")})
        '8,192 of {{ all }}'
    """
    return REFERENCE.sub(lambda found: _formatted(found, values) or found.group(), text)


def place(page: str, values: Mapping[str, Value]) -> str:
    """The page with each reference outside code replaced.

    In running text the number carries its origin; in attributes, links and headings it is bare. In TeX
    it is bare too, and a formula in a line has the origins of its numbers before it.
    """
    pieces = []
    tex = before = 0
    for token in tokens(page):
        if token.kind == "open":
            if 'class="arithmatex"' in token.text:
                tex, before = len(token.inside) + 1, len(pieces)
                pieces.append("")
            pieces.append(_in_attributes(token, values) if "{{ " in token.text else token.text)
            continue
        if token.kind == "close" and tex and len(token.inside) < tex:
            tex = 0
        if token.kind != "text" or "{{ " not in token.text or _UNTOUCHED & set(token.inside):
            pieces.append(token.text)
        elif tex:
            drawn = _replace(values, lambda text, _: html.escape(in_tex(text), quote=False))
            pieces.append(REFERENCE.sub(drawn, token.text))
            if "span" in token.inside[tex - 1 :] and not _NO_LINK & set(token.inside):
                pieces[before] = _origins(token.text, values)
        elif _NO_LINK & set(token.inside):
            pieces.append(REFERENCE.sub(_replace(values, _bare), token.text))
        else:
            pieces.append(REFERENCE.sub(_replace(values, _linked), token.text))
    return "".join(pieces)


def _replace(
    values: Mapping[str, Value], draw: Callable[[str, Value], str]
) -> Callable[[re.Match], str]:
    def change(found: re.Match) -> str:
        text = _formatted(found, values)
        return found.group() if text is None else draw(text, values[found["name"]])

    return change


def _formatted(found: re.Match, values: Mapping[str, Value]) -> str | None:
    known = values.get(found["name"])
    if known is None:
        return None
    try:
        text = format(known.value, (found["format"] or "").strip())
    except (TypeError, ValueError):
        return None
    return text.replace("-", "−") if isinstance(known.value, int | float) else text


def _bare(text: str, value: Value) -> str:
    return html.escape(text, quote=False)


def _linked(text: str, value: Value, shown: str | None = None) -> str:
    shown = html.escape(text, quote=False) if shown is None else shown
    kind = "ac-fact ac-quoted" if value.quoted else "ac-fact"
    span = tag("span", {"class": kind, "title": value.origin})
    link = tag(
        "a",
        {"class": "ac-origin", "href": value.href, "aria-label": f"{text}: {value.origin}"},
    )
    # Without text of its own, so that neither the search index nor a copied sentence has it.
    return f"{span}{shown}{link}</a></span>"


def _origins(tex: str, values: Mapping[str, Value]) -> str:
    """The origins of the numbers in a formula, which itself can hold no link."""
    found = REFERENCE.finditer(tex)
    return "".join(_linked(text, values[one["name"]], "") for one in found if (text := _formatted(one, values)))


def in_tex(text: str) -> str:
    r"""A number as one thing in TeX, also as an exponent; one that is grouped is text.

    Example:
        >>> in_tex("16"), in_tex("8,192"), in_tex("2")
        ('{16}', '\\text{8,192}', '2')
    """
    text = text.replace("−", "-")
    if re.fullmatch(r"-?[\d.]+", text):
        return text if len(text) == 1 else f"{{{text}}}"
    return f"\\text{{{text}}}"


def _in_attributes(token: Token, values: Mapping[str, Value]) -> str:
    return REFERENCE.sub(
        lambda found: html.escape(_formatted(found, values) or found.group()), token.text
    )
