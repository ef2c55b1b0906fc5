"""Fits of loss against compute, and of loss against parameters and data.

A fit describes the points it was made from. What it says beyond them is an extrapolation, and no
algebra here validates one.
"""

from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import instance, real_array, real_number

__all__ = [
    "Allocation",
    "ParametricLaw",
    "PowerLaw",
    "compute_optimal",
    "fit_parametric",
    "fit_power_law",
    "parametric_loss",
    "power_law",
]


class PowerLaw(NamedTuple):
    r"""Loss as a power of compute.

    $$L(C) = A\, C^{-\alpha}$$
    """

    A: float
    alpha: float

    def loss(self, compute: Float[ndarray, "*points"] | float) -> Float[ndarray, "*points"]:
        """The loss at some compute, inside or outside the points of the fit.

        Raises:
            ValueError: If a compute is not positive.
        """
        return self.A * _positive("compute", compute) ** -self.alpha


@dataclass(frozen=True)
class ParametricLaw:
    r"""Loss as a floor and two powers: of the parameters $N$ and of the training tokens $D$.

    $$L(N, D) = E + A N^{-\alpha} + B D^{-\beta}$$

    Raises:
        ValueError: If a coefficient or exponent is not positive, or the floor is negative.
    """

    A: float
    B: float
    E: float
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name in ("A", "B", "alpha", "beta"):
            object.__setattr__(self, name, real_number(name, getattr(self, name), above=0))
        object.__setattr__(self, "E", real_number("E", self.E, minimum=0))


class Allocation(NamedTuple):
    """How a budget is spent: parameters `N` and training tokens `D`."""

    N: float
    D: float


def _positive(name: str, value, **axes) -> ndarray:
    array = real_array(name, value, **axes)
    if (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {array.min()}")
    return array


def _points(**columns) -> list[ndarray]:
    arrays = [_positive(name, value, ndim=1) for name, value in columns.items()]
    for name, array in zip(columns, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise ValueError(f"{name} must have one entry a point, {len(arrays[0])}, got {len(array)}")
    return arrays


def power_law(points: Float[ndarray, "2 2"]) -> PowerLaw:
    r"""The power law through two points (compute, loss): exact, and validated by nothing.

    $$\alpha = \frac{\ln(L_1 / L_2)}{\ln(C_2 / C_1)}, \qquad A = L_1 C_1^{\alpha}$$

    Raises:
        ValueError: If there are not two points with positive numbers and different compute.

    Example:
        >>> law = power_law([(1.0, 2.0), (4.0, 1.0)])
        >>> law.A, law.alpha, float(law.loss(16.0))
        (2.0, 0.5, 0.5)
    """
    (first, first_loss), (second, second_loss) = _positive("points", points, shape=(2, 2)).tolist()
    if first == second:
        raise ValueError(f"points must differ in compute, got {first} twice")
    alpha = float(np.log(first_loss / second_loss) / np.log(second / first))
    return PowerLaw(first_loss * first**alpha, alpha)


def fit_power_law(compute: Float[ndarray, " points"], loss: Float[ndarray, " points"]) -> PowerLaw:
    r"""The power law of least squares in the logarithms.

    $$\min_{A, \alpha} \sum_i (\ln A - \alpha \ln C_i - \ln L_i)^2$$

    Raises:
        ValueError: If a number is not positive, or fewer than two values of compute differ.

    Source:
        Kaplan et al. 2020, arXiv 2001.08361, section 6, for the form.

    Example:
        >>> law = fit_power_law([1.0, 4.0, 16.0], [2.0, 1.0, 0.5])
        >>> round(law.A, 12), round(law.alpha, 12)
        (2.0, 0.5)
    """
    compute, loss = _points(compute=compute, loss=loss)
    if len(np.unique(compute)) < 2:
        raise ValueError(f"compute must have at least two different values, got {compute.tolist()}")
    x, y = np.log(compute), np.log(loss)
    centred = x - x.mean()
    alpha = -float(centred @ y / (centred @ centred))
    return PowerLaw(float(np.exp(y.mean() + alpha * x.mean())), alpha)


def parametric_loss(
    N: Float[ndarray, "*#points"], D: Float[ndarray, "*#points"], law: ParametricLaw
) -> Float[ndarray, "..."] | float:
    r"""The loss of a model of `N` parameters after `D` tokens under a parametric law.

    $$L(N, D) = E + A N^{-\alpha} + B D^{-\beta}$$

    Raises:
        ValueError: If a count is not positive, or the shapes differ and neither is a number.

    Source:
        Hoffmann et al. 2022, arXiv 2203.15556, equation 2.

    Example:
        >>> float(parametric_loss(4.0, 100.0, ParametricLaw(A=2.0, B=10.0, E=1.0, alpha=0.5, beta=0.5)))
        3.0
    """
    N, D = _positive("N", N), _positive("D", D)
    if N.ndim and D.ndim and N.shape != D.shape:
        raise ValueError(f"D must have the shape of N, {N.shape}, got {D.shape}")
    instance("law", law, ParametricLaw)
    return law.E + law.A * N**-law.alpha + law.B * D**-law.beta


def fit_parametric(
    N: Float[ndarray, " points"],
    D: Float[ndarray, " points"],
    loss: Float[ndarray, " points"],
    *,
    delta: float = 1e-3,
) -> ParametricLaw:
    r"""The parametric law whose log residuals have the smallest sum of Huber losses.

    $$\min_{A, B, E, \alpha, \beta} \sum_i
    \operatorname{Huber}_{\delta}\bigl(\ln L(N_i, D_i) - \ln L_i\bigr)$$

    Solved from the best of a grid of exponents, each with the coefficients of weighted linear least
    squares, by damped Gauss–Newton steps on $\ln A, \ln B, \ln E, \alpha, \beta$ with Huber's
    weights; the best end is kept. The sum, not the mean: with a fixed tolerance a mean stops an
    optimiser early.

    Args:
        N: Parameters of each model.
        D: Tokens that it was trained on.
        loss: What it reached.
        delta: Where the loss of a residual turns from square to linear; infinity for least squares.

    Raises:
        ValueError: If a number is not positive, there are fewer than five points, or all share one
            `N` or one `D`.

    Source:
        Hoffmann et al. 2022, arXiv 2203.15556, section 3.3; Besiroglu et al. 2024, arXiv 2404.10102,
        for the sum.

    Example:
        >>> N, D = np.repeat([1e7, 1e8, 1e9], 3), np.tile([1e9, 1e10, 1e11], 3)
        >>> law = ParametricLaw(A=400.0, B=2000.0, E=1.8, alpha=0.34, beta=0.36)
        >>> round(fit_parametric(N, D, parametric_loss(N, D, law)).alpha, 6)
        0.34
    """
    N, D, loss = _points(N=N, D=D, loss=loss)
    delta = real_number("delta", delta, above=0, infinity=True)
    if len(loss) < 5:
        raise ValueError(f"loss must have at least five points for five numbers, got {len(loss)}")
    for name, array in (("N", N), ("D", D)):
        if len(np.unique(array)) < 2:
            raise ValueError(f"{name} must have at least two different values, got {array[0]} only")
    # Centred logarithms keep coefficient and exponent apart: otherwise ln A and alpha are collinear.
    n, d, target = np.log(N), np.log(D), np.log(loss)
    shift = n.mean(), d.mean()
    n, d = n - shift[0], d - shift[1]

    grid = np.linspace(0.05, 1.55, 11)
    starts = np.array([_linear_start(n, d, loss, a, b) for a in grid for b in grid])
    promise = _huber(_residual(starts, n, d, target), delta).argsort(kind="stable")
    starts = starts[promise[:10]]
    a, b, e, alpha, beta = _descend(starts, n, d, target, delta)
    return ParametricLaw(
        A=float(np.exp(a + alpha * shift[0])), B=float(np.exp(b + beta * shift[1])),
        E=float(np.exp(e)), alpha=float(alpha), beta=float(beta),
    )  # fmt: skip


def _linear_start(n, d, loss, alpha: float, beta: float) -> tuple[float, ...]:
    """Coefficients of least squares on relative residuals at given exponents, made positive."""
    design = np.stack([np.exp(-alpha * n), np.exp(-beta * d), np.ones_like(n)], axis=-1)
    coefficients = np.linalg.lstsq(design / loss[:, None], np.ones_like(loss), rcond=None)[0]
    a, b, e = np.log(np.maximum(coefficients, 1e-3 * loss.min()))
    return a, b, e, alpha, beta


def _huber(residual: ndarray, delta: float) -> ndarray:
    size = np.abs(residual)
    square = np.minimum(size, delta)  # what is beyond delta counts linearly
    return (square**2 / 2 + np.minimum(delta, 1e300) * (size - square)).sum(axis=-1)


def _terms(x: ndarray, n: ndarray, d: ndarray) -> ndarray:
    """The three terms of the law at each point, for each start: (start, point, term)."""
    a, b, e, alpha, beta = x.T[..., None]
    exponents = np.stack(np.broadcast_arrays(a - alpha * n, b - beta * d, e), axis=-1)
    return np.exp(np.clip(exponents, -300, 300))  # a step that is refused may overshoot far


def _residual(x: ndarray, n: ndarray, d: ndarray, target: ndarray) -> ndarray:
    return np.log(_terms(x, n, d).sum(axis=-1)) - target


def _descend(x: ndarray, n: ndarray, d: ndarray, target: ndarray, delta: float) -> ndarray:
    """Damped Gauss–Newton from all starts at once; returns the end with the smallest objective."""
    damping, value = np.full(len(x), 1e-3), _huber(_residual(x, n, d, target), delta)
    for _ in range(400):
        share = _terms(x, n, d)
        share = share / share.sum(axis=-1, keepdims=True)
        slope = np.concatenate(
            [share, share[..., :1] * -n[:, None], share[..., 1:2] * -d[:, None]], axis=-1
        )
        error = _residual(x, n, d, target)
        weight = np.minimum(1.0, delta / np.maximum(np.abs(error), 1e-300))
        gradient = np.einsum("spi,sp->si", slope, weight * error)
        curvature = np.einsum("spi,sp,spj->sij", slope, weight, slope)
        scale = np.maximum(np.einsum("sii->si", curvature), 1e-12)
        damped = curvature + damping[:, None, None] * scale[..., None] * np.eye(5)
        candidate = x - np.linalg.solve(damped, gradient[..., None])[..., 0]
        new = _huber(_residual(candidate, n, d, target), delta)
        better = new < value
        if not better.any() and (damping > 1e9).all():
            break
        x, value = np.where(better[:, None], candidate, x), np.where(better, new, value)
        damping = np.clip(np.where(better, damping / 5, damping * 5), 1e-15, 1e12)
    return x[value.argmin()]


def compute_optimal(C: float, law: ParametricLaw) -> Allocation:
    r"""The parameters and tokens of least loss that a budget of $C = 6ND$ operations allows.

    $$N = G \Bigl(\frac C6\Bigr)^{\beta/(\alpha+\beta)}, \qquad
    D = \frac1G \Bigl(\frac C6\Bigr)^{\alpha/(\alpha+\beta)}, \qquad
    G = \Bigl(\frac{\alpha A}{\beta B}\Bigr)^{1/(\alpha+\beta)}$$

    Args:
        C: Floating-point operations of the whole training, two per multiply-add.
        law: How loss depends on parameters and tokens.

    Raises:
        ValueError: If the budget is not positive.

    Source:
        Hoffmann et al. 2022, arXiv 2203.15556, equation 4.

    Example:
        >>> compute_optimal(6e4, ParametricLaw(A=1.0, B=1.0, E=0.0, alpha=0.5, beta=0.5))
        Allocation(N=100.0, D=100.0)
    """
    C = real_number("C", C, above=0)
    A, B, _, alpha, beta = astuple(instance("law", law, ParametricLaw))
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    N = G * (C / 6) ** (beta / (alpha + beta))
    D = (C / 6) ** (alpha / (alpha + beta)) / G
    return Allocation(N, D)
