"""Pictures that several chapters need, in the book's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import ACCENT, FAINT, INK, MUTED, WARN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["canvas", "draw_mask", "draw_masks"]

# In inches: the width of a page, the side of a mask's cell, and the room beside the cells for labels.
_PAGE, _CELL, _MARGIN = 7.0, 0.28, 0.9

_STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": False,
    "grid.color": FAINT,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


def canvas(width: float = 6.0, height: float = 3.0, *, columns: int = 1) -> tuple[Figure, Any]:
    """A new figure in the book's style, and its axes (an array of them if there are several columns).

    Args:
        width: in inches; a page is seven inches wide.
        height: in inches.
        columns: axes side by side.

    Example:
        >>> fig, axes = canvas(columns=2)
        >>> len(axes)
        2
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]):
        fig = Figure(figsize=(width, height), layout="constrained")
        axes = fig.subplots(1, columns)
    return fig, axes


def draw_mask(
    mask: Any,
    *,
    expected: Any = None,
    queries: Sequence[Any] | None = None,
    keys: Sequence[Any] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draws who reads whom: a row for each query, a column for each key, filled where it may be read.

    Args:
        mask: truth values, queries by keys.
        expected: the right mask, if this one is wrong: where they differ the cell gets a red frame,
            and a key that is read though it must not be is filled red.
        queries: labels of the rows, numbers from zero unless told.
        keys: labels of the columns, likewise.
        title: stands above.
        ax: axes to draw into, if the picture is part of another.

    Raises:
        ValueError: the mask is not two-dimensional or holds other than truth values.

    Example:
        >>> fig = draw_mask([[True, False], [True, True]], title="causal")
    """
    mask = _truth("mask", mask)
    right = mask if expected is None else _truth("expected", expected)
    if right.shape != mask.shape:
        raise ValueError(f"expected must have the mask's shape {mask.shape}, and it has {right.shape}")
    rows, columns = mask.shape
    if ax is None:
        _, ax = canvas(_MARGIN + _CELL * columns, _MARGIN + _CELL * rows)
    for i, j in np.ndindex(rows, columns):
        wrong = mask[i, j] != right[i, j]
        fill = (WARN if wrong else ACCENT) if mask[i, j] else "none"
        edge, width = (WARN, 1.5) if wrong else (FAINT, 0.8)
        ax.add_patch(_cell(j, i, facecolor=fill, edgecolor=edge, linewidth=width))
    ax.set(xlim=(-0.1, columns + 0.1), ylim=(rows + 0.1, -0.1), aspect="equal")
    ax.set(xlabel="key", ylabel="query")
    ax.set_xticks(np.arange(columns) + 0.5, range(columns) if keys is None else keys)
    ax.set_yticks(np.arange(rows) + 0.5, range(rows) if queries is None else queries)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if title:
        ax.set_title(title, fontsize=11)
    return ax.figure


def draw_masks(masks: Mapping[str, Any], *, expected: Any = None, **labels: Any) -> Figure:
    """Draws masks side by side, each under its name; see `draw_mask`. Cells shrink to the page's width.

    Example:
        >>> fig = draw_masks({"dense": np.ones((2, 2), bool), "causal": np.tri(2, dtype=bool)})
    """
    shapes = [_truth(name, mask).shape for name, mask in masks.items()]
    margins, cells = _MARGIN * len(masks), sum(columns for _, columns in shapes)
    cell = min(_CELL, (_PAGE - margins) / cells)
    height = _MARGIN + 0.2 + cell * max(rows for rows, _ in shapes)
    fig, axes = canvas(margins + cell * cells, height, columns=len(masks))
    for ax, (name, mask) in zip(np.atleast_1d(axes), masks.items(), strict=True):
        draw_mask(mask, expected=expected, title=name, ax=ax, **labels)
    return fig


def _truth(name: str, mask: Any) -> np.ndarray:
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype != bool or array.size == 0:
        told = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"{name} must be truth values, queries by keys, and it is {told}")
    return array


def _cell(x: float, y: float, **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, **style)
