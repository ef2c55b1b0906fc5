"""Published cases: what each mechanism is given, and what it computes from that.

A case is a small call with a name: an ordinary one, or one at an edge (a single step, no multiple
of a chunk, a decay of zero, a row with nothing to read). The inputs are multiples of powers of two
with at most eight binary digits, so that float64, float32 and bfloat16 hold them exactly: what an
implementation gets wrong is then its own doing. The expected results are the reference's.

`archcards.conform` runs other implementations on them, `cases.write` makes the files that the site
offers for download, and the tests hold every control to being off on one of them.

Example:
    >>> from archcards import cases
    >>> mask = cases.of("causal")
    >>> mask.cases[1].name, mask.cases[1].arguments
    ('two queries after five keys', {'queries': 2, 'keys': 5})
    >>> mask.expected(mask.cases[1])["mask"].sum(axis=-1).tolist()
    [4, 5]
"""

import importlib
import pkgutil

from ._registry import Case, Published, mechanisms, of
from .bounds import EPSILON, SAFETY, error_bounds
from .derivatives import WITHOUT_GRADIENTS, along, gradient_bounds, gradients, moved, variables, weights
from .files import VERSION, write

# A module of cases registers them when it is imported.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

MECHANISMS = tuple(sorted(mechanisms))

__all__ = [
    "EPSILON",
    "MECHANISMS",
    "SAFETY",
    "VERSION",
    "WITHOUT_GRADIENTS",
    "Case",
    "Published",
    "along",
    "error_bounds",
    "gradient_bounds",
    "gradients",
    "moved",
    "of",
    "variables",
    "weights",
    "write",
]
