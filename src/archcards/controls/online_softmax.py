"""Online softmax, wrong in named ways.

`merge` stands for `AttentionState.merge`: its controls take the two states.
"""

import numpy as np

from ._reference import AttentionState, attend, blockwise_attention
from ._registry import convention, mistake

__all__: list[str] = []


def _shares(state, other):
    """The merged maximum and the factors that bring both states to it."""
    maximum = np.maximum(state.maximum, other.maximum)
    shift = np.where(np.isneginf(maximum), 0.0, maximum)
    return maximum, np.exp(state.maximum - shift), np.exp(other.maximum - shift)


def _for_both(kind, name):
    """Register a wrong merge for `merge` and for the blockwise read that is built on it."""

    def register(merge):
        def blockwise(query, key, value, mask=None, *, block, scale=None):
            query, key, value = (np.asarray(x, dtype=float) for x in (query, key, value))
            scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
            state = None
            for start in range(0, key.shape[-2], block):
                piece = slice(start, start + block)
                scores = query @ np.swapaxes(key[..., piece, :], -1, -2) * scale
                hidden = None if mask is None else np.asarray(mask)[..., piece]
                read = attend(scores, value[..., piece, :], hidden)
                state = read if state is None else merge(state, read)
            with np.errstate(invalid="ignore", divide="ignore"):
                output = state.weighted / state.mass[..., None]
                return output, state.maximum + np.log(state.mass)

        blockwise.__doc__, blockwise.__name__ = merge.__doc__, merge.__name__
        kind("blockwise_attention", name)(blockwise)
        return kind("merge", name)(merge)

    return register


@_for_both(mistake, "old mass not rescaled")
def merge_without_rescaling_the_mass(state, other):
    """Add the masses as they stand when the maximum changes.

    Seen in: the recurrence of arXiv 1805.02867 (algorithm 3, line 5) without its correction factor.
    """
    maximum, here, there = _shares(state, other)
    weighted = here[..., None] * state.weighted + there[..., None] * other.weighted
    return AttentionState(maximum, state.mass + other.mass, weighted)


@_for_both(mistake, "old values not rescaled")
def merge_without_rescaling_the_values(state, other):
    """Rescale the mass and forget the accumulated values.

    Seen in: blockwise kernels that rescale the denominator only.
    """
    maximum, here, there = _shares(state, other)
    mass = here * state.mass + there * other.mass
    return AttentionState(maximum, mass, state.weighted + other.weighted)


@_for_both(mistake, "partial outputs averaged")
def merge_by_averaging(state, other):
    """Take the mean of the two outputs, whatever their masses.

    Seen in: sequence-parallel attention that reduces by mean.
    """
    maximum, here, there = _shares(state, other)
    mass = here * state.mass + there * other.mass
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (state.weighted / state.mass[..., None] + other.weighted / other.mass[..., None]) / 2
    return _unchecked(maximum, mass, mass[..., None] * mean)


@_for_both(mistake, "weighted by mass without the maxima")
def merge_by_mass_alone(state, other):
    """Weigh the two outputs by their masses, which stand below different maxima.

    Seen in: merges that keep the sum of exponentials and drop the maximum it belongs to.
    """
    maximum, here, there = _shares(state, other)
    mass = here * state.mass + there * other.mass
    mean = (state.weighted + other.weighted) / (state.mass + other.mass)[..., None]
    return AttentionState(maximum, mass, mass[..., None] * mean)


@_for_both(mistake, "natural maxima taken in base two")
def merge_in_base_two(state, other):
    """Rescale by powers of two what was accumulated with powers of e.

    Seen in: merging FlashInfer's log-sum-exp, which is in base two, with one in natural logarithms
    (sglang #35045).
    """
    maximum = np.maximum(state.maximum, other.maximum)
    shift = np.where(np.isneginf(maximum), 0.0, maximum)
    here, there = np.exp2(state.maximum - shift), np.exp2(other.maximum - shift)
    return AttentionState(
        maximum,
        here * state.mass + there * other.mass,
        here[..., None] * state.weighted + there[..., None] * other.weighted,
    )


@_for_both(mistake, "NaN from two empty pieces")
def merge_without_a_neutral_element(state, other):
    """Subtract −∞ from −∞ where both pieces are empty: the NaN outlives every later piece.

    Seen in: PyTorch's merger of context-parallel attention, when the first block is empty;
    Model-Optimizer #745 makes that merger skip blank blocks.
    """
    maximum = np.maximum(state.maximum, other.maximum)
    with np.errstate(invalid="ignore"):
        here, there = np.exp(state.maximum - maximum), np.exp(other.maximum - maximum)
    return _unchecked(
        maximum,
        here * state.mass + there * other.mass,
        here[..., None] * state.weighted + there[..., None] * other.weighted,
    )


@mistake("attend", "hidden keys keep their mass")
def attend_with_hidden_mass(scores, values, mask=None):
    """Leave hidden keys out of the values but not out of the denominator.

    Seen in: masks applied to the product with the values only.
    """
    whole, read = attend(scores, values), attend(scores, values, mask)
    factor = np.exp(read.maximum - whole.maximum)
    return AttentionState(whole.maximum, whole.mass, factor[..., None] * read.weighted)


@mistake("attend", "masked keys set to zero")
def attend_with_zeroed_scores(scores, values, mask=None):
    """Multiply the scores by the mask: a hidden key scores 0, not −∞.

    Seen in: `scores * mask` before the softmax.
    """
    return attend(scores if mask is None else np.where(mask, scores, 0.0), values)


@mistake("blockwise_attention", "the last, shorter block is dropped")
def blockwise_without_the_tail(query, key, value, mask=None, *, block, scale=None):
    """Run over `keys // block` whole blocks.

    Seen in: kernels written for lengths that the block divides.
    """
    whole = max(np.shape(key)[-2] // block * block, 1)
    mask = None if mask is None else np.asarray(mask)[..., :whole]
    key, value = (np.asarray(x)[..., :whole, :] for x in (key, value))
    return blockwise_attention(query, key, value, mask, block=block, scale=scale)


@convention("blockwise_attention", "log-sum-exp in base two")
def blockwise_in_base_two(query, key, value, mask=None, *, block, scale=None):
    """Return log₂ of the sum of exponentials.

    Seen in: FlashInfer; flash-attention returns natural logarithms (sglang #35045).
    """
    output, log_sum_exp = blockwise_attention(query, key, value, mask, block=block, scale=scale)
    return output, log_sum_exp / np.log(2)


def _unchecked(maximum, mass, weighted):
    """A state that may hold NaN, which the constructor refuses."""
    state = object.__new__(AttentionState)
    for name, array in (("maximum", maximum), ("mass", mass), ("weighted", weighted)):
        object.__setattr__(state, name, array)
    return state
