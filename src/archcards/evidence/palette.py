"""The colours of figures. In a page each becomes a CSS variable, so that it suits both colour schemes.

Draw with these names, or with Matplotlib's defaults, which are taken for the same variables.
"""

from __future__ import annotations

__all__ = ["ACCENT", "FAINT", "INK", "MUTED", "SECOND", "SURFACE", "THIRD", "VARIABLES", "WARN"]

INK = "#1f2328"  # text and axes
MUTED = "#656d76"  # secondary text
FAINT = "#d0d7de"  # grid lines, what is absent
SURFACE = "#fcfdfe"  # the page's background
ACCENT = "#0a69b8"  # what the figure is about
SECOND = "#b35a00"  # what it is compared with
THIRD = "#1a7f4b"
WARN = "#c4292f"  # what is wrong

VARIABLES = {
    INK: "--ac-ink",
    MUTED: "--ac-muted",
    FAINT: "--ac-faint",
    SURFACE: "--ac-surface",
    ACCENT: "--ac-accent",
    SECOND: "--ac-second",
    THIRD: "--ac-third",
    WARN: "--ac-warn",
}

# What Matplotlib draws with unless told: black, white, its grid's grey, and the colours of its cycle.
DEFAULTS = {
    "#000000": INK,
    "#ffffff": SURFACE,
    "#b0b0b0": FAINT,
    "#cccccc": FAINT,
    "#808080": MUTED,
    "#1f77b4": ACCENT,
    "#ff7f0e": SECOND,
    "#2ca02c": THIRD,
    "#d62728": WARN,
}


def css(colour: str) -> str:
    """A colour of an SVG as CSS: its variable, with the colour itself where the variable is unknown.

    Example:
        >>> css("#000000"), css("#123456")
        ('var(--ac-ink, #1f2328)', '#123456')
    """
    colour = DEFAULTS.get(colour.lower(), colour.lower())
    return f"var({VARIABLES[colour]}, {colour})" if colour in VARIABLES else colour
