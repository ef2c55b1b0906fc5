"""Speculative decoding: a draft proposes, the target verifies, the output is the target's own."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from ._checks import integer, real_array, real_number

__all__ = ["Verdict", "expected_tokens", "output_distribution", "residual", "verify"]


class Verdict(NamedTuple):
    """What verification decides.

    Attributes:
        accepted: How many drafted tokens are kept, counted from the first.
        next_distribution: What the one token after them is drawn from.
    """

    accepted: int
    next_distribution: Float[ndarray, " vocabulary"]


def _distribution(name: str, value) -> Float[ndarray, "*batch vocabulary"]:
    array = real_array(name, value, min_ndim=1)
    if array.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one token, got shape {array.shape}")
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    off = np.abs(array.sum(axis=-1) - 1)
    if (off > 1e-6).any():  # room for distributions computed in float32
        total = array.sum(axis=-1).flat[off.argmax()]
        raise ValueError(f"{name} must sum to 1 over its last axis, got {total}")
    return array


def _pair(target, draft) -> tuple[ndarray, ndarray]:
    target, draft = _distribution("target", target), _distribution("draft", draft)
    if target.shape != draft.shape:
        raise ValueError(f"draft must have target's shape {target.shape}, got {draft.shape}")
    return target, draft


def _surplus(target: ndarray, draft: ndarray) -> tuple[ndarray, ndarray]:
    surplus = np.maximum(target - draft, 0.0)
    return surplus, surplus.sum(axis=-1, keepdims=True)


def residual(
    target: Float[ndarray, "*batch vocabulary"], draft: Float[ndarray, "*batch vocabulary"]
) -> Float[ndarray, "*batch vocabulary"]:
    r"""What a token is drawn from after a rejection: the target's surplus over the draft.

    $$r(x) = \dfrac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)}$$

    Raises:
        ValueError: If either is not a distribution, or they are equal: then nothing is ever
            rejected, and the surplus is 0/0.

    Source:
        Leviathan et al. 2022, arXiv 2211.17192, section 2.3.

    Example:
        >>> residual([0.6, 0.3, 0.1], [0.2, 0.5, 0.3]).tolist()
        [1.0, 0.0, 0.0]
    """
    target, draft = _pair(target, draft)
    surplus, mass = _surplus(target, draft)
    if (mass == 0).any():
        raise ValueError("target equals draft: no token is ever rejected, so nothing is left over")
    return surplus / mass


def output_distribution(
    target: Float[ndarray, "*batch vocabulary"], draft: Float[ndarray, "*batch vocabulary"]
) -> Float[ndarray, "*batch vocabulary"]:
    r"""What a drafted, verified and if need be redrawn token is distributed as.

    $$\min(p, q) + \bigl(1 - \sum_y \min(p(y), q(y))\bigr)\, r = p$$

    Computed from the procedure, not from the identity: mass accepted at each token, and the mass
    rejected spread over the residual.

    Raises:
        ValueError: If either is not a distribution.

    Source:
        Leviathan et al. 2022, arXiv 2211.17192, appendix A.1.

    Example:
        >>> output_distribution([0.6, 0.3, 0.1], [0.2, 0.5, 0.3]).round(12).tolist()
        [0.6, 0.3, 0.1]
    """
    target, draft = _pair(target, draft)
    accepted = np.minimum(target, draft)
    rejected = 1.0 - accepted.sum(axis=-1, keepdims=True)
    surplus, mass = _surplus(target, draft)
    # Where the two are equal nothing is rejected, and the residual, 0/0, is not needed.
    return accepted + rejected * np.divide(
        surplus, mass, out=np.zeros_like(surplus), where=mass > 0
    )


def verify(
    target: Float[ndarray, "steps vocabulary"],
    draft: Float[ndarray, "lookahead vocabulary"],
    tokens: Int[ndarray, " lookahead"],
    uniforms: Float[ndarray, " lookahead"],
) -> Verdict:
    r"""Accept drafted tokens from the left while each passes its test, and say what comes next.

    Token $x_i \sim q_i$ is kept while $u_i \le p_i(x_i)/q_i(x_i)$ and $p_i(x_i) > 0$. The token
    after the kept ones is drawn from the residual at the first rejection, or from $p_\gamma$ if
    all were kept.

    Args:
        target: $p_0, \dots, p_\gamma$: one more than was drafted.
        draft: $q_0, \dots, q_{\gamma-1}$, as actually sampled from, after temperature and cuts.
        tokens: What the draft proposed.
        uniforms: Draws from the uniform distribution on [0, 1], one per token.

    Raises:
        ValueError: If shapes disagree, a row is not a distribution, a token lies outside the
            vocabulary or cannot have come from the draft, or a draw lies outside [0, 1].

    Source:
        Leviathan et al. 2022, arXiv 2211.17192, algorithm 1.

    Example:
        >>> target, draft = [[0.6, 0.3, 0.1]] * 2, [[0.2, 0.5, 0.3]]
        >>> verify(target, draft, [1], [0.7])  # kept with probability 0.3 / 0.5
        Verdict(accepted=0, next_distribution=array([1., 0., 0.]))
    """
    target, draft = real_array("target", target, ndim=2), real_array("draft", draft, ndim=2)
    tokens, uniforms = real_array("tokens", tokens, ndim=1), real_array("uniforms", uniforms, ndim=1)
    lookahead, vocabulary = len(tokens), target.shape[-1]
    for name, array, shape in (
        ("target", target, (lookahead + 1, vocabulary)),
        ("draft", draft, (lookahead, vocabulary)),
        ("uniforms", uniforms, (lookahead,)),
    ):
        if array.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape} for {lookahead} drafted tokens, got {array.shape}"
            )
    target = _distribution("target", target)
    if lookahead:
        draft = _distribution("draft", draft)
    if ((tokens < 0) | (tokens >= vocabulary) | (tokens != np.floor(tokens))).any():
        raise ValueError(f"tokens must be integers from 0 to {vocabulary - 1}, got {tokens.tolist()}")
    if ((uniforms < 0) | (uniforms > 1)).any():
        raise ValueError(f"uniforms must lie in [0, 1], got {uniforms.tolist()}")
    steps, tokens = np.arange(lookahead), tokens.astype(int)
    wanted, proposed = target[steps, tokens], draft[steps, tokens]
    if (proposed == 0).any():
        step = int((proposed == 0).argmax())
        raise ValueError(f"tokens[{step}] must be possible under draft, got one of probability 0")

    kept = (uniforms <= wanted / proposed) & (wanted > 0)
    if kept.all():
        return Verdict(lookahead, target[lookahead])
    first = int((~kept).argmax())
    surplus, mass = _surplus(target[first], draft[first])
    # Equal distributions reject nothing, unless they differ by a rounding error.
    return Verdict(first, surplus / mass if mass > 0 else target[first])


def expected_tokens(acceptance: float, lookahead: int) -> float:
    r"""How many tokens one run of the target yields when each draft is kept independently.

    $$\sum_{i=0}^{\gamma} \alpha^i = \dfrac{1 - \alpha^{\gamma+1}}{1 - \alpha}$$

    Args:
        acceptance: $\alpha = \sum_x \min(p(x), q(x))$, between 0 and 1.
        lookahead: $\gamma$, tokens drafted per run.

    Raises:
        ValueError: If the acceptance is not a probability or the lookahead is negative.

    Source:
        Leviathan et al. 2022, arXiv 2211.17192, section 3.

    Example:
        >>> expected_tokens(0.5, 3)
        1.875
        >>> expected_tokens(1.0, 3)
        4.0
    """
    acceptance = real_number("acceptance", acceptance, minimum=0, maximum=1)
    integer("lookahead", lookahead, minimum=0)
    # The sum, not the quotient: nothing to except at an acceptance of 1.
    return float(sum(acceptance**kept for kept in range(lookahead + 1)))
