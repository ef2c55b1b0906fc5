"""The `archcards conform` command: finds the function, reads the options, prints the report.

What is run is the reader's own code, which may do anything. Whatever it prints goes to standard error,
so that the report is all that standard output has; and a call that does not end is given up.
"""

import argparse
import contextlib
import difflib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import signal
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from . import cases
from .conform import Adapter, ConformError, conform
from .raised import raised

__all__ = ["run"]

_FIELDS = tuple(Adapter.__dataclass_fields__)
_PAIRS = ("names", "where", "extra")


def run(given: argparse.Namespace) -> int:
    """Compare, print one screen, and return 0 if the function matches, 1 if not.

    Raises:
        ConformError: If the arguments cannot be used.
    """
    if given.list:
        for name in cases.MECHANISMS:
            parameters = ", ".join(inspect.signature(cases.of(name).reference).parameters)
            _print(f"{name}({parameters}) → {', '.join(cases.of(name).returns)}")
        return 0
    settings = _adapter_file(given.adapter) if given.adapter else {}
    for field in (*_FIELDS, "follows", "seconds"):
        value = getattr(given, field)
        if value is not None:
            settings[field] = _parsed(field, value)
    mechanism = given.mechanism or settings.pop("mechanism", None)
    function = given.function or settings.pop("function", None)
    for name in ("mechanism", "function"):
        settings.pop(name, None)
    if not mechanism or not function:
        missing = "a mechanism" if not mechanism else "MODULE:FUNCTION"
        raise ConformError(f"{missing} is needed; --list names the mechanisms")
    if mechanism not in cases.MECHANISMS:  # said before somebody's module is imported
        conform(mechanism, print)
    limit = settings.pop("seconds", _SECONDS)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e6:
        raise ConformError(f"seconds must be a number above 0, got {limit!r}")
    with contextlib.redirect_stdout(sys.stderr):
        compared = _limited(_found(function, limit), function, limit)
        if "backward" in settings:
            name = settings["backward"]
            settings["backward"] = _limited(_found(name, limit), name, limit)
        report = conform(mechanism, compared, **settings)
    _print(str(report))
    return report.status


_SECONDS = 60.0


class _Late(BaseException):
    """Raised in the reader's code when its time is over; `except Exception` does not stop it."""


@contextlib.contextmanager
def _ended_after(seconds: float, what: str) -> Iterator[None]:
    """Refuse what takes longer, where the system can interrupt it (not on Windows)."""

    def give_up(number, frame):
        raise _Late

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Late:
        raise ConformError(f"{what} takes more than {seconds:g} seconds; --seconds allows more") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _limited(function, name, seconds):
    """The function, given up when it takes too long."""
    if inspect.isclass(function):  # it is refused, or is what is compared
        return function

    def limited(*arguments, **options):
        with _ended_after(seconds, name):
            return function(*arguments, **options)

    # The signature is what arguments are passed by.
    functools.update_wrapper(limited, function, updated=())
    limited.__qualname__ = getattr(function, "__qualname__", name)
    return limited


def _print(text):
    """Print, with a question mark for what a terminal without Unicode cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def _parsed(field, value):
    if field in _PAIRS:
        return dict(_pair(field, part) for text in value for part in _parts(field, text))
    if field == "axes":
        layouts = (text.split("=", 1) if "=" in text else ("*", text) for text in value)
        return {name.strip(): layout for name, layout in layouts}
    return value


def _parts(field, text):
    return text.split(",") if field == "names" else [text]


def _pair(field, text):
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConformError(f"--{field} must be NAME=VALUE, got {text!r}")
    if field == "names":
        return name.strip(), value.strip()
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _adapter_file(path):
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConformError(f"the adapter {path} cannot be read: {error}") from None
    known = {*_FIELDS, "follows", "mechanism", "function", "seconds"}
    for name in settings:
        if name not in known:
            raise ConformError(f"the adapter {path} must set only {', '.join(sorted(known))}, got {name!r}")
    return settings


def _found(name: str, seconds: float) -> Callable:
    """The function that `module:function`, or `file.py:function`, names."""
    place, _, attribute = name.rpartition(":") if isinstance(name, str) else ("", "", "")
    if not place or not attribute:
        raise ConformError(f"a function must be MODULE:FUNCTION, got {name!r}")
    # As `python -m` does: modules beside the reader are found.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with _ended_after(seconds, f"importing {place}"):
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
        raise ConformError(f"the file {place} must exist")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
