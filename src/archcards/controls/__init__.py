"""The mechanisms, wrong in named ways.

`controls.causal` maps the name of a mistake or convention to a function with the signature of
`mechanisms.causal`; so does `controls.of("causal")`. `controls.MECHANISMS` names all that have any.

Example:
    >>> from archcards import controls
    >>> control = controls.causal["aligned to the top left"]
    >>> control.kind, control(1, 3).tolist()
    ('mistake', [[True, False, False]])
"""

import importlib
import pkgutil

from ._reference import both
from ._registry import Control, convention, mechanisms, mistake, of

# A module of controls registers them when it is imported. Its own name is then hidden, because
# `controls.attention` is the mapping of attention's controls and not the module of that name.
for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")
        globals().pop(_module.name, None)

MECHANISMS = tuple(mechanisms)

__all__ = ["MECHANISMS", "Control", "both", "convention", "mistake", "of", *MECHANISMS]


def __getattr__(name):
    if name in mechanisms:
        return mechanisms[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
