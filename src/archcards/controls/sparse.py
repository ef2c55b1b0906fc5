"""Sparse attention, wrong in named ways."""

import numpy as np

from ._reference import (
    attention,
    block_scores,
    completed_blocks,
    compress_blocks,
    index_scores,
    select_blocks,
    select_top_k,
    sliding_window,
)
from ._registry import convention, mistake

__all__: list[str] = []


def _array(x):
    return np.asarray(x, dtype=float)


# The lightning indexer


@mistake("index_scores", "ReLU left out")
def index_scores_without_relu(query, key, weight, *, scale=1.0):
    """Let heads vote against a key: negative products lower its score.

    Seen in: transformers #44360 (GLM's port of the indexer).
    """
    products = scale * np.einsum("...htd,...sd->...hts", _array(query), _array(key))
    return np.einsum("...th,...hts->...ts", _array(weight), products)


@mistake("index_scores", "ReLU after the sum over heads")
def index_scores_with_late_relu(query, key, weight, *, scale=1.0):
    """Sum the heads' products first: a head against a key cancels one for it.

    Seen in: fused kernels that reduce before the activation.
    """
    return np.maximum(index_scores_without_relu(query, key, weight, scale=scale), 0.0)


@mistake("index_scores", "heads not weighted")
def index_scores_without_weights(query, key, weight, *, scale=1.0):
    """Add the heads as they are.

    Seen in: teaching versions of the indexer.
    """
    return index_scores(query, key, np.ones_like(_array(weight)), scale=scale)


@convention("index_scores", "scaled by 1/sqrt(d) and 1/sqrt(heads)")
def index_scores_scaled(query, key, weight, *, scale=1.0):
    """Scale products and weights: other scores, the same choice.

    Seen in: DeepSeek-V3.2's inference code; the report's equation has no factor.
    """
    heads, width = np.shape(query)[-3], np.shape(query)[-1]
    return index_scores(query, key, weight, scale=scale / np.sqrt(heads * width))


@mistake("select_top_k", "chosen before the mask")
def select_before_the_mask(scores, count, mask=None):
    """Rank all keys and mask afterwards: keys of the future take places and then fall away.

    Seen in: transformers #45820 (DeepSeek-V4's indexer without a causal mask).
    """
    chosen = select_top_k(scores, count)
    return chosen if mask is None else chosen & np.asarray(mask)


@mistake("select_top_k", "every query reads what any query chose")
def select_for_all_queries(scores, count, mask=None):
    """Gather the chosen keys of all queries and let each read them all, its own future included.

    Seen in: transformers #45758 (DeepSeek-V4's eager path for more than one query).
    """
    chosen = select_top_k(scores, count, mask)
    return np.broadcast_to(chosen.any(axis=-2, keepdims=True), chosen.shape)


@mistake("select_top_k", "the choice of the last query for all")
def select_by_the_last_query(scores, count, mask=None):
    """Use the last query's choice for every query.

    Seen in: prefill run with a decoding step's indices.
    """
    chosen = select_top_k(scores, count, mask)
    last = np.broadcast_to(chosen[..., -1:, :], chosen.shape)
    return last if mask is None else last & np.asarray(mask)


@convention("select_top_k", "ties to the later key")
def select_later_of_equals(scores, count, mask=None):
    """Prefer the most recent of equal keys; after a ReLU many scores are exactly zero.

    Seen in: top-k of different libraries, none of which promises an order.
    """
    flipped = None if mask is None else np.flip(np.asarray(mask), axis=-1)
    return np.flip(select_top_k(np.flip(_array(scores), axis=-1), count, flipped), axis=-1)


# Choosing blocks


@mistake("block_scores", "sum of the keys")
def block_scores_by_the_sum(query, key, *, block):
    """Leave the mean's division out: a shorter last block scores lower.

    Seen in: pooling by reshape and sum.
    """
    keys = np.shape(key)[-2]
    starts = np.arange(0, keys, block)
    return block_scores(query, key, block=block) * np.minimum(block, keys - starts)


@convention("block_scores", "best key of the block")
def block_scores_by_the_best_key(query, key, *, block):
    """Take the largest product within a block: one key can carry it.

    Seen in: Quest (arXiv 2406.10774) bounds this maximum; MoBA takes the mean.
    """
    products = _array(query) @ np.swapaxes(_array(key), -1, -2)
    starts = range(0, products.shape[-1], block)
    return np.stack([products[..., s : s + block].max(axis=-1) for s in starts], axis=-1)


@mistake("selection_scores", "the paper's indices counted from zero")
def selection_scores_from_zero(weights, keys, *, block, stride, selected):
    """Read p[(l′/d)·j − m − n] with j from zero: each block takes the weights of those before it.

    Seen in: ports of equation 9 of arXiv 2502.11089 to arrays that start at zero.
    """
    weights = _array(weights)
    scores = np.zeros((*weights.shape[:-1], -(-keys // selected)))
    for j in range(scores.shape[-1]):
        for m in range(selected // stride):
            for n in range(block // stride):
                i = selected // stride * j - m - n
                if 0 <= i < weights.shape[-1]:
                    scores[..., j] += weights[..., i]
    return scores


@mistake("selection_scores", "overlap ignored")
def selection_scores_by_the_start(weights, keys, *, block, stride, selected):
    """Give each compressed block's weight to the block it starts in.

    Seen in: pooling the weights by `selected / stride`, right when block and stride are equal.
    """
    starts = np.arange(np.shape(weights)[-1]) * stride // selected
    count = -(-keys // selected)
    return _array(weights) @ (starts[:, None] == np.arange(count)).astype(float)


@mistake("select_blocks", "the query's own block is read to its end")
def select_blocks_into_the_future(
    scores, count, keys, *, block, first=0, recent=1, offset=None
):
    """Read chosen blocks whole: the query's own block holds its future.

    Seen in: block-sparse kernels without an inner causal mask; fla-org/native-sparse-attention #14
    asks after it, and finds the mask there.
    """
    chosen = select_blocks(
        scores, count, keys, block=block, first=first, recent=recent, offset=offset
    )
    places = np.arange(keys) // block
    return np.stack([chosen[..., places == b].any(-1) for b in places], axis=-1)


@mistake("select_blocks", "no block is forced")
def select_blocks_by_score_alone(scores, count, keys, *, block, first=0, recent=1, offset=None):
    """Let the query's own block compete by a score that contains its future.

    Seen in: selection without the fixed first and local blocks (qwen-nsa, issue 1).
    """
    queries = np.shape(scores)[-2]
    position = (keys - queries if offset is None else offset) + np.arange(queries)[:, None]
    begun = np.arange(np.shape(scores)[-1]) <= position // block
    chosen = select_top_k(scores, count, begun)
    return chosen[..., np.arange(keys) // block] & (np.arange(keys) <= position)


@mistake("select_blocks", "blocks of the future compete")
def select_blocks_before_the_mask(scores, count, keys, *, block, first=0, recent=1, offset=None):
    """Rank all blocks, then cut: early queries are left with fewer than they may read.

    Seen in: transformers #45820, the same fault on DeepSeek-V4's compressed blocks.
    """
    right = select_blocks(
        scores, count, keys, block=block, first=first, recent=recent, offset=offset
    )
    best = select_top_k(scores, count)[..., np.arange(keys) // block]
    queries = np.shape(scores)[-2]
    position = (keys - queries if offset is None else offset) + np.arange(queries)[:, None]
    own = np.arange(keys) // block == position // block
    return right & (best | own)


@convention("select_blocks", "forced blocks not counted")
def select_blocks_beside_the_forced(scores, count, keys, *, block, first=0, recent=1, offset=None):
    """Choose `count` blocks besides the forced ones.

    Seen in: counts given as top-k history blocks; MoBA and NSA count the forced blocks in.
    """
    more = count + first + recent
    return select_blocks(scores, more, keys, block=block, first=first, recent=recent, offset=offset)


# Compressed blocks


@mistake("compress_blocks", "logits ignored")
def compress_by_the_mean(
    x, logits=None, *, block, stride=None, overlap=None, overlap_logits=None
):
    """Average the block.

    Seen in: mean pooling (MoBA's) where a learned pooling was trained.
    """
    flat = None if overlap is None else np.zeros_like(_array(overlap))
    return compress_blocks(
        x, None, block=block, stride=stride, overlap=overlap, overlap_logits=flat
    )


@mistake("compress_blocks", "softmax over the channels")
def compress_over_channels(
    x, logits=None, *, block, stride=None, overlap=None, overlap_logits=None
):
    """Normalise each token's logits over its channels and not over the block's tokens.

    Seen in: `softmax(dim=-1)` on an array (block, token, channel).
    """
    x = _array(x)
    logits = np.zeros_like(x) if logits is None else _array(logits)
    series = [(x, logits)]
    if overlap is not None:
        series.append((_array(overlap), _array(overlap_logits)))
    weighted = []
    for values, scores in series:
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weighted.append(values * exponentials / exponentials.sum(axis=-1, keepdims=True))
    step = block if stride is None else stride
    starts = range(0, x.shape[-2] - block + 1, step)
    sums = [weighted[0][..., s : s + block, :].sum(axis=-2) for s in starts]
    if overlap is not None:
        for i, s in enumerate(starts):
            if i:
                sums[i] = sums[i] + weighted[1][..., s - block : s, :].sum(axis=-2)
    return np.stack(sums, axis=-2)


@mistake("compress_blocks", "overlap left out")
def compress_without_the_overlap(
    x, logits=None, *, block, stride=None, overlap=None, overlap_logits=None
):
    """Compress each block by itself.

    Seen in: one compressor for both of DeepSeek-V4's attentions, of which one overlaps.
    """
    return compress_blocks(x, logits, block=block, stride=stride)


@mistake("compress_blocks", "the first block has zeros before it")
def compress_with_zeros_before(
    x, logits=None, *, block, stride=None, overlap=None, overlap_logits=None
):
    """Pad the missing block with zeros and logits of zero: they take weight from the first block.

    Seen in: padding by `new_zeros` for values and logits alike, where the logits need −∞.
    """
    compressed = compress_blocks(
        x, logits, block=block, stride=stride, overlap=overlap, overlap_logits=overlap_logits
    )
    if overlap is None:
        return compressed
    first = _array(x)[..., :block, :]
    exponentials = np.exp(np.zeros_like(first) if logits is None else _array(logits)[..., :block, :])
    padded = (exponentials * first).sum(axis=-2) / (exponentials.sum(axis=-2) + block)
    return np.concatenate([padded[..., None, :], compressed[..., 1:, :]], axis=-2)


@mistake("compress_blocks", "the series change places")
def compress_with_swapped_series(
    x, logits=None, *, block, stride=None, overlap=None, overlap_logits=None
):
    """Take a token's own series for the next block's, and the next block's for its own.

    Seen in: the two halves of DeepSeek-V4's projection, low channels for the next block and high
    channels for the token's own, read in the other order.
    """
    if overlap is None:
        return compress_blocks(x, logits, block=block, stride=stride)
    own = np.zeros_like(_array(x)) if logits is None else logits
    return compress_blocks(overlap, overlap_logits, block=block, overlap=x, overlap_logits=own)


@mistake("completed_blocks", "visible from the first token")
def blocks_visible_from_the_start(queries, keys=None, *, block, stride=None, offset=None):
    """Let queries read a block that they stand in: it holds their future.

    Seen in: comparing block index with query index // block by ≤.
    """
    keys = queries if keys is None else keys
    offset = keys - queries if offset is None else offset
    return completed_blocks(
        queries, keys, block=block, stride=stride, offset=offset + block - 1
    )


@mistake("completed_blocks", "all visible")
def blocks_always_visible(queries, keys=None, *, block, stride=None, offset=None):
    """Extend the mask by zeros over the compressed blocks, which leaves them readable by all.

    Seen in: the first version of DeepSeek-V4 in transformers, corrected by its pull request #45892.
    """
    return np.ones_like(completed_blocks(queries, keys, block=block, stride=stride))


@convention("completed_blocks", "visible from the token after")
def blocks_visible_afterwards(queries, keys=None, *, block, stride=None, offset=None):
    """Hide a block from its own last token.

    Seen in: b < p // block, where (p + 1) // block counts the blocks completed at p.
    """
    keys = queries if keys is None else keys
    offset = keys - queries if offset is None else offset
    return completed_blocks(queries, keys, block=block, stride=stride, offset=offset - 1)


def _branches(query, key, value, block_key, block_value, block, window, chosen, **options):
    queries, keys = np.shape(query)[-2], np.shape(key)[-2]
    readable = completed_blocks(queries, keys, block=block)
    readable = readable if chosen is None else readable & np.asarray(chosen)
    near = attention(query, key, value, sliding_window(queries, keys, window=window), **options)
    far = attention(query, block_key, block_value, readable, empty="zeros", **options)
    return near, far, readable


@mistake("compressed_attention", "a softmax for each branch, added")
def compressed_in_two_softmaxes(
    query, key, value, block_key, block_value, *, block, window, chosen=None, scale=None, sink=None
):
    """Normalise window and blocks apart and add: the weights sum to two.

    Seen in: branches merged without their log-sum-exp; NSA, whose branches are separate, gates them.
    """
    options = {"scale": scale, "sink": sink}
    near, far, _ = _branches(
        query, key, value, block_key, block_value, block, window, chosen, **options
    )
    return near + far


@mistake("compressed_attention", "the window is left out")
def compressed_without_the_window(
    query, key, value, block_key, block_value, *, block, window, chosen=None, scale=None, sink=None
):
    """Read compressed blocks only: the tokens since the last complete block are invisible.

    Seen in: compression taken for a replacement of the recent tokens.
    """
    options = {"scale": scale, "sink": sink}
    return _branches(
        query, key, value, block_key, block_value, block, window, chosen, **options
    )[1]


@mistake("compressed_attention", "the blocks are left out")
def compressed_without_the_blocks(
    query, key, value, block_key, block_value, *, block, window, chosen=None, scale=None, sink=None
):
    """Read the window only.

    Seen in: engines that run DeepSeek-V4 as a sliding-window model.
    """
    options = {"scale": scale, "sink": sink}
    return _branches(
        query, key, value, block_key, block_value, block, window, chosen, **options
    )[0]
