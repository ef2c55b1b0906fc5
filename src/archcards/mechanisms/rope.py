"""Position by rotation: frequencies, their scalings to longer contexts, the rotation, and ALiBi.

A rotary embedding turns pairs of channels by position · frequency, so that the score of a query
and a key depends on the difference of their positions only. `rope_frequencies` computes the
frequencies, plain or scaled to a context longer than the trained one; `rotate` applies them.
"""

from dataclasses import dataclass
from math import ceil, floor, log, pi, sqrt
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import integer, one_of, real_array, real_number, shown

__all__ = [
    "DynamicNTK",
    "Frequencies",
    "Linear",
    "Llama3",
    "LongRoPE",
    "NTK",
    "Proportional",
    "YaRN",
    "alibi_slopes",
    "rope_frequencies",
    "rotate",
]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """What a rotary embedding turns by: one frequency per pair of channels, and a magnitude.

    Attributes:
        inverse: Radians per position, one per pair; the width rotated is twice their number.
        attention_factor: Multiplies cosine and sine, and so enters a score of a rotated query
            with a rotated key as its square.

    Raises:
        ValueError: If `inverse` is not a vector of real numbers or the factor is not positive.
    """

    inverse: Float[ndarray, " pairs"]
    attention_factor: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "inverse", real_array("inverse", self.inverse, ndim=1))
        factor = real_number("attention_factor", self.attention_factor, above=0)
        object.__setattr__(self, "attention_factor", factor)

    @property
    def rotary_dim(self) -> int:
        """How many channels are rotated."""
        return 2 * len(self.inverse)


@runtime_checkable
class _Scaling(Protocol):
    """A rule that changes the frequencies so that a longer context can be read."""

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies: ...


def _plain(rotary_dim: int, base: float) -> Float[ndarray, " pairs"]:
    return base ** -(np.arange(0, rotary_dim, 2) / rotary_dim)


def _raised_base(rotary_dim: int, base: float, stretch: float) -> Float[ndarray, " pairs"]:
    # The exponent makes the slowest pair exactly `stretch` times slower and leaves the fastest.
    if rotary_dim == 2:
        return _plain(rotary_dim, base)  # the only pair is the fastest
    return _plain(rotary_dim, base * stretch ** (rotary_dim / (rotary_dim - 2)))


@dataclass(frozen=True)
class Linear:
    r"""Position interpolation: every frequency divided by one factor.

    $$\theta'_i = \theta_i / s$$

    Source:
        Chen et al. 2023, arXiv 2306.15595, equation 4.
    """

    factor: float

    def __post_init__(self) -> None:
        real_number("factor", self.factor, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        return Frequencies(_plain(rotary_dim, base) / self.factor)


@dataclass(frozen=True)
class NTK:
    r"""A larger base: the slowest pair is stretched by `alpha`, the fastest not at all.

    $$b' = b\,\alpha^{d/(d-2)}$$

    Source:
        the "NTK-aware" rule as restated in YaRN, arXiv 2309.00071, section 3.1.
    """

    alpha: float

    def __post_init__(self) -> None:
        real_number("alpha", self.alpha, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        return Frequencies(_raised_base(rotary_dim, base, self.alpha))


@dataclass(frozen=True)
class DynamicNTK:
    r"""A base that grows with the current length, once that exceeds the trained one.

    $$b' = b\,(s\,\ell/L - (s - 1))^{d/(d-2)}, \qquad \ell = \max(\text{length}, L)$$

    Keys that were rotated at a shorter length keep the base of that length: prefill and decoding
    differ by construction.

    Source:
        YaRN, arXiv 2309.00071, section 3.3; the formula as in Hugging Face's `dynamic` type.
    """

    factor: float
    trained_length: int

    def __post_init__(self) -> None:
        real_number("factor", self.factor, minimum=1)
        integer("trained_length", self.trained_length, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        current = max(length or 0, self.trained_length)
        stretch = self.factor * current / self.trained_length - (self.factor - 1)
        return Frequencies(_raised_base(rotary_dim, base, stretch))


@dataclass(frozen=True)
class YaRN:
    r"""Fast pairs kept, slow pairs interpolated, a linear ramp between; and a magnitude.

    $$\theta'_i = (1 - r_i)\,\theta_i + r_i\,\theta_i / s, \qquad
    r_i = \operatorname{clip}\Bigl(\frac{i - l}{h - l}, 0, 1\Bigr)$$

    where $l$ and $h$ are the pairs that turn `beta_fast` and `beta_slow` times over the trained
    length, $d \ln(L / 2\pi\beta) / (2 \ln b)$, rounded outwards if `truncate`.

    With $m(\mu) = 1 + 0.1\,\mu \ln s$ the factor on cosine and sine is
    $m(\text{mscale}) / m(\text{mscale\_all\_dim})$, by default $m(1)/m(0)$; a given
    `attention_factor` replaces it. DeepSeek's models give both alike, so that the factor is 1, and
    scale the scores by $m^2$ instead, which also reaches the channels that are not rotated.

    Source:
        Peng et al. 2023, arXiv 2309.00071, section 3.4; `truncate` as in gpt-oss's config.
    """

    factor: float
    trained_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    truncate: bool = True
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        real_number("factor", self.factor, minimum=1)
        integer("trained_length", self.trained_length, minimum=1)
        real_number("beta_slow", self.beta_slow, above=0)
        real_number("beta_fast", self.beta_fast, minimum=self.beta_slow)
        for name in ("mscale", "mscale_all_dim"):
            if getattr(self, name) is not None:
                real_number(name, getattr(self, name), minimum=0)
        if self.attention_factor is not None:
            real_number("attention_factor", self.attention_factor, above=0)

    def magnitude(self, mscale: float) -> float:
        """The factor 1 + 0.1 · mscale · ln(factor); DeepSeek scales scores by its square."""
        return 1.0 + 0.1 * mscale * log(self.factor)

    def ramp_bounds(self, rotary_dim: int, base: float) -> tuple[float, float]:
        """The pairs between which the ramp runs: up to the first kept, from the second divided."""

        def pair_that_turns(times: float) -> float:
            return rotary_dim * log(self.trained_length / (times * 2 * pi)) / (2 * log(base))

        low, high = pair_that_turns(self.beta_fast), pair_that_turns(self.beta_slow)
        if self.truncate:
            low, high = floor(low), ceil(high)
        return max(low, 0), min(high, rotary_dim - 1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        low, high = self.ramp_bounds(rotary_dim, base)
        if low == high:
            high += 0.001  # a step, as the published code makes it
        ramp = np.clip((np.arange(rotary_dim // 2) - low) / (high - low), 0.0, 1.0)
        plain = _plain(rotary_dim, base)
        factor = self.attention_factor
        if factor is None:
            mscale = 1.0 if self.mscale is None else self.mscale
            factor = self.magnitude(mscale) / self.magnitude(self.mscale_all_dim or 0.0)
        return Frequencies((1 - ramp) * plain + ramp * plain / self.factor, factor)


@dataclass(frozen=True)
class Llama3:
    r"""By turns over the trained length: many, kept; few, divided; between, interpolated.

    $$\theta'_i = \sigma_i\,\theta_i + (1 - \sigma_i)\,\theta_i / s, \qquad
    \sigma_i = \operatorname{clip}\Bigl(\frac{L\theta_i/2\pi - f_l}{f_h - f_l}, 0, 1\Bigr)$$

    With equal factors the ramp is a step: kept above it, divided at and below it.

    Source:
        the `llama3` rope type of Llama 3.1's published configs and reference code.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    trained_length: int

    def __post_init__(self) -> None:
        real_number("factor", self.factor, minimum=1)
        real_number("low_freq_factor", self.low_freq_factor, above=0)
        real_number("high_freq_factor", self.high_freq_factor, minimum=self.low_freq_factor)
        integer("trained_length", self.trained_length, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        plain = _plain(rotary_dim, base)
        turns = self.trained_length * plain / (2 * pi)
        low, high = self.low_freq_factor, self.high_freq_factor
        if low == high:
            kept = (turns > high).astype(float)
        else:
            kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return Frequencies(kept * plain + (1 - kept) * plain / self.factor)


@dataclass(frozen=True)
class LongRoPE:
    r"""One searched divisor per pair: the short list up to the trained length, the long one beyond.

    $$\theta'_i = \theta_i / \lambda_i, \qquad m = \sqrt{1 + \ln s / \ln L}$$

    $m$ multiplies cosine and sine; `factor`, $s$, is the extended length over the trained one.

    Source:
        Ding et al. 2024, arXiv 2402.13753; the magnitude as in Phi-3's published code.
    """

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    trained_length: int
    factor: float

    def __post_init__(self) -> None:
        for name in ("short_factor", "long_factor"):
            values = real_array(name, getattr(self, name), ndim=1)
            if not (values > 0).all():
                raise ValueError(f"{name} must be positive, got {values.min()}")
            object.__setattr__(self, name, tuple(values.tolist()))
        # The magnitude divides by the logarithm of the trained length.
        integer("trained_length", self.trained_length, minimum=2)
        real_number("factor", self.factor, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        long = length is not None and length > self.trained_length
        name = "long_factor" if long else "short_factor"
        divisors = getattr(self, name)
        if len(divisors) != rotary_dim // 2:
            raise ValueError(
                f"{name} must have one number for each of the {rotary_dim // 2} pairs, "
                f"got {len(divisors)}"
            )
        magnitude = sqrt(1 + log(self.factor) / log(self.trained_length))
        return Frequencies(_plain(rotary_dim, base) / np.array(divisors), magnitude)


@dataclass(frozen=True)
class Proportional:
    r"""The fast pairs of the whole head; the slow ones are not turned at all.

    $$\theta'_i = \theta_i / s \text{ for } i < \lfloor p\, d / 2 \rfloor, \qquad
    \theta'_i = 0 \text{ for the other pairs}$$

    `rotary_dim` is then the width of the head, also in the exponent and in the layout of the
    pairs. Elsewhere a partial rotary embedding divides by the width that is rotated, and pairs
    channels within it.

    Source:
        p-RoPE, Barbero et al. 2024, arXiv 2410.06205; the `proportional` type of
        Gemma 4's config.
    """

    share: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        real_number("share", self.share, minimum=0, maximum=1)
        real_number("factor", self.factor, minimum=1)

    def frequencies(self, rotary_dim: int, base: float, length: int | None) -> Frequencies:
        turned = np.arange(rotary_dim // 2) < floor(self.share * rotary_dim / 2)
        return Frequencies(np.where(turned, _plain(rotary_dim, base) / self.factor, 0.0))


def rope_frequencies(
    rotary_dim: int,
    *,
    base: float = 10_000.0,
    scaling: _Scaling | None = None,
    length: int | None = None,
) -> Frequencies:
    r"""The frequencies by which a rotary embedding turns its pairs of channels.

    $$\theta_i = b^{-2i/d}, \qquad i = 0, \dots, d/2 - 1$$

    Args:
        rotary_dim: $d$, the number of channels that are rotated: even, and the denominator of the
            exponent also where the head is wider.
        base: $b$, above 1.
        scaling: How a longer context is reached, if it is: `Linear`, `NTK`, `DynamicNTK`, `YaRN`,
            `Llama3` or `LongRoPE`; or `Proportional`, which turns only a part of the pairs.
        length: Tokens in the sequence, for the scalings that depend on it (`DynamicNTK` and
            `LongRoPE`); by default no more than the trained length.

    Raises:
        ValueError: If the width is odd or not positive, the base not above 1, the length negative,
            or a list of divisors does not have one number a pair.

    Source:
        Su et al. 2021, arXiv 2104.09864, section 3.2.2; the scalings name theirs.

    Example:
        >>> rope_frequencies(4).inverse.tolist()
        [1.0, 0.01]
        >>> rope_frequencies(4, scaling=Linear(4)).inverse.tolist()
        [0.25, 0.0025]
    """
    integer("rotary_dim", rotary_dim, minimum=1)
    if rotary_dim % 2:
        raise ValueError(f"rotary_dim must be even, got {rotary_dim}")
    base = real_number("base", base, above=1)
    if length is not None:
        integer("length", length, minimum=0)
    if scaling is None:
        return Frequencies(_plain(rotary_dim, base))
    if not isinstance(scaling, Linear | NTK | DynamicNTK | YaRN | Llama3 | LongRoPE | Proportional):
        raise ValueError(f"scaling must be one of the scalings or None, got {shown(scaling)}")
    return scaling.frequencies(rotary_dim, base, length)


def rotate(
    x: Float[ndarray, "*#vectors width"],
    positions: Float[ndarray, "*#vectors"],
    frequencies: Frequencies,
    *,
    layout: Literal["half", "interleaved"] = "half",
) -> Float[ndarray, "... width"]:
    r"""Turn the first channels of each vector, pair by pair, by position · frequency.

    $$(a, b) \mapsto m\,(a \cos p\theta - b \sin p\theta,\; a \sin p\theta + b \cos p\theta)$$

    counter-clockwise, with $m$ the attention factor. Layout `half` pairs channel $i$ with
    $i + d/2$, `interleaved` pairs $2i$ with $2i + 1$; the other channels pass unchanged. The two
    differ by one permutation of channels: scores agree as long as queries and keys use the same.

    Args:
        x: Queries or keys; at least as wide as what is rotated. A single vector has no time axis.
        positions: One real number per vector, in any order, gaps and repeats allowed; leading axes
            broadcast.
        frequencies: From `rope_frequencies`.
        layout: Which channels form a pair.

    Raises:
        ValueError: If there is not one position per vector, or the vectors are too narrow.

    Source:
        Su et al. 2021, arXiv 2104.09864, equation 34.

    Example:
        >>> quarter = Frequencies(np.array([np.pi / 2]))
        >>> rotate([[1.0, 0.0, 5.0]], [1], quarter).round(12).tolist()
        [[0.0, 1.0, 5.0]]
    """
    x = real_array("x", x, min_ndim=1)
    positions = real_array("positions", positions)
    if not isinstance(frequencies, Frequencies):
        raise ValueError(f"frequencies must come from rope_frequencies, got {shown(frequencies)}")
    one_of("layout", layout, ("half", "interleaved"))
    rotary_dim = frequencies.rotary_dim
    if x.shape[-1] < rotary_dim:
        raise ValueError(
            f"x must have at least the {rotary_dim} channels that are rotated, got {x.shape[-1]}"
        )
    if positions.shape[-1:] != x.shape[:-1][-1:]:
        raise ValueError(
            f"positions must be one per vector of x, shape {x.shape[:-1]}, got {positions.shape}"
        )
    try:
        leading = np.broadcast_shapes(x.shape[:-1], positions.shape)
    except ValueError:
        raise ValueError(
            f"positions must broadcast with the leading axes of x, {x.shape[:-1]}, "
            f"got {positions.shape}"
        ) from None

    angle = positions[..., None] * frequencies.inverse
    cosine = frequencies.attention_factor * np.cos(angle)
    sine = frequencies.attention_factor * np.sin(angle)
    if layout == "half":
        first, second = slice(0, rotary_dim // 2), slice(rotary_dim // 2, rotary_dim)
    else:
        first, second = slice(0, rotary_dim, 2), slice(1, rotary_dim, 2)
    turned = np.broadcast_to(x, (*leading, x.shape[-1])).copy()
    turned[..., first] = x[..., first] * cosine - x[..., second] * sine
    turned[..., second] = x[..., first] * sine + x[..., second] * cosine
    return turned


def alibi_slopes(heads: int) -> Float[ndarray, " head"]:
    r"""The slope of each head's linear penalty on distance, which ALiBi adds to scores.

    $$m_j = 2^{-8j/n}, \qquad j = 1, \dots, n$$

    if $n$ is a power of two; otherwise the slopes of the power of two below, followed by the
    first, third, … of the power of two above.

    The bias on a score is $-m_j$ per position between query and key.

    Raises:
        ValueError: If there is no head.

    Source:
        Press et al. 2021, arXiv 2108.12409, section 3; other counts as in its published code.

    Example:
        >>> alibi_slopes(4).tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
        >>> alibi_slopes(3).tolist()
        [0.0625, 0.00390625, 0.25]
    """
    integer("heads", heads, minimum=1)

    def geometric(count: int) -> Float[ndarray, " count"]:
        return 2.0 ** (-8.0 * np.arange(1, count + 1) / count)

    below = 2 ** (heads.bit_length() - 1)
    return np.concatenate([geometric(below), geometric(2 * below)[::2][: heads - below]])
