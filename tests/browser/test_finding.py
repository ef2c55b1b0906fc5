"""Search, indexes and lists: what people look for leads to the section that answers."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

QUERIES = {
    "kv cache size": "attention/heads-and-cache/#the-numbers",
    "GQA": "attention/heads-and-cache/#the-mechanism-in-ten-lines",
    "decode differs from prefill": "attention/chunked-prefill/#what-goes-wrong",
    "sliding window keys": "attention/local-windows/#the-mechanism-in-ten-lines",
    "online softmax merge": "attention/online-softmax/#the-mechanism-in-ten-lines",
    "MLA absorb": "attention/latent-attention/#the-derivation",
    "rope interleaved": "position/rotary/#what-goes-wrong",
    "top-k softmax order": "experts/top1/#what-goes-wrong",
    "active parameters": "accounting/conventions/#three-meanings-of-active",
    "zero-order hold": "recurrence/selective-ssm/#two-discretisations-derived",
    "W_UK": "attention/latent-attention/#the-derivation",
    "norm_topk_prob": "experts/top1/#what-goes-wrong",
    "gibberish after conversion": "position/rotary/#what-goes-wrong",
    "cached_attention": "api/mechanisms/attention/#archcards.mechanisms.cache.cached_attention",
    "Qwen3-8B": "models/qwen3-8b/",
}
FIRST = """(address) => {
  const item = document.querySelector(".md-search-result__item");
  return [...item.querySelectorAll(".md-search-result__link")].map(link => {
    const url = new URL(link.href);
    return (url.origin + url.pathname + url.hash).replace(address, "");
  });
}"""


@pytest.fixture(scope="module")
def search(browser, address):
    """Searches from the home page; the links of the first result, its page's own first."""
    context = browser.new_context()
    page = context.new_page()

    def links(query):
        page.goto(f"{address}?q={quote(query)}")
        page.locator(".md-search-result__item").first.wait_for(state="attached")
        return page.evaluate(FIRST, address)

    yield links
    context.close()


@pytest.mark.parametrize(("query", "section"), QUERIES.items())
def test_the_right_section_comes_first(search, query, section):
    page, *sections = search(query)
    assert page == section.partition("#")[0]
    if "#" in section:
        assert sections[0] == section


EVERY_WORD = """async () => {
  const {search, base} = JSON.parse(document.getElementById("__config").textContent);
  const index = await (await fetch(new URL("search/search_index.json", new URL(base + "/", location.href)))).json();
  const words = new Set(index.docs.flatMap(({title, text}) => `${title} ${text}`.replace(/<[^>]*>/g, " ").toLowerCase().match(/[a-z]{4,}/g) ?? []));
  const worker = new Worker(new URL(search, location.href));
  const ask = (type, data) => new Promise((told) => {
    worker.onmessage = (message) => told(message.data.data);
    worker.postMessage({type, data});
  });
  await ask(0, {...index, options: {}});
  for (const word of words) await ask(2, word);
  worker.terminate();
  return words.size;
}"""


def test_no_word_of_the_site_ends_in_an_error(page, address):
    """The search tells of its errors on the console, where nothing may be said."""
    page.goto(address)
    assert page.evaluate(EVERY_WORD) > 2000


# The search dialog


def test_a_result_leads_to_its_section(page, address):
    page.goto(address)
    page.keyboard.press("/")
    page.locator(".md-search__input").fill("MLA absorb")
    page.locator(".md-search-result__item").first.get_by_role("link").nth(1).click()
    expect(page).to_have_url(re.compile(r"attention/latent-attention/\?h=[^#]*#the-derivation$"))
    expect(page.locator("#the-derivation")).to_be_in_viewport()


def test_nothing_found_is_said(page, address):
    page.goto(f"{address}?q=qqqqqqxy")
    expect(page.locator(".md-search-result__meta")).to_have_text("No matching documents")


def test_no_page_floods_the_results(search):
    for query in ("cache", "attention", "state", "parameters"):
        assert len(search(query)) <= 12, query


# Links between pages


def test_previous_and_next_go_through_the_book(page, address):
    page.goto(f"{address}attention/causal-prefix/")
    page.get_by_role("link", name="Next: ").click()
    expect(page).to_have_url(f"{address}attention/chunked-prefill/")
    page.get_by_role("link", name="Previous: ").click()
    expect(page).to_have_url(f"{address}attention/causal-prefix/")


def test_going_back_and_forth_keeps_formulas_and_widgets_alive(page, address):
    page.goto(f"{address}attention/heads-and-cache/")
    page.evaluate("document.fonts.ready")
    formula = page.locator("math").first.bounding_box()
    page.get_by_role("link", name="Live ledger").first.click()
    page.get_by_label("Model", exact=True).select_option("openai-community/gpt2")
    expect(page.locator(".ac-live pre code")).to_contain_text('"openai-community/gpt2"')
    page.get_by_role("link", name="Masks to try").first.click()
    page.get_by_label("Queries", exact=True).fill("3")
    expect(page.locator(".ac-masks [role=status]")).to_contain_text("pairs of")
    for _ in range(2):
        page.go_back()
    page.wait_for_url("**/heads-and-cache/")
    page.evaluate("document.fonts.ready")
    assert page.locator("math").first.bounding_box() == formula
    page.go_forward()
    page.get_by_label("Model", exact=True).select_option("google/gemma-2b")
    expect(page.locator(".ac-live pre code")).to_contain_text('"google/gemma-2b"')


def test_every_symptom_leads_to_where_its_mistake_is_shown(page, address):
    page.goto(f"{address}symptoms/")
    rows = page.locator("article tbody tr").evaluate_all(
        """rows => rows.map((row) => [row.querySelector("td:last-child a").href,
          [...row.querySelectorAll("td:nth-child(2) code")].map((code) => code.textContent)])"""
    )
    assert len(rows) > 20
    missing = []
    for target, named in sorted(rows):
        if page.url != target:
            page.goto(target)
        text = page.locator("article").text_content()
        mistakes = [name for name in named if not name.isidentifier()]
        if not any(mistake in text for mistake in mistakes):
            missing.append(f"{target.removeprefix(address)} shows none of {mistakes}")
    assert not missing, "\n".join(missing)


# The list of models


@pytest.fixture
def models(page, address):
    page.goto(f"{address}models/")
    return page


def column(page, number):
    """What a column shows of the rows that are shown, from the top."""
    return page.locator(f".ac-models tbody tr:visible > :nth-child({number})").all_inner_texts()


def test_the_list_is_filtered_by_words(models):
    every = column(models, 1)
    assert models.locator(".ac-filter output").inner_text() == f"{len(every)} models"
    models.get_by_label("Filter").fill("WINDOW experts")
    shown = column(models, 1)
    assert 0 < len(shown) < len(every)
    assert models.locator(".ac-filter output").inner_text() == f"{len(shown)} of {len(every)}"
    for made_of in column(models, 10):
        assert "window" in made_of and "experts" in made_of
    models.get_by_label("Filter").fill("no such model")
    assert column(models, 1) == []
    models.get_by_label("Filter").fill("")
    assert column(models, 1) == every


@pytest.mark.parametrize("head", ["parameters", "a token adds", "fixed state"])
def test_the_list_is_sorted_by_numbers(models, head):
    heads = models.locator(".ac-models thead th")
    number = heads.all_inner_texts().index(head) + 1
    values = f".ac-models tbody tr > :nth-child({number})"
    for order, largest_first in (("descending", True), ("ascending", False)):
        models.get_by_role("button", name=head, exact=True).click()
        expect(heads.nth(number - 1)).to_have_attribute("aria-sort", order)
        got = [float(value) for value in models.locator(values).evaluate_all("cells => cells.map(cell => cell.dataset.value)")]
        assert got == sorted(got, reverse=largest_first) and len(set(got)) > 2


def test_the_list_is_sorted_by_name_and_one_column_at_a_time(models):
    models.get_by_role("button", name="parameters", exact=True).click()
    models.get_by_role("button", name="model", exact=True).press("Enter")
    names = [name.lower() for name in column(models, 1)]
    assert names == sorted(names)
    assert models.locator("[aria-sort]").count() == 1


def test_a_filter_holds_while_sorting(models):
    models.get_by_label("Filter").fill("latent")
    before = column(models, 1)
    models.get_by_role("button", name="active", exact=True).click()
    assert sorted(column(models, 1)) == sorted(before)


def test_a_model_is_one_click_from_the_list(models):
    models.get_by_role("link", name="Qwen3-8B", exact=True).click()
    expect(models.get_by_role("heading", level=1)).to_contain_text("Qwen3-8B")


# Comparison and coverage


def test_compared_models_stand_in_step(page, address):
    page.goto(f"{address}models/compare/")
    tables = page.locator(".ac-table")
    pairs = page.locator("article h2 + .ac-table, article h2 + p + .ac-table").count()
    assert tables.count() == 2 * pairs > 0
    for pair in tables.all():
        names = pair.locator("thead a").all_inner_texts()
        assert len(names) == 2 and pair.locator("caption").inner_text().startswith(" and ".join(names))
    for totals in page.locator(".ac-table", has_text="second over first").all():
        for first, second, ratio in totals.locator("tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent.replaceAll(',', '')))"
        ):
            assert f"{int(second) / int(first):.2f}" == ratio


def test_every_bundled_model_is_covered(page, address):
    page.goto(f"{address}models/coverage/")
    covered = set(page.locator(".ac-table").first.get_by_role("link").all_inner_texts())
    page.goto(f"{address}models/")
    assert covered == set(column(page, 1))
