"""What a reader sees of a piece of Markdown: text, TeX, inline code and facts, each at its place.

`scan` blanks out everything that is no text (link targets, tags, attribute lists, footnote labels)
and keeps each character where it was, so that a position in the result is a position in the source.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["BLANK", "FactUse", "Scanned", "paragraphs", "scan", "substitute"]

BLANK = "\ufffc"  # stands for what is no text; belongs to no word

_FACT = re.compile(r"\{\{ ([A-Za-z_]\w*(?:\.\w+)*)(?::([^{}\n]*?) ?| )\}\}")
_TOKENS = re.compile(
    r"""(?P<fact>\{\{)
    |(?P<code>(?<!`)(?P<ticks>`+)(?!`)(?:.+?)(?<!`)(?P=ticks)(?!`))
    |(?P<display>\$\$.+?\$\$|\\\[.+?\\\]|\\begin\{(?P<env>[a-z]+\*?)\}.+?\\end\{(?P=env)\})
    |(?P<inline>\\\(.+?\\\)|\$(?!\s)(?:\\.|[^\\$])+?(?<!\s)\$)
    |(?P<escape>\\[\\`*_{}\[\]()>\#+\-.!$|~^:"'<&])
    |(?P<autolink><(?:https?://|mailto:)[^>\s]+>|<[\w.+-]+@[\w.-]+>)
    |(?P<tag></?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*>)
    |(?P<entity>&(?:\#\d+|\#[xX][0-9a-fA-F]+|[A-Za-z]\w*);)
    |(?P<footnote>\[\^[^\]\s]+\]:?)
    |(?P<definition>^[ >]*\[[^\]\n]+\]:[ ]+(?P<definition_rest>[^\n]+))
    |(?P<target>\]\((?P<target_rest>(?:[^()\n"']|"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))*)\))
    |(?P<reference>\]\[[^\]\n]*\])
    |(?P<attributes>\{:?[ ]*(?:(?:[.\#][\w-]+|[\w-]+=(?:"[^"]*"|'[^']*'|[^\s"'{}]+))[ ]*)+\})
    |(?P<url>\bhttps?://[^\s<>()\[\]|]+)
    |(?P<marker>^[ >]*(?:\d+[.)](?=[ \t]))+)
    |(?P<directive>^[ ]*:::[ ].*(?:\n[ ]{4,}.*)*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SEEN_ATTRIBUTE = re.compile(
    r"""(?:^|(?<=[\s{]))(?:title|alt|aria-label|aria-description|placeholder|label|summary|value|start)
    \s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>{}]+))""",
    re.IGNORECASE | re.VERBOSE,
)
# After such a line, a line with a number and a point is an item of a list; after others it is text.
_LIST_BEFORE = re.compile(r"[ >]*(?:(?:[-*+:]|\#{1,6}|\d+[.)])[ \t]|!!!|\?\?\?|===|\[\^|<)")
_TITLE = re.compile(r"""[ \t]+(?:"([^"]*)"|'([^']*)'|\(([^()]*)\))[ \t]*$""")


@dataclass(frozen=True)
class FactUse:
    """`{{ name:spec }}` from position `start` to `end`; `tex` if it stands inside a formula."""

    start: int
    end: int
    name: str
    spec: str
    tex: bool = False


@dataclass(frozen=True)
class Scanned:
    """The parts of a text.

    `text` is as long as what was scanned, blank where there is no text. `code` and `tex` are
    (position, content) pairs, `displayed` the positions of displayed formulas. `facts` are the facts
    used, `stray` the positions of braces that look like one and are none. `footnotes` are (position,
    label, whether it is the note itself).
    """

    text: str
    code: tuple[tuple[int, str], ...] = ()
    tex: tuple[tuple[int, str], ...] = ()
    displayed: tuple[int, ...] = ()
    facts: tuple[FactUse, ...] = ()
    stray: tuple[int, ...] = field(default=())
    footnotes: tuple[tuple[int, str, bool], ...] = ()


def scan(text: str, *, lists: bool = True) -> Scanned:
    """Takes a paragraph (or a caption, a claim, a field of the card, which hold no `lists`) apart.

    Example:
        >>> found = scan("see [it](https://x.org/36), `n`, $a_2$ and {{ edges:,}}")
        >>> found.text.replace(BLANK, "").split()
        ['see', '[it,', ',', 'and']
        >>> [(f.name, f.spec) for f in found.facts]
        [('edges', ',')]
    """
    return _Scan(text, lists).result()


class _Scan:
    def __init__(self, source: str, lists: bool) -> None:
        self.source = source
        self.lists = lists
        self.kept = list(source)
        self.code: list[tuple[int, str]] = []
        self.tex: list[tuple[int, str]] = []
        self.displayed: list[int] = []
        self.facts: list[FactUse] = []
        self.stray: list[int] = []
        self.footnotes: list[tuple[int, str, bool]] = []

    def result(self) -> Scanned:
        position = 0
        while (match := _TOKENS.search(self.source, position)) is not None:
            position = self.token(match)
        return Scanned(
            "".join(self.kept), tuple(self.code), tuple(self.tex), tuple(self.displayed),
            tuple(self.facts), tuple(self.stray), tuple(self.footnotes),
        )  # fmt: skip

    def token(self, match: re.Match[str]) -> int:
        """Deals with one token and returns the position after it."""
        start, end = match.span()
        kind = match.lastgroup
        groups = match.groupdict()
        if groups["fact"]:
            return self.fact(start, tex=False)
        if groups["code"]:
            width = len(groups["ticks"])
            self.code.append((start + width, self.source[start + width : end - width]))
            self.blank(start, end)
        elif groups["display"] or groups["inline"]:
            self.formula(start, end, displayed=bool(groups["display"]))
        elif groups["entity"]:
            character = html.unescape(match[0])
            self.blank(start, end)
            if len(character) == 1:
                self.kept[start] = character
        elif groups["attributes"] and not self.attributes(start, end):
            return start + 1
        elif groups["marker"] and not self.item(start):
            return end
        elif groups["tag"] or groups["attributes"]:
            self.keep_only(start, end, _SEEN_ATTRIBUTE)
        elif groups["target"] or groups["definition"]:
            rest = "target_rest" if groups["target"] else "definition_rest"
            self.facts_within(start, end)
            title = _TITLE.search(self.source, match.start(rest), match.end(rest))
            self.blank(start, end)
            if title:
                n = title.lastindex or 1
                self.restore(*title.span(n))
                return title.start(n)  # the title is text: read it on
        else:
            assert kind is not None
            if groups["footnote"]:
                label = match[0].removesuffix(":")
                self.footnotes.append((start, label, match[0] != label))
            self.facts_within(start, end)
            self.blank(start, end)
        return end

    def attributes(self, start: int, end: int) -> bool:
        """Whether Markdown takes these braces for attributes: of what stands before them in the line,
        of a heading or a cell that they end, or of the block of which they are the last line."""
        before = self.source[self.source.rfind("\n", 0, start) + 1 : start].lstrip(" >")
        after = self.source[end:].partition("\n")[0].strip()
        ends = not after or after.startswith("|")
        return before.endswith(tuple(")]*_`>")) or (
            ends and (not before or before.startswith(("#", ":")) or "|" in before)
        )

    def item(self, start: int) -> bool:
        """Whether a number with a point that begins a line there begins an item of a list."""
        lines = self.source[:start].split("\n")[:-1]
        return self.lists and (not lines or any(map(_LIST_BEFORE.match, lines)))

    def fact(self, start: int, *, tex: bool) -> int:
        match = _FACT.match(self.source, start)
        if match is None:
            self.stray.append(start)
            self.blank(start, start + 2)
            return start + 2
        self.facts.append(FactUse(start, match.end(), match[1], match[2] or "", tex))
        self.blank(start, match.end())
        return match.end()

    def facts_within(self, start: int, end: int, *, tex: bool = False) -> None:
        position = self.source.find("{{", start, end)
        while position >= 0:
            position = self.source.find("{{", self.fact(position, tex=tex), end)

    def formula(self, start: int, end: int, *, displayed: bool) -> None:
        self.facts_within(start, end, tex=True)
        self.tex.append((start, "".join(self.kept[start:end])))
        if displayed:
            self.displayed.append(start)
        self.blank(start, end)

    def keep_only(self, start: int, end: int, what: re.Pattern[str]) -> None:
        self.facts_within(start, end)
        before = self.kept[start:end]
        self.blank(start, end)
        for match in what.finditer(self.source, start, end):
            first, last = match.span(match.lastindex or 1)
            self.kept[first:last] = html.unescape(
                "".join(before[first - start : last - start])
            ).ljust(last - first, BLANK)[: last - first]

    def blank(self, start: int, end: int) -> None:
        for n in range(start, end):
            if self.source[n] != "\n":
                self.kept[n] = BLANK

    def restore(self, start: int, end: int) -> None:
        self.kept[start:end] = self.source[start:end]


def paragraphs(prose: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The paragraphs of a chapter's prose, each with the line on which it begins."""
    begun = None
    for n, line in enumerate([*prose, ""]):
        if line.strip() and begun is None:
            begun = n
        elif not line.strip() and begun is not None:
            yield begun + 1, "\n".join(prose[begun:n])
            begun = None


def substitute(text: str, render: Callable[[FactUse], str]) -> str:
    """The text with each fact replaced by what `render` makes of it.

    Example:
        >>> substitute("{{ n }} of `{{ n }}`", lambda use: "7")
        '7 of `{{ n }}`'
    """
    parts, position = [], 0
    for use in scan(text).facts:
        parts += [text[position : use.start], render(use)]
        position = use.end
    return "".join([*parts, text[position:]])
