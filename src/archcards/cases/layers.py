"""Cases of norms, hyper-connections and sparse attention."""

import numpy as np

from ..mechanisms import compress_blocks as _compress
from ..mechanisms import rms_norm as _rms_norm
from ._registry import case, edge, published
from .numbers import between, numbers

__all__: list[str] = []

_X, _WEIGHT = numbers(2, 3, 6, seed=1), between(6, seed=2) + 1 / 256

# One, two and three channels of 300 are 1 below the others, so that a mean is up to 4400 times the
# spread: in E[x²] − m² the digits that are lost are the variance.
_FAR = 255.0 - (np.arange(300) % [[300], [150], [100]] == 7)


@published("layer_norm")
def layer_norm():
    yield case("without weights", x=_X)
    yield case("weight and bias", x=_X, weight=_WEIGHT, bias=numbers(6, seed=3))
    yield case("as small as the root of epsilon", x=_X / 256)
    yield edge("a mean far above the spread", x=_FAR)
    yield edge("constant", x=np.ones((2, 4)))
    yield edge("one channel", x=numbers(3, 1))


@published("rms_norm")
def rms_norm():
    yield case("without a weight", x=_X)
    yield case("weight", x=_X, weight=_WEIGHT)
    yield case("as small as the root of epsilon", x=_X / 1024)
    yield edge("zero", x=np.zeros((2, 4)))
    yield edge("one channel", x=numbers(3, 1))


@published("gated_norm")
def gated_norm():
    pair = {"y": _X, "z": numbers(2, 3, 6, seed=4)}
    yield case("one group", **pair, weight=_WEIGHT)
    yield case("two groups", **pair, weight=_WEIGHT, groups=2)
    yield case("norm first", **pair, weight=_WEIGHT, order="norm_first")
    yield edge("a group for each channel", **pair, groups=6)


@published("qk_norm", returns="query key")
def qk_norm():
    pair = {"query": numbers(2, 3, 4, seed=5), "key": numbers(2, 3, 4, seed=6)}
    weights = {"query_weight": between(4, seed=7) + 1 / 256, "key_weight": between(4, seed=8) + 1 / 256}
    yield case("without weights", **pair)
    yield case("weights", **pair, **weights)
    yield edge("short vectors", query=pair["query"] / 1024, key=pair["key"] / 1024)


@published("residual_step")
def residual_step():
    yield case("pre-norm", x=_X, sublayer=np.tanh, norm=_rms_norm)
    yield case("post-norm", x=_X, sublayer=np.tanh, norm=_rms_norm, order="post")


@published("sinkhorn")
def sinkhorn():
    yield case("three streams", logits=2 * numbers(2, 3, 3, seed=9))
    yield case("two iterations", logits=numbers(3, 3, seed=10), iterations=2)
    yield edge("equal logits", logits=np.zeros((3, 3)))
    yield edge("one stream", logits=np.array([[2.0]]))


@published("hyper_connection")
def hyper_connection():
    streams = numbers(3, 2, 4, seed=11)
    mixing = np.array([[0.625, 0.375], [0.125, 0.875]])
    shared = {"sublayer": np.tanh, "read": np.array([0.75, 0.25])}
    yield case("two streams", streams=streams, mixing=mixing, write=np.array([1.5, 0.5]), **shared)
    yield edge("identity mixing", streams=streams, mixing=np.eye(2), write=np.array([1.0, 1.0]), **shared)


@published("hyper_coefficients", returns="mixing read write")
def hyper_coefficients():
    weights = {"weight": numbers(8, 8, seed=12) / 4, "bias": numbers(8, seed=13) / 2}
    yield case("two streams", streams=numbers(3, 2, 4, seed=14), **weights, scale=np.full(3, 0.5))
    yield edge("scales of zero", streams=numbers(3, 2, 4, seed=14), **weights, scale=np.zeros(3))


# Sparse attention. Scores that are compared are apart.

_QUERY, _KEY = numbers(6, 2, seed=15), numbers(6, 2, seed=16)
_VALUE = numbers(6, 3, seed=17)
_CAUSAL = np.tril(np.ones((6, 6), dtype=bool))
_APART = (np.arange(36).reshape(6, 6) * 11 % 37 - 18) / 8


@published("index_scores", returns="scores")
def index_scores():
    arrays = {"query": numbers(2, 6, 3, seed=18), "key": numbers(6, 3, seed=19)}
    yield case("two heads", **arrays, weight=numbers(6, 2, seed=20))
    yield case("scale given", **arrays, weight=numbers(6, 2, seed=20), scale=0.5)
    yield edge("one head", query=arrays["query"][:1], key=arrays["key"], weight=numbers(6, 1, seed=21))


@published("select_top_k", returns="mask")
def select_top_k():
    yield case("two keys, causal", scores=_APART, count=2, mask=_CAUSAL)
    yield case("two keys of all", scores=_APART, count=2)
    yield edge("one key", scores=_APART, count=1, mask=_CAUSAL)
    yield edge("every key", scores=_APART, count=6, mask=_CAUSAL)
    yield edge("ties to the earlier key", scores=np.maximum(_APART, 0), count=4)


@published("block_scores", returns="scores")
def block_scores():
    yield case("blocks of two", query=_QUERY, key=_KEY, block=2)
    yield case("blocks of three", query=_QUERY, key=_KEY, block=3)
    yield edge("one block", query=_QUERY, key=_KEY, block=6)
    yield edge("blocks of one", query=_QUERY, key=_KEY, block=1)


@published("selection_scores", returns="scores")
def selection_scores():
    weights = between(3, 5, seed=22)
    yield case("blocks that overlap", weights=weights, keys=6, block=2, stride=1, selected=2)
    yield case("larger selection blocks", weights=weights, keys=6, block=2, stride=1, selected=3)
    yield edge("the same blocks", weights=weights[:, :3], keys=6, block=2, stride=2, selected=2)


@published("select_blocks", returns="mask")
def select_blocks():
    falling = np.tile([3.0, 2.0, 1.0], (6, 1))
    yield case("the first is best", scores=falling, count=2, keys=6, block=2)
    yield case("the last is best", scores=-falling, count=2, keys=6, block=2)
    yield case("the first is forced", scores=-falling, count=2, keys=6, block=2, first=1)
    uneven = np.tile([1.0, 5.0, 2.0, 4.0, 3.0, 6.0], (12, 1))
    native = {"scores": uneven, "keys": 12, "block": 2, "first": 1, "recent": 2}
    yield case("the first and two recent are forced", **native, count=4)
    yield edge("every block: causal", scores=falling, count=3, keys=6, block=2)
    yield edge("only the forced block", scores=falling, count=1, keys=6, block=2)


@published("compress_blocks", returns="compressed")
def compress_blocks():
    series = {"overlap": numbers(6, 3, seed=23), "overlap_logits": numbers(6, 3, seed=24)}
    yield case("means", x=_VALUE, block=2)
    yield case("weighted", x=_VALUE, logits=numbers(6, 3, seed=25), block=2)
    yield case("overlapping", x=_VALUE, logits=numbers(6, 3, seed=25), block=2, **series)
    yield edge("an incomplete block", x=_VALUE[:5], block=2)
    yield edge("blocks of one", x=_VALUE, block=1)


@published("completed_blocks", returns="mask")
def completed_blocks():
    yield case("blocks of two", queries=6, block=2)
    yield case("two queries after six keys", queries=2, keys=6, block=2)
    yield edge("one block", queries=3, block=3)
    yield edge("no block is complete", queries=2, block=3)


@published("compressed_attention", variables="sink")
def compressed_attention():
    arrays = {
        "query": _QUERY, "key": _KEY, "value": _VALUE, "block": 2,
        "block_key": _compress(_KEY, block=2), "block_value": _compress(_VALUE, block=2),
    }  # fmt: skip
    yield case("a window of two", **arrays, window=2)
    yield case("a sink", **arrays, window=2, sink=0.5)
    yield edge("a window of one", **arrays, window=1)
