"""Norms against plain Python, and what they leave unchanged."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import gated_norm, layer_norm, qk_norm, residual_step, rms_norm

EXACT = {"rtol": 0, "atol": 1e-12}
seeds = st.integers(0, 2**32 - 1)


def drawn(seed, *shapes):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape) for shape in shapes]


@given(seeds, st.integers(1, 6))
def test_layer_norm_row_by_row(seed, width):
    x, weight, bias = drawn(seed, (2, 3, width), width, width)
    output = layer_norm(x, weight, bias, eps=0.01)
    for a in range(2):
        for b in range(3):
            row = x[a, b].tolist()
            mean = math.fsum(row) / width
            variance = math.fsum((r - mean) ** 2 for r in row) / width
            expected = [
                (r - mean) / math.sqrt(variance + 0.01) * w + c
                for r, w, c in zip(row, weight, bias, strict=True)
            ]
            np.testing.assert_allclose(output[a, b], expected, **EXACT)


@given(seeds, st.integers(1, 6))
def test_rms_norm_row_by_row(seed, width):
    x, weight = drawn(seed, (3, width), width)
    output = rms_norm(x, weight, eps=0.01)
    for row, got in zip(x.tolist(), output, strict=True):
        root = math.sqrt(math.fsum(r * r for r in row) / width + 0.01)
        np.testing.assert_allclose(got, [r / root * w for r, w in zip(row, weight, strict=True)], **EXACT)


@given(seeds, st.sampled_from([1, 2, 3, 6]), st.booleans())
def test_gated_norm_is_a_norm_of_each_group(seed, groups, gate_first):
    y, z, weight = drawn(seed, (2, 6), (2, 6), 6)
    order = "gate_first" if gate_first else "norm_first"
    output = gated_norm(y, z, weight, groups=groups, order=order)
    gate = z / (1 + np.exp(-z))
    size = 6 // groups
    for start in range(0, 6, size):
        part = slice(start, start + size)
        inside = y[:, part] * gate[:, part] if gate_first else y[:, part]
        expected = rms_norm(inside, weight[part], eps=1e-5)
        expected = expected if gate_first else expected * gate[:, part]
        np.testing.assert_allclose(output[:, part], expected, **EXACT)


@given(seeds)
def test_what_norms_do_not_see(seed):
    """LayerNorm: shift and scale. RMSNorm: scale. Both without ε."""
    (x,) = drawn(seed, (3, 5))
    np.testing.assert_allclose(layer_norm(7 * x + 3, eps=0), layer_norm(x, eps=0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(rms_norm(7 * x, eps=0), rms_norm(x, eps=0), **EXACT)
    np.testing.assert_allclose(rms_norm(x - x.mean(-1, keepdims=True), eps=0), layer_norm(x, eps=0), **EXACT)
    np.testing.assert_allclose((rms_norm(x, eps=0) ** 2).mean(-1), 1, **EXACT)


@given(seeds)
def test_qk_norm_bounds_the_scores(seed):
    q, k, wq, wk = drawn(seed, (2, 4, 3), (2, 5, 3), 3, 3)
    query, key = qk_norm(100 * q, 100 * k, wq, wk)
    np.testing.assert_allclose(query, rms_norm(100 * q, wq), **EXACT)
    np.testing.assert_allclose(key, rms_norm(100 * k, wk), **EXACT)
    bound = 3 * abs(wq).max() * abs(wk).max()
    assert (abs(query @ np.swapaxes(key, -1, -2)) <= bound * (1 + 1e-12)).all()


def test_residual_step_by_hand():
    def double(x):
        return 2 * x

    def halve(x):
        return x / 2

    assert residual_step([4.0], lambda x: x + 1, halve).tolist() == [4 + 3]
    assert residual_step([4.0], lambda x: x + 1, halve, order="post").tolist() == [4.5]
    assert residual_step([[1.0, 2.0]], double, double).tolist() == [[5.0, 10.0]]


def test_all_channels_are_one_group_unless_told():
    output = gated_norm([3.0, 4.0], [1.0, 1.0], eps=0)
    np.testing.assert_allclose(output, rms_norm([3.0, 4.0], eps=0), **EXACT)


def test_a_gate_of_zero_logits_closes():
    assert gated_norm([1.0, 2.0], [0.0, 0.0]).tolist() == [0.0, 0.0]


X = np.ones((2, 4))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: layer_norm(3.0), "x must have at least 1 axis, got shape ()"),
        (lambda: layer_norm(X, [1.0]), "weight must have shape (4,), got (1,)"),
        (lambda: layer_norm(X, bias=1.0), "bias must have shape (4,), got ()"),
        (lambda: layer_norm(X, eps=-1), "eps must be a finite number at least 0, got -1.0"),
        (lambda: layer_norm(X, eps=0), "x must not vanish when eps is 0, got a row without size"),
        (lambda: rms_norm(0 * X, eps=0), "x must not vanish when eps is 0, got a row without size"),
        (lambda: rms_norm(X[:, :0]), "x must have at least one channel, got shape (2, 0)"),
        (
            lambda: rms_norm(X * 1e200),
            "x must have a finite mean square in float64, got an overflow",
        ),
        (lambda: gated_norm(X, X[0]), "z must have shape (2, 4), got (4,)"),
        (lambda: gated_norm(X, X, groups=3), "groups must divide the 4 channels of y, got 3"),
        (
            lambda: gated_norm(X, X, order="first"),
            "order must be 'gate_first' or 'norm_first', got 'first'",
        ),
        (lambda: qk_norm(X, X[:, :2]), "key must have the width of query, 4, got 2"),
        (
            lambda: qk_norm(np.ones((2, 3, 4)), np.ones((2, 3, 5))),
            "key must have the width of query, 4, got 5",
        ),
        (lambda: qk_norm(X, X, X), "query_weight must have shape (4,), got (2, 4)"),
        (lambda: qk_norm(X, X, None, [1.0]), "key_weight must have shape (4,), got (1,)"),
        (lambda: residual_step(X, abs, abs, order="mid"), "order must be 'pre' or 'post', got 'mid'"),
        (
            lambda: residual_step(X, lambda x: x[0], abs),
            "sublayer must keep the shape (2, 4), got (4,)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
