"""How far an array is from what it should be, and where it is first too far."""

from collections.abc import Sequence

import numpy as np

__all__ = ["difference"]


def difference(
    name: str, found: np.ndarray, wanted: np.ndarray, bound: float, axes: Sequence[str] = ()
) -> tuple[float, str]:
    """Compare an array with the expected one.

    Args:
        name: What the array is called in words.
        found: The array.
        wanted: What it should be. Infinities and NaN must stand in the same places.
        bound: The largest error that counts as equal.
        axes: Names of the axes, as far as they have some.

    Returns:
        The largest error, relative to the largest expected magnitude where that exceeds 1 and
        infinite where shapes differ or a number is missing; and the first error beyond the bound in
        words, empty if there is none.

    Example:
        >>> difference("output", np.array([1.0, 5.0]), np.array([1.0, 4.0]), 0.1, ["time"])
        (0.25, 'output[1] (time 1) is 5, not 4')
        >>> difference("loss", np.array(-0.0), np.array(1.0), 0.1)
        (1.0, 'loss is 0, not 1')
    """
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return np.inf, f"{name} has shape {found.shape}, the reference {wanted.shape}"
    if found.dtype.kind not in "fiub":
        return np.inf, f"{name} has dtype {found.dtype}"
    found, wanted = found.astype(float), wanted.astype(float)
    unit = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        off = np.abs(found - wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    off = np.where(same, 0.0, np.where(np.isnan(off), np.inf, off)) / unit
    wrong = off > bound
    if not wrong.any():
        return float(off.max(initial=0.0)), ""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = f"{name}[{', '.join(map(str, place))}]" if place else name
    words = ", ".join(f"{axis} {i}" for axis, i in zip(axes, place, strict=False))
    values = f"is {_told_apart(found[place], wanted[place])}"
    return float(off.max()), f"{at}{f' ({words})' if words else ''} {values}"


def _told_apart(found: float, wanted: float) -> str:
    """Two numbers in as few digits as show that they differ, from six on."""
    for digits in range(6, 18):
        # Of numbers that differ, neither differs by the sign of a zero.
        one, other = f"{found + 0.0:.{digits}g}", f"{wanted + 0.0:.{digits}g}"
        if one != other:
            break
    return f"{one}, not {other}"
