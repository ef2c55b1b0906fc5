"""Every page of the built site in a real browser: quiet, at home, and usable by everyone."""

import os
from pathlib import Path

import pytest

SITE = Path(os.environ.get("ARCHCARDS_SITE", Path(__file__).parents[2] / "site"))
PAGES = sorted(path.relative_to(SITE).as_posix().removesuffix("index.html") for path in SITE.rglob("*.html"))
CHAPTER = "attention/chunked-prefill/"


@pytest.fixture
def visit(browser, address):
    """Opens a page and returns it with what it complained of and asked for."""
    contexts = []

    def open_page(path, *, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.told, page.foreign, page.failed = [], [], []
        page.on("console", lambda message: page.told.append(message.text))
        page.on("pageerror", lambda error: page.told.append(str(error)))
        page.on("requestfailed", lambda request: page.failed.append(request.url))
        page.on("response", lambda answer: page.failed.append(answer.url) if answer.status >= 400 else None)
        page.on(
            "request",
            lambda request: None
            if request.url.startswith((address, "data:", "blob:"))
            else page.foreign.append(request.url),
        )
        page.goto(address + path, wait_until="networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_quiet_asks_nobody_else_and_fits(visit, path):
    page = visit(path)
    for width in (1280, 768, 320):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"scrolls sideways by {wide} at {width}"
    assert page.told == [] and page.failed == [] and page.foreign == []
    if page.query_selector("math"):
        assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"')")


def test_the_switch_is_worked_by_keyboard(visit):
    page = visit(CHAPTER, java_script_enabled=True)
    page.focus(".ac-switch input")
    shown = "[...document.querySelectorAll('.ac-switch')[0].querySelectorAll('.ac-panel')].map(e => getComputedStyle(e).visibility)"
    assert page.evaluate(shown)[:2] == ["visible", "hidden"]
    page.keyboard.press("ArrowRight")
    assert page.evaluate(shown)[:2] == ["hidden", "visible"]


def test_without_scripts_everything_still_works(visit):
    page = visit(CHAPTER, java_script_enabled=False)
    assert page.locator("math").first.is_visible()
    assert page.locator(".ac-drawing svg").first.is_visible()
    page.locator(".ac-switch label").nth(1).click()
    assert page.locator(".ac-panel").nth(1).is_visible() and not page.locator(".ac-panel").nth(0).is_visible()
    page.locator(".ac-code summary").first.click()
    assert page.locator(".ac-code pre").first.is_visible()


def test_where_numbers_come_from_is_one_key_away_and_out_of_the_way_otherwise(visit):
    page = visit(CHAPTER)
    origins = page.locator(".ac-origin")
    assert origins.count() > 0 and not origins.first.is_visible()
    page.locator(".ac-sources input").press("Space")
    assert origins.first.is_visible()
    origins.first.click()
    anchor = page.evaluate("decodeURIComponent(location.hash.slice(1))")
    assert anchor and page.locator(f'[id="{anchor}"]').is_visible()


def test_the_scheme_follows_the_reader(visit):
    backgrounds = {
        scheme: visit(CHAPTER, color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    }
    assert backgrounds["light"] != backgrounds["dark"]


@pytest.mark.parametrize(
    ("query", "chapter"),
    [
        ("chunked prefill", "attention/chunked-prefill/"),
        ("GQA", "attention/heads-and-cache/"),
        ("online softmax merge", "attention/online-softmax/"),
    ],
)
def test_search_leads_to_the_chapter(visit, query, chapter):
    page = visit("")
    page.keyboard.press("/")
    page.locator(".md-search__input").fill(query)
    first = page.locator(".md-search-result__link").first
    first.wait_for()
    assert chapter in first.get_attribute("href")
    assert page.told == []
