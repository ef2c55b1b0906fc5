"""The examples in the docstrings of the comparison and of the published cases run."""

import doctest
import importlib
import pkgutil

import pytest

import archcards
from archcards import cases

BESIDE = ("adapter", "binding", "cases", "difference", "libraries", "raised", "slopes")
MODULES = [
    f"archcards.{module.name}"
    for module in pkgutil.iter_modules(archcards.__path__)
    if module.name.startswith("conform") or module.name in BESIDE
] + [module.name for module in pkgutil.iter_modules(cases.__path__, "archcards.cases.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
