"""A book in a folder of its own, and what is wrong with it."""

import pytest

from archcards.evidence.book import prove
from archcards.evidence.runner import Limits

SOUND = "# A sound page\n\nIt starts no process.\n"


@pytest.fixture
def judge(tmp_path):
    """Judges pages given as text (or bytes) by name; the sound page beside them is never blamed."""

    def judge(*texts, limits=Limits(), sources="", names="", **more):
        docs = tmp_path / "book" / "docs"
        docs.mkdir(parents=True, exist_ok=True)
        (docs / "sources.yml").write_text(sources, "utf-8")
        (docs / "names.txt").write_text(names, "utf-8")
        pages = {f"page{n}" if n else "page": text for n, text in enumerate(texts)} | more
        for name, text in ({"sound": SOUND} | pages).items():
            (docs / f"{name}.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        verdict = prove(docs, limits=limits)
        assert not [p for p in verdict.problems if p.path == "docs/sound.md"]
        return verdict

    return judge


@pytest.fixture
def faults(judge):
    """What is wrong with one page, as (line, reason) pairs."""

    def faults(text, **more):
        return [(p.line, p.reason) for p in judge(text, **more).problems]

    return faults
