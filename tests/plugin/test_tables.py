"""A table's cells have the look of what they hold."""

import re

from archcards.evidence.record import Table
from archcards.plugin.render import Anchors, events


def drawn(**given):
    one = Table(line=1, values=(), caption="A table", **given)
    return events([one], anchors=Anchors([one]), lines=[], output=str)


def test_a_verdict_on_a_printed_number_is_marked_and_other_words_are_not():
    page = drawn(
        columns=("model", "printed", "to the digits printed"),
        kinds=("text", "number", "text"),
        rows=(("A", "1.0", "equal"), ("B", "2.0", "not equal"), ("C", "3.0", "equal in part")),
    )
    assert re.findall(r'<td class="([^"]+)">([^<]*)</td>', page) == [
        ("ac-number", "1.0"), ("ac-same", "equal"),
        ("ac-number", "2.0"), ("ac-other", "not equal"),
        ("ac-number", "3.0"), ("ac-text", "equal in part"),
    ]  # fmt: skip
    assert page.count('scope="row"') == 3
