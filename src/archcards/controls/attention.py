"""Softmax attention, wrong in named ways."""

import math

import numpy as np

from ._reference import attention, attention_weights, gate_output, grouped_attention, softmax
from ._registry import convention, mistake

__all__: list[str] = []


# softmax


@mistake("softmax", "over the other axis")
def softmax_over_the_other_axis(scores, axis=-1):
    """Normalise along the axis before the one that was asked for.

    Seen in: `softmax(dim=0)` or an unstated `dim` on scores that gained a batch axis.
    """
    return softmax(scores, axis=axis - 1)


@mistake("softmax", "maximum not subtracted")
def softmax_without_the_maximum(scores, axis=-1):
    """Exponentiate the scores as they are: large scores give NaN.

    Seen in: the textbook formula typed literally; Milakov and Gimelshein, arXiv 1805.02867,
    section 2, on why libraries do not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        exponentials = np.exp(np.asarray(scores, dtype=float))
        return exponentials / exponentials.sum(axis=axis, keepdims=True)


@mistake("softmax", "powers of two of natural scores")
def softmax_in_base_two(scores, axis=-1):
    """Take 2ˢ without multiplying the scores by log₂ e first.

    Seen in: kernels built on `exp2`, where the factor is folded into the scale and then lost.
    """
    return softmax(np.asarray(scores, dtype=float) * math.log(2), axis=axis)


@convention("softmax", "one added to the denominator")
def softmax_with_one(scores, axis=-1):
    """Let a row attend to nothing: a sink whose logit is zero.

    Seen in: E. Miller, “Attention is off by one” (2023); the learned sink of gpt-oss generalises it.
    """
    scores = np.asarray(scores, dtype=float)
    shift = np.maximum(scores.max(axis=axis, keepdims=True), 0)
    exponentials = np.exp(scores - shift)
    return exponentials / (exponentials.sum(axis=axis, keepdims=True) + np.exp(-shift))


# Weights: each control below is registered for the weights and for both functions that read by them.


def _for_all(kind, name):
    """Register wrong weights for `attention_weights`, `attention` and `grouped_attention`."""

    def register(weights):
        def read(query, key, value, mask=None, **options):
            return weights(query, key, mask, **options) @ np.asarray(value, dtype=float)

        def grouped(query, key, value, mask=None, **options):
            group = np.shape(query)[-3] // np.shape(key)[-3]
            key, value = (np.repeat(x, group, axis=-3) for x in (key, value))
            return read(query, key, value, mask, **options)

        for mechanism, function in (("attention", read), ("grouped_attention", grouped)):
            function.__doc__ = weights.__doc__
            function.__name__ = function.__qualname__ = weights.__name__
            kind(mechanism, name)(function)
        return kind("attention_weights", name)(weights)

    return register


def _scale(query, scale):
    return 1 / math.sqrt(np.shape(query)[-1]) if scale is None else scale


def _scores(query, key, scale):
    return np.asarray(query, dtype=float) @ np.swapaxes(key, -1, -2) * _scale(query, scale)


def _weigh(scores, mask=None, **options):
    """The reference's weights of finished scores: queries read against unit keys."""
    return attention_weights(scores, np.eye(np.shape(scores)[-1]), mask, scale=1.0, **options)


@_for_all(convention, "scores not scaled")
def weights_not_scaled(query, key, mask=None, *, scale=None, **options):
    """Leave the factor 1/√d_k out.

    Seen in: T5 and GPT-Neo, which are trained without it.
    """
    return attention_weights(query, key, mask, scale=1.0 if scale is None else scale, **options)


@_for_all(mistake, "scores scaled twice")
def weights_scaled_twice(query, key, mask=None, *, scale=None, **options):
    """Scale the query, then call a function that scales again.

    Seen in: ports to `scaled_dot_product_attention` of code that multiplies the query beforehand.
    """
    return attention_weights(query, key, mask, scale=_scale(query, scale) ** 2, **options)


@_for_all(convention, "scaled by 1/d")
def weights_scaled_by_the_width(query, key, mask=None, *, scale=None, **options):
    """Divide by d_k and not by its root.

    Seen in: the maximal update parametrisation (Yang et al. 2022, arXiv 2203.03466).
    """
    scale = 1 / np.shape(query)[-1] if scale is None else scale
    return attention_weights(query, key, mask, scale=scale, **options)


@_for_all(mistake, "scaled by the width of all heads")
def weights_scaled_by_the_model(query, key, mask=None, *, scale=None, **options):
    """Divide by the root of heads · d_k: the model's width, not the head's.

    Seen in: single-head code that was split into heads and kept its scale.
    """
    heads = np.shape(query)[-3] if np.ndim(query) > 2 else 1
    scale = 1 / math.sqrt(heads * np.shape(query)[-1]) if scale is None else scale
    return attention_weights(query, key, mask, scale=scale, **options)


@_for_all(mistake, "softmax over the queries")
def weights_over_the_queries(
    query, key, mask=None, *, bias=None, sink=None, empty="raise", **options
):
    """Normalise each key's column, so that the weights of a query need not sum to one.

    Seen in: `softmax(dim=-2)`; the axis that an unstated `dim` picks changes with the rank.
    """
    mask, bias = (None if x is None else np.swapaxes(x, -1, -2) for x in (mask, bias))
    columns = attention_weights(key, query, mask, bias=bias, sink=sink, empty="zeros", **options)
    return np.swapaxes(columns, -1, -2)


@_for_all(mistake, "hidden by the smallest float")
def weights_with_a_finite_minimum(query, key, mask=None, *, bias=None, **options):
    """Hide keys by the dtype's minimum instead of −∞: a query without a key reads all, uniformly.

    Seen in: `masked_fill(~mask, torch.finfo(dtype).min)`, common in eager code.
    """
    if mask is not None:
        hidden = np.where(mask, 0.0, float(np.finfo(np.float32).min))
        bias = hidden if bias is None else hidden + bias
    return attention_weights(query, key, None, bias=bias, **options)


@_for_all(mistake, "NaN where nothing is readable")
def weights_with_nan(query, key, mask=None, *, bias=None, empty="raise", **options):
    """Divide zero by zero in a row whose scores are all −∞.

    Seen in: eager softmax; older `scaled_dot_product_attention` (pytorch #103963); one kernel of a
    later one (pytorch #109517).
    """
    weights = attention_weights(query, key, mask, bias=bias, empty="zeros", **options)
    readable = np.ones(weights.shape, dtype=bool) if mask is None else np.asarray(mask)
    if bias is not None:
        readable = readable & ~np.isneginf(bias)
    return np.where(readable.any(axis=-1, keepdims=True), weights, np.nan)


@_for_all(mistake, "hidden scores set to zero")
def weights_of_zeroed_scores(query, key, mask=None, *, scale=None, softcap=None, **options):
    """Multiply the scores by the mask: e⁰ = 1 is a weight like any other.

    Seen in: `scores * mask` before the softmax, where an additive −∞ is meant.
    """
    scores = _scores(query, key, scale)
    scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
    return _weigh(scores if mask is None else np.where(mask, scores, 0.0), **options)


@_for_all(mistake, "masked after the softmax")
def weights_masked_last(query, key, mask=None, **options):
    """Zero the weights of hidden keys: their mass stays in the denominator.

    Seen in: masks multiplied into the probabilities, as dropout is.
    """
    weights = attention_weights(query, key, None, **options)
    return weights if mask is None else weights * np.asarray(mask)


@_for_all(convention, "mask upside down")
def weights_of_hidden_keys(query, key, mask=None, *, empty="raise", **options):
    """Read the keys where the mask is false.

    Seen in: `torch.nn.MultiheadAttention`, whose boolean mask marks what may not be read.
    """
    inverted = None if mask is None else ~np.asarray(mask)
    return attention_weights(query, key, inverted, empty="zeros", **options)


@_for_all(mistake, "soft cap before the scale")
def weights_capped_before_the_scale(query, key, mask=None, *, scale=None, softcap=None, **options):
    """Cap the raw products, then scale: the bound becomes cap · scale.

    Seen in: soft caps fused with a matrix product whose scale is applied later.
    """
    scores = _scores(query, key, 1.0)
    scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
    return _weigh(scores * _scale(query, scale), mask, **options)


@_for_all(mistake, "soft cap after the mask")
def weights_capped_after_the_mask(
    query, key, mask=None, *, scale=None, bias=None, softcap=None, empty="raise", **options
):
    """Cap the masked scores: tanh turns −∞ into −cap, and hidden keys are read.

    Seen in: score modifications appended to a function that masks already.
    """
    if softcap is None:
        return attention_weights(query, key, mask, scale=scale, bias=bias, empty=empty, **options)
    scores = _scores(query, key, scale)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return _weigh(softcap * np.tanh(scores / softcap), **options)


@_for_all(convention, "soft cap after the bias")
def weights_capped_after_the_bias(
    query, key, mask=None, *, scale=None, bias=None, softcap=None, **options
):
    """Cap the sum of score and bias, so that a distance penalty saturates.

    Seen in: kernels that take the bias as part of the score; Gemma 2, which introduced the cap,
    has no bias.
    """
    if bias is None or softcap is None:
        return attention_weights(
            query, key, mask, scale=scale, bias=bias, softcap=softcap, **options
        )
    scores = _scores(query, key, scale) + bias
    return _weigh(softcap * np.tanh(scores / softcap), mask, **options)


@_for_all(convention, "bias scaled with the scores")
def weights_with_a_scaled_bias(query, key, mask=None, *, scale=None, bias=None, **options):
    """Add the bias before scaling: slopes shrink by √d_k.

    Seen in: Falcon's ALiBi, trained so; BLOOM adds the bias unscaled.
    """
    scaled = None if bias is None else np.asarray(bias, dtype=float) * _scale(query, scale)
    return attention_weights(query, key, mask, scale=scale, bias=scaled, **options)


@_for_all(mistake, "sink left out")
def weights_without_the_sink(query, key, mask=None, *, sink=None, **options):
    """Ignore the sink: the weights sum to one again.

    Seen in: running gpt-oss through an attention kernel that has no argument for it.
    """
    return attention_weights(query, key, mask, **options)


@_for_all(mistake, "sink scaled with the scores")
def weights_with_a_scaled_sink(query, key, mask=None, *, scale=None, sink=None, **options):
    """Concatenate the sink before the scale is applied.

    Seen in: sinks written as one more key of a fused kernel.
    """
    scaled = None if sink is None else np.asarray(sink, dtype=float) * _scale(query, scale)
    return attention_weights(query, key, mask, scale=scale, sink=scaled, **options)


@_for_all(mistake, "sink put first, last column dropped")
def weights_shifted_by_the_sink(query, key, mask=None, *, sink=None, **options):
    """Concatenate the sink at one end and drop the column at the other: all keys shift by one.

    Seen in: ports of gpt-oss, which concatenates last and drops last.
    """
    if sink is None:
        return attention_weights(query, key, mask, **options)
    weights = attention_weights(query, key, mask, sink=sink, **options)
    rest = 1 - weights.sum(axis=-1, keepdims=True)
    return np.concatenate([rest, weights[..., :-1]], axis=-1)


@_for_all(convention, "the sink is the first key")
def weights_with_the_first_key(query, key, mask=None, *, sink=None, **options):
    """Keep the first key readable instead of adding a logit: the weights sum to one.

    Seen in: StreamingLLM (arXiv 2309.17453), whose “sink” is a token; gpt-oss's is a logit.
    """
    if sink is not None and mask is not None:
        mask = np.array(mask)
        mask[..., :1] = True
    return attention_weights(query, key, mask, **options)


# Reading


@mistake("attention", "scaled by the width of the values")
def attention_scaled_by_the_value_width(query, key, value, mask=None, *, scale=None, **options):
    """Divide by √d_v: the same only while keys and values are equally wide.

    Seen in: `1 / sqrt(v.shape[-1])`; latent attention has d_k 192 and d_v 128 a head.
    """
    scale = 1 / math.sqrt(np.shape(value)[-1]) if scale is None else scale
    return attention(query, key, value, mask, scale=scale, **options)


@mistake("grouped_attention", "heads tiled, not repeated in runs")
def grouped_by_tiling(query, key, value, mask=None, **options):
    """Let query head h read key/value head h mod n.

    Seen in: `repeat` for `repeat_interleave`.
    """
    group = np.shape(query)[-3] // np.shape(key)[-3]
    key, value = (np.concatenate([np.asarray(x)] * group, axis=-3) for x in (key, value))
    return attention(query, key, value, mask, **options)


@mistake("grouped_attention", "the first head serves all")
def grouped_by_the_first_head(query, key, value, mask=None, **options):
    """Let every query head read key/value head 0.

    Seen in: broadcasting a cache made for multi-query attention.
    """
    key, value = (np.asarray(x)[..., :1, :, :] for x in (key, value))
    return grouped_attention(query, key, value, mask, **options)


# Output gate


@convention("gate_output", "swish instead of the sigmoid")
def gate_by_swish(output, gate):
    """Multiply by g · σ(g), which is unbounded above and negative below zero.

    Seen in: RetNet (arXiv 2307.08621, section 2.2) and gated linear attention (arXiv 2312.06635).
    """
    return np.asarray(gate, dtype=float) * gate_output(output, gate)


@mistake("gate_output", "logits multiplied as they are")
def gate_by_the_logits(output, gate):
    """Leave the sigmoid out.

    Seen in: gates stored as logits and taken for probabilities.
    """
    return np.asarray(output, dtype=float) * np.asarray(gate, dtype=float)
