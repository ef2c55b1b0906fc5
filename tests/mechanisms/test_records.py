"""The records that mechanisms give and take cannot be changed, and those with arrays are compared by identity."""

import dataclasses
import importlib
import pkgutil

import pytest

import archcards.mechanisms

MODULES = [importlib.import_module(found.name) for found in pkgutil.iter_modules(archcards.mechanisms.__path__, "archcards.mechanisms.")]
RECORDS = [
    item for module in MODULES for item in vars(module).values()
    if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__module__ == module.__name__
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_cannot_be_changed(record):
    one = object.__new__(record)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, dataclasses.fields(record)[0].name, 1)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_with_arrays_is_compared_by_identity_and_one_of_numbers_by_value(record):
    arrays = any("ndarray" in str(field.type) for field in dataclasses.fields(record))
    assert (record.__eq__ is object.__eq__) == arrays


def test_the_sizes_of_a_latent_layer_have_names():
    from archcards.mechanisms import latent

    [record] = [item for item in RECORDS if item.__module__ == latent.__name__]
    with pytest.raises(TypeError, match="positional argument"):
        record(1)
