"""BART and mBART: encoder and decoder with learned positions and biases."""

from ..architecture import Architecture, Encoder, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, plain
from ._decoder import assemble, has_head, tied_table
from ._heads import read_out

__all__ = ["bart", "mbart"]


def _bart(fields: Fields, last_norm: bool) -> Architecture:
    hidden = fields.size("d_model")
    sides = {}
    for side in ("encoder", "decoder"):
        heads = fields.size(f"{side}_attention_heads")
        sides[side] = (
            fields.layers(f"{side}_layers"),
            heads,
            fields.size(f"{side}_ffn_dim"),
            fields.divides(f"{side}_attention_heads", heads, hidden, "d_model"),
        )
        fields.skip(f"{side}_layerdrop")
    fields.only("is_encoder_decoder", True)
    fields.only("is_decoder", False)
    fields.only("add_cross_attention", False)
    # Untied, the library keeps a table for each side and one besides: no published model does.
    fields.only("tie_word_embeddings", True)
    fields.only("static_position_embeddings", False)
    fields.only("add_final_layer_norm", last_norm)
    fields.only("normalize_before", last_norm)
    fields.only("normalize_embedding", True)
    fields.only("extra_pos_embeddings", 2)
    fields.only("add_bias_logits", False)
    fields.skip("num_hidden_layers", "scale_embedding", "classif_dropout", "save_step")
    table = (
        Tensor("position embedding", (fields.size("max_position_embeddings") + 2, hidden), "table"),
    )
    last = layer_norm("final", hidden) if last_norm else ()
    count, heads, inner, width = sides["encoder"]
    inside = Layer(
        (attention(hidden, heads, heads, width, bias=True, reach=Reach("all"), cached=False),),
        (dense(plain(hidden, inner)),),
        layer_norm("attention", hidden) + layer_norm("feed-forward", hidden),
    )
    encoder = Encoder((inside,) * count, table + layer_norm("embedding", hidden) + last)
    count, heads, inner, width = sides["decoder"]
    outside = Layer(
        (
            attention(hidden, heads, heads, width, bias=True),
            attention(hidden, heads, heads, width, bias=True, keys_from="source", cross=True),
        ),
        (dense(plain(hidden, inner)),),
        layer_norm("attention", hidden)
        + layer_norm("cross-attention", hidden)
        + layer_norm("feed-forward", hidden),
    )
    classifier = read_out(fields, hidden)
    return assemble(
        fields,
        layers=[outside] * count,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=last + classifier,
        head=not classifier and has_head(fields),
        positions=table,
        others=layer_norm("embedding", hidden),
        encoder=encoder,
    )


def bart(fields: Fields) -> Architecture:
    """BART: a norm after each half, and on the embeddings."""
    return _bart(fields, False)


def mbart(fields: Fields) -> Architecture:
    """mBART: BART with norms before each half, and so a last one in both stacks."""
    return _bart(fields, True)
