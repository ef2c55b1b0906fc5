"""A chapter as its Markdown says it: front matter, fences with their true lines, and prose.

Nothing here needs Markdown. The scanner accepts the fences that SuperFences and markdown-exec accept
(first on their line but for indentation and quote marks; closed by the same characters; no line of
code indented less than the fence) and reports every fence that they would silently leave as text.
Lines end at `\\n` only (a `\\r` before it is dropped), so a form feed or U+2028 shifts nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from .problem import Problem, decoded

__all__ = ["Chapter", "Fence", "read_chapter"]

TAB = 4  # Python-Markdown's tab stops, and its indentation of what a list item or admonition holds

LANGUAGES = (
    "python", "py", "pycon", "text", "console", "bash", "sh", "json", "yaml", "toml", "ini",
    "markdown", "md", "html", "css", "javascript", "js", "diff", "latex", "bibtex", "c", "cpp",
)  # fmt: skip
RUN = ("python", "py", "pycon")
SHOWN_OPTIONS = ("title", "title_mode", "hl_lines", "linenums")
RUN_OPTIONS = ("exec", "id", "session", "source", "result", "html", "tabs", "idprefix", "updatetoc")
SOURCES = ("above", "below", "block", "tabbed-left", "tabbed-right", "console")
TRUE, FALSE = ("true", "on", "yes", "1"), ("", "no", "off", "false", "0")

_OPENING = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*$", re.DOTALL)
_LANGUAGE = re.compile(r"\.?([\w#.+-]+)(?=[ \t]|$)")
_OPTION = re.compile(r"""[ \t]*([a-zA-Z][a-zA-Z0-9_]*)(?:=(["'])(.*?)\2)?(?=[ \t]|$)""")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ \t]+")
_CONTAINER = re.compile(
    r"(?:[-*+]|\d+[.)])(?:[ \t]+|$)|(?:!!!|\?\?\?\+?|===[!+]{0,2})[ \t]|\[\^[^\]]+\]:|:[ \t]{1,3}\S"
)
_SNIPPET = re.compile(r"[ \t>]*-{1,}8<-{1,}(?:[ \t]|$)")
_FRONT = re.compile(r"-{3}[ \t]*$")
_FRONT_END = re.compile(r"(?:-{3}|\.{3})[ \t]*$")


@dataclass(frozen=True)
class Fence:
    """A fenced block: `line` is its opening line, `first` its first line of code, `end` its last line.

    `code` is free of the fence's own indentation; `options` are as written, in order.
    """

    line: int
    first: int
    end: int
    language: str
    options: dict[str, str] = field(hash=False)
    code: str
    indent: int = 0

    @property
    def executed(self) -> bool:
        """Whether its output belongs on the page."""
        return "exec" in self.options

    @property
    def transcript(self) -> bool:
        """Whether it is a session of prompts and outputs, which are compared."""
        return self.language == "pycon"

    @property
    def runs(self) -> bool:
        """Whether the runner executes it: every executed fence, and every transcript."""
        return self.executed or self.transcript

    @property
    def id(self) -> str:
        """The block's id, or nothing."""
        return self.options.get("id", "")


@dataclass(frozen=True)
class Chapter:
    """One Markdown file, read.

    `path` is what messages call it (`docs/part/page.md`). `front` is the text of its front matter,
    which begins on line 2. `fences` are all fenced blocks in order, `prose` has one text for each
    line of the file, empty where there is no prose (code, comments, front matter).
    """

    path: str
    text: str
    lines: tuple[str, ...]
    front: str | None
    fences: tuple[Fence, ...]
    prose: tuple[str, ...]
    problems: tuple[Problem, ...]

    @cached_property
    def blocks(self) -> tuple[Fence, ...]:
        """The fences that run, in order."""
        return tuple(f for f in self.fences if f.runs)

    def source(self, line: int) -> str:
        """The line of the file that a message is about."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def problem(self, line: int, reason: str, detail: str = "") -> Problem:
        """A problem on a line of this chapter."""
        return Problem(self.path, line, reason, self.source(line).strip(), detail)


def read_chapter(path: str, data: bytes) -> Chapter:
    """Reads a chapter; what is wrong with its fences is in its `problems`.

    Example:
        >>> page = read_chapter("docs/a.md", b'Text\\n\\n~~~python exec="true"\\nx = 1\\n~~~\\n')
        >>> [(f.line, f.first, f.end, f.code) for f in page.blocks]
        [(3, 4, 5, 'x = 1')]
    """
    text, undecodable = decoded(path, data)
    if undecodable:
        return Chapter(path, "", (), None, (), (), tuple(undecodable))
    lines = tuple(line.removesuffix("\r") for line in text.split("\n"))
    scanner = _Scanner(path, lines)
    scanner.run()
    return Chapter(
        path, "\n".join(lines), lines, scanner.front, tuple(scanner.fences), tuple(scanner.prose),
        tuple(scanner.problems),
    )  # fmt: skip


class _Scanner:
    """One pass over the lines; each is front matter, fence, comment or prose."""

    def __init__(self, path: str, lines: tuple[str, ...]) -> None:
        self.path = path
        self.lines = lines
        self.front: str | None = None
        self.fences: list[Fence] = []
        self.prose = [""] * len(lines)
        self.problems: list[Problem] = []
        self.open = 0  # how many containers (list items, admonitions, tabs, footnotes) are open
        self.blank = True  # whether the line before was blank
        self.rough = (
            False  # whether a line since the last blank one is quoted, or deeper than what is open
        )

    def report(self, index: int, reason: str) -> None:
        self.problems.append(Problem(self.path, index + 1, reason, self.lines[index].strip()))

    def run(self) -> None:
        for index, line in enumerate(self.lines):
            if "\r" in line:
                self.report(index, "a carriage return inside a line; end lines with a line feed")
            if "\x02" in line or "\x03" in line:
                self.report(index, "a control character that Markdown reserves; remove it")
        index = self.front_matter()
        while index < len(self.lines):
            index = self.step(index)

    def front_matter(self) -> int:
        if not _FRONT.match(self.lines[0]):
            return 0
        for index in range(1, len(self.lines)):
            if _FRONT_END.match(self.lines[index]):
                self.front = "".join(line + "\n" for line in self.lines[1:index])
                return index + 1
        self.report(0, "front matter without an end; close it with a line of three hyphens")
        return 0

    def step(self, index: int) -> int:
        """Reads what begins on this line and returns the index of the line after it."""
        line = self.lines[index].expandtabs(TAB)
        prefix, content = _split(line)
        crowded = self.rough and not self.blank and ">" not in prefix
        hidden = self.containers(prefix, content)
        opening = _opening(content)
        if opening is None:
            return self.text(index, line, content)
        if hidden:
            self.report(
                index,
                "a fence indented like code is not a fence; indent it no more than what holds it",
            )
        elif crowded:
            self.report(index, "a fence below indented or quoted lines needs a blank line above it")
        return self.fence(index, prefix, *opening, quiet=hidden or crowded)

    # Fences

    def fence(self, index: int, prefix: str, mark: str, info: str, *, quiet: bool) -> int:
        """Reads a fence to its end; `quiet` if it is known not to count."""
        language, options, reasons = _parse_info(info)
        if not quiet:
            for reason in reasons:
                self.report(index, reason)
        code: list[str] = []
        closing = re.compile(re.escape(mark) + r"[ \t]*$")
        quotes, width = prefix.count(">"), len(prefix)
        end = broken = None
        for n in range(index + 1, len(self.lines)):
            space, content = _cut(self.lines[n].expandtabs(TAB), width)
            outside = space.count(">") != quotes or len(space) != width
            if closing.match(content) and not outside:
                end = n
                break
            if broken is None and outside and (content or space.count(">") != quotes):
                broken = n
            if broken is not None and closing.match(self.lines[n].lstrip(" \t>")):
                end = n  # closed at another depth: it is no fence, but clearly ends here
                break
            code.append(content if not outside else "")
        if broken is not None:
            if not quiet:
                self.report(
                    broken, f"this line leaves the fence of line {index + 1}, which thereby is none; "
                    "indent (and quote) all its lines like its first"
                )  # fmt: skip
            self.blank = False
            return (broken if end is None else end) + 1
        if end is None:
            self.report(
                index, f"this fence is never closed; end it with {mark} at the same indentation"
            )
            return len(self.lines)
        self.blank = False
        if quiet or reasons:
            return end + 1
        snippets = [n for n, line in enumerate(code, index + 1) if _SNIPPET.match(line)]
        if "exec" in options and snippets:
            for n in snippets:
                self.report(
                    n, "a snippet inside an executed fence; write the code out or import it"
                )
            return end + 1
        self.fences.append(
            Fence(index + 1, index + 2, end + 1, language, options, "\n".join(code), width)
        )
        return end + 1

    # Prose

    def text(self, index: int, line: str, content: str) -> int:
        """Records a line of prose, without its comments; a comment may run over many lines."""
        if (item := _ITEM.match(content)) and (opening := _opening(content[item.end() :])):
            self.report(
                index, "a fence must begin its line; put it on the line below, indented by four"
            )
            for n in range(index + 1, len(self.lines)):
                if self.lines[n].strip() == opening[0]:  # meant as its end, and no fence's beginning
                    return n + 1
        self.blank = not content
        if _SNIPPET.match(line):
            self.report(index, "a snippet outside a fence; its text would not be checked")
            return index + 1
        if "<!--" not in line:
            self.prose[index] = line
            return index + 1
        return self.comment(index, line)

    def comment(self, index: int, line: str) -> int:
        kept, rest = "", line
        while (start := _outside_code(rest, "<!--")) is not None:
            stop = rest.find("-->", start + 4)
            kept += rest[:start]
            if stop < 0:
                return self.long_comment(index, kept)
            kept += " " * (stop + 3 - start)
            rest = rest[stop + 3 :]
        self.prose[index] = kept + rest
        return index + 1

    def long_comment(self, index: int, kept: str) -> int:
        self.prose[index] = kept
        for n in range(index + 1, len(self.lines)):
            line = self.lines[n].expandtabs(TAB)
            opening = _opening(_split(line)[1])
            if opening and re.search(r"\bexec\b", opening[1]):
                self.report(
                    n, "an executed fence inside an HTML comment, where no reader sees it; "
                    "delete one or the other"
                )  # fmt: skip
            if not line.strip() and (kept.strip() or len(kept) >= TAB):
                self.report(
                    index, "a comment with a blank line in it must begin its line, unindented"
                )
                kept = ""
            if "-->" in line:
                after = line.index("-->") + 3
                return self.tail(n, " " * after + line[after:])
        self.report(index, "this comment is never closed; end it with -->")
        return len(self.lines)

    def tail(self, index: int, line: str) -> int:
        """What follows the end of a long comment on its line."""
        if "<!--" in line:
            return self.comment(index, line)
        self.prose[index] = line
        return index + 1

    def containers(self, prefix: str, content: str) -> bool:
        """Follows the containers that are open; whether this line is indented deeper than they hold."""
        if not content:
            return False
        depth = (len(prefix) - (prefix.rfind(">") + 2 if ">" in prefix else 0)) // TAB
        self.rough = depth > self.open or ">" in prefix or (self.rough and not self.blank)
        if depth > self.open:
            return True
        if _CONTAINER.match(content):
            self.open = depth + 1
        elif self.blank:
            self.open = depth
        return False


def _split(line: str) -> tuple[str, str]:
    """A line's indentation and quote marks, and the rest."""
    content = line.lstrip(" >")
    return line[: len(line) - len(content)], content


def _cut(line: str, width: int) -> tuple[str, str]:
    """Up to `width` characters of indentation and quote marks, and the rest."""
    stop = 0
    while stop < min(width, len(line)) and line[stop] in " >":
        stop += 1
    rest = line[stop:]
    return line[:stop], rest if rest.strip() else ""


def _opening(content: str) -> tuple[str, str] | None:
    """The characters and the info text of a fence that this content opens."""
    match = _OPENING.match(content)
    if match is None:
        return None
    mark, info = match["fence"], match["info"]
    if mark[0] == "`" and "`" in re.sub(r"\"[^\"]*\"|'[^']*'", "", info):
        return None  # inline code
    return mark, info


def _outside_code(text: str, what: str) -> int | None:
    """Where `what` first stands outside inline code."""
    for match in re.finditer(r"(`+).*?(?<!`)\1(?!`)|" + re.escape(what), text):
        if match[0] == what:
            return match.start()
    return None


def _parse_info(info: str) -> tuple[str, dict[str, str], list[str]]:
    """Language, options, and what is wrong with them."""
    if info.startswith("{"):
        return _parse_braces(info)
    match = _LANGUAGE.match(info)
    language, rest = (match[1], info[match.end() :]) if match else ("", info)
    options: dict[str, str] = {}
    reasons: list[str] = []
    while rest.strip():
        option = _OPTION.match(rest)
        if option is None:
            word = rest.split()[0]
            reasons.append(f'cannot read the fence option {word}; write each as name="value"')
            break
        name, quote, value = option.groups()
        if name in options:
            reasons.append(f"the fence option {name} is given twice")
        if not quote:
            reasons.append(f'the fence option {name} has no value; write {name}="…"')
        options[name] = value or ""
        rest = rest[option.end() :]
    reasons = [*_language_reasons(language, options), *reasons, *_option_reasons(options)]
    return language, options, reasons


def _parse_braces(info: str) -> tuple[str, dict[str, str], list[str]]:
    if re.search(r"\bexec\b", info):
        return "", {}, ['an executed fence takes its options without braces: ```python exec="true"']
    match = re.fullmatch(r"\{[ \t]*\.([\w#+-]+)((?:[ \t]+[.#][\w-]+)*)[ \t]*\}", info)
    if match is None:
        return "", {}, ["cannot read the attributes of this fence; write {.language .class #id}"]
    return match[1], {}, list(_language_reasons(match[1], {}))


def _language_reasons(language: str, options: dict[str, str]) -> Iterator[str]:
    if language and language not in LANGUAGES:
        yield f"unknown language {language!r} of a fence{_meant(language, LANGUAGES)}"
    elif "exec" in options and language not in RUN:
        yield (
            f"a fence in {language or 'no language'} cannot be executed; "
            f"executed fences are {', '.join(RUN)}"
        )


def _option_reasons(options: dict[str, str]) -> Iterator[str]:
    executed = "exec" in options
    known = (*RUN_OPTIONS, *SHOWN_OPTIONS)
    for name, value in options.items():
        if name not in known:
            yield f"unknown fence option {name!r}{_meant(name, known)}"
        elif not executed and name in RUN_OPTIONS:
            yield f'the fence option {name} is for executed fences; add exec="true" or remove it'
    if executed and options["exec"] and options["exec"].lower() not in TRUE:
        yield f'exec="{options["exec"]}" does not run the block; write exec="true" or remove it'
    if "source" in options and options["source"] not in SOURCES:
        yield f'source="{options["source"]}" is none of {", ".join(SOURCES)}'
    if "result" in options and options["result"] not in LANGUAGES:
        yield f'result="{options["result"]}" is no known language{_meant(options["result"], LANGUAGES)}'
    for name in ("html", "updatetoc"):
        if name in options and options[name].lower() not in TRUE + FALSE:
            yield f'{name}="{options[name]}" is neither true nor false'
    if "id" in options and not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", options["id"]):
        yield f'id="{options["id"]}" must be small letters, digits and single hyphens'


def _meant(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, 1, 0.6)
    return f"; did you mean {close[0]!r}?" if close else f" (known: {', '.join(known)})"
