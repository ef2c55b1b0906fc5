"""The published gradients: what the results of a case change by with its arguments.

They come from automatic differentiation of implementations written for the purpose and held to the
reference (`make oracles`), and are kept in `results/`.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np

from ..checkout import NotACheckout, find_checkout
from ..mechanisms import Frequencies
from ._registry import Case, Published
from .numbers import numbers

__all__ = [
    "AT_A_TIE",
    "WITHOUT_GRADIENTS",
    "along",
    "differentiable",
    "gradient_bounds",
    "gradients",
    "moved",
    "parts",
    "variables",
    "weights",
]

_MASK = "its result is a mask: whether a key may be read"
_WHOLE = "its result is a whole number"
_TABLE = "its result is a table made from whole numbers and settings, none of which is learnt"

WITHOUT_GRADIENTS = {
    **dict.fromkeys(
        (
            "causal", "chunked_causal", "completed_blocks", "select_blocks", "select_top_k",
            "sliding_window", "with_global", "with_sinks",
        ),
        _MASK,
    ),
    **dict.fromkeys(("capacity", "edges", "sequence_length"), _WHOLE),
    **dict.fromkeys(("alibi_slopes", "rope_frequencies", "sincos_positions"), _TABLE),
    "fit_parametric": "its result is where an optimiser ends, known to a few digits only",
}  # fmt: skip
"""Mechanisms for which no gradients are published, with the reason; for all others there are some."""

AT_A_TIE = {
    ("mixture", "dropped tokens"),  # whether a weight of zero is one that is learnt
    ("output_distribution", "certain"),
    ("output_distribution", "equal"),
    ("route_top_k", "ties to the lower index"),
    ("verify", "a token that the target never says"),
    ("verify", "the uniform equals the ratio"),
}
"""Cases, by mechanism and name, in which more than one gradient may be meant."""


def differentiable(published: Published, case: Case) -> bool:
    """Whether gradients are published for a case: whether they say something.

    There are none at a tie and where a result is infinite or a row reads nothing. Long cases say nothing
    new; and of logits of several hundred, the gradient of a log-sum-exp in float32 is what the rounding
    of the sum makes of it.
    """
    if published.mechanism in WITHOUT_GRADIENTS or (published.mechanism, case.name) in AT_A_TIE:
        return False
    if case.size > 2000 or case.arguments.get("empty") or case.name == "large logits":
        return False
    return all(np.isfinite(result).all() for result in published.expected(case).values())


def variables(published: Published, case: Case) -> dict[str, np.ndarray]:
    """The real numbers of a case with respect to which its results are differentiated.

    A field of a record is named `weights.up_key`, a part of a tuple `state.0`. Arguments with an
    infinite number in them are left out, and so are rotary frequencies, a table that is not learnt.

    Example:
        >>> from archcards import cases
        >>> mixture = cases.of("mixture")
        >>> list(variables(mixture, mixture.cases[0]))
        ['x', 'routing.weights']
    """
    found: dict[str, np.ndarray] = {}
    for name, value in case.arguments.items():
        inside = dict(_real(name, value, name in published.variables))
        if all(np.isfinite(array).all() for array in inside.values()):
            found |= inside
    return found


def moved(case: Case, arrays: Mapping[str, np.ndarray]) -> Case:
    """The case with other numbers in place of some, named as `variables` names them.

    Example:
        >>> from archcards import cases
        >>> mixture = cases.of("mixture")
        >>> near = moved(mixture.cases[0], {"routing.weights": np.zeros((4, 2))})
        >>> float(mixture.results(mixture.reference, near)["output"].max())
        0.0
    """
    return replace(case, arguments={n: _placed(n, x, arrays) for n, x in case.arguments.items()})


def along(published: Published, name: str, array: np.ndarray) -> np.ndarray:
    """A gradient, or a direction, as far as the argument may be moved: a distribution keeps its sum.

    Example:
        >>> from archcards import cases
        >>> along(cases.of("residual"), "target", np.array([3.0, 1.0, 2.0]))
        array([ 1., -1.,  0.])
    """
    return array - array.mean(-1, keepdims=True) if name in published.distributions else array


def parts(value: object) -> dict[str, object]:
    """The fields of a record or the parts of a tuple by name; none of what is neither."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return dict(zip(names, value, strict=True))
    return {}


def _real(name, value, numbers_too):
    """What is real in a value, by name."""
    array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    if array or numbers_too and isinstance(value, float):
        yield name, np.asarray(value)
    elif not isinstance(value, Frequencies):
        for part, inside in parts(value).items():
            yield from _real(f"{name}.{part}", inside, numbers_too)


def _placed(name, value, arrays):
    if name in arrays:
        return arrays[name] if isinstance(value, np.ndarray) else float(arrays[name])
    if not any(other.startswith(f"{name}.") for other in arrays):
        return value
    inside = {part: _placed(f"{name}.{part}", x, arrays) for part, x in parts(value).items()}
    if is_dataclass(value):
        return replace(value, **inside)
    return value._replace(**inside) if hasattr(value, "_fields") else tuple(inside.values())


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

    A result that does not depend on an argument has none for it; if no result does, because the
    argument only chooses, the first has zeros. What several results change by together is the sum.

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
