"""`check`: a claim that holds, and mistakes that would have broken it.

An equality that no mistake can break says nothing. So a check takes *controls*, each of which
recomputes the claim with one named mistake, and it passes only if the claim holds and every control
is off by far more than rounding.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from .calls import Call, is_typed, never_computed
from .comparison import shared
from .record import Check, CheckFailed, current_recorder
from .verdict import NOTHING, RELATIONS, Judge

__all__ = ["check"]

WIDEST_TOLERANCE = 1e-6
_OTHERWISE = "compute the expected value in another way"


def check(
    claim: str,
    actual: Any,
    expected: Any,
    *,
    tolerance: float = 1e-11,
    controls: Mapping[str, Callable[[], Any]],
    relation: str = "==",
    allow_infinite: bool = False,
    because: str | None = None,
) -> Check:
    r"""Asserts a claim, and that each control breaks it.

    The error is the largest absolute difference, relative to the largest expected magnitude where
    that exceeds 1,
    $$\mathrm{error} = \frac{\max |actual - expected|}{\max(1, \max |expected|)},$$
    and has to stay below `tolerance`; a control has to be off by 1000 tolerances or more, or NaN, or
    infinite. Integers and truth values are compared exactly. The relations `<` and `>` hold between
    all entries, by more than the tolerance; `!=` means different by 1000 tolerances; their controls
    have to violate them.

    Args:
        claim: what is claimed, a sentence that occurs once on a page.
        actual: what was computed: a real number or an array, on memory of its own.
        expected: the same shape, from elsewhere.
        tolerance: positive; above 1e-6 only with `because`.
        controls: a mistake's name to a function without arguments that gives what `actual` would be
            with the mistake, in the same shape. A control that raises recomputes nothing.
        relation: `==`, `!=`, `<` or `>`, read from actual to expected.
        allow_infinite: infinities may occur, in the same places and with the same signs.
        because: why so wide a tolerance is right; readers see it.

    Returns:
        What held, and what became of each control.

    Raises:
        CheckFailed: it does not hold, outside a page. On a page the failure is recorded.

    Example:
        >>> import numpy as np
        >>> scores = np.log([1.0, 2.0, 5.0])
        >>> check("the weights are the normalised exponentials",
        ...       np.exp(scores) / np.exp(scores).sum(), [0.125, 0.25, 0.625],
        ...       controls={"base 2": lambda: 2**scores / (2**scores).sum()})
        ✓ the weights are the normalised exponentials (within 1e-11)
            base 2: off by 0.087, caught
    """
    recorder = current_recorder()
    call = recorder.call()
    reasons = _bad_arguments(claim, tolerance, relation, because, controls)
    if isinstance(claim, str):
        before = recorder.first_line("claim", claim, call.line)
        if before is not None:
            reasons.append(f"the claim was made before, on line {before}: it occurs once on a page")
    if shared(actual, expected):
        reasons.append(f"both sides are the same object or memory: {_OTHERWISE}")
    reasons += _vouches_for_itself(call, actual)

    judge, outcome, judged = None, NOTHING, []
    if not reasons:
        judge = Judge(relation, tolerance, expected, allow_infinite=allow_infinite)
        outcome, reasons = judge.claim(actual)
        if judge.expected is not None:
            judged = [judge.control(name, control) for name, control in controls.items()]
            reasons += [reason for _, found in judged for reason in found]
    within = None if outcome.exact or relation in ("<", ">") else _plain_float(tolerance)
    result = Check(
        line=call.line, first=call.first, last=call.last, claim=str(claim), passed=not reasons,
        error=outcome.error, tolerance=within, relation=str(relation),
        because=because if isinstance(because, str) else None,
        reasons=tuple(" ".join(reason.split()) for reason in reasons),
        controls=tuple(mistake for mistake, _ in judged),
        actual=judge.actual if judge else None, expected=judge.expected if judge else None,
    )  # fmt: skip
    recorder.emit(result)
    if reasons and recorder.raises:
        raise CheckFailed(f"{result.claim}: " + "; ".join(result.reasons))
    return result


def _bad_arguments(claim: Any, tolerance: Any, relation: Any, because: Any, controls: Any) -> list[str]:
    reasons = []
    if not isinstance(claim, str) or not claim.strip():
        reasons.append(f"the claim must be a sentence, and it is {claim!r}")
    elif "\n" in claim:
        reasons.append("the claim must be one line")
    if because is not None and (not isinstance(because, str) or not because.strip()):
        reasons.append(f"because must be a reason that a reader understands, and it is {because!r}")
    if relation not in tuple(RELATIONS):
        reasons.append(f"relation must be one of {', '.join(RELATIONS)}, and it is {relation!r}")
    number = _plain_float(tolerance)
    if number is None or not (0 < number < math.inf):
        reasons.append(f"tolerance must be a positive number, and it is {tolerance!r}")
    elif number > WIDEST_TOLERANCE and because is None:
        widest = f"{WIDEST_TOLERANCE:g}"
        reasons.append(f"a tolerance above {widest} needs because=..., and it is {number:g}")
    if not isinstance(controls, Mapping):
        reasons.append(f"controls must map names to functions, and it is {type(controls).__name__}")
    elif not controls:
        reasons.append("there is no control: add a mistake that the check must catch")
    else:
        for name, control in controls.items():
            if not isinstance(name, str) or not name.strip():
                reasons.append(f"a control's name must say what the mistake is, and it is {name!r}")
            if not callable(control):
                kind = type(control).__name__
                reasons.append(f"the control {name!r} must be a function, and it is {kind}")
    return reasons


def _vouches_for_itself(call: Call, value: Any) -> list[str]:
    """Reads the call: an expression equals itself, and a typed number was not computed."""
    if call.node is None:
        return []
    given = dict(zip(("claim", "actual", "expected"), call.node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.node.keywords if keyword.arg}
    actual, expected = given.get("actual"), given.get("expected")
    if actual is None or expected is None:
        return []
    # What a name holds may have been filled since, unless it is a number.
    number = isinstance(value, Real | np.generic)
    if never_computed(actual, call.tree) if number else is_typed(actual):
        return ["the actual value is typed, not computed: compute it"]
    if ast.dump(actual) == ast.dump(expected):
        return [f"both sides are the same expression: {_OTHERWISE}"]
    return []


def _plain_float(value: Any) -> float | None:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else None
