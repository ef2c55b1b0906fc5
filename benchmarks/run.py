"""Figures of speed and size, each measured beside what it is compared with and given as a ratio.

    python benchmarks/run.py            # prints the table
    python benchmarks/run.py --write    # and keeps the ratios in results/benchmarks.json

Ratios move with the machine and with the library of matrix products beneath NumPy; no test depends
on them. Each pair computes the same result, which is checked before anything is reported.
"""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from archcards.ledger import bundled, cache
from archcards.mechanisms import attention, blockwise_attention, causal, delta_rule, unit_key

ROOT = Path(__file__).parents[1]


class Ratio(NamedTuple):
    """One comparison: how many times `slow` is `fast`, in seconds or bytes."""

    what: str
    slow: float
    fast: float
    unit: str

    @property
    def ratio(self) -> float:
        return self.slow / self.fast


def seconds(function: Callable, repeats: int = 5):
    """The least wall-clock time of a few runs, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def peak_bytes(function: Callable):
    """The most memory that one run allocates, and its result."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, result


def chunked_delta_rule() -> Iterator[Ratio]:
    """The recurrence against its chunked form, at the sizes of a real layer."""
    draw = np.random.default_rng(0)
    shape = heads, length, width = 8, 4096, 64
    query, key, value = draw.normal(size=(3, *shape))
    key, beta = unit_key(key), draw.random((heads, length))
    decays = {
        "no decay": None,
        "one decay per step": -draw.random((heads, length)),
        "one decay per channel": -draw.random(shape),
    }
    for name, log_decay in decays.items():
        form = {"log_decay": log_decay}
        slow, (expected, _) = seconds(lambda f=form: delta_rule(query, key, value, beta, **f))
        form = form | {"form": "chunked"}
        fast, (actual, _) = seconds(lambda f=form: delta_rule(query, key, value, beta, **f))
        np.testing.assert_allclose(actual, expected, atol=1e-9)
        yield Ratio(f"delta rule, {name}: recurrence / chunked", slow, fast, "s")


def blockwise_memory() -> Iterator[Ratio]:
    """Attention that holds all scores against attention over blocks of keys."""
    draw = np.random.default_rng(0)
    query, key, value = draw.normal(size=(3, 2048, 32))
    mask = causal(2048)
    dense, expected = peak_bytes(lambda: attention(query, key, value, mask))
    tiled, (actual, _) = peak_bytes(lambda: blockwise_attention(query, key, value, mask, block=64))
    np.testing.assert_allclose(actual, expected, atol=1e-11)
    yield Ratio("attention's memory: all scores / blocks of 64 keys", dense, tiled, "bytes")


def ledger_start() -> Iterator[Ratio]:
    """The ledger command against a Python that does nothing."""
    commands = {
        "nothing": [sys.executable, "-c", "pass"],
        "ledger": [sys.executable, "-m", "archcards", "ledger", "openai/gpt-oss-120b"],
    }
    run = {
        name: seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True), repeats=7)[0]
        for name, command in commands.items()
    }
    assert cache(bundled("openai/gpt-oss-120b"), 1).scalars > 0
    yield Ratio("starting: archcards ledger / python -c pass", run["ledger"], run["nothing"], "s")


def build_time() -> Iterator[Ratio]:
    """The whole build against the chapters alone."""
    commands = [[sys.executable, "-m", "archcards", what] for what in ("build", "check")]
    whole, chapters = (
        seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True, cwd=ROOT), repeats=1)[0]
        for command in commands
    )
    yield Ratio("building the site / running its chapters", whole, chapters, "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the ratios in results/benchmarks.json")
    write = parser.parse_args().write
    ratios = []
    print(f"{'':56}{'ratio':>8}")
    for measure in (chunked_delta_rule, blockwise_memory, ledger_start, build_time):
        for one in measure():
            ratios.append(one)
            print(f"{one.what:56}{one.ratio:8.1f}   ({one.slow:,.3g} / {one.fast:,.3g} {one.unit})", flush=True)
    if write:
        kept = {one.what: float(f"{one.ratio:.2g}") for one in ratios}
        (ROOT / "results" / "benchmarks.json").write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
