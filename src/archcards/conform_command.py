"""The `archcards conform` command: reads the options, has the function compared, prints the report.

What is compared is the reader's own code, which may do anything: it does it in a process of its own.
"""

import argparse
import contextlib
import inspect
import json
import signal
import sys
import threading
import tomllib
from pathlib import Path

from . import cases
from .adapter import Adapter, ConformError
from .conform_process import ReaderProcess
from .conform_verdict import published_cases, verdict

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
    published = published_cases(mechanism)  # all this is said before somebody's module is imported
    limit = settings.pop("seconds", 60.0)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e6:
        raise ConformError(f"seconds must be a number above 0 and below 1,000,000, got {limit!r}")
    follows = settings.pop("follows", ())
    backward = settings.pop("backward", None)
    adapter = Adapter(**settings)
    with _ended_in_order(), ReaderProcess(mechanism, function, backward, seconds=limit) as process:
        report = verdict(published, process.bind, adapter, follows)
    _print(str(report))
    return report.status


class _Ended(BaseException):
    """A signal has told this process to end; nobody on the way out takes it for the reader's."""


@contextlib.contextmanager
def _ended_in_order():
    """Has what ends this process end the reader's too, with all that it started."""

    def end(number, _):
        raise _Ended(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread hears of signals
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    except _Ended as ended:
        raise SystemExit(128 + ended.args[0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
