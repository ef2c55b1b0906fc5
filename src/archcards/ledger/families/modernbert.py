"""ModernBERT: a BERT with rotary positions, gated networks, and windows to both sides."""

from ..architecture import Architecture, Embeddings, Head, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import attention, dense, gated, layer_norm, linear, vector
from ._heads import CLASSIFIERS, classes_of, kind_of
from ._towers import ALL

__all__ = ["modernbert"]


def _reaches(fields: Fields, count: int) -> list[Reach]:
    """Every third layer reads everything, the first one too; the others half a window each way."""
    window = fields.size("local_attention", 128, least=2)
    every = fields.size("global_attn_every_n_layers", 3)
    kinds = fields.kinds("layer_types", count, ["full_attention", "sliding_attention"])
    if kinds is None:
        kinds = ["sliding_attention" if i % every else "full_attention" for i in range(count)]
    near = Reach("around", window // 2)
    limited = kinds.count("sliding_attention")
    fields.note(
        f"{limited} of {count} layers read {window // 2} tokens to each side (local_attention)"
    )
    return [near if kind == "sliding_attention" else ALL for kind in kinds]


def modernbert(fields: Fields) -> Architecture:
    """ModernBERT: pre-norm layers, the first without a norm of its own, two thirds with windows."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    count, vocabulary = fields.layers(), fields.size("vocab_size")
    fields.only("tie_word_embeddings", True)
    fields.only("position_embedding_type", "absolute", "rope")
    fields.skip(
        "classifier_activation",
        "classifier_pooling",
        "deterministic_flash_attn",
        "global_rope_theta",
        "initializer_cutoff_factor",
        "local_rope_theta",
        "mlp_dropout",
        "reference_compile",
        "repad_logits_with_grad",
        "sparse_pred_ignore_index",
        "sparse_prediction",
    )
    shift, bias = fields.flag("norm_bias", False), fields.flag("attention_bias", False)
    network = dense(gated(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False)))
    head_bias = fields.flag("classifier_bias", False)
    output_bias = fields.flag("decoder_bias", True)
    first, second = (layer_norm(name, hidden, shift) for name in ("attention", "feed-forward"))
    layers = tuple(
        Layer(
            (attention(hidden, heads, heads, width, bias=bias, reach=reach, cached=False),),
            (network,),
            first + second if number else second,
        )
        for number, reach in enumerate(_reaches(fields, count))
    )
    name, kind = kind_of(fields, "ModernBert", "Model", "ForMaskedLM", *CLASSIFIERS)
    predicts = kind == "ForMaskedLM"
    per = "sequence" if kind == "ForSequenceClassification" else "token"
    transform, final = (), layer_norm("final", hidden, shift)
    if kind != "Model":
        transform = linear("head transform", hidden, hidden, head_bias, per=per)
        transform += layer_norm("head", hidden, shift, per=per)
    if predicts and output_bias:
        transform += (vector("output bias", vocabulary),)
    if predicts:
        fields.note("tied: the output head is the token table, counted once")
    elif kind in CLASSIFIERS:
        transform += classes_of(fields, name, hidden, per=per)
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            others=layer_norm("embedding", hidden, shift),
        ),
        layers=layers,
        head=Head(
            Tensor("output embedding", (vocabulary, hidden)) if predicts else None,
            predicts,
            transform,
        ),
        final=final,
        decodes=False,
        trained_length=fields.maybe("max_position_embeddings"),
    )
