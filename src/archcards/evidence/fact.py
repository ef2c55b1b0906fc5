"""`fact`: a number with a name, computed by code, for prose to refer to."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .calls import Call, never_computed
from .record import Fact, current_recorder

__all__ = ["fact"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def fact(name: str, value: Any, *, unit: str | None = None, given: bool = False) -> Any:
    """Registers a value under a name, so that prose can say `{{ name }}`, and returns it.

    A value that was typed, not computed, is refused: it is no fact but a choice of the text, and
    `given=True` says so to the reader.

    Args:
        name: lower case letters, digits and underscores; once on a page.
        value: an integer, a finite real number, a truth value or a word; NumPy's scalars as well.
        unit: of the value, such as `bytes`.
        given: whether the value is a choice of the text.

    Returns:
        The value, as a plain Python one.

    Raises:
        ValueError: it cannot be accepted, outside a page. On a page that is recorded as a failure.

    Example:
        >>> fact("causal_edges", sum(range(1, 9)))
        36
        >>> fact("length", 8, given=True)
        8
    """
    recorder = current_recorder()
    call = recorder.call()
    reason = _bad_argument(name, value, unit, given)
    if reason is None and not given and _typed(call):
        reason = f"the fact {name} is typed, not computed: compute it, or say given=True"
    if reason is None:
        before = recorder.first_line("fact", name, call.line)
        if before is not None:
            reason = f"the fact {name} was defined before, on line {before}: choose another name"
    if reason is not None:
        recorder.refuse(reason)
        return value
    plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
    recorder.emit(
        Fact(line=call.line, name=name, value=plain, repr=repr(plain), unit=unit, given=bool(given))
    )
    return plain


def _bad_argument(name: Any, value: Any, unit: Any, given: Any) -> str | None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"a fact's name is lower case letters, digits and underscores, and it is {name!r}"
    if unit is not None and (not isinstance(unit, str) or not unit.strip()):
        return f"the fact {name}: unit must be a word, and it is {unit!r}"
    if not isinstance(given, bool):
        return f"the fact {name}: given must be True or False, and it is {given!r}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"the fact {name} must be one value, and it is an array of shape {value.shape}"
    plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
    if not isinstance(plain, int | float | str):
        return f"the fact {name} must be a number or a word, and it is {type(value).__name__}"
    if isinstance(plain, float) and not math.isfinite(plain):
        return f"the fact {name} must be a finite number, and it is {plain}"
    if isinstance(plain, str) and not plain.strip():
        return f"the fact {name} is an empty word"
    return None


def _typed(call: Call) -> bool:
    """Whether the value in the call is made of literals only, or a name that only ever holds one."""
    if call.node is None:
        return False
    value = call.node.args[1] if len(call.node.args) > 1 else None
    value = next((k.value for k in call.node.keywords if k.arg == "value"), value)
    if value is None:
        return False
    return never_computed(value, call.tree)
