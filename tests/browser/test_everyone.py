"""The site is for everyone: without a pointer, without motion, without scripts, on a first visit, with the search open."""

import re

import pytest
from playwright.sync_api import expect

CHAPTER = "attention/chunked-prefill/"
MANY_STOPS = 400
# Each has something that no other page has to be worked by keyboard.
WALKS = {
    "": "home",
    CHAPTER: "switch, checks, derivations, listings",
    "models/": "filter and headings that sort",
    "models/live/": "live ledger",
    "attention/masks/": "masks to try",
    "attention/online-softmax/": "softmax step by step",
    "accounting/cache/": "a chart with a slider, and a part of the ledger",
    "models/qwen3-8b/": "a model's card",
    "api/conform/": "reference with folded sources",
    "404.html": "no such page",
}


@pytest.fixture
def page(new_examined):
    """A page that examine.js can be asked about and on which nothing may go wrong."""
    made, wrong = new_examined(viewport={"width": 1280, "height": 900})
    yield made
    made.context.close()
    assert not wrong


def walk(page, key="Tab"):
    """Goes through the whole page by one key and gives every stop."""
    for _ in range(MANY_STOPS):
        page.keyboard.press(key)
        stop = page.evaluate("examine.focused()")
        if stop is None:
            return
        yield stop
    pytest.fail(f"the keyboard has not left the page after {MANY_STOPS} stops: {stop['shown']}")


# Where a page is


@pytest.mark.parametrize("place", [CHAPTER, "models/compare/", "models/jamba-v0-1/", "api/conform/"])
def test_a_page_says_where_it_is_and_what_is_beside_it(page, address, place):
    page.goto(address + place)
    expect(page.get_by_label("Where this page is").get_by_role("link").first).to_be_visible()
    expect(page.get_by_label(re.compile("^Previous: "))).to_be_visible()
    expect(page.get_by_label(re.compile("^Next: "))).to_be_visible()


# Keyboard


@pytest.mark.parametrize("place", WALKS, ids=lambda place: place or "home")
def test_the_keyboard_comes_everywhere_and_shows_where_it_is(page, address, place):
    page.goto(address + place)
    page.evaluate("examine.touch()")
    faults = [f"{stop['shown']} {stop['fault']}" for stop in walk(page) if stop["fault"]]
    faults += [f"{element} cannot be reached" for element in page.evaluate("examine.unreached()")]
    assert not faults, "\n".join([place or "home", *faults])


@pytest.mark.parametrize("place", [CHAPTER, "models/live/"])
def test_the_keyboard_goes_back_too(page, address, place):
    page.goto(address + place)
    page.evaluate("examine.touch()")
    assert [stop["fault"] for stop in walk(page, "Shift+Tab") if stop["fault"]] == []


def test_the_walk_notices_what_is_wrong(page, address):
    page.goto(address)
    page.evaluate("""() => {
      const link = (text) => Object.assign(document.createElement("a"), { href: "#", textContent: text });
      const bare = link("bare"), out = link("out"), last = link("last");
      bare.style.outline = "none";
      out.style.cssText = "position: absolute; left: -999px; width: 50px; height: 20px; overflow: hidden";
      document.querySelector("article").prepend(bare, out, last);
      last.addEventListener("keydown", (event) => event.preventDefault());
    }""")
    stops = []
    with pytest.raises(pytest.fail.Exception, match="the keyboard has not left the page"):
        for stop in walk(page):
            stops.append(stop)
    assert {stop["fault"] for stop in stops} == {"", "has the keyboard and does not show it", "has the keyboard out of sight"}
    assert page.evaluate("examine.unreached()")


def test_one_key_skips_to_the_content(page, address):
    page.goto(address + CHAPTER)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#."))
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('article').contains(document.activeElement)")


def test_search_by_keyboard(page, address):
    page.goto(address + CHAPTER)
    page.keyboard.press("/")
    field = page.get_by_role("textbox", name="Search")
    expect(field).to_be_focused()
    page.keyboard.type("kv cache size")
    first = page.locator(".md-search-result__link").first
    expect(first).to_have_attribute("href", re.compile("attention/heads-and-cache/"))  # and not of "kv"
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    assert not page.evaluate("examine.focused()")["fault"]
    page.keyboard.press("Escape")
    expect(page.locator(".md-search__scrollwrap")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator(".md-search__scrollwrap")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("attention/heads-and-cache/"))


def test_an_early_enter_in_the_search_keeps_the_page(page, address):
    page.goto(address + CHAPTER)
    page.evaluate("""() => {
        const form = document.forms.search;
        form.elements.query.value = "kv";
        form.requestSubmit();
    }""")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.url == address + CHAPTER


def test_the_switch_is_worked_by_keyboard(page, address):
    page.goto(address + CHAPTER)
    switch = page.locator(".ac-switch").first
    switch.locator("input").first.focus()
    expect(switch.locator(".ac-panel").nth(0)).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(switch.locator(".ac-panel").nth(0)).to_be_hidden()
    expect(switch.locator(".ac-panel").nth(1)).to_be_visible()
    assert not page.evaluate("examine.focused()")["fault"]


def test_a_check_unfolds_by_keyboard(page, address):
    page.goto(address + CHAPTER)
    code = page.locator(".ac-check .ac-code").first
    expect(code.locator("pre")).to_be_hidden()
    code.locator("summary").press("Enter")
    expect(code.locator("pre")).to_be_visible()


def test_where_numbers_come_from_is_one_key_away_and_out_of_the_way_otherwise(page, address):
    page.goto(address + CHAPTER)
    origins = page.locator(".ac-origin")
    assert origins.count() > 0
    expect(origins.first).to_be_hidden()
    page.locator(".ac-sources input").press("Space")
    expect(origins.first).to_be_visible()
    origins.first.click()
    expect(page).to_have_url(re.compile("#."))
    anchor = page.evaluate("decodeURIComponent(location.hash.slice(1))")
    expect(page.locator(f'[id="{anchor}"]')).to_be_visible()


def test_the_menu_of_a_phone_can_be_read(new_examined, address):
    page, wrong = new_examined(viewport={"width": 390, "height": 800}, has_touch=True)
    page.goto(address + CHAPTER)
    page.locator(".md-header label[for=__drawer]").click()
    expect(page.locator(".md-nav--primary > .md-nav__list > .md-nav__item").first).to_be_in_viewport()
    page.evaluate("examine.settled()")
    assert page.evaluate("examine.colours()") == []
    page.context.close()
    assert not wrong


def test_with_a_touch_screen_the_keyboard_comes_to_what_scrolls(new_examined, address):
    page, wrong = new_examined(viewport={"width": 390, "height": 800}, has_touch=True)
    page.goto(address + CHAPTER)
    listing = page.locator(".highlight pre > code").first
    assert listing.evaluate("one => one.scrollWidth > one.clientWidth")
    expect(listing).to_have_attribute("tabindex", "0")
    page.evaluate("examine.settled()")
    found = page.evaluate("examine.rules(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])")
    page.context.close()
    assert not found, "\n".join(found)
    assert not wrong


# Opened dialogs


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing_in_the_open_search(new_examined, address, scheme, width):
    page, wrong = new_examined(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"{address}?q=kv+cache+size")
    page.locator(".md-search-result__item").first.wait_for()
    page.evaluate("examine.settled()")
    found = page.evaluate("examine.colours()") + page.evaluate("examine.rules(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])")
    page.context.close()
    assert not found, "\n".join(found)
    assert not wrong


# A first visit


@pytest.mark.parametrize("width", [1280, 320])
@pytest.mark.parametrize("place", WALKS, ids=lambda place: place or "home")
def test_nothing_shifts_on_a_first_visit(new_examined, address, place, width):
    page, wrong = new_examined(viewport={"width": width, "height": 900})
    page.goto(address + place, wait_until="networkidle")
    page.evaluate("examine.settled()")
    shifts = page.evaluate("examine.shifts(0.02)")
    page.context.close()
    assert not shifts, "\n".join(shifts)
    assert not wrong


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_the_scheme_is_the_reader_s_until_another_is_chosen(new_examined, address, scheme, name):
    page, wrong = new_examined(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(address + CHAPTER)
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", name)
    dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(part => part < 64)"
    assert page.evaluate(dark) == (scheme == "dark")
    chosen, offered = ("Light colours", "Dark colours")[:: 1 if scheme == "light" else -1]
    expect(page.get_by_role("radio", name=chosen)).to_be_checked()
    page.get_by_role("radio", name=chosen).press("ArrowRight")
    expect(page.get_by_role("radio", name=offered)).to_be_checked()
    other = {"default": "slate", "slate": "default"}[name]
    expect(body).to_have_attribute("data-md-color-scheme", other)
    page.goto(address)
    expect(body).to_have_attribute("data-md-color-scheme", other)
    page.context.close()
    assert not wrong


# Motion


def test_nothing_moves_for_those_who_ask_for_rest(page, address):
    page.goto(address + CHAPTER)
    moving = """() => [...document.querySelectorAll("*")].filter((element) =>
      ["", "::before", "::after"].some((part) => {
        const style = getComputedStyle(element, part);
        return style.animationName !== "none" || style.transitionDuration.split(",").some((time) => parseFloat(time) > 0)
          || style.scrollBehavior === "smooth";
      })).length"""
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving) > 0


# Without scripts


@pytest.fixture
def still(new_page):
    """A page on which no script runs."""
    made, wrong = new_page(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    yield made
    made.context.close()
    assert not wrong


def test_without_scripts_a_chapter_is_whole(still, address):
    still.goto(address + CHAPTER)
    expect(still.locator("math").first).to_be_visible()
    expect(still.locator(".ac-drawing svg").first).to_be_visible()
    switch = still.locator(".ac-switch").first
    switch.locator("label").nth(1).click()
    expect(switch.locator(".ac-panel").nth(1)).to_be_visible()
    expect(switch.locator(".ac-panel").nth(0)).to_be_hidden()
    still.locator(".ac-code summary").first.click()
    expect(still.locator(".ac-code pre").first).to_be_visible()


def test_without_scripts_where_numbers_come_from_is_shown_all_the_same(still, address):
    still.goto(address + CHAPTER)
    expect(still.locator(".ac-origin").first).to_be_hidden()
    still.locator(".ac-sources input").check()
    expect(still.locator(".ac-origin").first).to_be_visible()


def test_without_scripts_no_control_is_shown_that_does_nothing(still, address):
    still.goto(address + CHAPTER)
    for dead in (".md-search", ".md-header label[for=__search]", ".md-header label[for^=__palette]"):
        assert still.locator(dead).count()
        for control in still.locator(dead).all():
            expect(control).to_be_hidden()
    assert not still.locator(".md-code__button").count()
    still.goto(f"{address}models/")
    expect(still.locator(".ac-filter")).to_be_hidden()


def test_without_scripts_tables_stand_and_widgets_say_what_they_lack(still, address):
    still.goto(f"{address}models/")
    assert still.locator(".ac-models tbody tr:visible").count() > 20
    still.goto(f"{address}models/live/")
    expect(still.locator(".ac-live")).to_contain_text("needs JavaScript")
    still.locator(".ac-live a").first.click()
    expect(still).to_have_url(f"{address}models/")
    still.goto(f"{address}attention/masks/")
    expect(still.locator(".ac-masks")).to_contain_text("needs JavaScript")


def test_without_scripts_the_index_by_symptom_leads_on(still, address):
    still.goto(f"{address}attention/masks/")
    still.get_by_role("link", name="By symptom").first.click()
    still.get_by_role("row", name="One chunk is right, two are not").get_by_role("link").last.click()
    expect(still).to_have_url(re.compile("attention/chunked-prefill/#what-goes-wrong$"))
    expect(still.locator("#what-goes-wrong")).to_be_in_viewport()
