"""How the site's files reach a reader: what may wait, what may be kept, and under which headers.

The theme's script fetches the whole search index with every page. Here it is fetched when a reader
turns to the search, which halves what a first visit loads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

__all__ = ["UnknownTheme", "headers", "kept_name", "unhurried", "without_source_map"]

# Both are read from the theme's minified script, whose short names change with each of its versions.
_INDEX = re.compile(r'([\w$]+\()location\.protocol!=="file:"(\),[\w$]+\("search"\)\))')
_HIGHLIGHT = re.compile(r'([\w$]+\("search\.highlight"\))\?')
_SOURCE_MAP = re.compile(r"\s*(?://|/\*)# sourceMappingURL=\S+?(?:\*/)?\s*$")


class UnknownTheme(ValueError):
    """The theme's script is not the one that is known here."""


def unhurried(script: str) -> str:
    """The theme's script, fetching the search index only for a search.

    A page that a search result leads to (`?h=`) fetches it too, to mark the words that were sought.

    Raises:
        UnknownTheme: the script has no such place, or several.

    Example:
        >>> unhurried('L($(location.protocol!=="file:"),J("search"));V("search.highlight")?A(e):y')
        'L($(!1),J("search"));V("search.highlight")&&/[?&]h=/.test(location.search)?A(e):y'
    """
    for pattern, instead in (
        (_INDEX, r"\1!1\2"),
        (_HIGHLIGHT, r"\1&&/[?&]h=/.test(location.search)?"),
    ):
        script, count = pattern.subn(instead, script)
        if count != 1:
            raise UnknownTheme(f"the theme's script fetches the search index in {count} places, expected 1")
    return script


def without_source_map(text: str) -> str:
    """The text of a script or style sheet without the pointer to a map that the site does not serve.

    Example:
        >>> without_source_map("let a=1;\\n//# sourceMappingURL=a.js.map\\n")
        'let a=1;'
    """
    return _SOURCE_MAP.sub("", text)


def kept_name(path: str, content: bytes) -> str:
    """A name that changes with the content, so that a browser may keep the file for good.

    The theme's own hash in the name, where it has one, is replaced.

    Example:
        >>> kept_name("assets/bundle.a5f9d56c.min.js", b"")
        'assets/bundle.e3b0c442.min.js'
    """
    place = PurePosixPath(path)
    stem, *rest = place.name.split(".")
    rest = [part for part in rest if not re.fullmatch("[0-9a-f]{8}", part)]
    digest = hashlib.sha256(content).hexdigest()[:8]
    return place.with_name(".".join([stem, digest, *rest])).as_posix()


def headers(kept: Iterable[str]) -> str:
    """The file `_headers`, for hosts that send what it says; `kept` are the files that never change.

    What scripts and styles a page may run is in the page itself; a policy in a page cannot say who may
    frame it.
    """
    lines = [
        "/*",
        "  Content-Security-Policy: frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'",
        "  X-Frame-Options: DENY",
        "  X-Content-Type-Options: nosniff",
        "  Referrer-Policy: same-origin",
        "  Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "  Cross-Origin-Opener-Policy: same-origin",
    ]
    for path in sorted(kept):
        lines += ["", f"/{path}", "  Cache-Control: public, max-age=31536000, immutable"]
    return "\n".join(lines) + "\n"
