"""The online softmax, step by step: the table's numbers, one row at a time, and a bar for each weight."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

PAGE = "attention/online-softmax/"
SCORES = np.array([1000.0, 1001.0, -np.inf, 999.0, 1003.0, 998.0])
ENDS = {"piece by piece": (2, 3, 3, 6), "key by key": (1, 2, 3, 4, 5, 6)}


@pytest.fixture(scope="module")
def steps(new_page, address):
    """The widget, come near and at work."""
    page, wrong = new_page(reduced_motion="reduce")
    page.goto(address + PAGE)
    page.locator("ac-steps").scroll_into_view_if_needed()
    expect(page.locator("ac-steps form")).to_be_visible()
    yield page.locator("ac-steps")
    page.context.close()
    assert not wrong


def held(end):
    """What a softmax holds after its first `end` keys: the weights, their sum and the output."""
    largest = SCORES[:end].max()
    weights = np.exp(SCORES[:end] - largest)
    return largest, weights, weights.sum(), weights @ np.arange(end) / weights.sum()


@pytest.mark.parametrize(("way", "ends"), ENDS.items(), ids=ENDS)
def test_every_step_is_the_softmax_of_what_was_read(steps, way, ends):
    steps.get_by_role("radio", name=f"The row, {way}").check()
    step = steps.get_by_role("slider", name="Step")
    rows = steps.page.locator("#online-softmax-steps table:visible tbody tr")
    expect(rows).to_have_count(len(ends))
    before = None
    for at, end in enumerate(ends):
        largest, weights, mass, output = held(end)
        said = steps.get_by_role("status").inner_text()
        assert said.startswith(f"Step {at + 1} of {len(ends)}: read ")
        assert f"largest so far {largest:.0f}, " in said
        assert f"mass {mass:.4f}, output so far {output:.4f}." in said
        if before is None:
            assert "shrink" not in said
        else:
            assert f"the earlier shrink by {np.exp(before - largest):.4f}, " in said
        before = largest
        # What is said stands in the table, and the row it stands in is marked.
        now = steps.page.locator("#online-softmax-steps [aria-current=step]")
        cells = now.locator("th, td").all_inner_texts()
        assert cells[3].split() == [f"{weight:.3f}" for weight in weights]
        assert all(cell in said for place, cell in enumerate(cells) if place != 3)
        bars = steps.locator(".ac-steps__bar").evaluate_all(
            "all => all.map(bar => bar.getBoundingClientRect().height / bar.getBBox().height)"
        )
        assert np.allclose(bars[:end], weights, atol=1e-3) and not any(bars[end:])
        step.press("ArrowRight")
    assert said.startswith(f"Step {len(ends)} of")


def test_the_buttons_walk_and_stop_at_the_ends(steps):
    steps.get_by_role("radio", name="The row, piece by piece").check()
    back, further = (steps.get_by_role("button", name=name) for name in ("Back", "Next"))
    expect(back).to_have_attribute("aria-disabled", "true")
    further.focus()
    for at in (2, 3, 4, 4):
        further.press("Enter")
        expect(steps.get_by_role("status")).to_have_text(re.compile(f"^Step {at} of 4"))
    expect(further).to_be_focused()
    expect(further).to_have_attribute("aria-disabled", "true")
    back.press("Enter")
    expect(steps.get_by_role("status")).to_have_text(re.compile("^Step 3 of 4"))


def test_without_javascript_both_tables_stand_there(new_page, address):
    page, wrong = new_page(java_script_enabled=False)
    page.goto(address + PAGE)
    assert page.locator("#online-softmax-steps table:visible tbody tr").count() == 10
    assert page.locator("#online-softmax-steps [aria-current]").count() == 0
    page.context.close()
    assert not wrong
