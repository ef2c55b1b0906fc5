"""The published gradients: what the results of a case change by with its arguments.

They come from automatic differentiation of implementations written for the purpose and held to the
reference (`make oracles`), and are kept in `results/`.
"""

import functools
import json
from pathlib import Path

import numpy as np

from ..checkout import NotACheckout, find_checkout
from ._registry import Case, Published
from .numbers import numbers

__all__ = ["gradient_bounds", "gradients", "weights"]


def weights(published: Published, case: Case) -> dict[str, np.ndarray]:
    """What each result is multiplied by before all are summed: the gradient that comes from behind.

    The first result has `numbers(*result.shape, seed=90)`, the second seed 91 and so on.

    Example:
        >>> from archcards import cases
        >>> norm = cases.of("rms_norm")
        >>> weights(norm, norm.cases[0])["output"].shape
        (2, 3, 6)
    """
    return {
        name: numbers(*result.shape, seed=90 + i)
        for i, (name, result) in enumerate(published.expected(case).items())
    }


def gradients(published: Published, case: Case) -> dict[str, dict[str, np.ndarray]]:
    """The gradient of the sum of each weighted result with respect to each real argument.

    A result that does not depend on an argument has none for it. What several results change by
    together is the sum.

    Returns:
        By result, and in that by argument; empty if there are none for the case.

    Example:
        >>> from archcards import cases
        >>> norm = cases.of("rms_norm")
        >>> {result: list(found) for result, found in gradients(norm, norm.cases[1]).items()}
        {'output': ['weight', 'x']}
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    for result, arguments in _described(published, case).items():
        found[result] = {name: _arrays()[entry["array"]] for name, entry in arguments.items()}
    return found


def gradient_bounds(published: Published, case: Case, dtype: str) -> dict[str, dict[str, float]]:
    """What each gradient may be off by in a narrower dtype: an absolute error, like `error_bounds`."""
    return {
        result: {name: entry["bound"][dtype] for name, entry in arguments.items()}
        for result, arguments in _described(published, case).items()
    }


def _path(name):
    """In a checkout the committed results, elsewhere the copy in the installed package."""
    installed = Path(__file__).with_name(name)
    if installed.is_file():
        return installed
    try:
        return find_checkout() / "results" / name
    except NotACheckout:
        return installed


@functools.cache
def _arrays():
    with np.load(_path("gradients.npz"), allow_pickle=False) as archive:
        return dict(archive)


@functools.cache
def _manifest():
    """What is in the file: mechanism and case → result → argument → entry, as far as it is there."""
    path, found = _path("gradients.json"), {}
    if not path.is_file():
        return found
    for key, entry in json.loads(path.read_text(encoding="utf-8"))["gradients"].items():
        mechanism, case, result, argument = key.split("/")
        found.setdefault((mechanism, case), {}).setdefault(result, {})[argument] = entry | {"array": key}
    return found


def _described(published, case):
    return _manifest().get((published.mechanism, case.slug), {})
