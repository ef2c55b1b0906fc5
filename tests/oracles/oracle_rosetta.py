"""What `docs/rosetta.yml` says of the installed packages stands where it says: file, line and name."""

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

TABLES = yaml.safe_load((Path(__file__).parents[2] / "docs" / "rosetta.yml").read_text("utf-8"))
PACKAGES = {"PyTorch": "torch", "Transformers": "transformers", "fla": "fla-core"}
NOT_INSTALLED = ("fla/layers/", "fla/models/")  # of fla's repository, but not in fla-core


def entries():
    for names in TABLES["subjects"].values():
        for name, libraries in names.items():
            for library in PACKAGES.keys() & libraries.keys():
                given = libraries[library]
                for one in given if isinstance(given, list) else [given]:
                    if one != "—" and not one["seen"].startswith(NOT_INSTALLED):
                        yield pytest.param(one, id=f"{name}-{library}-{one['seen']}")


@pytest.mark.parametrize("library", PACKAGES)
def test_the_release_is_the_installed_one(library):
    assert TABLES["libraries"][library]["release"] == "v" + version(PACKAGES[library]).split("+")[0]


@pytest.mark.parametrize("entry", sorted(entries(), key=lambda one: one.id))
def test_the_name_stands_in_the_file_and_the_line_exists(entry):
    path, _, line = entry["seen"].partition("#L")
    package, _, inside = path.partition("/")
    text = (Path(find_spec(package).origin).parent / inside).read_text("utf-8")
    assert text.split("\n")[int(line) - 1].strip()
    called = re.search(r"`([^`(]+)", entry["called"])[1]
    named = re.findall(r"\w+", called)[-1]
    assert re.search(rf"\b{named}\b", text), named
