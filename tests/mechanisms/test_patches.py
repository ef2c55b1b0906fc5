"""Patches pixel by pixel, positions by formula, resampling by the cubic kernel one point at a time."""

from math import cos, floor, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    embed_patches,
    interpolate_positions,
    patchify,
    sequence_length,
    sincos_positions,
)

small = st.integers(1, 3)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


@given(small, small, small, small, small)
def test_patchify_pixel_by_pixel(channels, rows, columns, high, wide):
    pixels = np.random.default_rng(0).normal(size=(2, channels, rows * high, columns * wide))
    patches = patchify(pixels, (high, wide))
    expected = [
        [
            [
                image[c][r * high + u][s * wide + v]
                for c in range(channels) for u in range(high) for v in range(wide)
            ]
            for r in range(rows) for s in range(columns)
        ]
        for image in pixels
    ]  # fmt: skip
    np.testing.assert_array_equal(patches, expected)
    assert patches.shape[1] == sequence_length(
        (rows * high, columns * wide), (high, wide), class_token=False
    )


def test_embedding_is_a_convolution_whose_stride_is_its_kernel():
    rng = np.random.default_rng(1)
    pixels, kernel = rng.normal(size=(2, 3, 4, 9)), rng.normal(size=(5, 3, 2, 3))
    bias, token, positions = rng.normal(size=5), rng.normal(size=5), rng.normal(size=(7, 5))
    sequence = embed_patches(pixels, kernel, bias, class_token=token, positions=positions)
    for b in range(2):
        close(sequence[b, 0], token + positions[0])
        for n, (r, s) in enumerate((r, s) for r in range(2) for s in range(3)):
            window = pixels[b, :, 2 * r : 2 * r + 2, 3 * s : 3 * s + 3]
            projected = [(kernel[d] * window).sum() + bias[d] for d in range(5)]
            close(sequence[b, n + 1], projected + positions[n + 1])
    close(embed_patches(pixels, kernel), sequence[:, 1:] - bias - positions[1:])


@given(st.integers(1, 4), small, small)
def test_sincos_positions_by_formula(quarter, rows, columns):
    table = sincos_positions(4 * quarter, (rows, columns))
    expected = []
    for row in range(rows):
        for column in range(columns):
            waves = [1 / 10_000 ** (i / quarter) for i in range(quarter)]
            expected.append(
                [sin(column * w) for w in waves] + [cos(column * w) for w in waves]
                + [sin(row * w) for w in waves] + [cos(row * w) for w in waves]
            )  # fmt: skip
    close(table, expected)
    np.testing.assert_array_equal(sincos_positions(8, 3), sincos_positions(8, (3, 3)))


def cubic(x, a=-0.75):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def resampled(table, rows, columns):
    """Each new point from the sixteen old ones around it, edges repeated."""
    old = table.shape[:2]
    result = np.zeros((rows, columns, table.shape[2]))
    for r in range(rows):
        for c in range(columns):
            y, x = (r + 0.5) * old[0] / rows - 0.5, (c + 0.5) * old[1] / columns - 0.5
            for u in range(floor(y) - 1, floor(y) + 3):
                for v in range(floor(x) - 1, floor(x) + 3):
                    inside = min(max(u, 0), old[0] - 1), min(max(v, 0), old[1] - 1)
                    result[r, c] += cubic(y - u) * cubic(x - v) * table[inside]
    return result


@given(*[st.integers(1, 5)] * 4)
def test_interpolation_point_by_point(rows, columns, new_rows, new_columns):
    table = np.random.default_rng(2).normal(size=(rows, columns, 2))
    new = interpolate_positions(table, (new_rows, new_columns))
    close(new, resampled(table, new_rows, new_columns))
    close(interpolate_positions(np.ones((rows, columns, 1)), (new_rows, new_columns)), 1)
    if (rows, columns) == (new_rows, new_columns):
        close(new, table)


def test_interpolation_worked_by_hand():
    """From three to two: the first new centre is at 0.25, with weights −27/256, 225/256, 67/256, −9/256."""
    row = interpolate_positions(np.arange(3.0).reshape(1, 3, 1), (1, 2)).ravel()
    close(row, [(67 - 2 * 9) / 256, 2 - (67 - 2 * 9) / 256])


def test_a_table_of_patches_and_its_class_token():
    rng = np.random.default_rng(3)
    grid, token = rng.normal(size=(3, 3, 2)), rng.normal(size=(1, 2))
    flat = grid.reshape(9, 2)
    new = resampled(grid, 2, 4).reshape(8, 2)
    close(interpolate_positions(flat, (2, 4)), new)
    with_token = interpolate_positions(np.concatenate([token, flat]), (2, 4), class_token=True)
    close(with_token, np.concatenate([token, new]))


def test_sequence_lengths():
    assert sequence_length(224, 16) == 14 * 14 + 1
    assert sequence_length(224, 14) == 16 * 16 + 1
    assert sequence_length((32, 64), (8, 16)) == 4 * 4 + 1
    assert sequence_length(16, 16, class_token=False) == 1


PIXELS, KERNEL = np.zeros((3, 4, 4)), np.zeros((5, 3, 2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: patchify(PIXELS[0], 2), "pixels must have at least 3 axes, got shape (4, 4)"),
        (lambda: patchify(PIXELS, 3), "patch must divide the image (4, 4), got (3, 3)"),
        (lambda: patchify(PIXELS, 0), "patch must be an integer at least 1, got 0"),
        (lambda: patchify(PIXELS, (2, 2, 2)), "patch must be a number or a pair (height, width), got"),
        (lambda: embed_patches(PIXELS, KERNEL[0]), "kernel must have 4 axes, got shape (3, 2, 2)"),
        (lambda: embed_patches(PIXELS, KERNEL[:, :2]), "kernel must have the 3 channels of pixels, got 2"),
        (lambda: embed_patches(PIXELS, np.zeros((5, 3, 3, 3))), "patch must divide the image (4, 4)"),
        (lambda: embed_patches(PIXELS, KERNEL, np.zeros(4)), "bias must have shape (5,), got (4,)"),
        (lambda: embed_patches(PIXELS, KERNEL, class_token=np.zeros(4)),
         "class_token must have shape (5,), got (4,)"),
        (lambda: embed_patches(PIXELS, KERNEL, class_token=np.zeros(5), positions=np.zeros((4, 5))),
         "positions must have shape (5, 5), got (4, 5)"),
        (lambda: sincos_positions(6, 2), "dim must be a multiple of 4, got 6"),
        (lambda: sincos_positions(0, 2), "dim must be an integer at least 1, got 0"),
        (lambda: sincos_positions(4, (2, 0)), "grid must be an integer at least 1, got 0"),
        (lambda: interpolate_positions(np.zeros(4), 2),
         "positions must have shape (rows, columns, dim) or (patch, dim), none empty, got (4,)"),
        (lambda: interpolate_positions(np.zeros((0, 2, 1)), 2), "positions must have shape"),
        (lambda: interpolate_positions(np.zeros((10, 2)), 2),
         "positions must have a square number of rows, got 10"),
        (lambda: interpolate_positions(np.zeros((9, 2)), 2, class_token=True),
         "positions must have a square number of rows besides the class token's, got 8"),
        (lambda: interpolate_positions(np.zeros((1, 2)), 2, class_token=True),
         "positions must have a square number of rows besides the class token's, got 0"),
        (lambda: interpolate_positions(np.zeros((2, 2, 1)), 2, class_token=True),
         "class_token must be False for a (rows, columns, dim) table, got True"),
        (lambda: sequence_length(224, 15), "patch must divide the image (224, 224), got (15, 15)"),
        (lambda: sequence_length(0, 1), "image must be an integer at least 1, got 0"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
