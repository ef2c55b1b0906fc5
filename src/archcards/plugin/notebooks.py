"""A chapter to take away: as a notebook, as plain Python, and its exercises with and without answers.

A notebook is written as JSON here, by the published format (nbformat 4.5), so that the same chapter
gives the same bytes.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from textwrap import wrap
from typing import Any

from archcards.evidence.chapter import Fence
from archcards.evidence.exercise import seal
from archcards.evidence.prose import FactUse, substitute
from archcards.evidence.record import Check

from . import facts
from .book import BookPage

__all__ = ["Cell", "Takeaway", "notebook"]

_CONTAINER = re.compile(r'(?:!!!|\?\?\?\+?) (?P<kind>[\w-]+)(?: "(?P<title>[^"]*)")?\s*$')
_LINK = re.compile(r"\]\((?![a-z]+:)([^()\s]+)\)")
_HEADING = re.compile(r"(?P<level>#{1,6}) (?P<text>.+?)(?:\s*\{[^{}]*\})?\s*$")
_ANSWER = re.compile(r"^# answer: (.+?) *# markdown-exec: hide$", re.M)
"""In a solution, out of sight on the page: what kind of value answers the exercise, in which unit and shape."""
_FIELDS = {
    "changed_component": "What changes.",
    "invariant_core": "What stays.",
    "analytical_consequence": "What follows by algebra.",
    "empirical_source_boundary": "Where the algebra ends.",
    "later_subject": "What comes later.",
}


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook; `folded` code is run without being in the way."""

    name: str
    source: str
    code: bool = False
    folded: bool = False
    graded: str = ""  # `answer` or `check`, as teachers' tools call them


@dataclass(frozen=True)
class Takeaway:
    """One chapter on its way out of the site.

    `url` is the chapter's address, `wheel` that of the package; `link` gives the address of a page
    by its path under `docs`.
    """

    page: BookPage
    title: str
    url: str
    wheel: str
    link: Callable[[str], str | None] = field(repr=False)

    # What there is to take

    def notebook(self) -> str:
        """The chapter, top to bottom."""
        return notebook([*self._opening(), *self._cells(*self._span())])

    def markdown(self) -> str:
        """The chapter's text with its numbers and its code, for those who read no HTML."""
        return self._joined([*self._opening(install=False), *self._cells(*self._span())])

    def script(self) -> str:
        """The code of the chapter's blocks, in order, under its headings."""
        page = self.page
        about = [f"{self.title}", "", f"The code of {self.url}, in the order of the page.",
                 f"Needs the package: pip install {self.wheel}", "Licence: MIT."]
        pieces = ["\n".join(f"# {line}".rstrip() for line in about)]
        if quotes := self._quotes():
            pieces.append(quotes.source.rstrip())
        headings = list(self._headings())
        for fence in page.proved.chapter.blocks:
            while headings and headings[0][0] < fence.line:
                _, level, text = headings.pop(0)
                if level == 2 or text.startswith("Exercise"):
                    pieces.append(f"# %% {self._resolved(text)}")
            pieces.append(f"# {page.path}, line {fence.first}\n{_code(fence)}")
        return "\n\n".join(pieces) + "\n"

    def exercises(self) -> str:
        """The exercises as a sheet: no solutions."""
        cells = [cell for cell, _ in self._exercises()]
        heading = Cell("sheet", f"# Exercises: {self.title}\n\nThe chapter and the solutions: <{self.url}>")
        return self._joined([heading, *(one for group in cells for one in group)])

    def graded(self) -> str:
        """The exercises as a notebook that grades the answers."""
        start, end = self._section("Exercises") or (0, 0)
        heading = (
            f"# Exercises: {self.title}\n\n"
            f"The chapter and its solutions: <{self.url}>. Each exercise has a cell for your answer and one "
            "that grades it: it holds your answer against the solution and against the mistakes that the "
            "chapter knows, and names the one you made. The solution is packed in that cell so that it does "
            "not give itself away; `unseal` in `archcards.evidence.exercise` shows it."
        )
        cells = [Cell("sheet", heading), self._install()]
        cells += filter(None, [self._quotes()])
        before = [fence for fence in self.page.proved.chapter.blocks if fence.line < start]
        cells.append(Cell("setup-text", "Run this first: the code of the chapter, on which the exercises build."))
        cells.append(Cell("setup", "\n\n".join(map(_code, before)), code=True, folded=True))
        cells.append(Cell("setup-grade", "from archcards.evidence.exercise import grade", code=True))
        solved: list[str] = []
        for number, (statement, solution) in enumerate(self._exercises(), 1):
            cells += statement
            if solution is None:
                continue
            title = _title(statement[0].source) or f"Exercise {number}"
            asked = _asked(title, solution, self._resolved, _needed(_code(solution[0]), solved))
            solved.append(_code(solution[0]))
            if asked:
                stub, packed, name = asked
                cells.append(Cell(f"answer-{number}", stub, code=True, graded="answer"))
                check = f'grade({name}, """\n{packed}\n""")'
                cells.append(Cell(f"check-{number}", check, code=True, folded=True, graded="check"))
        return notebook(cells)

    @property
    def has_exercises(self) -> bool:
        return self._section("Exercises") is not None

    # Its pieces

    def _opening(self, install: bool = True) -> list[Cell]:
        card = self.page.proved.card
        rows = [f"**{label}** {getattr(card, name)}" for name, label in _FIELDS.items()] if card else []
        about = f"*A chapter of [Architecture Cards]({self.url}). Text: CC BY 4.0. Code: MIT.*"
        text = "\n\n".join([f"# {self.title}", about, *(f"> {row}" for row in rows)])
        cells = [Cell("card", self._resolved(self._absolute(text)))]
        if install:
            cells.append(self._install())
            cells += filter(None, [self._quotes()])
        return cells

    def _install(self) -> Cell:
        return Cell("install", f"%pip install --quiet {self.wheel}", code=True)

    def _quotes(self) -> Cell | None:
        """What the chapter's code quotes, as a cell: a notebook has no list of sources to read."""
        code = "\n".join(map(_code, self.page.proved.chapter.blocks))
        printed = {
            source.key: source.printed
            for source in self.page.proved.sources.values()
            if f"{source.key}." in code
        }
        if not printed:
            return None
        rows = "".join(f"    {key!r}: {values!r},\n" for key, values in printed.items())
        text = f"# Numbers that the chapter's sources print.\nfrom archcards.evidence.quote import quoting\n\n"
        return Cell("quoted", f"{text}_ = quoting({{\n{rows}}})", code=True, folded=True)

    def _span(self) -> tuple[int, int]:
        """The lines after the title, which `_opening` has."""
        lines = self.page.lines
        first = next((line for line, level, _ in self._headings() if level == 1), 0)
        if not first and self.page.proved.chapter.front is not None:
            first = next(n for n, line in enumerate(lines[1:], 2) if re.match(r"(---|\.\.\.)\s*$", line))
        return first + 1, len(lines) + 1

    def _headings(self) -> Iterator[tuple[int, int, str]]:
        """Line, level and text of each heading."""
        for number, line in enumerate(self.page.proved.chapter.prose, 1):
            if found := _HEADING.match(line):
                yield number, len(found["level"]), found["text"]

    def _section(self, name: str) -> tuple[int, int] | None:
        """The first line of a section, and the line after its last."""
        seconds = [(line, text) for line, level, text in self._headings() if level == 2]
        for place, (line, text) in enumerate(seconds):
            if text == name:
                after = seconds[place + 1][0] if place + 1 < len(seconds) else len(self.page.lines) + 1
                return line, after
        return None

    def _cells(self, start: int, end: int, *, solutions: bool = True) -> list[Cell]:
        """The lines from `start` to before `end` as cells; `solutions` are what is folded away."""
        cells: list[Cell] = []
        text: list[str] = []
        begun = start

        def close(line: int) -> None:
            nonlocal begun
            source = _flat(text).strip("\n")
            if source.strip():
                cells.append(Cell(f"text-{begun}", self._resolved(self._absolute(source))))
            text.clear()
            begun = line

        lines, line = self.page.lines, start
        fences = {fence.line: fence for fence in self.page.proved.chapter.blocks}
        while line < end:
            fence = fences.get(line)
            if not solutions and re.match(r"\?\?\?", lines[line - 1]):
                line += 1
                while line < end and (not lines[line - 1].strip() or lines[line - 1].startswith("    ")):
                    line += 1
                continue
            if fence is None:
                text.append(lines[line - 1])
                line += 1
                continue
            close(fence.end + 1)
            shown = bool(fence.options.get("source")) or fence.transcript
            name = fence.id or f"code-{fence.line}"
            cells.append(Cell(name, _code(fence), code=True, folded=not shown))
            line = fence.end + 1
        close(end)
        return cells

    def _exercises(self) -> Iterator[tuple[list[Cell], tuple[Fence, list[Check]] | None]]:
        """The statement of each exercise, and its solution: the block and the checks that it holds."""
        section = self._section("Exercises")
        if section is None:
            return
        starts = [line for line, level, _ in self._headings() if level == 3 and section[0] < line < section[1]]
        for start, end in zip(starts, [*starts[1:], section[1]], strict=True):
            solution = None
            for block in self.page.proved.blocks:
                checks = [event for event in block.events if isinstance(event, Check)]
                inside = start < block.fence.line < end and block.fence.indent
                if inside and any(check.relation == "==" for check in checks):
                    solution = block.fence, checks
            yield self._cells(start, end, solutions=False), solution

    def _resolved(self, text: str) -> str:
        """The text with its numbers."""
        values = self.page.values()

        def shown(use: FactUse) -> str:
            written = text[use.start : use.end]
            number = facts.plain(written, values)
            return facts.in_tex(number) if use.tex and number != written else number

        return substitute(text, shown)

    def _absolute(self, text: str) -> str:
        """The text with links that lead to the site from anywhere."""

        def change(found: re.Match[str]) -> str:
            path, _, anchor = found[1].partition("#")
            target = normpath(join(dirname(self.page.src_uri), path)) if path else self.page.src_uri
            address = self.link(target)
            return f"]({address}{'#' + anchor if anchor else ''})" if address else found.group()

        return _LINK.sub(change, text)

    def _joined(self, cells: list[Cell]) -> str:
        shown = (f"```python\n{cell.source}\n```" if cell.code else cell.source for cell in cells)
        return "\n\n".join(shown) + "\n"


def notebook(cells: list[Cell]) -> str:
    """A notebook of format 4.5 as JSON."""
    made = []
    for number, cell in enumerate(cells, 1):
        metadata: dict[str, Any] = {}
        if cell.folded:
            metadata["jupyter"] = {"source_hidden": True}
        if cell.graded:
            check = cell.graded == "check"
            metadata["nbgrader"] = {
                "grade": check, "grade_id": cell.name, "locked": check, "schema_version": 3,
                "solution": not check, "task": False, **({"points": 1} if check else {}),
            }  # fmt: skip
        entry = {
            "cell_type": "code" if cell.code else "markdown",
            "id": cell.name[:56] if len(cell.name) <= 56 else f"{cell.name[:56]}-{number}",
            "metadata": metadata,
            "source": cell.source.splitlines(keepends=True),
        }
        if cell.code:
            entry |= {"execution_count": None, "outputs": []}
        made.append(entry)
    whole = {
        "cells": made,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _code(fence: Fence) -> str:
    """The code of a block: of a transcript, what was typed."""
    if fence.transcript:
        typed = doctest.DocTestParser().get_examples(fence.code)
        return "".join(example.source for example in typed).rstrip("\n")
    kept = (line for line in fence.code.split("\n") if "markdown-exec: hide" not in line)
    return "\n".join(kept).strip("\n")


def _flat(lines: list[str]) -> str:
    """Markdown that every reader understands: boxes become paragraphs under their titles."""
    flat, inside = [], False
    for line in lines:
        if found := _CONTAINER.match(line):
            title = found["title"] if found["title"] is not None else found["kind"].capitalize()
            if found["kind"] == "definition":
                title = f"Definition: {title}"
            flat.append(f"**{title}.**")
            inside = True
        elif inside and (line.startswith("    ") or not line.strip()):
            flat.append(line.removeprefix("    "))
        else:
            inside = False
            flat.append("" if re.fullmatch(r"<div [^>]*></div>", line.strip()) else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(flat))


def _title(source: str) -> str:
    found = re.match(r"#+ (?:Exercise: )?(.+)", source)
    return found[1].strip().capitalize() if found else ""


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _needed(code: str, earlier: list[str]) -> str:
    """Those of the earlier solutions that define a name which this one uses."""
    wanted, kept = _names(ast.parse(code)), []
    for one in reversed(earlier):
        tree = ast.parse(one)
        made = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        made |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if made & wanted:
            kept.insert(0, one)
            wanted |= _names(tree)
    return "\n".join(kept)


def _asked(
    title: str, solution: tuple[Fence, list[Check]], resolved: Callable[[str], str], earlier: str
) -> tuple[str, str, str] | None:
    """What an exercise asks for: the cell to fill in, the packed solution, and what the answer is called.

    Where the solution is a function that its check alone calls, the answer is that function; else it
    is the value that the first check claims.
    """
    fence, checks = solution
    code = _code(fence)
    tree = ast.parse(code)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_check(node)]
    calls.sort(key=lambda call: call.lineno)
    if not calls:
        return None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    first = calls[0]
    elsewhere = set().union(*(_names(part) for call in calls for part in [*call.args[2:], *call.keywords]))
    elsewhere |= set().union(*(_names(call.args[1]) for call in calls[1:]), set())
    elsewhere |= set().union(*(_names(node) for node in functions.values()))
    asked = [name for name in functions if name in _names(first.args[1]) and name not in elsewhere]
    if len(asked) == 1:
        [name] = asked
        node = functions[name]
        signature = ast.unparse(node.args)
        lines = code.split("\n")
        rest = "\n".join([*lines[: node.lineno - 1], *lines[node.end_lineno :]])
        stub = f"def {name}({signature}):\n    ..."
        return stub, seal(title, f"{earlier}\n{rest}".strip("\n"), name), name
    claim = next(check.claim for check in checks if check.relation == "==")
    told = [f"The value for which this holds: {resolved(claim)}."]
    told += [f"Wanted: {wanted}." for wanted in _ANSWER.findall(fence.code)]
    comment = "\n".join(f"# {line}" for sentence in told for line in wrap(sentence, 86))
    return f"{comment}\nanswer = ...", seal(title, f"{earlier}\n{code}".strip("\n")), "answer"


def _is_check(node: ast.Call) -> bool:
    """Whether it is a check of an equality."""
    named = isinstance(node.func, ast.Name) and node.func.id == "check"
    relation = [keyword.value for keyword in node.keywords if keyword.arg == "relation"]
    return named and len(node.args) > 2 and not any(
        isinstance(value, ast.Constant) and value.value != "==" for value in relation
    )
