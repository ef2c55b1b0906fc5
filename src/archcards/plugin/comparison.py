"""Two models side by side: their totals, then layer by layer."""

from __future__ import annotations

from collections.abc import Iterator

from archcards.ledger.describe import in_step

from . import stacks
from .layout import Link, anchor, table
from .model import CONTEXTS, Model

__all__ = ["compare"]


def compare(first: Model, second: Model, link: Link) -> str:
    """Two models side by side: their totals, then layer by layer from the bottom."""
    pairs = [
        ("parameters", *(one.parameters.total for one in (first, second))),
        ("active, without the input table", *(
            one.parameters.active.without_input_embedding for one in (first, second))),
    ]
    if first.decodes and second.decodes:
        for context in CONTEXTS:
            pairs.append((f"cached scalars at {context:,}", *(one.cache(context).scalars for one in (first, second))))
        context = next(iter(CONTEXTS))
        pairs.append((f"FLOPs of a token after {context:,}", *(
            one.flops(context).per_token.total for one in (first, second))))
    totals = [
        f'<tr><th scope="row">{name}</th><td class="ac-number">{a:,}</td><td class="ac-number">{b:,}</td>'
        f'<td class="ac-number">{b / a:.2f}</td></tr>'
        for name, a, b in pairs
    ]
    names = (anchor(first, link), anchor(second, link))
    label = f"{first.short} and {second.short}"
    return table(label, ("quantity", *names, "second over first"), totals, numbers=3) + table(
        f"{label}, layer by layer", ("layers", *names), _layer_rows(first, second)
    )


def _layer_rows(first: Model, second: Model) -> Iterator[str]:
    """The two stacks in step."""
    for span, here, there in in_step(first.architecture, second.architecture):
        cells = "".join(f"<td>{_parts(*sides)}</td>" for sides in ((here, there), (there, here)))
        yield f'<tr><th scope="row">{span}</th>{cells}</tr>'


def _parts(here: str, there: str) -> str:
    """What a layer consists of; what the other model's layer has as well is marked."""
    shared = set(there.split(" | "))
    return "<br>".join(
        f'<span class="ac-shared">{stacks.words(part)}</span>' if part in shared else stacks.words(part)
        for part in here.split(" | ")
    ) or "—"
