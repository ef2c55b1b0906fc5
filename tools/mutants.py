"""Breaks the code in one place at a time and asks whether a test or a chapter notices.

    python tools/mutants.py                    a stratified sample, drawn with a seed
    python tools/mutants.py --sample all       every mutant
    python tools/mutants.py --again            the survivors of last time, after better tests
    python tools/mutants.py --module mechanisms/masks --sample all --show

A mutant is one change to the syntax tree of a module: a bound moved by one, a comparison turned, a term
dropped, operands or axes swapped, a transpose left out, two updates in the other order, a constant
changed, a refusal removed. For each, only what touches its module runs: the tests that name it, and two of
the chapters that import what it exports, each in a process forked from one that has the libraries loaded.
The result goes to results/mutants.json with a digest of each module's source.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib.abc
import importlib.util
import json
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutations import Mutant, mutants_of, mutated

__all__ = ["break_it", "killed_by", "main", "relevant", "sample", "summary", "wilson"]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "archcards"
ROOMS = ("mechanisms", "ledger", "evidence")
RESULT = ROOT / "results" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("equivalent.json")  # mutants that change nothing, and why


# Running


class _Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the broken tree in the place of the module."""

    def __init__(self, module: str, path: Path, tree: ast.Module) -> None:
        name = "archcards." + module.replace("/", ".")
        self.package = name.endswith(".__init__")
        self.name, self.path, self.tree = name.removesuffix(".__init__"), path, tree

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self,
            submodule_search_locations=[str(self.path.parent)] if self.package else None,
        )  # fmt: skip

    def exec_module(self, module) -> None:
        exec(compile(self.tree, str(self.path), "exec", dont_inherit=True), module.__dict__)


def break_it(module: str, number: int) -> None:
    """Has this process import a module with that change."""
    path = SOURCE / f"{module}.py"
    sys.meta_path.insert(0, _Broken(module, path, mutated(path.read_text("utf-8"), number)))


def _forked(work: Callable[[], bool], seconds: float) -> bool | None:
    """What `work` says in a process of its own; None if that takes so many seconds of a processor."""
    child = os.fork()
    if child == 0:
        noticed = True
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            sys.stdout, sys.stderr = open(os.devnull, "w"), open(os.devnull, "w")  # noqa: SIM115
            noticed = work()
        except BaseException:  # noqa: BLE001  it does not even import
            noticed = True
        finally:
            os._exit(1 if noticed else 0)
    until = time.monotonic() + 10 * seconds  # it may wait for others, or for ever
    try:
        while time.monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status != 0
            time.sleep(0.02)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _tests_fail(tests: list[str]) -> bool:
    import pytest

    os.chdir(ROOT)
    return pytest.main([*tests, "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                        "-W", "ignore::pytest.PytestAssertRewriteWarning"]) != 0  # fmt: skip


def _chapter_fails(path: Path) -> bool:
    """Runs a chapter's blocks here; whether a check or a derivation fails, or anything is raised."""
    from archcards.evidence.cards import read_front_matter
    from archcards.evidence.chapter import read_chapter
    from archcards.evidence.record import Check, Derivation, Failure, recording
    from archcards.evidence.sources import read_sources

    chapter = read_chapter(path.relative_to(ROOT).as_posix(), path.read_bytes())
    sources, _ = read_sources("docs/sources.yml", ROOT / "docs" / "sources.yml")
    listed = read_front_matter(chapter, sources).sources
    quotes = {key: sources[key].printed for key in listed if key in sources}
    import linecache

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


def killed_by(mutant: Mutant, tests: list[str], chapters: list[Path], seconds: float) -> dict:
    """What notices a mutant: `tests` (true, false), and which chapters. Too long counts as noticed.

    The number -1 breaks nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        # Processes that the tests start find this when Python starts.
        code = f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport mutants\nmutants.break_it({mutant.module!r}, {mutant.number})\n"
        Path(folder, "sitecustomize.py").write_text(code, "utf-8")

        def noticed(work: Callable[[], bool], seconds: float) -> bool:
            def run() -> bool:
                sys.path.insert(0, str(ROOT / "src"))
                os.environ["PYTHONPATH"] = os.pathsep.join([folder, str(ROOT / "src")])
                break_it(mutant.module, mutant.number)
                return work()
            return _forked(run, seconds) is not False

        return {
            "tests": bool(tests) and noticed(lambda: _tests_fail(tests), 2 * seconds),
            "chapters": {
                page.relative_to(ROOT).as_posix(): noticed(lambda page=page: _chapter_fails(page), seconds)
                for page in chapters
            },
        }


# What touches what


def relevant(module: str) -> tuple[list[str], list[Path]]:
    """The tests and chapters that name a module or what it exports, the nearest tests first."""
    room, stem = module.split("/", 1)[0], module.rsplit("/", 1)[-1]
    tree = ast.parse((SOURCE / f"{module}.py").read_text("utf-8"))
    names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")}
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names | {stem})))})\b")
    folders = {"evidence": ("evidence", "runner")}.get(room, (room,))
    files = [file for folder in folders for file in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    near = [f for f in files if stem.strip("_") in f.stem]
    using = re.compile(rf"^from \.+(?:{stem.replace('__init__', room)}|\w+\.{stem}) import", re.M)
    served = [other.stem for other in (SOURCE / room).rglob("*.py") if using.search(other.read_text("utf-8"))]
    near += [f for f in files if f not in near and f.stem.removeprefix("test_") in served]
    far = [f for f in files if f not in near and used.search(f.read_text("utf-8"))]
    # A private module has no test of its own name; what it serves is tested all over its room.
    tests = [f.relative_to(ROOT).as_posix() for f in near + far or sorted(files, key=lambda f: "expected" not in f.stem)]
    chapters = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        lines = re.findall(rf"^[ ]*from archcards\.{room} import \(?([\w, \n]+)", page.read_text("utf-8"), re.M)
        if names & set(re.findall(r"\w+", " ".join(lines))):
            chapters.append(page)
    return tests, chapters if room != "evidence" else chapters[:1]  # every chapter stands on evidence


def sample(modules: dict[str, list[Mutant]], size: int, seed: int) -> list[Mutant]:
    """A sample in which each module has its share, and at least one mutant."""
    total = sum(map(len, modules.values()))
    drawn = []
    for module, mutants in sorted(modules.items()):
        share = min(len(mutants), max(1, round(size * len(mutants) / total)))
        drawn += random.Random(f"{seed} {module}").sample(mutants, share)
    return drawn


def wilson(killed: int, total: int) -> tuple[float, float]:
    """The interval of Wilson's score for a proportion, at 95 %.

    Example:
        >>> [round(x, 3) for x in wilson(95, 100)]
        [0.888, 0.978]
    """
    z = 1.959964
    share, spread = killed / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / total / 4)
    return middle - half, middle + half


def digest(module: str) -> str:
    """A digest of a module's source."""
    return hashlib.sha256((SOURCE / f"{module}.py").read_bytes()).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Runs mutants and writes what became of them; the status of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", default="400", help="how many, or all")
    parser.add_argument("--module", action="append", help="only these, such as mechanisms/masks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a processor, for a chapter; twice that for the tests")
    parser.add_argument("--chapters", type=int, default=2, help="at most so many for a mutant, drawn with the seed")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many, with what there is")
    parser.add_argument("--again", action="store_true", help="run last time's survivors and correct its result")
    parser.add_argument("--trusting", action="store_true", help="do not first see everything pass unbroken")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", action="store_true", help="tell of survivors and write nothing")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given.minutes
    modules = {}
    for room in ROOMS:
        for file in sorted((SOURCE / room).rglob("*.py")):
            name = file.relative_to(SOURCE).with_suffix("").as_posix()
            found = mutants_of(name, file.read_text("utf-8"))
            if found and (not given.module or name in given.module):
                modules[name] = found
    everything = [mutant for mutants in modules.values() for mutant in mutants]
    chosen = everything if given.sample == "all" else sample(modules, int(given.sample), given.seed)
    last = json.loads(RESULT.read_text("utf-8")) if given.again else {}
    if given.again:
        chosen = [mutant for mutant in everything if mutant.name in last["survivors"]]
    random.Random(given.seed).shuffle(chosen)  # so that a run cut short is a sample too
    equivalent = json.loads(EQUIVALENT.read_text("utf-8")) if EQUIVALENT.exists() else {}
    chosen = [mutant for mutant in chosen if mutant.name not in equivalent]
    _load()
    touched = {module: relevant(module) for module in {mutant.module for mutant in chosen}}
    if failing := [] if given.trusting else _failing(touched, given.seconds, given.jobs):
        print("left out, because they fail although nothing is broken:", *failing, sep="\n  ", file=sys.stderr)
    for module, (tests, chapters) in touched.items():
        touched[module] = [t for t in tests if t not in failing], [c for c in chapters if str(c) not in failing]

    def run(mutant: Mutant) -> dict | None:
        if time.monotonic() > until:
            return None
        tests, chapters = touched[mutant.module]
        some = random.Random(f"{given.seed} {mutant.name}").sample(chapters, min(len(chapters), given.chapters))
        found = killed_by(mutant, tests, some, given.seconds)
        if not (found["tests"] or any(found["chapters"].values())):
            print("survives:", mutant.name, flush=True)
        return found

    with ThreadPoolExecutor(given.jobs) as pool:
        results = [(mutant, found) for mutant, found in zip(chosen, pool.map(run, chosen), strict=True) if found]
    if given.again:
        report = _corrected(last, results, equivalent)
    else:
        report = summary(results, len(everything), given.seed, equivalent)
    print(f"{report['killed']} of {report['mutants']} mutants are noticed")
    if not given.show:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _failing(touched: dict[str, tuple[list[str], list[Path]]], seconds: float, jobs: int) -> list[str]:
    """The tests and chapters that would notice every mutant, because they fail anyway."""
    tests = sorted({file for files, _ in touched.values() for file in files})
    chapters = sorted({page for _, pages in touched.values() for page in pages})
    nothing = Mutant(min(touched, default=""), 1, 1, "none", "", "", -1)

    def fails(name: str | Path) -> bool:
        files, pages = ([name], []) if isinstance(name, str) else ([], [name])
        found = killed_by(nothing, files, pages, seconds)
        return found["tests"] or any(found["chapters"].values())

    with ThreadPoolExecutor(jobs) as pool:
        names = [*tests, *chapters]
        return [str(name) for name, failed in zip(names, pool.map(fails, names), strict=True) if failed]


def summary(results: list[tuple[Mutant, dict]], everything: int, seed: int, equivalent: dict[str, str]) -> dict:
    """The report: the score by module with its interval, by chapter, and the survivors."""
    by_module: dict[str, list[bool]] = defaultdict(list)
    by_chapter: dict[str, list[bool]] = defaultdict(list)
    survivors = []
    for mutant, found in results:
        noticed = found["tests"] or any(found["chapters"].values())
        by_module[mutant.module].append(noticed)
        for chapter, seen in found["chapters"].items():
            by_chapter[chapter].append(seen)
        if not noticed:
            survivors.append(mutant.name)
    flat = [noticed for all_noticed in by_module.values() for noticed in all_noticed]
    return {
        "seed": seed, "of": everything, **_score(flat), "first": _score(flat),
        "modules": {name: _score(found) | {"digest": digest(name)} for name, found in sorted(by_module.items())},
        "chapters": {name: {"mutants": len(found), "killed": sum(found)} for name, found in sorted(by_chapter.items())},
        "survivors": sorted(survivors), "equivalent": dict(sorted(equivalent.items())),
    }  # fmt: skip


def _corrected(last: dict, results: list[tuple[Mutant, dict]], equivalent: dict[str, str]) -> dict:
    """Last time's report, with the survivors that are noticed now, and without those that change nothing."""
    noticed = {mutant.name for mutant, found in results if found["tests"] or any(found["chapters"].values())}
    for name in last["survivors"]:
        for one in (last, last["modules"][name.split(":")[0]]):
            one["killed"] += name in noticed
            one["mutants"] -= name in equivalent
            low, high = wilson(one["killed"], one["mutants"]) if one["mutants"] else (0.0, 1.0)
            one["interval"] = [round(low, 3), round(high, 3)]
    left = [name for name in last["survivors"] if name not in noticed and name not in equivalent]
    return last | {"survivors": left, "equivalent": dict(sorted(equivalent.items()))}


def _score(noticed: list[bool]) -> dict:
    low, high = wilson(sum(noticed), len(noticed)) if noticed else (0.0, 1.0)
    return {"mutants": len(noticed), "killed": sum(noticed), "interval": [round(low, 3), round(high, 3)]}


def _load() -> None:
    """Imports what tests and chapters need, and nothing of this project: forks then start at once."""
    for name in ("numpy", "pytest", "hypothesis", "hypothesis.extra.numpy", "beartype", "jaxtyping", "sympy",
                 "matplotlib.pyplot", "yaml", "einops"):  # fmt: skip
        importlib.import_module(name)
    import matplotlib

    matplotlib.use("agg")
    sys.dont_write_bytecode = True
    assert not any(name.split(".")[0] == "archcards" for name in sys.modules), "already imported: nothing could be broken"


if __name__ == "__main__":
    sys.exit(main())
