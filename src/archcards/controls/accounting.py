"""Cache sizes, counted wrong in named ways.

Each control has the signature of `cache_scalars(config, context)`: it takes a `config.json` as a
mapping, as the calculators that make these mistakes do, and gives the scalars of one sequence.
The right count is `archcards.ledger.cache(read_config(config), context).scalars`.
"""

from ._registry import mistake

__all__: list[str] = []


def _fields(config):
    """The layers, query heads, key/value heads and head width that a plain configuration states."""
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    return config["num_hidden_layers"], heads, config.get("num_key_value_heads", heads), width


@mistake("cache_scalars", "head width taken as hidden / heads")
def head_width_from_the_hidden_size(config, context):
    """Divide the hidden size by the number of heads, whatever `head_dim` says.

    Seen in: LMCache #688, where Qwen3-4B came out too small.
    """
    layers, heads, kv_heads, _ = _fields(config)
    return 2 * layers * kv_heads * (config["hidden_size"] // heads) * context


@mistake("cache_scalars", "every query head cached")
def every_query_head_cached(config, context):
    """Treat the model as multi-head attention and cache a key and a value for each query head.

    Seen in: calculators that do not read `num_key_value_heads`.
    """
    layers, heads, _, width = _fields(config)
    return 2 * layers * heads * width * context


@mistake("cache_scalars", "keys without values")
def keys_without_values(config, context):
    """Leave out the factor two.

    Seen in: EleutherAI's cookbook, whose code lacks the factor that its article states.
    """
    layers, _, kv_heads, width = _fields(config)
    return layers * kv_heads * width * context


@mistake("cache_scalars", "one layer counted")
def one_layer_counted(config, context):
    """Forget that every layer has a cache of its own.

    Seen in: gguf-parser-go #8.
    """
    _, _, kv_heads, width = _fields(config)
    return 2 * kv_heads * width * context
