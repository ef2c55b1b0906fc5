"""ELECTRA and ALBERT: encoders whose token table is narrower than their layers."""

from ..architecture import Architecture, Embeddings, Head, Layer, Tensor
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, linear, plain, vector
from ._heads import CLASSIFIERS, EACH_TOKEN, classes_of, kind_of, two_layers
from ._towers import ALL

__all__ = ["albert", "electra"]

KINDS = ("Model", "ForMaskedLM", "ForPreTraining", *CLASSIFIERS)


def _sizes(fields: Fields) -> tuple[int, int, int]:
    """The width of the layers, of the tables, and the size of the vocabulary."""
    fields.only("is_decoder", False, because="read as an encoder")
    fields.only("add_cross_attention", False)
    fields.only("position_embedding_type", "absolute")
    fields.only("tie_word_embeddings", True)
    return fields.size("hidden_size"), fields.size("embedding_size", 128), fields.size("vocab_size")


def _layers(fields: Fields, hidden: int, **facts) -> tuple[Layer, ...]:
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    sizes = (hidden, heads, heads, width)
    layer = Layer(
        (attention(*sizes, bias=True, reach=ALL, cached=False, facts=facts),),
        (dense(plain(hidden, fields.size("intermediate_size"), **facts)),),
        layer_norm("attention", hidden, **facts) + layer_norm("feed-forward", hidden, **facts),
    )
    return (layer,) * fields.layers()


def _assembled(
    fields: Fields,
    layers: tuple[Layer, ...],
    sizes: tuple[int, int, int],
    projection: tuple[Tensor, ...],
    head: tuple[Tensor, ...],
    final: tuple[Tensor, ...],
) -> Architecture:
    """Three narrow tables, a projection, the layers, and the table again as the output."""
    hidden, narrow, vocabulary = sizes
    length = fields.size("max_position_embeddings", 512)
    if head:
        fields.note("tied: the output head is the token table, counted once")
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, narrow), "table"),
            (
                Tensor("position embedding", (length, narrow), "table"),
                Tensor("segment embedding", (fields.size("type_vocab_size", 2), narrow), "table"),
            ),
            layer_norm("embedding", narrow) + projection,
        ),
        layers=layers,
        head=Head(
            Tensor("output embedding", (vocabulary, narrow)) if head else None, bool(head), head
        ),
        final=final,
        decodes=False,
        trained_length=length,
    )


def _narrowing(hidden: int, narrow: int, vocabulary: int) -> tuple[Tensor, ...]:
    """What stands between the last layer and the table, and a bias for each token."""
    back = linear("head transform", hidden, narrow, True) + layer_norm("head", narrow)
    return (*back, vector("output bias", vocabulary))


def electra(fields: Fields) -> Architecture:
    """ELECTRA: BERT's layers; the discriminator tells of each token whether it was replaced."""
    sizes = hidden, narrow, vocabulary = _sizes(fields)
    fields.skip(*(f"summary_{part}" for part in ("activation", "last_dropout", "type", "use_proj")))
    name, kind = kind_of(fields, "Electra", *KINDS)
    head, final = (), ()
    if kind == "ForMaskedLM":
        head = _narrowing(hidden, narrow, vocabulary)
    elif kind == "ForPreTraining":
        final = linear("replaced in", hidden, hidden, True) + linear("replaced", hidden, 1, True)
        fields.note(f"{name}: the discriminator, without an output head")
    elif kind == "ForSequenceClassification":
        final = two_layers(fields, name, hidden)
    elif kind in EACH_TOKEN:
        final = classes_of(fields, name, hidden, per="token")
    # A table as wide as the layers needs no projection.
    projection = linear("embedding projection", narrow, hidden, True) if narrow != hidden else ()
    return _assembled(fields, _layers(fields, hidden), sizes, projection, head, final)


def albert(fields: Fields) -> Architecture:
    """ALBERT: one layer that is stored once and used again and again."""
    sizes = hidden, narrow, vocabulary = _sizes(fields)
    for field in ("num_hidden_groups", "inner_group_num", "down_scale_factor"):
        fields.only(field, 1)
    for field in ("net_structure_type", "num_memory_blocks", "gap_size"):
        fields.only(field, 0)
    fields.skip("layers_to_keep")
    name, kind = kind_of(fields, "Albert", *KINDS)
    pooler = linear("pooler", hidden, hidden, True, per="sequence")
    head, final = (), ()
    if kind == "Model":
        final = pooler
        fields.note(f"{name}: with the pooler, without an output head")
    elif kind == "ForMaskedLM":
        head = _narrowing(hidden, narrow, vocabulary)
    elif kind == "ForPreTraining":
        head = _narrowing(hidden, narrow, vocabulary)
        final = pooler + classes_of(fields, name, hidden)
    elif kind == "ForSequenceClassification":
        final = pooler + classes_of(fields, name, hidden)
    elif kind in EACH_TOKEN:
        final = classes_of(fields, name, hidden, per="token")
    layers = _layers(fields, hidden, shared="layer")
    fields.note(f"one layer is stored and used {len(layers)} times")
    projection = linear("embedding projection", narrow, hidden, True)
    return _assembled(fields, layers, sizes, projection, head, final)
