"""What readers take away from a chapter."""

import ast
import csv
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = "docs/attention/chunked-prefill.md", "docs/attention/local-windows.md"


@pytest.fixture(scope="module")
def files():
    """The downloads of two real chapters, made without building a site."""
    from archcards.evidence.book import prove
    from archcards.plugin.book import Book, BookPage
    from archcards.plugin.downloads import Downloads

    verdict = prove(ROOT / "docs", only=CHAPTERS)
    pages = {path.removeprefix("docs/"): BookPage(page, path.removeprefix("docs/")) for path, page in verdict.pages.items() if path in CHAPTERS}
    downloads = Downloads(
        Book(verdict, pages), ROOT, "https://example.org/book/",
        lambda src_uri: src_uri.removesuffix(".md") + "/", lambda page: page.proved.card.name,
    )  # fmt: skip
    assert len(downloads.chapters) == 2
    return downloads.files("A field guide.", [("Reference", [("Conventions", "conventions/")])])


def notebooks(files):
    return {name: json.loads(content) for name, content in files.items() if name.endswith(".ipynb")}


def sources(notebook, kind):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_notebooks_follow_the_published_format(files):
    assert len(notebooks(files)) == 4
    for notebook in notebooks(files).values():
        nbformat.validate(nbformat.from_dict(notebook))
        names = [cell["id"] for cell in notebook["cells"]]
        assert len(set(names)) == len(names)


def test_notebooks_begin_by_installing_what_the_site_serves(files):
    [wheel] = [name for name in files if name.endswith(".whl")]
    for notebook in notebooks(files).values():
        assert sources(notebook, "code")[0] == f"%pip install --quiet https://example.org/book/{wheel}"


def test_every_cell_and_script_compiles(files):
    for notebook in notebooks(files).values():
        for source in sources(notebook, "code"):
            if not source.startswith("%pip"):
                ast.parse(source)
    for name, content in files.items():
        if name.endswith(".py"):
            ast.parse(content)


def test_numbers_are_put_in_and_links_lead_to_the_site(files):
    for name, content in files.items():
        text = content.decode(errors="ignore")
        if name.endswith((".md", ".ipynb", ".txt")):
            prose = "\n".join(sources(json.loads(text), "markdown")) if name.endswith(".ipynb") else text
            code = prose.split("```")[1::2]
            outside = "".join(prose.split("```")[::2])
            assert "{{ " not in outside and "???" not in outside and "data-ac" not in outside, name
            assert ".md)" not in outside.replace("chunked-prefill.md)", "").replace("local-windows.md)", ""), name
            assert code or name.endswith((".ipynb", ".txt", "-exercises.md"))
    chapter = "\n".join(sources(notebooks(files)["attention/chunked-prefill/chunked-prefill.ipynb"], "markdown"))
    assert "chunks of 512 tokens stream 69,632 keys for a prompt of 8,192" in chapter
    assert "(https://example.org/book/attention/local-windows/" in chapter


def test_exercises_come_without_solutions(files):
    for chapter in ("attention/chunked-prefill/chunked-prefill", "attention/local-windows/local-windows"):
        sheet = files[f"{chapter}-exercises.md"].decode()
        notebook = json.loads(files[f"{chapter}-exercises.ipynb"])
        assert sheet.count("### Exercise") == 3
        cells = [cell["id"] for cell in notebook["cells"]]
        assert [c for c in cells if c.startswith("check-")] == ["check-1", "check-2", "check-3"]
        assert [c for c in cells if c.startswith("answer-")] == ["answer-1", "answer-2", "answer-3"]
        shown = sheet + "\n".join(sources(notebook, "markdown")) + "\n".join(sources(notebook, "code"))
        for secret in ("without_padding", "start + np.arange(size)", "empty slots are read", "Solution"):
            assert secret not in shown


def test_a_cell_for_an_answer_says_what_is_wanted(files):
    """What it says is held against the solutions where all notebooks are run."""
    stubs = {
        cell["id"]: "".join(cell["source"]).replace("\n# ", " ")
        for cell in json.loads(files["attention/chunked-prefill/chunked-prefill-exercises.ipynb"])["cells"]
    }
    assert stubs["answer-1"].endswith(" Wanted: pairs of the mask, a whole number.\nanswer = ...")
    assert stubs["answer-2"].endswith(": an array (sequence, query, feature) of shape (2, 2, 3).\nanswer = ...")
    for notebook in notebooks(files).values():
        for cell in notebook["cells"]:
            assert "# answer:" not in "".join(cell["source"])


def run(tmp_path, code):
    script = tmp_path / "notebook.py"
    script.write_text(code, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180)


def code_of(notebook, *, but=()):
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["id"] not in but]
    return "\n\n".join(s for s in ("".join(cell["source"]) for cell in cells) if not s.startswith("%pip"))


def test_a_notebook_runs_in_a_fresh_process(files, tmp_path):
    done = run(tmp_path, code_of(notebooks(files)["attention/local-windows/local-windows.ipynb"]))
    assert done.returncode == 0, done.stderr


def test_a_graded_notebook_takes_the_right_answers_and_names_a_mistake(files, tmp_path):
    notebook = notebooks(files)["attention/chunked-prefill/chunked-prefill-exercises.ipynb"]
    code = code_of(notebook, but=("answer-1", "answer-2", "check-2", "answer-3"))
    fixed = "def fixed(chunks):\n    return prefill(chunks, lambda start, size: start + np.arange(size))\n"
    code = "answer = 4 * 10 + 4 * 5 // 2\n" + fixed + code
    done = run(tmp_path, code)
    assert done.returncode == 0, done.stderr
    wrong = run(tmp_path, code.replace("start + np.arange", "np.arange"))
    assert "it is what one gets by this mistake: positions restart in every chunk" in wrong.stderr.lower()


def test_tables_are_values_and_drawings_stand_alone(files):
    tables = [name for name in files if name.endswith(".csv")]
    drawings = [name for name in files if name.endswith(".svg")]
    assert tables and drawings
    [first, *rows] = csv.reader(files[next(t for t in tables if "chunked-prefill/" in t)].decode().splitlines())
    assert first[:2] == ["tokens a chunk", "chunks"]
    assert [int(row[0]) for row in rows] == [8192, 2048, 512, 128, 1]
    assert all(int(row[0]) * int(row[1]) == 8192 for row in rows)
    for name in drawings:
        root = ET.fromstring(files[name])
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and b"var(" not in files[name]
        assert b"style" not in files[name] and any(one.get("stroke") for one in root.iter())


def test_the_wheel_holds_the_package_and_is_the_same_each_time(files, monkeypatch):
    from archcards.plugin.downloads import wheel

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    name, content = wheel(ROOT)
    assert wheel(ROOT) == (name, content)
    path = ROOT / "src" / "archcards" / "ledger" / "cache.py"
    import io

    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.read("archcards/ledger/cache.py") == path.read_bytes()
        assert not [one for one in packed.namelist() if "__pycache__" in one or "docs/" in one]


def test_sources_become_bibtex(files):
    entries = files["references.bib"].decode()
    assert entries.count("@misc{") == entries.count("\n}\n")
    assert "author = {Ashish Vaswani and Noam Shazeer and" in entries and "eprint = {1706.03762}" in entries


def test_llms_txt_lists_chapters_in_plain_form(files):
    text = files["llms.txt"].decode()
    assert text.startswith("# Architecture Cards\n\n> A field guide.\n")
    for address in ("attention/chunked-prefill/chunked-prefill.md", "conventions/"):
        assert f"(https://example.org/book/{address})" in text
