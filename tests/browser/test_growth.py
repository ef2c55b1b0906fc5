"""The chart of caches against states has the ledger's bytes, and its lines cross where they do."""

import re

import pytest
from playwright.sync_api import expect

from archcards.ledger import bundled, cache

PAGE = "accounting/cache/"


@pytest.fixture(scope="module")
def growth(new_page, address):
    """The widget, come near and at work."""
    page, wrong = new_page()
    page.goto(address + PAGE)
    page.locator("ac-growth").scroll_into_view_if_needed()
    expect(page.locator("ac-growth form")).to_be_visible()
    yield page.locator("ac-growth")
    page.context.close()
    assert not wrong


def rows(growth, caption):
    body = growth.get_by_role("region", name=caption).locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in body.all()]


def number(text):
    return int(text.replace(",", ""))


def kept(name, length):
    return cache(bundled(name), length).bytes


def test_bytes_at_any_context_are_the_ledger_s(growth):
    boxes = growth.get_by_role("checkbox")
    for box in boxes.all():
        box.check()
    context = growth.get_by_role("slider", name="Tokens of context")
    for steps in (0, 1, 13, 40, 64):
        context.fill(str(steps))
        tokens = round(2 ** (4 + steps / 4))
        expect(context).to_have_attribute("aria-valuetext", f"{tokens:,} tokens")
        found = rows(growth, f"One sequence at {tokens:,} tokens")
        assert len(found) == boxes.count() > 6
        for name, size, gib, fixed in found:
            assert number(size) == kept(name, tokens), name
            assert float(gib.replace(",", "")) == pytest.approx(number(size) / 2**30, abs=6e-4)
            assert number(fixed) == 2 * cache(bundled(name), 1).fixed_scalars


def test_lines_cross_where_it_says(growth):
    for box in growth.get_by_role("checkbox").all():
        box.check()
    found = rows(growth, "Where lines cross")
    assert len(found) > 15
    for more, less, start in found:
        first = number(start)
        assert kept(more, first) > kept(less, first), (more, less)
        assert kept(more, first - 1) <= kept(less, first - 1), (more, less)
    # None is missing: at every power of two the order is that of the last crossing before it.
    names = sorted({name for row in found for name in row[:2]})
    for power in range(21):
        for one in names:
            for other in names:
                begins = [number(start) for *pair, start in found if pair == [one, other]]
                ends = [number(start) for *pair, start in found if pair == [other, one]]
                last = max((start for start in begins + ends if start <= 2**power), default=None)
                if last in begins and last not in ends:
                    assert kept(one, 2**power) > kept(other, 2**power), (one, other, power)
                elif last is None and kept(one, 1) > kept(other, 1):
                    assert kept(one, 2**power) >= kept(other, 2**power), (one, other, power)


def test_keys_choose_models_and_context(growth):
    for box in growth.get_by_role("checkbox").all():
        box.uncheck()
    expect(growth).to_contain_text("Choose a model.")
    first = growth.get_by_role("checkbox").first
    first.press("Space")
    expect(growth.locator("svg")).to_have_attribute("aria-label", re.compile(": Meta-Llama-3.1-8B[.]"))
    context = growth.get_by_role("slider", name="Tokens of context")
    context.fill("36")
    context.press("ArrowRight")
    expect(context).to_have_attribute("aria-valuetext", f"{round(2**13.25):,} tokens")


def test_it_fits(growth, drawn):
    page = growth.page
    for width in (320, 900):
        page.set_viewport_size({"width": width, "height": 800})
        for box in growth.get_by_role("checkbox").all():
            box.check()
        expect(growth.locator("svg")).to_be_visible()
        drawn(page)
        assert growth.locator("svg").bounding_box()["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_javascript_the_crossings_are_a_table(new_page, address):
    page, wrong = new_page(java_script_enabled=False)
    page.goto(address + PAGE)
    expect(page.locator("#cache-crossing-check tbody tr")).to_have_count(5)
    expect(page.locator("ac-growth")).to_contain_text("needs JavaScript")
    page.context.close()
    assert not wrong
