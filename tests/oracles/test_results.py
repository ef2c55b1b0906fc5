"""The committed comparisons vouch for the code as it is now; no other package is needed to see that."""

import hashlib
import json

import numpy as np
import pytest
import vouched

from archcards import cases
from archcards.cases import Case
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
    gradients = cases.gradients(published, case)
    names = sorted({name for found in gradients.values() for name in found})
    along = {name: numbers(*case.arguments[name].shape, seed=70 + i) for i, name in enumerate(names)}
    # 0 and 1 are ends of what is legal; at 0 is where an ELU's slope bends.
    for name in {"log_decay", "dt", "decay", *(["x"] if mechanism == "elu_plus_one" else [])} & set(names):
        along[name] *= ~np.isclose(case.arguments[name][..., None], (0, 1)).any(-1)

    def total(step):
        moved = {name: case.arguments[name] + step * along[name] for name in names}
        found = published.results(published.reference, Case(slug, {**case.arguments, **moved}))
        return np.array([(weight * found[name]).sum() for name, weight in weights.items()])

    weights = cases.weights(published, case)
    slopes = [
        sum((gradient * along[name]).sum() for name, gradient in gradients.get(result, {}).items())
        for result in weights
    ]
    # Four points: what is left is of fifth order in the step. Norms bend within the root of epsilon.
    bent = "norm" in mechanism or mechanism == "unit_key"
    h = 2.0 ** (-17 if bent else -11) / max(1.0, max(abs(case.arguments[name]).max() for name in names))
    differences = (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)
    assert differences == pytest.approx(np.array(slopes), rel=1e-6, abs=1e-6)


def test_the_manifest_of_the_gradients_describes_each():
    manifest = json.loads(vouched.GRADIENTS.with_suffix(".json").read_text(encoding="utf-8"))
    assert hashlib.sha256(vouched.GRADIENTS.read_bytes()).hexdigest() == manifest["sha256"]
    assert list(manifest["gradients"]) == GRADIENTS.files
    for name, entry in manifest["gradients"].items():
        assert list(GRADIENTS[name].shape) == entry["shape"]
        assert 0 <= entry["bound"]["float32"] <= entry["bound"]["bfloat16"]


def test_every_case_that_has_gradients_is_a_case():
    """A case that was renamed or changed has its gradients made anew: run `make oracles`."""
    for mechanism, slug in DIFFERENTIATED:
        assert slug in {case.slug for case in cases.of(mechanism).cases}, (mechanism, slug)
