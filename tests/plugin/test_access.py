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
    assert framed.startswith('<p>a</p><div class="ac-table" id="table-under-table" role="group" tabindex="0"')
    assert framed.endswith('</caption><tr><td>b</td></tr></table></div><table class="c"></table>')


def test_tables_are_named_by_their_headings_and_headings_head_columns():
    page = '<h2>A &amp; B<a class="headerlink" href="#a">#</a></h2><table><thead><tr><th style="x">b</th></tr></thead></table><table></table>'
    framed = reachable_tables(page)
    assert re.findall(r'aria-label="([^"]*)"', framed) == ["Table: A &amp; B", "Table: A &amp; B, 2"]
    assert re.findall(r'<caption class="ac-unseen">([^<]*)</caption>', framed) == ["A &amp; B", "A &amp; B, 2"]
    assert '<th scope="col" style="x">b</th>' in framed and "<thead><tr>" in framed


def test_a_button_for_colours_is_named_by_the_colours_that_it_gives():
    option = '<input class="md-option" data-md-color-scheme="{}"  aria-label="{}"  type="radio">'
    page = named(option.format("light", "Dark colours") + option.format("dark", "Light colours"))
    assert page == option.format("light", "Light colours") + option.format("dark", "Dark colours")


def test_a_table_is_addressed_by_its_columns_whatever_stands_before_it():
    other = "<table><tr><th>x</th></tr></table>"
    page = r"<table><thead><tr><th>mask</th><th>\(T^2\) edges</th></tr></thead></table>"
    for drawn in (reachable_tables(page), reachable_tables(other + page)):
        assert re.findall(' id="(.*?)"', drawn)[-1] == "table-of-mask-t-2-edges"


def test_tables_with_the_same_columns_are_addressed_by_what_they_stand_under():
    same = "<table><tr><th>x</th></tr></table>"
    drawn = reachable_tables(f"<h2>A & B</h2>{same}{same}<h2>C</h2>{same}<table></table>")
    assert re.findall(' id="(.*?)"', drawn) == ["table-under-a-b", "table-under-a-b-2", "table-under-c", "table-under-c-2"]
