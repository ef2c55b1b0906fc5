"""Reading in pieces is reading at once."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    AttentionState,
    attend,
    attention,
    blockwise_attention,
    causal,
    sliding_window,
    softmax,
)

EXACT = {"rtol": 0, "atol": 1e-12}
seeds = st.integers(0, 2**32 - 1)


@st.composite
def states(draw):
    """A state of three queries that read up to four keys, some of them nothing."""
    generator = np.random.default_rng(draw(seeds))
    keys = draw(st.integers(0, 4))
    scores = generator.normal(scale=50, size=(3, keys))
    scores[generator.random((3, keys)) < 0.4] = -np.inf
    return attend(scores, generator.normal(size=(keys, 2)))


def same(left, right):
    """Equal up to rounding, in a form that does not depend on the shift: mass may be scaled."""
    assert (left.maximum == right.maximum).all()
    np.testing.assert_allclose(left.mass, right.mass, rtol=1e-12)
    np.testing.assert_allclose(left.weighted, right.weighted, rtol=0, atol=1e-12)


@given(states(), states(), states())
def test_merging_is_associative_and_commutative(a, b, c):
    same(a.merge(b).merge(c), a.merge(b.merge(c)))
    same(a.merge(b), b.merge(a))


@given(states())
def test_the_empty_state_is_neutral_on_both_sides(state):
    empty = AttentionState.empty((3, 2))
    for merged in (empty.merge(state), state.merge(empty)):
        for name in ("maximum", "mass", "weighted"):
            assert (getattr(merged, name) == getattr(state, name)).all()


@given(seeds, st.integers(1, 7), st.integers(0, 4))
def test_attend_is_softmax(seed, keys, queries):
    generator = np.random.default_rng(seed)
    scores = generator.normal(scale=300, size=(2, queries, keys))
    values = generator.normal(size=(2, keys, 3))
    state = attend(scores, values)
    np.testing.assert_allclose(state.read(), softmax(scores) @ values, **EXACT)


def test_the_row_of_the_report():
    """1000, 1001, −∞, 999, 1003, 998 in pieces, one of them empty and one hidden."""
    scores = np.array([1000.0, 1001.0, -np.inf, 999.0, 1003.0, 998.0])
    values = np.random.default_rng(184).normal(size=(6, 4))
    state = AttentionState.empty(4)
    for piece in (slice(0, 2), slice(2, 3), slice(3, 3), slice(3, 6)):
        state = state.merge(attend(scores[piece], values[piece]))
    exponentials = [math.exp(s - 1003) for s in scores]
    by_hand = [sum(e * v for e, v in zip(exponentials, column, strict=True)) for column in values.T]
    np.testing.assert_allclose(state.read(), np.array(by_hand) / sum(exponentials), **EXACT)
    assert math.isclose(float(state.log_sum_exp()), 1003 + math.log(sum(exponentials)), abs_tol=1e-11)


def test_the_worked_output():
    output = attend([1000.0, 1001.0, 999.0], [[2.0], [4.0], [8.0]]).read()
    expected = (2 * math.exp(-1) + 4 + 8 * math.exp(-2)) / (math.exp(-1) + 1 + math.exp(-2))
    np.testing.assert_allclose(output, [expected], **EXACT)


def test_an_output_and_its_log_sum_exp_are_a_state():
    """What kernels return merges as well: maximum = log-sum-exp, mass 1, weighted = output."""
    generator = np.random.default_rng(3)
    query, key, value = (generator.normal(size=(6, 4)) for _ in range(3))
    parts = []
    for half in (slice(0, 2), slice(2, 6)):
        output, log_sum_exp = blockwise_attention(query, key[half], value[half], block=2)
        parts.append(AttentionState(log_sum_exp, np.ones_like(log_sum_exp), output))
    np.testing.assert_allclose(parts[0].merge(parts[1]).read(), attention(query, key, value), **EXACT)


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), st.integers(1, 5))
def test_the_block_never_matters(seed, queries, keys, block, window):
    generator = np.random.default_rng(seed)
    q, k = (generator.normal(size=(2, n, 3)) for n in (queries, keys))
    v = generator.normal(size=(2, keys, 2))
    mask = sliding_window(queries, keys, window=window) | (np.arange(keys) == 0)
    output, log_sum_exp = blockwise_attention(q, k, v, mask, block=block, scale=0.9)
    np.testing.assert_allclose(output, attention(q, k, v, mask, scale=0.9), **EXACT)
    scores = 0.9 * np.einsum("hqd,hkd->hqk", q, k)
    expected = np.log(np.where(mask, np.exp(scores), 0.0).sum(-1))
    np.testing.assert_allclose(log_sum_exp, expected, **EXACT)


def test_leading_axes_of_values_and_masks_broadcast():
    generator = np.random.default_rng(5)
    q, k = generator.normal(size=(4, 3)), generator.normal(size=(5, 3))
    v, mask = generator.normal(size=(2, 1, 5, 2)), generator.random((3, 4, 5)) < 0.5
    mask[..., 0] = True
    output, log_sum_exp = blockwise_attention(q, k, v, mask, block=2)
    assert output.shape == (2, 3, 4, 2) and log_sum_exp.shape == (2, 3, 4)
    np.testing.assert_allclose(output, attention(q, k, v, mask), **EXACT)


def test_no_array_of_all_queries_by_all_keys_is_made():
    """Peak memory grows with the block: far below one T×T array, which takes 8 bytes an entry."""
    length = 1024
    query = np.random.default_rng(0).normal(size=(length, 4))
    mask = np.broadcast_to(True, (length, length))  # a view of a single byte
    tracemalloc.start()
    blockwise_attention(query, query, query, mask, block=16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < length * length


def test_a_hidden_row_is_named():
    state = attend(np.full((2, 3), -np.inf), np.zeros((3, 1)))
    assert state.mass.tolist() == [0, 0] and state.log_sum_exp().tolist() == [-np.inf] * 2
    with pytest.raises(ValueError) as error:
        state.merge(state).read()
    assert str(error.value) == (
        "state must have a readable key to be read, but in row 0 every piece was masked or empty"
    )
    with pytest.raises(ValueError, match="but every piece was masked or empty$"):
        AttentionState.empty(4).read()
    with pytest.raises(ValueError, match=r"in row \(1, 0\) every"):
        AttentionState([[0.0], [-np.inf]], [[1.0], [0.0]], np.zeros((2, 1, 3))).read()
    with pytest.raises(ValueError, match="in row 0 every"):
        blockwise_attention(np.ones((3, 2)), np.ones((2, 2)), np.ones((2, 2)), causal(3, 2), block=1)


S = attend([[1.0]], [[1.0]])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: attend([np.nan], [[1.0]]), "scores must be finite or -inf, got nan at index (0,)"),
        (lambda: attend([np.inf], [[1.0]]), "scores must be finite or -inf, got inf at index (0,)"),
        (lambda: attend([1.0], [[np.inf]]), "values must be finite, got inf at index (0, 0)"),
        (lambda: attend([1.0], [1.0]), "values must have at least 2 axes, got shape (1,)"),
        (lambda: attend([1.0], [[1.0], [2.0]]), "values must have the number of keys of scores, 1, got 2"),
        (lambda: attend(1.0, [[1.0]]), "scores must have at least 1 axis, got shape ()"),
        (
            lambda: attend([1.0], np.ones((2, 1, 3))),
            "values must have 2 axes for scores of one query, got (2, 1, 3)",
        ),
        (
            lambda: attend([1.0, 2.0], np.ones((2, 3)), [True]),
            "mask must have the shape of scores, (2,), got (1,)",
        ),
        (
            lambda: attend([[1.0, 2.0]], np.ones((2, 3)), [[True]]),
            "mask must have 2 entries along its key axis, got shape (1, 1)",
        ),
        (
            lambda: attend(np.ones((2, 1, 1)), np.ones((3, 1, 1))),
            "scores and values must have leading axes that broadcast, got scores (2,), values (3,)",
        ),
        (
            lambda: attend(np.ones((2, 1, 1)), np.ones((1, 1)), np.ones((3, 1, 1), dtype=bool)),
            "scores and mask must have leading axes that broadcast, got scores (2,), mask (3,)",
        ),
        (lambda: S.merge(AttentionState.empty((2, 1))), "other must have the shape of this state, (1, 1), got (2, 1)"),
        (lambda: S.merge(3), "other must be an AttentionState, got int"),
        (lambda: AttentionState.empty(()), "shape must have at least the feature axis, got ()"),
        (lambda: AttentionState.empty((-1,)), "shape must be an integer at least 0, got -1"),
        (
            lambda: AttentionState([0.0], [1.0, 1.0], [[1.0]]),
            "mass must have the shape of maximum, (1,), got (2,)",
        ),
        (
            lambda: AttentionState([0.0], [1.0], [1.0]),
            "weighted must have the axes of maximum, (1,), and one for features, got (1,)",
        ),
        (
            lambda: AttentionState([0.0], [0.0], [[1.0]]),
            "mass must be positive, and zero just where maximum is -inf",
        ),
        (
            lambda: AttentionState([-np.inf], [1.0], [[1.0]]),
            "mass must be positive, and zero just where maximum is -inf",
        ),
        (
            lambda: AttentionState([0.0], [-1.0], [[1.0]]),
            "mass must be positive, and zero just where maximum is -inf",
        ),
        (
            lambda: blockwise_attention([[1.0]], [[1.0]], [[1.0]], block=0),
            "block must be an integer at least 1, got 0",
        ),
        (
            lambda: blockwise_attention([[1e200]], [[1e200]], [[1.0]], block=1),
            "query and key must have finite scores in float64, got an overflow",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
