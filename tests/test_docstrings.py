"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

from archcards import mechanisms

# Whole blocks: an example would be mostly weights.
WITHOUT_EXAMPLE = {"mamba2_block"}
PACKAGES = [importlib.import_module(f"archcards.{p}") for p in ("mechanisms", "controls", "ledger", "evidence", "plugin")]
MODULES = [
    module.name
    for package in PACKAGES
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
] + [package.__name__ for package in PACKAGES]


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
