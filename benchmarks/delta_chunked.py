"""How much faster the delta rule's chunked form is than its recurrence, on this machine.

Both compute the same. Their ratio depends on the library of matrix products beneath NumPy: the
chunked form does more arithmetic, in products of matrices; the recurrence less, in passes through
memory.

    python benchmarks/delta_chunked.py [--time 4096] [--heads 8] [--width 64] [--chunk 64]
"""

import argparse
import time

import numpy as np

from archcards.mechanisms import delta_rule, unit_key


def seconds(function, repeats=3):
    """The least processor time of a few runs, and the result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("time", 4096), ("heads", 8), ("width", 64), ("chunk", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    sizes = parser.parse_args()

    generator = np.random.default_rng(0)
    shape = (sizes.heads, sizes.time, sizes.width)
    query, key, value = generator.normal(size=(3, *shape))
    key, beta = unit_key(key), generator.random(shape[:-1])
    decays = {
        "DeltaNet (no decay)": None,
        "Gated DeltaNet (one per step)": -generator.random(shape[:-1]),
        "Kimi Delta Attention (per channel)": -generator.random(shape),
    }
    print(f"{'':36}{'recurrent':>11}{'chunked':>11}{'ratio':>8}{'difference':>12}")
    for name, log_decay in decays.items():
        options = {"log_decay": log_decay}
        slow, expected = seconds(lambda: delta_rule(query, key, value, beta, **options))
        options |= {"form": "chunked", "chunk": sizes.chunk}
        fast, actual = seconds(lambda: delta_rule(query, key, value, beta, **options))
        off = max(abs(a - e).max() for a, e in zip(actual, expected, strict=True))
        print(f"{name:36}{slow:9.3f} s{fast:9.3f} s{slow / fast:8.1f}{off:12.0e}")


if __name__ == "__main__":
    main()
