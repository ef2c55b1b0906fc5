"""TeX becomes MathML, or a fault with a position."""

import io
import unicodedata

import pytest
from fontTools.ttLib import TTFont

from archcards.plugin import fonts, mathematics
from archcards.plugin.mathematics import BadTeX, mathml, typeset


def test_a_formula_keeps_its_tex_for_those_who_cannot_see_it():
    assert mathml("a_1 < b").startswith('<math alttext="a_1 &lt; b">')


@pytest.mark.parametrize(
    ("tex", "reason"),
    [
        ("\\frac{1}", "character 8"),
        ("\\notacommand x", "Unknown command"),
        ("{a", "closing token"),
        ("\\underbrace{a}", "\\underbrace is not used"),
        ("a \\xrightarrow{b} c", "\\xrightarrow is not used"),
    ],
)
def test_what_does_not_parse_is_refused(tex, reason):
    with pytest.raises(BadTeX, match=None) as refused:
        mathml(tex)
    assert reason in str(refused.value)


def test_formulas_of_a_page_are_drawn_in_place():
    page = 'a <span class="arithmatex">\\(x^2\\)</span>. <div class="arithmatex">\\[\ny &lt; z\n\\]</div> b'
    drawn = typeset(page)
    assert "arithmatex" not in drawn and "\\(" not in drawn
    assert drawn.index("<msup>") < drawn.index('display="block"')
    assert '<span class="ac-nowrap"><math' in drawn and "</math>.</span>" in drawn


def test_a_menu_shows_the_formula_of_its_heading_and_a_title_its_tex():
    page = "<title>\\(T^2\\) pairs</title><nav><span>\\(T^2\\) pairs</span></nav><p>\\(T^2\\)</p>"
    drawn = mathematics.typeset_navigation(page)
    assert drawn.startswith("<title>T^2 pairs</title><nav><span><math")
    assert drawn.endswith("<p>\\(T^2\\)</p>")


def test_the_font_has_exactly_what_the_formulas_need_and_is_always_the_same():
    needed = mathematics.code_points(mathml("\\sum_i \\mathbb{R} \\le \\alpha"))
    assert {ord("∑"), ord("ℝ"), ord("≤")} <= needed
    assert {ord(unicodedata.lookup(f"MATHEMATICAL ITALIC SMALL {name}")) for name in ("ALPHA", "I")} <= needed
    font = fonts.mathematics_font(needed)
    assert font == fonts.mathematics_font(sorted(needed, reverse=True))
    characters = set(TTFont(io.BytesIO(font)).getBestCmap())
    assert needed <= characters and ord("Q") not in characters
    assert "MATH" in TTFont(io.BytesIO(font))


def test_a_root_needs_the_radical_sign_that_no_text_holds():
    for tex in ("\\sqrt{d}", "\\sqrt[3]{d}"):
        assert ord("√") in mathematics.code_points(mathml(tex)), tex
    assert ord("√") not in mathematics.code_points(mathml("d + 1"))


def test_a_variable_is_drawn_with_the_italic_of_its_letter():
    letters = [chr(c) for c in (*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1))] + list("ΓΩαωϵ∂")
    for letter in letters:
        name = unicodedata.name(letter).replace("LATIN", "MATHEMATICAL ITALIC").replace("LETTER ", "")
        name = name.replace("GREEK CAPITAL", "MATHEMATICAL ITALIC CAPITAL").replace("GREEK SMALL", "MATHEMATICAL ITALIC SMALL")
        name = {"h": "PLANCK CONSTANT", "ϵ": "MATHEMATICAL ITALIC EPSILON SYMBOL", "∂": "MATHEMATICAL ITALIC PARTIAL DIFFERENTIAL"}.get(letter, name)
        assert ord(unicodedata.lookup(name)) in mathematics.code_points(f"<math><mi>{letter}</mi></math>"), letter
