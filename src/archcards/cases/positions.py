"""Cases of rotary positions, ALiBi and latent attention."""

import numpy as np

from ..mechanisms import (
    NTK,
    DynamicNTK,
    Frequencies,
    LatentWeights,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
    causal,
    rope_frequencies,
)
from ..mechanisms import latent_attention as _latent_attention
from ._registry import case, edge, published
from .numbers import between, numbers

__all__: list[str] = []


@published("rope_frequencies", returns="inverse attention_factor")
def frequencies():
    def scaled(name, scaling, dim=16, **options):
        return case(name, rotary_dim=dim, scaling=scaling, **options)

    yield case("no scaling", rotary_dim=16)
    yield case("another base", rotary_dim=8, base=500_000.0)
    yield scaled("linear", Linear(4.0))
    yield scaled("NTK", NTK(4.0), dim=8, base=100.0)
    yield scaled("dynamic NTK beyond the trained length", DynamicNTK(2.0, 64), length=128)
    yield scaled("dynamic NTK within the trained length", DynamicNTK(2.0, 64), length=48)
    yield scaled("YaRN", YaRN(32.0, 4096))
    yield scaled("YaRN over a short text", YaRN(32.0, 64))
    yield scaled("YaRN without rounded bounds", YaRN(32.0, 4096, truncate=False))
    yield scaled("YaRN, attention factor given", YaRN(32.0, 4096, attention_factor=1.0))
    yield scaled("YaRN, equal mscales", YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=1.0))
    yield scaled("YaRN, different mscales", YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=0.5))
    yield scaled("YaRN, mscale alone", YaRN(40.0, 4096, mscale=0.707))
    yield scaled("Llama 3", Llama3(8.0, 1.0, 4.0, 8192))
    yield scaled("Llama 3 over a short text", Llama3(8.0, 1.0, 4.0, 64))
    short, long = (1.0, 1.25, 1.5, 2.0), (2.0, 3.0, 9.0, 16.0)
    yield scaled("LongRoPE, short", LongRoPE(short, long, 64, 32.0), dim=8, length=64)
    yield scaled("LongRoPE, long", LongRoPE(short, long, 64, 32.0), dim=8, length=65)
    yield scaled("proportional", Proportional(0.25), base=1_000_000.0)
    yield scaled("proportional, and a factor", Proportional(0.75, 4.0), dim=8)
    yield edge("one pair", rotary_dim=2)
    yield edge("proportional, no pair turned", rotary_dim=16, scaling=Proportional(0.0))
    yield edge("Llama 3 with equal factors", rotary_dim=16, scaling=Llama3(8.0, 2.0, 2.0, 8192))
    yield edge("a factor of one", rotary_dim=16, scaling=YaRN(1.0, 4096))


@published("rotate", axes={"x": "batch head time feature", "output": "batch head time feature"})
def rotate():
    for layout in ("half", "interleaved"):
        whole = {"x": numbers(2, 2, 5, 8, seed=1), "layout": layout}
        plain = {"positions": np.arange(5), "frequencies": rope_frequencies(8)}
        yield case(f"{layout}: all channels", **whole, **plain)
        yield case(f"{layout}: positions that go on", **whole | plain | {"positions": np.arange(3, 8)})
        gaps = {"positions": np.array([9, 2, 2, 40, 0])}
        yield case(f"{layout}: positions with gaps and repeats", **whole | plain | gaps)
        part = {"frequencies": Frequencies(rope_frequencies(4).inverse, 1.25)}
        yield case(f"{layout}: some channels, and a factor", **whole | plain | part | gaps)
        odd = {"x": numbers(2, 2, 5, 7, seed=2), "frequencies": rope_frequencies(6)}
        yield edge(f"{layout}: an odd width, of which the last channel stays", **whole | plain | odd)
        yield edge(f"{layout}: position zero", **whole | plain | {"positions": np.zeros(5, int)})


@published("alibi_slopes", returns="slopes")
def alibi_slopes():
    yield case("a power of two", heads=8)
    yield case("no power of two", heads=12)
    yield edge("one head", heads=1)
    yield edge("three heads", heads=3)


def _read(queries, keys, d_v=4):
    return {
        "query": numbers(2, queries, 4, seed=1),
        "rope_query": numbers(2, queries, 2, seed=2),
        "latent": numbers(keys, 4, seed=3),
        "rope_key": numbers(keys, 2, seed=4),
        "up_key": numbers(2, 4, 4, seed=5) / 2,
        "up_value": numbers(2, d_v, 4, seed=6) / 2,
        "scale": 0.375,
    }


@published("latent_read", choices="form", axes={
    "query": "head time feature", "rope_query": "head time feature", "latent": "time feature",
    "rope_key": "time feature", "output": "head time feature",
})  # fmt: skip
def latent_read():
    yield case("no mask", **_read(3, 5))
    yield case("causal mask", **_read(5, 5), mask=causal(5))
    yield case("two queries after five keys", **_read(2, 5), mask=causal(2, 5))
    yield case("values narrower than latents", **_read(3, 5, d_v=3))
    yield edge("one query, one key", **_read(1, 1))


def _weights(query_rank=None):
    shared = {
        "kv_down": numbers(3, 6, seed=1) / 2, "up_key": numbers(2, 3, 3, seed=2) / 2,
        "up_value": numbers(2, 4, 3, seed=3) / 2, "rope_key": numbers(4, 6, seed=4) / 2,
        "output": numbers(2, 6, 4, seed=5) / 2, "kv_norm": np.array([0.5, 1.0, 2.0]),
    }  # fmt: skip
    if query_rank is None:
        return LatentWeights(**shared, query=numbers(2, 7, 6, seed=6) / 2)
    return LatentWeights(
        **shared,
        query_down=numbers(query_rank, 6, seed=7) / 2,
        query_norm=between(query_rank, seed=8) + 1 / 256,
        query_up=numbers(2, 7, query_rank, seed=9) / 2,
    )


@published("latent_attention", returns="output latent rope_key", choices="form")
def latent_attention():
    full, low = _weights(), _weights(query_rank=4)
    text = numbers(5, 6, seed=10)
    _, cache = _latent_attention(numbers(3, 6, seed=11), full)
    yield case("a prefill", x=text, weights=full)
    yield case("queries of low rank", x=text, weights=low)
    yield case("a chunk after a cache", x=text, weights=full, cache=cache)
    yield case("scale given", x=text, weights=full, scale=0.25)
    yield case("frequencies given", x=text, weights=full, frequencies=rope_frequencies(4, base=100.0))
    yield edge("one token", x=text[:1], weights=full)
    yield edge("one token after a cache", x=text[:1], weights=full, cache=cache)
