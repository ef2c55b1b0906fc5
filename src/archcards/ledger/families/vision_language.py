"""Text models of families read elsewhere, with a vision tower in front."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from ..architecture import Architecture, Tower
from ..fields import Fields
from . import linear, llama, mixtures
from ._towers import pixtral, qwen2_5_vision, qwen2_vision, qwen_vision

__all__ = [
    "internvl_chat",
    "mistral3",
    "omni",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_vl",
    "qwen3_vl_moe",
    "text_only",
]


def _joined(
    fields: Fields,
    read: Callable[[Fields], Architecture],
    text_types: tuple[str, ...],
    tower: Callable[[Fields, int], Tower] | None,
    *,
    outer_tie: bool = True,
    outer_class: bool = True,
    either_tie: bool = False,
    silent: Mapping[str, int] = MappingProxyType({}),
) -> Architecture:
    """The text model of `text_config` (or of this very object, as older files have it) and a tower.

    `outer_tie`: whether `tie_word_embeddings` counts here rather than inside, `either_tie`: whether
    it ties in either place;
    `outer_class`: whether `architectures` does; `silent` are sizes that the text model leaves out.
    """
    text = fields.nested("text_config")
    vision = fields.nested("vision_config")
    inside = text if text is not None else fields
    made = None
    if tower is not None and vision is not None:
        made = tower(vision, inside.size("hidden_size"))
        vision.finish()
    elif tower is not None:
        fields.note("the file describes no vision tower: text weights only")
    if text is not None:
        text.text("model_type", text_types[0], text_types)
        values = {**silent, **text.values}
        # The class, and the classes of a classifier, stand outside.
        for name in ("architectures", "id2label", "num_labels") if outer_class else ():
            values[name] = fields.raw(name)
        given = fields.raw("tie_word_embeddings")
        if given is not None:
            if not outer_tie and given != text.values.get("tie_word_embeddings", False):
                raise fields.refuse("tie_word_embeddings", "the value in text_config")
            tied = fields.flag("tie_word_embeddings", False)
            inner = either_tie and text.flag("tie_word_embeddings", False)
            values["tie_word_embeddings"] = tied or inner
        text = Fields(values, fields.where("text_config"), fields.notes)
        found = read(text)
        text.skip("model_type")
        text.finish()
    else:
        found = read(fields)
    return found._replace(vision=made)


def qwen2_vl(fields: Fields) -> Architecture:
    """Qwen2-VL."""
    return _qwen2(fields, "qwen2_vl", qwen2_vision)


def qwen2_5_vl(fields: Fields) -> Architecture:
    """Qwen2.5-VL: its tower has windows, gated networks and norms without shift."""
    return _qwen2(fields, "qwen2_5_vl", qwen2_5_vision)


def _qwen2(fields: Fields, name: str, tower: Callable[[Fields, int], Tower]) -> Architecture:
    """Qwen2's text model, with other numbers where a file is silent, and a tower."""
    read = partial(llama.qwen2, kv_heads=8, share=True)
    return _joined(fields, read, (f"{name}_text", name), tower, either_tie=True)


def qwen3_vl(fields: Fields) -> Architecture:
    """Qwen3-VL: the tower's middle layers are read too, each by a merger of its own."""
    return _joined(fields, llama.qwen3, ("qwen3_vl_text",), qwen_vision)


def qwen3_vl_moe(fields: Fields) -> Architecture:
    """Qwen3-VL with experts: other numbers than Qwen3's where a file is silent."""
    text = partial(mixtures.qwen3_moe, kv_heads=16, count=60)
    return _joined(fields, text, ("qwen3_vl_moe_text",), qwen_vision)


def qwen3_5(fields: Fields) -> Architecture:
    """Qwen3.5."""
    return _joined(fields, linear.qwen3_5_text, ("qwen3_5_text",), qwen_vision)


def qwen3_5_moe(fields: Fields) -> Architecture:
    """Qwen3.5 with experts."""
    return _joined(fields, linear.qwen3_5_moe_text, ("qwen3_5_moe_text",), qwen_vision)


SAME = {
    "glm4v_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe",
}
"""Text models that are another family's under a name of their own."""


EITHER = frozenset(
    ("glm4v", "glm4v_moe", "llava", "llava_next_video", "llava_onevision", "video_llama_3")
)
"""Families whose table is tied if this object says so or the one inside; of others, this one's word
counts where it has one."""

SILENT = {
    "llama": {"intermediate_size": 11008},
    "mistral": {"intermediate_size": 14336},
}
"""What the library means where a nested text model of 7 billion parameters leaves its sizes out."""

SIZES = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
"""The same for both."""


def text_only(fields: Fields, *, outer_class: bool = True) -> Architecture:
    """A text model of a family read here behind towers that are not counted."""
    from . import READERS, reader

    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    named = text.text("model_type")
    kind = SAME.get(named, named)
    if kind not in READERS or READERS[kind].startswith("vision_language"):
        raise text.refuse("model_type", "a text model that the ledger reads")
    meant = {**SIZES, **SILENT[kind]} if kind in SILENT else {}
    silent = {name: value for name, value in meant.items() if name not in text}
    if silent:
        fields.note(
            "text_config is silent, and the library's defaults for "
            f"{kind} are meant: {', '.join(f'{name} {value}' for name, value in silent.items())}"
        )
    fields.only("is_encoder_decoder", False)
    # Nothing here but the tie reaches the text model.
    fields.skip(*fields.values)
    fields.nested("vision_config")
    fields.nested("audio_config")
    fields.note("towers and their projectors are not counted: text weights only")
    return _joined(
        fields,
        reader(kind),
        (named,),
        None,
        outer_class=outer_class,
        either_tie=fields.values.get("model_type") in EITHER,
        silent=silent,
    )


def internvl_chat(fields: Fields) -> Architecture:
    """InternVL under the name of its own code: the text model is in `llm_config`."""
    fields.skip(*(name for name in fields.values if name != "is_encoder_decoder"))
    return text_only(fields.named(text_config="llm_config"), outer_class=False)


def omni(fields: Fields) -> Architecture:
    """Qwen's Omni models: the text model of the thinker; nothing that hears, sees or speaks."""
    thinker = fields.nested("thinker_config")
    if thinker is None:
        raise fields.refuse("thinker_config", "an object with the thinker's fields")
    fields.skip("talker_config", "token2wav_config", "code2wav_config", "enable_audio_output")
    fields.note("the talker and what makes sound of its tokens are not counted")
    return text_only(thinker)


def mistral3(fields: Fields) -> Architecture:
    """Mistral Small 3.1 and 4, Ministral 3: a Pixtral tower, a merger of patches, two projections."""
    from . import deepseek, dense

    texts = {
        "mistral": llama.mistral,
        "ministral3": dense.ministral3,
        "mistral4": deepseek.mistral4,
    }
    inner = fields.values.get("text_config")
    named = inner.get("model_type") if isinstance(inner, dict) else None
    merge = fields.size("spatial_merge_size", 2)
    fields.skip("projector_hidden_act")
    fields.only("vision_feature_layer", -1)
    bias = fields.flag("multimodal_projector_bias", False)
    return _joined(
        fields,
        texts.get(named, llama.mistral) if isinstance(named, str) else llama.mistral,
        tuple(texts),
        lambda vision, hidden: pixtral(vision, hidden, merge, bias),
        outer_tie=False,
    )
