"""What a page states and shows, as events: plain values that survive a trip through JSON.

Each call of `check`, `fact`, `derive`, `table`, `figure` or `switch` gives one event to the current
`Recorder`. While a page runs (`with recording(page) as recorder:`) the events pile up in
`recorder.events` in the order in which they happened, and what is wrong is recorded too, so that
the block goes on and all faults of a page come to light in one run. Everywhere else (a REPL, a
notebook, a test) what is wrong raises at once: `CheckFailed` for a check or derivation that does not
hold, `ValueError` for evidence that cannot be accepted.

The events, all with `line`, the line of the call in the page (1-based):

| kind | class | holds |
|---|---|---|
| `output` | `Output` | `text` that the block printed since the event before |
| `check` | `Check` | see the class; `reasons` is empty exactly when `passed` |
| `fact` | `Fact` | `name`, `value` (int, float, str or bool), `repr` (exact), `unit` or None, `given` |
| `derivation` | `Derivation` | `title`, `symbols`, `given`, `steps`, `control`, `sizes`, `passed`, `reasons` |
| `table` | `Table` | `columns`, `kinds`, `rows` as displayed, `values` as computed, `caption` |
| `figure` | `Figure` | `id`, `svg` (its `aria-label` is `alt` as given), `alt`, `caption` |
| `switch` | `Switch` | `id`, `caption`, `claim` of its check, `options` (the first is the correct one), `labels` |
| `failure` | `Failure` | `reason`: why the page cannot be published |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, ClassVar

from .calls import Call, find_call

__all__ = [
    "Check",
    "CheckFailed",
    "Derivation",
    "Event",
    "Fact",
    "Failure",
    "Figure",
    "Mistake",
    "Option",
    "Output",
    "Recorder",
    "Step",
    "Switch",
    "Symbol",
    "Table",
    "current_recorder",
    "event_from_json",
    "recording",
]


class CheckFailed(AssertionError):
    """A check or a derivation that does not hold, outside a page."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened on a page, at a line."""

    kind: ClassVar[str]
    line: int

    def to_json(self) -> dict[str, Any]:
        """The event as plain JSON values, `kind` first; `event_from_json` restores an equal event."""
        return {"kind": self.kind} | _plain_fields(self)


@dataclass(frozen=True, kw_only=True)
class Output(Event):
    """Text that a block printed."""

    kind: ClassVar[str] = "output"
    text: str


@dataclass(frozen=True, kw_only=True)
class Failure(Event):
    """A reason for which the page cannot be published: one line that says what to do."""

    kind: ClassVar[str] = "failure"
    reason: str


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What became of one control.

    `error` is how far off the mistake is (None where that is not a finite number), `shown` the same
    for readers: two digits, `NaN` or `∞`; for integers and truth values the exact largest
    difference, or the count of differing entries. `caught` says whether the check tells it from the
    truth. `seen` says where the mistake was found in the wild, or is empty.
    """

    name: str
    error: float | None
    shown: str
    caught: bool
    seen: str = ""
    value: Any = field(default=None, compare=False, repr=False, metadata={"json": False})


@dataclass(frozen=True, kw_only=True)
class Check(Event):
    """A claim, whether it held, and what its controls did.

    `error` is exact and for the terminal only (None where nothing could be compared); readers see
    `tolerance` (None: compared exactly, or an order relation). `relation` is `==`, `!=`, `<` or `>`.
    `because` is the reader's reason for a wide tolerance. `reasons` has one line for each thing that
    is wrong. `first` and `last` are the lines of the statement that made the call. `actual`,
    `expected` and the controls' values stay in the process: they are not part of the JSON.
    """

    kind: ClassVar[str] = "check"
    first: int
    last: int
    claim: str
    passed: bool
    error: float | None
    tolerance: float | None
    relation: str
    because: str | None
    reasons: tuple[str, ...]
    controls: tuple[Mistake, ...] = field(metadata={"of": Mistake})
    actual: Any = field(default=None, compare=False, repr=False, metadata={"json": False})
    expected: Any = field(default=None, compare=False, repr=False, metadata={"json": False})

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        mark = "✓" if self.passed else "✗"
        how = "exactly" if self.tolerance is None else f"within {self.tolerance:.0e}"
        lines = [f"{mark} {self.claim} ({how})"]
        for mistake in self.controls:
            verdict = "caught" if mistake.caught else "NOT CAUGHT"
            lines.append(f"{mistake.name}: off by {mistake.shown}, {verdict}")
        return "\n    ".join([*lines, *self.reasons])


@dataclass(frozen=True, kw_only=True)
class Fact(Event):
    """A number (or a word) with a name, for prose to refer to. `given`: a choice of the text."""

    kind: ClassVar[str] = "fact"
    name: str
    value: int | float | str | bool
    repr: str
    unit: str | None
    given: bool


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """A symbol of a derivation: `name` as typed, `tex` as typeset, `shape` in named sizes."""

    name: str
    tex: str
    shape: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line of a derivation.

    `source` is the expression as typed, `tex` as typeset, `reason` why it equals the line before
    (the start has none to equal). `status` is `start`, `proved`, `refuted` or `undecided`; a refuted
    step has a `witness`: values at which it differs from the line before. `sizes` are those at which
    the step was decided, one text each (`d = 2, v = 3`), none if it has no sizes.
    """

    source: str
    tex: str
    reason: str
    status: str
    witness: str = ""
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Derivation(Event):
    """A proof line by line, and a broken step that was refuted.

    `control_of` is the index of the step whose place the control takes. `given` are the side
    relations, typeset. `sizes` are all the sizes at which its steps were decided.
    """

    kind: ClassVar[str] = "derivation"
    title: str
    symbols: tuple[Symbol, ...] = field(metadata={"of": Symbol})
    given: tuple[str, ...]
    steps: tuple[Step, ...] = field(metadata={"of": Step})
    control: Step | None = field(metadata={"of": Step})
    control_of: int | None
    sizes: tuple[str, ...]
    passed: bool
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        marks = {"start": " ", "proved": "✓", "refuted": "✗", "undecided": "?"}
        lines = [f"{'✓' if self.passed else '✗'} {self.title}"]
        lines += [f"{marks[s.status]} {s.source}    [{s.reason}]" for s in self.steps]
        return "\n    ".join([*lines, *self.reasons])

    def _repr_markdown_(self) -> str:
        signs = ["", *("= " for _ in self.steps[1:])]
        lines = [
            f"& {sign}{step.tex} && \\text{{{step.reason}}}"
            for sign, step in zip(signs, self.steps, strict=True)
        ]
        return "$$\\begin{aligned}" + " \\\\ ".join(lines) + "\\end{aligned}$$"


@dataclass(frozen=True, kw_only=True)
class Table(Event):
    """A table: `rows` are the cells as displayed, `values` the same cells as computed (for CSV).

    `kinds` has `number` or `text` for each column, for its alignment.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[Any, ...], ...]
    caption: str

    def __repr__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in lines]
        return "\n".join([*(row.rstrip() for row in rows), self.caption])

    def _repr_markdown_(self) -> str:
        rule = ["---:" if kind == "number" else "---" for kind in self.kinds]
        cells = [self.columns, rule, *self.rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in cells) + f"\n\n*{self.caption}*"


@dataclass(frozen=True, kw_only=True)
class Figure(Event):
    """A drawing as SVG text, with every id in it prefixed by `id`."""

    kind: ClassVar[str] = "figure"
    id: str
    svg: str
    alt: str
    caption: str

    def __repr__(self) -> str:
        return f"Figure: {self.caption}"

    def _repr_html_(self) -> str:
        return f"<figure>{self.svg}<figcaption>{escape(self.caption)}</figcaption></figure>"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One position of a switch: the rows of numbers to show, and how far off they are.

    `rows` holds the cells as displayed (two-dimensional always) and `shades` for each cell a number
    from 0 to 8 for a heat map, on one scale for all options; `error` is empty for the correct one.
    """

    name: str
    error: str
    rows: tuple[tuple[str, ...], ...]
    shades: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Switch(Event):
    """The output of a check, and of each of its controls in its place; the first option is correct.

    `labels` are two tuples, for rows and columns, both empty if there are none.
    """

    kind: ClassVar[str] = "switch"
    id: str
    caption: str
    claim: str
    options: tuple[Option, ...] = field(metadata={"of": Option})
    labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __repr__(self) -> str:
        lines = [self.caption]
        for option in self.options:
            lines.append(option.name + (f": off by {option.error}" if option.error else ""))
            lines += ["    " + " ".join(cell.rjust(6) for cell in row) for row in option.rows]
        return "\n".join(lines)


_KINDS = {c.kind: c for c in (Output, Check, Fact, Derivation, Table, Figure, Switch, Failure)}


def event_from_json(data: dict[str, Any]) -> Event:
    """Restores an event from what `Event.to_json` gave."""
    cls = _KINDS[data["kind"]]
    values = {}
    for f in fields(cls):
        if f.name not in data:
            continue
        value, of = data[f.name], f.metadata.get("of")
        if of is not None and isinstance(value, dict):
            value = _restored(of, value)
        elif of is not None and value is not None:
            value = tuple(_restored(of, item) for item in value)
        values[f.name] = _tuples(value)
    return cls(**values)


def _restored(cls: type, data: dict[str, Any]) -> Any:
    return cls(**{name: _tuples(value) for name, value in data.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return _plain_fields(value)
    return value


def _plain_fields(item: Any) -> dict[str, Any]:
    kept = [f.name for f in fields(item) if f.metadata.get("json", True)]
    return {name: _plain(getattr(item, name)) for name in kept}


class Recorder:
    """Collects the events of one page.

    `page` is the file name under which the page's blocks are compiled, such as
    `docs/attention/local-windows.md`; its lines of code should be in `linecache` under that name (at
    their true line numbers), from where `fact` reads how it was called. `listener` is called with
    each event before it is appended to `events`: the place to flush what was printed, or to send
    the event on. `quotes` are what the page's sources print, by source and name. `line` is the line
    that an event gets when no frame of the page is on the stack.
    """

    def __init__(
        self,
        page: str | None,
        *,
        listener: Callable[[Event], None] | None = None,
        quotes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.page = page
        self.listener = listener
        self.quotes = {} if quotes is None else quotes
        self.line = 1
        self.events: list[Event] = []
        self._lines: dict[tuple[str, str], int] = {}
        self._count = 0

    @property
    def raises(self) -> bool:
        """Whether what is wrong raises at once: everywhere but on a page."""
        return self.page is None

    def call(self) -> Call:
        """The call on the page that led here."""
        return find_call(self.page, fallback=self.line)

    def emit(self, event: Event) -> None:
        """Records an event. Outside a page nothing is kept: there is nobody to read it."""
        if self.page is None:
            return
        if self.listener is not None:
            self.listener(event)
        self.events.append(event)

    def refuse(self, reason: str) -> None:
        """Says why something cannot be accepted: a `Failure` on a page, else a `ValueError`."""
        if self.raises:
            raise ValueError(reason)
        self.emit(Failure(line=self.call().line, reason=reason))

    def first_line(self, kind: str, name: str, line: int) -> int | None:
        """The line on which this page used a name of this kind before, or None; remembers this use."""
        if self.page is None:  # in a notebook a cell may well run twice
            return None
        before = self._lines.get((kind, name))
        self._lines.setdefault((kind, name), line)
        return before

    def next_id(self) -> str:
        """An id for a drawing or a switch: unique on the page, the same in each build."""
        self._count += 1
        stem = (self.page or "").replace("\\", "/").removeprefix("docs/").removesuffix(".md")
        words = "".join(c if c.isalnum() and c.isascii() else "-" for c in stem.lower()).strip("-")
        return f"ac-{words}-{self._count}" if words else f"ac-{self._count}"


_OUTSIDE = Recorder(None)
_current = _OUTSIDE


def current_recorder() -> Recorder:
    """The recorder of the page that is running, or the one that raises."""
    return _current


@contextlib.contextmanager
def recording(
    page: str,
    *,
    listener: Callable[[Event], None] | None = None,
    quotes: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[Recorder]:
    """Makes a new recorder the current one, for all threads of the process, and yields it.

    Example:
        >>> with recording("docs/example.md") as recorder:
        ...     recorder.refuse("nothing here")
        >>> recorder.events
        [Failure(line=1, reason='nothing here')]
    """
    global _current  # a context variable would not reach threads that a page starts
    before, _current = _current, Recorder(page, listener=listener, quotes=quotes)
    try:
        yield _current
    finally:
        _current = before
