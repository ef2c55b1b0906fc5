"""Pages about real models, made from their configurations: the list, a card each, comparisons, coverage.

The pages in `docs` say where these stand; nothing of them is committed. Every number is the ledger's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from archcards.evidence.printed import as_printed
from archcards.evidence.sources import Source
from archcards.evidence.yaml_lines import YamlError, read_yaml
from archcards.ledger import bundled_config, bundled_names, read_config

from . import coverage, model_page
from .comparison import compare
from .layout import Link, anchor, gib, growth, short, table
from .model import CONTEXTS, Model

__all__ = ["Models", "placeholders"]

SCRIPT = "assets/javascripts/models.js"

_SCALES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "KB": 10**3, "GB": 10**9, "GiB": 2**30}
_PLACE = re.compile(r'<div data-ac="(?P<what>[a-z-]+)"(?: data-of="(?P<of>[^"]*)")?></div>')

_QUANTITIES = {
    "total": "all parameters",
    "with_prediction": "all parameters, with the modules for further tokens",
    "multi_token_prediction": "the modules for further tokens",
    "text": "the text model",
    "vision": "the vision tower and its projector",
    "input_embedding": "the input table",
    "without_embeddings": "all but both tables",
    "active.with_embeddings": "active, with both tables",
    "active.without_input_embedding": "active, without the input table",
    "active.without_embeddings": "active, without either table",
    "scalars_per_token": "scalars that a token adds to the cache",
}


@dataclass(frozen=True)
class Figure:
    """A figure that somebody published about a model, and which of the ledger's numbers it is."""

    quote: str
    quantity: str
    scale: str
    note: str


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

    def listed(self) -> list[Model]:
        """In the order of the names that readers see, which are without the organisation."""
        return sorted(self.models.values(), key=lambda model: model.short.casefold())

    def pages(self) -> dict[str, str]:
        """The Markdown of each model's page, by its path under `docs`."""
        return {model.src_uri: model_page.markdown(model, bool(self.figures.get(name))) for name, model in self.models.items()}

    def fill(self, what: str, of: str, link: Link) -> str | None:
        """What stands at a place of a page; None if it is no place of this module's."""
        if what == "models":
            return self._list(link)
        if what == "coverage":
            return coverage.families_table(self.models.values(), link)
        if what == "refusals":
            return coverage.refusals_table()
        if what == "conditions":
            return coverage.conditions_table()
        if what == "unread":
            return coverage.unread_list()
        if what == "compare":
            first, second = of.split()
            return compare(self.models[first], self.models[second], link)
        if what == "model-published":
            return self._published(self.models[of])
        if what.startswith("model-"):
            return model_page.part(what, self.models[of], link)
        return None

    def _list(self, link: Link) -> str:
        rows = "".join(_row(model, link) for model in self.listed())
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
        head = head.replace(">", ' aria-sort="ascending">', 1)  # they are in the order of their names
        home = link("index.md")
        script = f'<script src="{escape(home[0] if home else "")}{SCRIPT}" defer></script>'
        # Here from the start, so that nothing moves when its script comes; hidden where none runs.
        form = (
            '<form class="ac-filter" role="search" aria-label="Models" data-search-exclude><label>Filter '
            '<input type="search" placeholder="window experts" autocomplete="off"></label>'
            f"<output>{len(self.models)} models</output></form>"
        )
        return (
            f'{form}<div class="ac-table ac-models" id="table-bundled-models" role="region" tabindex="0" aria-label="Bundled models" '
            f'data-search-exclude><table class="ac-paper"><caption class="ac-unseen">Bundled models</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{script}"
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
                f'<tr><th scope="row">{title}</th><td class="ac-number">{_printed(quote.value)} '
                f'{escape(quote.unit or "")}</td><td class="ac-number">{counted:,}</td>'
                f"<td>{escape(_quantity_words(figure.quantity))}</td>"
                f'<td class="ac-{"same" if same else "other"}">{mark}</td><td>{escape(figure.note)}</td></tr>'
            )
        columns = ("printed in", "printed", "computed", "counted as", "to the digits printed", "why")
        return table("Published figures beside the computed ones", columns, rows)


def _printed(value: int | float | str) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _quantity_words(name: str) -> str:
    head, _, rest = name.partition(".")
    if head == "cache_bytes":
        return f"bytes of cache, {int(rest):,} token{'s' * (rest != '1')} in two bytes a scalar"
    return _QUANTITIES.get(name, rest.replace("_", " ") if head == "components" else name)


def _row(model: Model, link: Link) -> str:
    counted = model.parameters
    cells = [
        f'<th scope="row">{anchor(model, link)}</th>',
        _cell(counted.total, short(counted.total)),
        _cell(counted.active.without_input_embedding, short(counted.active.without_input_embedding)),
    ]
    if model.decodes:
        first = model.cache(1)
        cells.append(_cell(float(first.scalars_per_token), growth(first.scalars_per_token).split()[0]))
        for context in CONTEXTS:
            size = model.cache(context).bytes
            cells.append(_cell(size, gib(size).removesuffix(" GiB"), beyond=not model.within(context)))
        cells.append(_cell(first.fixed_scalars, f"{first.fixed_scalars:,}"))
    else:
        cells += [_cell(0, "none")] * (2 + len(CONTEXTS))
    work = model.flops(next(iter(CONTEXTS))).per_token.total
    cells.append(_cell(work, short(work)))
    made_of = escape(", ".join(trait for trait in model.traits if trait not in ("causal", "rotary")))
    cells.append(f'<td class="ac-made-of">{made_of}</td>')
    traits = escape(" ".join((model.name, model.architecture.model_type, *model.traits)).lower())
    return f'<tr data-words="{traits}">{"".join(cells)}</tr>'


def _cell(value: float, shown: str, *, beyond: bool = False) -> str:
    kind = "ac-number ac-beyond" if beyond else "ac-number"
    return f'<td class="{kind}" data-value="{value:.15g}">{shown}</td>'
