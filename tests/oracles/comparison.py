"""How a mechanism is compared with an implementation that others wrote, and what is recorded."""

import hashlib
import json
import math
import zipfile
from importlib.metadata import version

import numpy as np
from vouched import GRADIENTS, RESULTS, digest, module_of

from archcards.cases.files import VERSION, npz
from archcards.conform import conform
from float64 import float64

__all__ = ["gradients", "oracle", "record", "write"]

MADE, DIFFERENTIATED = [], {}


def oracle(mechanism, implementation, package, *, tolerance=1e-10, **options):
    """Make a test of a function that hands a mechanism's arguments to an implementation.

    The published cases are run in float64. Conventions that the implementation follows are named by
    `follows`; the test holds that without them it is recognised by just these names.

    Args:
        mechanism: Name of the mechanism.
        implementation: What is compared, as it is imported.
        package: The distribution it comes from.
        tolerance: The largest error, relative to the largest expected magnitude where that is
            above 1; more than 1e-10 only where the implementation cannot do better.
        options: For `conform`.
    """

    def register(function):
        def test():
            settings = {"arrays": "torch", **options}
            with float64():
                report = conform(mechanism, function, **settings)
                worst = max(outcome.error for outcome in report.outcomes)
                assert worst <= tolerance, str(report)
                follows = settings.pop("follows", ())
                follows = (follows,) if isinstance(follows, str) else tuple(follows)
                if follows:
                    plain = conform(mechanism, function, **settings)
                    assert follows in plain.diagnosis or follows[::-1] in plain.diagnosis, str(plain)
            record(mechanism, implementation, package, worst, len(report.outcomes), follows)

        test.__name__ = test.__qualname__ = function.__name__
        test.__doc__, test.implementation = function.__doc__, function
        return test

    return register


def record(mechanism, implementation, package, difference, cases, follows=()):
    """Note a comparison for the results."""
    MADE.append(
        {
            "mechanism": mechanism,
            "implementation": implementation,
            "package": package,
            "difference": f"{difference:.1e}",
            "cases": cases,
            "follows": list(follows),
        }
    )


def gradients(mechanism, case, result, argument, gradient, bounds):
    """Keep a gradient for the results, with what it may be off by in a narrower dtype."""
    DIFFERENTIATED[mechanism, case, result, argument] = gradient, bounds


def write():
    """Write what was compared, with the digest of the code it vouches for."""
    modules = sorted({module_of(made["mechanism"]) for made in MADE})
    packages = sorted({made["package"] for made in MADE})
    content = {
        "packages": {name: version(name).partition("+")[0] for name in packages},
        "modules": {module: digest(module) for module in modules},
        "comparisons": sorted(MADE, key=lambda made: (made["mechanism"], made["implementation"])),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    write_gradients()


def write_gradients():
    """Write the gradients, and beside them what they are."""
    arrays, described = {}, {}
    for (mechanism, case, result, argument), (gradient, bounds) in sorted(DIFFERENTIATED.items()):
        key = f"{mechanism}/{case}/{result}/{argument}"
        arrays[key] = _rounded(gradient)
        described[key] = {"shape": list(gradient.shape), "bound": bounds}
    GRADIENTS.write_bytes(npz(arrays, zipfile.ZIP_DEFLATED))
    GRADIENTS.with_suffix(".json").write_text(_manifest(described), encoding="utf-8")


def _manifest(described):
    """What is in the file of gradients, one array a line."""
    digested = hashlib.sha256(GRADIENTS.read_bytes()).hexdigest()
    lines = ",\n".join(f'  "{key}": {json.dumps(entry)}' for key, entry in described.items())
    return (
        f'{{\n "version": {VERSION},\n "arrays": "{GRADIENTS.name}",\n "sha256": "{digested}",\n'
        f' "gradients": {{\n{lines}\n }}\n}}\n'
    )


def _rounded(array):
    """Twelve digits: what is left of two machines' rounding is no change of the file."""
    largest = np.abs(array).max(initial=0.0)
    if largest < 1e-15:  # sums that cancel
        return np.zeros_like(array)
    unit = 10.0 ** (math.floor(math.log10(largest)) - 11)
    return np.round(array / unit) * unit
