"""The committed comparisons vouch for the code as it is now; no other package is needed to see that."""

import numpy as np
import pytest
import vouched

from archcards import cases
from archcards.cases._registry import flatten
from archcards.cases.numbers import numbers

RESULTS = vouched.results()
MODULES = sorted(RESULTS["modules"])

# Not compared with anything yet: what no package of the list implements as a function.
ALONE: set[str] = set()


@pytest.mark.parametrize("module", MODULES)
def test_the_digest_fits(module):
    """Where it does not, the mechanism has changed since: run `make oracles`."""
    assert vouched.digest(module) == RESULTS["modules"][module], "run make oracles"


def test_every_comparison_is_of_a_module_that_is_vouched_for():
    assert {vouched.module_of(one["mechanism"]) for one in RESULTS["comparisons"]} == set(MODULES)
    assert {one["package"] for one in RESULTS["comparisons"]} == set(RESULTS["packages"])


def test_every_module_is_compared_or_said_to_stand_alone():
    modules = {vouched.module_of(name) for name in cases.MECHANISMS}
    assert modules - set(MODULES) <= ALONE


def test_differences_are_rounding():
    loose = {"fit_parametric": 1e-3, "compute_optimal": 1e-5}
    for one in RESULTS["comparisons"]:
        assert one["cases"] > 0
        assert float(one["difference"]) <= loose.get(one["mechanism"], 1e-9), one


def test_a_digest_covers_code_and_not_its_text(monkeypatch):
    """A comment, a docstring or a line break changes nothing; a number does."""
    source = 'def f(x):\n    """Says «what» it does."""\n    return x + 1  # one\n'
    other = 'def f(x):\n    # More.\n    """It does."""\n\n    return x + (\n        1)\n'
    plain = {"a": source, "b": other.replace("(\n        1)", "1"), "c": source.replace("+ 1", "+ 2")}
    monkeypatch.setattr(vouched, "_source", plain.__getitem__)
    codes = {name: vouched._code(name) for name in plain}
    assert codes["a"] == codes["b"] == "deff(x):returnx+1"
    assert codes["c"] != codes["a"]


def test_a_digest_reaches_what_a_module_computes_with():
    assert vouched._reached("delta") == {"delta", "_decay"}
    assert "attention" in vouched._reached("cache")


# Gradients: those of automatic differentiation, against differences of the reference itself.


GRADIENTS = np.load(vouched.GRADIENTS, allow_pickle=False)
DIFFERENTIATED = sorted({tuple(name.split("/")[:2]) for name in GRADIENTS.files})


@pytest.mark.parametrize("mechanism, slug", DIFFERENTIATED)
def test_a_gradient_is_the_slope_of_the_reference(mechanism, slug):
    """In one direction, by central differences, with step halved until rounding takes over."""
    published = cases.of(mechanism)
    (case,) = (case for case in published.cases if case.slug == slug)
    names = [name.split("/")[2] for name in GRADIENTS.files if name.startswith(f"{mechanism}/{slug}/")]
    along = {name: numbers(*case.arguments[name].shape, seed=70 + i) for i, name in enumerate(names)}
    for name in {"log_decay", "dt"} & set(names):  # zero is an end of what is legal
        along[name] = np.where(case.arguments[name] == 0, 0.0, along[name])

    def total(step):
        moved = {name: case.arguments[name] + step * along[name] for name in names}
        found = flatten(published.reference(**{**case.arguments, **moved}))
        return sum((numbers(*y.shape, seed=90 + i) * y).sum() for i, y in enumerate(found))

    slope = sum((GRADIENTS[f"{mechanism}/{slug}/{name}"] * along[name]).sum() for name in names)
    # Four points: what is left is of fifth order in the step. Norms bend within the root of epsilon.
    h = 2.0 ** (-17 if "norm" in mechanism else -11) / max(1.0, max(abs(case.arguments[name]).max() for name in names))
    differences = (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)
    assert differences == pytest.approx(slope, rel=1e-6, abs=1e-6)
