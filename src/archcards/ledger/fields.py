"""Reading a configuration's fields strictly: each is understood, neutral, or refused by name."""

from collections.abc import Iterable, Mapping

from .errors import UnsupportedConfig
from .neutral import NEUTRAL, STRUCTURAL

__all__ = ["LARGEST_SIZE", "MOST_LAYERS", "Fields", "shown"]

LARGEST_SIZE = 10**12
"""No size of a model is larger; what is, is a mistake that would only cost time."""

MOST_LAYERS = 2_000
"""No model has more layers; a larger number would only cost time."""


def shown(value: object) -> str:
    """A value as a message shows it: JSON's spelling, cut to a readable length, on one line."""
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and value.bit_length() > 200:
        text = f"an integer of {value.bit_length()} bits"
    elif isinstance(value, (Mapping, list, tuple)):
        text = f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """One JSON object of a configuration, read field by field.

    Every accessor marks its field as understood; `finish` refuses what nobody asked for and
    what could change a count.
    """

    def __init__(
        self, values: Mapping[str, object], path: str = "", notes: list[str] | None = None
    ):
        self.values = values
        self.path = path
        self.notes = [] if notes is None else notes
        self._seen: set[str] = set()
        self._own: Mapping[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def asked(self, name: str) -> bool:
        """Whether a reader asked for the field."""
        return name in self._seen

    def where(self, name: str) -> str:
        """The field's path from the top of the file."""
        name = self._own.get(name, name)
        if not name.isprintable() or len(name) > 60:
            name = shown(name)
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name: str, expected: str) -> UnsupportedConfig:
        """The error that says what was expected of a field and what came."""
        came = shown(self.values[name]) if name in self.values else "nothing"
        return UnsupportedConfig(f"{self.where(name)}: expected {expected}, came {came}")

    def filled(self, values: Mapping[str, object]) -> "Fields":
        """The same fields, and `values` where they are silent; what one is asked, both are."""
        return self._again({**values, **self.values})

    def named(self, **names: str) -> "Fields":
        """The same fields for a reader that knows some under another name: `known="the file's"`."""
        values = {known: self.values[own] for known, own in names.items() if own in self.values}
        found = self._again({**self.values, **values})
        found._own = names
        self._seen.update(names.values())
        return found

    def _again(self, values: Mapping[str, object]) -> "Fields":
        found = Fields(values, self.path, self.notes)
        found._seen = self._seen
        return found

    def first(self, *names: str) -> str:
        """Of several names for the same field, the one that this file uses (or the first).

        A file that uses two of them must agree with itself.
        """
        used = [name for name in names if self.values.get(name) is not None]
        for name in used[1:]:
            if self.values[name] != self.values[used[0]]:
                raise self.refuse(
                    name, f"the same value as {self.where(used[0])}, {shown(self.values[used[0]])}"
                )
        self._seen.update(names)
        return used[0] if used else next((n for n in names if n in self.values), names[0])

    def raw(self, name: str, default: object = None) -> object:
        """The value as it stands."""
        self._seen.add(name)
        return self.values.get(name, default)

    def skip(self, *names: str) -> None:
        """Fields that are known and change nothing that is counted."""
        self._seen.update(names)

    def size(
        self,
        name: str,
        default: int | None = None,
        *,
        least: int = 1,
        most: int = LARGEST_SIZE,
        null: int | None = None,
    ) -> int:
        """A whole number; `default` if absent, `null` if null (`default` again if not given)."""
        value = self.raw(name)
        if value is None:
            value = null if name in self.values and null is not None else default
            if value is None:
                raise self.refuse(name, f"a whole number of at least {least}")
            return value
        return self._whole(name, value, least, most)

    def _whole(self, name: str, value: object, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            limit = f" and at most {most}" if isinstance(value, int) and value > most else ""
            raise self.refuse(name, f"a whole number of at least {least}{limit}")
        return value

    def maybe(self, name: str, *, least: int = 1, most: int = LARGEST_SIZE) -> int | None:
        """A whole number, or None where the field is absent or null."""
        value = self.raw(name)
        return None if value is None else self._whole(name, value, least, most)

    def layers(self, name: str = "num_hidden_layers", default: int | None = None) -> int:
        """The number of layers, kept within reason."""
        return self.size(name, default, most=MOST_LAYERS)

    def flag(self, name: str, default: bool) -> bool:
        """True or false; `default` if absent, false if null, as the library takes it."""
        value = self.raw(name, default)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def number(self, name: str, default: float | int) -> float | int:
        """A finite number."""
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(name, "a number")
        return value

    def text(
        self, name: str, default: str | None = None, allowed: Iterable[str] | None = None
    ) -> str | None:
        """A string, one of `allowed` if given."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, str) or (allowed is not None and value not in allowed):
            raise self.refuse(
                name, "a string" if allowed is None else f"one of {', '.join(allowed)}"
            )
        return value

    def only(self, name: str, *allowed: object, because: str = "") -> None:
        """A field that is understood at these values only (absent and null are allowed)."""
        value = self.raw(name)
        if value is None:
            return
        for one in allowed:
            if type(value) is type(one) and value == one:
                return
        names = " or ".join(shown(one) for one in allowed) or "nothing"
        raise self.refuse(name, names + (f" ({because})" if because else ""))

    def items(self, name: str, length: int | None = None) -> list | None:
        """A list, of `length` items if given; None where absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise self.refuse(name, "a list" + (f" of {length} items" if length else ""))
        if length is not None and len(value) != length:
            raise self.refuse(name, f"a list of {length} items")
        return list(value)

    def kinds(self, name: str, length: int, allowed: Iterable[str]) -> list[str] | None:
        """A list with one word of `allowed` for each layer; None where absent or null."""
        value = self.items(name, length)
        allowed = list(allowed)
        for position, word in enumerate(value or ()):
            if not isinstance(word, str) or word not in allowed:
                raise UnsupportedConfig(
                    f"{self.where(name)}[{position}]: expected one of "
                    f"{', '.join(allowed)}, came {shown(word)}"
                )
        return value

    def sizes(
        self, name: str, length: int | None = None, *, least: int = 0, most: int = LARGEST_SIZE
    ) -> list[int] | None:
        """A list of whole numbers; None where absent or null."""
        value = self.items(name, length)
        for position, item in enumerate(value or ()):
            if isinstance(item, bool) or not isinstance(item, int) or not least <= item <= most:
                raise UnsupportedConfig(
                    f"{self.where(name)}[{position}]: expected a whole number "
                    f"from {least} to {most}, came {shown(item)}"
                )
        return value

    def nested(self, name: str) -> "Fields | None":
        """A nested object; None where absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.refuse(name, "an object")
        return Fields(value, self.where(name), self.notes)

    def divides(self, name: str, divisor: int, whole: int, what: str) -> int:
        """`whole / divisor`, where `divisor` (the value of `name`) must divide it."""
        if whole % divisor:
            raise UnsupportedConfig(
                f"{self.where(name)}: expected a divisor of {what}, {whole}, came {divisor}"
            )
        return whole // divisor

    def note(self, text: str) -> None:
        """Remember a decision that a careful reader would ask about."""
        if text not in self.notes:
            self.notes.append(text)

    def finish(self, *neutral: str) -> None:
        """Refuse what is left and looks as if it changed a count; note what is left besides."""
        left = []
        for name, value in self.values.items():
            if name in self._seen or name in NEUTRAL or name in neutral or name.startswith("_"):
                continue
            if value is None or value is False or value == [] or value == {} or value == "":
                continue
            if any(part in name.lower() for part in STRUCTURAL):
                raise UnsupportedConfig(
                    f"{self.where(name)}: expected no such field in this family (it may change "
                    f"the counts), came {shown(value)}"
                )
            left.append(self.where(name))
        if left:
            names = ", ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
            self.note(f"not read, taken to change no count: {names[:200]}")
