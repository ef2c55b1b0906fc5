"""Sparse attention with learned or computed choices: which keys a query reads depends on both.

A choice is a mask, so it composes with `attention`; whatever is chosen, no query reads its future.
Blocks are counted from position 0. A compressed block is one key that stands for several; it may be
read once its last token is reached. Ties go to the earlier key or block.
"""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from ._checks import (
    broadcast_leading,
    integer,
    mask_array,
    real_array,
    real_number,
    same_shape,
    same_size,
)
from .attention import _query_and_key, _value, attention, softmax
from .masks import _positions, sliding_window

__all__ = [
    "block_scores",
    "completed_blocks",
    "compress_blocks",
    "compressed_attention",
    "index_scores",
    "select_blocks",
    "select_top_k",
    "selection_scores",
]


def index_scores(
    query: Float[ndarray, "*#batch head query d_index"],
    key: Float[ndarray, "*#batch key d_index"],
    weight: Float[ndarray, "*#batch query head"],
    *,
    scale: float = 1.0,
) -> Float[ndarray, "... query key"]:
    """Score keys by the lightning indexer, with few narrow heads and one key for all of them.

    $$I_{ts} = \\sum_h w_{th}\\, \\text{ReLU}(\\text{scale}\\; q_{th} \\cdot k_s)$$

    A positive scale changes no choice.

    Args:
        query: The indexer's queries.
        key: The indexer's keys, shared by its heads.
        weight: Weight of each head, computed from the query's token; may be negative.
        scale: Factor on the products.

    Raises:
        ValueError: If shapes do not fit.

    Source:
        DeepSeek-V3.2, 2025, arXiv 2512.02556, equation 1.

    Example:
        >>> index_scores([[[1.0]], [[-1.0]]], [[2.0], [-3.0]], [[1.0, 10.0]])
        array([[ 2., 30.]])
    """
    query = real_array("query", query, min_ndim=3)
    key = real_array("key", key, min_ndim=2)
    weight = real_array("weight", weight, min_ndim=2)
    scale = real_number("scale", scale)
    same_size("width", ("query", query.shape[-1]), ("key", key.shape[-1]))
    same_size("length", ("query", query.shape[-2]), ("weight", weight.shape[-2]))
    same_size("number of heads", ("query", query.shape[-3]), ("weight", weight.shape[-1]))
    leading = {"query": query.shape[:-3], "key": key.shape[:-2], "weight": weight.shape[:-2]}
    broadcast_leading(leading)
    products = scale * np.einsum("...htd,...sd->...hts", query, key)
    return np.einsum("...th,...hts->...ts", weight, np.maximum(products, 0.0))


def select_top_k(
    scores: Float[ndarray, "*#batch query key"],
    count: int,
    mask: Bool[ndarray, "*#batch query key"] | None = None,
) -> Bool[ndarray, "... query key"]:
    """Let each query read its `count` best keys among those the mask allows.

    Keys are ranked after the mask: a key of the future takes no place. A query with at most `count`
    readable keys reads them all, so with `count` as long as the text the mask comes back unchanged.

    Args:
        scores: Scores of the keys, as from `index_scores`; −∞ is legal.
        count: How many keys a query reads at most.
        mask: Which keys may be chosen; all unless given.

    Raises:
        ValueError: If shapes do not fit, a score is NaN or +∞, or the count is smaller than 1.

    Source:
        DeepSeek-V3.2, 2025, arXiv 2512.02556, equation 2.

    Example:
        >>> select_top_k([[3.0, 1.0, 2.0, 9.0]], 2, [[True, True, True, False]])
        array([[ True, False,  True, False]])
    """
    scores = real_array("scores", scores, min_ndim=2, minus_infinity=True)
    count = integer("count", count, minimum=1)
    allowed = np.ones(scores.shape[-2:], dtype=bool)
    if mask is not None:
        allowed = mask_array("mask", mask, *scores.shape[-2:])
        broadcast_leading({"scores": scores.shape[:-2], "mask": allowed.shape[:-2]})
    return (_rank(scores, allowed) < count) & allowed


def block_scores(
    query: Float[ndarray, "*#batch query d_k"],
    key: Float[ndarray, "*#batch key d_k"],
    *,
    block: int,
) -> Float[ndarray, "... query blocks"]:
    """Score each block by its mean key.

    $$s_{tb} = q_t \\cdot \\frac{1}{|B_b|} \\sum_{s \\in B_b} k_s$$

    The last block may be shorter. The mean of the block a query stands in contains keys of its
    future; `select_blocks` takes that block without looking at its score.

    Args:
        query: Queries.
        key: Keys.
        block: Number of keys in a block.

    Raises:
        ValueError: If shapes do not fit, or the block is smaller than 1.

    Source:
        Lu et al. 2025, MoBA, arXiv 2502.13189, section 2.2.

    Example:
        >>> block_scores([[2.0]], [[1.0], [3.0], [5.0]], block=2)
        array([[ 4., 10.]])
    """
    query, key, _ = _query_and_key(query, key)
    block = integer("block", block, minimum=1)
    starts = np.arange(0, key.shape[-2], block)
    sizes = np.minimum(block, key.shape[-2] - starts)
    means = [
        key[..., start : start + size, :].mean(axis=-2)
        for start, size in zip(starts, sizes, strict=True)
    ]
    pooled = np.stack(means, axis=-2) if means else key
    return query @ np.swapaxes(pooled, -1, -2)


def selection_scores(
    weights: Float[ndarray, "*batch query compressed"],
    keys: int,
    *,
    block: int,
    stride: int,
    selected: int,
) -> Float[ndarray, "*batch query blocks"]:
    """Score selection blocks by the attention that compressed blocks received.

    Cut the text into cells of `stride` tokens: a compressed block covers `block / stride` cells and
    a selection block `selected / stride`. With both counted from zero,

    $$s_{tj} = \\sum_{c \\in \\text{cells of } j} \\;
    \\sum_{i\\, :\\, c \\in \\text{cells of } i} w_{ti}$$

    Heads that share keys and values should choose alike: add their scores before selecting.

    Args:
        weights: Attention weights on the compressed blocks.
        keys: Number of keys of the text.
        block: Tokens in a compressed block.
        stride: Tokens from one compressed block to the next.
        selected: Tokens in a selection block.

    Raises:
        ValueError: If the stride does not divide both blocks, or the compressed blocks are not
            those of the text.

    Source:
        Yuan et al. 2025, Native Sparse Attention, arXiv 2502.11089, equation 9 (which counts from
        one).

    Example:
        >>> selection_scores([[0.5, 0.3, 0.2]], 4, block=2, stride=1, selected=2)
        array([[1.3, 0.7]])
    """
    weights = real_array("weights", weights, min_ndim=2)
    keys = integer("keys", keys, minimum=0)
    block, stride, selected = _block_and_stride(block, stride, selected)
    same_size(
        "number of compressed blocks",
        ("the text", max(0, (keys - block) // stride + 1)),
        ("weights", weights.shape[-1]),
    )
    scores = np.zeros((*weights.shape[:-1], -(-keys // selected)))
    for i in range(weights.shape[-1]):
        for cell in range(i, i + block // stride):
            scores[..., cell * stride // selected] += weights[..., i]
    return scores


def select_blocks(
    scores: Float[ndarray, "*batch query blocks"],
    count: int,
    keys: int,
    *,
    block: int,
    first: int = 0,
    recent: int = 1,
    offset: int | None = None,
) -> Bool[ndarray, "*batch query keys"]:
    """Let each query read `count` blocks: the first, the most recent, and the best of the others.

    The most recent blocks end with the one the query stands in, which is cut causally. Blocks that
    begin after the query are never chosen, and the forced blocks count among the `count`.

    Args:
        scores: Scores of the blocks, as from `block_scores` or `selection_scores`.
        count: How many blocks a query reads at most.
        keys: Number of keys.
        block: Number of keys in a block.
        first: How many first blocks are always read.
        recent: How many of the most recent blocks are always read, the query's own included.
        offset: Position of the first query; `keys - queries` unless given.

    Raises:
        ValueError: If the scores are not those of the text's blocks, or the forced blocks do not
            fit into the count.

    Source:
        Lu et al. 2025, MoBA, arXiv 2502.13189, section 2.2 (first 0, recent 1); Yuan et al. 2025,
        Native Sparse Attention, arXiv 2502.11089, sections 3.3.2 and 4.1 (first 1, recent 2).

    Example:
        >>> select_blocks([[3.0, 9.0, 0.0]], 2, 6, block=2).astype(int)
        array([[0, 0, 1, 1, 1, 1]])
    """
    scores = real_array("scores", scores, min_ndim=2)
    count = integer("count", count, minimum=1)
    keys = integer("keys", keys, minimum=0)
    block = integer("block", block, minimum=1)
    first = integer("first", first, minimum=0)
    recent = integer("recent", recent, minimum=1)
    if first + recent > count:
        raise ValueError(f"count must hold the {first + recent} forced blocks, got {count}")
    same_size("number of blocks", ("the text", -(-keys // block)), ("scores", scores.shape[-1]))
    query, key = _positions(scores.shape[-2], keys, offset)
    own, blocks = query // block, np.arange(scores.shape[-1])
    begun = blocks <= own
    forced = begun & ((blocks < first) | (blocks > own - recent))
    chosen = _rank(np.where(forced, np.inf, scores), begun) < count
    return chosen[..., key // block] & (key <= query)


def compress_blocks(
    x: Float[ndarray, "*batch time channel"],
    logits: Float[ndarray, "*batch time channel"] | None = None,
    *,
    block: int,
    stride: int | None = None,
    overlap: Float[ndarray, "*batch time channel"] | None = None,
    overlap_logits: Float[ndarray, "*batch time channel"] | None = None,
) -> Float[ndarray, "*batch blocks channel"]:
    """Compress each complete block of tokens into one, channel by channel.

    $$c_b = \\sum_{s \\in B_b} \\text{softmax}_s(z_s) \\odot x_s$$

    with the softmax over the tokens of the block. Without logits $z$ this is the mean. With an
    overlap, the tokens of the block before compete too, through a second series of values and
    logits of their own; the first block has none before it. A block not yet complete is left out.

    Args:
        x: Values to compress.
        logits: Logits of the weights, a bias for the place in the block included.
        block: Tokens in a block.
        stride: Tokens from one block to the next; `block` unless given.
        overlap: The series that each token gives to the block after its own.
        overlap_logits: Logits of that series.

    Raises:
        ValueError: If shapes do not fit, or an overlap comes with a stride or without its logits.

    Source:
        DeepSeek-V4, 2026, section 2.3: equations 9–12 with overlap (compressed sparse attention),
        20–23 without (heavily compressed attention). Mean: MoBA, arXiv 2502.13189. Stride: Native
        Sparse Attention, arXiv 2502.11089, equation 7, with its learned map in the mean's place.

    Example:
        >>> compress_blocks([[1.0], [3.0], [5.0], [9.0], [2.0]], block=2).ravel()
        array([2., 7.])
    """
    x = real_array("x", x, min_ndim=2)
    block, stride, _ = _block_and_stride(block, block if stride is None else stride, None)
    logits = np.zeros(x.shape) if logits is None else real_array("logits", logits)
    same_shape(("x", x), ("logits", logits))
    if (overlap is None) != (overlap_logits is None):
        raise ValueError("overlap must come with overlap_logits, got one of the two")
    if overlap is not None:
        if stride != block:
            raise ValueError(f"stride must be the block, {block}, with an overlap, got {stride}")
        overlap = real_array("overlap", overlap)
        overlap_logits = real_array("overlap_logits", overlap_logits)
        same_shape(("x", x), ("overlap", overlap))
        same_shape(("x", x), ("overlap_logits", overlap_logits))

    blocks = max(0, (x.shape[-2] - block) // stride + 1)
    tokens = np.arange(blocks)[:, None] * stride + np.arange(block)
    values, weights = x[..., tokens, :], logits[..., tokens, :]  # (..., blocks, block, channel)
    if overlap is not None:
        before = tokens - block
        missing = np.broadcast_to((before < 0)[..., None], values.shape)
        values = np.concatenate([overlap[..., before, :], values], axis=-2)
        hidden = np.where(missing, -np.inf, overlap_logits[..., before, :])
        weights = np.concatenate([hidden, weights], axis=-2)
    return (softmax(weights, axis=-2) * values).sum(axis=-2)


def completed_blocks(
    queries: int,
    keys: int | None = None,
    *,
    block: int,
    stride: int | None = None,
    offset: int | None = None,
) -> Bool[ndarray, "queries blocks"]:
    """Let each query read the compressed blocks whose last token it has reached.

    The query at position $p$ reads block $b$ when
    $b \\cdot \\text{stride} + \\text{block} - 1 \\le p$.

    Args:
        queries: Number of queries.
        keys: Number of tokens that were compressed; as many as queries unless given.
        block: Tokens in a block.
        stride: Tokens from one block to the next; `block` unless given.
        offset: Position of the first query; `keys - queries` unless given.

    Raises:
        ValueError: If a count is negative, or the stride does not divide the block.

    Source:
        DeepSeek-V4, 2026, section 2.3; Native Sparse Attention, arXiv 2502.11089, equation 7.

    Example:
        >>> completed_blocks(5, block=2).astype(int)
        array([[0, 0],
               [1, 0],
               [1, 0],
               [1, 1],
               [1, 1]])
    """
    block, stride, _ = _block_and_stride(block, block if stride is None else stride, None)
    query, key = _positions(queries, keys, offset)
    blocks = np.arange(max(0, (key.size - block) // stride + 1))
    return blocks * stride + block - 1 <= query


def compressed_attention(
    query: Float[ndarray, "*#batch query d_k"],
    key: Float[ndarray, "*#batch key d_k"],
    value: Float[ndarray, "*#batch key d_v"],
    block_key: Float[ndarray, "*#batch blocks d_k"],
    block_value: Float[ndarray, "*#batch blocks d_v"],
    *,
    block: int,
    window: int,
    chosen: Bool[ndarray, "*#batch query blocks"] | None = None,
    scale: float | None = None,
    sink: Float[ndarray, "*#batch"] | float | None = None,
) -> Float[ndarray, "... query d_v"]:
    """Read a window of tokens and the completed compressed blocks under one softmax.

    Args:
        query: Queries, aligned at the end of the keys.
        key: Keys of the tokens.
        value: Values of the tokens.
        block_key: Keys of the compressed blocks, one for each complete block.
        block_value: Values of the compressed blocks.
        block: Tokens in a block.
        window: Number of tokens a query reads at most, itself included.
        chosen: Which completed blocks a query reads, as from `select_top_k`; all unless given.
        scale: Factor on the scores, $1/\\sqrt{d_k}$ unless given.
        sink: A learned logit for each head that enters only the denominator.

    Raises:
        ValueError: If shapes do not fit.

    Source:
        DeepSeek-V4, 2026, section 2.3 (keys and values are one tensor there).

    Example:
        >>> key, value = np.zeros((4, 1)), np.array([[1.0], [3.0], [5.0], [7.0]])
        >>> blocks = compress_blocks(key, block=2), compress_blocks(value, block=2)
        >>> compressed_attention(key[:1], key, value, *blocks, block=2, window=1).round(6)
        array([[5.]])
    """
    query, key, leading = _query_and_key(query, key)
    value = _value(value, key, leading)
    block_key = real_array("block_key", block_key, min_ndim=2)
    block_value = real_array("block_value", block_value, min_ndim=2)
    queries, keys = query.shape[-2], key.shape[-2]
    readable = completed_blocks(queries, keys, block=block)
    if chosen is not None:
        readable = readable & mask_array("chosen", chosen, *readable.shape)
    for name, array, own in (("block_key", block_key, key), ("block_value", block_value, value)):
        if array.shape[-2:] != (readable.shape[-1], own.shape[-1]):
            raise ValueError(
                f"{name} must have {readable.shape[-1]} blocks of width {own.shape[-1]}, "
                f"got shape {array.shape}"
            )
    near = sliding_window(queries, keys, window=window)
    near = np.broadcast_to(near, (*readable.shape[:-1], keys))
    return attention(
        query,
        _joined(key, block_key),
        _joined(value, block_value),
        np.concatenate([near, readable], axis=-1),
        scale=scale,
        sink=sink,
    )


def _rank(scores, allowed):
    """Places 0, 1, 2, … of the allowed entries by falling score, ties to the earlier one."""
    shape = np.broadcast_shapes(scores.shape, allowed.shape)
    scores, allowed = np.broadcast_to(scores, shape), np.broadcast_to(allowed, shape)
    order = np.lexsort((np.broadcast_to(np.arange(shape[-1]), shape), -scores, ~allowed), axis=-1)
    return np.argsort(order, axis=-1)


def _block_and_stride(block, stride, selected):
    block = integer("block", block, minimum=1)
    stride = integer("stride", stride, minimum=1)
    blocks = [("block", block)]
    if selected is not None:
        blocks.append(("selected", integer("selected", selected, minimum=1)))
    for name, size in blocks:
        if size % stride:
            raise ValueError(f"stride must divide {name}, {size}, got {stride}")
    return block, stride, selected


def _joined(first, second):
    """Concatenate along time, after broadcasting the leading axes."""
    leading = broadcast_leading({"the tokens": first.shape[:-2], "the blocks": second.shape[:-2]})
    parts = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (first, second))
    return np.concatenate(list(parts), axis=-2)
