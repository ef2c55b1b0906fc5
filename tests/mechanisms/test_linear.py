"""Linear attention is one sum, however it is computed."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.mechanisms import elu_plus_one, linear, linear_attention

FORMS = ("recurrent", "parallel", "chunked")
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(["none", "step", "channel"])
lengths = st.integers(1, 9)
# A gate that is open, shut, nearly shut, or anything between.
LOG_DECAYS = (0.0, -math.inf, -200.0, -0.3, -2.0)


def case(seed, time, kind, *leading, key=3, value=2):
    generator = np.random.default_rng(seed)
    arrays = {
        "query": generator.normal(size=(*leading, time, key)),
        "key": generator.normal(size=(*leading, time, key)),
        "value": generator.normal(size=(*leading, time, value)),
        "state": generator.normal(size=(*leading, key, value)),
    }
    if kind != "none":
        shape = (*leading, time, key)[: None if kind == "channel" else -1]
        arrays["log_decay"] = generator.choice(LOG_DECAYS, size=shape)
    return arrays


def by_pairs(query, key, value, state, log_decay=None):
    """Every output as a sum over the writes before it, number by number."""
    (time, width), values = key.shape, value.shape[1]
    factor = np.ones((time, width))
    if log_decay is not None:
        factor *= np.exp(log_decay) if log_decay.ndim == 2 else np.exp(log_decay)[:, None]

    def kept(c, since, until):
        return math.prod(factor[s, c] for s in range(since, until + 1))

    output = np.zeros((time, values))
    for i in range(time):
        for c in range(width):
            for e in range(values):
                output[i, e] += query[i, c] * kept(c, 0, i) * state[c, e]
                for j in range(i + 1):
                    output[i, e] += query[i, c] * kept(c, j + 1, i) * key[j, c] * value[j, e]
    final = np.zeros_like(state)
    for c in range(width):
        final[c] = kept(c, 0, time - 1) * state[c]
        for j in range(time):
            final[c] += kept(c, j + 1, time - 1) * key[j, c] * value[j]
    return output, final


def close(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        if isinstance(e, tuple):
            close(a, e)
        else:
            assert a.shape == e.shape
            np.testing.assert_allclose(a, e, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
@given(seed=seeds, time=lengths, kind=kinds, chunk=st.integers(1, 11))
@settings(max_examples=25)
def test_every_form_is_the_sum_over_pairs(form, seed, time, kind, chunk):
    arrays = case(seed, time, kind)
    close(linear_attention(**arrays, form=form, chunk=chunk), by_pairs(**arrays))


@given(seed=seeds, time=lengths, cut=st.integers(0, 9), form=st.sampled_from(FORMS), kind=kinds)
@settings(max_examples=40)
def test_a_sequence_may_be_cut_anywhere(seed, time, cut, form, kind):
    arrays = case(seed, time, kind, 2)
    state = arrays.pop("state")
    cut = min(cut, time)

    def part(steps):
        axis = {"log_decay": -1 if kind == "step" else -2}
        return {
            name: np.moveaxis(np.moveaxis(x, axis.get(name, -2), 0)[steps], 0, axis.get(name, -2))
            for name, x in arrays.items()
        }

    options = {"form": form, "chunk": 3}
    first, middle = linear_attention(**part(slice(cut)), state=state, **options)
    second, final = linear_attention(**part(slice(cut, None)), state=middle, **options)
    close(
        (np.concatenate([first, second], axis=-2), final),
        linear_attention(**arrays, state=state, **options),
    )


@given(seed=seeds, time=st.integers(2, 9), form=st.sampled_from(FORMS), kind=kinds)
@settings(max_examples=30)
def test_the_past_does_not_see_the_future(seed, time, form, kind):
    arrays = case(seed, time, kind)
    there = time // 2
    before, _ = linear_attention(**arrays, form=form, chunk=4)
    for name in ("query", "key", "value"):
        arrays[name][there:] += 100
    if kind != "none":
        arrays["log_decay"][there:] = -math.inf
    after, _ = linear_attention(**arrays, form=form, chunk=4)
    np.testing.assert_allclose(after[:there], before[:there], rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["none", "step", "channel"])
@pytest.mark.parametrize("normalise", [False, True])
def test_leading_axes_are_a_loop(form, kind, normalise):
    arrays = case(5, 7, kind, 2, 3)
    arrays["key"], arrays["query"] = elu_plus_one(arrays["key"]), elu_plus_one(arrays["query"])
    options = {"form": form, "chunk": 3, "normalise": normalise}
    if normalise:
        arrays["state"] = arrays["state"], abs(arrays["state"][..., 0])

    def at(place, x):
        return tuple(y[place] for y in x) if isinstance(x, tuple) else x[place]

    together = linear_attention(**arrays, **options)
    for place in np.ndindex(2, 3):
        alone = {name: at(place, x) for name, x in arrays.items()}
        close([at(place, x) for x in together], linear_attention(**alone, **options))


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_broadcast(form):
    generator = np.random.default_rng(0)
    query, key = generator.normal(size=(2, 1, 5, 3)), generator.normal(size=(4, 5, 3))
    value, state = generator.normal(size=(5, 2)), generator.normal(size=(2, 4, 3, 2))
    log_decay = -generator.random((4, 5))
    whole = linear_attention(
        np.broadcast_to(query, (2, 4, 5, 3)),
        np.broadcast_to(key, (2, 4, 5, 3)),
        np.broadcast_to(value, (2, 4, 5, 2)),
        log_decay=np.broadcast_to(log_decay, (2, 4, 5)),
        state=state,
    )
    options = {"state": state, "form": form, "chunk": 2}
    close(linear_attention(query, key, value, log_decay=log_decay, **options), whole)


@given(seed=seeds, time=lengths, form=st.sampled_from(FORMS), kind=kinds)
@settings(max_examples=30)
def test_the_normalised_output_is_a_mean_of_the_values(seed, time, form, kind):
    arrays = case(seed, time, kind)
    del arrays["state"]
    query, key = elu_plus_one(arrays["query"]), elu_plus_one(arrays["key"])
    log_decay = arrays.get("log_decay")
    options = {"log_decay": log_decay, "normalise": True, "form": form, "chunk": 4}
    output, (memory, normaliser) = linear_attention(query, key, arrays["value"], **options)
    zero = np.zeros((3, 2))
    decayed = {} if log_decay is None else {"log_decay": log_decay}
    numerator, final = by_pairs(query, key, arrays["value"], zero, **decayed)
    ones, mass = by_pairs(query, key, np.ones((time, 1)), zero[:, :1], **decayed)
    close((output, memory, normaliser), (numerator / ones, final, mass[:, 0]))
    assert (output <= arrays["value"].max(axis=0) + 1e-12).all()


def test_normalising_the_first_step_returns_its_value():
    output, _ = linear_attention([[2.0]], [[3.0]], [[7.0, -1.0]], normalise=True, scale=9.0)
    assert output.tolist() == [[7.0, -1.0]]


def test_a_normalised_sequence_goes_on_from_its_pair():
    generator = np.random.default_rng(1)
    query, key = generator.uniform(0.1, 1, size=(2, 6, 3))
    value = generator.normal(size=(6, 2))
    whole, final = linear_attention(query, key, value, normalise=True)
    _, pair = linear_attention(query[:4], key[:4], value[:4], normalise=True)
    rest = linear_attention(query[4:], key[4:], value[4:], normalise=True, state=pair)
    close(rest, (whole[4:], final))


@pytest.mark.parametrize("form", FORMS)
def test_the_scale_is_a_factor_on_the_output_alone(form):
    arrays = case(5, 7, "step")
    plain, state = linear_attention(**arrays, form=form, chunk=3)
    close(linear_attention(**arrays, scale=0.3, form=form, chunk=3), (0.3 * plain, state))


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_sequence_leaves_the_state(form):
    state = np.arange(6.0).reshape(3, 2)
    empty = np.zeros((4, 0, 3)), np.zeros((4, 0, 3)), np.zeros((4, 0, 2))
    for log_decay in (None, np.zeros((4, 0)), np.zeros((4, 0, 3))):
        output, after = linear_attention(*empty, log_decay=log_decay, state=state, form=form)
        assert output.shape == (4, 0, 2)
        assert (after == state).all() and after.shape == (4, 3, 2)


@pytest.mark.parametrize("form", FORMS)
def test_forgetting_everything_leaves_the_present(form):
    arrays = case(3, 6, "none")
    output, state = linear_attention(**arrays, log_decay=np.full(6, -math.inf), form=form, chunk=4)
    own = np.sum(arrays["query"] * arrays["key"], axis=-1, keepdims=True) * arrays["value"]
    close((output, state), (own, np.outer(arrays["key"][-1], arrays["value"][-1])))


def test_a_decay_shape_with_two_readings_is_the_one_with_all_leading_axes():
    arrays = case(2, 3, "none", 3)  # three heads, three steps, three channels
    decay = -np.arange(9.0).reshape(3, 3) / 4
    per_step = np.repeat(decay[:, :, None], 3, axis=-1)
    close(
        linear_attention(**arrays, log_decay=decay), linear_attention(**arrays, log_decay=per_step)
    )


@pytest.mark.parametrize(("form", "chunk", "steps"), [("parallel", 2, 5), ("chunked", 2, 2), ("chunked", 9, 9)])
def test_the_parallel_form_is_one_chunk_and_the_chunked_one_as_asked(monkeypatch, form, chunk, steps):
    asked, in_chunks = [], linear.in_chunks
    monkeypatch.setattr(linear, "in_chunks", lambda *given: asked.append(given[-1]) or in_chunks(*given))
    linear_attention(**case(3, 5, "none"), form=form, chunk=chunk)
    assert asked == [steps]


def test_elu_plus_one():
    x = [-800.0, -1.0, 0.0, 2.5, 800.0]
    assert elu_plus_one(x) == pytest.approx([0, math.exp(-1), 1, 3.5, 801], abs=1e-300)
    assert (elu_plus_one(np.linspace(-700, 700, 99)) > 0).all()


ONE = np.ones((2, 3))
REFUSED = [
    ({"form": "scan"}, "form must be 'recurrent' or 'parallel' or 'chunked', got 'scan'"),
    ({"query": ONE[0]}, "query must have at least 2 axes, got shape (3,)"),
    ({"query": ONE + 1j}, "query must be an array of real numbers, got dtype complex128"),
    ({"key": np.ones((4, 3))}, "key must have the time of query, 2, got 4"),
    ({"key": np.ones((2, 4))}, "key must have the width of query, 3, got 4"),
    ({"value": np.ones((1, 3))}, "value must have the time of query, 2, got 1"),
    ({"value": ONE * np.nan}, "value must be finite, got nan at index (0, 0)"),
    ({"scale": math.inf}, "scale must be a finite number, got inf"),
    ({"chunk": 0}, "chunk must be an integer at least 1, got 0"),
    ({"state": np.ones((2, 3))}, "state must have shape (..., 3, 3), got (2, 3)"),
    ({"state": np.ones(3)}, "state must have at least 2 axes, got shape (3,)"),
    (
        {"state": np.ones((3, 3)), "normalise": True},
        "state must be the pair (memory, normaliser) when normalise is true, got ndarray",
    ),
    (
        {"state": (np.ones((3, 3)), np.ones(2)), "normalise": True},
        "state's normaliser must have shape (3,), got (2,)",
    ),
    ({"log_decay": [0.0, 0.5]}, "log_decay must be at most 0, got 0.5"),
    ({"log_decay": [0.0, math.nan]}, "log_decay must be finite or -inf, got nan at index (1,)"),
    (
        {"log_decay": [0.0]},
        "log_decay must have shape (..., 2) or (..., 2, 3) with leading axes that broadcast to (), "
        "got (1,)",
    ),
    (
        {"log_decay": np.zeros((4, 2))},
        "log_decay must have shape (..., 2) or (..., 2, 3) with leading axes that broadcast to (), "
        "got (4, 2)",
    ),
    (
        {"query": np.ones((4, 2, 3)), "key": np.ones((5, 2, 3))},
        "query and key and value must have leading axes that broadcast, "
        "got query (4,), key (5,), value ()",
    ),
    ({"query": ONE * 0, "normalise": True}, "normaliser must not be orthogonal to a query, got 0 "),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=[message for _, message in REFUSED])
def test_refused(change, message):
    arguments = {"query": ONE, "key": ONE, "value": ONE} | change
    with pytest.raises(ValueError) as error:
        linear_attention(**arguments)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_a_decay_shape_with_two_readings_and_too_few_axes_is_refused():
    arrays = case(2, 3, "none", 2, 3)
    with pytest.raises(ValueError, match=r"^log_decay must have all leading axes \(2, 3\) where"):
        linear_attention(**arrays, log_decay=np.zeros((3, 3)))


@pytest.mark.parametrize("kind", ["none", "step", "channel"])
def test_chunks_take_memory_in_proportion_to_the_time(kind):
    """All pairs of 2,000 steps would be 32 MB; what is prepared together is some kilobytes."""
    arrays = case(5, 2000, kind)
    linear_attention(**arrays, form="chunked", chunk=16)
    tracemalloc.start()
    try:
        linear_attention(**arrays, form="chunked", chunk=16)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4e6
