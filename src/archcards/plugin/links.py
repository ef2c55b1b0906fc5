"""Every link and anchor of a finished site leads somewhere, and every image says what it shows.

Works on a folder of HTML, whoever made it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from .markup import tokens

__all__ = ["DeadLink", "Page", "check_site", "find_broken", "find_line", "read_page"]

_TARGETS = {"href", "src", "poster", "data", "xlink:href"}
# A link element may name another host without the browser ever asking it.
_POINTERS = {"canonical", "alternate", "prev", "next", "license"}


@dataclass(frozen=True)
class Page:
    """What the check needs of a page: its anchors, what it points to, and its faults of form."""

    anchors: frozenset[str]
    links: tuple[str, ...]
    requests: tuple[str, ...]
    faults: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DeadLink:
    """A fault of a page: `page` is its path in the site, `link` what the page has in its attribute.

    A fault of the page itself has no link; `about` is then the image or the anchor it is about.
    """

    page: str
    link: str
    reason: str
    about: str = ""


def read_page(page: str) -> Page:
    """Collects anchors, links and requests of a page, comments and scripts aside."""
    anchors: Counter[str] = Counter()
    links, requests, faults = [], [], []
    for token in tokens(page):
        if token.kind != "open":
            continue
        given = token.attributes
        if "id" in given:
            anchors[given["id"]] += 1
        if token.name == "a" and "name" in given:
            anchors.setdefault(given["name"], 1)
        if token.name == "img" and not given.get("alt", "").strip():
            if given.get("role") != "presentation" and given.get("aria-hidden") != "true":
                source = given.get("src", "")
                shown = source if len(source) < 60 else f"{source[:50]}…"
                faults.append((source, f"image {shown} without alternative text"))
        for name in _TARGETS & given.keys():
            value = given[name].strip()
            if _split(value) is None:
                faults.append((value, f"{value} is no address"))
                continue
            pointer = token.name == "a" or given.get("rel") in _POINTERS
            (links if pointer else requests).append(value)
        if "srcset" in given:
            requests += [one.split()[0] for one in re.split(r",\s+", given["srcset"]) if one.strip()]
    faults += [
        (f"#{name}", f"anchor #{name} occurs {count} times") for name, count in anchors.items() if count > 1
    ]
    return Page(frozenset(anchors), tuple(links), tuple(requests), tuple(faults))


def check_site(
    site: Path, *, site_url: str = "", only: Iterable[str] | None = None
) -> list[DeadLink]:
    """Checks all pages of a site (or `only` some of them) against everything that the site has.

    Links to other hosts are not followed; a *request* to another host (a script, a style, an image)
    is a fault.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "index.html").write_text('<a href="nowhere.html">on</a>')
        ...     check_site(Path(folder))[0].reason
        'link to nowhere.html, which the site does not have'
    """
    present = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    pages = {
        name: read_page((site / name).read_text(encoding="utf-8"))
        for name in sorted(present)
        if name.endswith(".html")
    }
    base = urlsplit(site_url)
    found = []
    for name in sorted(only) if only is not None else pages:
        page = pages[name]
        found += [DeadLink(name, "", reason, about) for about, reason in page.faults]
        for link in dict.fromkeys(page.requests):
            split = urlsplit(link)
            if split.scheme == "data":
                continue
            if (split.scheme or split.netloc) and split.netloc != base.netloc:
                found.append(DeadLink(name, link, f"requests {link} from another host"))
            elif reason := _dead(name, link, present, pages, base):
                found.append(DeadLink(name, link, reason))
        for link in dict.fromkeys(page.links):
            if reason := _dead(name, link, present, pages, base):
                found.append(DeadLink(name, link, reason))
    return found


def _dead(name: str, link: str, present: set[str], pages: Mapping[str, Page], base) -> str | None:
    split = urlsplit(link)
    if split.scheme in {"mailto", "data"}:
        return None
    if split.scheme or split.netloc:
        if split.scheme not in {"http", "https"}:
            return f"link to {link}, whose scheme is not http, https or mailto"
        if not base.netloc or split.netloc != base.netloc:
            return None
        if not split.path.startswith(base.path or "/"):
            return None
    path = unquote(split.path)
    if not path:
        target = name
    else:
        if path.startswith("/"):
            inside = path.removeprefix(base.path.rstrip("/") or "").lstrip("/")
            folder = path.endswith("/") or not inside
        else:
            inside = posixpath.join(posixpath.dirname(name), path)
            folder = path.endswith("/") or posixpath.basename(path) in {".", ".."}
        target = posixpath.normpath(inside) if inside else "."
        if target.startswith(".."):
            return f"link to {link}, which lies outside the site"
        if folder or target == ".":
            target = posixpath.normpath(posixpath.join(target, "index.html"))
    if target not in present:
        if posixpath.join(target, "index.html") in present:
            return f"link to {link}, which lacks its final slash"
        return f"link to {link}, which the site does not have"
    fragment = unquote(split.fragment)
    if fragment and target in pages and fragment not in pages[target].anchors:
        return f"link to {link}: its page has no anchor #{fragment}"
    return None


def find_line(source: str, link: str) -> int | None:
    """The line of a Markdown source that most likely wrote `link`, as the finished page has it.

    Markdown writes `../masks.md#edges` where the page has `../masks/#edges`, so what is compared is
    the anchor and the last word of the path.
    """
    split = _split(link) or urlsplit("")
    stem = _last_word(split.path)
    best, best_line = 0, None
    if link.startswith("#"):
        given = re.compile(rf"""(?:\{{[^}}]*#|\bid=["']){re.escape(link[1:])}(?:["'\s}}])""")
        best_line = next((n for n, line in enumerate(source.split("\n"), 1) if given.search(line)), None)
    for number, line in enumerate(source.split("\n"), 1):
        written = re.findall(r"\]\(\s*<?([^\s)>]+)|^\s*\[(?!\^)[^\]]+\]:\s*(\S+)|(?:href|src|srcset)=[\"']([^\"']+)", line)
        for target in (next(filter(None, groups)) for groups in written):
            other = _split(target) or urlsplit("")
            score = 0
            if target == link:
                score = 4
            elif unquote(other.fragment) == unquote(split.fragment):
                score = 3 if _last_word(other.path) == stem else 0
            if score > best:
                best, best_line = score, number
    return best_line


def _split(address: str) -> SplitResult | None:
    """The parts of an address, or nothing if it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def find_broken(lines: Sequence[str]) -> int | None:
    """The first line of a Markdown source with what looks like an address and is none."""
    for number, line in enumerate(lines, 1):
        if any(_split(address) is None for address in re.findall(r"\w+://[^\s)>\"']*", line)):
            return number
    return None


def _last_word(path: str) -> str:
    """The name that a path leads to, in Markdown (`a/index.md`) as on the site (`../a/`)."""
    words = [re.sub(r"(^index)?\.(md|html)$", "", part) for part in unquote(path).split("/")]
    return next((word for word in reversed(words) if word not in {"", ".", ".."}), "")
