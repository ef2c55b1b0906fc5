"""The examples in the docstrings of the comparison and of the published cases run."""

import doctest
import importlib
import pkgutil

import pytest

from archcards import cases

MODULES = [f"archcards.{name}" for name in ("adapter", "binding", "cases", "conform", "conform_command", "conform_pairs", "conform_report", "difference", "libraries", "raised", "slopes")] + [
    module.name for module in pkgutil.iter_modules(cases.__path__, "archcards.cases.")
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
