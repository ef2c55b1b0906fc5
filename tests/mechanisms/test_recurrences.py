"""What holds for every recurrence: how it treats what it is given, and what it gives back."""

import math

import numpy as np
import pytest

from archcards.mechanisms import delta_rule, linear_attention, selective_scan, state_space_dual


def wave(*shape, start=0.0):
    """Numbers between −2 and 2 without pattern or randomness."""
    return 2 * np.sin(1 + start + np.arange(np.prod(shape)) ** 2).reshape(shape)


def sequence(time):
    return {
        "query": wave(2, time, 3),
        "key": wave(2, time, 3, start=0.3) / 3,
        "value": wave(2, time, 4, start=0.6),
        "log_decay": -abs(wave(2, time, start=0.9)),
        "state": wave(2, 3, 4, start=1.2),
    }


def linear(time, **options):
    return linear_attention, sequence(time) | options


def mean(time, **options):
    arrays = sequence(time)
    arrays |= {"query": abs(arrays["query"]), "key": abs(arrays["key"])}
    arrays["state"] = arrays["state"], abs(arrays["state"][..., 0])
    return linear_attention, arrays | {"normalise": True} | options


def delta(time, **options):
    return delta_rule, sequence(time) | {"beta": abs(wave(2, time))} | options


def scan(time, **options):
    arrays = {name: wave(2, time, 3, start=i / 3) for i, name in enumerate(("u", "dt", "z"))}
    arrays |= {"A": -abs(wave(3, 4)), "B": wave(2, time, 4), "C": wave(2, time, 4, start=0.5)}
    arrays |= {"D": wave(3), "state": wave(2, 3, 4), "dt_bias": wave(3, start=0.1)}
    return selective_scan, arrays | {"dt_softplus": True} | options


def dual(time, **options):
    arrays = {"x": wave(4, time, 3), "dt": wave(4, time), "A": -abs(wave(4)), "D": wave(4)}
    arrays |= {"B": wave(2, time, 5), "C": wave(2, time, 5, start=0.5), "state": wave(4, 5, 3)}
    return state_space_dual, arrays | {"dt_bias": wave(4, start=0.1)} | options


ALL = [
    pytest.param(make, form, id=f"{make.__name__}-{form}")
    for make, forms in (
        (linear, ("recurrent", "parallel", "chunked")),
        (mean, ("recurrent", "parallel", "chunked")),
        (delta, ("recurrent", "chunked")),
        (scan, ("recurrent", "associative")),
        (dual, ("recurrent", "matrix", "chunked")),
    )
    for form in forms
]


def flat(result):
    for part in result:
        yield from part if isinstance(part, tuple) else (part,)


@pytest.mark.parametrize("make, form", ALL)
@pytest.mark.parametrize("time", [0, 1, 6])
def test_arguments_stay_as_they_were_and_results_are_new(make, form, time):
    function, arguments = make(time, form=form)
    given = [x for x in flat(arguments.values()) if isinstance(x, np.ndarray)]
    before = [x.copy() for x in given]
    for array in given:
        array.setflags(write=False)
    result = list(flat(function(**arguments)))
    assert all((a == b).all() for a, b in zip(given, before, strict=True))
    for part in result:
        assert part.dtype == np.float64 and part.flags.writeable
        assert not any(np.shares_memory(part, array) for array in given)
    assert result[0].shape[-2] == time


@pytest.mark.parametrize("make, form", ALL)
@pytest.mark.parametrize("convert", [np.float32, np.float16])
def test_other_real_dtypes_are_converted_first(make, form, convert):
    """All of the arithmetic is float64: the result is that of the rounded arguments."""
    function, arguments = make(5, form=form)

    def rounded(value, dtype):
        if isinstance(value, tuple):
            return tuple(rounded(x, dtype) for x in value)
        return value.astype(convert).astype(dtype) if isinstance(value, np.ndarray) else value

    narrow = function(**{name: rounded(x, convert) for name, x in arguments.items()})
    wide = function(**{name: rounded(x, np.float64) for name, x in arguments.items()})
    assert all((a == b).all() for a, b in zip(flat(narrow), flat(wide), strict=True))


@pytest.mark.parametrize("make, form", ALL)
def test_lists_are_converted(make, form):
    function, arguments = make(3, form=form)
    lists = {n: x.tolist() if isinstance(x, np.ndarray) else x for n, x in arguments.items()}
    for a, b in zip(flat(function(**lists)), flat(function(**arguments)), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("make, form", ALL)
def test_no_state_is_a_state_of_zeros(make, form):
    function, arguments = make(6, form=form)
    state = arguments.pop("state")
    zeros = tuple(map(np.zeros_like, state)) if isinstance(state, tuple) else np.zeros_like(state)
    actual, expected = function(**arguments), function(**arguments, state=zeros)
    assert all((a == b).all() for a, b in zip(flat(actual), flat(expected), strict=True))


@pytest.mark.parametrize("make, form", ALL)
def test_a_long_sequence_in_forms_and_chunks(make, form):
    """Three hundred steps, in the chunks of the default."""
    function, arguments = make(300, form=form)
    reference = function(**arguments | {"form": "recurrent"})
    for actual, expected in zip(flat(function(**arguments)), flat(reference), strict=True):
        size = max(1.0, abs(expected).max())
        np.testing.assert_allclose(actual / size, expected / size, rtol=0, atol=1e-11)


@pytest.mark.parametrize("make, form", ALL)
@pytest.mark.parametrize("wrong", [1j, math.nan, math.inf, None, "one"])
def test_what_is_no_finite_number_is_refused_by_name(make, form, wrong):
    function, arguments = make(3, form=form)
    for name, value in arguments.items():
        if not isinstance(value, np.ndarray):
            continue
        broken = value.astype(object if wrong is None or isinstance(wrong, str) else type(wrong))
        broken[(0,) * broken.ndim] = wrong
        with pytest.raises(ValueError, match=f"^{name} must ") as error:
            function(**arguments | {name: broken})
        assert "\n" not in str(error.value)
