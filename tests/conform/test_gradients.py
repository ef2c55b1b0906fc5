"""Gradients of a reader's function, against the published ones."""

import io
import math
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from archcards import cases
from archcards.cases.numbers import numbers
from archcards.checkout import find_checkout
from archcards.conform import ConformError, conform
from archcards.plugin.downloads import wheel
from archcards.slopes import compared


def norm(x, weight=None, eps=1e-6):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def norm_back(g, x, weight=None, eps=1e-6):
    """The gradients of an RMS norm, as they are derived by hand."""
    size = np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    found = {} if weight is None else {"weight": (g * x / size).sum(tuple(range(x.ndim - 1)))}
    g = g if weight is None else g * weight
    return found | {"x": g / size - x * (g * x).mean(-1, keepdims=True) / size**3}


def write(state, key, value, beta):
    error = value - np.einsum("bk,bkv->bv", key, state)
    return state + beta[:, None, None] * key[:, :, None] * error[:, None, :]


def write_back(g, state, key, value, beta, damped=True, scaled=True, by_the_error=True):
    """The gradients of a delta write, in the order of its arguments."""
    error = value - np.einsum("bk,bkv->bv", key, state)
    along = np.einsum("bk,bkv->bv", key, g)  # what flows back to the error, but for beta
    b = beta[:, None]
    to_value = b * along if scaled else along
    to_key = b * np.einsum("bkv,bv->bk", g, error)
    to_key = to_key - b * np.einsum("bkv,bv->bk", state, along) if by_the_error else to_key
    to_state = g - b[..., None] * key[:, :, None] * along[:, None] if damped else g
    return to_state, to_key, to_value, (error * along).sum(-1)


IN_ORDER = {"gradients": "state key value beta"}


def test_a_right_backward_matches():
    report = conform("delta_write", write, backward=write_back, **IN_ORDER)
    assert report and {slope.argument for slope in report.gradients} == {"state", "key", "value", "beta"}
    assert len(report.gradients) == 4 * len(cases.of("delta_write").cases)
    assert "gradients that are right" in str(report)
    assert conform("rms_norm", norm, backward=norm_back)


def test_a_backward_that_returns_nothing_is_no_match():
    with pytest.raises(ConformError, match="must return the gradient of weight or x, got none"):
        conform("rms_norm", norm, backward=lambda g, **given: {"x": None})


def test_a_gradient_that_is_never_returned_is_named():
    report = conform("rms_norm", norm, backward=lambda g, **given: {"x": norm_back(g, **given)["x"]})
    assert report and "gradients not compared: backward does not return those of weight" in str(report)
    report = conform(
        "rms_norm", norm, backward=lambda g, **given: {"x": 2 * norm_back(g, **given)["x"]}
    )
    assert not report


def test_a_gradient_that_is_missing_in_some_cases_is_wrong_there():
    def backward(g, **given):
        return norm_back(g, **given) if given.get("weight") is None else {}

    report = conform("rms_norm", norm, backward=backward)
    wrong = [slope for slope in report.gradients if not slope.equal]
    assert [slope.where for slope in wrong] == ["the gradient of x is missing"]
    assert "the gradient of x is missing" in str(report)


@pytest.mark.parametrize("gradient", ["text", [[1.0], [1.0, 2.0]], object()])
def test_a_gradient_that_is_no_array_is_refused_in_one_line(gradient):
    with pytest.raises(ConformError, match="must return an array of numbers for x, got ") as refused:
        conform("rms_norm", norm, backward=lambda g, **given: {"x": gradient})
    assert "\n" not in str(refused.value)


def test_a_gradient_of_no_numbers_is_no_multiple():
    report = conform(
        "rms_norm", norm, backward=lambda g, **given: {"x": np.nan * norm_back(g, **given)["x"]}
    )
    assert "is nan, not" in str(report) and "times nan" not in str(report)


def test_without_a_backward_nothing_is_said():
    report = conform("delta_write", write)
    assert report.gradients == () and "gradient" not in str(report)


@pytest.mark.parametrize(
    "mistake, argument, instead",
    [
        ({"damped": False}, "state", ""),
        ({"scaled": False}, "value", "the published one without the factor beta"),
        ({"by_the_error": False}, "key", ""),
    ],
)
def test_a_wrong_gradient_is_named_with_its_first_wrong_place(mistake, argument, instead):
    def backward(g, **given):
        return write_back(g, **given, **mistake)

    report = conform("delta_write", write, backward=backward, **IN_ORDER)
    assert not report and report.status == 1 and all(outcome.equal for outcome in report.outcomes)
    assert {slope.argument for slope in report.gradients if not slope.equal} == {argument}
    text = str(report)
    assert "results match, gradients do not" in text
    assert f"gradient of {argument}: wrong in" in text and f"the gradient of {argument}[0, " in text
    assert (f"in every case it is {instead}" in text) == bool(instead)
    assert len(text.splitlines()) < 12


@pytest.mark.parametrize(
    "changed, instead",
    [
        (lambda g: 0 * g, "zero: nothing flows back to it"),
        (lambda g: -g, "the published one times -1"),
        (lambda g: g / math.sqrt(4), "the published one times 0.5"),
    ],
)
def test_a_known_mistake_in_a_gradient_is_named(changed, instead):
    def backward(g, **given):
        to_state, *others = write_back(g, **given)
        return changed(to_state), *others

    report = conform("delta_write", write, backward=backward, **IN_ORDER)
    assert {s.instead for s in report.gradients if not s.equal} == {instead}


def taps(x, weight, bias=None):
    y = np.zeros_like(x)
    for back, tap in enumerate(weight.T[::-1]):
        y[:, back:] += tap * x[:, : x.shape[1] - back]
    return y if bias is None else y + bias


def test_layouts_and_names_reach_the_gradients():
    """Channels before time, other names: what comes back is in the layout that was declared."""

    def forward(series, kernel):
        return np.swapaxes(taps(np.swapaxes(series, 1, 2), kernel), 1, 2)

    def backward(g, series, kernel):
        width, time = kernel.shape[1], series.shape[2]
        to_series, to_kernel = np.zeros_like(series), np.zeros_like(kernel)
        for tap in range(width):
            back = width - 1 - tap
            if back < time:
                to_series[..., : time - back] += kernel[:, tap, None] * g[..., back:]
                to_kernel[:, tap] = (g[..., back:] * series[..., : time - back]).sum((0, 2))
        return {"series": to_series, "kernel": to_kernel}

    layout = {"names": {"x": "series", "weight": "kernel"}, "axes": "batch channel time"}
    report = conform("causal_convolution", forward, backward=backward, **layout)
    assert report and {s.argument for s in report.gradients} == {"x", "weight"}
    wrong = conform("causal_convolution", forward, backward=lambda g, **given: {"series": backward(g, **given)["series"][:, ::-1]}, **layout)
    assert not wrong and {s.argument for s in wrong.gradients} == {"x"}


def test_only_the_results_that_are_returned_count():
    """A delta rule of one step that returns its output alone: the state's part of a gradient is no debt."""

    def forward(query, key, value, beta):
        if query.shape[2] > 1:
            raise NotImplementedError("one step")
        return (beta[..., None] * (query * key).sum(-1, keepdims=True)) * value

    def backward(g, query, key, value, beta):
        b, read = beta[..., None], (query * key).sum(-1, keepdims=True)
        along = (g * value).sum(-1, keepdims=True)
        return b * along * key, b * along * query, b * read * g, (read * along)[..., 0]

    report = conform("delta_rule", forward, backward=backward, gradients="query key value beta")
    assert report and report.compared == ("output",) and len(report.gradients) == 4


def test_conventions_that_are_agreed_on_have_slopes_of_their_own():
    """The published gradients are of the reference alone; the slope is compared along a direction."""

    def doubled(state, key, value, beta):
        return write(state, key, value, 2 * beta)

    def backward(g, state, key, value, beta):
        to_state, to_key, to_value, to_beta = write_back(g, state, key, value, 2 * beta)
        return to_state, to_key, to_value, 2 * to_beta

    def forgets(g, **given):
        *others, to_beta = backward(g, **given)
        return *others, to_beta / 2

    follows = {"follows": "beta doubled", **IN_ORDER}
    assert conform("delta_write", doubled, backward=backward, **follows)
    report = conform("delta_write", doubled, backward=forgets, **follows)
    assert {s.argument for s in report.gradients if not s.equal} == {"beta"}
    assert "the slope along a direction of beta is " in str(report)


def test_why_gradients_are_not_compared_is_said():
    def none(g, **given):
        raise NotImplementedError("no backward on this device")

    text = str(conform("delta_write", write, backward=none, **IN_ORDER))
    assert "gradients not compared: no backward on this device" in text
    text = str(conform("causal", cases.of("causal").reference, backward=none))
    assert "gradients not compared: none are published for causal: its result is a mask" in text
    text = str(conform("merge", cases.of("merge").reference, backward=none))
    assert "gradients not compared: those of the objects of merge are published only" in text


def test_a_backward_that_raises_is_told_where():
    def broken(g, **given):
        raise ZeroDivisionError("no error")

    report = conform("delta_write", write, backward=broken, **IN_ORDER)
    assert report.status == 1
    assert "computing them raises ZeroDivisionError at " in str(report)


@pytest.mark.parametrize(
    "backward, options, reason",
    [
        (write_back, {}, "backward must return a mapping from argument to gradient, or gradients must name"),
        (write_back, {"gradients": "state key"}, r"backward must return 2 gradients \(state, key\), got 4"),
        (write_back, {"gradients": "state kez _ _"}, "must not name 'kez': did you mean key"),
        (lambda g, **given: {"sate": g}, {}, "backward must name arguments of the function, got 'sate'"),
        (write_back, {**IN_ORDER, "each": "batch"}, "each must not be given with backward"),
        ("k:f", IN_ORDER, "backward must be a function, got 'k:f'"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(backward, options, reason):
    with pytest.raises(ConformError, match=reason) as refused:
        conform("delta_write", write, backward=backward, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_gradients_have_bounds(dtype):
    """In float32 a right one is within them, and a wrong one is not."""
    assert conform("delta_write", write, backward=write_back, dtype=dtype, **IN_ORDER)

    def wrong(g, **given):
        return write_back(g, **given, damped=False)

    assert not conform("delta_write", write, backward=wrong, dtype=dtype, **IN_ORDER)


def test_every_mechanism_has_gradients_or_a_reason_for_none():
    having = {
        name
        for name in cases.MECHANISMS
        if any(cases.gradients(cases.of(name), case) for case in cases.of(name).cases)
    }
    assert having | set(cases.WITHOUT_GRADIENTS) == set(cases.MECHANISMS)
    assert not having & set(cases.WITHOUT_GRADIENTS)
    for name, reason in cases.WITHOUT_GRADIENTS.items():
        results = [y for case in cases.of(name).cases for y in cases.of(name).expected(case).values()]
        integral = all(np.asarray(y).dtype.kind in "iub" for y in results)
        assert integral == ("mask" in reason or reason.endswith("a whole number")), name


# A router: its gradient is that of what it has chosen.


def routed(logits, k, bias=None, renormalise=True, scale=1.0):
    scores = 1 / (1 + np.exp(-logits))
    experts = np.argsort(-(scores if bias is None else scores + bias), axis=-1, kind="stable")[..., :k]
    weights = np.take_along_axis(scores, experts, axis=-1)
    return experts, scale * (weights / weights.sum(-1, keepdims=True) if renormalise else weights)


def routed_back(
    _, g, logits, k, bias=None, renormalise=True, scale=1.0, shared=True, learnt=True, biased=False
):
    experts, _ = routed(logits, k, bias)
    scores = 1 / (1 + np.exp(-logits))
    chosen = np.take_along_axis(scores, experts, axis=-1)
    g = scale * g
    if renormalise:
        total = chosen.sum(-1, keepdims=True)
        g = (g - (g * chosen).sum(-1, keepdims=True) / total if shared else g) / total
    to_scores = np.zeros_like(logits)
    np.put_along_axis(to_scores, experts, g, axis=-1)
    to_logits = to_scores * scores * (1 - scores)
    found = {"logits": to_logits if learnt else 0 * to_logits}
    return found | ({"bias": to_scores.sum(0)} if biased and bias is not None else {})


@pytest.mark.parametrize(
    "mistake, argument, said",
    [
        ({"learnt": False}, "logits", "in every case it is zero: nothing flows back to it"),
        ({"biased": True}, "bias", "in every case it is not zero, where nothing flows back to it"),
        ({"shared": False}, "logits", "the gradient of logits[0, "),
    ],
)
def test_a_router_learns_by_its_weights_and_not_by_its_choice(mistake, argument, said):
    def backward(*given, **options):
        return routed_back(*given, **options, **mistake)

    assert conform("route_sigmoid", routed, backward=routed_back)
    report = conform("route_sigmoid", routed, backward=backward)
    assert {slope.argument for slope in report.gradients if not slope.equal} == {argument}
    assert said in str(report)


# Parts of records, distributions, large numbers


def mixed(x, experts, routing, shared=()):
    rows = np.arange(len(x))[:, None]
    answers = np.stack([expert(x) for expert in experts], axis=1)[rows, routing.experts]
    return (routing.weights[..., None] * answers).sum(-2) + sum(expert(x) for expert in shared)


def mixed_back(g, x, experts, routing, shared=()):
    rows = np.arange(len(x))[:, None]
    answers = np.stack([expert(x) for expert in experts], axis=1)[rows, routing.experts]
    return {"routing.weights": (g[:, None] * answers).sum(-1)}


def test_a_field_of_a_record_has_a_gradient():
    report = conform("mixture", mixed, backward=mixed_back)
    assert report and {slope.argument for slope in report.gradients} == {"routing.weights"}
    assert "backward does not return those of x" in str(report)
    assert "not compared" not in str(conform("mixture", mixed, backward=mixed_back, gradients="routing"))
    doubled = conform("mixture", mixed, backward=lambda g, **given: mixed_back(2 * g, **given))
    assert "gradient of routing.weights: wrong in" in str(doubled)
    assert "in every case it is the published one times 2" in str(doubled)
    with pytest.raises(ConformError, match="must name arguments of the function, got 'routing.weight'"):
        conform("mixture", mixed, backward=lambda g, **given: {"routing.weight": g})


def left_over(target, draft):
    surplus = np.maximum(target - draft, 0)
    return surplus / (1 - np.minimum(target, draft).sum(-1, keepdims=True))


def left_over_back(g, target, draft):
    """The mass is what was not accepted: off the simplex another number than the sum of the surplus."""
    mass = 1 - np.minimum(target, draft).sum(-1, keepdims=True)
    surplus = np.maximum(target - draft, 0)
    to_surplus = g * (target > draft) / mass
    to_minimum = (g * surplus).sum(-1, keepdims=True) / mass**2
    to_target = to_surplus + to_minimum * (target < draft)
    return {"target": to_target, "draft": to_minimum * (draft < target) - to_surplus}


def test_distributions_have_gradients_along_the_simplex():
    """Another formula for the same distribution has other slopes off it, and is right."""
    assert conform("residual", left_over, backward=left_over_back)

    def stopped(g, **given):
        return left_over_back(g, **given) | {"draft": 0 * g}

    report = conform("residual", left_over, backward=stopped)
    assert {slope.argument for slope in report.gradients if not slope.equal} == {"draft"}


def below(target, draft, tokens, uniforms):
    """Which draft is the first to be rejected, where its draw must be below the ratio; what is left there."""
    for step, token in enumerate(tokens):
        if uniforms[step] * draft[step, token] >= target[step, token]:
            return step, left_over(target[step], draft[step])
    return len(tokens), target[-1]


def below_back(_, g, target, draft, tokens, uniforms):
    step, _ = below(target, draft, tokens, uniforms)
    found = {"target": np.zeros_like(target), "draft": np.zeros_like(draft)}
    if step == len(tokens):
        found["target"][-1] = g
    else:
        for name, gradient in left_over_back(g, target[step], draft[step]).items():
            found[name][step] = gradient
    return found


def test_conventions_have_slopes_along_the_simplex():
    def doubled(_, g, **given):
        return below_back(None, 2 * g, **given)

    follows = {"follows": "strictly below the ratio"}
    assert conform("verify", below, backward=below_back, **follows)
    report = conform("verify", below, backward=doubled, **follows)
    assert {slope.argument for slope in report.gradients if not slope.equal} == {"target"}


class Wrong:
    """A function all of whose gradients are wrong: half of the published ones, or other numbers."""

    differentiates = True

    def __init__(self, published, halved):
        self.published, self.halved = published, halved

    def asked(self, case, names):
        return names

    def gradients(self, case, weights, names):
        shapes = {name: array.shape for name, array in cases.variables(self.published, case).items()}
        if not self.halved:
            return {name: numbers(*shapes[name], seed=3) for name in names}
        known = cases.gradients(self.published, case)
        return {
            name: sum((one[name] / 2 for one in known.values() if name in one), np.zeros(shapes[name]))
            for name in names
        }


@pytest.mark.parametrize("mechanism", [n for n in cases.MECHANISMS if n not in cases.WITHOUT_GRADIENTS])
@pytest.mark.parametrize("halved", [True, False])
def test_a_wrong_gradient_of_any_mechanism_is_told(mechanism, halved):
    """Where the shapes of arguments change from case to case, and where some are not given, too."""
    published = cases.of(mechanism)
    trials = [(case, dict.fromkeys(published.returns, 0.0)) for case in published.cases]
    slopes, reason = compared(published, trials, Wrong(published, halved), "float64")
    wrong = [slope for slope in slopes if not slope.equal]
    assert wrong and not reason
    if halved:  # half of nothing is right
        assert {slope.instead for slope in wrong} == {"the published one times 0.5"}
    else:
        assert {slope.argument for slope in wrong} == {slope.argument for slope in slopes}


def law_back(g, N, D, law):
    to_N = -g * law.alpha * law.A / N ** (law.alpha + 1)
    return {"N": to_N, "D": -g * law.beta * law.B / D ** (law.beta + 1)}


@pytest.mark.parametrize(
    ("slope", "said"), [(0.0, "0.0e+00, 1 case): bias"), (1.0, "gradient of bias: wrong in 1 of 1 case,")]
)
def test_one_case_is_one_case(slope, said):
    def route(logits, k, bias=None):
        return cases.of("route_sigmoid").reference(logits, k, bias=bias)

    def backward(_, g, logits, k, bias=None):
        return {} if bias is None else {"bias": np.full(bias.shape, slope)}

    assert said in str(conform("route_sigmoid", route, backward=backward, gradients="bias"))


def test_small_gradients_of_large_numbers_are_compared():
    """That of a count of parameters is some 1e-10, and twice that is wrong."""
    function = cases.of("parametric_loss").reference
    assert conform("parametric_loss", function, backward=law_back)
    for factor in (0, 2):
        report = conform(
            "parametric_loss", function, backward=lambda g, **given: law_back(factor * g, **given)
        )
        assert {slope.argument for slope in report.gradients} == {"N", "D"}
        assert not any(slope.equal for slope in report.gradients)


def test_the_wheel_has_the_published_gradients(tmp_path):
    """Where the package is installed without its checkout, gradients are compared all the same."""
    _, content = wheel(find_checkout())
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    program = (
        "from archcards import cases; norm = cases.of('rms_norm');"
        "print(cases.__file__, *cases.gradients(norm, norm.cases[1])['output'])"
    )
    surroundings = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(tmp_path / "archcards" / "cases" / "__init__.py"), "weight", "x"]
