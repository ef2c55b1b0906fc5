"""What readers take away, taken by a click, is valid by its format."""

import ast
import csv
import json
import re
import xml.etree.ElementTree as ET
import zipfile
import zlib
from pathlib import Path

import nbformat
import pytest
import yaml

CHAPTER = "attention/local-windows/"
SOURCES = Path(__file__).parents[2] / "docs/sources.yml"


@pytest.fixture(scope="module")
def taken(new_page, address, tmp_path_factory):
    """Everything that a chapter offers, clicked one by one: each file by its name."""
    folder = tmp_path_factory.mktemp("taken")
    page, wrong = new_page(accept_downloads=True)
    page.goto(address + CHAPTER)
    page.locator(".ac-takeaway summary").click()
    files = {}
    for link in page.locator(".ac-takeaway a[download]").all():
        with page.expect_download() as started:
            link.click()
        download = started.value
        path = folder / download.suggested_filename
        download.save_as(path)
        files[path.name] = path
    page.context.close()
    assert not wrong
    return files


def those(taken, suffix):
    found = [path for name, path in taken.items() if name.endswith(suffix)]
    assert found, f"{CHAPTER} offers no {suffix}"
    return found


def test_a_chapter_offers_all_kinds(taken):
    stem = CHAPTER.split("/")[1]
    assert {f"{stem}.ipynb", f"{stem}.py", f"{stem}.md", f"{stem}-exercises.md", f"{stem}-exercises.ipynb"} <= set(taken)


def test_notebooks(taken):
    for path in those(taken, ".ipynb"):
        notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
        nbformat.validate(notebook)
        assert any(cell.cell_type == "code" for cell in notebook.cells)


def test_an_exercise_is_given_without_its_solution(taken, page, address):
    page.goto(address + CHAPTER)
    solutions = page.locator("details", has=page.get_by_text("Solution", exact=True)).locator("pre code").all_text_contents()
    whole = "".join(path.read_text(encoding="utf-8") for path in those(taken, "local-windows.py"))
    given = "".join(path.read_text(encoding="utf-8") for path in those(taken, "-exercises.ipynb") + those(taken, "-exercises.md"))
    for solution in solutions:
        telling = max((line.strip() for line in solution.splitlines() if "check(" not in line), key=len)
        assert telling in whole
        assert telling not in given and json.dumps(telling)[1:-1] not in given
    assert solutions


def test_python(taken):
    for path in those(taken, ".py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert {"check", "fact"} <= called


def test_markdown(taken):
    for path in those(taken, ".md"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# ") and "{{" not in text
        assert text.count("\n```") % 2 == 0


def test_tables(taken, page, address):
    page.goto(address + CHAPTER)
    for path in those(taken, ".csv"):
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        shown = page.locator(f'[id="{path.stem}"] table')
        assert shown.locator("thead th").count() == len(head)
        assert shown.locator("tbody tr").count() == len(rows)
        assert {len(row) for row in rows} == {len(head)}


def test_figures(taken):
    for path in those(taken, ".svg"):
        root = ET.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in path.read_text(encoding="utf-8")


def test_a_figure_is_drawn_by_itself(taken, browser):
    for path in those(taken, ".svg"):
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.getBoundingClientRect().width") > 100
        page.close()


# What the site offers beside its chapters


@pytest.fixture(scope="module")
def fetched(new_page, address):
    page, _ = new_page()

    def fetch(path):
        answer = page.request.get(address + path)
        assert answer.ok, f"{path}: {answer.status}"
        return answer.body()

    yield fetch
    page.context.close()


def test_the_evidence(page, address, fetched):
    page.goto(f"{address}evidence/")
    link = page.get_by_role("link", name="evidence.json").first
    assert link.evaluate("one => one.href") == f"{address}evidence.json"
    evidence = json.loads(fetched("evidence.json"))
    totals = evidence["totals"]
    assert all(len(evidence[kind]) == totals[kind] > 0 for kind in ("blocks", "checks", "facts", "derivations"))
    for check in evidence["checks"]:
        assert check["controls"], check["claim"]


def test_the_reports(fetched):
    for name in ("cards", "lab"):
        assert json.loads(fetched(f"reports/{name}.json"))


def test_the_sources(fetched, site):
    text = fetched("references.bib").decode("utf-8")
    entries = re.findall(r"^@(\w+)\{([\w:-]+),\n((?:  \w+ = \{.*\},\n)+)\}$", text, re.M)
    assert re.sub(r"^@(\w+)\{([\w:-]+),\n((?:  \w+ = \{.*\},\n)+)\}$", "", text, flags=re.M).strip() == ""
    keys = [key for _, key, _ in entries]
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(yaml.safe_load(SOURCES.read_text(encoding="utf-8")))
    for _, key, fields in entries:
        names = re.findall(r"^  (\w+) = \{", fields, re.M)
        assert {"title", "author", "year", "url"} <= set(names), key
        for value in re.findall(r" = \{(.*)\},$", fields, re.M):
            assert value and "{" not in value and "}" not in value, (key, value)


def test_the_inventory(fetched, site):
    head, _, packed = fetched("objects.inv").partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n")
    lines = zlib.decompress(packed).decode("utf-8").splitlines()
    assert len(lines) > 50
    for line in lines:
        name, role, _, place, _ = re.fullmatch(r"(.+?)\s+(\S+:\S+)\s+(-?\d+)\s+(\S+)\s+(.*)", line).groups()
        path, _, anchor = place.replace("$", name).partition("#")
        text = (site / path / "index.html" if path.endswith("/") else site / path).read_text(encoding="utf-8")
        assert not anchor or f'id="{anchor}"' in text, line


def test_the_package(fetched, site, tmp_path):
    [wheel] = site.glob("wheels/*.whl")
    path = tmp_path / wheel.name
    path.write_bytes(fetched(f"wheels/{wheel.name}"))
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        assert "archcards/__init__.py" in package.namelist()


def test_the_outline_for_machines(fetched, site):
    text = fetched("llms.txt").decode("utf-8")
    links = re.findall(r"\]\((https?://[^)]+)\)", text)
    assert len(links) > 20
    base = re.search(r'<link rel="canonical" href="([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))[1]
    for link in links:
        path = link.removeprefix(base)
        assert path != link
        assert (site / path / "index.html").is_file() if path.endswith("/") or not path else (site / path).is_file(), link
