"""Search: what people type leads to the section that answers."""

from urllib.parse import quote

import pytest

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
