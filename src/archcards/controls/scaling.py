"""Fits of scaling laws, wrong in named ways."""

from dataclasses import replace

import numpy as np

from ._reference import (
    Allocation,
    ParametricLaw,
    PowerLaw,
    compute_optimal,
    fit_parametric,
    fit_power_law,
    parametric_loss,
    power_law,
)
from ._registry import convention, mistake

__all__: list[str] = []


# power_law


@mistake("power_law", "exponent with its sign kept")
def law_with_the_slope_as_exponent(points):
    """Take the slope in log space for α, where the law says C^(−α).

    Seen in: the two ways of writing the law, mixed.
    """
    law = power_law(points)
    return PowerLaw(law.A, -law.alpha)


@mistake("power_law", "slope without logarithms")
def law_with_a_linear_slope(points):
    """Take the difference of losses over the difference of compute.

    Seen in: a straight line drawn on a plot whose axes are logarithmic.
    """
    (first, first_loss), (second, second_loss) = points
    alpha = (first_loss - second_loss) / (second - first)
    return PowerLaw(first_loss * first**alpha, alpha)


@mistake("power_law", "two bases of logarithms")
def law_with_two_bases(points):
    """Divide a natural logarithm by a decimal one.

    Seen in: `log` and `log10` in one formula, a slip that shapes do not catch.
    """
    law = power_law(points)
    alpha = law.alpha * np.log(10)
    first, first_loss = points[0]
    return PowerLaw(first_loss * first**alpha, alpha)


# fit_power_law


@mistake("fit_power_law", "compute regressed on loss")
def fit_of_compute_on_loss(compute, loss):
    """Minimise errors in compute and invert the slope: steeper the noisier the points.

    Seen in: exchanged arguments of a regression.
    """
    inverse = fit_power_law(loss, compute)
    return PowerLaw(inverse.A ** (1 / inverse.alpha), 1 / inverse.alpha)


@mistake("fit_power_law", "through the first and last point")
def fit_through_the_ends(compute, loss):
    """Use two points of many.

    Seen in: slopes read off a plot.
    """
    order = np.argsort(compute)
    ends = [order[0], order[-1]]
    return power_law(list(zip(np.asarray(compute)[ends], np.asarray(loss)[ends], strict=True)))


@mistake("fit_power_law", "through the origin of log space")
def fit_without_a_coefficient(compute, loss):
    """Fit the exponent alone, with A = 1.

    Seen in: a regression without an intercept.
    """
    x, y = np.log(compute), np.log(loss)
    return PowerLaw(1.0, -float(x @ y / (x @ x)))


# parametric_loss


@mistake("parametric_loss", "floor left out")
def loss_without_its_floor(N, D, law):
    """Let the loss fall to zero with size and data.

    Seen in: pure power laws extended to three terms.
    """
    return parametric_loss(N, D, replace(law, E=0.0))


@mistake("parametric_loss", "exponents exchanged")
def loss_with_exponents_exchanged(N, D, law):
    """Give the exponent of the data to the parameters.

    Seen in: exchanged arguments, a slip that shapes do not catch.
    """
    return parametric_loss(N, D, replace(law, alpha=law.beta, beta=law.alpha))


# fit_parametric


@mistake("fit_parametric", "squares instead of Huber's loss")
def fit_of_squares(N, D, loss, *, delta=1e-3):
    """Let an outlier pull as hard as its square.

    Seen in: least squares in log space; Besiroglu et al. 2024 (arXiv 2404.10102) show how far a few
    points move B.
    """
    return fit_parametric(N, D, loss, delta=np.inf)


@mistake("fit_parametric", "printed with two decimals")
def fit_rounded_as_printed(N, D, loss, *, delta=1e-3):
    """Round the exponents to two decimals and the coefficients to one, as a paper prints them.

    Seen in: arXiv 2203.15556, whose rounded parameters do not reproduce its own optimum
    (arXiv 2404.10102).
    """
    law = fit_parametric(N, D, loss, delta=delta)
    return ParametricLaw(
        A=round(law.A, 1), B=round(law.B, 1), E=round(law.E, 2),
        alpha=round(law.alpha, 2), beta=round(law.beta, 2),
    )  # fmt: skip


@mistake("fit_parametric", "averaged, and so stopped early")
def fit_stopped_early(N, D, loss, *, delta=1e-3):
    """Minimise the mean of the Huber losses until a step gains less than 2·10⁻⁹, an optimiser's usual
    tolerance: the mean is so small that the first steps satisfy it.

    Seen in: the fit of arXiv 2203.15556, as arXiv 2404.10102 traced it.
    """
    n, d, target = np.log(N), np.log(D), np.log(loss)

    def mean(x):
        a, b, e, alpha, beta = x
        terms = np.stack([a - alpha * n, b - beta * d, np.full_like(n, e)])
        total = np.logaddexp.reduce(terms, axis=0)
        share, error = np.exp(terms - total), total - target
        slope = np.stack([*share, -n * share[0], -d * share[1]])
        inside = np.clip(error, -delta, delta)
        return np.mean(inside * (error - inside / 2)), slope @ inside / len(n)

    # From the published grid of starts, the one that is best to begin with.
    grid = np.meshgrid([0, 5, 10], [0, 5, 10], [0, 0.5, 1], [0, 0.5, 1], [0, 0.5, 1])
    x = min(np.stack(grid, axis=-1).reshape(-1, 5), key=lambda x: mean(x)[0])
    (value, gradient), inverse = mean(x), np.eye(5)
    while True:
        step, reach = -inverse @ gradient, 1.0
        while mean(x + reach * step)[0] > value and reach > 1e-9:
            reach /= 2
        moved = reach * step
        new, new_gradient = mean(x + moved)
        if not value - new > 2e-9:
            return ParametricLaw(
                A=float(np.exp(x[0])), B=float(np.exp(x[1])), E=float(np.exp(x[2])),
                alpha=max(float(x[3]), 1e-9), beta=max(float(x[4]), 1e-9),
            )  # fmt: skip
        change = new_gradient - gradient
        if moved @ change > 0:
            project = np.eye(5) - np.outer(moved, change) / (moved @ change)
            inverse = project @ inverse @ project.T + np.outer(moved, moved) / (moved @ change)
        x, value, gradient = x + moved, new, new_gradient


# compute_optimal


@mistake("compute_optimal", "training counted as 2ND")
def optimum_of_a_forward_pass(C, law):
    """Forget the backward pass: three times the tokens for the same budget.

    Seen in: scaling-book, whose utilisation was three times too small for it.
    """
    return compute_optimal(3 * C, law)


@mistake("compute_optimal", "exponents exchanged")
def optimum_with_exponents_exchanged(C, law):
    """Let parameters grow with C^(α/(α+β)): the exponent of the other one.

    Seen in: the paper's a and b, where a belongs to N and contains β.
    """
    swapped = replace(law, alpha=law.beta, beta=law.alpha)
    return compute_optimal(C, swapped)


@convention("compute_optimal", "twenty tokens a parameter")
def optimum_by_rule_of_thumb(C, law):
    """Ignore the law and take D = 20 N.

    Seen in: the rule of thumb that is named after Chinchilla.
    """
    N = (C / 120) ** 0.5
    return Allocation(N, 20 * N)
