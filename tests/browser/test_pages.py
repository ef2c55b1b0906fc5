"""Every page of the built site: quiet, at home, whole, steady, fitting, and readable by everyone.

One visit asks all of it, because coming to a page takes about as long as asking.
"""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCHEMES = {"light": "default", "dark": "slate"}
# 320 is also what is left of 1280 at four times the size.
WIDTHS = (1280, 768, 320)


@pytest.fixture(scope="module")
def examined(new_examined):
    """One page for all visits: a new one for each takes longer than the visit."""
    page, wrong = new_examined()
    yield page, wrong
    page.context.close()


@pytest.fixture(scope="module")
def anchors(site):
    """The anchors of each page, by its address in the site."""

    class Anchors(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found = set()

        def handle_starttag(self, tag, attributes):
            self.found.update(value for name, value in attributes if name == "id")

    known = {}
    for path in site.rglob("*.html"):
        parser = Anchors()
        parser.feed(path.read_text(encoding="utf-8"))
        known[path.relative_to(site).as_posix().removesuffix("index.html")] = parser.found
    return known


def dead(links, site, address, anchors):
    """Links into the site that lead nowhere."""
    for link in dict.fromkeys(links):
        if not link.startswith(address):
            continue
        split = urlsplit(link)
        path, anchor = unquote(split.path.lstrip("/")), unquote(split.fragment)
        if path not in anchors and not (site / path).is_file():
            yield f"leads to {path}, which the site does not have"
        elif anchor and not anchor.startswith("ledger:") and anchor not in anchors.get(path, ()):
            yield f"leads to {path}#{anchor}, which that page does not have"


def visit(examined, address, path, change="0"):
    """Goes to a page and gives, line by line, what is wrong with it; `change` breaks it first."""
    page, wrong = examined
    wrong.clear()
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto(address + path)
    page.evaluate("examine.settled()")
    # A tenth is what is commonly called good. On a busy machine a long table moves while its rows come.
    yield from page.evaluate("examine.shifts(0.05)")
    if page.query_selector("math"):
        loaded = "[...document.fonts].some(font => font.family.includes('STIX') && font.status === 'loaded')"
        if not page.evaluate(loaded):
            yield "formulas without their font"
    yield from page.evaluate("examine.touch()")
    page.evaluate("examine.unfold()")
    page.evaluate(change)
    for scheme, name in SCHEMES.items():
        page.evaluate("name => document.body.setAttribute('data-md-color-scheme', name)", name)
        page.evaluate("examine.settled()")
        found = page.evaluate("examine.colours()")
        yield from (f"{scheme}: {fault}" for fault in found)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("examine.settled()")
        found = page.evaluate("examine.sideways()")
        if width != 768:
            found += page.evaluate("tags => examine.rules(tags)", TAGS)
        yield from (f"{width} px: {fault}" for fault in found)
    yield from wrong


def test_a_page(examined, site, address, anchors, path):
    faults = list(visit(examined, address, path))
    faults += dead(examined[0].evaluate("examine.links()"), site, address, anchors)
    assert not faults, "\n".join([path or "home", *faults])


BREAKS = {
    "console: hello": "console.log('hello')",
    "404: {address}missing.png": "document.body.append(Object.assign(new Image(), {src: '/missing.png', alt: 'x'}))",
    "light: color-contrast: ": "document.body.style.setProperty('--ac-muted', '#aaa')",
    "dark: color-contrast: ": """() => {
      const style = new CSSStyleSheet();
      style.replaceSync("[data-md-color-scheme=slate] h2 { color: #333 !important }");
      document.adoptedStyleSheets.push(style);
    }""",
    "1280 px: html-has-lang: ": "document.documentElement.removeAttribute('lang')",
    "320 px: scrolls sideways by ": "document.querySelector('h1').style.minWidth = '600px'",
    # A copy, because the page's script looks after the frames that it knows.
    "320 px: scrollable-region-focusable: ": """() => {
      const frame = document.querySelector(".ac-table"), copy = frame.cloneNode(true);
      copy.removeAttribute("tabindex");
      frame.replaceWith(copy);
    }""",
}


@pytest.mark.parametrize(("fault", "change"), BREAKS.items(), ids=BREAKS)
def test_a_broken_page_is_noticed(examined, address, fault, change):
    found = list(visit(examined, address, "models/qwen3-8b/", change))
    assert any(line.startswith(fault.format(address=address)) for line in found), found


def test_a_dead_link_is_noticed(site, address, anchors):
    links = [address, f"{address}nowhere/", f"{address}evidence/#nothing", f"{address}evidence.json", "https://example.org/"]
    assert list(dead(links, site, address, anchors)) == [
        "leads to nowhere/, which the site does not have",
        "leads to evidence/#nothing, which that page does not have",
    ]
