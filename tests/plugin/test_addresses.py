"""The permanent addresses of evidence: each piece has its own, and nothing else on the page changes it."""

import itertools

from archcards.evidence.record import Fact, Table
from archcards.plugin.render import Anchors


def table(caption):
    return Table(line=1, columns=(), kinds=(), rows=(), values=(), caption=caption)


def addresses(*events):
    anchors = Anchors(events)
    return [anchors.of(event) for event in events]


def test_an_address_does_not_depend_on_what_stands_around():
    events = [table("Edges < all"), table("Edges > all"), table("Scalars"), Fact(line=1, name="edges", value=1, repr="1", unit=None, given=False)]
    known = dict(zip(map(id, events), addresses(*events), strict=True))
    assert len(set(known.values())) == len(events)
    for order in itertools.permutations(events):
        assert dict(zip(map(id, order), addresses(*order), strict=True)) == known
    assert addresses(events[2]) == [known[id(events[2])]]


def test_long_texts_that_begin_alike_are_told_apart():
    first, second = addresses(table("word " * 30 + "one"), table("word " * 30 + "two"))
    assert first != second


def test_the_same_text_twice_still_makes_two_addresses():
    first, second = addresses(table("Edges"), table("Edges"))
    assert (first, second) == ("table-edges", "table-edges-2")
