"""What a first visit to a chapter loads, compressed as a host compresses it."""

import gzip
import os
import re
from pathlib import Path

import pytest

SITE = Path(os.environ.get("ARCHCARDS_SITE", Path(__file__).parents[2] / "site"))
CHAPTERS = sorted(
    page.relative_to(SITE).as_posix().removesuffix("index.html")
    for page in SITE.glob("*/*/index.html")
    if '<section class="ac-card"' in page.read_text("utf-8")
)
WITH_FONTS, WITHOUT_FONTS = 200_000, 120_000
COMPRESSED = {".woff2", ".png"}


def size(url, address):
    """Bytes on their way to a reader."""
    path = SITE / re.sub(r"[?#].*", "", url.removeprefix(address))
    content = (path / "index.html" if path.is_dir() else path).read_bytes()
    return len(content) if path.suffix in COMPRESSED else len(gzip.compress(content, 9))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_first_visit_is_light(page, address, chapter):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address + chapter, wait_until="networkidle")
    sizes = {url: size(url, address) for url in dict.fromkeys(asked) if url.startswith(address)}
    fonts = sum(count for url, count in sizes.items() if url.endswith(".woff2"))
    assert fonts > 0
    assert sum(sizes.values()) <= WITH_FONTS, sizes
    assert sum(sizes.values()) - fonts <= WITHOUT_FONTS, sizes


def test_the_search_index_comes_with_the_first_search(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address + CHAPTERS[0], wait_until="networkidle")
    assert not any("search_index" in url for url in asked)
    page.keyboard.press("/")
    page.locator(".md-search__input").fill("window")
    page.locator(".md-search-result__item").first.wait_for()
    assert any("search_index" in url for url in asked)


def test_a_page_that_a_search_led_to_marks_the_words(page, address):
    page.goto(f"{address}{CHAPTERS[0]}?h=token", wait_until="networkidle")
    page.locator("article mark").first.wait_for()
