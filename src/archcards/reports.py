"""The two reports: what the cards state, and what the laboratory finds when it runs the mechanisms.

`cards()` and `lab()` return what `archcards report cards` and `archcards report lab` print as JSON.
Every value is computed here, by the mechanisms; a check that fails raises `ReportFailed`, and then
there is no report.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .checkout import find_checkout
from .mechanisms import (
    AttentionState,
    Frequencies,
    KVCache,
    attend,
    attention,
    causal,
    delta_write,
    edges,
    gated_write,
    latent_read,
    linear_attention,
    output_distribution,
    power_law,
    rotate,
    sliding_window,
    softmax,
    with_global,
)

if TYPE_CHECKING:
    from .evidence.book import Page
    from .evidence.chapter import Chapter

__all__ = ["CARD_FIELDS", "ReportFailed", "cards", "chapter_cards", "lab"]

CARD_FIELDS = (
    "name",
    "changed_component",
    "invariant_core",
    "analytical_consequence",
    "empirical_source_boundary",
    "later_subject",
)
# The cards that the report must have, in its order; those of further chapters follow.
FIRST_CHAPTERS = (
    "docs/attention/local-windows.md",
    "docs/attention/heads-and-cache.md",
    "docs/experts/top1.md",
    "docs/beyond/image-patches.md",
    "docs/recurrence/selective-ssm.md",
)
SEED = 184
TOLERANCE = 1e-11


class ReportFailed(Exception):
    """What a report found wrong, a line for each finding."""


def cards(architecture_cards: Iterable[Mapping[str, str]] | None = None) -> dict:
    """The toy ledgers behind the cards, and the cards themselves.

    Args:
        architecture_cards: The cards of the chapters, the facts in their text resolved; by default
            those of the checkout, whose chapters are run for it.

    Raises:
        ReportFailed: If a ledger contradicts its closed form, a chapter does not run, or a card
            lacks a field.
        NotACheckout: If the chapters are needed and this is no checkout.
    """
    if architecture_cards is None:
        architecture_cards = _proved_cards(find_checkout())
    findings: list[str] = []
    report = {
        "visibility": _visibility(findings),
        "kv_cache": _kv_cache(findings),
        "expert_ledger": _expert_ledger(findings),
        "scaling_fit": _scaling_fit(findings),
        "architecture_cards": _architecture_cards(architecture_cards, findings),
    }
    if findings:
        raise ReportFailed("\n".join(findings))
    return report


def chapter_cards(pages: Mapping[str, "Page"]) -> list[dict[str, str]]:
    """The cards in the front matter of proved pages, with the facts that the pages compute.

    Args:
        pages: Pages by path, as `archcards.evidence.book.prove` gives them.

    Raises:
        ReportFailed: If one of the first chapters is missing, a chapter did not run as it must, or
            its card lacks a field or uses a fact that it does not compute.
    """
    findings = [f"{path}: this chapter is missing" for path in FIRST_CHAPTERS if path not in pages]
    cards = []
    for path in sorted(pages, key=lambda path: (_place(path), path)):
        page, card = pages[path], _card(pages[path].chapter)
        if card is None:
            if path in FIRST_CHAPTERS:
                findings.append(f"{path}: this chapter has no card")
            continue
        title = card["name"] or path
        findings += [f"{title}: lacks {field}" for field in CARD_FIELDS if not card[field]]
        findings += [str(problem) for problem in (*page.chapter.problems, *page.run.problems)]
        try:
            cards.append({field: page.resolve(text) for field, text in card.items()})
        except (KeyError, ValueError) as unknown:
            findings.append(f"{title}: {unknown.args[0]}")
    if findings:
        raise ReportFailed("\n".join(findings))
    return cards


def _proved_cards(root: Path) -> list[dict[str, str]]:
    # Of the two reports only this needs the runner, and what reads YAML.
    from .evidence.book import prove, read_book

    docs = root / "docs"
    wanted = [
        chapter.path
        for chapter in read_book(docs)
        if chapter.path in FIRST_CHAPTERS or _card(chapter) is not None
    ]
    return chapter_cards(prove(docs, only=wanted).pages)


def _card(chapter: "Chapter") -> dict[str, str] | None:
    """The six fields as written, empty where missing; `None` for a page without any of them."""
    from .evidence.yaml_lines import YamlError, read_yaml

    try:
        front = read_yaml(chapter.front or "", first_line=2).plain()
    except YamlError as error:
        raise ReportFailed(f"{chapter.path}:{error.line}: {error}") from None
    if not isinstance(front, dict) or not any(field in front for field in CARD_FIELDS):
        return None
    return {field: str(front.get(field) or "").strip() for field in CARD_FIELDS}


def _place(path: str) -> int:
    return FIRST_CHAPTERS.index(path) if path in FIRST_CHAPTERS else len(FIRST_CHAPTERS)


def _visibility(findings: list[str]) -> dict:
    length, previous = 8, 2
    band = sliding_window(length, window=previous + 1)  # a window counts the query itself
    masks = {
        "dense_causal": causal(length),
        "local_causal": band,
        "local_plus_global_bos": with_global(band, [0]),
    }
    for name, mask in masks.items():
        for query, row in enumerate(mask):
            for key, readable in enumerate(row):
                if readable and key > query:
                    findings.append(f"visibility: {name} lets query {query} read key {key}")
    local = sum(min(query + 1, previous + 1) for query in range(length))
    closed_forms = {
        "dense_causal": length * (length + 1) // 2,
        "local_causal": local,
        "local_plus_global_bos": local + (length - previous - 1),  # those too far from key 0
    }
    for name, count in closed_forms.items():
        if edges(masks[name]) != count:
            findings.append(f"visibility: {name} has {edges(masks[name])} edges, expected {count}")
    return {
        "length": length,
        "local_previous_tokens": previous,
        **{
            name: {"matrix": mask.astype(int).tolist(), "edges": edges(mask)}
            for name, mask in masks.items()
        },
    }


def _kv_cache(findings: list[str]) -> list[dict]:
    batch, layers, heads, length, width = 1, 4, 8, 16, 8
    records = []
    for kv_heads in (8, 2, 1):
        caches = [KVCache() for _ in range(layers)]
        for cache in caches:
            cache.append(*np.zeros((2, batch, kv_heads, length, width)))
        name = {heads: "MHA", 1: "MQA"}.get(kv_heads, f"GQA with {kv_heads} K/V heads")
        scalars = sum(cache.scalars for cache in caches)
        records.append({
            "name": name,
            "query_heads": heads,
            "kv_heads": kv_heads,
            "shape_per_K_or_V_per_layer": list(caches[0].key.shape),
            "scalars": scalars,
            "float32_bytes": np.dtype(np.float32).itemsize * scalars,
        })  # fmt: skip
        expected = 2 * batch * layers * kv_heads * length * width
        if scalars != expected:
            findings.append(f"kv_cache: {name} holds {scalars} scalars, expected {expected}")
    for wider, narrower in zip(records, records[1:], strict=False):
        if not narrower["scalars"] < wider["scalars"]:
            findings.append(f"kv_cache: {narrower['name']} holds no less than {wider['name']}")
    return records


def _expert_ledger(findings: list[str]) -> dict:
    d_model, d_ff, experts = 4, 8, 4
    matrices = np.zeros((d_ff, d_model)), np.zeros((d_model, d_ff))
    biases = np.zeros(d_ff), np.zeros(d_model)
    router = np.zeros((experts, d_model))
    entries = sum(matrix.size for matrix in matrices)
    expert = entries + sum(bias.size for bias in biases)
    expected = 2 * d_model * d_ff + d_ff + d_model
    if expert != expected:
        findings.append(f"expert_ledger: an expert has {expert} parameters, expected {expected}")
    return {
        "bias_convention": "both linear maps of an expert have a bias, the router has none",
        "dense_mlp_parameters": expert,
        "top1_moe_total_parameters": experts * expert + router.size,
        "top1_active_expert_parameters_per_token": expert,
        "router_parameters_read_per_token": router.size,
        "main_expert_matrix_multiply_entries_per_token": entries,
        "excluded_from_equal-work_claim": [
            "the router's own computation",
            "dispatching tokens to experts and gathering their outputs",
            "communication between devices",
            "places left empty by the capacity, and tokens dropped because of it",
            "load imbalance between experts",
        ],
    }


def _scaling_fit(findings: list[str]) -> dict:
    points = [{"compute": 1, "loss": 2}, {"compute": 4, "loss": 1.5}]
    law = power_law([(point["compute"], point["loss"]) for point in points])
    beyond = 16
    for point in points:
        if abs(law.loss(point["compute"]) - point["loss"]) >= TOLERANCE:
            findings.append(f"scaling_fit: the law misses the point at compute {point['compute']}")
    return {
        "status": "illustrative points, not measured on any model",
        "assumed_form": "loss = A * compute ** (-alpha)",
        "points": points,
        "fitted_alpha": law.alpha,
        "fitted_A": law.A,
        "unvalidated_extrapolation": {"compute": beyond, "loss": float(law.loss(beyond))},
        "warning": "two points fix a line in log space and validate nothing beyond it",
    }


def _architecture_cards(given: Iterable[Mapping[str, str]], findings: list[str]) -> list[dict]:
    complete = []
    for place, card in enumerate(given, start=1):
        name = str(card.get("name") or "").strip() or f"card {place}"
        missing = [field for field in CARD_FIELDS if not str(card.get(field) or "").strip()]
        findings += [f"architecture_cards: {name} lacks {field}" for field in missing]
        complete.append({field: str(card.get(field) or "").strip() for field in CARD_FIELDS})
    if not complete:
        findings.append("architecture_cards: there is no card")
    return complete


def lab() -> dict:
    """Every identity of the chapters, checked on drawn numbers: one generator, one order of draws.

    Raises:
        ReportFailed: If an error is not finite and below the tolerance, or a refusal is missing.
    """
    rng = np.random.default_rng(SEED)
    findings: list[str] = []
    checks: dict[str, dict | float] = {}
    for experiment in _EXPERIMENTS:
        for name, result in experiment(rng).items():
            checks[name] = result if isinstance(result, dict | float) else _compare(*result)
            if not _passes(name, checks[name]):
                findings.append(f"{name}: {checks[name]}")
    if not _refuses_to_read_nothing():
        findings.append("online_softmax: a row masked in every piece must raise an error")
    if findings:
        raise ReportFailed("\n".join(findings))
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seed": SEED,
        "dtype": np.dtype(float).name,
        "checks": checks,
    }


def _compare(actual: np.ndarray, expected: np.ndarray) -> dict:
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    if actual.shape != expected.shape or actual.size == 0:
        return {"max_absolute_error": np.inf, "tolerance": TOLERANCE}
    return {"max_absolute_error": float(np.abs(actual - expected).max()), "tolerance": TOLERANCE}


def _passes(name: str, result: dict | float) -> bool:
    if isinstance(result, float):
        return bool(np.isfinite(result))
    if "max_difference" in result:  # two orders of factors, which must not agree
        return result["max_difference"] > 0.2
    return bool(result["max_absolute_error"] < result["tolerance"])  # false for NaN and infinity


def _masked_reads(rng: np.random.Generator) -> dict:
    q, k, v = rng.normal(size=(3, 7, 3))
    full = attention(q, k, v, causal(7))
    prefixes = [attention(q[[t]], k[: t + 1], v[: t + 1])[0] for t in range(7)]
    later = np.arange(7)[:, None] >= 4
    perturbed = attention(q, k + 100 * later, v - 200 * later, causal(7))
    chunk = attention(q[3:5], k[:5], v[:5], causal(2, 5, offset=3))
    return {
        "causal_prefix_reads": (full, prefixes),
        "future_perturbation": (perturbed[:4], full[:4]),
        "chunk_mask_offset": (chunk, full[3:5]),
    }


def _online_softmax(rng: np.random.Generator) -> dict:
    scores = np.array([1000.0, 1001.0, -np.inf, 999.0, 1003.0, 998.0])
    values = rng.normal(size=(6, 4))
    state = AttentionState.empty(4)
    for piece in (slice(0, 2), slice(2, 3), slice(3, 3), slice(3, 6)):
        state = state.merge(attend(scores[piece], values[piece]))
    worked = softmax([1000.0, 1001.0, 999.0]) @ [2.0, 4.0, 8.0]
    return {
        "online_softmax": (state.read(), softmax(scores) @ values),
        "online_worked_output": float(worked),
    }


def _refuses_to_read_nothing() -> bool:
    masked = attend([-np.inf, -np.inf], np.ones((2, 4)))
    try:
        masked.merge(attend([-np.inf], np.ones((1, 4)))).read()
    except ValueError:
        return True
    return False


def _kernel_recurrence(rng: np.random.Generator) -> dict:
    query, key = rng.uniform(0.1, 1.5, size=(2, 9, 4))
    values = rng.normal(size=(9, 3))
    running, _ = linear_attention(query, key, values, normalise=True, form="recurrent")
    weights = np.where(causal(9), query @ key.T, 0.0)
    pairwise = weights / weights.sum(axis=-1, keepdims=True) @ values
    return {"normalized_kernel_recurrence": (running, pairwise)}


def _state_writes(rng: np.random.Generator) -> dict:
    state = rng.normal(size=(2, 3))
    unit, orthogonal, target = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2.0, -1.0, 4.0])
    written = delta_write(state, unit, target, 1.0)
    corrected = gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5)
    key, decay = np.array([1.0, 1.0]) / np.sqrt(2.0), np.array([1.0, 0.5])
    erase, forget = np.eye(2) - np.outer(key, key), np.diag(decay)
    return {
        "delta_unit_key_overwrite": (unit @ written, target),
        "delta_orthogonal_read": (orthogonal @ written, orthogonal @ state),
        "gated_decay_then_correct": (corrected, [[4.0]]),
        "gated_no_decay_limit": (
            gated_write(state, unit, target, 0.3, 1.0), delta_write(state, unit, target, 0.3),
        ),
        "gated_no_write_limit": (gated_write(state, unit, target, 0.0, 0.6), 0.6 * state),
        "kda_affine_form": (
            gated_write(state, key, target, 1.0, decay),
            erase @ forget @ state + np.outer(key, target),
        ),
        "kda_noncommuting_counterexample": {
            "max_difference": float(np.abs(erase @ forget - forget @ erase).max())
        },
    }  # fmt: skip


def _rotary_scores(rng: np.random.Generator) -> dict:
    query, key = rng.normal(size=(2, 2))
    frequencies = Frequencies(np.array([0.37]))

    def score(query_position: int, key_position: int) -> float:
        turned = rotate([query, key], [query_position, key_position], frequencies)
        return turned[0] @ turned[1]

    return {
        "rope_relative_identity": (score(2, 7), query @ rotate([key], [7 - 2], frequencies)[0]),
        "rope_joint_shift": (score(2 + 11, 7 + 11), score(2, 7)),
    }


def _latent_forms(rng: np.random.Generator) -> dict:
    latent = rng.normal(size=(8, 3))
    up_key, up_value = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    query, rope_query = rng.normal(size=4), rng.normal(size=2)
    rope_key = rng.normal(size=(8, 2))
    explicit, absorbed = (
        latent_read(
            query, rope_query, latent, rope_key, up_key, up_value,
            scale=1 / np.sqrt(query.size + rope_query.size), form=form,
        )
        for form in ("explicit", "absorbed")
    )  # fmt: skip
    return {"mla_joint_score_and_projection": (absorbed, explicit)}


def _speculation(rng: np.random.Generator) -> dict:
    target, draft = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.5, 0.3])
    return {"speculative_distribution": (output_distribution(target, draft), target)}


_EXPERIMENTS: tuple[Callable[[np.random.Generator], dict], ...] = (
    _masked_reads,
    _online_softmax,
    _kernel_recurrence,
    _state_writes,
    _rotary_scores,
    _latent_forms,
    _speculation,
)
