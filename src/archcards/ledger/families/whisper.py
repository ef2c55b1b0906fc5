"""Whisper: an encoder of sound behind two convolutions, and a decoder of text."""

from ..architecture import Architecture, Encoder, Tensor
from ..fields import Fields
from ._blocks import layer_norm, vector
from ._decoder import assemble, tied_table
from .bart import stacks

__all__ = ["whisper"]


def _convolutions(bands: int, hidden: int) -> tuple[Tensor, ...]:
    """Two kernels of three frames; the second takes every other frame, so one a source token."""
    return (
        Tensor("convolution 1", (hidden, bands, 3), "kernel", per="frame"),
        vector("convolution 1 bias", hidden, per="frame"),
        Tensor("convolution 2", (hidden, hidden, 3), "kernel"),
        vector("convolution 2 bias", hidden),
    )


def whisper(fields: Fields) -> Architecture:
    """Whisper: BART's layers with norms before each half, and no bias on the keys."""
    hidden = fields.size("d_model")
    encoder, decoder = stacks(fields, hidden, key_bias=False)
    sources, length = (
        fields.size("max_source_positions", 1500),
        fields.size("max_target_positions", 448),
    )
    bands = fields.size("num_mel_bins", 80)
    fields.skip(
        "alignment_heads",
        "apply_spec_augment",
        "classifier_proj_size",
        "forced_decoder_ids",
        "lang_ids",
        "mask_feature_length",
        "mask_feature_min_masks",
        "mask_feature_prob",
        "mask_time_length",
        "mask_time_min_masks",
        "mask_time_prob",
        "max_length",
        "median_filter_width",
        "use_weighted_layer_sum",
    )
    fields.note(
        f"a source token is a position of the encoder, two frames of the spectrogram (20 ms): "
        f"at most {sources}"
    )
    final = layer_norm("final", hidden)
    return assemble(
        fields,
        layers=decoder,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=final,
        positions=(Tensor("position embedding", (length, hidden), "table"),),
        encoder=Encoder(
            encoder,
            (
                *_convolutions(bands, hidden),
                Tensor("source positions", (sources, hidden), "table"),
                *final,
            ),
        ),
    )._replace(trained_length=length)
