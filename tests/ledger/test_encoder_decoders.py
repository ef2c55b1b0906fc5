"""Encoder–decoders beside T5: totals as published, what the decoder keeps, work by hand."""

import pytest

from archcards.ledger import cache, flops, parameters, read_config


def sides(model_type, architecture, width, heads, encoder, decoder, **more):
    """The fields that BART's kin share; networks are four times as wide as the model."""
    return {
        "model_type": model_type, "architectures": [architecture], "is_encoder_decoder": True, "d_model": width,
        "num_hidden_layers": encoder, "encoder_layers": encoder, "decoder_layers": decoder,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width, **more,
    }  # fmt: skip


def whisper(width, heads, encoder, decoder, vocabulary=51865, bands=80):
    return sides(
        "whisper", "WhisperForConditionalGeneration", width, heads, encoder, decoder, vocab_size=vocabulary,
        num_mel_bins=bands, max_source_positions=1500, max_target_positions=448, scale_embedding=False,
        suppress_tokens=[1, 2], begin_suppress_tokens=[220], forced_decoder_ids=[[1, 50259]], mask_time_prob=0.05,
        classifier_proj_size=256, use_weighted_layer_sum=False, apply_spec_augment=False, median_filter_width=7,
    )  # fmt: skip


NLLB = sides(
    "m2m_100", "M2M100ForConditionalGeneration", 1024, 16, 12, 12, vocab_size=256206, max_position_embeddings=1024,
    scale_embedding=True,
)  # fmt: skip
MARIAN = sides(
    "marian", "MarianMTModel", 512, 8, 6, 6, vocab_size=58101, decoder_vocab_size=58101, max_position_embeddings=512,
    add_bias_logits=False, add_final_layer_norm=False, normalize_before=False, normalize_embedding=False,
    static_position_embeddings=True, scale_embedding=True, extra_pos_embeddings=58101, num_beams=6,
    share_encoder_decoder_embeddings=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (whisper(384, 6, 4, 4), 37_760_640),
        (whisper(512, 8, 6, 6), 72_593_920),
        (whisper(768, 12, 12, 12), 241_734_912),
        (whisper(1280, 20, 32, 32, 51866, 128), 1_543_490_560),
        (whisper(1280, 20, 32, 4, 51866, 128), 808_878_080),
        (NLLB, 615_073_792),
    ],
    ids=["tiny", "base", "small", "large v3", "large v3 turbo", "NLLB 600M"],
)
def test_published_totals(config, total):
    assert parameters(read_config(config)).total == total


def test_whisper_keeps_the_keys_and_values_of_sound_once():
    """Large v3: 32 layers of 2 · 1280 a token of text, and as many a position of 20 ms of sound."""
    model = read_config(whisper(1280, 20, 32, 32, 51866, 128))
    kept = cache(model, 448, source_length=1500)
    assert (kept.scalars_per_token, kept.scalars_per_source_token) == (81_920, 81_920)
    assert kept.scalars == 81_920 * (448 + 1500)
    turbo = cache(read_config(whisper(1280, 20, 32, 4, 51866, 128)), 448, source_length=1500)
    assert turbo.scalars == 4 * 2 * 1280 * (448 + 1500)


def test_whispers_convolutions_work_on_frames():
    """3000 frames of 80 bands go through the first kernel, 1500 positions through the second."""
    model = read_config(whisper(384, 6, 4, 4))
    spoken, silent = flops(model, 10, 1500).per_sequence, flops(model, 10, 0).per_sequence
    kernels = 3000 * 3 * 80 * 384 + 1500 * 3 * 384 * 384
    encoder = 4 * 1500 * (4 * 384 * 384 + 8 * 384 * 384)
    cross = 4 * 1500 * 2 * 384 * 384  # keys and values of the source, in four layers of the decoder
    assert spoken.matmul - silent.matmul == 2 * (kernels + encoder + cross)
    assert spoken.attention - silent.attention == 2 * (4 * 2 * 384 * 1500**2 + 4 * 2 * 384 * 10 * 1500)


def test_marians_class_is_a_language_model_though_it_ends_in_model():
    model, body = (read_config(MARIAN | {"architectures": [name]}) for name in ("MarianMTModel", "MarianModel"))
    head = 2 * 512 * 58101
    assert flops(model, 5).per_token.matmul - flops(body, 5).per_token.matmul == head
    assert parameters(model).total == parameters(body).total
    # A table, two sinusoids, two stacks: norms come after each half, and none at an end.
    layer = 4 * (512 * 512 + 512) + 8 * 512 * 512 + 2048 + 512 + 2 * 1024
    assert parameters(model).total == 512 * (58101 + 2 * 512) + 6 * (2 * layer + 4 * (512 * 512 + 512) + 1024)
