"""Latent attention, wrong in named ways."""

from dataclasses import replace

import numpy as np

from ._reference import (
    LatentCache,
    attention,
    latent_attention,
    latent_read,
    rope_frequencies,
    rotate,
)
from ._registry import convention, mistake

__all__: list[str] = []


# latent_read


@mistake("latent_read", "scaled by the width that is not rotated")
def read_scaled_without_rope(
    query, rope_query, latent, rope_key, up_key, up_value, *, scale, **options
):
    """Divide scores by the root of d_nope, although d_nope + d_rope channels are summed.

    Seen in: ports that take the head width of the config for the width of the query.
    """
    nope, rope = np.shape(query)[-1], np.shape(rope_query)[-1]
    scale = scale * np.sqrt((nope + rope) / nope)
    return latent_read(query, rope_query, latent, rope_key, up_key, up_value, scale=scale, **options)


@mistake("latent_read", "rotated key left out")
def read_without_the_rope_key(
    query, rope_query, latent, rope_key, up_key, up_value, *, scale, **options
):
    """Score by the latent alone: what a cache of the latent can do that forgot the rotated key.

    Seen in: LMCache pull 694, which counts 512 scalars a token where DeepSeek-V3 caches 576.
    """
    nothing = np.zeros_like(rope_key, dtype=float)
    return latent_read(query, rope_query, latent, nothing, up_key, up_value, scale=scale, **options)


@mistake("latent_read", "rotated score not scaled")
def read_with_unscaled_rope(
    query, rope_query, latent, rope_key, up_key, up_value, *, scale, **options
):
    """Scale the latent's score and add the rotated one as it is.

    Seen in: absorbed forms that fold the scale into the absorbed query.
    """
    rope_query = np.asarray(rope_query, dtype=float) / scale
    return latent_read(query, rope_query, latent, rope_key, up_key, up_value, scale=scale, **options)


@mistake("latent_read", "two softmaxes added")
def read_with_two_softmaxes(
    query, rope_query, latent, rope_key, up_key, up_value, *, scale, **options
):
    """Weigh by the mean of a softmax for each score instead of the softmax of their sum.

    Seen in: a joint score read as two attentions.
    """
    content, position = np.zeros_like(query, dtype=float), np.zeros_like(rope_query, dtype=float)
    parts = ((query, position), (content, rope_query))
    reads = (
        latent_read(*part, latent, rope_key, up_key, up_value, scale=scale, **options)
        for part in parts
    )
    return sum(reads) / 2


@mistake("latent_read", "keys read as values")
def read_keys_as_values(query, rope_query, latent, rope_key, up_key, up_value, *, scale, **options):
    """Expand the values by the keys' projection.

    Seen in: a fused up-projection split in the wrong place.
    """
    return latent_read(query, rope_query, latent, rope_key, up_key, up_key, scale=scale, **options)


@mistake("latent_read", "latent returned without its projection")
def read_without_up_value(
    query, rope_query, latent, rope_key, up_key, up_value, *, scale, mask=None, form="explicit"
):
    """Return the weighted latent of each head: the absorbed form without its last step.

    Seen in: kernels whose caller must still project, such as those that return the latent's width.
    """
    wide = np.asarray(up_key).ndim == 3
    latent, rope_key = (np.asarray(x, float)[..., None, :, :] if wide else np.asarray(x, float)
                        for x in (latent, rope_key))  # fmt: skip
    return attention(
        np.concatenate([np.asarray(query, float) @ up_key, rope_query], axis=-1),
        np.concatenate([latent, rope_key], axis=-1),
        latent, mask, scale=scale,
    )  # fmt: skip


# latent_attention


def _rope(weights):
    return weights.rope_key.shape[0]


def _query_rows(weights, rows):
    """The weights with the rows of each head's query taken in another order."""
    name = "query" if weights.query is not None else "query_up"
    return {name: getattr(weights, name)[:, rows]}


@mistake("latent_attention", "scaled by the width that is not rotated")
def layer_scaled_without_rope(x, weights, *, scale=None, **options):
    """Divide scores by the root of d_nope, although d_nope + d_rope channels are summed.

    Seen in: ports that take the head width of the config for the width of the query.
    """
    scale = weights.up_key.shape[1] ** -0.5 if scale is None else scale
    return latent_attention(x, weights, scale=scale, **options)


@mistake("latent_attention", "rotated key not cached")
def layer_without_cached_rope_key(x, weights, *, cache=None, **options):
    """Keep 512 scalars a token, the latent, and lose the 64 of the rotated key.

    Seen in: LMCache pull 694.
    """
    if cache is not None:
        rope_key = np.zeros((*cache.latent.shape[:-1], _rope(weights)))
        cache = LatentCache(cache.latent, rope_key)
    output, cache = latent_attention(x, weights, cache=cache, **options)
    return output, LatentCache(cache.latent, cache.rope_key[..., :0])


@mistake("latent_attention", "two latents cached")
def layer_with_two_latents(x, weights, *, cache=None, **options):
    """Cache one latent for the keys and another, the same, for the values.

    Seen in: LMCache pull 694, whose 2 · 61 · 512 counts a pair as in other models.
    """
    rank = weights.kv_down.shape[0]
    if cache is not None:
        cache = LatentCache(cache.latent[..., :rank], cache.rope_key)
    output, cache = latent_attention(x, weights, cache=cache, **options)
    twice = np.concatenate([cache.latent, cache.latent], axis=-1)
    return output, LatentCache(twice, cache.rope_key)


@mistake("latent_attention", "norm of the latent left out")
def layer_without_latent_norm(x, weights, **options):
    """Cache and read the latent as the down-projection gives it.

    Seen in: ports that miss the norm between the two projections.
    """
    return latent_attention(x, replace(weights, kv_norm=None), **options)


@mistake("latent_attention", "halves rotated with weights for neighbours")
def layer_rotated_in_halves(x, weights, **options):
    """Rotate channels i and i + d/2, with weights whose pairs are neighbours.

    Seen in: DeepSeek's weights in code for halves that does not de-interleave them first.
    """
    # Rotating halves is rotating neighbours after moving each half's channel beside its partner.
    rope, nope = _rope(weights), weights.up_key.shape[1]
    order = np.arange(rope).reshape(2, -1).T.ravel()
    rows = np.concatenate([np.arange(nope), nope + order])
    moved = replace(weights, rope_key=weights.rope_key[order], **_query_rows(weights, rows))
    return latent_attention(x, moved, **options)


@convention("latent_attention", "rotated channels de-interleaved")
def layer_that_deinterleaves(x, weights, *, cache=None, **options):
    """Put the first channels of all pairs before the second ones: outputs agree, cached rotated keys
    differ by a permutation.

    Seen in: Hugging Face's DeepSeek code against DeepSeek's own.
    """
    order = np.arange(_rope(weights)).reshape(-1, 2).T.ravel()
    if cache is not None:
        cache = LatentCache(cache.latent, cache.rope_key[..., np.argsort(order)])
    output, cache = latent_attention(x, weights, cache=cache, **options)
    return output, LatentCache(cache.latent, cache.rope_key[..., order])


@mistake("latent_attention", "rotated channels taken from the front")
def layer_with_rotated_channels_first(x, weights, **options):
    """Split each query into the part to rotate and the rest, in this order; the weights have them last.

    Seen in: the order of most partial rotaries.
    """
    rows = np.roll(np.arange(weights.up_key.shape[1] + _rope(weights)), -_rope(weights))
    return latent_attention(x, replace(weights, **_query_rows(weights, rows)), **options)


@mistake("latent_attention", "positions restart after the cache")
def layer_with_restarted_positions(x, weights, *, frequencies=None, cache=None, **options):
    """Number the new tokens from zero, whatever the cache holds.

    Seen in: decoding loops that call the layer without an offset.
    """
    if cache is None or not _rope(weights):
        return latent_attention(x, weights, frequencies=frequencies, cache=cache, **options)
    frequencies = frequencies or rope_frequencies(_rope(weights))

    def shifted(rope_key, by):
        positions = np.full(rope_key.shape[:-1], by)
        return rotate(rope_key, positions, frequencies, layout="interleaved")

    # Only differences of positions count: the cached keys are moved up instead.
    past = cache.latent.shape[-2]
    moved = LatentCache(cache.latent, shifted(cache.rope_key, past))
    output, grown = latent_attention(x, weights, frequencies=frequencies, cache=moved, **options)
    return output, LatentCache(grown.latent, shifted(grown.rope_key, -past))
