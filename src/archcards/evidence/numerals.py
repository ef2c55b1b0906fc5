"""The numeral rule: a number that a reader sees is a fact, not typed.

A numeral is a digit (or a number word above twelve) that none of these exempt: words that begin with
a letter; the names of `docs/names.txt`; years from 1950 to 2039 and dates; pointers (section, table,
figure, step or equation and its number); arXiv, DOI and issue numbers; 1D to 4D; bit widths; a bare 0
or 1; list markers. Inline code counts only where it is nothing but a numeral. A formula may hold
single digits, exponents and subscripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .prose import BLANK, Scanned, scan

__all__ = ["Numeral", "find_numerals", "numerals_of"]

_MONTH = (
    r"(?-i:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Jun\.?|Jul\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?)"
)
_YEAR = r"(?:19[5-9]\d|20[0-3]\d)"
_ALONE = r"(?![\w%‰°×]|[.,:/]\d)"  # the number ends here
_START = r"(?<![\w$€£+\-−.,:/])"  # and began here, unsigned
_FACT = "\ufffb"  # stands for a fact, which is a number too
_JOINED = rf"(?![{BLANK}{_FACT}*\u00ad\u200b-\u200d\u2060]*[\d{_FACT}])"  # by markup or nothing that is seen
_POINTED = r"\(?\d{1,3}(?:\.\d{1,3})*[a-z]?\)?(?![\w%‰°×])"
_RANGE = rf"{_POINTED}(?:\s*[–-]\s*{_POINTED})?"
_BITS = r"(?:1|2|3|4|5|6|8|16|32|64|128)"

_EXEMPT = re.compile(
    rf"""
    {_START}{_YEAR}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?{_ALONE}
    |(?<!\w)(?:[1-9]|[12]\d|3[01])\s+{_MONTH}(?:\s+{_YEAR})?{_ALONE}
    |\b{_MONTH}\s+(?:[1-9]|[12]\d|3[01])(?:,\s*{_YEAR}|(?=[^\w\s])|(?=\s*$)){_ALONE}
    |(?<![\w$€£+−.,:/]){_YEAR}(?:s|['’]s)?{_ALONE}
    |(?:\b(?:section|table|figure|step|equation)|\b(?:sec|tab|fig|eqn?)\.|§)\s*{_RANGE}
    |(?:\b(?:sections|tables|figures|steps|equations)|\b(?:secs|tabs|figs|eqn?s)\.|§§)\s*
        {_RANGE}(?:,\s*{_RANGE})*(?:,?\s*(?:and|or|to|&)\s*{_RANGE})?
    |\barXiv[:\s]\s*(?:\d{{4}}\.\d{{4,5}}(?:v\d+)?|[a-z-]+/\d{{7}})
    |\b(?:doi[:\s]\s*)?10\.\d{{4,9}}/[^\s{BLANK}]+
    |(?:\b(?:issues?|pull\s+requests?|discussions?|PRs?)\s+)?(?<!\w)\#\d+{_ALONE}
    |\b(?:issue|pull\s+request|discussion|PR)\s+\d+{_ALONE}
    |{_START}[1-4]-?D(?!\w)(?:[–/-][1-4]-?D(?!\w))?
    |{_START}(?:{_BITS}(?:-|\s)?(?:,|\s+(?:and|or|to)|–)\s*){{0,4}}{_BITS}[-\s]bits?(?!\w)
    |(?<![\w$€£+−.,:/{_FACT}])(?<!(?<![^\W\d])-)[01](?:–[01])?{_ALONE}{_JOINED}  # also in top-1, not in -1
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:\w|(?<=\d)[.,:/·](?=\d)|(?<=\w)\.(?=\d))*")
_LARGE_WORDS = re.compile(
    r"(?:thir|four|fif|six|seven|eigh|nine)teen(?:th|fold)?"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)(?:ty(?:fold)?|tieth)"
    r"|(?:hundred|thousand|(?:m|b|tr|quadr|quint)illion)(?:th|fold)?",
    re.IGNORECASE,
)
_ONLY_NUMERAL = re.compile(
    r"[\s(\[]*[-+−~≈$€£]?\s*(\d[\d_.,]*|\.\d+)(?:[eE][-+−]?\d+)?\s*[%‰×x]?[\s)\]]*"
)
_SCRIPT = re.compile(r"[\^_]\s*(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[a-zA-Z]+|[^\s{}\\])")
_SEPARATORS = re.compile(r"(?<=\d)(?:\\[,!;:]|\{,\}|~)(?=\d)")
_TEX_NUMBER = re.compile(r"\d+(?:(?:,+(?=\d{3}(?!\d))| +|\{\})\d+)*(?:\.\d+)?|\.\d+")


@dataclass(frozen=True)
class Numeral:
    """A numeral that is typed where a fact belongs: what it says, and its position in the text."""

    text: str
    start: int
    tex: bool = False

    @property
    def reason(self) -> str:
        """What is wrong with it, and what to do."""
        if self.tex:
            return (
                f"the numeral {self.text} is typed into a formula; a formula may hold single digits, "
                "exponents and subscripts: register a fact and write {{ name }}"
            )
        return (
            f"the numeral {self.text} is typed into prose; register a fact or quote a source, "
            "and write {{ name }} (a proper name goes into names.txt)"
        )


def find_numerals(text: str, names: Sequence[str] = ()) -> list[Numeral]:
    """The numerals in a paragraph of Markdown, in order; `names` are those exempt, longest first.

    Example:
        >>> text = "In 2023, Llama 3 had 32 layers and $d_{128} = 12$."
        >>> [n.text for n in find_numerals(text, ["Llama 3"])]
        ['32', '12']
    """
    return numerals_of(scan(text), names)


def numerals_of(scanned: Scanned, names: Sequence[str] = ()) -> list[Numeral]:
    """The same for a text that is already scanned."""
    text = scanned.text
    for use in scanned.facts:
        text = text[: use.start] + _FACT * (use.end - use.start) + text[use.end :]
    found = list(_in_text(text, names))
    for position, code in scanned.code:
        if _ONLY_NUMERAL.fullmatch(code):
            found += [Numeral(n.text, n.start + position) for n in _in_text(code, ())]
    for position, tex in scanned.tex:
        found += [Numeral(n.text, n.start + position, tex=True) for n in _in_formula(tex)]
    return sorted(found, key=lambda n: n.start)


def _in_text(text: str, names: Sequence[str]) -> Iterator[Numeral]:
    for pattern in (_names_pattern(tuple(names)), _EXEMPT):
        if pattern is not None:
            text = pattern.sub(lambda match: BLANK * len(match[0]), text)
    for word in _WORD.finditer(text):
        token = word[0].rstrip("_")
        if token[0].isalpha():
            if _LARGE_WORDS.fullmatch(token):
                yield Numeral(token, word.start())
        else:
            yield Numeral(token, word.start())


def _names_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    if not names:
        return None
    if names not in _patterns:
        spelled = (r"\s+".join(map(re.escape, name.split())) for name in names)
        _patterns[names] = re.compile(rf"(?<!\w)(?:{'|'.join(spelled)})(?!\w|\.\d|,\d)")
    return _patterns[names]


_patterns: dict[tuple[str, ...], re.Pattern[str]] = {}


def _in_formula(tex: str) -> Iterator[Numeral]:
    # Removed characters leave blanks, so that positions stay.
    def blank(match: re.Match[str]) -> str:
        return BLANK * len(match[0])

    tex = _SCRIPT.sub(blank, tex)
    joined = _SEPARATORS.sub(lambda match: "," * len(match[0]), tex)
    for match in _TEX_NUMBER.finditer(joined):
        if len(match[0]) > 1:
            yield Numeral(tex[match.start() : match.end()], match.start())
