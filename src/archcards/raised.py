"""What somebody else's code raised, in one line."""

import os
from pathlib import Path

__all__ = ["Raised", "raised"]

_OURS = Path(__file__).parent


class Raised(Exception):
    """What was raised in another process, told in one line already."""


def raised(error: BaseException, length: int = 200) -> str:
    """Name an exception, the line of the reader's code that it came from, and what it says.

    Example:
        >>> raised(ValueError("no\\n  such kernel"))
        'ValueError: no such kernel'
    """
    if isinstance(error, Raised):
        return str(error)
    try:
        says = " ".join(str(error).split())[:length]
    except Exception:  # its text is somebody else's code too
        says = ""
    return f"{type(error).__name__}{_place(error)}{': ' if says else ''}{says}"


def _place(error):
    """The last line that was run of a file that is neither ours nor installed."""
    if isinstance(error, SyntaxError):
        return ""  # it names the line itself
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        installed = "site-packages" in file.parts or Path(os.__file__).parent in file.parents
        if file.is_file() and not installed and _OURS not in file.parents:
            place = f" at {_named(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _named(file):
    """The file as seen from here, or its name alone."""
    here = Path.cwd()
    return file.resolve().relative_to(here) if here in file.resolve().parents else file.name
