"""Softmax attention, masks and caches against PyTorch, Transformers and SciPy."""

import warnings
from types import SimpleNamespace

import numpy as np
import scipy.special
import torch
import torch.nn.functional as F
from comparison import oracle
from packages import SCIPY, TORCH, TRANSFORMERS
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import flex_attention
from transformers import DynamicCache, LlamaConfig, masking_utils
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as gemma_eager
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as gpt_oss_eager
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.models.llama.modeling_llama import eager_attention_forward as llama_eager


def additive(mask, bias=None):
    """A mask as it is added to scores."""
    if mask is None:
        return bias
    hidden = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    return hidden if bias is None else hidden + bias


def readable(mask):
    if mask is not None and not mask.any(-1).all():
        raise NotImplementedError("it gives NaN where nothing is readable")
    return mask


SDPA = "torch.nn.functional.scaled_dot_product_attention"


@oracle("attention", SDPA, TORCH)
def test_sdpa(query, key, value, mask=None, scale=None, bias=None):
    mask = mask if bias is None else additive(mask, bias)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


@oracle("grouped_attention", SDPA, TORCH)
def test_grouped_sdpa(query, key, value, mask=None, scale=None):
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=scale, enable_gqa=True
    )


@oracle("latent_read", SDPA, TORCH)
def test_latent_sdpa(query, rope_query, latent, rope_key, up_key, up_value, scale, mask=None):
    key = torch.einsum("hnr,tr->htn", up_key, latent)
    value = torch.einsum("hvr,tr->htv", up_value, latent)
    rotated = rope_key.expand(key.shape[0], -1, -1)
    whole = torch.cat([query, rope_query], -1), torch.cat([key, rotated], -1), value
    return F.scaled_dot_product_attention(*(x[None] for x in whole), attn_mask=mask, scale=scale)[0]


def flex(query, key, value, mask, scale, bias=None, softcap=None, **options):
    def score(score, batch, head, i, j):
        score = score if softcap is None else softcap * torch.tanh(score / softcap)
        score = score if bias is None else score + bias[head, i, j]
        return score if mask is None else torch.where(mask[i, j], score, -torch.inf)

    with warnings.catch_warnings():  # it would rather be compiled
        warnings.simplefilter("ignore")
        return flex_attention(query, key, value, score, scale=scale, **options)


FLEX = "torch.nn.attention.flex_attention.flex_attention"


@oracle("attention", FLEX, TORCH)
def test_flexible(query, key, value, mask=None, scale=None, bias=None, softcap=None):
    return flex(query, key, value, readable(mask), scale, bias, softcap)


@oracle("grouped_attention", FLEX, TORCH)
def test_flexible_groups(query, key, value, mask=None, scale=None, bias=None, softcap=None):
    return flex(query, key, value, readable(mask), scale, bias, softcap, enable_gqa=True)


def module(query, key, **fields):
    groups = query.shape[1] // key.shape[1]
    return SimpleNamespace(num_key_value_groups=groups, training=False, **fields)


EAGER = "transformers.models.{0}.modeling_{0}.eager_attention_forward"


@oracle("grouped_attention", EAGER.format("llama"), TRANSFORMERS)
def test_llama(query, key, value, mask=None, scale=None, bias=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    hidden = additive(readable(mask), bias)
    output, _ = llama_eager(module(query, key), query, key, value, hidden, scaling=scale)
    return output.transpose(1, 2)


@oracle("attention_weights", EAGER.format("llama"), TRANSFORMERS)
def test_llama_weights(query, key, mask=None, scale=None, bias=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    hidden = additive(readable(mask), bias)
    return llama_eager(module(query, key), query, key, key, hidden, scaling=scale)[1]


@oracle("grouped_attention", EAGER.format("gemma2"), TRANSFORMERS)
def test_gemma(query, key, value, mask=None, scale=None, softcap=None, bias=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    hidden = additive(readable(mask), bias)
    kind = module(query, key)
    output, _ = gemma_eager(kind, query, key, value, hidden, scaling=scale, softcap=softcap)
    return output.transpose(1, 2)


@oracle("grouped_attention", EAGER.format("gpt_oss"), TRANSFORMERS)
def test_gpt_oss(query, key, value, mask=None, scale=None, sink=None, bias=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    # A sink of −∞ is none.
    sinks = torch.full(query.shape[1:2], -torch.inf) if sink is None else sink
    hidden = additive(readable(mask), bias)
    kind = module(query, key, sinks=sinks)
    output, _ = gpt_oss_eager(kind, query, key, value, hidden, scaling=scale)
    return output.transpose(1, 2)


@oracle("softmax", "torch.softmax", TORCH)
def test_softmax(scores, axis=-1):
    return torch.softmax(scores, axis)


@oracle("softmax", "scipy.special.softmax", SCIPY, arrays="numpy")
def test_scipy_softmax(scores, axis=-1):
    return scipy.special.softmax(scores, axis=axis)


@oracle("gate_output", "torch.sigmoid", TORCH)
def test_gate_output(output, gate):
    return output * torch.sigmoid(gate)


# Online softmax


@oracle("attend", "scipy.special.logsumexp", SCIPY, arrays="numpy")
def test_attend(scores, values, mask=None):
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return scipy.special.softmax(scores, axis=-1) @ values, scipy.special.logsumexp(scores, axis=-1)


@oracle("merge", "scipy.special.logsumexp", SCIPY)
def test_merge(state, other):
    masses = [s.maximum + np.log(np.where(s.mass, s.mass, 1.0)) for s in (state, other)]
    together = scipy.special.logsumexp(np.stack(masses), axis=0)
    parts = [s.weighted / np.where(s.mass, s.mass, np.nan)[..., None] for s in (state, other)]
    read = [
        np.where((s.mass > 0)[..., None], np.exp(m - together)[..., None] * part, 0.0)
        for s, m, part in zip((state, other), masses, parts, strict=True)
    ]
    nothing = ((state.mass == 0) & (other.mass == 0))[..., None]
    return np.where(nothing, np.nan, sum(read)), together


@oracle("blockwise_attention", FLEX, TORCH)
def test_blockwise(query, key, value, mask=None, block=1, scale=None):
    return flex(query, key, value, mask, scale, return_lse=True)


# Caches


@oracle("cached_attention", "transformers.models.llama.modeling_llama.LlamaAttention", TRANSFORMERS)
def test_llama_with_its_cache(query, key, value, chunks, window=None):
    """The layer with projections that pass everything through, positions that turn nothing."""
    batch, heads, time, width = query.shape
    kv_heads, value_width = key.shape[1], value.shape[-1]
    value = F.pad(value, (0, width - value_width))
    sizes = [heads * width, kv_heads * width, kv_heads * width]
    config = LlamaConfig(
        hidden_size=sum(sizes), num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=width, attn_implementation="eager",
    )  # fmt: skip
    layer = LlamaAttention(config, layer_idx=0)
    for projection, part in zip((layer.q_proj, layer.k_proj, layer.v_proj), _parts(sizes), strict=True):
        projection.weight.data = part
    layer.o_proj = torch.nn.Identity()
    text = torch.cat([x.transpose(1, 2).flatten(2) for x in (query, key, value)], dim=-1)
    cache, outputs, seen = DynamicCache(config=config), [], 0
    for chunk in chunks:
        i, j = torch.arange(seen, seen + chunk)[:, None], torch.arange(seen + chunk)
        mask = (j <= i) & (i - j < (window or time))
        turn = torch.ones(batch, chunk, width), torch.zeros(batch, chunk, width)
        part = text[:, seen : seen + chunk]
        outputs.append(layer(part, turn, additive(mask)[None, None], cache=cache)[0])
        seen += chunk
    read = torch.cat(outputs, dim=1).unflatten(-1, (heads, width)).transpose(1, 2)
    return read[..., :value_width]


def _parts(sizes):
    return torch.eye(sum(sizes)).split(sizes)


# Masks


def grid(queries, keys, offset):
    keys = queries if keys is None else keys
    offset = keys - queries if offset is None else offset
    return torch.arange(queries)[:, None] + offset, torch.arange(keys)[None]


@oracle("causal", "torch.nn.attention.bias.causal_lower_right", TORCH)
def test_lower_right(queries, keys=None):
    keys = queries if keys is None else keys
    if queries > keys:
        raise NotImplementedError("it has as many keys as queries at least")
    return causal_lower_right(queries, keys)._materialize()


@oracle("causal", "transformers.masking_utils.causal_mask_function", TRANSFORMERS)
def test_causal_function(queries, keys=None, offset=None):
    return masking_utils.causal_mask_function(0, 0, *grid(queries, keys, offset))


@oracle("sliding_window", "transformers.masking_utils.sliding_window_overlay", TRANSFORMERS)
def test_window_function(queries, keys=None, *, window, offset=None):
    i, j = grid(queries, keys, offset)
    overlay = masking_utils.sliding_window_overlay(window)
    return overlay(0, 0, i, j) & masking_utils.causal_mask_function(0, 0, i, j)


@oracle("chunked_causal", "transformers.masking_utils.chunked_overlay", TRANSFORMERS)
def test_chunk_function(queries, keys=None, *, chunk, offset=None):
    i, j = grid(queries, keys, offset)
    overlay = masking_utils.chunked_overlay(chunk, torch.zeros(1, dtype=torch.int64))
    return overlay(0, 0, i, j) & masking_utils.causal_mask_function(0, 0, i, j)


def given(mask):
    """A mask as the function of positions that Transformers combines."""
    return lambda batch, head, i, j: mask[i - (mask.shape[1] - mask.shape[0]), j]


@oracle("with_sinks", "transformers.masking_utils.or_masks", TRANSFORMERS)
def test_sinks(mask, count):
    first = masking_utils.and_masks(masking_utils.causal_mask_function, lambda b, h, i, j: j < count)
    return masking_utils.or_masks(given(mask), first)(0, 0, *grid(*mask.shape, None))


@oracle("with_global", "transformers.masking_utils.or_masks", TRANSFORMERS)
def test_global(mask, tokens, *, causal=True):
    tokens = torch.as_tensor(tokens, dtype=torch.int64)
    ways = (
        given(mask),
        lambda b, h, i, j: torch.isin(i, tokens) & (j >= 0),
        lambda b, h, i, j: torch.isin(j, tokens) & (i >= 0),
    )
    found = masking_utils.or_masks(*ways)
    if causal:
        found = masking_utils.and_masks(masking_utils.causal_mask_function, found)
    return found(0, 0, *grid(*mask.shape, None))


@oracle("edges", "torch.count_nonzero", TORCH)
def test_edges(mask):
    return torch.count_nonzero(mask)
