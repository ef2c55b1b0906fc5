"""Patches and positions over a grid, wrong in named ways."""

import math

import numpy as np

from ._reference import (
    embed_patches,
    interpolate_positions,
    patchify,
    sequence_length,
    sincos_positions,
)
from ._registry import convention, mistake

__all__: list[str] = []


def _pair(value):
    return tuple(value) if isinstance(value, tuple | list) else (value, value)


# patchify


@convention("patchify", "channels last inside a patch")
def patches_with_channels_last(pixels, patch):
    """Lay a patch out pixel by pixel, each with its channels.

    Seen in: MAE's targets; a convolution's kernel is laid out channel by channel.
    """
    pixels, (high, wide) = np.asarray(pixels, dtype=float), _pair(patch)
    patches = patchify(pixels, patch)
    inside = patches.reshape(*patches.shape[:-1], pixels.shape[-3], high * wide)
    return np.swapaxes(inside, -1, -2).reshape(patches.shape)


@mistake("patchify", "patches column by column")
def patches_by_column(pixels, patch):
    """Walk down the columns of the grid, while the table of positions walks along its rows.

    Seen in: width and height exchanged in a reshape.
    """
    rows = np.shape(pixels)[-2] // _pair(patch)[0]
    patches = patchify(pixels, patch)
    grid = patches.reshape(*patches.shape[:-2], rows, -1, patches.shape[-1])
    return np.swapaxes(grid, -2, -3).reshape(patches.shape)


@mistake("patchify", "reshaped without moving axes")
def patches_by_reshape(pixels, patch):
    """Reshape at once: the shape is right, and each "patch" is a strip of the flattened image.

    Seen in: a reshape where a transposition is needed.
    """
    return np.asarray(pixels, dtype=float).reshape(patchify(pixels, patch).shape)


# embed_patches


@mistake("embed_patches", "class token last")
def class_token_last(pixels, kernel, bias=None, *, class_token=None, positions=None):
    """Append the class token, so that the head reads a patch and every position is off by one.

    Seen in: exchanged arguments of a concatenation.
    """
    sequence = embed_patches(pixels, kernel, bias, class_token=class_token)
    if class_token is not None:
        sequence = np.roll(sequence, -1, axis=-2)
    return sequence if positions is None else sequence + np.asarray(positions)


@mistake("embed_patches", "class token without a position")
def class_token_without_position(pixels, kernel, bias=None, *, class_token=None, positions=None):
    """Add positions to the patches from the first row on and none to the class token.

    Seen in: tables that have a row for the class token, read by code that adds them before it.
    """
    sequence = embed_patches(pixels, kernel, bias, class_token=class_token)
    if positions is None:
        return sequence
    if class_token is None:
        return sequence + np.asarray(positions)
    added = np.zeros_like(np.asarray(positions, dtype=float))
    added[1:] = np.asarray(positions, dtype=float)[:-1]
    return sequence + added


@mistake("embed_patches", "bias left out")
def patches_without_bias(pixels, kernel, bias=None, **options):
    """Project without the bias that the convolution has.

    Seen in: a kernel reshaped to a matrix, with the bias forgotten.
    """
    return embed_patches(pixels, kernel, **options)


@mistake("embed_patches", "kernel turned around")
def patches_with_a_turned_kernel(pixels, kernel, bias=None, **options):
    """Convolve in the mathematician's sense, with the kernel reversed.

    Seen in: `scipy.signal.convolve` in the place of a layer that correlates.
    """
    turned = np.asarray(kernel, dtype=float)[..., ::-1, ::-1]
    return embed_patches(pixels, turned, bias, **options)


# sincos_positions


@convention("sincos_positions", "row half first")
def sincos_with_the_row_first(dim, grid):
    """Give the first half of the channels to the row.

    Seen in: re-implementations that read "height, width"; mae #18 asks which it is.
    """
    return np.roll(sincos_positions(dim, grid), dim // 2, axis=-1)


def _waves(dim, grid, frequency, join):
    rows, columns = _pair(grid)
    row, column = np.indices((rows, columns)).reshape(2, -1, 1) * frequency
    return join(np.sin(column), np.cos(column), np.sin(row), np.cos(row))


def _halves(*waves):
    return np.concatenate(waves, axis=-1)


@mistake("sincos_positions", "exponent over half the width")
def sincos_over_half_the_width(dim, grid):
    """Divide the exponent by d/2, so that the slowest waves turn too fast.

    Seen in: the denominator of one dimension kept for two.
    """
    return _waves(dim, grid, 10_000.0 ** -(np.arange(dim // 4) / (dim / 2)), _halves)


@convention("sincos_positions", "slowest wave at the base")
def sincos_that_reaches_the_base(dim, grid):
    """Divide the exponent by d/4 − 1, so that the last frequency is 1/10000 itself.

    Seen in: the table of big_vision's ViT, after MoCo v3.
    """
    return _waves(dim, grid, 10_000.0 ** -(np.arange(dim // 4) / max(dim / 4 - 1, 1)), _halves)


@convention("sincos_positions", "sines and cosines alternate")
def sincos_alternating(dim, grid):
    """Put the cosine of each frequency right after its sine.

    Seen in: tables after the one-dimensional formula of Vaswani et al. 2017.
    """

    def join(*waves):
        pairs = (np.stack(pair, axis=-1) for pair in (waves[:2], waves[2:]))
        return np.concatenate([pair.reshape(len(pair), -1) for pair in pairs], axis=-1)

    frequency = 10_000.0 ** -(np.arange(dim // 4) / (dim / 4))
    return _waves(dim, grid, frequency, join)


# interpolate_positions


def _resampled(positions, grid, class_token, matrix):
    """The table resampled by `matrix(size, new size)` along each axis."""
    table = np.asarray(positions, dtype=float)
    kept, flat = table[:0], table.ndim == 2
    if flat:
        kept, table = table[: int(class_token)], table[int(class_token) :]
        side = math.isqrt(len(table))
        table = table.reshape(side, side, -1)
    rows, columns = _pair(grid)
    new = np.einsum(
        "ar,bc,rcd->abd", matrix(table.shape[0], rows), matrix(table.shape[1], columns), table
    )
    return np.concatenate([kept, new.reshape(rows * columns, -1)]) if flat else new


def _centres(size, new_size):
    return (np.arange(new_size) + 0.5) * (size / new_size) - 0.5


def _corners(size, new_size):
    return np.linspace(0, size - 1, new_size) if new_size > 1 else np.zeros(1)


def _weights(size, source, kernel):
    left = np.floor(source).astype(int)
    matrix = np.zeros((len(source), size))
    for tap in range(-1, 3):
        place = np.clip(left + tap, 0, size - 1)
        np.add.at(matrix, (np.arange(len(source)), place), kernel(np.abs(source - left - tap)))
    return matrix


def _cubic(a):
    def kernel(distance):
        near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        far = a * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))

    return kernel


def _linear(distance):
    return np.maximum(1 - distance, 0)


@mistake("interpolate_positions", "corners aligned")
def interpolated_with_corners_aligned(positions, grid, *, class_token=False):
    """Let the outermost points stay where they were, so that the spacing changes.

    Seen in: `align_corners=True`, the default of older interpolation code.
    """

    def matrix(size, new_size):
        return _weights(size, _corners(size, new_size), _cubic(-0.75))

    return _resampled(positions, grid, class_token, matrix)


@convention("interpolate_positions", "linear with corners aligned")
def interpolated_linearly(positions, grid, *, class_token=False):
    """Interpolate between the two neighbours on either side, outermost points fixed.

    Seen in: the published ViT code, by `scipy.ndimage.zoom` of order 1.
    """

    def matrix(size, new_size):
        return _weights(size, _corners(size, new_size), _linear)

    return _resampled(positions, grid, class_token, matrix)


@convention("interpolate_positions", "kernel with a = -0.5")
def interpolated_with_another_kernel(positions, grid, *, class_token=False):
    """Use the cubic kernel that Keys recommends.

    Seen in: Pillow, TensorFlow and JAX; PyTorch and OpenCV take −0.75.
    """

    def matrix(size, new_size):
        return _weights(size, _centres(size, new_size), _cubic(-0.5))

    return _resampled(positions, grid, class_token, matrix)


@convention("interpolate_positions", "an offset of a tenth")
def interpolated_with_an_offset(positions, grid, *, class_token=False):
    """Ask for n' + 0.1 points, so that rounding cannot lose one, and resample at that ratio.

    Seen in: DINO and DINOv2; dinov2 #378.
    """

    def matrix(size, new_size):
        source = (np.arange(new_size) + 0.5) * (size / (new_size + 0.1)) - 0.5
        return _weights(size, source, _cubic(-0.75))

    return _resampled(positions, grid, class_token, matrix)


@mistake("interpolate_positions", "rows and columns exchanged")
def interpolated_to_the_transposed_grid(positions, grid, *, class_token=False):
    """Read the target as width and height.

    Seen in: images that are not square, given in the order of their file format.
    """
    return interpolate_positions(positions, _pair(grid)[::-1], class_token=class_token)


@mistake("interpolate_positions", "class token lost")
def interpolated_without_class_token(positions, grid, *, class_token=False):
    """Resample the grid and forget to put the class token's row back.

    Seen in: a slice that is not undone.
    """
    return interpolate_positions(np.asarray(positions)[int(class_token) :], grid)


# sequence_length


@mistake("sequence_length", "class token forgotten")
def length_without_class_token(image, patch, *, class_token=True):
    """Count the patches only.

    Seen in: 196 for 197 in tables of costs.
    """
    return sequence_length(image, patch, class_token=False)


@mistake("sequence_length", "patches along one side")
def length_of_one_side(image, patch, *, class_token=True):
    """Divide the side and forget the square.

    Seen in: "an image of 224 in patches of 16 gives 14 tokens".
    """
    return _pair(image)[0] // _pair(patch)[0] + int(class_token)


@mistake("sequence_length", "pixels over the patch's side")
def length_over_the_side(image, patch, *, class_token=True):
    """Divide the area of the image by the side of the patch.

    Seen in: 16 taken for the area of a patch of 16 by 16.
    """
    high, wide = _pair(image)
    return high * wide // _pair(patch)[0] + int(class_token)
