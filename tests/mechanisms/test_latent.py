"""Latent attention against one head, one query and one key at a time."""

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    Frequencies,
    LatentCache,
    LatentWeights,
    causal,
    latent_attention,
    latent_read,
    rope_frequencies,
)

forms = st.sampled_from(["explicit", "absorbed"])


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def one_head(query, rope_query, latent, rope_key, up_key, up_value, scale, mask):
    output = []
    for i, (q, r) in enumerate(zip(query, rope_query, strict=True)):
        scores = {
            j: scale * (q @ (up_key @ c) + r @ k)
            for j, (c, k) in enumerate(zip(latent, rope_key, strict=True))
            if mask[i][j]
        }
        most = max(scores.values())
        mass = {j: exp(score - most) for j, score in scores.items()}
        output.append(sum(m * (up_value @ latent[j]) for j, m in mass.items()) / sum(mass.values()))
    return np.array(output)


def case(seed, heads, queries, keys, nope, rope, rank, d_v):
    rng = np.random.default_rng(seed)
    return {
        "query": rng.normal(size=(heads, queries, nope)),
        "rope_query": rng.normal(size=(heads, queries, rope)),
        "latent": rng.normal(size=(keys, rank)),
        "rope_key": rng.normal(size=(keys, rope)),
        "up_key": rng.normal(size=(heads, nope, rank)),
        "up_value": rng.normal(size=(heads, d_v, rank)),
    }


small = st.integers(1, 4)
cases = st.builds(
    case, st.integers(0, 99), small, small, st.integers(4, 6), small, st.integers(0, 3), small, small
)


@given(cases, forms)
def test_read_one_head_at_a_time(parts, form):
    queries, keys = parts["query"].shape[1], len(parts["latent"])
    mask = causal(queries, keys)
    read = latent_read(**parts, scale=0.6, mask=mask, form=form)
    for head in range(len(parts["query"])):
        alone = {
            name: array if name in ("latent", "rope_key") else array[head]
            for name, array in parts.items()
        }
        expected = one_head(**alone, scale=0.6, mask=mask)
        close(read[head], expected)
        # One head may come without its axis.
        close(latent_read(**alone, scale=0.6, mask=mask, form=form), expected)


@given(cases)
def test_absorbed_equals_explicit_for_any_widths(parts):
    explicit, absorbed = (
        latent_read(**parts, scale=0.3, form=form) for form in ("explicit", "absorbed")
    )
    close(absorbed, explicit)


@given(cases, forms)
def test_a_single_query_needs_no_axis(parts, form):
    alone = {
        name: array[:, -1] if name.endswith("query") else array for name, array in parts.items()
    }
    close(
        latent_read(**alone, scale=0.6, form=form), latent_read(**parts, scale=0.6, form=form)[:, -1]
    )


def test_batches_are_read_apart():
    first, second = case(1, 2, 3, 4, 2, 2, 3, 2), case(2, 2, 3, 4, 2, 2, 3, 2)
    own = ("query", "rope_query", "latent", "rope_key")
    both = {name: np.stack([first[name], second[name]]) for name in own}
    ups = {name: first[name] for name in ("up_key", "up_value")}
    for form in ("explicit", "absorbed"):
        read = latent_read(**both, **ups, scale=0.5, form=form)
        close(read[0], latent_read(**first, scale=0.5))
        close(read[1], latent_read(**{**second, **ups}, scale=0.5))


def layer(seed=0, *, low_rank=False, norm=True, heads=2, nope=3, rope=4, rank=5, d_v=3, width=6):
    rng = np.random.default_rng(seed)
    weights = {
        "kv_down": rng.normal(size=(rank, width)),
        "up_key": rng.normal(size=(heads, nope, rank)),
        "up_value": rng.normal(size=(heads, d_v, rank)),
        "rope_key": rng.normal(size=(rope, width)),
        "output": rng.normal(size=(heads, width, d_v)),
    }
    if norm:
        weights["kv_norm"] = rng.uniform(0.5, 1.5, size=rank)
    if low_rank:
        weights["query_down"] = rng.normal(size=(4, width))
        weights["query_up"] = rng.normal(size=(heads, nope + rope, 4))
        if norm:
            weights["query_norm"] = rng.uniform(0.5, 1.5, size=4)
    else:
        weights["query"] = rng.normal(size=(heads, nope + rope, width))
    return weights, rng.normal(size=(5, width))


def normalised(x, weight):
    return x if weight is None else weight * x / sqrt(sum(v * v for v in x) / len(x) + 1e-6)


def turned(x, position, frequencies):
    x = x.copy()
    for i, frequency in enumerate(frequencies):
        a, b = x[2 * i], x[2 * i + 1]
        c, s = np.cos(position * frequency), np.sin(position * frequency)
        x[2 * i], x[2 * i + 1] = a * c - b * s, a * s + b * c
    return x


def by_hand(weights, x, frequencies, scale):
    """Every token, head and key in turn; nothing is cached."""
    nope = weights["up_key"].shape[1]
    output = np.zeros_like(x)
    for i in range(len(x)):
        if "query" in weights:
            source, up = x[i], weights["query"]
        else:
            source = normalised(weights["query_down"] @ x[i], weights.get("query_norm"))
            up = weights["query_up"]
        for head in range(len(up)):
            query = up[head] @ source
            scores, values = [], []
            for j in range(i + 1):
                latent = normalised(weights["kv_down"] @ x[j], weights.get("kv_norm"))
                key = weights["up_key"][head] @ latent
                rope_key = turned(weights["rope_key"] @ x[j], j, frequencies)
                rope_query = turned(query[nope:], i, frequencies)
                scores.append(scale * (query[:nope] @ key + rope_query @ rope_key))
                values.append(weights["up_value"][head] @ latent)
            mass = np.exp(np.array(scores) - max(scores))
            output[i] += weights["output"][head] @ (mass @ np.array(values) / mass.sum())
    return output


@pytest.mark.parametrize("form", ["explicit", "absorbed"])
@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("norm", [False, True])
def test_layer_token_by_token(form, low_rank, norm):
    weights, x = layer(low_rank=low_rank, norm=norm)
    output, cache = latent_attention(x, LatentWeights(**weights), form=form)
    close(output, by_hand(weights, x, [1.0, 0.01], 7**-0.5))
    assert cache.latent.shape == (5, 5) and cache.rope_key.shape == (5, 4)
    assert cache.scalars == 5 * (5 + 4)


def test_frequencies_and_scale_are_the_callers():
    weights, x = layer(3)
    frequencies = rope_frequencies(4, base=100.0)
    output, _ = latent_attention(x, LatentWeights(**weights), frequencies=frequencies, scale=0.9)
    close(output, by_hand(weights, x, [1.0, 0.1], 0.9))
    still, _ = latent_attention(x, LatentWeights(**weights), frequencies=Frequencies(np.zeros(2)))
    close(still, by_hand(weights, x, [0.0, 0.0], 7**-0.5))


@given(st.integers(0, 20), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.booleans(), forms)
def test_a_cache_changes_nothing(seed, chunks, low_rank, form):
    weights, _ = layer(seed, low_rank=low_rank)
    weights = LatentWeights(**weights)
    x = np.random.default_rng(seed).normal(size=(2, sum(chunks), 6))
    full, at_once = latent_attention(x, weights)
    pieces, cache, done = [], None, 0
    for chunk in chunks:
        piece, cache = latent_attention(x[:, done : done + chunk], weights, cache=cache, form=form)
        pieces.append(piece)
        done += chunk
    close(np.concatenate(pieces, axis=-2), full)
    close(cache.latent, at_once.latent)
    close(cache.rope_key, at_once.rope_key)


def test_no_rotated_channels():
    weights, x = layer(4, rope=0)
    output, cache = latent_attention(x, LatentWeights(**weights))
    close(output, by_hand(weights, x, [], 3**-0.5))
    assert cache.scalars == 5 * 5


PARTS = case(0, 2, 3, 4, 3, 2, 5, 2)
WEIGHTS, X = layer(0)


def read(**changes):
    return lambda: latent_read(**{**PARTS, "scale": 1.0, **changes})


def weights(**changes):
    return lambda: LatentWeights(**{**WEIGHTS, **changes})


def attend(x=X, **options):
    return lambda: latent_attention(x, LatentWeights(**WEIGHTS), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (read(up_key=np.zeros(3)), "up_key must have 2 axes, or 3 with heads, got shape (3,)"),
        (read(up_value=np.zeros((2, 5))), "up_value must have 3 axes, got shape (2, 5)"),
        (read(query=np.zeros(3)), "query must have at least 2 axes, got shape (3,)"),
        (read(rope_query=np.zeros((1, 3, 2))),
         "rope_query must have the axes of query before the last, (2, 3), got (1, 3)"),
        (read(rope_key=np.zeros((1, 2))),
         "rope_key must have the axes of latent before the last, (4,), got (1,)"),
        (read(rope_key=np.zeros((4, 3))), "rope_key must have the width of rope_query, 2, got 3"),
        (read(query=np.zeros((2, 3, 4))), "the output of up_key must have the width of query, 4, got 3"),
        (read(latent=np.zeros((4, 6))), "up_key must have the width of latent, 6, got 5"),
        (read(up_value=np.zeros((2, 2, 4))), "up_value must have the width of latent, 5, got 4"),
        (read(up_key=np.zeros((1, 3, 5))), "up_key must have the number of heads of query, 2, got 1"),
        (read(up_value=np.zeros((1, 2, 5))), "up_value must have the number of heads of query, 2"),
        (read(scale=0.0), "scale must be a finite number above 0, got 0.0"),
        (read(form="latent"), "form must be 'explicit' or 'absorbed', got 'latent'"),
        (read(mask=np.zeros((3, 4), bool)), "mask must leave each query a key to read"),
        (read(mask=np.ones((3, 3), bool)), "mask must have 4 entries along its key axis"),
        (weights(query=None), "query must be given, or query_down and query_up instead of it, got none"),
        (weights(query_down=np.zeros((4, 6))),
         "query must be given, or query_down and query_up instead of it, got query, query_down"),
        (weights(query_norm=np.zeros(4)), "query must be given, or query_down and query_up instead"),
        (weights(query=None, query_down=np.zeros((4, 5)), query_up=np.zeros((2, 7, 4))),
         "query_down must have shape (4, 6), got (4, 5)"),
        (weights(query=None, query_down=np.zeros((4, 6)), query_up=np.zeros((2, 6, 4))),
         "query_up must have shape (2, 7, 4), got (2, 6, 4)"),
        (weights(query=None, query_down=np.zeros((4, 6)), query_up=np.zeros((2, 7, 4)), query_norm=np.zeros(3)),
         "query_norm must have shape (4,), got (3,)"),
        (weights(kv_norm=np.zeros(4)), "kv_norm must have shape (5,), got (4,)"),
        (weights(up_key=np.zeros((2, 3, 4))), "up_key must have shape (any, any, 5), got (2, 3, 4)"),
        (weights(up_value=np.zeros((1, 3, 5))), "up_value must have shape (2, any, 5), got (1, 3, 5)"),
        (weights(rope_key=np.zeros((4, 5))), "rope_key must have shape (any, 6), got (4, 5)"),
        (weights(query=np.zeros((2, 6, 6))), "query must have shape (2, 7, 6), got (2, 6, 6)"),
        (weights(output=np.zeros((2, 3, 6))), "output must have shape (2, 6, 3), got (2, 3, 6)"),
        (weights(kv_norm=np.zeros(4)), "kv_norm must have shape (5,), got (4,)"),
        (weights(norm_epsilon=-1.0), "norm_epsilon must be a finite number at least 0, got -1.0"),
        (attend(np.zeros((5, 7))), "x must have the width of weights, 6, got 7"),
        (attend(form="fast"), "form must be 'explicit' or 'absorbed', got 'fast'"),
        (attend(frequencies=rope_frequencies(6)),
         "frequencies must be for the 4 channels that are rotated, got 6"),
        (attend(scale=-1.0), "scale must be a finite number above 0, got -1.0"),
        (attend(cache=LatentCache(np.zeros((2, 4)), np.zeros((2, 4)))),
         "cache.latent must have shape (any, 5), got (2, 4)"),
        (attend(cache=LatentCache(np.zeros((2, 5)), np.zeros((1, 4)))),
         "cache.rope_key must have the length of cache.latent, 2, got 1"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
