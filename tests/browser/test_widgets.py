"""Things to touch: in chapters, several on a page, and after coming back."""

import json
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import expect

from archcards.ledger import bundled, cache, flops, parameters

PLACES = {
    "accounting/cache/": ["growth", "live"],
    "attention/masks/": ["masks"],
    "attention/online-softmax/": ["steps"],
    "models/live/": ["live"],
}
AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
FINDS = """async (element) => {
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await axe.run(element, {runOnly: {type: "tag", values: rules}, resultTypes: ["violations"]});
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)}`));
}"""
PARTS = {
    "cache": ("accounting/cache/", ["Cache and state, of all sequences", "Cache and state, of one sequence"]),
    "parameters": ("accounting/parameters/", ["Parameters"]),
    "flops": ("accounting/flops/", ["FLOPs of one more token", "FLOPs of the whole sequence"]),
}


def near(page, name):
    """A widget, when the reader has come near it."""
    place = page.locator(f"ac-{name}").first
    place.scroll_into_view_if_needed()
    expect(place.locator("form").first).to_be_visible()
    return place


@pytest.mark.parametrize("part", PARTS)
def test_a_chapter_shows_its_part_of_the_ledger(page, address, part):
    path, groups = PARTS[part]
    page.goto(address + path)
    ledger = near(page, "live")
    assert ledger.get_by_role("rowgroup").locator(".ac-live__group").all_inner_texts() == groups
    name = "google/gemma-3-1b-it"
    ledger.get_by_label("Model", exact=True).select_option(name)
    ledger.get_by_label("Beside it").select_option("")
    if part != "parameters":
        ledger.get_by_label("Context, in tokens").fill("5000")
    model = bundled(name)
    first = ledger.locator("tbody td").first.inner_text()
    assert first == {
        "cache": lambda: f"{cache(model, 5000).bytes:,}",
        "parameters": lambda: f"{parameters(model).total:,}",
        "flops": lambda: f"{flops(model, 5000).per_token.total:,}",
    }[part]()
    assert ledger.locator("svg").count() == (part != "parameters")
    # The address stays the chapter's; the whole ledger opens with what was chosen.
    assert page.evaluate("location.hash") == ""
    opens = ledger.get_by_role("link", name="Open this view")
    assert "undefined" not in opens.get_attribute("href")
    opens.click()
    whole = page.locator(".ac-live pre code")
    answered = json.loads(whole.text_content())
    assert answered["model"] == name
    assert answered["cache"]["context"] == (8192 if part == "parameters" else 5000)


def test_nothing_is_loaded_before_the_reader_comes_near(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}accounting/cache/", wait_until="networkidle")
    assert not [url for url in asked if "/live/" in url]
    near(page, "live")
    assert [url for url in asked if url.endswith("models.json")]
    assert not [url for url in asked if "pyodide" in url]


def test_two_widgets_of_one_page_do_not_meddle(page, address):
    page.goto(f"{address}accounting/cache/")
    growth, ledger = near(page, "growth"), near(page, "live")
    ledger.get_by_label("Context, in tokens").fill("77")
    expect(growth.get_by_role("slider")).to_have_attribute("aria-valuetext", "8,192 tokens")
    growth.get_by_role("slider").fill("0")
    expect(ledger.get_by_label("Context, in tokens")).to_have_value("77")
    identifiers = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(identifiers) == len(set(identifiers))


def test_a_widget_begins_anew_when_the_reader_returns(page, address):
    page.goto(f"{address}attention/masks/")
    near(page, "masks").get_by_label("Queries", exact=True).fill("5")
    page.goto(f"{address}attention/online-softmax/")
    near(page, "steps").get_by_role("button", name="Next").click()
    page.go_back()
    masks = near(page, "masks")
    masks.get_by_label("Queries", exact=True).fill("6")
    expect(masks.get_by_role("status")).to_contain_text("of 36")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", PLACES)
def test_axe_finds_nothing_in_a_widget_that_has_begun(new_page, address, place, scheme):
    page, wrong = new_page(color_scheme=scheme, reduced_motion="reduce")
    page.goto(address + place)
    page.evaluate(AXE)
    for name in PLACES[place]:
        widget = near(page, name)
        if name == "live":
            widget.get_by_label("Beside it").select_option("own")
        assert widget.evaluate(FINDS) == [], name
    page.context.close()
    assert not wrong


@pytest.mark.parametrize("place", PLACES)
def test_the_room_is_there_before_the_widget(page, address, place):
    page.goto(address + place)
    for name in PLACES[place]:
        widget = page.locator(f"ac-{name}")
        before = widget.bounding_box()["height"]
        near(page, name)
        assert widget.bounding_box()["height"] <= before * 1.1, name
