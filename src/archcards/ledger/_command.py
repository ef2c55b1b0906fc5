"""What `archcards ledger` and `archcards models` print."""

import json
import os
import re
import sys
from collections.abc import Iterator

from .architecture import Architecture
from .bundled import bundled_config, bundled_names, find
from .cache import Cache, cache, largest_batch, largest_context
from .describe import (
    cache_record,
    flops_record,
    in_step,
    notes,
    parameters_record,
    patterns,
    runs,
)
from .families import READERS, purpose
from .flops import Flops, flops, torchtitan, training_per_token
from .parameters import Parameters, parameters
from .reading import LARGEST_FILE, load, parse, read_config

__all__ = ["ledger", "models"]

WIDTH = 80
UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


_DIGITS = re.compile(r"[0-9]{1,40}", re.ASCII)


def _numbers(name: str, text: str) -> list[int]:
    """Whole numbers, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 64:
        raise ValueError(f"{name}: expected at most 64 values, came {len(parts)}")
    if not all(map(_DIGITS.fullmatch, parts)):
        raise ValueError(
            f"{name}: expected whole numbers separated by commas, came {text[:40]!r}"
        )
    return [int(part) for part in parts]


def _number(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text.strip()):
        raise ValueError(f"{name}: expected a whole number, came {text[:40]!r}")
    return int(text)


def _bytes(text: str) -> int:
    """A memory size such as 80GB (10^9) or 24GiB (2^30)."""
    match = re.fullmatch(
        r"\s*([0-9]{1,18})(?:\.([0-9]{1,6}))?\s*([KMGT]?I?B)?\s*", text.upper(), re.ASCII
    )
    if match is None or (match[3] or "") not in UNITS:
        raise ValueError(f"memory: expected a size such as 80GB or 24GiB, came {text[:40]!r}")
    fraction = match[2] or ""
    return int(match[1] + fraction) * UNITS[match[3] or ""] // 10 ** len(fraction)


def _config(given: str) -> tuple[str, dict]:
    """The configuration that the argument means, and a name for it."""
    if given == "-":
        if sys.stdin is None:
            raise ValueError("standard input: expected a configuration, came nothing")
        return "standard input", parse(sys.stdin.buffer.read(LARGEST_FILE + 1), "standard input")
    if given.endswith(".json") or os.path.exists(given):
        # A name may hold bytes that no terminal can show.
        return given.encode("ascii", "backslashreplace").decode(), load(given)
    name = find(given)
    return name, bundled_config(name)


def _both(size: int) -> str:
    """Bytes as GB (10^9) and as GiB (2^30), exact when they are few."""
    if size < 10**5:
        return f"{size:,} bytes"
    return f"{_scaled(size, 10**9)} GB = {_scaled(size, 2**30)} GiB"


def _scaled(size: int, unit: int) -> str:
    """Three digits after the point, rounded half up; six below a tenth of the unit."""
    digits = 3 if size >= unit // 10 else 6
    scaled = (size * 10**digits * 2 + unit) // (2 * unit)
    return f"{scaled // 10**digits:,}.{scaled % 10**digits:0{digits}d}"


def _line(label: str, value: int | str, indent: int = 0) -> str:
    """A label and a number at the right margin."""
    text = f"{value:,}" if isinstance(value, int) else value
    left = " " * indent + label
    return f"{left}{' ' * max(2, WIDTH - len(left) - len(text))}{text}"


def _parameter_lines(counted: Parameters) -> Iterator[str]:
    yield _line("Parameters", counted.total)
    for component, number in counted.components.items():
        yield _line(component.replace("_", " "), number, 2)
    if counted.multi_token_prediction:
        yield _line("beside them, multi-token prediction", counted.multi_token_prediction, 2)
    yield _line("stored at 2 bytes each", _both(2 * counted.total), 2)
    yield ""
    yield _line("Active per token, with both embeddings", counted.active.with_embeddings)
    yield _line("without the input table", counted.active.without_input_embedding, 2)
    yield _line("without either", counted.active.without_embeddings, 2)


def _cache_lines(kept: Cache, form: str, state: str) -> Iterator[str]:
    yield _line(
        f"Cache of {kept.context:,} tokens, batch {kept.batch:,}, {form}"
        + (f", memory {state}" if state != form else ""),
        _both(kept.bytes),
    )
    for term in kept.terms:
        number = term.scalars(kept.context, kept.source_length)
        words = term.kind.replace("_", " ")
        if term.fixed_scalars:
            words += f": {term.layers} layers, fixed"
        else:
            entries = term.entries(kept.source_length if term.source else kept.context)
            words += f": {term.layers} layers x {term.scalars_per_token:,} x {entries:,}"
            if term.stride > 1:
                words += f" (one per {term.stride})"
            if term.limit is not None:
                words += f" (at most {term.limit:,})"
        yield _line(words, number, 2)
    yield _line("scalars, all sequences", kept.scalars, 2)
    if kept.scalars_per_token:
        yield _line(
            "a token adds",
            f"{kept.scalars_per_token:,}"
            if isinstance(kept.scalars_per_token, int)
            else str(kept.scalars_per_token),
            2,
        )
    if kept.scalars_per_token_beyond != kept.scalars_per_token:
        yield _line(
            "beyond every limit",
            str(kept.scalars_per_token_beyond)
            if not isinstance(kept.scalars_per_token_beyond, int)
            else f"{kept.scalars_per_token_beyond:,}",
            2,
        )
    if kept.scalars_per_source_token:
        yield _line("a source token adds", kept.scalars_per_source_token, 2)


def _flops_lines(counted: Flops) -> Iterator[str]:
    yield _line(f"FLOPs of one token after {counted.context - 1:,}", counted.per_token.total)
    yield _line("weights", counted.per_token.matmul, 2)
    yield _line("attention and memory", counted.per_token.attention, 2)
    yield _line(f"FLOPs of all {counted.context:,} tokens", counted.per_sequence.total)
    yield _line("weights", counted.per_sequence.matmul, 2)
    yield _line("attention and memory", counted.per_sequence.attention, 2)


def _layer_lines(architecture: Architecture) -> Iterator[str]:
    yield _line("Layers", len(architecture.layers))
    found = patterns(architecture.layers)
    for times, unit in found[:12]:
        margin = "  "
        if len(unit) > 1 and times > 1:
            yield f"  {times} times"
            margin = "    "
        for count, words in unit:
            number = count * times if len(unit) == 1 else count
            yield from _wrapped(f"{number} x {words}", margin, margin + "    ")
    if len(found) > 12:
        rest = sum(times * sum(count for count, _ in unit) for times, unit in found[12:])
        yield f"  and {rest} more layers"


def _cut(line: str) -> str:
    """A line cut to the width of the page, between words."""
    if len(line) <= WIDTH:
        return line
    return line[: WIDTH - 3].rsplit(" ", 1)[0].rstrip(",;:") + " ..."


def _wrapped(text: str, first: str, further: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=further)


def _note_lines(found: list[str]) -> Iterator[str]:
    yield "Notes"
    for note in found:
        yield from _wrapped(note, "  - ", "    ")


def _beside(given, context: int, options: dict) -> Iterator[str]:
    """Two models, their totals in two columns and then their layers in step."""
    named = [_config(model) for model in (given.model, given.beside)]
    both = [read_config(config) for _, config in named]
    totals: list[tuple[str, list]] = [("", [name.rsplit("/", 1)[-1][:24] for name, _ in named])]
    counted = [parameters(one) for one in both]
    totals += [
        ("Parameters", [one.total for one in counted]),
        ("  active, both embeddings", [one.active.with_embeddings for one in counted]),
        ("  active, no input table", [one.active.without_input_embedding for one in counted]),
    ]
    kept = [cache(one, context, **options) for one in both]
    work = [flops(one, context, options["source_length"]) for one in both]
    totals += [
        (f"Cached at {context:,}, scalars", [one.scalars for one in kept]),
        (f"  bytes, {given.dtype}", [one.bytes for one in kept]),
        ("  a token adds", [one.scalars_per_token for one in kept]),
        ("  fixed", [one.fixed_scalars for one in kept]),
        ("FLOPs of one token", [one.per_token.total for one in work]),
    ]
    for label, pair in totals:
        shown = [f"{one:,}" if isinstance(one, int) else str(one) for one in pair]
        yield f"{label:<30}{shown[0]:>25}{shown[1]:>25}".rstrip()
    yield ""
    yield "Layers, from the input up"
    for span, here, there in in_step(*both):
        if here == there:
            yield from _wrapped(f"{span}: both {here}", "  ", "      ")
        else:
            yield f"  {span}"
            yield from _wrapped(here or "none", "    < ", "      ")
            yield from _wrapped(there or "none", "    > ", "      ")


def ledger(given) -> int:
    """Prints the ledger of a model: a table, or one JSON object."""
    contexts, batches = _numbers("context", given.context), _numbers("batch", given.batch)
    if len(contexts) * len(batches) > 1024:
        raise ValueError(
            f"context: expected at most 1024 pairs with batch, came {len(contexts) * len(batches)}"
        )
    options = {
        "dtype": given.dtype,
        "state_dtype": given.state_dtype,
        "reserve": given.reserve,
        "ranks": _number("ranks", given.ranks),
    }
    source = _number("source-length", given.source_length)
    if given.beside is not None:
        if given.json or given.memory or given.flops != "exact" or len(contexts) * len(batches) > 1:
            raise ValueError(
                "beside: expected one context, one batch and no --json, --memory or --flops, "
                "came more"
            )
        options |= {"batch": batches[0], "source_length": source}
        print("\n".join(_beside(given, contexts[0], options)))
        return 0
    memory = None if given.memory is None else _bytes(given.memory)
    name, config = _config(given.model)
    architecture = read_config(config)
    counted = parameters(architecture)
    work = flops(architecture, contexts[0], source)
    if architecture.image is not None:
        contexts = [work.context]
    kept = cache(architecture, contexts[0], batches[0], source, **options)
    remarks = notes(architecture, kept, work, given.reserve)
    training: dict[str, int] = {
        "three_times_forward": training_per_token(architecture, work.context)
    }
    if given.flops == "torchtitan":
        training["torchtitan"] = torchtitan(architecture, work.context)
        training["torchtitan_exact_pairs"] = torchtitan(
            architecture, work.context, exact_pairs=True
        )
    sweep = [
        cache(architecture, context, batch, source, **options)
        for context in contexts
        for batch in batches
    ]
    fits = None
    if memory is not None and kept.bytes:
        more = {"source_length": source, **options}
        fits = {
            "memory": memory,
            "largest_context": largest_context(architecture, memory, batches[0], **more),
            "largest_batch": largest_batch(architecture, memory, contexts[0], **more),
        }
    if memory is not None:
        remarks.append(
            "what fits in the memory is the cache alone: the weights need room of their own"
            if fits
            else "nothing is cached, so the memory limits neither context nor batch"
        )
    if given.json:
        record = {
            "model": name,
            "model_type": architecture.model_type,
            "parameters": parameters_record(counted),
            "layers": [
                {"count": count, "kind": words} for count, words in runs(architecture.layers)
            ],
            "cache": {
                "dtype": given.dtype,
                "state_dtype": given.state_dtype or given.dtype,
                "reserve": given.reserve,
                **cache_record(kept),
            },
            "flops": {**flops_record(work), "training_per_token": training},
            "notes": remarks,
        }
        if len(sweep) > 1:
            record["sweep"] = [
                {
                    "context": one.context,
                    "batch": one.batch,
                    "scalars": one.scalars,
                    "bytes": one.bytes,
                }
                for one in sweep
            ]
        if fits is not None:
            record["fits"] = fits
        print(json.dumps(record, indent=2, allow_nan=False))
        return 0
    lines = [
        f"{name} ({architecture.model_type})",
        "",
        *_layer_lines(architecture),
        "",
        *_parameter_lines(counted),
        "",
    ]
    if architecture.decodes:
        lines += [*_cache_lines(kept, given.dtype, given.state_dtype or given.dtype), ""]
    if len(sweep) > 1 and architecture.decodes:
        lines += [
            _line(f"Cache of {one.context:,} tokens, batch {one.batch:,}", _both(one.bytes))
            for one in sweep[1:]
        ] + [""]
    if fits is not None:
        longest = fits["largest_context"]
        lines += [
            _line(
                f"In {_both(memory)} fit, at batch {batches[0]:,}",
                "any context" if longest is None else f"{longest:,} tokens",
            ),
            _line(f"or, at {contexts[0]:,} tokens", f"{fits['largest_batch']:,} sequences", 2),
            "",
        ]
    lines += [*_flops_lines(work)]
    lines.append(
        _line("Training FLOPs a token, three times forward", training["three_times_forward"])
    )
    if given.flops == "torchtitan":
        lines += [
            _line("as torchtitan counts them", training["torchtitan"], 2),
            _line("the same with the visible pairs only", training["torchtitan_exact_pairs"], 2),
        ]
    lines += ["", *_note_lines(remarks)]
    print("\n".join(lines))
    return 0


def models(given) -> int:
    """Prints the bundled models, one a line, or the families that can be read."""
    if given.families:
        width = max(map(len, READERS))
        for model_type in sorted(READERS):
            print(_cut(f"{model_type:<{width}}  {purpose(model_type)}"))
        return 0
    if given.json:
        found = []
        for name in bundled_names():
            architecture = read_config(bundled_config(name))
            counted = parameters(architecture)
            found.append(
                {
                    "model": name,
                    "model_type": architecture.model_type,
                    "parameters": parameters_record(counted),
                }
            )
        print(json.dumps(found, indent=2, allow_nan=False))
        return 0
    for name in bundled_names():
        architecture = read_config(bundled_config(name))
        print(_line(f"{name}  ({architecture.model_type})", parameters(architecture).total))
    return 0
