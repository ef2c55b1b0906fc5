"""Normalisations, wrong in named ways."""

import numpy as np

from ._reference import gated_norm, layer_norm, qk_norm, residual_step, rms_norm, silu
from ._registry import convention, mistake

__all__: list[str] = []


def _array(x):
    return np.asarray(x, dtype=float)


def _weighted(x, weight, bias=None):
    x = x if weight is None else x * _array(weight)
    return x if bias is None else x + _array(bias)


# LayerNorm


@mistake("layer_norm", "Bessel's correction")
def layer_norm_of_a_sample(x, weight=None, bias=None, *, eps=1e-5):
    """Divide by n − 1 in the variance, as for an estimate from a sample.

    Seen in: annotated-transformer #119 (`x.std` of PyTorch corrects unless told not to).
    """
    x = _array(x)
    variance = x.var(axis=-1, ddof=1, keepdims=True)
    return _weighted((x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + eps), weight, bias)


@convention("layer_norm", "epsilon outside the root")
def layer_norm_with_epsilon_outside(x, weight=None, bias=None, *, eps=1e-5):
    """Add ε to the standard deviation: it bites for small vectors, where the other is √ε.

    Seen in: the Annotated Transformer, trained so.
    """
    x = _array(x)
    deviation = x.std(axis=-1, keepdims=True)
    return _weighted((x - x.mean(axis=-1, keepdims=True)) / (deviation + eps), weight, bias)


@mistake("layer_norm", "mean not removed")
def layer_norm_without_the_mean(x, weight=None, bias=None, *, eps=1e-5):
    """Divide by the root mean square: that is RMSNorm.

    Seen in: checkpoints with LayerNorm run through RMSNorm kernels, their bias left out.
    """
    return _weighted(rms_norm(x, eps=eps), weight, bias)


@mistake("layer_norm", "over time instead of channels")
def layer_norm_over_time(x, weight=None, bias=None, *, eps=1e-5):
    """Normalise the axis before the last, so that a token sees the statistics of its future.

    Seen in: layouts (batch, channel, time) fed to a norm that expects channels last.
    """
    return _weighted(np.swapaxes(layer_norm(np.swapaxes(x, -1, -2), eps=eps), -1, -2), weight, bias)


@convention("layer_norm", "epsilon of 1e-6")
def layer_norm_with_a_millionth(x, weight=None, bias=None, *, eps=1e-6):
    """Add a millionth unless told: it shows where the spread is near 1/300.

    Seen in: Flax's `LayerNorm`, and the masked autoencoders' in PyTorch, whose own default is 1e-5.
    """
    return layer_norm(x, weight, bias, eps=eps)


@convention("layer_norm", "epsilon of 1e-12")
def layer_norm_with_hardly_any_epsilon(x, weight=None, bias=None, *, eps=1e-12):
    """Add next to nothing unless told.

    Seen in: `layer_norm_eps` of BERT and ViT.
    """
    return layer_norm(x, weight, bias, eps=eps)


# RMSNorm


@convention("rms_norm", "the weight is stored less one")
def rms_norm_with_one_added(x, weight=None, *, eps=1e-6):
    """Multiply by 1 + w.

    Seen in: Gemma; kernels and converters that multiply by w as in Llama give garbage (Liger-Kernel
    #74, executorch #19901).
    """
    return rms_norm(x, None if weight is None else 1 + _array(weight), eps=eps)


@convention("rms_norm", "epsilon outside the root")
def rms_norm_with_epsilon_outside(x, weight=None, *, eps=1e-6):
    """Add ε to the root mean square itself.

    Seen in: the reference code of the paper (arXiv 1910.07467); Llama and after put it inside.
    """
    x = _array(x)
    root = np.sqrt(np.mean(x**2, axis=-1, keepdims=True))
    return _weighted(x / (root + eps), weight)


@mistake("rms_norm", "sum of squares instead of their mean")
def rms_norm_by_the_length(x, weight=None, *, eps=1e-6):
    """Divide by the vector's length: too small by the root of the width.

    Seen in: an L2 normalisation in RMSNorm's place; the delta rule's unit keys want just this.
    """
    x = _array(x)
    return _weighted(x / np.sqrt(np.sum(x**2, axis=-1, keepdims=True) + eps), weight)


@mistake("rms_norm", "mean removed")
def rms_norm_of_the_centred(x, weight=None, *, eps=1e-6):
    """Subtract the mean first: that is LayerNorm.

    Seen in: checkpoints with RMSNorm run through LayerNorm with the bias set to zero.
    """
    return layer_norm(x, weight, eps=eps)


@convention("rms_norm", "epsilon of 1e-5")
def rms_norm_with_ten_millionths(x, weight=None, *, eps=1e-5):
    """Add ten millionths unless told: it shows where the root mean square is near 1/300.

    Seen in: `rms_norm_eps` of Llama 3, Mistral and gpt-oss; that of Qwen 3 and Gemma is 1e-6.
    """
    return rms_norm(x, weight, eps=eps)


# Gated RMSNorm


@mistake("gated_norm", "norm over the whole vector")
def gated_norm_in_one_group(y, z, weight=None, *, groups=1, eps=1e-5, order="gate_first"):
    """Normalise all channels together, whatever the groups.

    Seen in: mamba #910; harmless with one group, which is why it passes small tests.
    """
    return gated_norm(y, z, weight, groups=1, eps=eps, order=order)


@convention("gated_norm", "gate after the norm")
def gated_norm_in_the_other_order(y, z, weight=None, *, groups=1, eps=1e-5, order="gate_first"):
    """Normalise, then gate; gate first where the norm should come first.

    Seen in: `norm_before_gate` of Mamba-2's code, false there and true in Gated DeltaNet.
    """
    other = "norm_first" if order == "gate_first" else "gate_first"
    return gated_norm(y, z, weight, groups=groups, eps=eps, order=other)


@convention("gated_norm", "a sigmoid gate")
def gated_norm_by_the_sigmoid(y, z, weight=None, *, groups=1, eps=1e-5, order="gate_first"):
    """Gate by σ(z) and not by z · σ(z).

    Seen in: Kimi Linear (arXiv 2510.26692), whose output gate is a sigmoid.
    """
    y, z = _array(y), _array(z)
    sigmoid = 1 / (1 + np.exp(-z))
    if order == "norm_first":
        return _grouped(y, weight, groups, eps) * sigmoid
    return _grouped(y * sigmoid, weight, groups, eps)


@mistake("gated_norm", "gate left out")
def gated_norm_without_the_gate(y, z, weight=None, *, groups=1, eps=1e-5, order="gate_first"):
    """Normalise and forget z.

    Seen in: gated norms replaced by plain ones when blocks are ported.
    """
    return _grouped(_array(y), weight, groups, eps)


@mistake("gated_norm", "gated twice")
def gated_norm_with_two_gates(y, z, weight=None, *, groups=1, eps=1e-5, order="gate_first"):
    """Multiply by the gate before a norm that multiplies by it again.

    Seen in: blocks that apply z themselves and then call a fused gated norm.
    """
    return gated_norm(_array(y) * silu(z), z, weight, groups=groups, eps=eps, order=order)


@convention("gated_norm", "epsilon of 1e-6")
def gated_norm_with_a_millionth(y, z, weight=None, *, groups=1, eps=1e-6, order="gate_first"):
    """Add a millionth unless told.

    Seen in: Qwen3-Next, whose gated norms take the configuration's `rms_norm_eps`.
    """
    return gated_norm(y, z, weight, groups=groups, eps=eps, order=order)


def _grouped(y, weight, groups, eps):
    cut = y.reshape(*y.shape[:-1], groups, -1)
    return _weighted(rms_norm(cut, eps=eps).reshape(y.shape), weight)


# Queries and keys


@convention("qk_norm", "over all heads together")
def qk_norm_over_all_heads(query, key, query_weight=None, key_weight=None, *, eps=1e-6):
    """Take the mean square over the channels of all heads of a token.

    Seen in: OLMo 2 and OLMoE, trained so; a mistake in Llama 4 (vllm #16311).
    """

    def norm(x, weight):
        x = _array(x)
        mean_square = np.mean(x**2, axis=(-3, -1), keepdims=True)
        return _weighted(x / np.sqrt(mean_square + eps), weight)

    return norm(query, query_weight), norm(key, key_weight)


@mistake("qk_norm", "queries only")
def qk_norm_of_queries_only(query, key, query_weight=None, key_weight=None, *, eps=1e-6):
    """Leave the keys as they are: scores stay unbounded.

    Seen in: keys that reach the cache before they are normalised.
    """
    return qk_norm(query, key, query_weight, key_weight, eps=eps)[0], _array(key)


@convention("qk_norm", "unit length")
def qk_norm_to_unit_length(query, key, query_weight=None, key_weight=None, *, eps=1e-6):
    """Divide by the length: scores are cosines and need a learned scale instead of 1/√d.

    Seen in: Henry et al. 2020, arXiv 2010.04245.
    """
    width = np.sqrt(np.shape(query)[-1])
    query, key = qk_norm(query, key, query_weight, key_weight, eps=eps)
    return query / width, key / width


@convention("qk_norm", "epsilon of 1e-5")
def qk_norm_with_ten_millionths(query, key, query_weight=None, key_weight=None, *, eps=1e-5):
    """Add ten millionths unless told.

    Seen in: Llama 4, whose norms of queries and keys take the configuration's `rms_norm_eps`.
    """
    return qk_norm(query, key, query_weight, key_weight, eps=eps)


# Where the norm stands


@convention("residual_step", "the other order")
def residual_step_in_the_other_order(x, sublayer, norm, *, order="pre"):
    """Normalise after the sum where it should be before the sublayer, or the reverse.

    Seen in: annotated-transformer #92: pre-norm code under a post-norm text.
    """
    return residual_step(x, sublayer, norm, order="post" if order == "pre" else "pre")


@convention("residual_step", "the sublayer's output is normalised")
def residual_step_normed_inside(x, sublayer, norm, *, order="pre"):
    """Add norm(f(x)): neither pre nor post, and often called either.

    Seen in: OLMo 2 (arXiv 2501.00656), which calls it reordered norm; gpt-neox #1408.
    """
    return _array(x) + norm(_array(sublayer(_array(x))))


@mistake("residual_step", "the stream itself is normalised")
def residual_step_of_the_normed(x, sublayer, norm, *, order="pre"):
    """Add the sublayer's output to the normalised stream: the stream's own size is lost.

    Seen in: `x = norm(x); x = x + f(x)`, the residual taken after the assignment.
    """
    normed = norm(_array(x))
    return normed + _array(sublayer(normed))
