"""What a check's relation says about a value: the claim's, or a control's."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .comparison import Comparison, NotComparable, compare, numbers, two_digits
from .record import Mistake

__all__ = ["MARGIN", "NOTHING", "RELATIONS", "Judge"]

MARGIN = 1000  # a control must be off by at least this many tolerances
NOTHING = Comparison(None, "", False, "")
RELATIONS = {
    "==": "equals",
    "!=": "differs from",
    "<": "is less than",
    ">": "is greater than",
}


class Judge:
    """Holds values against the expected one, as the relation has it.

    `expected` is None if that is no value to hold anything against; the claim then says why.
    """

    def __init__(
        self, relation: str, tolerance: float, expected: Any, *, allow_infinite: bool
    ) -> None:
        self.relation, self.tolerance, self.allow_infinite = relation, tolerance, allow_infinite
        self.actual: np.ndarray | None = None
        self.expected: np.ndarray | None = None
        self._refused = ""
        what = "the expected value"
        try:
            value = numbers(what, expected)
            if self._orders and value.dtype.kind == "b":
                raise NotComparable(f"{what} is a truth value, which has no order")
            compare(value, value, what, allow_infinite=allow_infinite)  # no NaN, no infinity
            self.expected = value
        except NotComparable as reason:
            self._refused = str(reason)

    def claim(self, actual: Any) -> tuple[Comparison, list[str]]:
        """How far off the actual value is, and why it does not pass (nothing if it does)."""
        if self.expected is None:
            return NOTHING, [self._refused]
        try:
            self.actual = numbers("the actual value", actual)
            outcome = compare(self.actual, self.expected, allow_infinite=self.allow_infinite)
        except NotComparable as reason:
            return NOTHING, [str(reason)]
        if self._holds(outcome, self.actual):
            return outcome, []
        if self.relation == "==":
            limit = "compared exactly" if outcome.exact else f"tolerance {self.tolerance:g}"
            return outcome, [f"off by {outcome.shown}: {outcome.place} ({limit})"]
        told = "they are equal up to rounding" if self.relation == "!=" else self._violation()
        return outcome, [f"the actual value is not {self.relation} the expected one: {told}"]

    def control(self, name: str, control: Callable[[], Any]) -> tuple[Mistake, list[str]]:
        """What became of a control, and why the check does not pass with it (nothing if it does)."""
        told, what = {"name": name, "seen": _where_seen(control)}, f"what the control {name!r} gives"
        missed = {"error": None, "shown": "", "caught": False}
        try:
            with np.errstate(all="ignore"):  # to overflow or divide by zero is how a mistake may show
                raw = control()
        except Exception as exception:  # noqa: BLE001  whatever a control raises, it is no value
            reason = f"{type(exception).__name__}: {_first_line(exception)}"
            return Mistake(**told, **missed), [
                f"the control {name!r} raises instead of recomputing the claim ({reason})"
            ]
        try:
            value = told["value"] = numbers(what, raw)
            if value.shape != self.expected.shape:
                raise NotComparable(
                    f"{what} has shape {value.shape} and is no comparison: "
                    f"{self.expected.shape} was expected"
                )
            if wild := self._wild(value):
                return Mistake(**told, error=None, shown=wild, caught=True), []
            outcome = compare(value, self.expected, what, allow_infinite=self.allow_infinite)
        except NotComparable as reason:
            return Mistake(**told, **missed), [str(reason)]
        shown, error = self._excess(value) if self._orders else (outcome.shown, outcome.error)
        caught = self._broken_by(outcome, value)
        reasons = [] if caught else [f"the control {name!r} is not caught: {self._missed(outcome)}"]
        return Mistake(**told, error=error, shown=shown, caught=caught), reasons

    @property
    def _orders(self) -> bool:
        return self.relation in ("<", ">")

    def _holds(self, outcome: Comparison, value: np.ndarray) -> bool:
        if self._orders:
            return self._in_order(value)
        return self._equal(outcome) if self.relation == "==" else self._clearly_off(outcome)

    def _broken_by(self, outcome: Comparison, value: np.ndarray) -> bool:
        if self._orders:
            return not self._in_order(value)
        return self._clearly_off(outcome) if self.relation == "==" else self._equal(outcome)

    def _equal(self, outcome: Comparison) -> bool:
        if outcome.exact:
            return outcome.error == 0
        return outcome.error is not None and outcome.error < self.tolerance

    def _clearly_off(self, outcome: Comparison) -> bool:
        if outcome.exact:
            return outcome.error != 0
        return outcome.error is None or outcome.error >= MARGIN * self.tolerance

    def _in_order(self, value: np.ndarray) -> bool:
        margin = 0.0
        if "f" in (value.dtype.kind, self.expected.dtype.kind):  # rounding is no order
            expected = np.abs(self.expected.astype(np.float64))
            margin = self.tolerance * float(expected[np.isfinite(expected)].max(initial=1.0))
        return bool(np.all(self._ahead(value) > margin))

    def _ahead(self, value: np.ndarray) -> np.ndarray:
        """By how much each entry satisfies the order relation."""
        low, high = (value, self.expected) if self.relation == "<" else (self.expected, value)
        if "f" not in (low.dtype.kind, high.dtype.kind):
            low, high = low.astype(object), high.astype(object)  # unsigned integers would wrap
        with np.errstate(invalid="ignore"):
            return np.asarray(high - low)

    def _excess(self, value: np.ndarray) -> tuple[str, float | None]:
        """By how much a control violates the order relation."""
        worst = -np.min(self._ahead(value))
        if isinstance(worst, int | np.integer):
            return f"{int(worst):,}", float(worst)
        return two_digits(max(float(worst), 0.0)), float(worst) if math.isfinite(worst) else None

    def _violation(self) -> str:
        ahead = self._ahead(self.actual)
        worst = np.unravel_index(int(np.argmin(ahead)), ahead.shape)
        return f"expected {self.relation} {self.expected[worst]}, got {self.actual[worst]}"

    def _missed(self, outcome: Comparison) -> str:
        if self.relation != "==":
            return f"it {RELATIONS[self.relation]} the expected value as well"
        if outcome.exact:
            return f"off by {outcome.shown}, and it must differ"
        least = f"{MARGIN} tolerances ({MARGIN * self.tolerance:g})"
        return f"off by {outcome.shown}, and it must be off by {least}"

    def _wild(self, value: np.ndarray) -> str:
        """`NaN` or `∞` for a mistake that shows by giving no number where one was expected."""
        if value.dtype.kind != "f" or self.relation != "==":
            return ""
        if np.isnan(value).any():
            return "NaN"
        expected = self.expected.astype(np.float64)
        infinite = np.isinf(value) | np.isinf(expected)
        return "∞" if (infinite & (value != expected)).any() else ""


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
    for module in filter(inspect.ismodule, list(reached)):
        reached += [getattr(module, name) for name in names if hasattr(module, name)]
    for mapping in [item for item in reached if isinstance(item, Mapping)]:
        reached += [mapping[name] for name in names if name in mapping]
    notes = [item.seen for item in reached if isinstance(getattr(item, "seen", None), str)]
    return notes[0] if notes else ""


def _first_line(exception: BaseException) -> str:
    try:
        return (str(exception).splitlines() or [""])[0]
    except Exception:  # noqa: BLE001  an exception whose str raises still has a name
        return "its text cannot be read"
