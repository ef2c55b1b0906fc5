"""Hyper-connections: several residual streams, mixed at each layer.

Streams are `(..., stream, feature)`: the axis of time, if any, is a leading axis. Matrices are
written for columns, as in the papers: `mixing[i, j]` is what stream `j` gives to stream `i`.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import broadcast_leading, function, integer, real_array, real_number
from ._gates import sigmoid
from .norms import rms_norm

__all__ = ["hyper_coefficients", "hyper_connection", "sinkhorn"]


def sinkhorn(
    logits: Float[ndarray, "*batch stream stream"], *, iterations: int = 20
) -> Float[ndarray, "*batch stream stream"]:
    """Turn a matrix of logits into a nearly doubly stochastic one.

    $$M_0 = e^{L}, \\qquad M_t = T_r(T_c(M_{t-1}))$$

    where $T_c$ divides each column by its sum and $T_r$ each row. Rows sum to one exactly, columns
    in the limit. A doubly stochastic matrix is a mean of permutations: its spectral norm is one, so
    that mixing by it never enlarges the streams, and products of such matrices are such matrices.

    Args:
        logits: Any real numbers.
        iterations: How often columns and rows are normalised.

    Raises:
        ValueError: If the matrix is not square, or there is no iteration.

    Source:
        Sinkhorn and Knopp 1967; in this form Xie et al. 2025, mHC, arXiv 2512.24880, section 4.2.

    Example:
        >>> sinkhorn([[0.0, 0.0], [0.0, 0.0]])
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    logits = real_array("logits", logits, min_ndim=2)
    if logits.shape[-1] != logits.shape[-2] or logits.shape[-1] == 0:
        raise ValueError(f"logits must end in a square matrix, got shape {logits.shape}")
    iterations = integer("iterations", iterations, minimum=1)
    # In logarithms no entry underflows to a column of zeros, however far apart the logits are.
    for _ in range(iterations):
        logits = logits - np.logaddexp.reduce(logits, axis=-2, keepdims=True)
        logits = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return np.exp(logits)


def hyper_connection(
    streams: Float[ndarray, "*batch stream channel"],
    sublayer: Callable[[ndarray], ndarray],
    *,
    mixing: Float[ndarray, "*#batch stream stream"],
    read: Float[ndarray, "*#batch stream"],
    write: Float[ndarray, "*#batch stream"],
) -> Float[ndarray, "*batch stream channel"]:
    """Mix the streams, and add what a sublayer makes of their weighted sum.

    $$X' = H\\, X + w\\, f(r^\\top X)$$

    With one stream and all coefficients one this is the ordinary residual connection. It is so too
    with any number of equal streams, if $r$ and each row of $H$ sum to one and $w$ is one.

    Args:
        streams: The residual streams $X$.
        sublayer: Attention or feed-forward, $f$: a function of one stream `(..., channel)`.
        mixing: $H$, doubly stochastic in mHC.
        read: $r$, the weight of each stream in the sublayer's input.
        write: $w$, the weight of the sublayer's output in each stream.

    Raises:
        ValueError: If shapes do not fit, or the sublayer changes the shape.

    Source:
        Zhu et al. 2024, Hyper-Connections, arXiv 2409.19606, section 2; Xie et al. 2025, mHC,
        arXiv 2512.24880, section 4.

    Example:
        >>> streams = [[1.0], [3.0]]
        >>> hyper_connection(
        ...     streams, lambda x: 10 * x, mixing=np.eye(2), read=[0.5, 0.5], write=[1.0, 0.0]
        ... )
        array([[21.],
               [ 3.]])
    """
    streams = real_array("streams", streams, min_ndim=2)
    count, leading = streams.shape[-2], streams.shape[:-2]
    mixing = real_array("mixing", mixing, min_ndim=2)
    read = real_array("read", read, min_ndim=1)
    write = real_array("write", write, min_ndim=1)
    for name, array, own in (("mixing", mixing, 2), ("read", read, 1), ("write", write, 1)):
        if array.shape[-own:] != (count,) * own:
            raise ValueError(
                f"{name} must end in {' by '.join([str(count)] * own)}, one for each stream, "
                f"got shape {array.shape}"
            )
        together = broadcast_leading({"streams": leading, name: array.shape[:-own]})
        if together != leading:
            raise ValueError(
                f"{name} must broadcast to the leading axes {leading}, got {array.shape[:-own]}"
            )
    function("sublayer", sublayer)
    collapsed = np.einsum("...s,...sc->...c", read, streams)
    added = real_array("sublayer", sublayer(collapsed))
    if added.shape != collapsed.shape:
        raise ValueError(f"sublayer must keep the shape {collapsed.shape}, got {added.shape}")
    return mixing @ streams + write[..., None] * added[..., None, :]


def hyper_coefficients(
    streams: Float[ndarray, "*batch stream channel"],
    weight: Float[ndarray, "width logits"],
    bias: Float[ndarray, " logits"],
    scale: Float[ndarray, " 3"],
    *,
    iterations: int = 20,
    eps: float = 1e-6,
) -> tuple[
    Float[ndarray, "*batch stream stream"],
    Float[ndarray, "*batch stream"],
    Float[ndarray, "*batch stream"],
]:
    """Compute the coefficients of a hyper-connection from the streams themselves.

    $$\\ell = \\text{RMSNorm}(\\text{vec}\\, X)\\, W, \\qquad r = \\sigma(a_1 \\ell_r + b_r), \\qquad
    w = 2\\, \\sigma(a_2 \\ell_w + b_w), \\qquad H = \\text{Sinkhorn}(a_3 \\ell_H + b_H)$$

    Args:
        streams: The residual streams $X$; all of them enter each logit.
        weight: $W$, from the streams laid end to end to the logits: those of `read`, those of
            `write`, and those of `mixing` row by row.
        bias: $b$, one for each logit.
        scale: $a$, one for `read`, one for `write`, one for `mixing`.
        iterations: How often `sinkhorn` normalises columns and rows.
        eps: Added to the mean square of the streams.

    Returns:
        The mixing matrix, the weights that read and the weights that write.

    Raises:
        ValueError: If shapes do not fit.

    Source:
        Xie et al. 2025, mHC, arXiv 2512.24880, section 4.2.

    Example:
        >>> weight, bias, scale = np.zeros((2, 8)), np.zeros(8), np.ones(3)
        >>> mixing, read, write = hyper_coefficients([[1.0], [2.0]], weight, bias, scale)
        >>> mixing.tolist(), read.tolist(), write.tolist()
        ([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], [1.0, 1.0])
    """
    streams = real_array("streams", streams, min_ndim=2)
    count, channels = streams.shape[-2:]
    logits = count * (2 + count)
    weight = real_array("weight", weight, shape=(count * channels, logits))
    bias = real_array("bias", bias, shape=(logits,))
    scale = real_array("scale", scale, shape=(3,))
    eps = real_number("eps", eps, minimum=0)
    flat = rms_norm(streams.reshape(*streams.shape[:-2], count * channels), eps=eps)
    scales = np.repeat(scale, [count, count, count * count])
    values = scales * (flat @ weight) + bias
    read, write, mixing = np.split(values, [count, 2 * count], axis=-1)
    mixing = sinkhorn(mixing.reshape(*mixing.shape[:-1], count, count), iterations=iterations)
    return mixing, sigmoid(read), 2 * sigmoid(write)
