"""How somebody else's function takes and returns what a mechanism of ours does.

`archcards.conform` passes the arguments of a published case through an `Adapter`, and brings the
results back into the layout of the reference.
"""

import difflib
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from einops import rearrange

from .cases import Case, Published
from .cases._registry import flatten

__all__ = ["Adapter", "ConformError"]

_DTYPES = ("float64", "float32", "bfloat16")
_OBJECTS = ("KVCache", "merge")  # what takes and returns objects is called as it is


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
    """

    names: Mapping[str, str] = field(default_factory=dict)
    axes: str | Mapping[str, str] = ""
    each: str | Sequence[str] = ()
    returns: str | Sequence[str] = ()
    arrays: str = "numpy"
    dtype: str = "float64"
    where: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)

    def bind(self, function: Callable, published: Published) -> "Bound":
        """Fit a function to a mechanism.

        Raises:
            ConformError: If a name, an axis or a choice is not known.
        """
        return Bound(self, function, published)


class Bound:
    """A function that can be run on the cases of a mechanism."""

    def __init__(self, adapter: Adapter, function: Callable, published: Published):
        self._adapter, self._function, self._published = adapter, function, published
        parameters = inspect.signature(published.reference).parameters
        self._parameters = {name: p for name, p in parameters.items() if name != "self"}
        self._each = _words("each", adapter.each)
        axes = adapter.axes if isinstance(adapter.axes, Mapping) else {"*": adapter.axes}
        self._order = axes.get("*", "").split()
        self._layouts = {name: layout for name, layout in axes.items() if name != "*"}
        self._returns = _words("returns", adapter.returns) or published.returns
        self._checked()
        self._takes = _parameters_of(function)
        self._by_name = self._can_be_named()
        self._convert, self._back = _conversion(adapter.arrays, adapter.dtype)

    def unfit(self, case: Case) -> str | None:
        """Why a case cannot be run, if it cannot."""
        for name, wanted in self._adapter.where.items():
            given = case.arguments.get(name, self._parameters[name].default)
            if isinstance(given, np.ndarray | tuple) or given != wanted:
                return f"{name} is not {wanted!r}"
        if self._takes is None or self._published.mechanism in _OBJECTS:
            return None
        keywords = self._keywords(case)
        position = len(self._positional(case))
        if self._takes.most is not None and position > self._takes.most:
            return f"the function takes {self._takes.most} arguments"
        for name in keywords:
            if self._theirs(name) not in self._takes.names and not self._takes.any_name:
                return f"the function takes no {self._theirs(name)}"
        return None

    def results(self, case: Case) -> dict[str, np.ndarray | None]:
        """What the function computes, in the reference's layout.

        Raises:
            ConformError: If it returns what does not fit the mechanism.
        """
        if self._published.mechanism in _OBJECTS:
            return self._published.results(self._function, case)
        return self._looped(case, dict(case.arguments), self._each)

    # Arguments

    def _theirs(self, name):
        return self._adapter.names.get(name, name)

    def _passed(self, case):
        """The arguments that the function is to be given: those it need not have if it has them."""
        left_out = {*self._adapter.where}
        if self._takes is None or not self._takes.any_name:
            known = self._takes.names if self._takes else ()
            left_out |= {n for n in self._published.choices if self._theirs(n) not in known}
        for name, value in case.arguments.items():
            default = self._parameters[name].default
            if name not in left_out and not (value is None and default is None):
                yield name

    def _positional(self, case):
        if self._by_name:
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        order = [name for name, p in self._parameters.items() if p.kind in kinds]
        passed = list(itertools.takewhile(set(self._passed(case)).__contains__, order))
        if self._takes is None:
            required = [n for n in order if self._parameters[n].default is inspect.Parameter.empty]
            return [name for name in passed if name in required]
        # What the function knows by its name is passed by its name.
        known = [self._theirs(name) in self._takes.names for name in passed]
        while known and known[-1]:
            known.pop()
        return passed[: len(known)]

    def _keywords(self, case):
        positional = self._positional(case)
        return [name for name in self._passed(case) if name not in positional]

    def _can_be_named(self):
        if self._takes is None:
            return False
        required = [n for n, p in self._parameters.items() if p.default is inspect.Parameter.empty]
        return self._takes.any_name or all(self._theirs(n) in self._takes.names for n in required)

    def _call(self, case, arguments, axes):
        """Call with arguments that have these axes, and name what comes back."""
        ready = {
            name: self._laid_out(name, value, axes.get(name)) for name, value in arguments.items()
        }
        positional = [ready[name] for name in self._positional(case)]
        keywords = {self._theirs(name): ready[name] for name in self._keywords(case)}
        found = flatten(self._back(self._function(*positional, **keywords, **self._adapter.extra)))
        expected = self._published.expected(case)
        if len(found) > len(self._returns):
            raise ConformError(
                f"the function must return at most {len(self._returns)} results "
                f"({', '.join(self._returns)}), got {len(found)}: name them with returns, _ for "
                "what is not to be compared"
            )
        return {
            name: array
            for name, array in zip(self._returns, found, strict=False)
            if name in expected and array is not None
        }

    # Axes

    def _axes(self, name, ndim):
        """The names of an array's axes in the reference, or nothing."""
        return list(self._published.axes.get(name, ()))[:ndim]

    def _looped(self, case, arguments, each, axes=None):
        axes = axes or {
            name: self._axes(name, value.ndim) if isinstance(value, np.ndarray) else []
            for name, value in arguments.items()
        }
        if not each:
            results = self._call(case, arguments, axes)
            return {name: self._restored(case, name, array) for name, array in results.items()}
        axis, rest = each[0], each[1:]
        having = {name: found.index(axis) for name, found in axes.items() if axis in found}
        left = {
            name: [a for a in found if a != axis] if name in having else found
            for name, found in axes.items()
        }
        size = {np.shape(arguments[name])[place] for name, place in having.items()} or {1}
        calls = []
        for i in range(max(size)):
            one = {
                name: np.take(value, i if np.shape(value)[having[name]] > 1 else 0, having[name])
                if name in having
                else value
                for name, value in arguments.items()
            }
            calls.append(self._looped(case, one, rest, left))
        return {name: self._stacked(case, name, axis, rest, calls) for name in calls[0]}

    def _stacked(self, case, name, axis, rest, calls):
        wanted = self._axes(name, self._published.expected(case)[name].ndim)
        gone = set(self._each) - set(rest)
        have = [a for a in wanted if a not in gone or a == axis]
        try:
            return np.stack([call[name] for call in calls], have.index(axis) if axis in have else 0)
        except ValueError:
            raise ConformError(f"{name} must have one shape in each call, got several") from None

    def _pattern(self, name, axes):
        """The reader's order of some axes."""
        if name in self._layouts:
            return self._layouts[name]
        first = [axis for axis in self._order if axis in axes]
        return " ".join(first + [axis for axis in axes if axis not in first])

    def _laid_out(self, name, value, axes):
        if not isinstance(value, np.ndarray):
            return tuple(self._convert(v) for v in value) if _is_pair(value) else value
        if axes:
            value = self._rearranged(name, value, f"{' '.join(axes)} -> {self._pattern(name, axes)}")
        return self._convert(value)

    def _restored(self, case, name, array):
        expected = self._published.expected(case)[name]
        axes = [a for a in self._axes(name, expected.ndim) if a not in self._each]
        pattern = self._pattern(name, axes)
        if not axes or pattern == " ".join(axes):
            return array
        if set(pattern.replace("(", "").replace(")", "").split()) == set(axes):
            everything = self._axes(name, expected.ndim)
            sizes = dict(zip(everything, expected.shape, strict=True))
            joined = {a: sizes[a] for group in _groups(pattern) for a in group[1:]}
            return self._rearranged(name, array, f"{pattern} -> {' '.join(axes)}", **joined)
        raise ConformError(f"axes of {name} must be {' '.join(axes)} in some order, got {pattern}")

    def _rearranged(self, name, array, pattern, **sizes):
        try:
            return rearrange(array, pattern, **sizes)
        except Exception as error:
            reason = str(error).strip().split("\n")[-1].strip()
            raise ConformError(
                f"{name} must fit {pattern!r}, got shape {np.shape(array)}: {reason}"
            ) from None

    def _checked(self):
        """Refuse names that mean nothing here."""
        adapter, published = self._adapter, self._published
        axes = sorted({axis for names in published.axes.values() for axis in names})
        for option, given, known in (
            ("names", adapter.names, self._parameters),
            ("where", adapter.where, self._parameters),
            ("axes", self._layouts, published.axes),
            ("axes", self._order, axes),
            ("each", self._each, axes),
            ("returns", [n for n in self._returns if n != "_"], published.returns),
            ("arrays", [adapter.arrays], ("numpy", "torch")),
            ("dtype", [adapter.dtype], _DTYPES),
        ):
            for name in given:
                if name not in known:
                    close = difflib.get_close_matches(str(name), list(known), 1)
                    among = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
                    among = "it has none here" if not list(known) else among
                    raise ConformError(f"{option} of {published.mechanism} must not name {name!r}: {among}")


@dataclass(frozen=True)
class _Takes:
    """What a function's signature says: names, whether any name goes, how many by position."""

    names: frozenset[str]
    any_name: bool
    most: int | None


def _parameters_of(function):
    """What a function takes, or nothing where it does not say (most compiled functions)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    P = inspect.Parameter
    by_position = [p for p in parameters if p.kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)]
    return _Takes(
        frozenset(p.name for p in parameters if p.kind in (P.POSITIONAL_OR_KEYWORD, P.KEYWORD_ONLY)),
        any(p.kind is P.VAR_KEYWORD for p in parameters),
        None if any(p.kind is P.VAR_POSITIONAL for p in parameters) else len(by_position),
    )


def _words(option, value):
    """Names, given as one string or as several."""
    words = value.replace(",", " ").split() if isinstance(value, str) else list(value)
    if not all(isinstance(word, str) for word in words):
        raise ConformError(f"{option} must be names, got {value!r}")
    return tuple(words)


def _groups(pattern):
    """The joined axes of an einops pattern: `a (b c)` → [[b, c]]."""
    return [part.split(")")[0].split() for part in pattern.split("(")[1:]]


def _is_pair(value):
    plain = isinstance(value, tuple) and not hasattr(value, "_fields")
    return bool(value) and plain and all(isinstance(v, np.ndarray) for v in value)


def _conversion(arrays, dtype):
    """What turns our arrays into theirs, and whatever they return into ours."""
    if arrays == "numpy":
        real = np.float64 if dtype == "float64" else np.float32

        def there(array):
            return array.astype(real) if array.dtype.kind == "f" else array.copy()

        return there, _to_numpy
    try:
        import torch
    except ModuleNotFoundError:
        raise ConformError("arrays='torch' needs PyTorch, which is not installed") from None

    def there(array):
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy())
        return tensor.to(getattr(torch, dtype)) if array.dtype.kind == "f" else tensor

    return there, _to_numpy


def _to_numpy(result):
    """The same with NumPy arrays for tensors; no need to know which library they come from."""
    if hasattr(result, "detach"):
        result = result.detach().cpu()
        return np.asarray((result.double() if result.is_floating_point() else result).numpy())
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(_to_numpy, result))
    if isinstance(result, tuple):
        return tuple(map(_to_numpy, result))
    if isinstance(result, list) and any(hasattr(part, "detach") for part in result):
        return [_to_numpy(part) for part in result]
    return result
