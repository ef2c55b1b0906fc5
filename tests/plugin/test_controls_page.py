"""Every control has an address of its own, and what names a control leads to it."""

import re
from pathlib import Path

from archcards import controls
from archcards.plugin.controls_page import anchor, index, linked
from archcards.plugin.markup import plain_text
from archcards.plugin.render import inline

SYMPTOMS = Path(__file__).parents[2] / "docs" / "symptoms.md"
EVERY = [(mechanism, name) for mechanism in controls.MECHANISMS for name in controls.of(mechanism)]


def test_every_control_is_listed_once_with_where_it_was_seen():
    drawn = index()
    ids = re.findall(r'<tr id="([^"]+)"', drawn)
    assert len(ids) == len(set(ids)) == len(EVERY)
    for mechanism, name in EVERY:
        row = drawn[drawn.index(f'<tr id="{anchor(mechanism, name)}"') :].partition("</tr>")[0]
        assert f'href="#{anchor(mechanism, name)}"' in row
        text = plain_text(row)
        assert text.startswith(name.replace("`", "")) and controls.of(mechanism)[name].kind in text


def test_a_control_named_after_its_mechanism_leads_to_it():
    page = "<td><code>causal</code>: <code>aligned to the top left</code>, <code>no such</code>; <code>x</code>: <code>y</code></td>"
    assert linked(page, "../api/controls/") == (
        '<td><code>causal</code>: <a href="../api/controls/#control-causal-aligned-to-the-top-left">'
        "<code>aligned to the top left</code></a>, <code>no such</code>; <code>x</code>: <code>y</code></td>"
    )


def test_a_control_of_another_mechanism_is_not_meant():
    page = "<code>softmax</code>: <code>aligned to the top left</code>"
    assert linked(page, "x") == page


def test_a_mistake_that_was_seen_somewhere_leads_to_its_control():
    seen = inline(controls.causal["aligned to the top left"].seen)
    notes = f'<ul class="ac-seen"><li>aligned to the top left: seen in {seen}</li><li>another: seen in a dream</li></ul>'
    drawn = linked(notes, "c/")
    assert drawn.startswith(
        '<ul class="ac-seen"><li><a href="c/#control-causal-aligned-to-the-top-left">aligned to the top left</a>: seen in '
    )
    assert drawn.endswith("<li>another: seen in a dream</li></ul>")
    assert linked(notes.replace("ac-seen", "other"), "c/") == notes.replace("ac-seen", "other")


def test_every_mistake_that_the_symptoms_name_is_a_control():
    named = 0
    for row in SYMPTOMS.read_text("utf-8").splitlines():
        for mechanism, names in re.findall(r"`(\w+)`: ((?:`[^`]+`(?:, )?)+)", row):
            for name in re.findall(r"`([^`]+)`", names):
                assert name in controls.of(mechanism), f"{mechanism}: {name}"
                named += 1
    assert named > 40
