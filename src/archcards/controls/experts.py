"""Routers, mixtures and their losses, wrong in named ways."""

import math

import numpy as np

from ._reference import (
    Routing,
    capacity,
    load_balance_loss,
    mixture,
    route_group_max,
    route_sigmoid,
    route_switch,
    route_top_k,
    router_z_loss,
    softmax,
)
from ._registry import convention, mistake

__all__: list[str] = []


def _taken(scores, experts):
    return np.take_along_axis(np.asarray(scores, dtype=float), experts, axis=-1)


def _sigmoid(logits):
    return np.exp(-np.logaddexp(0.0, -np.asarray(logits, dtype=float)))


# capacity


@convention("capacity", "rounded down")
def capacity_rounded_down(tokens, experts, factor, *, minimum=0):
    """Cut the last, partial place.

    Seen in: mesh-tensorflow, together with a minimum of 4; Megatron-LM rounds up.
    """
    return max(math.floor(tokens * factor / experts), minimum)


@convention("capacity", "at least four")
def capacity_of_at_least_four(tokens, experts, factor, *, minimum=0):
    """Give each expert four places, however few the tokens are.

    Seen in: mesh-tensorflow.
    """
    return capacity(tokens, experts, factor, minimum=max(minimum, 4))


@mistake("capacity", "a rounding error rounded up")
def capacity_of_a_rounding_error(tokens, experts, factor, *, minimum=0):
    """Round up the floating-point product: 100 tokens at 1.1 get 111 places.

    Seen in: `math.ceil(tokens / experts * factor)`, as Megatron-LM writes it.
    """
    return max(math.ceil(tokens * factor / experts), minimum)


@mistake("capacity", "tokens not shared among experts")
def capacity_of_every_token(tokens, experts, factor, *, minimum=0):
    """Forget to divide by the number of experts: nothing is ever dropped, and memory pays for it.

    Seen in: a slip that no shape catches.
    """
    return capacity(tokens, 1, factor, minimum=minimum)


# route_top_k


@convention("route_top_k", "never renormalised")
def top_k_never_renormalised(logits, k, *, order="softmax_first", **options):
    """Keep the weights of the softmax over all experts, whose sum is below one.

    Seen in: Switch Transformers and configs with `norm_topk_prob: false`; Megatron-LM #955 argues
    about the order of the two.
    """
    return route_top_k(logits, k, renormalise=False)


@convention("route_top_k", "always renormalised")
def top_k_always_renormalised(logits, k, **options):
    """Let the k weights sum to one; for one expert, the weight is 1 and the router learns nothing.

    Seen in: Mixtral, and configs with `norm_topk_prob: true`.
    """
    return route_top_k(logits, k, renormalise=True)


@mistake("route_top_k", "other logits set to zero")
def top_k_with_zeros(logits, k, **options):
    """Take the softmax over all experts with the logits of those not chosen at 0 instead of −∞.

    Seen in: a mask multiplied where it should be filled in.
    """
    logits = np.asarray(logits, dtype=float)
    experts = route_top_k(logits, k).experts
    kept = np.zeros_like(logits)
    np.put_along_axis(kept, experts, _taken(logits, experts), axis=-1)
    return Routing(experts, _taken(softmax(kept), experts))


@convention("route_top_k", "ties to the higher index")
def top_k_ties_to_the_higher_index(logits, k, **options):
    """Where logits are equal, take the expert that comes last.

    Seen in: top-k kernels, which leave ties unspecified.
    """
    logits = np.asarray(logits, dtype=float)
    routing = route_top_k(logits[..., ::-1], k, **options)
    return Routing(logits.shape[-1] - 1 - routing.experts, routing.weights)


@convention("route_top_k", "sigmoid instead of softmax")
def top_k_by_sigmoid(logits, k, **options):
    """Weigh each chosen expert by the sigmoid of its own logit.

    Seen in: Llama 4; and DeepSeek-V3, which renormalises.
    """
    experts = route_top_k(logits, k).experts
    return Routing(experts, _sigmoid(_taken(logits, experts)))


# route_switch


@mistake("route_switch", "dropped token keeps its weight")
def switch_keeps_the_weight(logits, capacity):
    """Drop a token from its expert's buffer and still multiply by its probability what comes back.

    Seen in: transformers #37017.
    """
    return route_switch(logits, np.shape(logits)[-2])


@convention("route_switch", "places by probability")
def switch_by_probability(logits, capacity):
    """Let the most certain tokens choose first, so that the least certain are dropped.

    Seen in: the batch prioritised routing of V-MoE (Riquelme et al. 2021).
    """
    logits = np.asarray(logits, dtype=float)
    order = np.argsort(-softmax(logits).max(axis=-1), axis=-1, kind="stable")
    sorted_routing = route_switch(np.take_along_axis(logits, order[..., None], axis=-2), capacity)
    back = np.argsort(order, axis=-1)[..., None]
    experts, weights = sorted_routing.experts, sorted_routing.weights
    return Routing(*(np.take_along_axis(array, back, axis=-2) for array in (experts, weights)))


@mistake("route_switch", "one place too many")
def switch_counts_from_zero(logits, capacity):
    """Compare a place counted from zero with the capacity: one token too many per expert.

    Seen in: `<=` after a cumulative sum that was made to start at 0.
    """
    return route_switch(logits, capacity + 1)


@mistake("route_switch", "weight of one")
def switch_with_weight_one(logits, capacity):
    """Renormalise over the one chosen expert, so that the router gets no gradient.

    Seen in: top-1 routing by code for top-k that renormalises.
    """
    routing = route_switch(logits, capacity)
    return Routing(routing.experts, (routing.weights > 0).astype(float))


# route_sigmoid


def _two_best(grouped):
    return np.sort(grouped, axis=-1)[..., -2:].sum(axis=-1)


def _best(grouped):
    return grouped.max(axis=-1)


def _sigmoid_routing(
    logits, k, *, bias=None, groups=1, kept_groups=1, renormalise=True, scale=1.0, **change
):
    """The reference written out, with the steps that controls change as arguments."""
    scores = change.get("scores", _sigmoid)(np.asarray(logits, dtype=float))
    biased = scores + (0.0 if bias is None else np.asarray(bias, dtype=float))
    grouped = biased.reshape(*biased.shape[:-1], groups, -1)
    group_score = change.get("group", _two_best)(grouped)
    kept = np.argsort(-group_score, axis=-1, kind="stable")[..., :kept_groups]
    allowed = (kept[..., None] == np.arange(groups)).any(axis=-2)
    allowed = np.repeat(allowed, biased.shape[-1] // groups, axis=-1)
    choice = np.where(allowed, biased, change.get("dropped", -np.inf))
    experts = np.argsort(-choice, axis=-1, kind="stable")[..., :k]
    weights = _taken(biased if change.get("leak") else scores, experts)
    if change.get("scale_first"):
        weights, scale = weights * scale, 1.0
    if renormalise:
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return Routing(experts, scale * weights)


@mistake("route_sigmoid", "bias leaks into the weights", _sigmoid_routing, leak=True)
def sigmoid_with_biased_weights():
    """Weigh by the biased scores that were meant for the choice alone.

    Seen in: vllm #12002; transformers #41647 and #41663.
    """


@mistake("route_sigmoid", "bias left out")
def sigmoid_without_bias(logits, k, *, bias=None, **options):
    """Choose by the scores alone: other experts than in training.

    Seen in: loaders that skip the correction bias because it is a buffer and no parameter.
    """
    return route_sigmoid(logits, k, **options)


@mistake("route_sigmoid", "group scored by its best expert", _sigmoid_routing, group=_best)
def sigmoid_with_group_max():
    """Compare groups by their largest score, as V2 does, instead of the sum of two.

    Seen in: DeepSeek-V2's rule under DeepSeek-V3's weights.
    """


@mistake("route_sigmoid", "dropped groups at zero", _sigmoid_routing, dropped=0.0)
def sigmoid_with_dropped_groups_at_zero():
    """Fill dropped groups with 0, which beats a kept expert whose biased score is negative.

    Seen in: vllm #13474.
    """


@mistake("route_sigmoid", "softmax instead of sigmoid", _sigmoid_routing, scores=softmax)
def sigmoid_by_softmax():
    """Score by a softmax, so that the bias weighs more than it did in training.

    Seen in: DeepSeek-V2's scores under DeepSeek-V3's weights.
    """


@mistake("route_sigmoid", "scaled before renormalising", _sigmoid_routing, scale_first=True)
def sigmoid_scaled_first():
    """Multiply by the scale, then divide by the sum: the scale cancels.

    Seen in: exchanged lines, a slip that shapes do not catch.
    """


@convention("route_sigmoid", "never renormalised")
def sigmoid_never_renormalised(logits, k, *, renormalise=True, **options):
    """Keep each sigmoid as it is.

    Seen in: Llama 4, and configs with `norm_topk_prob: false`.
    """
    return route_sigmoid(logits, k, renormalise=False, **options)


# route_group_max


@mistake("route_group_max", "group scored by its two best")
def group_by_two_best(logits, k, *, groups, kept_groups, scale=1.0):
    """Compare groups by the sum of their two largest probabilities, as V3 does.

    Seen in: DeepSeek-V3's rule under DeepSeek-V2's weights.
    """
    options = {"groups": groups, "kept_groups": kept_groups, "scale": scale}
    return _sigmoid_routing(logits, k, renormalise=False, scores=softmax, **options)


@convention("route_group_max", "renormalised")
def group_max_renormalised(logits, k, *, groups, kept_groups, scale=1.0):
    """Let the weights of a token sum to the scale.

    Seen in: configs with `norm_topk_prob: true`; DeepSeek-V2's has false.
    """
    routing = route_group_max(logits, k, groups=groups, kept_groups=kept_groups)
    total = routing.weights.sum(axis=-1, keepdims=True)
    return Routing(routing.experts, scale * routing.weights / total)


@mistake("route_group_max", "scale left out")
def group_max_without_scale(logits, k, *, groups, kept_groups, scale=1.0):
    """Forget the factor on the routed experts, 16 in DeepSeek-V2.

    Seen in: ports that do not read `routed_scaling_factor`.
    """
    return route_group_max(logits, k, groups=groups, kept_groups=kept_groups)


@mistake("route_group_max", "groups ignored")
def group_max_without_groups(logits, k, *, groups, kept_groups, scale=1.0):
    """Take the top k of all experts, wherever they are.

    Seen in: ports that read `num_experts_per_tok` and not the limit on groups.
    """
    return route_group_max(logits, k, groups=1, kept_groups=1, scale=scale)


# mixture


@mistake("mixture", "dropped token passes unchanged")
def mixture_that_passes_dropped_tokens(x, experts, routing, *, shared=()):
    """Return a dropped token's own vector: with the residual stream outside, it counts twice.

    Seen in: text that says a dropped token "is passed through", which the residual stream does.
    """
    output = mixture(x, experts, routing, shared=shared)
    dropped = (np.asarray(routing.weights) == 0).all(axis=-1)
    return np.where(dropped[..., None], x, output)


@convention("mixture", "weights on the input")
def mixture_weighting_the_input(x, experts, routing, *, shared=()):
    """Multiply what goes into an expert, not what comes out: the same only for a linear map.

    Seen in: Llama 4.
    """
    x, output = np.asarray(x, dtype=float), 0.0
    chosen, weights = np.asarray(routing.experts), np.asarray(routing.weights, dtype=float)
    for slot in range(chosen.shape[-1]):
        weight = weights[..., slot, None]
        alone = Routing(chosen[..., [slot]], (weight != 0).astype(float))
        output = output + mixture(weight * x, experts, alone)
    return output + sum(g(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1) for g in shared)


@mistake("mixture", "weights left out")
def mixture_without_weights(x, experts, routing, *, shared=()):
    """Add up the chosen experts as they are.

    Seen in: a gather that forgets to multiply, a slip that shapes do not catch.
    """
    kept = (np.asarray(routing.weights) != 0).astype(float)
    return mixture(x, experts, Routing(routing.experts, kept), shared=shared)


@mistake("mixture", "shared experts averaged in")
def mixture_averaging_shared(x, experts, routing, *, shared=()):
    """Divide the shared experts by their number.

    Seen in: treating shared experts as routed ones of equal weight.
    """
    routed = mixture(x, experts, routing)
    both = mixture(x, experts, routing, shared=shared)
    return routed + (both - routed) / max(len(shared), 1)


# load_balance_loss


@convention("load_balance_loss", "k when balanced")
def balance_loss_of_k(logits, k):
    """Count each token's k assignments per token, not per assignment: k times the loss.

    Seen in: Hugging Face's Mixtral; transformers #43775.
    """
    return k * load_balance_loss(logits, k)


@mistake("load_balance_loss", "not multiplied by the experts")
def balance_loss_without_experts(logits, k):
    """Leave out the number of experts, so that the balanced value is 1/E.

    Seen in: re-implementations from the two means alone.
    """
    return load_balance_loss(logits, k) / np.shape(logits)[-1]


@mistake("load_balance_loss", "probabilities for both factors")
def balance_loss_of_probabilities(logits, k):
    """Square the mean probabilities: where the tokens really went does not enter.

    Seen in: attempts to make the loss differentiable throughout.
    """
    mean = softmax(logits).mean(axis=-2)
    return np.shape(logits)[-1] * (mean**2).sum(axis=-1)


@mistake("load_balance_loss", "only the best expert counted")
def balance_loss_of_top_one(logits, k):
    """Count the first of k choices: the others may all go to one expert unnoticed.

    Seen in: Switch's loss kept for a router with k above one.
    """
    return load_balance_loss(logits, 1)


# router_z_loss


@mistake("router_z_loss", "mean before the square")
def z_loss_of_the_mean(logits):
    """Square the mean of the log-sum-exps: positive and negative drifts cancel.

    Seen in: exchanged reductions, a slip that shapes do not catch.
    """
    return np.logaddexp.reduce(np.asarray(logits, dtype=float), axis=-1).mean(axis=-1) ** 2


@mistake("router_z_loss", "summed over tokens")
def z_loss_summed(logits):
    """Add up instead of averaging, so that the loss grows with the batch.

    Seen in: a reduction left at its default.
    """
    return router_z_loss(logits) * np.shape(logits)[-2]


@mistake("router_z_loss", "squares of the logits")
def z_loss_of_squares(logits):
    """Penalise the logits themselves, which also a shift-free router must pay.

    Seen in: weight decay on logits called z-loss.
    """
    return (np.asarray(logits, dtype=float) ** 2).sum(axis=-1).mean(axis=-1)
