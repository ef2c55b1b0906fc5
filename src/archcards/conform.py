"""Which convention does an implementation follow, and which mistake does it make?

`conform` runs somebody else's function on the published cases. Where it differs from the reference
it is compared with every control of the mechanism and with every pair that can be in force at once.

Example:
    >>> import numpy as np
    >>> def my_write(state, key, value, beta):
    ...     error = value - np.einsum("bk,bkv->bv", key, state)
    ...     return state - beta[:, None, None] * key[:, :, None] * error[:, None, :]
    >>> report = conform("delta_write", my_write)
    >>> report.matches, report.diagnosis
    (False, (('error with the wrong sign',),))
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from .adapter import Adapter, ConformError
from .binding import Bound
from .conform_report import Outcome, Report
from .conform_verdict import published_cases, verdict
from .slopes import Slope

__all__ = ["Adapter", "ConformError", "Outcome", "Report", "Slope", "conform"]


def conform(
    mechanism: str,
    function: Callable,
    *,
    follows: str | Sequence[str] = (),
    adapter: Adapter | None = None,
    **options: object,
) -> Report:
    """Compare a function with a mechanism and with all its controls.

    The function runs in this process, without a limit of time: under a debugger, beside other tests.
    `archcards conform` runs it in a process of its own.

    Args:
        mechanism: Name of the mechanism, such as `"delta_rule"`.
        function: What computes it, with the mechanism's parameters or those that the adapter
            names. Options that it does not take are left out with the cases that need them, and so
            are cases for which it raises `NotImplementedError`.
        follows: Controls that are agreed on, one or two names: conventions of the function that
            are not to count as differences.
        adapter: How the function takes its arguments.
        **options: Fields of the adapter: `names`, `axes`, `each`, `returns`, `arrays`, `dtype`,
            `where`, `extra`, `backward`, `gradients`.

    Returns:
        The report, which is true if the function matches.

    Raises:
        ConformError: If there is nothing to compare: an unknown mechanism or name, a function that
            raises in an ordinary case, results of a wrong shape throughout.

    Example:
        >>> from archcards.mechanisms import causal
        >>> bool(conform("causal", lambda queries, keys=None, offset=None: causal(queries, keys, offset=offset)))
        True
    """
    published = published_cases(mechanism)
    try:
        adapter = replace(adapter or Adapter(), **options)
    except TypeError as error:
        known = ", ".join(Adapter.__dataclass_fields__)
        raise ConformError(f"options must be among {known}: {error}") from None
    return verdict(published, lambda adapter: Bound(adapter, function, published), adapter, follows)
