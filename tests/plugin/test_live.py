"""The places of things to touch: what stands in a page before, or without, their scripts."""

import re
from pathlib import Path

import pytest

import archcards.plugin
from archcards.plugin.live import MARK, mount


def link(src_uri):
    return {"index.md": ("../", "Home"), "models/index.md": ("../models/", "Models")}.get(src_uri)


@pytest.mark.parametrize("name", ["chapters", "model-glance", "live-", "live-nothing", "masks-cache", ""])
def test_what_is_no_widget_is_left_to_others(name):
    assert mount(name, "", link) is None


@pytest.mark.parametrize("name", ["live", "live-cache", "live-parameters", "live-flops", "masks", "growth", "steps"])
def test_a_widget_brings_its_script_and_a_text_without_it(name):
    page = mount(name, "some/model other/model", link)
    element = name.partition("-")[0]
    assert f"<ac-{element} " in page and page.count(f"</ac-{element}>") == 1
    assert 'src="../assets/javascripts/widgets.js"' in page
    assert 'href="../assets/stylesheets/live.css"' in page
    assert "<p>" in page
    # Only where Python may run is WebAssembly admitted.
    assert (MARK in page) == (element == "live")


def test_a_chapter_s_part_says_which():
    assert 'data-part="cache" data-first="a/b"' in mount("live-cache", "a/b", link)
    assert "data-part" not in mount("live", "a/b c/d", link)
    assert 'data-first="a/b" data-second="c/d"' in mount("live", "a/b c/d", link)


def test_names_are_escaped():
    assert '"><script' not in mount("growth", '"><script', link)


def test_the_style_of_widgets_leaves_the_evidence_alone():
    # A class of both names gave each derivation the room that a widget keeps for itself.
    plugin = Path(archcards.plugin.__file__).parent
    widgets = (plugin / "theme" / "assets" / "stylesheets" / "live.css").read_text("utf-8")
    styled = set(re.findall(r"\.(ac-[a-z_-]+)", widgets))
    drawn = set(re.findall(r"\bac-[a-z_-]+", (plugin / "render.py").read_text("utf-8")))
    assert "ac-steps" in styled and "ac-derivation" in drawn
    assert styled & drawn == {"ac-paper"}  # tables look alike everywhere
