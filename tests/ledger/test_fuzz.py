"""Mutated configurations of real models: an exact answer or a one-line refusal, quickly."""

import copy
import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archcards.ledger import UnsupportedConfig, bundled_names, cache, flops, parameters, read_config
from archcards.ledger.bundled import bundled_config
from archcards.ledger.describe import notes, patterns
from archcards.ledger.families import READERS
from archcards.ledger.fields import MOST_LAYERS

CONFIGS = [bundled_config(name) for name in bundled_names()]
FIELDS = sorted(
    {
        name
        for config in CONFIGS
        for part in (config, config.get("text_config", {}), config.get("vision_config", {}))
        for name in part
    }
)

numbers = (
    st.sampled_from([-1, 0, 1, 2, 3, 7, 64, MOST_LAYERS, MOST_LAYERS + 1, 10**12, 10**13, 10**40])
    | st.integers()
)
values = st.recursive(
    st.none()
    | st.booleans()
    | numbers
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["auto", "full_attention", "sliding_attention", "LLG", "M*-E", *READERS]),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def mutated(draw):
    config = copy.deepcopy(draw(st.sampled_from(CONFIGS)))
    for _ in range(draw(st.integers(1, 4))):
        parts = [config] + [part for part in config.values() if isinstance(part, dict) and part]
        part = draw(st.sampled_from(parts))
        how = draw(st.sampled_from(["drop", "set", "add", "list", "swap"]))
        if not part:
            continue
        name = draw(st.sampled_from(sorted(part, key=str)))
        if how == "drop":
            del part[name]
        elif how == "set":
            part[name] = draw(values)
        elif how == "add":
            part[draw(st.sampled_from(FIELDS) | st.text(max_size=30))] = draw(values)
        elif how == "list" and isinstance(part[name], list) and part[name]:
            place = draw(st.integers(0, len(part[name]) - 1))
            if draw(st.booleans()):
                part[name][place] = draw(values)
            else:
                del part[name][place]
        elif how == "swap":
            part["model_type"] = draw(st.sampled_from(sorted(READERS)))
    return config


def whole(number):
    assert type(number) is int and number >= 0
    return number


def examined(config):
    """Counts everything that can be counted; every number is whole and not negative."""
    architecture = read_config(config)
    counted = parameters(architecture)
    for number in (
        counted.total,
        counted.text,
        counted.vision,
        counted.multi_token_prediction,
        counted.input_embedding,
        counted.output_embedding,
        *counted.active,
        *counted.components.values(),
    ):
        whole(number)
    assert sum(counted.components.values()) == counted.total
    assert counted.active.with_embeddings <= counted.text
    kept = cache(architecture, 4096, 2, 77)
    whole(kept.scalars), whole(kept.bytes)
    for term in kept.terms:
        whole(term.scalars(4096, 77))
    work = flops(architecture, None if architecture.image else 4096, 77)
    for part in (work.per_token, work.per_sequence):
        whole(part.matmul), whole(part.attention)
    for note in notes(architecture, kept, work):
        assert "\n" not in note
    assert sum(
        times * sum(count for count, _ in unit) for times, unit in patterns(architecture.layers)
    ) == len(architecture.layers)


def answers_or_refuses(config):
    try:
        examined(config)
    except UnsupportedConfig as refusal:
        message = str(refusal)
        assert len(message.splitlines()) == 1 and len(message) < 600, message
        assert re.match(r"[^:]+: expected .+, came .+", message), message


# Every example is bounded: the deadline is a bound on time that slow machines keep too.
@settings(deadline=5000, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_configurations(config):
    answers_or_refuses(config)


@settings(deadline=5000, max_examples=60)
@given(
    st.sampled_from(sorted(READERS)), st.dictionaries(st.sampled_from(FIELDS), values, max_size=12)
)
def test_made_up_configurations(model_type, config):
    answers_or_refuses({**config, "model_type": model_type})


@settings(deadline=5000, max_examples=30)
@given(st.dictionaries(st.text(max_size=10) | st.integers(), values, max_size=5) | values)
def test_not_a_configuration(config):
    answers_or_refuses(config)


def test_the_largest_sizes_are_counted_quickly():
    config = bundled_config("Meta-Llama-3.1-8B")
    config |= {"num_hidden_layers": MOST_LAYERS, "vocab_size": 10**12, "intermediate_size": 10**12}
    examined(config)


def test_bundled_configurations_are_json_that_reads_back():
    for config in CONFIGS:
        examined(json.loads(json.dumps(config)))
