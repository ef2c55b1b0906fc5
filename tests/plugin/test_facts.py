"""References become numbers, each in a form that its place allows."""

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
        ('<span class="arithmatex">\\(x_{{ edges }}\\)</span>', '<span class="arithmatex">\\(x_36\\)</span>'),
        ('<span class="arithmatex">\\({{ bytes:,}}\\)</span>', '<span class="arithmatex">\\(\\text{8,192}\\)</span>'),
        ('<span class="arithmatex">\\({{ loss }}\\)</span>', '<span class="arithmatex">\\(-0.125\\)</span>'),
        ("<h3>{{ loss:.2f}}</h3>", "<h3>−0.12</h3>"),
        ("<h3>{{ name }}</h3>", "<h3>&lt;b&gt;</h3>"),
    ],
)
def test_elsewhere_it_is_bare(page, expected):
    assert place(page, VALUES) == expected


def test_formula_ends_where_its_element_ends():
    page = '<p><span class="arithmatex">\\(x\\)</span> {{ edges }}</p>'
    assert 'class="ac-fact"' in place(page, VALUES)


def test_a_quoted_number_is_told_from_a_computed_one():
    assert 'class="ac-fact ac-quoted"' in place("<p>{{ paper.heads }}</p>", VALUES)


def test_plain_text_for_titles():
    assert plain("{{ bytes:,}} of {{ none }}", VALUES) == "8,192 of {{ none }}"


def test_a_format_that_does_not_fit_leaves_the_reference():
    assert plain("{{ name:.2f}}", VALUES) == "{{ name:.2f}}"
