"""Selective state spaces and the blocks around them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.mechanisms import (
    Mamba2Weights,
    MambaWeights,
    RecurrentCache,
    causal_convolution,
    gated_norm,
    mamba2_block,
    mamba_block,
    selective_scan,
    silu,
    state_space_dual,
)

RULES = ("exponential_euler", "zero_order_hold")
DUAL_FORMS = ("recurrent", "chunked", "matrix")
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(1, 9)


def close(actual, expected, tolerance=1e-11):
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


# Mamba-1


def scan_case(seed, time, *leading, channels=3, N=2):
    generator = np.random.default_rng(seed)
    normal = generator.normal
    return {
        "u": normal(size=(*leading, time, channels)),
        "dt": normal(size=(*leading, time, channels)),
        "A": -np.exp(normal(size=(channels, N))) * generator.choice([0.0, 1.0, 300.0], p=[0.1, 0.8, 0.1]),
        "B": normal(size=(*leading, time, N)),
        "C": normal(size=(*leading, time, N)),
        "D": normal(size=channels),
        "z": normal(size=(*leading, time, channels)),
        "dt_bias": normal(size=channels),
        "state": normal(size=(*leading, channels, N)),
    }


def scan_by_numbers(u, dt, A, B, C, D, z, dt_bias, state, rule):
    """One scalar differential equation at a time, each solved over each step."""
    (time, channels), N = u.shape, A.shape[1]
    y = np.zeros((time, channels))
    final = np.zeros((channels, N))
    for c in range(channels):
        h = list(state[c])
        for t in range(time):
            step = math.log(1 + math.exp(dt[t, c] + dt_bias[c]))
            read = D[c] * u[t, c]
            for n in range(N):
                a = A[c, n]
                decay = math.exp(step * a)
                width = (decay - 1) / a if rule == "zero_order_hold" and a else step
                h[n] = decay * h[n] + width * B[t, n] * u[t, c]
                read += C[t, n] * h[n]
            y[t, c] = read * z[t, c] / (1 + math.exp(-z[t, c]))
        final[c] = h
    return y, final


@pytest.mark.parametrize("form", ["recurrent", "associative"])
@given(seed=seeds, time=lengths, rule=st.sampled_from(RULES))
@settings(max_examples=40)
def test_the_scan_is_its_scalars(form, seed, time, rule):
    arrays = scan_case(seed, time)
    actual = selective_scan(**arrays, dt_softplus=True, discretisation=rule, form=form)
    close(actual, scan_by_numbers(**arrays, rule=rule))


@pytest.mark.parametrize("form", ["recurrent", "associative"])
@pytest.mark.parametrize("rule", RULES)
def test_a_constant_input_follows_the_differential_equation(form, rule):
    """h' = −h + 1 from 0 is 1 − e^−t: the hold is exact at any step, Euler's rule in the limit."""

    def error(steps):
        ones = np.ones((steps, 1))
        options = {"discretisation": rule, "form": form}
        _, state = selective_scan(ones, 2 / steps * ones, [[-1.0]], ones, ones, **options)
        return abs(state.item() - (1 - math.exp(-2)))

    if rule == "zero_order_hold":
        assert error(1) < 1e-15 and error(50) < 1e-14
    else:
        assert error(1) > 0.5 and error(20) / error(40) == pytest.approx(2, rel=0.05)


def test_the_hold_keeps_its_digits_in_tiny_steps():
    """(e^(ΔA) − 1) / A → Δ (1 + ΔA/2): a difference of numbers that agree in all but three digits."""
    one, step = np.ones((1, 1)), 3e-13
    options = {"discretisation": "zero_order_hold"}
    y, _ = selective_scan(one, step * one, -2 * one, one, one, **options)
    assert y.item() == pytest.approx(step * (1 - step), rel=1e-15)


def test_a_rate_of_zero_adds_up():
    u, ones = np.array([[1.0], [2.0], [4.0]]), np.ones((3, 1))
    for rule in RULES:
        y, _ = selective_scan(u, ones, [[0.0]], ones, ones, discretisation=rule)
        assert y.ravel().tolist() == [1.0, 3.0, 7.0]


def test_a_strong_rate_forgets_without_a_warning():
    u, ones = np.array([[1.0], [2.0], [4.0]]), np.ones((3, 1))
    for form in ("recurrent", "associative"):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            y, state = selective_scan(u, 1e3 * ones, [[-1e300]], ones, ones, form=form)
        assert y.ravel().tolist() == [1e3, 2e3, 4e3] and state.item() == 4e3


@given(seed=seeds, time=lengths, cut=st.integers(0, 9), associative=st.booleans())
@settings(max_examples=30)
def test_a_scan_may_be_cut_anywhere(seed, time, cut, associative):
    arrays = scan_case(seed, time)
    state = arrays.pop("state")
    options = {"dt_softplus": True, "form": "associative" if associative else "recurrent"}
    moving = ("u", "dt", "B", "C", "z")

    def part(steps):
        return {name: x[steps] if name in moving else x for name, x in arrays.items()}

    first, middle = selective_scan(**part(slice(cut)), state=state, **options)
    second, final = selective_scan(**part(slice(cut, None)), state=middle, **options)
    whole = selective_scan(**arrays, state=state, **options)
    close((np.concatenate([first, second]), final), whole)


@pytest.mark.parametrize("form", ["recurrent", "associative"])
def test_leading_axes_of_a_scan(form):
    arrays = scan_case(3, 6, 2, 4)
    together = selective_scan(**arrays, dt_softplus=True, form=form)
    shared = ("A", "D", "dt_bias")
    for place in np.ndindex(2, 4):
        alone = {name: x if name in shared else x[place] for name, x in arrays.items()}
        close([x[place] for x in together], selective_scan(**alone, dt_softplus=True, form=form))
    arrays |= {name: arrays[name][0, 0] for name in ("B", "z", "state")}
    arrays |= {"u": arrays["u"][:, :1], "dt": arrays["dt"][0]}
    mixed = selective_scan(**arrays, dt_softplus=True, form=form)
    full = {
        name: x if name in shared else np.broadcast_to(x, (2, 4, *x.shape[-2:]))
        for name, x in arrays.items()
    }
    close(mixed, selective_scan(**full, dt_softplus=True))


@pytest.mark.parametrize("form", ["recurrent", "associative"])
def test_an_empty_scan_leaves_the_state(form):
    arrays = scan_case(3, 0, 2)
    y, state = selective_scan(**arrays, dt_softplus=True, form=form)
    assert y.shape == (2, 0, 3) and (state == arrays["state"]).all()


# Mamba-2


def dual_case(seed, time, *leading, heads=4, groups=2, N=3, P=2):
    generator = np.random.default_rng(seed)
    normal = generator.normal
    return {
        "x": normal(size=(*leading, heads, time, P)),
        "dt": normal(size=(*leading, heads, time)),
        "A": -np.exp(normal(size=heads)) * generator.choice([0.0, 1.0, 1.0, 300.0], size=heads),
        "B": normal(size=(*leading, groups, time, N)),
        "C": normal(size=(*leading, groups, time, N)),
        "D": normal(size=heads),
        "dt_bias": normal(size=heads),
        "state": normal(size=(*leading, heads, N, P)),
    }


def dual_by_matrices(x, dt, A, B, C, D, dt_bias, state, limit=(0, math.inf)):
    """Each head as one lower triangular matrix, entry by entry."""
    heads, time, P = x.shape
    y, final = np.zeros_like(x), np.zeros_like(state)
    for h in range(heads):
        g = h // (heads // len(B))
        steps = [math.log(1 + math.exp(v + dt_bias[h])) for v in dt[h]]
        steps = [min(max(step, limit[0]), limit[1]) for step in steps]
        for i in range(time):
            y[h, i] = math.exp(A[h] * sum(steps[: i + 1])) * (C[g, i] @ state[h]) + D[h] * x[h, i]
            for j in range(i + 1):
                decay = math.exp(A[h] * sum(steps[j + 1 : i + 1]))
                y[h, i] += decay * (C[g, i] @ B[g, j]) * steps[j] * x[h, j]
        final[h] = math.exp(A[h] * sum(steps)) * state[h]
        for j in range(time):
            decay = math.exp(A[h] * sum(steps[j + 1 :]))
            final[h] += decay * steps[j] * np.outer(B[g, j], x[h, j])
    return y, final


@pytest.mark.parametrize("form", DUAL_FORMS)
@given(seed=seeds, time=lengths, chunk=st.integers(1, 11), groups=st.sampled_from([1, 2, 4]))
@settings(max_examples=30)
def test_the_dual_is_its_matrix(form, seed, time, chunk, groups):
    arrays = dual_case(seed, time, groups=groups)
    close(state_space_dual(**arrays, form=form, chunk=chunk), dual_by_matrices(**arrays))


@pytest.mark.parametrize("form", DUAL_FORMS)
@pytest.mark.parametrize("limit", [(0.0, math.inf), (0.5, 0.9), (0.0, 0.1), (3.0, 3.0)])
def test_the_limit_holds_the_step_after_the_softplus(form, limit):
    arrays = dual_case(7, 6)
    expected = dual_by_matrices(**arrays, limit=limit)
    close(state_space_dual(**arrays, dt_limit=limit, form=form), expected)


@pytest.mark.parametrize("form", DUAL_FORMS)
def test_channels_of_one_rate_are_one_head_of_the_dual(form):
    """Mamba-1 with the same rate and step in all its channels and states."""
    generator = np.random.default_rng(0)
    u, (B, C) = generator.normal(size=(7, 5)), generator.normal(size=(2, 7, 3))
    dt, D = generator.random(7), generator.normal(size=(1, 5))
    scan, h = selective_scan(
        u, np.repeat(dt[:, None], 5, axis=1), np.full((5, 3), -0.7), B, C, D=D[0]
    )
    options = {"D": D, "dt_softplus": False, "form": form, "chunk": 4}
    dual, state = state_space_dual(u[None], dt[None], [-0.7], B[None], C[None], **options)
    close((dual[0], state[0].T), (scan, h))


@pytest.mark.parametrize("form", DUAL_FORMS)
def test_leading_axes_of_the_dual(form):
    arrays = dual_case(3, 6, 2, 3)
    together = state_space_dual(**arrays, form=form, chunk=4)
    shared = ("A", "D", "dt_bias")
    for place in np.ndindex(2, 3):
        alone = {name: x if name in shared else x[place] for name, x in arrays.items()}
        close([x[place] for x in together], state_space_dual(**alone))
    arrays |= {name: arrays[name][0, 0] for name in ("x", "C", "state")}
    arrays |= {"B": arrays["B"][:, :1], "dt": arrays["dt"][0]}
    full = {
        name: x if name in shared else np.broadcast_to(x, (2, 3, *x.shape[x.ndim - tail :]))
        for name, x in arrays.items()
        for tail in [2 if name == "dt" else 3]
    }
    close(state_space_dual(**arrays, form=form, chunk=4), state_space_dual(**full))


@given(seed=seeds, time=lengths, cut=st.integers(0, 9), form=st.sampled_from(DUAL_FORMS))
@settings(max_examples=30)
def test_the_dual_may_be_cut_anywhere(seed, time, cut, form):
    arrays = dual_case(seed, time)
    state = arrays.pop("state")

    def part(steps):
        moved = {"dt": arrays["dt"][:, steps]} | {n: arrays[n][:, steps] for n in ("x", "B", "C")}
        return arrays | moved

    first, middle = state_space_dual(**part(slice(cut)), state=state, form=form, chunk=3)
    second, final = state_space_dual(**part(slice(cut, None)), state=middle, form=form, chunk=3)
    whole = state_space_dual(**arrays, state=state)
    close((np.concatenate([first, second], axis=-2), final), whole)


@pytest.mark.parametrize("form", DUAL_FORMS)
def test_an_empty_dual_leaves_the_state(form):
    arrays = dual_case(1, 0, 2)
    y, state = state_space_dual(**arrays, form=form)
    assert y.shape == (2, 4, 0, 2) and (state == arrays["state"]).all()


# The convolution, its gate and its norm


@given(seed=seeds, time=st.integers(0, 6), width=st.integers(1, 5))
@settings(max_examples=30)
def test_the_convolution_is_numpys_with_the_taps_reversed(seed, time, width):
    generator = np.random.default_rng(seed)
    x, weight = generator.normal(size=(2, time, 3)), generator.normal(size=(3, width))
    bias = generator.normal(size=3)
    y = causal_convolution(x, weight, bias)
    assert y.shape == x.shape
    for b in range(2):
        for c in range(3):
            if time:
                expected = np.convolve(x[b, :, c], weight[c, ::-1])[:time] + bias[c]
                np.testing.assert_allclose(y[b, :, c], expected, rtol=0, atol=1e-12)


def test_the_convolution_goes_on_after_a_past():
    generator = np.random.default_rng(0)
    x, weight = generator.normal(size=(9, 2)), generator.normal(size=(2, 4))
    later = causal_convolution(x[2:], weight)[3:]
    np.testing.assert_allclose(later, causal_convolution(x, weight)[5:], rtol=0, atol=1e-14)


def test_silu():
    expected = [0.5 / (1 + math.exp(-0.5)), -0.5 / (1 + math.exp(0.5)), 800, 0]
    assert silu([0.5, -0.5, 800, -800]) == pytest.approx(expected)


def test_the_gated_norm_is_one_for_each_group():
    generator = np.random.default_rng(0)
    y, z, weight = generator.normal(size=(5, 6)), generator.normal(size=(5, 6)), np.arange(1.0, 7)
    normed = gated_norm(y, z, weight, groups=2, eps=1e-3)
    for row in range(5):
        for group in (slice(0, 3), slice(3, 6)):
            gated = [a * b / (1 + math.exp(-b)) for a, b in zip(y[row, group], z[row, group])]
            root = math.sqrt(sum(g * g for g in gated) / 3 + 1e-3)
            expected = [g / root * w for g, w in zip(gated, weight[group])]
            np.testing.assert_allclose(normed[row, group], expected, rtol=1e-13)


# The blocks


def mamba_weights(generator, model=3, inner=4, width=3, N=2, rank=2):
    shapes = {
        "input": (model, 2 * inner),
        "convolution": (inner, width),
        "convolution_bias": (inner,),
        "selection": (inner, rank + 2 * N),
        "dt": (rank, inner),
        "dt_bias": (inner,),
        "A_log": (inner, N),
        "D": (inner,),
        "output": (inner, model),
    }
    return {name: generator.normal(size=shape) for name, shape in shapes.items()}


def mamba2_weights(generator, model=3, heads=4, P=2, width=3, N=2, groups=2):
    inner = heads * P
    channels = inner + 2 * groups * N
    shapes = {
        "input": (model, inner + channels + heads),
        "convolution": (channels, width),
        "convolution_bias": (channels,),
        "dt_bias": (heads,),
        "A_log": (heads,),
        "D": (heads,),
        "norm": (inner,),
        "output": (inner, model),
    }
    return {name: generator.normal(size=shape) for name, shape in shapes.items()} | {
        "groups": groups
    }


def naive_silu(x):
    return x / (1 + np.exp(-x))


def naive_convolution(x, weight, bias):
    width = weight.shape[1]
    padded = np.vstack([np.zeros((width - 1, x.shape[1])), x])
    return np.array([(padded[t : t + width].T * weight).sum(axis=1) + bias for t in range(len(x))])


def test_mamba_block_is_its_parts():
    generator = np.random.default_rng(0)
    w = mamba_weights(generator)
    x = generator.normal(size=(6, 3))
    u, z = (x @ w["input"])[:, :4], (x @ w["input"])[:, 4:]
    u = naive_silu(naive_convolution(u, w["convolution"], w["convolution_bias"]))
    selected = u @ w["selection"]
    y, state = scan_by_numbers(
        u,
        selected[:, :2] @ w["dt"],
        -np.exp(w["A_log"]),
        selected[:, 2:4],
        selected[:, 4:],
        w["D"],
        z,
        w["dt_bias"],
        np.zeros((4, 2)),
        "exponential_euler",
    )
    actual, cache = mamba_block(x, MambaWeights(**w))
    close((actual, cache.state), (y @ w["output"], state))
    assert (cache.inputs == (x @ w["input"])[-2:, :4]).all() and cache.scalars == 2 * 4 + 4 * 2


def test_mamba2_block_is_its_parts():
    generator = np.random.default_rng(0)
    w = mamba2_weights(generator)
    x = generator.normal(size=(6, 3))
    z, inputs, dt = np.split(x @ w["input"], [8, 24], axis=1)
    mixed = naive_silu(naive_convolution(inputs, w["convolution"], w["convolution_bias"]))
    y, state = dual_by_matrices(
        mixed[:, :8].reshape(6, 4, 2).transpose(1, 0, 2),
        dt.T,
        -np.exp(w["A_log"]),
        np.array([mixed[:, 8:10], mixed[:, 10:12]]),
        np.array([mixed[:, 12:14], mixed[:, 14:16]]),
        w["D"],
        w["dt_bias"],
        np.zeros((4, 2, 2)),
        limit=(0.1, 2.0),
    )
    gated = y.transpose(1, 0, 2).reshape(6, 8) * naive_silu(z)
    for group in (slice(0, 4), slice(4, 8)):
        gated[:, group] /= np.sqrt(np.mean(gated[:, group] ** 2, axis=1) + 1e-5)[:, None]
    expected = (gated * w["norm"]) @ w["output"]
    for form in DUAL_FORMS:
        options = {"dt_limit": (0.1, 2.0), "form": form, "chunk": 4}
        actual, cache = mamba2_block(x, Mamba2Weights(**w), **options)
        close((actual, cache.state, cache.inputs), (expected, state, inputs[-2:]))


@pytest.mark.parametrize(
    "block, weights",
    [(mamba_block, lambda g: MambaWeights(**mamba_weights(g)))]
    + [(mamba2_block, lambda g: Mamba2Weights(**mamba2_weights(g)))],
)
@pytest.mark.parametrize("sizes", [[8], [1] * 8, [3, 5], [1, 0, 7]])
def test_a_block_decodes_as_it_prefills(block, weights, sizes):
    generator = np.random.default_rng(1)
    w, x = weights(generator), generator.normal(size=(2, 8, 3))
    whole, final = block(x, w)
    outputs, cache = [], None
    for part in np.split(x, np.cumsum(sizes)[:-1], axis=1):
        y, cache = block(part, w, cache=cache)
        assert cache.scalars == final.scalars
        outputs.append(y)
    close(
        (np.concatenate(outputs, axis=1), cache.inputs, cache.state),
        (whole, final.inputs, final.state),
    )


# Refusals

ONES = np.ones((2, 3))
SCAN = {"u": ONES, "dt": ONES, "A": -np.ones((3, 4)), "B": np.ones((2, 4)), "C": np.ones((2, 4))}
DUAL = {
    "x": np.ones((4, 2, 3)),
    "dt": np.ones((4, 2)),
    "A": -np.ones(4),
    "B": np.ones((2, 2, 5)),
    "C": np.ones((2, 2, 5)),
}


def refuses(function, arguments, message):
    with pytest.raises(ValueError) as error:
        function(**arguments)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"form": "parallel"}, "form must be 'recurrent' or 'associative', got 'parallel'"),
        (
            {"discretisation": "bilinear"},
            "discretisation must be 'exponential_euler' or 'zero_order_hold', got 'bilinear'",
        ),
        ({"u": ONES[0]}, "u must have at least 2 axes, got shape (3,)"),
        ({"A": -np.ones(3)}, "A must have 2 axes, got shape (3,)"),
        ({"A": np.ones((3, 4))}, "A must be at most 0, as -exp(A_log) is, got 1.0"),
        ({"A": -np.ones((2, 4))}, "A must have the channel of u, 3, got 2"),
        ({"dt": np.ones((1, 3))}, "dt must have the time of u, 2, got 1"),
        ({"dt": np.ones((2, 1))}, "dt must have the channel of A, 3, got 1"),
        ({"dt": -ONES}, "dt must be at least 0 after dt_bias, or take a softplus, got -1.0"),
        ({"B": np.ones((2, 3))}, "B must have the N of A, 4, got 3"),
        ({"C": np.ones((3, 4))}, "C must have the time of u, 2, got 3"),
        ({"D": [1.0]}, "D must have shape (3,), got (1,)"),
        ({"dt_bias": 1.0}, "dt_bias must have shape (3,), got ()"),
        ({"z": np.ones((2, 1))}, "z must have the channel of A, 3, got 1"),
        ({"state": np.ones((4, 3))}, "state must have the channel of u, 3, got 4"),
        ({"state": np.ones((3, 3))}, "state must have the N of A, 4, got 3"),
        (
            {"u": np.ones((5, 2, 3)), "B": np.ones((6, 2, 4))},
            "u and dt and B and C and state must have leading axes that broadcast, got u (5,)",
        ),
    ],
)
def test_a_scan_refuses(change, message):
    refuses(selective_scan, SCAN | change, message)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"form": "parallel"}, "form must be 'recurrent' or 'chunked' or 'matrix'"),
        ({"chunk": 0}, "chunk must be an integer at least 1, got 0"),
        ({"x": ONES}, "x must have at least 3 axes, got shape (2, 3)"),
        ({"A": np.ones(4)}, "A must be at most 0, as -exp(A_log) is, got 1.0"),
        ({"A": -np.ones(3)}, "A must have the head of x, 4, got 3"),
        ({"dt": np.ones((1, 2))}, "dt must have the head of x, 4, got 1"),
        ({"dt": np.ones((4, 1))}, "dt must have the time of x, 2, got 1"),
        ({"B": np.ones((2, 1, 5))}, "B must have the time of x, 2, got 1"),
        ({"C": np.ones((2, 1, 5))}, "C must have the time of x, 2, got 1"),
        ({"C": np.ones((1, 2, 5))}, "C must have the group of B, 2, got 1"),
        ({"C": np.ones((2, 2, 4))}, "C must have the N of B, 5, got 4"),
        (
            {"B": np.ones((3, 2, 5)), "C": np.ones((3, 2, 5))},
            "B must have groups that divide the 4 heads of x, got 3",
        ),
        ({"D": np.ones(3)}, "D must have shape (4,) or (4, 3), got (3,)"),
        ({"dt_bias": np.ones(1)}, "dt_bias must have shape (4,), got (1,)"),
        ({"dt_limit": 0.5}, "dt_limit must be a pair (low, high), got 0.5"),
        ({"dt_limit": (0.5, 0.1)}, "dt_limit's high must be a number at least 0.5, got 0.1"),
        ({"dt_limit": (-1.0, 1.0)}, "dt_limit's low must be a finite number at least 0, got -1.0"),
        ({"state": np.ones((3, 5, 3))}, "state must have the head of x, 4, got 3"),
        ({"state": np.ones((4, 3, 5))}, "state must have the N of B, 5, got 3"),
        ({"state": np.ones((4, 5, 5))}, "state must have the P of x, 3, got 5"),
        (
            {"x": np.ones((5, 4, 2, 3)), "dt": np.ones((6, 4, 2))},
            "x and dt and B and C must have leading axes that broadcast, got x (5,), dt (6,)",
        ),
    ],
)
def test_the_dual_refuses(change, message):
    refuses(state_space_dual, DUAL | change, message)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: causal_convolution(ONES, np.ones((2, 4))),
            "weight must have the channel of x, 3, got 2",
        ),
        (
            lambda: causal_convolution(ONES, np.ones((3, 0))),
            "weight must have at least one tap, got none",
        ),
        (lambda: causal_convolution(ONES, np.ones((3, 2)), [1.0]), "bias must have shape (3,)"),
        (lambda: silu([math.nan]), "x must be finite, got nan at index (0,)"),
        (lambda: gated_norm(ONES, ONES[:1], np.ones(3)), "z must have shape (2, 3), got (1, 3)"),
        (lambda: gated_norm(ONES, ONES, [1.0]), "weight must have shape (3,), got (1,)"),
        (
            lambda: gated_norm(ONES, ONES, np.ones(3), groups=2),
            "groups must divide the 3 channels of y, got 2",
        ),
    ],
)
def test_the_small_parts_refuse(call, message):
    refuses(call, {}, message)


@pytest.mark.parametrize("name", sorted(mamba_weights(np.random.default_rng(0))))
def test_mamba_weights_must_fit(name):
    weights = mamba_weights(np.random.default_rng(0))
    weights[name] = np.ones((*weights[name].shape[:-1], weights[name].shape[-1] + 1))
    if name == "convolution":  # its width is free
        MambaWeights(**weights)
        weights[name] = weights[name][:-1]
    with pytest.raises(ValueError, match=r"^\w+ must have .*, got "):
        MambaWeights(**weights)


@pytest.mark.parametrize("name", sorted(set(mamba2_weights(np.random.default_rng(0))) - {"groups"}))
def test_mamba2_weights_must_fit(name):
    weights = mamba2_weights(np.random.default_rng(0))
    weights[name] = np.ones((*weights[name].shape[:-1], weights[name].shape[-1] + 1))
    if name == "convolution":
        Mamba2Weights(**weights)
        weights[name] = weights[name][:-1]
    with pytest.raises(ValueError, match=r"^\w+ must (have|divide) .*, got "):
        Mamba2Weights(**weights)


def test_groups_must_divide_the_heads():
    weights = mamba2_weights(np.random.default_rng(0)) | {"groups": 3}
    refuses(Mamba2Weights, weights, "norm must divide into 3 equal parts, got 8")


def test_a_block_refuses_what_is_no_record_of_its_weights():
    for block, kind in ((mamba_block, "MambaWeights"), (mamba2_block, "Mamba2Weights")):
        with pytest.raises(ValueError, match=f"^weights must be a {kind}, got "):
            block(np.zeros((2, 3)), {"input": np.zeros((3, 4))})


def test_a_block_refuses_an_input_or_a_cache_that_does_not_fit():
    weights = MambaWeights(**mamba_weights(np.random.default_rng(0)))
    with pytest.raises(ValueError, match="^x must have the model width of input, 3, got 2$"):
        mamba_block(np.ones((5, 2)), weights)
    cache = RecurrentCache(np.zeros((3, 4)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"^cache must have shape \(2, 4\), got \(3, 4\)$"):
        mamba_block(np.ones((5, 3)), weights, cache=cache)
