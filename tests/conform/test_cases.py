"""The published cases: legal, distinct, exact in every dtype, and enough to tell every control."""

import hashlib
import inspect
import io
import json
import warnings

import numpy as np
import pytest

from archcards import cases, controls
from archcards.cases.files import files

PUBLISHED = [cases.of(name) for name in cases.MECHANISMS]
# Counts of the ledger, whose input is a config.
NOT_A_MECHANISM = {"cache_scalars", "mean_span", "parameter_count", "training_flops"}


def test_every_mechanism_with_controls_has_cases():
    assert set(controls.MECHANISMS) - set(cases.MECHANISMS) == NOT_A_MECHANISM


@pytest.mark.parametrize("published", PUBLISHED, ids=cases.MECHANISMS)
def test_cases_have_names_of_their_own_and_an_edge_follows(published):
    slugs = [case.slug for case in published.cases]
    assert len(set(slugs)) == len(slugs) and all(slugs)
    edges = [case.degenerate for case in published.cases]
    assert edges == sorted(edges)


def _any(mechanism, holds):
    """Whether something holds of the arguments of one case at least."""
    return any(holds(case.arguments) for case in cases.of(mechanism).cases)


def _filled(name, value):
    return lambda given: name in given and bool((np.asarray(given[name]) == value).all())


def _log_decay(given):
    return np.zeros(1) if given.get("log_decay") is None else given["log_decay"]


DELTA = {
    "one step": lambda given: given["key"].shape[-2] == 1,
    "a length that is no multiple of 32 and of 64": lambda given: given["key"].shape[-2] > 64,
    "a memory to start from": lambda given: given.get("state") is not None,
    "forgets nothing": _filled("log_decay", 0.0),
    "forgets all": lambda given: bool(np.isinf(_log_decay(given)).any()),
    "forgets nearly all": lambda given: bool((_log_decay(given) == -200).any()),
}
BETAS = {f"beta {value}": _filled("beta", float(value)) for value in (0, 1, 2)}
SCAN = {
    "one step": lambda given: given["dt"].shape[1 if given["dt"].ndim == 3 and "u" in given else -1] == 1,
    "seventy steps": lambda given: 70 in given["dt"].shape,
    "a memory to start from": lambda given: given.get("state") is not None,
    "forgets nothing": _filled("dt", 0.0),
    "forgets nearly all": _filled("A", -256.0),
}
EMPTY_ROW = {"an empty row": lambda given: "mask" in given and not given["mask"].any(-1).all()}
WINDOW = {
    "a window of one": lambda given: given["window"] == 1,
    "a window longer than the text": lambda given: (given["window"] or 0) > given["queries"],
}
ROUTER = {
    "one expert": lambda given: given["logits"].shape[-1] == 1,
    "all experts": lambda given: given["k"] == given["logits"].shape[-1] > 1,
}
EQUAL = {"equal drafts": lambda given: np.array_equal(given["target"][0], given["draft"][0])}
DISJOINT = {"disjoint drafts": lambda given: not (given["target"][: len(given["draft"])] * given["draft"]).any()}
EDGES = {
    "delta_rule": DELTA | BETAS,
    "linear_attention": DELTA,
    "delta_write": BETAS,
    "gated_write": BETAS | {f"a decay of {d}": _filled("decay", d) for d in (0.0, 1.0, 2.0**-100)},
    "selective_scan": SCAN,
    "state_space_dual": SCAN,
    "attention": EMPTY_ROW,
    "grouped_attention": EMPTY_ROW,
    "attend": EMPTY_ROW,
    "sliding_window": WINDOW,
    "cached_attention": {
        "a window of one": lambda given: given.get("window") == 1,
        "a window longer than the text": lambda given: (given.get("window") or 0) > given["key"].shape[-2],
    },
    "route_top_k": ROUTER,
    "route_sigmoid": ROUTER,
    "route_group_max": ROUTER,
    "load_balance_loss": ROUTER,
    "mixture": {
        "one expert": lambda given: len(given["experts"]) == 1,
        "all experts": lambda given: np.shape(given["routing"].experts)[1] == len(given["experts"]) > 1,
    },
    "verify": EQUAL | DISJOINT,
    "output_distribution": EQUAL | DISJOINT,
    "residual": DISJOINT,
}
REQUIRED = [(mechanism, name) for mechanism, edges in EDGES.items() for name in edges]


@pytest.mark.parametrize("mechanism, name", REQUIRED, ids=[f"{m}: {name}" for m, name in REQUIRED])
def test_the_edges_of_each_mechanism_have_a_case(mechanism, name):
    assert _any(mechanism, EDGES[mechanism][name])


# What is computed from other inputs, or is about float64 alone.
NOT_EXACT = {
    "compressed_attention", "fit_parametric", "linear_attention", "parametric_loss",
}  # fmt: skip


@pytest.mark.parametrize("mechanism", sorted(set(cases.MECHANISMS) - NOT_EXACT))
def test_inputs_fit_bfloat16(mechanism):
    """Eight binary digits: what an implementation is given is the same in every dtype."""
    for case in cases.of(mechanism).cases:
        for name, array in case.arguments.items():
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                mantissa, _ = np.frexp(array[np.isfinite(array)])
                assert (mantissa * 256 == np.round(mantissa * 256)).all(), (case.name, name)


def test_a_routing_holds_arrays_as_its_type_says():
    """A list compared with a number is false throughout, where an array is compared place by place."""
    for case in cases.of("mixture").cases:
        assert all(isinstance(field, np.ndarray) for field in case.arguments["routing"]), case.name


@pytest.mark.parametrize("published", PUBLISHED, ids=cases.MECHANISMS)
def test_bounds_are_above_rounding_and_below_every_mistake(published):
    """Every control is off by more than what float32 may be, in one case at least."""
    for name, control in dict(controls.of(published.mechanism)).items():
        assert any(_is_off(published, case, control) for case in published.cases), name


def _is_off(published, case, control):
    expected = published.expected(case)
    bounds = cases.error_bounds(published, case, "float32")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = published.results(control, case)
        except ValueError:
            return True
    for name, array in expected.items():
        if found[name].shape != array.shape:
            return True
        if not np.allclose(found[name], array, rtol=0, atol=bounds[name], equal_nan=True):
            return True
    return False


def test_a_bound_holds_for_float32():
    """Attention written in float32 and summed term by term stays within its bounds."""
    published = cases.of("attention")
    for case in published.cases[:4]:
        query, key, value = (case.arguments[n].astype(np.float32) for n in ("query", "key", "value"))
        scale = np.float32(case.arguments.get("scale", 8**-0.5))
        weights = np.exp(query @ key.swapaxes(-1, -2) * scale)
        weights = weights * case.arguments.get("mask", np.float32(1))
        output = np.zeros((*query.shape[:-1], value.shape[-1]), np.float32)
        for j in range(key.shape[-2]):
            output += (weights[..., j] / weights.sum(axis=-1))[..., None] * value[..., None, j, :]
        assert output.dtype == np.float32
        error = abs(output - published.expected(case)["output"]).max()
        bound = cases.error_bounds(published, case, "float32")["output"]
        assert error < bound < 1e-5


def test_files_are_the_same_each_time_and_say_what_is_in_them():
    made = files()
    assert made == files()
    index = json.loads(made["index.json"])
    assert set(index["mechanisms"]) == set(cases.MECHANISMS)
    for name, entry in index["mechanisms"].items():
        assert hashlib.sha256(made[entry["arrays"]]).hexdigest() == entry["sha256"]
        manifest = json.loads(made[entry["manifest"]])
        arrays = np.load(io.BytesIO(made[entry["arrays"]]), allow_pickle=False)
        described = list(_arrays(manifest))
        assert {array["array"] for array in described} == set(arrays.files)
        for array in described:
            assert list(arrays[array["array"]].shape) == array["shape"]
            assert str(arrays[array["array"]].dtype) == array["dtype"]
        assert len(manifest["cases"]) == entry["cases"] == len(cases.of(name).cases)
        assert manifest["version"] == index["version"] == cases.VERSION
        # Whoever has the files alone knows what an argument that is not given is.
        known = set(inspect.signature(cases.of(name).reference).parameters) - {"self", "window", *manifest["defaults"]}
        for case in manifest["cases"]:
            assert known <= set(case["arguments"]) or name == "KVCache"
            for result in case["expected"].values():
                assert set(result["bound"]) == set(cases.EPSILON)


def test_a_manifest_says_what_an_argument_is_unless_it_is_given():
    manifest = json.loads(files()["rms_norm.json"])
    assert manifest["defaults"] == {"weight": None, "eps": 1e-6}
    assert json.loads(files()["state_space_dual.json"])["defaults"]["dt_limit"] == [0.0, "inf"]


def _arrays(node):
    if isinstance(node, dict):
        if "array" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _arrays(part)


def test_what_is_published_is_what_the_reference_gives_from_the_files():
    """A reader in another language has the files alone: the delta rule, written out from them."""
    made = files()
    manifest = json.loads(made["delta_rule.json"])
    arrays = np.load(io.BytesIO(made["delta_rule.npz"]))
    for case in manifest["cases"]:
        given = {
            name: arrays[value["array"]] if "array" in value else value["value"]
            for name, value in case["arguments"].items()
        }
        query, key, value, beta = (given[name] for name in ("query", "key", "value", "beta"))
        memory = given.get("state", np.zeros((*key.shape[:2], key.shape[-1], value.shape[-1])))
        expected = arrays[case["expected"]["output"]["array"]]
        for t in range(key.shape[-2]):
            if "log_decay" in given:
                decay = np.exp(given["log_decay"][:, :, t])
                memory = memory * (decay[..., None] if decay.ndim == 3 else decay[..., None, None])
            k, v = key[:, :, t, :, None], value[:, :, t, None, :]
            memory = memory + beta[:, :, t, None, None] * k * (v - (k * memory).sum(-2, keepdims=True))
            output = given.get("scale", 1.0) * (query[:, :, t, :, None] * memory).sum(-2)
            np.testing.assert_allclose(output, expected[:, :, t], rtol=0, atol=1e-10)
        state = arrays[case["expected"]["state"]["array"]]
        np.testing.assert_allclose(memory, state, rtol=0, atol=1e-10)


def test_an_unknown_mechanism_is_named():
    with pytest.raises(ValueError, match="^mechanism must be one that has published cases, got 'x'$"):
        cases.of("x")
