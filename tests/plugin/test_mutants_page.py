"""The Evidence page shows how much of the broken code is noticed, and whether that is about today's code."""

import hashlib
import json

from archcards.plugin.markup import plain_text
from archcards.plugin.mutants import mutants_index

LINKS = {"attention/a.md": ("../attention/a/", "A & B")}


def test_nothing_is_shown_where_nothing_was_measured(tmp_path):
    assert mutants_index(tmp_path, LINKS.get) == ""


def test_scores_by_module_and_chapter(tmp_path):
    code = tmp_path / "src" / "archcards" / "mechanisms" / "masks.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1\n")
    score = {"mutants": 20, "killed": 19, "interval": [0.764, 0.991]}
    found = score | {
        "of": 12345, "first": {"mutants": 21, "killed": 15, "interval": [0.5, 0.862]}, "survivors": [], "equivalent": {"m": "why"},
        "modules": {
            "mechanisms/masks": score | {"digest": hashlib.sha256(b"x = 1\n").hexdigest()},
            "ledger/gone": score | {"digest": "0"},
        },
        "chapters": {"docs/attention/a.md": {"mutants": 7, "killed": 5}},
    }  # fmt: skip
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mutants.json").write_text(json.dumps(found))
    drawn = mutants_index(tmp_path, LINKS.get)
    text = plain_text(drawn)
    assert "Of 12,345 places" in text and "noticed 15 of them at first (50–86 %" in text and "notice 19 since" in text and "; 1 more" in text
    assert '<a href="../attention/a/">A &amp; B</a></th><td>5 of 7</td>' in drawn
    rows = drawn.split("<tr>")
    assert [row.count("as it is now") for row in rows if "mechanisms/masks" in row] == [1]
    assert [row.count("an earlier state") for row in rows if "ledger/gone" in row] == [1]
