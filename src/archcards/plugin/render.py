"""From events to HTML: one look for each kind of evidence.

HTML is written directly: a Markdown conversion for each check line would cost twenty times as much.
Text may hold `code`, `$TeX$` and `{{ fact }}`; TeX and facts are left as Markdown leaves them, and
drawn with those of the prose.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from textwrap import dedent

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from archcards.evidence.record import (
    Check,
    Derivation,
    Event,
    Fact,
    Failure,
    Figure,
    Mistake,
    Output,
    Step,
    Switch,
    Symbol,
    Table,
)

__all__ = ["Anchors", "code", "code_name", "events", "fault", "in_unit", "inline", "sizes", "slug", "tolerance"]

_INLINE = re.compile(r"`(?P<code>[^`]+)`|(?<!\\)\$(?P<tex>[^$\s](?:[^$]*[^$\s])?)\$")


def inline(text: str) -> str:
    """HTML of a claim or caption.

    Example:
        >>> inline("`causal(8)` has $T^2$ < all")
        '<code>causal(8)</code> has <span class="arithmatex">\\\\(T^2\\\\)</span> &lt; all'
    """
    pieces, position = [], 0
    for found in _INLINE.finditer(text):
        pieces.append(escape(text[position : found.start()], quote=False))
        if found["code"] is not None:
            pieces.append(f"<code>{escape(found['code'], quote=False)}</code>")
        else:
            pieces.append(f'<span class="arithmatex">\\({escape(found["tex"], quote=False)}\\)</span>')
        position = found.end()
    return "".join(pieces) + escape(text[position:], quote=False)


def code_name(text: str) -> str:
    """A long name as code: where a column is narrow, it goes on after a dot, a slash or an underscore.

    Example:
        >>> code_name("archcards.mechanisms")
        '<code>archcards.<wbr>mechanisms</code>'
    """
    pieces = re.split(r"(?<=[._/])", text)
    return f"<code>{'<wbr>'.join(escape(piece, quote=False) for piece in pieces if piece)}</code>"


def display(tex: str) -> str:
    """A formula on a line of its own, to be drawn with those of the page."""
    return f'<div class="arithmatex">\\[{escape(tex, quote=False)}\\]</div>'


def slug(text: str) -> str:
    """A permanent address from a claim or a title."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"\{\{.*?\}\}", "", text).lower())
    return "-".join(words)[:64].strip("-") or "untitled"


class Anchors:
    """Gives the evidence of one page its addresses: the same event, the same address, every time.

    An address is made from the event's own text, so that nothing else on the page can change it. Texts
    that differ in nothing an address can hold are told apart by a digest of each.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        named = [(event, *name) for event in events if (name := _address(event))]
        texts: dict[str, set[str]] = {}
        for _, name, text in named:
            texts.setdefault(name, set()).add(text)
        self._names: dict[int, str] = {}
        taken: Counter[str] = Counter()
        for event, name, text in named:
            if len(texts[name]) > 1:
                name += "-" + hashlib.sha256(text.encode()).hexdigest()[:6]
            taken[name] += 1
            self._names[id(event)] = name if taken[name] == 1 else f"{name}-{taken[name]}"

    def of(self, event: Event) -> str:
        return self._names[id(event)]


def _address(event: Event) -> tuple[str, str] | None:
    """The address of an event, and the text that it is made from."""
    match event:
        case Check():
            return f"check-{slug(event.claim)}", event.claim
        case Fact():
            return f"fact-{event.name.replace('_', '-').lower()}", event.name
        case Derivation():
            return f"derivation-{slug(event.title)}", event.title
        case Table():
            return f"table-{slug(event.caption)}", event.caption
        case Figure():
            return f"figure-{slug(event.caption)}", event.caption
        case Switch():
            return f"switch-{slug(event.caption)}", event.caption
    return None


@cache
def _formatter() -> HtmlFormatter:
    return HtmlFormatter(nowrap=True)


def code(source: str, language: str = "python", *, title: str = "", classes: str = "") -> str:
    """Highlighted code, as Markdown's own fences have it."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text", stripnl=False)
    drawn = highlight(source.rstrip("\n") + "\n", lexer, _formatter())
    heading = f'<span class="filename">{escape(title)}</span>' if title else ""
    names = " ".join(filter(None, ["language-" + escape(language), "highlight", classes]))
    return f'<div class="{names}">{heading}<pre><span></span><code>{drawn}</code></pre></div>'


def in_unit(number: object, unit: str | None) -> str:
    """A number and its unit, as HTML; a per cent sign stands at its number, as everywhere on the site.

    Example:
        >>> in_unit(46.2, "% of the peak"), in_unit(3, "GB"), in_unit("a < b", None)
        ('46.2% of the peak', '3 GB', 'a &lt; b')
    """
    if not unit:
        return escape(str(number))
    return escape(f"{number}{unit}" if unit.startswith("%") else f"{number} {unit}")


def tolerance(check: Check) -> str:
    """How closely a check holds, in words.

    A tolerance is written as a power of ten where it is one.
    """
    if check.relation in {"<", ">", "!="}:
        return {"<": "strictly less", ">": "strictly greater", "!=": "different"}[check.relation]
    if check.tolerance is None:
        return "exactly"
    mantissa, _, exponent = f"{check.tolerance:.3e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10<sup>{int(exponent)}</sup>".replace("-", "−")
    return f"within {power}" if mantissa == "1" else f"within {mantissa} × {power}"


def events(
    happened: Sequence[Event],
    *,
    anchors: Anchors,
    lines: Sequence[str],
    output: Callable[[str], str],
    shows_transcript: bool = False,
) -> str:
    """HTML of what a block did, in the order in which it happened.

    `lines` are the lines of the page, `output` makes HTML of printed text; a block that is itself a
    transcript shows what it printed already.
    """
    pieces = []
    for event in happened:
        match event:
            case Output():
                if event.text.strip() and not shows_transcript:
                    pieces.append(output(event.text))
            case Check():
                pieces.append(_check(event, anchors.of(event), lines))
            case Fact():
                pieces.append(_fact(event, anchors.of(event)))
            case Derivation():
                pieces.append(_derivation(event, anchors.of(event)))
            case Table():
                pieces.append(_table(event, anchors.of(event)))
            case Figure():
                pieces.append(_figure(event, anchors.of(event)))
            case Switch():
                pieces.append(_switch(event, anchors.of(event)))
            case Failure():
                pieces.append(fault(event.line, event.reason))
    return "\n".join(pieces)


def fault(line: int, reason: str) -> str:
    """What is wrong, for the eyes of the writer: only a served preview ever shows it."""
    return f'<p class="ac-fault" role="alert"><strong>Line {line}</strong> {escape(reason)}</p>'


def _check(check: Check, anchor: str, lines: Sequence[str]) -> str:
    mark = "✓" if check.passed else "✗"
    controls = "".join(
        f'<li><span class="ac-mistake">{inline(control.name)}</span>'
        f'<span class="ac-error">: {_wrong(check, control)}, '
        f"{'caught' if control.caught else 'not caught'}</span></li>"
        for control in check.controls
    )
    because = f'<p class="ac-because">{inline(check.because)}</p>' if check.because else ""
    wrong = "".join(fault(check.line, reason) for reason in check.reasons)
    source = dedent("\n".join(lines[check.first - 1 : check.last]))
    seen = "".join(
        f"<li>{inline(control.name)}: seen in {inline(control.seen)}</li>"
        for control in check.controls
        if control.seen
    )
    seen = f'<ul class="ac-seen">{seen}</ul>' if seen else ""
    return (
        f'<div class="ac-check{"" if check.passed else " ac-check--failed"}" id="{anchor}"{_says(check.claim)}>'
        f'<p class="ac-check__claim"><span class="ac-mark" aria-hidden="true">{mark}</span> '
        f'<span class="ac-claim">{inline(check.claim)}</span> '
        f'<span class="ac-tolerance">{tolerance(check)}</span></p>'
        f"{because}{wrong}"
        f'<ul class="ac-controls" aria-label="Mistakes that this check catches">{controls}</ul>'
        f'<details class="ac-code"><summary>the code that checks it</summary>{code(source)}{seen}'
        f'<p class="ac-address">Line {check.line} of this page’s source. '
        f'<a href="#{anchor}">Permanent address of this check</a></p></details></div>'
    )


def _wrong(check: Check, control: Mistake) -> str:
    """What a mistake does to the claim: it is off by so much, or the relation no longer holds."""
    if control.error is None:
        return f"gives {escape(control.shown)}"
    if check.relation == "==":
        return f"off by {escape(control.shown)}"
    return "equal" if check.relation == "!=" else "no longer so"


def _fact(fact: Fact, anchor: str) -> str:
    how = "chosen" if fact.given else "computed"
    value = f"{fact.value:,}" if type(fact.value) is int else str(fact.value)
    return (
        f'<div class="ac-registered" id="{anchor}"><p><code>{escape(fact.name)}</code> = '
        f"{in_unit(value, fact.unit)}, {how} at line {fact.line}</p></div>"
    )


def _derivation(derivation: Derivation, anchor: str) -> str:
    rows = []
    for step in derivation.steps:
        tex = step.tex if step.status == "start" else f"{{}} = {step.tex}"
        state = "" if step.status in {"start", "proved"} else f" ac-step--{step.status}"
        rows.append(
            f'<li class="ac-step{state}">{display(tex)}'
            f'<p class="ac-reason">{inline(step.reason)}{_witness(step)}</p></li>'
        )
    shapes = ", ".join(
        "$%s \\in \\mathbb{R}^{%s}$" % (", ".join(names), r" \times ".join(shape))
        for shape, names in _by_shape(derivation.symbols)
    )
    notes = []
    if shapes:
        notes.append(f"Here {inline(shapes)}.")
    if derivation.given:
        relations = ", ".join(f"${relation}$" for relation in derivation.given)
        notes.append(f"Given {inline(relations)}.")
    each = "Each line is proved equal to the one before"
    if derivation.sizes:
        notes.append(f"{each}, entry by entry, at {sizes(derivation.sizes)}.")
    else:
        notes.append(f"{each}.")
    control = ""
    if derivation.control is not None:
        broken = derivation.control
        control = (
            '<details class="ac-code"><summary>a broken step, refuted</summary>'
            f"{display(f'{{}} = {broken.tex}')}"
            f'<p class="ac-reason">{inline(broken.reason)}{_witness(broken)}</p></details>'
        )
    wrong = "".join(fault(derivation.line, reason) for reason in derivation.reasons)
    return (
        f'<figure class="ac-derivation" id="{anchor}"{_says(derivation.title)}><figcaption>'
        f'<span class="ac-mark" aria-hidden="true">{"✓" if derivation.passed else "✗"}</span> '
        f"{inline(derivation.title)}</figcaption>{wrong}"
        f'<ol class="ac-lines">{"".join(rows)}</ol>'
        f'<p class="ac-sizes">{" ".join(notes)}</p>{control}</figure>'
    )


def _by_shape(symbols: Sequence[Symbol]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Symbols that are no scalars, those of one shape together, in the order in which they were declared."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for symbol in symbols:
        if symbol.shape:
            grouped.setdefault(symbol.shape, []).append(symbol.tex)
    return list(grouped.items())


def sizes(stated: Sequence[str]) -> str:
    """The sizes at which something was proved: `d = 2 and d = 3`."""
    return " and ".join(inline(f"${size}$") for size in stated)


def _witness(step: Step) -> str:
    if not step.witness:
        return ""
    return f' <span class="ac-witness">Refuted by {inline(step.witness)}</span>'


# What a table says of a printed number beside the computed one has a look of its own.
_VERDICTS = {"equal": "ac-same", "not equal": "ac-other"}


def _table(table: Table, anchor: str) -> str:
    head = "".join(
        f'<th scope="col" class="ac-{kind}">{inline(column)}</th>'
        for column, kind in zip(table.columns, table.kinds, strict=True)
    )
    rows = []
    for row in table.rows:
        cells = []
        for index, (cell, kind) in enumerate(zip(row, table.kinds, strict=True)):
            if index == 0 and kind == "text":
                cells.append(f'<th scope="row">{inline(cell)}</th>')
            else:
                cells.append(f'<td class="{_VERDICTS.get(cell, f"ac-{kind}")}">{inline(cell)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="ac-table" id="{anchor}"{_says(table.caption)} role="group" tabindex="0" '
        f'aria-label="{escape(_spoken(table.caption))}"><table class="ac-paper"><caption>{inline(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(figure: Figure, anchor: str) -> str:
    return (
        f'<figure class="ac-figure" id="{anchor}"{_says(figure.caption)}>'
        f'<div class="ac-drawing" role="group" tabindex="0" aria-label="Drawing">{figure.svg}</div>'
        f"<figcaption>{inline(figure.caption)}</figcaption></figure>"
    )


def _switch(switch: Switch, anchor: str) -> str:
    """Radio buttons before panels: the style sheet shows the panel of the chosen one, no script."""
    choices, panels = [], []
    for index, option in enumerate(switch.options):
        name = f"{switch.id}-{index}"
        checked = " checked" if index == 0 else ""
        choices.append(
            f'<input type="radio" name="{switch.id}" id="{name}" autocomplete="off"{checked}>'
            f'<label for="{name}">{inline(option.name)}</label>'
        )
        off = f"off by {escape(option.error)}" if option.error else "as the check has it"
        wrong = " ac-panel--wrong" if option.error else ""
        panels.append(
            f'<div class="ac-panel{wrong}"><p class="ac-panel__error">'
            f"<span>{inline(option.name)}</span>: {off}</p>{_cells(switch, index)}</div>"
        )
    return (
        f'<fieldset class="ac-switch" id="{anchor}"{_says(switch.caption)}><legend>{inline(switch.caption)}</legend>'
        f'{"".join(choices)}<div class="ac-panels">{"".join(panels)}</div></fieldset>'
    )


def _cells(switch: Switch, index: int) -> str:
    option, truth = switch.options[index], switch.options[0]
    row_names, column_names = switch.labels if switch.labels else ((), ())
    corner = '<td class="ac-corner"></td>' if row_names else ""
    head = "".join(f'<th scope="col">{inline(name)}</th>' for name in column_names)
    head = f"<thead><tr>{corner}{head}</tr></thead>" if column_names else ""
    body = []
    for i, row in enumerate(option.rows):
        label = f'<th scope="row">{inline(row_names[i])}</th>' if i < len(row_names) else ""
        cells = []
        for j, cell in enumerate(row):
            shade = option.shades[i][j] if option.shades else 0
            same = i < len(truth.rows) and j < len(truth.rows[i]) and truth.rows[i][j] == cell
            mark = "" if same else " ac-differs"
            cells.append(f'<td class="ac-shade-{shade}{mark}">{escape(cell)}</td>')
        body.append(f"<tr>{label}{''.join(cells)}</tr>")
    caption = f'<caption class="ac-unseen">{inline(switch.caption)}: {inline(option.name)}</caption>'
    return f'<div class="ac-cells"><table class="ac-grid">{caption}{head}<tbody>{"".join(body)}</tbody></table></div>'


def _says(text: str) -> str:
    """An attribute with what a piece of evidence says, for a citation of it: formulas as their TeX."""
    return f' data-says="{escape(html.unescape(text.replace("`", "")))}"'


def _spoken(text: str) -> str:
    """Text for an attribute: no markup, formulas as their TeX."""
    return html.unescape(re.sub(r"[`$]", "", text))
