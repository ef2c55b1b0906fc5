"""What a configuration leaves out, and what is understood at some values only, family by family.

The defaults of known_fields.json are those of the transformers library's configuration classes (5.24).
A published file leaves out what its own version of the library had as its default, so a reader with another
default would count another model without a word. `told_with` is what a configuration has to have beside a
field, null for what it has to leave out, so that a wrong default of the field is told from the right one.
"""

import copy
import json
import re
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, read_config

HERE = Path(__file__).parent
KNOWN = json.loads((HERE / "known_fields.json").read_text("utf-8"))
CONFIGS = {}
for case in json.loads((HERE / "library_counts.json").read_text("utf-8")):
    CONFIGS.setdefault(case["config"]["model_type"], []).append(case["config"])


def put(config, path, *value):
    """The configuration with that value at the path, or with nothing there; None where it has no such place."""
    config = copy.deepcopy(config)
    place = config
    *outer, name = path.split(".")
    for part in outer:
        place = place.get(part)
        if not isinstance(place, dict):
            return None
    place.pop(name, None)
    if value:
        place[name] = value[0]
    return config


def read(config):
    """What the reader makes of it; its remarks on what is absent are beside the point."""
    try:
        return read_config(config)._replace(notes=())
    except UnsupportedConfig:
        return None


def comparable(model_type, path):
    """Configurations of the family that have a place for the field, the last one made to tell its default."""
    configs = CONFIGS[model_type][:3]
    changes = KNOWN["told_with"].get(model_type, {}).get(path, {})
    telling = configs[0]
    for name, value in changes.items():
        telling = put(telling, name, *([] if value is None else [value]))
    configs = [*configs, telling] if changes else configs
    return [config for config in configs if put(config, path) is not None]


@pytest.mark.parametrize("model_type", KNOWN["defaults"])
def test_a_field_that_is_absent_has_the_default_of_the_library(model_type):
    for path, default in KNOWN["defaults"][model_type].items():
        for config in comparable(model_type, path):
            assert read(put(config, path)) == read(put(config, path, default)), path


def wrong(default):
    """Values that a default might have instead."""
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, int):
        return [2 * default, default + 2]
    return ["llama", "gelu", "gated-gelu"] if isinstance(default, str) else [1, 8]


def rivals(config, path, default):
    """Other fields beside this one that have the default's number, from which a wrong one might be taken."""
    if type(default) is not int:
        return set()
    *outer, name = path.split(".")
    for part in outer:
        config = config[part]
    numbers = {other: value for other, value in config.items() if type(value) is int and other != name}
    if name == "head_dim" and "num_attention_heads" in numbers:
        numbers["a head's share"] = numbers["hidden_size"] // numbers["num_attention_heads"]
    return {other for other, value in numbers.items() if value == default}


@pytest.mark.parametrize("model_type", KNOWN["defaults"])
def test_a_wrong_default_would_be_noticed(model_type):
    """Some configuration is another model with another value, and has the default's number nowhere else."""
    for path, default in KNOWN["defaults"][model_type].items():
        coincidences = []
        for config in comparable(model_type, path):
            right = read(put(config, path, default))
            if right and any(read(put(config, path, value)) != right for value in wrong(default)):
                coincidences.append(rivals(config, path, default))
        assert coincidences, path
        assert not set.intersection(*coincidences), path


def test_a_default_that_a_remark_alone_tells():
    config = put(CONFIGS["gemma3"][0], "mm_tokens_per_image")
    assert "an image is 256 tokens of the text model" in read_config(config).notes


def test_a_pooler_is_as_wide_as_the_model_unless_told():
    config = put(CONFIGS["vit"][0], "hidden_size", 96)
    same, other = (read(put(config, "pooler_output_size", width)) for width in (96, 768))
    assert read(put(config, "pooler_output_size")) == same != other


@pytest.mark.parametrize("model_type", KNOWN["fixed"])
def test_a_value_that_is_not_understood_is_refused_by_its_name(model_type):
    config = CONFIGS[model_type][0]
    for path, known in KNOWN["fixed"][model_type].items():
        for value in known["fits"]:
            assert read(put(config, path, value)) is not None, (path, value)
        told = " or ".join(repr(v) if isinstance(v, str) else json.dumps(v) for v in known["fits"]) or "nothing"
        with pytest.raises(UnsupportedConfig, match=rf"^{path}: expected {re.escape(told)}(?: \(|, came )"):
            read_config(put(config, path, known["refused"]))
