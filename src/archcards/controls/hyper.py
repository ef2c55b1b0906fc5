"""Hyper-connections, wrong in named ways."""

import numpy as np

from ._reference import hyper_coefficients, hyper_connection, sinkhorn
from ._registry import convention, mistake

__all__: list[str] = []


@mistake("sinkhorn", "sigmoid instead of the exponential")
def sinkhorn_of_sigmoids(logits, *, iterations=20):
    """Start from σ(L): doubly stochastic all the same, but another matrix.

    Seen in: the first version of DeepSeek-V4 in transformers, corrected by its pull request #45892.
    """
    return sinkhorn(-np.logaddexp(0.0, -np.asarray(logits, dtype=float)), iterations=iterations)


@mistake("sinkhorn", "rows only")
def sinkhorn_of_rows(logits, *, iterations=20):
    """Take the softmax of each row: columns do not sum to one, and streams may grow.

    Seen in: hyper-connections with a softmax over the streams instead of both marginals.
    """
    exponentials = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@mistake("sinkhorn", "one iteration")
def sinkhorn_once(logits, *, iterations=20):
    """Normalise columns and rows once.

    Seen in: unrolled loops shortened for speed.
    """
    return sinkhorn(logits, iterations=1)


@convention("sinkhorn", "columns last")
def sinkhorn_with_columns_last(logits, *, iterations=20):
    """Normalise rows, then columns: the columns are exact and the rows approximate.

    Seen in: DeepSeek-V4's code, whose matrix is the transpose of the paper's; visible when the
    iterations are few.
    """
    transposed = np.swapaxes(np.asarray(logits, dtype=float), -1, -2)
    return np.swapaxes(sinkhorn(transposed, iterations=iterations), -1, -2)


@mistake("hyper_connection", "mixing transposed")
def hyper_connection_transposed(streams, sublayer, *, mixing, read, write):
    """Let stream j take what it should give.

    Seen in: ports between code that stores (in, out), as DeepSeek-V4's, and papers, (out, in).
    """
    mixing = np.swapaxes(mixing, -1, -2)
    return hyper_connection(streams, sublayer, mixing=mixing, read=read, write=write)


@mistake("hyper_connection", "the read stream is mixed, not the streams")
def hyper_connection_after_reading(streams, sublayer, *, mixing, read, write):
    """Collapse the streams first and give the one that is left to all: the others are forgotten.

    Seen in: an MLX port whose text gives the update as H_post (F(H_pre x) + H_res H_pre x).
    """
    streams, mixing, read, write = (np.asarray(x, float) for x in (streams, mixing, read, write))
    collapsed = np.einsum("...s,...sc->...c", read, streams)[..., None, :]
    added = np.asarray(sublayer(collapsed[..., 0, :]), dtype=float)[..., None, :]
    return write[..., None] * added + mixing.sum(axis=-1)[..., None] * collapsed


@mistake("hyper_connection", "streams not mixed")
def hyper_connection_without_mixing(streams, sublayer, *, mixing, read, write):
    """Add each stream to itself, as in an ordinary residual connection.

    Seen in: residual connections left in the layer that the hyper-connection wraps.
    """
    identity = np.eye(np.shape(streams)[-2])
    return hyper_connection(streams, sublayer, mixing=identity, read=read, write=write)


@mistake("hyper_connection", "the sublayer reads each stream")
def hyper_connection_stream_by_stream(streams, sublayer, *, mixing, read, write):
    """Apply the sublayer to every stream and sum afterwards: dearer, and equal only if it is linear.

    Seen in: broadcasting a block over an extra axis.
    """
    streams, mixing, read, write = (np.asarray(x, float) for x in (streams, mixing, read, write))
    each = np.asarray(sublayer(streams), dtype=float)
    added = np.einsum("...s,...sc->...c", read, each)
    return mixing @ streams + write[..., None] * added[..., None, :]


@mistake("hyper_coefficients", "writing weights not doubled")
def hyper_coefficients_not_doubled(streams, weight, bias, scale, *, iterations=20, eps=1e-6):
    """Write with σ and not with 2σ: at logit zero a layer adds half its output.

    Seen in: the first version of DeepSeek-V4 in transformers, corrected by its pull request #45892.
    """
    mixing, read, write = hyper_coefficients(
        streams, weight, bias, scale, iterations=iterations, eps=eps
    )
    return mixing, read, write / 2


@convention("hyper_coefficients", "streams not normalised")
def hyper_coefficients_unnormalised(streams, weight, bias, scale, *, iterations=20, eps=1e-6):
    """Compute the logits from the streams as they are, so that they grow with depth.

    Seen in: hyper-connections whose norm is taken for that of the sublayer and left out.
    """
    streams = np.asarray(streams, dtype=float)
    # The norm is undone row by row: each token's logits are its own.
    leading, shape = streams.shape[:-2], streams.shape[-2:]
    rows = []
    for token in streams.reshape(-1, *shape):
        size = np.sqrt(np.mean(token**2) + eps)
        rows.append(
            hyper_coefficients(
                token, np.multiply(weight, size), bias, scale, iterations=iterations, eps=eps
            )
        )
    stacked = (np.stack(each) for each in zip(*rows, strict=True))
    return tuple(x.reshape(*leading, *x.shape[1:]) for x in stacked)
