"""The registry of controls."""

import inspect

import numpy as np
import pytest

from archcards import controls, mechanisms
from archcards.controls import _registry

# What a control stands in for where that is no public function of a mechanism.
REFERENCES = {
    "cache_scalars": lambda config, context: None,  # the ledger's cache, of a config
    "mean_span": lambda length, window: None,  # the ledger's pairs over the queries
    "parameter_count": lambda config: None,
    "training_flops": lambda config, context: None,
    "merge": lambda state, other: None,  # AttentionState.merge
}
ALL = [(m, name) for m in controls.MECHANISMS for name in controls.of(m)]


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(_registry, "_CONTROLS", {})


@pytest.mark.parametrize("mechanism, name", ALL)
def test_a_control_has_its_mechanisms_signature(mechanism, name):
    """It must take the place of the reference in any call: the same parameters."""
    reference = REFERENCES.get(mechanism) or getattr(mechanisms, mechanism)
    expected = list(inspect.signature(reference).parameters.values())
    got = list(inspect.signature(controls.of(mechanism)[name]).parameters.values())
    passes_on = any(p.kind is p.VAR_KEYWORD for p in got)
    named = [p for p in got if p.kind is not p.VAR_KEYWORD]
    positional = [p.name for p in expected if p.kind is p.POSITIONAL_OR_KEYWORD]
    keywords = {p.name for p in expected if p.kind is p.KEYWORD_ONLY}
    assert [p.name for p in named if p.kind is p.POSITIONAL_OR_KEYWORD] == positional
    got_keywords = {p.name for p in named if p.kind is p.KEYWORD_ONLY}
    assert got_keywords <= keywords if passes_on else got_keywords == keywords


@pytest.mark.parametrize("mechanism, name", ALL)
def test_a_control_says_where_it_was_seen(mechanism, name):
    control = controls.of(mechanism)[name]
    assert control.mechanism == mechanism and control.name == name
    assert control.kind in ("mistake", "convention")
    assert control.seen and "Seen in:" in control.__doc__ and "\n" not in control.seen


def test_attribute_and_function_give_the_same_mapping():
    assert dict(controls.causal) == dict(controls.of("causal"))
    assert set(controls.MECHANISMS) <= set(dir(controls))
    with pytest.raises(TypeError):
        controls.causal["aligned to the top left"] = None


def test_an_unknown_mechanism_is_named():
    with pytest.raises(ValueError, match="^mechanism must be one that has controls, got 'casual'$"):
        controls.of("casual")
    with pytest.raises(AttributeError, match="no attribute 'casual'"):
        controls.casual  # noqa: B018


def test_a_control_without_a_source_is_refused(empty_registry):
    def nameless():
        """It does something wrong."""

    with pytest.raises(ValueError, match="^control 'off by one' of causal must say what it does"):
        controls.mistake("causal", "off by one")(nameless)


def test_a_name_is_registered_once(empty_registry):
    def control():
        """Do nothing. Seen in: nowhere."""

    controls.convention("causal", "idle")(control)
    with pytest.raises(ValueError, match="^control 'idle' of causal must be registered once"):
        controls.mistake("causal", "idle")(control)


KEY, VALUE = [[1.0, 0.5]], [[3.0, -1.0]]


def test_two_controls_are_in_force_at_once():
    """A scaled query around a memory that decays too late, written out beside it."""
    names = "query scaled by 1/sqrt(d)", "decay after the write"
    together = controls.both(*(controls.delta_rule[name] for name in names))
    output, state = together(
        KEY, KEY, VALUE, [0.5], log_decay=[-1.0], state=[[1.0, 0.0], [0.0, 1.0]]
    )
    key, value = np.array(KEY[0]), np.array(VALUE[0])
    memory = np.exp(-1.0) * (np.eye(2) + 0.5 * np.outer(key, value - key))
    np.testing.assert_allclose(state, memory, rtol=1e-14)
    np.testing.assert_allclose(output[0], memory.T @ key / np.sqrt(2), rtol=1e-14)


def test_two_changes_of_different_steps_are_one_function():
    """A memory read before it is written, which moves away from the value, written out beside it."""
    names = "error with the wrong sign", "read before the write"
    together = controls.both(*(controls.delta_rule[name] for name in names))
    output, state = together(KEY, KEY, VALUE, [0.5], state=[[1.0, 0.0], [0.0, 1.0]])
    key, value = np.array(KEY[0]), np.array(VALUE[0])
    np.testing.assert_allclose(state, np.eye(2) - 0.5 * np.outer(key, value - key), rtol=1e-14)
    np.testing.assert_allclose(output[0], key, rtol=1e-14)


def test_two_changes_of_one_step_are_not_joined():
    one, two = (controls.delta_rule[name] for name in ("no decay", "decay after the write"))
    assert one.changes_a_step and two.changes_a_step and one.joined(two) is None
    assert one.joined(controls.delta_rule["beta doubled"]) is None


def test_a_control_reaches_what_another_reads_by():
    """Tiled heads read by `attention`, whose control of the same name is put in its place."""
    query, key, value = np.ones((4, 1, 2)), np.eye(2)[None] * [[[1.0]], [[2.0]]], np.ones((2, 2, 1))
    value[0, 0] = 5.0
    tiled, unscaled = (
        controls.grouped_attention[name]
        for name in ("heads tiled, not repeated in runs", "scores not scaled")
    )
    expected = mechanisms.attention(query, key[[0, 1, 0, 1]], value[[0, 1, 0, 1]], scale=1.0)
    np.testing.assert_allclose(controls.both(tiled, unscaled)(query, key, value), expected)


def test_the_reference_is_back_when_a_pair_has_failed():
    pair = controls.both(
        controls.delta_write["memory as (value, key)"], controls.delta_write["beta doubled"]
    )
    with pytest.raises(ValueError, match="^key must have the key width of state"):
        pair([[1.0]], [1.0, 2.0], [1.0], 1.0)
    assert controls.delta_write["beta doubled"]([[4.0]], [1.0], [10.0], 0.5).item() == 10
