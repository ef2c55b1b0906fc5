"""Masks against their definitions, entry by entry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    causal,
    chunked_causal,
    edges,
    sliding_window,
    with_global,
    with_sinks,
)

counts = st.integers(0, 9)
offsets = st.none() | st.integers(-5, 9)


def entrywise(queries, keys, offset, may_read):
    """The mask of a rule on positions, in plain Python."""
    offset = keys - queries if offset is None else offset
    rows = [[may_read(offset + i, j) for j in range(keys)] for i in range(queries)]
    return np.array(rows, dtype=bool).reshape(queries, keys)


@given(counts, counts, offsets)
def test_causal(queries, keys, offset):
    mask = causal(queries, keys, offset=offset)
    assert (mask == entrywise(queries, keys, offset, lambda p, j: j <= p)).all()
    assert mask.shape == (queries, keys) and mask.dtype == bool


@given(counts, counts, st.integers(1, 12), offsets)
def test_sliding_window(queries, keys, window, offset):
    mask = sliding_window(queries, keys, window=window, offset=offset)
    assert (mask == entrywise(queries, keys, offset, lambda p, j: j in range(p - window + 1, p + 1))).all()


@given(counts, counts, st.integers(1, 5), offsets)
def test_chunked_causal(queries, keys, chunk, offset):
    def same_chunk(p, j):
        start = max(s for s in range(-20, p + 1) if s % chunk == 0)
        return start <= j <= p

    mask = chunked_causal(queries, keys, chunk=chunk, offset=offset)
    assert (mask == entrywise(queries, keys, offset, same_chunk)).all()


@given(counts, counts, st.integers(0, 12), st.integers(1, 4), offsets)
def test_with_sinks(queries, keys, count, window, offset):
    mask = with_sinks(sliding_window(queries, keys, window=window, offset=offset), count, offset=offset)

    def near_or_first(p, j):
        return j <= p and (p - j < window or j in range(count))

    assert (mask == entrywise(queries, keys, offset, near_or_first)).all()


@given(st.data())
def test_with_global(data):
    queries, keys = data.draw(counts), data.draw(st.integers(1, 9))
    tokens = data.draw(st.lists(st.integers(0, keys - 1), max_size=3))
    is_causal, window = data.draw(st.booleans()), data.draw(st.integers(1, 3))

    def rule(p, j):
        near = 0 <= p - j < window
        shared = p in tokens or j in tokens
        return near or (shared and (j <= p or not is_causal))

    mask = with_global(sliding_window(queries, keys, window=window), tokens, causal=is_causal)
    assert (mask == entrywise(queries, keys, None, rule)).all()


@given(st.integers(0, 12), st.integers(1, 12), st.integers(1, 12))
def test_the_last_queries_of_a_text_are_the_queries_behind_a_cache(queries, keys, size):
    """Aligned at the end: a chunk's mask is the tail of the whole text's mask."""
    queries = min(queries, keys)
    for whole, part in (
        (causal(keys), causal(queries, keys)),
        (sliding_window(keys, window=size), sliding_window(queries, keys, window=size)),
        (chunked_causal(keys, chunk=size), chunked_causal(queries, keys, chunk=size)),
    ):
        assert (whole[keys - queries :] == part).all()


@given(st.integers(1, 12), st.integers(1, 15), st.lists(st.integers(0, 11), max_size=3))
def test_nothing_reads_the_future(keys, size, tokens):
    future = np.triu(np.ones((keys, keys), dtype=bool), 1)
    base = sliding_window(keys, window=size)
    for mask in (
        causal(keys),
        base,
        chunked_causal(keys, chunk=size),
        with_sinks(base, size),
        with_global(base, [token for token in tokens if token < keys]),
    ):
        assert not mask[future].any()


def test_window_longer_than_the_text_is_causal():
    assert (sliding_window(5, window=5) == causal(5)).all()
    assert (sliding_window(5, window=500) == causal(5)).all()
    assert (chunked_causal(5, chunk=500) == causal(5)).all()


def test_window_of_one_reads_the_query_itself():
    assert (sliding_window(5, window=1) == np.eye(5, dtype=bool)).all()
    assert (chunked_causal(5, chunk=1) == np.eye(5, dtype=bool)).all()


def test_one_decoding_step_reads_everything():
    assert causal(1, 5).all() and causal(1).all()


def test_more_queries_than_keys_leave_the_first_rows_empty():
    assert causal(4, 2).tolist() == [[False, False], [False, False], [True, False], [True, True]]


def test_the_report_s_graphs():
    """Eight tokens: dense, the query and two before it, and that with a global first token."""
    local = sliding_window(8, window=3)
    assert [edges(causal(8)), edges(local), edges(with_global(local, [0]))] == [36, 21, 26]
    assert (with_global(local, [0]) == with_sinks(local, 1)).all()


@given(st.integers(0, 40), st.integers(1, 50))
def test_edges_in_closed_form(length, window):
    w = min(window, length)
    assert edges(causal(length)) == length * (length + 1) // 2
    assert edges(sliding_window(length, window=window)) == length * w - w * (w - 1) // 2


def test_edges_counts_leading_axes_together():
    assert edges(np.stack([causal(3), sliding_window(3, window=1)])) == 9


def test_leading_axes_are_kept():
    heads = np.stack([sliding_window(4, window=1), sliding_window(4, window=2)])
    assert (with_sinks(heads, 1)[1] == with_sinks(heads[1], 1)).all()
    assert (with_global(heads, [1])[1] == with_global(heads[1], [1])).all()


def test_what_is_added_to_nothing():
    """A sink and a global token are read from their own position on, also where nothing else is."""
    nothing = np.zeros((4, 4), dtype=bool)
    assert with_sinks(nothing, 2).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 0],
    ]
    assert with_global(nothing, [1]).astype(int).tolist() == [
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
    ]


def test_a_mask_is_not_written_to():
    mask = sliding_window(4, window=1)
    with_sinks(mask, 2), with_global(mask, [1])
    assert (mask == np.eye(4, dtype=bool)).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: causal(-1), "queries must be an integer at least 0, got -1"),
        (lambda: causal(2.0), "queries must be an integer at least 0, got 2.0"),
        (lambda: causal(True), "queries must be an integer at least 0, got True"),
        (lambda: causal(2, -1), "keys must be an integer at least 0, got -1"),
        (lambda: causal(2, offset=0.5), "offset must be an integer, got 0.5"),
        (lambda: sliding_window(2, window=0), "window must be an integer at least 1, got 0"),
        (lambda: sliding_window(2, window=None), "window must be an integer at least 1, got None"),
        (lambda: chunked_causal(2, chunk=0), "chunk must be an integer at least 1, got 0"),
        (lambda: with_sinks(causal(2), -1), "count must be an integer at least 0, got -1"),
        (
            lambda: with_sinks(np.ones((2, 2)), 1),
            "mask must be boolean (True = may be read), got dtype float64",
        ),
        (lambda: with_sinks([True], 1), "mask must have at least 2 axes, got shape (1,)"),
        (
            lambda: with_global(causal(2), [2]),
            "tokens must be an integer at least 0 and at most 1, got 2",
        ),
        (lambda: with_global(causal(2), 1), "tokens must be a sequence of positions, got 1"),
        (lambda: edges([[0, 1]]), "mask must be boolean (True = may be read), got dtype int64"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
