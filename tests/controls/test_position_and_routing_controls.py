"""Each control of positions, latents, experts, patches, speculation and fits is off on a small case."""

import numpy as np
import pytest

from archcards import controls
from archcards.mechanisms import (
    NTK,
    DynamicNTK,
    Frequencies,
    LatentWeights,
    Linear,
    Llama3,
    LongRoPE,
    ParametricLaw,
    Proportional,
    Routing,
    YaRN,
    latent_attention,
    parametric_loss,
    rope_frequencies,
    rotate,
    route_top_k,
)

FAR = 1e-3


def wave(*shape, start=0.0):
    """Numbers between −2 and 2 without pattern or randomness."""
    return 2 * np.sin(1 + start + np.arange(np.prod(shape)) ** 2).reshape(shape)


def turned(start=3, layout="half"):
    magnified = Frequencies(rope_frequencies(4).inverse, 1.2)
    return lambda f: f(wave(2, 6), [start, start + 2], magnified, layout=layout)


def scaled(scaling=None, dim=16, **options):
    def case(f):
        found = f(dim, scaling=scaling, **options)
        return found.inverse, found.attention_factor

    return case


YARN = YaRN(32.0, 4096, beta_fast=32, beta_slow=1)
READ = {
    "query": wave(2, 3, 4), "rope_query": wave(2, 3, 2), "latent": wave(5, 3), "rope_key": wave(5, 2),
    "up_key": wave(2, 4, 3), "up_value": wave(2, 4, 3, start=0.5), "scale": 0.4,
}  # fmt: skip
WEIGHTS = LatentWeights(
    query=wave(2, 7, 6), kv_down=wave(3, 6), kv_norm=[0.5, 1.0, 2.0], up_key=wave(2, 3, 3),
    up_value=wave(2, 4, 3), rope_key=wave(4, 6), output=wave(2, 6, 4),
)  # fmt: skip


def layer(cached=False):
    def case(f):
        cache = latent_attention(wave(2, 6, start=1.0), WEIGHTS)[1] if cached else None
        output, cache = f(wave(3, 6) / 4, WEIGHTS, cache=cache)
        return output, cache.latent, cache.rope_key

    return case


def second_call(f):
    """What a second call reads from the cache of the first, both by the control."""
    _, cache = f(wave(2, 6, start=1.0), WEIGHTS)
    return f(wave(3, 6), WEIGHTS, cache=cache)[0]


def routed(*arguments, **options):
    def case(f):
        routing = f(*arguments, **options)
        return routing.experts, routing.weights

    return case


LOGITS = np.array([[2.0, 1.5, 0.0, -1.0], [1.0, 0.5, 0.25, 2.0]])
BIAS = np.array([-3.0, -3.5, -9.0, -9.5])
GROUPS = {"groups": 2, "kept_groups": 1}
APART = np.array([[3.0, -3.0, 2.0, 2.0]])  # the best expert and the two best are in different groups


def mixed(weights=(1.0, 0.25), shared=()):
    x, routing = wave(2, 3), Routing([[0], [1]], np.array(weights)[:, None])
    return lambda f: f(x, [np.tanh, np.exp], routing, shared=shared)


TARGET, DRAFT = [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]


def verdict(tokens, uniforms, target=TARGET, draft=DRAFT):
    def case(f):
        found = f([target] * (len(tokens) + 1), [draft] * len(tokens), tokens, uniforms)
        return found.accepted, found.next_distribution

    return case


LAW = ParametricLaw(A=482.01, B=2085.43, E=1.8172, alpha=0.3478, beta=0.3658)
N, D = (x.ravel() for x in np.meshgrid(np.geomspace(4e7, 1.6e10, 5), np.geomspace(1e9, 5e11, 5)))
OUTLIER = parametric_loss(N, D, LAW) * np.where(np.arange(25) == 3, 1.2, 1.0)


def fitted(f):
    law = f(N, D, OUTLIER)
    return parametric_loss(1e11, 2e12, law), np.log([law.A, law.B])


def points(*given):
    def case(f):
        law = f(*given)
        return law.A, law.alpha

    return case


NOISY = [1.0, 2.0, 8.0, 16.0], [4.0, 2.0, 2.5, 1.0]

CASES = {
    "rotate": {
        "pairs of the other layout": turned(),
        "frequencies laid out for the other layout": turned(layout="interleaved"),
        "clockwise": turned(),
        "a sign lost in the rotation": turned(layout="interleaved"),
        "last channels rotated": turned(),
        "attention factor left out": turned(),
        "attention factor squared": turned(),
        "positions counted from one": turned(),
        "positions restart with each call": turned(),
    },
    "rope_frequencies": {
        "exponent without its minus sign": scaled(),
        "exponent over the head width": scaled(),
        "pairs counted as channels": scaled(),
        "frequencies multiplied by the factor": scaled(Linear(4.0)),
        "base multiplied by alpha itself": scaled(NTK(4.0), dim=4, base=100.0),
        "dynamic NTK fixed at the trained length": scaled(DynamicNTK(2.0, 64), length=128, base=100.0),
        "dynamic NTK below the trained length": scaled(DynamicNTK(2.0, 64), length=48, base=100.0),
        "YaRN's bounds the other way round": scaled(YaRN(32.0, 64)),
        "YaRN's ramp reversed": scaled(YARN),
        "YaRN without its magnitude": scaled(YARN),
        "YaRN's magnitude squared": scaled(YARN),
        "given attention factor ignored": scaled(YaRN(32.0, 4096, attention_factor=1.0)),
        "mscale_all_dim ignored": scaled(YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=1.0)),
        "mscale needs mscale_all_dim": scaled(YaRN(40.0, 4096, mscale=0.707)),
        "Llama 3's ramp reversed": scaled(Llama3(8.0, 1.0, 4.0, 8192)),
        "Llama 3 without its ramp": scaled(Llama3(8.0, 1.0, 4.0, 64)),
        "LongRoPE's lists exchanged": scaled(LongRoPE((1.0, 1.5), (3.0, 9.0), 64, 32.0), dim=4),
        "proportional type's exponent over the rotated width": scaled(Proportional(0.5)),
        "proportional type turns the slow pairs": scaled(Proportional(0.25)),
    },
    "alibi_slopes": {
        "one geometric sequence for every count": lambda f: f(12),
        "cut from the power of two above": lambda f: f(12),
        "counted from zero": lambda f: f(8),
    },
    "latent_read": {
        name: lambda f: f(**READ)
        for name in (
            "scaled by the width that is not rotated",
            "rotated key left out",
            "rotated score not scaled",
            "two softmaxes added",
            "keys read as values",
            "latent returned without its projection",
        )
    },
    "latent_attention": {
        "scaled by the width that is not rotated": layer(),
        "rotated key not cached": second_call,
        "two latents cached": layer(),
        "norm of the latent left out": layer(),
        "halves rotated with weights for neighbours": layer(),
        "rotated channels de-interleaved": layer(),
        "rotated channels taken from the front": layer(),
        "positions restart after the cache": layer(cached=True),
    },
    "capacity": {
        "rounded down": lambda f: f(10, 4, 1.0),
        "at least four": lambda f: f(10, 4, 1.0),
        "a rounding error rounded up": lambda f: f(100, 1, 1.1),
        "tokens not shared among experts": lambda f: f(10, 4, 1.0),
    },
    "route_top_k": {
        "never renormalised": routed(LOGITS, 2),
        "always renormalised": routed(LOGITS, 2, renormalise=False),
        "other logits set to zero": routed(LOGITS, 2),
        "ties to the higher index": routed(np.zeros((1, 3)), 1),
        "sigmoid instead of softmax": routed(LOGITS, 2),
    },
    "route_switch": {
        "dropped token keeps its weight": routed(LOGITS[[0, 0]], 1),
        "places by probability": routed(np.array([[1.0, 0.0], [2.0, 0.0]]), 1),
        "one place too many": routed(LOGITS[[0, 0]], 1),
        "weight of one": routed(LOGITS, 2),
    },
    "route_sigmoid": {
        "bias leaks into the weights": routed(LOGITS, 2, bias=[0.0, 0.1, 0.2, 0.3]),
        "bias left out": routed(LOGITS, 2, bias=[0.0, 0.0, 2.0, 0.0]),
        "group scored by its best expert": routed(APART, 2, **GROUPS),
        "dropped groups at zero": routed(LOGITS, 2, bias=BIAS, **GROUPS),
        "softmax instead of sigmoid": routed(LOGITS, 2),
        "scaled before renormalising": routed(LOGITS, 2, scale=2.5),
        "never renormalised": routed(LOGITS, 2),
    },
    "route_group_max": {
        "group scored by its two best": routed(np.log([[4.0, 1.0, 3.0, 3.0]]), 2, **GROUPS),
        "renormalised": routed(LOGITS, 2, **GROUPS),
        "scale left out": routed(LOGITS, 2, scale=16.0, **GROUPS),
        "groups ignored": routed(LOGITS[1:], 2, **GROUPS),
    },
    "mixture": {
        "dropped token passes unchanged": mixed((1.0, 0.0)),
        "weights on the input": mixed(),
        "weights left out": mixed(),
        "shared experts averaged in": mixed(shared=(np.cos, np.sin)),
    },
    "load_balance_loss": {
        "k when balanced": lambda f: f(LOGITS, 2),
        "not multiplied by the experts": lambda f: f(LOGITS, 2),
        "probabilities for both factors": lambda f: f(LOGITS, 2),
        "only the best expert counted": lambda f: f(LOGITS, 2),
    },
    "router_z_loss": {
        "mean before the square": lambda f: f([[5.0, 0.0], [-5.0, -6.0]]),
        "summed over tokens": lambda f: f(LOGITS),
        "squares of the logits": lambda f: f(LOGITS),
    },
    "patchify": {
        name: lambda f: f(wave(3, 4, 6), 2)
        for name in (
            "channels last inside a patch", "patches column by column", "reshaped without moving axes",
        )
    },
    "embed_patches": {
        name: lambda f: f(
            wave(3, 4, 6), wave(5, 3, 2, 2), wave(5), class_token=wave(5), positions=wave(7, 5)
        )
        for name in (
            "class token last", "class token without a position", "bias left out",
            "kernel turned around",
        )
    },
    "sincos_positions": {
        name: lambda f: f(8, (2, 3))
        for name in (
            "row half first", "exponent over half the width", "slowest wave at the base",
            "sines and cosines alternate",
        )
    },
    "interpolate_positions": {
        name: lambda f: f(wave(10, 2), (2, 4), class_token=True)
        for name in (
            "corners aligned", "linear with corners aligned", "kernel with a = -0.5",
            "an offset of a tenth", "rows and columns exchanged", "class token lost",
        )
    },
    "sequence_length": {
        name: lambda f: f(224, 16)
        for name in (
            "class token forgotten", "patches along one side", "pixels over the patch's side",
        )
    },
    "residual": {
        name: lambda f: f(TARGET, DRAFT)
        for name in (
            "not normalised", "the target itself", "absolute difference", "surplus of the draft",
        )
    },
    "output_distribution": {
        name: lambda f: f(TARGET, DRAFT)
        for name in (
            "redrawn from the target", "residual not normalised", "draft taken before its temperature",
        )
    },
    "verify": {
        "strictly below the ratio": verdict([1], [0.6]),
        "accepted where the target is zero": verdict([0], [0.0], [0.0, 1.0], [0.5, 0.5]),
        "compared with the target's probability": verdict([1], [0.5]),
        "ratio upside down": verdict([1], [0.9]),
        "redrawn from the target": verdict([1], [0.9]),
        "later tokens counted after a rejection": verdict([1, 0], [0.9, 0.5]),
        "no residual where the last draft was rejected": verdict([1], [0.9]),
    },
    "expected_tokens": {
        name: lambda f: f(0.8, 4)
        for name in (
            "the target's own token forgotten", "each draft counted by itself",
            "no end to the lookahead",
        )
    },
    "power_law": {
        name: points([(2.0, 2.0), (4.0, 1.5)])
        for name in (
            "exponent with its sign kept", "slope without logarithms", "two bases of logarithms",
        )
    },
    "fit_power_law": {
        name: points(*NOISY)
        for name in (
            "compute regressed on loss", "through the first and last point",
            "through the origin of log space",
        )
    },
    "parametric_loss": {
        name: lambda f: f(1e9, 2e10, LAW) for name in ("floor left out", "exponents exchanged")
    },
    "fit_parametric": {
        "squares instead of Huber's loss": fitted,
        "printed with two decimals": fitted,
        "averaged, and so stopped early": fitted,
    },
    "compute_optimal": {
        name: lambda f: np.log(f(5.76e23, LAW))
        for name in (
            "training counted as 2ND", "exponents exchanged", "twenty tokens a parameter",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("mechanism", CASES)
def test_every_control_is_off(errors, mechanism):
    found = errors(mechanism, CASES[mechanism])
    assert {name: error for name, error in found.items() if not error > FAR} == {}


def test_conventions_that_only_move_what_is_cached_agree_in_the_output():
    """De-interleaved keys, clockwise rotation and positions from one give the same scores."""
    reference = latent_attention(wave(3, 6), WEIGHTS)[0]
    other = controls.latent_attention["rotated channels de-interleaved"]
    np.testing.assert_allclose(other(wave(3, 6), WEIGHTS)[0], reference, rtol=1e-12)
    _, cache = other(wave(2, 6, start=1.0), WEIGHTS)
    _, own = latent_attention(wave(2, 6, start=1.0), WEIGHTS)
    np.testing.assert_allclose(
        other(wave(3, 6), WEIGHTS, cache=cache)[0],
        latent_attention(wave(3, 6), WEIGHTS, cache=own)[0],
        rtol=1e-12,
    )
    query, key = wave(2, 4)
    frequencies = rope_frequencies(4)
    for name in ("clockwise", "positions counted from one"):
        q, k = controls.rotate[name]([query, key], [2, 7], frequencies)
        p, j = rotate([query, key], [2, 7], frequencies)
        assert (q @ k == pytest.approx(p @ j)) == (name != "clockwise")
    # Clockwise on both is the transposed rotation: the score of the opposite distance.
    q, k = controls.rotate["clockwise"]([query, key], [2, 7], frequencies)
    p, j = rotate([query, key], [7, 2], frequencies)
    assert q @ k == pytest.approx(p @ j)


def test_mixed_layouts_are_badly_wrong():
    """transformers #25199: the query in one layout, the key in the other."""
    query, key, frequencies = wave(3, 8), wave(3, 8, start=0.4), rope_frequencies(8)
    other = controls.rotate["pairs of the other layout"]
    positions = [0, 3, 9]
    scores = rotate(query, positions, frequencies) @ rotate(key, positions, frequencies).T
    mixed = rotate(query, positions, frequencies) @ other(key, positions, frequencies).T
    assert abs(mixed - scores).max() > 1
    shifted = rotate(query, np.add(positions, 5), frequencies) @ other(
        key, np.add(positions, 5), frequencies
    ).T  # fmt: skip
    assert abs(shifted - mixed).max() > 0.1  # and no longer a matter of differences


def test_order_of_softmax_and_top_k_matters_only_without_renormalising():
    both = (route_top_k(LOGITS, 2, order=order) for order in ("softmax_first", "top_k_first"))
    first, second = both
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-14)
    kept = controls.route_top_k["never renormalised"](LOGITS, 2)
    assert (kept.weights.sum(axis=-1) < 0.95).all()
