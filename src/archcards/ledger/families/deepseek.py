"""DeepSeek V2, V3 and V3.2, and who uses their fields: latent attention and experts."""

from ..architecture import (
    Architecture,
    Experts,
    FeedForward,
    Indexer,
    LatentAttention,
    Layer,
    Module,
    Tower,
)
from ..fields import Fields
from ._blocks import dense, experts, gated, layer_norm, linear, pre_norms, rms_norm
from ._decoder import assemble, has_head, tied_table
from .mixtures import chosen

__all__ = [
    "deepseek",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm4_lite",
    "glm_dsa",
    "kimi_k25",
    "latent",
    "minicpm3",
    "mistral4",
    "mixed_feed_forward",
    "prediction",
    "youtu",
]


def latent(
    fields: Fields, hidden: int, heads: int, *, bias: bool = False, default_rank: int | None = None
) -> LatentAttention:
    """Multi-head latent attention; a null `q_lora_rank` means a full query projection."""
    rank = default_rank if "q_lora_rank" not in fields else fields.maybe("q_lora_rank")
    if rank is None and "q_lora_rank" not in fields:
        raise fields.refuse("q_lora_rank", "the query's rank, or null for a full query projection")
    width = fields.size("kv_lora_rank")
    content = fields.size("qk_nope_head_dim")
    rope = fields.size("qk_rope_head_dim")
    value = fields.size("v_head_dim")
    if rank is None:
        query = linear("query", hidden, heads * (content + rope))
        fields.note("q_lora_rank is null: the query has a full projection, not a low-rank one")
    else:
        query = (
            linear("query down", hidden, rank, bias)
            + rms_norm("query", rank)
            + linear("query up", rank, heads * (content + rope))
        )
    keys = (
        linear("latent down", hidden, width + rope, bias)
        + rms_norm("latent", width)
        + linear("key up", width, heads * content)
        + linear("value up", width, heads * value)
    )
    output = linear("output", heads * value, hidden, bias)
    return LatentAttention(heads, content, rope, value, width, query + keys + output)


def mixed_feed_forward(
    fields: Fields,
    hidden: int,
    layers: int,
    *,
    count: int,
    taken: int,
    dense_first: int,
    shared: int,
    inner: int,
    dense_inner: int | None,
) -> tuple[list[Experts | FeedForward], Experts]:
    """Dense networks in the first layers, mixtures after (every `moe_layer_freq`-th layer).

    `mlp_layer_types` may say the same layer by layer, or stand alone.
    """
    kinds = fields.kinds("mlp_layer_types", layers, ["dense", "sparse"])
    every = fields.size("moe_layer_freq", 1)
    first = fields.size("first_k_dense_replace", dense_first, least=0)
    implied = [
        "sparse" if layer >= first and layer % every == 0 else "dense" for layer in range(layers)
    ]
    if kinds is not None and "first_k_dense_replace" in fields and kinds != implied:
        raise fields.refuse("mlp_layer_types", "the layers that first_k_dense_replace names")
    kinds = implied if kinds is None else kinds
    mixture = experts(hidden, inner, count, taken, shared=shared * inner)
    if "dense" in kinds and dense_inner is None:
        raise fields.refuse("intermediate_size", "the width of the dense layers")
    network = dense(gated(hidden, dense_inner)) if dense_inner else mixture
    return [mixture if kind == "sparse" else network for kind in kinds], mixture


def prediction(hidden: int, layer: Layer, modules: int) -> tuple[Module, ...]:
    """Multi-token-prediction modules: two norms and a projection of both inputs, a layer, a norm.

    Their token table and head are the model's own.
    """
    others = (
        rms_norm("embedding", hidden)
        + rms_norm("hidden", hidden)
        + linear("projection", 2 * hidden, hidden)
        + rms_norm("head", hidden)
    )
    return (Module((layer,), others),) * modules


def _indexers(
    fields: Fields, hidden: int, layers: int, default_heads: int
) -> list[Indexer]:
    """Each layer's indexer; one that reuses an earlier choice has no tensors and no keys."""
    rank = fields.maybe("q_lora_rank")
    if rank is None:
        raise fields.refuse("q_lora_rank", "a rank, since the indexer reads the query's latent")
    number, width, top = (
        fields.size(name, default)
        for name, default in (
            ("index_n_heads", default_heads),
            ("index_head_dim", 128),
            ("index_topk", 2048),
        )
    )
    fields.kinds("layer_types", layers, ["indexed_attention", "deepseek_sparse_attention"])
    kinds = fields.kinds("indexer_types", layers, ["full", "shared"])
    pattern = fields.text("index_topk_pattern")
    every, offset = (
        fields.size("index_topk_freq", 1, null=1),
        fields.size("index_skip_topk_offset", 2, least=0),
    )
    implied = [
        "full" if max(layer - offset + 1, 0) % every == 0 else "shared" for layer in range(layers)
    ]
    if pattern is not None:
        if len(pattern) != layers or set(pattern) - set("FS"):
            raise fields.refuse(
                "index_topk_pattern", f"{layers} letters, F (its own) or S (shared)"
            )
        implied = ["full" if letter == "F" else "shared" for letter in pattern]
    stated = pattern is not None or "index_topk_freq" in fields
    if kinds is not None and stated and kinds != implied:
        raise fields.refuse("indexer_types", "the layers that the pattern or index_topk_freq names")
    kinds = implied if kinds is None else kinds
    if kinds[0] != "full":
        raise fields.refuse("indexer_types", "a first layer that chooses for itself (full)")
    fields.skip("indexer_rope_interleave")
    own = Indexer(
        number,
        width,
        top,
        linear("index query", rank, number * width)
        + linear("index key", hidden, width)
        + layer_norm("index key", width)
        + linear("index weights", hidden, number),
    )
    borrowed = Indexer(0, 0, top, (), cached=False)
    fields.note(
        f"each query reads at most {top} positions that the indexer chooses; "
        "the cache keeps all of them, and one indexer key each"
    )
    if "shared" in kinds:
        fields.note(
            f"{kinds.count('shared')} of {layers} layers reuse the choice of the layer before: "
            "no indexer, no indexer keys"
        )
    return [own if kind == "full" else borrowed for kind in kinds]


def deepseek(
    fields: Fields,
    *,
    default_rank: int | None = 1536,
    dense_default: int = 0,
    indexed: int = 0,
    shared_default: int = 1,
    tied: bool = False,
    head: bool | None = None,
    tower: Tower | None = None,
) -> Architecture:
    """A decoder of latent attention with DeepSeek's fields and these defaults.

    `indexed`: with an indexer in each layer, of so many heads unless told.
    """
    hidden, layers = fields.size("hidden_size"), fields.layers()
    heads = fields.size("num_attention_heads")
    # Latent attention has no key/value heads of its own: the files repeat the query heads.
    fields.skip("num_key_value_heads", "head_dim", "qk_head_dim", "n_group", "topk_group")
    bias = fields.flag("attention_bias", False)
    fields.only("mlp_bias", False)
    indexers = _indexers(fields, hidden, layers, indexed) if indexed else [None] * layers
    mixer = latent(fields, hidden, heads, bias=bias, default_rank=default_rank)
    made = {
        indexer: mixer
        if indexer is None
        else mixer._replace(tensors=mixer.tensors + indexer.tensors, indexer=indexer)
        for indexer in set(indexers)
    }
    mixers = [made[indexer] for indexer in indexers]
    count = fields.maybe(fields.first("n_routed_experts", "num_local_experts", "num_experts"))
    inner = fields.maybe("intermediate_size")
    if count is None:
        if inner is None:
            raise fields.refuse("intermediate_size", "the width of the feed-forward networks")
        mixture = dense(gated(hidden, inner))
        parts = [mixture] * layers
        fields.skip("first_k_dense_replace", "moe_layer_freq")
    else:
        parts, mixture = mixed_feed_forward(
            fields,
            hidden,
            layers,
            count=count,
            dense_first=dense_default,
            taken=chosen(fields, "num_experts_per_tok", count),
            shared=fields.size("n_shared_experts", shared_default, least=0, null=0),
            inner=fields.size("moe_intermediate_size"),
            dense_inner=inner,
        )
    modules = fields.size(
        fields.first("num_nextn_predict_layers", "num_mtp_layers"), 0, least=0, most=64
    )
    norms = pre_norms(hidden)
    return assemble(
        fields,
        layers=[Layer((mixer,), (part,), norms) for mixer, part in zip(mixers, parts, strict=True)],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        head=head,
        vision=tower,
        final=rms_norm("final", hidden),
        multi_token_prediction=prediction(hidden, Layer((mixers[0],), (mixture,), norms), modules),
    )


def deepseek_v2(fields: Fields) -> Architecture:
    """DeepSeek-V2 and V2-Lite."""
    return deepseek(fields, shared_default=2)


def deepseek_v3(fields: Fields) -> Architecture:
    """DeepSeek-V3, R1, and Kimi K2 and others that use its fields."""
    return deepseek(fields, dense_default=3)


def deepseek_v32(fields: Fields) -> Architecture:
    """DeepSeek-V3.2: V3 with an indexer that chooses what each query reads."""
    return deepseek(fields, dense_default=3, indexed=64)


def glm_dsa(fields: Fields) -> Architecture:
    """GLM-5: DeepSeek-V3.2's attention and GLM's sizes."""
    return deepseek(fields, default_rank=2048, dense_default=3, indexed=32)


def glm4_lite(fields: Fields) -> Architecture:
    """GLM-4.7-Flash: latent attention, the first layer dense."""
    return deepseek(fields, default_rank=768, dense_default=1)


def mistral4(fields: Fields) -> Architecture:
    """Mistral Small 4: DeepSeek's attention, experts in every layer unless told."""
    return deepseek(fields, default_rank=1024)


def youtu(fields: Fields) -> Architecture:
    """Youtu-LLM: latent attention, dense networks, a tied table."""
    fields.skip("embedding_initializer_range")
    return deepseek(fields, tied=True)


def minicpm3(fields: Fields) -> Architecture:
    """MiniCPM3: latent attention, dense networks, a tied table."""
    fields.skip("scale_emb", "scale_depth", "dim_model_base")
    return deepseek(fields, default_rank=768, tied=True)


def kimi_k25(fields: Fields) -> Architecture:
    """Kimi K2.5: K2 with a vision tower."""
    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    text.text("model_type", "kimi_k2", ["kimi_k2", "deepseek_v3"])
    vision = fields.nested("vision_config")
    if vision is not None:
        fields.note("the vision tower and its projector are not counted: text weights only")
    fields.only("tie_word_embeddings", False)
    fields.skip(
        "projection_hidden_size",
        "projection_layer_norm_eps",
        "media_placeholder_token_id",
        "use_unified_vision_chunk",
        "ignore_index",
        "mm_tokens_per_image",
        "video_placeholder",
    )
    found = deepseek(text, dense_default=3, head=has_head(fields))
    text.finish()
    return found
