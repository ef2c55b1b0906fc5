"""BART and its kin: an encoder, and a decoder that reads it, with biases throughout."""

from ..architecture import Architecture, Encoder, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, plain
from ._decoder import assemble, has_head, tied_table
from ._heads import read_out

__all__ = ["bart", "m2m_100", "marian", "mbart", "pegasus", "stacks"]


def stacks(
    fields: Fields, hidden: int, *, key_bias: bool = True
) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """The layers of the encoder, and those of the decoder that reads it; two or three norms each."""
    found = []
    for side in ("encoder", "decoder"):
        heads = fields.size(f"{side}_attention_heads")
        width = fields.divides(f"{side}_attention_heads", heads, hidden, "d_model")
        sizes = (hidden, heads, heads, width)
        fields.skip(f"{side}_layerdrop")
        network = (dense(plain(hidden, fields.size(f"{side}_ffn_dim"))),)
        options = {"bias": True, "key_bias": key_bias}
        if side == "encoder":
            mixers = (attention(*sizes, reach=Reach("all"), cached=False, **options),)
        else:
            mixers = (
                attention(*sizes, **options),
                attention(*sizes, keys_from="source", cross=True, **options),
            )
        names = ("attention", "cross-attention", "feed-forward")
        norms = sum(
            (layer_norm(name, hidden) for name in names if side == "decoder" or name != names[1]), ()
        )
        found.append((Layer(mixers, network, norms),) * fields.layers(f"{side}_layers"))
    fields.only("is_encoder_decoder", True)
    fields.only("is_decoder", False)
    fields.only("add_cross_attention", False)
    fields.skip("num_hidden_layers", "scale_embedding")
    return found[0], found[1]


def _read(
    fields: Fields,
    *,
    last_norm: bool,
    first_norm: bool,
    rows_before: int | None = 0,
) -> Architecture:
    """Both stacks between one table and itself.

    `first_norm`: on the embeddings; `last_norm`: after each stack; the table of positions has
    `rows_before` rows more than there are positions, and is no parameter where that is None.
    """
    hidden = fields.size("d_model")
    encoder, decoder = stacks(fields, hidden)
    # Untied, the library keeps a table for each side and one besides: no published model does.
    fields.only("tie_word_embeddings", True)
    fields.only("add_final_layer_norm", last_norm)
    fields.only("normalize_before", last_norm)
    fields.only("normalize_embedding", first_norm)
    fields.only("add_bias_logits", False)
    fields.skip("classif_dropout", "save_step")
    table: tuple[Tensor, ...] = ()
    if rows_before is not None:
        rows = fields.size("max_position_embeddings") + rows_before
        table = (Tensor("position embedding", (rows, hidden), "table"),)
    last = layer_norm("final", hidden) if last_norm else ()
    first = layer_norm("embedding", hidden) if first_norm else ()
    classifier = read_out(fields, hidden)
    return assemble(
        fields,
        layers=decoder,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=last + classifier,
        head=not classifier and has_head(fields),
        positions=table,
        others=first,
        encoder=Encoder(encoder, table + first + last),
    )


def _bart(fields: Fields, last_norm: bool) -> Architecture:
    """Learned positions, of which two rows are never reached."""
    fields.only("static_position_embeddings", False)
    fields.only("extra_pos_embeddings", 2)
    return _read(fields, last_norm=last_norm, first_norm=True, rows_before=2)


def bart(fields: Fields) -> Architecture:
    """BART: a norm after each half, and on the embeddings."""
    return _bart(fields, False)


def mbart(fields: Fields) -> Architecture:
    """mBART: BART with norms before each half, and so a last one in both stacks."""
    return _bart(fields, True)


def marian(fields: Fields) -> Architecture:
    """Marian (OPUS-MT): BART without a norm on the embeddings, and a sinusoid for positions."""
    fields.only("share_encoder_decoder_embeddings", True)
    fields.only("decoder_vocab_size", fields.size("vocab_size"))
    fields.only("static_position_embeddings", True)
    fields.skip("extra_pos_embeddings")
    return _read(fields, last_norm=False, first_norm=False)


def pegasus(fields: Fields) -> Architecture:
    """PEGASUS: mBART with a sinusoid for positions, and no norm on the embeddings."""
    fields.only("static_position_embeddings", True)
    fields.only("extra_pos_embeddings", 1)
    return _read(fields, last_norm=True, first_norm=False)


def m2m_100(fields: Fields) -> Architecture:
    """M2M-100 and NLLB: PEGASUS with a sinusoid that no checkpoint keeps."""
    return _read(fields, last_norm=True, first_norm=False, rows_before=None)
