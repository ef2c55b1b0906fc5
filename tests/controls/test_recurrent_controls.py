"""Each control of linear attention, the delta family and state spaces is off on a small case."""

import inspect
import math

import numpy as np
import pytest

from archcards import cases, controls, mechanisms
from archcards.mechanisms import elu_plus_one, unit_key

FAR = 1e-3


def wave(*shape, start=0.0):
    """Numbers between −2 and 2 without pattern or randomness."""
    return 2 * np.sin(1 + start + np.arange(np.prod(shape)) ** 2).reshape(shape)


# Square memories, so that a transposed one is taken for the other without an error of shape.
QUERY, KEY, VALUE = wave(2, 7, 3), unit_key(wave(2, 7, 3, start=0.3)), wave(2, 7, 3, start=0.7)
BETA, STATE = (2 + wave(2, 7, start=0.5)) / 4, wave(2, 3, 3, start=0.9)
PER_STEP = -(2.1 + wave(2, 7, start=0.2)) / 2
PER_CHANNEL = -(2.1 + wave(2, 7, 3, start=0.2)) / 2
SHUT = np.where(np.arange(7) == 4, -math.inf, PER_STEP)
STRONG = np.full((2, 7), -400.0)


def block(mechanism, name):
    """The output of a published case."""
    (case,) = (case for case in cases.of(mechanism).cases if case.name == name)
    return lambda f: f(**case.arguments)[0]


def linear(**options):
    return lambda f: f(QUERY, KEY, VALUE, state=STATE, **{"chunk": 3, "log_decay": PER_STEP} | options)


def mean(**options):
    pair = STATE, elu_plus_one(STATE[..., 0])
    return lambda f: f(
        elu_plus_one(QUERY),
        elu_plus_one(KEY),
        VALUE,
        normalise=True,
        state=pair,
        **{"chunk": 3, "log_decay": PER_STEP} | options,
    )


def delta(**options):
    return lambda f: f(
        QUERY, KEY, VALUE, BETA, state=STATE, **{"chunk": 3, "log_decay": PER_STEP} | options
    )


def write(f):
    return f(STATE, KEY[:, 0], VALUE[:, 0], BETA[:, 0])


def gated(decay=PER_STEP[:, 0]):
    return lambda f: f(STATE, KEY[:, 0], VALUE[:, 0], BETA[:, 0], np.exp(decay))


SCAN = {
    "u": wave(7, 3),
    "dt": wave(7, 3, start=0.1),
    "A": -(2.5 + wave(3, 3, start=0.2)) / 2,
    "B": wave(7, 3, start=0.3),
    "C": wave(7, 3, start=0.4),
    "D": wave(3, start=0.5),
    "z": wave(7, 3, start=0.6),
    "dt_bias": wave(3, start=0.7),
    "dt_softplus": True,
    "state": wave(3, 3, start=0.8),
}
DUAL = {
    "x": wave(4, 7, 3),
    "dt": wave(4, 7, start=0.1),
    "A": -(2.5 + wave(4, start=0.2)) / 2,
    "B": wave(2, 7, 3, start=0.3),
    "C": wave(2, 7, 3, start=0.4),
    "D": wave(4, start=0.5),
    "dt_bias": wave(4, start=0.7),
    "dt_limit": (0.5, 2.0),
    "state": wave(4, 3, 3, start=0.8),
    "chunk": 3,
}


def scan(f):
    return f(**SCAN)


def dual(f):
    return f(**DUAL)


CASES = {
    "elu_plus_one": {"one not added": lambda f: f(QUERY), "relu": lambda f: f(QUERY)},
    "linear_attention": {
        "query scaled by 1/sqrt(d)": linear(),
        "memory as (value, key)": linear(),
        "no decay": linear(),
        "decay after the write": linear(),
        "log-decay read as decay": linear(),
        "read before the write": linear(),
        "causal mask in place of the decay mask": linear(),
        "memory between chunks does not decay": linear(),
        "decay by differences of sums": linear(log_decay=SHUT),
        "decay by two factors": linear(log_decay=STRONG),
        "initial state forgotten": linear(),
        "not normalised": mean(),
        "normaliser summed along the heads": mean(),
        "normaliser without the running sum": mean(),
        "normaliser does not decay": mean(),
    },
    "delta_write": {
        "added instead of corrected": write,
        "beta on the value alone": write,
        "error with the wrong sign": write,
        "beta doubled": write,
        "memory as (value, key)": write,
    },
    "gated_write": {
        "added instead of corrected": gated(),
        "beta on the value alone": gated(),
        "error with the wrong sign": gated(),
        "beta doubled": gated(),
        "memory as (value, key)": gated(),
        "no decay": gated(),
        "decay after the read": gated(),
        "decay after the write": gated(),
        "factors in the other order": gated(PER_CHANNEL[:, 0]),
        "decay taken for its logarithm": gated(),
    },
    "delta_rule": {
        "added instead of corrected": delta(),
        "beta on the value alone": delta(),
        "error with the wrong sign": delta(),
        "no decay": delta(),
        "decay after the read": delta(),
        "decay after the write": delta(),
        "factors in the other order": delta(log_decay=PER_CHANNEL),
        "read before the write": delta(),
        "read after the decay, before the write": delta(),
        "query scaled by 1/sqrt(d)": delta(),
        "memory as (value, key)": delta(),
        "beta doubled": delta(),
        "unit queries and keys made inside": delta(),
        "log-decay read as decay": delta(),
        "decay of the step before": delta(),
        "initial state forgotten": delta(),
        "causal mask in place of the decay mask": delta(),
        "both triangular systems gated": delta(),
        "neither triangular system gated": delta(),
        "decay by differences of sums": delta(log_decay=SHUT),
        "decay by two factors": delta(log_decay=STRONG),
        "decay by two clamped factors": delta(log_decay=STRONG),
    },
    "unit_key": {
        "largest of norm and epsilon": lambda f: f([6e-4, 8e-4]),
        "epsilon added to the norm": lambda f: f([6e-4, 8e-4]),
        "mean square in place of the sum": lambda f: f([6.0, 8.0]),
    },
    "decay_gate": {
        "rate not exponentiated": lambda f: f(QUERY, 0.5, 0.2),
        "sign forgotten": lambda f: f(QUERY, 0.5, 0.2),
        "bias after the softplus": lambda f: f(QUERY, 0.5, 0.2),
        "decay itself": lambda f: f(QUERY, 0.5, 0.2),
    },
    "selective_scan": {name: scan for name in controls.of("selective_scan")},
    "state_space_dual": {name: dual for name in controls.of("state_space_dual")},
    "causal_convolution": {
        name: lambda f: f(SCAN["u"], wave(3, 4)) for name in controls.of("causal_convolution")
    },
    "mamba_block": {
        "gate before the input": block("mamba_block", "from the start"),
        "convolution starts anew": block("mamba_block", "a step after a past"),
    },
    "mamba2_block": {
        "input before the gate": block("mamba2_block", "from the start"),
        "B and C exchanged": block("mamba2_block", "one group"),
        "convolution starts anew": block("mamba2_block", "three steps after a past"),
    },
}


@pytest.mark.parametrize("mechanism", CASES)
def test_every_control_is_off(mechanism, errors):
    found = errors(mechanism, CASES[mechanism])
    assert {name: error for name, error in found.items() if not error > FAR} == {}


# A control that is off everywhere may be off for another reason than its name says. Where its
# mistake cannot matter it must agree.


def agree(mechanism, name, call):
    actual = call(controls.of(mechanism)[name])
    expected = call(getattr(mechanisms, mechanism))
    for a, e in zip(actual, expected, strict=True):
        for left, right in zip(a, e, strict=True) if isinstance(e, tuple) else [(a, e)]:
            np.testing.assert_allclose(left, right, rtol=0, atol=1e-9)


DECAY_ONLY = {
    "no decay",
    "decay after the read",
    "decay after the write",
    "log-decay read as decay",
    "decay of the step before",
    "causal mask in place of the decay mask",
    "memory between chunks does not decay",
    "both triangular systems gated",
    "neither triangular system gated",
    "factors in the other order",
    "normaliser does not decay",
}


@pytest.mark.parametrize(
    "mechanism, name",
    [(m, n) for m in ("linear_attention", "delta_rule") for n in controls.of(m) if n in DECAY_ONLY],
)
def test_a_mistake_about_decay_needs_decay(mechanism, name):
    call = delta if mechanism == "delta_rule" else linear
    agree(mechanism, name, call(log_decay=None))
    if mechanism == "linear_attention":
        agree(mechanism, name, lambda f: f(KEY**2, KEY**2, VALUE, normalise=True))


@pytest.mark.parametrize(
    "mechanism, name",
    [
        (m, n)
        for m in ("linear_attention", "delta_rule")
        for n in controls.of(m)
        if n.startswith("decay by")
    ],
)
@pytest.mark.parametrize("log_decay", [None, PER_STEP, PER_CHANNEL])
def test_naive_chunks_are_right_while_gates_are_mild(mechanism, name, log_decay):
    call = delta if mechanism == "delta_rule" else linear
    agree(mechanism, name, call(log_decay=log_decay))


def test_factors_commute_for_one_decay_per_step():
    agree("delta_rule", "factors in the other order", delta())
    agree("gated_write", "factors in the other order", gated())


@pytest.mark.parametrize("mechanism", ["mamba_block", "mamba2_block"])
def test_a_convolution_that_starts_anew_is_right_at_the_start(mechanism):
    agree(mechanism, "convolution starts anew", block(mechanism, "from the start"))


def test_the_worked_case():
    """4 decays to 2 and goes a quarter of the way to 10: the reports' values of the mistakes."""

    def value(name):
        return controls.gated_write[name]([[4.0]], [1.0], [10.0], 0.25, 0.5).item()

    assert value("no decay") == 5.5
    assert value("decay after the write") == 2.75
    assert value("decay after the read") == 3.5


def test_tiled_groups_are_right_for_one_group_and_for_one_head_each():
    for group in (1, 4):
        B, C = (wave(group, 7, 3, start=s) for s in (0.3, 0.4))
        agree("state_space_dual", "groups tiled", lambda f: f(**DUAL | {"B": B, "C": C}))


def test_the_two_rules_agree_for_small_steps():
    small = SCAN | {"dt": SCAN["dt"] - 25}
    agree("selective_scan", "other discretisation of B", lambda f: f(**small))


@pytest.mark.parametrize("mechanism", sorted(set(CASES) - {"elu_plus_one"}))
def test_a_control_does_not_change_its_arguments(mechanism):
    arrays = [QUERY, KEY, VALUE, BETA, STATE, PER_STEP, PER_CHANNEL, SHUT, STRONG]
    arrays += [x for case in (SCAN, DUAL) for x in case.values() if isinstance(x, np.ndarray)]
    before = [x.copy() for x in arrays]
    for name, call in CASES[mechanism].items():
        call(controls.of(mechanism)[name])
    assert all((a == b).all() for a, b in zip(arrays, before, strict=True))


def test_every_recurrent_mechanism_with_a_choice_has_controls():
    for module in (mechanisms.delta, mechanisms.linear, mechanisms.mamba, mechanisms.ssm):
        functions = {n for n in module.__all__ if inspect.isfunction(getattr(module, n))}
        assert functions - set(controls.MECHANISMS) <= {"silu"}
