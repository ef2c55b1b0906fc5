"""Every bundled model against integers that were counted elsewhere."""

import csv
from pathlib import Path

import pytest

from archcards.ledger import bundled, bundled_names, cache, parameters, read_config
from archcards.ledger.bundled import bundled_config
from archcards.ledger.families import READERS

ROWS = list(csv.DictReader(
    Path(__file__).with_name("expected.tsv").read_text("utf-8").splitlines(), delimiter="\t"))
READ = [row for row in ROWS if row["model_type"] in READERS]
BEYOND_EVERY_LIMIT = 10**9


def number(row, name):
    return int(row[name]) if row[name] else None


def test_the_table_names_the_bundled_models():
    assert {row["model"].replace("__", "/") for row in ROWS} <= set(bundled_names())


@pytest.mark.parametrize("row", READ, ids=lambda row: row["model"])
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
        k: v for k, v in expected.items() if v is not None}
    assert counted.total == counted.text + counted.vision


@pytest.mark.parametrize("row", READ, ids=lambda row: row["model"])
def test_active_conventions(row):
    counted = parameters(bundled(row["model"].replace("__", "/")))
    given, produced = number(row, "input_embedding"), number(row, "output_embedding")
    if given is None or produced is None:
        pytest.skip("no embeddings listed")
    with_both = number(row, "active_with_embeddings") or number(row, "parameters_text")
    assert counted.active.with_embeddings == with_both
    # The table says which are tied only through the config: tied, the one table stays in.
    tied = counted.tied
    assert counted.active.without_input_embedding == with_both - (0 if tied else given)
    assert counted.active.without_embeddings == with_both - produced - (0 if tied else given)


def test_a_mapping_and_a_file_read_the_same(tmp_path):
    import json

    config = bundled_config("gpt-oss-120b")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert read_config(path) == read_config(str(tmp_path)) == read_config(config)
