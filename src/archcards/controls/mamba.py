"""The blocks of Mamba-1 and Mamba-2, wrong in named ways."""

from dataclasses import replace

import numpy as np

from ._reference import RecurrentCache, mamba2_block, mamba_block
from ._registry import mistake

__all__: list[str] = []


def _exchanged(weights, first, second):
    """The columns of the input projection with two parts of it in each other's place."""
    order = np.arange(weights.input.shape[1])
    order[first], order[second] = order[second].copy(), order[first].copy()
    return order


def _without_past_inputs(cache):
    return None if cache is None else RecurrentCache(np.zeros_like(cache.inputs), cache.state)


@mistake("mamba_block", "gate before the input")
def mamba_gate_first(x, weights, *, cache=None, form="recurrent"):
    """Take the first half of the projection for the gate and the second for the input.

    Seen in: ports that share one projection between Mamba-1, which begins with the input, and
    Mamba-2, which begins with the gate.
    """
    inner = weights.D.size
    order = _exchanged(weights, slice(inner), slice(inner, 2 * inner))
    return mamba_block(x, replace(weights, input=weights.input[:, order]), cache=cache, form=form)


@mistake("mamba_block", "convolution starts anew")
def mamba_without_past_inputs(x, weights, *, cache=None, form="recurrent"):
    """Keep the state between calls and not the last inputs of the convolution.

    Seen in: decoding loops whose cache is the state of the recurrence alone.
    """
    return mamba_block(x, weights, cache=_without_past_inputs(cache), form=form)


@mistake("mamba2_block", "input before the gate")
def mamba2_input_first(x, weights, **options):
    """Take the first part of the projection for the input and the second for the gate.

    Seen in: ports that keep Mamba-1's order.
    """
    inner = weights.norm.size
    order = _exchanged(weights, slice(inner), slice(inner, 2 * inner))
    return mamba2_block(x, replace(weights, input=weights.input[:, order]), **options)


@mistake("mamba2_block", "B and C exchanged")
def mamba2_reads_by_what_writes(x, weights, **options):
    """Write with C and read with B, whose parts of the projection have one shape.

    Seen in: a slip that shapes do not catch.
    """
    inner, heads = weights.norm.size, weights.A_log.size
    end = weights.input.shape[1] - heads
    middle = (2 * inner + end) // 2
    order = _exchanged(weights, slice(2 * inner, middle), slice(middle, end))
    inside = order[inner:end] - inner  # the channels of the convolution
    changed = replace(
        weights,
        input=weights.input[:, order],
        convolution=weights.convolution[inside],
        convolution_bias=weights.convolution_bias[inside],
    )
    return mamba2_block(x, changed, **options)


@mistake("mamba2_block", "convolution starts anew")
def mamba2_without_past_inputs(x, weights, *, cache=None, **options):
    """Keep the state between calls and not the last inputs of the convolution.

    Seen in: decoding loops whose cache is the state of the recurrence alone.
    """
    return mamba2_block(x, weights, cache=_without_past_inputs(cache), **options)
