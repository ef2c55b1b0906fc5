"""Images as sequences: patches, their embedding, and position tables over a grid."""

import numpy as np
from einops import einsum, rearrange
from jaxtyping import Float
from numpy import ndarray

from ._checks import integer, real_array

__all__ = [
    "embed_patches",
    "interpolate_positions",
    "patchify",
    "sequence_length",
    "sincos_positions",
]


def _pair(name: str, value) -> tuple[int, int]:
    """Height and width, from a pair or one number for both."""
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{name} must be a number or a pair (height, width), got {value!r}")
    for side in pair:
        integer(name, side, minimum=1)
    return int(pair[0]), int(pair[1])


def _grid(image: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    if image[0] % patch[0] or image[1] % patch[1]:
        raise ValueError(f"patch must divide the image {image}, got {patch}")
    return image[0] // patch[0], image[1] // patch[1]


def patchify(
    pixels: Float[ndarray, "*batch channel height width"], patch: int | tuple[int, int]
) -> Float[ndarray, "*batch patch feature"]:
    r"""Cut an image into patches, row by row; inside a patch, channel by channel.

    Feature $(c, u, v)$ of patch $(r, s)$ is pixel $(c,\; r p_h + u,\; s p_w + v)$.

    Raises:
        ValueError: If the patch does not divide the image.

    Source:
        Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.1; the order inside a patch is
        that of a convolution's kernel.

    Example:
        >>> patchify(np.arange(8.0).reshape(1, 2, 4), 2).tolist()
        [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    pixels = real_array("pixels", pixels, min_ndim=3)
    high, wide = _pair("patch", patch)
    _grid(pixels.shape[-2:], (high, wide))
    return rearrange(pixels, "... c (r u) (s v) -> ... (r s) (c u v)", u=high, v=wide)


def embed_patches(
    pixels: Float[ndarray, "*batch channel height width"],
    kernel: Float[ndarray, "dim channel patch_height patch_width"],
    bias: Float[ndarray, " dim"] | None = None,
    *,
    class_token: Float[ndarray, " dim"] | None = None,
    positions: Float[ndarray, "sequence dim"] | None = None,
) -> Float[ndarray, "*batch sequence dim"]:
    r"""Project each patch, put the class token first, add positions.

    $$z = [\,x_\text{class};\; E x_1 + b;\; \dots;\; E x_N + b\,] + P$$

    Args:
        pixels: The image.
        kernel: $E$, as the kernel of a convolution whose stride is its size: the patch.
        bias: $b$, none by default.
        class_token: None by default.
        positions: $P$, one row per record, the class token's included; none by default.

    Raises:
        ValueError: If the kernel does not fit the image, or a table has another width or length.

    Source:
        Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.1.

    Example:
        >>> embed_patches(np.ones((1, 2, 4)), np.ones((1, 1, 2, 2)), class_token=[7.0]).tolist()
        [[7.0], [4.0], [4.0]]
    """
    pixels = real_array("pixels", pixels, min_ndim=3)
    kernel = real_array("kernel", kernel, ndim=4)
    dim, channels, *patch = kernel.shape
    if channels != pixels.shape[-3]:
        raise ValueError(f"kernel must have the {pixels.shape[-3]} channels of pixels, got {channels}")
    records = _grid(pixels.shape[-2:], _pair("the kernel's patch", patch))
    length = records[0] * records[1] + (class_token is not None)
    for name, value, shape in (
        ("bias", bias, (dim,)), ("class_token", class_token, (dim,)),
        ("positions", positions, (length, dim)),
    ):
        if value is not None and real_array(name, value).shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {np.shape(value)}")

    flat = rearrange(kernel, "dim c u v -> dim (c u v)")
    sequence = einsum(patchify(pixels, tuple(patch)), flat, "... n f, dim f -> ... n dim")
    if bias is not None:
        sequence = sequence + np.asarray(bias)
    if class_token is not None:
        first = np.broadcast_to(np.asarray(class_token, float), (*sequence.shape[:-2], 1, dim))
        sequence = np.concatenate([first, sequence], axis=-2)
    return sequence if positions is None else sequence + np.asarray(positions)


def sincos_positions(dim: int, grid: int | tuple[int, int]) -> Float[ndarray, "patch dim"]:
    r"""Fixed positions of a grid, row by row: sines and cosines of the column, then of the row.

    $$[\sin c\,\omega,\; \cos c\,\omega,\; \sin r\,\omega,\; \cos r\,\omega], \qquad
    \omega_i = 10000^{-i/(d/4)}$$

    Args:
        dim: $d$, a multiple of 4.
        grid: Rows and columns, or one number for both.

    Raises:
        ValueError: If the width is not a positive multiple of 4.

    Source:
        He et al. 2021, arXiv 2111.06377, in its published code (whose first half is the column).

    Example:
        >>> sincos_positions(4, (1, 2)).round(4).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.0, 1.0]]
    """
    integer("dim", dim, minimum=1)
    if dim % 4:
        raise ValueError(f"dim must be a multiple of 4, got {dim}")
    rows, columns = _pair("grid", grid)
    frequency = 10_000.0 ** -(np.arange(dim // 4) / (dim / 4))
    row, column = np.indices((rows, columns)).reshape(2, -1, 1) * frequency
    return np.concatenate([np.sin(column), np.cos(column), np.sin(row), np.cos(row)], axis=-1)


def _bicubic(size: int, new_size: int) -> Float[ndarray, "new_size size"]:
    """The matrix that resamples an axis: cubic convolution with a = −0.75, corners not aligned."""
    a = -0.75
    source = (np.arange(new_size) + 0.5) * (size / new_size) - 0.5  # centres meet centres
    left = np.floor(source).astype(int)
    matrix = np.zeros((new_size, size))
    for tap in range(-1, 3):
        distance = np.abs(source - (left + tap))
        near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        far = a * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        weight = np.where(distance <= 1, near, far)
        np.add.at(matrix, (np.arange(new_size), np.clip(left + tap, 0, size - 1)), weight)
    return matrix


def interpolate_positions(
    positions: Float[ndarray, "*table dim"],
    grid: int | tuple[int, int],
    *,
    class_token: bool = False,
) -> Float[ndarray, "*new_table dim"]:
    r"""Resample a learned table of positions to another grid, bicubically.

    $$P'_j = \sum_t w(x_j - t)\, P_t, \qquad x_j = (j + \tfrac12)\,\frac{n}{n'} - \tfrac12$$

    along each axis, with the cubic kernel of $a = -0.75$ and edges repeated: corners are not
    aligned, and nothing is smoothed when the grid shrinks.

    Args:
        positions: `(rows, columns, dim)`, or `(patch, dim)` of a square grid, row by row; the
            result has as many axes.
        grid: The new rows and columns, or one number for both.
        class_token: Whether the first row of a `(patch, dim)` table belongs to the class token,
            which has no place on the grid and is kept as it is.

    Raises:
        ValueError: If a `(patch, dim)` table does not belong to a square grid, or a class token is
            announced for a grid.

    Source:
        Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.2; Keys 1981 for the kernel; the
        convention is that of PyTorch's `interpolate(mode="bicubic")`.

    Example:
        >>> interpolate_positions(np.arange(3.0).reshape(1, 3, 1), (1, 2)).ravel().tolist()
        [0.19140625, 1.80859375]
    """
    table = real_array("positions", positions)
    rows, columns = _pair("grid", grid)
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise ValueError(
            "positions must have shape (rows, columns, dim) or (patch, dim), none empty, "
            f"got {table.shape}"
        )
    if table.ndim == 3:
        if class_token:
            raise ValueError("class_token must be False for a (rows, columns, dim) table, got True")
        return einsum(
            _bicubic(table.shape[0], rows), _bicubic(table.shape[1], columns), table,
            "r row, c column, row column dim -> r c dim",
        )
    kept, patches = table[: int(class_token)], table[int(class_token) :]
    side = round(len(patches) ** 0.5)
    if side * side != len(patches) or side == 0:
        besides = " besides the class token's" if class_token else ""
        raise ValueError(
            f"positions must have a square number of rows{besides}, got {len(patches)} "
            "(give (rows, columns, dim) for other grids, class_token=True for a class token's row)"
        )
    resized = interpolate_positions(patches.reshape(side, side, -1), (rows, columns))
    return np.concatenate([kept, rearrange(resized, "r c dim -> (r c) dim")])


def sequence_length(
    image: int | tuple[int, int], patch: int | tuple[int, int], *, class_token: bool = True
) -> int:
    r"""How many records an image becomes: its patches, and the class token.

    $$\dfrac{H}{p_h} \cdot \dfrac{W}{p_w} + 1$$

    Raises:
        ValueError: If the patch does not divide the image.

    Source:
        Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.1.

    Example:
        >>> sequence_length(224, 16), sequence_length((32, 48), (16, 8), class_token=False)
        (197, 12)
    """
    rows, columns = _grid(_pair("image", image), _pair("patch", patch))
    return rows * columns + int(class_token)
