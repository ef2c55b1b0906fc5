"""How far a control is off: the measure by which every control must be seen to fail."""

import numpy as np
import pytest

from archcards import controls, mechanisms


def _error(actual, expected):
    """The largest difference; infinite where shapes differ or only one side is a number."""
    if isinstance(expected, tuple):
        return max(_error(a, e) for a, e in zip(actual, expected, strict=True))
    actual, expected = (np.asarray(x, dtype=float) for x in (actual, expected))
    if actual.shape != expected.shape or (np.isnan(actual) != np.isnan(expected)).any():
        return np.inf
    return float(np.nanmax(abs(actual - expected)))


@pytest.fixture
def errors():
    """The errors of all controls of a mechanism on their cases, name → error.

    A case is a function from an implementation to what it computes: an array or a tuple of them.
    """

    def measure(mechanism, cases):
        found = controls.of(mechanism)
        assert set(found) == set(cases), "each control needs one case, and each case a control"
        reference = getattr(mechanisms, mechanism, None) or REFERENCES[mechanism]
        return {name: _error(cases[name](found[name]), cases[name](reference)) for name in cases}

    return measure


REFERENCES = {"merge": mechanisms.AttentionState.merge}
