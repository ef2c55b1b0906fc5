"""What a page may not do while it runs: draw unseeded randomness, read the clock, write into the
repository, use the network. Its results would differ from one build to the next.

Randomness, writes and the network are refused however deep below the page they happen; the clock
only where the page itself reads it, since libraries read it for their own purposes. What an import
does is the imported module's own affair. Each refusal is told to `report` with the page's line and
then raised, so that a page that swallows the exception is reported all the same.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import sysconfig
import tempfile
import time
import timeit
import uuid
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy
import numpy.random

from .memory import names_count

__all__ = ["Reads", "Refused", "arm"]

_CLOCKS = (
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "process_time_ns", "thread_time", "thread_time_ns",
    "clock_gettime", "clock_gettime_ns",
)  # fmt: skip
_CLOCKS_WITHOUT_ARGUMENT = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
# Audit events that change files: positions of each path and of the open folder it is relative to.
_CHANGES = {
    "os.rename": ((0, 2), (1, 3)), "os.link": ((1, 3),), "os.symlink": ((1, 2),),
    "os.remove": ((0, 1),),
    "os.mkdir": ((0, 2),), "os.rmdir": ((0, 1),), "os.truncate": ((0, None),), "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),), "os.utime": ((0, 3),),
    "os.setxattr": ((0, None),), "os.removexattr": ((0, None),),
}  # fmt: skip
_NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "socket.bind",
)
# NumPy makes a generator before it puts the pickled state into it.
_UNPICKLING = os.path.join(os.path.dirname(numpy.random.__file__), "_pickle.py")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


# What a page does that no list of opened files accounts for.
_UNFOLLOWED = {
    "subprocess.Popen", "os.fork", "os.forkpty", "os.system", "os.posix_spawn", "os.spawn", "os.exec",
    "os.startfile", "ctypes.dlopen", "sqlite3.connect", "mmap.__new__",
}  # fmt: skip


class Reads:
    """The files that a page opened or imported, beside those of Python, its packages and this one."""

    def __init__(self, root: str, free: tuple[str, ...]) -> None:
        self._root = os.path.realpath(root)
        self._path = {os.path.realpath(place) for place in sys.path}
        paths = sysconfig.get_paths()
        own = (
            *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            os.path.dirname(os.__file__),
        )
        package = os.path.dirname(os.path.dirname(__file__))
        self._own = tuple(map(os.path.realpath, (*own, package, "/proc", "/dev", "/sys", *free)))
        self.files: set[str] = set()
        self.followed = True

    def modules(self) -> None:
        """Takes note of the modules that are imported now: Python may have read them compiled."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and os.path.isabs(file):
                self.see("open", os.path.realpath(file))

    def see(self, event: str, path: str) -> None:
        """Takes note of an audit event."""
        if event in _UNFOLLOWED:
            self.followed = False
        elif event in ("open", "os.listdir", "os.scandir"):
            if not path or any(_under(path, place) for place in self._own):
                return
            if event != "open":  # the names of the repository's files are followed as a whole
                self.followed = self.followed and (
                    path in self._path or names_count(path, self._root)
                )
            elif "__pycache__" not in path.split(os.sep):
                self.files.add(path)


class Refused(RuntimeError):
    """The page did what no page may do."""


def arm(page: str, root: str, free: tuple[str, ...], report: Callable[[int, str], None]) -> Reads:
    """Sets the guards for the rest of this process, and says what the page reads.

    `page` is the file name of the page's code; nothing under `root` may be changed but what lies
    under a path of `free`; `report` is told each refusal's line and reason.
    """
    guard = _Guard(page, report)
    _arm_random(guard)
    _arm_clock(guard)
    reads = Reads(root, free)
    _arm_files(guard, os.path.realpath(root), tuple(map(os.path.realpath, free)), reads)
    process = os.getpid()
    os._exit = guard.direct(  # type: ignore[assignment]
        os._exit,
        "os._exit ends the page's process, which no block may",
        when=lambda code: os.getpid() == process,
    )
    return reads


class _Guard:
    def __init__(self, page: str, report: Callable[[int, str], None]) -> None:
        self.page = page
        self.report = report

    def frame(self) -> FrameType | None:
        """The page's frame that led here, if none of an import lies between."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self.page:
            if frame.f_code.co_filename.startswith(("<frozen importlib", _UNPICKLING)):
                return None
            frame = frame.f_back
        return frame

    def refuse(self, line: int, reason: str) -> None:
        self.report(line, reason)
        raise Refused(reason)

    def below(
        self, function: Callable[..., Any], reason: str, when: Callable[..., bool] | None = None
    ) -> Any:
        """`function`, refused anywhere below the page (if `when` holds for its arguments)."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            if (when is None or when(*args, **kwargs)) and (frame := self.frame()) is not None:
                self.refuse(frame.f_lineno, reason)
            return function(*args, **kwargs)

        return _named_as(function, guarded)

    def direct(
        self, function: Callable[..., Any], reason: str, when: Callable[..., bool] | None = None
    ) -> Any:
        """`function`, refused where the page itself calls it."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code.co_filename == self.page and (when is None or when(*args, **kwargs)):
                self.refuse(frame.f_lineno, reason)
            return function(*args, **kwargs)

        return _named_as(function, guarded)


def _named_as(function: Callable[..., Any], guarded: Callable[..., Any]) -> Any:
    for attribute in ("__name__", "__qualname__", "__doc__"):
        setattr(guarded, attribute, getattr(function, attribute, None))
    return guarded


def _arm_random(guard: _Guard) -> None:
    seeded = "use numpy.random.default_rng(seed)"
    for name in random.__all__:
        function = getattr(random, name)
        if not isinstance(function, type):
            setattr(
                random,
                name,
                guard.below(function, f"random.{name} draws from a global generator; {seeded}"),
            )
    random.Random.seed = guard.below(  # type: ignore[method-assign]
        random.Random.seed, f"random.Random() without a seed; {seeded}",
        when=lambda self, a=None, version=2: a is None and not _in_tempfile(),
    )  # fmt: skip
    for name in ("random", "getrandbits", "randbytes"):
        function = getattr(random.SystemRandom, name)
        setattr(
            random.SystemRandom, name, guard.below(function, f"randomness of the system; {seeded}")
        )
    for name in ("uuid1", "uuid4", "uuid6", "uuid7"):  # two of them since Python 3.14
        if hasattr(uuid, name):
            setattr(
                uuid,
                name,
                guard.below(getattr(uuid, name), f"uuid.{name} differs each time; write an id out"),
            )
    os.urandom = guard.below(os.urandom, f"os.urandom is randomness of the system; {seeded}")
    legacy = [n for n in numpy.random.__all__ if type(getattr(numpy.random, n)).__name__ != "type"]
    for name in legacy:
        if name != "default_rng":
            function = getattr(numpy.random, name)
            reason = f"numpy.random.{name} draws from the global generator; {seeded}"
            setattr(numpy.random, name, guard.below(function, reason))
    # Every generator of NumPy that is given no seed asks here for one; RandomState does even with one.
    bits, legacy_state = numpy.random.bit_generator, numpy.random.RandomState
    seeding = False

    class RandomState(legacy_state):  # type: ignore[misc,valid-type]
        def __init__(self, seed: Any = None) -> None:
            nonlocal seeding
            seeding = seed is not None
            try:
                super().__init__(seed)
            finally:
                seeding = False

    numpy.random.RandomState = RandomState  # type: ignore[misc]
    bits.randbits = guard.below(
        bits.randbits, "a random generator without a seed; give it one: default_rng(seed)",
        when=lambda *args: not seeding,
    )  # fmt: skip


def _in_tempfile() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == tempfile.__file__:
            return True
        frame = frame.f_back
    return False


def _arm_clock(guard: _Guard) -> None:
    advice = (
        "reads the clock, so the page would differ from build to build; times belong in a benchmark"
    )
    for name in _CLOCKS:
        if hasattr(time, name):
            setattr(time, name, guard.direct(getattr(time, name), f"time.{name} {advice}"))
    for name, given in _CLOCKS_WITHOUT_ARGUMENT.items():
        when = lambda *args, given=given: len(args) <= given or args[given] is None  # noqa: E731
        setattr(time, name, guard.direct(getattr(time, name), f"time.{name} {advice}", when))
    for name in ("timeit", "repeat", "default_timer"):
        setattr(timeit, name, guard.direct(getattr(timeit, name), f"timeit.{name} {advice}"))
    timeit.Timer.timeit = guard.direct(timeit.Timer.timeit, f"timeit {advice}")  # type: ignore[method-assign]
    os.times = guard.direct(os.times, f"os.times {advice}")
    date, moment = datetime.date, datetime.datetime

    # `datetime` and `date` are C types, whose methods cannot be replaced; a subclass stands in.
    class Transparent(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, cls.__mro__[1])

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, cls.__mro__[1])

    def stand_in(real: type, names: tuple[str, ...]) -> type:
        methods = {
            name: staticmethod(
                guard.direct(getattr(real, name), f"datetime.{real.__name__}.{name} {advice}")
            )
            for name in names
        }
        return Transparent(real.__name__, (real,), {"__module__": "datetime", **methods})

    datetime.date = stand_in(date, ("today",))  # type: ignore[misc]
    datetime.datetime = stand_in(moment, ("now", "utcnow", "today"))  # type: ignore[misc]


def _arm_files(guard: _Guard, root: str, free: tuple[str, ...], reads: Reads) -> None:
    process = os.getpid()

    def inside(path: str) -> bool:
        return _under(path, root) and not any(_under(path, place) for place in free)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            writes = (
                flags & _WRITES if isinstance(flags, int) else bool(set(mode or "") & set("wax+"))
            )
            paths = [_real(path, None)] if writes else []
            if not writes:
                reads.see(event, _real(path, None))
        elif event in _CHANGES:
            paths = [_real(args[n], None if at is None else args[at]) for n, at in _CHANGES[event]]
        elif event in _NETWORK:
            if os.getpid() == process and not _local(args):
                guard.refuse(
                    _line(guard),
                    "uses the network, which a build may not need; put the data into the repository",
                )
            return
        else:
            if event in _UNFOLLOWED or event in ("os.listdir", "os.scandir"):
                reads.see(event, _real(args[0] if args and args[0] is not None else ".", None))
            return
        for real in paths:
            if real and inside(real) and "__pycache__" not in real.split(os.sep):
                name = os.path.relpath(real, root)
                guard.refuse(
                    _line(guard), f"writes into the repository ({name}); write to a temporary file"
                )

    sys.addaudithook(hook)


def _line(guard: _Guard) -> int:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != guard.page:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def _under(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


def _real(path: Any, folder: Any) -> str:
    """The true path of a file below `folder` (a descriptor, or -1), or nothing for an open file."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    if isinstance(folder, int) and folder >= 0:
        return os.path.realpath(os.path.join(f"/proc/self/fd/{folder}", os.fsdecode(path)))
    return os.path.realpath(os.fsdecode(path))


def _local(args: tuple[Any, ...]) -> bool:
    """Whether a socket event concerns this machine's own processes only (a Unix socket)."""
    address = args[1] if len(args) > 1 else None
    return hasattr(args[0], "family") and isinstance(address, str | bytes)
