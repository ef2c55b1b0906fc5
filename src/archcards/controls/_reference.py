"""What a control takes for the reference, so that two controls can be in force at once.

Most controls change what goes into a mechanism or what comes out of it, and call the mechanism in
between. They import it from here. As a rule that is the mechanism itself; while `both` runs, the
call goes to a second control of that name in its place. So "query scaled by 1/sqrt(d)" around
"decay after the read" is a scaled query that reads a memory decayed too late.

Other controls change one step inside a mechanism, which is written out once with its steps as
arguments. Of those, `both` makes one function with both changes.
"""

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar

from .. import mechanisms
from . import _registry

__all__ = ["both"]

_IN_PLACE: ContextVar[str | None] = ContextVar("in place of the reference", default=None)


def both(outer: _registry.Control, inner: _registry.Control) -> Callable:
    """Return the outer control with the inner one where it would call the reference.

    Two that change different steps of one function are joined. Any other outer control that is an
    implementation of its own calls no reference: then the inner one changes nothing, and the pair
    may still act in the other order.

    Args:
        outer: The control that is called.
        inner: The control that it finds in place of the reference.

    Example:
        >>> from archcards import controls
        >>> one, two = (
        ...     controls.delta_write[name] for name in ("beta doubled", "error with the wrong sign")
        ... )
        >>> both(one, two)([[4.0]], [1.0], [10.0], 0.25)
        array([[1.]])
    """

    joined = outer.joined(inner)
    if joined is not None:
        return joined

    @functools.wraps(outer)
    def paired(*arguments, **options):
        before = _IN_PLACE.set(inner.name)
        try:
            return outer(*arguments, **options)
        finally:
            _IN_PLACE.reset(before)

    return paired


def __getattr__(name):
    """The function or class of `mechanisms`; a function gives way while two controls are tried."""
    reference = getattr(mechanisms, name)
    return _giving_way(name, reference) if inspect.isfunction(reference) else reference


@functools.cache
def _giving_way(mechanism, reference):
    @functools.wraps(reference)
    def call(*arguments, **options):
        control = _registry.mechanisms.get(mechanism, {}).get(_IN_PLACE.get())
        if control is None:
            return reference(*arguments, **options)
        # The control in place has the reference itself beneath it, not itself again.
        before = _IN_PLACE.set(None)
        try:
            return control(*arguments, **options)
        finally:
            _IN_PLACE.reset(before)

    return call
