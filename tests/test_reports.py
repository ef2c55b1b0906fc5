"""The two reports: their contents, and that they refuse to be printed when something is wrong."""

import json
import subprocess
import sys
from math import log

import numpy as np
import pytest

from archcards import cli, controls, mechanisms, reports
from archcards.checkout import NotACheckout, find_checkout

CARD = {field: f"text of {field}" for field in reports.CARD_FIELDS}
LAB_CHECKS = [
    "causal_prefix_reads", "future_perturbation", "chunk_mask_offset", "online_softmax",
    "online_worked_output", "normalized_kernel_recurrence", "delta_unit_key_overwrite",
    "delta_orthogonal_read", "gated_decay_then_correct", "gated_no_decay_limit",
    "gated_no_write_limit", "kda_affine_form", "kda_noncommuting_counterexample",
    "rope_relative_identity", "rope_joint_shift", "mla_joint_score_and_projection",
    "speculative_distribution",
]  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return reports.cards([CARD])


def test_cards_have_their_keys_in_order(report):
    assert list(report) == [
        "visibility", "kv_cache", "expert_ledger", "scaling_fit", "architecture_cards",
    ]  # fmt: skip
    assert json.loads(json.dumps(report, allow_nan=False)) == report


@pytest.mark.parametrize(
    ("name", "count", "reads"),
    [
        ("dense_causal", 36, lambda query, key: key <= query),
        ("local_causal", 21, lambda query, key: query - 2 <= key <= query),
        ("local_plus_global_bos", 26, lambda query, key: query - 2 <= key <= query or key == 0),
    ],
)
def test_visibility_entry_by_entry(report, name, count, reads):
    visibility = report["visibility"]
    assert list(visibility) == [
        "length", "local_previous_tokens", "dense_causal", "local_causal", "local_plus_global_bos",
    ]  # fmt: skip
    assert (visibility["length"], visibility["local_previous_tokens"]) == (8, 2)
    assert list(visibility[name]) == ["matrix", "edges"]
    expected = [[int(reads(query, key)) for key in range(8)] for query in range(8)]
    assert visibility[name]["matrix"] == expected
    assert all(type(entry) is int for row in visibility[name]["matrix"] for entry in row)
    assert visibility[name]["edges"] == count


def test_cache_records(report):
    assert report["kv_cache"] == [
        {
            "name": name, "query_heads": 8, "kv_heads": heads,
            "shape_per_K_or_V_per_layer": [1, heads, 16, 8], "scalars": scalars,
            "float32_bytes": 4 * scalars,
        }
        for name, heads, scalars in (
            ("MHA", 8, 8192), ("GQA with 2 K/V heads", 2, 2048), ("MQA", 1, 1024),
        )
    ]  # fmt: skip
    assert list(report["kv_cache"][0]) == [
        "name", "query_heads", "kv_heads", "shape_per_K_or_V_per_layer", "scalars", "float32_bytes",
    ]  # fmt: skip


def test_expert_ledger(report):
    ledger = report["expert_ledger"]
    assert list(ledger) == [
        "bias_convention", "dense_mlp_parameters", "top1_moe_total_parameters",
        "top1_active_expert_parameters_per_token", "router_parameters_read_per_token",
        "main_expert_matrix_multiply_entries_per_token", "excluded_from_equal-work_claim",
    ]  # fmt: skip
    assert list(ledger.values())[1:-1] == [76, 320, 76, 16, 64]
    assert len(ledger["excluded_from_equal-work_claim"]) == 5


def test_scaling_fit(report):
    fit = report["scaling_fit"]
    assert list(fit) == [
        "status", "assumed_form", "points", "fitted_alpha", "fitted_A",
        "unvalidated_extrapolation", "warning",
    ]  # fmt: skip
    assert fit["points"] == [{"compute": 1, "loss": 2}, {"compute": 4, "loss": 1.5}]
    assert fit["fitted_alpha"] == pytest.approx(log(4 / 3, 4), rel=1e-15)
    assert fit["fitted_A"] == 2
    assert fit["unvalidated_extrapolation"]["compute"] == 16
    assert fit["unvalidated_extrapolation"]["loss"] == pytest.approx(1.125, rel=1e-15)


def test_a_card_keeps_its_six_fields(report):
    assert report["architecture_cards"] == [CARD]


def test_missing_fields_are_reported_by_card_and_field():
    with pytest.raises(reports.ReportFailed) as failure:
        reports.cards([CARD | {"invariant_core": " "}, {"name": "Second"}])
    assert str(failure.value).split("\n") == [
        "architecture_cards: text of name lacks invariant_core",
        *(f"architecture_cards: Second lacks {field}" for field in reports.CARD_FIELDS[1:]),
    ]


def test_no_card_is_no_report():
    with pytest.raises(reports.ReportFailed, match="there is no card"):
        reports.cards([])


def test_lab_has_its_keys_and_checks_in_order():
    report = reports.lab()
    assert list(report) == ["python", "numpy", "seed", "dtype", "checks"]
    assert (report["seed"], report["dtype"]) == (184, "float64")
    assert list(report["checks"]) == LAB_CHECKS
    for name, check in report["checks"].items():
        if name == "online_worked_output":
            assert check == 3.870665350571926
        elif name == "kda_noncommuting_counterexample":
            assert list(check) == ["max_difference"] and check["max_difference"] > 0.2
        else:
            assert list(check) == ["max_absolute_error", "tolerance"]
            assert 0 <= check["max_absolute_error"] < check["tolerance"] == 1e-11


def test_lab_is_the_same_every_time():
    assert reports.lab() == reports.lab()


def test_draws_come_from_one_generator_in_the_published_order(monkeypatch):
    """The latent experiment sees what a generator gives after all draws before it."""
    rng = np.random.default_rng(184)
    rng.normal(size=(3, 7, 3)), rng.normal(size=(6, 4))
    rng.uniform(0.1, 1.5, size=(2, 9, 4)), rng.normal(size=(9, 3))
    rng.normal(size=(2, 3)), rng.normal(size=(2, 2))
    names = "latent", "up_key", "up_value", "query", "rope_query", "rope_key"
    drawn = dict(zip(names, map(lambda size: rng.normal(size=size),
                                ((8, 3), (4, 3), (5, 3), 4, 2, (8, 2))), strict=True))  # fmt: skip
    seen = []

    def spy(query, rope_query, latent, rope_key, up_key, up_value, **options):
        seen.append((query, rope_query, latent, rope_key, up_key, up_value))
        assert options["scale"] == pytest.approx(6**-0.5, rel=1e-15)
        return mechanisms.latent_read(
            query, rope_query, latent, rope_key, up_key, up_value, **options
        )

    monkeypatch.setattr(reports, "latent_read", spy)
    reports.lab()
    order = "query", "rope_query", "latent", "rope_key", "up_key", "up_value"
    for call in seen:
        for name, array in zip(order, call, strict=True):
            np.testing.assert_array_equal(array, drawn[name])


def off(mechanism, change):
    """The mechanism with its result changed."""
    return lambda *args, **kwargs: change(getattr(mechanisms, mechanism)(*args, **kwargs))


def late_decay(state, key, value, beta, decay):
    decay = np.broadcast_to(decay, np.shape(key))[:, None]
    return decay * mechanisms.delta_write(state, key, value, beta)


def full_write(state, key, value, beta, decay):
    return mechanisms.gated_write(state, key, value, 1.0, decay)


def no_decay(state, key, value, beta, decay):
    return mechanisms.delta_write(state, key, value, beta)


def unabsorbed_rope(*args, form, **options):
    query, rope_query, *rest = args
    if form == "absorbed":
        rope_query = np.zeros_like(rope_query)
    return mechanisms.latent_read(query, rope_query, *rest, form=form, **options)


@pytest.mark.parametrize(
    ("mechanism", "mistake", "failing"),
    [
        ("causal", lambda *args, **kwargs: controls.causal["aligned to the top left"](*args),
         "chunk_mask_offset"),
        ("causal", off("causal", np.ones_like), "causal_prefix_reads"),
        ("causal", off("causal", np.ones_like), "future_perturbation"),
        ("softmax", off("softmax", lambda weights: weights / 2), "online_softmax"),
        ("linear_attention",
         lambda *args, **kw: mechanisms.linear_attention(*args, **(kw | {"normalise": False})),
         "normalized_kernel_recurrence"),
        ("delta_write", off("delta_write", lambda state: state / 2), "delta_unit_key_overwrite"),
        ("delta_write", off("delta_write", lambda state: state / 2), "delta_orthogonal_read"),
        ("gated_write", full_write, "gated_no_decay_limit"),
        ("gated_write", late_decay, "gated_decay_then_correct"),
        ("gated_write", no_decay, "gated_decay_then_correct"),
        ("gated_write", late_decay, "kda_affine_form"),
        ("gated_write", no_decay, "gated_no_write_limit"),
        ("rotate", lambda x, positions, frequencies: mechanisms.rotate(
            x, np.square(positions), frequencies), "rope_joint_shift"),
        ("rotate", lambda x, positions, frequencies: mechanisms.rotate(
            x, np.abs(positions), frequencies) * 1.01, "rope_relative_identity"),
        ("latent_read", unabsorbed_rope, "mla_joint_score_and_projection"),
        ("output_distribution", lambda target, draft: np.minimum(target, draft),
         "speculative_distribution"),
        ("attend", lambda scores, values: mechanisms.attend(
            np.maximum(scores, -1e30), values), "online_softmax: a row masked"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_mechanism_ends_the_lab(monkeypatch, mechanism, mistake, failing):
    monkeypatch.setattr(reports, mechanism, mistake)
    with pytest.raises(reports.ReportFailed) as failure:
        reports.lab()
    assert failing in str(failure.value)


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_an_error_that_is_not_finite_fails(monkeypatch, error):
    monkeypatch.setattr(
        reports, "output_distribution", lambda target, draft: np.full_like(target, error)
    )
    with pytest.raises(reports.ReportFailed, match="speculative_distribution"):
        reports.lab()


def test_a_mask_that_reads_the_future_ends_the_cards(monkeypatch):
    monkeypatch.setattr(reports, "causal", lambda length: np.ones((length, length), bool))
    with pytest.raises(reports.ReportFailed, match="dense_causal lets query 0 read key 1"):
        reports.cards([CARD])


def test_command_prints_two_spaces_of_indent(capsys):
    assert cli.main(["report", "lab"]) == 0
    printed = capsys.readouterr().out
    assert printed == json.dumps(reports.lab(), indent=2) + "\n"


def test_command_prints_no_json_when_a_check_fails(capsys, monkeypatch):
    monkeypatch.setattr(reports, "output_distribution", lambda target, draft: draft)
    assert cli.main(["report", "lab"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("speculative_distribution: ")


@pytest.mark.parametrize(
    "arguments", [[], ["report"], ["report", "other"], ["nothing"], ["report", "lab", "more"]]
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments):
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("archcards: ") and printed.err.count("\n") == 1


def test_elsewhere_is_status_2(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("archcards.checkout.__file__", str(tmp_path / "a/b/c/archcards/checkout.py"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "cards"]) == 2
    assert capsys.readouterr().err.startswith("archcards: this command needs a checkout")
    with pytest.raises(NotACheckout):
        find_checkout()


def test_checkout_is_found_upwards(monkeypatch, tmp_path):
    monkeypatch.setattr("archcards.checkout.__file__", str(tmp_path / "a/b/c/archcards/checkout.py"))
    (tmp_path / "book/docs").mkdir(parents=True)
    (tmp_path / "book/docs/sources.yml").touch()
    (tmp_path / "book/src/archcards").mkdir(parents=True)
    assert find_checkout(tmp_path / "book/docs") == (tmp_path / "book").resolve()


def test_a_closed_pipe_leaves_no_traceback():
    command = subprocess.Popen(
        [sys.executable, "-m", "archcards", "report", "lab"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait() == 1
    command.stderr.close()


PAGE = """---
name: {name}
changed_component: The mask, for {{{{ queries }}}} queries.
invariant_core: The rest.
analytical_consequence: It has {{{{ pairs:,}}}} pairs.
empirical_source_boundary: {boundary}
later_subject: More.
sources: []
---

# {name}

```python exec="true" source="above" session="s" id="{stem}"
from archcards.evidence import fact
queries = fact("queries", 100, given=True)
fact("pairs", queries * (queries + 1) // 2)
```
"""


@pytest.fixture
def book(tmp_path):
    """A small book: the chapters that the report must have, a further one, and a page without card."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/sources.yml").touch()
    (tmp_path / "docs/index.md").write_text("# Welcome\n")
    for path in (*reports.FIRST_CHAPTERS, "docs/attention/another.md"):
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(PAGE.format(name=f"Card of {file.stem}", stem=file.stem, boundary="None."))
    return tmp_path


def test_cards_come_from_the_chapters_with_their_facts(book, monkeypatch):
    monkeypatch.setattr(reports, "find_checkout", lambda: book)
    cards = reports.cards()["architecture_cards"]
    names = "local-windows", "heads-and-cache", "top1", "image-patches", "selective-ssm", "another"
    assert [card["name"] for card in cards] == [f"Card of {name}" for name in names]
    for card in cards:
        assert list(card) == list(reports.CARD_FIELDS)
        assert card["changed_component"] == "The mask, for 100 queries."
        assert card["analytical_consequence"] == "It has 5,050 pairs."


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda text: text.replace("None.", ""), "Card of top1: lacks empirical_source_boundary"),
        (lambda text: text.replace("later_subject: More.\n", ""), "Card of top1: lacks later_subject"),
        (lambda text: text.replace("{{ pairs:,}}", "{{ edges }}"), "Card of top1: the fact edges is not"),
        (lambda text: text.replace("// 2)", "// 0)"), "docs/experts/top1.md:16: "),
        (lambda text: "# No card\n", "docs/experts/top1.md: this chapter has no card"),
        (lambda text: text.replace("name: Card", "name: [Card"), "docs/experts/top1.md:"),
    ],
)
def test_a_faulty_chapter_ends_the_cards(book, monkeypatch, capsys, change, finding):
    file = book / "docs/experts/top1.md"
    file.write_text(change(file.read_text()))
    for path in {*reports.FIRST_CHAPTERS, "docs/attention/another.md"} - {"docs/experts/top1.md"}:
        (book / path).write_text((book / path).read_text().split("\n```")[0].replace("{{", "").replace("}}", ""))
    monkeypatch.setattr(reports, "find_checkout", lambda: book)
    monkeypatch.setattr("archcards.checkout.find_checkout", lambda: book)
    assert cli.main(["report", "cards"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert finding in printed.err


def test_a_missing_chapter_is_named(book, monkeypatch):
    for path in reports.FIRST_CHAPTERS:
        (book / path).unlink()
    monkeypatch.setattr(reports, "find_checkout", lambda: book)
    with pytest.raises(reports.ReportFailed) as failure:
        reports.cards()
    assert str(failure.value).split("\n") == [
        f"{path}: this chapter is missing" for path in reports.FIRST_CHAPTERS
    ]
