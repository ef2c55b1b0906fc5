"""The child process of `archcards conform`: imports the reader's functions and runs them.

`conform_process` starts it and asks, in pickles on standard input. Each answer is one line of JSON, with
arrays as base64: whatever the reader's code does to this process, its parent only ever reads data. What
that code prints goes to standard error, and there is nothing for it to read on standard input.
"""

import base64
import contextlib
import difflib
import importlib
import importlib.util
import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from . import cases
from .adapter import Adapter, ConformError
from .binding import Bound
from .evidence.confine import die_with_parent
from .raised import raised

__all__ = ["arrays", "serve"]

_MOST_BYTES = 1 << 26  # of one array; the largest that is published has some thousands


# Bound before the reader's code runs, which may put something else in their places.
_dumps, _write = json.dumps, os.write


def serve() -> None:
    """Answer until nobody asks any more."""
    for descriptor in range(3):  # one that is closed would be given to the next pipe
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    answers = _Answers()
    with os.fdopen(os.dup(0), "rb") as asked:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        parent, mechanism = pickle.load(asked)
        die_with_parent(parent)
        reader = _Reader(mechanism)
        answers.send(value="started")
        with contextlib.suppress(EOFError):
            while True:
                number, question, arguments = pickle.load(asked)
                answers.send(number=number, **_answer(getattr(reader, question), arguments))


class _Answers:
    """The way back to the parent: what was standard output, which is standard error from now on."""

    def __init__(self):
        self._process, self._pipe = os.getpid(), os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def send(self, **answer):
        if os.getpid() != self._process:  # a copy that the reader's code forked, and that came back
            os._exit(0)
        data = (_dumps(answer) + "\n").encode()
        while data:
            data = data[_write(self._pipe, data) :]


def _answer(method, arguments):
    """What came of a question, as something that JSON can hold."""
    try:
        found = method(*arguments)
        return {"arrays": _packed(found)} if isinstance(found, dict) else {"value": found}
    except ConformError as error:
        return {"refused": str(error)}
    except NotImplementedError as error:
        return {"skipped": str(error)}
    except KeyboardInterrupt:
        return {"interrupted": True}
    except BaseException as error:  # whatever somebody else's code raises
        return {"raised": raised(error)}


class _Reader:
    """The reader's functions, and what is asked of them: what `Bound` answers, of a case by its name."""

    def __init__(self, mechanism: str):
        self._published = cases.of(mechanism)
        self._cases = {case.name: case for case in self._published.cases}
        self._found: dict[str, Callable] = {}

    def find(self, role: str, name: str) -> str:
        """Import `"function"` or `"backward"`, and say what it calls itself."""
        self._found[role] = _found(name)
        return getattr(self._found[role], "__qualname__", name)

    def differentiates(self, adapter: Adapter) -> bool:
        return self._bound(adapter).differentiates

    def unfit(self, adapter: Adapter, case: str) -> str | None:
        return self._bound(adapter).unfit(self._cases[case])

    def results(self, adapter: Adapter, case: str) -> dict:
        return self._bound(adapter).results(self._cases[case])

    def asked(self, adapter: Adapter, case: str, names: Sequence[str]) -> list[str]:
        return self._bound(adapter).asked(self._cases[case], names)

    def gradients(self, adapter: Adapter, case: str, weights: Mapping, names: Sequence[str]) -> dict:
        return self._bound(adapter).gradients(self._cases[case], weights, names)

    def _bound(self, adapter):
        adapter = replace(adapter, backward=self._found.get("backward"))
        return Bound(adapter, self._found["function"], self._published)


# Arrays


def _packed(found):
    """Arrays by name as dtype, shape and bytes."""
    return {name: None if array is None else _one_packed(name, array) for name, array in found.items()}


def _one_packed(name, array):
    array = np.asarray(array)
    if array.dtype.kind not in "fiubc":
        raise ConformError(f"the function must return arrays of numbers, got dtype {array.dtype} for {name}")
    if array.nbytes > _MOST_BYTES:
        raise ConformError(f"{name} must have at most {_MOST_BYTES} bytes, got shape {array.shape}")
    return array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()


def arrays(packed: Mapping) -> dict[str, np.ndarray | None]:
    """The arrays of an answer, made of numbers and nothing else.

    Raises:
        ValueError: If that is not what was sent; `TypeError` or `KeyError` likewise.
    """
    return {name: None if one is None else _one_unpacked(*one) for name, one in packed.items()}


def _one_unpacked(dtype, shape, data):
    # NumPy makes no objects of bytes: such a dtype is refused.
    numbers = np.frombuffer(base64.b64decode(data, validate=True), np.dtype(dtype))
    return numbers.reshape(shape).copy()


# Functions


def _found(name: str) -> Callable:
    """The function that `module:function`, or `file.py:function`, names."""
    place, _, attribute = name.rpartition(":") if isinstance(name, str) else ("", "", "")
    if not place or not attribute:
        raise ConformError(f"a function must be MODULE:FUNCTION, got {name!r}")
    # As `python -m` does: modules beside the reader are found.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = _module(place)
    except (ConformError, KeyboardInterrupt):
        raise
    except BaseException as error:  # importing runs somebody else's code
        raise ConformError(f"{place} cannot be imported: {raised(error)}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, [n for n in dir(found) if n[0] != "_"], 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConformError(f"{place} must have {attribute}, and has no {part}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise ConformError(f"{name} must be a function, got {type(found).__name__}")
    return found


def _module(place):
    if not place.endswith(".py"):
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or not Path(place).is_file():
        raise ConformError(f"{place} must be a file" if Path(place).exists() else f"the file {place} must exist")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
