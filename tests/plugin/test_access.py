"""Landmarks have names, and tables can be reached."""

import re

from archcards.plugin.access import named, reachable_tables


def test_menus_are_named_by_their_titles():
    page = (
        '<nav class="md-nav" data-md-level="1" aria-labelledby="x" aria-expanded="false">\n'
        '<label class="md-nav__title" for="n"><span></span> A &amp; B </label><ul></ul></nav>'
        '<nav class="md-nav" aria-label="A">'
    )
    assert re.findall(r'aria-label="([^"]*)"', named(page)) == ["Pages: A &amp; B", "Sections of A"]
    assert "aria-labelledby" not in named(page) and named(page).count("<label") == 1


def test_plain_tables_get_a_frame_and_others_stay():
    page = '<p>a</p><table><tr><td>b</td></tr></table><table class="c"></table>'
    framed = reachable_tables(page)
    assert framed.startswith('<p>a</p><div class="ac-table" role="group" tabindex="0"')
    assert framed.endswith('<tr><td>b</td></tr></table></div><table class="c"></table>')
