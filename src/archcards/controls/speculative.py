"""Speculative decoding, wrong in named ways."""

import numpy as np

from ._reference import Verdict, expected_tokens, residual, verify
from ._registry import convention, mistake

__all__: list[str] = []


def _surplus(target, draft):
    return np.maximum(np.subtract(target, draft), 0.0)


# residual


@mistake("residual", "not normalised")
def residual_not_normalised(target, draft):
    """Return the surplus as it is, which is no distribution.

    Seen in: samplers that normalise silently hide it; those that compare with a running sum do not.
    """
    return _surplus(target, draft)


@mistake("residual", "the target itself")
def residual_is_the_target(target, draft):
    """Redraw from the target after a rejection: tokens that the draft overrates come up too often.

    Seen in: the intuitive reading of "sample again from the large model".
    """
    return np.array(target, dtype=float)


@mistake("residual", "absolute difference")
def residual_of_absolute_difference(target, draft):
    """Give weight also to tokens of which the draft has too much.

    Seen in: a distance between distributions used where its positive part is meant.
    """
    difference = np.abs(np.subtract(target, draft))
    return difference / difference.sum(axis=-1, keepdims=True)


@mistake("residual", "surplus of the draft")
def residual_of_the_draft(target, draft):
    """Subtract the target from the draft.

    Seen in: exchanged arguments, a slip that shapes do not catch.
    """
    return residual(draft, target)


# output_distribution


@mistake("output_distribution", "redrawn from the target")
def output_redrawn_from_the_target(target, draft):
    """Follow a rejection by a draw from the target itself.

    Seen in: the intuitive reading of "sample again from the large model".
    """
    accepted = np.minimum(target, draft)
    return accepted + (1 - accepted.sum(axis=-1, keepdims=True)) * np.asarray(target, dtype=float)


@mistake("output_distribution", "residual not normalised")
def output_with_unnormalised_residual(target, draft):
    """Scale the surplus by the rejected mass once more: the sum falls below one.

    Seen in: a residual that is normalised in the paper and not in the code.
    """
    accepted = np.minimum(target, draft)
    return accepted + (1 - accepted.sum(axis=-1, keepdims=True)) * _surplus(target, draft)


@mistake("output_distribution", "draft taken before its temperature")
def output_of_another_draft(target, draft):
    """Compare with the draft's probabilities as they were before the cut that was sampled from: here
    the most probable token is drawn, and verified against the whole distribution.

    Seen in: transformers #47932.
    """
    target, draft = np.asarray(target, dtype=float), np.asarray(draft, dtype=float)
    sampled = np.eye(draft.shape[-1])[draft.argmax(axis=-1)]
    kept = sampled * np.minimum(1.0, target / np.where(draft > 0, draft, 1.0))
    rejected = 1 - kept.sum(axis=-1, keepdims=True)
    mass = _surplus(target, draft).sum(axis=-1, keepdims=True)
    return kept + rejected * _surplus(target, draft) / np.where(mass > 0, mass, 1.0)


# verify


def _verdict(target, draft, tokens, accept, redraw=residual):
    """Accept while `accept(step, p, q)`; the rest as the reference does."""
    target, draft = np.asarray(target, dtype=float), np.asarray(draft, dtype=float)
    for step, token in enumerate(np.asarray(tokens, dtype=int)):
        if not accept(step, target[step, token], draft[step, token]):
            if (target[step] == draft[step]).all():
                return Verdict(step, target[step])
            return Verdict(step, redraw(target[step], draft[step]))
    return Verdict(len(tokens), target[len(tokens)])


@convention("verify", "strictly below the ratio")
def accepted_strictly_below(target, draft, tokens, uniforms):
    """Accept where u < p/q: the same for draws from [0, 1), except where u is the ratio itself.

    Seen in: implementations on both sides; either suits a continuous draw.
    """
    return _verdict(target, draft, tokens, lambda step, p, q: uniforms[step] < p / q)


@mistake("verify", "accepted where the target is zero")
def accepted_where_impossible(target, draft, tokens, uniforms):
    """Test u ≤ p/q alone: the draw 0, which generators do give, accepts an impossible token.

    Seen in: the paper's comparison typed literally.
    """
    return _verdict(target, draft, tokens, lambda step, p, q: uniforms[step] <= p / q)


@mistake("verify", "compared with the target's probability")
def accepted_by_target_probability(target, draft, tokens, uniforms):
    """Accept where u ≤ p, and so reject even what both models agree on.

    Seen in: the intuitive reading of "accept with the target's probability".
    """
    return _verdict(target, draft, tokens, lambda step, p, q: p > 0 and uniforms[step] <= p)


@mistake("verify", "ratio upside down")
def accepted_by_the_inverse_ratio(target, draft, tokens, uniforms):
    """Accept where u ≤ q/p: the tokens that the draft overrates are always kept.

    Seen in: exchanged arguments, a slip that shapes do not catch.
    """
    return _verdict(target, draft, tokens, lambda step, p, q: p > 0 and uniforms[step] <= q / p)


@mistake("verify", "redrawn from the target")
def redrawn_from_the_target(target, draft, tokens, uniforms):
    """Draw the token after a rejection from the target instead of the residual.

    Seen in: the intuitive reading of "sample again from the large model".
    """
    verdict = verify(target, draft, tokens, uniforms)
    return Verdict(verdict.accepted, np.asarray(target, dtype=float)[verdict.accepted])


@mistake("verify", "later tokens counted after a rejection")
def accepted_after_a_rejection(target, draft, tokens, uniforms):
    """Count every token that passes its own test, also behind one that failed.

    Seen in: `accept.sum()` where the length of the accepted prefix is meant.
    """
    tokens = np.asarray(tokens, dtype=int)
    steps = np.arange(len(tokens))
    ratio = np.asarray(target)[steps, tokens] / np.asarray(draft)[steps, tokens]
    verdict = verify(target, draft, tokens, uniforms)
    return Verdict(int((np.asarray(uniforms) <= ratio).sum()), verdict.next_distribution)


@mistake("verify", "no residual where the last draft was rejected")
def next_from_the_last_target(target, draft, tokens, uniforms):
    """Always draw the next token from the last distribution, as if everything had been accepted.

    Seen in: a bonus token whose index does not follow the rejection.
    """
    return Verdict(verify(target, draft, tokens, uniforms).accepted, np.asarray(target, float)[-1])


# expected_tokens


@mistake("expected_tokens", "the target's own token forgotten")
def expected_without_the_targets_token(acceptance, lookahead):
    """Count the accepted drafts only; every run yields one token more.

    Seen in: estimates of speed-up by "mean accepted length".
    """
    return expected_tokens(acceptance, lookahead) - 1


@mistake("expected_tokens", "each draft counted by itself")
def expected_of_independent_drafts(acceptance, lookahead):
    """Use 1 + αγ: but a token behind a rejection is lost.

    Seen in: back-of-the-envelope estimates, right only at the ends.
    """
    return 1 + acceptance * lookahead


@mistake("expected_tokens", "no end to the lookahead")
def expected_without_end(acceptance, lookahead):
    """Use 1/(1 − α), the limit of a long lookahead.

    Seen in: back-of-the-envelope estimates.
    """
    return 1 / (1 - acceptance) if acceptance < 1 else np.inf
