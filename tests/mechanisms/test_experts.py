"""Routers token by token, capacity and dropping, mixtures and their losses."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archcards.mechanisms import (
    Routing,
    capacity,
    load_balance_loss,
    mixture,
    route_group_max,
    route_sigmoid,
    route_switch,
    route_top_k,
    router_z_loss,
)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def softmax(row):
    mass = [exp(z - max(row)) for z in row]
    return [m / sum(mass) for m in mass]


def best(scores, k):
    """The k largest, ties to the lower index."""
    return sorted(range(len(scores)), key=lambda e: (-scores[e], e))[:k]


@st.composite
def logits(draw, tokens=st.integers(1, 6), experts=st.integers(1, 8)):
    """Small integers, so that ties are frequent."""
    shape = draw(tokens), draw(experts)
    values = draw(st.lists(st.integers(-6, 6), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(values, dtype=float).reshape(shape)


@given(st.data(), logits())
def test_top_k_token_by_token(data, z):
    k = data.draw(st.integers(1, z.shape[1]))
    plain = route_top_k(z, k, renormalise=False)
    renormalised = route_top_k(z, k)
    after = route_top_k(z, k, order="top_k_first")
    for t, row in enumerate(z):
        chosen = best(row, k)
        probability = softmax(row)
        for routing in (plain, renormalised, after):
            assert routing.experts[t].tolist() == chosen
        close(plain.weights[t], [probability[e] for e in chosen])
        total = sum(probability[e] for e in chosen)
        close(renormalised.weights[t], [probability[e] / total for e in chosen])
        close(after.weights[t], softmax([row[e] for e in chosen]))
    close(renormalised.weights, after.weights)


@given(st.data(), logits())
def test_permuting_experts_permutes_the_routing(data, z):
    z = z + np.arange(z.shape[1]) / 100  # no ties
    order = np.array(data.draw(st.permutations(range(z.shape[1]))))
    k = data.draw(st.integers(1, z.shape[1]))
    for route in (
        lambda z: route_top_k(z, k, renormalise=False),
        lambda z: route_sigmoid(z, k, bias=z[0] / 7),
        lambda z: route_switch(z, 1),
    ):
        before, after = route(z), route(z[:, order])
        np.testing.assert_array_equal(order[after.experts], before.experts)
        close(after.weights, before.weights)


def test_one_token_needs_no_axis():
    z, x = np.array([2.0, -1.0, 0.5]), np.array([1.0, 3.0])
    for route in (
        lambda z: route_top_k(z, 2),
        lambda z: route_sigmoid(z, 2),
        lambda z: route_group_max(z, 1, groups=3, kept_groups=2),
    ):
        alone, among = route(z), route(z[None])
        np.testing.assert_array_equal(alone.experts, among.experts[0])
        np.testing.assert_array_equal(alone.weights, among.weights[0])
        output = mixture(x, [np.exp, np.sin, np.cos], alone)
        np.testing.assert_array_equal(output, mixture(x[None], [np.exp, np.sin, np.cos], among)[0])


def test_top_one_weighs_one_unless_the_softmax_is_kept():
    z = [[1.0, 3.0, 2.0]]
    assert route_top_k(z, 1).weights.tolist() == [[1.0]]
    assert route_top_k(z, 1, order="top_k_first").weights.tolist() == [[1.0]]
    close(route_top_k(z, 1, renormalise=False).weights, [[softmax(z[0])[1]]])


def test_logits_far_apart_do_not_underflow():
    z = [[0.0, 2000.0, -2000.0, -2001.0]]
    close(route_top_k(z, 2).weights, [[1.0, 0.0]])
    close(route_sigmoid([[-900.0, -901.0, -2000.0]], 2).weights, [softmax([1.0, 0.0])])
    assert route_group_max(z, 1, groups=2, kept_groups=1).experts.tolist() == [[1]]


@given(logits(), st.integers(0, 4))
def test_switch_takes_tokens_in_order(z, places):
    routing = route_switch(z, places)
    taken = [0] * z.shape[1]
    for t, row in enumerate(z):
        chosen = best(row, 1)[0]
        taken[chosen] += 1
        assert routing.experts[t].tolist() == [chosen]
        kept = taken[chosen] <= places
        close(routing.weights[t], [softmax(row)[chosen] if kept else 0.0])


def test_switch_gives_each_group_its_own_places():
    z = np.zeros((3, 2, 4))
    assert (route_switch(z, 1).weights[:, :, 0] == [[0.25, 0.0]] * 3).all()


@given(
    st.data(),
    st.sampled_from([(1, 4), (2, 2), (2, 3), (4, 1), (4, 2)]),
    st.booleans(),
)
def test_sigmoid_token_by_token(data, sizes, renormalise):
    groups, size = sizes
    kept = data.draw(st.integers(1, groups))
    k = data.draw(st.integers(1, kept * size))
    z = data.draw(logits(experts=st.just(groups * size)))
    bias = data.draw(logits(tokens=st.just(1), experts=st.just(groups * size)))[0] / 2
    routing = route_sigmoid(
        z, k, bias=bias, groups=groups, kept_groups=kept, renormalise=renormalise, scale=2.5
    )
    for t, row in enumerate(z):
        score = [1 / (1 + exp(-value)) for value in row]
        biased = [s + b for s, b in zip(score, bias, strict=True)]
        members = [list(range(g * size, (g + 1) * size)) for g in range(groups)]
        # Sums of floats: groups that tie in exact arithmetic may not tie here, so leave them out.
        totals = [sum(sorted((biased[e] for e in group), reverse=True)[:2]) for group in members]
        if len({round(total, 9) for total in totals}) < groups or len({round(b, 9) for b in biased}) < len(biased):
            continue
        allowed = [e for g in best(totals, kept) for e in members[g]]
        chosen = sorted(allowed, key=lambda e: -biased[e])[:k]
        assert routing.experts[t].tolist() == chosen
        total = sum(score[e] for e in chosen) if renormalise else 1.0
        close(routing.weights[t], [2.5 * score[e] / total for e in chosen])


def test_bias_moves_the_choice_and_no_weight():
    z = [[2.0, 1.0, 0.0]]
    plain, biased = route_sigmoid(z, 2), route_sigmoid(z, 2, bias=[0.0, 0.0, 5.0])
    assert plain.experts.tolist() == [[0, 1]] and biased.experts.tolist() == [[2, 0]]
    sigma = [1 / (1 + exp(-value)) for value in z[0]]
    close(biased.weights, [[sigma[2] / (sigma[2] + sigma[0]), sigma[0] / (sigma[2] + sigma[0])]])


def test_a_dropped_group_loses_to_negative_biased_scores():
    bias = [-3.0, -3.0, -9.0, -9.0]
    routing = route_sigmoid(np.zeros((1, 4)), 2, bias=bias, groups=2, kept_groups=1)
    assert routing.experts.tolist() == [[0, 1]]


@given(st.data(), st.sampled_from([(2, 2), (3, 1), (2, 3)]))
def test_group_max_token_by_token(data, sizes):
    groups, size = sizes
    kept = data.draw(st.integers(1, groups))
    k = data.draw(st.integers(1, kept * size))
    z = data.draw(logits(experts=st.just(groups * size)))
    routing = route_group_max(z, k, groups=groups, kept_groups=kept, scale=16.0)
    for t, row in enumerate(z):
        members = [list(range(g * size, (g + 1) * size)) for g in range(groups)]
        allowed = {e for g in best([max(row[e] for e in group) for group in members], kept) for e in members[g]}
        chosen = [e for e in best(row, len(row)) if e in allowed][:k]
        assert routing.experts[t].tolist() == chosen
        probability = softmax(row)
        close(routing.weights[t], [16.0 * probability[e] for e in chosen])


@pytest.mark.parametrize(
    ("arguments", "minimum", "expected"),
    [
        ((10, 4, 1.0), 0, 3), ((8, 4, 1.0), 0, 2), ((8, 4, 1.25), 0, 3), ((100, 1, 1.1), 0, 110),
        ((0, 4, 1.0), 0, 0), ((1, 64, 1.0), 4, 4), ((3, 2, 1e-9), 0, 1), ((10, 3, 0.3), 0, 1),
    ],
)  # fmt: skip
def test_capacity(arguments, minimum, expected):
    assert capacity(*arguments, minimum=minimum) == expected


def linear(matrix):
    return lambda rows: rows @ matrix


@given(st.data(), logits(experts=st.integers(2, 4)))
def test_mixture_token_by_token(data, z):
    tokens, count = z.shape
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x, matrices = rng.normal(size=(tokens, 3)), rng.normal(size=(count, 3, 2))
    shared = rng.normal(size=(3, 2))
    routing = route_top_k(z, 2, renormalise=False)
    calls = []

    def expert(e):
        def apply(rows):
            calls.append(e)
            return rows @ matrices[e]

        return apply

    output = mixture(x, [expert(e) for e in range(count)], routing, shared=[linear(shared)])
    for t in range(tokens):
        expected = x[t] @ shared
        for e, weight in zip(routing.experts[t], routing.weights[t], strict=True):
            expected = expected + weight * (x[t] @ matrices[e])
        close(output[t], expected)
    assert sorted(calls) == sorted(set(routing.experts.ravel().tolist()))  # each once, none idle


def test_a_dropped_token_contributes_zero():
    z = np.array([[5.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    x = np.arange(6.0).reshape(3, 2) + 1
    output = mixture(x, [lambda rows: rows + 100, lambda rows: -rows], route_switch(z, 1))
    weight = softmax(z[0])[0]
    close(output, [weight * (x[0] + 100), [0.0, 0.0], -weight * x[2]])


def test_mixture_of_nothing_and_in_batches():
    nothing = Routing(np.zeros((2, 1), int), np.zeros((2, 1)))
    assert mixture(np.ones((2, 3)), [np.exp], nothing).tolist() == [[0.0] * 3] * 2
    x = np.arange(12.0).reshape(2, 3, 2)
    routing = Routing(np.ones((2, 3, 1), int), np.full((2, 3, 1), 0.5))
    close(mixture(x, [np.exp, lambda rows: rows], routing), x / 2)
    twice = Routing([[0, 0]], [[0.25, 0.5]])
    close(mixture([[4.0]], [lambda rows: rows], twice), [[3.0]])


@given(st.data(), logits())
def test_load_balance_loss_by_counting(data, z):
    tokens, count = z.shape
    k = data.draw(st.integers(1, count))
    assignments = [e for row in z for e in best(row, k)]
    mean = np.mean([softmax(row) for row in z], axis=0)
    expected = count * sum(assignments.count(e) / (tokens * k) * mean[e] for e in range(count))
    close(load_balance_loss(z, k), expected)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_load_balance_loss_is_one_when_balanced_and_experts_when_not(k):
    balanced = np.array([np.roll([6.0, 5.0, 4.0, 0.0], shift) for shift in range(4)])
    close(load_balance_loss(balanced, k), 1)
    close(load_balance_loss([[800.0, 0.0, 0.0, 0.0]] * 5, 1), 4)
    close(load_balance_loss(np.stack([balanced, balanced]), k), [1, 1])


@given(logits())
def test_z_loss_by_formula(z):
    close(router_z_loss(z), sum(log(sum(exp(v) for v in row)) ** 2 for row in z) / len(z))


def test_z_loss_of_large_logits_and_of_batches():
    close(router_z_loss([[1000.0, 1000.0]]), (1000 + log(2)) ** 2)
    close(router_z_loss(np.zeros((3, 2, 4))), [log(4) ** 2] * 3)


Z, X = np.zeros((2, 4)), np.zeros((2, 3))
ROUTING = Routing(np.zeros((2, 1), int), np.ones((2, 1)))


def rows(rows):
    return rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: capacity(-1, 2, 1.0), "tokens must be an integer at least 0, got -1"),
        (lambda: capacity(1, 0, 1.0), "experts must be an integer at least 1, got 0"),
        (lambda: capacity(1, 2, 0.0), "factor must be a finite number above 0, got 0.0"),
        (lambda: capacity(1, 2, 1.0, minimum=-1), "minimum must be an integer at least 0, got -1"),
        (lambda: route_top_k(0.0, 1), "logits must have at least 1 axis, got shape ()"),
        (lambda: route_switch(Z[0], 1), "logits must have at least 2 axes, got shape (4,)"),
        (lambda: load_balance_loss(Z[0], 1), "logits must have at least 2 axes, got shape (4,)"),
        (lambda: router_z_loss(Z[0]), "logits must have at least 2 axes, got shape (4,)"),
        (lambda: route_top_k(np.zeros((2, 0)), 1), "logits must have at least one expert, got shape"),
        (lambda: route_top_k(Z, 5), "k must be at most the 4 experts to choose from, got 5"),
        (lambda: route_top_k(Z, 0), "k must be an integer at least 1, got 0"),
        (lambda: route_top_k(Z, 1, order="first"), "order must be 'softmax_first' or 'top_k_first'"),
        (lambda: route_switch(Z, -1), "capacity must be an integer at least 0, got -1"),
        (lambda: route_sigmoid(Z, 1, bias=np.zeros(3)),
         "bias must have shape (4,), one per expert, got (3,)"),
        (lambda: route_sigmoid(Z, 1, groups=3), "groups must divide the 4 experts, got 3"),
        (lambda: route_sigmoid(Z, 1, groups=2, kept_groups=3),
         "kept_groups must be at most the 2 groups, got 3"),
        (lambda: route_sigmoid(Z, 3, groups=2, kept_groups=1),
         "k must be at most the 2 experts to choose from, got 3"),
        (lambda: route_sigmoid(Z, 1, scale=0.0), "scale must be a finite number above 0, got 0.0"),
        (lambda: route_group_max(Z, 1, groups=0, kept_groups=1), "groups must be an integer at least 1"),
        (lambda: route_group_max(Z, 1, groups=2, kept_groups=0), "kept_groups must be an integer at"),
        (lambda: route_group_max(Z, 1, groups=2, kept_groups=1, scale=-1.0), "scale must be a finite"),
        (lambda: mixture(0.0, [rows], ROUTING), "x must have at least 1 axis, got shape ()"),
        (lambda: mixture(X[0], [rows], ROUTING),
         "routing.experts must have leading shape () as x, got (2,)"),
        (lambda: mixture(X[:1], [rows], ROUTING),
         "routing.experts must have leading shape (1,) as x, got (2,)"),
        (lambda: mixture(X, [rows], Routing(ROUTING.experts, np.ones((2, 2)))),
         "routing.weights must have the shape of routing.experts, (2, 1), got (2, 2)"),
        (lambda: mixture(X, [rows], Routing([[0], [1]], [[1.0], [1.0]])),
         "routing.experts must be integers from 0 to 0, got some from 0 to 1"),
        (lambda: mixture(X, [lambda r: r[:1]], ROUTING),
         "the output of experts[0] must have shape (2, 3), got (1, 3)"),
        (lambda: mixture(X, [rows], ROUTING, shared=[lambda r: r[:, :1]]),
         "the output of shared[0] must have shape (2, 3), got (2, 1)"),
        (lambda: load_balance_loss(Z, 5), "k must be at most the 4 experts to choose from, got 5"),
        (lambda: load_balance_loss(Z[:0], 1), "logits must have at least one token, got shape (0, 4)"),
        (lambda: router_z_loss(Z[:0]), "logits must have at least one token, got shape (0, 4)"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
