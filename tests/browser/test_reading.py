"""Reading: where the first screen leads, what is folded, what lies over the text, and what is on paper."""

import pytest
from playwright.sync_api import expect

CONVENTIONS = "conventions/"
ENTRY = "elsewhere-sliding_window"
# A widget that has begun has a form; here none has, because no script runs or nobody came near it.
WIDGETS = ("models/live/", "attention/masks/", "attention/online-softmax/", "accounting/cache/")


# The first screen


JOBS = {
    "Which convention did I break?": "conformance/",
    "What does this model cost?": "models/live/",
    "What goes wrong?": "symptoms/",
    "How does it work?": "#the-chapters",
}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_leads_to_each_of_four_jobs(page, address, width, height):
    page.set_viewport_size({"width": width, "height": height})
    for job, place in JOBS.items():
        page.goto(address)
        link = page.get_by_label("Where to begin").get_by_role("link", name=job)
        box = link.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, job
        link.click()
        expect(page).to_have_url(address + place)
    expect(page.locator("#the-chapters")).to_be_in_viewport()


# What is folded


def test_what_other_libraries_call_it_is_folded_by_subject(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + CONVENTIONS)
    folds = page.locator(".ac-rosetta")
    assert folds.count() == page.locator("#in-other-libraries ~ h3").count()
    for fold in folds.all():
        expect(fold.locator("summary")).to_be_visible()
        expect(fold.locator("table").first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollHeight") < 30 * 844
    # Each name is in its summary: who looks for one knows which to open.
    for name in page.locator(".ac-rosetta h4 > a:first-child, .ac-rosetta h4 > code").all_text_contents():
        assert page.locator(".ac-rosetta summary code").get_by_text(name, exact=True).count() == 1


@pytest.mark.parametrize("scripts", [True, False])
def test_an_address_opens_its_fold(new_page, address, scripts):
    page, wrong = new_page(java_script_enabled=scripts)
    page.goto(f"{address}{CONVENTIONS}#{ENTRY}")
    entry = page.locator(f"#{ENTRY}")
    expect(entry).to_be_in_viewport()
    expect(entry.locator("~ table").first).to_be_visible()
    page.locator(".ac-rosetta summary").last.click()
    expect(page.locator(".ac-rosetta table").last).to_be_visible()
    page.context.close()
    assert not wrong


def test_a_link_in_the_page_opens_a_fold(page, address):
    page.goto(address + CONVENTIONS)
    expect(page.locator(f"#{ENTRY}")).to_be_hidden()
    page.evaluate(f"""() => {{
      const link = Object.assign(document.createElement("a"), {{href: "#{ENTRY}", textContent: "there"}});
      document.querySelector("article").prepend(link);
    }}""")
    page.get_by_role("link", name="there", exact=True).click()
    expect(page.locator(f"#{ENTRY}")).to_be_in_viewport()


@pytest.mark.parametrize("loaded", [True, False])
def test_a_search_hit_opens_its_fold(page, address, loaded):
    """Also where the hit's page takes the place of the one that was searched from."""
    page.goto(f"{address}?q=window_left")
    hit = page.locator(f'.md-search-result__link[href*="#{ENTRY}"]').first
    hit.wait_for(state="attached")
    if loaded:
        page.goto(hit.evaluate("link => link.href"))
    else:
        hit.evaluate("link => link.click()")
    expect(page.locator(f"#{ENTRY}")).to_be_in_viewport()
    expect(page.locator(f"#{ENTRY} ~ table").first).to_be_visible()


@pytest.mark.parametrize("place", [CONVENTIONS, "symptoms/", "api/controls/"])
def test_sentences_in_a_table_are_stacked_on_a_narrow_screen(page, address, place):
    for width, stacked in ((320, True), (1280, False)):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(address + place)
        first, second = (cell.bounding_box() for cell in page.locator(".ac-stacks tbody td").all()[:2])
        assert (second["y"] >= first["y"] + first["height"]) == stacked
        for frame in page.locator(".ac-stacks .ac-table").all():
            assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")


# What lies over the text

OVER = """() => {
  const shown = (element) => element?.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const over = [".ac-sources:has(input:checked)", ".md-top", ".md-header"].map((name) => document.querySelector(name));
  const boxes = over.filter(shown).map((element) => [element.className, element.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap(([name, box], at) =>
    boxes.slice(at + 1).filter(([, other]) => meet(box, other)).map(([other]) => `${name} over ${other}`));
}"""
UNDER = """(target) => {
  const boxes = [...document.querySelectorAll(".ac-sources, .md-header")].map((one) => one.getBoundingClientRect());
  const range = document.createRange();
  range.selectNodeContents(target);
  return [...range.getClientRects()].some((text) =>
    boxes.some((box) => text.left < box.right && box.left < text.right && text.top < box.bottom && box.top < text.bottom));
}"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_what_lies_over_the_text_does_not_meet_and_can_be_scrolled_clear(page, address, width):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}attention/chunked-prefill/")
    page.locator(".ac-sources input").check()
    page.mouse.move(width / 2, 400)
    page.mouse.wheel(0, 2400)
    expect(page.locator(".ac-sources")).to_be_in_viewport()
    page.mouse.wheel(0, -400)
    expect(page.locator(".md-top")).to_be_visible()
    expect(page.locator(".md-top")).to_have_css("opacity", "1")
    assert page.evaluate(OVER) == []
    # Where a number leads is read at once, not from under the box.
    links = page.locator(f".ac-origin[href^='{address}attention/chunked-prefill/#']").all()[:6]
    assert links
    for link in links:
        link.click()
        target = page.locator(":target")
        expect(target).to_be_in_viewport()
        assert not target.evaluate(UNDER), target.evaluate("target => target.id")


# On paper


@pytest.mark.parametrize("place", WIDGETS)
@pytest.mark.parametrize("scripts", [True, False])
def test_what_has_not_begun_leaves_nothing_on_paper(new_page, address, place, scripts):
    page, wrong = new_page(java_script_enabled=scripts, viewport={"width": 1280, "height": 40})
    page.goto(address + place)
    page.emulate_media(media="print")
    for widget in page.locator(":is(ac-live, ac-masks, ac-growth, ac-steps):not(:has(form))").all():
        expect(widget).to_be_hidden()
    assert "JavaScript" not in page.locator("article").inner_text()
    page.context.close()
    assert not wrong


def test_paper_has_no_controls(page, address):
    page.goto(f"{address}attention/chunked-prefill/")
    controls = page.locator(".ac-sources, .ac-switch > label, .ac-check .ac-code, .md-path, .ac-takeaway, .md-top")
    assert controls.count() > 5
    page.emulate_media(media="print")
    for control in controls.all():
        expect(control).to_be_hidden()


def test_paper_has_what_is_folded(page, address):
    page.goto(address + CONVENTIONS)
    shown = "() => [...document.querySelectorAll('.ac-rosetta tbody')].map((body) => body.checkVisibility())"
    assert set(page.evaluate(shown)) == {False}
    page.emulate_media(media="print")
    assert set(page.evaluate(shown)) == {True}
