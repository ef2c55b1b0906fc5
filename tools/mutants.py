"""Breaks the code in one place at a time and asks whether a test or a chapter notices.

    python tools/mutants.py                    a stratified sample, drawn with a seed
    python tools/mutants.py --sample all       every mutant
    python tools/mutants.py --again            the survivors of last time, after better tests
    python tools/mutants.py --module mechanisms/masks --sample all --show

A mutant is one change to the syntax tree of a module: a bound moved by one, a comparison turned, a term
dropped, operands or axes swapped, a transpose left out, two updates in the other order, a constant
changed, a refusal removed. For each run only the tests that execute its line, the nearest and the quickest
first and until one fails, and some of the chapters whose blocks execute it (`--chapters`); what executes
which line is recorded once (`executed`). Each run is a process forked from one that has the libraries loaded. The result goes to
results/mutants.json with a digest of each module's source.

The maintained testers do not serve here. mutmut renames functions inside a rewritten copy of the package,
so it breaks no constant of a module, has no operator for axes, transposes or the order of updates, and knows
no tests but pytest's; Cosmic Ray starts the whole test command anew for each mutant and chooses no tests.
Neither draws a stratified sample or can ask a chapter.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import itertools
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executed import ROOMS, ROOT, SITECUSTOMIZE, SOURCE, Executed, digest, pytest_run, record, run_chapter, surround
from forks import forked, load
from mutations import Mutant, mutants_of, mutated

__all__ = ["Noticed", "break_it", "chosen_tests", "equivalents", "killed_by", "main", "sample", "summary", "wilson"]

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


class _Chosen:
    """A plugin of pytest's that keeps the chosen tests, in their order, and ends one that never ends."""

    def __init__(self, tests: list[str], seconds: dict[str, float]) -> None:
        self.place = {name: n for n, name in enumerate(tests)}
        self.seconds = seconds
        self.failed = ""

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        # The same examples as ever; what fails is not made smaller.
        settings.register_profile("mutants", settings.default, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda i: self.place[i.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 5 + 10 * self.seconds.get(nodeid, 1.0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = report.nodeid


@dataclass
class Noticed:
    """What notices a mutant: the test that fails first, and which chapters do."""

    test: str  # or nothing
    chapters: dict[str, bool]
    reached: bool  # whether anything executes its line
    seconds: float = 0.0  # of a processor

    def __bool__(self) -> bool:
        return bool(self.test) or any(self.chapters.values())


def killed_by(mutant: Mutant, stages: list[list[str]], chapters: Iterable[str], seconds: dict[str, float]) -> Noticed:
    """What notices a mutant. What dies, or takes much longer than its `seconds`, notices too.

    The tests of one stage are run where those before it noticed nothing. The number -1 breaks nothing.
    """
    found = Noticed("", {}, bool(stages or chapters))
    with tempfile.TemporaryDirectory() as folder:
        # Processes that the tests start find this when Python starts.
        code = f"{SITECUSTOMIZE}import mutants\nmutants.break_it({mutant.module!r}, {mutant.number})\n"
        Path(folder, "sitecustomize.py").write_text(code, "utf-8")

        def ask(work: Callable[[], Any], usual: float) -> Any:
            def run() -> Any:
                surround(folder)
                break_it(mutant.module, mutant.number)
                return work()

            answer, used = forked(run, 30 + 3 * usual)
            found.seconds += used
            return answer

        def failing(tests: list[str]) -> str:
            chosen = _Chosen(tests, seconds)
            status = pytest_run(*sorted({name.split("::")[0] for name in tests}), "-x", plugins=[chosen])
            return chosen.failed or ("" if status == 0 else "collection")

        for tests in stages:
            answer = ask(lambda tests=tests: failing(tests), sum(seconds.get(name, 1.0) for name in tests))
            found.test = "death" if answer is None else answer
            if found.test:
                break
        for page in chapters:
            found.chapters[page] = ask(lambda page=page: run_chapter(ROOT / page), seconds[page]) is not False
    return found


def chosen_tests(mutant: Mutant, executed: Executed, files: int = 2) -> list[list[str]]:
    """The tests that execute a mutant's line in two stages: those of the nearest files, and the others."""
    stem = mutant.module.rsplit("/", 1)[-1].strip("_")
    tests = executed.by(executed.tests, mutant.module, mutant.line)
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in sorted(tests, key=lambda name: (executed.seconds[name], name)):
        by_file[name.split("::")[0]].append(name)

    def near(file: str) -> tuple[bool, bool, float]:
        cost = sum(executed.seconds[name] for name in by_file[file])
        return stem not in Path(file).stem, "docstrings" in file, cost

    order = sorted(by_file, key=near)
    stages = [[name for file in part for name in by_file[file]] for part in (order[:files], order[files:])]
    return [stage for stage in stages if stage]


def chosen_chapters(mutant: Mutant, executed: Executed, most: int, seed: int) -> list[str]:
    """Chapters whose blocks execute a mutant's line, at most so many, where it is code that a chapter is about."""
    if mutant.module.startswith("evidence/"):  # every chapter stands on all of it, and is about none
        return []
    pages = sorted(executed.by(executed.chapters, mutant.module, mutant.line))
    chapters = [page for page in pages if page.count("/") > 1 and not page.startswith("docs/api/")]
    return random.Random(f"{seed} {mutant.name}").sample(chapters, min(len(chapters), most))


# The sample and its score


def sample(modules: dict[str, list[Mutant]], size: int, seed: int) -> list[Mutant]:
    """A sample in which each module has its share, and at least one mutant."""
    total = sum(map(len, modules.values()))
    drawn = []
    for module, mutants in sorted(modules.items()):
        share = min(len(mutants), max(1, round(size * len(mutants) / total)))
        drawn += random.Random(f"{seed} {module}").sample(mutants, share)
    return drawn


def equivalents(mutants: Iterable[Mutant]) -> dict[str, str]:
    """Those that change nothing that could be noticed, with the reason.

    The list knows a mutant by its line's text, so that it outlives changes elsewhere in the module, and
    where only one of several such lines is meant, by a number at the end too: "… in x += 1 (3)".
    """
    listed = json.loads(EQUIVALENT.read_text("utf-8"))
    found = {}
    for mutant in mutants:
        lines = [line.strip() for line in (SOURCE / f"{mutant.module}.py").read_text("utf-8").split("\n")]
        line = lines[mutant.line - 1]
        key = f"{mutant.module}: {mutant.kind}: {mutant.before} → {mutant.after} in {line}"
        for known in (key, f"{key} ({lines[: mutant.line].count(line)})"):
            if known in listed:
                found[mutant.name] = listed[known]
    return found


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


def main(arguments: list[str] | None = None) -> int:
    """Runs mutants and writes what became of them; the status of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", default="400", help="how many, or all")
    parser.add_argument("--module", action="append", help="only these, such as mechanisms/masks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chapters", type=int, default=3, help="at most so many for a mutant, drawn with the seed")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many, with what there is")
    parser.add_argument("--again", action="store_true", help="run last time's survivors and correct its result")
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
    equivalent = equivalents(chosen)
    chosen = [mutant for mutant in chosen if mutant.name not in equivalent]
    load()
    executed = record(given.jobs)
    if executed.failing:
        print("left out, because they fail although nothing is broken:", *executed.failing, sep="\n  ", file=sys.stderr)

    done = itertools.count(1)

    def run(mutant: Mutant) -> Noticed | None:
        if time.monotonic() > until:
            return None
        tests = chosen_tests(mutant, executed)
        found = killed_by(mutant, tests, chosen_chapters(mutant, executed, given.chapters, given.seed), executed.seconds)
        if not found:
            print("survives:" if found.reached else "not executed:", mutant.name, flush=True)
        if (count := next(done)) % 50 == 0:
            print(f"{count} of {len(chosen)}", file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(given.jobs) as pool:
        results = [(mutant, found) for mutant, found in zip(chosen, pool.map(run, chosen), strict=True) if found is not None]
    report = _corrected(last, results, equivalent) if given.again else summary(results, len(everything), given.seed, equivalent)
    used = sum(found.seconds for _, found in results)
    print(f"{report['killed']} of {report['mutants']} mutants are noticed; {used / 60:.0f} minutes of a processor")
    if not given.show:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def summary(
    results: list[tuple[Mutant, Noticed]], everything: int, seed: int, equivalent: dict[str, str]
) -> dict[str, Any]:
    """The report: the score by module with its interval, by chapter, and the survivors."""
    by_module: dict[str, list[bool]] = defaultdict(list)
    by_chapter: dict[str, list[bool]] = defaultdict(list)
    for mutant, found in results:
        by_module[mutant.module].append(bool(found))
        for chapter, seen in found.chapters.items():
            by_chapter[chapter].append(seen)
    by_room = {
        room: [one for name, found in by_module.items() if name.startswith(f"{room}/") for one in found] for room in ROOMS
    }
    return {
        "seed": seed, "of": everything, **_score([bool(found) for _, found in results]),
        "rooms": {room: _score(found) for room, found in by_room.items()},
        "modules": {name: _score(found) | {"digest": digest(name)} for name, found in sorted(by_module.items())},
        "chapters": {name: {"mutants": len(found), "killed": sum(found)} for name, found in sorted(by_chapter.items())},
        "survivors": sorted(mutant.name for mutant, found in results if not found),
        "not_executed": sorted(mutant.name for mutant, found in results if not found.reached),
        "equivalent": dict(sorted(equivalent.items())),
    }  # fmt: skip


def _corrected(last: dict, results: list[tuple[Mutant, Noticed]], equivalent: dict[str, str]) -> dict[str, Any]:
    """Last time's report, with the survivors that are noticed now, and without those that change nothing.

    The first scores and their intervals stay: a test that was written for a mutant says nothing of the others.
    """
    noticed = {mutant.name for mutant, found in results if found}
    for name in last["survivors"]:
        module = name.split(":")[0]
        for one in (last, last["rooms"][module.split("/")[0]], last["modules"][module]):
            one["killed"] += name in noticed
            one["mutants"] -= name in equivalent
    left = {
        key: [name for name in last[key] if name not in noticed and name not in equivalent]
        for key in ("survivors", "not_executed")
    }
    return last | left | {"equivalent": dict(sorted((last["equivalent"] | equivalent).items()))}


def _score(noticed: list[bool]) -> dict[str, Any]:
    """How many are noticed: now, and at first, with the interval."""
    killed, total = sum(noticed), len(noticed)
    low, high = wilson(killed, total) if total else (0.0, 1.0)
    counts = {"mutants": total, "killed": killed}
    return counts | {"first": counts | {"interval": [round(low, 3), round(high, 3)]}}


if __name__ == "__main__":
    sys.exit(main())
