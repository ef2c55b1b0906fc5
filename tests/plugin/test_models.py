"""The pages about real models: made from their configurations, faithful to the ledger, refused with it."""

import csv
import re
from pathlib import Path

import pytest

from archcards.evidence.sources import Quote, Source
from archcards.ledger import (
    UnsupportedConfig,
    bundled,
    bundled_config,
    bundled_names,
    read_config,
)
from archcards.ledger.families import READERS
from archcards.plugin import accounts
from archcards.plugin.markup import plain_text, tokens
from archcards.plugin import coverage
from archcards.plugin.models import Models, placeholders
from archcards.plugin.stacks import drawing, runs_in_words

EXPECTED = Path(__file__).parents[1] / "ledger" / "expected.tsv"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp("docs"), {})


def link(src_uri):
    return f"../{src_uri.removesuffix('.md')}/", src_uri


def test_every_bundled_model_has_a_page_and_a_row(models):
    pages = models.pages()
    assert len(pages) == len(bundled_names())
    listed = models.fill("models", "", link)
    assert listed.count("<tr") == len(bundled_names()) + 1
    for page in pages:
        assert f'href="../{page.removesuffix(".md")}/"' in listed
    names = [model.short for model in models.listed()]
    assert names.index("bert-base-uncased") < names.index("DeepSeek-V3") < names.index("gpt2") < names.index("Jamba-v0.1")
    places = [listed.index(f">{name}<") for name in names]
    assert places == sorted(places)


def test_cards_show_the_counts_of_the_public_framework(models):
    with EXPECTED.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t")]
    assert rows
    for row in rows:
        name = row["model"].replace("__", "/")
        total = int(row["parameters_text"]) + int(row["parameters_vision"] or 0)
        assert f"{total:,}" in plain_text(models.fill("model-parameters", name, link)), name
        if row["scalars_per_token"]:
            assert f"{int(row['scalars_per_token']):,}" in plain_text(models.fill("model-glance", name, link)), name


@pytest.mark.parametrize("name", bundled_names())
def test_shown_workings_give_the_shown_numbers(name):
    """Evaluates the formulas as a reader would, with none of the ledger's code."""
    architecture = bundled(name)

    def value(working, context):
        python = re.sub(r"⌊(.+?) / ([\d,]+)⌋", r"(\1 // \2)", working)
        python = re.sub(r"layers?", "", python).replace("×", "*").replace("−", "-")
        python = re.sub(r"(?<=\d),(?=\d{3})", "", python)
        return eval(python, {"__builtins__": {}, "min": min, "T": context, "S": context})

    for context in (1, 100, 8192):
        for line in accounts.cache_lines(architecture, [context]):
            assert value(line.working, context) == line.scalars[0], line
        if architecture.image is None:
            for line in accounts.work_lines(architecture, context):
                assert value(line.working, context) == line.flops, line


def test_a_stack_is_drawn_with_a_column_a_layer_and_told_in_words():
    layers = bundled("gemma-3-1b-it").layers
    drawn = drawing(layers, "The stack")
    widest = max(float(token.attributes["x"]) for token in tokens(drawn) if token.name == "rect" and token.kind == "open")
    assert len(layers) - 1 < widest < len(layers)
    assert "4 times 5 of attention to a window" in drawn and 'role="img"' in drawn
    assert drawn.startswith('<figure class="ac-stack" id="figure-the-stack" data-says="The stack">')
    told = plain_text(runs_in_words(layers))
    assert told.startswith("Layers 1 to 24, 4 times in a row: 5 layers") and "Layers 25 to 26" in told


def test_what_two_layers_have_alike_is_marked(models):
    compared = models.fill("compare", "deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-V3.2", link)
    assert '<span class="ac-shared">8 of 256 experts + shared</span>' in compared
    assert '<span class="ac-shared">latent attention' not in compared
    assert "2048 chosen" in compared


def test_no_line_of_a_table_ends_beside_a_sign(models):
    compared = models.fill("compare", "google/gemma-2b google/gemma-2-2b", link)
    assert "attention 8/1\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}256" in compared and " × " not in compared
    cached = models.fill("model-cache", "Qwen/Qwen3-Next-80B-A3B-Instruct", link)
    assert "(4\N{NO-BREAK SPACE}−\N{NO-BREAK SPACE}1)" in cached and " − " not in cached


def test_coverage_lists_every_family_and_what_each_refuses(models):
    listed = models.fill("coverage", "", link)
    assert listed.count("<tr") == len(READERS) + 1
    assert "Mixtral-8x7B-v0.1</a>" in listed
    refused = plain_text(models.fill("refusals", "", link))
    assert "is_encoder_decoder" in refused and "model_type" not in refused
    assert "block_norm_epsany number" in refused and " for v in " not in refused
    besides = plain_text(models.fill("conditions", "", link))
    assert "head_dimthe heads' share of hidden_sizedecoder" in besides
    with pytest.raises(UnsupportedConfig, match="head_dim: expected the heads' share of hidden_size"):
        read_config(
            {"model_type": "helium", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4,
             "head_dim": 32, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 10}
        )  # fmt: skip
    with pytest.raises(UnsupportedConfig, match="is_encoder_decoder"):
        read_config(bundled_config("t5-small") | {"is_encoder_decoder": False})


def test_a_family_that_is_listed_as_unread_is_refused_by_its_type(models, monkeypatch):
    listed = plain_text(models.fill("unread", "", link))
    for name in coverage.UNREAD:
        assert name in listed
        with pytest.raises(UnsupportedConfig, match="model_type: expected a family"):
            read_config({"model_type": name})
    monkeypatch.setitem(coverage.UNREAD, "llama", "nothing")
    with pytest.raises(ValueError, match="read by the ledger, and listed as not: llama"):
        models.fill("unread", "", link)


def published(tmp_path, text):
    quote = Quote("card", "active", "5.13", "Table 1", "B", 1)
    source = Source("card", "A card", "Somebody", "2025", "https://example.org/", "seen", 1, {"active": quote})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "published.yml").write_text(text, encoding="utf-8")
    return Models(tmp_path, {"card": source})


def test_a_published_figure_stands_beside_the_computed_one(tmp_path):
    found = published(
        tmp_path,
        "openai/gpt-oss-120b:\n"
        "  - {quote: card.active, quantity: active.without_input_embedding, scale: B}\n"
        "  - {quote: card.active, quantity: total, scale: B, note: another quantity}\n",
    )
    assert "Published figures" in found.pages()["models/gpt-oss-120b.md"] and not found.faults
    shown = plain_text(found.fill("model-published", "openai/gpt-oss-120b", link))
    assert "5,132,849,472" in shown and "active, without the input tableequal" in shown
    assert "not equalanother quantity" in shown


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{quote: card.active, quantity: total, scale: B}", "differs and nothing says why"),
        ("{quote: card.other, quantity: total}", "KeyError"),
        ("{quote: card.active, quantity: nothing}", "AttributeError"),
    ],
)
def test_a_published_figure_that_differs_needs_a_reason(tmp_path, entry, reason):
    found = published(tmp_path, f"openai/gpt-oss-120b:\n  - {entry}\n")
    found.pages()
    assert len(found.faults) == 1 and found.faults[0][0] == 2 and reason in found.faults[0][1]


def test_a_figure_of_a_model_that_is_not_bundled_is_a_fault(tmp_path):
    found = published(tmp_path, "nobody/nothing:\n  - {quote: card.active, quantity: total}\n")
    found.pages()
    assert found.faults == [(1, "nobody/nothing is no bundled model")]


def test_only_places_of_known_kinds_are_filled():
    page = '<p>a</p><div data-ac="models"></div><div data-ac="other" data-of="x y"></div>'
    made = placeholders(page, lambda what, of: f"[{what}|{of}]" if what == "other" else None)
    assert made == '<p>a</p><div data-ac="models"></div>[other|x y]'
