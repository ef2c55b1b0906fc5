"""Mixtures of experts: who serves a token, with which weight, and who is turned away.

A router turns logits into a `Routing`, the experts chosen for each token and their weights;
`mixture` runs it. Ties go to the expert with the lower index.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from einops import rearrange
from jaxtyping import Float, Int
from numpy import ndarray

from ._checks import function, instance, integer, one_of, real_array, real_number
from .attention import softmax

__all__ = [
    "Routing",
    "capacity",
    "load_balance_loss",
    "mixture",
    "route_group_max",
    "route_sigmoid",
    "route_switch",
    "route_top_k",
    "router_z_loss",
]

Expert = Callable[[Float[ndarray, "rows width"]], Float[ndarray, "rows width_out"]]


class Routing(NamedTuple):
    """Which experts serve each token, best first, and what their outputs are multiplied by.

    Attributes:
        experts: Indices of the chosen experts.
        weights: Their weights; zero where a token was dropped.
    """

    experts: Int[ndarray, "*tokens k"]
    weights: Float[ndarray, "*tokens k"]


def capacity(tokens: int, experts: int, factor: float, *, minimum: int = 0) -> int:
    r"""How many tokens each expert has room for, rounded up.

    $$\max(\lceil T f / E \rceil, \text{minimum})$$

    The factor is taken as the decimal it prints, so that 100 tokens at 1.1 need 110 places.

    Raises:
        ValueError: If tokens or minimum are negative, there is no expert, or the factor is not
            positive.

    Source:
        Fedus et al. 2021, arXiv 2101.03961, equation 3; rounded up as in Megatron-LM.

    Example:
        >>> capacity(10, 4, 1.0)
        3
        >>> capacity(100, 1, 1.1)
        110
    """
    integer("tokens", tokens, minimum=0)
    integer("experts", experts, minimum=1)
    integer("minimum", minimum, minimum=0)
    factor = real_number("factor", factor, above=0)
    return max(ceil(tokens * Fraction(repr(factor)) / experts), minimum)


def _logits(value, *, min_ndim: int = 1) -> Float[ndarray, "*tokens expert"]:
    logits = real_array("logits", value, min_ndim=min_ndim)
    if logits.shape[-1] == 0:
        raise ValueError(f"logits must have at least one expert, got shape {logits.shape}")
    return logits


def _chosen(k: int, experts: int) -> None:
    integer("k", k, minimum=1)
    if k > experts:
        raise ValueError(f"k must be at most the {experts} experts to choose from, got {k}")


def _top(scores: Float[ndarray, "*batch n"], k: int) -> Int[ndarray, "*batch k"]:
    return np.argsort(-scores, axis=-1, kind="stable")[..., :k]


def _keep_groups(
    scores: Float[ndarray, "*tokens expert"],
    group_scores: Float[ndarray, "*tokens group"],
    kept: int,
) -> Float[ndarray, "*tokens expert"]:
    # −inf, not 0: a biased score may be negative, and a dropped group must lose to it.
    allowed = np.zeros(group_scores.shape, dtype=bool)
    np.put_along_axis(allowed, _top(group_scores, kept), True, axis=-1)
    size = scores.shape[-1] // group_scores.shape[-1]
    return np.where(np.repeat(allowed, size, axis=-1), scores, -np.inf)


def _check_groups(experts: int, k: int, groups: int, kept_groups: int) -> None:
    integer("groups", groups, minimum=1)
    integer("kept_groups", kept_groups, minimum=1)
    if experts % groups:
        raise ValueError(f"groups must divide the {experts} experts, got {groups}")
    if kept_groups > groups:
        raise ValueError(f"kept_groups must be at most the {groups} groups, got {kept_groups}")
    _chosen(k, kept_groups * (experts // groups))


def route_top_k(
    logits: Float[ndarray, "*tokens expert"],
    k: int,
    *,
    order: Literal["softmax_first", "top_k_first"] = "softmax_first",
    renormalise: bool = True,
) -> Routing:
    r"""The `k` experts with the largest logits, weighted by a softmax.

    $$w_e = \dfrac{e^{z_e}}{\sum_{e' \in \text{top-}k} e^{z_{e'}}}$$

    A softmax over all experts, cut to the top k and renormalised, equals a softmax over the top k.
    Without renormalising, `softmax_first` keeps the weights of the full softmax, whose sum is
    below one; `top_k_first` has nothing to renormalise. Renormalised top-1 always weighs 1.

    Raises:
        ValueError: If `k` exceeds the experts, or the order is unknown.

    Source:
        Shazeer et al. 2017, arXiv 1701.06538, equations 3–5 (without noise).

    Example:
        >>> route_top_k([[0.0, np.log(3), np.log(4)]], 2, renormalise=False).weights.round(12).tolist()
        [[0.5, 0.375]]
    """
    logits = _logits(logits)
    _chosen(k, logits.shape[-1])
    one_of("order", order, ("softmax_first", "top_k_first"))
    experts = _top(logits, k)
    if order == "top_k_first" or renormalise:
        # The two orders agree; over the chosen logits no probability can have underflowed.
        return Routing(experts, softmax(np.take_along_axis(logits, experts, axis=-1)))
    return Routing(experts, np.take_along_axis(softmax(logits), experts, axis=-1))


def route_switch(logits: Float[ndarray, "*batch token expert"], capacity: int) -> Routing:
    r"""One expert a token, weighted by its probability, while the expert has room.

    $$e^* = \arg\max_e z_e, \quad w = \operatorname{softmax}(z)_{e^*}$$

    Places go in the order of the tokens, not of their probabilities; a token that finds its expert
    full is dropped: its weight is zero, and only the residual stream carries it on. Leading axes
    are separate groups, each with its own places.

    Raises:
        ValueError: If the capacity is negative.

    Source:
        Fedus et al. 2021, arXiv 2101.03961, sections 2.1–2.2.

    Example:
        >>> routing = route_switch(np.log([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]), 1)
        >>> routing.experts.ravel().tolist(), routing.weights.ravel().round(12).tolist()
        ([0, 0, 1], [0.75, 0.0, 0.75])
    """
    logits = _logits(logits, min_ndim=2)
    integer("capacity", capacity, minimum=0)
    experts = _top(logits, 1)
    weights = np.take_along_axis(softmax(logits), experts, axis=-1)
    asked = experts == np.arange(logits.shape[-1])
    place = np.take_along_axis(np.cumsum(asked, axis=-2), experts, axis=-1)  # from 1
    return Routing(experts, np.where(place <= capacity, weights, 0.0))


def route_sigmoid(
    logits: Float[ndarray, "*tokens expert"],
    k: int,
    *,
    bias: Float[ndarray, " expert"] | None = None,
    groups: int = 1,
    kept_groups: int = 1,
    renormalise: bool = True,
    scale: float = 1.0,
) -> Routing:
    r"""The `k` largest sigmoid scores, chosen with a bias and weighted without it.

    $$s = \sigma(z), \qquad \mathcal{T} = \text{top-}k(s + b), \qquad
    w_e = c\, \frac{s_e}{\sum_{e' \in \mathcal{T}} s_{e'}}$$

    With groups, only the `kept_groups` best take part; a group scores the sum of its two largest
    biased scores. The bias balances load: it moves the choice, never a weight. Experts come in the
    order of their biased scores.

    Raises:
        ValueError: If the groups do not divide the experts, more are kept than exist, `k` exceeds
            the experts of the kept groups, or the bias is not one number an expert.

    Source:
        DeepSeek-V3, arXiv 2412.19437, section 2.1.2, and its published code.

    Example:
        >>> routing = route_sigmoid([[0.0, 0.0, 0.0]], 2, bias=[0.0, 2.0, 1.0], scale=2.5)
        >>> routing.experts.tolist(), routing.weights.tolist()
        ([[1, 2]], [[1.25, 1.25]])
    """
    logits = _logits(logits)
    count = logits.shape[-1]
    _check_groups(count, k, groups, kept_groups)
    bias = np.zeros(count) if bias is None else real_array("bias", bias)
    if bias.shape != (count,):
        raise ValueError(f"bias must have shape {(count,)}, one per expert, got {bias.shape}")
    scale = real_number("scale", scale, above=0)

    log_score = -np.logaddexp(0.0, -logits)
    biased = np.exp(log_score) + bias
    grouped = rearrange(biased, "... (group size) -> ... group size", group=groups)
    best_two = np.sort(grouped, axis=-1)[..., -2:].sum(axis=-1)
    experts = _top(_keep_groups(biased, best_two, kept_groups), k)
    chosen = np.take_along_axis(log_score, experts, axis=-1)
    # A softmax of log-scores is their ratio to the sum, also where every score underflows.
    return Routing(experts, scale * (softmax(chosen) if renormalise else np.exp(chosen)))


def route_group_max(
    logits: Float[ndarray, "*tokens expert"],
    k: int,
    *,
    groups: int,
    kept_groups: int,
    scale: float = 1.0,
) -> Routing:
    r"""The `k` most probable experts of the groups whose best expert is most probable.

    $$w_e = c\,\operatorname{softmax}(z)_e$$

    over all experts, not renormalised.

    Raises:
        ValueError: If the groups do not divide the experts, more are kept than exist, or `k`
            exceeds the experts of the kept groups.

    Source:
        DeepSeek-V2, arXiv 2405.04434, section 2.2.2 and its published code.

    Example:
        >>> z = np.log([[0.4, 0.0625, 0.25, 0.2875]])
        >>> route_group_max(z, 2, groups=2, kept_groups=1).experts.tolist()
        [[0, 1]]
    """
    logits = _logits(logits)
    _check_groups(logits.shape[-1], k, groups, kept_groups)
    scale = real_number("scale", scale, above=0)
    probability = softmax(logits)
    # Groups and experts are compared by logit, whose order survives where probabilities underflow.
    best = rearrange(logits, "... (group size) -> ... group size", group=groups).max(axis=-1)
    experts = _top(_keep_groups(logits, best, kept_groups), k)
    return Routing(experts, scale * np.take_along_axis(probability, experts, axis=-1))


def mixture(
    x: Float[ndarray, "*tokens width"],
    experts: Sequence[Expert],
    routing: Routing,
    *,
    shared: Sequence[Expert] = (),
) -> Float[ndarray, "*tokens width_out"]:
    r"""Each token's weighted sum of the experts it was routed to, and of every shared one.

    $$y_t = \sum_{e \in \mathcal{T}_t} w_{t,e}\, f_e(x_t) + \sum_s g_s(x_t)$$

    An expert is called once, with the rows that reach it; one that no row reaches is not called.
    A dropped token reaches none and contributes zero.

    Args:
        x: Tokens.
        experts: Callables from rows to as many rows.
        routing: Who serves whom, from a router.
        shared: Callables that serve every token with weight 1.

    Raises:
        ValueError: If the routing is not about these tokens or names an expert that is not there,
            or an expert returns something else than one row for each it was given.

    Source:
        DeepSeekMoE, arXiv 2401.06066, equation 9 (the residual stream is the caller's).

    Example:
        >>> twice, thrice = (lambda rows: 2 * rows), (lambda rows: 3 * rows)
        >>> mixture([[1.0], [10.0]], [twice, thrice], Routing([[0], [1]], [[1.0], [0.5]])).tolist()
        [[2.0], [15.0]]
    """
    x = real_array("x", x, min_ndim=1)
    instance("routing", routing, Routing)
    for name, several in (("experts", experts), ("shared", shared)):
        instance(name, several, Sequence)
        for number, one in enumerate(several):
            function(f"{name}[{number}]", one)
    chosen = real_array("routing.experts", routing.experts, min_ndim=1)
    weights = real_array("routing.weights", routing.weights, min_ndim=1)
    if chosen.shape[:-1] != x.shape[:-1]:
        raise ValueError(
            f"routing.experts must have leading shape {x.shape[:-1]} as x, got {chosen.shape[:-1]}"
        )
    if weights.shape != chosen.shape:
        raise ValueError(
            f"routing.weights must have the shape of routing.experts, {chosen.shape}, "
            f"got {weights.shape}"
        )
    if ((chosen < 0) | (chosen >= len(experts)) | (chosen != np.floor(chosen))).any():
        raise ValueError(
            f"routing.experts must be integers from 0 to {len(experts) - 1}, "
            f"got some from {chosen.min():g} to {chosen.max():g}"
        )
    rows = rearrange(x, "... width -> (...) width")
    chosen = rearrange(chosen, "... k -> (...) k")
    weights = rearrange(weights, "... k -> (...) k")
    reached = [
        (f"experts[{e}]", expert, *np.nonzero((chosen == e) & (weights != 0)))
        for e, expert in enumerate(experts)
    ]
    everyone = np.arange(len(rows))
    reached += [(f"shared[{s}]", expert, everyone, None) for s, expert in enumerate(shared)]

    output: ndarray | None = None
    for name, expert, row, slot in reached:
        if len(row) == 0:
            continue
        answer = real_array(f"the output of {name}", expert(rows[row]), ndim=2)
        width = answer.shape[-1] if output is None else output.shape[-1]
        if answer.shape != (len(row), width):
            raise ValueError(
                f"the output of {name} must have shape {(len(row), width)}, got {answer.shape}"
            )
        if output is None:
            output = np.zeros((len(rows), width))
        np.add.at(output, row, answer if slot is None else weights[row, slot, None] * answer)
    if output is None:
        output = np.zeros_like(rows)
    return output.reshape(*x.shape[:-1], output.shape[-1])


def load_balance_loss(
    logits: Float[ndarray, "*batch token expert"], k: int
) -> Float[ndarray, "*batch"] | np.float64:
    r"""How unevenly the router spreads tokens: 1 when balanced, up to the number of experts.

    $$E \sum_e f_e P_e$$

    with $f_e$ the share of the $T k$ assignments that go to expert $e$ and $P_e$ the mean of its
    probability over the tokens.

    Raises:
        ValueError: If `k` exceeds the experts, or there is no token.

    Source:
        Fedus et al. 2021, arXiv 2101.03961, equations 4–6, for `k` choices a token.

    Example:
        >>> round(float(load_balance_loss([[9.0, 0.0], [0.0, 9.0]], 1)), 12)
        1.0
    """
    logits = _logits(logits, min_ndim=2)
    count = logits.shape[-1]
    _chosen(k, count)
    if logits.shape[-2] == 0:
        raise ValueError(f"logits must have at least one token, got shape {logits.shape}")
    assigned = (_top(logits, k)[..., None] == np.arange(count)).mean(axis=(-3, -2))
    return count * (assigned * softmax(logits).mean(axis=-2)).sum(axis=-1)


def router_z_loss(
    logits: Float[ndarray, "*batch token expert"],
) -> Float[ndarray, "*batch"] | np.float64:
    r"""How far the router's logits have drifted from a log-probability.

    $$\frac1T \sum_t \bigl(\ln \sum_e e^{z_{t,e}}\bigr)^2$$

    Raises:
        ValueError: If there is no token.

    Source:
        Zoph et al. 2022, arXiv 2202.08906, equation 5.

    Example:
        >>> round(float(router_z_loss([[0.0, 0.0], [np.log(0.5), np.log(0.5)]])), 6)
        0.240227
    """
    logits = _logits(logits, min_ndim=2)
    if logits.shape[-2] == 0:
        raise ValueError(f"logits must have at least one token, got shape {logits.shape}")
    return np.mean(np.logaddexp.reduce(logits, axis=-1) ** 2, axis=-1)
