"""The `archcards conform` command: finds the function, reads the options, prints the report."""

import argparse
import importlib
import importlib.util
import inspect
import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from . import cases
from .conform import Adapter, ConformError, conform

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
    for field in (*_FIELDS, "follows"):
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
    report = conform(mechanism, _found(function), **settings)
    _print(str(report))
    return report.status


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
    known = {*_FIELDS, "follows", "mechanism", "function"}
    for name in settings:
        if name not in known:
            raise ConformError(f"the adapter {path} must set only {', '.join(sorted(known))}, got {name!r}")
    return settings


def _found(name: str) -> Callable:
    """The function that `module:function`, or `file.py:function`, names."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise ConformError(f"the function must be MODULE:FUNCTION, got {name!r}")
    # As `python -m` does: modules beside the reader are found.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = _module(place)
    except ConformError:
        raise
    except BaseException as error:  # importing runs somebody else's code
        if isinstance(error, KeyboardInterrupt):
            raise
        text = " ".join(str(error).split())
        raise ConformError(f"{place} cannot be imported: {type(error).__name__}: {text}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConformError(f"{place} must have {attribute}, and has no {part}")
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
