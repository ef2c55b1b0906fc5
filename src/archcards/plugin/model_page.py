"""The page of one model: its Markdown, and what stands at each place of it."""

from __future__ import annotations

import hashlib
import json
import re
from html import escape
from urllib.parse import quote

from archcards.ledger import cache
from archcards.ledger.architecture import Experts
from archcards.ledger.bundled import provenance
from archcards.ledger.describe import notes

from . import accounts, stacks
from .layout import Link, gib, growth, table
from .model import CONTEXTS, Model

__all__ = ["CHAPTERS", "markdown", "part"]

CHAPTERS = {
    "causal": ("attention/causal-prefix.md", "attention/chunked-prefill.md"),
    "grouped heads": ("attention/heads-and-cache.md",),
    "window": ("attention/local-windows.md",),
    "chunks": ("attention/local-windows.md",),
    "latent": ("attention/latent-attention.md",),
    "chosen entries": ("attention/sparse-attention.md",),
    "rotary": ("position/rotary.md",),
    "experts": ("experts/top1.md", "experts/top-k.md"),
    "linear attention": ("recurrence/linear-attention.md",),
    "delta rule": ("recurrence/delta-rule.md",),
    "kimi delta": ("recurrence/kimi-delta.md",),
    "state space": ("recurrence/selective-ssm.md",),
    "state space dual": ("recurrence/state-space-dual.md",),
    "images": ("beyond/image-patches.md",),
}
"""Which chapters explain what a configuration has; one that does not exist is left out."""


def markdown(model: Model, published: bool) -> str:
    """A model's page: its headings, and the places of what the ledger says."""
    title = f"---\ntitle: {json.dumps(model.short)}\ndescription: {json.dumps(_lead(model, plain=True))}\n---\n\n"
    sections = [
        ("The stack", "model-stack"),
        ("Parameters, tensor by tensor", "model-parameters"),
        ("The cache, term by term", "model-cache"),
        ("The work of one token", "model-flops"),
        *([("Published figures", "model-published")] if published else []),
        ("What explains it", "model-chapters"),
        ("Where the configuration comes from", "model-origin"),
    ]
    body = "\n\n".join(
        f'## {name} {{ data-search-exclude }}\n\n<div data-ac="{place}" data-of="{model.name}"></div>'
        for name, place in sections
    )
    return (
        f"{title}# {model.short}\n\n{_lead(model)}\n\n"
        f'<div data-ac="model-glance" data-of="{model.name}"></div>\n\n{body}\n'
    )


def _lead(model: Model, *, plain: bool = False) -> str:
    counted = model.parameters
    met = counted.active.without_input_embedding
    organisation = model.name.split("/")[0]
    family = model.architecture.model_type if plain else f"`{model.architecture.model_type}`"
    text = f"{organisation}’s {model.short}, family {family}: {counted.total:,} parameters"
    if any(isinstance(part, Experts) for layer in model.architecture.layers for part in layer.feed_forwards):
        text += f", of which one token meets {met:,} without the input table"
    return f"{text}. Counted from its configuration alone."


def part(name: str, model: Model, link: Link) -> str:
    """What stands at the place of that name."""
    parts = {
        "model-glance": lambda: _glance(model, link),
        "model-stack": lambda: _stack(model),
        "model-parameters": lambda: _parameters(model),
        "model-cache": lambda: _cache(model),
        "model-flops": lambda: _flops(model),
        "model-chapters": lambda: _chapters(model, link),
        "model-origin": lambda: _origin(model),
    }
    return parts[name]()


def _glance(model: Model, link: Link) -> str:
    counted = model.parameters
    rows = [
        ("Parameters", f"{counted.total:,}"),
        ("Active, with both tables", f"{counted.active.with_embeddings:,}"),
        ("Active, without the input table", f"{counted.active.without_input_embedding:,}"),
        ("Active, without either", f"{counted.active.without_embeddings:,}"),
    ]
    if counted.vision:
        rows[1:1] = [("of the text model", f"{counted.text:,}"), ("of the vision tower", f"{counted.vision:,}")]
    if counted.multi_token_prediction:
        rows.append(("Beside it, for predicting further tokens", f"{counted.multi_token_prediction:,}"))
    if model.decodes:
        first = model.cache(1)
        rows.append(("Scalars a token adds to the cache", growth(first.scalars_per_token)))
        if first.scalars_per_token_beyond != first.scalars_per_token:
            rows.append(("the same once every window is full", growth(first.scalars_per_token_beyond)))
        if first.fixed_scalars:
            rows.append(("Scalars of fixed state", f"{first.fixed_scalars:,}"))
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows)
    command = f"archcards ledger {model.short}"
    live = link("models/live.md")
    asked = f'{escape(live[0])}?a={quote(model.name, safe="")}' if live else ""
    elsewhere = f' At any context, batch and format: <a href="{asked}">in the live ledger</a>.' if live else ""
    return (
        f'<dl class="ac-glance" data-search-exclude>{listed}</dl>'
        f'<p data-search-exclude>The same in a terminal: <code>{escape(command)}</code>.{elsewhere}</p>'
    )


def _stack(model: Model) -> str:
    architecture = model.architecture
    made = []
    if architecture.encoder:
        layers = architecture.encoder.layers
        made += ["<h3>Encoder</h3>", stacks.drawing(layers, "Encoder"), stacks.runs_in_words(layers)]
        made.append("<h3>Decoder</h3>")
    made += [stacks.drawing(architecture.layers, "The stack"), stacks.runs_in_words(architecture.layers)]
    if architecture.vision and architecture.vision.layers:
        layers = architecture.vision.layers
        made += ["<h3>Vision tower</h3>", stacks.drawing(layers, "Vision tower"), stacks.runs_in_words(layers)]
    return f'<div data-search-exclude>{"".join(made)}</div>'


def _parameters(model: Model) -> str:
    lines = accounts.tensor_lines(model.architecture)
    components: dict[str, list[accounts.TensorLine]] = {}
    for line in lines:
        components.setdefault(line.component, []).append(line)
    rows = []
    for component, members in components.items():
        size, active = sum(line.size for line in members), sum(line.active for line in members)
        name = component.replace("_", " ")
        rows.append(
            f'<tr class="ac-sum"><th scope="rowgroup" colspan="4">{escape(name)}</th>'
            f'<td class="ac-number">{size:,}</td><td class="ac-number">{active:,}</td></tr>'
        )
        for line in members:
            shape = " × ".join(f"{side:,}" for side in line.shape) or "1"
            rows.append(
                f'<tr><th scope="row">{escape(line.name)}</th><td class="ac-number">{shape}</td>'
                f'<td class="ac-number">{line.copies:,}</td><td class="ac-number">{line.times:,}</td>'
                f'<td class="ac-number">{line.size:,}</td><td class="ac-number">{line.active:,}</td></tr>'
            )
    total, active = sum(line.size for line in lines), sum(line.active for line in lines)
    rows.append(
        f'<tr class="ac-sum"><th scope="row" colspan="4">all</th>'
        f'<td class="ac-number">{total:,}</td><td class="ac-number">{active:,}</td></tr>'
    )
    note = (
        "Stored is shape times copies times the number of times; a token meets only the experts that it is "
        "routed to."
    )
    if model.parameters.tied:
        note += " The head is the input table again and is not stored twice."
    columns = ("tensor", "shape", "copies", "times", "stored", "met by a token")
    return table(f"Every tensor of {model.short}, each counted once", columns, rows, note=note, numbers=5)


def _cache(model: Model) -> str:
    if not model.decodes:
        return "<p>It does not decode, so it keeps nothing between tokens.</p>"
    rows = []
    found = accounts.cache_lines(model.architecture, CONTEXTS)
    for line in found:
        cells = "".join(f'<td class="ac-number">{scalars:,}</td>' for scalars in line.scalars)
        rows.append(f'<tr><th scope="row">{line.what}</th><td class="ac-working">{_whole(line.working)}</td>{cells}</tr>')
    kept = [model.cache(context) for context in CONTEXTS]
    totals = "".join(f'<td class="ac-number">{one.scalars:,}</td>' for one in kept)
    sizes = "".join(f'<td class="ac-number">{gib(one.bytes)}</td>' for one in kept)
    rows.append(f'<tr class="ac-sum"><th scope="row" colspan="2">scalars</th>{totals}</tr>')
    rows.append(f'<tr class="ac-sum"><th scope="row" colspan="2">in two bytes a scalar</th>{sizes}</tr>')
    note = "T is the number of tokens of the context" + (
        ", S that of the source, here as many." if model.architecture.encoder else "."
    )
    if not all(map(model.within, CONTEXTS)):
        note += f" The configuration allows for {model.architecture.trained_length:,} tokens."
    columns = ("kept", "scalars", *(f"at {context:,}" for context in CONTEXTS))
    return table(f"What one sequence of {model.short} keeps", columns, rows, note=note, numbers=3)


def _whole(working: str) -> str:
    """A formula in which no difference is torn apart at the end of a line."""
    return working.replace(" − ", "\N{NO-BREAK SPACE}−\N{NO-BREAK SPACE}")


def _flops(model: Model) -> str:
    context = next(iter(CONTEXTS))
    counted = model.flops(context)
    rows = []
    if model.decodes:
        step = counted.per_token
        rows.append(_work("weights", "2 × multiply-adds of every matrix that the token meets", step.matmul))
        for line in accounts.work_lines(model.architecture, context):
            rows.append(_work(stacks.words(line.what), line.working, line.flops))
        rows.append(_work(f"one token after {context:,}", "", step.total, total=True))
    whole = counted.per_sequence
    rows.append(_work(f"whole sequence of {counted.context:,}: weights", "", whole.matmul))
    rows.append(_work("whole sequence: reading the past", "each visible pair once", whole.attention))
    rows.append(_work("whole sequence", "", whole.total, total=True))
    kept = model.cache(context) if model.decodes else cache(model.architecture, counted.context)
    remarks = "".join(f"<li>{escape(note)}</li>" for note in notes(model.architecture, kept, counted))
    listed = table(
        f"Forward FLOPs of {model.short}, two for a multiplication with an addition",
        ("part", "working", "FLOPs"),
        rows,
        numbers=1,
    )
    return f'{listed}<p data-search-exclude>What was decided in counting:</p><ul data-search-exclude>{remarks}</ul>'


def _work(what: str, working: str, count: int, *, total: bool = False) -> str:
    kind = ' class="ac-sum"' if total else ""
    return f'<tr{kind}><th scope="row">{what}</th><td class="ac-working">{working}</td><td class="ac-number">{count:,}</td></tr>'


def _chapters(model: Model, link: Link) -> str:
    found: dict[str, str] = {}
    for trait in model.traits:
        for chapter in CHAPTERS.get(trait, ()):
            known = link(chapter)
            if known:
                found.setdefault(chapter, f'<a href="{escape(known[0])}">{escape(known[1])}</a>')
    counting = [link(f"accounting/{name}.md") for name in ("parameters", "cache", "flops", "conventions")]
    how = ", ".join(f'<a href="{escape(href)}">{escape(title)}</a>' for href, title in filter(None, counting))
    items = "".join(f"<li>{item}</li>" for item in found.values())
    listed = f"<p>Its mechanisms:</p><ul>{items}</ul>" if items else ""
    counted = f"<p>How it was counted: {how}.</p>" if how else ""
    return f"<div data-search-exclude>{listed}{counted}</div>"


def _origin(model: Model) -> str:
    known = provenance(model.name)
    digest = hashlib.sha256(json.dumps(model.config, sort_keys=True).encode()).hexdigest()
    rows = [
        ("published as", model.name),
        *known.items(),
        ("SHA-256 of its fields, sorted", digest),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{_linked(value)}</dd>" for name, value in rows)
    shown = escape(json.dumps(model.config, indent=2), quote=False)
    return (
        f'<div data-search-exclude><dl class="ac-glance">{listed}</dl>'
        f'<details class="ac-code"><summary>the configuration that was read</summary>'
        f'<div class="highlight"><pre tabindex="0"><code>{shown}</code></pre></div></details></div>'
    )


def _linked(value: str) -> str:
    """A name or a digest as code, a sentence as text; addresses lead where they say."""
    shown = re.sub(r"https://\S+?(?=,?(?:\s|$))", r'<a href="\g<0>">\g<0></a>', escape(value))
    return shown if " " in value or "<a" in shown else f"<code>{shown}</code>"
