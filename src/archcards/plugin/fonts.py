"""The site's one font: STIX Two Math, cut down to the characters that its pages use."""

from __future__ import annotations

import io
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

__all__ = ["DISPLAY", "mathematics_font"]

DISPLAY = frozenset(range(0x20, 0x7F)) | {0xA0, *map(ord, "·×–—‘’“”…éèäöüß")}
"""Characters for headings and the wordmark, which are set in the same face as the formulas."""


def mathematics_font(characters: Iterable[int]) -> bytes:
    """WOFF2 of STIX Two Math with only `characters`, with the tables that formulas need."""
    # The file is what is wanted of ziamath, so its code need not be imported.
    source = Path(distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf"))
    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = ["ssty", "kern", "dtls", "flac", "mark", "mkmk", "ccmp", "liga"]
    options.name_IDs = [0, 1, 2, 13, 14]
    options.notdef_outline = True
    options.recalc_timestamp = False
    font = TTFont(source, recalcTimestamp=False, lazy=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(set(characters)))
    subsetter.subset(font)
    font.flavor = "woff2"
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()
