"""Cases of patches, speculative decoding and fits."""

import numpy as np

from ..mechanisms import ParametricLaw
from ..mechanisms import parametric_loss as _parametric_loss
from ._registry import case, edge, published
from .numbers import numbers

__all__: list[str] = []


@published("patchify", returns="patches")
def patchify():
    yield case("a batch", pixels=numbers(2, 3, 4, 6, seed=1), patch=2)
    yield case("patches that are not square", pixels=numbers(3, 4, 6, seed=2), patch=(2, 3))
    yield edge("one patch", pixels=numbers(3, 2, 2, seed=3), patch=2)
    yield edge("patches of one pixel", pixels=numbers(3, 2, 3, seed=4), patch=1)


@published("embed_patches", returns="tokens")
def embed_patches():
    arrays = {"pixels": numbers(3, 4, 6, seed=5), "kernel": numbers(5, 3, 2, 2, seed=6)}
    whole = {"class_token": numbers(5, seed=7), "positions": numbers(7, 5, seed=8)}
    yield case("a projection", **arrays)
    yield case("a bias", **arrays, bias=numbers(5, seed=9))
    yield case("a class token and positions", **arrays, bias=numbers(5, seed=9), **whole)
    yield edge("one patch", pixels=numbers(3, 2, 2, seed=5), kernel=arrays["kernel"])


@published("sincos_positions", returns="positions")
def sincos_positions():
    yield case("a grid that is not square", dim=8, grid=(2, 3))
    yield case("a square grid", dim=16, grid=3)
    yield edge("one patch", dim=8, grid=1)


@published("interpolate_positions", returns="positions")
def interpolate_positions():
    yield case("wider", positions=numbers(9, 2, seed=10), grid=(3, 5))
    yield case("a class token", positions=numbers(10, 2, seed=11), grid=(2, 4), class_token=True)
    yield case("smaller", positions=numbers(16, 2, seed=12), grid=3)
    yield edge("the same grid", positions=numbers(9, 2, seed=13), grid=3)


@published("sequence_length", returns="length")
def sequence_length():
    yield case("224 by 16", image=224, patch=16)
    yield case("without a class token", image=224, patch=16, class_token=False)
    yield case("not square", image=(224, 448), patch=(16, 32))
    yield edge("one patch", image=16, patch=16)


_TARGET, _DRAFT = np.array([0.625, 0.25, 0.125]), np.array([0.25, 0.5, 0.25])
_APART = {"target": np.array([0.5, 0.5, 0.0]), "draft": np.array([0.0, 0.0, 1.0])}


@published("residual", returns="distribution", distributions="target draft")
def residual():
    yield case("three tokens", target=_TARGET, draft=_DRAFT)
    yield case("a batch", target=np.stack([_TARGET, _DRAFT]), draft=np.stack([_DRAFT, _TARGET]))
    yield edge("disjoint", **_APART)


@published("output_distribution", returns="distribution", distributions="target draft")
def output_distribution():
    yield case("three tokens", target=_TARGET, draft=_DRAFT)
    yield edge("disjoint", **_APART)
    yield edge("equal", target=_TARGET, draft=_TARGET)
    yield edge("certain", target=np.array([1.0, 0.0]), draft=np.array([1.0, 0.0]))


@published("verify", returns="accepted next_distribution", distributions="target draft")
def verify():
    def steps(name, tokens, uniforms, target=_TARGET, draft=_DRAFT, make=case):
        # The distribution after the last draft is another one, so that it cannot be mistaken.
        many = np.tile(target, (len(tokens) + 1, 1))
        many[-1] = many[-1, ::-1]
        drafts = np.tile(draft, (len(tokens), 1))
        return make(name, target=many, draft=drafts, tokens=np.array(tokens, int), uniforms=np.array(uniforms))

    yield steps("all accepted", [0, 1], [0.75, 0.25])
    yield steps("the first rejected", [1, 0], [0.875, 0.25])
    yield steps("the second rejected", [0, 1], [0.25, 0.875])
    yield steps("the last rejected", [1], [0.875])
    yield steps("between the target's probability and the ratio", [1], [0.375])
    yield steps("the uniform equals the ratio", [1], [0.5], make=edge)
    yield steps("a token that the target never says", [0], [0.0], np.array([0.0, 1.0]),
                np.array([0.5, 0.5]), make=edge)  # fmt: skip
    yield steps("equal", [1, 1], [0.9375, 0.0], _TARGET, _TARGET, make=edge)
    yield steps("disjoint", [2], [0.25], _APART["target"], _APART["draft"], make=edge)


@published("expected_tokens", returns="tokens", variables="acceptance")
def expected_tokens():
    yield case("four drafts", acceptance=0.75, lookahead=4)
    yield edge("nothing accepted", acceptance=0.0, lookahead=4)
    yield edge("all accepted", acceptance=1.0, lookahead=4)
    yield edge("no draft", acceptance=0.75, lookahead=0)


_LAW = ParametricLaw(A=482.01, B=2085.43, E=1.8172, alpha=0.3478, beta=0.3658)


@published("power_law", returns="A alpha")
def power_law():
    yield case("two points", points=np.array([[2.0, 2.0], [4.0, 1.5]]))
    yield edge("a constant", points=np.array([[2.0, 2.0], [4.0, 2.0]]))


@published("fit_power_law", returns="A alpha")
def fit_power_law():
    compute = np.array([1.0, 2.0, 8.0, 16.0])
    yield case("scattered points", compute=compute, loss=np.array([4.0, 2.0, 2.5, 1.0]))
    yield edge("points on a line", compute=compute, loss=8 / compute)


@published("parametric_loss", returns="loss", variables="N D law")
def parametric_loss():
    yield case("one run", N=1e9, D=2e10, law=_LAW)
    yield case("several", N=np.array([1e8, 1e9, 1e10]), D=np.array([2e9, 2e10, 2e11]), law=_LAW)


# The answer of an optimiser: the loss is flat where it ends.
@published("fit_parametric", returns="A B E alpha beta", tolerance=1e-3)
def fit_parametric():
    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(4e7, 1.6e10, 5), np.geomspace(1e9, 5e11, 5)))
    loss = _parametric_loss(N, D, _LAW)
    yield case("exact losses", N=N, D=D, loss=loss)
    yield case("one outlier", N=N, D=D, loss=loss * np.where(np.arange(25) == 3, 1.25, 1.0))


@published("compute_optimal", returns="N D", variables="C law")
def compute_optimal():
    yield case("Chinchilla's compute", C=5.76e23, law=_LAW)
    yield case("a small run", C=1e18, law=_LAW)
