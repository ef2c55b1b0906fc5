"""Somebody else's function, called as a mechanism of ours is.

`archcards.conform` passes the arguments of a published case through a `Bound`, which brings the results
back into the layout of the reference.
"""

import contextlib
import copy
import difflib
import inspect
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from einops import rearrange

from .adapter import Adapter, ConformError, words
from .cases import Case, Published
from .cases._registry import flatten
from .cases.derivatives import parts
from .libraries import DTYPES, LIBRARIES, is_array, to_numpy

__all__ = ["Bound"]

_OBJECTS = ("KVCache", "merge")  # what takes and returns objects is called as it is


class Bound:
    """A function that can be run on the cases of a mechanism.

    Args:
        adapter: How it takes its arguments.
        function: The function.
        published: The mechanism.

    Raises:
        ConformError: If a name, an axis or a choice is not known.
    """

    def __init__(self, adapter: Adapter, function: Callable, published: Published):
        self._adapter, self._function, self._published = adapter, function, published
        parameters = inspect.signature(published.reference).parameters
        self._parameters = {name: p for name, p in parameters.items() if name != "self"}
        self._each = words("each", adapter.each)
        axes = adapter.axes if isinstance(adapter.axes, Mapping) else {"*": adapter.axes}
        self._order = axes.get("*", "").split()
        self._layouts = {name: layout for name, layout in axes.items() if name != "*"}
        self._returns = words("returns", adapter.returns) or published.returns
        self._gradients = words("gradients", adapter.gradients)
        self._checked()
        if inspect.isclass(function) and published.mechanism not in _OBJECTS:
            raise ConformError(
                f"the function must be one, got the class {function.__name__}: name an instance, or a method of one"
            )
        self._takes = _parameters_of(function)
        self._by_name = self._can_be_named()
        self._refuse_what_it_needs_beside()
        try:
            self._library = LIBRARIES[adapter.arrays](adapter.dtype)
        except ModuleNotFoundError:
            raise ConformError("arrays='torch' needs PyTorch, which is not installed") from None

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
            return f"the function takes {self._takes.most} arguments, not {position}"
        for name in keywords:
            if self._theirs(name) not in self._takes.names and not self._takes.any_name:
                return f"the function takes no {self._theirs(name)}"
        return None

    def results(self, case: Case) -> dict[str, np.ndarray | None]:
        """What the function computes, in the reference's layout.

        Raises:
            ConformError: If it returns what does not fit the mechanism.
        """
        own = _copied(case)
        # A function that is wrong divides by zero now and then: its numbers say so.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if self._published.mechanism in _OBJECTS:
                return self._published.results(self._function, own)
            found = self._looped(case, self._given(own), self._each)
        return {name: to_numpy(array) for name, array in found.items()}

    @property
    def name(self) -> str:
        """What the function calls itself."""
        return getattr(self._function, "__qualname__", type(self._function).__name__)

    @property
    def differentiates(self) -> bool:
        """Whether there is something to compare gradients of."""
        return self._adapter.backward is not None or self._adapter.arrays == "torch"

    def asked(self, case: Case, names: Sequence[str]) -> list[str]:
        """The arguments among these whose gradients are to be compared.

        PyTorch differentiates by what it is given as tensors: not by fields of records or plain numbers.
        """
        if self._gradients:
            names = [n for n in names if n in self._gradients or n.partition(".")[0] in self._gradients]
        if self._adapter.backward is None and self._published.mechanism not in _OBJECTS:
            given = self._given(case)
            names = [name for name in names if hasattr(_leaf(given, name), "requires_grad_")]
        return list(names)

    def gradients(self, case: Case, weights: Mapping, names: Sequence[str]) -> dict[str, np.ndarray]:
        """The gradient, with respect to arguments, of the sum of results, each times its weights.

        Args:
            case: What the function is called with.
            weights: An array for each result that counts.
            names: The arguments, as `asked` leaves them.

        Raises:
            ConformError: If what comes back does not fit the mechanism.
            NotImplementedError: If the function has no gradients.
        """
        if self._published.mechanism in _OBJECTS:
            name = self._published.mechanism
            raise NotImplementedError(f"those of the objects of {name} are published only")
        given = self._given(_copied(case))
        if self._adapter.backward is not None:
            found = self._backward(case, given, weights)
            return {n: _numbers(n, to_numpy(found[n])) for n in names if found.get(n) is not None}
        variables = {name: _leaf(given, name).requires_grad_() for name in names}
        results = self._looped(case, given, self._each)
        results = {name: y for name, y in results.items() if name in weights}
        found = self._library.differentiated(results, weights, variables)
        if found is None:
            raise NotImplementedError("no result depends on the arguments differentiably")
        return {name: to_numpy(gradient) for name, gradient in found.items()}

    def _backward(self, case, given, weights):
        """What the reader's own backward returns, by our names and in our layout."""
        axes = self._all_axes(given)
        positional, keywords = self._arguments(case, given, axes)
        results = [
            None if y is None else self._weight(name, weights.get(name), y)
            for name, y in zip(self._returns, self._flat(self._function(*positional, **keywords)), strict=False)
        ]
        positional, keywords = self._arguments(case, given, axes)
        found = self._adapter.backward(*results, *positional, **keywords)
        if isinstance(found, Mapping):
            ours = {self._theirs(name): name for name in self._parameters}
            named = {}
            for name, gradient in found.items():
                argument, dot, part = str(name).partition(".")
                inside = parts(given.get(ours.get(argument)))
                if argument not in ours or dot and inside and part not in inside:
                    raise ConformError(f"backward must name arguments of the function, got {name!r}")
                named[ours[argument] + dot + part] = gradient
        elif self._gradients:
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) != len(self._gradients):
                raise ConformError(
                    f"backward must return {len(self._gradients)} gradients "
                    f"({', '.join(self._gradients)}), got {len(found)}"
                )
            named = dict(zip(self._gradients, found, strict=True))
        else:
            raise ConformError(
                "backward must return a mapping from argument to gradient, or gradients must name "
                f"what it returns, got {type(found).__name__}"
            )
        return {
            name: self._restored(name, self._library.returned(gradient), np.shape(_leaf(given, name)))
            for name, gradient in named.items()
            if gradient is not None and _leaf(given, name) is not None
        }

    def _weight(self, name, weight, result):
        """The gradient that one result of the function is given: zeros where it does not count."""
        if weight is None:
            return 0 * result
        weight = self._library.given(weight)
        return self._library.own(self._laid_out(name, weight, self._axes(name, weight.ndim)))

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

    def _given(self, case):
        """The arguments in the library's arrays and functions, still in our layout."""
        return {name: self._in_library(value) for name, value in case.arguments.items()}

    def _in_library(self, value):
        if isinstance(value, np.ndarray):
            return self._library.given(value)
        if callable(value):
            return self._library.function(value)
        if _is_pair(value) or _are_functions(value):
            return type(value)(map(self._in_library, value))
        return value

    def _arguments(self, case, arguments, axes):
        """What the function is called with: arguments that have these axes, in its layout."""
        ready = {
            name: self._laid_out(name, value, axes.get(name)) for name, value in arguments.items()
        }
        positional = [ready[name] for name in self._positional(case)]
        keywords = {self._theirs(name): ready[name] for name in self._keywords(case)}
        return positional, {**keywords, **self._adapter.extra}

    def _flat(self, result):
        """The arrays that the function returned, in order."""
        returned = self._library.returned(result)
        if isinstance(returned, list) and len(self._returns) == 1:  # an array that is written out
            with contextlib.suppress(ValueError):
                returned = np.asarray(returned)
        found = flatten(returned)
        for array in found:
            if isinstance(array, np.ndarray) and array.dtype.kind not in "fiubc":
                raise ConformError(f"the function must return arrays of numbers, got {_kind(result)}")
        return found

    def _refuse_what_it_needs_beside(self):
        """A name that it does not have, or a parameter that it needs and no name of ours stands for."""
        if self._takes is not None and not self._takes.any_name:
            for ours, theirs in self._adapter.names.items():
                if theirs not in self._takes.names:
                    takes = ", ".join(sorted(self._takes.names)) or "none by name"
                    raise ConformError(f"names must give {ours} as a parameter of the function ({takes}), got {theirs!r}")
        if self._by_name and self._published.mechanism not in _OBJECTS:
            ours = {self._theirs(name) for name in self._parameters}
            for name in sorted(self._takes.required - ours - {*self._adapter.extra}):
                raise ConformError(
                    f"the function needs {name}, which {self._published.mechanism} does not have: say "
                    f"with names which parameter it is ({', '.join(self._parameters)}), or give it with extra"
                )

    def _call(self, case, arguments, axes):
        """Call with arguments that have these axes, and name what comes back."""
        positional, keywords = self._arguments(case, arguments, axes)
        found = self._flat(self._function(*positional, **keywords))
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

    def _all_axes(self, arguments):
        return {
            name: self._axes(name, value.ndim) if is_array(value) else []
            for name, value in arguments.items()
        }

    def _looped(self, case, arguments, each, axes=None):
        axes = axes or self._all_axes(arguments)
        if not each:
            expected = self._published.expected(case)
            return {
                name: self._restored(name, array, expected[name].shape)
                for name, array in self._call(case, arguments, axes).items()
            }
        axis, rest = each[0], each[1:]
        having = {name: found.index(axis) for name, found in axes.items() if axis in found}
        left = {
            name: [a for a in found if a != axis] if name in having else found
            for name, found in axes.items()
        }
        size = {arguments[name].shape[place] for name, place in having.items()} or {1}
        calls = []
        for i in range(max(size)):
            one = {
                name: _taken(value, i, having[name]) if name in having else value
                for name, value in arguments.items()
            }
            calls.append(self._looped(case, one, rest, left))
        return {name: self._stacked(case, name, axis, rest, calls) for name in calls[0]}

    def _stacked(self, case, name, axis, rest, calls):
        wanted = self._axes(name, self._published.expected(case)[name].ndim)
        gone = set(self._each) - set(rest)
        have = [a for a in wanted if a not in gone or a == axis]
        try:
            place = have.index(axis) if axis in have else 0
            return self._library.stack([call[name] for call in calls], place)
        except (ValueError, RuntimeError):
            raise ConformError(f"{name} must have one shape in each call, got several") from None

    def _pattern(self, name, axes):
        """The reader's order of some axes."""
        if name in self._layouts:
            return self._layouts[name]
        first = [axis for axis in self._order if axis in axes]
        return " ".join(first + [axis for axis in axes if axis not in first])

    def _laid_out(self, name, value, axes):
        if not is_array(value):
            return tuple(map(self._library.own, value)) if _is_pair(value) else value
        if axes:
            value = self._rearranged(name, value, f"{' '.join(axes)} -> {self._pattern(name, axes)}")
        return self._library.own(value)

    def _restored(self, name, array, shape):
        """An array of the reader's in our layout, where it has this shape."""
        axes = [a for a in self._axes(name, len(shape)) if a not in self._each]
        pattern = self._pattern(name, axes)
        if not axes or pattern == " ".join(axes):
            return array
        if set(pattern.replace("(", "").replace(")", "").split()) == set(axes):
            sizes = dict(zip(self._axes(name, len(shape)), shape, strict=True))
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
        if adapter.backward is not None and self._each:
            raise ConformError("each must not be given with backward, which takes whole arrays")
        axes = sorted({axis for names in published.axes.values() for axis in names})
        for option, given, known in (
            ("names", adapter.names, self._parameters),
            ("where", adapter.where, self._parameters),
            ("axes", self._layouts, published.axes),
            ("axes", self._order, axes),
            ("each", self._each, axes),
            ("returns", [n for n in self._returns if n != "_"], published.returns),
            ("gradients", [n.partition(".")[0] for n in self._gradients if n != "_"], self._parameters),
            ("arrays", [adapter.arrays], LIBRARIES),
            ("dtype", [adapter.dtype], DTYPES),
        ):
            for name in given:
                if name not in known:
                    close = difflib.get_close_matches(str(name), list(known), 1)
                    among = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
                    among = "it has none here" if not list(known) else among
                    raise ConformError(f"{option} of {published.mechanism} must not name {name!r}: {among}")


@dataclass(frozen=True)
class _Takes:
    """What a function's signature says: names, those without a default, any name, how many by position."""

    names: frozenset[str]
    required: frozenset[str]
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
    named = [p for p in parameters if p.kind in (P.POSITIONAL_OR_KEYWORD, P.KEYWORD_ONLY)]
    return _Takes(
        frozenset(p.name for p in named),
        frozenset(p.name for p in named if p.default is P.empty),
        any(p.kind is P.VAR_KEYWORD for p in parameters),
        None if any(p.kind is P.VAR_POSITIONAL for p in parameters) else len(by_position),
    )


def _groups(pattern):
    """The joined axes of an einops pattern: `a (b c)` → [[b, c]]."""
    return [part.split(")")[0].split() for part in pattern.split("(")[1:]]


def _copied(case):
    """The case with arguments of its own, records too: whatever a function does to them is undone."""
    return replace(case, arguments=copy.deepcopy(dict(case.arguments)))


def _is_pair(value):
    plain = isinstance(value, tuple) and not hasattr(value, "_fields")
    return plain and bool(value) and all(map(is_array, value))


def _are_functions(value):
    return isinstance(value, list | tuple) and bool(value) and all(map(callable, value))


def _leaf(given, name):
    """An argument, or a part of one, such as `weights.up_key`; nothing where there is none."""
    argument, *inside = name.split(".")
    value = given.get(argument)
    for part in inside:
        value = parts(value).get(part)
    return value


def _taken(array, i, axis):
    """One index of an axis, which may have a single one for all."""
    return array[(slice(None),) * axis + (i if array.shape[axis] > 1 else 0,)]


def _kind(result):
    """What an unusable result is, in a word or two."""
    if inspect.iscoroutine(result):
        result.close()  # or it would complain that nobody awaited it
        return "a coroutine: wrap an async function in one that runs it"
    return f"an array of dtype {result.dtype}" if isinstance(result, np.ndarray) else type(result).__name__


def _numbers(name, gradient):
    """A gradient as an array of numbers."""
    with contextlib.suppress(ValueError):  # a list whose rows differ in length
        array = np.asarray(gradient)
        if array.dtype.kind in "fiub":
            return array
    raise ConformError(f"backward must return an array of numbers for {name}, got {_kind(gradient)}")
