"""Masks: which keys a query may read.

A mask is boolean, `True` = may be read, `(..., query, key)`. Keys stand at positions 0, 1, 2, …;
query `i` stands at position `offset + i`, and `offset` defaults to `keys - queries`: queries are
aligned at the end of the keys, as in decoding with a cache.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from ._checks import integer, mask_array, shown

__all__ = ["causal", "chunked_causal", "edges", "sliding_window", "with_global", "with_sinks"]


def causal(
    queries: int, keys: int | None = None, *, offset: int | None = None
) -> Bool[ndarray, "queries keys"]:
    """Let each query read the keys up to its own position.

    Query $i$ reads key $j$ when $j \\le \\text{offset} + i$.

    Args:
        queries: Number of queries.
        keys: Number of keys; as many as queries unless given.
        offset: Position of the first query; `keys - queries` unless given. With more queries than
            keys it is negative, and the first queries read nothing.

    Raises:
        ValueError: If a count is negative or not an integer.

    Source:
        Vaswani et al. 2017, arXiv 1706.03762, section 3.2.3. The alignment is that of
        flash-attention since 2.1.

    Example:
        >>> causal(2, 5).astype(int)
        array([[1, 1, 1, 1, 0],
               [1, 1, 1, 1, 1]])
    """
    query, key = _positions(queries, keys, offset)
    return key <= query


def sliding_window(
    queries: int, keys: int | None = None, *, window: int, offset: int | None = None
) -> Bool[ndarray, "queries keys"]:
    """Let each query read itself and the `window - 1` keys before it.

    The query at position $p$ reads key $j$ when $p - \\text{window} < j \\le p$.

    Args:
        queries: Number of queries.
        keys: Number of keys; as many as queries unless given.
        window: Number of keys a query reads at most, itself included.
        offset: Position of the first query; `keys - queries` unless given.

    Raises:
        ValueError: If a count is negative, or the window is smaller than 1.

    Source:
        Jiang et al. 2023, Mistral 7B, arXiv 2310.06825, section 2; causal form of Beltagy et al.
        2020, arXiv 2004.05150, section 3.1.

    Example:
        >>> sliding_window(4, window=2).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 0, 1, 1]])
    """
    window = integer("window", window, minimum=1)
    query, key = _positions(queries, keys, offset)
    return (key <= query) & (key > query - window)


def chunked_causal(
    queries: int, keys: int | None = None, *, chunk: int, offset: int | None = None
) -> Bool[ndarray, "queries keys"]:
    """Let each query read the keys up to itself in its own chunk of absolute positions.

    The query at position $p$ reads key $j$ when $j \\le p$ and
    $\\lfloor j / \\text{chunk} \\rfloor = \\lfloor p / \\text{chunk} \\rfloor$.

    Args:
        queries: Number of queries.
        keys: Number of keys; as many as queries unless given.
        chunk: Number of positions in a chunk.
        offset: Position of the first query; `keys - queries` unless given.

    Raises:
        ValueError: If a count is negative, or the chunk is smaller than 1.

    Source:
        Llama 4's `attention_chunk_size`, transformers `models/llama4`.

    Example:
        >>> chunked_causal(4, chunk=2).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [0, 0, 1, 0],
               [0, 0, 1, 1]])
    """
    chunk = integer("chunk", chunk, minimum=1)
    query, key = _positions(queries, keys, offset)
    return (key <= query) & (key // chunk == query // chunk)


def with_sinks(
    mask: Bool[ndarray, "*batch queries keys"], count: int, *, offset: int | None = None
) -> Bool[ndarray, "*batch queries keys"]:
    """Add the first `count` keys to what each query reads, once it has reached them.

    The query at position $p$ also reads key $j$ when $j < \\text{count}$ and $j \\le p$.

    Args:
        mask: The mask to widen.
        count: Number of first keys that stay readable.
        offset: Position of the first query; `keys - queries` unless given.

    Raises:
        ValueError: If the mask is not boolean or the count is negative.

    Source:
        Xiao et al. 2023, StreamingLLM, arXiv 2309.17453, section 3.2 (as a mask over absolute
        positions; the paper's cache renumbers positions, which is another model).

    Example:
        >>> with_sinks(sliding_window(4, window=1), 1).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [1, 0, 1, 0],
               [1, 0, 0, 1]])
    """
    mask = mask_array("mask", mask)
    count = integer("count", count, minimum=0)
    query, key = _positions(*mask.shape[-2:], offset)
    return mask | ((key < count) & (key <= query))


def with_global(
    mask: Bool[ndarray, "*batch queries keys"], tokens: Sequence[int], *, causal: bool = True
) -> Bool[ndarray, "*batch queries keys"]:
    """Let every query read the global tokens, and the global tokens read every key.

    The query at position $p$ also reads key $j$ when $j \\in G$ or $p \\in G$, and, unless `causal`
    is false, $j \\le p$. Queries are aligned at the end of the keys.

    Args:
        mask: The mask to widen.
        tokens: Positions $G$ of the global tokens.
        causal: Whether the added rows and columns are cut to the causal triangle.

    Raises:
        ValueError: If the mask is not boolean, or a token is not the position of a key.

    Source:
        Beltagy et al. 2020, Longformer, arXiv 2004.05150, section 3.1 (global attention);
        Zaheer et al. 2020, BigBird, arXiv 2007.14062, section 2.

    Example:
        >>> with_global(sliding_window(4, window=1), [1]).astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 1, 0, 1]])
    """
    mask = mask_array("mask", mask)
    queries, keys = mask.shape[-2:]
    if np.ndim(tokens) != 1:
        raise ValueError(f"tokens must be a sequence of positions, got {shown(tokens)}")
    positions = [integer("tokens", token, minimum=0, maximum=keys - 1) for token in tokens]
    query, key = _positions(queries, keys, None)
    added = np.isin(query, positions) | np.isin(key, positions)
    if causal:
        added &= key <= query
    return mask | added


def edges(mask: Bool[ndarray, "*batch queries keys"]) -> int:
    """Count the pairs of query and key that a mask allows.

    Args:
        mask: A mask; leading axes are counted together.

    Raises:
        ValueError: If the mask is not boolean or has fewer than two axes.

    Example:
        >>> edges(causal(8)), edges(sliding_window(8, window=3))
        (36, 21)
    """
    return int(np.count_nonzero(mask_array("mask", mask)))


def _positions(queries, keys, offset):
    """Positions of the queries as a column and of the keys as a row."""
    queries = integer("queries", queries, minimum=0)
    keys = queries if keys is None else integer("keys", keys, minimum=0)
    offset = keys - queries if offset is None else integer("offset", offset)
    return offset + np.arange(queries)[:, None], np.arange(keys)
