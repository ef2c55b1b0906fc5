"""The mutation tester: what it breaks, that it notices what is noticed, and that a survivor survives."""

import ast
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


def test_a_mask_aligned_elsewhere_is_noticed(tmp_path):
    """In a process of its own: it must not have imported what it breaks."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tools")!r})
import mutants
module = "mechanisms/masks"
found = [m for m in mutants.mutants_of(module, (mutants.SOURCE / f"{{module}}.py").read_text()) if m.kind == "bound"]
mutants._load()
test = ["tests/mechanisms/test_masks.py"]
print(mutants.killed_by(found[0], test, [], 120), mutants.killed_by(mutants.Mutant(module, 1, 1, "none", "", "", -1), test, [], 120))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert told.stdout == "{'tests': True, 'chapters': {}} {'tests': False, 'chapters': {}}\n", told.stderr
