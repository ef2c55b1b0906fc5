"""Builds the last commit's site twice, in surroundings that differ, and compares every byte.

Two clones in folders of unlike names, with another hash seed, locale, time zone, number of CPUs and
day; the clones' own times differ too. Prints each file that differs and ends with status 1 if one does.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
HERE = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
THERE = {"PYTHONHASHSEED": "4242", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}


def build(
    folder: Path, commit: str, surroundings: Mapping[str, str], *, one_processor: bool
) -> dict[str, bytes]:
    """Clones the repository into `folder`, builds the commit's site there and reads it."""
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--detach", commit], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    environment |= {"PYTHONPATH": str(folder / "src"), **surroundings}
    command = [sys.executable, "-m", "archcards", "build"]
    if one_processor and hasattr(os, "sched_setaffinity"):
        processor = min(os.sched_getaffinity(0))
        code = f"import os, runpy; os.sched_setaffinity(0, {{{processor}}}); os.cpu_count = lambda: 1; "
        command[1:] = ["-c", code + "import sys; sys.argv = ['archcards', 'build']; runpy.run_module('archcards')"]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    site = folder / "site"
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def main() -> int:
    """Compares two builds; the status of the command."""
    told = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    commit = told.stdout.strip()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = build(Path(one) / "a", commit, HERE, one_processor=False)
        second = build(Path(other) / "another folder" / "with a longer name", commit, THERE, one_processor=True)
    differing = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    for name in differing:
        print(f"{name}: {_first_difference(first.get(name), second.get(name))}")
    if not differing:
        print(f"{len(first)} files, {sum(map(len, first.values())):,} bytes, the same twice")
    return 1 if differing else 0


def _first_difference(one: bytes | None, other: bytes | None) -> str:
    if one is None or other is None:
        return "built only once"
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    around = slice(max(0, place - 40), place + 40)
    return f"at byte {place}, {one[around]!r} and {other[around]!r}"


if __name__ == "__main__":
    sys.exit(main())
