"""Pages about real models, made from their configurations: the list, a card each, comparisons, coverage.

The pages in `docs` say where these stand; nothing of them is committed. Every number is the ledger's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from pathlib import Path

from archcards.evidence.printed import as_printed
from archcards.evidence.sources import Source
from archcards.evidence.yaml_lines import YamlError, read_yaml
from archcards.ledger import (
    Architecture,
    bundled_config,
    bundled_names,
    cache,
    flops,
    parameters,
    read_config,
)
from archcards.ledger.architecture import (
    Attention,
    CompressedAttention,
    Experts,
    LatentAttention,
    Recurrence,
)
from archcards.ledger.bundled import provenance
from archcards.ledger.describe import layer_kinds, notes, repeats
from archcards.ledger.families import READERS, purpose

from . import accounts, stacks

__all__ = ["CONTEXTS", "Link", "Model", "Models", "placeholders"]

CONTEXTS = {8192: "8k", 131072: "128k", 1048576: "1M"}
"""Tokens at which caches are compared, and how a heading names them."""

SCRIPT = "assets/javascripts/models.js"

_GIB = 2**30
_SCALES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "KB": 10**3, "GB": 10**9, "GiB": 2**30}
_PLACE = re.compile(r'<div data-ac="(?P<what>[a-z-]+)"(?: data-of="(?P<of>[^"]*)")?></div>')

Link = Callable[[str], tuple[str, str] | None]
"""Gives address and title of a page under `docs`, seen from the page being drawn; None if there is none."""

# Which chapters explain what a configuration has; a chapter that does not exist is left out.
_CHAPTERS = {
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
_RECURRENCES = {
    "gated_delta": "delta rule",
    "kimi_delta": "kimi delta",
    "lightning": "linear attention",
    "linear_attention": "linear attention",
    "mamba": "state space",
    "mamba2": "state space dual",
}


@dataclass(frozen=True)
class Figure:
    """A figure that somebody published about a model, and which of the ledger's numbers it is."""

    quote: str
    quantity: str
    scale: str
    note: str


@dataclass(frozen=True)
class Model:
    """A bundled model with its ledger."""

    name: str
    config: Mapping[str, object]
    architecture: Architecture

    @property
    def short(self) -> str:
        return self.name.split("/")[1]

    @property
    def src_uri(self) -> str:
        return f"models/{re.sub(r'[^a-z0-9]+', '-', self.short.lower()).strip('-')}.md"

    @cached_property
    def parameters(self):
        return parameters(self.architecture)

    @property
    def decodes(self) -> bool:
        return self.architecture.decodes

    def cache(self, context: int):
        """The cache in two bytes a scalar; an encoder's input is as long as the context."""
        return cache(self.architecture, context, source_length=context if self.architecture.encoder else 0)

    def flops(self, context: int):
        """Of an image model, whose sequence has its own length, the context is left out."""
        if self.architecture.image is not None:
            return flops(self.architecture)
        return flops(self.architecture, context, context if self.architecture.encoder else 0)

    def within(self, context: int) -> bool:
        """Whether the configuration allows for so long a context."""
        longest = self.architecture.trained_length
        return longest is None or context <= longest

    @cached_property
    def traits(self) -> tuple[str, ...]:
        """What the model is made of, in the words by which the list is filtered."""
        return tuple(dict.fromkeys(_traits(self)))

    def quantity(self, name: str) -> int | Fraction:
        """One number of the ledger by its dotted name, such as `active.without_embeddings`."""
        head, _, rest = name.partition(".")
        if head == "cache_bytes":
            return cache(self.architecture, int(rest)).bytes
        if head == "components":
            return self.parameters.components[rest]
        if name == "scalars_per_token":
            return self.cache(1).scalars_per_token
        if name == "without_embeddings":
            counted = self.parameters
            return counted.text - counted.input_embedding - (0 if counted.tied else counted.output_embedding)
        found = self.parameters
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _traits(model: Model) -> Iterator[str]:
    architecture = model.architecture
    if architecture.decodes:
        yield "causal"
    for layer in architecture.layers:
        for mixer in layer.mixers:
            match mixer:
                case Attention():
                    if mixer.kv_heads < mixer.heads:
                        yield "grouped heads"
                    if mixer.reach.kind in ("window", "chunk", "top"):
                        yield {"window": "window", "chunk": "chunks", "top": "chosen entries"}[mixer.reach.kind]
                case LatentAttention():
                    yield "latent"
                    if mixer.indexer:
                        yield "chosen entries"
                case CompressedAttention():
                    yield "window"
                    if mixer.stride:
                        yield "chosen entries"
                case Recurrence():
                    yield "recurrent"
                    if mixer.kind in _RECURRENCES:
                        yield _RECURRENCES[mixer.kind]
        if any(isinstance(part, Experts) for part in layer.feed_forwards):
            yield "experts"
    if any("rope" in key or "rotary" in key for key in _keys(model.config)):
        yield "rotary"
    if architecture.encoder:
        yield "encoder"
    if architecture.vision or architecture.image:
        yield "images"


def _keys(config: Mapping[str, object]) -> Iterator[str]:
    for key, value in config.items():
        yield key
        if isinstance(value, Mapping):
            yield from _keys(value)


def placeholders(page: str, fill: Callable[[str, str], str | None]) -> str:
    """The page with each `<div data-ac="what" data-of="which">` replaced by what `fill` makes of it."""

    def put(found: re.Match[str]) -> str:
        made = fill(found["what"], found["of"] or "")
        return found.group() if made is None else made

    return _PLACE.sub(put, page)


class Models:
    """All bundled models, and the figures published about them (`docs/models/published.yml`)."""

    def __init__(self, docs: Path, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self.faults: list[tuple[int, str]] = []
        self.file = docs / "models" / "published.yml"

    @cached_property
    def models(self) -> dict[str, Model]:
        found = {}
        for name in bundled_names():
            config = bundled_config(name)
            found[name] = Model(name, config, read_config(config))
        pages = [model.src_uri for model in found.values()]
        if len(set(pages)) < len(pages):
            twice = sorted({page for page in pages if pages.count(page) > 1})
            raise ValueError(f"bundled models share a page: {', '.join(twice)}")
        return found

    @cached_property
    def figures(self) -> dict[str, list[Figure]]:
        """Published figures by model; what is wrong with the file goes to `faults`."""
        found: dict[str, list[Figure]] = {}
        if not self.file.exists():
            return found
        try:
            root = read_yaml(self.file.read_text("utf-8"))
        except YamlError as error:
            self.faults.append((error.line, error.reason))
            return found
        for name, line in root.keys:
            if name not in self.models:
                self.faults.append((line, f"{name} is no bundled model"))
                continue
            for node in root.value[name].value:
                entry = node.plain()
                try:
                    figure = Figure(
                        entry["quote"], entry["quantity"], entry.get("scale", ""), entry.get("note", "")
                    )
                    agrees = self._agrees(self.models[name], figure)
                except (KeyError, AttributeError, ValueError) as error:
                    self.faults.append((node.line, f"{name}: {type(error).__name__} {error}"))
                    continue
                if not agrees and not figure.note:
                    self.faults.append((node.line, f"{name}: {figure.quote} differs and nothing says why"))
                found.setdefault(name, []).append(figure)
        return found

    def _agrees(self, model: Model, figure: Figure) -> bool:
        printed = self._quote(figure.quote).value
        return as_printed(model.quantity(figure.quantity), printed, unit=_SCALES[figure.scale])

    def _quote(self, name: str):
        key, _, value = name.partition(".")
        return self.sources[key].quotes[value]

    # Pages

    def pages(self) -> dict[str, str]:
        """The Markdown of each model's page, by its path under `docs`."""
        return {model.src_uri: _page(model, bool(self.figures.get(name))) for name, model in self.models.items()}

    def fill(self, what: str, of: str, link: Link) -> str | None:
        """What stands at a place of a page; None if it is no place of this module's."""
        if what == "models":
            return self._list(link)
        if what == "coverage":
            return self._coverage(link)
        if what == "compare":
            first, second = of.split()
            return _compare(self.models[first], self.models[second], link)
        if what.startswith("model-"):
            model = self.models[of]
            parts = {
                "model-glance": lambda: _glance(model),
                "model-stack": lambda: _stack(model),
                "model-parameters": lambda: _parameters(model),
                "model-cache": lambda: _cache(model),
                "model-flops": lambda: _flops(model),
                "model-published": lambda: self._published(model),
                "model-chapters": lambda: _chapters(model, link),
                "model-origin": lambda: _origin(model),
            }
            return parts[what]()
        return None

    def _list(self, link: Link) -> str:
        rows = "".join(_row(model, link) for model in self.models.values())
        heads = [
            ("model", "text"),
            ("parameters", "number"),
            ("active", "number"),
            ("a token adds", "number"),
            *((f"GiB at {name}", "number") for name in CONTEXTS.values()),
            ("fixed state", "number"),
            ("FLOPs a token", "number"),
            ("made of", "text"),
        ]
        head = "".join(f'<th scope="col" class="ac-{kind}">{name}</th>' for name, kind in heads)
        home = link("index.md")
        script = f'<script src="{escape(home[0] if home else "")}{SCRIPT}" defer></script>'
        return (
            f'<div class="ac-table ac-models" role="region" tabindex="0" aria-label="Bundled models" '
            f'data-search-exclude><table class="ac-paper"><caption class="ac-unseen">Bundled models</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{script}"
        )

    def _coverage(self, link: Link) -> str:
        """Each family that is read, what its reader says of it, and the bundled models that prove it."""
        by_type: dict[str, list[Model]] = {}
        for model in self.models.values():
            by_type.setdefault(model.architecture.model_type, []).append(model)
        rows = []
        for model_type in sorted(READERS):
            models = ", ".join(_anchor(model, link) for model in by_type.get(model_type, ()))
            rows.append(
                f'<tr><th scope="row"><code>{escape(model_type)}</code></th>'
                f"<td>{escape(purpose(model_type))}</td><td>{models}</td></tr>"
            )
        return _table(
            f"The {len(READERS)} values of model_type that the ledger reads",
            ("model_type", "what it reads", "bundled models"),
            rows,
            search=True,
        )

    def _published(self, model: Model) -> str:
        rows = []
        for figure in self.figures.get(model.name, ()):
            quote = self._quote(figure.quote)
            source = self.sources[figure.quote.partition(".")[0]]
            counted = model.quantity(figure.quantity)
            same = self._agrees(model, figure)
            mark = "equal" if same else "not equal"
            title = f'<a href="{escape(source.url)}">{escape(source.title)}</a>, {escape(quote.where)}'
            rows.append(
                f'<tr><th scope="row">{title}</th><td class="ac-number">{escape(str(quote.value))} '
                f'{escape(quote.unit or "")}</td><td class="ac-number">{counted:,}</td>'
                f"<td>{escape(_quantity_words(figure.quantity))}</td>"
                f'<td class="ac-{"same" if same else "other"}">{mark}</td><td>{escape(figure.note)}</td></tr>'
            )
        columns = ("printed in", "printed", "computed", "counted as", "to the digits printed", "why")
        return _table("Published figures beside the computed ones", columns, rows)


_QUANTITIES = {
    "total": "all parameters",
    "text": "the text model",
    "vision": "the vision tower and its projector",
    "input_embedding": "the input table",
    "without_embeddings": "all but both tables",
    "active.with_embeddings": "active, with both tables",
    "active.without_input_embedding": "active, without the input table",
    "active.without_embeddings": "active, without either table",
    "scalars_per_token": "scalars that a token adds to the cache",
}


def _quantity_words(name: str) -> str:
    head, _, rest = name.partition(".")
    if head == "cache_bytes":
        return f"bytes of cache, {int(rest):,} token{'s' * (rest != '1')} in two bytes a scalar"
    return _QUANTITIES.get(name, rest.replace("_", " ") if head == "components" else name)


def _page(model: Model, published: bool) -> str:
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


# Parts of a model's page


def _glance(model: Model) -> str:
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
        rows.append(("Scalars a token adds to the cache", _growth(first.scalars_per_token)))
        if first.scalars_per_token_beyond != first.scalars_per_token:
            rows.append(("the same once every window is full", _growth(first.scalars_per_token_beyond)))
        if first.fixed_scalars:
            rows.append(("Scalars of fixed state", f"{first.fixed_scalars:,}"))
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows)
    command = f"archcards ledger {model.short}"
    return (
        f'<dl class="ac-glance" data-search-exclude>{listed}</dl>'
        f'<p data-search-exclude>The same in a terminal: <code>{escape(command)}</code>.</p>'
    )


def _growth(scalars: int | Fraction) -> str:
    if isinstance(scalars, int):
        return f"{scalars:,}"
    return f"{float(scalars):,.2f} on average"


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
    return _table(f"Every tensor of {model.short}, each counted once", columns, rows, note=note, numbers=5)


def _cache(model: Model) -> str:
    if not model.decodes:
        return "<p>It does not decode, so it keeps nothing between tokens.</p>"
    rows = []
    found = accounts.cache_lines(model.architecture, CONTEXTS)
    for line in found:
        cells = "".join(f'<td class="ac-number">{scalars:,}</td>' for scalars in line.scalars)
        rows.append(f'<tr><th scope="row">{line.what}</th><td class="ac-working">{line.working}</td>{cells}</tr>')
    kept = [model.cache(context) for context in CONTEXTS]
    totals = "".join(f'<td class="ac-number">{one.scalars:,}</td>' for one in kept)
    sizes = "".join(f'<td class="ac-number">{_gib(one.bytes)}</td>' for one in kept)
    rows.append(f'<tr class="ac-sum"><th scope="row" colspan="2">scalars</th>{totals}</tr>')
    rows.append(f'<tr class="ac-sum"><th scope="row" colspan="2">in two bytes a scalar</th>{sizes}</tr>')
    note = "T is the number of tokens of the context" + (
        ", S that of the source, here as many." if model.architecture.encoder else "."
    )
    if not all(map(model.within, CONTEXTS)):
        note += f" The configuration allows for {model.architecture.trained_length:,} tokens."
    columns = ("kept", "scalars", *(f"at {context:,}" for context in CONTEXTS))
    return _table(f"What one sequence of {model.short} keeps", columns, rows, note=note, numbers=3)


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
    table = _table(
        f"Forward FLOPs of {model.short}, two for a multiplication with an addition",
        ("part", "working", "FLOPs"),
        rows,
        numbers=1,
    )
    return f'{table}<p data-search-exclude>What was decided in counting:</p><ul data-search-exclude>{remarks}</ul>'


def _work(what: str, working: str, count: int, *, total: bool = False) -> str:
    kind = ' class="ac-sum"' if total else ""
    return f'<tr{kind}><th scope="row">{what}</th><td class="ac-working">{working}</td><td class="ac-number">{count:,}</td></tr>'


def _chapters(model: Model, link: Link) -> str:
    found: dict[str, str] = {}
    for trait in model.traits:
        for chapter in _CHAPTERS.get(trait, ()):
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
        *((str(key).replace("_", " "), str(value)) for key, value in known.items()),
        ("SHA-256 of its fields, sorted", digest),
    ]
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{_linked(value)}</dd>" for name, value in rows
    )
    shown = escape(json.dumps(model.config, indent=2), quote=False)
    return (
        f'<div data-search-exclude><dl class="ac-glance">{listed}</dl>'
        f'<details class="ac-code"><summary>the configuration that was read</summary>'
        f'<div class="highlight"><pre tabindex="0"><code>{shown}</code></pre></div></details></div>'
    )


def _linked(value: str) -> str:
    shown = escape(value)
    return f'<a href="{shown}">{shown}</a>' if value.startswith("https://") else f"<code>{shown}</code>"


# The list and the comparison


def _row(model: Model, link: Link) -> str:
    counted = model.parameters
    cells = [
        f'<th scope="row">{_anchor(model, link)}</th>',
        _cell(counted.total, _short(counted.total)),
        _cell(counted.active.without_input_embedding, _short(counted.active.without_input_embedding)),
    ]
    if model.decodes:
        first = model.cache(1)
        cells.append(_cell(float(first.scalars_per_token), _growth(first.scalars_per_token).split()[0]))
        for context in CONTEXTS:
            size = model.cache(context).bytes
            cells.append(_cell(size, _gib(size).removesuffix(" GiB"), beyond=not model.within(context)))
        cells.append(_cell(first.fixed_scalars, f"{first.fixed_scalars:,}"))
    else:
        cells += [_cell(0, "none")] * (2 + len(CONTEXTS))
    work = model.flops(next(iter(CONTEXTS))).per_token.total
    cells.append(_cell(work, _short(work)))
    made_of = escape(", ".join(trait for trait in model.traits if trait not in ("causal", "rotary")))
    cells.append(f'<td class="ac-made-of">{made_of}</td>')
    traits = escape(" ".join((model.name, model.architecture.model_type, *model.traits)).lower())
    return f'<tr data-words="{traits}">{"".join(cells)}</tr>'


def _anchor(model: Model, link: Link) -> str:
    known = link(model.src_uri)
    return f'<a href="{escape(known[0])}">{escape(model.short)}</a>' if known else escape(model.short)


def _cell(value: float, shown: str, *, beyond: bool = False) -> str:
    kind = "ac-number ac-beyond" if beyond else "ac-number"
    return f'<td class="{kind}" data-value="{value:.15g}">{shown}</td>'


def _short(count: int) -> str:
    """Four digits and a unit, for a table to be skimmed; the exact number stands on the model's page."""
    for unit, name in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:,}"


def _gib(size: int) -> str:
    digits = 3 if size < 100 * _GIB else 1
    return f"{size / _GIB:,.{digits}f} GiB"


def _compare(first: Model, second: Model, link: Link) -> str:
    """Two models side by side: their totals, then layer by layer from the bottom."""
    pairs = [
        ("parameters", *(one.parameters.total for one in (first, second))),
        ("active, without the input table", *(
            one.parameters.active.without_input_embedding for one in (first, second))),
    ]
    if first.decodes and second.decodes:
        for context in CONTEXTS:
            pairs.append((f"cached scalars at {context:,}", *(one.cache(context).scalars for one in (first, second))))
        context = next(iter(CONTEXTS))
        pairs.append((f"FLOPs of a token after {context:,}", *(
            one.flops(context).per_token.total for one in (first, second))))
    totals = [
        f'<tr><th scope="row">{name}</th><td class="ac-number">{a:,}</td><td class="ac-number">{b:,}</td>'
        f'<td class="ac-number">{b / a:.3g}</td></tr>'
        for name, a, b in pairs
    ]
    names = (_anchor(first, link), _anchor(second, link))
    label = f"{first.short} and {second.short}"
    return _table(label, ("quantity", *names, "second over first"), totals, numbers=3) + _table(
        f"{label}, layer by layer", ("layers", *names), _layer_rows(first, second)
    )


def _layer_rows(first: Model, second: Model) -> Iterator[str]:
    """Equal neighbours and repeated patterns together, the two stacks in step."""
    depth = max(len(one.architecture.layers) for one in (first, second))
    sides = [
        [layer_kinds(layer) for layer in one.architecture.layers] for one in (first, second)
    ]
    both = list(zip(*(side + [""] * (depth - len(side)) for side in sides), strict=True))
    place = 1
    for times, unit in repeats(both):
        last = place + times * sum(count for count, _ in unit) - 1
        for number, (count, kinds) in enumerate(unit):
            if len(unit) == 1:
                span = f"{place} to {last}" if last > place else f"{place}"
            else:
                repeated = f"{place} to {last}, {times} times: " if times > 1 else f"{place} to {last}: "
                span = f"{repeated if number == 0 else '… then '}{count}"
            cells = "".join(f"<td>{_parts(*sides)}</td>" for sides in (kinds, kinds[::-1]))
            yield f'<tr><th scope="row">{span}</th>{cells}</tr>'
        place = last + 1


def _parts(here: str, there: str) -> str:
    """What a layer consists of; what the other model's layer has as well is marked."""
    shared = set(there.split(" | "))
    return "<br>".join(
        f'<span class="ac-shared">{stacks.words(part)}</span>' if part in shared else stacks.words(part)
        for part in here.split(" | ")
    ) or "—"


def _table(
    caption: str,
    columns: Iterable[str],
    rows: Iterable[str],
    *,
    note: str = "",
    numbers: int = 0,
    search: bool = False,
) -> str:
    """A table that scrolls sideways where it is wider than the page; the last `numbers` columns are numbers."""
    columns = list(columns)
    text = len(columns) - numbers
    head = "".join(
        f'<th scope="col" class="ac-{"text" if place < text else "number"}">{column}</th>'
        for place, column in enumerate(columns)
    )
    hidden = "" if search else " data-search-exclude"
    after = f"<p{hidden}>{escape(note)}</p>" if note else ""
    return (
        f'<div class="ac-table" role="region" tabindex="0" aria-label="{escape(caption)}"{hidden}>'
        f'<table class="ac-paper"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div>{after}'
    )
