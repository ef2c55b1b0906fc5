"""A reader's function in a process of its own: what it does there, it does to nobody else.

It may loop for ever, swallow every exception, end its process or crash it: the comparison goes on here,
and says so in one line. There is one child for the whole comparison, started anew only after a death.
"""

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np

from .adapter import Adapter, ConformError
from .cases import Case
from .conform_child import arrays
from .raised import Raised

__all__ = ["ReaderProcess"]

_START = 60.0  # seconds that our own imports may take, and PyTorch's
_GLANCE = 0.1  # seconds between two looks at whether the child is alive
_END = 2.0  # seconds for what the reader's code does at the end of its process
# What answers a question is of one kind; whatever else comes was not written by `conform_child`.
_VALUES = {"find": str, "differentiates": bool, "unfit": str | None, "asked": list}


class ReaderProcess:
    """The process that has a reader's functions.

    Args:
        mechanism: What the function computes.
        function: Where it is, as `module:function` or `file.py:function`.
        backward: Where its backward is, if it has one.
        seconds: How long it may take for a case, and to be imported.

    Example:
        >>> from archcards import cases
        >>> published = cases.of("layer_norm")
        >>> with ReaderProcess("layer_norm", "archcards.mechanisms:layer_norm") as process:
        ...     bound = process.bind(Adapter())
        ...     bound.results(published.cases[0])["output"].shape
        (2, 3, 6)
    """

    def __init__(self, mechanism: str, function: str, backward: str | None = None, *, seconds: float = 60.0):
        self.function, self.seconds = function, seconds
        self._mechanism, self._backward = mechanism, backward
        self._child: subprocess.Popen | None = None
        self._asked_so_far = 0
        self.name = function  # what it calls itself, once it is imported

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self._child is not None and kind is None:  # its time to write what it writes at exit
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._child.stdin.close()
                self._child.wait(_END)
        self._kill()

    def bind(self, adapter: Adapter) -> "_Bound":
        """The function as an adapter has it, called over there.

        Raises:
            ConformError: If it cannot be imported, or the adapter does not fit it.
        """
        return _Bound(self, adapter)

    def ask(self, what: str, seconds: float, question: str, *arguments: object) -> object:
        """Ask the child, which is started if there is none.

        Args:
            what: What the child does meanwhile, in words.
            seconds: How long that may take.
            question: A method of the child's.
            *arguments: What the method takes.

        Raises:
            ConformError: If there is no answer: the child is late, has ended, or says that something
                does not fit.
            Raised: If the reader's code raised.
            NotImplementedError: If it raised that.
            KeyboardInterrupt: If it raised that.
        """
        if self._child is None:
            self._start()
        return self._asked(what, seconds, question, *arguments)

    def _start(self):
        # The same paths as here, whichever way they came about; the reader's code has its own session,
        # so that Ctrl-C ends this process, and this one the other with all that it started.
        program = f"import sys; sys.path[:] = {sys.path!r}; from archcards.conform_child import serve; serve()"
        self._child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_listen, args=(self._child.stdout, self._lines), daemon=True).start()
        self._send((os.getpid(), self._mechanism))
        self._answer("starting Python", max(_START, self.seconds))
        found = {"function": self.function} | ({"backward": self._backward} if self._backward else {})
        for role, name in found.items():
            place = name.rpartition(":")[0] if isinstance(name, str) else name
            called = self._asked(f"importing {place}", self.seconds, "find", role, name)
            if role == "function":
                self.name = called

    def _asked(self, what, seconds, question, *arguments):
        self._asked_so_far += 1
        self._send((self._asked_so_far, question, arguments))
        answer = self._answer(what, seconds)
        expected = _VALUES.get(question)
        match answer:
            case {"number": number} if number != self._asked_so_far:
                pass
            case {"number": _, "value": value} if expected is not None and isinstance(value, expected):
                return value
            case {"number": _, "arrays": dict(packed)} if expected is None:
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    return arrays(packed)
            case {"number": _, "skipped": str(reason)} if expected is None:
                raise NotImplementedError(reason)
            case {"number": _, "refused": str(reason)}:
                raise ConformError(reason)
            case {"number": _, "raised": str(reason)}:
                raise Raised(reason)
            case {"number": _, "interrupted": True}:
                raise KeyboardInterrupt
        self._kill()
        raise ConformError(f"{what} must leave our pipe alone, got {json.dumps(answer)[:40]} from it")

    def _send(self, question):
        with contextlib.suppress(BrokenPipeError):  # it has ended; `_answer` says how
            pickle.dump(question, self._child.stdin)
            self._child.stdin.flush()

    def _answer(self, what, seconds):
        """The child's next line, or one of ours that says why there is none."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self._child.poll() is not None
            try:
                line = self._lines.get(timeout=_GLANCE)
            except queue.Empty:
                # Nor is there an end of the pipe while something that the child started still has it.
                if ended:
                    line = b""
                elif time.monotonic() < deadline:
                    continue
                else:
                    self._kill()
                    raise ConformError(f"{what} takes more than {seconds:g} seconds; --seconds allows more") from None
            if not line:
                raise ConformError(f"{what} ended its process {self._death()}, and must return")
            try:
                return json.loads(line)
            except (ValueError, RecursionError):
                self._kill()
                raise ConformError(f"{what} must leave our pipe alone, got {line[:40]!r} from it") from None

    def _death(self):
        """How the child died, in words."""
        try:
            status = self._child.wait(_END)
        except subprocess.TimeoutExpired:
            return "in all but name: its pipe is closed"
        finally:
            self._kill()
        if status >= 0:  # Windows has its exceptions there, which are known in hexadecimal
            return f"with status {status if status < 256 else hex(status)}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"by {name}{', which is what a system out of memory sends' if name == 'SIGKILL' else ''}"

    def _kill(self):
        """End the child and what it started, whatever they are doing."""
        child, self._child = self._child, None
        if child is None:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
        with contextlib.suppress(OSError):  # what could not be sent
            child.stdin.close()


def _listen(pipe, lines):
    """Pass on each line of the pipe and, empty, its end."""
    with pipe:
        for line in pipe:
            lines.put(line)
        lines.put(b"")


class _Bound:
    """What `archcards.binding.Bound` is, of a function in the other process."""

    def __init__(self, process: ReaderProcess, adapter: Adapter):
        self._process, self._adapter = process, adapter
        self.differentiates = self._prepared("differentiates")
        self.name = process.name

    def unfit(self, case: Case) -> str | None:
        return self._prepared("unfit", case.name)

    def asked(self, case: Case, names: Sequence[str]) -> list[str]:
        return self._prepared("asked", case.name, names)

    def results(self, case: Case) -> dict[str, np.ndarray | None]:
        return self._called("", "results", case.name)

    def gradients(self, case: Case, weights: Mapping, names: Sequence[str]) -> dict[str, np.ndarray]:
        return self._called(" with gradients", "gradients", case.name, weights, names)

    def _prepared(self, question, *arguments):
        process = self._process
        what, seconds = f"preparing {process.function}", max(_START, process.seconds)
        return process.ask(what, seconds, question, self._adapter, *arguments)

    def _called(self, doing, question, *arguments):
        process = self._process
        return process.ask(f"{process.function}{doing}", process.seconds, question, self._adapter, *arguments)
