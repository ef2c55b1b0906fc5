"""Encoders without a decoder: BERT and its kin, ViT and DeiT."""

from ..architecture import Architecture, Attention, Embeddings, Head, Image, Layer, Tensor
from ..fields import Fields
from ._blocks import attention, dense, gated, layer_norm, layer_norms, linear, plain, vector
from ._heads import (
    CLASSES,
    CLASSIFIERS,
    EACH_TOKEN,
    architecture_class,
    classes_of,
    kind_of,
    labels,
    two_layers,
)
from ._towers import ALL, patch_embedding

__all__ = [
    "LONGEST_SIDE",
    "bert",
    "camembert",
    "deit",
    "distilbert",
    "ernie",
    "gte",
    "megatron_bert",
    "mpnet",
    "nomic_bert",
    "roberta",
    "sides",
    "vit",
    "xlm_roberta_xl",
]


UNREACHED = 2
"""Rows at the start of RoBERTa's position table: positions are counted from behind the padding's."""

LONGEST_SIDE = 100_000
"""Pixels of an image, so that its sequence stays a length that can be counted with."""


def _post_norm_layers(fields: Fields, hidden: int) -> tuple[Layer, ...]:
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True, reach=ALL, cached=False),),
        (dense(plain(hidden, fields.size("intermediate_size"))),),
        layer_norms(hidden),
    )
    return (layer,) * fields.layers()


KINDS = (
    "Model",
    "ForMaskedLM",
    "ForPreTraining",
    *CLASSIFIERS,
    "ForMultipleChoice",
    "ForNextSentencePrediction",
)
POOLED = ("Bert", "Ernie", "MegatronBert")
"""Families whose classifier of sequences reads the pooler; the others are RoBERTa's kin, with a layer
of its own there and positions of their own."""


def _encoder(
    fields: Fields,
    prefix: str,
    *,
    before: bool = False,
    segments: int = 2,
    tables: tuple[Tensor, ...] = (),
) -> Architecture:
    """An encoder with BERT's fields; `before`: norms stand before each half, and after the stack.

    `segments` are meant where the file is silent; `tables` are looked up beside those of tokens,
    positions and segments.
    """
    hidden = fields.size("hidden_size")
    fields.only("is_decoder", False, because="read as an encoder")
    fields.only("add_cross_attention", False)
    fields.only("position_embedding_type", "absolute")
    fields.only("embedding_size", hidden)
    fields.skip(
        "gradient_checkpointing",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
        "directionality",
    )
    name, kind = kind_of(fields, prefix, *KINDS)
    unreached = 0 if prefix in POOLED else UNREACHED
    vocabulary = fields.size("vocab_size")
    length = fields.size("max_position_embeddings", least=unreached + 1)
    segments = fields.size("type_vocab_size", segments)
    tables = (
        Tensor("position embedding", (length, hidden), "table"),
        Tensor("segment embedding", (segments, hidden), "table"),
        *tables,
    )
    tied = fields.flag("tie_word_embeddings", True)
    pooler = linear("pooler", hidden, hidden, True, per="sequence")
    transform = linear("head transform", hidden, hidden, True) + layer_norm("head", hidden)
    # Untied, a checkpoint stores the bias of the head and that of its matrix.
    bias = (vector("output bias", vocabulary),) * (1 if tied else 2)
    predicts, final, others = False, (), ()
    if kind == "Model":
        final = pooler
        fields.note(f"{name}: with the pooler, without an output head")
    elif kind == "ForMaskedLM":
        predicts, others = True, transform + bias
    elif kind == "ForPreTraining":
        predicts, final = True, pooler
        others = transform + bias + linear("sentence order", hidden, 2, True, per="sequence")
    elif kind == "ForSequenceClassification" and prefix in POOLED:
        final = pooler + classes_of(fields, name, hidden)
    elif kind == "ForSequenceClassification":
        final = two_layers(fields, name, hidden)
    elif kind in EACH_TOKEN:
        final = classes_of(fields, name, hidden, per="token")
    elif kind == "ForMultipleChoice":
        final = pooler + linear("classifier", hidden, 1, True, per="sequence")
    else:
        final = pooler + linear("classifier", hidden, 2, True, per="sequence")
    if predicts and tied:
        fields.note("tied: the output head is the token table, counted once")
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            tables,
            () if before else layer_norm("embedding", hidden),
        ),
        layers=_post_norm_layers(fields, hidden),
        head=Head(
            Tensor("output embedding", (vocabulary, hidden)) if predicts else None,
            predicts and tied,
            others,
        ),
        final=(layer_norm("final", hidden) if before else ()) + final,
        decodes=False,
        trained_length=length - unreached,
    )


def bert(fields: Fields) -> Architecture:
    """BERT: post-norm layers, learned positions and segments."""
    return _encoder(fields, "Bert")


def roberta(fields: Fields) -> Architecture:
    """RoBERTa and XLM-RoBERTa: BERT's layers; the position table has two rows never reached."""
    name = architecture_class(fields) or ""
    return _encoder(fields, "XLMRoberta" if name.startswith("XLMRoberta") else "Roberta")


def xlm_roberta_xl(fields: Fields) -> Architecture:
    """XLM-RoBERTa XL and XXL: norms before each half, and one after the stack."""
    return _encoder(fields, "XLMRobertaXL", before=True, segments=1)


def megatron_bert(fields: Fields) -> Architecture:
    """Megatron's BERT: norms before each half, and one after the stack."""
    return _encoder(fields, "MegatronBert", before=True)


def ernie(fields: Fields) -> Architecture:
    """ERNIE 2 and 3: BERT, perhaps with a table of tasks."""
    tasks = fields.size("task_type_vocab_size", 3)
    tables: tuple[Tensor, ...] = ()
    if fields.flag("use_task_id", False):
        tables = (Tensor("task embedding", (tasks, fields.size("hidden_size")), "table"),)
    return _encoder(fields, "Ernie", tables=tables)


def camembert(fields: Fields) -> Architecture:
    """CamemBERT: RoBERTa in French."""
    return _encoder(fields, "Camembert")


def distilbert(fields: Fields) -> Architecture:
    """DistilBERT: BERT's layers without segments and without a pooler."""
    hidden = fields.size(fields.first("dim", "hidden_size"))
    heads = fields.size(fields.first("n_heads", "num_attention_heads"))
    width = fields.divides("n_heads", heads, hidden, "dim")
    vocabulary, length = fields.size("vocab_size"), fields.size("max_position_embeddings", 512)
    fields.only("tie_word_embeddings", True)
    fields.skip("sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_")
    name, kind = kind_of(fields, "DistilBert", "Model", "ForMaskedLM", *CLASSIFIERS)
    predicts, final = kind == "ForMaskedLM", ()
    if kind == "ForSequenceClassification":
        final = two_layers(fields, name, hidden)
    elif kind in EACH_TOKEN:
        final = classes_of(fields, name, hidden, per="token")
    others = linear("head transform", hidden, hidden, True) + layer_norm("head", hidden)
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True, reach=ALL, cached=False),),
        (dense(plain(hidden, fields.size("hidden_dim"))),),
        layer_norms(hidden),
    )
    return Architecture(
        model_type="distilbert",
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            (Tensor("position embedding", (length, hidden), "table"),),
            layer_norm("embedding", hidden),
        ),
        layers=(layer,) * fields.layers(fields.first("n_layers", "num_hidden_layers")),
        head=Head(
            Tensor("output embedding", (vocabulary, hidden)) if predicts else None,
            predicts,
            (*others, vector("output bias", vocabulary)) if predicts else (),
        ),
        final=final,
        decodes=False,
        trained_length=length,
    )


def nomic_bert(fields: Fields) -> Architecture:
    """Nomic Embed: BERT's norms and segments, rotary positions, gated networks, no biases."""
    hidden = fields.size(fields.first("hidden_size", "n_embd"))
    heads = fields.size(fields.first("num_attention_heads", "n_head"))
    width = fields.maybe("head_dim") or fields.divides(
        fields.first("num_attention_heads", "n_head"), heads, hidden, "hidden_size"
    )
    inner = fields.size(fields.first("intermediate_size", "n_inner"))
    count = fields.layers(fields.first("num_hidden_layers", "n_layer"))
    length = fields.first("max_position_embeddings", "n_positions")
    fields.only("tie_word_embeddings", True)
    fields.only("activation_function", "swiglu")
    for field in ("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm", "parallel_block"):
        fields.only(field, False)
    for field in ("use_rms_norm", "causal", "parallel_block_tied_norm"):
        fields.only(field, False)
    for field in ("moe_every_n_layers", "num_experts"):
        fields.only(field, 0)
    fields.only("rotary_emb_fraction", 1.0, 1)
    fields.skip(
        "dense_seq_output",
        "fused_bias_fc",
        "fused_dropout_add_ln",
        "last_layer_subset",
        "max_trained_positions",
        "pad_vocab_size_multiple",
        "rotary_emb_interleaved",
        "rotary_emb_scale_base",
        "rotary_scaling_factor",
        "scale_attn_by_inverse_layer_idx",
        "scale_attn_weights",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
        "use_xentropy",
    )
    return _rotary(
        fields,
        "NomicBert",
        hidden,
        attention(hidden, heads, heads, width, reach=ALL, cached=False),
        gated(hidden, inner),
        layers=count,
        segments=fields.size("type_vocab_size", 2),
        length=fields.maybe(length),
    )


def gte(fields: Fields) -> Architecture:
    """GTE, also as `new`: BERT's norms, rotary positions, gated networks, biases but on gate and up."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    inner = fields.size("intermediate_size")
    fields.only("tie_word_embeddings", True)
    fields.only("position_embedding_type", "rope")
    fields.only("layer_norm_type", "layer_norm")
    fields.only("logn_attention_scale", False)
    fields.skip(
        "logn_attention_clip1", "pack_qkv", "unpad_inputs", "use_memory_efficient_attention"
    )
    network = gated(hidden, inner) + (vector("down bias", hidden),)
    return _rotary(
        fields,
        "New" if fields.values.get("model_type") == "new" else "Gte",
        hidden,
        attention(hidden, heads, heads, width, bias=True, reach=ALL, cached=False),
        network,
        layers=fields.layers(),
        segments=fields.size("type_vocab_size", 1, least=0),
        length=fields.size("max_position_embeddings", 8192),
    )


def _rotary(
    fields: Fields,
    prefix: str,
    hidden: int,
    mixer: Attention,
    network: tuple[Tensor, ...],
    *,
    layers: int,
    segments: int,
    length: int | None,
) -> Architecture:
    """Post-norm layers without a table of positions; the bare model has no pooler."""
    vocabulary = fields.size("vocab_size")
    name, kind = kind_of(fields, prefix, "Model", "ForMaskedLM", *CLASSIFIERS[:2])
    predicts, final, others = kind == "ForMaskedLM", (), ()
    if predicts:
        others = linear("head transform", hidden, hidden, True) + layer_norm("head", hidden)
        others += (vector("output bias", vocabulary),)
        fields.note("tied: the output head is the token table, counted once")
    elif kind == "ForSequenceClassification":
        final = linear("pooler", hidden, hidden, True, per="sequence")
        final += classes_of(fields, name, hidden)
    elif kind != "Model":
        final = classes_of(fields, name, hidden, per="token")
    layer = Layer((mixer,), (dense(network),), layer_norms(hidden))
    table = Tensor("segment embedding", (segments, hidden), "table")
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            (table,) if segments else (),
            layer_norm("embedding", hidden),
        ),
        layers=(layer,) * layers,
        head=Head(
            Tensor("output embedding", (vocabulary, hidden)) if predicts else None, predicts, others
        ),
        final=final,
        decodes=False,
        trained_length=length,
    )


def mpnet(fields: Fields) -> Architecture:
    """MPNet: BERT's layers without segments; one table of relative positions for all of them."""
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    length = fields.size("max_position_embeddings", 512, least=UNREACHED + 1)
    fields.only("tie_word_embeddings", True)
    buckets = fields.size("relative_attention_num_buckets", 32)
    heads = fields.size("num_attention_heads")
    name, kind = kind_of(fields, "MPNet", "Model", "ForMaskedLM", *CLASSIFIERS)
    predicts, final, others = kind == "ForMaskedLM", (), ()
    if kind == "Model":
        final = linear("pooler", hidden, hidden, True, per="sequence")
        fields.note(f"{name}: with the pooler, without an output head")
    elif predicts:
        others = linear("head transform", hidden, hidden, True) + layer_norm("head", hidden)
        others += (vector("output bias", vocabulary),)
        fields.note("tied: the output head is the token table, counted once")
    elif kind == "ForSequenceClassification":
        final = two_layers(fields, name, hidden)
    else:
        final = classes_of(fields, name, hidden, per="token")
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            (
                Tensor("position embedding", (length, hidden), "table"),
                Tensor("relative positions", (buckets, heads), "table"),
            ),
            layer_norm("embedding", hidden),
        ),
        layers=_post_norm_layers(fields, hidden),
        head=Head(
            Tensor("output embedding", (vocabulary, hidden)) if predicts else None, predicts, others
        ),
        final=final,
        decodes=False,
        trained_length=length - UNREACHED,
    )


def sides(fields: Fields, name: str, default: int) -> tuple[int, int]:
    """The height and width that a field gives as two numbers, or as one for both."""
    if isinstance(fields.values.get(name), (list, tuple)):
        height, width = fields.sizes(name, 2, least=1, most=LONGEST_SIDE)
        return height, width
    return (fields.size(name, default, most=LONGEST_SIDE),) * 2


def _vit(fields: Fields, prefix: str, extra: int) -> Architecture:
    hidden = fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    height, across = sides(fields, "image_size", 224)
    patch_height, patch_width = sides(fields, "patch_size", 16)
    channels = fields.size("num_channels", 3)
    bias = fields.flag("qkv_bias", True)
    image = Image(height, across, patch_height, patch_width, extra)
    count = (height // patch_height) * (across // patch_width)
    if not count:
        raise fields.refuse("patch_size", f"at most image_size, {min(height, across)}")
    layer = Layer(
        (
            attention(
                hidden, heads, heads, width, bias=bias, output_bias=True, reach=ALL, cached=False
            ),
        ),
        (dense(plain(hidden, fields.size("intermediate_size"))),),
        layer_norm("attention", hidden) + layer_norm("feed-forward", hidden),
    )
    classes, name = labels(fields), architecture_class(fields)
    if name == f"{prefix}ForImageClassification":
        classes = classes or CLASSES
    fields.skip("encoder_stride", "pooler_act")
    pooled = fields.size("pooler_output_size", hidden)
    final = layer_norm("final", hidden)
    if name in (None, f"{prefix}ForImageClassification") and classes:
        final += linear("classifier", hidden, classes, True, per="sequence")
        fields.note(f"with the classifier of {classes} classes; image of {height} by {across}")
    elif name == f"{prefix}ForImageClassificationWithTeacher" and classes and extra == 2:
        final += linear("classifier", hidden, classes, True, per="sequence")
        final += linear("distillation classifier", hidden, classes, True, per="sequence")
    elif name == f"{prefix}Model":
        final += linear("pooler", hidden, pooled, True, per="sequence")
        fields.note(f"{name}: with the pooler, without a classifier")
    else:
        raise fields.refuse("architectures", f"{prefix}ForImageClassification or {prefix}Model")
    tokens = (
        vector("class token", hidden)
        if extra == 1
        else vector("class and distillation tokens", extra, hidden)
    )
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=None,
        hidden=hidden,
        embeddings=Embeddings(
            None,
            (Tensor("position embedding", (count + extra, hidden), "table"),),
            (tokens, *patch_embedding(hidden, channels, patch_height, patch_width)),
        ),
        layers=(layer,) * fields.layers(),
        head=Head(),
        final=final,
        image=image,
        decodes=False,
    )


def vit(fields: Fields) -> Architecture:
    """ViT: patches and a class token through pre-norm layers, a classifier on the token."""
    return _vit(fields, "ViT", 1)


def deit(fields: Fields) -> Architecture:
    """DeiT: a ViT with a distillation token beside the class token."""
    return _vit(fields, "DeiT", 2)
