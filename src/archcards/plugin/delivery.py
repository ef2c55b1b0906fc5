"""How the site's files reach a reader: what may wait, what may be kept, and under which headers.

The theme's script fetches the whole search index with every page. Here it is fetched when a reader
turns to the search, which halves what a first visit loads.

A link puts the content of its page in the place of another's, without loading the site anew. The
theme's script does so for the pages of `sitemap.xml`, whose addresses are those that the site was
built for. Here it has a list of its own, of addresses within the site: the site may be served from
anywhere, and a page that asks for more than the others is left out and loaded in full.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from html import escape
from pathlib import PurePosixPath

__all__ = [
    "EXCHANGED",
    "UnknownTheme",
    "anywhere",
    "exchanged",
    "headers",
    "kept_name",
    "loaded_in_full",
    "told_apart",
    "unhurried",
    "without_source_map",
]

EXCHANGED = "assets/exchanged.xml"
"""The list of the pages whose contents are exchanged for each other."""

# All are read from the theme's minified script, whose short names change with each of its versions.
_INDEX = re.compile(r'([\w$]+\()location\.protocol!=="file:"(\),[\w$]+\("search"\)\))')
_HIGHLIGHT = re.compile(r'([\w$]+\("search\.highlight"\))\?')
_SITEMAP = re.compile(r'(new URL\(")sitemap\.xml(",)')
_LISTED = re.compile(r'(\("loc",[\w$]+\),[\w$]+=\[[\w$]+\(new URL\([\w$]+\.textContent)(\),([\w$]+)\)\])')
_RETURN = re.compile(r'(\(window,")popstate("\))')
_INSTANT = re.compile(r'([\w$]+\("navigation\.instant"\)&&)(?=[\w$]+\(\{sitemap\$:)')
_STATE = re.compile(r"(([\w$]+)=\2\+[\w$]+\+[\w$]+\.id)(?=\}return \2\})")
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
    changes = ((_INDEX, r"\1!1\2"), (_HIGHLIGHT, r"\1&&/[?&]h=/.test(location.search)?"))
    return _changed(script, changes, "fetches the search index")


def anywhere(script: str) -> str:
    """The theme's script, exchanging contents by the site's own list, wherever the site is served.

    Going back within a page is the browser's; of the rest `exchange.js` tells the theme's script. A page opened from a disk has no exchange, and without this line would have nothing else either.

    Raises:
        UnknownTheme: the script has no such place, or several.

    Example:
        >>> anywhere('V("navigation.instant")&&g({sitemap$:q}).subscribe(d)')
        Traceback (most recent call last):
        ...
        archcards.plugin.delivery.UnknownTheme: the theme's script reads the sitemap in 0 places, expected 1
    """
    changes = (
        (_SITEMAP, rf"\1{EXCHANGED}\2"),
        (_LISTED, r"\1,\3\2"),
        (_RETURN, r"\1archcards:return\2"),
        (_INSTANT, r'\1location.protocol!=="file:"&&'),
    )
    return _changed(script, changes, "reads the sitemap")


def told_apart(script: str) -> str:
    """The search's script, which finds every word whatever other words the site has.

    Its automaton of words names a state by its letters and the numbers of the states they lead to, one
    after the other. Where words have digits, two states can come by one name and are taken for one; a
    search that passes there ends in an error and finds nothing. A comma after each number prevents it.

    Raises:
        UnknownTheme: the script has no such place, or several.

    Example:
        >>> told_apart("for(;i<n;i++){var s=r[i],o=this.edges[s];e=e+s+o.id}return e}")
        'for(;i<n;i++){var s=r[i],o=this.edges[s];e=e+s+o.id+","}return e}'
    """
    return _changed(script, [(_STATE, r'\1+","')], "names states of its search")


def _changed(script: str, changes: Iterable[tuple[re.Pattern, str]], what: str) -> str:
    for pattern, instead in changes:
        script, count = pattern.subn(instead, script)
        if count != 1:
            raise UnknownTheme(f"the theme's script {what} in {count} places, expected 1")
    return script


def exchanged(addresses: Iterable[str]) -> str:
    """The list of pages, by their addresses from the top of the site, as the theme's script reads it.

    Example:
        >>> print(exchanged(["", "part/a&b/"]), end="")
        <urlset><url><loc></loc></url><url><loc>part/a&amp;b/</loc></url></urlset>
    """
    rows = (f"<url><loc>{escape(address)}</loc></url>" for address in sorted(addresses))
    return f"<urlset>{''.join(rows)}</urlset>\n"


def loaded_in_full(page: str) -> str:
    """The page, whose links load what they lead to, as links commonly do.

    Example:
        >>> loaded_in_full('{"features": ["navigation.instant", "navigation.path"]}')
        '{"features": ["navigation.path"]}'
    """
    return page.replace('"navigation.instant", ', "", 1)


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


def headers(kept: Iterable[str], policy: str) -> str:
    """The file `_headers`, for hosts that send what it says; `kept` are the files that never change.

    `policy` admits what any page needs. A page's own, in its head, stays in force beside it and may
    admit less; who may frame a page only a header can say. Hosts add up the rules of all patterns that
    match, and a browser obeys each policy that comes: hence one, for every path.
    """
    lines = [
        "/*",
        f"  Content-Security-Policy: {policy}; frame-ancestors 'none'",
        "  X-Frame-Options: DENY",
        "  X-Content-Type-Options: nosniff",
        "  Referrer-Policy: same-origin",
        "  Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "  Cross-Origin-Opener-Policy: same-origin",
    ]
    for path in sorted(kept):
        lines += ["", f"/{path}", "  Cache-Control: public, max-age=31536000, immutable"]
    return "\n".join(lines) + "\n"
