"""The mutation tester: what it breaks, that it notices what is noticed, and that a survivor survives."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutants():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import mutants

        return mutants
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize(
    ("code", "kind", "after"),
    [
        ("if a < b: pass", "bound", "a <= b"),
        ("if a < b: pass", "comparison", "a >= b"),
        ("x = a + b", "dropped term", "a"),
        ("x = a @ b", "swapped operands", "b @ a"),
        ("x = a[1:]", "constant", "2"),
        ("x = np.sum(a, axis=-1)", "constant", "2"),
        ("x = a.T @ b", "transpose", "a"),
        ("x = np.swapaxes(a, 0, 1)", "transpose", "a"),
        ("x = f(a, b)", "swapped arguments", "f(b, a)"),
        ("s = s * g\no = q @ s", "order", "o = q @ s"),
        ("s += k", "dropped update", "pass"),
        ("def f():\n    raise ValueError('a' + 'b')", "refusal", "pass"),
        ("x = -a", "dropped sign", "a"),
        ("x = np.tril(a)", "function", "np.triu(a)"),
    ],
)
def test_what_is_broken(mutants, code, kind, after):
    assert (kind, after) in [(mutant.kind, mutant.after) for mutant in mutants.mutants_of("m", code)]


def test_each_mutant_changes_the_code_and_nothing_that_only_tells_of_it(mutants):
    code = '__all__ = ["f"]\ndef f(a: int = 3) -> "a < b":\n    """1 + 1"""\n    raise ValueError(f"{a + 1}" + str(1 + 1))\n'
    found = mutants.mutants_of("m", code)
    assert [(mutant.line, mutant.kind, mutant.after) for mutant in found] == [(4, "refusal", "pass"), (2, "constant", "4")]
    for mutant in found:
        assert ast.unparse(mutants.mutated(code, mutant.number)) != ast.unparse(ast.parse(code))


def test_a_sample_has_something_of_each_module_and_is_drawn_with_a_seed(mutants):
    modules = {"a": mutants.mutants_of("a", "x = 1\n" * 50), "b": mutants.mutants_of("b", "x = 1")}
    drawn = mutants.sample(modules, 10, seed=3)
    assert len(drawn) == 11 and {mutant.module for mutant in drawn} == {"a", "b"}
    assert drawn == mutants.sample(modules, 10, seed=3) != mutants.sample(modules, 10, seed=4)


def in_a_process_of_its_own(code):
    """What it prints: it must not have imported what is broken."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import executed, forks, mutants; forks.load()\n{code}"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_a_mask_aligned_elsewhere_is_noticed_and_no_change_is_not():
    test = "tests/mechanisms/test_masks.py::test_one_decoding_step_reads_everything"
    page = "docs/attention/causal-prefix.md"
    told = in_a_process_of_its_own(f"""
module = "mechanisms/masks"
found = [m for m in mutants.mutants_of(module, (mutants.SOURCE / f"{{module}}.py").read_text()) if m.kind == "bound"]
for mutant in (found[0], mutants.Mutant(module, 1, 1, "none", "", "", -1)):
    noticed = mutants.killed_by(mutant, [[{test!r}]], [{page!r}], {{{page!r}: 2.0}})
    print(noticed.test, noticed.chapters, bool(noticed))
""")
    assert told.splitlines() == [f"{test} {{{page!r}: True}} True", f" {{{page!r}: False}} False"]


def test_a_broken_plugin_of_pytest_is_noticed():
    """Pytest reads its plugins by itself where it rewrites their asserts."""
    test = "tests/runner/test_command.py::test_each_check_is_a_pytest_item"
    told = in_a_process_of_its_own(f"""
found = mutants.mutants_of("evidence/testing", (mutants.SOURCE / "evidence/testing.py").read_text())
[mutant] = [m for m in found if m.kind == "comparison" and m.before == "file_path.suffix == '.md'"]
print(mutants.killed_by(mutant, [[{test!r}]], [], {{}}).test)
""")
    assert told.strip() == test


def test_what_dies_or_never_ends_is_noticed():
    told = in_a_process_of_its_own("""
import os, time
print(forks.forked(lambda: os.kill(os.getpid(), 9), 60)[0], forks.forked(lambda: 1 / 0, 60)[0])
def forever():
    while True:
        pass
print(forks.forked(forever, 1)[0], forks.forked(lambda: ["fine"], 60)[0])
""")
    assert told == "None None\nNone ['fine']\n"


def test_who_executes_a_line_and_what_a_started_process_executes(mutants):
    """The command of a test runs in a process that the test starts; what only import runs is everybody's."""
    told = in_a_process_of_its_own("""
import json
from pathlib import Path
found, _ = forks.forked(lambda: executed._recorded_tests(executed.ROOT / "tests/runner/test_quote.py"), 300)
print(json.dumps({"worker": sorted(found["lines"]["evidence/worker"].items())[-1][1], "failing": found["failing"]}))
""")
    told = json.loads(told)
    assert told["failing"] == []
    assert all(name.startswith("tests/runner/test_quote.py::") for name in told["worker"]) and told["worker"]


def test_the_statement_of_a_line(tmp_path, monkeypatch, mutants):
    import executed

    (tmp_path / "m.py").write_text("X = (\n    1\n)\n\n\ndef f(\n    a=2,\n):\n    if a > (\n        3\n    ):\n        return 4\n")
    monkeypatch.setattr(executed, "SOURCE", tmp_path)
    monkeypatch.setattr(executed, "_known", {})
    assert [executed.statement("m", line) for line in (2, 7, 10, 12)] == [
        (1, 3, True), (6, 8, True), (9, 11, False), (12, 12, False),
    ]  # fmt: skip


def test_the_report_counts_by_room_module_and_chapter_and_corrects_itself(mutants):
    noticed, missed = (mutants.Noticed(test, {"docs/a/b.md": bool(test)}, True) for test in ("t", ""))
    unread = mutants.Noticed("", {}, False)
    one, two, three = (
        mutants.Mutant("mechanisms/masks", line, 1, "bound", "a < b", "a <= b", line) for line in (1, 2, 3)
    )
    report = mutants.summary([(one, noticed), (two, missed), (three, unread)], 99, 7, {})
    assert (report["killed"], report["mutants"], report["first"]["killed"]) == (1, 3, 1)
    assert report["rooms"]["mechanisms"]["mutants"] == 3 and report["modules"]["mechanisms/masks"]["killed"] == 1 and report["rooms"]["ledger"]["mutants"] == 0
    assert report["chapters"] == {"docs/a/b.md": {"mutants": 2, "killed": 1}}
    assert report["survivors"] == [two.name, three.name] and report["not_executed"] == [three.name]
    later = mutants._corrected(report, [(two, noticed)], {three.name: "a seed"})
    assert (later["killed"], later["mutants"], later["first"]["killed"]) == (2, 2, 1)
    room = later["rooms"]["mechanisms"]
    assert (room["killed"], room["mutants"]) == (2, 2) and room["first"]["mutants"] == 3
    assert later["survivors"] == later["not_executed"] == []
    assert later["equivalent"] == {three.name: "a seed"}


def test_what_changes_nothing_is_known_by_its_line_and_every_entry_still_fits(mutants):
    listed = json.loads(mutants.EQUIVALENT.read_text("utf-8"))
    modules = {key.split(":")[0] for key in listed}
    found = [m for name in modules for m in mutants.mutants_of(name, (mutants.SOURCE / f"{name}.py").read_text("utf-8"))]
    assert len(mutants.equivalents(found)) >= len(listed)
    assert set(mutants.equivalents(found).values()) == set(listed.values())
