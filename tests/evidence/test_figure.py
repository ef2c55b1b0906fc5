"""A figure is the same in each build, takes the page's colours and touches nothing outside itself."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib import pyplot as plt

from archcards.evidence import figure, palette
from archcards.evidence.drawing import canvas, draw_mask, draw_masks
from archcards.evidence.record import recording


def curve():
    fig, ax = canvas(4, 2)
    ax.plot([0, 1, 2], [1, 4, 9], color=palette.ACCENT, marker="o", label="squares & <cubes>")
    ax.set(title="growth", xlabel="time")
    ax.legend()
    return fig


def svg(fig, alt="A curve."):
    with recording("docs/attention/x.md"):
        return figure(fig, alt=alt, caption="A caption.").svg


def test_two_drawings_of_one_figure_are_the_same_bytes():
    assert svg(curve()) == svg(curve())


def test_text_stays_text_in_the_font_of_the_page():
    root = ET.fromstring(svg(curve()))
    words = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"growth", "time", "squares & <cubes>"} <= set(words)
    assert "DejaVu" not in svg(curve())


def test_colours_are_variables_with_a_fallback():
    text = svg(curve())
    assert f"stroke: var(--ac-accent, {palette.ACCENT})" in text
    bare = re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text)
    assert bare == []


def test_matplotlibs_own_colours_are_taken_for_the_same_variables():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    ax.plot([0, 1], [1, 0], color="black")
    text = svg(fig)
    assert "var(--ac-accent" in text
    assert "stroke: var(--ac-ink" in text
    assert "#1f77b4" not in text


def test_ids_carry_the_name_of_the_figure_and_every_reference_has_its_target():
    with recording("docs/attention/x.md"):
        one = figure(curve(), alt="a", caption="c").svg
        two = figure(curve(), alt="a", caption="c").svg
    ids = [re.findall(r'\bid="([^"]+)"', text) for text in (one, two)]
    assert all(i.startswith("ac-attention-x-1") for i in ids[0])
    assert not set(ids[0]) & set(ids[1])
    assert len(set(ids[0])) == len(ids[0])
    references = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', one))
    assert references
    assert references < set(ids[0])


def test_nothing_of_it_reaches_outside():
    text = svg(curve())
    assert "<style" not in text
    assert "metadata" not in text
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    assert not re.search(r"20\d\d-\d\d-\d\d", text)


def test_it_is_an_image_with_a_name():
    root = ET.fromstring(svg(curve(), alt='A "curve" <b> & more.'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "curve" <b> & more.'
    assert root.get("viewBox")


def test_the_figure_is_closed():
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    figure(fig, alt="a", caption="c")
    assert plt.get_fignums() == []


def test_text_of_ten_points_is_ten_points_on_the_screen():
    fig, ax = canvas(4, 2)
    ax.plot([0, 1])
    root = ET.fromstring(svg(fig))
    left, top, width, height = map(float, root.get("viewBox").split())
    # Its own units are points, of which an inch has 72; a browser's inch has 96 pixels.
    assert float(root.get("width")) == pytest.approx(width * 96 / 72, abs=0.02)
    assert float(root.get("height")) == pytest.approx(height * 96 / 72, abs=0.02)


def test_masks_side_by_side_fit_on_a_page_and_few_of_them_keep_the_size_of_one():
    one = draw_mask(np.tri(8, dtype=bool))
    two = draw_masks({"one": np.tri(8, dtype=bool), "other": np.tri(5, 8, dtype=bool)})
    three = draw_masks(dict.fromkeys(("a", "b", "c"), np.tri(8, dtype=bool)))
    assert (one.get_figwidth(), one.get_figheight()) == pytest.approx((3.14, 3.14))
    assert (two.get_figwidth(), two.get_figheight()) == pytest.approx((2 * 3.14, 3.34))
    # Three times 0.9 inches of labels leave 4.3 for 24 cells.
    assert (three.get_figwidth(), three.get_figheight()) == pytest.approx((7.0, 1.1 + 8 * 4.3 / 24))


@pytest.mark.parametrize(
    ("make", "alt", "caption", "reason"),
    [
        (curve, "", "c", "alt must say"),
        (curve, None, "c", "alt must say"),
        (curve, "a", " ", "caption must say"),
        (lambda: "<svg/>", "a", "c", "expected a Matplotlib figure, and it is str"),
        (lambda: canvas()[0], "a", "c", "nothing is drawn"),
    ],
)
def test_what_is_no_figure_is_refused(make, alt, caption, reason):
    with pytest.raises(ValueError, match=reason):
        figure(make(), alt=alt, caption=caption)


def test_pixels_are_refused():
    fig, ax = canvas()
    ax.imshow(np.eye(3))
    with pytest.raises(ValueError, match="pixels"):
        figure(fig, alt="a", caption="c")


def test_a_refusal_on_a_page_is_recorded_at_its_line(run_page):
    [event] = run_page("\nfigure(None, alt='a', caption='c')", figure=figure)
    assert (event.kind, event.line) == ("failure", 2)


class TestMask:
    def test_a_cell_is_filled_where_the_key_may_be_read(self):
        mask = np.array([[True, False, False], [True, True, False]])
        text = svg(draw_mask(mask))
        assert text.count("fill: var(--ac-accent") == 3
        assert "var(--ac-warn" not in text

    def test_where_it_is_wrong_it_is_marked(self):
        right = np.array([[True, False, False], [True, True, False]])
        wrong = np.array([[True, True, False], [True, False, False]])
        text = svg(draw_mask(wrong, expected=right))
        assert text.count("fill: var(--ac-warn") == 1
        assert text.count("stroke: var(--ac-warn") == 2
        widths = [cell.get_linewidth() for cell in draw_mask(wrong, expected=right).axes[0].patches]
        marked, others = {widths[1], widths[4]}, {widths[n] for n in (0, 2, 3, 5)}
        assert min(marked) > 1.5 * max(others)  # and not by its colour alone

    def test_each_row_and_column_has_its_number_at_its_middle(self):
        figure = draw_mask(np.ones((4, 8), bool))
        [ax] = figure.axes
        assert list(ax.get_yticks()) == [0.5, 1.5, 2.5, 3.5] and list(ax.get_xticks()) == [n + 0.5 for n in range(8)]
        assert [label.get_text() for label in ax.get_yticklabels()] == list("0123")
        assert figure.get_size_inches() == pytest.approx([0.9 + 8 * 0.28, 0.9 + 4 * 0.28])

    def test_every_cell_is_inside_and_the_first_query_on_top(self):
        [ax] = draw_mask(np.ones((4, 8), bool)).axes
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        assert left < 0 and right > 8 and top < 0 and bottom > 4
        assert -left == -top == pytest.approx(right - 8) == pytest.approx(bottom - 4)  # in the middle
        corners = np.array([cell.get_bbox().get_points() for cell in ax.patches])
        np.testing.assert_allclose(corners.mean(axis=1), [(j + 0.5, i + 0.5) for i in range(4) for j in range(8)])

    def test_side_by_side_each_has_room(self):
        """A cell is no smaller beside a second mask than alone, and text of eleven points fits over it."""
        one, two = (draw_masks(dict.fromkeys(names, np.ones((4, 8), bool))) for names in (("a",), ("a", "b")))
        assert two.get_size_inches() == pytest.approx(one.get_size_inches() * [2, 1])
        assert one.get_size_inches() == pytest.approx([0.9 + 8 * 0.28, 1.1 + 4 * 0.28])

    def test_side_by_side_each_has_its_title(self):
        text = svg(draw_masks({"dense": np.ones((2, 2), bool), "causal": np.tri(2, dtype=bool)}))
        assert "dense" in text
        assert "causal" in text

    def test_what_is_expected_has_the_same_shape(self):
        with pytest.raises(ValueError, match=r"the mask's shape \(2, 3\), and it has \(3, 2\)"):
            draw_mask(np.ones((2, 3), bool), expected=np.ones((3, 2), bool))

    @pytest.mark.parametrize("mask", [np.ones((2, 2)), np.ones(3, bool), np.ones((0, 2), bool)])
    def test_what_is_no_mask_is_refused(self, mask):
        with pytest.raises(ValueError, match="truth values"):
            draw_mask(mask)
