"""Each piece of evidence has an address, can be cited, and its errors can be reported, out of the way."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

CHAPTER = "attention/chunked-prefill/"
PIECES = ".ac-check, .ac-registered, .ac-derivation, .ac-switch, .ac-figure, .ac-table"
STOPS = """() => [...document.querySelectorAll("article :is(a, button, summary, input, [tabindex])")]
  .filter(e => e.checkVisibility()).length"""


def read(page, address, drawn):
    """Opens the chapter; its scripts have run."""
    page.goto(address + CHAPTER, wait_until="networkidle")
    page.wait_for_load_state("load")
    drawn(page)


@pytest.fixture
def chapter(page, address, drawn):
    read(page, address, drawn)
    return page


@pytest.fixture
def copying(new_page, address, drawn):
    """A chapter that may copy."""
    page, wrong = new_page(permissions=["clipboard-read", "clipboard-write"])
    read(page, address, drawn)
    yield page
    page.context.close()
    assert not wrong


def test_every_piece_has_an_address_of_its_own(chapter):
    ids = chapter.eval_on_selector_all(PIECES, "items => items.map(item => item.id)")
    assert ids and all(ids) and len(set(ids)) == len(ids)


def test_one_key_shows_where_numbers_come_from_and_hides_it_again(chapter):
    before = chapter.evaluate(STOPS)
    chapter.keyboard.press("e")
    chapter.locator(".ac-origin").first.wait_for()
    chapter.locator(".ac-cite").first.wait_for()
    assert chapter.locator(".ac-cite").count() == chapter.locator(PIECES).count()
    chapter.keyboard.press("e")
    assert chapter.evaluate(STOPS) == before


def test_the_key_is_a_letter_where_one_types(chapter):
    chapter.locator(".md-search__input").click()
    chapter.keyboard.type("edge")
    assert not chapter.locator(".ac-sources input").is_checked()


def test_an_unfolded_check_is_cited_by_keyboard(copying):
    check = copying.locator(".ac-check").first
    check.locator("summary").press("Enter")
    check.locator(".ac-cite").press("Enter")
    dialog = copying.locator("dialog")
    claim = check.locator(".ac-claim").inner_text()
    assert dialog.locator("h2").inner_text() == claim
    anchor = check.get_attribute("id")
    for what in ("citation", "BibTeX", "address"):
        dialog.get_by_role("button", name=f"Copy {what}").press("Enter")
        dialog.get_by_role("status").get_by_text("Copied.").wait_for()
        copied = copying.evaluate("navigator.clipboard.readText()")
        assert f"{CHAPTER}#{anchor}" in copied
        assert what == "address" or claim in copied and "commit" in copied
        assert "{" not in copied or what == "BibTeX"
    copying.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(check.locator(".ac-cite")).to_be_focused()


def test_each_copy_is_told_anew(copying):
    copying.keyboard.press("e")
    copying.locator(".ac-check .ac-cite").first.click()
    dialog = copying.locator("dialog")
    told = dialog.get_by_role("status")
    told.evaluate("""told => {
      window.heard = [];
      new MutationObserver(() => heard.push(told.textContent)).observe(told, {childList: true});
    }""")
    for _ in range(2):
        dialog.get_by_role("button", name="Copy address").press("Enter")
        told.get_by_text("Copied.").wait_for()
    assert copying.evaluate("heard") == ["Copied.", "", "Copied."]


def test_a_report_carries_what_it_is_about(copying):
    copying.keyboard.press("e")
    fact = copying.locator(".ac-registered").first
    fact.locator(".ac-cite").click()
    name, anchor = fact.locator("code").first.inner_text(), fact.get_attribute("id")
    dialog = copying.locator("dialog")
    link = dialog.get_by_role("link", name="Report an error")
    if link.count():  # the site knows its repository
        report = copying.evaluate("href => decodeURIComponent(href)", link.get_attribute("href"))
    else:
        dialog.get_by_role("button", name="Copy a report").click()
        dialog.get_by_role("status").get_by_text("Copied.").wait_for()
        report = copying.evaluate("navigator.clipboard.readText()")
    assert all(part in report for part in (name, f"{CHAPTER}#{anchor}", "commit"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_dialog_and_the_view(new_page, address, drawn, scheme):
    page, wrong = new_page(
        color_scheme=scheme, bypass_csp=True, viewport={"width": 390, "height": 800}, reduced_motion="reduce"
    )
    read(page, address, drawn)
    page.keyboard.press("e")
    page.locator(".ac-cite").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for opened in (False, True):
        if opened:
            page.locator(".ac-cite:visible").first.click()
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}).response["violations"]
        assert not found, [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found]
    page.context.close()
    assert not wrong


def test_the_first_page_shows_the_check_and_the_map_side_by_side_in_one_screen(page, address):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(address)
    boxes = [page.locator(where).first.bounding_box() for where in (".ac-home + h2 + p", ".ac-home ~ .ac-block", ".ac-map")]
    text, check, chapters = boxes
    assert all(box["y"] + box["height"] <= 800 for box in boxes)
    assert max(box["x"] + box["width"] for box in (text, check)) <= chapters["x"]
    assert text["y"] + text["height"] <= check["y"]
