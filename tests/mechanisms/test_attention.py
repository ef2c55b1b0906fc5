"""Softmax attention against plain Python loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.mechanisms import (
    alibi_slopes,
    attention,
    attention_weights,
    blockwise_attention,
    causal,
    gate_output,
    grouped_attention,
    sliding_window,
    softmax,
)

EXACT = {"rtol": 0, "atol": 1e-12}
seeds = st.integers(0, 2**32 - 1)


def loops(query, key, value, readable, *, scale, bias=None, sink=None, softcap=None):
    """One head of attention, number by number; a row that reads nothing is zero."""
    output = []
    for i, q in enumerate(query.tolist()):
        terms = []
        for j, k in enumerate(key.tolist()):
            score = scale * math.fsum(a * b for a, b in zip(q, k, strict=True))
            if softcap is not None:
                score = softcap * math.tanh(score / softcap)
            if bias is not None:
                score += bias[i, j]
            terms.append(math.exp(score) if readable[i][j] else 0.0)
        denominator = math.fsum(terms) + (0.0 if sink is None else math.exp(sink))
        weights = [t / denominator if t else 0.0 for t in terms]
        output.append([math.fsum(w * v for w, v in zip(weights, column, strict=True)) for column in value.T])
    return np.array(output).reshape(len(query), value.shape[1])


def drawn(seed, *shapes):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape) for shape in shapes]


@given(seeds, st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_attention_is_the_loops(seed, queries, keys, d_k, d_v, options):
    """Cross-attention of any sizes, with every option at once or none."""
    q, k, v, bias, draw = drawn(
        seed, (queries, d_k), (keys, d_k), (keys, d_v), (queries, keys), (queries, keys)
    )
    mask = draw < 0.5
    chosen = {"scale": 0.7, "bias": bias, "sink": 0.3, "softcap": 1.5} if options else {}
    expected = loops(q, k, v, mask, **{"scale": 1 / math.sqrt(d_k), **chosen})
    np.testing.assert_allclose(attention(q, k, v, mask, empty="zeros", **chosen), expected, **EXACT)


@given(seeds, st.sampled_from([(1, 1), (2, 1), (4, 2), (6, 2), (3, 3)]))
def test_grouped_attention_is_the_loops(seed, heads):
    query_heads, kv_heads = heads
    q, k, v, sink = drawn(seed, (2, query_heads, 3, 2), (2, kv_heads, 4, 2), (2, kv_heads, 4, 3), query_heads)
    mask = causal(3, 4)
    output = grouped_attention(q, k, v, mask, sink=sink)
    group = query_heads // kv_heads
    for batch in range(2):
        for head in range(query_heads):
            served = head // group
            expected = loops(
                q[batch, head],
                k[batch, served],
                v[batch, served],
                mask,
                scale=1 / math.sqrt(2),
                sink=sink[head],
            )
            np.testing.assert_allclose(output[batch, head], expected, **EXACT)


@given(seeds)
def test_three_forms_of_the_sink_agree(seed):
    """Concatenated logit, log-sum-exp correction, and sigmoid(log-sum-exp − sink)."""
    q, k, v, sink = drawn(seed, (2, 5, 3), (2, 5, 3), (2, 5, 4), 2)
    mask = causal(5)
    output = attention(q, k, v, mask, sink=sink)

    scores = np.where(mask, q @ np.swapaxes(k, -1, -2) / math.sqrt(3), -np.inf)
    column = np.broadcast_to(sink[:, None, None], (2, 5, 1))
    concatenated = softmax(np.concatenate([scores, column], axis=-1))[..., :-1] @ v
    np.testing.assert_allclose(output, concatenated, **EXACT)

    plain, log_sum_exp = blockwise_attention(q, k, v, mask, block=2)
    corrected = np.exp(log_sum_exp - np.logaddexp(log_sum_exp, sink[:, None]))
    np.testing.assert_allclose(output, plain * corrected[..., None], **EXACT)

    gate = 1 / (1 + np.exp(sink[:, None] - log_sum_exp))
    np.testing.assert_allclose(output, plain * gate[..., None], **EXACT)


def test_a_sink_takes_mass_and_no_sink_takes_none():
    q, k = drawn(0, (2, 3, 2), (2, 3, 2))
    assert (attention_weights(q, k, sink=[0.0, 1.0]).sum(-1) < 1).all()
    without = attention_weights(q, k)
    assert (attention_weights(q, k, sink=-np.inf) == without).all()
    assert (attention_weights(q, k, sink=[-1e6, -1e6]) == without).all()
    assert (attention_weights(q, k, sink=1e6) == 0).all()


@given(seeds)
def test_alibi_is_a_bias(seed):
    """The slope times the distance, added to the scaled scores."""
    q, k, v = drawn(seed, (4, 5, 2), (4, 5, 2), (4, 5, 3))
    slopes = alibi_slopes(4)
    distance = np.arange(5)[:, None] - np.arange(5)
    output = attention(q, k, v, causal(5), bias=-slopes[:, None, None] * distance)
    for head in range(4):
        bias = np.array([[-slopes[head] * (i - j) for j in range(5)] for i in range(5)])
        expected = loops(q[head], k[head], v[head], causal(5), scale=1 / math.sqrt(2), bias=bias)
        np.testing.assert_allclose(output[head], expected, **EXACT)


@given(seeds)
def test_minus_infinity_in_the_bias_is_a_mask(seed):
    q, k, v, draw = drawn(seed, (4, 2), (5, 2), (5, 3), (4, 5))
    mask = draw < 0.5
    bias = np.where(mask, 0.0, -np.inf)
    masked, biased = (attention(q, k, v, **o, empty="zeros") for o in ({"mask": mask}, {"bias": bias}))
    assert (masked == biased).all()


@given(seeds)
def test_the_prefix_never_sees_the_future(seed):
    q, k, v = drawn(seed, (3, 7, 3), (3, 7, 3), (3, 7, 3))
    before = attention(q, k, v, causal(7))
    k[:, 4:] += 100
    v[:, 4:] -= 200
    after = attention(q, k, v, causal(7))
    assert (before[:, :4] == after[:, :4]).all() and (before[:, 4:] != after[:, 4:]).any()


@given(seeds, st.permutations(range(5)))
def test_the_order_of_keys_does_not_matter(seed, order):
    q, k, v, draw = drawn(seed, (3, 2), (5, 2), (5, 3), (3, 5))
    mask = draw < 0.7
    shuffled = attention(q, k[order], v[order], mask[:, order], empty="zeros")
    np.testing.assert_allclose(shuffled, attention(q, k, v, mask, empty="zeros"), **EXACT)


@given(seeds)
def test_leading_axes_broadcast(seed):
    q, k, v = drawn(seed, (2, 1, 3, 2), (4, 5, 2), (1, 5, 3))
    output = attention(q, k, v)
    assert output.shape == (2, 4, 3, 3)
    for a in range(2):
        for b in range(4):
            np.testing.assert_allclose(output[a, b], attention(q[a, 0], k[b], v[0]), **EXACT)


@given(seeds, st.integers(-3, 2))
def test_softmax_sums_to_one_along_its_axis_and_ignores_a_shift(seed, axis):
    (scores,) = drawn(seed, (2, 3, 4))
    np.testing.assert_allclose(softmax(scores * 100, axis).sum(axis=axis), 1, **EXACT)
    np.testing.assert_allclose(softmax(scores + 1000, axis), softmax(scores, axis), rtol=0, atol=1e-12)


def test_softmax_by_hand():
    np.testing.assert_allclose(softmax([0.0, math.log(3)]), [0.25, 0.75], **EXACT)
    assert softmax([[-np.inf, 5.0]]).tolist() == [[0.0, 1.0]]
    assert softmax([700.0, -700.0]).tolist() == [1.0, math.exp(-1400)]


def test_one_token_reads_itself():
    assert attention([[3.0]], [[5.0]], [[7.0, 8.0]]).tolist() == [[7.0, 8.0]]


def test_a_soft_cap_bounds_the_scores():
    """With a cap of 1 no weight of two exceeds σ(2)."""
    weights = attention_weights([[1e3]], [[1e3], [-1e3]], softcap=1.0)
    np.testing.assert_allclose(weights, [[1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]], **EXACT)


def test_scores_at_the_ends_of_float64():
    """Their difference overflows, the softmax does not."""
    assert softmax([1.7e308, -1.7e308]).tolist() == [1.0, 0.0]
    ends = attention_weights([[1e154]], [[1.6e154], [-1.6e154]])
    assert ends.tolist() == [[1.0, 0.0]]
    assert attention_weights([[1.0]], [[1.0], [2.0]], sink=-1.7e308).sum() == 1
    assert attention_weights([[1.0]], [[9.0], [7.0]], softcap=1e-308).tolist() == [[0.5, 0.5]]


def test_a_scale_of_zero_averages():
    assert attention([[9.0]], [[1.0], [5.0]], [[2.0], [4.0]], scale=0).tolist() == [[3.0]]


def test_an_empty_row_is_zeros_or_an_error_that_names_it():
    q, k, v = drawn(1, (2, 4, 3), (2, 2, 3), (2, 2, 5))
    mask = causal(4, 2)  # the first two queries stand before the keys
    output = attention(q, k, v, mask, empty="zeros")
    assert (output[:, :2] == 0).all()
    np.testing.assert_allclose(output[:, 2:], attention(q[:, 2:], k, v, causal(2)), **EXACT)
    with pytest.raises(ValueError, match=r"got none for query \(0, 0\);"):
        attention(q, k, v, mask)
    with pytest.raises(ValueError, match="got none for query 1;"):
        attention(q[0, 1:], k[0], v[0], causal(3, 2, offset=-2) | [[True], [False], [True]])
    with pytest.raises(ValueError, match="got none for query 0;"):
        attention(q[0], k[0], v[0], mask, sink=1.0)


def test_no_keys_at_all_is_an_empty_row():
    with pytest.raises(ValueError, match="got none for query 0;"):
        attention(np.zeros((1, 2)), np.zeros((0, 2)), np.zeros((0, 3)))
    zeros = attention(np.zeros((1, 2)), np.zeros((0, 2)), np.zeros((0, 3)), empty="zeros")
    assert zeros.tolist() == [[0.0, 0.0, 0.0]]


def test_no_queries_give_no_output():
    assert attention(np.zeros((0, 2)), np.zeros((4, 2)), np.zeros((4, 3))).shape == (0, 3)


def test_integers_and_lists_are_converted():
    assert attention([[0]], [[1], [2]], [[2], [4]]).dtype == np.float64
    single = attention(np.float32([[0]]), np.int8([[1], [2]]), np.longdouble([[2], [4]]))
    assert single.dtype == np.float64 and single.tolist() == [[3.0]]


def test_arguments_are_not_written_to():
    q, k, v, sink = drawn(2, (2, 3, 2), (2, 3, 2), (2, 3, 2), 2)
    copies = [x.copy() for x in (q, k, v, sink)]
    attention(q, k, v, causal(3), sink=sink, softcap=2.0, bias=np.zeros((3, 3)))
    assert all((a == b).all() for a, b in zip((q, k, v, sink), copies, strict=True))


def test_the_output_gate():
    output = np.array([[[2.0, 4.0]], [[6.0, 8.0]]])
    logits = np.array([[[0.0, math.log(3)]], [[-1e4, 1e4]]])
    np.testing.assert_allclose(gate_output(output, logits), [[[1, 3]], [[0, 8]]], **EXACT)
    a_head = gate_output(output, [[[0.0]], [[math.log(3)]]])
    np.testing.assert_allclose(a_head, [[[1, 2]], [[4.5, 6]]], **EXACT)


@settings(max_examples=20)
@given(seeds, st.integers(1, 6), st.integers(1, 8))
def test_multi_head_is_grouped_with_one_query_head_each(seed, time, window):
    q, k, v = drawn(seed, (3, time, 2), (3, time, 2), (3, time, 2))
    mask = sliding_window(time, window=window)
    assert (grouped_attention(q, k, v, mask) == attention(q, k, v, mask)).all()


Q, K, V = np.ones((2, 7, 3)), np.ones((2, 7, 3)), np.ones((2, 7, 4))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: attention(Q, np.ones(3), V), "key must have at least 2 axes, got shape (3,)"),
        (lambda: attention(np.ones(3), K, V), "query must have at least 2 axes, got shape (3,)"),
        (lambda: attention(Q, K[..., :2], V), "key must have the width of query, 3, got 2"),
        (lambda: attention(Q, K[..., :1], V), "key must have the width of query, 3, got 1"),
        (lambda: attention(Q, K, V[:, :1]), "value must have the length of key, 7, got 1"),
        (
            lambda: attention(Q, np.ones((3, 7, 3)), V),
            "query and key must have leading axes that broadcast, got query (2,), key (3,)",
        ),
        (
            lambda: attention(Q, K, np.ones((3, 7, 4))),
            "query and key and value must have leading axes that broadcast, "
            "got query and key (2,), value (3,)",
        ),
        (lambda: attention(Q * 1j, K, V), "query must be an array of real numbers, got dtype complex128"),
        (
            lambda: attention(Q.astype(object), K, V),
            "query must be an array of real numbers, got dtype object",
        ),
        (lambda: attention(Q > 0, K, V), "query must be an array of real numbers, got dtype bool"),
        (lambda: attention([[1], [2, 3]], K, V), "query must be a rectangular array, got [[1], [2, 3]]"),
        (lambda: attention(Q * np.nan, K, V), "query must be finite, got nan at index (0, 0, 0)"),
        (lambda: attention(Q, K * np.inf, V), "key must be finite, got inf at index (0, 0, 0)"),
        (lambda: attention(Q, K, -V * np.inf), "value must be finite, got -inf at index (0, 0, 0)"),
        (
            lambda: attention(Q * 1e200, K * 1e200, V),
            "query and key must have finite scores in float64, got an overflow",
        ),
        (
            lambda: attention(Q, K, V, np.ones((7, 7))),
            "mask must be boolean (True = may be read), got dtype float64",
        ),
        (
            lambda: attention(Q, K, V, causal(7)[:1]),
            "mask must have 7 entries along its query axis, got shape (1, 7)",
        ),
        (
            lambda: attention(Q, K, V, causal(7, 6)),
            "mask must have 7 entries along its key axis, got shape (7, 6)",
        ),
        (lambda: attention(Q, K, V, causal(7)[0]), "mask must have at least 2 axes, got shape (7,)"),
        (
            lambda: attention(Q, K, V, np.stack([causal(7)] * 3)),
            "query and key and mask must have leading axes that broadcast, "
            "got query and key (2,), mask (3,)",
        ),
        (lambda: attention(Q, K, V, scale=np.inf), "scale must be a finite number, got inf"),
        (lambda: attention(Q, K, V, scale="1"), "scale must be a finite number, got '1'"),
        (lambda: attention(Q, K, V, softcap=0), "softcap must be a finite number above 0, got 0.0"),
        (
            lambda: attention(Q, K, V, bias=np.zeros((7, 1))),
            "bias must have the key axis of the scores, 7, got 1",
        ),
        (
            lambda: attention(Q, K, V, bias=np.zeros((2, 7, 1))),
            "bias must have the key axis of the scores, 7, got 1",
        ),
        (
            lambda: attention(Q, K, V, bias=np.full((7, 7), np.inf)),
            "bias must be finite or -inf, got inf at index (0, 0)",
        ),
        (
            lambda: attention(Q * 5e153, K * 5e153, V, scale=-1, bias=np.full((7, 7), -1.7e308)),
            "bias must keep the scores finite in float64, got an overflow",
        ),
        (
            lambda: attention(Q, K, V, sink=np.zeros(3)),
            "sink must broadcast to the leading axes (2,), got (3,)",
        ),
        (
            lambda: attention(Q, K, V, sink=np.zeros((2, 1))),
            "sink must broadcast to the leading axes (2,), got (2, 1)",
        ),
        (lambda: attention(Q, K, V, sink=np.nan), "sink must be finite or -inf, got nan"),
        (lambda: attention(Q, K, V, empty="nan"), "empty must be 'raise' or 'zeros', got 'nan'"),
        (
            lambda: attention(Q[..., :0], K[..., :0], V),
            "query must have at least one feature unless scale is given, got none",
        ),
        (
            lambda: grouped_attention(Q, np.ones((3, 7, 3)), np.ones((3, 7, 3))),
            "key must have a number of heads that divides the 2 of query, got 3",
        ),
        (
            lambda: grouped_attention(Q, K[:0], V[:0]),
            "key must have a number of heads that divides the 2 of query, got 0",
        ),
        (
            lambda: grouped_attention(Q, K[:1], V),
            "value must have the number of heads of key, 1, got 2",
        ),
        (lambda: grouped_attention(Q[0], K, V), "query must have at least 3 axes, got shape (7, 3)"),
        (
            lambda: gate_output(V, np.zeros((2, 7, 2))),
            "gate must have the shape of output, (2, 7, 4), or a last axis of size 1, got (2, 7, 2)",
        ),
        (lambda: gate_output(V, np.zeros((7, 4))), "gate must have the shape of output, (2, 7, 4), "
         "or a last axis of size 1, got (7, 4)"),
        (lambda: softmax(3.0), "scores must have at least 1 axis, got shape ()"),
        (lambda: softmax([np.nan]), "scores must be finite or -inf, got nan at index (0,)"),
        (lambda: softmax([np.inf]), "scores must be finite or -inf, got inf at index (0,)"),
        (lambda: softmax([-np.inf] * 2), "scores must have a finite entry along the axis, got only -inf"),
        (lambda: softmax(np.zeros((2, 0))), "scores must have a finite entry along the axis, got only -inf"),
        (lambda: softmax([1.0], axis=1), "axis must be an integer at least -1 and at most 0, got 1"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
