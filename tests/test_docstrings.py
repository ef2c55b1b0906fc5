"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import archcards
from archcards import mechanisms

# Whole blocks: an example would be mostly weights.
WITHOUT_EXAMPLE = {"mamba2_block"}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(archcards.__path__, "archcards.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(
    "name", sorted(n for n in vars(mechanisms) if not n.startswith("_") and n[0].islower())
)
def test_a_public_mechanism_has_an_example_and_names_its_errors(name):
    function = getattr(mechanisms, name)
    if callable(function):
        assert ("Example:" in function.__doc__) != (name in WITHOUT_EXAMPLE)
        assert "Raises:" in function.__doc__
