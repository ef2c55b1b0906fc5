"""Rotary positions against rotations of complex numbers, and each scaling against its rule."""

from cmath import exp
from math import ceil, floor, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from archcards.mechanisms import (
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

widths = st.integers(1, 8).map(lambda pairs: 2 * pairs)
layouts = st.sampled_from(["half", "interleaved"])


def vectors(*shape):
    return arrays(float, shape, elements=st.floats(-10, 10))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def turned_as_complex(x, positions, frequencies, layout):
    """One vector and one pair at a time, as the product with a complex number of that angle."""
    pairs = len(frequencies.inverse)
    turned = np.array(x, dtype=float)
    for t, position in enumerate(positions):
        for i, frequency in enumerate(frequencies.inverse):
            a, b = (i, i + pairs) if layout == "half" else (2 * i, 2 * i + 1)
            number = complex(x[t][a], x[t][b]) * exp(1j * position * frequency)
            number *= frequencies.attention_factor
            turned[t, a], turned[t, b] = number.real, number.imag
    return turned


@given(st.data(), widths, st.integers(0, 3), layouts)
def test_rotation_is_a_complex_product_and_spares_other_channels(data, rotary, extra, layout):
    x = data.draw(vectors(4, rotary + extra))  # odd widths too
    positions = data.draw(st.lists(st.integers(-50, 5000), min_size=4, max_size=4))
    frequencies = Frequencies(rope_frequencies(rotary, base=100.0).inverse, 1.5)
    turned = rotate(x, positions, frequencies, layout=layout)
    close(turned, turned_as_complex(x, positions, frequencies, layout))
    np.testing.assert_array_equal(turned[:, rotary:], x[:, rotary:])


@given(st.data(), widths, layouts, st.integers(-1000, 1000))
def test_only_the_difference_of_positions_counts(data, width, layout, shift):
    query, key = data.draw(vectors(2, width))
    frequencies = rope_frequencies(width)

    def score(query_position, key_position):
        q, k = rotate([query, key], [query_position, key_position], frequencies, layout=layout)
        return q @ k

    np.testing.assert_allclose(score(2 + shift, 7 + shift), score(2, 7), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(score(0, 5), score(2, 7), rtol=1e-9, atol=1e-9)


@given(st.data(), widths, layouts)
def test_norms_are_kept_and_position_zero_is_still(data, width, layout):
    x = data.draw(vectors(3, width))
    frequencies = rope_frequencies(width)
    turned = rotate(x, [0, 3, 3], frequencies, layout=layout)
    close((turned**2).sum(axis=-1), (x**2).sum(axis=-1))
    np.testing.assert_array_equal(turned[0], x[0])


@given(st.data(), widths)
def test_layouts_differ_by_one_permutation(data, width):
    x = data.draw(vectors(3, width))
    frequencies, positions = rope_frequencies(width), [4, 9, 1]
    halves_first = np.arange(width).reshape(-1, 2).T.ravel()  # even channels, then odd ones
    interleaved = rotate(x, positions, frequencies, layout="interleaved")
    close(interleaved[:, halves_first], rotate(x[:, halves_first], positions, frequencies))


def test_leading_axes_broadcast_and_one_vector_needs_none():
    x = np.arange(24.0).reshape(2, 3, 4)
    frequencies = rope_frequencies(4)
    positions = [[0, 1, 2], [5, 6, 7]]
    both = rotate(x, positions, frequencies)
    for row in range(2):
        close(both[row], rotate(x[row], positions[row], frequencies))
    close(rotate(x[0], positions, frequencies)[1], rotate(x[0], positions[1], frequencies))
    close(rotate(x[1, 2], 7, frequencies), both[1, 2])
    assert rotate(np.zeros((0, 4)), [], frequencies).shape == (0, 4)


def test_counter_clockwise_by_position_times_frequency():
    frequencies = Frequencies([0.37])
    close(rotate([[1.0, 0.0]], [2], frequencies), [[np.cos(0.74), np.sin(0.74)]])


def test_plain_frequencies():
    close(rope_frequencies(6, base=1000.0).inverse, [1, 1000 ** (-1 / 3), 1000 ** (-2 / 3)])
    assert rope_frequencies(2).inverse.tolist() == [1.0]
    assert rope_frequencies(6).attention_factor == 1
    assert rope_frequencies(6).rotary_dim == 6


def test_linear_divides_and_ntk_stretches_the_slowest_pair_only():
    plain = rope_frequencies(8).inverse
    close(rope_frequencies(8, scaling=Linear(4.0)).inverse, plain / 4)
    stretched = rope_frequencies(8, scaling=NTK(4.0)).inverse
    close([stretched[0], stretched[-1]], [plain[0], plain[-1] / 4])
    close(rope_frequencies(2, scaling=NTK(4.0)).inverse, [1])


@pytest.mark.parametrize("length", [None, 1, 64, 65, 200])
def test_dynamic_ntk_depends_on_the_length_beyond_the_trained_one(length):
    scaled = rope_frequencies(8, scaling=DynamicNTK(2.0, 64), length=length).inverse
    current = 64 if length is None or length < 64 else length
    base = 10_000 * (2 * current / 64 - 1) ** (8 / 6)
    close(scaled, [base ** (-i / 4) for i in range(4)])
    if current == 64:
        close(scaled, rope_frequencies(8).inverse)


def yarn_by_hand(dim, base, factor, trained, fast, slow, truncate):
    def pair(times):
        return dim * log(trained / (times * 2 * pi)) / (2 * log(base))

    low, high = pair(fast), pair(slow)
    if truncate:
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    frequencies = []
    for i in range(dim // 2):
        plain = base ** (-2 * i / dim)
        ramp = min(1, max(0, (i - low) / (high - low)))
        frequencies.append(plain * (1 - ramp) + plain / factor * ramp)
    return frequencies


@given(
    dim=st.integers(1, 40).map(lambda pairs: 2 * pairs),
    base=st.sampled_from([10_000.0, 150_000.0]),
    factor=st.floats(1, 64),
    trained=st.sampled_from([4, 4096]),
    truncate=st.booleans(),
)
def test_yarn_by_hand(dim, base, factor, trained, truncate):
    scaling = YaRN(factor, trained, truncate=truncate)
    scaled = rope_frequencies(dim, base=base, scaling=scaling)
    close(scaled.inverse, yarn_by_hand(dim, base, factor, trained, 32, 1, truncate))
    close(scaled.attention_factor, 0.1 * log(factor) + 1)


def test_yarn_of_gpt_oss_runs_between_its_published_bounds():
    """gpt-oss: head 64, base 150 000, factor 32 from 4096, no rounding: low 8.09, high 17.40."""
    scaling = YaRN(32.0, 4096, truncate=False)
    low, high = scaling.ramp_bounds(64, 150_000.0)
    assert (round(low, 2), round(high, 2)) == (8.09, 17.4)
    scaled = rope_frequencies(64, base=150_000.0, scaling=scaling).inverse
    plain = rope_frequencies(64, base=150_000.0).inverse
    close(scaled[:9], plain[:9])
    close(scaled[18:], plain[18:] / 32)
    assert (scaled[9:18] < plain[9:18]).all() and (scaled[9:18] > plain[9:18] / 32).all()
    assert YaRN(32.0, 4096).ramp_bounds(64, 150_000.0) == (8, 18)


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        ({}, 1 + 0.1 * log(40)),
        ({"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
        ({"mscale": 0.707, "mscale_all_dim": 0.707}, 1.0),
        ({"mscale": 1.0, "mscale_all_dim": 0.5}, (1 + 0.1 * log(40)) / (1 + 0.05 * log(40))),
        ({"mscale": 0.5}, 1 + 0.05 * log(40)),
        ({"mscale_all_dim": 1.0}, 1.0),
        ({"attention_factor": 1.25, "mscale": 1.0}, 1.25),
    ],
)
def test_yarn_magnitude(options, factor):
    scaled = rope_frequencies(8, scaling=YaRN(40.0, 4096, **options))
    assert scaled.attention_factor == pytest.approx(factor, rel=1e-15)
    assert YaRN(40.0, 4096).magnitude(1.0) ** 2 == pytest.approx((1 + 0.1 * log(40)) ** 2)


def test_yarn_of_factor_one_changes_nothing():
    close(rope_frequencies(16, scaling=YaRN(1.0, 64)).inverse, rope_frequencies(16).inverse)


@pytest.mark.parametrize("high", [4.0, 1.0])
def test_llama3_by_turns(high):
    dim, base, trained = 32, 500_000.0, 8192
    scaled = rope_frequencies(dim, base=base, scaling=Llama3(8.0, 1.0, high, trained)).inverse
    kinds = set()
    for i, value in enumerate(scaled):
        plain = base ** (-2 * i / dim)
        turns = trained / (2 * pi / plain)
        if turns > high:
            expected, kind = plain, "kept"
        elif turns < 1.0:
            expected, kind = plain / 8, "divided"
        else:
            share = (turns - 1.0) / (high - 1.0)
            expected, kind = (1 - share) * plain / 8 + share * plain, "between"
        kinds.add(kind)
        close(value, expected)
    assert kinds == ({"kept", "divided", "between"} if high > 1 else {"kept", "divided"})


def test_longrope_switches_lists_beyond_the_trained_length():
    scaling = LongRoPE((1.0, 2.0), (3.0, 5.0), trained_length=64, factor=32.0)
    from_a_file = LongRoPE([1, 2], np.array([3, 5]), trained_length=64, factor=32.0)
    assert from_a_file == scaling and hash(from_a_file) == hash(scaling)
    plain = rope_frequencies(4).inverse
    for length in (None, 1, 64):
        close(rope_frequencies(4, scaling=scaling, length=length).inverse, plain / [1, 2])
    beyond = rope_frequencies(4, scaling=scaling, length=65)
    close(beyond.inverse, plain / [3, 5])
    assert beyond.attention_factor == pytest.approx(sqrt(1 + log(32) / log(64)), rel=1e-15)
    assert rope_frequencies(
        4, scaling=LongRoPE((1.0, 1.0), (1.0, 1.0), 64, 1.0)
    ).attention_factor == 1  # fmt: skip


@pytest.mark.parametrize("share, turned", [(0.0, 0), (0.25, 2), (0.3, 2), (0.5, 4), (1.0, 8)])
def test_proportional_turns_the_first_pairs_of_the_whole_head(share, turned):
    found = rope_frequencies(16, base=100.0, scaling=Proportional(share, 2.0))
    close(found.inverse, [100 ** (-2 * i / 16) / 2 if i < turned else 0 for i in range(8)])
    assert found.rotary_dim == 16 and found.attention_factor == 1
    x = np.arange(1.0, 33.0).reshape(2, 16)
    rotated = rotate(x, [3, 700], found)
    still = [i for i in range(16) if i % 8 >= turned]  # both channels of a pair
    np.testing.assert_array_equal(rotated[:, still], x[:, still])
    close(np.linalg.norm(rotated, axis=-1), np.linalg.norm(x, axis=-1))
    if share == 1:
        close(found.inverse, rope_frequencies(16, base=100.0, scaling=Linear(2.0)).inverse)


def test_proportional_is_not_a_narrower_rotation():
    """With a quarter turned, pairs are half a head apart and frequencies those of the whole head."""
    x = np.zeros((1, 16))
    x[0, 1] = 1.0
    whole = rotate(x, [1], rope_frequencies(16, scaling=Proportional(0.25)))
    narrow = rotate(x, [1], rope_frequencies(4))
    assert np.flatnonzero(whole).tolist() == [1, 9]
    assert np.flatnonzero(narrow).tolist() == [1, 3]
    assert whole[0, 9] == pytest.approx(np.sin(10_000 ** (-2 / 16)), rel=1e-12)


@pytest.mark.parametrize("heads", [1, 2, 8, 16])
def test_alibi_slopes_of_a_power_of_two(heads):
    close(alibi_slopes(heads), [2 ** (-8 * (j + 1) / heads) for j in range(heads)])


def test_alibi_slopes_of_other_counts_borrow_from_the_power_above():
    """Twelve heads: the eight, then every other of the sixteen."""
    close(
        alibi_slopes(12),
        [2.0**-j for j in range(1, 9)] + [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5],
    )
    for heads in range(1, 40):
        slopes = alibi_slopes(heads)
        assert len(set(slopes)) == len(slopes) == heads and (slopes > 0).all() and (slopes < 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope_frequencies(0), "rotary_dim must be an integer at least 1, got 0"),
        (lambda: rope_frequencies(3), "rotary_dim must be even, got 3"),
        (lambda: rope_frequencies(4, base=1.0), "base must be a finite number above 1, got 1.0"),
        (lambda: rope_frequencies(4, length=-1), "length must be an integer at least 0, got -1"),
        (lambda: rope_frequencies(4, scaling=2.0), "scaling must be one of the scalings or None"),
        (lambda: Frequencies([[1.0]]), "inverse must have 1 axis, got shape (1, 1)"),
        (lambda: Frequencies([1.0], 0.0), "attention_factor must be a finite number above 0"),
        (lambda: Linear(0.5), "factor must be a finite number at least 1, got 0.5"),
        (lambda: NTK(0.0), "alpha must be a finite number at least 1, got 0.0"),
        (lambda: DynamicNTK(0.5, 8), "factor must be a finite number at least 1, got 0.5"),
        (lambda: DynamicNTK(2.0, 0), "trained_length must be an integer at least 1, got 0"),
        (lambda: YaRN(0.0, 8), "factor must be a finite number at least 1, got 0.0"),
        (lambda: YaRN(2.0, 8.5), "trained_length must be an integer at least 1, got 8.5"),
        (lambda: YaRN(2.0, 8, beta_slow=0), "beta_slow must be a finite number above 0, got 0.0"),
        (lambda: YaRN(2.0, 8, beta_fast=1, beta_slow=2),
         "beta_fast must be a finite number at least 2, got 1.0"),
        (lambda: YaRN(2.0, 8, mscale=-1), "mscale must be a finite number at least 0, got -1.0"),
        (lambda: YaRN(2.0, 8, mscale_all_dim=-1), "mscale_all_dim must be a finite number at least"),
        (lambda: YaRN(2.0, 8, attention_factor=0), "attention_factor must be a finite number above"),
        (lambda: Llama3(0.0, 1, 4, 8), "factor must be a finite number at least 1, got 0.0"),
        (lambda: Llama3(8.0, 0, 4, 8), "low_freq_factor must be a finite number above 0, got 0.0"),
        (lambda: Llama3(8.0, 4, 1, 8), "high_freq_factor must be a finite number at least 4"),
        (lambda: Llama3(8.0, 1, 4, 0), "trained_length must be an integer at least 1, got 0"),
        (lambda: LongRoPE((0.0,), (1.0,), 8, 2.0), "short_factor must be positive, got 0.0"),
        (lambda: LongRoPE((1.0,), (1.0,), 1, 2.0), "trained_length must be an integer at least 2"),
        (lambda: LongRoPE((1.0,), (1.0,), 8, 0.5), "factor must be a finite number at least 1"),
        (lambda: rope_frequencies(4, scaling=LongRoPE((1.0,), (1.0, 1.0), 8, 2.0)),
         "short_factor must have one number for each of the 2 pairs, got 1"),
        (lambda: Proportional(1.5), "share must be a finite number at least 0 and at most 1, got 1.5"),
        (lambda: Proportional(0.5, 0.5), "factor must be a finite number at least 1, got 0.5"),
        (lambda: rotate([[1.0]], [0], rope_frequencies(2)),
         "x must have at least the 2 channels that are rotated, got 1"),
        (lambda: rotate(np.zeros((2, 2)), [0], rope_frequencies(2)),
         "positions must be one per vector of x, shape (2,), got (1,)"),
        (lambda: rotate(np.zeros((2, 2)), 0, rope_frequencies(2)),
         "positions must be one per vector of x, shape (2,), got ()"),
        (lambda: rotate(np.zeros((2, 1, 2)), np.zeros((3, 1)), rope_frequencies(2)),
         "positions must broadcast with the leading axes of x, (2, 1), got (3, 1)"),
        (lambda: rotate(np.zeros((1, 2)), [0], rope_frequencies(2), layout="pairs"),
         "layout must be 'half' or 'interleaved', got 'pairs'"),
        (lambda: rotate(np.zeros((1, 2)), [0], [1.0]),
         "frequencies must come from rope_frequencies, got [1.0]"),
        (lambda: alibi_slopes(0), "heads must be an integer at least 1, got 0"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
