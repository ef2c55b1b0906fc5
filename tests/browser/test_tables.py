"""Tables and figures: what is cut says so, numbers can be compared, each has an address, text can be read."""

import io
import re

import pytest
from matplotlib.image import imread

PHONE = {"width": 390, "height": 844}
PUBLISHED = ["accounting/published-tables/", "accounting/published-training/"]
FIGURES = [
    "accounting/cache/",
    "accounting/flops/",
    "accounting/parameters/",
    "attention/local-windows/",
    "attention/online-softmax/",
    "beyond/scaling-fits/",
    "recurrence/kimi-delta/",
]


# What is cut


def edge(page, region):
    """How much darker or lighter than the page the right edge of a region is, without what it holds."""
    box = region.bounding_box()
    middle = {"x": box["x"] + box["width"] - 4, "y": box["y"] + box["height"] / 2, "width": 3, "height": 20}
    shot = imread(io.BytesIO(page.screenshot(clip=middle)))[..., :3]
    paper = imread(io.BytesIO(page.screenshot(clip={"x": 1, "y": middle["y"], "width": 3, "height": 20})))[..., :3]
    return abs(shot.mean() - paper.mean())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("place", "where"),
    [("models/", ".ac-models"), ("models/compare/", ".ac-table >> nth=0"), ("accounting/cache/", ".ac-drawing >> nth=0")],
)
def test_an_edge_that_cuts_is_shaded_until_it_is_reached(new_page, address, place, where, scheme):
    page, wrong = new_page(viewport=PHONE, color_scheme=scheme)
    page.goto(address + place)
    region = page.locator(where)
    region.scroll_into_view_if_needed()
    assert region.evaluate("e => e.scrollWidth > e.clientWidth + 40")
    # Only the region's own ground is looked at.
    region.evaluate("e => [...e.children].forEach(child => (child.style.opacity = 0))")
    assert edge(page, region) > 0.04
    region.evaluate("e => (e.scrollLeft = e.scrollWidth)")
    assert edge(page, region) < 0.01
    page.context.close()
    assert not wrong


def test_an_edge_that_cuts_a_few_pixels_is_shaded(page, address):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}models/compare/")
    region = page.locator(".ac-table").first
    region.evaluate("e => (e.firstElementChild.style.minWidth = `${e.clientWidth + 6}px`)")
    assert region.evaluate("e => e.scrollWidth - e.clientWidth") == 6
    region.evaluate("e => [...e.children].forEach(child => (child.style.opacity = 0))")
    assert edge(page, region) > 0.04


def test_a_table_that_fits_is_not_shaded(page, address):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}models/compare/")
    region = page.locator(".ac-table").first
    assert region.evaluate("e => e.scrollWidth <= e.clientWidth")
    region.evaluate("e => [...e.children].forEach(child => (child.style.opacity = 0))")
    assert edge(page, region) < 0.01


@pytest.mark.parametrize("place", ["models/", "models/compare/", *PUBLISHED])
def test_what_a_row_is_about_stays_in_sight(page, address, place):
    page.set_viewport_size(PHONE)
    page.goto(address + place)
    found = page.evaluate("""() => [...document.querySelectorAll(".ac-table")]
      .filter(region => region.scrollWidth > region.clientWidth + 40)
      .map(region => {
        region.scrollLeft = region.scrollWidth;
        const name = region.querySelector("tbody th[scope=row]").getBoundingClientRect();
        return [name.left - region.getBoundingClientRect().left, name.width / region.clientWidth];
      })""")
    assert found or place in PUBLISHED
    for left, share in found:
        assert abs(left) < 1 and share < 0.6


# The list of models


def test_the_list_of_models_is_whole_on_a_screen(page, address):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}models/")
    assert page.locator(".ac-models").evaluate("e => [e.scrollWidth, e.clientWidth]")[0] <= 1280 - 260
    assert page.locator(".ac-models").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_headings_that_sort_show_it_without_a_pointer(page, address):
    page.goto(f"{address}models/")
    page.locator(".ac-models thead button").first.wait_for()
    arrows = """heads => heads.map(head => getComputedStyle(head, "::after").content.slice(0, 2).replaceAll('"', ""))"""
    heads = page.locator(".ac-models thead th")
    assert heads.evaluate_all(arrows) == ["↑"] + ["↕"] * (heads.count() - 1)
    assert heads.first.get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="parameters", exact=True).press("Enter")
    assert heads.evaluate_all(arrows) == ["↕", "↓"] + ["↕"] * (heads.count() - 2)
    assert page.locator("[aria-sort]").count() == 1


# Published tables


@pytest.mark.parametrize("place", PUBLISHED)
def test_printed_numbers_stand_beside_the_computed_ones(page, address, place):
    page.goto(address + place)
    tables = page.locator(".ac-table", has=page.locator("thead th", has_text="to the digits printed"))
    assert tables.count() > 3
    for one in tables.all():
        looks = one.locator("tbody td").evaluate_all("cells => cells.map(e => [e.className, getComputedStyle(e).textAlign])")
        for name, aligned in looks:
            assert aligned in ("right", "end") if name == "ac-number" else name in ("ac-same", "ac-other")
        units = [head for head in one.locator("thead th").all_inner_texts() if "printed," in head or "computed," in head]
        assert all(re.search(r", \S", head) for head in units)
        decimals = {len(cell.partition(".")[2]) for cell in one.locator("tbody td:nth-child(3)").all_inner_texts()}
        assert len(decimals) == 1
    for name in page.locator(".ac-table tbody th[scope=row]").all_inner_texts():
        assert "_" not in name and name != name.lower() or " " in name, name


def test_what_differs_is_told_by_more_than_its_colour(page, address):
    page.goto(address + PUBLISHED[0])
    look = "e => [getComputedStyle(e, '::before').content.slice(0, 3), getComputedStyle(e).fontWeight]"
    same, other = (page.locator(f"td.ac-{kind}").first.evaluate(look) for kind in ("same", "other"))
    assert same == ['"="', "400"] and other == ['"≠"', "600"]
    assert {cell.inner_text() for cell in page.locator("td.ac-other").all()} == {"not equal"}


# Addresses


def test_every_table_and_figure_has_an_address(site):
    for path in site.rglob("*.html"):
        page = path.read_text("utf-8")
        ids = re.findall(r'\bid="([^"]+)"', page)
        for opening in re.findall(r'<(?:div|figure|fieldset) class="ac-(?:table|figure|stack|derivation|switch)\b[^>]*>', page):
            found = re.search(r' id="([^"]+)"', opening)
            assert found, f"{path}: {opening[:200]}"
            assert ids.count(found[1]) == 1, f"{path}: {found[1]}"


def test_a_models_tables_and_stack_are_cited_from_the_end_of_its_page(page, address):
    page.goto(f"{address}models/t5-small/", wait_until="networkidle")
    assert page.locator(".ac-cite").count() == 0
    page.locator(".ac-sources input").press("Space")
    page.locator(".ac-stack .ac-cite").first.wait_for()
    pieces = page.locator("article :is(.ac-stack, .ac-table)")
    assert page.locator(".ac-cite").count() == pieces.count() >= 5
    page.locator("#figure-encoder .ac-cite").click()
    assert "“Encoder”, in “t5-small”" in page.locator("dialog p").first.inner_text()


def test_symptoms_and_checks_lead_to_controls(page, address):
    page.goto(f"{address}symptoms/")
    link = page.get_by_role("link", name="aligned to the top left").first
    link.click()
    row = page.locator("tr:target")
    assert row.locator("th").inner_text() == "aligned to the top left"
    page.goto(f"{address}attention/chunked-prefill/")
    links = page.locator(".ac-seen a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any(href.endswith("#control-causal-aligned-to-the-top-left") for href in links)


# The list of tags


def test_tags_are_in_the_order_of_a_dictionary(page, address):
    page.goto(f"{address}tags/")
    for names in page.evaluate("""() => [...document.querySelectorAll("article ul:has(> li > h2 > .md-tag)")]
      .map(list => [...list.querySelectorAll(":scope > li > h2 > .md-tag")].map(tag => tag.textContent.trim()))"""):
        assert names == sorted(names, key=str.casefold)
    lists = page.evaluate("""() => [...document.querySelectorAll("article li > h2:has(> .md-tag) + ul")]
      .map(list => [...list.querySelectorAll("a")].map(link => link.textContent.trim()))""")
    assert max(map(len, lists)) > 5
    for titles in lists:
        assert titles == sorted(titles, key=str.casefold)


# Formulas and figures


@pytest.mark.parametrize("name", ["attention", "beyond", "layers", "position", "recurrence"])
def test_formulas_of_the_reference_fit(page, address, name):
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}api/mechanisms/{name}/")
    cut = """all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""
    assert page.locator(".ac-math").evaluate_all(cut) == []


TEXTS = """async () => {
  const rgb = (colour) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => {
    const [r, g, b] = rgb(colour).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const paper = light(getComputedStyle(document.body).getPropertyValue("--ac-paper"));
  return [...document.querySelectorAll(".ac-drawing svg text")].filter((text) => text.textContent.trim()).map((text) => {
    const style = getComputedStyle(text), { a, b } = text.getScreenCTM(), ink = light(style.fill);
    const ratio = ink > paper ? ink / paper : paper / ink;
    // A formula's indices are smaller; the largest of its pieces is as large as other text.
    const sizes = [text, ...text.querySelectorAll("tspan")].map((piece) => parseFloat(getComputedStyle(piece).fontSize));
    return [text.textContent, Math.max(...sizes) * Math.hypot(a, b), ratio];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("place", FIGURES)
def test_text_in_figures_can_be_read(new_page, address, place, width, scheme):
    page, wrong = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address + place)
    found = page.evaluate(TEXTS)
    assert found
    for text, size, contrast in found:
        assert size > 11.5, f"{text} is {size:.1f} pixels high"
        assert contrast >= 4.5, f"{text} has a contrast of {contrast:.1f}"
    page.context.close()
    assert not wrong
