"""What came of a function: it matches, or the controls that explain what differs, or nothing known.

The function may be in this process or in another: it is asked through what `bind` returns.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import cases, controls
from .adapter import Adapter, ConformError
from .binding import Bound
from .cases import Case, Published
from .conform_pairs import combining, result, ways
from .conform_report import Outcome, Report
from .difference import difference
from .raised import raised
from .slopes import compared

__all__ = ["published_cases", "verdict"]


def verdict(
    published: Published, bind: Callable[[Adapter], Bound], adapter: Adapter, follows: str | Sequence[str] = ()
) -> Report:
    """Compare a function that is somewhere with a mechanism and with all its controls.

    Args:
        published: The mechanism.
        bind: Gives the function, as an adapter has it.
        adapter: How the function takes its arguments.
        follows: Controls that are agreed on.

    Raises:
        ConformError: As `conform`.
    """
    follows = (follows,) if isinstance(follows, str) else follows
    if not isinstance(follows, list | tuple) or not all(isinstance(name, str) for name in follows):
        raise ConformError(f"follows must be names of controls, got {follows!r}")
    follows = tuple(dict.fromkeys(follows))
    report = _compared(published, bind, adapter, follows)
    if not report.matches and not report.diagnosis:
        report = _otherwise(report, published, bind, adapter)
    _refuse_wrong_shapes(report)
    return report


def _compared(published, bind, adapter, follows) -> Report:
    """The report for what the adapter declares."""
    bound = bind(adapter)
    ways = _agreed(published, follows)
    trials, skipped = [], []
    for case in sorted(published.cases, key=lambda case: case.size):
        reason = bound.unfit(case)
        if reason:
            skipped.append((case.name, reason))
            continue
        try:
            trials.append(_Trial.of(published, case, bound, ways[0], adapter.dtype))
        except NotImplementedError as error:
            skipped.append((case.name, str(error) or "it is not implemented"))
    if not trials:
        raise ConformError(
            f"no case of {published.mechanism} can be run: {skipped[0][1]} (case {skipped[0][0]!r})"
        )
    _refuse_what_never_ran(published, trials)
    agreed = ways[0]
    for way in ways[1:]:
        again = [trial.against(way) for trial in trials]
        if all(trial.outcome.equal for trial in again):
            agreed, trials = way, again

    report = Report(
        mechanism=published.mechanism,
        function=bound.name,
        dtype=adapter.dtype,
        follows=follows,
        outcomes=tuple(trial.outcome for trial in trials),
        skipped=tuple(skipped),
        compared=tuple(_results(published, trials)),
        diagnosis=(),
        nearest=None,
        tried=(0, 0),
    )
    if report.matches:
        _refuse_what_tells_nothing(published, trials, skipped)
        found = [(trial.case, trial.found) for trial in trials]
        slopes, reason = compared(published, found, bound, adapter.dtype, agreed if follows else None)
        if slopes and not reason and adapter.backward is None and not adapter.gradients:
            reason = _out_of_reach(published, found, slopes)
        return replace(report, gradients=slopes, without_gradients=reason)
    return _diagnosed(report, published, trials, follows)


def _out_of_reach(published, trials, slopes):
    """Records whose fields have published gradients, but are given to PyTorch without tensors."""
    known = (name for case, _ in trials for y in cases.gradients(published, case).values() for name in y)
    left = {name for name in known if "." in name} - {slope.argument for slope in slopes}
    records = sorted({name.partition(".")[0] for name in left})
    return f"PyTorch is given no tensors in {', '.join(records)}" if records else ""


def _results(published, trials):
    """What was compared, and in how many cases where the function left it out of some."""
    ran = [trial for trial in trials if trial.found]
    for name in dict.fromkeys(name for trial in ran for name in trial.found):
        there = sum(name in trial.found for trial in ran)
        owed = sum(name in published.expected(trial.case) for trial in ran)
        yield name if there == owed else f"{name} (in {there} of {owed} cases)"


_HEADS = ({"axes": "batch time head"}, 'heads come after time: axes "batch time head"')
_NARROW = ({"dtype": "float32"}, 'it computes in float32: dtype "float32"')


def _otherwise(report, published, bind, adapter):
    """With the report for another declaration that is likely, if that says more."""
    likely = [_HEADS] if not adapter.axes else []
    likely += [_NARROW] if adapter.dtype == "float64" else []
    if len(likely) > 1:
        likely.append((_HEADS[0] | _NARROW[0], f"{_HEADS[1]}; and {_NARROW[1]}"))
    for options, words in likely:
        try:
            other = _compared(published, bind, replace(adapter, **options), report.follows)
        except ConformError:  # no such axes, or results that do not have them
            continue
        if other.matches or other.diagnosis:
            return replace(report, otherwise=other, otherwise_if=words)
    return report


def published_cases(mechanism: str) -> Published:
    """Return the published cases of a mechanism.

    Raises:
        ConformError: If there are none.
    """
    if mechanism in cases.MECHANISMS:
        return cases.of(mechanism)
    close = difflib.get_close_matches(str(mechanism), cases.MECHANISMS, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`archcards conform --list` names all"
    raise ConformError(f"mechanism must be one that has published cases, got {mechanism!r}; {hint}")


def _agreed(published, names):
    """The reference with the conventions that the reader says it follows: of two, either may wrap the other."""
    known = _controls(published)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {'; '.join(known)}"
            raise ConformError(f"follows must name controls of {published.mechanism}, got {name!r}; {hint}")
    if len(names) > 2:
        raise ConformError(f"follows must name one or two controls, got {len(names)}")
    agreed = _ways(published, names)
    if not agreed:
        raise ConformError(f"follows must name controls of different steps, got {names[0]!r} and {names[1]!r}")
    return agreed


def _ways(published, names):
    """The reference with none, one or two controls; none at all for more."""
    if not names:
        return (published.reference,)
    if len(names) == 1:
        return (_controls(published)[names[0]],)
    return ways(published.mechanism, names) if len(names) == 2 else ()


def _controls(published):
    return controls.of(published.mechanism) if published.mechanism in controls.MECHANISMS else {}


@dataclass(frozen=True, eq=False)
class _Trial:
    """One case, what the function found in it, and how that compares."""

    published: Published
    case: Case
    found: dict | None
    failed: str
    bounds: dict
    outcome: Outcome

    @classmethod
    def of(cls, published, case, bound, agreed, dtype):
        failed, found = "", None
        try:
            found = bound.results(case)
        except NotImplementedError:  # how a function says that a case is none of its own
            raise
        except ConformError as error:
            raise ConformError(f"{error} (case {case.name!r})") from None
        except (Exception, SystemExit, GeneratorExit) as error:  # whatever somebody else's code raises
            failed = f"raises {raised(error)}"
        if not failed and not found:
            raise ConformError(f"the function must return {published.returns[0]}, got nothing (case {case.name!r})")
        bounds = _bounds(published, case, dtype)
        trial = cls(published, case, found, failed, bounds, None)
        return trial.against(agreed)

    def against(self, agreed) -> "_Trial":
        """The same with its outcome, as compared with the reference and what is agreed on."""
        return replace(self, outcome=self._outcome(agreed))

    def _outcome(self, agreed):
        expected = result(self.published, agreed, self.case)
        largest, allowed, where = 0.0, 0.0, self.failed
        for name in self.found or ():
            error, bound, place = self._compared(name, expected)
            if error > bound and not where:
                where = place
            if not error <= largest:
                largest, allowed = error, bound
            allowed = allowed or bound
        equal = not where
        largest = np.inf if self.failed else largest
        return Outcome(self.case.name, self.case.degenerate, equal, largest, allowed, where)

    def _compared(self, name, expected):
        """The error of one result, what it may be, and where it is first too large."""
        if expected is None or name not in expected:
            return np.inf, 0.0, f"{name} has nothing to be compared with"
        bound, axes = self.bounds.get(name, 0.0), self.published.axes.get(name, ())
        error, place = difference(name, self.found[name], expected[name], bound, axes)
        return error, bound, place

    def agrees(self, candidate) -> bool:
        """Whether a control gives what the function gives: the same numbers, or an error too."""
        expected = result(self.published, candidate, self.case)
        if expected is None or self.found is None:
            return expected is None and self.found is None
        if any(name not in expected for name in self.found):
            return False
        for name in self.found:
            error, bound, _ = self._compared(name, expected)
            if not error <= bound:
                return False
        return True


def _bounds(published, case, dtype):
    """What each result may be off by, relative to its magnitude where that exceeds 1."""
    if dtype == "float64":
        return {
            name: 0.0 if np.asarray(x).dtype.kind in "iub" else published.tolerance
            for name, x in published.expected(case).items()
        }
    bounds = cases.error_bounds(published, case, dtype)
    expected = published.expected(case)
    largest = {n: np.abs(x[np.isfinite(x)]).max(initial=0) for n, x in expected.items()}
    return {name: bound / max(1.0, largest[name]) for name, bound in bounds.items()}


def _diagnosed(report, published, trials, follows):
    """The report with the controls that explain what differs."""
    known = _controls(published)
    others = [name for name in known if name not in follows]
    # First where the function is wrong, small before large: most candidates end there.
    order = sorted(trials, key=lambda trial: trial.outcome.equal)

    def explains(names):
        found = _ways(published, (*follows, *names))
        return any(all(trial.agrees(way) for trial in order) for way in found)

    singles = [(name,) for name in others]
    diagnosis = tuple(filter(explains, singles))
    tried = len(singles), 0
    if not diagnosis and not follows:
        pairs = combining(published.mechanism)
        diagnosis, tried = tuple(filter(explains, pairs)), (len(singles), len(pairs))
    nearest = None
    if not diagnosis and others and not follows:
        agreeing = {name: sum(t.agrees(known[name]) for t in trials) for name in others}
        name = max(agreeing, key=agreeing.get)
        if agreeing[name] > sum(outcome.equal for outcome in report.outcomes):
            nearest = name, agreeing[name]
    return replace(report, diagnosis=diagnosis, nearest=nearest, tried=tried)


def _refuse_what_never_ran(published, trials):
    """A function that raises in the ordinary cases has not been compared at all."""
    ordinary = [trial for trial in trials if not trial.case.degenerate] or trials
    if all(trial.failed for trial in ordinary):
        trial = ordinary[0]
        raise ConformError(f"the function {trial.failed} (case {trial.case.name!r})")


def _refuse_what_tells_nothing(published, trials, skipped):
    """Cases at the edge, such as zeros alone, in which every known mistake gives the same, show nothing."""
    if all(trial.case.degenerate for trial in trials):
        known = _controls(published).values()
        if all(trial.agrees(control) for trial in trials for control in known):
            ordinary = {case.name for case in published.cases if not case.degenerate}
            name, reason = next((name, reason) for name, reason in skipped if name in ordinary)
            raise ConformError(
                f"no case in which {published.mechanism} could be wrong can be run: {reason} (case {name!r})"
            )


def _refuse_wrong_shapes(report):
    """Shapes that are wrong everywhere say that axes are declared wrongly, not that it computes wrongly."""
    explained = report.diagnosis or report.otherwise is not None
    if not explained and all("has shape" in outcome.where for outcome in report.outcomes):
        outcome = report.outcomes[0]
        raise ConformError(
            f"every result has another shape than the reference's: {outcome.where} "
            f"(case {outcome.case!r}); declare the order of axes"
        )
