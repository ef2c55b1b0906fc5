"""How a mechanism is compared with an implementation that others wrote, and what is recorded."""

import json
import zipfile
from importlib.metadata import version

import numpy as np
from vouched import GRADIENTS, RESULTS, digest, module_of

from archcards.cases.files import npz
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


def gradients(mechanism, case, argument, gradient):
    """Keep a gradient for the results."""
    DIFFERENTIATED[f"{mechanism}/{case}/{argument}"] = gradient


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
    # Twelve digits: what is left of two machines' rounding is no change of the file.
    rounded = {name: _rounded(array) for name, array in sorted(DIFFERENTIATED.items())}
    GRADIENTS.write_bytes(npz(rounded, zipfile.ZIP_DEFLATED))


def _rounded(array):
    unit = 10.0 ** (np.floor(np.log10(np.abs(array).max(initial=1e-300))) - 11)
    return np.round(array / unit) * unit
