"""Softmax attention.

Arrays end in `(..., time, feature)`, heads right before time: `(..., head, time, feature)`; leading
axes broadcast. What is done to the scores, in this order: scale, soft cap, bias, mask, sink.
"""

import math

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from ._checks import (
    broadcast_leading,
    integer,
    leading_within,
    mask_array,
    one_of,
    real_array,
    real_number,
    same_size,
)
from ._gates import sigmoid

__all__ = ["attention", "attention_weights", "gate_output", "grouped_attention", "softmax"]


def softmax(scores: Float[ndarray, "*shape"], axis: int = -1) -> Float[ndarray, "*shape"]:
    """Turn scores into positive weights that sum to one along an axis.

    $$w_j = \\frac{e^{s_j - m}}{\\sum_l e^{s_l - m}}, \\qquad m = \\max_l s_l$$

    Subtracting the maximum changes nothing in exact arithmetic and keeps every exponential at most
    one in floating point.

    Args:
        scores: Any real scores; −∞ gives weight zero.
        axis: The axis along which the weights sum to one.

    Raises:
        ValueError: If a score is NaN or +∞, or if all scores along the axis are −∞.

    Example:
        >>> softmax([1000.0, 1000.0, -np.inf])
        array([0.5, 0.5, 0. ])
    """
    scores = real_array("scores", scores, min_ndim=1, minus_infinity=True)
    axis = integer("axis", axis, minimum=-scores.ndim, maximum=scores.ndim - 1)
    maximum = scores.max(axis=axis, keepdims=True, initial=-np.inf)
    if np.isneginf(maximum).any():
        raise ValueError("scores must have a finite entry along the axis, got only -inf")
    exponentials = _exponentials(scores, maximum)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def attention_weights(
    query: Float[ndarray, "*#batch query d_k"],
    key: Float[ndarray, "*#batch key d_k"],
    mask: Bool[ndarray, "*#batch query key"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[ndarray, "*#batch query key"] | None = None,
    sink: Float[ndarray, "*#batch"] | float | None = None,
    softcap: float | None = None,
    empty: str = "raise",
) -> Float[ndarray, "... query key"]:
    """Weigh the keys for each query by the softmax of their scores.

    $$s_{ij} = \\text{cap}\\big(\\text{scale}\\; q_i \\cdot k_j\\big) + b_{ij}, \\qquad
    w_{ij} = \\frac{m_{ij}\\, e^{s_{ij}}}{e^{z} + \\sum_l m_{il}\\, e^{s_{il}}}, \\qquad
    \\text{cap}(s) = c \\tanh(s / c)$$

    The cap, the bias $b$, the mask $m$ and the sink term $e^z$ are absent unless given.

    Args:
        query: Queries.
        key: Keys.
        mask: Which keys a query may read; all of them unless given.
        scale: Factor on the scores, $1/\\sqrt{d_k}$ unless given.
        bias: Added to the scores; −∞ hides a key.
        sink: A learned logit for each head (each entry of the leading axes) that enters only the
            denominator, so that the weights sum to less than one; −∞ is no sink.
        softcap: The bound $c$ of capped scores.
        empty: What a query without a readable key gets: `"raise"` an error that names it, or
            `"zeros"`. A sink does not count as readable.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or a query has nothing to read.

    Source:
        Vaswani et al. 2017, arXiv 1706.03762, equation 1. Soft cap: Gemma 2, arXiv 2408.00118,
        section 2. Sink: gpt-oss model card, arXiv 2508.10925, section 2.2.

    Example:
        >>> attention_weights([[0.0]], [[1.0], [2.0]], sink=0.0).round(3)
        array([[0.333, 0.333]])
    """
    query, key, leading = _query_and_key(query, key)
    shape = (query.shape[-2], key.shape[-2])
    scale = _scale(scale, query.shape[-1])
    if softcap is not None:
        softcap = real_number("softcap", softcap, above=0)
    if bias is not None:
        bias = real_array("bias", bias, min_ndim=2, minus_infinity=True)
        for axis, name in ((-2, "query"), (-1, "key")):
            same_size(f"{name} axis", ("the scores", shape[axis]), ("bias", bias.shape[axis]))
        leading = broadcast_leading({"query and key": leading, "bias": bias.shape[:-2]})
    if mask is not None:
        mask = mask_array("mask", mask, *shape)
        leading = broadcast_leading({"query and key": leading, "mask": mask.shape[:-2]})
    if sink is not None:
        sink = real_array("sink", sink, minus_infinity=True)
        leading_within("sink", sink.shape, leading)
    one_of("empty", empty, ("raise", "zeros"))

    scores = _scores(query, key, scale)
    if softcap is not None:
        with np.errstate(over="ignore"):  # tanh of an infinite quotient is the bound itself
            scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        with np.errstate(over="ignore"):
            scores = scores + bias
        if (np.isinf(scores) & np.isfinite(bias)).any():
            raise ValueError("bias must keep the scores finite in float64, got an overflow")
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)

    maximum = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    unread = np.isneginf(maximum)
    if empty == "raise" and unread.any():
        row = tuple(int(i) for i in np.argwhere(unread[..., 0])[0])
        named = row[0] if len(row) == 1 else row
        raise ValueError(
            f"mask must leave each query a key to read, got none for query {named}; "
            'empty="zeros" gives such a query zeros'
        )
    # The sink competes for the maximum too: a large one must not overflow.
    sink = np.array(-np.inf) if sink is None else sink[..., None, None]
    shift = np.maximum(maximum, sink)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    exponentials = _exponentials(scores, shift)
    mass = exponentials.sum(axis=-1, keepdims=True) + _exponentials(sink, shift)
    return exponentials / np.where(mass == 0, 1.0, mass)


def attention(
    query: Float[ndarray, "*#batch query d_k"],
    key: Float[ndarray, "*#batch key d_k"],
    value: Float[ndarray, "*#batch key d_v"],
    mask: Bool[ndarray, "*#batch query key"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[ndarray, "*#batch query key"] | None = None,
    sink: Float[ndarray, "*#batch"] | float | None = None,
    softcap: float | None = None,
    empty: str = "raise",
) -> Float[ndarray, "... query d_v"]:
    """Read for each query the values of the keys, weighted by `attention_weights`.

    $$o_i = \\sum_j w_{ij}\\, v_j$$

    Queries and keys may come from different sequences (cross-attention): only their width is shared.

    Args:
        query: Queries.
        key: Keys.
        value: Values, one for each key.
        mask: Which keys a query may read; all of them unless given.
        scale: Factor on the scores, $1/\\sqrt{d_k}$ unless given.
        bias: Added to the scores; −∞ hides a key.
        sink: A learned logit for each head that enters only the denominator.
        softcap: The bound of capped scores.
        empty: What a query without a readable key gets: `"raise"` or `"zeros"`.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or a query has nothing to read.

    Source:
        Vaswani et al. 2017, arXiv 1706.03762, equation 1.

    Example:
        >>> attention([[0.0]], [[1.0], [2.0]], [[2.0], [4.0]])
        array([[3.]])
    """
    query, key, leading = _query_and_key(query, key)
    value = _value(value, key, leading)
    weights = attention_weights(
        query, key, mask, scale=scale, bias=bias, sink=sink, softcap=softcap, empty=empty
    )
    broadcast_leading({"weights": weights.shape[:-2], "value": value.shape[:-2]})
    return weights @ value


def grouped_attention(
    query: Float[ndarray, "*#batch head query d_k"],
    key: Float[ndarray, "*#batch kv_head key d_k"],
    value: Float[ndarray, "*#batch kv_head key d_v"],
    mask: Bool[ndarray, "*#rows query key"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[ndarray, "*#rows query key"] | None = None,
    sink: Float[ndarray, "*#rows"] | float | None = None,
    softcap: float | None = None,
    empty: str = "raise",
) -> Float[ndarray, "... head query d_v"]:
    """Attend with fewer key/value heads than query heads.

    Key/value head $j$ serves the $g$ query heads $jg, \\dots, jg + g - 1$. With one key/value head
    this is multi-query attention, with as many as query heads it is multi-head attention.

    Args:
        query: Queries.
        key: Keys; the number of their heads divides that of the query heads.
        value: Values, with as many heads as the keys.
        mask: Which keys a query may read; its leading axes are those of the queries.
        scale: Factor on the scores, $1/\\sqrt{d_k}$ unless given.
        bias: Added to the scores; −∞ hides a key.
        sink: A learned logit for each query head that enters only the denominator.
        softcap: The bound of capped scores.
        empty: What a query without a readable key gets: `"raise"` or `"zeros"`.

    Raises:
        ValueError: If the heads do not divide, shapes do not fit, or a query has nothing to read.

    Source:
        Ainslie et al. 2023, arXiv 2305.13245, section 2.2; Shazeer 2019, arXiv 1911.02150.

    Example:
        >>> query = np.zeros((4, 1, 2))
        >>> value = np.array([[[1.0]], [[2.0]]])
        >>> grouped_attention(query, np.zeros((2, 1, 2)), value).ravel()
        array([1., 1., 2., 2.])
    """
    query = real_array("query", query, min_ndim=3)
    key = real_array("key", key, min_ndim=3)
    value = real_array("value", value, min_ndim=3)
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(
            f"key must have a number of heads that divides the {heads} of query, got {kv_heads}"
        )
    same_size("number of heads", ("key", kv_heads), ("value", value.shape[-3]))
    group = heads // kv_heads
    key, value = (np.repeat(x, group, axis=-3) for x in (key, value))
    return attention(
        query, key, value, mask, scale=scale, bias=bias, sink=sink, softcap=softcap, empty=empty
    )


def gate_output(
    output: Float[ndarray, "*batch time d_v"], gate: Float[ndarray, "*batch time gates"]
) -> Float[ndarray, "*batch time d_v"]:
    """Gate what attention read, before the output projection.

    $$o'_t = \\sigma(g_t) \\odot o_t$$

    Args:
        output: What attention read.
        gate: Logits, one for each channel, or one for the whole head (a last axis of size 1).

    Raises:
        ValueError: If the gate has neither one logit for each channel nor one for the head.

    Source:
        Qiu et al. 2025, Gated Attention for Large Language Models, arXiv 2505.06708, section 2.2
        (position G1); Qwen3-Next.

    Example:
        >>> gate_output([[2.0, 4.0]], [[0.0]])
        array([[1., 2.]])
    """
    output = real_array("output", output, min_ndim=2)
    gate = real_array("gate", gate, min_ndim=2)
    if gate.shape not in (output.shape, (*output.shape[:-1], 1)):
        raise ValueError(
            f"gate must have the shape of output, {output.shape}, or a last axis of size 1, "
            f"got {gate.shape}"
        )
    return output * sigmoid(gate)


def _exponentials(scores, shift):
    with np.errstate(over="ignore"):  # a difference beyond float64 is −∞, and its weight zero
        return np.exp(scores - shift)


def _query_and_key(query, key):
    query = real_array("query", query, min_ndim=2)
    key = real_array("key", key, min_ndim=2)
    same_size("width", ("query", query.shape[-1]), ("key", key.shape[-1]))
    return query, key, broadcast_leading({"query": query.shape[:-2], "key": key.shape[:-2]})


def _value(value, key, leading):
    value = real_array("value", value, min_ndim=2)
    same_size("length", ("key", key.shape[-2]), ("value", value.shape[-2]))
    broadcast_leading({"query and key": leading, "value": value.shape[:-2]})
    return value


def _scale(scale, width):
    if scale is not None:
        return real_number("scale", scale)
    if width == 0:
        raise ValueError("query must have at least one feature unless scale is given, got none")
    return 1.0 / math.sqrt(width)


def _scores(query, key, scale):
    """Scaled scores; finite factors whose product is not finite are refused, not read as −∞."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (query @ np.swapaxes(key, -1, -2)) * scale
    if not np.isfinite(scores).all():
        raise ValueError("query and key must have finite scores in float64, got an overflow")
    return scores
