"""The committed comparisons vouch for the code as it is now; no other package is needed to see that."""

import hashlib
import json

import numpy as np
import pytest
import vouched

from archcards import cases
from archcards.cases.derivatives import AT_A_TIE, differentiable
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


# 0 and 1 are ends of what is legal, and so is a probability of 0; at 0 an ELU's slope bends.
AT_AN_END = {
    "acceptance": (0, 1), "decay": (0, 1), "draft": (0,), "dt": (0, 1), "log_decay": (0, 1), "target": (0,),
    "uniforms": (0,),
}  # fmt: skip


def direction(published, name, array, seed):
    """A fixed one, along which an argument may be moved."""
    found = numbers(*array.shape, seed=seed)
    if published.mechanism in ("parametric_loss", "compute_optimal"):
        return found * array  # in them only ratios count
    ends = (0, 1) if published.mechanism == "elu_plus_one" else AT_AN_END.get(name, ())
    free = ~np.isclose(array[..., None], ends).any(-1)
    if name in published.distributions:  # what one probability gains the others lose
        count = np.maximum(free.sum(-1, keepdims=True), 1)
        found = found - (free * found).sum(-1, keepdims=True) / count
    return free * found


def slopes(published, case, gradients, along):
    """Of each result, the slope that gradients say it has along a direction."""
    return np.array([
        sum((gradient * along[name]).sum() for name, gradient in gradients.get(result, {}).items())
        for result in cases.weights(published, case)
    ])  # fmt: skip


def differences(published, case, along):
    """The same by central differences of the reference itself."""

    def total(step):
        near = cases.moved(case, {name: given[name] + step * along[name] for name in along})
        found = published.results(published.reference, near)
        return np.array([(weight * found[name]).sum() for name, weight in weights.items()])

    given, weights = cases.variables(published, case), cases.weights(published, case)
    # Four points: what is left is of fifth order in the step. Norms bend within the root of epsilon.
    bent = "norm" in published.mechanism or published.mechanism == "unit_key"
    relative = published.mechanism in ("parametric_loss", "compute_optimal")
    largest = 1.0 if relative else max(1.0, max(abs(given[name]).max(initial=0.0) for name in along))
    h = 2.0 ** (-17 if bent else -11) / largest
    return (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)


def agree(one, other):
    return one == pytest.approx(other, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("mechanism, slug", DIFFERENTIATED)
def test_a_gradient_is_the_slope_of_the_reference_and_no_other_is(mechanism, slug):
    """Along one direction, all arguments at once; then each gradient in turn is off by a hundredth.

    Where that moves the slope by next to nothing, it is off by what moves it by a ten-thousandth.
    """
    published = cases.of(mechanism)
    (case,) = (case for case in published.cases if case.slug == slug)
    gradients, given = cases.gradients(published, case), cases.variables(published, case)
    names = sorted({name for found in gradients.values() for name in found})
    assert names == sorted(given)
    along = {name: direction(published, name, given[name], 70 + i) for i, name in enumerate(names)}
    measured = differences(published, case, along)
    assert agree(measured, slopes(published, case, gradients, along))
    for result, found in gradients.items():
        for name, gradient in found.items():
            if along[name].any():
                least = 1e-4 * max(1, abs(measured).max()) / abs(along[name]).sum()
                off = max(0.01 * abs(gradient).max(), least)
                spoilt = gradients | {result: found | {name: gradient + off * np.sign(along[name])}}
                assert not agree(measured, slopes(published, case, spoilt, along)), (result, name)


def test_the_manifest_of_the_gradients_describes_each():
    manifest = json.loads(vouched.GRADIENTS.with_suffix(".json").read_text(encoding="utf-8"))
    assert hashlib.sha256(vouched.GRADIENTS.read_bytes()).hexdigest() == manifest["sha256"]
    assert list(manifest["gradients"]) == GRADIENTS.files
    for name, entry in manifest["gradients"].items():
        assert list(GRADIENTS[name].shape) == entry["shape"]
        assert 0 <= entry["bound"]["float32"] <= entry["bound"]["bfloat16"]


def test_the_cases_that_have_gradients_are_those_that_should():
    """A case that is new, renamed or changed has its gradients made anew: run `make oracles`."""
    every = (cases.of(mechanism) for mechanism in cases.MECHANISMS)
    wanted = {(p.mechanism, case.slug) for p in every for case in p.cases if differentiable(p, case)}
    assert set(DIFFERENTIATED) == wanted


def test_every_case_at_a_tie_is_a_case():
    assert all(name in {case.name for case in cases.of(mechanism).cases} for mechanism, name in AT_A_TIE)
