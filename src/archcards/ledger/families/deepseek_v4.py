"""DeepSeek-V4: windows, compressed entries beyond them, and residual streams that mix."""

from ..architecture import Architecture, CompressedAttention, Indexer, Layer, Module, Tensor
from ..fields import Fields
from ._blocks import experts, linear, pre_norms, rms_norm, vector
from ._decoder import assemble, tied_table
from .mixtures import chosen

__all__ = ["deepseek_v4"]

WINDOW, SPARSE, HEAVY = (
    "sliding_attention",
    "compressed_sparse_attention",
    "heavily_compressed_attention",
)
KINDS = {WINDOW: 0, SPARSE: 4, HEAVY: 128}


def _kinds(
    fields: Fields, layers: int, modules: int
) -> tuple[list[str], list[str], dict[str, int]]:
    """The kind of each layer, of each prediction module if the file says, and each kind's stride."""
    rates = dict(KINDS)
    given = fields.nested("compress_rates")
    if given is not None:
        for name in given.values:
            if name not in (SPARSE, HEAVY):
                raise given.refuse(name, f"no key but {SPARSE} and {HEAVY}")
            rates[name] = given.size(name)
    rates[SPARSE] = fields.size("compress_rate_csa", rates[SPARSE])
    rates[HEAVY] = fields.size("compress_rate_hca", rates[HEAVY])
    kinds = fields.kinds("layer_types", layers, KINDS)
    ratios = fields.sizes("compress_ratios")
    if ratios is not None:
        if len(ratios) not in (layers, layers + modules):
            raise fields.refuse(
                "compress_ratios",
                f"a list of {layers} items, one a layer (or "
                f"{layers + modules}, with the prediction modules)",
            )
        named = {ratio: kind for kind, ratio in KINDS.items()}
        if set(ratios) - set(named):
            raise fields.refuse("compress_ratios", "ratios 0, 4 or 128")
        implied = [named[ratio] for ratio in ratios]
        if kinds is not None and implied[:layers] != kinds:
            raise fields.refuse("layer_types", "the layers that compress_ratios names")
        return implied[:layers], implied[layers:], rates
    if kinds is None:
        raise fields.refuse("compress_ratios", "the stride of each layer")
    return kinds, [], rates


def _streams(name: str, outputs: int, scales: int, streams: int, hidden: int) -> tuple[Tensor, ...]:
    """What mixes the residual streams: a matrix over all of them, a bias, and scales."""
    return (
        Tensor(f"{name} streams", (outputs, streams * hidden)),
        vector(f"{name} streams bias", outputs),
        vector(f"{name} streams scale", scales),
    )


def deepseek_v4(fields: Fields) -> Architecture:
    """DeepSeek-V4: one shared key/value vector per entry, 4- and 128-fold compression."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    heads, width = fields.size("num_attention_heads"), fields.size("head_dim")
    fields.only("num_key_value_heads", 1)
    modules = fields.size("num_nextn_predict_layers", 0, least=0, most=64)
    kinds, predicted, rates = _kinds(fields, layers, modules)
    window, rank = fields.size("sliding_window"), fields.size("q_lora_rank")
    groups, low = fields.size("o_groups"), fields.size("o_lora_rank")
    share = fields.divides("o_groups", groups, heads * width, "heads times head_dim")
    fields.only("attention_bias", False)
    fields.only("mlp_bias", False)
    number, narrow = fields.size("index_n_heads"), fields.size("index_head_dim")
    top, streams = fields.size("index_topk"), fields.size("hc_mult", most=1000)
    fields.skip(
        "qk_rope_head_dim",
        "compress_rope_theta",
        "hc_eps",
        "hc_sinkhorn_iters",
        "expert_dtype",
        "num_hash_layers",
    )
    fields.kinds("mlp_layer_types", layers, ["hash_moe", "moe"])
    base = (
        linear("query down", hidden, rank)
        + rms_norm("query", rank)
        + linear("query up", rank, heads * width)
        + linear("key and value", hidden, width)
        + rms_norm("key", width)
        + (vector("sinks", heads),)
        + (Tensor("output by groups", (groups, low, share)),)
        + linear("output", groups * low, hidden)
    )

    def compressor(name: str, stride: int, size: int, norm: int) -> tuple:
        return (
            linear(f"{name} entries", hidden, size)
            + linear(f"{name} weights", hidden, size)
            + (vector(f"{name} positions", stride, size),)
            + rms_norm(name, norm)
        )

    def mixer(kind: str) -> CompressedAttention:
        stride = rates[kind]
        if kind == WINDOW:
            return CompressedAttention(heads, width, window, 0, base)
        if kind == HEAVY:
            return CompressedAttention(
                heads, width, window, stride, base + compressor("compressor", stride, width, width)
            )
        # Entries of the sparse kind overlap: each token gives two halves, to two entries.
        indexer = Indexer(
            number,
            narrow,
            top,
            compressor("indexer", stride, 2 * narrow, narrow)
            + linear("index query", rank, number * narrow)
            + linear("index weights", hidden, number),
        )
        tensors = base + compressor("compressor", stride, 2 * width, width) + indexer.tensors
        return CompressedAttention(heads, width, window, stride, tensors, indexer)

    mixers = {kind: mixer(kind) for kind in KINDS if kind in kinds + predicted}
    count = fields.size(fields.first("n_routed_experts", "num_local_experts"))
    inner = fields.size("moe_intermediate_size")
    fields.only("intermediate_size", inner)
    fields.only("n_shared_experts", 1)
    mixture = experts(
        hidden, inner, count, chosen(fields, "num_experts_per_tok", count), shared=inner
    )
    mixing = (streams + 2) * streams
    others = _streams("attention", mixing, 3, streams, hidden) + _streams(
        "feed-forward", mixing, 3, streams, hidden
    )
    final = rms_norm("final", hidden) + _streams("head", streams, 1, streams, hidden)
    for kind in mixers:
        if kind != WINDOW and kind in kinds:
            fields.note(
                f"{kinds.count(kind)} of {layers} layers keep one entry per {rates[kind]} tokens, "
                "whole ones only; the inputs of an unfinished entry are not counted"
            )
    fields.note(
        f"every layer keeps a window of {window} tokens; keys and values are one vector of {width}"
    )
    if modules and not predicted:
        fields.note(
            f"{modules} multi-token-prediction module(s) are announced (num_nextn_predict_layers) "
            "whose kind compress_ratios does not say: not counted"
        )

    def layer(kind: str) -> Layer:
        return Layer((mixers[kind],), (mixture,), pre_norms(hidden), others)

    # A module is a layer behind a projection of each of its two inputs; it mixes its streams for
    # the head by itself. Token table and head are the model's.
    beside = (
        rms_norm("embedding", hidden)
        + rms_norm("hidden", hidden)
        + linear("embedding projection", hidden, hidden)
        + linear("hidden projection", hidden, hidden)
        + final
    )
    return assemble(
        fields,
        layers=[layer(kind) for kind in kinds],
        multi_token_prediction=tuple(Module((layer(kind),), beside) for kind in predicted),
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=final,
    )
