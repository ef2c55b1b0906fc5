"""The registry of controls: wrong implementations and differing conventions, by mechanism."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

__all__ = ["Control", "convention", "mechanisms", "mistake", "of"]

_CONTROLS: dict[str, dict[str, "Control"]] = {}


class Control:
    """A mechanism computed with one named mistake, or by another convention.

    Attributes:
        mechanism: Name of the public function it stands in for.
        name: What is different, in words.
        kind: `"mistake"`, or `"convention"` where it is only a choice.
        seen: Where it was seen: issue, paper or library.
    """

    def __init__(self, mechanism: str, name: str, kind: str, function: Callable):
        text = inspect.getdoc(function) or ""
        what, marker, seen = text.partition("Seen in:")
        if not what.strip() or not marker or not seen.strip():
            raise ValueError(
                f"control {name!r} of {mechanism} must say what it does and, after 'Seen in:', "
                f"where it was seen, got {text!r}"
            )
        self.mechanism, self.name, self.kind = mechanism, name, kind
        self.seen = " ".join(seen.split())
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)

    @property
    def changes_a_step(self) -> bool:
        """Whether it is a changed step of the mechanism written out, and so calls no reference."""
        return isinstance(self.__wrapped__, functools.partial)

    def joined(self, other: "Control") -> Callable | None:
        """Return one function with the changes of both, if they change different steps of it."""
        if not (self.changes_a_step and other.changes_a_step):
            return None
        one, two = self.__wrapped__, other.__wrapped__
        if one.func is not two.func or one.keywords.keys() & two.keywords.keys():
            return None
        return functools.partial(one.func, **one.keywords, **two.keywords)

    def __repr__(self):
        return f"<{self.kind} {self.name!r} of {self.mechanism}>"


class _Names(Mapping):
    """The mechanisms that have controls, each with its mapping from name to control."""

    def __getitem__(self, mechanism: str) -> Mapping[str, Control]:
        return MappingProxyType(_CONTROLS[mechanism])

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(_CONTROLS))

    def __len__(self) -> int:
        return len(_CONTROLS)


mechanisms = _Names()


def mistake(
    mechanism: str, name: str, written: Callable | None = None, /, **changes: object
) -> Callable[[Callable], Control]:
    """Register a function as a plausible mistake in a mechanism.

    Args:
        mechanism: Name of the mechanism.
        name: What is wrong, in words.
        written: The mechanism written out with steps that can be changed; the registered function
            then only says in its docstring what the changes do. Changes of different steps can be
            in force together.
        **changes: The arguments of `written` that make the mistake.
    """
    return functools.partial(_register, mechanism, name, "mistake", written, changes)


def convention(
    mechanism: str, name: str, written: Callable | None = None, /, **changes: object
) -> Callable[[Callable], Control]:
    """Register a function as another convention of a mechanism: a choice, not an error.

    The arguments are those of `mistake`.
    """
    return functools.partial(_register, mechanism, name, "convention", written, changes)


def of(mechanism: str) -> Mapping[str, Control]:
    """Return the controls of a mechanism: a read-only mapping from name to control.

    Raises:
        ValueError: If the mechanism has no controls.
    """
    if mechanism not in _CONTROLS:
        raise ValueError(f"mechanism must be one that has controls, got {mechanism!r}")
    return mechanisms[mechanism]


def _register(mechanism, name, kind, written, changes, function):
    controls = _CONTROLS.setdefault(mechanism, {})
    if name in controls:
        raise ValueError(f"control {name!r} of {mechanism} must be registered once, got a second")
    if written is not None:
        changed = functools.partial(written, **changes)
        changed.__doc__, changed.__name__ = function.__doc__, function.__name__
        function = changed
    controls[name] = Control(mechanism, name, kind, function)
    return controls[name]
