"""The registry of published cases, by mechanism."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass

import numpy as np

from .. import mechanisms as reference

__all__ = ["Case", "Published", "case", "edge", "flatten", "mechanisms", "of", "published"]


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a mechanism.

    Attributes:
        name: What is particular about it, in words; unique in its mechanism.
        arguments: What is passed, by parameter name.
        degenerate: Whether it is a case at an edge, which an implementation may leave out.
    """

    name: str
    arguments: Mapping[str, object]
    degenerate: bool = False

    @property
    def slug(self) -> str:
        """The name as a word for files: letters, digits and hyphens."""
        words = "".join(c if c.isascii() and c.isalnum() else " " for c in self.name.lower())
        return "-".join(words.split())

    @property
    def size(self) -> int:
        """The number of numbers that go in."""
        return sum(x.size if isinstance(x, np.ndarray) else 1 for x in self.arguments.values())


@dataclass(frozen=True, eq=False)
class Published:
    """The cases of one mechanism, and how they are to be read.

    Attributes:
        mechanism: Name of the public function.
        returns: Names of the results, in order.
        axes: For each argument and result with named axes, their names in order. A shorter array
            has the first of them.
        choices: Parameters of the reference that choose a form of the computation or what is
            done about an error: other implementations need not have them.
        tolerance: In float64, the largest error that counts as equal: an absolute one, relative to
            the largest expected magnitude where that exceeds 1.
        variables: Arguments that are plain numbers, and no settings: there are gradients with
            respect to them too.
        distributions: Arguments that sum to one over their last axis: their gradients are those
            along the simplex.
        cases: The cases, the ordinary ones first.
    """

    mechanism: str
    returns: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]
    choices: tuple[str, ...]
    tolerance: float
    variables: tuple[str, ...]
    distributions: tuple[str, ...]
    call: Callable = field(repr=False)
    make: Callable[[], Iterable[Case]] = field(repr=False)

    @functools.cached_property
    def cases(self) -> tuple[Case, ...]:
        return tuple(sorted(self.make(), key=lambda case: case.degenerate))

    @functools.cached_property
    def reference(self) -> Callable:
        """The mechanism itself."""
        if self.mechanism == "merge":
            return reference.AttentionState.merge
        return getattr(reference, self.mechanism)

    def results(self, function: Callable, case: Case) -> dict[str, np.ndarray | None]:
        """What a function with the mechanism's signature computes in a case, by name."""
        found = flatten(self.call(function, **case.arguments))
        return dict(zip(self.returns, found, strict=False))

    def expected(self, case: Case) -> dict[str, np.ndarray]:
        """What the reference computes in a case, by name."""
        return _expected(self, case)


@functools.lru_cache(maxsize=None)
def _expected(published, case):
    return published.results(published.reference, case)


mechanisms: dict[str, Published] = {}


def _plainly(function, **arguments):
    return function(**arguments)


def published(
    *names: str,
    returns: str = "output",
    axes: Mapping[str, str] | None = None,
    choices: str = "",
    tolerance: float = 1e-10,
    variables: str = "",
    distributions: str = "",
    call: Callable = _plainly,
) -> Callable:
    """Register a generator of cases for one mechanism, or for several that take the same ones."""

    def register(make):
        for name in names:
            mechanisms[name] = Published(
                name,
                tuple(returns.split()),
                {name: tuple(text.split()) for name, text in (axes or {}).items()},
                tuple(choices.split()),
                tolerance,
                tuple(variables.split()),
                tuple(distributions.split()),
                call,
                make,
            )
        return make

    return register


def of(mechanism: str) -> Published:
    """Return the published cases of a mechanism.

    Raises:
        ValueError: If there are none.
    """
    if mechanism not in mechanisms:
        raise ValueError(f"mechanism must be one that has published cases, got {mechanism!r}")
    return mechanisms[mechanism]


def case(name: str, **arguments) -> Case:
    """An ordinary case."""
    return Case(name, arguments)


def edge(name: str, **arguments) -> Case:
    """A degenerate case."""
    return Case(name, arguments, degenerate=True)


def flatten(result) -> list[np.ndarray | None]:
    """The arrays of a result in order, whatever tuples or records they came in."""
    if result is None:
        return [None]
    if isinstance(result, reference.AttentionState):
        # Which maximum was subtracted is a choice: what can be read from the state is not.
        with np.errstate(invalid="ignore", divide="ignore"):
            read = result.weighted / result.mass[..., None]
            return [read, result.maximum + np.log(result.mass)]
    if isinstance(result, tuple | list) and not _is_numbers(result):
        return [array for part in result for array in flatten(part)]
    if is_dataclass(result):
        return [array for part in fields(result) for array in flatten(getattr(result, part.name))]
    return [result if hasattr(result, "detach") else np.asarray(result)]  # a tensor stays one


def _is_numbers(result) -> bool:
    """Whether a list holds numbers, and is an array written out."""
    return isinstance(result, list) and bool(result) and np.ndim(result[0]) == 0
