"""What came of a comparison, as data and as one screen of text."""

import textwrap
from dataclasses import dataclass

from . import controls
from .slopes import Slope

__all__ = ["Outcome", "Report"]


@dataclass(frozen=True)
class Outcome:
    """What came of one case.

    Attributes:
        case: The case's name.
        degenerate: Whether it is a case at an edge.
        equal: Whether every result was near enough.
        error: The largest difference, relative to the largest expected magnitude where that exceeds
            1; infinite where shapes differ or a number is missing.
        bound: What it may be.
        where: The first wrong number, in words, or what was raised; empty if equal.
    """

    case: str
    degenerate: bool
    equal: bool
    error: float
    bound: float
    where: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """How an implementation compares with the reference and its controls.

    True where it matches, so that a test can assert it; as text it is one screen.

    Attributes:
        mechanism: Name of the mechanism.
        function: Name of the function that was compared.
        dtype: What it computed in.
        follows: The conventions that were agreed on.
        outcomes: One for each case that was run, the smallest first.
        skipped: The cases that were not run, each with the reason.
        compared: Names of the results that were compared, with the number of cases where the
            function returned one in some alone.
        diagnosis: Names of controls, one or a pair, with which the reference gives the same in
            every case; several where the cases do not tell them apart.
        nearest: Without a diagnosis, the control that agrees in most cases, and in how many.
        tried: Numbers of controls and of pairs.
        otherwise: What comes out if heads stand after time or if it computes in float32, where that
            explains more.
        otherwise_if: Which of them, in words.
        gradients: One for each gradient that was compared, which is done where all results are
            equal and PyTorch or the reader computes gradients.
        without_gradients: Why none was compared, where one might have been.
    """

    mechanism: str
    function: str
    dtype: str
    follows: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    skipped: tuple[tuple[str, str], ...]
    compared: tuple[str, ...]
    diagnosis: tuple[tuple[str, ...], ...]
    nearest: tuple[str, int] | None
    tried: tuple[int, int]
    otherwise: "Report | None" = None
    otherwise_if: str = ""
    gradients: tuple[Slope, ...] = ()
    without_gradients: str = ""

    @property
    def matches(self) -> bool:
        """Whether every case that was run is equal to the reference, with its gradients."""
        return all(one.equal for one in (*self.outcomes, *self.gradients))

    @property
    def status(self) -> int:
        """The command's status: 0 if it matches, 1 if not."""
        return 0 if self.matches else 1

    def __bool__(self):
        return self.matches

    def __str__(self):
        return "\n".join(_screen(self))

    # What an assertion that fails shows.
    def __repr__(self):
        return f"<{_called(self)}: {_says(self)}>"


_WIDTH = 88


def _called(report):
    """What was compared with what."""
    follows = f", following {_quoted(report.follows)}" if report.follows else ""
    return f"{report.function} as {report.mechanism}, {report.dtype}{follows}"


def _results_match(report):
    return all(outcome.equal for outcome in report.outcomes)


def _says(report):
    """What came of it."""
    if _results_match(report):
        return "matches" if report.matches else "results match, gradients do not"
    if report.diagnosis:
        return f"does not match, and equals the reference with {_quoted(report.diagnosis[0])}"
    return "matches nothing known"


def _screen(report):
    """The report as lines of text."""
    yield _called(report)
    if _results_match(report):
        worst = max(report.outcomes, key=lambda outcome: outcome.error / (outcome.bound or 1.0))
        allowed = f", {worst.bound:.1e} allowed" if worst.bound else ""
        yield f"{_says(report)}: largest difference {worst.error:.1e} (in {worst.case!r}{allowed})"
        yield f"  equal in all {len(report.outcomes)} cases; compared: {', '.join(report.compared)}"
        yield from _gradients(report)
    else:
        yield from _verdict(report)
        wrong = [outcome for outcome in report.outcomes if not outcome.equal]
        yield f"  wrong in {len(wrong)} of {_counted(len(report.outcomes))}, the smallest {wrong[0].case!r}:"
        yield f"    {wrong[0].where}"
        edges = [outcome for outcome in report.outcomes if outcome.degenerate]
        for equal, words in ((True, "right"), (False, "wrong")):
            names = [outcome.case for outcome in edges if outcome.equal is equal]
            if names:
                yield from _listed(f"degenerate cases that are {words}", names)
    reasons = {}
    for case, reason in report.skipped:
        reasons.setdefault(reason, []).append(case)
    for reason, names in reasons.items():
        yield from _listed(f"not run because {reason}", names)


def _gradients(report):
    """What came of the gradients, the wrong ones first."""
    if report.without_gradients:
        yield f"  gradients not compared: {report.without_gradients}"
    by_argument = {}
    for slope in report.gradients:
        by_argument.setdefault(slope.argument, []).append(slope)
    right = []
    for name, slopes in by_argument.items():
        wrong = [slope for slope in slopes if not slope.equal]
        if not wrong:
            right.append(name)
            continue
        what = f"gradient of {name}" if name else "gradients"
        yield f"  {what}: wrong in {len(wrong)} of {_counted(len(slopes))}, the smallest {wrong[0].case!r}:"
        yield f"    {wrong[0].where}"
        if wrong[0].instead:
            yield f"    in every case it is {wrong[0].instead}"
    if right:
        slopes = [slope for slope in report.gradients if slope.argument in right]
        count = len({s.case for s in slopes})
        about = f"largest difference {max(s.error for s in slopes):.1e}, {_counted(count)}"
        yield from _listed(f"gradients that are right ({about})", right)


def _counted(count):
    return f"{count} case{'' if count == 1 else 's'}"


def _listed(what, names):
    text = f"{what}: {'; '.join(names)}"
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _verdict(report):
    known = controls.of(report.mechanism) if report.mechanism in controls.MECHANISMS else {}
    singles, pairs = report.tried
    tried = f"{singles} controls{f' and {pairs} pairs' if pairs else ''} tried"
    if not report.diagnosis:
        yield f"{_says(report)} ({tried})"
        if report.otherwise is not None:
            other = report.otherwise
            says = f"equals the reference with {_quoted(other.diagnosis[0])}" if other.diagnosis else "matches"
            text = f"but {says} if {report.otherwise_if}"
            yield from textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        if report.nearest:
            name, count = report.nearest
            yield f"  nearest: {name!r}, which agrees in {count} of {len(report.outcomes)} cases"
        return
    first, *ties = report.diagnosis
    yield from textwrap.wrap(_says(report), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    for name in first:
        control = known[name]
        says = control.__doc__.split("Seen in:")[0]
        yield f"  {control.kind}: {' '.join(says.split())}"
    for names in ties[:3]:
        yield f"  the cases do not tell it from {_quoted(names)}"
    if ties[3:]:
        yield f"  nor from {len(ties) - 3} more"


def _quoted(names):
    return " and ".join(f'"{name}"' for name in names)
