"""The closed forms of visible pairs against masks written out pair by pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.ledger import edges
from archcards.ledger.architecture import Reach

sizes = st.integers(0, 12)
offsets = st.none() | st.integers(-4, 15)


def visible(queries, keys, offset, may_read):
    """Counts (query, key) pairs; the query stands at its absolute position."""
    start = keys - queries if offset is None else offset
    return sum(may_read(start + i, j) for i in range(queries) for j in range(keys))


@given(sizes, sizes, offsets, st.integers(0, 5))
def test_causal(queries, keys, offset, sinks):
    expected = visible(queries, keys, offset, lambda q, k: k <= q)
    assert edges.causal(queries, keys, offset=offset, sinks=sinks) == expected


@given(sizes, sizes, offsets, st.integers(1, 9), st.integers(0, 5))
def test_sliding_window(queries, keys, offset, window, sinks):
    expected = visible(queries, keys, offset, lambda q, k: k <= q and (k > q - window or k < sinks))
    assert edges.sliding_window(queries, window, keys=keys, offset=offset, sinks=sinks) == expected


@given(sizes, sizes, offsets, st.integers(1, 9), st.integers(0, 5))
def test_chunked(queries, keys, offset, chunk, sinks):
    expected = visible(
        queries, keys, offset, lambda q, k: k <= q and (k // chunk == q // chunk or k < sinks)
    )
    assert edges.chunked(queries, chunk, keys=keys, offset=offset, sinks=sinks) == expected


@given(sizes, st.integers(0, 6), st.integers(0, 14))
def test_with_global(queries, tokens, radius):
    expected = visible(
        queries, queries, 0, lambda q, k: q < tokens or k < tokens or abs(q - k) <= radius
    )
    # Windows of the others do not reach across the global tokens, which all read anyway.
    assert edges.with_global(queries, tokens=tokens, window=radius) == expected


@given(st.integers(0, 40), st.integers(0, 50))
def test_bidirectional_window(queries, radius):
    expected = visible(queries, queries, 0, lambda q, k: abs(q - k) <= radius)
    assert edges.bidirectional_window(queries, radius=radius) == expected


@given(st.integers(1, 60), st.sampled_from(["full", "window", "chunk", "top"]), st.integers(1, 20))
def test_a_sequence_is_the_sum_of_its_steps(length, kind, size):
    reach = Reach(kind, None if kind == "full" else size)
    assert edges.of(reach, length) == sum(edges.per_query(reach, t) for t in range(1, length + 1))


@given(st.integers(1, 60), st.integers(0, 70))
def test_a_reach_to_both_sides(length, size):
    reach = Reach("around", size)
    assert edges.of(reach, length) == visible(length, length, 0, lambda q, k: abs(q - k) <= size)
    assert edges.per_query(reach, length) == min(size + 1, length)
    assert edges.widest(reach) == len(range(-size, size + 1))


@given(st.integers(0, 40), st.integers(1, 50))
def test_chosen_positions(queries, top):
    assert edges.chosen(queries, top=top) == sum(min(top, place + 1) for place in range(queries))


def test_published_counts():
    assert edges.causal(4096) == 8_390_656
    assert edges.sliding_window(4096, window=1024) == 3_670_528
    assert edges.bidirectional_window(4096, radius=256) == 2_035_456
    # The mean span of a window of 512 over 2048 tokens is 448.125, not 256.
    assert edges.sliding_window(2048, window=512) * 8 == 3585 * 2048


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: edges.causal(-1), "queries: expected a whole number of at least 0, came -1"),
        (lambda: edges.causal(2.0), "queries: expected a whole number of at least 0, came 2.0"),
        (lambda: edges.causal(True), "queries: expected a whole number of at least 0, came True"),
        (lambda: edges.causal(3, -1), "keys: expected a whole number of at least 0, came -1"),
        (lambda: edges.causal(3, 3, offset=0.5), "offset: expected a whole number, came 0.5"),
        (lambda: edges.causal(3, 3, offset=True), "offset: expected a whole number, came True"),
        (lambda: edges.sliding_window(3, window=0), "window: expected a whole number of at least 1, came 0"),
        (lambda: edges.sliding_window(3, window=2, sinks=-1), "sinks: expected a whole number of at least 0, came -1"),
        (lambda: edges.chunked(3, chunk=0), "chunk: expected a whole number of at least 1, came 0"),
        (lambda: edges.chunked(3, chunk=2, sinks=-1), "sinks: expected a whole number of at least 0, came -1"),
        (lambda: edges.bidirectional_window(3, radius=-1), "radius: expected a whole number of at least 0, came -1"),
        (lambda: edges.with_global(3, tokens=-1), "tokens: expected a whole number of at least 0, came -1"),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == message
