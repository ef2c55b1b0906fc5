"""An implementation is told which convention it follows and which mistake it makes."""

import itertools
import math
import re

import numpy as np
import pytest

from archcards import cases, controls
from archcards.conform import Adapter, ConformError, conform
from archcards.conform_pairs import combining
from archcards.difference import difference
from archcards.mechanisms import AttentionState, linear_attention, rotate

SCALED = "query scaled by 1/sqrt(d)"
ALL = [(m, name) for m in cases.MECHANISMS if m in controls.MECHANISMS for name in controls.of(m)]


@pytest.mark.parametrize("mechanism", cases.MECHANISMS)
def test_the_reference_matches_itself(mechanism):
    report = conform(mechanism, cases.of(mechanism).reference)
    assert report and report.status == 0 and not report.skipped
    assert len(report.outcomes) == len(cases.of(mechanism).cases)


@pytest.mark.parametrize("mechanism, name", ALL)
def test_each_control_is_known_by_its_name_alone(mechanism, name):
    report = conform(mechanism, controls.of(mechanism)[name])
    assert report.diagnosis == ((name,),)
    assert report.status == 1 and not report.matches
    assert f'"{name}"' in " ".join(str(report).split())  # a long line is folded


WRAPPING = [SCALED, "memory as (value, key)", "beta doubled", "unit queries and keys made inside"]


@pytest.mark.parametrize("outer", WRAPPING)
@pytest.mark.parametrize("inner", ["decay after the read", "read before the write", "no decay"])
def test_a_convention_and_a_mistake_are_recognised_together(outer, inner):
    pair = controls.both(controls.delta_rule[outer], controls.delta_rule[inner])
    assert (inner, outer) in conform("delta_rule", pair).diagnosis


# A dozen and more broken copies, written without any of the project's code.


def delta(late_decay=False, scaled=False, sign=1, early=False, beta_power=1, transposed=False):
    def rule(query, key, value, beta, log_decay=None, scale=None, state=None):
        *lead, time, width = query.shape
        S = np.zeros((*lead, width, value.shape[-1])) if state is None else np.array(state)
        S = S.swapaxes(-1, -2) if transposed and state is not None else S
        output = []
        for t in range(time):
            k, v, q = key[..., t, :], value[..., t, :], query[..., t, :]
            decay = np.ones(width) if log_decay is None else np.exp(log_decay[:, :, t])
            decay = decay[..., None] if decay.ndim == 2 else decay
            decayed = decay[..., None] * S
            error = v - np.einsum("...k,...kv->...v", k, S if late_decay else decayed)
            b = beta[..., t, None, None] ** beta_power
            new = decayed + sign * b * k[..., None] * error[..., None, :]
            output.append(np.einsum("...k,...kv->...v", q, S if early else new))
            S = new
        factor = 1 / math.sqrt(width) if scaled else 1.0
        factor = factor if scale is None else scale
        return factor * np.stack(output, -2), S.swapaxes(-1, -2) if transposed else S

    return rule


def memory_read(late=False, early=False, by_logarithm=False):
    """Linear attention as a loop over time, its normaliser a column of ones."""

    def read(query, key, value, log_decay=None, normalise=False, scale=1.0, state=None):
        value = np.concatenate([value, np.ones_like(value[..., :1])], -1) if normalise else value
        S = np.zeros((*key.shape[:2], key.shape[-1], value.shape[-1]))
        if state is not None:
            S = np.concatenate([state[0], state[1][..., None]], -1) if normalise else state
        output = []
        for t in range(key.shape[2]):
            decay = np.ones(1)
            if log_decay is not None:
                decay = log_decay[:, :, t] if by_logarithm else np.exp(log_decay[:, :, t])
                decay = decay[..., None, None] if decay.ndim == 2 else decay[..., None]
            written = key[..., t, :, None] * value[..., t, None, :]
            new = decay * (S + written) if late else decay * S + written
            output.append((query[..., t, :, None] * (S if early else new)).sum(-2))
            S = new
        output = np.stack(output, 2)
        if normalise:
            with np.errstate(invalid="ignore"):
                return output[..., :-1] / output[..., -1:], (S[..., :-1], S[..., -1])
        return scale * output, S

    return read


def softmax_read(divisor=lambda q, v: math.sqrt(q.shape[-1]), tiled=False, hidden=-np.inf, empty=0.0):
    def read(query, key, value, mask=None, scale=None):
        repeat = query.shape[1] // key.shape[1]
        order = np.arange(query.shape[1]) % key.shape[1] if tiled else np.arange(query.shape[1]) // repeat
        key, value = key[:, order], value[:, order]
        scores = query @ key.swapaxes(-1, -2) * (scale or 1 / divisor(query, value))
        scores = scores if mask is None else np.where(mask, scores, hidden)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return np.where(np.isnan(weights), empty, weights) @ value

    return read


def top_left(queries, keys=None, offset=None):
    keys = queries if keys is None else keys
    return np.tri(queries, keys, offset or 0, dtype=bool)


def window_before(queries, keys=None, *, window, offset=None):
    keys = queries if keys is None else keys
    behind = (keys - queries if offset is None else offset) + np.arange(queries)[:, None] - np.arange(keys)
    return (behind >= 0) & (behind <= window)


def turn(x, positions, frequencies, layout="half"):
    """Rotates the pairs of the other layout."""
    pairs = frequencies.inverse.size
    angle = np.asarray(positions)[:, None] * frequencies.inverse
    cos, sin = (f(angle) * frequencies.attention_factor for f in (np.cos, np.sin))
    first, second = np.s_[..., :pairs], np.s_[..., pairs : 2 * pairs]
    if layout == "half":
        first, second = np.s_[..., 0 : 2 * pairs : 2], np.s_[..., 1 : 2 * pairs : 2]
    turned = np.array(x)
    turned[first], turned[second] = x[first] * cos - x[second] * sin, x[first] * sin + x[second] * cos
    return turned


def route(logits, k, renormalise=True, order="softmax_first"):
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    chosen = np.argsort(-p, axis=-1, kind="stable")[:, :k]
    return chosen, np.take_along_axis(p, chosen, axis=-1)


def scan(u, dt, A, B, C, D=None, z=None):
    """Forgets to multiply B by the step."""
    h, out = np.zeros((u.shape[0], *A.shape)), []
    for t in range(u.shape[1]):
        h = np.exp(dt[:, t, :, None] * A) * h + B[:, t, None, :] * u[:, t, :, None]
        out.append((h * C[:, t, None, :]).sum(-1) + (0 if D is None else D * u[:, t]))
    y = np.stack(out, 1)
    return (y if z is None else y * z / (1 + np.exp(-z))), h


def scan_early(u, dt, A, B, C, D=None, z=None):
    """Reads before it writes, and forgets the sign of A."""
    h, out = np.zeros((u.shape[0], *A.shape)), []
    for t in range(u.shape[1]):
        out.append((h * C[:, t, None, :]).sum(-1) + (0 if D is None else D * u[:, t]))
        h = np.exp(-dt[:, t, :, None] * A) * h + (dt[:, t] * u[:, t])[..., None] * B[:, t, None, :]
    y = np.stack(out, 1)
    return (y if z is None else y * z / (1 + np.exp(-z))), h


def route_by_sigmoid(best=2, dropped=-np.inf, leak=False):
    def route(logits, k, bias=None, groups=1, kept_groups=1, renormalise=True, scale=1.0):
        experts, weights = [], []
        for row in logits:
            score = 1 / (1 + np.exp(-row))
            biased = score if bias is None else score + bias
            parts = np.split(np.arange(row.size), groups)
            worth = [sum(sorted(biased[part])[-best:]) for part in parts]
            kept = sorted(range(groups), key=lambda g: -worth[g])[:kept_groups]
            choice = np.full(row.size, dropped)
            for g in kept:
                choice[parts[g]] = biased[parts[g]]
            chosen = sorted(range(row.size), key=lambda e: -choice[e])[:k]
            w = (biased if leak else score)[chosen]
            experts.append(chosen)
            weights.append(scale * (w / w.sum() if renormalise else w))
        return np.array(experts), np.array(weights)

    return route


def gated_late(state, key, value, beta, decay):
    """Takes the error before the decay, and its sign the other way."""
    error = value - np.einsum("...k,...kv->...v", key, state)
    decay = np.asarray(decay)
    decay = decay[..., None, None] if decay.ndim < key.ndim else decay[..., None]
    return decay * state - beta[..., None, None] * key[..., None] * error[..., None, :]


def bessel(x, weight=None, bias=None, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).sum(-1, keepdims=True) / (x.shape[-1] - 1) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def norm(x, weight=None, bias=None, eps=1e-6, centred=False):
    x = x - x.mean(-1, keepdims=True) if centred else x
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def leftover(target, draft):
    return np.maximum(target - draft, 0)


def columns_first(pixels, patch):
    *lead, channel, height, width = pixels.shape
    h, w = (patch, patch) if isinstance(patch, int) else patch
    x = pixels.reshape(*lead, channel, height // h, h, width // w, w)
    x = np.moveaxis(x, (-2, -4, -5, -3, -1), (-5, -4, -3, -2, -1))
    return x.reshape(*lead, (height // h) * (width // w), channel * h * w)


BROKEN = [
    ("delta_rule", delta(late_decay=True), {"decay after the read"}),
    ("delta_rule", delta(scaled=True), {SCALED}),
    ("delta_rule", delta(late_decay=True, scaled=True), {"decay after the read", SCALED}),
    ("delta_rule", delta(sign=-1), {"error with the wrong sign"}),
    ("delta_rule", delta(early=True), {"read before the write"}),
    ("delta_rule", delta(transposed=True), {"memory as (value, key)"}),
    ("delta_rule", delta(transposed=True, early=True), {"memory as (value, key)", "read before the write"}),
    ("delta_rule", delta(late_decay=True, early=True), {"decay after the read", "read before the write"}),
    ("delta_rule", delta(late_decay=True, sign=-1), {"decay after the read", "error with the wrong sign"}),
    ("delta_rule", delta(sign=-1, early=True), {"error with the wrong sign", "read before the write"}),
    ("linear_attention", memory_read(late=True), {"decay after the write"}),
    ("linear_attention", memory_read(late=True, early=True), {"decay after the write", "read before the write"}),
    ("linear_attention", memory_read(late=True, by_logarithm=True), {"decay after the write", "log-decay read as decay"}),
    ("linear_attention", memory_read(early=True, by_logarithm=True), {"read before the write", "log-decay read as decay"}),
    ("rms_norm", lambda x, weight=None, eps=1e-5: norm(x, weight, eps=eps), {"epsilon of 1e-5"}),
    ("layer_norm", lambda x, weight=None, bias=None: norm(x, weight, bias, 1e-6, True), {"epsilon of 1e-6"}),
    ("gated_write", gated_late, {"decay after the read", "error with the wrong sign"}),
    ("route_sigmoid", route_by_sigmoid(best=1, dropped=0.0), {"group scored by its best expert", "dropped groups at zero"}),
    ("route_sigmoid", route_by_sigmoid(best=1, leak=True), {"group scored by its best expert", "bias leaks into the weights"}),
    ("selective_scan", scan_early, {"read before the write", "sign of A forgotten"}),
    ("attention", softmax_read(lambda q, v: q.shape[-1]), {"scaled by 1/d"}),
    ("attention", softmax_read(lambda q, v: math.sqrt(v.shape[-1])), {"scaled by the width of the values"}),
    ("attention", softmax_read(hidden=0.0), {"hidden scores set to zero"}),
    ("attention", softmax_read(hidden=-3.4e38), {"hidden by the smallest float"}),
    ("attention", softmax_read(empty=np.nan), {"NaN where nothing is readable"}),
    ("grouped_attention", softmax_read(tiled=True, hidden=-3.4e38), {"heads tiled, not repeated in runs", "hidden by the smallest float"}),
    ("causal", top_left, {"aligned to the top left"}),
    ("sliding_window", window_before, {"window counts only the keys before"}),
    ("rotate", turn, {"pairs of the other layout"}),
    ("route_top_k", route, {"never renormalised"}),
    ("selective_scan", scan, {"B not multiplied by the step"}),
    ("layer_norm", bessel, {"Bessel's correction"}),
    ("residual", leftover, {"not normalised"}),
    ("patchify", columns_first, {"patches column by column"}),
]  # fmt: skip


@pytest.mark.parametrize("mechanism, function, names", BROKEN, ids=[str(sorted(b[2])) for b in BROKEN])
def test_a_broken_copy_is_diagnosed(mechanism, function, names):
    report = conform(mechanism, function)
    assert names in [set(found) for found in report.diagnosis], str(report)
    assert len(report.diagnosis) == 1


def among(*names):
    return set(map(frozenset, itertools.combinations(names, 2)))


def between(some, others):
    return set(map(frozenset, itertools.product(some, others)))


# Which pairs are one of the two alone. Alternatives for one step; what has nothing left to act on; and
# changes of the steps alone, which chunks do not take.
ORDERS = ["decay after the read", "decay after the write", "factors in the other order"]
SYSTEMS = ["both triangular systems gated", "neither triangular system gated"]
RATIOS = ["decay by differences of sums", "decay by two factors", "decay by two clamped factors"]
CHUNKS = [*SYSTEMS, *RATIOS, "causal mask in place of the decay mask"]
STEPS = [*ORDERS, "read before the write", "log-decay read as decay"]
GIVEN = ["log-decay read as decay", "decay of the step before"]
LINEAR = ["beta on the value alone", "decay after the read", "factors in the other order"]
LINEAR_CHUNKS = ["causal mask in place of the decay mask", *RATIOS[:2]]
LINEAR_STEPS = ["decay after the write", "log-decay read as decay"]
NORMALISERS = ["not normalised", "normaliser summed along the heads", "normaliser without the running sum", "normaliser does not decay"]
APART = {
    "linear_attention": among(*NORMALISERS)
    | among(*LINEAR_CHUNKS)
    | between(["no decay"], [*LINEAR_STEPS, *LINEAR_CHUNKS, "memory between chunks does not decay"])
    | between(LINEAR_STEPS, [*LINEAR_CHUNKS, "memory between chunks does not decay"]),
    "delta_rule": among("no decay", *ORDERS)
    | among(*SYSTEMS)
    | among(*RATIOS)
    | among("read before the write", "read after the decay, before the write")
    | between(["added instead of corrected"], LINEAR + SYSTEMS)
    | between(["no decay"], GIVEN + CHUNKS)
    | between(CHUNKS, STEPS),
    "gated_write": among("no decay", *ORDERS) | between(["added instead of corrected"], LINEAR),
    "route_sigmoid": between(["bias left out"], ["bias leaks into the weights", "dropped groups at zero"])
    | among("scaled before renormalising", "never renormalised"),
    "selective_scan": among("skip after the gate", "skip left out")
    | among("softplus before the bias", "softplus left out")
    | among("sign of A forgotten", "logarithm in place of A")
    | among("other discretisation of B", "B not multiplied by the step"),
}


@pytest.mark.parametrize("mechanism", APART)
def test_all_pairs_are_in_force_together_but_alternatives(mechanism):
    together = set(map(frozenset, combining(mechanism)))
    assert among(*controls.of(mechanism)) - together == APART[mechanism]


def test_two_controls_of_one_step_cannot_be_agreed_on():
    expected = "^follows must name controls of different steps, got 'no decay' and 'decay after the read'$"
    with pytest.raises(ConformError, match=expected):
        conform("delta_rule", delta(), follows=["no decay", "decay after the read"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_variance_as_a_difference_of_squares_is_wrong_far_from_zero(dtype):
    """Its digits cancel where a mean is far above the spread; those of squared differences do not."""

    def norm(x, weight=None, bias=None, *, of_squares=True):
        x = x.astype(dtype)
        mean = x.mean(-1, keepdims=True)
        variance = (x * x).mean(-1, keepdims=True) - mean * mean
        if not of_squares:
            variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        y = (x - mean) / np.sqrt(np.maximum(variance, 0) + 1e-5)
        return y * (1 if weight is None else weight) + (0 if bias is None else bias)

    assert conform("layer_norm", lambda *given, **named: norm(*given, **named, of_squares=False), dtype=dtype)
    report = conform("layer_norm", norm, dtype=dtype)
    assert [one.case for one in report.outcomes if not one.equal] == ["a mean far above the spread"]


def test_a_right_copy_matches_and_says_what_was_not_compared():
    def write(state, key, value, beta):
        error = value - np.einsum("bk,bkv->bv", key, state)
        return state + beta[:, None, None] * key[:, :, None] * error[:, None, :]

    assert conform("delta_write", write)
    report = conform("delta_rule", lambda *given, **options: delta()(*given, **options)[0])
    assert report and report.compared == ("output",)
    assert conform("linear_attention", memory_read())
    assert conform("layer_norm", lambda x, weight=None, bias=None: norm(x, weight, bias, 1e-5, centred=True))


def test_an_unknown_mistake_is_reported_with_its_smallest_case():
    report = conform("delta_rule", delta(beta_power=2))
    known = len(controls.delta_rule)
    pairs = math.comb(known, 2) - len(APART["delta_rule"])
    assert report.diagnosis == () and report.tried == (known, pairs)
    text = str(report)
    assert f"matches nothing known ({known} controls and {pairs} pairs tried)" in text
    assert "degenerate cases that are right: beta one and unit keys: overwritten" in text
    assert "output[0, 0, 0, 0] (batch 0, head 0, time 0, feature 0) is " in text
    assert len(text.splitlines()) < 25 and max(map(len, text.splitlines())) < 130


def test_a_scaled_copy_matches_once_the_convention_is_agreed():
    assert conform("delta_rule", delta(scaled=True), follows=SCALED)
    report = conform("delta_rule", delta(scaled=True, late_decay=True), follows=[SCALED])
    assert report.diagnosis == (("decay after the read",),)


def test_a_default_scale_that_gives_way_is_the_convention():
    """As in flash-linear-attention, whose scale is d^(−1/2) unless another is given."""

    report = conform("delta_rule", delta(scaled=True), follows=SCALED)
    assert report and "scale given" in {outcome.case for outcome in report.outcomes}

    def read(query, key, value, scale=None, state=None, **options):
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return linear_attention(query, key, value, scale=scale, state=state, **options)

    assert conform("linear_attention", read).diagnosis[0] == (SCALED,)


def test_an_assertion_that_fails_shows_the_verdict():
    report = conform("delta_rule", delta(late_decay=True))
    shown = '<delta.<locals>.rule as delta_rule, float64: does not match, and equals the reference with "decay after the read">'
    assert repr(report) == shown
    assert repr(conform("delta_rule", delta())).endswith("float64: matches>")


# Adapters


def time_first(q, k, v, b, g=None, h0=None):
    """Another library's signature: heads after time, memory as (value, key)."""
    q, k, v, b = (np.moveaxis(x, 2, 1) for x in (q, k, v, b))
    g = None if g is None else np.moveaxis(g, 2, 1)
    h0 = None if h0 is None else h0.swapaxes(-1, -2)
    output, state = delta(scaled=True)(q, k, v, b, g, state=h0)
    return np.moveaxis(output, 1, 2), state.swapaxes(-1, -2)


NAMES = {"query": "q", "key": "k", "value": "v", "beta": "b", "log_decay": "g", "state": "h0"}
AXES = {"*": "batch time head", "state": "batch head value key"}


def test_names_axes_and_state_can_be_declared():
    report = conform("delta_rule", time_first, names=NAMES, axes=AXES, follows=SCALED)
    assert report, str(report)
    assert {reason for _, reason in report.skipped} == {"the function takes no scale"}


def test_heads_after_time_are_noticed():
    report = conform("delta_rule", time_first, names=NAMES)
    assert not report.diagnosis
    assert ("query scaled by 1/sqrt(d)", "memory as (value, key)") == report.otherwise.diagnosis[0]
    assert 'if heads come after time: axes "batch time head"' in str(report)


def test_axes_can_be_joined_and_left_out():
    def flat(query, key, value, mask=None):
        q, k, v = (np.stack(np.split(x, 4, axis=-1), 1) for x in (query, key, value))
        read = softmax_read(hidden=-1e30)(q, k, v, mask)
        return np.concatenate(list(np.moveaxis(read, 1, 0)), axis=-1)

    joined = {name: "batch time (head feature)" for name in ("query", "key", "value", "output")}
    report = conform("attention", flat, axes=joined)
    assert report.diagnosis == (("hidden by the smallest float",),)

    def single(query, key, value, mask=None):
        return softmax_read()(query[None, None], key[None, None], value[None, None], mask)[0, 0]

    assert conform("attention", single, each="batch head")


def test_built_in_options_choose_the_cases():
    def held(u, dt, A, B, C):
        return cases.of("selective_scan").reference(u, dt, A, B, C, discretisation="zero_order_hold")

    report = conform("selective_scan", held, where={"discretisation": "zero_order_hold"})
    assert report and [outcome.case for outcome in report.outcomes] == ["zero-order hold"]


def test_results_can_be_named():
    def swapped(query, key, value, beta):
        return tuple(reversed(delta()(query, key, value, beta)))

    assert conform("delta_rule", swapped, returns="state output")
    assert conform("delta_rule", swapped, returns="_ output").compared == ("output",)


def test_inputs_that_are_changed_in_place_change_nothing_else():
    def careless(x, weight=None, eps=1e-6):
        x /= np.sqrt((x**2).mean(-1, keepdims=True) + eps)
        return x if weight is None else x * weight

    assert conform("rms_norm", careless) and conform("rms_norm", careless)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrow_types_have_bounds(dtype):
    def narrow(query, *given, **options):
        assert query.dtype == np.float32
        output, state = delta()(query, *given, **options)
        return _rounded(output, dtype), _rounded(state, dtype)

    assert conform("delta_rule", narrow, dtype=dtype)
    assert not conform("delta_rule", delta(late_decay=True), dtype=dtype)


def _rounded(x, dtype):
    x = np.asarray(x, np.float32)
    return x if dtype == "float32" else (x.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)


class Tensor:
    """As much of a tensor as the comparison uses: it needs no library to read one."""

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    cpu = double = detach

    def is_floating_point(self):
        return True

    def numpy(self):
        return self.array


def test_tensors_are_read():
    def tensors(query, key, value, beta):
        return tuple(map(Tensor, delta()(query, key, value, beta)))

    assert conform("delta_rule", tensors)


# Bad input: one line each


def raising(query, key, value, beta):
    raise RuntimeError("no such\nkernel")


REFUSED = [
    (("delta_rul", delta()), {}, "mechanism must be .* did you mean delta_rule or"),
    (("zzz", delta()), {}, "mechanism must be one that has published cases, got 'zzz'; "),
    (("delta_rule", raising), {}, r"the function raises RuntimeError at \S+test_conform.py:\d+: no such kernel \(case '"),
    (("delta_rule", delta()), {"names": {"log_decy": "g"}}, "names of delta_rule .* mean log_decay"),
    (("delta_rule", delta()), {"axes": "bach time"}, "axes of delta_rule .* did you mean batch"),
    (("delta_rule", delta()), {"each": "hed"}, "each of delta_rule .* did you mean head"),
    (("delta_rule", delta()), {"dtype": "float16"}, "dtype of delta_rule must not name 'float16'"),
    (("delta_rule", delta()), {"follows": "decay after read"}, "mean 'decay after the read'"),
    (("delta_rule", delta()), {"where": {"scale": 3.0}}, "no case of delta_rule can be run: scale is"),
    (("delta_rule", delta()), {"colour": "red"}, "options must be among names, axes"),
    (("delta_rule", lambda q, k, v, b: q[..., :1]), {}, "every result has another shape"),
    (("delta_rule", lambda q, k, v, b: None), {}, "the function must return output, got nothing"),
    (("delta_rule", lambda q, k, v, b: (q, q, q)), {}, "must return at most 2 results"),
]


@pytest.mark.parametrize("given, options, reason", REFUSED)
def test_what_cannot_be_compared_is_refused_in_one_line(given, options, reason):
    with pytest.raises(ConformError, match=reason) as refused:
        conform(*given, **options)
    assert "\n" not in str(refused.value)


def test_a_function_that_raises_in_a_degenerate_case_is_told_which():
    def picky(query, key, value, mask=None):
        if query.shape[-2] == 1:
            raise ValueError("length must be even")
        return softmax_read()(query, key, value, mask)

    report = conform("attention", picky)
    assert re.search(r"raises ValueError at \S+test_conform.py:\d+: length must be even", str(report))
    assert not report.diagnosis and report.status == 1


def test_a_function_may_leave_cases_out():
    def square(query, key, value, mask=None):
        if query.shape[-2] != key.shape[-2]:
            raise NotImplementedError("only as many queries as keys")
        return softmax_read()(query, key, value, mask)

    report = conform("attention", square)
    assert report and "not run because only as many queries as keys: " in str(report)


def test_an_adapter_can_be_kept():
    adapter = Adapter(names=NAMES, axes=AXES)
    assert conform("delta_rule", time_first, adapter=adapter, follows=SCALED)


def test_all_pairs_of_a_small_mechanism_are_told_apart_or_listed_as_ties():
    """Where a pair differs from each of its controls, it is found among the diagnoses."""
    for one, two in itertools.permutations(controls.of("gated_write"), 2):
        known = controls.gated_write
        report = conform("gated_write", controls.both(known[one], known[two]))
        found = [set(names) for names in report.diagnosis]
        assert report.matches or {one, two} in found or any(len(f) == 1 for f in found)


def test_numbers_that_differ_are_printed_so():
    _, where = difference("output", np.array([1.0000000001]), np.array([1.0]), 1e-12)
    assert where == "output[0] is 1.0000000001, not 1"


def test_float32_inside_is_noticed():
    """As in most reference code, which casts to float32 and back."""

    def narrow(function):
        def inside(*arguments, **options):
            output, state = function(*(x.astype(np.float32) for x in arguments), **options)
            return output.astype(np.float32).astype(float), state.astype(np.float32).astype(float)

        return inside

    def rule(query, key, value, beta, log_decay=None, state=None):
        return narrow(delta())(query, key, value, beta, log_decay=log_decay, state=state)

    def scaled(query, key, value, beta, log_decay=None, state=None):
        return narrow(delta(scaled=True))(query, key, value, beta, log_decay=log_decay, state=state)

    report = conform("delta_rule", rule)
    assert not report and 'but matches if it computes in float32: dtype "float32"' in str(report)
    assert conform("delta_rule", rule, dtype="float32")
    report = conform("delta_rule", scaled)
    assert not report and report.otherwise.diagnosis == ((SCALED,),)


@pytest.mark.parametrize("order", [1, -1])
def test_two_conventions_are_agreed_on_in_any_order(order):
    both = [SCALED, "decay after the read"][::order]
    assert conform("delta_rule", delta(scaled=True, late_decay=True), follows=both)
    assert not conform("delta_rule", delta(scaled=True), follows=both)


def test_a_result_that_is_left_out_of_some_cases_is_told():
    def rule(query, key, value, beta, log_decay=None, state=None):
        output, after = delta()(query, key, value, beta, log_decay, state=state)
        return output, after if state is None else None

    report = conform("delta_rule", rule)
    ran = {outcome.case for outcome in report.outcomes}
    given = [case for case in cases.of("delta_rule").cases if case.name in ran]
    there = sum("state" not in case.arguments for case in given)
    assert 0 < there < len(ran)
    assert report.compared == ("output", f"state (in {there} of {len(ran)} cases)")
    assert report.compared[1] in str(report)


def test_what_a_function_does_to_its_arguments_is_seen_by_nobody_else():
    """Records too: what is expected is computed from the published numbers, whenever it is computed."""

    def emptied(own, other):
        for state in (own, other):
            state.weighted[...] = 0

    def merged_of_nothing(own, other):
        emptied(own, other)
        return AttentionState.merge(own, other)

    def merged_and_emptied(own, other):
        found = AttentionState.merge(own, other)
        emptied(own, other)
        return found

    def rotated_at_rest(x, positions, frequencies, layout="halves"):
        frequencies.inverse[...] = 0
        return rotate(x, positions, frequencies, layout=layout)

    for _ in range(2):  # nor does what the first function left behind show in the second
        assert not conform("merge", merged_of_nothing)
        assert conform("merge", merged_and_emptied)
        assert not conform("rotate", rotated_at_rest)
        assert conform("rotate", rotate)


def test_cases_in_which_nothing_could_be_wrong_are_no_match():
    def of_nothing(x, weight=None, eps=1e-5):
        if x.any():
            raise NotImplementedError("not yet")
        return 0 * x

    with pytest.raises(ConformError, match=r"^no case in which rms_norm could be wrong can be run: not yet \(case '"):
        conform("rms_norm", of_nothing)
