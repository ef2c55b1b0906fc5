"""`derive`: a derivation that is proved line by line, and a broken step that is refuted.

Each line is an expression in the language of `archcards.evidence.algebra.expressions`. It is typeset
as it was written, evaluated at small sizes, and proved equal to the line before as an identity of
polynomials. Independently of that it is evaluated in numbers, which refutes a wrong step by a
counterexample. What is neither proved nor refuted is undecided, and does not pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .algebra.cases import Case
from .algebra.expressions import Expression
from .algebra.statement import Shape, Statement, read_control, read_statement
from .record import CheckFailed, Derivation, Step, Symbol, current_recorder

__all__ = ["derive"]

_NOWHERE = "no numbers were found that satisfy what is given and at which both lines are defined"
_SMALLER = "take a smaller step"
_ENOUGH = 3  # points at which two lines must have been compared


def derive(
    title: str,
    symbols: Mapping[str, Shape],
    steps: Sequence[tuple[str, str]],
    *,
    given: Sequence[str] = (),
    control: tuple[int | str, str],
    sizes: Mapping[str, int | Iterable[int]] | None = None,
    positive: Sequence[str] = (),
    tex: Mapping[str, str] | None = None,
) -> Derivation | None:
    """Proves that each line of a derivation equals the line before.

    Args:
        title: what is derived.
        symbols: a symbol's name to its shape: `()` for a scalar, `("d",)` for a column, `("d", "v")`
            for a matrix, in named sizes or integers. Symbols are real.
        steps: the lines, each an expression and its reason; the first is the start.
        given: what is known, `"k.T @ k == 1"`. `"u == ..."` for a symbol u that does not occur on
            the right defines u, and u stands for that expression.
        control: a mistake that must be refuted: `(index, expression)` in the place of that step, or
            `(expression, reason)` in the place of the last one.
        sizes: a size's name to the size at which to prove, or to several of them; the names may be
            used as integers in expressions. Unless given, two small sizes each.
        positive: names of symbols that are positive.
        tex: TeX of symbols that are not to be typeset by their name.

    Returns:
        The lines, typeset, and what became of them; None on a page that refused it.

    Raises:
        CheckFailed: a step is refuted or undecided, or the control is not refuted, outside a page.
            On a page that is recorded.
        ValueError: an expression means nothing, outside a page.

    Example:
        >>> derive("a write with a unit key is read back",
        ...        {"S": ("d", "v"), "k": ("d",), "t": ("v",)},
        ...        [("(S + outer(k, t - S.T @ k)).T @ k", "read after the write"),
        ...         ("S.T @ k + (t - S.T @ k) * (k.T @ k)", "distribute"),
        ...         ("t", "the key has length one")],
        ...        given=["k.T @ k == 1"],
        ...        control=("t + S.T @ k", "forgets to take off what was stored"))
        ✓ a write with a unit key is read back
              (S + outer(k, t - S.T @ k)).T @ k    [read after the write]
            ✓ S.T @ k + (t - S.T @ k) * (k.T @ k)    [distribute]
            ✓ t    [the key has length one]
    """
    recorder = current_recorder()
    call = recorder.call()
    try:
        statement = read_statement(title, symbols, steps, given, sizes, positive, tex or {})
        index, wrong = read_control(control, statement)
        event = _decided(statement, index, wrong, call.line)
    except ValueError as reason:
        recorder.refuse(f"derivation {title!r}: {reason}")
        return None
    recorder.emit(event)
    if not event.passed and recorder.raises:
        raise CheckFailed(f"{title}: " + "; ".join(event.reasons))
    return event


def _decided(statement: Statement, index: int, wrong: tuple[Expression, str], line: int) -> Derivation:
    cases = [Case(statement, sizes) for sizes in statement.sizes]
    told = tuple(case.told for case in cases if case.told)
    start, reason = statement.steps[0]
    for case in cases:
        case.value(start)  # a start that means nothing is found at once
    tex = statement.typeset(start)
    steps = [Step(source=start.source, tex=tex, reason=reason, status="start", sizes=told)]
    reasons = []
    for (before, _), (after, reason) in itertools.pairwise(statement.steps):
        step = _step(statement, cases, before, after, reason)
        steps.append(step)
        if step.status == "refuted":
            reasons.append(f"the step {step.source!r} is refuted: {step.witness}")
        elif step.status == "undecided":
            reasons.append(f"the step {step.source!r} is undecided: {step.witness}")
    broken = _step(statement, cases, statement.steps[index - 1][0], wrong[0], wrong[1])
    if broken.status != "refuted":
        told_how = "true" if broken.status == "proved" else "not refuted"
        reasons.append(f"the control {broken.source!r} is {told_how}: break the step by a real mistake")
    return Derivation(
        line=line, title=statement.title, symbols=tuple(_symbols(statement)),
        given=tuple(statement.equations), steps=tuple(steps), control=broken, control_of=index,
        sizes=told, passed=not reasons, reasons=tuple(reasons),
    )  # fmt: skip


def _symbols(statement: Statement) -> Iterable[Symbol]:
    for name, shape in statement.shapes.items():
        yield Symbol(name=name, tex=statement.symbol(name), shape=tuple(map(str, shape)))


def _step(
    statement: Statement, cases: list[Case], before: Expression, after: Expression, reason: str
) -> Step:
    step = Step(
        source=after.source, tex=statement.typeset(after), reason=reason, status="proved",
        sizes=tuple(case.told for case in cases if case.told),
    )  # fmt: skip
    undecided = None
    for case in cases:
        refuted, tried = case.refuted(before, after)
        if refuted:
            return replace(step, status="refuted", witness=refuted)
        if tried < _ENOUGH:
            undecided = undecided or _NOWHERE
        elif undecided is None and not case.proved(before, after):
            at = f" at {case.told}" if case.told else ""
            undecided = f"the algebra does not decide it{at}, and nothing refutes it: {_SMALLER}"
    return replace(step, status="undecided", witness=undecided) if undecided else step
