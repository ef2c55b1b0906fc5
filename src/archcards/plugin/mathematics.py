"""TeX becomes MathML while the site is built: no script draws mathematics in the reader's browser."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache

from math_core import LatexError, LatexToMathML

from .markup import Token, elements, rewrite

__all__ = ["BadTeX", "as_dollars", "code_points", "formulas", "mathml", "typeset", "typeset_navigation"]

LONG = 24
"""Characters of TeX from which a formula in a line may be wider than a phone, and then scrolls."""

_FORBIDDEN = {
    r"\underbrace": "browsers draw it badly; put the remark into the sentence",
    r"\xrightarrow": "browsers draw it badly; use \\to and a sentence",
    r"\color": "colours of formulas do not follow the reader's scheme",
}
_DELIMITED = re.compile(r"\\\((.+?)\\\)")
_PUNCTUATION = re.compile(r"[.,;:!?)\]’”–-]+[\w)]*")
_ARITHMATEX = r'<(?:span|div) class="arithmatex">'


class BadTeX(ValueError):
    """TeX that cannot be typeset."""


@cache
def _converter() -> LatexToMathML:
    return LatexToMathML(fancy_error=False)


@cache
def mathml(tex: str, display: bool = False) -> str:
    """MathML of a formula.

    Raises:
        BadTeX: the formula does not parse, or uses what browsers draw badly.
    """
    for command, reason in _FORBIDDEN.items():
        if re.search(re.escape(command) + r"(?![a-zA-Z])", tex):
            raise BadTeX(f"{command} is not used on this site: {reason}")
    try:
        drawn = _converter().convert_with_local_state(tex, displaystyle=display)
    except LatexError as error:
        position, _, reason = str(error).partition(": ")
        raise BadTeX(f"{reason.rstrip('.')} at character {position} of ${tex.strip()}$") from None
    # The TeX stays within reach of search engines, copy and screen readers without MathML.
    return drawn.replace("<math", f'<math alttext="{html.escape(" ".join(tex.split()))}"', 1)


@dataclass(frozen=True)
class Formula:
    """A formula where it stands in a page: its TeX, and whether it has a line of its own."""

    start: int
    end: int
    tex: str
    display: bool


def formulas(page: str) -> list[Formula]:
    """The formulas that Markdown (`pymdownx.arithmatex`, generic) left in a page."""
    found = []
    for start, end, _, inner in elements(page, _ARITHMATEX):
        inner = html.unescape(inner).strip()
        if inner.startswith(("\\(", "\\[")) and inner.endswith(("\\)", "\\]")):
            found.append(Formula(start, end, inner[2:-2], inner.startswith("\\[")))
    return found


def typeset(page: str) -> str:
    """The page with its formulas drawn; one that does not parse is shown as it was written."""
    pieces, position = [], 0
    for formula in formulas(page):
        pieces.append(page[position : formula.start])
        try:
            drawn = mathml(formula.tex, formula.display)
        except BadTeX:
            drawn = f'<code class="ac-fault">{html.escape(formula.tex)}</code>'
        position = formula.end
        if formula.display:
            drawn = f'<div class="ac-math" tabindex="0">{drawn}</div>'
        else:
            # Browsers break lines after a formula, even before the full stop.
            after = _PUNCTUATION.match(page, position)
            kinds = [*["ac-nowrap"] * bool(after), *["ac-long"] * (len(formula.tex) > LONG)]
            if kinds:
                drawn = f'<span class="{" ".join(kinds)}">{drawn}{after.group() if after else ""}</span>'
            position = after.end() if after else position
        pieces.append(drawn)
    return "".join(pieces) + page[position:]


def typeset_navigation(page: str) -> str:
    """The page with the formulas drawn that its title and its menus took over from headings as text."""

    def change(token: Token) -> str:
        if token.kind != "text" or "\\(" not in token.text:
            return token.text
        if "title" in token.inside:
            return _DELIMITED.sub(lambda found: found[1], token.text)
        if "nav" in token.inside:
            return _DELIMITED.sub(lambda found: _drawn(html.unescape(found[1])), token.text)
        return token.text

    return rewrite(page, change) if "\\(" in page else page


def as_dollars(text: str) -> str:
    r"""Plain text of a title that Markdown has read, its formulas between dollar signs.

    Example:
        >>> as_dollars(r"Heads &amp; \(d_k\)")
        'Heads & $d_k$'
    """
    return html.unescape(_DELIMITED.sub(lambda found: f"${found[1]}$", text))


def _drawn(tex: str) -> str:
    try:
        return mathml(tex)
    except BadTeX:
        return html.escape(tex)


def code_points(page: str) -> set[int]:
    """The characters that the formulas of a page need a font for.

    A browser draws a variable (an `mi` of one letter) with the italic letter of the font, and a root,
    whose sign stands nowhere in the text, with the font's radical sign.
    """
    found: set[int] = set()
    for _, _, _, inner in elements(page, r"<math\b[^>]*>"):
        found |= set(map(ord, html.unescape(re.sub(r"<[^>]*>", "", inner))))
        found |= {_italic(ord(letter)) for letter in re.findall(r"<mi>(.)</mi>", inner)}
        if re.search(r"<m(?:sqr|roo)t\b", inner):
            found.add(ord("√"))
    return found


_ITALIC = (
    (ord("A"), ord("Z"), 0x1D434),
    (ord("a"), ord("z"), 0x1D44E),
    (ord("Α"), ord("Ω"), 0x1D6E2),
    (ord("α"), ord("ω"), 0x1D6FC),
)
_ITALIC_ALONE = {"h": 0x210E, "ı": 0x1D6A4, "ȷ": 0x1D6A5, "∇": 0x1D6FB, "∂": 0x1D715}
_ITALIC_ALONE |= {letter: 0x1D716 + place for place, letter in enumerate("ϵϑϰϕϱϖ")}


def _italic(letter: int) -> int:
    """The mathematical italic of a letter, as MathML Core transforms it."""
    if chr(letter) in _ITALIC_ALONE:
        return _ITALIC_ALONE[chr(letter)]
    for first, last, start in _ITALIC:
        if first <= letter <= last:
            return start + letter - first
    return letter
