"""Events survive JSON; the recorder knows the page's lines and what it saw before."""

import dataclasses
import importlib
import json
import pkgutil
import threading

import numpy as np
import pytest

from archcards import evidence
from archcards.evidence import check, record
from archcards.evidence.record import event_from_json, recording

STEP = record.Step(source="a + b", tex="a + b", reason="start", status="start", sizes=("d = 2",))
MISTAKE = record.Mistake(name="late", error=0.25, shown="0.25", caught=True, seen="a paper")
EVENTS = [
    record.Output(line=3, text="ünï\u2028code\n"),
    record.Failure(line=4, reason="no"),
    record.Check(
        line=5, first=4, last=9, claim="it holds", passed=True, error=1e-17, tolerance=1e-11,
        relation="==", because=None, reasons=(), controls=(MISTAKE,),
    ),
    record.Fact(line=6, name="edges", value=2**80, repr=str(2**80), unit=None, given=False),
    record.Derivation(
        line=7, title="t", symbols=(record.Symbol(name="k", tex="k", shape=("d",)),), given=("k=1",),
        steps=(STEP, STEP), control=STEP, control_of=1, sizes=("d = 2",), passed=True, reasons=(),
    ),
    record.Table(
        line=8, columns=("a", "b"), kinds=("number", "text"), rows=(("1,000", "x"),),
        values=((1000, "x"),), caption="c",
    ),
    record.Figure(line=9, id="ac-1", svg="<svg/>", alt="a", caption="c"),
    record.Switch(
        line=10, id="ac-2", caption="c", claim="it holds", labels=(("r",), ("c",)),
        options=(record.Option(name="correct", error="", rows=(("1",),), shades=((0,),)),),
    ),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_survives_json(event):
    plain = event.to_json()
    assert plain["kind"] == event.kind
    assert event_from_json(json.loads(json.dumps(plain, allow_nan=False))) == event


def test_every_kind_of_event_is_tried_above():
    assert {event.kind for event in EVENTS} == set(record._KINDS)


def test_what_the_process_alone_knows_is_left_out_of_the_json():
    check = record.Check(**{**EVENTS[2].__dict__, "actual": object()})
    assert "actual" not in check.to_json()
    assert "value" not in check.to_json()["controls"][0]


def test_the_line_is_that_of_the_call_on_the_page_even_through_another_module(run_page):
    events = run_page(
        """
        def helper():
            return recorder.refuse("first")

        helper()
        list(map(recorder.refuse, ["second"]))
        """
    )
    assert [(event.line, event.reason) for event in events] == [(3, "first"), (6, "second")]


def test_a_thread_without_a_frame_of_the_page_gets_the_line_of_the_block():
    with recording("docs/x.md") as recorder:
        recorder.line = 17
        thread = threading.Thread(target=recorder.refuse, args=("from a thread",))
        thread.start()
        thread.join()
    assert recorder.events == [record.Failure(line=17, reason="from a thread")]


def test_the_recorder_before_comes_back_also_after_an_exception():
    before = record.current_recorder()
    with pytest.raises(KeyError), recording("docs/x.md"):
        raise KeyError
    assert record.current_recorder() is before


def test_outside_a_page_a_refusal_raises_and_nothing_is_kept():
    with pytest.raises(ValueError, match="too bad"):
        record.current_recorder().refuse("too bad")
    assert record.current_recorder().events == []


def test_the_listener_hears_an_event_before_it_is_appended():
    seen = []
    with recording("docs/x.md", listener=lambda event: seen.append(len(recorder.events))) as recorder:
        recorder.refuse("one")
        recorder.refuse("two")
    assert seen == [0, 1]


def test_ids_are_unique_on_a_page_and_the_same_each_time():
    for _ in range(2):
        with recording("docs/attention/local-windows.md") as recorder:
            assert [recorder.next_id(), recorder.next_id()] == [
                "ac-attention-local-windows-1", "ac-attention-local-windows-2",
            ]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_what_happened_cannot_be_changed_and_is_told_by_name(event):
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.line = 1
    with pytest.raises(TypeError):
        type(event)(*(getattr(event, f.name) for f in dataclasses.fields(event) if f.name != "line"), line=event.line)


MODULES = [info.name for info in pkgutil.walk_packages(evidence.__path__, "archcards.evidence.")]


@pytest.mark.parametrize("module", MODULES)
def test_no_judgement_can_be_changed_after_it_was_made(module):
    """A page, a plugin or a test that writes into a verdict, a page or an event finds it closed."""
    for kind in vars(importlib.import_module(module)).values():
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module:
            if kind.__name__ == "Memory":  # of earlier runs: it is there to be written into
                continue
            for field in dataclasses.fields(kind):
                with pytest.raises(dataclasses.FrozenInstanceError):
                    setattr(object.__new__(kind), field.name, None)


def test_two_runs_of_a_page_give_equal_checks_whatever_arrays_they_hold():
    def run():
        with recording("docs/x.md") as recorder:
            check("sums", np.arange(3.0) * 2, [0.0, 2.0, 4.0], controls={"late": lambda: np.arange(3.0)})
        return recorder.events

    assert run() == run()


# As a reader of a notebook or a terminal sees them


def test_a_check_tells_each_control():
    check = dataclasses.replace(EVENTS[2], controls=(MISTAKE, dataclasses.replace(MISTAKE, name="early", caught=False)))
    assert repr(check) == "✓ it holds (within 1e-11)\n    late: off by 0.25, caught\n    early: off by 0.25, NOT CAUGHT"
    failed = dataclasses.replace(check, passed=False, tolerance=None, controls=(), reasons=("it is off by 2",))
    assert repr(failed) == "✗ it holds (exactly)\n    it is off by 2"


def test_a_derivation_tells_each_step():
    steps = (STEP, *(dataclasses.replace(STEP, source=s, status=s) for s in ("proved", "refuted", "undecided")))
    told = dataclasses.replace(EVENTS[4], steps=steps, passed=False, reasons=("no",))
    assert repr(told).split("\n") == [
        "✗ t", "      a + b    [start]", "    ✓ proved    [start]", "    ✗ refuted    [start]",
        "    ? undecided    [start]", "    no",
    ]  # fmt: skip
    assert told._repr_markdown_() == (
        "$$\\begin{aligned}& a + b && \\text{start}" + r" \\ & = a + b && \text{start}" * 3 + "\\end{aligned}$$"
    )


def test_a_table_is_told_in_columns_and_as_markdown():
    table = dataclasses.replace(EVENTS[5], rows=(("1,000", "x"), ("2", "yy")))
    assert repr(table) == "a     | b\n1,000 | x\n2     | yy\nc"
    assert table._repr_markdown_() == "| a | b |\n| ---: | --- |\n| 1,000 | x |\n| 2 | yy |\n\n*c*"


def test_a_switch_is_told_option_by_option():
    wrong = record.Option(name="late", error="0.5", rows=(("0.5", "10"),), shades=((0, 1),))
    switch = dataclasses.replace(EVENTS[7], options=(*EVENTS[7].options, wrong))
    assert repr(switch) == "c\ncorrect\n         1\nlate: off by 0.5\n       0.5     10"
