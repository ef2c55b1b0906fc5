"""Gradients of a reader's function, against the published ones.

They are compared where all results are equal: of a function that computes something else, gradients
say nothing. What is differentiated is the sum of the results, each times its published weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import cases
from .adapter import ConformError
from .binding import Bound
from .cases import Case, Published
from .cases.numbers import numbers
from .difference import difference
from .raised import raised

__all__ = ["Slope", "compared"]


@dataclass(frozen=True)
class Slope:
    """What came of the gradient with respect to one argument of a case.

    Attributes:
        case: The case's name.
        argument: The argument's name; empty where none could be computed.
        equal: Whether it is near enough.
        error: The largest difference, relative to the largest expected magnitude where that exceeds 1.
        bound: What it may be.
        where: The first wrong number, in words, or what was raised; empty if equal.
        instead: What the gradient is instead, if that is a known mistake, the same in each case.
    """

    case: str
    argument: str
    equal: bool
    error: float
    bound: float
    where: str = ""
    instead: str = ""


def compared(
    published: Published,
    trials: Sequence[tuple[Case, Mapping]],
    bound: Bound,
    dtype: str,
    agreed: Callable | None = None,
) -> tuple[tuple[Slope, ...], str]:
    """Compare the gradients of a function whose results are equal.

    Args:
        published: The mechanism.
        trials: The cases that were run, with the results that were found.
        bound: The function.
        dtype: What it computes in.
        agreed: The reference with the conventions that were agreed on, if any. The published
            gradients are of the reference alone: then its slope along one direction is compared.

    Returns:
        What came of each gradient; and if there is none, the reason, empty where nobody asked.
    """
    if not bound.differentiates:
        return (), ""
    if agreed is not None and dtype != "float64":
        return (), "with conventions they are compared in float64 alone"
    slopes, missing, found_by_name = [], [], {}
    reason = f"none are published for {published.mechanism}"
    if published.mechanism in cases.WITHOUT_GRADIENTS:
        reason += f": {cases.WITHOUT_GRADIENTS[published.mechanism]}"
    for case, results in trials:
        known = cases.gradients(published, case)
        names = sorted({name for by_argument in known.values() for name in by_argument})
        if not names or not results:
            continue
        names = bound.asked(case, names)
        if not names:
            reason = "of what is to be compared, none are published, or it is no tensor"
            continue
        weights = {n: w for n, w in cases.weights(published, case).items() if n in results}
        if agreed is not None:  # a convention may be one of shape
            weights = {n: numbers(*np.shape(results[n]), seed=90) for n in weights}
        try:
            found = bound.gradients(case, weights, names)
        except NotImplementedError as error:
            reason = str(error) or "they are not implemented"
            continue
        except ConformError as error:
            raise ConformError(f"{error} (case {case.name!r})") from None
        except (Exception, SystemExit) as error:  # whatever somebody else's code raises
            where = f"computing them raises {raised(error)}"
            slopes.append(Slope(case.name, "", False, np.inf, 0.0, where))
            continue
        for name in names:
            if name not in found:
                nothing = agreed is None and not _wanted(published, case, known, weights, name).any()
                where = "" if nothing else f"the gradient of {name} is missing"
                missing.append(Slope(case.name, name, nothing, 0.0 if nothing else np.inf, 0.0, where))
        shapes = {name: x.shape for name, x in cases.variables(published, case).items()}
        for name, gradient in found.items():
            if gradient.shape == shapes[name]:
                gradient = cases.along(published, name, gradient)
            if agreed is None or gradient.shape != shapes[name]:
                one = _published_slope(published, case, dtype, known, weights, name, gradient)
                found_by_name.setdefault(name, []).append((case, known, weights, gradient))
            else:
                one = _directed_slope(published, case, agreed, weights, name, gradient)
            slopes.append(one)
    returned = {slope.argument for slope in slopes}
    never = sorted({slope.argument for slope in missing} - returned)
    if missing and not slopes:
        raise ConformError(f"backward must return the gradient of {' or '.join(never)}, got none")
    # What it returns in one case it owes in all.
    slopes += [slope for slope in missing if slope.argument in returned]
    unequal = {slope.argument for slope in slopes if not slope.equal}
    instead = {n: _instead(published, n, every) for n, every in found_by_name.items() if n in unequal}
    slopes = [s if s.equal else replace(s, instead=instead.get(s.argument, "")) for s in slopes]
    if never:
        reason = f"backward does not return those of {', '.join(never)}"
    return tuple(slopes), reason if never or not slopes else ""


def _wanted(published, case, known, weights, name):
    """The gradient of all results together that the function returns."""
    parts = [known[result][name] for result in weights if name in known.get(result, {})]
    return sum(parts, np.zeros(cases.variables(published, case)[name].shape))


def _allowed(published, case, name, wanted):
    """How far off a gradient in float64 may be, relative to its largest number where that exceeds 1."""
    # With respect to a number such as a count of parameters a gradient is small, and must be right too.
    largest = np.abs(cases.variables(published, case)[name]).max(initial=0.0)
    return published.tolerance * min(1.0, max(np.abs(wanted).max(initial=0.0), 1 / max(1.0, largest)))


def _published_slope(published, case, dtype, known, weights, name, gradient):
    wanted = _wanted(published, case, known, weights, name)
    allowed = _allowed(published, case, name, wanted)
    if dtype != "float64":
        bounds = cases.gradient_bounds(published, case, dtype)
        allowed = sum(bounds.get(result, {}).get(name, 0.0) for result in weights)
        allowed /= max(1.0, np.abs(wanted).max(initial=0.0))
    axes = published.axes.get(name, ())
    error, where = difference(f"the gradient of {name}", gradient, wanted, allowed, axes)
    return Slope(case.name, name, not where, error, allowed, where)


_NEAR = 1e-5


def _directed_slope(published, case, agreed, weights, name, gradient):
    """The slope along a fixed direction, which differences of the reference give too."""
    given = cases.variables(published, case)[name]
    along = numbers(*gradient.shape, seed=70) * (given != 0)  # 0 may be an end
    along = cases.along(published, name, along)

    def total(step):
        found = published.results(agreed, cases.moved(case, {name: given + step * along}))
        return sum((weight * found[result]).sum() for result, weight in weights.items())

    h = 2.0**-13 / max(1.0, np.abs(given).max(initial=0.0))
    try:
        slope = (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)
    except ValueError:  # the argument is at an end of what is legal
        return Slope(case.name, name, True, 0.0, _NEAR)
    what = f"the slope along a direction of {name}"
    error, where = difference(what, (gradient * along).sum(), slope, _NEAR)
    return Slope(case.name, name, not where, error, _NEAR, where)


def _instead(published, name, every):
    """What a wrong gradient is in every case, in words, if that is known."""
    if any(x.shape != cases.variables(published, case)[name].shape for case, *_, x in every):
        return ""

    def holds(left, right):
        return all(
            not difference("", left(*one), right(*one), _allowed(published, one[0], name, wanted(*one)))[1]
            for one in every
        )

    def gradient(case, known, weights, gradient):
        return gradient

    def wanted(case, known, weights, gradient):
        return _wanted(published, case, known, weights, name)

    for words, left, right in _mistakes(published, name, every, gradient, wanted):
        if holds(left, right):
            return words
    return ""


def _mistakes(published, name, every, gradient, wanted) -> Iterator[tuple[str, Callable, Callable]]:
    """Mistakes that are made in gradients: in words, and two arrays that are equal if it was made."""
    yield "zero: nothing flows back to it", gradient, lambda *one: 0 * wanted(*one)
    yield "not zero, where nothing flows back to it", wanted, lambda *one: 0 * wanted(*one)
    largest = max(every, key=lambda one: np.abs(wanted(*one)).max(initial=0.0))
    at = np.abs(wanted(*largest)).argmax()
    factor = gradient(*largest).flat[at] / (wanted(*largest).flat[at] or 1.0)
    if np.isfinite(factor):
        yield f"the published one times {factor:.4g}", gradient, lambda *one: factor * wanted(*one)
    case, _, weights, _ = largest
    for result in weights if len(weights) > 1 else ():
        yield (
            f"that of {result} alone",
            gradient,
            lambda case, known, *_, result=result: _wanted(published, case, known, [result], name),
        )
    for other in case.arguments:
        if other != name and all(_factor(published, one[0], name, other) is not None for one in every):
            yield (
                f"the published one without the factor {other}",
                lambda case, *rest, other=other: (
                    gradient(case, *rest) * _factor(published, case, name, other)
                ),
                wanted,
            )


def _factor(published, case, name, other):
    """An argument that may scale another's gradient along its first axes: 1 where it is not given."""
    value, shape = case.arguments.get(other), cases.variables(published, case)[name].shape
    if value is None:
        return np.ones(())
    if isinstance(value, np.ndarray) and value.shape == shape[: value.ndim]:
        return value.reshape(value.shape + (1,) * (len(shape) - value.ndim))
    return None
