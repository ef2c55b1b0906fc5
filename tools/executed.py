"""Which tests and chapters execute each line of the code that is broken: recorded once, with `coverage`.

A test file is recorded in a process of its own, and what its tests start in turn (the pages that the runner
runs, commands) records itself: Python finds a `sitecustomize` and tells at its end what it executed. The
records are kept in `.cache` until the test file, or a module that it executes, changes.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forks import forked

__all__ = ["ROOMS", "ROOT", "SITECUSTOMIZE", "SOURCE", "Executed", "digest", "pytest_run", "record", "run_chapter", "statement", "surround"]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "archcards"
ROOMS = ("mechanisms", "ledger", "evidence")
# Suites that need a built site, a browser or minutes are not asked.
SUITES = ("mechanisms", "ledger", "evidence", "runner", "controls", "conform", "test_docstrings.py", "test_reports.py")
CACHE = ROOT / ".cache" / "executed"
SITECUSTOMIZE = f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\n"

Lines = dict[str, dict[int, set[str]]]  # module → line → who executes it


@dataclass
class Executed:
    """Who executes what, and in how many seconds of a processor."""

    tests: Lines = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    chapters: Lines = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    seconds: dict[str, float] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)  # although nothing is broken

    def by(self, who: Lines, module: str, line: int) -> set[str]:
        """The tests or the chapters that execute a statement; of one that runs on import, those of the module."""
        first, last, on_import = statement(module, line)
        lines = who.get(module, {})
        wanted = lines if on_import else range(first, last + 1)
        return {name for number in wanted for name in lines.get(number, ())}


# The syntax


def statement(module: str, line: int) -> tuple[int, int, bool]:
    """The first and last line of the statement, or of the head of one, that has a line; whether import runs it."""
    best = (1, 1, True)
    width = sys.maxsize
    for first, last, on_import in _statements(module):
        if first <= line <= last and last - first < width:
            best, width = (first, last, on_import), last - first
    return best


_known: dict[str, list[tuple[int, int, bool]]] = {}


def _statements(module: str) -> list[tuple[int, int, bool]]:
    if module not in _known:
        found = []

        def walk(node: ast.AST, on_import: bool) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                    body = getattr(child, "body", None)
                    first = getattr(child, "lineno", None) or child.pattern.lineno
                    last = max(first, body[0].lineno - 1) if body else child.end_lineno
                    found.append((first, last, on_import))
                walk(child, on_import and not isinstance(child, ast.FunctionDef))

        walk(ast.parse((SOURCE / f"{module}.py").read_text("utf-8")), True)
        _known[module] = found
    return _known[module]


# Recording


def digest(module: str) -> str:
    """A digest of a module's source, or nothing where it is gone."""
    file = SOURCE / f"{module}.py"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def record(jobs: int) -> Executed:
    """What each test and each chapter executes, recorded anew where its own file or the code it executed has changed."""
    files = [
        file
        for suite in SUITES
        for file in ([ROOT / "tests" / suite] if suite.endswith(".py") else sorted((ROOT / "tests" / suite).glob("test_*.py")))
    ]
    pages = sorted((ROOT / "docs").rglob("*.md"))
    common = hashlib.sha256()
    for file in sorted([*(ROOT / "tests").rglob("conftest.py"), Path(__file__)]):
        common.update(file.read_bytes())

    def one(file: Path) -> dict:
        name = hashlib.sha256(common.digest() + file.relative_to(ROOT).as_posix().encode() + file.read_bytes()).hexdigest()
        kept = CACHE / f"{name[:32]}.json"
        if kept.exists():
            found = json.loads(kept.read_text("utf-8"))
            if all(digest(module) == known for module, known in found["code"].items()):
                return found
        work = _recorded_chapter if file.suffix == ".md" else _recorded_tests
        found, _ = forked(lambda: work(file), 600)
        if found is None:
            return {"lines": {}, "seconds": {}, "failing": [file.relative_to(ROOT).as_posix()]}
        CACHE.mkdir(parents=True, exist_ok=True)
        # What is imported and no more, as the tests' settings import every mechanism, is nobody's.
        code = {module: digest(module) for module, lines in found["lines"].items() if any(lines.values())}
        kept.write_text(json.dumps(found | {"code": code}), "utf-8")
        return found

    executed = Executed()
    with ThreadPoolExecutor(jobs) as pool:
        for file, found in zip([*files, *pages], pool.map(one, [*files, *pages]), strict=True):
            executed.seconds |= found["seconds"]
            executed.failing += found["failing"]
            into = executed.chapters if file.suffix == ".md" else executed.tests
            for module, lines in found["lines"].items():
                for line, names in lines.items():
                    # What a test file executes when it is imported may matter to each of its tests.
                    into[module][int(line)] |= set(names or found["seconds"]) - set(found["failing"])
    return executed


def _started() -> Any:
    import coverage

    rooms = [str(SOURCE / room / "*") for room in ROOMS]
    measure = coverage.Coverage(data_file=None, config_file=False, include=rooms, messages=False)
    measure.start()
    return measure


def _lines(measure: Any, named: Callable[[str], str]) -> dict[str, dict[int, list[str]]]:
    measure.stop()
    data = measure.get_data()
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        module = Path(file).relative_to(SOURCE).with_suffix("").as_posix()
        found[module] = {
            line: sorted({named(c) for c in contexts} - {""}) for line, contexts in data.contexts_by_lineno(file).items()
        }
    return found


def _recorded_tests(file: Path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(f"{SITECUSTOMIZE}import executed\nexecuted.child({folder!r})\n", "utf-8")
        surround(folder)
        measure = _started()
        recorder = _Recorder(measure, Path(folder, "test"))
        pytest_run(file.relative_to(ROOT).as_posix(), plugins=[recorder])
        lines = _lines(measure, lambda context: context)
        for told in Path(folder).glob("*.json"):
            if text := told.read_text("utf-8"):
                child = json.loads(text)
                for module, numbers in child["lines"].items():
                    for number in numbers:
                        names = lines.setdefault(module, {}).setdefault(number, [])
                        names += [child["test"]] if child["test"] not in names else []
        return {"lines": lines, "seconds": recorder.seconds, "failing": sorted(recorder.failing)}


def _recorded_chapter(page: Path) -> dict:
    name = page.relative_to(ROOT).as_posix()
    surround()
    begun = _processor()
    measure = _started()
    fails = run_chapter(page)
    lines = _lines(measure, lambda context: name)
    if fails is None:
        return {"lines": {}, "seconds": {}, "failing": []}
    return {"lines": lines, "seconds": {name: _processor() - begun}, "failing": [name] if fails else []}


def child(folder: str) -> None:
    """Records what this process executes, which a test started, and tells of it when it ends."""
    test = Path(folder, "test").read_text("utf-8")
    # Opened now: a page of the runner's may open no file there.
    try:
        out = os.open(os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}.json"), os.O_WRONLY | os.O_CREAT)
    except OSError:  # started by such a page
        return
    measure, leave, process = _started(), os._exit, os.getpid()
    add_hook = sys.addaudithook

    def add_traced_hook(hook: Any) -> None:
        hook.__cantrace__ = True  # or Python would not trace it
        add_hook(hook)

    sys.addaudithook = add_traced_hook

    def tell() -> None:
        nonlocal out
        if out >= 0 and os.getpid() == process:
            lines = {module: list(numbers) for module, numbers in _lines(measure, lambda context: context).items()}
            told, file, out = json.dumps({"test": test, "lines": lines}).encode(), out, -1
            while told:
                told = told[os.write(file, told) :]

    def exit_now(code: int) -> None:
        try:
            tell()
        finally:
            leave(code)

    atexit.register(tell)
    os._exit = exit_now  # type: ignore[assignment]


class _Recorder:
    """A plugin of pytest's that says which test runs, and takes its time."""

    def __init__(self, measure: Any, current: Path) -> None:
        self.measure, self.current = measure, current
        self.seconds: dict[str, float] = {}
        self.failing: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measure.switch_context(nodeid)
        self.current.write_text(nodeid, "utf-8")
        self.begun = _processor()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] = round(_processor() - self.begun, 4)
        self.measure.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failing.add(report.nodeid)


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


# Running, recorded or broken


def surround(*folders: str) -> None:
    """Has this process, and those it starts, find these folders and then the code."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, str(ROOT / "src")])
    # Where pytest rewrites the asserts of its plugins, it reads them itself, from where nothing is broken.
    os.environ["PYTEST_ADDOPTS"] = "--assert=plain"


def pytest_run(*arguments: str, plugins: Iterable[Any]) -> int:
    """The status of a run of tests."""
    import pytest

    own = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    return pytest.main([*arguments, *own], plugins=list(plugins))


def run_chapter(page: Path) -> bool | None:
    """Runs a chapter's blocks here: whether a check or a derivation fails; None if it has no blocks."""
    import linecache

    from archcards.evidence.cards import read_front_matter
    from archcards.evidence.chapter import read_chapter
    from archcards.evidence.record import Check, Derivation, Failure, recording
    from archcards.evidence.sources import read_sources

    chapter = read_chapter(page.relative_to(ROOT).as_posix(), page.read_bytes())
    if not chapter.blocks:
        return None
    sources, _ = read_sources("docs/sources.yml", ROOT / "docs" / "sources.yml")
    listed = read_front_matter(chapter, sources).sources
    quotes = {key: sources[key].printed for key in listed if key in sources}
    linecache.cache[chapter.path] = (0, None, [line + "\n" for line in chapter.lines], chapter.path)
    namespace: dict = {"__name__": "chapter"}
    with recording(chapter.path, quotes=quotes) as recorder:
        for fence in chapter.blocks:
            if not fence.transcript:
                exec(compile("\n" * (fence.first - 1) + fence.code + "\n", chapter.path, "exec"), namespace)
    return any(
        isinstance(event, Failure) or isinstance(event, Check | Derivation) and not event.passed
        for event in recorder.events
    )
