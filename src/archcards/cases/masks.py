"""Cases of masks."""

import numpy as np

from ..mechanisms import causal as _causal
from ..mechanisms import sliding_window as _sliding
from ._registry import case, edge, published

__all__: list[str] = []


@published("causal", returns="mask")
def causal():
    yield case("square", queries=4)
    yield case("two queries after five keys", queries=2, keys=5)
    yield case("an offset given", queries=3, keys=5, offset=1)
    yield edge("one query, one key", queries=1)
    yield edge("decoding: one query after five keys", queries=1, keys=5)
    yield edge("more queries than keys: the first rows are empty", queries=4, keys=2)


@published("sliding_window", returns="mask")
def sliding_window():
    yield case("square", queries=6, window=3)
    yield case("two queries after six keys", queries=2, keys=6, window=3)
    yield case("an offset given", queries=3, keys=6, window=2, offset=1)
    yield edge("window of one", queries=4, window=1)
    yield edge("window as long as the text", queries=4, window=4)
    yield edge("window longer than the text", queries=4, window=9)
    yield edge("more queries than keys: the first rows are empty", queries=4, keys=2, window=2)


@published("chunked_causal", returns="mask")
def chunked_causal():
    yield case("two chunks", queries=6, chunk=3)
    yield case("length no multiple of the chunk", queries=5, chunk=3)
    yield case("two queries after five keys", queries=2, keys=5, chunk=3)
    yield case("two queries that begin inside a chunk", queries=2, keys=7, chunk=4)
    yield edge("chunk of one", queries=4, chunk=1)
    yield edge("chunk longer than the text", queries=4, chunk=9)


@published("with_sinks", returns="mask")
def with_sinks():
    yield case("one sink beside a window", mask=_sliding(6, window=2), count=1)
    yield case("sinks while the first are not reached", mask=_sliding(5, window=1), count=3)
    yield case("two queries after six keys", mask=_sliding(2, 6, window=2), count=2)
    yield edge("no sink", mask=_sliding(4, window=2), count=0)
    yield edge("as many sinks as keys", mask=_sliding(4, window=1), count=4)


@published("with_global", returns="mask")
def with_global():
    yield case("one token in the middle", mask=_sliding(6, window=2), tokens=[2])
    yield case("two queries after five keys", mask=_sliding(3, 5, window=1), tokens=[3])
    yield case("both ways in time", mask=_sliding(5, window=1), tokens=[0, 3], causal=False)
    yield edge("none", mask=_sliding(4, window=2), tokens=[])


@published("edges", returns="edges")
def edges():
    yield case("causal", mask=_causal(8))
    yield case("window", mask=_sliding(8, window=3))
    yield case("two queries after five keys", mask=_causal(2, 5))
    yield edge("one", mask=_causal(1))
    yield edge("nothing readable", mask=np.zeros((2, 3), dtype=bool))
