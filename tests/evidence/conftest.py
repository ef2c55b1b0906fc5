"""Runs a piece of a page the way the runner does."""

import linecache
import textwrap

import pytest

from archcards.evidence.record import recording


@pytest.fixture
def run_page():
    """Runs code compiled under a page's name, its lines in linecache, and gives the events."""

    def run(source, page="docs/part/some-page.md", quotes=None, **names):
        source = textwrap.dedent(source)
        linecache.cache[page] = (len(source), None, source.splitlines(keepends=True), page)
        with recording(page, quotes=quotes) as recorder:
            exec(compile(source, page, "exec"), {"recorder": recorder} | names)
        return recorder.events

    return run
