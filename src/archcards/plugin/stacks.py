"""A model's stack of layers as a drawing: a column a layer, what it reads above, what it computes below.

Shapes tell the kinds apart as well as colours do: a whole bar reads everything, a half bar a window,
a slit bar through latents, a low bar keeps a fixed state.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from archcards.ledger.architecture import (
    Attention,
    CompressedAttention,
    Experts,
    LatentAttention,
    Layer,
)
from archcards.ledger.describe import patterns, repeats

from .render import slug

__all__ = ["drawing", "runs_in_words", "words"]

# What is drawn for a kind: (top, height) of its bars, in tenths of the drawing, and what it means.
_MIXERS = {
    "full": (((0, 6),), "attention to everything before"),
    "all": (((0, 6),), "attention in both directions"),
    "local": (((3, 3),), "attention to a window or a chunk"),
    "chosen": (((0, 1.6), (2.2, 1.6), (4.4, 1.6)), "attention to chosen or compressed entries"),
    "latent": (((0, 2.6), (3.4, 2.6)), "attention through latents"),
    "cross": (((0, 6),), "attention to the encoder's output"),
    "recurrent": (((4.6, 1.4),), "recurrence with a fixed state"),
}
_PARTS = {
    "dense": (((6.8, 3.2),), "feed-forward network"),
    "experts": (((6.8, 0.7), (7.63, 0.7), (8.46, 0.7), (9.3, 0.7)), "routed experts"),
}


def _mixer(mixer) -> str:
    match mixer:
        case Attention():
            if mixer.cross:
                return "cross"
            reach = mixer.reach.kind
            return {"window": "local", "around": "local", "chunk": "local", "top": "chosen", "all": "all"}.get(reach, "full")
        case LatentAttention():
            return "chosen" if mixer.indexer else "latent"
        case CompressedAttention():
            return "chosen" if mixer.stride else "local"
    return "recurrent"


def _kinds(layer: Layer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parts = ("experts" if isinstance(part, Experts) else "dense" for part in layer.feed_forwards)
    return tuple(map(_mixer, layer.mixers)), tuple(parts)


def words(text: str) -> str:
    """The ledger's words for a layer, as HTML; no line ends beside a sign."""
    return escape(text.replace(" x ", "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"), quote=False)


def drawing(layers: tuple[Layer, ...], label: str) -> str:
    """The stack from left to right, and under it what each shape means.

    The SVG is stretched to the width of the page, so it holds no text; a reader who does not see it
    hears the same in words.
    """
    columns = [_kinds(layer) for layer in layers]
    met = {kind for mixers, parts in columns for kind in (*mixers, *parts)}
    key = "".join(
        f'<li><svg viewBox="0 0 1 10" aria-hidden="true" preserveAspectRatio="none">{_bars(kind, 0, 0, 1)}'
        f"</svg>{escape((_MIXERS | _PARTS)[kind][1])}</li>"
        for kind in _MIXERS | _PARTS
        if kind in met
    )
    columns_drawn = "".join(_column(number, *column) for number, column in enumerate(columns))
    spoken = f"{label}: {'; '.join(_spoken(layers))}"
    return (
        f'<figure class="ac-stack" id="figure-{slug(label)}" data-says="{escape(label)}"><svg viewBox="0 0 {len(layers)} 10" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(spoken)}">{columns_drawn}</svg>'
        f'<p class="ac-stack__ends" aria-hidden="true"><span>layer 1</span><span>layer {len(layers)}</span></p>'
        f"<ul>{key}</ul></figure>"
    )


def _column(number: int, mixers: tuple[str, ...], parts: tuple[str, ...]) -> str:
    drawn = []
    for kinds in (mixers, parts):
        width = 0.84 / max(len(kinds), 1)
        for place, kind in enumerate(kinds):
            drawn.append(_bars(kind, number + 0.08 + place * width, 0.04 * (len(kinds) > 1), width))
    return "".join(drawn)


def _bars(kind: str, left: float, gap: float, width: float) -> str:
    return "".join(
        f'<rect class="ac-kind-{kind}" x="{round(left, 2):g}" y="{top}" width="{round(width - gap, 2):g}" height="{height}"/>'
        for top, height in (_MIXERS | _PARTS)[kind][0]
    )


def _spoken(layers: tuple[Layer, ...]) -> Iterator[str]:
    """The drawing in a few words, kinds only."""
    named = [(*mixers, *parts) for mixers, parts in map(_kinds, layers)]
    for times, unit in repeats(named):
        inner = ", then ".join(
            f"{count} of {' and '.join((_MIXERS | _PARTS)[kind][1] for kind in kinds) or 'nothing'}"
            for count, kinds in unit
        )
        yield f"{times} times {inner}" if times > 1 and len(unit) > 1 else (
            f"{times * unit[0][0]} of {inner.split(' of ', 1)[1]}" if len(unit) == 1 else inner
        )


def _span(first: int, last: int) -> str:
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def runs_in_words(layers: tuple[Layer, ...]) -> str:
    """The layers in order, repeated patterns together: a list that says exactly what each one is."""
    rows, first = [], 1
    for times, unit in patterns(layers):
        last = first + times * sum(count for count, _ in unit) - 1
        span = _span(first, last).capitalize()
        if len(unit) == 1:
            rows.append(f"<li>{span}: {words(unit[0][1])}</li>")
        else:
            inner = "".join(
                f"<li>{count} {'layer' if count == 1 else 'layers'}: {words(kind)}</li>" for count, kind in unit
            )
            repeated = f", {times} times in a row" if times > 1 else ""
            rows.append(f"<li>{span}{repeated}: <ul>{inner}</ul></li>")
        first = last + 1
    return f'<ul class="ac-runs">{"".join(rows)}</ul>'
