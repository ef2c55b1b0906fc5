"""Sparse attention against Transformers, fla-core and PyTorch."""

from types import SimpleNamespace
from unittest import mock

import torch
import torch.nn.functional as F
from comparison import oracle
from packages import FLA, TORCH, TRANSFORMERS, naive
from transformers import masking_utils
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as deepseek

DEEPSEEK = "transformers.models.deepseek_v4.modeling_deepseek_v4."


class Fixed(torch.nn.Module):
    """A projection that makes what it is told to make."""

    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, *given):
        return self.result


# The indexer


@oracle("index_scores", DEEPSEEK + "DeepseekV4IndexerScorer", TRANSFORMERS)
def test_index_scores(query, key, weight, *, scale=1.0):
    scorer = SimpleNamespace(softmax_scale=scale, weights_scaling=1.0, weights_proj=Fixed(weight[None]))
    made = deepseek.DeepseekV4IndexerScorer.forward(scorer, query.transpose(0, 1)[None], key[None], None)
    return made[0]


def marked(indices, shape):
    """The mask of chosen keys; −1 is no key."""
    mask = torch.zeros(*shape[:-1], shape[-1] + 1, dtype=torch.bool)
    indices = torch.where(indices < 0, shape[-1], indices)
    return mask.scatter(-1, indices, torch.ones(indices.shape, dtype=torch.bool))[..., :-1]


@oracle("select_top_k", "fla.ops.dsa.naive.naive_dsa_indexer", FLA)
def test_top_k_of_the_past(scores, count, mask=None):
    """Its scores are products: here with the rows of an identity."""
    if mask is None:
        raise NotImplementedError("it is causal")
    keys = torch.eye(scores.shape[-1])
    chosen = naive("dsa").naive_dsa_indexer(scores[None, :, None], keys[None], topk=count, scale=1.0)
    return marked(chosen[0], scores.shape)


@oracle("select_top_k", "torch.topk", TORCH)
def test_top_k(scores, count, mask=None):
    if len(scores.unique()) < scores.numel():
        raise NotImplementedError("it leaves open which of equal scores it takes")
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    best, chosen = torch.topk(scores, count)
    return marked(torch.where(torch.isinf(best), -1, chosen), scores.shape)


# Blocks


@oracle("block_scores", "torch.nn.functional.avg_pool1d", TORCH)
def test_block_scores(query, key, *, block):
    return query @ F.avg_pool1d(key.T[None], block, ceil_mode=True)[0]


@oracle("selection_scores", "torch.nn.functional.conv_transpose1d", TORCH)
def test_selection_scores(weights, keys, *, block, stride, selected):
    """Each compressed block spreads its weight over its cells; each selection block sums its own."""
    cells = F.conv_transpose1d(weights[:, None], torch.ones(1, 1, block // stride))[:, 0]
    per_block = selected // stride
    cells = F.pad(cells, (0, -(-keys // selected) * per_block - cells.shape[-1]))
    return F.lp_pool1d(cells[:, None], 1.0, per_block)[:, 0]


@oracle("select_blocks", "fla.ops.nsa.naive.naive_nsa_topk", FLA)
def test_select_blocks(scores, count, keys, *, block, first=0, recent=1):
    """It forces the first block and two recent ones, and reads the blocks that are complete."""
    if (first, recent) != (1, 2):
        raise NotImplementedError("it always forces the first block and two recent ones")
    blocks = torch.eye(scores.shape[-1])
    chosen = naive("nsa").naive_nsa_topk(scores[None, :, None], blocks[None, :, None], count, block, 1.0)
    causal = torch.ones(scores.shape[0], keys, dtype=torch.bool).tril()
    return marked(chosen[0, :, 0], scores.shape).repeat_interleave(block, dim=-1)[:, :keys] & causal


# Compressed blocks


def compressor(kind, block, values, logits, **fields):
    """A compressor without its norm and its rotation."""
    made = SimpleNamespace(
        compress_rate=block, head_dim=fields.pop("head_dim", values.shape[-1]),
        kv_proj=Fixed(values[None]), gate_proj=Fixed(logits[None]), position_bias=0.0,
        kv_norm=torch.nn.Identity(), rotary_emb=lambda *_, **__: (None, None),
        rope_layer_type="compress", **fields,
    )  # fmt: skip

    def run(positions):
        with mock.patch.object(deepseek, "apply_rotary_pos_emb", lambda x, *_: x):
            return kind.forward(made, values[None], None, positions[None], cache=None, layer_idx=0)

    return run


@oracle("compress_blocks", DEEPSEEK + "DeepseekV4HCACompressor", TRANSFORMERS)
def test_compress_blocks(x, logits=None, *, block):
    logits = torch.zeros_like(x) if logits is None else logits
    run = compressor(deepseek.DeepseekV4HCACompressor, block, x, logits)
    return run(torch.arange(len(x)))[0][0, 0]


@oracle("compress_blocks", DEEPSEEK + "DeepseekV4CSACompressor", TRANSFORMERS)
def test_compress_overlapping_blocks(x, logits=None, *, block, overlap=None, overlap_logits=None):
    """The series for the next block stands before a token's own."""
    if overlap is None:
        raise NotImplementedError("it always overlaps")
    values, gates = torch.cat([overlap, x], -1), torch.cat([overlap_logits, logits], -1)
    chosen = Fixed(torch.zeros(1, len(x), 1, dtype=torch.int64))
    run = compressor(
        deepseek.DeepseekV4CSACompressor, block, values, gates, head_dim=x.shape[-1], indexer=chosen
    )
    return run(torch.arange(len(x)))[0][0, 0]


def completed(queries, keys, block):
    empty = torch.zeros(keys, 1)
    run = compressor(deepseek.DeepseekV4HCACompressor, block, empty, empty)
    compressed, hidden = run(torch.arange(keys - queries, keys))
    if hidden is None:
        return torch.ones(queries, compressed.shape[2], dtype=torch.bool)
    return hidden[0, 0] == 0


@oracle("completed_blocks", DEEPSEEK + "DeepseekV4HCACompressor", TRANSFORMERS)
def test_completed_blocks(queries, keys=None, *, block):
    return completed(queries, queries if keys is None else keys, block)


@oracle("compressed_attention", DEEPSEEK + "eager_attention_forward", TRANSFORMERS)
def test_compressed_attention(query, key, value, block_key, block_value, *, block, window, sink=None):
    """One softmax over the window and the blocks, each hidden as Transformers hides them."""
    queries, keys = len(query), len(key)
    i, j = torch.arange(keys - queries, keys)[:, None], torch.arange(keys)
    near = masking_utils.sliding_window_overlay(window)(0, 0, i, j)
    near = near & masking_utils.causal_mask_function(0, 0, i, j)
    mask = torch.cat([near, completed(queries, keys, block)], -1)
    sinks = torch.full((1,), -torch.inf if sink is None else sink)
    module = SimpleNamespace(num_key_value_groups=1, training=False, sinks=sinks)
    output, _ = deepseek.eager_attention_forward(
        module,
        query[None, None],
        torch.cat([key, block_key])[None, None],
        torch.cat([value, block_value])[None, None],
        torch.zeros(mask.shape).masked_fill(~mask, -torch.inf),
        scaling=query.shape[-1] ** -0.5,
    )
    return output[0, :, 0]
