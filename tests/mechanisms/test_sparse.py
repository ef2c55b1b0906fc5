"""Sparse attention: with everything chosen it is the dense read, and nothing reads its future."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    attention,
    block_scores,
    causal,
    completed_blocks,
    compress_blocks,
    compressed_attention,
    index_scores,
    select_blocks,
    select_top_k,
    selection_scores,
    sliding_window,
)

EXACT = {"rtol": 0, "atol": 1e-12}
seeds = st.integers(0, 2**32 - 1)
times = st.integers(1, 9)


def drawn(seed, *shapes):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape) for shape in shapes]


def dense(query, key, value):
    """Causal attention, one query at a time, without a mask."""
    rows = []
    for t in range(len(query)):
        exponentials = [math.exp(query[t] @ key[s] / math.sqrt(query.shape[1])) for s in range(t + 1)]
        total = math.fsum(exponentials)
        rows.append(sum(e / total * value[s] for s, e in enumerate(exponentials)))
    return np.array(rows)


# The lightning indexer


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.integers(1, 3))
def test_index_scores_number_by_number(seed, queries, keys, heads):
    q, k, w = drawn(seed, (heads, queries, 2), (keys, 2), (queries, heads))
    scores = index_scores(q, k, w, scale=0.5)
    for t in range(queries):
        for s in range(keys):
            expected = math.fsum(w[t, h] * max(0.0, 0.5 * float(q[h, t] @ k[s])) for h in range(heads))
            assert math.isclose(scores[t, s], expected, abs_tol=1e-12)


def test_index_scores_broadcast_over_the_batch():
    q, k, w = drawn(0, (3, 1, 2, 4, 5), (2, 6, 5), (4, 2))
    scores = index_scores(q, k, w)
    assert scores.shape == (3, 2, 4, 6)
    np.testing.assert_allclose(scores[1, 1], index_scores(q[1, 0], k[1], w), **EXACT)


@given(seeds, st.integers(1, 4), st.integers(1, 6), st.integers(1, 7))
def test_top_k_of_the_readable_by_sorting(seed, queries, keys, count):
    generator = np.random.default_rng(seed)
    scores = generator.integers(-1, 2, size=(queries, keys)).astype(float)  # many ties
    mask = generator.random((queries, keys)) < 0.6
    chosen = select_top_k(scores, count, mask)
    for t in range(queries):
        readable = [s for s in range(keys) if mask[t, s]]
        best = sorted(readable, key=lambda s: (-scores[t, s], s))[:count]
        assert np.flatnonzero(chosen[t]).tolist() == sorted(best)


@given(seeds, times, st.integers(0, 3))
def test_an_indexer_that_chooses_everything_is_dense(seed, time, more):
    q, k, v, iq, ik, iw = drawn(seed, (time, 2), (time, 2), (time, 3), (2, time, 4), (time, 4), (time, 2))
    chosen = select_top_k(index_scores(iq, ik, iw), time + more, causal(time))
    assert (chosen == causal(time)).all()
    np.testing.assert_allclose(attention(q, k, v, chosen), dense(q, k, v), **EXACT)


@given(seeds, st.integers(2, 9), st.integers(1, 4), st.data())
def test_an_indexed_read_never_sees_the_future(seed, time, count, data):
    """Change everything from some token on: what was read before it stays."""
    cut = data.draw(st.integers(1, time - 1))
    shapes = ((time, 2), (time, 2), (time, 3), (2, time, 4), (time, 4), (time, 2))

    def read(q, k, v, iq, ik, iw):
        return attention(q, k, v, select_top_k(index_scores(iq, ik, iw), count, causal(time)))

    before = drawn(seed, *shapes)
    after = [x.copy() for x in before]
    for x, new in zip(after, drawn(seed + 1, *shapes), strict=True):
        x[..., cut:, :] = 10 * new[..., cut:, :]
    assert (read(*before)[:cut] == read(*after)[:cut]).all()


# Blocks chosen by score


@given(seeds, times, st.integers(1, 4))
def test_block_scores_are_products_with_mean_keys(seed, time, block):
    q, k = drawn(seed, (time, 2), (time, 2))
    scores = block_scores(q, k, block=block)
    assert scores.shape == (time, math.ceil(time / block))
    for t in range(time):
        for b in range(scores.shape[1]):
            keys = range(b * block, min((b + 1) * block, time))
            expected = math.fsum(float(q[t] @ k[s]) for s in keys) / len(keys)
            assert math.isclose(scores[t, b], expected, abs_tol=1e-12)


@given(seeds, st.integers(1, 10), st.integers(1, 4), st.integers(0, 2), st.integers(1, 3), st.integers(0, 3))
def test_select_blocks_by_sorting(seed, time, block, first, recent, more):
    blocks = math.ceil(time / block)
    (scores,) = drawn(seed, (time, blocks))
    count = first + recent + more
    chosen = select_blocks(scores, count, time, block=block, first=first, recent=recent)
    for t in range(time):
        own = t // block
        forced = [b for b in range(own + 1) if b < first or b > own - recent]
        others = [b for b in range(own + 1) if b not in forced]
        best = sorted(others, key=lambda b: -scores[t, b])[: max(0, count - len(forced))]
        expected = [s for s in range(t + 1) if s // block in forced + best]
        assert np.flatnonzero(chosen[t]).tolist() == expected


@given(seeds, times, st.integers(1, 4))
def test_blocks_that_are_all_chosen_are_dense(seed, time, block):
    q, k, v = drawn(seed, (time, 2), (time, 2), (time, 3))
    blocks = math.ceil(time / block)
    chosen = select_blocks(block_scores(q, k, block=block), blocks, time, block=block)
    np.testing.assert_allclose(attention(q, k, v, chosen), dense(q, k, v), **EXACT)


@given(seeds, st.integers(2, 10), st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_block_read_never_sees_the_future(seed, time, block, count, data):
    """Even though the mean of a query's own block contains its future keys."""
    cut = data.draw(st.integers(1, time - 1))
    shapes = ((time, 2), (time, 2), (time, 3))

    def read(q, k, v):
        return attention(q, k, v, select_blocks(block_scores(q, k, block=block), count, time, block=block))

    before = drawn(seed, *shapes)
    after = [x.copy() for x in before]
    for x, new in zip(after, drawn(seed + 1, *shapes), strict=True):
        x[cut:] = 10 * new[cut:]
    assert (read(*before)[:cut] == read(*after)[:cut]).all()


def test_selecting_behind_a_cache_is_the_tail_of_the_whole():
    (scores,) = drawn(3, (9, 3))
    whole = select_blocks(scores, 2, 9, block=3)
    assert (select_blocks(scores[6:], 2, 9, block=3) == whole[6:]).all()
    assert (select_blocks(scores[2:4], 2, 9, block=3, offset=2) == whole[2:4]).all()


@given(seeds, st.sampled_from([(2, 2, 2), (2, 1, 2), (4, 2, 4), (4, 2, 8), (8, 4, 4), (4, 2, 2)]), st.integers(8, 13))
def test_selection_scores_by_shared_cells(seed, sizes, keys):
    """A compressed block gives its weight once for each cell it shares with the selection block."""
    block, stride, selected = sizes
    compressed = (keys - block) // stride + 1
    (weights,) = drawn(seed, (2, compressed))
    scores = selection_scores(weights, keys, block=block, stride=stride, selected=selected)
    for j in range(math.ceil(keys / selected)):
        mine = set(range(j * selected, (j + 1) * selected))
        expected = np.zeros(2)
        for i in range(compressed):
            shared = mine & set(range(i * stride, i * stride + block))
            expected += len(shared) / stride * weights[:, i]
        np.testing.assert_allclose(scores[:, j], expected, **EXACT)


def test_selection_scores_of_no_keys_are_none():
    assert selection_scores(np.zeros((2, 0)), 0, block=2, stride=1, selected=2).shape == (2, 0)


def test_selection_scores_of_equal_blocks_are_the_weights():
    weights = np.array([[0.2, 0.5, 0.3]])
    assert (selection_scores(weights, 6, block=2, stride=2, selected=2) == weights).all()


def test_two_compressed_blocks_make_one_selection_block():
    """l′ = 2l = 2d, counted from zero: the pairs (0, 1) and (2, 3)."""
    scores = selection_scores([[1.0, 2.0, 4.0, 8.0]], 4, block=1, stride=1, selected=2)
    assert scores.tolist() == [[3.0, 12.0]]


# Compressed blocks


@given(seeds, times, st.integers(1, 4), st.booleans(), st.booleans())
def test_compress_blocks_channel_by_channel(seed, time, block, with_logits, with_overlap):
    x, z, xa, za = drawn(seed, *[(2, time, 3)] * 4)
    z = z if with_logits else np.zeros_like(x)
    options = {"overlap": xa, "overlap_logits": za} if with_overlap else {}
    output = compress_blocks(x, z if with_logits else None, block=block, **options)
    assert output.shape == (2, time // block, 3)
    for batch in range(2):
        for b in range(time // block):
            for c in range(3):
                terms = [(z[batch, s, c], x[batch, s, c]) for s in range(b * block, (b + 1) * block)]
                if with_overlap and b > 0:
                    before = range((b - 1) * block, b * block)
                    terms += [(za[batch, s, c], xa[batch, s, c]) for s in before]
                total = math.fsum(math.exp(logit) for logit, _ in terms)
                expected = math.fsum(math.exp(logit) * value for logit, value in terms) / total
                assert math.isclose(output[batch, b, c], expected, abs_tol=1e-12)


def test_compress_with_a_stride():
    x = np.arange(7.0)[:, None]
    assert compress_blocks(x, block=4, stride=2).ravel().tolist() == [1.5, 3.5]


@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from([(1, 1), (2, 2), (4, 2), (3, 1)]))
def test_completed_blocks_entry_by_entry(queries, keys, sizes):
    block, stride = sizes
    mask = completed_blocks(queries, keys, block=block, stride=stride)
    starts = [s for s in range(0, keys, stride) if s + block <= keys]
    assert mask.shape == (queries, len(starts))
    for i in range(queries):
        for b, start in enumerate(starts):
            assert mask[i, b] == (max(range(start, start + block)) <= keys - queries + i)


@given(seeds, times)
def test_blocks_of_one_token_are_dense(seed, time):
    q, k, v = drawn(seed, (time, 2), (time, 2), (time, 3))
    keys, values = compress_blocks(k, block=1), compress_blocks(v, block=1)
    output = attention(q, keys, values, completed_blocks(time, block=1))
    np.testing.assert_allclose(output, dense(q, k, v), **EXACT)


@given(seeds, times, st.integers(1, 4), st.integers(1, 5))
def test_compressed_attention_is_one_softmax(seed, time, block, window):
    """Against a loop over what each query reads: the window's tokens and the completed blocks."""
    q, k, v = drawn(seed, (time, 2), (time, 2), (time, 3))
    ck, cv = compress_blocks(k, block=block), compress_blocks(v, block=block)
    output = compressed_attention(q, k, v, ck, cv, block=block, window=window, sink=0.3)
    for t in range(time):
        keys = [k[s] for s in range(max(0, t - window + 1), t + 1)] + list(ck[: (t + 1) // block])
        values = [v[s] for s in range(max(0, t - window + 1), t + 1)] + list(cv[: (t + 1) // block])
        exponentials = [math.exp(q[t] @ key / math.sqrt(2)) for key in keys]
        total = math.fsum(exponentials) + math.exp(0.3)
        expected = sum(e / total * value for e, value in zip(exponentials, values, strict=True))
        np.testing.assert_allclose(output[t], expected, **EXACT)


@given(seeds, st.integers(2, 9), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.data())
def test_a_compressed_read_never_sees_the_future(seed, time, block, count, overlaps, data):
    """Compression, index, choice and read together, as in compressed sparse attention."""
    cut = data.draw(st.integers(1, time - 1))
    shapes = [(time, 2), (time, 2), (time, 2), (time, 2), (time, 2), (2, time, 2), (time, 2)]

    def read(q, kv, z, xa, za, iq, iw):
        options = {"overlap": xa, "overlap_logits": za} if overlaps else {}
        blocks = compress_blocks(kv, z, block=block, **options)
        ready = completed_blocks(time, block=block)
        chosen = select_top_k(index_scores(iq, blocks, iw), count, ready)
        return compressed_attention(q, kv, kv, blocks, blocks, block=block, window=2, chosen=chosen)

    before = drawn(seed, *shapes)
    after = [x.copy() for x in before]
    for x, new in zip(after, drawn(seed + 1, *shapes), strict=True):
        x[..., cut:, :] = 10 * new[..., cut:, :]
    assert (read(*before)[:cut] == read(*after)[:cut]).all()


def test_all_blocks_chosen_are_no_choice():
    q, k, v = drawn(4, (3, 8, 2), (8, 2), (8, 3))
    ck, cv = compress_blocks(k, block=2), compress_blocks(v, block=2)
    every = select_top_k(np.zeros((8, 4)), 4, completed_blocks(8, block=2))
    options = {"block": 2, "window": 3}
    plain = compressed_attention(q, k, v, ck, cv, **options)
    assert (compressed_attention(q, k, v, ck, cv, chosen=every, **options) == plain).all()


def test_without_a_completed_block_the_window_is_all():
    q, k, v = drawn(5, (3, 2), (3, 2), (3, 3))
    none = np.zeros((0, 2)), np.zeros((0, 3))
    output = compressed_attention(q, k, v, *none, block=4, window=2)
    np.testing.assert_allclose(output, attention(q, k, v, sliding_window(3, window=2)), **EXACT)


def test_leading_axes_are_treated_alike():
    """What holds for one head holds for each of a batch of heads."""
    scores, weights, tokens = drawn(6, (2, 3, 5, 6), (2, 3, 5, 5), (2, 3, 6, 2))
    allowed = np.random.default_rng(6).random((3, 5, 6)) < 0.7
    values, block_values = drawn(7, (6, 2), (3, 3, 2))
    options = {"block": 2, "window": 2}
    top = select_top_k(scores, 2, allowed)
    important = selection_scores(weights, 6, block=2, stride=1, selected=2)
    blocks = select_blocks(scores[..., :3], 2, 6, block=2)
    chosen = select_top_k(scores[..., :3], 1, completed_blocks(5, 6, block=2))
    read = compressed_attention(
        tokens[..., 1:, :], tokens, values, tokens[..., :3, :], block_values, chosen=chosen, **options
    )
    for a in range(2):
        for b in range(3):
            assert (top[a, b] == select_top_k(scores[a, b], 2, allowed[b])).all()
            alone = selection_scores(weights[a, b], 6, block=2, stride=1, selected=2)
            assert (important[a, b] == alone).all()
            assert (blocks[a, b] == select_blocks(scores[a, b, :, :3], 2, 6, block=2)).all()
            part = tokens[a, b]
            alone = compressed_attention(
                part[1:], part, values, part[:3], block_values[b], chosen=chosen[a, b], **options
            )
            np.testing.assert_allclose(read[a, b], alone, **EXACT)


Q = np.ones((4, 2))
IQ, IK, IW = np.ones((2, 4, 3)), np.ones((5, 3)), np.ones((4, 2))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: index_scores(IQ[0], IK, IW), "query must have at least 3 axes, got shape (4, 3)"),
        (lambda: index_scores(IQ, IK[:, :1], IW), "key must have the width of query, 3, got 1"),
        (lambda: index_scores(IQ, IK, IW[:1]), "weight must have the length of query, 4, got 1"),
        (
            lambda: index_scores(IQ, IK, IW[:, :1]),
            "weight must have the number of heads of query, 2, got 1",
        ),
        (
            lambda: index_scores(np.ones((2, 2, 4, 3)), np.ones((3, 5, 3)), IW),
            "query and key and weight must have leading axes that broadcast, "
            "got query (2,), key (3,), weight ()",
        ),
        (lambda: select_top_k(np.zeros((2, 3, 4)), 1, np.ones((5, 3, 4), bool)),
         "scores and mask must have leading axes that broadcast, got scores (2,), mask (5,)"),
        (lambda: select_top_k(Q, 0), "count must be an integer at least 1, got 0"),
        (
            lambda: select_top_k(Q, 1, causal(4)),
            "mask must have 2 entries along its key axis, got shape (4, 4)",
        ),
        (lambda: select_top_k([[np.nan]], 1), "scores must be finite or -inf, got nan at index (0, 0)"),
        (lambda: block_scores(Q, Q, block=0), "block must be an integer at least 1, got 0"),
        (
            lambda: select_blocks(Q, 2, 6, block=2),
            "scores must have the number of blocks of the text, 3, got 2",
        ),
        (
            lambda: select_blocks(Q, 2, 4, block=2, first=1, recent=2),
            "count must hold the 3 forced blocks, got 2",
        ),
        (
            lambda: select_blocks(Q, 2, 4, block=2, recent=0),
            "recent must be an integer at least 1, got 0",
        ),
        (
            lambda: selection_scores(Q, 4, block=3, stride=2, selected=2),
            "stride must divide block, 3, got 2",
        ),
        (
            lambda: selection_scores(Q, 4, block=2, stride=2, selected=3),
            "stride must divide selected, 3, got 2",
        ),
        (
            lambda: selection_scores(Q, 6, block=2, stride=2, selected=2),
            "weights must have the number of compressed blocks of the text, 3, got 2",
        ),
        (
            lambda: compress_blocks(Q, Q[:1], block=2),
            "logits must have the shape of x, (4, 2), got (1, 2)",
        ),
        (
            lambda: compress_blocks(Q, Q, block=2, overlap=Q),
            "overlap must come with overlap_logits, got one of the two",
        ),
        (
            lambda: compress_blocks(Q, Q, block=2, overlap=Q[:, :1], overlap_logits=Q),
            "overlap must have the shape of x, (4, 2), got (4, 1)",
        ),
        (
            lambda: compress_blocks(Q, Q, block=2, overlap=Q, overlap_logits=Q[:1]),
            "overlap_logits must have the shape of x, (4, 2), got (1, 2)",
        ),
        (
            lambda: compress_blocks(Q, Q, block=2, stride=1, overlap=Q, overlap_logits=Q),
            "stride must be the block, 2, with an overlap, got 1",
        ),
        (
            lambda: completed_blocks(4, block=3, stride=2),
            "stride must divide block, 3, got 2",
        ),
        (
            lambda: compressed_attention(Q, Q, Q, Q, Q, block=2, window=1),
            "block_key must have 2 blocks of width 2, got shape (4, 2)",
        ),
        (
            lambda: compressed_attention(Q, Q, Q, Q[:2], Q[:2, :1], block=2, window=1),
            "block_value must have 2 blocks of width 2, got shape (2, 1)",
        ),
        (
            lambda: compressed_attention(
                Q, np.ones((2, 4, 2)), Q, np.ones((3, 2, 2)), Q[:2], block=2, window=1
            ),
            "the tokens and the blocks must have leading axes that broadcast, "
            "got the tokens (2,), the blocks (3,)",
        ),
        (
            lambda: compressed_attention(Q, Q, Q, Q[:2], Q[:2], block=2, window=0),
            "window must be an integer at least 1, got 0",
        ),
        (
            lambda: compressed_attention(Q, Q, Q, Q[:2], Q[:2], block=2, window=1, chosen=causal(4)),
            "chosen must have 2 entries along its key axis, got shape (4, 4)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
