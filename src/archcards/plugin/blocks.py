"""Puts what the runner captured where the executed fences stand.

markdown-exec recognises the fences and reads their options; its Python formatters are replaced by one
that executes nothing. Each fence carries the line it began on, so that it finds exactly its own
results. Markdown sees an empty element; the results take its place when the page is HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from html.parser import HTMLParser

from markdown_exec import MarkdownConverter, add_source, code_block, formatters
from markupsafe import Markup

from archcards.evidence.chapter import Fence
from archcards.evidence.record import Event, Output
from archcards.evidence.runner import Block

from . import render
from .markup import Token, tokens

__all__ = ["Blocks", "install", "mark_fences", "misplaced", "origins", "unsafe"]

_KEY = "acline"  # fence options are letters and digits only
_HOLDER = re.compile(r'<div class="ac-block" data-ac-line="(\d+)"></div>')
_ALLOWED = frozenset(
    """a abbr b blockquote br caption circle cite code col colgroup dd defs del details dfn div dl dt em
    figcaption figure g h2 h3 h4 h5 h6 hr i img ins kbd li line lineargradient math mark mfrac mi mn mo
    mover mrow mspace msqrt mroot mstyle msub msubsup msup mtable mtd mtext mtr munder munderover ol p
    path pattern polygon polyline pre q rect s samp section small span stop strong style sub summary sup
    svg symbol table tbody td text tfoot th thead title tr tspan u ul use var clippath metadata
    """.split()
)
_UNSEEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_VOID = frozenset({"br", "col", "hr", "img"})


def mark_fences(markdown: str, fences: Sequence[Fence], offset: int) -> str:
    """Gives each executed fence an option with its line; `offset` lines of the file stand above."""
    lines = markdown.split("\n")
    for fence in fences:
        index = fence.line - 1 - offset
        if fence.executed and 0 <= index < len(lines):
            lines[index] = f'{lines[index].rstrip()} {_KEY}="{fence.line}"'
    return "\n".join(lines)


class Blocks:
    """The blocks of one page on their way into its HTML."""

    def __init__(self, blocks: Sequence[Block], anchors: render.Anchors, lines: Sequence[str]) -> None:
        self._blocks = {block.fence.line: block for block in blocks if block.fence.executed}
        self._anchors = anchors
        self._lines = lines
        self._drawn: dict[int, str] = {}
        self.faults: list[tuple[int, str]] = []
        """Lines and reasons; line 0 where the fence is not one of the page's."""

    def draw(self, *, code: str, md, language: str, **options) -> Markup:
        """The formatter: draws a block and leaves a holder for it."""
        line = int(options.get("extra", {}).pop(_KEY, 0))
        if line not in self._blocks:
            reason = "executed fences belong on the page itself, not into snippets or docstrings"
            self.faults.append((0, reason))
            return Markup()
        try:
            self._drawn[line] = self._inner(line, code, md, language, options)
        except Exception as error:  # SuperFences would swallow it and show the fence as text
            self.faults.append((line, f"the block cannot be drawn: {error}"))
            self._drawn[line] = ""
        return Markup(f'<div class="ac-block" data-ac-line="{line}"></div>')

    def fill(self, page: str) -> str:
        """The page with each holder filled."""

        def inner(found: re.Match) -> str:
            line = int(found[1])
            fence = self._blocks[line].fence
            name = f' id="{escape(fence.id)}"' if fence.id else ""
            return f'<div class="ac-block"{name} data-ac-line="{line}">{self._drawn[line]}</div>'

        return _HOLDER.sub(inner, page)

    def _inner(self, line: int, code: str, md, language: str, options: dict) -> str:
        fence, events = self._blocks[line].fence, self._blocks[line].events
        extra, where = options["extra"], options["source"]
        output = self._output(line, md, options)
        if where == "console":
            printed = "".join(event.text for event in events if isinstance(event, Output))
            transcript = f"{code}\n{printed}" if printed else code
            rest = [event for event in events if not isinstance(event, Output)]
            shown = self._source(transcript, options["result"] or language, extra, md)
            return shown + self._events(rest, output)
        happened = self._events(events, output, transcript=fence.transcript and bool(where))
        if not where:
            return happened
        if where in {"tabbed-left", "tabbed-right"}:
            holder = '<div class="ac-tab"></div>'
            text = add_source(
                source=code, location=where, output=holder, language=language, tabs=options["tabs"], **extra
            )
            return str(MarkdownConverter(md, update_toc=False).convert(text, stash={holder: happened}))
        source = self._source(code, language, extra, md)
        if where == "below":
            return happened + source
        if where == "block" and happened:
            return f'{source}<div class="result">{happened}</div>'
        return source + happened

    def _events(self, events: Sequence[Event], output, *, transcript: bool = False) -> str:
        return render.events(
            events, anchors=self._anchors, lines=self._lines, output=output, shows_transcript=transcript
        )

    def _source(self, code: str, language: str, extra: dict[str, str], md) -> str:
        shown = "\n".join(line for line in code.split("\n") if "markdown-exec: hide" not in line).strip("\n")
        if extra.keys() - {"title"}:  # line numbers and the like, which Markdown knows how to draw
            return str(MarkdownConverter(md, update_toc=False).convert(code_block(language, shown, **extra)))
        return render.code(shown, language, title=extra.get("title", ""))

    def _output(self, line: int, md, options: dict) -> Callable[[str], str]:
        """How this block's printed text becomes HTML."""

        def drawn(text: str) -> str:
            if options["html"]:
                if reason := unsafe(text):
                    self.faults.append((line, f"the block's output is not published: {reason}"))
                    return render.code(text, "text", classes="ac-output")
                return text
            if options["result"]:
                return render.code(text, options["result"], classes="ac-output")
            prefix = options["id_prefix"]
            if prefix is None:
                prefix = f"{options['id']}-" if options["id"] else None
            html = str(MarkdownConverter(md, update_toc=False).convert(text, id_prefix=prefix))
            if reason := unsafe(html):
                self.faults.append((line, f"the block's output is not published: {reason}"))
                return render.code(text, "text", classes="ac-output")
            return html

        return drawn


def install(current: Callable[[], Blocks | None]) -> None:
    """Replaces markdown-exec's Python formatters by one that places results of the current page."""

    def formatter(language: str) -> Callable[..., Markup]:
        def draw(**options) -> Markup:
            blocks = current()
            return blocks.draw(language=language, **options) if blocks else Markup()

        return draw

    for language, name in (("python", "python"), ("py", "python"), ("pycon", "pycon")):
        formatters[language] = formatter(name)


def origins(page: str) -> Iterator[tuple[Token, int]]:
    """The tokens of a page, each with the line of the block that it comes from, or 0."""
    depth = line = 0
    for token in tokens(page):
        if line and len(token.inside) < depth:
            line = 0
        if token.kind == "open" and not line and (told := token.attributes.get("data-ac-line")):
            depth, line = len(token.inside) + 1, int(told)
        yield token, line


def misplaced(page: str, lines: Sequence[int]) -> list[tuple[int, str]]:
    """Blocks that the finished page does not have exactly once where a reader sees them."""
    seen: Counter[int] = Counter()
    hidden: list[str] = []  # open elements that nobody sees, by their position in the tree
    for token in tokens(page) if lines else ():
        hidden = hidden[: len(token.inside)] if token.kind != "close" else hidden
        if token.kind != "open":
            continue
        given = token.attributes
        out_of_sight = "hidden" in given or token.name in {"template", "noscript", "dialog"}
        out_of_sight |= bool(_UNSEEN.search(given.get("style", "")))
        hidden = [*hidden, *[""] * (len(token.inside) - len(hidden)), "x" if out_of_sight else ""]
        if "data-ac-line" in given and not any(hidden):
            seen[int(given["data-ac-line"])] += 1
    reasons = {
        0: "this block is not on the finished page: Markdown does not read it as a fence here",
    }
    return [
        (line, reasons.get(seen[line], f"this block is on the finished page {seen[line]} times"))
        for line in lines
        if seen[line] != 1
    ]


class _Fragment(HTMLParser):
    """Follows a fragment's elements, and stops at the first thing a reader's page must not have."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.reason = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _ALLOWED:
            self.reason = self.reason or f"it holds a <{tag}> element"
        for name, value in attrs:
            if name.startswith("on"):
                self.reason = self.reason or f"it holds the event handler {name}"
            address = re.sub(r"\s", "", value or "").lower()
            if name in {"href", "src", "xlink:href"} and address.startswith(("javascript:", "data:text")):
                self.reason = self.reason or f"its {name} runs a script"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.reason = self.reason or f"it closes a <{tag}> that it did not open"

    def handle_comment(self, data: str) -> None:
        self.reason = self.reason or "it holds a comment"

    def handle_decl(self, decl: str) -> None:
        self.reason = self.reason or "it holds a declaration"

    def unknown_decl(self, data: str) -> None:
        self.reason = self.reason or "it holds a declaration"

    def handle_pi(self, data: str) -> None:
        self.reason = self.reason or "it holds a processing instruction"


def unsafe(html: str) -> str:
    """Why a block's HTML may not enter the page, or nothing.

    Example:
        >>> unsafe("<b>21</b>"), unsafe("</div>")
        ('', 'it closes a <div> that it did not open')
    """
    fragment = _Fragment()
    fragment.feed(html)
    fragment.close()
    if fragment.reason:
        return fragment.reason
    return f"it leaves a <{fragment.open[-1]}> open" if fragment.open else ""
