"""The delta rule is one product of matrices, however it is computed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.mechanisms import (
    decay_gate,
    delta_rule,
    delta_write,
    gated_write,
    linear_attention,
    unit_key,
)

FORMS = ("recurrent", "chunked")
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(["none", "step", "channel"])
lengths = st.integers(1, 12)
# A gate that is open, shut, nearly shut, or anything between; a step that stays, lands, overshoots.
LOG_DECAYS = (0.0, -math.inf, -200.0, -0.3, -2.0)
BETAS = (0.0, 0.25, 1.0, 1.7, 2.0)


def case(seed, time, kind, *leading, key=3, value=2):
    generator = np.random.default_rng(seed)
    arrays = {
        "query": generator.normal(size=(*leading, time, key)),
        "key": unit_key(generator.normal(size=(*leading, time, key))),
        "value": generator.normal(size=(*leading, time, value)),
        "beta": generator.choice(BETAS, size=(*leading, time)),
        "state": generator.normal(size=(*leading, key, value)),
    }
    if kind != "none":
        shape = (*leading, time, key)[: None if kind == "channel" else -1]
        arrays["log_decay"] = generator.choice(LOG_DECAYS, size=shape)
    return arrays


def by_transitions(query, key, value, beta, state, log_decay=None):
    """Every output from the transition matrices (I − β k kᵀ) diag(α) between write and read."""
    time, width = key.shape
    decay = np.ones((time, width))
    if log_decay is not None:
        decay *= np.exp(log_decay if log_decay.ndim == 2 else log_decay[:, None])
    transitions = [
        (np.eye(width) - b * np.outer(k, k)) @ np.diag(a)
        for k, b, a in zip(key, beta, decay, strict=True)
    ]
    output = []
    for i in range(time):
        memory = np.zeros_like(state)
        for j in range(i + 1):
            carried = np.eye(width)
            for transition in transitions[j + 1 : i + 1]:
                carried = transition @ carried
            memory = memory + carried @ (beta[j] * np.outer(key[j], value[j]))
        carried = np.eye(width)
        for transition in transitions[: i + 1]:
            carried = transition @ carried
        memory = memory + carried @ state
        output.append(memory.T @ query[i])
    return np.array(output), memory


def close(actual, expected, tolerance=1e-11):
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
@given(seed=seeds, time=lengths, kind=kinds, chunk=st.integers(1, 14))
@settings(max_examples=60)
def test_both_forms_are_the_product_of_transitions(form, seed, time, kind, chunk):
    arrays = case(seed, time, kind)
    close(delta_rule(**arrays, form=form, chunk=chunk), by_transitions(**arrays))


@given(seed=seeds, kind=kinds, chunk=st.sampled_from([1, 2, 5, 16, 64, 100, 200]))
@settings(max_examples=25)
def test_the_chunk_never_matters(seed, kind, chunk):
    arrays = case(seed, 130, kind, 2, key=8, value=5)
    chunked = delta_rule(**arrays, scale=0.5, form="chunked", chunk=chunk)
    close(chunked, delta_rule(**arrays, scale=0.5))


@pytest.mark.parametrize("kind", ["none", "step", "channel"])
@pytest.mark.parametrize("chunk", [16, 32, 100, 256, 300, 1000])
def test_chunks_that_are_prepared_together_or_not(kind, chunk):
    arrays = case(3, 611, kind, 2, key=4, value=3)
    close(delta_rule(**arrays, form="chunked", chunk=chunk), delta_rule(**arrays))


@pytest.mark.parametrize("at", [0, 1, 15, 16, 17, 31])
@pytest.mark.parametrize("channel", [None, 0, 2])
def test_one_step_of_a_chunk_forgets(at, channel):
    """All of it, or one channel of it, between steps that keep nearly everything."""
    arrays = case(11, 40, "none", key=4)
    log_decay = np.full((40, 4), -1e-3)
    log_decay[at, slice(None) if channel is None else channel] = -math.inf
    close(delta_rule(**arrays, log_decay=log_decay, form="chunked"), delta_rule(**arrays, log_decay=log_decay))
    if channel is None:
        per_step = delta_rule(**arrays, log_decay=log_decay[:, 0], form="chunked")
        close(per_step, delta_rule(**arrays, log_decay=log_decay))
        after = {name: array if name == "state" else array[at:] for name, array in arrays.items()}
        after["state"] = np.zeros_like(after["state"])
        rest = delta_rule(**after, log_decay=log_decay[at:], form="chunked")
        close((per_step[0][at:], per_step[1]), rest)


def test_some_channels_keep_all_and_some_nothing():
    """Each channel then has a decay of its own from any step to any other."""
    arrays = case(12, 70, "none", key=5)
    log_decay = np.tile([0.0, -math.inf, -200.0, -1e-3, -5.0], (70, 1))
    log_decay[33] = log_decay[33, ::-1]
    close(delta_rule(**arrays, log_decay=log_decay, form="chunked"), by_transitions(**arrays, log_decay=log_decay))


@pytest.mark.parametrize("kind", ["none", "step", "channel"])
@pytest.mark.parametrize("form", FORMS)
def test_integers_are_numbers(kind, form):
    generator = np.random.default_rng(13)
    shapes = {"query": (40, 3), "key": (40, 3), "value": (40, 2), "beta": (40,), "state": (3, 2)}
    if kind != "none":
        shapes["log_decay"] = (40, 3)[: None if kind == "channel" else 1]
    arrays = {name: generator.integers(0, 2, size=shape) for name, shape in shapes.items()}
    if kind != "none":
        arrays["log_decay"] *= -1
    arrays["key"][:, 1:] = 0  # a key is a unit vector or nothing, so nothing grows
    floats = {name: array.astype(float) for name, array in arrays.items()}
    close(delta_rule(**arrays, form=form, chunk=16), by_transitions(**floats))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("log_decay", [0.0, -math.inf, -200.0, -1e300, -1e-300])
@pytest.mark.parametrize("shape", [(70,), (70, 4)])
def test_one_decay_throughout(form, log_decay, shape):
    arrays = case(1, 70, "none", key=4)
    actual = delta_rule(**arrays, log_decay=np.full(shape, log_decay), form=form)
    if log_decay < -1:  # what is left is the step's own write
        write = arrays["beta"][:, None, None] * arrays["key"][:, :, None] * arrays["value"][:, None]
        expected = np.einsum("tk,tkv->tv", arrays["query"], write), write[-1]
    else:
        expected = delta_rule(**arrays)
    close(actual, expected, tolerance=1e-12)


@pytest.mark.parametrize("shape", [(130,), (130, 4)])
def test_nothing_overflows_nor_warns_under_strong_decay(shape):
    """Pytest turns NumPy's warnings into errors."""
    arrays = case(4, 130, "none", key=4)
    generator = np.random.default_rng(0)
    log_decay = -generator.choice([0.0, 200.0, 700.0, 1e4, math.inf], size=shape)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        chunked = delta_rule(**arrays, log_decay=log_decay, form="chunked")
        recurrent = delta_rule(**arrays, log_decay=log_decay)
    assert all(np.isfinite(x).all() for x in chunked)
    close(chunked, recurrent, tolerance=1e-12)


def test_a_key_that_repeats_for_a_whole_chunk():
    """The powers of its triangular system have entries like 64 choose 32; its inverse has not."""
    key = np.tile([[1.0, 0.0]], (64, 1))
    value = np.arange(64.0)[:, None]
    output, state = delta_rule(key, key, value, np.ones(64), form="chunked")
    assert (output == value).all() and state.ravel().tolist() == [63.0, 0.0]


@pytest.mark.parametrize("form", FORMS)
def test_keys_need_not_be_unit(form):
    arrays = case(6, 20, "step")
    arrays["key"] *= np.linspace(0.1, 1.4, 20)[:, None]
    arrays["key"][7] = 0
    close(delta_rule(**arrays, form=form, chunk=8), by_transitions(**arrays))


@given(seed=seeds, time=lengths, cut=st.integers(0, 12), form=st.sampled_from(FORMS), kind=kinds)
@settings(max_examples=40)
def test_a_sequence_may_be_cut_anywhere(seed, time, cut, form, kind):
    arrays = case(seed, time, kind)
    state = arrays.pop("state")
    options = {"form": form, "chunk": 4}
    first, middle = delta_rule(**{n: x[:cut] for n, x in arrays.items()}, state=state, **options)
    rest, final = delta_rule(**{n: x[cut:] for n, x in arrays.items()}, state=middle, **options)
    whole = delta_rule(**arrays, state=state, **options)
    close((np.concatenate([first, rest]), final), whole)


@given(seed=seeds, time=st.integers(2, 12), form=st.sampled_from(FORMS), kind=kinds)
@settings(max_examples=30)
def test_the_past_does_not_see_the_future(seed, time, form, kind):
    arrays = case(seed, time, kind)
    before, _ = delta_rule(**arrays, form=form, chunk=8)
    there = time // 2
    for name in ("query", "key", "value", "beta"):
        arrays[name][there:] += 3
    if kind != "none":
        arrays["log_decay"][there:] = -math.inf
    after, _ = delta_rule(**arrays, form=form, chunk=8)
    np.testing.assert_allclose(after[:there], before[:there], rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["none", "step", "channel"])
def test_leading_axes_are_a_loop(form, kind):
    arrays = case(5, 7, kind, 2, 3)
    together = delta_rule(**arrays, form=form, chunk=3)
    for place in np.ndindex(2, 3):
        alone = delta_rule(**{n: x[place] for n, x in arrays.items()}, form=form, chunk=3)
        close([x[place] for x in together], alone)


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_broadcast(form):
    generator = np.random.default_rng(0)
    query, key = generator.normal(size=(2, 1, 5, 3)), unit_key(generator.normal(size=(5, 3)))
    value, beta = generator.normal(size=(5, 2)), generator.random((4, 5))
    log_decay = -generator.random((2, 4, 5, 3))
    whole = delta_rule(
        np.broadcast_to(query, (2, 4, 5, 3)),
        np.broadcast_to(key, (2, 4, 5, 3)),
        np.broadcast_to(value, (2, 4, 5, 2)),
        np.broadcast_to(beta, (2, 4, 5)),
        log_decay=log_decay,
    )
    close(delta_rule(query, key, value, beta, log_decay=log_decay, form=form, chunk=2), whole)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (5,), (5, 3)])
def test_heads_may_share_all_but_their_values(form, shape):
    arrays = case(8, 5, "none")
    arrays["value"] = np.random.default_rng(1).normal(size=(4, 5, 2))
    log_decay = -np.random.default_rng(2).random(shape)
    together = delta_rule(**arrays, log_decay=log_decay, form=form, chunk=2)
    for h in range(4):
        own = log_decay[h] if shape[0] == 4 else log_decay
        alone = delta_rule(**arrays | {"value": arrays["value"][h]}, log_decay=own)
        close([x[h] for x in together], alone)


@pytest.mark.parametrize("form", FORMS)
def test_the_scale_is_a_factor_on_the_output_alone(form):
    arrays = case(5, 7, "step")
    plain, state = delta_rule(**arrays, form=form, chunk=3)
    close(delta_rule(**arrays, scale=0.3, form=form, chunk=3), (0.3 * plain, state))


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_sequence_leaves_the_state(form):
    state = np.arange(6.0).reshape(3, 2)
    empty = np.zeros((4, 0, 3)), np.zeros((4, 0, 3)), np.zeros((4, 0, 2)), np.zeros((4, 0))
    for log_decay in (None, np.zeros((4, 0)), np.zeros((4, 0, 3))):
        output, after = delta_rule(*empty, log_decay=log_decay, state=state, form=form)
        assert output.shape == (4, 0, 2)
        assert (after == state).all() and after.shape == (4, 3, 2)


@pytest.mark.parametrize("form", FORMS)
def test_one_step_is_one_write(form):
    arrays = case(9, 1, "channel")
    _, state = delta_rule(**arrays, form=form)
    query, key, value, beta, start, log_decay = arrays.values()
    written = gated_write(start, key[0], value[0], beta[0], np.exp(log_decay[0]))
    np.testing.assert_allclose(state, written, rtol=0, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_with_orthogonal_keys_there_is_nothing_to_correct(form):
    """Then the rule is linear attention with β v for values."""
    arrays = case(2, 4, "none", key=4)
    arrays["key"] = np.eye(4)
    del arrays["state"]
    beta = arrays.pop("beta")
    expected = linear_attention(arrays["query"], np.eye(4), beta[:, None] * arrays["value"])
    close(delta_rule(**arrays, beta=beta, form=form), expected, tolerance=1e-14)


# The writes


def test_a_full_write_overwrites_and_leaves_orthogonal_keys_alone():
    state = np.random.default_rng(0).normal(size=(3, 2))
    key, orthogonal, value = np.array([0.6, 0.8, 0]), np.array([0.8, -0.6, 0]), np.array([5.0, 7.0])
    written = delta_write(state, key, value, 1.0)
    np.testing.assert_allclose(written.T @ key, value, rtol=0, atol=1e-14)
    np.testing.assert_allclose(written.T @ orthogonal, state.T @ orthogonal, rtol=0, atol=1e-14)
    assert (written[2] == state[2]).all()


@pytest.mark.parametrize("beta, left", [(0, 1), (0.25, 0.75), (1, 0), (1.5, -0.5), (2, -1)])
def test_a_write_scales_the_error(beta, left):
    state, key, value = np.array([[3.0], [-1.0]]), np.array([0.6, 0.8]), np.array([4.0])
    written = delta_write(state, key, value, beta)
    np.testing.assert_allclose(value - written.T @ key, left * (value - state.T @ key), atol=1e-14)


def test_decay_comes_before_the_error_is_read():
    """4 decays to 2, then goes a quarter of the way to 10."""
    assert gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5) == 4.0
    assert gated_write([[4.0]], [1.0], [10.0], 0.25, 1.0) == 5.5
    assert gated_write([[4.0]], [1.0], [10.0], 0.0, 0.6) == pytest.approx(2.4)
    assert gated_write([[4.0]], [1.0], [10.0], 0.25, 0.0) == 2.5


def test_decay_per_channel_is_the_affine_form():
    state = np.random.default_rng(1).normal(size=(2, 3))
    key, value = np.array([1.0, 1.0]) / math.sqrt(2), np.array([2.0, -1.0, 4.0])
    erase, decay = np.eye(2) - np.outer(key, key), np.diag([1.0, 0.5])
    expected = erase @ decay @ state + np.outer(key, value)
    written = gated_write(state, key, value, 1.0, [1.0, 0.5])
    np.testing.assert_allclose(written, expected, rtol=0, atol=1e-14)
    swapped = decay @ erase @ state + np.outer(key, value)
    assert abs(written - swapped).max() > 0.1


def test_writes_of_many_heads_are_a_loop():
    generator = np.random.default_rng(2)
    state, key = generator.normal(size=(4, 3, 2)), generator.normal(size=(4, 3))
    value, beta = generator.normal(size=(4, 2)), generator.random(4)
    for decay in (generator.random(4), generator.random((4, 3)), generator.random(3)):
        together = gated_write(state, key, value, beta, decay)
        for h in range(4):
            own = decay if len(decay) == 3 else decay[h]
            alone = gated_write(state[h], key[h], value[h], beta[h], own)
            np.testing.assert_allclose(together[h], alone, rtol=0, atol=1e-14)
    plain = delta_write(state, key, value, beta)
    np.testing.assert_allclose(plain, gated_write(state, key, value, beta, np.ones(4)))


def test_leading_axes_that_one_argument_alone_has():
    generator = np.random.default_rng(3)
    one = dict(state=generator.normal(size=(3, 2)), key=generator.normal(size=3),
               value=generator.normal(size=2), beta=0.3, decay=generator.random(3))  # fmt: skip
    for name in ("state", "key", "value", "beta"):
        value = one[name]
        several = np.stack([value * factor for factor in (1.0, 0.5, 0.25, 0.0)])
        together = gated_write(**one | {name: several})
        assert together.shape == (4, 3, 2)
        for found, own in zip(together, several, strict=True):
            np.testing.assert_allclose(found, gated_write(**one | {name: own}), rtol=0, atol=1e-14)


# Keys and gates


@pytest.mark.parametrize("norm, length", [(1.0, 1.0), (1e-3, 1 / math.sqrt(2)), (1e-4, 0.0995037)])
def test_short_keys_stay_short(norm, length):
    assert np.linalg.norm(unit_key([0.6 * norm, 0.8 * norm])) == pytest.approx(length, abs=1e-6)


def test_keys_of_zeros_stay_zero():
    assert (unit_key(np.zeros((2, 3))) == 0).all()


def test_decay_gate():
    x, rate, bias = np.array([-800.0, 0.3, 2.0, 800.0]), math.log(2.0), 0.5
    log_decay = decay_gate(x, rate, bias)
    assert log_decay[1:3] == pytest.approx([-2 * math.log1p(math.exp(v + 0.5)) for v in (0.3, 2)])
    assert log_decay[0] == 0 and log_decay[3] == pytest.approx(-1601)
    per_head = decay_gate(np.zeros((3, 5)), np.log([[1.0], [2.0], [3.0]]), 0.0)
    np.testing.assert_allclose(per_head, -math.log(2) * np.array([[1], [2], [3]]) * np.ones((3, 5)))


ONE = np.ones((2, 3))
REFUSED = [
    ({"form": "parallel"}, "form must be 'recurrent' or 'chunked', got 'parallel'"),
    ({"query": ONE[0]}, "query must have at least 2 axes, got shape (3,)"),
    ({"key": np.ones((4, 3))}, "key must have the time of query, 2, got 4"),
    ({"key": np.ones((2, 1))}, "key must have the width of query, 3, got 1"),
    ({"value": np.ones((1, 3))}, "value must have the time of query, 2, got 1"),
    ({"value": ONE * np.inf}, "value must be finite, got inf at index (0, 0)"),
    ({"beta": 0.5}, "beta must have at least 1 axis, got shape ()"),
    ({"beta": [0.5]}, "beta must have the time of query, 2, got 1"),
    ({"scale": "1"}, "scale must be a finite number, got '1'"),
    ({"chunk": 2.5}, "chunk must be an integer at least 1, got 2.5"),
    ({"state": np.ones((2, 3))}, "state must have the key width of key, 3, got 2"),
    ({"state": np.ones((3, 2))}, "state must have the value width of value, 3, got 2"),
    ({"log_decay": [0.0, 0.5]}, "log_decay must be at most 0, got 0.5"),
    (
        {"log_decay": np.zeros((2, 2))},
        "log_decay must have shape (..., 2) or (..., 2, 3) with leading axes that broadcast to (), "
        "got (2, 2)",
    ),
    (
        {"query": np.ones((4, 2, 3)), "beta": np.ones((5, 2))},
        "query and key and value and beta and state must have leading axes that broadcast, got ",
    ),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=[message for _, message in REFUSED])
def test_refused(change, message):
    arguments = {"query": ONE, "key": ONE, "value": ONE, "beta": [1.0, 1.0]} | change
    with pytest.raises(ValueError) as error:
        delta_rule(**arguments)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: gated_write(np.ones((3, 2)), [1, 0], [1, 2], 1, 1),
            "key must have the key width of state, 3, got 2",
        ),
        (
            lambda: gated_write(np.ones((2, 2)), [1, 0], [1], 1, 1),
            "value must have the value width of state, 2, got 1",
        ),
        (lambda: delta_write([1.0], [1.0], [1.0], 1), "state must have at least 2 axes"),
        (lambda: delta_write([[1.0]], 1.0, [1.0], 1), "key must have at least 1 axis"),
        (lambda: gated_write([[1.0]], [1], [1], 1, -0.5), "decay must be from 0 to 1, got -0.5"),
        (lambda: gated_write([[1.0]], [1], [1], 1, 1.5), "decay must be from 0 to 1, got 1.5"),
        (
            lambda: gated_write(np.ones((2, 2)), [1, 0], [1, 2], 1, [1, 1, 1]),
            "decay must have shape (...) or (..., 2) with leading axes that broadcast to ()",
        ),
        (lambda: delta_write([[1.0]], [1], [1], [None]), "beta must be an array of real numbers"),
        (lambda: unit_key(3.0), "x must have at least 1 axis"),
        (lambda: unit_key([1.0], eps=-1), "eps must be a finite number at least 0, got -1"),
        (lambda: unit_key([0.0], eps=0), "x must not be zero where eps is 0"),
        (
            lambda: decay_gate([0.0, 0.0], [0.0, 0.0, 0.0], 0.0),
            "log_rate must broadcast to the leading axes (2,), got (3,)",
        ),
        (lambda: decay_gate(0.0, 0.0, [0.0]), "bias must broadcast to the leading axes ()"),
    ],
)
def test_writes_keys_and_gates_refuse(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
