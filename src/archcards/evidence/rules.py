"""The rules that a page's text and blocks obey beyond running: facts that exist, no typed numerals, no
unmarked equations, ids that occur once, nothing executed from a snippet or a docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .chapter import Chapter
from .numerals import numerals_of
from .problem import Problem
from .prose import FactUse, paragraphs, scan
from .record import Check, Derivation, Event, Fact, Figure, Switch, Table

if TYPE_CHECKING:
    from .book import Page

__all__ = [
    "docstring_problems",
    "exercise_problems",
    "snippet_problems",
    "text_problems",
    "unique_problems",
]

_EXECUTED = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[^\n]*\bexec\b", re.MULTILINE)
_SNIPPET = re.compile(r"[ \t>]*-{1,}8<-{1,}[ \t]+[\"']([^\"']+)[\"']")


def text_problems(page: Page, names: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with every text of a page that a reader sees; `names` may hold a numeral."""
    for fence in page.chapter.fences:
        if any("{{" in value for value in fence.options.values()):
            yield page.chapter.problem(fence.line, "the options of a fence take no facts")
    notes: list[tuple[str, bool, int]] = []
    for text, lines, prose in _texts(page):
        found = scan(text, lists=prose)

        def problem(position: int, reason: str, text: str = text, lines: range = lines) -> Problem:
            return page.chapter.problem(_line(page.chapter, text, position, lines), reason)

        for use in found.facts:
            if reason := _fact_problem(page, use):
                yield problem(use.start, reason)
        for position in found.stray:
            yield problem(
                position, "{{ begins no fact; write {{ name }} or {{ name:format}}, with the spaces"
            )
        for numeral in numerals_of(found, names):
            yield problem(numeral.start, numeral.reason)
        for position in found.displayed:
            line = _line(page.chapter, text, position, lines)
            if not _in_definition(page.chapter, line):
                yield page.chapter.problem(
                    line,
                    'a displayed equation is proved by derive(...) or stands in a !!! definition "Name"',
                )
        for match in re.finditer(r"\$\$", found.text):
            yield problem(match.start(), "$$ without its partner in the same paragraph")
        if prose:
            for position, label, defined in found.footnotes:
                notes.append((label, defined, _line(page.chapter, text, position, lines)))
    yield from _footnote_problems(page.chapter, notes)


def _footnote_problems(
    chapter: Chapter, notes: Sequence[tuple[str, bool, int]]
) -> Iterator[Problem]:
    """Footnotes that the text calls and the page lacks, and the other way round."""
    called, given = ({label for label, defined, _ in notes if defined == d} for d in (False, True))
    for label, defined, line in notes:
        if not defined and label not in given:
            yield chapter.problem(line, f"the page has no footnote {label}")
        if defined and label not in called:
            yield chapter.problem(line, f"nothing refers to the footnote {label}")


def _texts(page: Page) -> Iterator[tuple[str, range, bool]]:
    """Each text that a reader sees, the lines it spans (one if it is no text of the page's own), and
    whether it is a paragraph of prose."""
    for first, last, text in page.front.texts:
        yield text, range(first, last + 1), False
    for line, text in paragraphs(page.chapter.prose):
        yield text, range(line, line + text.count("\n") + 1), True
    for fence in page.chapter.fences:
        for name in ("title", "tabs"):
            if name in fence.options and "{{" not in fence.options[name]:
                yield fence.options[name], range(fence.line, fence.line + 1), False
    for event in page.events:
        for text in _event_texts(event):
            yield text.replace("\n", " "), range(event.line, event.line + 1), False


def _line(chapter: Chapter, text: str, position: int, lines: range) -> int:
    """The line of the page on which a position of a text stands."""
    if text.rstrip("\n").count("\n") == len(lines) - 1:
        return lines[text.count("\n", 0, position)]
    # A text of the front matter, folded: its words stand in order on the lines it spans.
    word = re.match(r"[^\s]+", text[position:])
    before = text[:position].count(word[0]) if word else 0
    for line in lines:
        held = chapter.source(line).count(word[0]) if word else 0
        if before < held:
            return line
        before -= held
    return lines[0]


def _event_texts(event: Event) -> Iterable[str]:
    match event:
        case Check():
            return [event.claim, event.because or "", *(mistake.name for mistake in event.controls)]
        case Derivation():
            return [event.title, *(step.reason for step in event.steps)]
        case Table():
            return [event.caption, *event.columns]
        case Figure():
            return [event.alt, event.caption]
        case Switch():
            return [event.caption]
        case Fact():
            return [event.unit or ""]
    return []


def _fact_problem(page: Page, use: FactUse) -> str | None:
    try:
        page.format(use.name, use.spec)
    except KeyError as error:
        if not page.run.complete and "." not in use.name:
            return None  # a block that did not run may define it
        return str(error.args[0])
    except ValueError as error:
        return str(error)
    return None


def _in_definition(chapter: Chapter, line: int) -> bool:
    """Whether a line lies in a `definition` admonition, however deep."""
    depth = _indentation(chapter.source(line))
    for n in range(line - 1, 0, -1):
        text = chapter.source(n)
        if text.strip() and _indentation(text) < depth:
            depth = _indentation(text)
            if re.match(r"[ >]*(?:!!!|\?\?\?\+?)[ ]+definition\b", text.expandtabs(4)):
                return True
    return False


def _indentation(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip(" >"))


def exercise_problems(page: Page) -> Iterator[Problem]:
    """Exercises (sections whose heading begins so) without a block that checks their solution."""
    if not page.run.complete:
        return
    headings = [
        (n, len(match[1]), match[2])
        for n, line in enumerate(page.chapter.prose, 1)
        if (match := re.match(r"(#{1,6})[ ]+(.*)", line))
    ]
    checked = {
        b.fence.line for b in page.blocks if any(isinstance(event, Check) for event in b.events)
    }
    for index, (line, depth, title) in enumerate(headings):
        if re.match(r"Exercise\b", title, re.IGNORECASE):
            end = next(
                (n for n, d, _ in headings[index + 1 :] if d <= depth), len(page.chapter.lines) + 1
            )
            if not any(line < n < end for n in checked):
                yield page.chapter.problem(
                    line, "this exercise has no solution that a check verifies"
                )


def unique_problems(chapters: Sequence[Chapter]) -> Iterator[Problem]:
    """Ids that occur twice in the book, and sessions that are not one to a page."""
    ids: dict[str, str] = {}
    sessions: dict[str, str] = {}
    for chapter in chapters:
        first = next(
            (fence.options.get("session", "") for fence in chapter.blocks if fence.executed), ""
        )
        for fence in chapter.blocks:
            where = f"{chapter.path}:{fence.line}"
            if fence.id and (before := ids.setdefault(fence.id, where)) != where:
                yield chapter.problem(
                    fence.line, f'id="{fence.id}" is also the id of the block at {before}'
                )
            session = fence.options.get("session", "")
            if fence.executed and session != first:
                yield chapter.problem(
                    fence.line,
                    f'session="{session}" differs from the page\'s first, "{first}"; a page is one session',
                )
            if session and (page := sessions.setdefault(session, chapter.path)) != chapter.path:
                yield chapter.problem(
                    fence.line,
                    f'session="{session}" is the session of {page}; name it after this page',
                )


def snippet_problems(chapter: Chapter, folders: Sequence[Path]) -> Iterator[Problem]:
    """Files shown in a fence by a snippet that are missing or would execute something."""
    for fence in chapter.fences:
        for n, line in enumerate(fence.code.split("\n"), fence.first):
            if not (match := _SNIPPET.match(line)):
                continue
            name = re.sub(r"(?<=.)(?::[\w,:-]*)$", "", match[1])
            file = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if file is None:
                yield chapter.problem(n, f"the snippet {name} does not exist")
            elif _EXECUTED.search(file.read_text("utf-8", "replace")):
                yield chapter.problem(
                    n, f"the snippet {name} holds an executed fence; move it into the chapter"
                )


def docstring_problems(root: Path) -> Iterator[Problem]:
    """Executed fences in the docstrings under `src`: the API pages would run them unseen."""
    for file in sorted((root / "src").rglob("*.py")):
        data = file.read_bytes()
        text = data.decode("utf-8", "replace")
        if not _EXECUTED.search(text):
            continue
        path, lines = file.relative_to(root).as_posix(), text.split("\n")
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            yield Problem(path, line, f"cannot be read: {error.args[0]}", lines[line - 1].strip())
            continue
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            for statement in body if isinstance(body, list) else []:
                if not (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                ):
                    continue
                if isinstance(statement.value.value, str):
                    for n in range(
                        statement.lineno, (statement.end_lineno or statement.lineno) + 1
                    ):
                        if _EXECUTED.match(lines[n - 1]):
                            reason = "an executed fence in a docstring; write a doctest or move it into a chapter"
                            yield Problem(path, n, reason, lines[n - 1].strip())
