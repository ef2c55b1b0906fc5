"""Runs every notebook of a built site, top to bottom, with the package from the site's own wheel.

    python tests/slow/notebooks.py [SITE [NAME]]

Each notebook runs in a process of its own, in which `archcards` comes from the wheel and nothing of the
checkout is in reach. In a graded notebook the solution's own answer must be right, and no answer wrong; a cell
for an answer says of what kind and shape it is.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUNNER = r'''
import copy, json, sys
from pathlib import Path
import archcards
assert Path(archcards.__file__).is_relative_to(sys.argv[2]), f"archcards comes from {archcards.__file__}"

def cells(path):
    for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.startswith("%pip "):
            yield cell["id"], source

def described(told, value):
    """The cell for an answer must say what the solution's value is."""
    import numpy as np
    value = np.asarray(value)
    whole = value.dtype == object or np.issubdtype(value.dtype, np.integer)
    wanted = " ".join(line.removeprefix("# ") for line in told.splitlines()).partition("Wanted: ")[2]
    shape = str(value.shape) if value.shape else ""
    if not wanted or shape not in wanted or bool(shape) != ("shape" in wanted):
        raise SystemExit(f"shape {value.shape} is wanted, and the cell says: {told}")
    if not shape and ("whole number" in wanted) != whole:
        raise SystemExit(f"{value!r} is wanted, and the cell says: {told}")

def graded(source, names, told):
    """A grading cell must refuse no answer, and take the solution's."""
    from archcards.evidence.exercise import unseal
    from archcards.evidence.record import Check, CheckFailed, recording
    sealed = source.partition('"""')[2].rpartition('"""')[0]
    packed = unseal(sealed)
    name = packed["name"] or "answer"
    try:
        names["grade"](None, sealed, names)
        raise SystemExit(f"no answer passes: {packed['title']}")
    except CheckFailed:
        pass
    if packed["name"]:
        return  # the solution's function is not in the notebook; tests try a wrong one
    from archcards.evidence.quote import quoting
    copies = {k: copy.deepcopy(v) if hasattr(v, "bit_generator") else v for k, v in names.items()}
    with recording("solution", quotes=quoting()) as recorder:
        exec(compile(packed["code"], "solution", "exec"), copies)
    first = next(e for e in recorder.events if isinstance(e, Check) and e.relation == "==")
    names["grade"](first.actual, sealed, names)
    described(told, first.expected)

names = {"__name__": "__main__"}
for name, source in cells(sys.argv[1]):
    if name.startswith("check-"):
        graded(source, names, told)
    else:
        told = source
        exec(compile(source, f"{sys.argv[1]}:{name}", "exec"), names)
'''


def run(notebook: Path, package: str) -> str:
    """What went wrong, or nothing."""
    environment = {
        key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}
    } | {"PYTHONPATH": package, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", RUNNER, str(notebook.resolve()), package],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


def main(site: Path, name: str = "") -> int:
    notebooks = [notebook for notebook in sorted(site.rglob("*.ipynb")) if name in notebook.stem]
    [wheel] = site.glob("wheels/*.whl")
    with tempfile.TemporaryDirectory() as package:
        zipfile.ZipFile(wheel).extractall(package)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            faults = list(pool.map(lambda notebook: run(notebook, package), notebooks))
    for notebook, fault in zip(notebooks, faults, strict=True):
        if fault:
            print(f"{notebook.relative_to(site)}: {fault}", file=sys.stderr)
    print(f"{len(notebooks)} notebooks, {sum(map(bool, faults))} at fault")
    return 1 if not notebooks or any(faults) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site"), *sys.argv[2:3]))
