"""Rotary positions and their scalings, wrong in named ways."""

from dataclasses import replace

import numpy as np

from ._reference import (
    NTK,
    DynamicNTK,
    Frequencies,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
    alibi_slopes,
    rope_frequencies,
    rotate,
)
from ._registry import convention, mistake

__all__: list[str] = []


# rotate


@convention("rotate", "pairs of the other layout")
def rotated_in_the_other_layout(x, positions, frequencies, *, layout="half"):
    """Pair neighbours where halves are meant, or halves where neighbours are: right if queries, keys
    and the weights behind them all follow, badly wrong if only some do.

    Seen in: GPT-NeoX and Hugging Face (halves) against the paper, GPT-J and Meta's code (neighbours);
    transformers #25199.
    """
    other = "interleaved" if layout == "half" else "half"
    return rotate(x, positions, frequencies, layout=other)


@mistake("rotate", "frequencies laid out for the other layout")
def rotated_by_frequencies_of_the_other_layout(x, positions, frequencies, *, layout="half"):
    """Pair the channels of one layout and repeat the angles for the other, so that the two channels of
    a pair turn by different angles and the score no longer depends on the difference of positions.

    Seen in: `rotate_half` combined with `repeat_interleave`, a slip that shapes do not catch.
    """
    pairs = len(frequencies.inverse)
    inverse = np.asarray(frequencies.inverse)
    of_channel = np.repeat(inverse, 2) if layout == "half" else np.tile(inverse, 2)
    halves = np.arange(pairs), np.arange(pairs) + pairs
    neighbours = 2 * np.arange(pairs), 2 * np.arange(pairs) + 1
    first, second = halves if layout == "half" else neighbours
    x = np.asarray(x, dtype=float)
    angle = np.asarray(positions, dtype=float)[..., None] * of_channel
    turned, m = x.copy(), frequencies.attention_factor
    a, b = x[..., first], x[..., second]
    turned[..., first] = m * (a * np.cos(angle[..., first]) - b * np.sin(angle[..., first]))
    turned[..., second] = m * (b * np.cos(angle[..., second]) + a * np.sin(angle[..., second]))
    return turned


@convention("rotate", "clockwise")
def rotated_clockwise(x, positions, frequencies, *, layout="half"):
    """Turn by minus the angle: scores agree as long as queries and keys both do.

    Seen in: code that writes the rotation with the row vector on the left of the paper's matrix.
    """
    return rotate(x, -np.asarray(positions, dtype=float), frequencies, layout=layout)


@mistake("rotate", "a sign lost in the rotation")
def rotated_without_a_sign(x, positions, frequencies, *, layout="half"):
    """Add both products in both channels: no rotation, and norms are not kept.

    Seen in: a `rotate_half` that concatenates without negating, a slip that shapes do not catch.
    """
    turned = rotate(x, positions, frequencies, layout=layout)
    back = rotate(x, -np.asarray(positions, dtype=float), frequencies, layout=layout)
    pairs = len(frequencies.inverse)
    first = slice(0, pairs) if layout == "half" else slice(0, 2 * pairs, 2)
    turned[..., first] = back[..., first]
    return turned


@convention("rotate", "last channels rotated")
def last_channels_rotated(x, positions, frequencies, *, layout="half"):
    """Rotate the end of each head and leave its beginning.

    Seen in: DeepSeek-V2 and V3, whose heads put the rotated channels last; most partial rotaries put
    them first.
    """
    x = np.asarray(x, dtype=float)
    first = x.shape[-1] - frequencies.rotary_dim
    turned = rotate(x[..., first:], positions, frequencies, layout=layout)
    passed = np.broadcast_to(x[..., :first], (*turned.shape[:-1], first))
    return np.concatenate([passed, turned], axis=-1)


@mistake("rotate", "attention factor left out")
def rotated_without_the_attention_factor(x, positions, frequencies, *, layout="half"):
    """Scale the frequencies as YaRN does and forget its factor on cosine and sine.

    Seen in: ports that take over the frequencies only; with DeepSeek's equal magnitudes it is 1 and
    nothing shows (transformers #47435).
    """
    return rotate(x, positions, Frequencies(frequencies.inverse), layout=layout)


@mistake("rotate", "attention factor squared")
def rotated_by_the_squared_attention_factor(x, positions, frequencies, *, layout="half"):
    """Multiply cosine and sine by the square that scores are meant to get: they get its square again.

    Seen in: readings of YaRN's factor on the softmax as one on the embedding.
    """
    squared = Frequencies(frequencies.inverse, frequencies.attention_factor**2)
    return rotate(x, positions, squared, layout=layout)


@convention("rotate", "positions counted from one")
def rotated_from_position_one(x, positions, frequencies, *, layout="half"):
    """Give the first token position 1: scores agree, cached keys do not.

    Seen in: code whose padding token holds position 0.
    """
    return rotate(x, np.asarray(positions, dtype=float) + 1, frequencies, layout=layout)


@mistake("rotate", "positions restart with each call")
def rotated_from_a_fresh_start(x, positions, frequencies, *, layout="half"):
    """Number the tokens of a chunk from zero, whatever the cache already holds.

    Seen in: decoding loops that call the layer without an offset.
    """
    positions = np.asarray(positions, dtype=float)
    if positions.ndim:
        positions = positions - positions[..., :1]
    return rotate(x, positions, frequencies, layout=layout)


# rope_frequencies


def _with_inverse(inverse, **options):
    return Frequencies(inverse, rope_frequencies(2 * len(inverse), **options).attention_factor)


@mistake("rope_frequencies", "exponent without its minus sign")
def exponent_without_its_sign(rotary_dim, **options):
    """Use base^(2i/d): from the second pair on, angles so large that they are noise.

    Seen in: the text of an annotated implementation whose code has the sign (labml #313).
    """
    return _with_inverse(1 / rope_frequencies(rotary_dim, **options).inverse, **options)


@mistake("rope_frequencies", "exponent over the head width")
def exponent_over_the_head_width(rotary_dim, *, base=10_000.0, **options):
    """Divide by the width of the whole head where only a part is rotated; here half of it.

    Seen in: ports of partial rotaries (GPT-NeoX rotates a quarter of a head, Phi two fifths); what
    Gemma 4 calls proportional does so on purpose.
    """
    return rope_frequencies(rotary_dim, base=base**0.5, **options)


@mistake("rope_frequencies", "pairs counted as channels")
def exponent_counts_pairs(rotary_dim, *, base=10_000.0, **options):
    """Use base^(−i/d), with the number of the pair where the paper has that of the channel: the
    frequencies fall too slowly.

    Seen in: re-implementations that range over pairs and keep the paper's denominator.
    """
    plain = np.arange(rotary_dim // 2) / rotary_dim
    return _with_inverse(base**-plain, base=base, **options)


@mistake("rope_frequencies", "frequencies multiplied by the factor")
def linear_upside_down(rotary_dim, *, scaling=None, **options):
    """Multiply where position interpolation divides: positions are stretched, not squeezed.

    Seen in: readings of `scaling_factor` as its own inverse.
    """
    found = rope_frequencies(rotary_dim, scaling=scaling, **options)
    if not isinstance(scaling, Linear):
        return found
    return Frequencies(found.inverse * scaling.factor**2)


@mistake("rope_frequencies", "base multiplied by alpha itself")
def ntk_without_its_exponent(rotary_dim, *, base=10_000.0, scaling=None, **options):
    """Leave out the exponent d/(d − 2), so that the slowest pair is not stretched by alpha.

    Seen in: re-implementations from the words "multiply the base".
    """
    if isinstance(scaling, NTK):
        base, scaling = base * scaling.alpha, None
    return rope_frequencies(rotary_dim, base=base, scaling=scaling, **options)


@convention("rope_frequencies", "dynamic NTK fixed at the trained length")
def dynamic_ntk_that_stays(rotary_dim, *, length=None, scaling=None, **options):
    """Ignore the current length: what a decoder does whose cached keys keep their first base.

    Seen in: the mismatch of prefill and decoding in transformers #25104.
    """
    if isinstance(scaling, DynamicNTK):
        length = None
    return rope_frequencies(rotary_dim, length=length, scaling=scaling, **options)


@mistake("rope_frequencies", "dynamic NTK below the trained length")
def dynamic_ntk_from_the_start(rotary_dim, *, base=10_000.0, length=None, scaling=None):
    """Stretch by length/L without its lower bound: short texts get a smaller base than they were
    trained with.

    Seen in: re-implementations without the maximum of length and trained length.
    """
    if not isinstance(scaling, DynamicNTK) or length is None or rotary_dim == 2:
        return rope_frequencies(rotary_dim, base=base, scaling=scaling, length=length)
    stretch = scaling.factor * length / scaling.trained_length - (scaling.factor - 1)
    base *= max(stretch, 1e-3) ** (rotary_dim / (rotary_dim - 2))
    return Frequencies(base ** -(np.arange(0, rotary_dim, 2) / rotary_dim))


def _yarn(rotary_dim, scaling, change, **options):
    if isinstance(scaling, YaRN):
        scaling = change(scaling)
    return rope_frequencies(rotary_dim, scaling=scaling, **options)


@convention("rope_frequencies", "YaRN's bounds the other way round")
def yarn_rounded_otherwise(rotary_dim, *, scaling=None, **options):
    """Round the ends of the ramp where they should not be, or leave them where they should.

    Seen in: gpt-oss, whose config says `truncate: false`, against the code that came with the paper.
    """
    return _yarn(rotary_dim, scaling, lambda s: replace(s, truncate=not s.truncate), **options)


@mistake("rope_frequencies", "YaRN's ramp reversed")
def yarn_ramp_reversed(rotary_dim, *, base=10_000.0, scaling=None, **options):
    """Divide the fast pairs and keep the slow ones.

    Seen in: mixing up interpolation and extrapolation, the two names of the published code.
    """
    found = rope_frequencies(rotary_dim, base=base, scaling=scaling, **options)
    if not isinstance(scaling, YaRN):
        return found
    plain = rope_frequencies(rotary_dim, base=base).inverse
    return Frequencies(plain + plain / scaling.factor - found.inverse, found.attention_factor)


@mistake("rope_frequencies", "YaRN without its magnitude")
def yarn_without_magnitude(rotary_dim, *, scaling=None, **options):
    """Scale the frequencies and leave scores as they are.

    Seen in: ports that read YaRN as a rule for frequencies alone.
    """
    return _yarn(rotary_dim, scaling, lambda s: replace(s, attention_factor=1.0), **options)


@mistake("rope_frequencies", "YaRN's magnitude squared")
def yarn_magnitude_squared(rotary_dim, *, scaling=None, **options):
    """Put on cosine and sine the square that only scores should see.

    Seen in: code that takes the softmax's temperature for the embedding's factor.
    """
    found = rope_frequencies(rotary_dim, scaling=scaling, **options)
    return Frequencies(found.inverse, found.attention_factor**2)


@mistake("rope_frequencies", "given attention factor ignored")
def yarn_ignores_the_given_factor(rotary_dim, *, scaling=None, **options):
    """Compute the magnitude from the formula although the config states it.

    Seen in: mlx-lm #1507.
    """
    return _yarn(rotary_dim, scaling, lambda s: replace(s, attention_factor=None), **options)


@mistake("rope_frequencies", "mscale_all_dim ignored")
def yarn_ignores_all_dims(rotary_dim, *, scaling=None, **options):
    """Put the whole magnitude on cosine and sine, although the model scales its softmax by it.

    Seen in: exllamav3 #259, which took the factor 1 of equal magnitudes for a bug.
    """
    return _yarn(rotary_dim, scaling, lambda s: replace(s, mscale_all_dim=None), **options)


@convention("rope_frequencies", "mscale needs mscale_all_dim")
def yarn_ignores_a_lone_mscale(rotary_dim, *, scaling=None, **options):
    """Fall back to the magnitude of 1 unless both are given and not zero.

    Seen in: Hugging Face's `yarn` type; DeepSeek's code takes each by itself.
    """

    def change(scaling):
        if scaling.mscale and scaling.mscale_all_dim:
            return scaling
        return replace(scaling, mscale=None, mscale_all_dim=None)

    return _yarn(rotary_dim, scaling, change, **options)


@mistake("rope_frequencies", "Llama 3's ramp reversed")
def llama3_ramp_reversed(rotary_dim, *, base=10_000.0, scaling=None, **options):
    """Divide the pairs that turn often and keep those that hardly turn.

    Seen in: comparing wavelengths with the bounds that are meant for frequencies.
    """
    found = rope_frequencies(rotary_dim, base=base, scaling=scaling, **options)
    if not isinstance(scaling, Llama3):
        return found
    plain = rope_frequencies(rotary_dim, base=base).inverse
    return Frequencies(plain + plain / scaling.factor - found.inverse)


@mistake("rope_frequencies", "Llama 3 without its ramp")
def llama3_without_ramp(rotary_dim, *, scaling=None, **options):
    """Jump from kept to divided at the lower bound.

    Seen in: ports that implement the two clear cases and not the one between.
    """
    if isinstance(scaling, Llama3):
        scaling = replace(scaling, high_freq_factor=scaling.low_freq_factor)
    return rope_frequencies(rotary_dim, scaling=scaling, **options)


@mistake("rope_frequencies", "LongRoPE's lists exchanged")
def longrope_lists_exchanged(rotary_dim, *, scaling=None, **options):
    """Take the long list up to the trained length and the short one beyond.

    Seen in: an inverted comparison, a slip that shapes do not catch.
    """
    if isinstance(scaling, LongRoPE):
        scaling = replace(
            scaling, short_factor=scaling.long_factor, long_factor=scaling.short_factor
        )
    return rope_frequencies(rotary_dim, scaling=scaling, **options)


@mistake("rope_frequencies", "proportional type's exponent over the rotated width")
def proportional_like_other_partial_types(rotary_dim, *, base=10_000.0, scaling=None, **options):
    """Divide the exponent by the number of channels that are turned, as other partial embeddings do.

    Seen in: engines that read `partial_rotary_factor` alike for every type; vLLM has a class of its
    own for Gemma 4 (`Gemma4RotaryEmbedding`) in order not to.
    """
    found = rope_frequencies(rotary_dim, base=base, scaling=scaling, **options)
    turned = np.count_nonzero(found.inverse)
    if not isinstance(scaling, Proportional) or turned == 0:
        return found
    inverse = np.zeros(rotary_dim // 2)
    inverse[:turned] = rope_frequencies(2 * turned, base=base).inverse / scaling.factor
    return Frequencies(inverse)


@mistake("rope_frequencies", "proportional type turns the slow pairs")
def proportional_turns_the_slow_pairs(rotary_dim, *, base=10_000.0, scaling=None, **options):
    """Leave the fast pairs still and turn as many of the slow ones.

    Seen in: readings of the share as one that is left out from the front.
    """
    found = rope_frequencies(rotary_dim, base=base, scaling=scaling, **options)
    if not isinstance(scaling, Proportional):
        return found
    plain = rope_frequencies(rotary_dim, base=base, scaling=Linear(scaling.factor)).inverse
    slow = np.arange(rotary_dim // 2) >= rotary_dim // 2 - np.count_nonzero(found.inverse)
    return Frequencies(np.where(slow, plain, 0.0))


# alibi_slopes


@mistake("alibi_slopes", "one geometric sequence for every count")
def slopes_of_any_count(heads):
    """Use 2^(−8j/n) also where n is not a power of two: other slopes than the trained model's.

    Seen in: re-implementations from the paper, which states the powers of two.
    """
    return 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)


@mistake("alibi_slopes", "cut from the power of two above")
def slopes_cut_from_above(heads):
    """Take the first n slopes of the next power of two.

    Seen in: re-implementations that round the number of heads up.
    """
    return alibi_slopes(1 << (heads - 1).bit_length())[:heads]


@mistake("alibi_slopes", "counted from zero")
def slopes_counted_from_zero(heads):
    """Begin with the slope 1, one step of the sequence too high.

    Seen in: re-implementations that range from zero.
    """
    return alibi_slopes(heads) / alibi_slopes(heads)[0]
