"""`check`: a claim that holds, and mistakes that would have broken it.

An equality that no mistake can break says nothing. So a check takes *controls*, each of which
recomputes the claim with one named mistake, and it passes only if the claim holds and every control
is off by far more than rounding.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from .calls import Call, is_typed
from .comparison import Comparison, NotComparable, compare, numbers, shared, two_digits
from .record import Check, CheckFailed, Mistake, current_recorder

__all__ = ["check"]

WIDEST_TOLERANCE = 1e-6
MARGIN = 1000  # a control must be off by at least this many tolerances
_RELATIONS = ("==", "!=", "<", ">")
_OPPOSITE = {"==": "equals", "!=": "differs from", "<": "is less than", ">": "is greater than"}


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
            reasons.append(f"the claim was made before, on line {before}: a claim occurs once on a page")
    if shared(actual, expected):
        reasons.append("both sides are the same object or memory: compute the expected value in another way")
    reasons += _vouches_for_itself(call)

    judge = _Judge(relation, tolerance, allow_infinite, expected) if not reasons else None
    outcome, mistakes = Comparison(None, "", False, ""), ()
    if judge is not None:
        outcome, found = judge.claim(actual)
        reasons += found
        if judge.expected is not None:
            judged = [judge.control(name, control) for name, control in controls.items()]
            mistakes = tuple(mistake for mistake, _ in judged)
            reasons += [reason for _, found in judged for reason in found]

    result = Check(
        line=call.line, first=call.first, last=call.last, claim=str(claim), passed=not reasons,
        error=outcome.error, tolerance=None if outcome.exact or relation in ("<", ">") else _plain_float(tolerance),
        relation=str(relation), because=because if isinstance(because, str) else None,
        reasons=tuple(" ".join(reason.split()) for reason in reasons), controls=mistakes,
        actual=judge.actual if judge else None, expected=judge.expected if judge else None,
    )  # fmt: skip
    recorder.emit(result)
    if reasons and recorder.raises:
        raise CheckFailed(f"{result.claim}: " + "; ".join(result.reasons))
    return result


class _Judge:
    """Holds a value against the expected one, as the claim's relation has it."""

    def __init__(self, relation: str, tolerance: float, allow_infinite: bool, expected: Any) -> None:
        self.relation, self.tolerance, self.allow_infinite = relation, tolerance, allow_infinite
        self.actual: np.ndarray | None = None
        self.expected: np.ndarray | None = None
        self._refused: str | None = None
        try:
            self.expected = numbers("the expected value", expected)
            self._refuse_non_numbers("the expected value", self.expected)
        except NotComparable as reason:
            self.expected, self._refused = None, str(reason)

    def claim(self, actual: Any) -> tuple[Comparison, list[str]]:
        nothing = Comparison(None, "", False, "")
        if self.expected is None:
            return nothing, [str(self._refused)]
        try:
            self.actual = numbers("the actual value", actual)
            outcome = compare(self.actual, self.expected, allow_infinite=self.allow_infinite)
        except NotComparable as reason:
            return nothing, [str(reason)]
        if self._holds(outcome, self.actual):
            return outcome, []
        if self.relation == "==":
            limit = "compared exactly" if outcome.exact else f"tolerance {self.tolerance:g}"
            return outcome, [f"off by {outcome.shown}: {outcome.place} ({limit})"]
        return outcome, [f"the actual value is not {self.relation} the expected one: {self._violation(self.actual)}"]

    def control(self, name: str, control: Callable[[], Any]) -> tuple[Mistake, list[str]]:
        seen, what = _where_seen(control), f"what the control {name!r} gives"
        try:
            with np.errstate(all="ignore"):  # a mistake may overflow or divide by zero: that is how it shows
                raw = control()
        except Exception as exception:  # noqa: BLE001  whatever a control raises, it is no value
            told = f"{type(exception).__name__}: {_first_line(exception)}"
            reason = f"the control {name!r} raises instead of recomputing the claim ({told})"
            return Mistake(name=name, error=None, shown="", caught=False, seen=seen), [reason]
        value = None
        try:
            value = numbers(what, raw)
            if value.shape != self.expected.shape:
                raise NotComparable(
                    f"{what} has shape {value.shape} and is no comparison: {self.expected.shape} was expected"
                )
            wild = self._wild(value)
            if wild is not None:
                return Mistake(name=name, error=None, shown=wild, caught=True, seen=seen, value=value), []
            outcome = compare(value, self.expected, what, allow_infinite=self.allow_infinite)
        except NotComparable as reason:
            return Mistake(name=name, error=None, shown="", caught=False, seen=seen, value=value), [str(reason)]
        shown, error = outcome.shown, outcome.error
        if self.relation in ("<", ">"):
            shown, error = self._excess(value)
        caught = self._broken_by(outcome, value)
        mistake = Mistake(name=name, error=error, shown=shown, caught=caught, seen=seen, value=value)
        if caught:
            return mistake, []
        if self.relation == "==":
            need = "must differ" if outcome.exact else f"must be off by {MARGIN} tolerances ({MARGIN * self.tolerance:g})"
            return mistake, [f"the control {name!r} is not caught: off by {outcome.shown}, and it {need}"]
        return mistake, [
            f"the control {name!r} is not caught: it {_OPPOSITE[self.relation]} the expected value as well"
        ]

    def _refuse_non_numbers(self, what: str, value: np.ndarray) -> None:
        """An expected value that is no number is wrong whatever the actual one is."""
        if self.relation in ("<", ">") and value.dtype.kind == "b":
            raise NotComparable(f"{what} is a truth value, which has no order")
        compare(value, value, what, allow_infinite=self.allow_infinite)

    def _wild(self, value: np.ndarray) -> str | None:
        """`NaN` or `∞` for a mistake that shows by giving no number where one was expected."""
        if value.dtype.kind != "f" or self.relation != "==":
            return None
        if np.isnan(value).any():
            return "NaN"
        expected = self.expected.astype(np.float64)
        infinite = np.isinf(value) | np.isinf(expected)
        return "∞" if (infinite & (value != expected)).any() else None

    def _margin(self) -> float:
        """How far apart two values must be to count as ordered: rounding at their magnitude."""
        if self.expected.dtype.kind != "f" and (self.actual is None or self.actual.dtype.kind != "f"):
            return 0.0
        expected = self.expected.astype(np.float64)
        finite = expected[np.isfinite(expected)]
        return self.tolerance * max(1.0, float(np.abs(finite).max()) if finite.size else 1.0)

    def _holds(self, outcome: Comparison, value: np.ndarray) -> bool:
        if self.relation == "==":
            return outcome.error == 0 if outcome.exact else outcome.error is not None and outcome.error < self.tolerance
        if self.relation == "!=":
            return outcome.error != 0 if outcome.exact else outcome.error is None or outcome.error >= MARGIN * self.tolerance
        return bool(np.all(self._ahead(value) > self._margin()))

    def _broken_by(self, outcome: Comparison, value: np.ndarray) -> bool:
        if self.relation == "==":
            return outcome.error != 0 if outcome.exact else outcome.error is None or outcome.error >= MARGIN * self.tolerance
        if self.relation == "!=":
            return outcome.error == 0 if outcome.exact else outcome.error is not None and outcome.error < self.tolerance
        return not np.all(self._ahead(value) > self._margin())

    def _ahead(self, value: np.ndarray) -> np.ndarray:
        """By how much each entry satisfies the order relation."""
        low, high = (value, self.expected) if self.relation == "<" else (self.expected, value)
        if "f" not in (low.dtype.kind, high.dtype.kind):
            low, high = low.astype(object), high.astype(object)  # unsigned integers would wrap
        with np.errstate(invalid="ignore"):
            return np.asarray(high - low)

    def _excess(self, value: np.ndarray) -> tuple[str, float | None]:
        worst = -np.min(self._ahead(value))
        if isinstance(worst, int | np.integer):
            return f"{int(worst):,}", float(worst)
        return two_digits(max(float(worst), 0.0)), float(worst) if math.isfinite(worst) else None

    def _violation(self, value: np.ndarray) -> str:
        if self.relation == "!=":
            return "they are equal up to rounding"
        ahead = np.asarray(self._ahead(value))
        worst = np.unravel_index(int(np.argmin(ahead)), ahead.shape)
        return f"expected {self.relation} {self.expected[worst]}, got {value[worst]}"


def _bad_arguments(claim: Any, tolerance: Any, relation: Any, because: Any, controls: Any) -> list[str]:
    reasons = []
    if not isinstance(claim, str) or not claim.strip():
        reasons.append(f"the claim must be a sentence, and it is {claim!r}")
    elif "\n" in claim:
        reasons.append("the claim must be one line")
    if because is not None and (not isinstance(because, str) or not because.strip()):
        reasons.append(f"because must be a reason that a reader understands, and it is {because!r}")
    if relation not in _RELATIONS:
        reasons.append(f"relation must be one of {', '.join(_RELATIONS)}, and it is {relation!r}")
    number = _plain_float(tolerance)
    if number is None or not (0 < number < math.inf):
        reasons.append(f"tolerance must be a positive number, and it is {tolerance!r}")
    elif number > WIDEST_TOLERANCE and because is None:
        reasons.append(f"a tolerance above {WIDEST_TOLERANCE:g} needs because=..., and it is {number:g}")
    if not isinstance(controls, Mapping):
        reasons.append(f"controls must map names to functions, and it is {type(controls).__name__}")
    elif not controls:
        reasons.append("there is no control: add a mistake that the check must catch")
    else:
        for name, control in controls.items():
            if not isinstance(name, str) or not name.strip():
                reasons.append(f"a control's name must say what the mistake is, and it is {name!r}")
            if not callable(control):
                reasons.append(
                    f"the control {name!r} must be a function without arguments, and it is {type(control).__name__}"
                )
    return reasons


def _vouches_for_itself(call: Call) -> list[str]:
    """Reads the call: an expression equals itself, and a typed number was not computed."""
    if call.node is None:
        return []
    given = dict(zip(("claim", "actual", "expected"), call.node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.node.keywords if keyword.arg}
    actual, expected = given.get("actual"), given.get("expected")
    if actual is None or expected is None:
        return []
    if is_typed(actual):
        return ["the actual value is typed, not computed: compute it"]
    if ast.dump(actual) == ast.dump(expected):
        return ["both sides are the same expression: compute the expected value in another way"]
    return []


def _where_seen(control: Any) -> str:
    """Where the mistake was seen: the control's own note, or that of the one a lambda calls.

    A registered control carries a `seen` text. Chapters wrap it in a lambda, so the note is looked
    up through the names that the lambda uses: `controls.causal["aligned to the top left"]`.
    """
    if isinstance(getattr(control, "seen", None), str):
        return control.seen
    if not inspect.isfunction(control):
        return ""
    used = inspect.getclosurevars(control)
    names = [*control.__code__.co_names, *(c for c in control.__code__.co_consts if isinstance(c, str))]
    reached = [*used.nonlocals.values(), *used.globals.values()]
    for owner in list(reached):
        reached += [getattr(owner, name) for name in names if inspect.ismodule(owner) and hasattr(owner, name)]
    for mapping in [item for item in reached if isinstance(item, Mapping)]:
        reached += [mapping[name] for name in names if name in mapping]
    notes = [item.seen for item in reached if isinstance(getattr(item, "seen", None), str)]
    return notes[0] if notes else ""


def _plain_float(value: Any) -> float | None:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else None


def _first_line(exception: BaseException) -> str:
    try:
        return (str(exception).splitlines() or [""])[0]
    except Exception:  # noqa: BLE001  an exception whose str raises still has a name
        return "its text cannot be read"
