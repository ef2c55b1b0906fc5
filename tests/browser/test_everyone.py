"""axe finds nothing on any page, in light and in dark."""

import os
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

SITE = Path(os.environ.get("ARCHCARDS_SITE", Path(__file__).parents[2] / "site"))
PAGES = sorted(path.relative_to(SITE).as_posix().removesuffix("index.html") for path in SITE.rglob("*.html"))
AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """async (only) => {
  const found = await axe.run(document, {runOnly: only, resultTypes: ["violations"]});
  return found.violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id}: ${node.target.join(" ")} ${node.html.slice(0, 160)} ${(node.any[0] || node.all[0] || node.none[0] || {}).message || ""}`));
}"""


@pytest.fixture(scope="module")
def examined(browser, address):
    """Examines a page in one context for all: a new one for each takes longer than the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()

    def examine(path, scheme, only, change="0"):
        page.emulate_media(color_scheme=scheme)
        page.goto(address + path)
        page.evaluate(change)
        page.evaluate(AXE)
        return page.evaluate(RUN, only)

    yield examine
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(examined, path):
    assert examined(path, "light", {"type": "tag", "values": RULES}) == []
    assert examined(path, "dark", {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}) == []


def test_axe_would_find_something(examined):
    change = "document.documentElement.removeAttribute('lang')"
    [found] = examined("", "light", {"type": "tag", "values": RULES}, change)
    assert found.startswith("html-has-lang: ")
