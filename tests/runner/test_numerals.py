"""The numeral rule: what is exempt, what is not, and where it looks."""

import pytest

from archcards.evidence.numerals import find_numerals

NAMES = ("Llama 3.1 8B", "Llama 3", "FlashAttention-2")

EXEMPT = [
    "fp16, H100, v0.1, O(n²), int8, x2_3 and gpt2",
    "Llama 3.1 8B, Llama\n3 and FlashAttention-2",
    "in 2023, 1950 and 2039, the 1990s, 2024's, 2019–2024",
    "on 17 May 2024, May 17, 2024, 2024-05-17 or 2024-05",
    "section 3.1, Section 12, Table 2, figure 4b, step 3, equation (3), Eq. (3), Fig. 7, §2",
    "sections 3.1, 3.2 and 4, tables 1–3, Figures 2 and 3, steps 1 to 12",
    "arXiv 2404.10102, arXiv:2309.06180v2, arXiv:cs/0112017, doi:10.1145/3600006, 10.48550/arXiv.2404.1",
    "pytorch #108108, issue 12, pull request #7",
    "1D, 2D, 3-D, 4D, 1D–4D",
    "8-bit, 16 bits, 4-bit, 8- and 16-bit, 8, 16 or 32 bits",
    "0, 1, from 0 to 1, 0–1, [0, 1), top-1, 1-based",
    "12. a list item",
    "3) another",
    "> 2. quoted",
    "three, twelve, half, twice, dozen, hundreds, millions",
    "`x = 36`, `f(12)`, `0`, `1`, `2023`, ``36 + `x` ``",
    "$x_{12} + y^{128} = 2 a_1$, $2^{-10}$, $a_{ij}^{12}$, $\\tfrac{1}{2}$, \\(x_3\\), $(2,3)$, $2, 3$",
    "[text](https://x.org/36) and [t](a36.md#section-36 'title')",
    '![alt](figure-36.svg){ width="300" }',
    "<https://x.org/36>, https://x.org/36, <a href=\"36\" data-n='36'>x</a>",
    "a note[^36]",
    "[^36]: the note",
    "[reference][36]",
    "[36]: https://x.org/36 'title'",
    "## Heading {#id-36 .class data-x=36}",
    "a paragraph\n{ width=36 }",
    "| a { width=36 } | b { width=36 } |",
    "`code`{ width=36 } and *more*{ width=36 }",
    "{{ fact_36 }} and {{ n:06.2f}}",
    "\\[escaped\\] &mdash; &#160; &nbsp;",
    "::: archcards.masks\n    options:\n      heading_level: 3",
]

# Text with exactly one numeral, and that numeral.
TYPED = {
    "36 edges": "36",
    "about 2,048 tokens": "2,048",
    "3.5 times": "3.5",
    "2048": "2048",
    "1949": "1949",
    "2040": "2040",
    "2,023": "2,023",
    "1990.5": "1990.5",
    "at 10:30": "10:30",
    "-1": "1",
    "−1": "1",
    "1%": "1",
    "5 %": "5",
    "1/2": "1/2",
    "1.0": "1.0",
    "1×": "1",
    "8B": "8B",
    "2x": "2x",
    "16 GB": "16",
    "4th": "4th",
    "½": "½",
    "４": "４",
    "²": "²",
    "٣": "٣",
    "(36)": "36",
    "x=36": "36",
    "top-2": "2",
    "Llama 3.2": "3.2",
    "Llama 30": "30",
    "FlashAttention-23": "23",
    "**8**": "8",
    "_8_": "8",
    "the 8 may be": "8",
    "Table 1, 36 edges": "36",
    "step 4096": "4096",
    "a table with 12 rows": "12",
    "9-bit": "9",
    "256 bits": "256",
    "5D": "5D",
    "twenty": "twenty",
    "Thirteen heads": "Thirteen",
    "a hundred": "hundred",
    "one million": "million",
    "the fortieth": "fortieth",
    "`36`": "36",
    "`-3.5`": "3.5",
    "` 4096 `": "4096",
    "$12$": "12",
    "$0.5$": "0.5",
    "$.5$": ".5",
    "$1{,}024$": "1{,}024",
    "$1\\,024$": "1\\,024",
    "$10^{6}$": "10",
    "$$x = 64$$": "64",
    "\\(x = 64\\)": "64",
    "$\\text{64 keys}$": "64",
    "&#52;&#8203;": "4",
    "<b>8</b>": "8",
    "![alt 36](x.svg)": "36",
    "[link 36](x.md)": "36",
    "[link](x.md \"title 36\")": "36",
    "[x]: y.md 'title 36'": "36",
    "<img src='x36' alt='36 edges'>": "36",
    "<abbr title=\"36\">x</abbr>": "36",
    "<a aria-label='36 keys' href='36'>x</a>": "36",
    "![x](y){ title=\"36\" }": "36",
    "# Heading 36": "36",
    "the end of a paragraph { width=36 }": "36",
    "{ width=36 } begins one": "36",
    "# { width=36 } a heading": "36",
    "a line { width=36 }\nand another": "36",
    "| a | 36 |": "36",
    '!!! note "36 things"': "36",
    '=== "36"': "36",
    "[^1]: a note on 36": "36",
    "12.5": "12.5",
    "a 12. b": "12",
    "- 36": "36",
    "1. 36": "36",
    "*[KV]: 36": "36",
    "`code` 36 `code`": "36",
    "\\`36`": "36",
}  # fmt: skip


@pytest.mark.parametrize("text", EXEMPT)
def test_exempt(text):
    assert [n.text for n in find_numerals(text, NAMES)] == []


@pytest.mark.parametrize("text", TYPED)
def test_typed(text):
    [numeral] = find_numerals(text, NAMES)
    assert numeral.text == TYPED[text]
    if "&#" not in text:
        assert text[numeral.start :].startswith(numeral.text)


def test_each_is_found_at_its_place():
    assert [(n.text, n.start) for n in find_numerals("36, `x`\n[21](9) and $26$")] == [
        ("36", 0),
        ("21", 9),
        ("26", 21),
    ]
