"""Work in processes forked from one that has the libraries loaded and nothing of this project.

What a process imports, breaks or leaves behind ends with it, and each starts at once.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

__all__ = ["forked", "load"]

LIBRARIES = (
    "numpy", "pytest", "hypothesis", "hypothesis.extra.numpy", "beartype", "jaxtyping", "sympy", "coverage",
    "matplotlib.pyplot", "yaml", "einops", "markdown", "mkdocs.commands.build", "mkdocs.plugins", "material",
    "markdown_exec", "mkdocstrings", "math_core",
)  # fmt: skip


def load() -> None:
    """Imports what tests and chapters need, and nothing of this project: it could not be broken any more."""
    for name in LIBRARIES:
        importlib.import_module(name)
    importlib.import_module("matplotlib").use("agg")
    gc.freeze()  # no fork looks through all of it again
    assert not any(name.split(".")[0] == "archcards" for name in sys.modules), "already imported"


def forked(work: Callable[[], Any], seconds: float) -> tuple[Any, float]:
    """What `work` gives in a process of its own, as JSON would have it, and the seconds of a processor it took.

    None if it raises, dies, or takes so many seconds of a processor, or thirty times as many by the clock.
    """
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                sys.stdout, sys.stderr = open(os.devnull, "w"), open(os.devnull, "w")  # noqa: SIM115
                file = answer.fileno()
                told = json.dumps(work()).encode()
                while told:
                    told = told[os.write(file, told) :]
            except BaseException:  # noqa: BLE001  no answer is an answer
                os._exit(1)
            os._exit(0)
        status, used = _ended(child, 30 * seconds)
        answer.seek(0)
        return (json.loads(answer.read()) if status == 0 else None), used


def _ended(child: int, patience: float) -> tuple[int | None, float]:
    """The status of a child and what it used of a processor; whatever is left of it is killed."""
    until = time.monotonic() + patience
    try:
        while time.monotonic() < until:
            done, status, usage = os.wait4(child, os.WNOHANG)
            if done:
                return status, usage.ru_utime + usage.ru_stime
            time.sleep(0.01)
        return None, patience / 30
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
