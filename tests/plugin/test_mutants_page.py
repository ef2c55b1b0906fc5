"""The Evidence page shows how much of the broken code is noticed, and whether that is about today's code."""

import hashlib
import json
import re

from archcards.plugin.markup import plain_text
from archcards.plugin.mutants import mutants_index

LINKS = {"attention/a.md": ("../attention/a/", "A & B")}


def test_nothing_is_shown_where_nothing_was_measured(tmp_path):
    assert mutants_index(tmp_path, LINKS.get) == ""


def test_scores_by_module_and_chapter(tmp_path):
    code = tmp_path / "src" / "archcards" / "mechanisms" / "masks.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1\n")
    first = {"mutants": 21, "killed": 15, "interval": [0.5, 0.862]}
    score = {"mutants": 20, "killed": 19, "first": first}
    found = score | {
        "of": 12345, "survivors": ["m:1:2: bound: a < b → a <= b"],
        "equivalent": {"m:3:4: constant: 1 → 2": "a seed & no more"}, "rooms": {"mechanisms": score},
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
    assert "Of 12,345 places" in text and "21 were drawn" in text and "drawn and set aside" not in text
    assert "noticed 15 at first: with 95% confidence, 50–86% of all" in text and "19 of 20 are noticed now, without 1 that were found since to change nothing;" in text
    known = found | {"equivalent": found["equivalent"] | {"m:5:6: constant: 2 → 3": "b"}}
    (tmp_path / "results" / "mutants.json").write_text(json.dumps(known))
    assert " 1 more were drawn and set aside" in plain_text(mutants_index(tmp_path, LINKS.get))
    assert re.search("archcards.<wbr>mechanisms</code></th>(.*?)</tr>", drawn)[1] == "".join(
        f'<td class="ac-number">{shown}</td>' for shown in ("15 of 21", "50–86%", "19 of 20")
    )
    assert "<li><code>m:1:2: bound: a &lt; b → a &lt;= b</code></li>" in drawn
    assert "<li><code>m:3:4: constant: 1 → 2</code>: a seed &amp; no more</li>" in drawn
    assert '<a href="../attention/a/">A &amp; B</a></th><td class="ac-number">5 of 7</td>' in drawn
    rows = drawn.replace("<wbr>", "").split("<tr>")
    assert [row.count("as it is now") for row in rows if "mechanisms/masks" in row] == [1]
    assert [row.count("an earlier state") for row in rows if "ledger/gone" in row] == [1]
