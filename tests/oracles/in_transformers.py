"""Models of Transformers as a configuration's fields describe them, and the scalars that their caches hold."""

from collections import Counter

import torch
import transformers
from transformers import AutoConfig
from transformers.modeling_outputs import MoeModelOutputWithPast
from transformers.models.auto import modeling_auto

__all__ = ["built", "held", "parameters_of", "steps"]

transformers.logging.set_verbosity_error()

# The class of a file that names none, and of one whose name is not the library's.
CLASSES = (
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    | modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
)

# Tensors of a cache's layer, and of the modules that keep their state themselves, by what they are.
# What is not listed is an error, so that nothing a library holds goes uncounted.
NAMES = {
    "keys": "keys_values",
    "values": "keys_values",
    "indexer_keys": "indexer_keys",
    "conv_states": "convolution_inputs",
    "linear_cache": "memory",
    "conv1d_state": "convolution_inputs",
    "recurrent_states": "memory",
    "compressed_kv compressor": "compressed_keys_values",
    "compressed_kv indexer": "compressed_indexer_keys",
    "buffer_kv compressor": "unfinished",
    "buffer_kv indexer": "unfinished",
    "buffer_gate compressor": "unfinished",
    "buffer_gate indexer": "unfinished",
    "overlap_kv compressor": "unfinished",
    "overlap_kv indexer": "unfinished",
    "overlap_gate compressor": "unfinished",
    "overlap_gate indexer": "unfinished",
}


def built(config, device="meta"):
    """The library's model of these fields: without weights on the meta device, else with random ones.

    The token that pads is the first, because the library's own may be beyond a small vocabulary.
    """
    described = AutoConfig.for_model(**config)
    described.pad_token_id = described.get_text_config().pad_token_id = 0
    named = config.get("architectures") or [CLASSES[config["model_type"]]]
    with torch.device(device):
        model = getattr(transformers, named[0])._from_config(described, attn_implementation="eager")
    return model.eval()


def parameters_of(model):
    """How many parameters the model has, without the biases that correct a routing.

    No gradient moves these; most of the library's families have them as buffers, two as parameters.
    """
    corrections = ("expert_bias", "e_score_correction_bias")
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if not name.endswith(corrections)
    )


def steps(model, lengths, source=None):
    """What the library holds after prompts of these lengths, and after two more tokens each.

    Args:
        model: what `built` returned, with weights.
        lengths: tokens of the prompts.
        source: tokens of the encoder's or the tower's output, where layers read one; it is made up.

    Yields:
        Tokens so far, and the scalars held by what they are (see `held`).
    """
    fixed, first, name = {"use_cache": True}, {}, "input_ids"
    if source is not None:
        read = torch.randn(1, source, model.config.get_text_config().hidden_size)
        if model.config.is_encoder_decoder:
            fixed["encoder_outputs"] = MoeModelOutputWithPast(last_hidden_state=read)
            name = "decoder_input_ids"
        else:
            first["cross_attention_states"] = read
    for length in lengths:
        cache = None
        if model.config.model_type == "recurrent_gemma":  # which returns none of its own
            cache = transformers.DynamicCache(config=model.config)
        for tokens, new in ((length, length), (length + 1, 1), (length + 2, 1)):
            given = {"cache": cache} if cache is not None else {}
            given |= first if new == tokens else {}
            cache = model(**{name: _tokens(new)}, **fixed, **given).get("cache", cache)
            yield tokens, held(cache, model)


def _tokens(length):
    return torch.arange(5, 5 + length)[None]


def held(cache, model):
    """Scalars that the library keeps, by what they are; memory that two tensors share is counted once.

    Args:
        cache: what the model returned as its cache.
        model: the model; RecurrentGemma's layers keep their states themselves.
    """
    stacks = [("", cache)]
    if isinstance(cache, transformers.EncoderDecoderCache):
        stacks = [("", cache.self_attention_cache), ("cross_", cache.cross_attention_cache)]
    across = getattr(model.config.get_text_config(), "cross_attention_layers", ())
    found, seen = Counter(), set()

    def count(kind, tensor):
        if tensor.numel() and tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            found[kind] += tensor.numel()

    for prefix, stack in stacks:
        for number, owner in enumerate((stack, *stack.layers), -1):
            for name, tensor in _tensors(owner):
                kind = NAMES[name]
                if kind == "keys_values":
                    kind = "window_" * getattr(owner, "is_sliding", False) + kind
                    kind = ("cross_" if number in across else prefix) + kind
                count(kind, tensor)
    for module in model.modules():
        for name in ("conv1d_state", "recurrent_states"):
            if hasattr(module, name):
                count(NAMES[name], getattr(module, name))
    return found


def _tensors(owner):
    """The tensors that an object's attributes are or hold, each with the attribute's name."""
    for name, value in vars(owner).items():
        parts = {"": value}
        if isinstance(value, dict | list):
            parts = value if isinstance(value, dict) else dict(enumerate(value))
        for key, part in parts.items():
            if isinstance(part, torch.Tensor) and part.ndim:  # a number is the window's size
                yield (f"{name} {key}" if key and isinstance(key, str) else name), part
