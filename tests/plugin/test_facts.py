"""References become numbers, each in a form that its place allows."""

import re

import pytest

from archcards.plugin.facts import Value, place, plain

VALUES = {
    "edges": Value(36, "computed, line 7", "#fact-edges"),
    "bytes": Value(8192, "computed, line 9", "#fact-bytes"),
    "loss": Value(-0.125, "computed, line 9", "#fact-loss"),
    "paper.heads": Value(8, "printed in Table 3", "#source-paper", quoted=True),
    "name": Value("<b>", "computed, line 10", "#fact-name"),
}


def test_a_number_in_prose_carries_its_origin():
    assert place("<p>{{ edges }} edges</p>", VALUES) == (
        '<p><span class="ac-fact" title="computed, line 7">36<a class="ac-origin" href="#fact-edges" '
        'aria-label="36: computed, line 7"></a></span> edges</p>'
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h2>{{ edges }}</h2>", "<h2>36</h2>"),
        ('<a href="x">{{ bytes:,}} bytes</a>', '<a href="x">8,192 bytes</a>'),
        ("<summary>{{ edges }}</summary>", "<summary>36</summary>"),
        ('<img alt="{{ edges }} edges">', '<img alt="36 edges">'),
        ("<code>{{ edges }}</code>", "<code>{{ edges }}</code>"),
        ("<pre><code>f'{{ edges }}'</code></pre>", "<pre><code>f'{{ edges }}'</code></pre>"),
        ("<p>{{edges}} {{ unknown }}</p>", "<p>{{edges}} {{ unknown }}</p>"),
        ("<h3>{{ loss:.2f}}</h3>", "<h3>−0.12</h3>"),
        ("<h3>{{ name }}</h3>", "<h3>&lt;b&gt;</h3>"),
    ],
)
def test_elsewhere_it_is_bare(page, expected):
    assert place(page, VALUES) == expected


@pytest.mark.parametrize(
    ("tex", "drawn", "origins"),
    [
        ("x_{{ edges }}", "x_{36}", ["#fact-edges"]),
        ("{{ bytes:,}}", "\\text{8,192}", ["#fact-bytes"]),
        ("{{ loss }} + {{ edges }}", "{-0.125} + {36}", ["#fact-loss", "#fact-edges"]),
        ("x", "x", []),
    ],
)
def test_a_formula_in_a_line_has_its_numbers_origins_before_it(tex, drawn, origins):
    links, formula = place(f'<p><span class="arithmatex">\\({tex}\\)</span>.</p>', VALUES).split('<span class="arithmatex">')
    assert formula == f"\\({drawn}\\)</span>.</p>"
    assert re.findall('href="(.*?)"', links) == origins


@pytest.mark.parametrize("around", ['<h2><span class="arithmatex">{}</span></h2>', '<div class="arithmatex">{}</div>'])
def test_a_formula_in_a_heading_or_on_its_own_is_bare(around):
    assert place(around.format("\\({{ loss }}\\)"), VALUES) == around.format("\\({-0.125}\\)")


def test_formula_ends_where_its_element_ends():
    page = '<p><span class="arithmatex">\\(x\\)</span> {{ edges }}</p>'
    assert 'class="ac-fact"' in place(page, VALUES)


def test_a_quoted_number_is_told_from_a_computed_one():
    assert 'class="ac-fact ac-quoted"' in place("<p>{{ paper.heads }}</p>", VALUES)


def test_plain_text_for_titles():
    assert plain("{{ bytes:,}} of {{ none }}", VALUES) == "8,192 of {{ none }}"


def test_a_format_that_does_not_fit_leaves_the_reference():
    assert plain("{{ name:.2f}}", VALUES) == "{{ name:.2f}}"
