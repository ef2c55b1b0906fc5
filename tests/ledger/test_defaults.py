"""What a configuration leaves out, and what is understood at some values only, family by family.

The defaults of known_fields.json are those of the transformers library's configuration classes (5.24).
A published file leaves out what its own version of the library had as its default, so a reader with another
default would count another model without a word.
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


@pytest.mark.parametrize("model_type", KNOWN["defaults"])
def test_a_field_that_is_absent_has_the_default_of_the_library(model_type):
    compared = 0
    for config in CONFIGS[model_type][:3]:
        for path, default in KNOWN["defaults"][model_type].items():
            absent = put(config, path)
            if absent is not None:
                assert read(absent) == read(put(config, path, default)), path
                compared += read(absent) is not None
    assert compared


@pytest.mark.parametrize("model_type", KNOWN["fixed"])
def test_a_value_that_is_not_understood_is_refused_by_its_name(model_type):
    config = CONFIGS[model_type][0]
    for path, known in KNOWN["fixed"][model_type].items():
        for value in known["fits"]:
            assert read(put(config, path, value)) is not None, (path, value)
        told = " or ".join(repr(v) if isinstance(v, str) else json.dumps(v) for v in known["fits"]) or "nothing"
        with pytest.raises(UnsupportedConfig, match=rf"^{path}: expected {re.escape(told)}(?: \(|, came )"):
            read_config(put(config, path, known["refused"]))
