"""A cache never changes what attention computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import KVCache, cached_attention, causal, grouped_attention, sliding_window

EXACT = {"rtol": 0, "atol": 1e-12}


def drawn(seed, time, heads=4, kv_heads=2):
    generator = np.random.default_rng(seed)
    shapes = ((heads, time, 3), (kv_heads, time, 3), (kv_heads, time, 2))
    return [generator.normal(size=shape) for shape in shapes]


def one_pass(query, key, value, window):
    """Each query on its own over the keys it may read, found by counting back."""
    outputs = []
    for position in range(query.shape[-2]):
        first = 0 if window is None else max(0, position - (window - 1))
        past = slice(first, position + 1)
        now = slice(position, position + 1)
        outputs.append(grouped_attention(query[:, now], key[:, past], value[:, past]))
    return np.concatenate(outputs, axis=-2)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.none() | st.integers(1, 20),
)
def test_the_chunks_never_matter(seed, chunks, window):
    query, key, value = drawn(seed, sum(chunks))
    output = cached_attention(query, key, value, chunks=chunks, window=window)
    np.testing.assert_allclose(output, one_pass(query, key, value, window), **EXACT)


@pytest.mark.parametrize("window", [None, 1, 3, 100])
def test_prefill_and_decoding_agree(window):
    query, key, value = drawn(7, 8)
    prefill = cached_attention(query, key, value, chunks=[8], window=window)
    decoding = cached_attention(query, key, value, chunks=[1] * 8, window=window)
    np.testing.assert_allclose(prefill, decoding, **EXACT)
    mask = causal(8) if window is None else sliding_window(8, window=window)
    np.testing.assert_allclose(prefill, grouped_attention(query, key, value, mask), **EXACT)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 8), st.booleans())
def test_a_window_holds_itself_and_the_chunk_less_one(chunks, window, trims):
    """With or without a call to trim: what is held while a chunk attends is the same."""
    cache, seen = KVCache(window), 0
    for chunk in chunks:
        new = np.arange(seen, seen + chunk, dtype=float)[:, None]
        cache.append(new, -new)
        wanted = list(range(max(0, seen - window + 1), seen + chunk))
        assert cache.key[:, 0].tolist() == wanted and (cache.value == -cache.key).all()
        seen += chunk
        assert cache.seen == seen and cache.scalars == 2 * min(seen, window)
        if trims:
            cache.trim()
            assert cache.key[:, 0].tolist() == list(range(max(0, seen - window), seen))
            assert cache.scalars == cache.key.size + cache.value.size


def test_scalars_without_a_window_grow():
    """Keys of width 3 and values of width 2, two heads, a batch of five."""
    cache = KVCache()
    assert cache.scalars == 0 and cache.seen == 0 and cache.window is None
    cache.append(np.zeros((5, 2, 4, 3)), np.zeros((5, 2, 4, 2)))
    assert cache.scalars == 5 * 2 * 4 * (3 + 2)
    cache.append(np.zeros((5, 2, 1, 3)), np.zeros((5, 2, 1, 2)))
    assert cache.scalars == 5 * 2 * 5 * (3 + 2)


def test_the_report_s_caches():
    """Batch 1, 4 layers, 16 tokens, heads of width 8: 8, 2 and 1 key/value heads."""
    scalars = []
    for kv_heads in (8, 2, 1):
        cache = KVCache()
        cache.append(np.zeros((1, kv_heads, 16, 8)), np.zeros((1, kv_heads, 16, 8)))
        scalars.append(4 * cache.scalars)
    assert scalars == [8192, 2048, 1024]


def test_an_empty_chunk_changes_nothing():
    cache = KVCache(2)
    cache.append([[1.0], [2.0]], [[3.0], [4.0]])
    cache.append(np.zeros((0, 1)), np.zeros((0, 1)))
    assert cache.seen == 2 and cache.scalars == 2  # the next query needs one key before itself


def test_the_cache_owns_its_arrays():
    """What was appended may be overwritten, what is held may not."""
    key = np.ones((2, 1))
    cache = KVCache()
    cache.append(key, key)
    key[:] = 5
    assert (cache.key == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        cache.key[:] = 5


def test_no_tokens_give_no_output():
    empty = np.zeros((2, 0, 3))
    assert cached_attention(empty, empty, empty, chunks=[]).shape == (2, 0, 3)


HELD = KVCache()
HELD.append(np.zeros((2, 1, 3)), np.zeros((2, 1, 3)))
ONES = np.ones((2, 4, 3))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: KVCache(0), "window must be an integer at least 1, got 0"),
        (lambda: KVCache().key, "cache must hold a chunk before it is read, got no append"),
        (lambda: HELD.append([1.0], [1.0]), "key must have at least 2 axes, got shape (1,)"),
        (
            lambda: HELD.append(ONES, ONES[:, :3]),
            "value must have the leading axes and length of key, (2, 4), got (2, 3)",
        ),
        (
            lambda: HELD.append(ONES[:1], ONES[:1]),
            "key must have the heads and width of what is held, (2, 3), got (1, 3)",
        ),
        (
            lambda: HELD.append(ONES, ONES[..., :1]),
            "value must have the heads and width of what is held, (2, 3), got (2, 1)",
        ),
        (
            lambda: cached_attention(ONES, ONES, ONES, chunks=[3]),
            "chunks must sum to the length, 4, got 3",
        ),
        (
            lambda: cached_attention(ONES, ONES, ONES, chunks=[4, 0]),
            "chunks must be an integer at least 1, got 0",
        ),
        (
            lambda: cached_attention(ONES, ONES, ONES, chunks=4),
            "chunks must be a sequence of sizes, got 4",
        ),
        (
            lambda: cached_attention(ONES[:, :3], ONES, ONES, chunks=[4]),
            "key must have the length of query, 3, got 4",
        ),
        (
            lambda: cached_attention(ONES, ONES, ONES[:, :3], chunks=[4]),
            "value must have the length of key, 4, got 3",
        ),
        (
            lambda: cached_attention(ONES[0], ONES, ONES, chunks=[4]),
            "query must have at least 3 axes, got shape (4, 3)",
        ),
        (
            lambda: cached_attention(ONES, ONES, ONES, chunks=[4], window=0),
            "window must be an integer at least 1, got 0",
        ),
    ],
)
def test_errors(call, message):
    before = HELD.seen
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
    assert HELD.seen == before
