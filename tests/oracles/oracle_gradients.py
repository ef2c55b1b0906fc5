"""Gradients of the published cases, by PyTorch's automatic differentiation in float64.

Each function of `in_torch` is a mechanism, term by term; its results are held to the reference, and
then it is differentiated. The gradient published for a result y is that of Σ g·y, with the
fixed numbers g of `archcards.cases.weights`.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from comparison import gradients
from float64 import float64
from in_torch import FUNCTIONS

from archcards import cases
from archcards.cases import along
from archcards.cases.bounds import EPSILON, bound, nearby
from archcards.cases.derivatives import differentiable, parts
from archcards.libraries import Torch

TORCH = Torch("float64")


def differentiate(published, case, variables, weights):
    """The results, and of each, weighted, the gradient with respect to each variable it depends on."""
    with float64(gradients=True):
        leaves = {name: torch.tensor(value).requires_grad_() for name, value in variables.items()}
        given = {name: _in_torch(name, value, leaves) for name, value in case.arguments.items()}
        found = FUNCTIONS[published.mechanism](**given)
        found = found if isinstance(found, tuple) else (found,)
        results = {name: y.detach().numpy() for name, y in zip(weights, found, strict=True)}
        slopes = {
            name: _slopes(leaves, weight, y)
            for (name, weight), y in zip(weights.items(), found, strict=True)
            if y.requires_grad
        }
    reached = {name for by_argument in slopes.values() for name in by_argument}
    first = next(iter(slopes.values()))
    first |= {name: np.zeros_like(x) for name, x in variables.items() if name not in reached}
    return results, {
        result: {name: along(published, name, slope) for name, slope in by_argument.items()}
        for result, by_argument in slopes.items()
    }


def _slopes(leaves, weight, y):
    found = torch.autograd.grad(
        (torch.tensor(weight) * y).sum(), list(leaves.values()), retain_graph=True, allow_unused=True
    )
    return {name: slope.numpy() for name, slope in zip(leaves, found, strict=True) if slope is not None}


def _in_torch(name, value, leaves):
    """A value with tensors for arrays: variables among them, records as plain namespaces."""
    if name in leaves:
        return leaves[name]
    if isinstance(value, np.ndarray):
        return torch.tensor(value)
    if isinstance(value, list) and callable(value[0]):
        return [TORCH.function(one) for one in value]
    if callable(value):
        return TORCH.function(value)
    inside = {part: _in_torch(f"{name}.{part}", x, leaves) for part, x in parts(value).items()}
    if not inside:
        return value
    plain = isinstance(value, tuple) and not hasattr(value, "_fields")
    return tuple(inside.values()) if plain else SimpleNamespace(**inside)


@pytest.mark.parametrize("mechanism", FUNCTIONS)
def test_gradients(mechanism):
    published = cases.of(mechanism)
    for case in published.cases:
        if not differentiable(published, case):
            continue
        variables, weights = cases.variables(published, case), cases.weights(published, case)
        results, found = differentiate(published, case, variables, weights)
        for name, expected in published.expected(case).items():
            error = abs(results[name] - expected).max()
            assert error <= 1e-12 * max(1, abs(expected).max()), (case.name, name)
        # As the bounds of results, with the weights among the numbers that are moved.
        exact = {"arguments/" + n: x for n, x in variables.items()} | {"weights/" + n: x for n, x in weights.items()}
        near = {
            dtype: [differentiate(published, case, *_parted(moved))[1] for moved in nearby(exact, dtype)]
            for dtype in EPSILON
        }
        for result, by_argument in found.items():
            for name, gradient in by_argument.items():
                assert np.isfinite(gradient).all(), (case.name, result, name)
                size = _size(weights[result]) * _size(results[result]) / _size(variables[name])
                bounds = {
                    # Two digits, rounded up. A backward pass rounds twice: what it is given, and itself.
                    dtype: float(f"{2.1 * bound(gradient, [m[result][name] for m in moved], dtype, size):.1e}")
                    for dtype, moved in near.items()
                }
                gradients(mechanism, case.slug, result, name, gradient, bounds)


def _size(array):
    return abs(array).max(initial=0.0) or 1.0


def _parted(moved):
    """What stands under `arguments/` and under `weights/`."""
    return [
        {name.removeprefix(kind): x for name, x in moved.items() if name.startswith(kind)}
        for kind in ("arguments/", "weights/")
    ]
