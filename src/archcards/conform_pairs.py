"""Two controls at once: in which ways, and whether both are then seen.

Not every two can be in force together. Two may be alternatives for one step, or one may replace the
whole computation in which the other changes something: then the pair is one of the two alone.

Example:
    >>> combining("delta_write")[0]
    ('added instead of corrected', 'error with the wrong sign')
"""

import functools
import itertools
import warnings
from collections.abc import Callable

import numpy as np

from . import cases, controls
from .cases import Case, Published
from .difference import difference

__all__ = ["combining", "result", "ways"]


def ways(mechanism: str, names: tuple[str, str]) -> tuple[Callable, ...]:
    """Return what two controls are together, in either order; nothing if they change one step."""
    one, two = (controls.of(mechanism)[name] for name in names)
    if one.joined(two) is not None:
        return (controls.both(one, two),)
    # A changed step calls no reference, which the other could stand in for.
    orders = ((one, two), (two, one))
    return tuple(controls.both(*order) for order in orders if not order[0].changes_a_step)


def result(published: Published, function: Callable, case: Case) -> dict | None:
    """Return what a control computes in a case; nothing where it raises."""
    if function is published.reference:
        return published.expected(case)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return published.results(function, case)
        except Exception:  # some controls fail where their mistake makes shapes disagree
            return None


@functools.cache
def combining(mechanism: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of controls that in some published case give neither of the two alone."""
    if mechanism not in controls.MECHANISMS:
        return ()
    published = cases.of(mechanism)
    known = controls.of(mechanism)
    # Most pairs show in the first ordinary case; what only an edge shows comes after it.
    ordered = sorted(published.cases, key=lambda case: (case.degenerate, case.size))

    @functools.cache
    def alone(name, place):
        return result(published, known[name], ordered[place])

    def combine(names):
        for way in ways(mechanism, names):
            unlike = set(names)
            for place, case in enumerate(ordered):
                found = result(published, way, case)
                unlike -= {name for name in unlike if not _same(published, found, alone(name, place))}
                if not unlike:
                    return True
        return False

    return tuple(filter(combine, itertools.combinations(known, 2)))


def _same(published, found, other):
    """Whether two results are equal within what is allowed, or both are none."""
    if found is None or other is None:
        return found is other
    if found.keys() != other.keys():
        return False
    for name in found:
        axes = published.axes.get(name, ())
        error, _ = difference(name, found[name], other[name], published.tolerance, axes)
        if not error <= published.tolerance:
            return False
    return True
