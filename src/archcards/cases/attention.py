"""Cases of softmax attention, caches and online softmax."""

import numpy as np

from ..mechanisms import AttentionState, attend, causal, sliding_window
from ._registry import case, edge, published
from .numbers import numbers

__all__: list[str] = []

_HEADS = {name: "batch head time feature" for name in ("query", "key", "value", "output")}
_AXES = _HEADS | {"weights": "batch head query key", "sink": "head", "bias": "head query key"}


@published("softmax", returns="weights")
def softmax():
    yield case("a row", scores=numbers(5))
    yield case("rows", scores=numbers(3, 4, seed=1))
    yield case("the first axis", scores=numbers(3, 4, seed=2), axis=0)
    yield edge("one score", scores=np.array([1.5]))
    yield edge("equal scores", scores=np.zeros(4))
    yield edge("scores beyond the range of the exponential", scores=np.array([1000.0, 1004.0]))


def _read(kv_heads, value_width=3, weights=False):
    """Cases of a softmax read: `kv_heads` key/value heads for four query heads."""

    def arrays(queries, keys, size=1.0, width=value_width):
        found = {
            "query": size * numbers(2, 4, queries, 8, seed=queries),
            "key": size * numbers(2, kv_heads, keys, 8, seed=10 + keys),
        }
        return found if weights else found | {"value": numbers(2, kv_heads, keys, width, seed=20)}

    sink = np.array([0.0, 1.0, -1.0, 2.0])
    slopes = 2.0 ** -np.arange(2, 10, 2)
    bias = -slopes[:, None, None] * abs(np.arange(5)[:, None] - np.arange(5))
    gap = causal(5) & (np.arange(5)[:, None] != 2)
    yield case("no mask", **arrays(5, 5))
    yield case("causal mask", **arrays(5, 5), mask=causal(5))
    yield case("two queries after five keys", **arrays(2, 5), mask=causal(2, 5))
    yield case("values as wide as keys", **arrays(3, 3, width=8))
    yield case("scale given", **arrays(3, 3), mask=causal(3), scale=0.25)
    yield case("window", **arrays(5, 5), mask=sliding_window(5, window=2))
    yield case("bias", **arrays(5, 5), mask=causal(5), bias=bias)
    yield case("soft cap", **arrays(5, 5), mask=causal(5), softcap=0.5)
    yield case("bias and soft cap", **arrays(5, 5), bias=bias, softcap=0.5)
    yield case("sink", **arrays(5, 5), mask=causal(5), sink=sink)
    yield case("sink and window", **arrays(5, 5), mask=sliding_window(5, window=2), sink=sink)
    yield edge("one query, one key", **arrays(1, 1))
    yield edge("one query after seven keys", **arrays(1, 7))
    yield edge("a row without a readable key", **arrays(5, 5), mask=gap, empty="zeros")
    yield edge("scores of several hundred", **arrays(5, 5, size=16.0), mask=causal(5))


@published("attention", axes=_AXES, choices="empty")
def attention():
    return _read(4)


@published("attention_weights", returns="weights", axes=_AXES, choices="empty")
def attention_weights():
    return _read(4, weights=True)


@published("grouped_attention", axes=_AXES, choices="empty")
def grouped_attention():
    yield from _read(2)
    one = {"query": numbers(2, 4, 3, 8, seed=1), "mask": causal(3)}
    for heads, name in ((1, "one key/value head"), (4, "as many key/value heads as query heads")):
        pair = {"key": numbers(2, heads, 3, 8, seed=2), "value": numbers(2, heads, 3, 3, seed=3)}
        yield edge(name, **one, **pair)


@published("gate_output", axes={name: "batch time channel" for name in ("output", "gate")})
def gate_output():
    yield case("a gate per channel", output=numbers(2, 3, 4), gate=numbers(2, 3, 4, seed=1))
    yield case("a gate per token", output=numbers(2, 3, 4), gate=numbers(2, 3, 1, seed=2))
    yield edge("gates shut and open", output=numbers(1, 2, 3), gate=np.array([[[-800.0], [800.0]]]))


@published("cached_attention", axes=_HEADS)
def cached_attention():
    def arrays(time):
        return {
            "query": numbers(2, 4, time, 4, seed=1),
            "key": numbers(2, 2, time, 4, seed=2),
            "value": numbers(2, 2, time, 3, seed=3),
        }

    yield case("three chunks", **arrays(7), chunks=[3, 2, 2])
    yield case("three chunks and a window", **arrays(7), chunks=[3, 2, 2], window=3)
    yield case("prefill, then one token at a time", **arrays(6), chunks=[3, 1, 1, 1], window=2)
    yield edge("one chunk", **arrays(4), chunks=[4])
    yield edge("window of one", **arrays(4), chunks=[2, 2], window=1)
    yield edge("window longer than the text", **arrays(4), chunks=[2, 2], window=9)


def _hold(function, *, key, value, chunks, window=None):
    """What a cache holds for each chunk, and between chunks."""
    cache, start, held = function(window), 0, []
    for length in chunks:
        cache.append(*(x[..., start : start + length, :] for x in (key, value)))
        held += [cache.key, cache.value, cache.scalars]
        cache.trim()
        start += length
    return held


@published("KVCache", returns=" ".join(f"{x}_{i}" for i in (1, 2, 3) for x in ("key", "value", "scalars")), call=_hold)
def kv_cache():
    for window, name in ((None, "no window"), (3, "a window of three"), (1, "a window of one")):
        pair = {"key": numbers(2, 7, 4, seed=1), "value": numbers(2, 7, 3, seed=2)}
        yield case(name, **pair, chunks=[4, 2, 1], window=window)


def _piece(seed, *shape, hidden=()):
    mask = np.ones(shape, dtype=bool)
    mask[..., list(hidden)] = False
    return attend(numbers(*shape, seed=seed), numbers(shape[-1], 3, seed=seed + 1), mask)


_STATE = "output log_sum_exp"


def _merge(function, *, state, other):
    return function(state, other)


@published("merge", returns=_STATE, call=_merge)
def merge():
    none = AttentionState.empty((2, 3))
    yield case("two pieces", state=_piece(1, 2, 4), other=_piece(2, 2, 5))
    apart = attend(np.array([[64.0, 65.0]] * 2), numbers(2, 3, seed=3))
    yield case("maxima far apart", state=_piece(1, 2, 4), other=apart)
    yield edge("an empty piece first", state=none, other=_piece(1, 2, 4))
    yield edge("an empty piece last", state=_piece(1, 2, 4), other=none)
    yield edge("two empty pieces", state=none, other=none)


@published("attend", returns=_STATE)
def attend_cases():
    pair = {"scores": numbers(3, 4, seed=1), "values": numbers(4, 3, seed=2)}
    yield case("all readable", **pair)
    yield case("masked", **pair, mask=causal(3, 4))
    yield edge("one key", scores=numbers(3, 1), values=numbers(1, 2))
    yield edge("a row with nothing readable", **pair, mask=np.arange(3)[:, None] * [1, 1, 1, 1] > 0)


@published("blockwise_attention", returns=_STATE, axes=_HEADS | {"log_sum_exp": "batch head time"})
def blockwise_attention():
    def arrays(time, size=1.0):
        return {
            "query": size * numbers(2, 2, time, 4, seed=1),
            "key": size * numbers(2, 2, time, 4, seed=2),
            "value": numbers(2, 2, time, 3, seed=3),
        }

    yield case("blocks of two", **arrays(6), block=2)
    yield case("length no multiple of the block", **arrays(5), block=2)
    yield case("causal", **arrays(5), mask=causal(5), block=2)
    yield case("scale given", **arrays(4), block=3, scale=0.25)
    yield edge("one block", **arrays(4), block=8)
    yield edge("blocks of one", **arrays(4), block=1)
    yield edge("blocks without a readable key", **arrays(5), mask=sliding_window(5, window=1), block=1)
    yield edge("scores of several hundred", **arrays(5, size=16.0), mask=causal(5), block=2)
