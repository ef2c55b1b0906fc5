"""T5, its successors, and Switch Transformers: an encoder and a decoder that reads it."""

from ..architecture import (
    Architecture,
    Embeddings,
    Encoder,
    FeedForward,
    Head,
    Layer,
    Reach,
    Tensor,
)
from ..fields import MOST_LAYERS, Fields
from ._blocks import attention, dense, experts, gated, plain, rms_norm
from ._decoder import assemble, has_head
from ._heads import architecture_class, read_out

__all__ = ["mt5", "switch", "t5", "umt5"]


def _stacks(
    fields: Fields, feed_forwards: tuple[list, list], *, tied: bool, every_layer: bool = False
) -> Architecture:
    """Both stacks; the first layer of each holds its relative-position table (or all do)."""
    hidden, heads, width = fields.size("d_model"), fields.size("num_heads"), fields.size("d_kv")
    buckets = fields.size("relative_attention_num_buckets", 32)
    fields.skip(
        "relative_attention_max_distance",
        "n_positions",
        "is_gated_act",
        "dense_act_fn",
        "scale_decoder_outputs",
        "output_past",
    )
    fields.only("is_encoder_decoder", True)
    fields.only("is_decoder", False)
    fields.only("add_cross_attention", False)
    table = (Tensor("relative positions", (buckets, heads), "table"),)
    inside = [
        Layer(
            (attention(hidden, heads, heads, width, reach=Reach("all"), cached=False),),
            (part,),
            rms_norm("attention", hidden) + rms_norm("feed-forward", hidden),
            table if every_layer or number == 0 else (),
        )
        for number, part in enumerate(feed_forwards[0])
    ]
    vocabulary, name = fields.size("vocab_size"), architecture_class(fields) or ""
    if name.endswith("EncoderModel"):
        fields.note(f"{name}: the encoder alone, whatever is told of a decoder")
        fields.skip("num_decoder_layers")
        return Architecture(
            model_type=str(fields.values.get("model_type")),
            vocabulary=vocabulary,
            hidden=hidden,
            embeddings=Embeddings(Tensor("token embedding", (vocabulary, hidden), "table")),
            layers=tuple(inside),
            head=Head(),
            final=rms_norm("final", hidden),
            decodes=False,
        )
    outside = [
        Layer(
            (
                attention(hidden, heads, heads, width),
                attention(hidden, heads, heads, width, keys_from="source", cross=True),
            ),
            (part,),
            rms_norm("attention", hidden)
            + rms_norm("cross-attention", hidden)
            + rms_norm("feed-forward", hidden),
            table if every_layer or number == 0 else (),
        )
        for number, part in enumerate(feed_forwards[1])
    ]
    if tied:
        fields.note("tied: the output head is the token table, counted once")
    fields.note(
        "the decoder's cache: its own keys and values per token, and the encoder's keys "
        "and values once per source token"
    )
    classifier = read_out(fields, hidden)
    return assemble(
        fields,
        layers=outside,
        hidden=hidden,
        vocabulary=vocabulary,
        tied=tied,
        final=rms_norm("final", hidden) + classifier,
        head=not classifier and has_head(fields),
        encoder=Encoder(tuple(inside), rms_norm("final", hidden)),
    )


def _t5(fields: Fields, default: str, every_layer: bool = False) -> Architecture:
    hidden, inner = fields.size("d_model"), fields.size("d_ff")
    kind = fields.text("feed_forward_proj", default)
    words = kind.split("-")
    if words[0] == "gated" and len(words) == 2:
        network: FeedForward = dense(gated(hidden, inner))
    elif len(words) == 1:
        network = dense(plain(hidden, inner, False))
    else:
        raise fields.refuse("feed_forward_proj", "an activation, or gated- and an activation")
    gate = words[0] == "gated"
    if fields.flag("is_gated_act", gate) != gate:
        raise fields.refuse("is_gated_act", f"{str(gate).lower()}, since feed_forward_proj is {kind}")
    layers = fields.layers("num_layers")
    decoder = fields.layers("num_decoder_layers", layers)
    silent = fields.raw("tie_word_embeddings") is None  # null too: only false unties these
    tied = silent or fields.flag("tie_word_embeddings", True)
    if not tied:
        fields.note(
            "untied, as the published weights are; Transformers from 5 on ties the tables all the same"
        )
    return _stacks(
        fields,
        ([network] * layers, [network] * decoder),
        tied=tied,
        every_layer=every_layer,
    )


def t5(fields: Fields) -> Architecture:
    """T5 and FLAN-T5 (untied, gated)."""
    return _t5(fields, "relu")


def mt5(fields: Fields) -> Architecture:
    """mT5: T5 1.1 over a larger vocabulary."""
    return _t5(fields, "gated-gelu")


def umt5(fields: Fields) -> Architecture:
    """umT5: mT5 with a relative-position table in every layer."""
    return _t5(fields, "gated-gelu", every_layer=True)


def switch(fields: Fields) -> Architecture:
    """Switch Transformers: every so many layers, the feed-forward network is one of experts."""
    hidden, inner = fields.size("d_model"), fields.size("d_ff")
    layers = fields.layers("num_layers")
    decoder = fields.size("num_decoder_layers", 12, most=MOST_LAYERS, null=layers)
    count = fields.size("num_experts")
    network = dense(plain(hidden, inner, False))
    mixture = experts(
        hidden, inner, count, 1, gate=False, router_bias=fields.flag("router_bias", False)
    )

    def parts(total: int, side: str) -> list:
        sparse = fields.size(f"num_sparse_{side}_layers", 3, least=0, most=total)
        # The step follows from the number of sparse layers, unless the file states it.
        step = fields.maybe(f"{side}_sparse_step")
        if step is None:
            if not sparse:
                raise fields.refuse(
                    f"num_sparse_{side}_layers", f"at least 1, or {side}_sparse_step"
                )
            step = total // sparse
        return [mixture if step == 1 or layer % step == 1 else network for layer in range(total)]

    fields.skip(
        "expert_capacity",
        "router_ignore_padding_tokens",
        "add_router_probs",
        "router_jitter_noise",
        "router_type",
    )
    return _stacks(
        fields,
        (parts(layers, "encoder"), parts(decoder, "decoder")),
        tied=fields.flag("tie_word_embeddings", True),
    )
