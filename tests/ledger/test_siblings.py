"""Models that are not bundled: other sizes and names, quantised copies, older and newer fields."""

import copy
import json
import re
from pathlib import Path

import pytest

from archcards.ledger import UnsupportedConfig, bundled, cache, flops, parameters, read_config
from archcards.ledger.architecture import Attention, Experts
from archcards.ledger.bundled import bundled_config
from archcards.ledger.families import READERS
from archcards.ledger.families.vision_language import EITHER

# Small configurations of every family, with the number of parameters that the transformers
# library (5.24) gives the model it builds of each, without weights.
LIBRARY = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))


@pytest.mark.parametrize("case", LIBRARY, ids=lambda case: case["config"]["model_type"])
def test_as_many_parameters_as_the_library_builds(case):
    assert parameters(read_config(case["config"])).total == case["total"]


def test_nearly_every_family_is_compared_with_the_library():
    compared = {case["config"]["model_type"] for case in LIBRARY}
    # Other names of compared families; some that do not load there; some with towers besides.
    assert set(READERS) - compared <= {
        "kimi_k2",
        "kimi_k25",
        "minimax_text_01",
        "minimax_m1",
        "dbrx",
        "gemma3n",
        "Yi",
        "RefinedWeb",
        "RefinedWebModel",
        "baichuan",
        "chatglm",
        "deepseek",
        "internlm2",
        "gpt-sw3",
        "internvl_chat",
        "mllama_text_model",
        "minicpm",
        "new",
        "qwen",
        "qwen2_5_omni",
        "qwen3_omni_moe",
    } | set(WRAPPERS)


# Matrices that take the layer's input, by their names; `... down` and `... up` go to a rank and back.
TAKE = {"query", "key", "value", "gate", "in", "branch", "beta", "query, key and value", "query, key, value and gate",
        "beta and decay", "key and value", "index key", "index weights"}  # fmt: skip


def network_fits(tensors, hidden):
    """Up and gate go from the layer's width (or a latent one) to the inner width, and down comes back."""
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    if "latent down" in shapes:
        assert shapes["latent down"] == (shapes["latent up"][1], shapes["latent up"][0])
        assert shapes["latent up"][0] == hidden
        hidden = shapes["latent up"][1]
    inner = shapes["up"][0]
    assert shapes["up"] == shapes.get("gate", (inner, hidden)) == (inner, hidden)
    assert shapes["down"] == (hidden, inner)


def mixer_fits(mixer, hidden, wide):
    shapes = {tensor.name: tensor.shape for tensor in mixer.tensors if tensor.role == "matrix"}
    for name, shape in shapes.items():
        if name in TAKE:
            assert shape[-1] == (wide if name in ("query", "key", "value") else hidden), name
        if name in ("output", "out"):
            assert shape[0] == hidden
        if name.endswith(" down"):
            up = shapes.get(name.replace(" down", " up"))
            assert shape[-1] in (hidden, wide) and (up is None or up[-1] == shape[0]), name
    if isinstance(mixer, Attention):
        assert shapes["output"] == (hidden, mixer.heads * mixer.value_width)
        assert shapes["query"][0] in (mixer.heads * mixer.key_width, 2 * mixer.heads * mixer.key_width)
        for name, width in (("key", mixer.key_width), ("value", mixer.value_width)):
            assert shapes.get(name, (mixer.kv_heads * width,))[0] == mixer.kv_heads * width


@pytest.mark.parametrize("case", LIBRARY, ids=lambda case: case["config"]["model_type"])
def test_each_matrix_takes_what_the_one_before_gives(case):
    """A matrix on its side has as many parameters as one that stands, so counts see no difference."""
    model = read_config(case["config"])
    # Zamba's attention reads the layer's input beside the embedded token.
    wide = model.hidden * (2 if model.model_type.startswith("zamba") else 1)
    stacks = [(model.layers, model.hidden, wide)]
    stacks += [(module.layers, model.hidden, wide) for module in model.multi_token_prediction]
    if model.encoder:
        stacks.append((model.encoder.layers, model.hidden, wide))
    if model.vision:
        width = model.vision.layers[0].norms[0].shape[0]
        stacks.append((model.vision.layers, width, width))
    for layers, hidden, wide in stacks:
        for layer in set(layers):
            for mixer in layer.mixers:
                mixer_fits(mixer, hidden, wide)
            for part in layer.feed_forwards:
                for tensors in (part.routed, part.shared) if isinstance(part, Experts) else (part.tensors,):
                    if tensors:
                        network_fits(tensors, hidden)


# Fields as the published files have them, with the totals that the published weights have.
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text("utf-8"))


# What those weights hold besides: a correction bias per expert and mixture (a buffer for us), and
# in GLM's a prediction module, which repeats the token table and the head.
BESIDE = {"dots.llm1": 61 * 128, "GLM-4.5 Air": 46 * 128 + 2 * 151552 * 4096 + 2_375_059_456}


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["name"])
def test_published_files(case):
    assert parameters(read_config(case["config"])).total == case["total"] - BESIDE.get(
        case["name"], 0
    )


def changed(name, **changes):
    return read_config({**bundled_config(name), **changes})


SIZES = {
    "Llama 1 33B": (
        changed(
            "Llama-2-7b",
            hidden_size=6656,
            intermediate_size=17920,
            num_hidden_layers=60,
            num_attention_heads=52,
            num_key_value_heads=52,
        ),
        32_528_943_616,
    ),
    "Llama 1 65B": (
        changed(
            "Llama-2-7b",
            hidden_size=8192,
            intermediate_size=22016,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=64,
        ),
        65_285_660_672,
    ),
    "Llama 2 13B": (
        changed(
            "Llama-2-7b",
            hidden_size=5120,
            intermediate_size=13824,
            num_hidden_layers=40,
            num_attention_heads=40,
            num_key_value_heads=40,
        ),
        13_015_864_320,
    ),
    "Llama 3.1 405B": (
        changed(
            "Meta-Llama-3.1-8B",
            hidden_size=16384,
            intermediate_size=53248,
            num_hidden_layers=126,
            num_attention_heads=128,
        ),
        405_853_388_800,
    ),
    "Qwen1.5 72B": (
        changed(
            "Qwen3-8B",
            model_type="qwen2",
            hidden_size=8192,
            intermediate_size=24576,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=64,
            head_dim=None,
            attention_bias=None,
            vocab_size=152064,
        ),
        72_287_920_128,
    ),
    "DBRX": (
        read_config(
            {
                "model_type": "dbrx",
                "d_model": 6144,
                "n_heads": 48,
                "n_layers": 40,
                "vocab_size": 100352,
                "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000},
                "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
            }
        ),
        131_596_523_520,
    ),
    "gpt-oss 20B": (
        changed(
            "gpt-oss-120b",
            num_hidden_layers=24,
            num_local_experts=32,
            layer_types=["sliding_attention", "full_attention"] * 12,
        ),
        20_914_757_184,
    ),
    "ViT-L/16": (
        changed(
            "vit-base",
            hidden_size=1024,
            intermediate_size=4096,
            num_hidden_layers=24,
            num_attention_heads=16,
            pooler_output_size=None,
        ),
        304_326_632,
    ),
    "Switch C": (
        changed(
            "switch-base-8",
            d_model=2080,
            d_ff=6144,
            num_heads=32,
            d_kv=64,
            num_layers=15,
            num_decoder_layers=15,
            num_experts=2048,
            num_sparse_encoder_layers=15,
            num_sparse_decoder_layers=15,
            encoder_sparse_step=1,
            decoder_sparse_step=1,
            tie_word_embeddings=False,
        ),
        1_571_375_798_688,
    ),
    **{
        f"Mamba {hidden}": (
            changed(
                "mamba-130m",
                hidden_size=hidden,
                intermediate_size=2 * hidden,
                num_hidden_layers=layers,
                time_step_rank=hidden // 16,
            ),
            total,
        )
        for hidden, layers, total in (
            (1024, 48, 371_516_416),
            (1536, 48, 793_204_224),
            (2048, 48, 1_372_178_432),
            (2560, 64, 2_768_345_600),
        )
    },
}


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes(name):
    architecture, total = SIZES[name]
    assert parameters(architecture).total == total


def test_gemma_3_table_1():
    """Non-embedding parameters and the tower of arXiv 2503.19786, table 1, to the million."""
    for hidden, inner, layers, heads, kv, width, printed in (
        (2560, 10240, 34, 8, 4, 256, 3209),
        (3840, 15360, 48, 16, 8, 256, 10759),
        (5376, 21504, 62, 32, 16, 128, 25600),
    ):
        config = bundled_config("medgemma-27b-it")
        config["text_config"] |= {
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv,
            "head_dim": width,
            "layer_types": None,
        }
        counted = parameters(read_config(config))
        assert round((counted.text - counted.input_embedding) / 10**6) == printed
        projector = 1152 * hidden + 1152
        assert counted.vision - projector == 416_866_032


def test_gemma_3_4b_as_published_leaves_its_heads_to_the_defaults():
    config = {
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
    }
    architecture = read_config(config)
    assert parameters(architecture).text - parameters(architecture).input_embedding == 3_209_010_688
    assert any("num_attention_heads absent" in note for note in architecture.notes)


DEEPSEEK_V2 = dict(
    model_type="deepseek_v2",
    hidden_size=5120,
    intermediate_size=12288,
    num_hidden_layers=60,
    first_k_dense_replace=1,
    n_routed_experts=160,
    n_shared_experts=2,
    num_experts_per_tok=6,
    moe_intermediate_size=1536,
    vocab_size=102400,
)
KIMI_K2 = dict(
    model_type="kimi_k2",
    num_attention_heads=64,
    num_key_value_heads=64,
    n_routed_experts=384,
    first_k_dense_replace=1,
    vocab_size=163840,
    n_group=1,
    topk_group=1,
    num_nextn_predict_layers=0,
)
QWEN_235B = dict(
    hidden_size=4096,
    num_hidden_layers=94,
    num_attention_heads=64,
    moe_intermediate_size=1536,
    intermediate_size=12288,
    max_window_layers=94,
)


GLM_5 = dict(
    model_type="glm_moe_dsa",
    hidden_size=6144,
    intermediate_size=12288,
    num_attention_heads=64,
    num_key_value_heads=64,
    q_lora_rank=2048,
    v_head_dim=256,
    qk_nope_head_dim=192,
    index_n_heads=32,
    vocab_size=154880,
    num_hidden_layers=78,
    num_nextn_predict_layers=1,
)


@pytest.mark.parametrize(
    "name, changes, billions",
    [
        ("DeepSeek-V3.2", GLM_5, (41.785, 40.833, 39.882)),
        ("DeepSeek-V3", DEEPSEEK_V2, (21.376, 20.852, 20.327)),
        ("DeepSeek-V3", KIMI_K2, (32.861, 31.687, 30.513)),
        ("Qwen3-30B-A3B", QWEN_235B, (22.191, 21.568, 20.946)),
        ("DeepSeek-V3", {}, (37.552, 36.626, 35.699)),
        ("MiniMax-Text-01", {}, (48.403, 47.174, 45.945)),
        ("Nemotron-3-Nano", {}, (3.580, 3.228, 2.875)),
    ],
)
def test_active_in_three_conventions(name, changes, billions):
    active = parameters(changed(name, **changes)).active
    assert tuple(round(number / 10**9, 3) for number in active) == billions


def test_the_vision_tower_of_llama_4():
    config = bundled_config("Llama-4-Scout")
    config["vision_config"] = {
        "model_type": "llama4_vision_model",
        "hidden_size": 1408,
        "num_hidden_layers": 34,
        "num_attention_heads": 16,
        "intermediate_size": 5632,
        "image_size": 336,
        "patch_size": 14,
        "projector_input_dim": 4096,
        "projector_output_dim": 4096,
        "vision_output_dim": 4096,
        "pixel_shuffle_ratio": 0.5,
        "num_channels": 3,
        "vision_feature_layer": -1,
    }
    counted = parameters(read_config(config))
    assert (counted.text, counted.vision) == (107_769_861_120, 871_932_416)


def test_head_width_is_not_hidden_over_heads():
    """Qwen3 4B: 73 728 scalars a token; hidden over heads would give 46 080."""
    architecture = changed("Qwen3-8B", hidden_size=2560, intermediate_size=9728)
    assert cache(architecture, 1).scalars == 73_728


WRAPPERS = [name for name, where in READERS.items() if where == "vision_language:text_only"]


@pytest.mark.parametrize("model_type", WRAPPERS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_text_model_behind_a_tower_that_is_not_counted(model_type, tied):
    text = bundled_config("Qwen3-0.6B")
    config = {
        "model_type": model_type,
        "text_config": text | {"tie_word_embeddings": not tied},
        "vision_config": {"model_type": "something", "hidden_size": 32},
        "tie_word_embeddings": tied,
        "image_seq_length": 64,
    }
    architecture = read_config(config)
    assert architecture.model_type == model_type
    # In some of these families the text model's own word is enough.
    tied = tied or model_type in EITHER
    assert parameters(architecture).total == 596_049_920 + (0 if tied else 155_582_464)
    assert any("not counted" in note for note in architecture.notes)
    with pytest.raises(UnsupportedConfig, match="text_config.model_type: expected a text model"):
        read_config(config | {"text_config": text | {"model_type": "unknown"}})


@pytest.mark.parametrize(
    "model_type, text, total",
    [
        ("glm4v", {"model_type": "glm4v_text", "hidden_size": 4096, "intermediate_size": 13696,
                   "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2,
                   "attention_bias": True, "vocab_size": 151552}, 9_400_279_040),
        ("glm4v_moe", {"model_type": "glm4v_moe_text", "hidden_size": 4096, "head_dim": 128,
                       "intermediate_size": 10944, "num_hidden_layers": 46,
                       "num_attention_heads": 96, "num_key_value_heads": 8,
                       "n_routed_experts": 128, "n_shared_experts": 1,
                       "first_k_dense_replace": 1, "moe_intermediate_size": 1408,
                       "num_experts_per_tok": 8, "attention_bias": True, "vocab_size": 151552,
                       "n_group": 1, "topk_group": 1}, 106_852_245_504),
    ],
)  # fmt: skip
def test_a_text_model_under_a_name_of_its_own(model_type, text, total):
    """As many parameters as the library (5.24) builds for GLM-4.1V and GLM-4.5V's text models."""
    config = {"model_type": model_type, "text_config": text, "tie_word_embeddings": False}
    assert parameters(read_config(config)).text == total


def test_kimi_k2_5_is_k2_behind_a_tower():
    text = {**bundled_config("DeepSeek-V3"), **KIMI_K2, "tie_word_embeddings": False}
    config = {"model_type": "kimi_k25", "text_config": text, "vision_config": {"model_type": "any"},
              "media_placeholder_token_id": 5, "tie_word_embeddings": False}  # fmt: skip
    found = read_config(config)
    # K2's card states a trillion parameters.
    assert parameters(found) == parameters(changed("DeepSeek-V3", **KIMI_K2))
    assert (found.model_type, parameters(found).total // 10**12) == ("kimi_k25", 1)
    tower = "the vision tower and its projector are not counted: text weights only"
    assert tower in found.notes
    del config["vision_config"]
    assert tower not in read_config(config).notes
    bare = parameters(read_config(config | {"architectures": ["KimiK25Model"]}))
    assert parameters(found).total - bare.total == 163840 * 7168
    for changes, message in (
        ({"text_config": None}, "text_config: expected an object with the text model's fields, came null"),
        ({"text_config": text | {"model_type": "llama"}},
         "text_config.model_type: expected one of kimi_k2, deepseek_v3, came 'llama'"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings: expected false, came true"),
        ({"text_config": text | {"hidden_act_width": 2}}, "text_config.hidden_act_width: expected no such field"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedConfig, match="^" + re.escape(message)):
            read_config(config | changes)


@pytest.mark.parametrize(
    "model_type, first", [("cwm", 0), ("granite_swa", 0), ("afmoe", 3), ("olmo3", 3)]
)
def test_which_layers_have_windows_where_the_file_lists_none(model_type, first):
    case = next(case for case in LIBRARY if case["config"]["model_type"] == model_type)
    layers = read_config(case["config"] | {"num_hidden_layers": 8, "layer_types": None}).layers
    full = [number for number, layer in enumerate(layers) if layer.mixer.reach.kind == "full"]
    assert full == [first, first + 4]


LISTED = [case["config"] for case in LIBRARY if case["config"].get("layer_types")]
MUST_LIST = {"deepseek_v4", "granitemoehybrid", "kimi_linear", "lfm2_moe"}  # where nothing says which layers are which


@pytest.mark.parametrize("config", LISTED, ids=lambda config: config["model_type"])
def test_the_layers_that_the_library_lists_are_those_of_a_file_without_a_list(config):
    unlisted = {name: value for name, value in config.items() if name != "layer_types"}
    if config["model_type"] in MUST_LIST:
        with pytest.raises(UnsupportedConfig, match="^(layer_types|compress_ratios): expected "):
            read_config(unlisted)
    else:
        assert read_config(unlisted)._replace(notes=()) == read_config(config)._replace(notes=())


@pytest.mark.parametrize(
    ("model_type", "field"),
    [
        ("zamba", "layers_block_type"), ("zamba2", "hybrid_layer_ids"), ("recurrent_gemma", "block_types"),
        ("lfm2", "full_attn_idxs"), ("llama4_text", "no_rope_layers"), ("llama4_text", "moe_layers"),
        ("smollm3", "no_rope_layers"), ("glm_moe_dsa", "indexer_types"), ("qwen2_moe", "mlp_only_layers"),
        ("gpt_neo", "attention_layers"), ("nemotron_h", "mtp_layers_block_type"),
    ],
)  # fmt: skip
def test_a_list_of_layers_may_be_left_out_where_it_is_the_default(model_type, field):
    configs = [case["config"] for case in LIBRARY if case["config"]["model_type"] == model_type and case["config"].get(field)]
    unlisted = [{name: value for name, value in config.items() if name != field} for config in configs]
    assert any(read_config(a)._replace(notes=()) == read_config(b)._replace(notes=()) for a, b in zip(configs, unlisted, strict=True))


@pytest.mark.parametrize(("interval", "near"), [(None, [3, 7]), (3, [2, 5]), (1, range(8)), (9, [])])
def test_smollm3_reads_a_window_in_every_layer_that_is_not_rotated(interval, near):
    config = next(case["config"] for case in LIBRARY if case["config"]["model_type"] == "smollm3")
    left_out = ("layer_types", "no_rope_layers", "no_rope_layer_interval")
    told = {name: value for name, value in config.items() if name not in left_out}
    told |= {"num_hidden_layers": 8, "use_sliding_window": True, "sliding_window": 16}
    found = read_config(told | ({} if interval is None else {"no_rope_layer_interval": interval}))
    assert [number for number, layer in enumerate(found.layers) if layer.mixer.reach.size == 16] == list(near)


def test_layers_that_borrow_a_choice_have_no_indexer():
    whole, shared = (
        bundled("DeepSeek-V3.2"),
        changed("DeepSeek-V3.2", index_topk_freq=4, index_skip_topk_offset=3),
    )
    kinds = [layer.mixer.indexer.heads > 0 for layer in shared.layers]
    assert kinds[:8] == [True, True, True, False, False, False, True, False]
    borrowed = shared.layers[3].mixer.indexer
    assert (borrowed.heads, borrowed.width, borrowed.top, borrowed.tensors) == (0, 0, 2048, ())
    indexer = 1536 * 64 * 128 + 7168 * 128 + 2 * 128 + 7168 * 64
    lost = kinds.count(False)
    assert parameters(whole).total - parameters(shared).total == lost * indexer
    assert cache(whole, 100).scalars - cache(shared, 100).scalars == lost * 128 * 100
    # An indexer weighs the scores of its 64 heads of 128 with each of 100 keys.
    spared = flops(whole, 100).per_token.attention - flops(shared, 100).per_token.attention
    assert spared == lost * 2 * 64 * (128 + 1) * 100


def test_multi_token_prediction_stands_beside():
    counted = parameters(bundled("DeepSeek-V3"))
    attention = 7168 * 1536 + 1536 + 1536 * 24576 + 7168 * 576 + 512 + 512 * 32768 + 16384 * 7168
    experts = 256 * 7168 + (256 + 1) * 3 * 7168 * 2048
    assert counted.multi_token_prediction == (
        attention + experts + 2 * 7168 + 2 * 7168 * 7168 + 3 * 7168
    )
    assert counted.total == 671_026_404_352


def test_deepseek_v4_says_what_its_prediction_module_is():
    """One layer with a window only (the last of compress_ratios), between two projections."""
    config = bundled_config("DeepSeek-V4")
    module = read_config(config).multi_token_prediction[0]
    attention = (
        (4096 * 1024 + 1024 + 1024 * 64 * 512)  # the query by way of its latent
        + (4096 * 512 + 512)  # keys and values
        + 64  # sinks
        + (64 * 512 * 1024 + 8 * 1024 * 4096)  # the output by groups
    )
    experts = 4096 * 256 + (256 + 1) * 3 * 4096 * 2048
    streams = 2 * (24 * 4 * 4096 + 24 + 3) + (4 * 4 * 4096 + 4 + 1)
    assert parameters(read_config(config)).multi_token_prediction == (
        attention + experts + streams + 2 * 4096 * 4096 + 5 * 4096
    )
    # The published weights hold 1575 tensors of it: each matrix of a quantised layer has a second
    # one of scales, and the router a correction bias.
    layer = module.layers[0]
    named = [*layer.mixer.tensors, *layer.norms, *layer.others, *module.others]
    scaled = 771 + 5 + 2  # experts, attention, the projections of the two inputs
    stored = sum(tensor.copies for part in layer.feed_forwards for tensor in part.tensors)
    assert len(named) + stored + scaled + 1 == 1575
    unsaid = config | {"compress_ratios": config["compress_ratios"][:43]}
    assert parameters(read_config(unsaid)).multi_token_prediction == 0
    assert any("num_nextn_predict_layers" in note for note in read_config(unsaid).notes)


def test_qwen_3_5s_prediction_module_is_a_layer_that_attends():
    """Behind one projection of both inputs, with a norm on each and one before the model's head."""
    dense, sparse = (bundled_config(name) for name in ("Qwen3.5-27B", "Qwen3.5-35B-A3B"))
    ends = 2 * 5120 * 5120 + 3 * 5120
    attends = (2 * 24 + 2 * 4 + 24) * 256 * 5120 + 2 * 256  # a query and its gate, keys, values, output
    layer = attends + 3 * 5120 * 17408 + 2 * 5120
    assert parameters(read_config(dense)).multi_token_prediction == ends + layer
    twice = dense | {"text_config": dense["text_config"] | {"mtp_num_hidden_layers": 2}}
    assert parameters(read_config(twice)).multi_token_prediction == ends + 2 * layer
    mixture = 256 * 2048 + 257 * 3 * 2048 * 512 + 2048
    attends = (2 * 16 + 2 * 2 + 16) * 256 * 2048 + 2 * 256
    assert parameters(read_config(sparse)).multi_token_prediction == (
        2 * 2048 * 2048 + 5 * 2048 + attends + mixture
    )


def test_nemotrons_prediction_modules_as_letters_and_as_words():
    spelled = [
        {"mtp_hybrid_override_pattern": "*E"},
        {"mtp_layers_block_type": ["attention", "moe"]},
        {"mtp_layers_block_type": ["full_attention", "moe"]},
    ]
    counts = {
        parameters(
            changed("Nemotron-3-Nano", num_nextn_predict_layers=1, **words)
        ).multi_token_prediction
        for words in spelled
    }
    attention = 2688 * (32 + 2 * 2) * 128 + 32 * 128 * 2688
    mixture = 2688 * 128 + 128 * 2 * 2688 * 1856 + 2 * 2688 * 3712
    beside = 2 * 2688 * 2688 + 3 * 2688  # the projection of both inputs, and three norms
    assert counts == {attention + mixture + 2 * 2688 + beside}


@pytest.mark.parametrize("words", [{}, {"mtp_hybrid_override_pattern": "*X"}, {"mtp_hybrid_override_pattern": 65 * "*"}])
def test_nemotrons_prediction_modules_that_are_not_described_are_told(words):
    told = "multi-token-prediction layers are announced (num_nextn_predict_layers) and not described: not counted"
    model = changed("Nemotron-3-Nano", num_nextn_predict_layers=1, **words)
    assert told in model.notes and parameters(model).multi_token_prediction == 0
    described = changed("Nemotron-3-Nano", num_nextn_predict_layers=1, mtp_hybrid_override_pattern=64 * "*")
    assert told not in described.notes and parameters(described).multi_token_prediction > 0


def small(model_type):
    return next(case["config"] for case in LIBRARY if case["config"]["model_type"] == model_type)


def test_the_indexers_of_glm_are_in_every_layer_unless_the_file_says_how_often():
    config = {name: value for name, value in small("glm_moe_dsa").items() if name != "indexer_types"}
    every = cache(read_config(config), 10).scalars
    assert cache(read_config(config | {"index_topk_freq": None}), 10).scalars == every
    # Of five layers 0, 1 and 3 choose; each keeps 128 numbers a token.
    assert every - cache(read_config(config | {"index_topk_freq": 2}), 10).scalars == 2 * 128 * 10


def test_a_pattern_names_the_layers_that_choose_for_themselves():
    config = {name: value for name, value in small("glm_moe_dsa").items() if name != "indexer_types"}
    layers = read_config(config | {"index_topk_pattern": "FFSFS"}).layers
    assert [layer.mixer.indexer.heads > 0 for layer in layers] == [True, True, False, True, False]
    for bad in ("FFSF", "FFSFX", "SFFFF"):
        with pytest.raises(UnsupportedConfig, match="^(index_topk_pattern|indexer_types): expected "):
            read_config(config | {"index_topk_pattern": bad})


def test_a_granite_without_memories_may_still_have_their_fields():
    config = small("granitemoehybrid") | {"layer_types": ["full_attention"] * 8}
    plain = {name: value for name, value in config.items() if not name.startswith("mamba_")}
    assert read_config(config) == read_config(plain)


@pytest.mark.parametrize("model_type", ["exaone4", "exaone_moe"])
def test_without_a_window_exaones_pattern_means_nothing(model_type):
    """EXAONE 4.0 1.2B: every layer reads everything, and yet the file may have the field."""
    config = small(model_type) | {"sliding_window": None, "layer_types": None}
    for pattern in (None, 4, "LLLG"):
        reaches = [layer.mixer.reach.kind for layer in read_config(config | {"sliding_window_pattern": pattern}).layers]
        assert reaches == ["full"] * 9


def test_a_qwen_window_that_the_file_leaves_out_is_4096_tokens():
    config = small("qwen2") | {"use_sliding_window": True, "max_window_layers": 1, "layer_types": None}
    silent = {name: value for name, value in config.items() if name != "sliding_window"}
    assert [layer.mixer.reach.size for layer in read_config(silent).layers] == [None, 4096]
    assert [layer.mixer.reach.size for layer in read_config(config).layers] == [None, None]


@pytest.mark.parametrize("wide", [{}, {"word_embed_proj_dim": 768}])
def test_opt_125m_projects_nothing(wide):
    config = {
        "model_type": "opt", "vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
        "num_attention_heads": 12, "max_position_embeddings": 2048, "do_layer_norm_before": True,
    }  # fmt: skip
    assert parameters(read_config(config | wide)).total == 125_239_296


def test_a_jamba_with_one_expert_has_a_network_in_its_place_and_no_router():
    """Three of nine layers have six experts."""
    config = small("jamba") | {"num_experts": 1}
    total = 2_387_962 - 3 * (5 * 3 * 96 * 256 + 6 * 96)
    counted = parameters(read_config(config))
    assert counted.total == counted.active.with_embeddings == total


@pytest.mark.parametrize(
    ("changes", "width"),
    [
        ({"block_ffn_dim_multiplier": None}, 66),  # two thirds of 100, and no rounding up
        ({"block_ffn_dim_multiplier": 1.0}, 72),  # to a multiple of 8
        ({"block_ffn_dim_multiplier": 1.3}, 88),
        ({"block_ffn_dim_multiplier": 100}, 6600),
        ({"block_auto_adjust_ff_dim": False}, 100),
    ],
)
def test_how_wide_lfm2s_network_is(changes, width):
    for layer in read_config(small("lfm2") | changes).layers:
        assert {tensor.name: tensor.shape for tensor in layer.feed_forward.tensors}["up"] == (width, 64)


def test_kimi_linears_layers_may_be_named_beside_the_sizes_of_its_memories():
    config = small("kimi_linear")
    sizes = {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
    flat = ("linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim", "layer_types")
    bare = {name: value for name, value in config.items() if name not in flat}
    for options, kinds in ((sizes, config["layer_types"]), (sizes | {"full_attn_layers": [5]}, None)):
        assert read_config(bare | {"linear_attn_config": options, "layer_types": kinds}) == read_config(config)


def test_llama_4_without_chunks_tells_of_none():
    config = small("llama4_text") | {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2, "no_rope_layers": None, "moe_layers": [1]}
    model = read_config(config)
    assert not any("chunk" in note for note in model.notes)
    assert cache(model, 10_000).scalars == 10_000 * 2 * 2 * config["num_key_value_heads"] * config["head_dim"]


def test_modernberts_layers_may_be_named():
    config = small("modernbert")
    kinds = ["full_attention", "sliding_attention", "full_attention"]
    assert read_config(config | {"layer_types": kinds}) == read_config(config)
    near = read_config(config | {"layer_types": kinds[1:2] * 3})
    assert [layer.mixer.reach.size for layer in near.layers] == [4, 4, 4]


@pytest.mark.parametrize("kinds", [["full_attention", "mlp"], ["linear_attention", "mlp"], ["moe"], ["mlp"]])
def test_a_nemotron_with_some_kinds_of_layers_only(kinds):
    """What a layer of each kind has, the whole of five layers shares out."""
    config = small("nemotron_h")
    every = dict(zip(config["layers_block_type"], read_config(config).layers, strict=True))
    assert read_config(config | {"layers_block_type": kinds}).layers == tuple(every[kind] for kind in kinds)


def test_llama_4_has_experts_in_the_last_of_each_few_layers():
    config = small("llama4_text") | {"num_hidden_layers": 6, "layer_types": None, "no_rope_layers": None, "interleave_moe_layer_step": 3}
    implied = {name: value for name, value in config.items() if name != "moe_layers"}
    assert read_config(implied) == read_config(config | {"moe_layers": [2, 5]})


@pytest.mark.parametrize(
    ("model_type", "field", "sizes", "rank"),
    [
        ("mamba", "time_step_rank", {"hidden_size": 136}, 9),
        ("falcon_mamba", "time_step_rank", {"hidden_size": 129}, 9),
        ("jamba", "mamba_dt_rank", {"hidden_size": 100}, 7),
        ("zamba", "mamba_dt_rank", {"hidden_size": 112, "attention_hidden_size": 224}, 7),
    ],
)
def test_a_step_s_rank_is_a_sixteenth_of_the_width_rounded_up(model_type, field, sizes, rank):
    config = small(model_type) | sizes
    told = read_config(config | {field: rank})
    assert told == read_config(config | {field: "auto"}) != read_config(config | {field: rank - 1})
    assert told == read_config({name: value for name, value in config.items() if name != field})


def test_a_mamba_2_of_another_inner_size_than_its_heads_is_refused():
    config = bundled_config("Mamba-Codestral-7B-v0.1")
    inner = config["num_heads"] * config["head_dim"]
    assert read_config(config | {"intermediate_size": inner}) == read_config(config)
    with pytest.raises(UnsupportedConfig, match=f"^intermediate_size: expected {inner}, came {config['head_dim']}$"):
        read_config(config | {"intermediate_size": config["head_dim"]})


@pytest.mark.parametrize("model_type", ["persimmon", "cohere2", "helium", "ernie4_5_moe"])
def test_heads_of_a_width_of_their_own_are_refused_where_no_published_model_has_them(model_type):
    config = small(model_type)
    width = config["hidden_size"] // config["num_attention_heads"]
    assert parameters(read_config(config | {"head_dim": width})) == parameters(read_config(config))
    with pytest.raises(UnsupportedConfig, match=f"^head_dim: expected the heads' share of hidden_size, came {2 * width}$"):
        read_config(config | {"head_dim": 2 * width})


@pytest.mark.parametrize("field", ["n_group", "topk_group", "num_experts_per_token"])
def test_how_experts_are_grouped_changes_no_count(field):
    config = {name: value for name, value in small("glm4_moe").items() if name != field}
    assert read_config(config | {field: 3}) == read_config(config)


def test_zamba_2_has_a_network_four_times_as_wide_as_the_model():
    config = small("zamba2")
    assert config["intermediate_size"] == 4 * config["hidden_size"]
    unsaid = {name: value for name, value in config.items() if name not in ("intermediate_size", "ffn_hidden_size")}
    assert read_config(unsaid) == read_config(config)


def test_experts_of_ernie_end_where_the_file_says():
    config = small("ernie4_5_moe") | {"moe_layer_interval": 1}  # eight layers, and experts from the third on
    kinds = [[isinstance(part, Experts) for part in layer.feed_forwards] for layer in read_config(config | {"moe_layer_end_index": 4}).layers]
    assert kinds == [[False]] * 2 + [[True]] * 3 + [[False]] * 3
    one = read_config(config | {"moe_layer_end_index": 2}).layers
    assert [number for number, layer in enumerate(one) if isinstance(layer.feed_forwards[0], Experts)] == [2]
    for bad, told in ((1, "1"), (True, "true"), ("4", "'4'")):
        with pytest.raises(UnsupportedConfig, match=f"^moe_layer_end_index: expected -1 or a layer from 2 on, came {told}$"):
            read_config(config | {"moe_layer_end_index": bad})


def test_not_all_layers_of_gemma_3n_can_borrow():
    config = small("gemma3n_text")
    layers = config["num_hidden_layers"]
    with pytest.raises(UnsupportedConfig, match=f"^num_kv_shared_layers: expected a whole number of at least 0 and at most {layers - 1}, came {layers}$"):
        read_config(config | {"num_kv_shared_layers": layers})


@pytest.mark.parametrize("field", ["attn_config", "ffn_config"])
def test_dbrx_must_describe_both_of_its_parts(field):
    config = {"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100,
              "attn_config": {"kv_n_heads": 2}, "ffn_config": {"ffn_hidden_size": 96}}  # fmt: skip
    assert parameters(read_config(config)).total > 0
    with pytest.raises(UnsupportedConfig, match=f"^{field}: expected an object, came nothing$"):
        read_config({name: value for name, value in config.items() if name != field})


@pytest.mark.parametrize("model_type", ["deepseek_v3", "dots1", "glm4_moe"])
def test_shared_experts_that_are_null_are_none(model_type):
    config = small(model_type)
    assert read_config(config | {"n_shared_experts": None}) == read_config(config | {"n_shared_experts": 0})


def test_the_width_of_mamba_heads_may_be_left_to_the_reader():
    config = small("bamba")
    assert config["mamba_d_head"] * config["mamba_n_heads"] == config["mamba_expand"] * config["hidden_size"]
    assert read_config(config | {"mamba_d_head": "auto"}) == read_config(config)
    with pytest.raises(UnsupportedConfig, match="^mamba_d_head: expected "):
        read_config(config | {"mamba_d_head": config["mamba_d_head"] + 1})


def test_the_first_layer_of_kimi_linear_has_no_experts():
    config = {name: value for name, value in small("kimi_linear").items() if name not in ("first_k_dense_replace", "mlp_layer_types")}
    dense = [not any(isinstance(part, Experts) for part in layer.feed_forwards) for layer in read_config(config).layers]
    assert dense == [True] + [False] * (len(dense) - 1) and len(dense) > 2


def test_exaone_reads_a_window_in_three_layers_of_four():
    config = {name: value for name, value in small("exaone_moe").items() if name not in ("layer_types", "sliding_window_pattern")}
    # Layers 3 and 7 of nine read everything: eight times four heads of 96 / 8.
    assert cache(read_config(config), 10_001).scalars - cache(read_config(config), 10_000).scalars == 2 * 2 * 4 * 12


def test_bamba_attends_in_the_layers_that_its_indices_name():
    base = next(case["config"] for case in LIBRARY if case["config"]["model_type"] == "bamba" and not case["config"]["attention_bias"])
    config = base | {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "mlp_bias": False, "mamba_proj_bias": False,
                     "num_hidden_layers": 9, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1,
                     "mamba_d_conv": 4, "mamba_conv_bias": True}  # fmt: skip
    recurrent, mixed = (read_config(config | {"attn_layer_indices": which}) for which in ([], [2, 5]))
    attention = 64 * 64 * 2 + 64 * (2 * 8) * 2
    inner = 8 * 16
    # In: gate, x, B, C and a step for each head; a convolution over x, B and C; A, D and the step's bias; norm; out.
    memory = 64 * (2 * inner + 2 * 8 + 8) + (inner + 2 * 8) * (4 + 1) + 3 * 8 + inner + inner * 64
    assert parameters(mixed).total - parameters(recurrent).total == 2 * (attention - memory)
    assert cache(mixed, 100).scalars - cache(recurrent, 100).scalars == 2 * (2 * 2 * 8 * 100 - (8 * 16 * 8 + (inner + 2 * 8) * 3))


def test_fields_published_with_minimax_m2_that_no_tensor_has():
    published = {"mlp_intermediate_size": 8192, "shared_moe_mode": "sigmoid"}
    same = changed("MiniMax-M2.5", **published)
    assert parameters(same) == parameters(bundled("MiniMax-M2.5"))
    assert any("num_mtp_modules" in note for note in same.notes)


QUANTISED = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": None}


@pytest.mark.parametrize(
    "name", ["DeepSeek-V3", "Meta-Llama-3.1-8B", "gemma-4-E2B", "Nemotron-H", "t5-small"]
)
def test_a_quantised_copy_counts_the_same(name):
    config = bundled_config(name) | {
        "quantization_config": QUANTISED,
        "torch_dtype": "bfloat16",
        "_name_or_path": "/somewhere",
        "transformers_version": "4.51.0",
        "use_cache": True,
        "bos_token_id": 1,
        "unsloth_fixed": True,
    }
    assert parameters(read_config(config)) == parameters(bundled(name))


def test_window_patterns_in_every_spelling():
    """A list of kinds, a number under two names, and the pattern that the model type implies."""
    kinds = [("sliding_attention" if (i + 1) % 6 else "full_attention") for i in range(26)]
    base = bundled_config("gemma-3-1b-it")
    del base["sliding_window_pattern"]
    spelled = [
        base,
        base | {"layer_types": kinds},
        base | {"sliding_window_pattern": 6},
        base | {"_sliding_window_pattern": 6},
        base | {"sliding_window_pattern": "LLLLLG"},
    ]
    found = [cache(read_config(config), 10_000).scalars for config in spelled]
    assert len(set(found)) == 1
    other = cache(read_config(base | {"sliding_window_pattern": "LG"}), 10_000).scalars
    assert other == 2 * 256 * 13 * (10_000 + 512)


def test_the_window_pattern_that_exaone_4_leaves_out():
    """Of four layers the last reads everything, as in the files of the 32B model, which say LLLG."""
    config = {
        "model_type": "exaone4", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "sliding_window": 16,
    }  # fmt: skip
    left_out, said = (
        cache(read_config(config | more), 1000).scalars for more in ({}, {"sliding_window_pattern": "LLLG"})
    )
    assert left_out == said == 2 * 2 * 16 * (2 * 1000 + 6 * 16)


def test_falcons_norms_in_parallel():
    """One norm before both halves, or one each; more are refused."""
    config = bundled_config("falcon-7b")
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    one, two = (parameters(read_config(config | {"num_ln_in_parallel_attn": n})).total for n in (1, 2))
    assert two - one == layers * 2 * hidden and one == parameters(read_config(config)).total
    with pytest.raises(UnsupportedConfig, match="num_ln_in_parallel_attn: expected 1 or 2, came 3"):
        read_config(config | {"num_ln_in_parallel_attn": 3})


def test_falcon_with_one_head_of_keys_whatever_its_file_says():
    config = bundled_config("falcon-7b")
    told = "multi_query: 71 query heads share one key/value head"
    assert told in read_config(config | {"num_kv_heads": 1}).notes
    more = read_config(config | {"num_kv_heads": 71})
    assert f"{told}, whatever num_kv_heads says" in more.notes
    assert parameters(more) == parameters(read_config(config))


def test_minimax_says_its_layers_twice():
    words = {0: "linear_attention", 1: "full_attention"}
    config = bundled_config("MiniMax-Text-01")
    types = config.get("attn_type_list") or [
        int(kind == "full_attention") for kind in config["layer_types"]
    ]
    twice = config | {"attn_type_list": types, "layer_types": [words[kind] for kind in types]}
    assert cache(read_config(twice), 10**5).scalars == cache(read_config(config), 10**5).scalars
    with pytest.raises(UnsupportedConfig, match="layer_types: expected the layers that attn_type_list names"):
        read_config(twice | {"attn_type_list": [1 - kind for kind in types]})


def test_fields_that_nobody_asked_for_are_named_up_to_six():
    more = {f"curious_{n}": n + 1 for n in range(7)}
    told = [note for note in read_config(bundled_config("Qwen3-8B") | more).notes if "not read" in note]
    assert len(told) == 1 and told[0].endswith("curious_4, curious_5 and 1 more")


def case_of(model_type):
    return next(case["config"] for case in LIBRARY if case["config"]["model_type"] == model_type)


def test_zambas_heads_share_the_doubled_width():
    config = {name: value for name, value in case_of("zamba").items() if name != "attention_head_dim"}
    block = read_config(config).layers[2].mixer
    assert (block.heads, block.key_width, block.value_width) == (4, 2 * 64 // 4, 2 * 64 // 4)


@pytest.mark.parametrize(("first", "windows"), [(0, 2), (1, 1), (2, 0)])
def test_qwens_windows_begin_at_a_layer(first, windows):
    config = case_of("qwen2") | {"layer_types": None, "sliding_window": 16, "use_sliding_window": True}
    layers = read_config(config | {"max_window_layers": first}).layers
    assert [layer.mixer.reach.kind for layer in layers] == (2 - windows) * ["full"] + windows * ["window"]


def test_qwen_3_with_experts_has_windows_in_every_layer_or_in_none():
    config = case_of("qwen3_moe") | {"layer_types": None, "sliding_window": 16, "max_window_layers": 1}
    for used, kinds in ((True, {"window"}), (False, {"full"})):
        layers = read_config(config | {"use_sliding_window": used}).layers
        assert len(layers) > 1 and {layer.mixer.reach.kind for layer in layers} == kinds


@pytest.mark.parametrize(("text_type", "window"), [("mistral", 4096), ("ministral3", None)])
def test_the_text_model_behind_pixtral_says_which_window_it_leaves_out(text_type, window):
    config = case_of("mistral3")
    text = {name: value for name, value in config["text_config"].items() if name != "sliding_window"}
    layers = read_config(config | {"text_config": text | {"model_type": text_type}}).layers
    assert {layer.mixer.reach.size for layer in layers} == {window}


def test_gemma_4s_layers_that_read_everything_have_wider_heads():
    """256 within windows and 512 beyond, where the file is silent, as the library has it."""
    silent = {"head_dim", "global_head_dim", "per_layer_config"}
    absent = {name: value for name, value in case_of("gemma4_text").items() if name not in silent}
    found = {(layer.mixer.reach.kind, layer.mixer.key_width) for layer in read_config(absent).layers}
    assert found == {("window", 256), ("full", 512)}


def test_gemma_3_says_how_long_an_image_is():
    config = case_of("gemma3")
    absent = {name: value for name, value in config.items() if name != "mm_tokens_per_image"}
    for one, tokens in ((absent, 256), (config | {"mm_tokens_per_image": 64}, 64)):
        assert f"an image is {tokens} tokens of the text model" in read_config(one).notes


def test_six_fields_that_nobody_asked_for_are_all():
    more = {f"curious_{n}": n + 1 for n in range(6)}
    told = [note for note in read_config(bundled_config("Qwen3-8B") | more).notes if "not read" in note]
    assert told == ["not read, taken to change no count: " + ", ".join(more)]


def test_granite_4_without_experts_says_which_width_counts():
    case = next(one["config"] for one in LIBRARY if one["config"]["model_type"] == "granitemoehybrid")
    case = case | {"num_local_experts": 0}
    always = case.get("shared_intermediate_size", 1024)
    told = f"without experts only shared_intermediate_size {always} counts, not intermediate_size"
    equal, other = (read_config(case | {"intermediate_size": n}) for n in (always, always + 1))
    assert not any(told in note for note in equal.notes)
    assert any(note == f"{told} {always + 1}" for note in other.notes)
    assert parameters(equal) == parameters(other)


def test_null_is_not_absent():
    base = bundled_config("Mistral-7B-v0.1")
    assert cache(read_config(base | {"sliding_window": None}), 10**6).scalars == 65536 * 10**6
    del base["sliding_window"]
    assert cache(read_config(base), 10**6).scalars == 65536 * 4096
    light = bundled_config("DeepSeek-V2-Lite")
    del light["q_lora_rank"]
    assert parameters(read_config(light)).total != parameters(bundled("DeepSeek-V2-Lite")).total


def test_fields_of_another_family_do_not_count():
    # Qwen's files carry a window that is not used; Falcon-Mamba's an expansion that is not.
    config = bundled_config("Qwen3-8B") | {"sliding_window": 4096, "use_sliding_window": False}
    assert cache(read_config(config), 10**6).scalars == 73728 * 10**6
    config = bundled_config("falcon-mamba-7b") | {"expand": 2}
    assert parameters(read_config(config)) == parameters(bundled("falcon-mamba-7b"))


@pytest.mark.parametrize("model_type", ["llava_onevision", "qwen2_vl"])
def test_a_table_tied_inside_or_outside_is_tied(model_type):
    """The library (5.24) ties in either case; Qwen2 0.5B behind LLaVA-OneVision is tied inside only."""
    text = {
        "model_type": "qwen2" if model_type == "llava_onevision" else "qwen2_vl_text", "hidden_size": 896,
        "intermediate_size": 4864, "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
        "vocab_size": 151936,
    }  # fmt: skip
    for outer, inner in ((False, True), (True, False), (True, True), (None, True)):
        config = {"model_type": model_type, "text_config": text | {"tie_word_embeddings": inner}}
        config |= {} if outer is None else {"tie_word_embeddings": outer}
        assert parameters(read_config(config)).total == 494_032_768
    untied = {"model_type": model_type, "text_config": text, "tie_word_embeddings": False}
    assert parameters(read_config(untied)).total == 494_032_768 + 151936 * 896


def test_mistral_small_4_is_nested_as_its_predecessors_are():
    text = next(case for case in LIBRARY if case["config"]["model_type"] == "mistral4")
    tied = text["config"].get("tie_word_embeddings", False)
    nested = read_config({"model_type": "mistral3", "text_config": text["config"], "tie_word_embeddings": tied})
    assert parameters(nested).total == text["total"]
    assert cache(nested, 7).scalars == cache(read_config(text["config"]), 7).scalars


def test_two_classes_where_an_image_classifier_names_none():
    """The library leaves the names out of a file where they are its two defaults."""
    named, silent = (
        changed("vit-base", id2label=names, num_labels=None) for names in ({"0": "a", "1": "b"}, None)
    )
    assert parameters(named) == parameters(silent)


def test_a_reward_model_is_no_body():
    """Its name ends in Model, too, and its head is one that no field describes."""
    for name in ("Qwen2ForRewardModel", "Qwen2ForProcessRewardModel", "GPT2DoubleHeadsModel"):
        with pytest.raises(UnsupportedConfig, match="^architectures: expected a language model"):
            read_config(bundled_config("Qwen3-8B") | {"architectures": [name]})


def test_the_classes_of_a_classifier_stand_outside_the_text_model():
    config = case_of("qwen2_vl") | {"architectures": ["Qwen2VLForSequenceClassification"]}
    two, five = (parameters(read_config(config | {"num_labels": n})).text for n in (2, 5))
    assert five - two == 3 * read_config(config).hidden


def test_a_classifier_works_once_a_sequence_or_on_each_token():
    """768 to 5 classes, on top of BERT-base without its head."""
    config = bundled_config("bert-base") | {"num_labels": 5}
    kinds = {}
    for kind in ("Model", "ForSequenceClassification", "ForTokenClassification"):
        kinds[kind] = flops(read_config(config | {"architectures": [f"Bert{kind}"]}), 100).per_sequence.total
    pooler = 2 * 768 * 768
    assert kinds["ForSequenceClassification"] - kinds["Model"] == 2 * 768 * 5
    assert kinds["ForTokenClassification"] - kinds["Model"] == 2 * 768 * 5 * 100 - pooler


def test_the_encoder_of_t5_alone():
    """The text encoder of image generators, T5 1.1 XXL: 4 762 310 656 parameters, as published."""
    config = {
        "model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 4096, "d_ff": 10240, "d_kv": 64,
        "num_heads": 64, "num_layers": 24, "num_decoder_layers": 24, "feed_forward_proj": "gated-gelu",
        "is_encoder_decoder": True, "tie_word_embeddings": False, "vocab_size": 32128,
    }  # fmt: skip
    model = read_config(config)
    assert parameters(model).total == 4_762_310_656
    assert cache(model, 100).scalars == 0 and model.encoder is None
    # Four projections of 4096 by 4096, three matrices of 4096 by 10 240; scores and sums over all pairs.
    layer = 4 * 4096 * 4096 + 3 * 4096 * 10240
    assert flops(model, 77).per_sequence == (2 * 24 * 77 * layer, 2 * 24 * 77 * 77 * 2 * 4096)


def test_embedding_gemma_reads_half_its_window_to_each_side():
    config = bundled_config("gemma-3-1b-it") | {
        "architectures": ["Gemma3TextModel"], "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 24,
        "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 262144, "sliding_window": 512,
        "use_bidirectional_attention": True,
    }  # fmt: skip
    config.pop("layer_types", None)
    model = read_config(config)
    assert parameters(model).total == 302_863_104
    assert cache(model, 2048).scalars == 0
    # 20 layers read 256 tokens to each side and the token itself, 4 read all; 3 heads of 256.
    near = sum(min(i + 256, 999) - max(i - 256, 0) + 1 for i in range(1000))
    assert flops(model, 1000).per_sequence.attention == 2 * 2 * 3 * 256 * (20 * near + 4 * 1000 * 1000)


@pytest.mark.parametrize(
    "text, total",
    [({"model_type": "llama"}, 6_738_939_904), ({"model_type": "mistral", "num_key_value_heads": 8}, 7_242_256_384)],
)
def test_a_nested_text_model_may_leave_its_sizes_to_the_library(text, total):
    """LLaVA 1.5 and 1.6 with Mistral: 7 billion parameters, 64 tokens added to the vocabulary."""
    model = read_config({"model_type": "llava", "text_config": text | {"vocab_size": 32064}})
    assert parameters(model).total == total
    assert any("text_config is silent" in note for note in model.notes)
    with pytest.raises(UnsupportedConfig, match="^hidden_size: "):
        read_config(text | {"vocab_size": 32064})


def test_older_names_of_a_type():
    """Falcon 40B from before it had its name, and Yi from before it was called Llama."""
    falcon = {
        "model_type": "RefinedWeb", "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60, "alibi": False,
        "bias": False, "parallel_attn": True, "vocab_size": 65024,
    }  # fmt: skip
    published = next(case for case in PUBLISHED if case["name"] == "Falcon 40B")
    assert parameters(read_config(falcon)).total == published["total"]
    config = bundled_config("Llama-2-7b")
    assert parameters(read_config(config | {"model_type": "Yi"})) == parameters(bundled("Llama-2-7b"))


def test_a_body_without_head():
    config = bundled_config("Qwen3-8B") | {"architectures": ["Qwen3Model"]}
    counted = parameters(read_config(config))
    assert counted.total == 8_190_735_360 - 622_329_856
    assert counted.active.without_embeddings == counted.total - 622_329_856


@pytest.mark.parametrize(
    "name, changes, message",
    [
        (
            "Meta-Llama-3.1-8B",
            {"num_local_experts": 8},
            "num_local_experts: expected no such field",
        ),
        (
            "Qwen3-8B",
            {
                "use_sliding_window": True,
                "sliding_window": None,
                "layer_types": ["sliding_attention"] * 36,
            },
            "sliding_window: expected a window",
        ),
        ("DeepSeek-V3.2", {"q_lora_rank": None}, "q_lora_rank: expected a rank"),
        ("Qwen3-8B", {"is_encoder_decoder": True}, "is_encoder_decoder: expected false"),
        ("Qwen3-8B", {"pruned_heads": {"0": [1]}}, "pruned_heads: expected no such field"),
        ("gemma-4-E2B", {"architectures": ["Gemma4ForSequenceClassification"]}, "architectures"),
        ("Qwen3-8B", {"architectures": ["Qwen3ForRewardModel"]}, "architectures: expected a language model"),
        ("vit-base", {"image_size": 10**9}, "image_size: expected a whole number of at least 1"),
        ("DeepSeek-V3.2", {"index_topk_pattern": "FS"}, "index_topk_pattern: expected 61 letters"),
        (
            "DeepSeek-V3.2",
            {"indexer_types": ["shared"] * 61},
            "indexer_types: expected a first layer",
        ),
        ("Mixtral-8x7B", {"num_experts_per_tok": 9}, "num_experts_per_tok: expected at most 8"),
        (
            "Nemotron-H-8B",
            {"hybrid_override_pattern": "M-X"},
            "hybrid_override_pattern: expected the letters",
        ),
        ("Nemotron-H-8B", {"hybrid_override_pattern": "M-*"}, "num_hidden_layers: expected 3"),
        ("Mamba-Codestral", {"num_heads": 127}, "num_heads: expected 8192 / head_dim 64"),
        ("gemma-4-E2B", {"text_config": {}}, "text_config.hidden_size: expected a whole number"),
        (
            "bert-base",
            {"architectures": ["BertForSomethingElse"]},
            "architectures: expected Bert with one of Model",
        ),
        (
            "Kimi-Linear",
            {"layer_types": ["full_attention"] * 27},
            "layer_types: expected the layers that",
        ),
        (
            "DeepSeek-V4",
            {"compress_ratios": [0] * 40},
            "compress_ratios: expected a list of 43 items",
        ),
        ("gpt-oss-120b", {"experts_per_token": 8}, "experts_per_token: expected the same value as"),
        ("Jamba", {"attn_layer_offset": 8}, "attn_layer_offset: expected less than"),
        ("Zamba-7B", {"attention_hidden_size": 3712}, "attention_hidden_size: expected 7424"),
        ("switch-base-8", {"model_type": "t5"}, "expected no such field"),
    ],
)
def test_refusals_name_the_field(name, changes, message):
    config = copy.deepcopy(bundled_config(name)) | changes
    with pytest.raises(UnsupportedConfig) as refusal:
        read_config(config)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
