"""Normalisations, and where in a block they stand.

Each divides the last axis by a measure of its size. Variances and mean squares divide by the number
of channels, and ε is added inside the root.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from einops import rearrange
from jaxtyping import Float
from numpy import ndarray

from ._checks import function, integer, one_of, real_array, real_number
from .ssm import silu

__all__ = ["gated_norm", "layer_norm", "qk_norm", "residual_step", "rms_norm"]


def layer_norm(
    x: Float[ndarray, "*batch channel"],
    weight: Float[ndarray, " channel"] | None = None,
    bias: Float[ndarray, " channel"] | None = None,
    *,
    eps: float = 1e-5,
) -> Float[ndarray, "*batch channel"]:
    """Subtract the mean of the channels and divide by their standard deviation.

    $$y = \\frac{x - \\mu}{\\sqrt{\\sigma^2 + \\varepsilon}} \\odot w + b, \\qquad
    \\sigma^2 = \\frac{1}{n} \\sum_i (x_i - \\mu)^2$$

    Args:
        x: Vectors.
        weight: Factor for each channel; one unless given.
        bias: Added to each channel; zero unless given.
        eps: Added to the variance.

    Raises:
        ValueError: If shapes do not fit, or the denominator is zero.

    Source:
        Ba et al. 2016, arXiv 1607.06450, equation 3.

    Example:
        >>> layer_norm([1.0, 3.0], eps=0)
        array([-1.,  1.])
    """
    x, weight, eps = _arguments("x", x, weight, eps)
    if bias is not None:
        bias = real_array("bias", bias, shape=x.shape[-1:])
    centred = x - x.mean(axis=-1, keepdims=True)
    return _divided("x", centred, eps) * weight + (0.0 if bias is None else bias)


def rms_norm(
    x: Float[ndarray, "*batch channel"],
    weight: Float[ndarray, " channel"] | None = None,
    *,
    eps: float = 1e-6,
) -> Float[ndarray, "*batch channel"]:
    """Divide by the root of the mean square of the channels.

    $$y = \\frac{x}{\\sqrt{\\frac{1}{n} \\sum_i x_i^2 + \\varepsilon}} \\odot w$$

    Args:
        x: Vectors.
        weight: Factor for each channel; one unless given.
        eps: Added to the mean square.

    Raises:
        ValueError: If shapes do not fit, or the denominator is zero.

    Source:
        Zhang and Sennrich 2019, arXiv 1910.07467, equation 4.

    Example:
        >>> rms_norm([1.0, 7.0], eps=0)
        array([0.2, 1.4])
    """
    x, weight, eps = _arguments("x", x, weight, eps)
    return _divided("x", x, eps) * weight


def gated_norm(
    y: Float[ndarray, "*batch channel"],
    z: Float[ndarray, "*batch channel"],
    weight: Float[ndarray, " channel"] | None = None,
    *,
    groups: int = 1,
    eps: float = 1e-5,
    order: Literal["gate_first", "norm_first"] = "gate_first",
) -> Float[ndarray, "*batch channel"]:
    """Gate, and divide each group of channels by its root mean square.

    $$\\text{gate first: } \\text{RMSNorm}_G(y \\odot \\text{silu}(z)), \\qquad
    \\text{norm first: } \\text{RMSNorm}_G(y) \\odot \\text{silu}(z)
    \\quad \\text{for each group } G$$

    Args:
        y: What the mixer read.
        z: Logits of the gate.
        weight: Factor for each channel, applied with the norm; one unless given.
        groups: Number of groups that the channels are cut into, in runs.
        eps: Added to the mean square of each group.
        order: `"gate_first"` as in Mamba-2, `"norm_first"` as in Gated DeltaNet.

    Raises:
        ValueError: If shapes do not fit, the groups do not divide, or the denominator is zero.

    Source:
        Dao and Gu 2024, arXiv 2405.21060, section 7.1; order and groups as in its code.
        Norm first: Yang et al. 2024, arXiv 2412.06464, figure 1 and code.

    Example:
        >>> gated_norm([3.0, 4.0], [1000.0, 1000.0], groups=2, eps=0)
        array([1., 1.])
    """
    y, weight, eps = _arguments("y", y, weight, eps)
    z = real_array("z", z, shape=y.shape)
    groups = integer("groups", groups, minimum=1)
    if y.shape[-1] % groups:
        raise ValueError(f"groups must divide the {y.shape[-1]} channels of y, got {groups}")
    one_of("order", order, ("gate_first", "norm_first"))
    before, after = (silu(z), 1.0) if order == "gate_first" else (1.0, silu(z))
    grouped = rearrange(y * before, "... (group channel) -> ... group channel", group=groups)
    normed = rearrange(_divided("y", grouped, eps), "... group channel -> ... (group channel)")
    return normed * weight * after


def qk_norm(
    query: Float[ndarray, "*rows d_k"],
    key: Float[ndarray, "*others d_k"],
    query_weight: Float[ndarray, " d_k"] | None = None,
    key_weight: Float[ndarray, " d_k"] | None = None,
    *,
    eps: float = 1e-6,
) -> tuple[Float[ndarray, "*rows d_k"], Float[ndarray, "*others d_k"]]:
    """Normalise each head's queries and keys, before they are rotated.

    $$q' = \\text{RMSNorm}(q), \\qquad k' = \\text{RMSNorm}(k), \\qquad
    |q' \\cdot k'| \\le d_k \\max_i |w^q_i| \\max_i |w^k_i|$$

    Args:
        query: Queries, one head's channels last.
        key: Keys, as wide as the queries.
        query_weight: Factor for each channel of the queries, shared by the heads.
        key_weight: Factor for each channel of the keys, shared by the heads.
        eps: Added to the mean squares.

    Returns:
        Queries and keys.

    Raises:
        ValueError: If shapes do not fit, or a denominator is zero.

    Source:
        Henry et al. 2020, arXiv 2010.04245, section 3; Dehghani et al. 2023, arXiv 2302.05442,
        section 2; in this form Qwen3, arXiv 2505.09388, section 2.

    Example:
        >>> query, key = qk_norm([3.0, 3.0], [-0.1, 0.1], eps=0)
        >>> query, key
        (array([1., 1.]), array([-1.,  1.]))
    """
    query, query_weight, eps = _arguments("query", query, query_weight, eps, "query_weight")
    key = real_array("key", key, min_ndim=1)
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"key must have the width of query, {query.shape[-1]}, got {key.shape[-1]}"
        )
    key, key_weight, eps = _arguments("key", key, key_weight, eps, "key_weight")
    return _divided("query", query, eps) * query_weight, _divided("key", key, eps) * key_weight


def residual_step(
    x: Float[ndarray, "*batch channel"],
    sublayer: Callable[[ndarray], ndarray],
    norm: Callable[[ndarray], ndarray],
    *,
    order: Literal["pre", "post"] = "pre",
) -> Float[ndarray, "*batch channel"]:
    """Add a sublayer to the residual stream, normalised before the sublayer or after the sum.

    $$\\text{pre: } x + f(\\text{norm}(x)), \\qquad \\text{post: } \\text{norm}(x + f(x))$$

    Args:
        x: The residual stream.
        sublayer: Attention or feed-forward, $f$.
        norm: The normalisation.
        order: `"pre"` as in GPT-2 and after, `"post"` as in the original Transformer.

    Raises:
        ValueError: If the order is unknown, or the sublayer changes the shape.

    Source:
        Xiong et al. 2020, arXiv 2002.04745, figure 1 and table 1.

    Example:
        >>> residual_step([1.0, 3.0], lambda x: 2 * x, lambda x: layer_norm(x, eps=0))
        array([-1.,  5.])
    """
    x = real_array("x", x, min_ndim=1)
    one_of("order", order, ("pre", "post"))
    function("sublayer", sublayer)
    function("norm", norm)
    added = real_array("sublayer", sublayer(norm(x) if order == "pre" else x))
    if added.shape != x.shape:
        raise ValueError(f"sublayer must keep the shape {x.shape}, got {added.shape}")
    return x + added if order == "pre" else norm(x + added)


def _arguments(name, x, weight, eps, weight_name="weight"):
    x = real_array(name, x, min_ndim=1)
    if x.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one channel, got shape {x.shape}")
    weight = 1.0 if weight is None else real_array(weight_name, weight, shape=x.shape[-1:])
    return x, weight, real_number("eps", eps, minimum=0)


def _divided(name, x, eps):
    """Divide the last axis by its root mean square."""
    with np.errstate(over="ignore"):
        square = np.mean(x**2, axis=-1, keepdims=True) + eps
    if not np.isfinite(square).all():
        raise ValueError(f"{name} must have a finite mean square in float64, got an overflow")
    if (square == 0).any():
        raise ValueError(f"{name} must not vanish when eps is 0, got a row without size")
    return x / np.sqrt(square)
