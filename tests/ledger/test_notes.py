"""What the readers of families tell: each note to the files that it is about, and to no others."""

import ast
import json
from pathlib import Path

import pytest

import archcards.ledger
from archcards.ledger import bundled, read_config
from archcards.ledger.bundled import bundled_config, bundled_names

LIBRARY = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))
ABSENT = object()


def library(model_type, **has):
    """The first configuration of the library's of that type that has these fields."""
    configs = (case["config"] for case in LIBRARY if case["config"]["model_type"] == model_type)
    return next(one for one in configs if has.items() <= one.items())


def with_changes(config, changes):
    """A copy in which fields are other, or absent; a dot leads into a nested object."""
    changed = json.loads(json.dumps(config))
    for name, value in changes.items():
        *path, last = name.split(".")
        inner = changed
        for part in path:
            inner = inner[part]
        inner.pop(last, None)
        if value is not ABSENT:
            inner[last] = value
    return changed


GEMMA3 = library("gemma3")
GEMMA4_LAST = {"text_config.num_kv_shared_layers": 0, "text_config.layer_types": ["full_attention"] + ["sliding_attention"] * 11, "text_config.per_layer_config": {"00": {"head_dim": 512}, "11": {"head_dim": 512}}}
# A configuration, what changes in it, and the note that the change brings.
BROUGHT = [
    (bundled_config("Mistral-7B-v0.1"), {"sliding_window": ABSENT},
     "sliding_window absent: the family's default, 4096"),
    (with_changes(GEMMA3, {"vision_config.vision_use_head": False}), {"vision_config.vision_use_head": True},
     "the tower has its pooling head (vision_use_head)"),
    (library("t5"), {"tie_word_embeddings": False},
     "untied, as the published weights are; Transformers from 5 on ties the tables all the same"),
    (library("llama4"), {"vision_config.vision_output_dim": 56}, "the vision projector reads vision_output_dim 56"),
    (library("llama4"), {"vision_config": ABSENT}, "the file describes no vision tower: text weights only"),
    (GEMMA3, {"vision_config": ABSENT}, "the file describes no vision tower: text weights only"),
    (library("gemma4", tie_word_embeddings=True), {"vision_config": ABSENT}, "the file describes no vision tower: text weights only"),
    (library("mistral3"), {"vision_config": ABSENT}, "the file describes no vision tower: text weights only"),
    (library("gpt_bigcode"), {"multi_query": True, "num_key_value_heads": 1},
     "multi_query: 4 query heads share one key/value head"),
    (with_changes(bundled_config("falcon-7b"), {"num_kv_heads": 1}), {"num_kv_heads": 71},
     "multi_query: 71 query heads share one key/value head, whatever num_kv_heads says"),
    (GEMMA3, {"text_config.num_key_value_heads": ABSENT},
     "text_config.num_key_value_heads absent: the family's default, 4"),
    (bundled_config("gemma-3-1b-it"), {"head_dim": ABSENT}, "head_dim absent: the family's default, 256"),
    (library("gemma4"), GEMMA4_LAST, "the last layer reads everything, whatever layer_types says"),
    (library("gemma4"), {"audio_config": {"model_type": "gemma4_audio"}}, "audio_config: the audio tower is not counted"),
    (with_changes(bundled_config("granite-4.0-h-1b"), {"num_local_experts": 0, "intermediate_size": ABSENT}),
     {"intermediate_size": 77},
     f"without experts only shared_intermediate_size {bundled_config('granite-4.0-h-1b')['shared_intermediate_size']}"
     " counts, not intermediate_size 77"),
    (library("qwen2_moe"), {"sliding_window": 32}, "sliding_window is not used: use_sliding_window is not true"),
    (library("qwen2_moe"), {"dual_chunk_attention_config": {"chunk_size": 8}},
     "dual_chunk_attention_config: only how long contexts are read, not counted"),
    (bundled_config("MiniMax-M2.5") | {"use_mtp": False}, {"use_mtp": True},
     "3 multi-token-prediction modules are announced (num_mtp_modules) "
     "whose tensors the configuration does not describe: not counted"),
    (with_changes(bundled_config("mamba-130m-hf"), {"expand": 2, "intermediate_size": 1536}), {"intermediate_size": 1537},
     "intermediate_size 1537 counts, not expand 2 times 768"),
    (library("mimo_v2_flash"), {"sliding_window_size": 20},
     "a window is 20 tokens (sliding_window_size) and the token itself"),
    (bundled_config("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"), {"num_nextn_predict_layers": 1},
     "multi-token-prediction layers are announced (num_nextn_predict_layers) and not described: not counted"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "changes", "note"), BROUGHT, ids=lambda value: value if isinstance(value, str) else "")
def test_a_note_comes_with_what_it_is_about(config, changes, note):
    assert note not in read_config(config).notes
    assert note in read_config(with_changes(config, changes)).notes


def test_deepseek_v4_tells_of_the_layers_that_compress_and_of_no_others():
    """Two layers with a window only, and a prediction module of a kind that no layer has."""
    config = with_changes(library("deepseek_v4", num_hidden_layers=5), {
        "layer_types": ABSENT, "compress_ratios": [0, 4, 4, 4, 0, 128],
    })  # fmt: skip
    told = [note for note in read_config(config).notes if "one entry per" in note]
    assert [note.split(" tokens")[0] for note in told] == ["3 of 5 layers keep one entry per 4"]


def test_gemma_3n_tells_of_its_towers():
    config = {"model_type": "gemma3n", "text_config": library("gemma3n_text")}
    note = "the vision and audio towers and their projectors are not counted: text weights only"
    assert note in read_config(config).notes


def beginnings():
    """Where a note is told in the source, and its longest literal part."""
    root = Path(archcards.ledger.__file__).parent
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "note":
                parts = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
                yield f"{file.stem}:{node.lineno}", max(filter(lambda part: isinstance(part, str), parts), key=len)


def test_every_note_is_told_to_some_file():
    told = {note for name in bundled_names() for note in bundled(name).notes}
    told |= {note for case in LIBRARY for note in read_config(case["config"]).notes}
    told |= {note for *_, note in BROUGHT}
    # Towers that are not described: their own tests make such files.
    elsewhere = {
        "the vision tower and its projector are not counted: text weights only",
        "the vision and audio towers and their projectors are not counted: text weights only",
        "towers and their projectors are not counted: text weights only",
        "text_config is silent, and the library's defaults for ",
        # Families that the library does not have; their own tests read such files.
        " is the width of gate and up together: ",
        "ChatGLMModel: the file names the body alone, and its weights have the head",
        "the talker and what makes sound of its tokens are not counted",
    }
    found = list(beginnings())
    assert len(found) > 40
    silent = [f"{place}: {text}" for place, text in found if not any(text in note for note in told | elsewhere)]
    assert not silent
