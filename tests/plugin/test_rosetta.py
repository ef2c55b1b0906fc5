"""What other libraries call each name: complete, of names that exist, each entry with the place it was read."""

import re
from pathlib import Path

import pytest

from archcards import controls, mechanisms
from archcards.evidence.sources import read_names
from archcards.evidence.yaml_lines import read_yaml
from archcards.plugin.markup import elements, plain_text
from archcards.plugin.rosetta import FILE, Rosetta, public_names

DOCS = Path(__file__).parents[2] / "docs"
PLACES = re.findall(
    r'<div data-ac="rosetta" data-of="(\w+)"></div>', (DOCS / "conventions.md").read_text("utf-8")
)
LIBRARIES = "libraries:\n  Lib: {repository: some/lib, release: v1, root: src/}\n  Other: {repository: an/other, release: v2}\n"


def link(src_uri):
    return f"../{src_uri.removesuffix('.md')}/", src_uri


@pytest.fixture(scope="module")
def site():
    return Rosetta(DOCS, read_names(DOCS / "names.txt"))


def small(folder, subjects):
    """A file about the masks, and nothing else of the mechanisms."""
    (folder / FILE).write_text(f"{LIBRARIES}subjects:\n{subjects}", "utf-8")
    return Rosetta(folder)


def faults(rosetta):
    """Without those of the names that these small files leave out."""
    return [(line, reason) for line, reason in rosetta.faults if not reason.endswith("is missing")]


def test_the_file_of_the_site_has_every_public_name_and_no_other(site):
    assert site.faults == []
    named = [name.name for names in site.subjects.values() for name in names]
    everything = [name for name in dir(mechanisms) if name[0] != "_" and callable(getattr(mechanisms, name))]
    assert sorted(named) == sorted(everything)


def test_the_page_shows_every_subject_once_and_every_name(site):
    assert sorted(PLACES) == sorted(site.subjects)
    shown = "".join(site.fill(place, link) for place in PLACES)
    assert list(site.unplaced()) == []
    assert sorted(re.findall(r"id=\"elsewhere-(\w+)\"", shown)) == sorted(public_names())
    for name, module in public_names().items():
        assert shown.count(f"#archcards.mechanisms.{module}.{name}\"") == 1


def test_every_entry_of_the_site_points_to_a_line_of_a_release_or_to_a_commit(site):
    entries = [entry for names in site.subjects.values() for name in names for entry in name.entries]
    assert entries
    for entry in entries:
        line = re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w.]+/[\w./-]+\.py#L\d+", entry.address)
        commit = re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/[\w./-]+", entry.address)
        assert line or commit, entry.address


def test_the_releases_are_those_that_the_mechanisms_are_compared_with(site):
    """After an update, the entries of that library have to be read again."""
    compared = (DOCS.parent / "requirements-oracles.txt").read_text("utf-8")
    pins = {name: f"v{version}" for name, version in re.findall(r"^([\w-]+)==([\d.]+)$", compared, re.M)}
    libraries = read_yaml((DOCS / FILE).read_text("utf-8")).plain()["libraries"]
    for library, package in (("PyTorch", "torch"), ("Transformers", "transformers"), ("fla", "fla-core")):
        assert libraries[library]["release"] == pins[package]


def test_every_name_speaks_of_pytorch_or_of_a_counterpart(site):
    """A name that no library was searched for would look as if it had no counterpart."""
    for names in site.subjects.values():
        for name in names:
            assert name.entries or len(name.without) == 6, name.name


def test_an_entry_is_drawn_with_its_place_and_controls(tmp_path):
    rosetta = small(
        tmp_path,
        "  masks:\n"
        "    causal:\n"
        "      Other: —\n"
        "      Lib:\n"
        "        - called: '`tril(n)`'\n"
        "          arguments: square only\n"
        "          differs: from the beginning\n"
        "          controls: [aligned to the top left]\n"
        "          seen: lib/masks.py#L7\n"
        "        - {called: '`bias`', seen: lib/bias.py, commit: " + "a" * 40 + "}\n",
    )
    assert faults(rosetta) == []
    drawn = rosetta.fill("masks", link)
    assert '<a href="https://github.com/some/lib/blob/v1/src/lib/masks.py#L7"><code>tril(n)</code></a>' in drawn
    assert f'href="https://github.com/some/lib/blob/{"a" * 40}/src/lib/bias.py"' in drawn
    text = plain_text(drawn)
    assert "(queries, keys=None, *, offset=None)" in text
    assert "from the beginning control “aligned to the top left”" in text
    assert "nothing else" in text and "Other—" in text
    assert '<a href="../api/controls/#control-causal-aligned-to-the-top-left">“aligned to the top left”</a>' in drawn


def test_the_address_of_a_name_is_where_its_subject_is_shown(site, tmp_path):
    assert site.entry("sliding_window", link) == "../conventions/#elsewhere-sliding_window"
    assert all(site.entry(name, link) for name in public_names())
    assert site.entry("sliding_window", lambda _: None) is None and site.entry("no_such", link) is None
    assert small(tmp_path, "  masks:\n    causal:\n      Lib: —\n").entry("causal", link) is None


def test_a_subject_is_folded_under_its_names_and_each_name_has_an_address(site):
    for place, names in site.subjects.items():
        drawn = site.fill(place, link)
        [(_, _, _, fold)] = elements(drawn, r"<details\b[^>]*>")
        assert " open" not in drawn.partition(">")[0]
        summary, _, folded = fold.partition("</summary>")
        told = "In other libraries: " + ", ".join(name.name for name in names)
        assert plain_text(summary) == told
        # A heading is a section of the search, and what its address leads to is opened by the browser.
        headings = re.findall(r'<h4 id="elsewhere-(\w+)">', folded)
        assert headings == [name.name for name in names] and "<h4" not in summary
        assert folded.count("<table") == len(names)


@pytest.mark.parametrize(
    ("subjects", "line", "reason"),
    [
        ("  masks:\n    triangular:\n      Lib: —\n", 6, "triangular is no public name"),
        ("  masks:\n    causal:\n      Lib: —\n  more:\n    causal:\n      Lib: —\n", 9, "causal is given twice"),
        ("  masks:\n    causal:\n      Nobody: —\n", 7, "causal: Nobody is none of the libraries"),
        ("  masks:\n    causal:\n      Lib: {called: x}\n", 7, "where it was seen"),
        ("  masks:\n    causal:\n      Lib: {seen: x.py}\n", 7, "what it is called"),
        ("  masks:\n    causal:\n      Lib: {called: x, seen: x.py, calls: y}\n", 7, "unknown field 'calls'"),
        ("  masks:\n    causal:\n      Lib: {called: x, seen: x.py, commit: main}\n", 7, "forty hexadecimal"),
        (
            "  masks:\n    causal:\n      Lib:\n        called: x\n        seen: x.py\n        controls: [no such]\n",
            10,
            "no control 'no such' of causal",
        ),
        (
            "  masks:\n    edges:\n      Lib:\n        called: x\n        differs: by 17\n        seen: x.py\n",
            9,
            "the numeral 17 is typed into prose",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, subjects, line, reason):
    (found,) = faults(small(tmp_path, subjects))
    assert found[0] == line and reason in found[1]


def test_a_name_that_the_file_leaves_out_is_told(tmp_path):
    left_out = {reason for _, reason in small(tmp_path, "  masks:\n    causal:\n      Lib: —\n").faults}
    assert "the public name edges of masks is missing" in left_out
    assert len(left_out) == len(public_names()) - 1


def test_a_control_counts_for_its_own_name_only(tmp_path):
    name = next(iter(controls.of("softmax")))
    assert name not in controls.of("causal")
    text = f"  masks:\n    causal:\n      Lib: {{called: x, seen: x.py, controls: [{name}]}}\n"
    assert len(faults(small(tmp_path, text))) == 1


def test_places_and_subjects_have_to_fit(tmp_path):
    rosetta = small(tmp_path, "  masks:\n    causal:\n      Lib: —\n")
    assert list(rosetta.unplaced()) == [(5, "no page shows the subject masks")]
    assert rosetta.fill("rope", link) == ""
    assert "a page has a place for the subject rope, which is missing" in rosetta.faults[-1][1]


@pytest.mark.parametrize("text", ["", "libraries: {}\n", "libraries: {Lib: {}}\nsubjects: {}\n", "a: [\n", "[]\n"])
def test_a_file_that_cannot_be_read_is_one_fault(tmp_path, text):
    (tmp_path / FILE).write_text(text, "utf-8")
    assert len(Rosetta(tmp_path).faults) == 1


def test_a_book_without_the_file_has_no_faults(tmp_path):
    assert Rosetta(tmp_path).faults == [] and list(Rosetta(tmp_path).unplaced()) == []


def test_a_missing_name_ends_the_build(book):
    book.write(index='# A\n\n<div data-ac="rosetta" data-of="masks"></div>\n')
    (book.docs / FILE).write_text(f"{LIBRARIES}subjects:\n  masks:\n    causal:\n      Lib: —\n", "utf-8")
    built = book.build()
    assert built.returncode != 0
    assert "docs/rosetta.yml:1: the public name edges of masks is missing" in built.stderr
