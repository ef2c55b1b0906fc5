"""Speculative decoding against the process it describes, counted exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import expected_tokens, output_distribution, residual, verify

TARGET, DRAFT = [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]


@st.composite
def distributions(draw, size):
    """A distribution with zeros among its entries."""
    counts = draw(st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(sum))
    return np.array(counts) / sum(counts)


sizes = st.integers(1, 6)


@given(st.data(), sizes)
def test_output_is_the_target(data, size):
    target, draft = data.draw(distributions(size)), data.draw(distributions(size))
    np.testing.assert_allclose(output_distribution(target, draft), target, atol=1e-15)


def exactly(target, draft):
    """What a token is, over every draft and the exact probability of its rejection."""
    target, draft = ([Fraction(str(x)) for x in row] for row in (target, draft))
    surplus = [max(p - q, 0) for p, q in zip(target, draft, strict=True)]
    result = [Fraction(0)] * len(target)
    for token, q in enumerate(draft):
        if q == 0:
            continue
        kept = min(Fraction(1), target[token] / q)
        result[token] += q * kept
        for other, extra in enumerate(surplus):
            result[other] += q * (1 - kept) * (extra / sum(surplus) if sum(surplus) else 0)
    return result


def test_procedure_in_exact_arithmetic():
    assert exactly(TARGET, DRAFT) == [Fraction("0.6"), Fraction("0.3"), Fraction("0.1")]
    np.testing.assert_allclose(output_distribution(TARGET, DRAFT), TARGET, atol=1e-15)


def test_equal_and_disjoint_drafts():
    np.testing.assert_array_equal(output_distribution(TARGET, TARGET), TARGET)
    np.testing.assert_array_equal(output_distribution([1.0, 0.0], [0.0, 1.0]), [1.0, 0.0])
    np.testing.assert_array_equal(residual([1.0, 0.0], [0.0, 1.0]), [1.0, 0.0])
    batch = output_distribution([TARGET, TARGET], [TARGET, DRAFT])
    np.testing.assert_allclose(batch, [TARGET, TARGET], atol=1e-15)


@given(st.data(), sizes)
def test_residual_is_the_normalised_surplus(data, size):
    target, draft = data.draw(distributions(size)), data.draw(distributions(size))
    if (target == draft).all():
        return
    left = residual(target, draft)
    assert left.sum() == pytest.approx(1, abs=1e-12)
    assert (left >= 0).all() and (left[target <= draft] == 0).all()
    gain = target > draft
    np.testing.assert_allclose(left[gain] * (target - draft)[gain].sum(), (target - draft)[gain], atol=1e-12)


def step_by_step(target, draft, tokens, uniforms):
    for step, (token, u) in enumerate(zip(tokens, uniforms, strict=True)):
        p, q = target[step][token], draft[step][token]
        if p == 0 or u > p / q:
            return step, residual(target[step], draft[step])
    return len(tokens), np.array(target[len(tokens)])


@given(st.data(), st.integers(0, 4), sizes)
def test_verify_step_by_step(data, lookahead, size):
    draft = [data.draw(distributions(size)) for _ in range(lookahead)]
    target = [data.draw(distributions(size)) for _ in range(lookahead + 1)]
    tokens = [data.draw(st.sampled_from(np.flatnonzero(q).tolist())) for q in draft]
    uniforms = data.draw(st.lists(st.floats(0, 1), min_size=lookahead, max_size=lookahead))
    for step, token in enumerate(tokens):  # equality of draw and ratio must accept
        if data.draw(st.booleans()):
            uniforms[step] = min(1.0, target[step][token] / draft[step][token])
    verdict = verify(
        np.array(target), np.array(draft).reshape(lookahead, size), np.array(tokens, dtype=int),
        np.array(uniforms),
    )  # fmt: skip
    accepted, following = step_by_step(target, draft, tokens, uniforms)
    assert verdict.accepted == accepted
    np.testing.assert_allclose(verdict.next_distribution, following, atol=1e-15)


def test_a_token_of_target_probability_zero_is_never_accepted():
    verdict = verify([[1.0, 0.0]] * 2, [[0.5, 0.5]], [1], [0.0])
    assert verdict.accepted == 0
    assert verdict.next_distribution.tolist() == [1.0, 0.0]


def test_equal_distributions_accept_everything_even_at_the_edge():
    verdict = verify([DRAFT] * 3, [DRAFT] * 2, [0, 1], [1.0, 1.0])
    assert verdict.accepted == 2
    assert verdict.next_distribution.tolist() == DRAFT


def test_a_rounding_error_below_the_draft_needs_no_residual():
    target = [0.2, 0.5, np.nextafter(0.3, 0)]
    verdict = verify([target] * 2, [DRAFT], [2], [1.0])
    assert verdict.accepted == 0
    assert verdict.next_distribution.tolist() == target


@given(st.floats(0, 1), st.integers(0, 8))
def test_expected_tokens_counts_the_ways_to_stop(acceptance, lookahead):
    ways = sum(n * acceptance ** (n - 1) * (1 - acceptance) for n in range(1, lookahead + 1))
    ways += (lookahead + 1) * acceptance**lookahead
    assert expected_tokens(acceptance, lookahead) == pytest.approx(ways, rel=1e-12)


def test_expected_tokens_at_the_ends():
    assert expected_tokens(0.0, 5) == 1.0
    assert expected_tokens(1.0, 5) == 6.0
    assert expected_tokens(0.5, 0) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: residual(TARGET, TARGET), "target equals draft: no token is ever rejected"),
        (lambda: residual([DRAFT, TARGET], [TARGET, TARGET]), "target equals draft: no token is ever rejected"),
        (lambda: residual([0.5, 0.6], DRAFT), "target must sum to 1 over its last axis, got 1.1"),
        (lambda: residual(TARGET, [0.5, 0.5]), "draft must have target's shape (3,), got (2,)"),
        (lambda: residual(TARGET, [-0.5, 1.0, 0.5]), "draft must not be negative, got -0.5"),
        (lambda: output_distribution(TARGET, [0.5, 0.5]), "draft must have target's shape (3,), got (2,)"),
        (lambda: output_distribution([], []), "target must have at least one token, got shape (0,)"),
        (lambda: output_distribution(1.0, 1.0), "target must have at least 1 axis, got shape ()"),
        (lambda: verify([TARGET], [DRAFT], [0], [0.5]),
         "target must have shape (2, 3) for 1 drafted tokens, got (1, 3)"),
        (lambda: verify([TARGET] * 2, [DRAFT] * 2, [0], [0.5]),
         "draft must have shape (1, 3) for 1 drafted tokens, got (2, 3)"),
        (lambda: verify([TARGET] * 2, [DRAFT], [0], [0.5, 0.5]),
         "uniforms must have shape (1,) for 1 drafted tokens, got (2,)"),
        (lambda: verify([TARGET] * 2, [DRAFT], [3], [0.5]),
         "tokens must be integers from 0 to 2, got [3.0]"),
        (lambda: verify([TARGET] * 2, [DRAFT], [0.5], [0.5]), "tokens must be integers from 0 to 2"),
        (lambda: verify([TARGET] * 2, [DRAFT], [0], [1.5]), "uniforms must lie in [0, 1], got [1.5]"),
        (lambda: verify([TARGET] * 2, [[0.0, 0.5, 0.5]], [0], [0.5]),
         "tokens[0] must be possible under draft, got one of probability 0"),
        (lambda: verify([TARGET, [1.0, 1.0, 1.0]], [DRAFT], [0], [0.5]), "target must sum to 1"),
        (lambda: expected_tokens(1.5, 2), "acceptance must be a finite number at least 0 and at most"),
        (lambda: expected_tokens(0.5, -1), "lookahead must be an integer at least 0, got -1"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_may_miss_one_by_a_millionth(sign):
    """Room for float32, no more."""
    residual([0.6, 0.4 + sign * 0.9e-6], [0.5, 0.5])
    with pytest.raises(ValueError, match="^target must sum to 1 over its last axis, got "):
        residual([0.6, 0.4 + sign * 1.1e-6], [0.5, 0.5])
