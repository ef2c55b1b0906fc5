"""The child process of one page: runs its blocks in order and tells the parent what happened.

Started by `runner` as `python -m archcards.evidence.worker` with the job as JSON on standard input;
answers with one JSON message a line on what was standard output. What the page itself prints, its
child processes included, goes to a file and comes back as `output` events in the order in which
things happened.
"""

from __future__ import annotations

import codecs
import contextlib
import doctest
import faulthandler
import json
import linecache
import os
import sys
import threading
import traceback
import warnings
from types import ModuleType, TracebackType
from typing import Any

from .confine import confine, die_with_parent
from .record import Event, Fact, Failure, Output, Recorder, recording

__all__ = ["main"]

OUTPUT_LIMIT = 1 << 20  # bytes a block may print
# Where faulthandler says what the page was doing when it was stopped; above the page's own folder.
DIAGNOSIS = "diagnosis.txt"


class _Channel:
    """The way back to the parent, and the file that catches what is printed."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.pipe = os.dup(1)
        self.file = os.open(
            os.path.join(os.pardir, "output"), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600
        )
        for standard in (1, 2):
            os.dup2(self.file, standard)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[union-attr]
        self.read = 0  # bytes of the file already told
        self.block_start = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def send(self, **message: Any) -> None:
        data = (json.dumps(message) + "\n").encode()
        with self.lock:
            while data:
                data = data[os.write(self.pipe, data) :]

    def printed(self, *, final: bool = False) -> str:
        """What was printed since the last call."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(
                ValueError, OSError, AttributeError
            ):  # a page may have closed it
                stream.flush()
        end = min(os.fstat(self.file).st_size, self.block_start + OUTPUT_LIMIT)
        data = os.pread(self.file, max(0, end - self.read), self.read)
        self.read += len(data)
        return self.decoder.decode(data, final)


class _Page:
    """The page that runs."""

    def __init__(self, job: dict[str, Any], channel: _Channel) -> None:
        self.path: str = job["path"]
        self.blocks: list[dict[str, Any]] = job["blocks"]
        self.limit: float = job["limit"]
        self.quotes: dict[str, dict[str, Any]] = job["quotes"]
        self.channel = channel
        self.block = self.blocks[0]
        self.block_failed = False
        self.refusals: list[str] = []
        self.recorder: Recorder
        module = ModuleType("chapter")  # known by a name, as dataclasses and pickle expect
        module.__file__ = self.path
        sys.modules["chapter"] = module
        self.namespace = module.__dict__
        lines = [line + "\n" for line in job["code"]]
        linecache.cache[self.path] = (sum(map(len, lines)), None, lines, self.path)

    def run(self) -> None:
        threads = set(threading.enumerate())
        recorder = recording(self.path, listener=self.tell, quotes=self.quotes)
        with recorder as self.recorder, \
                open(os.path.join(os.pardir, DIAGNOSIS), "w") as diagnosis:  # fmt: skip
            faulthandler.enable(diagnosis)
            for index, self.block in enumerate(self.blocks):
                self.recorder.line = self.block["first"]
                self.channel.block_start = self.channel.read
                self.channel.send(begin=index)
                faulthandler.dump_traceback_later(self.limit, file=diagnosis)
                go_on = self.run_block()
                self.wait_for_threads(threads)
                faulthandler.cancel_dump_traceback_later()
                self.tell_output(final=True)
                self.channel.send(end=index, ran=go_on and not self.block_failed)
                if not go_on or self.block_failed:
                    break

    def run_block(self) -> bool:
        """Runs the current block; whether the page may go on."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                if self.block["transcript"]:
                    self.run_transcript()
                else:
                    source = "\n" * (self.block["first"] - 1) + self.block["code"] + "\n"
                    exec(compile(source, self.path, "exec", dont_inherit=True), self.namespace)
            except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt end a page too
                if os.getpid() != self.channel.process:
                    os._exit(1)
                self.fail_with(error)
                return False
        if os.getpid() != self.channel.process:
            os._exit(0)  # a fork that ran to the end of the block: its parent goes on
        return True

    def run_transcript(self) -> None:
        """Runs a session line by line and compares what it prints with what it says."""
        self.tell_output()
        parser = doctest.DocTestParser()
        try:
            examples = parser.get_examples(self.block["code"], self.path)
        except ValueError as error:
            self.fail(self.block["line"], f"cannot read this transcript: {error}")
            return
        if not examples:
            self.fail(
                self.block["line"],
                "a transcript without a prompt; begin its lines of code with >>>",
            )
        for example in examples:
            line = self.block["first"] + example.lineno
            source = "\n" * (line - 1) + example.source
            raised = None
            try:
                exec(compile(source, self.path, "single", dont_inherit=True), self.namespace)
            except Exception as error:
                if example.exc_msg is None:
                    raise
                raised = error
            printed = self.channel.printed()
            if example.exc_msg is not None:
                printed = "".join(traceback.format_exception_only(raised)) if raised else printed
                wanted = example.exc_msg
            else:
                wanted = example.want
            if printed != wanted:
                self.fail(
                    line,
                    f"the transcript says {_quoted(wanted)}, but the code gives {_quoted(printed)}",
                )

    def wait_for_threads(self, before: set[threading.Thread]) -> None:
        for thread in threading.enumerate():
            if thread in before or thread is threading.current_thread():
                continue
            thread.join(1.0)
            if thread.is_alive():
                self.fail(
                    self.block["line"], "a thread of this block does not end; join it in the block"
                )
                self.block_failed = True

    # Telling

    def tell(self, event: Event) -> None:
        """Sends an event on, after what was printed before it."""
        if os.getpid() != self.channel.process:
            event = Failure(
                line=event.line,
                reason="evidence from a child process; state it in the block itself",
            )
        elif self.block["transcript"] and not isinstance(event, Failure | Fact | Output):
            event = Failure(
                line=event.line, reason="evidence inside a transcript; state it in a python block"
            )
        else:
            self.tell_output()
        try:
            json.dumps(event.to_json(), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            event = Failure(line=event.line, reason="half of a character, which no file can hold")
        self.channel.send(event=event.to_json())

    def tell_output(self, *, final: bool = False) -> None:
        text = self.channel.printed(final=final)
        if text:
            if "\ufffd" in text:
                self.fail(self.block["line"], "prints bytes that are not UTF-8")
            self.channel.send(event=Output(line=self.block["line"], text=text).to_json())
        if final and os.fstat(self.channel.file).st_size > self.channel.read:
            self.fail(self.block["line"], f"prints more than {OUTPUT_LIMIT} bytes")
            self.block_failed = True

    def fail(self, line: int, reason: str, detail: str = "") -> None:
        failure = Failure(line=line or self.block["line"], reason=_writable(reason))
        self.channel.send(event=failure.to_json(), detail=_writable(detail))

    def refused(self, line: int, reason: str) -> None:
        """What a guard reports."""
        self.refusals.append(reason)
        self.fail(line, reason)

    def fail_with(self, error: BaseException, where: str = "") -> None:
        text = _describe(error)
        line = _line_of(error, self.path) or self.block["line"]
        if any(text.endswith(reason) for reason in self.refusals):
            return  # already told by the guard, at its line
        self.fail(line, where + text, _format(error))

    def in_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and args.exc_type is not SystemExit:
            self.fail_with(args.exc_value, "in a thread: ")
            self.block_failed = True

    def unraisable(self, args: Any) -> None:
        if args.exc_value is not None:
            self.fail_with(args.exc_value, "ignored by Python: ")
            self.block_failed = True


def _writable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _quoted(text: str) -> str:
    shown = text.removesuffix("\n")
    if "\n" in shown:
        shown = shown.split("\n")[0] + " …"
    return repr(shown) if shown else "nothing"


def _describe(error: BaseException) -> str:
    """The exception's name and the first line of its message, whatever its `str` does."""
    name = type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{name}: {error.msg}"
    if isinstance(error, Warning):
        name = f"a warning, {name}"
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001
        text = "(its message cannot be read: str() of it raises)"
    if isinstance(error, BaseExceptionGroup):
        text += ": " + "; ".join(_describe(e) for e in error.exceptions)
    if isinstance(error, SystemExit):
        text = f"{text}; no block may end the process".removeprefix("; ")
    if isinstance(error, MemoryError) and not text:
        text = "the page needs more memory than it may use"
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return f"{name}: {first}" if first else name


def _line_of(error: BaseException, path: str) -> int:
    """The innermost line of the page that led to the exception, or 0."""
    if isinstance(error, SyntaxError) and error.filename == path and error.lineno:
        return error.lineno
    line, tb = 0, error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == path:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def _format(error: BaseException) -> str:
    """The traceback, from the page's first line on."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, tb, limit=-20))
    except BaseException:  # noqa: BLE001 - an exception may refuse to be formatted
        return ""


def _limit_resources(memory: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 1 << 28),
    ):
        with contextlib.suppress(ValueError, OSError):  # where the system has no such limit
            resource.setrlimit(what, (limit, limit))


def main() -> None:
    """Runs the page that standard input describes."""
    job = json.loads(sys.stdin.buffer.read())
    die_with_parent(job["parent"])
    channel = _Channel()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _limit_resources(job["memory"])
    from .guards import arm  # imports NumPy, under the limits

    confine(job["free"])
    page = _Page(job, channel)
    sys.unraisablehook = page.unraisable
    threading.excepthook = page.in_thread
    sys.argv = [job["path"]]
    reads = arm(job["path"], job["root"], tuple(job["free"]), page.refused)
    page.run()
    reads.modules()
    channel.send(done=True, seen=sorted(reads.files) if reads.followed else None)
    os._exit(0)  # no page's exit handler has a say


if __name__ == "__main__":
    main()
