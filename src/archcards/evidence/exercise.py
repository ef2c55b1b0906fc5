"""Exercises that grade themselves: the solution travels with its exercise, packed out of sight.

A notebook of exercises holds for each the statement, a cell for the answer, and a call of `grade`. The
answer is held against the solution and against each of the solution's named mistakes, so that a wrong
answer is told which mistake it is.
"""

from __future__ import annotations

import base64
import copy
import json
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .comparison import NotComparable, compare, numbers
from .quote import quoting
from .record import Check, CheckFailed, recording

__all__ = ["Grade", "grade", "seal", "unseal"]

_PAGE = "exercise"
_WIDTH = 100
_TOLERANCE = 1e-9  # an answer may be computed in another order than the solution's


@dataclass(frozen=True)
class Grade:
    """A right answer, and what it shows."""

    title: str
    claim: str

    def __repr__(self) -> str:
        return f"✓ {self.title}: right. {self.claim}"


def seal(title: str, code: str, name: str = "") -> str:
    """Packs a solution: plain text that does not give itself away.

    Args:
        title: what the exercise is called.
        code: a block that ends in a check, and runs where the exercise's cells have run.
        name: the function that the answer replaces; without one the answer is the value of the check.

    Example:
        >>> unseal(seal("Add", "total = 1 + 2"))["code"]
        'total = 1 + 2'
    """
    data = json.dumps({"title": title, "code": code, "name": name}, ensure_ascii=False).encode()
    text = base64.b64encode(data).decode()
    return "\n".join(text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH))


def unseal(sealed: str) -> dict[str, str]:
    """What `seal` packed: title, code and name."""
    return json.loads(base64.b64decode(sealed).decode())


def grade(answer: Any, sealed: str, namespace: Mapping[str, Any] | None = None) -> Grade:
    """Grades an answer.

    Args:
        answer: a value, or the function that the exercise asks for.
        sealed: the solution, as `seal` packed it.
        namespace: names that the solution uses; those of the caller unless given.

    Raises:
        CheckFailed: the answer is missing or wrong. The message says how far off it is, and which
            mistake gives the same.

    Example:
        >>> import numpy as np
        >>> solution = '''
        ... from archcards.evidence import check
        ... size = np.arange(1, 5).size
        ... check("A triangle of four", size * (size + 1) // 2, 1 + 2 + 3 + 4,
        ...       controls={"the diagonal is forgotten": lambda: size * (size - 1) // 2})
        ... '''
        >>> grade(10, seal("Triangle", solution))
        ✓ Triangle: right. A triangle of four
        >>> grade(6, seal("Triangle", solution))
        Traceback (most recent call last):
        archcards.evidence.record.CheckFailed: Triangle: off by 4. It is what one gets by this mistake: the diagonal is forgotten
    """
    packed = unseal(sealed)
    title = packed["title"]
    if answer is None or answer is ...:
        raise CheckFailed(f"{title}: there is no answer yet")
    names = dict(sys._getframe(1).f_globals if namespace is None else namespace)
    for name, value in names.items():
        if isinstance(value, np.random.Generator):
            names[name] = copy.deepcopy(value)  # grading twice draws the same
    if packed["name"]:
        names[packed["name"]] = answer
    for check in _checks(packed["code"], names, title):
        value = check.actual if packed["name"] else answer
        _held_against(check, value, title)
        if not packed["name"]:
            return Grade(title, check.claim)
    return Grade(title, check.claim)


def _checks(code: str, names: dict[str, Any], title: str) -> list[Check]:
    lines = code.splitlines(keepends=True)
    linecache.cache[_PAGE] = (len(code), None, lines, _PAGE)
    try:
        with recording(_PAGE, quotes=quoting()) as recorder:
            exec(compile(code, _PAGE, "exec"), names)  # noqa: S102  it is the reader's own notebook
    except CheckFailed:
        raise
    except Exception as error:
        raise CheckFailed(f"{title}: it stops with {type(error).__name__}: {error}") from error
    finally:
        linecache.cache.pop(_PAGE, None)
    checks = [event for event in recorder.events if isinstance(event, Check)]
    return [check for check in checks if check.relation == "=="]


def _held_against(check: Check, value: Any, title: str) -> None:
    try:
        answer = numbers("the answer", value)
        error = compare(answer, check.expected, "the answer", allow_infinite=True)
    except NotComparable as reason:
        raise CheckFailed(f"{title}: {reason}") from None
    if error.error is not None and error.error <= _TOLERANCE:
        return
    same = [mistake.name for mistake in check.controls if _same(answer, mistake.value)]
    told = f" It is what one gets by this mistake: {same[0]}" if same else ""
    raise CheckFailed(f"{title}: off by {error.shown}.{told}")


def _same(answer: np.ndarray, mistake: Any) -> bool:
    try:
        error = compare(answer, numbers("the mistake", mistake), allow_infinite=True).error
    except NotComparable:
        return False
    return error is not None and error <= _TOLERANCE
