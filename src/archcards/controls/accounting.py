"""Caches, parameters and operations, counted wrong in named ways.

They take a `config.json` as a mapping, as the calculators that make these mistakes do. The right
counts are the ledger's:

- `cache_scalars(config, context)`: `cache(read_config(config), context).scalars`;
- `parameter_count(config)`: `parameters(read_config(config)).total`, of a plain decoder;
- `training_flops(config, context)`: `training_per_token(read_config(config), context)`, of a Llama or Qwen;
- `mean_span(length, window)`: `edges.sliding_window(length, window=window) / length`.
"""

from ._registry import convention, mistake

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


# Parameters


def _shape(config):
    """Layers, width, feed-forward width and vocabulary, by the names of either generation."""
    width = config.get("hidden_size") or config["n_embd"]
    layers = config.get("num_hidden_layers") or config["n_layer"]
    inner = config.get("intermediate_size") or config.get("n_inner") or 4 * width
    return layers, width, inner, config["vocab_size"]


def _gated(config):
    return "intermediate_size" in config


def _stored(config, *, feed_forward_matrices=None, kv_heads=None):
    """What a GPT-2, Llama or Qwen2 stores: tables, projections with their biases, norms."""
    layers, width, inner, vocabulary = _shape(config)
    if not _gated(config):
        tables = (vocabulary + config["n_positions"]) * width
        return tables + layers * (4 * width**2 + 2 * width * inner + inner + 9 * width) + 2 * width
    _, heads, own_kv_heads, head = _fields(config)
    kv_heads = own_kv_heads if kv_heads is None else kv_heads
    matrices = 3 if feed_forward_matrices is None else feed_forward_matrices
    attention = 2 * width * heads * head + 2 * width * kv_heads * head
    if config["model_type"] == "qwen2":
        attention += (heads + 2 * kv_heads) * head
    layer = attention + matrices * width * inner + 2 * width
    tables = 1 if config.get("tie_word_embeddings", False) else 2
    return tables * vocabulary * width + layers * layer + width


@mistake("parameter_count", "tied head counted again")
def tied_head_counted_again(config):
    """Count the head beside the table of which it is the transpose.

    Seen in: transformers #14960, and in indexes of weights that list a tied table twice.
    """
    _, width, _, vocabulary = _shape(config)
    return _stored(config) + vocabulary * width


@mistake("parameter_count", "two matrices for a gated feed-forward network")
def two_matrices_for_a_gated_network(config):
    """Count an up- and a down-projection where there is a gate as well.

    Seen in: EleutherAI/cookbook #36, where Qwen1.5-72B came out as 56B.
    """
    return _stored(config, feed_forward_matrices=2)


@mistake("parameter_count", "key and value projections as wide as the query's")
def as_many_key_value_heads_as_query_heads(config):
    """Count multi-head attention where heads are grouped.

    Seen in: calculators that do not read `num_key_value_heads`.
    """
    heads = config.get("num_attention_heads") or config["n_head"]
    return _stored(config, kv_heads=heads)


@mistake("parameter_count", "twelve times layers times width squared")
def twelve_times_layers_times_width_squared(config):
    """Use the rule for GPT models whatever the shape of the layer, and leave out both tables.

    Seen in: memory calculators that fall back on it for any configuration.
    """
    layers, width, _, _ = _shape(config)
    return 12 * layers * width**2


# FLOPs


def _operations(config, context, *, keys=None, score_heads=None, head_times=1):
    """Multiply-adds of one token's forward pass, on average over a sequence of `context` tokens.

    Times two, so that half a key more or less stays a whole number.
    """
    layers, heads, kv_heads, head = _fields(config)
    _, width, inner, vocabulary = _shape(config)
    layer = 2 * width * heads * head + 2 * width * kv_heads * head + 3 * width * inner
    pairs = (score_heads or heads) * 2 * head
    doubled_keys = context + 1 if keys is None else 2 * keys
    return 2 * (layers * layer + head_times * vocabulary * width) + layers * pairs * doubled_keys


@mistake("training_flops", "forward pass only")
def forward_pass_only(config, context):
    """Count two operations a weight and token where training takes six.

    Seen in: the first printing of a scaling book's exercise, whose utilisation was a third.
    """
    return _operations(config, context)


@mistake("training_flops", "vocabulary term counted twice")
def vocabulary_term_counted_twice(config, context):
    """Charge twelve operations a weight of the head where six are right.

    Seen in: a table of the scaling book, which has 12BTDV where its own derivation has 6BTDV.
    """
    return 3 * _operations(config, context, head_times=2)


@mistake("training_flops", "scores counted by key/value heads")
def scores_counted_by_key_value_heads(config, context):
    """Let grouped heads reduce the operations of the scores; every query head forms its own.

    Seen in: OLMo-core pull request #478.
    """
    _, _, kv_heads, _ = _fields(config)
    return 3 * _operations(config, context, score_heads=kv_heads)


@convention("training_flops", "every pair counted")
def every_pair_counted(config, context):
    """Charge a query with all keys, also with those that the causal mask hides.

    Seen in: torchtitan and most reports of utilisation.
    """
    return 3 * _operations(config, context, keys=context)


@mistake("training_flops", "multiply-adds called FLOPs")
def multiply_adds_called_flops(config, context):
    """Count a multiplication with its addition as one.

    Seen in: PVT #1, and many tables of vision models.
    """
    return 3 * _operations(config, context) // 2


# The mean number of keys that a query of a windowed layer reads


@mistake("mean_span", "half the window")
def half_the_window(length, window):
    """Take the causal half of a square as wide as the window, instead of a band.

    Seen in: Megatron-LM pull request #3280.
    """
    return window / 2


@mistake("mean_span", "the whole context")
def the_whole_context(length, window):
    """Charge windowed layers like full ones.

    Seen in: torchtitan pull request #4300, for gpt-oss.
    """
    return (length + 1) / 2


@convention("mean_span", "the whole window")
def the_whole_window(length, window):
    """Leave out that the first queries have fewer keys before them.

    Seen in: torchtitan, after that pull request.
    """
    return window
