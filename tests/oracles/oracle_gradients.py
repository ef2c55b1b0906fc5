"""Gradients of the published cases, by PyTorch's automatic differentiation in float64.

Each function of `in_torch` is a mechanism, term by term; its results are held to the reference, and
then it is differentiated. The gradient published for a result y is that of Σ g·y, with the
fixed numbers g of `archcards.cases.weights`.
"""

import numpy as np
import pytest
import torch
from comparison import gradients
from float64 import float64
from in_torch import FUNCTIONS

from archcards import cases
from archcards.cases.bounds import EPSILON, bound, nearby


def differentiable(case):
    """Whether a case has gradients that say something."""
    # Long cases say nothing new; a row that reads nothing has no gradient; and of logits of several
    # hundred, the gradient of a log-sum-exp in float32 is what the rounding of the sum makes of it.
    return case.size <= 2000 and not case.arguments.get("empty") and case.name != "large logits"


def real(case):
    """The arguments to differentiate by, and where a number is infinite, none."""
    return {
        name: value
        for name, value in case.arguments.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all()
    }


def differentiate(mechanism, case, variables, weights):
    """The results, and of each, weighted, the gradient with respect to each variable it depends on."""
    with float64(gradients=True):
        leaves = {name: torch.tensor(value).requires_grad_() for name, value in variables.items()}
        fixed = {name: _tensors(value) for name, value in case.arguments.items()}
        found = FUNCTIONS[mechanism](**{**fixed, **leaves})
        found = found if isinstance(found, tuple) else (found,)
        results, gradients = {}, {}
        for (name, weight), y in zip(weights.items(), found, strict=True):
            results[name] = y.detach().numpy()
            slopes = torch.autograd.grad(
                (torch.tensor(weight) * y).sum(), list(leaves.values()), retain_graph=True, allow_unused=True
            )
            gradients[name] = {n: g.numpy() for n, g in zip(leaves, slopes, strict=True) if g is not None}
    return results, gradients


def _tensors(value):
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_tensors, value))
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("mechanism", FUNCTIONS)
def test_gradients(mechanism):
    published = cases.of(mechanism)
    for case in filter(differentiable, published.cases):
        variables, weights = real(case), cases.weights(published, case)
        results, found = differentiate(mechanism, case, variables, weights)
        for name, expected in published.expected(case).items():
            error = abs(results[name] - expected).max()
            assert error <= 1e-10 * max(1, abs(expected).max()), (case.name, name)
        # As the bounds of results, with the weights among the numbers that are moved.
        exact = {"arguments/" + n: x for n, x in variables.items()} | {"weights/" + n: x for n, x in weights.items()}
        near = {
            dtype: [differentiate(mechanism, case, *_parted(moved))[1] for moved in nearby(exact, dtype)]
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
