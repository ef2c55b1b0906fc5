"""Every bundled model against integers that were counted elsewhere."""

import csv
import json
from pathlib import Path

import pytest

from archcards.ledger import bundled, bundled_names, cache, parameters, read_config
from archcards.ledger.bundled import bundled_config, provenance

ROWS = list(
    csv.DictReader(
        Path(__file__).with_name("expected.tsv").read_text("utf-8").splitlines(), delimiter="\t"
    )
)
BEYOND_EVERY_LIMIT = 10**9


def number(row, name):
    return int(row[name]) if row[name] else None


def test_the_table_names_the_bundled_models():
    assert {row["model"].replace("__", "/") for row in ROWS} <= set(bundled_names())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_counts(row):
    name = row["model"].replace("__", "/")
    architecture = bundled(name)
    counted = parameters(architecture)
    short, long = cache(architecture, 1), cache(architecture, BEYOND_EVERY_LIMIT)
    limits = {term.limit for term in short.terms} - {None}
    found = {
        "parameters_text": counted.text,
        "parameters_vision": counted.vision,
        "active_with_embeddings": counted.active.with_embeddings,
        "input_embedding": counted.input_embedding,
        "output_embedding": counted.output_embedding,
        "scalars_per_token": short.scalars_per_token,
        "scalars_per_token_beyond_limit": long.scalars_per_token_beyond,
        "limit": limits.pop() if limits else None,
        "fixed_scalars": long.fixed_scalars,
    }
    expected = {column: number(row, column) for column in found}
    assert {k: found[k] for k, v in expected.items() if v is not None} == {
        k: v for k, v in expected.items() if v is not None
    }
    assert counted.total == counted.text + counted.vision


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_active_conventions(row):
    counted = parameters(bundled(row["model"].replace("__", "/")))
    # BERT's body has a token table and no head; a ViT has neither.
    given, produced = number(row, "input_embedding") or 0, number(row, "output_embedding") or 0
    with_both = number(row, "active_with_embeddings") or number(row, "parameters_text")
    assert counted.active.with_embeddings == with_both
    # The table says which are tied only through the config: tied, the one table stays in.
    tied = counted.tied
    assert counted.active.without_input_embedding == with_both - (0 if tied else given)
    assert counted.active.without_embeddings == with_both - produced - (0 if tied else given)


# Cells that the table leaves blank, and how they follow.
DERIVED = {
    # Windows of 512 in 43 layers; per 4 tokens 512 + 128 in 21 layers; per 128 tokens 512 in 20.
    "deepseek-ai__DeepSeek-V4-Flash": {
        "scalars_per_token": 43 * 512 + 21 * 640 // 4 + 20 * 512 // 128,
        "scalars_per_token_beyond_limit": 21 * 640 // 4 + 20 * 512 // 128,
        "limit": 128,
        "fixed_scalars": 0,
    },
    # Encoders decode nothing, so nothing is cached; a bare body has no output table.
    "google-bert__bert-base-uncased": {
        "scalars_per_token": 0,
        "fixed_scalars": 0,
        "output_embedding": 0,
    },
    "google__vit-base-patch16-224": {
        "scalars_per_token": 0,
        "fixed_scalars": 0,
        "input_embedding": 0,
        "output_embedding": 0,
    },
    "google__vit-huge-patch14-224": {
        "scalars_per_token": 0,
        "fixed_scalars": 0,
        "input_embedding": 0,
        "output_embedding": 0,
    },
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_blank_cells(row):
    architecture = bundled(row["model"].replace("__", "/"))
    counted, kept = parameters(architecture), cache(architecture, 1)
    blank = {name for name, value in row.items() if not value} - {"note"}
    derived = DERIVED.get(row["model"], {})
    found = {
        "scalars_per_token": kept.scalars_per_token,
        "scalars_per_token_beyond_limit": kept.scalars_per_token_beyond,
        "limit": max((term.limit for term in kept.terms if term.limit), default=None),
        "fixed_scalars": kept.fixed_scalars,
        "input_embedding": counted.input_embedding,
        "output_embedding": counted.output_embedding,
    }
    assert set(derived) <= blank
    for name, value in derived.items():
        assert found[name] == value
    if "active_with_embeddings" in blank:
        # Dense: a token meets every parameter of the text model.
        assert counted.active.with_embeddings == counted.text
    if "limit" in blank and "limit" not in derived:
        # No limit, and so no other growth beyond it.
        assert found["limit"] is None
        assert kept.scalars_per_token_beyond == kept.scalars_per_token


def test_a_mapping_and_a_file_read_the_same(tmp_path):
    config = bundled_config("gpt-oss-120b")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert read_config(path) == read_config(str(tmp_path)) == read_config(config)


# What the transformers library (5.24) gives each configuration class where nothing is said, without
# fields of training and sampling.
DEFAULTS = json.loads(Path(__file__).with_name("library_defaults.json").read_text("utf-8"))


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_agrees_with_the_librarys_defaults_says_so(name):
    ours, theirs = bundled(name), read_config(DEFAULTS[name]["config"])
    # The defaults name no prediction module; those of the bundled files stand beside the total.
    assert parameters(ours)._replace(multi_token_prediction=0) == parameters(theirs)._replace(
        multi_token_prediction=0
    )
    for context in (1, 10_000, 10**6):
        assert cache(ours, context) == cache(theirs, context)
    assert DEFAULTS[name]["class"] in provenance(name)["agrees with"]


@pytest.mark.parametrize("name", bundled_names())
def test_every_model_says_where_its_fields_come_from(name):
    known = provenance(name)
    assert known["repository"] == f"https://huggingface.co/{name}"
    assert ("defaults of" in known.get("agrees with", "")) == (name in DEFAULTS)
