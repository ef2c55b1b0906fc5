"""`figure`: a Matplotlib drawing as an SVG that is the same in each build and suits any page."""

from __future__ import annotations

import io
import re
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from .palette import INK, css
from .record import Figure, current_recorder

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["figure"]

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_FONT = re.compile(r"(font-family: |font: [^;]*?[\d.]+px )[^;]*")
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "archcards", "path.simplify": False}


def figure(fig: Drawing, *, alt: str, caption: str) -> Figure | None:
    """Shows a Matplotlib figure, and closes it.

    Text stays text, in the page's own font; the background is transparent; the colours of
    `archcards.evidence.palette`, and Matplotlib's defaults, become CSS variables. Images made of
    pixels are refused, since they suit neither: draw cells (`pcolormesh`, `draw_mask`).

    Args:
        fig: the figure, with something drawn on it.
        alt: what the figure shows, for those who do not see it.
        caption: what it shows, understood without it.

    Returns:
        The figure, or None on a page that it was refused on.

    Raises:
        ValueError: it cannot be shown, outside a page. On a page that is recorded as a failure.

    Example:
        >>> import numpy as np
        >>> from archcards.evidence.drawing import draw_mask
        >>> shown = figure(draw_mask(np.tri(4, dtype=bool)), alt="A lower triangle.", caption="Causal.")
        >>> shown.svg[:4]
        '<svg'
    """
    recorder = current_recorder()
    try:
        _refuse_bad_arguments(fig, alt, caption)
        name = recorder.next_id()
        result = Figure(
            line=recorder.call().line, id=name, svg=_svg(fig, name, alt), alt=alt, caption=caption
        )
    except ValueError as reason:
        recorder.refuse(f"figure: {reason}")
        return None
    finally:
        if "matplotlib.pyplot" in sys.modules and hasattr(fig, "savefig"):
            sys.modules["matplotlib.pyplot"].close(fig)
    recorder.emit(result)
    return result


def _refuse_bad_arguments(fig: object, alt: object, caption: object) -> None:
    from matplotlib.figure import Figure as Drawing

    for what, text in (("alt", alt), ("caption", caption)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{what} must say what the figure shows, and it is {text!r}")
    if not isinstance(fig, Drawing):
        raise ValueError(f"expected a Matplotlib figure, and it is {type(fig).__name__}")
    if not fig.texts and not any(axes.has_data() or axes.texts for axes in fig.axes):
        raise ValueError("nothing is drawn on it")


def _svg(fig: Drawing, name: str, alt: str) -> str:
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        fig.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    root = ET.fromstring(text.getvalue())
    if next(root.iter(f"{_SVG}image"), None) is not None:
        raise ValueError("it holds an image made of pixels: draw cells with pcolormesh or draw_mask")
    _drop_what_reaches_outside(root)
    _rename_ids(root, name)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key in ("d", "points", "transform", "x", "y", "width", "height", "viewBox"):
                # Two decimals of a point: the last bits of a coordinate differ between machines.
                value = _DECIMAL.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
            if key == "style":
                value = _FONT.sub(r"\1var(--ac-font, sans-serif)", value)
                value = _HEX.sub(lambda m: css(m[0]), value)
            element.set(key, value)
    width, height = (_pixels(root.get(key, "")) for key in ("width", "height"))
    root.attrib.update({
        "width": width, "height": height, "role": "img", "aria-label": alt, "id": name,
        # Matplotlib leaves black fills out, and styles every element of a document it stands in.
        "style": f"fill: {css(INK)}; stroke-linejoin: round",
    })  # fmt: skip
    ET.register_namespace("", _SVG[1:-1])
    ET.register_namespace("xlink", _HREF[1:].split("}")[0])
    return ET.tostring(root, encoding="unicode").strip()


def _pixels(length: str) -> str:
    """A length in points as a browser's pixels, of which an inch has 96: text of 10 points is 10 points.

    Example:
        >>> _pixels("432pt"), _pixels("100.4pt")
        ('576', '133.87')
    """
    return f"{float(length.removesuffix('pt')) * 96 / 72:.2f}".rstrip("0").rstrip(".")


def _drop_what_reaches_outside(root: ET.Element) -> None:
    """Removes the metadata, and the style sheet, which would apply to the whole page."""
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)


def _rename_ids(root: ET.Element, name: str) -> None:
    """Numbers the ids that something refers to, in order; drops the others."""
    used = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            references = _REFERENCE.findall(value) + ([value[1:]] if key == _HREF else [])
            for old in references:
                used.setdefault(old, f"{name}-{len(used)}")
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                if value in used:
                    element.set(key, used[value])
                else:
                    del element.attrib[key]
            elif key == _HREF:
                element.set(key, f"#{used[value[1:]]}")
            else:
                element.set(key, _REFERENCE.sub(lambda m: f"url(#{used[m[1]]})", value))
