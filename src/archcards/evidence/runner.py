"""Runs chapters: each page in a process of its own, several at once, under limits.

A page cannot disturb another, outlive its limits or take the build down: it runs in a session of
its own, in an empty folder, in an environment that is the same everywhere, and its whole process
group is killed when it is done or past its time.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import py_compile
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .chapter import Chapter, Fence
from .memory import Memory
from .problem import Problem
from .record import Check, Derivation, Event, Failure, event_from_json
from .worker import DIAGNOSIS

__all__ = ["Block", "Limits", "Run", "run_chapters"]

_PACKAGES = Path(__file__).parents[2]  # the folder that holds `archcards`
_START = 60.0  # seconds a worker may take until its first block begins
_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")

Quotes = Mapping[str, Mapping[str, Any]]  # by source and name


@dataclass(frozen=True)
class Limits:
    """What a page may use: seconds for a block, bytes of address space for the page."""

    seconds: float = 20.0
    memory: int = 4 << 30


@dataclass(frozen=True)
class Block:
    """A block of a page and its events, in order; `ran` if it ran to its end."""

    fence: Fence
    events: tuple[Event, ...] = ()
    ran: bool = False


@dataclass(frozen=True)
class Run:
    """What became of a page: its blocks, what is wrong with it, and how long it took."""

    chapter: Chapter
    blocks: tuple[Block, ...]
    problems: tuple[Problem, ...]
    seconds: float = field(default=0.0, compare=False)

    @property
    def complete(self) -> bool:
        """Whether every block ran to its end."""
        return all(block.ran for block in self.blocks)


def run_chapters(
    chapters: Iterable[Chapter],
    root: Path,
    limits: Limits = Limits(),
    memory: Memory | None = None,
    quotes: Sequence[Quotes] | None = None,
) -> list[Run]:
    """Runs the blocks of each chapter; pages that have none start no process.

    `root` is the repository, into which no page may write; `memory` has the runs that need not be
    repeated. `quotes` has for each chapter what its sources print, by source and name.
    """
    chapters = list(chapters)
    quotes = [{}] * len(chapters) if quotes is None else quotes
    _compile(Path(__file__).parents[1])
    if memory is not None:
        memory.look(root, limits, _environment())
    running: set[_Process] = set()
    pool = ThreadPoolExecutor(max(1, os.cpu_count() or 1))
    try:
        run = partial(_run, root=root, limits=limits, running=running, memory=memory)
        runs = list(pool.map(run, chapters, quotes))
    except BaseException:  # Ctrl-C, say: leave no process behind
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.kill()
        raise
    pool.shutdown()
    if memory is not None:
        memory.look_again(root, limits, _environment())
    return runs


def _compile(package: Path) -> None:
    """Compiles what has changed, once for all pages, which may not write beside the source.

    Compiled code knows its source by a hash: none is stale, however fast its writer saves, and none
    is written again, which a server would take for an edit.
    """
    checked = importlib.util.MAGIC_NUMBER + (0b11).to_bytes(4, "little")
    for file in package.rglob("*.py"):
        compiled = Path(importlib.util.cache_from_source(str(file)))
        known = checked + importlib.util.source_hash(file.read_bytes())
        if not compiled.exists() or compiled.read_bytes()[: len(known)] != known:
            with contextlib.suppress(OSError):  # the tree can only be read
                mode = py_compile.PycInvalidationMode.CHECKED_HASH
                py_compile.compile(str(file), doraise=False, quiet=2, invalidation_mode=mode)


def _run(
    chapter: Chapter, quotes: Quotes, *, root: Path, limits: Limits, running: set[_Process],
    memory: Memory | None,
) -> Run:  # fmt: skip
    if not chapter.blocks:
        return Run(chapter, (), ())
    if memory is not None and (remembered := memory.recall(chapter, quotes)) is not None:
        return remembered
    begun, moment = time.perf_counter(), time.time()
    with tempfile.TemporaryDirectory(prefix="archcards-", ignore_cleanup_errors=True) as folder:
        process = _Process(chapter, quotes, root, limits, Path(folder))
        running.add(process)
        try:
            process.follow()
        finally:
            process.kill()
            running.discard(process)
        run = Run(chapter, process.blocks(), tuple(process.problems), time.perf_counter() - begun)
        if memory is not None:
            memory.keep(run, quotes, process.seen, moment)
        return run


class _Process:
    """One worker, from its start to its end."""

    def __init__(
        self, chapter: Chapter, quotes: Quotes, root: Path, limits: Limits, folder: Path
    ) -> None:
        self.chapter = chapter
        self.limits = limits
        self.folder = folder
        self.problems: list[Problem] = []
        self.events: list[list[Event]] = [[] for _ in chapter.blocks]
        self.ended: set[int] = set()
        self.seen: list[str] | None = None  # the files that the page read, if that can be said
        self.current = -1
        environment = _environment() | {"TMPDIR": str(folder)}
        drawings = environment["MPLCONFIGDIR"]
        self.errors = open(folder / "errors.txt", "w+b")  # noqa: SIM115 - closed in kill
        (folder / "page").mkdir()
        os.makedirs(drawings, exist_ok=True)
        self.worker = subprocess.Popen(
            [sys.executable, "-m", "archcards.evidence.worker"],
            cwd=folder / "page", env=environment, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        self.messages: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        job = {
            "path": chapter.path, "root": str(root), "parent": os.getpid(),
            "free": [str(folder), drawings],
            "limit": limits.seconds, "memory": limits.memory, "code": _code_lines(chapter),
            "quotes": quotes,
            "blocks": [
                {"line": f.line, "first": f.first, "code": f.code, "transcript": f.transcript}
                for f in chapter.blocks
            ],
        }  # fmt: skip
        assert self.worker.stdin is not None
        try:
            self.worker.stdin.write(json.dumps(job).encode())
            self.worker.stdin.close()
        except BrokenPipeError:
            pass  # it died at once; `follow` says why

    def _listen(self) -> None:
        assert self.worker.stdout is not None
        for line in self.worker.stdout:
            self.messages.put(line)
        self.messages.put(b"")

    def follow(self) -> None:
        """Takes the worker's messages until it is done, dead or late."""
        deadline = time.monotonic() + _START
        while True:
            try:
                line = self.messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return self.late()
            if not line.endswith(b"\n"):
                return self.dead()
            message = json.loads(line)
            if "begin" in message:
                self.current = message["begin"]
                deadline = time.monotonic() + self.limits.seconds + 0.5
            elif "event" in message:
                self.take(event_from_json(message["event"]), message.get("detail", ""))
            elif "end" in message:
                if message["ran"]:
                    self.ended.add(message["end"])
                deadline = time.monotonic() + _START
            else:
                self.seen = message["seen"]
                return self.done()

    def take(self, event: Event, detail: str) -> None:
        self.events[max(self.current, 0)].append(event)
        if isinstance(event, Failure):
            self.problems.append(self.chapter.problem(event.line, event.reason, detail))
        elif isinstance(event, Check):
            what = "the check"
            self.problems += [
                self.chapter.problem(event.line, f"{what} fails: {r}") for r in event.reasons
            ]
        elif isinstance(event, Derivation):
            what = "the derivation"
            self.problems += [
                self.chapter.problem(event.line, f"{what} fails: {r}") for r in event.reasons
            ]

    def done(self) -> None:
        try:
            self.worker.wait(5)
        except subprocess.TimeoutExpired:
            self.stopped("the page's process does not end")
        if _group_alive(self.worker.pid) or _strays(self.folder):
            self.stopped("a child process outlives the page; wait for it in the block")
        self.report_rest()

    def late(self) -> None:
        if self.current < 0:
            self.stopped("the page's process did not start in time")
        else:
            self.stopped(
                f"ran longer than {self.limits.seconds:g} s, the limit of a block", self.diagnosed()
            )
            self.ended.discard(self.current)
        self.report_rest()

    def dead(self) -> None:
        try:
            self.worker.wait(2)
        except subprocess.TimeoutExpired:
            self.stopped("the block cut its process off from the build, which no block may")
            return self.report_rest()
        code = self.worker.returncode
        if self.current < 0:
            self.errors.seek(0)
            told = self.errors.read().decode(errors="replace")
            last = told.strip().rsplit("\n", 1)[-1]
            self.stopped(
                f"the page's process did not start: {last or f'status {code}'}", detail=told
            )
        elif code < 0:
            self.stopped(f"the process died of signal {_signal_name(-code)}", self.diagnosed())
        else:
            self.stopped(
                f"the block ended the process with status {code}, which no block may",
                self.diagnosed(),
            )
        self.ended.discard(self.current)
        self.report_rest()

    def stopped(self, reason: str, line: int = 0, detail: str = "") -> None:
        fence = self.chapter.blocks[max(self.current, 0)]
        self.problems.append(self.chapter.problem(line or fence.line, reason, detail))

    def report_rest(self) -> None:
        if not self.problems or self.current < 0:
            return
        later = self.chapter.blocks[self.current + 1 :]
        if later:
            these = (
                "this block was"
                if len(later) == 1
                else f"this block and the {len(later) - 1} after it were"
            )
            cause = self.chapter.blocks[self.current].line
            reason = f"{these} not run, because the block at line {cause} did not end well"
            self.problems.append(self.chapter.problem(later[0].line, reason))

    def diagnosed(self) -> int:
        """The line of the page that was running when its process was stopped, or 0."""
        try:
            text = (self.folder / DIAGNOSIS).read_text(errors="replace")
        except OSError:
            return 0
        name = self.chapter.path.encode("ascii", "backslashreplace").decode()
        threads = re.split(r"^(?:Current )?[Tt]hread .*$", text, flags=re.MULTILINE)
        for thread in reversed(threads):  # the main thread is told last
            for match in re.finditer(r'^  File "(.*)", line (\d+) in ', thread, re.MULTILINE):
                if match[1] == name:
                    return int(match[2])
        return 0

    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(fence, tuple(self.events[n]), n in self.ended)
            for n, fence in enumerate(self.chapter.blocks)
        )

    def kill(self) -> None:
        _kill_group(self.worker)
        for stray in _strays(self.folder):
            with contextlib.suppress(OSError):
                os.kill(stray, signal.SIGKILL)
        self.worker.wait()
        if self.worker.stdout is not None:
            self.worker.stdout.close()
        self.errors.close()


def _code_lines(chapter: Chapter) -> list[str]:
    """The page's code at its true lines and without its indentation, for tracebacks."""
    lines = [""] * len(chapter.lines)
    for fence in chapter.blocks:
        if not fence.transcript:
            for n, line in enumerate(fence.code.split("\n"), fence.first - 1):
                lines[n] = line
    return lines


def _environment() -> dict[str, str]:
    """The environment of every page, the same on each machine but for where things are."""
    drawings = os.path.join(
        tempfile.gettempdir(), f"archcards-matplotlib-{_user()}"
    )  # Matplotlib's list of fonts
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [str(_PACKAGES), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return kept | {
        "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1",
        "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8",
        "TZ": "UTC", "COLUMNS": "80",
        "MPLBACKEND": "Agg", "MPLCONFIGDIR": drawings,
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    }  # fmt: skip


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _kill_group(process: subprocess.Popen[Any]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()


def _strays(folder: Path) -> list[int]:
    """Processes that a page started in sessions of their own, known by its folder (on Linux)."""
    mark = f"TMPDIR={folder}".encode()
    strays = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark in entry.read_bytes().split(b"\0"):
                strays.append(int(entry.parent.name))
    return strays


def _group_alive(group: int) -> bool:
    if not hasattr(os, "killpg"):
        return False
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of which nothing is left but zombies
        return False
    return True
