"""Online softmax: attention read piece by piece, with three numbers kept for each query.

For each query the state holds the largest score so far, the sum of the exponentials below it (the
mass) and the values weighted by them. States merge in any grouping, so keys may be split over
blocks, chunks or machines.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from ._checks import (
    boolean_array,
    broadcast_leading,
    integer,
    mask_array,
    real_array,
    same_shape,
    same_size,
)
from .attention import _exponentials, _query_and_key, _scale, _scores, _value

__all__ = ["AttentionState", "attend", "blockwise_attention"]


@dataclass(frozen=True, eq=False)
class AttentionState:
    """What has been read so far of a softmax-weighted sum.

    $$m = \\max_j s_j, \\qquad \\ell = \\sum_j e^{s_j - m}, \\qquad u = \\sum_j e^{s_j - m} v_j$$

    A pair of a finished output $o$ and its log-sum-exp $L$, as kernels return it, is the state
    `AttentionState(L, np.ones_like(L), o)`. Logarithms are natural.

    Attributes:
        maximum: $m$, the largest score; −∞ where nothing was readable.
        mass: $\\ell$, zero where nothing was readable.
        weighted: $u$.

    Raises:
        ValueError: If shapes do not fit, or if mass is zero anywhere but where the maximum is −∞.

    Source:
        Milakov and Gimelshein 2018, arXiv 1805.02867, algorithm 3; Rabe and Staats 2021,
        arXiv 2112.05682, section 2; Dao et al. 2022, arXiv 2205.14135, section 3.1.

    Example:
        >>> left, right = attend([0.0], [[2.0]]), attend([0.0], [[4.0]])
        >>> left.merge(right).read()
        array([3.])
    """

    maximum: Float[ndarray, "*rows"]
    mass: Float[ndarray, "*rows"]
    weighted: Float[ndarray, "*rows d_v"]

    def __post_init__(self):
        maximum = real_array("maximum", self.maximum, minus_infinity=True)
        mass = real_array("mass", self.mass)
        weighted = real_array("weighted", self.weighted, min_ndim=1)
        same_shape(("maximum", maximum), ("mass", mass))
        if weighted.shape[:-1] != maximum.shape:
            raise ValueError(
                f"weighted must have the axes of maximum, {maximum.shape}, and one for features, "
                f"got {weighted.shape}"
            )
        if ((mass < 0) | ((mass == 0) != np.isneginf(maximum))).any():
            raise ValueError("mass must be positive, and zero just where maximum is -inf")
        for name, array in (("maximum", maximum), ("mass", mass), ("weighted", weighted)):
            object.__setattr__(self, name, array)

    @classmethod
    def empty(cls, shape: int | tuple[int, ...]) -> "AttentionState":
        """Return the state of having read nothing: merging it, on either side, changes nothing.

        Args:
            shape: The shape of `weighted`: that of the output.

        Example:
            >>> state = attend([1.0, 2.0], [[3.0], [5.0]])
            >>> bool(AttentionState.empty(1).merge(state).read() == state.read())
            True
        """
        sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        sizes = tuple(integer("shape", size, minimum=0) for size in sizes)
        if not sizes:
            raise ValueError("shape must have at least the feature axis, got ()")
        return cls(np.full(sizes[:-1], -np.inf), np.zeros(sizes[:-1]), np.zeros(sizes))

    def merge(self, other: "AttentionState") -> "AttentionState":
        """Return the state of having read both pieces.

        $$m = \\max(m_1, m_2), \\qquad \\ell = e^{m_1 - m} \\ell_1 + e^{m_2 - m} \\ell_2, \\qquad
        u = e^{m_1 - m} u_1 + e^{m_2 - m} u_2$$

        Args:
            other: The state of other keys for the same queries.

        Raises:
            ValueError: If the states are not of the same shape.
        """
        if not isinstance(other, AttentionState):
            raise ValueError(f"other must be an AttentionState, got {type(other).__name__}")
        same_shape(("this state", self.weighted), ("other", other.weighted))
        maximum = np.maximum(self.maximum, other.maximum)
        # exp(-inf - -inf) would be NaN: where both are empty, any finite shift gives weight zero.
        shift = np.where(np.isneginf(maximum), 0.0, maximum)
        here, there = (_exponentials(state.maximum, shift) for state in (self, other))
        return AttentionState(
            maximum,
            here * self.mass + there * other.mass,
            here[..., None] * self.weighted + there[..., None] * other.weighted,
        )

    def read(self) -> Float[ndarray, "*rows d_v"]:
        """Return the output $u / \\ell$.

        Raises:
            ValueError: If for some query every piece was empty or masked.
        """
        unread = self.mass == 0
        if unread.any():
            row = tuple(int(i) for i in np.argwhere(unread)[0])
            named = f" in row {row[0] if len(row) == 1 else row}" if row else ""
            raise ValueError(
                f"state must have a readable key to be read, but{named} every piece was masked "
                "or empty"
            )
        return self.weighted / self.mass[..., None]

    def log_sum_exp(self) -> Float[ndarray, "*rows"]:
        """Return $m + \\ln \\ell$, the natural logarithm of $\\sum_j e^{s_j}$; −∞ where empty."""
        safe = np.where(self.mass == 0, 1.0, self.mass)
        return self.maximum + np.log(safe)


def attend(
    scores: Float[ndarray, "*#rows key"],
    values: Float[ndarray, "*#batch key d_v"],
    mask: Bool[ndarray, "*#rows key"] | None = None,
) -> AttentionState:
    """Read one piece of the keys.

    Args:
        scores: Finished scores, `(key,)` or `(..., query, key)`; −∞ hides a key.
        values: Values of the keys of this piece; the piece may be empty.
        mask: Which scores count, in the shape of the scores or with leading axes to broadcast.

    Returns:
        The state to merge with those of the other pieces.

    Raises:
        ValueError: If a score is NaN or +∞, or the shapes do not fit.

    Source:
        Dao et al. 2022, FlashAttention, arXiv 2205.14135, section 3.1.

    Example:
        >>> attend([1000.0, 1001.0, 999.0], [[2.0], [4.0], [8.0]]).read().round(6)
        array([3.870665])
    """
    scores = real_array("scores", scores, min_ndim=1, minus_infinity=True)
    values = real_array("values", values, min_ndim=2)
    if scores.ndim == 1 and values.ndim > 2:
        raise ValueError(f"values must have 2 axes for scores of one query, got {values.shape}")
    same_size("number of keys", ("scores", scores.shape[-1]), ("values", values.shape[-2]))
    broadcast_leading({"scores": scores.shape[:-2], "values": values.shape[:-2]})
    if mask is not None:
        if scores.ndim == 1:
            mask = boolean_array("mask", mask, ndim=1)
            same_shape(("scores", scores), ("mask", mask))
        else:
            mask = mask_array("mask", mask, *scores.shape[-2:])
            broadcast_leading({"scores": scores.shape[:-2], "mask": mask.shape[:-2]})
        scores = np.where(mask, scores, -np.inf)
    maximum = scores.max(axis=-1, initial=-np.inf)
    shift = np.where(np.isneginf(maximum), 0.0, maximum)
    exponentials = _exponentials(scores, shift[..., None])
    weighted = exponentials @ values
    rows = weighted.shape[:-1]  # values may have leading axes that the scores do not have
    mass = np.broadcast_to(exponentials.sum(axis=-1), rows)
    return AttentionState(np.broadcast_to(maximum, rows), mass, weighted)


def blockwise_attention(
    query: Float[ndarray, "*#batch query d_k"],
    key: Float[ndarray, "*#batch key d_k"],
    value: Float[ndarray, "*#batch key d_v"],
    mask: Bool[ndarray, "*#batch query key"] | None = None,
    *,
    block: int,
    scale: float | None = None,
) -> tuple[Float[ndarray, "... query d_v"], Float[ndarray, "... query"]]:
    """Attend over blocks of keys, holding scores of one block at a time.

    The state after block $b$ is that of `attend` on the block, merged into the state before it; no
    array of all queries by all keys is made. A mask is read by slices and may be a broadcast view.

    Args:
        query: Queries.
        key: Keys.
        value: Values, one for each key.
        mask: Which keys a query may read; all of them unless given.
        block: Number of keys in a block.
        scale: Factor on the scores, $1/\\sqrt{d_k}$ unless given.

    Returns:
        The output, and for each query the natural log-sum-exp of its scores.

    Raises:
        ValueError: If shapes do not fit, the block is smaller than 1, or a query reads nothing.

    Source:
        Rabe and Staats 2021, arXiv 2112.05682; Dao et al. 2022, arXiv 2205.14135, algorithm 1.

    Example:
        >>> key, value = [[1.0], [2.0]], [[2.0], [4.0]]
        >>> output, log_sum_exp = blockwise_attention([[0.0]], key, value, block=1)
        >>> output, log_sum_exp.round(6)
        (array([[3.]]), array([0.693147]))
    """
    query, key, leading = _query_and_key(query, key)
    value = _value(value, key, leading)
    leading = broadcast_leading({"query and key": leading, "value": value.shape[:-2]})
    queries, keys = query.shape[-2], key.shape[-2]
    if mask is not None:
        mask = mask_array("mask", mask, queries, keys)
        leading = broadcast_leading({"query and key": leading, "mask": mask.shape[:-2]})
    block = integer("block", block, minimum=1)
    scale = _scale(scale, query.shape[-1])

    state = AttentionState.empty((*leading, queries, value.shape[-1]))
    for start in range(0, keys, block):
        piece = slice(start, start + block)
        scores = _scores(query, key[..., piece, :], scale)
        read = attend(scores, value[..., piece, :], None if mask is None else mask[..., piece])
        state = state.merge(_spread(read, state))
    return state.read(), state.log_sum_exp()


def _spread(state, like):
    """Give a state the leading axes of the result, as views."""
    rows = like.maximum.shape
    return AttentionState(
        np.broadcast_to(state.maximum, rows),
        np.broadcast_to(state.mass, rows),
        np.broadcast_to(state.weighted, like.weighted.shape),
    )
