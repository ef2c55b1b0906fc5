"""What decoder-only families have in common: heads, windows, head and table, assembly."""

from collections.abc import Callable, Sequence

from ..architecture import (
    Architecture,
    Embeddings,
    Experts,
    FeedForward,
    Head,
    Layer,
    Reach,
    Tensor,
)
from ..fields import Fields
from ._blocks import attention, dense, gated, pre_norms, rms_norm
from ._heads import architecture_class, classified

__all__ = [
    "FULL",
    "Widths",
    "assemble",
    "decoder",
    "full",
    "has_head",
    "head_widths",
    "reaches",
    "tied_table",
    "windows",
]

FULL = Reach()

# Classes of the transformers library end in one of these where a head follows the last layer.
LANGUAGE_MODELS = (
    "ForCausalLM",
    "LMHeadModel",
    "ForConditionalGeneration",
    "ForImageTextToText",
    "MTModel",
)


class Widths:
    """Query heads, key/value heads and the width of one head."""

    def __init__(self, heads: int, kv_heads: int, width: int):
        self.heads, self.kv_heads, self.width = heads, kv_heads, width


def head_widths(
    fields: Fields,
    hidden: int,
    *,
    default: int | None = None,
    kv_default: int | None = None,
    heads_default: int | None = None,
    share: bool = False,
) -> Widths:
    """Reads `num_attention_heads`, `num_key_value_heads`, `head_dim`.

    Absent, the key/value heads are as many as the query heads and the width is their share of
    the hidden size, unless the family says otherwise. With `share` no other width is understood.
    """
    heads = fields.size("num_attention_heads", heads_default)
    kv_heads = fields.size(
        "num_key_value_heads", heads if kv_default is None else kv_default, null=heads
    )
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    width = fields.maybe("head_dim")
    if width is None:
        if "head_dim" not in fields and default is not None:
            width = default
        else:
            width = fields.divides("num_attention_heads", heads, hidden, "the hidden size")
    if share and width * heads != hidden:
        raise fields.refuse("head_dim", "the heads' share of hidden_size")
    if width * heads != hidden and fields.values.get("head_dim") is not None:
        fields.note(
            f"head_dim {width} times {heads} heads is {width * heads}, not the hidden "
            f"size {hidden}: the config's head_dim is what counts"
        )
    if kv_heads < heads:
        fields.note(
            f"{heads} query heads share {kv_heads} key/value head{'s' if kv_heads > 1 else ''}"
        )
    return Widths(heads, kv_heads, width)


def reaches(
    fields: Fields,
    count: int,
    window: int | None,
    *,
    implied: Callable[[int], bool] | None = None,
    window_field: str = "sliding_window",
    extra: Sequence[str] = (),
) -> list[Reach]:
    """What each layer's queries may read, from `layer_types` or the family's own pattern.

    `implied(layer)` is true where the family makes an unlisted layer a window layer.
    """
    names = ["full_attention", "sliding_attention", *extra]
    kinds = fields.kinds("layer_types", count, names)
    if kinds is None:
        kinds = [
            "sliding_attention" if implied is not None and implied(layer) else "full_attention"
            for layer in range(count)
        ]
        if window is None:
            kinds = ["full_attention"] * count
    if "sliding_attention" in kinds and window is None:
        raise fields.refuse(window_field, "a window, since layer_types has window layers")
    found = [Reach("window", window) if kind == "sliding_attention" else FULL for kind in kinds]
    limited = kinds.count("sliding_attention")
    if limited:
        fields.note(
            f"{limited} of {count} layers read a window of {window} tokens "
            f"({fields.where(window_field)})"
        )
    return found


def full(fields: Fields, count: int) -> list[Reach]:
    """Every layer reads everything before it; `layer_types` may say so too."""
    fields.kinds("layer_types", count, ["full_attention"])
    return [FULL] * count


def windows(
    default: int | None = None, implied: Callable[[int], bool] = lambda layer: True
) -> Callable[[Fields, int], list[Reach]]:
    """Layers with a window: those that `layer_types` lists, or else those that `implied` names.

    `default` is the window where the file does not say; a null is none.
    """

    def read(fields: Fields, count: int) -> list[Reach]:
        window = fields.maybe("sliding_window")
        if default is not None and "sliding_window" not in fields:
            fields.note(f"sliding_window absent: the family's default, {default}")
            window = default
        return reaches(fields, count, window, implied=implied)

    return read


def decoder(
    fields: Fields,
    *,
    head_width: int | None = None,
    kv_heads: int | None = None,
    share: bool = False,
    count: str = "num_hidden_layers",
    reach: Callable[[Fields, int], list[Reach]] = full,
    network: Callable[[int, int, bool], tuple[Tensor, ...]] = gated,
    network_bias: bool = False,
    parts: Callable[[Fields, int, int], list[FeedForward | Experts]] | None = None,
    norms: Callable[[int], tuple[Tensor, ...]] = pre_norms,
    final: Callable[[str, int], tuple[Tensor, ...]] = rms_norm,
    extra: Callable[[Widths], tuple[Tensor, ...]] = lambda widths: (),
    tied: bool = False,
    head_bias: bool = False,
    head: bool | None = None,
    **biases,
) -> Architecture:
    """A decoder with Llama's fields, as one that differs from Llama in no more than these.

    `head_width` and `kv_heads` are meant where the file is silent (with `share` the width cannot
    be another than the heads' share); `count` names the field with the number of layers, `reach`
    and `parts` read what each layer sees and which feed-forward part it has; `extra` are further
    tensors of attention; `head` says whether a head follows, where the class does not; `biases`
    are those of attention's projections.
    """
    hidden, layers = fields.size("hidden_size"), fields.layers(count)
    widths = head_widths(fields, hidden, default=head_width, kv_default=kv_heads, share=share)
    seen = reach(fields, layers)
    if parts is None:
        part = dense(network(hidden, fields.size("intermediate_size"), network_bias))
        found = [part] * layers
    else:
        found = parts(fields, hidden, layers)
    sizes = (hidden, widths.heads, widths.kv_heads, widths.width)
    return assemble(
        fields,
        layers=[
            Layer(
                (attention(*sizes, reach=one, extra=extra(widths), **biases),),
                (part,),
                norms(hidden),
            )
            for one, part in zip(seen, found, strict=True)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        final=final("final", hidden),
        head_bias=head_bias,
        head=head,
    )


def tied_table(fields: Fields, default: bool) -> bool:
    """Reads `tie_word_embeddings`; absent, the family's default."""
    tied = fields.flag("tie_word_embeddings", default)
    if tied:
        fields.note("tied: the output head is the token table, counted once")
    return tied


def has_head(fields: Fields) -> bool:
    """Whether a language-model head follows: no for a bare `...Model`; other heads are refused."""
    name = architecture_class(fields)
    if name is None or any(name.endswith(end) for end in LANGUAGE_MODELS):
        return True
    if name.endswith("Model") and "For" not in name and "Heads" not in name:
        fields.note(f"{name} has no output head")
        return False
    raise fields.refuse("architectures", "a language model (...ForCausalLM or ...Model) or a classifier")


def assemble(
    fields: Fields,
    *,
    layers: Sequence[Layer],
    vocabulary: int,
    hidden: int,
    tied: bool,
    final: tuple[Tensor, ...],
    positions: tuple[Tensor, ...] = (),
    others: tuple[Tensor, ...] = (),
    head_bias: bool = False,
    head: bool | None = None,
    table_width: int | None = None,
    trained_length: str = "max_position_embeddings",
    **parts,
) -> Architecture:
    """An architecture of these parts, its model type and notes taken from `fields`."""
    classifier = classified(fields, table_width or hidden) if head is None else ()
    if head is None:
        head = not classifier and has_head(fields)
    shape = (vocabulary, table_width or hidden)
    extra = (Tensor("output bias", (vocabulary,), "vector"),) if head and head_bias else ()
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(Tensor("token embedding", shape, "table"), positions, others),
        layers=tuple(layers),
        head=Head(Tensor("output embedding", shape) if head else None, tied and head, extra),
        final=final + classifier,
        trained_length=fields.maybe(trained_length),
        **parts,
    )
