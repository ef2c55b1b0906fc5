"""Multi-head latent attention: one small latent per token instead of keys and values per head.

The cache holds a latent and one rotated key for all heads. The explicit form expands the latent
into keys and values; the absorbed form moves both expansions to the query's side, so that all heads
read the latent itself, as in multi-query attention.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from einops import einsum
from jaxtyping import Bool, Float
from numpy import ndarray

from ._checks import instance, one_of, real_array, real_number, same_size
from .attention import attention
from .masks import causal
from .norms import rms_norm
from .rope import Frequencies, rope_frequencies, rotate

__all__ = ["LatentCache", "LatentWeights", "latent_attention", "latent_read"]

_FORMS = ("explicit", "absorbed")


def latent_read(
    query: Float[ndarray, "*queries nope"],
    rope_query: Float[ndarray, "*queries rope"],
    latent: Float[ndarray, "*batch key rank"],
    rope_key: Float[ndarray, "*batch key rope"],
    up_key: Float[ndarray, "*head nope rank"],
    up_value: Float[ndarray, "*head d_v rank"],
    *,
    scale: float,
    mask: Bool[ndarray, "*mask query key"] | None = None,
    form: Literal["explicit", "absorbed"] = "explicit",
) -> Float[ndarray, "... d_v"]:
    r"""Read latents by keys and values that are linear in them, beside one shared rotated key.

    $$s_{ij} = \text{scale}\,\bigl(q_i \cdot U_k c_j + q^r_i \cdot k^r_j\bigr), \qquad
    o_i = \sum_j \operatorname{softmax}(s_i)_j\, U_v c_j$$

    The absorbed form uses $q \cdot U_k c = U_k^\top q \cdot c$ and
    $\sum_j w_j U_v c_j = U_v \sum_j w_j c_j$. One head may be given without its axis: `up_key` and
    `up_value` are then matrices, and `query` ends in `(query, nope)`. A single query needs no axis
    of queries.

    Args:
        query: The part of each query that is not rotated.
        rope_query: The part that is, already rotated; it may be empty.
        latent: What is cached of each token, $c$.
        rope_key: The one rotated key of each token, for all heads.
        up_key: $U_k$ of each head.
        up_value: $U_v$ of each head.
        scale: Factor on the sum of both scores; usually over the root of the *whole* query width.
        mask: Which keys a query may read; all of them unless given.
        form: `"explicit"` expands keys and values, `"absorbed"` reads the latents.

    Raises:
        ValueError: If shapes do not fit, or a query has nothing to read.

    Source:
        DeepSeek-V2, arXiv 2405.04434, section 2.1.2–2.1.3 and appendix C.

    Example:
        >>> read = latent_read(
        ...     [[1.0]], [[0.0]], [[0.0], [0.0]], [[5.0], [7.0]], [[1.0]], [[2.0]], scale=1.0
        ... )
        >>> read.tolist()
        [[0.0]]
    """
    up_key = real_array("up_key", up_key)
    if up_key.ndim not in (2, 3):
        raise ValueError(f"up_key must have 2 axes, or 3 with heads, got shape {up_key.shape}")
    up_value = real_array("up_value", up_value, ndim=up_key.ndim)
    query = real_array("query", query, min_ndim=up_key.ndim - 1)
    rope_query = real_array("rope_query", rope_query, ndim=query.ndim)
    latent = real_array("latent", latent, min_ndim=2)
    rope_key = real_array("rope_key", rope_key, ndim=latent.ndim)
    if rope_query.shape[:-1] != query.shape[:-1]:
        raise ValueError(
            f"rope_query must have the axes of query before the last, {query.shape[:-1]}, "
            f"got {rope_query.shape[:-1]}"
        )
    if rope_key.shape[:-1] != latent.shape[:-1]:
        raise ValueError(
            f"rope_key must have the axes of latent before the last, {latent.shape[:-1]}, "
            f"got {rope_key.shape[:-1]}"
        )
    same_size("width", ("rope_query", rope_query.shape[-1]), ("rope_key", rope_key.shape[-1]))
    same_size("width", ("query", query.shape[-1]), ("the output of up_key", up_key.shape[-2]))
    for name, up in (("up_key", up_key), ("up_value", up_value)):
        same_size("width", ("latent", latent.shape[-1]), (name, up.shape[-1]))
    scale = real_number("scale", scale, above=0)
    one_of("form", form, _FORMS)
    single = query.ndim == up_key.ndim - 1
    if single:
        query, rope_query = query[..., None, :], rope_query[..., None, :]
    if up_key.ndim == 3:
        heads = query.shape[-3]
        same_size("number of heads", ("query", heads), ("up_key", up_key.shape[0]))
        same_size("number of heads", ("query", heads), ("up_value", up_value.shape[0]))
        latent, rope_key = latent[..., None, :, :], rope_key[..., None, :, :]  # shared by all heads

    if form == "explicit":
        key, value = latent @ up_key.mT, latent @ up_value.mT
        shared = np.broadcast_to(rope_key, (*key.shape[:-1], rope_key.shape[-1]))
        read = attention(
            np.concatenate([query, rope_query], axis=-1),
            np.concatenate([key, shared], axis=-1),
            value, mask, scale=scale,
        )  # fmt: skip
    else:
        read = attention(
            np.concatenate([query @ up_key, rope_query], axis=-1),
            np.concatenate([latent, rope_key], axis=-1),
            latent, mask, scale=scale,
        ) @ up_value.mT  # fmt: skip
    return read[..., 0, :] if single else read


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentWeights:
    r"""The weights of a latent attention layer: every matrix (out, in), heads first.

    Attributes:
        query: From the input to the queries; or, at low rank, the next three instead.
        query_down: From the input to the query's latent.
        query_norm: Weights of its RMSNorm; none, no norm.
        query_up: From the query's latent to the queries; the channels to rotate come last.
        kv_down: From the input to the latent that is cached.
        kv_norm: Weights of the latent's RMSNorm; none, no norm. What is cached is normalised.
        up_key: From the latent to each head's keys.
        up_value: From the latent to each head's values.
        rope_key: From the input to the one key that is rotated, for all heads.
        output: From each head's read to the output.
        norm_epsilon: Added to the mean square under the root.

    Raises:
        ValueError: If neither or both kinds of query weights are given, or shapes do not fit.
    """

    kv_down: Float[ndarray, "rank d_model"]
    up_key: Float[ndarray, "head nope rank"]
    up_value: Float[ndarray, "head d_v rank"]
    rope_key: Float[ndarray, "rope d_model"]
    output: Float[ndarray, "head d_model d_v"]
    query: Float[ndarray, "head nope+rope d_model"] | None = None
    query_down: Float[ndarray, "query_rank d_model"] | None = None
    query_norm: Float[ndarray, " query_rank"] | None = None
    query_up: Float[ndarray, "head nope+rope query_rank"] | None = None
    kv_norm: Float[ndarray, " rank"] | None = None
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        low_rank = self.query_down is not None and self.query_up is not None
        if (self.query is None) != low_rank or (
            not low_rank and not self.query_down is self.query_norm is self.query_up is None
        ):
            raise ValueError(
                "query must be given, or query_down and query_up instead of it, got "
                + (", ".join(n for n in ("query", "query_down", "query_norm", "query_up")
                             if getattr(self, n) is not None) or "none of them")
            )
        rank, d_model = real_array("kv_down", self.kv_down, ndim=2).shape
        heads, nope, _ = real_array("up_key", self.up_key, shape=(None, None, rank)).shape
        d_v = real_array("up_value", self.up_value, shape=(heads, None, rank)).shape[1]
        rope = real_array("rope_key", self.rope_key, shape=(None, d_model)).shape[0]
        shapes = {
            "kv_down": (rank, d_model), "up_key": (heads, nope, rank),
            "up_value": (heads, d_v, rank), "rope_key": (rope, d_model),
            "output": (heads, d_model, d_v), "kv_norm": (rank,),
            "query": (heads, nope + rope, d_model),
        }  # fmt: skip
        if low_rank:
            query_rank = real_array("query_down", self.query_down, ndim=2).shape[0]
            shapes |= {
                "query_down": (query_rank, d_model), "query_norm": (query_rank,),
                "query_up": (heads, nope + rope, query_rank),
            }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                array = real_array(name, getattr(self, name), shape=shape)
                object.__setattr__(self, name, array)
        epsilon = real_number("norm_epsilon", self.norm_epsilon, minimum=0)
        object.__setattr__(self, "norm_epsilon", epsilon)


class LatentCache(NamedTuple):
    """What latent attention keeps of each token: its normalised latent and its rotated key.

    Attributes:
        latent: The latents.
        rope_key: The one rotated key of each token, for all heads.
    """

    latent: Float[ndarray, "*batch key rank"]
    rope_key: Float[ndarray, "*batch key rope"]

    @property
    def scalars(self) -> int:
        """Scalars held: latent and rotated key of every token."""
        return self.latent.size + self.rope_key.size


def _rms_norm(x: ndarray, weight: ndarray | None, epsilon: float) -> ndarray:
    return x if weight is None else rms_norm(x, weight, eps=epsilon)


def latent_attention(
    x: Float[ndarray, "*batch time d_model"],
    weights: LatentWeights,
    *,
    frequencies: Frequencies | None = None,
    scale: float | None = None,
    cache: LatentCache | None = None,
    form: Literal["explicit", "absorbed"] = "absorbed",
) -> tuple[Float[ndarray, "*batch time d_model"], LatentCache]:
    r"""A layer of causal multi-head latent attention, from its input to its output.

    $$c = \operatorname{norm}(W_c x), \qquad k^r = R_p W_r x, \qquad
    [q_h; q^r_h] = W_{q,h} x, \qquad y = \sum_h O_h\, \text{read}_h(q_h, R_p q^r_h, c, k^r)$$

    Rotated channels come last in each head and are paired interleaved. The tokens stand after
    those of the cache; what is returned beside the output is the cache with them appended.

    Args:
        x: The layer's input, already normalised as the block does.
        weights: The layer's weights.
        frequencies: Of the rotated channels; the plain ones of base 10 000 unless given. Zeros
            leave them unrotated, as Kimi Linear does.
        scale: Factor on the scores; over the root of the whole query width unless given.
        cache: Latents and rotated keys of the tokens before.
        form: How `latent_read` computes: the outputs agree, the costs do not.

    Raises:
        ValueError: If shapes do not fit, or the frequencies are for another width.

    Source:
        DeepSeek-V2, arXiv 2405.04434, sections 2.1.2–2.1.3, equations 37–47; layout: its code.

    Example:
        >>> one = np.ones((1, 1, 1))
        >>> weights = LatentWeights(
        ...     query=one, kv_down=one[0], up_key=one, up_value=one, output=one,
        ...     rope_key=np.ones((0, 1)),
        ... )
        >>> output, cache = latent_attention([[2.0]], weights)
        >>> output.tolist(), cache.scalars
        ([[2.0]], 1)
    """
    instance("weights", weights, LatentWeights)
    if frequencies is not None:
        instance("frequencies", frequencies, Frequencies)
    if cache is not None:
        instance("cache", cache, LatentCache)
    d_model, rope = weights.kv_down.shape[1], weights.rope_key.shape[0]
    nope = weights.up_key.shape[1]
    x = real_array("x", x, min_ndim=2)
    same_size("width", ("weights", d_model), ("x", x.shape[-1]))
    one_of("form", form, _FORMS)
    if frequencies is not None and frequencies.rotary_dim != rope:
        raise ValueError(
            f"frequencies must be for the {rope} channels that are rotated, "
            f"got {frequencies.rotary_dim}"
        )
    scale = (nope + rope) ** -0.5 if scale is None else real_number("scale", scale, above=0)
    past = 0
    if cache is not None:
        for name, new in (("latent", weights.kv_down), ("rope_key", weights.rope_key)):
            held = getattr(cache, name)
            wanted = (*x.shape[:-2], None, new.shape[0])
            real_array(f"cache.{name}", held, shape=wanted)
        past = same_size(
            "length", ("cache.latent", cache.latent.shape[-2]),
            ("cache.rope_key", cache.rope_key.shape[-2]),
        )  # fmt: skip
    positions = past + np.arange(x.shape[-2])
    if frequencies is None and rope:
        frequencies = rope_frequencies(rope)

    def turn(channels: ndarray) -> ndarray:
        if rope == 0:
            return channels
        return rotate(channels, positions, frequencies, layout="interleaved")

    if weights.query is not None:
        source, up = x, weights.query
    else:
        source = _rms_norm(x @ weights.query_down.T, weights.query_norm, weights.norm_epsilon)
        up = weights.query_up
    query = einsum(source, up, "... time width, head out width -> ... head time out")
    latent = _rms_norm(x @ weights.kv_down.T, weights.kv_norm, weights.norm_epsilon)
    rope_key = turn(x @ weights.rope_key.T)
    if cache is not None:
        latent = np.concatenate([cache.latent, latent], axis=-2)
        rope_key = np.concatenate([cache.rope_key, rope_key], axis=-2)
    read = latent_read(
        query[..., :nope], turn(query[..., nope:]), latent, rope_key, weights.up_key,
        weights.up_value, scale=scale, mask=causal(x.shape[-2], past + x.shape[-2]), form=form,
    )  # fmt: skip
    output = einsum(read, weights.output, "... head time v, head out v -> ... time out")
    return output, LatentCache(latent, rope_key)
