"""What is particular about somebody else's function: its names, its axes, its arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Adapter", "ConformError", "words"]


class ConformError(ValueError):
    """What was asked cannot be compared; one line says why."""


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """What is particular about a function.

    Attributes:
        names: Our parameter → its parameter, such as `{"log_decay": "g"}`.
        axes: The order of axes, such as `"batch time head"`: axes that are named come in this order
            and before the others. A mapping sets whole layouts by argument or result, and the
            order for all others under `"*"`: `{"*": "batch time head", "state": "batch head value
            key"}`. A layout is an einops pattern, so `"batch time (head feature)"` joins two axes.
        each: Axes that the function does not have: it is called once for each index.
        returns: Names of what it returns, in order, `_` for what is not to be compared.
        arrays: `"numpy"` or `"torch"`.
        dtype: `"float64"`, `"float32"` or `"bfloat16"`; NumPy, which has no bfloat16, is given
            float32 then.
        where: Options that the function has built in, such as `{"normalise": True}`: only the
            cases that agree are run, and the option is not passed.
        extra: Arguments of its own, passed in each call.
        backward: What computes gradients, if PyTorch does not: it takes the gradients of the
            function's results, in their order, and then what the function takes.
        gradients: Names of the arguments whose gradients it returns, in order, `_` for what is not
            to be compared; unless given, a mapping by the function's own names. A field of a record
            is named as `weights.up_key`. For a PyTorch
            function, the arguments whose gradients are to be compared; unless given, all.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    axes: str | Mapping[str, str] = ""
    each: str | Sequence[str] = ()
    returns: str | Sequence[str] = ()
    arrays: str = "numpy"
    dtype: str = "float64"
    where: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    backward: Callable | None = None
    gradients: str | Sequence[str] = ()

    def __post_init__(self):
        for field_name in ("each", "returns", "gradients"):
            words(field_name, getattr(self, field_name))
        for field_name in ("arrays", "dtype"):
            if not isinstance(getattr(self, field_name), str):
                raise ConformError(f"{field_name} must be a name, got {getattr(self, field_name)!r}")
        for field_name in ("names", "where", "extra"):
            _mapping(field_name, getattr(self, field_name), str if field_name == "names" else object)
        if not isinstance(self.axes, str):
            _mapping("axes", self.axes, str, "an order of axes, or ")
        if self.backward is not None and not callable(self.backward):
            raise ConformError(f"backward must be a function, got {self.backward!r}")


def words(option: str, value: object) -> tuple[str, ...]:
    """Names, given as one string or as several.

    Raises:
        ConformError: If they are none.
    """
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ConformError(f"{option} must be names, got {value!r}")
    return tuple(words)


def _mapping(option, value, kind, otherwise=""):
    """Refuse what is no mapping from names to values of a kind."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise ConformError(f"{option} must be {otherwise}a mapping of names, got {value!r}")
    for name, one in value.items():
        if not isinstance(one, kind) or one == "" and kind is str:
            raise ConformError(f"{option} must give {name} as text, got {one!r}")
