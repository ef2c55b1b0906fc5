"""Parameters: sums over the tensors of an architecture, each counted once."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .architecture import Architecture, Encoder, Experts, Layer, Module, Tensor, Tower

__all__ = ["Active", "Line", "Parameters", "lines", "parameters", "stored"]


class Active(NamedTuple):
    """Parameters that one token of text meets, in the three conventions in use."""

    with_embeddings: int
    without_input_embedding: int
    without_embeddings: int


class Parameters(NamedTuple):
    """How many parameters a model has.

    `total` is `text` and `vision` together; `multi_token_prediction` stands beside it.
    """

    total: int
    text: int
    vision: int
    multi_token_prediction: int
    input_embedding: int
    output_embedding: int
    tied: bool
    active: Active
    components: dict[str, int]


class Line(NamedTuple):
    """One tensor of a model with the component it belongs to."""

    component: str
    tensor: Tensor


def layer_lines(layer: Layer) -> Iterator[Line]:
    """A layer's tensors, by component."""
    for mixer in layer.mixers:
        for tensor in mixer.tensors:
            yield Line(mixer.component, tensor)
    for part in layer.feed_forwards:
        if isinstance(part, Experts):
            yield from (Line("router", tensor) for tensor in part.router)
            yield from (Line("routed_experts", tensor) for tensor in part.routed)
            yield from (Line("shared_experts", tensor) for tensor in part.shared)
        else:
            yield from (Line(part.component, tensor) for tensor in part.tensors)
    yield from (Line("norms", tensor) for tensor in layer.norms)
    yield from (Line("other", tensor) for tensor in layer.others)


def stack_lines(layers: Iterable[Layer]) -> Iterator[Line]:
    """The tensors of a stack of layers."""
    for layer in layers:
        yield from layer_lines(layer)


def _part(name: str, part: Encoder | Module | Tower) -> Iterator[Line]:
    tensors = tuple(line.tensor for line in stack_lines(part.layers)) + part.others
    if isinstance(part, Tower):
        tensors += part.embeddings + part.projector
    yield from (Line(name, tensor) for tensor in tensors)


def _place(tensor: Tensor) -> str:
    """The component of a tensor that stands before the first layer or after the last."""
    if tensor.per == "patch":
        return "patch_embedding"
    if tensor.per == "sequence":
        return "classifier" if "classifier" in tensor.name else "pooler"
    if tensor.name.startswith("per-layer"):
        return "per_layer_embedding"
    return "norms" if tensor.name.endswith(("norm", "norm bias")) else "other"


def lines(architecture: Architecture, part: str = "text") -> Iterator[Line]:
    """Every stored tensor of the `text` model, the `vision` tower or the `prediction` modules."""
    if part == "vision":
        if architecture.vision:
            yield from _part("vision", architecture.vision)
        return
    if part == "prediction":
        for module in architecture.multi_token_prediction:
            yield from _part("multi_token_prediction", module)
        return
    embeddings, head = architecture.embeddings, architecture.head
    if embeddings.table:
        yield Line("input_embedding", embeddings.table)
    yield from (Line("positions", tensor) for tensor in embeddings.positions)
    yield from (Line(_place(tensor), tensor) for tensor in embeddings.others)
    if architecture.encoder:
        yield from _part("encoder", architecture.encoder)
    yield from stack_lines(architecture.layers)
    yield from (Line(_place(tensor), tensor) for tensor in architecture.final)
    if head.table and not head.tied:
        yield Line("output_embedding", head.table)
    yield from (Line("other", tensor) for tensor in head.others)


def stored(found: Iterable[Line]) -> Iterator[Line]:
    """Each tensor once: leaves out a shared one that came before."""
    met = set()
    for line in found:
        tensor = line.tensor
        if tensor.shared is not None:
            if (tensor.shared, tensor.name) in met:
                continue
            met.add((tensor.shared, tensor.name))
        yield line


def parameters(architecture: Architecture) -> Parameters:
    """The number of parameters: total, by component, and active per token.

    Each tensor counts once: a tied head and the repeats of a shared block add nothing. Tables
    of rotary angles and biases that correct the routing are buffers and do not count.
    Of routed experts, `active` counts those that one token takes.

    Example:
        >>> from archcards.ledger import bundled
        >>> parameters(bundled("Mixtral-8x7B")).total
        46702792704
        >>> parameters(bundled("gpt-oss-120b")).active.without_input_embedding
        5132849472
    """
    components: dict[str, int] = {}
    text = active = 0
    for line in stored(lines(architecture)):
        components[line.component] = components.get(line.component, 0) + line.tensor.size
        text += line.tensor.size
        active += line.tensor.active
    vision = sum(line.tensor.size for line in lines(architecture, "vision"))
    if vision:
        components["vision"] = vision
    table, head = architecture.embeddings.table, architecture.head
    given = table.size if table else 0
    produced = head.table.size if head.table else 0
    # A tied table multiplies at the head, so it stays in when only the input's table is left out.
    without_input = active - (0 if head.tied else given)
    without_both = without_input - produced
    return Parameters(
        total=text + vision,
        text=text,
        vision=vision,
        multi_token_prediction=sum(line.tensor.size for line in lines(architecture, "prediction")),
        input_embedding=given,
        output_embedding=produced,
        tied=head.tied,
        active=Active(active, without_input, without_both),
        components=components,
    )
