"""What no mechanism takes: a shape, a count or a number that its signature excludes.

`tests/conftest.py` holds every call to its annotations: where they exclude what a function was
given, it must refuse. Here each argument, in the smallest published case that has it, is spoilt in
every way that might be broadcast, counted or converted in silence.
"""

import importlib
import pkgutil

import numpy as np
import pytest

from archcards import cases, mechanisms

PUBLIC = [name for name in cases.MECHANISMS if name in mechanisms.__all__ and name[0].islower()]
# Functions, and records whose fields are checked where they are made.
NOT_ARRAYS = {"sublayer", "norm", "experts", "routing", "shared", "law", "cache", "scaling", "frequencies"}
BLOCKS = {"latent_attention", "mamba_block", "mamba2_block"}


def spoilt_array(array):
    """Every axis of another length, one axis more and one less, and other kinds of numbers."""
    for axis, size in enumerate(array.shape):
        if size != 1:
            yield f"axis {axis} of length one", array.take([0], axis)
        if size > 1:
            yield f"axis {axis} cut short", array.take(range(size - 1), axis)
        yield f"axis {axis} too long", np.concatenate([array, array.take([0], axis)], axis)
    if array.ndim:
        yield "without its first axis", array[0]
        yield "without its last axis", array[..., 0]
    yield "an axis of three in front", np.stack([array] * 3)
    yield "an axis of one in front", array[None]
    yield "an axis of one behind", array[..., None]
    yield "an axis of three behind", np.stack([array] * 3, axis=-1)
    yield "complex", array + 1j
    yield "objects", array.astype(object)
    if array.dtype.kind == "f":
        yield "a mask", array > 0
        if array.size:
            yield "NaN", np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)
            yield "infinite", np.where(np.arange(array.size).reshape(array.shape) == 0, np.inf, array)
    elif array.dtype.kind == "b":
        yield "zeros and ones", array.astype(int)


def spoilt_number(number):
    yield "a list of one", [number]
    yield "a list of three", [number] * 3
    yield "text", str(number)
    yield "NaN", np.nan
    yield "a truth value", True
    yield "longer than 64 bits", 2**70 + 1
    yield "a table", np.zeros((30, 30))
    if isinstance(number, int):
        yield "half more", number + 0.5
        yield "below zero", -number - 1


def spoilt_record():
    """What is no record, no function, and too long for one line."""
    yield "an object", object()
    yield "a mapping", {}
    yield "a list of nothing", [None]
    yield "a table", np.zeros((30, 30))


def is_array(name, argument):
    return argument not in NOT_ARRAYS and not (argument == "weights" and name in BLOCKS)


def spoilt(value):
    if isinstance(value, np.ndarray):
        yield from spoilt_array(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from spoilt_number(value)
    elif isinstance(value, str):
        yield "another word", value + "s"
        yield "no word", 1


def smallest_cases(name):
    """For each argument the smallest case that has it: one at an edge only if no other has."""

    def size(case):
        scalars = sum(x.size for x in case.arguments.values() if isinstance(x, np.ndarray))
        return case.degenerate, scalars

    found = {}
    for case in sorted(cases.of(name).cases, key=size):
        for argument in case.arguments:
            found.setdefault(argument, case)
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_spoilt_arguments_are_refused_or_mean_what_the_signature_says(name):
    function, refused = getattr(mechanisms, name), 0
    for argument, case in smallest_cases(name).items():
        given = case.arguments[argument]
        for how, value in spoilt(given) if is_array(name, argument) else spoilt_record():
            try:
                with np.errstate(all="ignore"):
                    function(**case.arguments | {argument: value})
            except ValueError as error:
                assert "\n" not in str(error), (case.name, argument, how)
                refused += 1
            except Exception as error:
                raise AssertionError(f"{case.name}: {argument}, {how}: {error!r}") from error
    assert refused


def test_the_package_offers_what_its_modules_do():
    names = set()
    for module in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            names |= set(importlib.import_module(module.name).__all__)
    assert names == set(mechanisms.__all__)
