"""What is wrong with a book is told once, in the order of its lines."""

from archcards.evidence.problem import Problem


def test_the_same_reason_at_the_same_place_is_one_problem():
    found = {
        Problem("docs/b.md", 2, "no", source="x = 1", detail="Traceback"),
        Problem("docs/b.md", 2, "no", source="x = 2"),
        Problem("docs/b.md", 2, "no", detail="another"),
    }
    assert [str(problem) for problem in found] == ["docs/b.md:2: no"]


def test_the_order_is_that_of_files_lines_and_reasons():
    told = ["docs/a.md:10: a", "docs/a.md:10: b", "docs/b.md:2: a", "docs/b.md:10: a"]
    problems = [
        Problem("docs/b.md", 10, "a", source="1"), Problem("docs/b.md", 2, "a", source="9"),
        Problem("docs/a.md", 10, "b", source="2"), Problem("docs/a.md", 10, "a", source="3"),
    ]  # fmt: skip
    assert [str(problem) for problem in sorted(problems)] == told
