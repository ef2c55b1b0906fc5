"""The masks to try are the library's own, cell by cell and by number."""

import numpy as np
import pytest

from archcards.mechanisms import causal, chunked_causal, sliding_window, with_global, with_sinks

CASES = [
    (8, 0, "window", 3, 0, []),
    (8, 0, "window", 3, 2, [4]),
    (5, 3, "window", 6, 0, []),
    (5, 9, "window", 4, 1, [0]),
    (6, 0, "all", 1, 0, []),
    (6, 4, "all", 1, 0, []),
    (11, 0, "chunks", 4, 0, []),
    (7, 5, "chunks", 4, 2, [6]),
    (9, 4, "window", 2, 0, [1, 7, 12]),
    (1, 0, "chunks", 1, 0, []),
    (4, 2, "window", 48, 0, []),
]


@pytest.mark.parametrize(("queries", "before", "reach", "size", "sinks", "tokens"), CASES)
def test_a_mask_is_the_library_s(page, address, queries, before, reach, size, sinks, tokens):
    keys = queries + before
    mask = {
        "all": lambda: causal(queries, keys),
        "window": lambda: sliding_window(queries, keys, window=size),
        "chunks": lambda: chunked_causal(queries, keys, chunk=size),
    }[reach]()
    plain = int(mask.sum())
    mask = with_sinks(mask, sinks)
    if tokens:
        mask = with_global(mask, tokens)

    page.goto(f"{address}attention/masks/")
    page.get_by_label("Queries", exact=True).fill(str(queries))
    page.get_by_label("Keys before").fill(str(before))
    page.get_by_label("Each query reads").select_option(reach)
    if reach != "all":
        page.get_by_label("Window or chunk").fill(str(size))
    page.get_by_label("Sinks").fill(str(sinks))
    page.get_by_label("Global tokens").fill(", ".join(map(str, tokens)))

    cells = page.locator(".ac-masks rect").evaluate_all(
        "all => all.map(cell => cell.getAttribute('class') !== 'ac-masks__hidden')"
    )
    assert np.array_equal(np.array(cells).reshape(queries, keys), mask)
    said = page.locator(".ac-masks [role=status]").inner_text()
    assert said.startswith(f"{int(mask.sum())} pairs of {queries * keys}: ")
    formula, _, rest = said.partition(": ")[2].partition(" = ")
    assert int(rest.replace(".", " ").split()[0]) == plain
    python = formula.replace("·", "*").replace("−", "-").replace("⌊", "int(").replace("⌋", ")")
    assert eval(python, {"__builtins__": {}, "int": int}) == plain


def test_what_is_wrong_is_refused_beside_its_field(page, address):
    page.goto(f"{address}attention/masks/")
    queries, tokens = page.get_by_label("Queries", exact=True), page.get_by_label("Global tokens")
    errors = page.locator(".ac-live__error")
    queries.fill("99")
    assert "".join(errors.all_inner_texts()) == "queries: expected a whole number from 1 to 24"
    queries.fill("8")
    for given, came in (("0, 8", "8"), ("-1", "-1"), ("2 first", "first")):
        tokens.fill(given)
        assert "".join(errors.all_inner_texts()) == f"tokens: expected positions from 0 to 7, came {came}"
    assert tokens.get_attribute("aria-invalid") == "true" and queries.get_attribute("aria-invalid") is None
    tokens.fill("7 0")
    assert "".join(errors.all_inner_texts()) == ""
