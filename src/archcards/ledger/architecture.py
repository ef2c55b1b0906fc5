"""A model as its ledger sees it: tensors, layers and what each layer reads of the past.

A reader of `families` turns a configuration into an `Architecture`; `parameters`, `cache` and
`flops` look at nothing else. Every parameter stands in a `Tensor` with its shape, so that each
count is a sum that a person can check.
"""

from math import prod
from typing import NamedTuple

__all__ = [
    "FRAMES",
    "Architecture",
    "Attention",
    "CompressedAttention",
    "Embeddings",
    "Encoder",
    "Experts",
    "FeedForward",
    "Head",
    "Image",
    "Indexer",
    "LatentAttention",
    "Layer",
    "Module",
    "Reach",
    "Recurrence",
    "Tensor",
    "Tower",
]

FRAMES = 2
"""Frames of sound that a convolution joins to one token of an encoder's source."""


class Tensor(NamedTuple):
    """Some equal parameters arrays of one name, and how often a token meets them.

    `role` says what is done with it: a `matrix` or a `kernel` (of a convolution along time)
    costs one multiply-add per element, a `vector` (norm, bias, gate) and a `table` (looked up)
    cost none. `copies` are stored, `used` of them are met by one token (routed experts);
    `per` says how often: once a `token`, a token of the `source`, a `frame` of sound (two make
    a source token), an image `patch`, or once a `sequence`. Tensors with the same name under one `shared` label are one tensor.
    """

    name: str
    shape: tuple[int, ...]
    role: str = "matrix"
    copies: int = 1
    used: int = 1
    per: str = "token"
    shared: str | None = None

    @property
    def size(self) -> int:
        """Parameters stored."""
        return prod(self.shape) * self.copies

    @property
    def active(self) -> int:
        """Parameters that one token meets."""
        return prod(self.shape) * self.used

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds each time the tensor is used."""
        return self.active if self.role in ("matrix", "kernel") else 0


class Reach(NamedTuple):
    """Which keys a query may read.

    `full`: itself and everything before; `window`: the last `size` positions, its own counted;
    `chunk`: everything before in its own chunk of `size` positions; `top`: at most `size`
    chosen positions of everything before; `all`: every position, also later ones; `around`: itself
    and `size` positions to each side.
    """

    kind: str = "full"
    size: int | None = None


class Attention(NamedTuple):
    """Softmax attention with `heads` query heads over `kv_heads` key/value heads.

    `cached` is false where the layer reads another layer's keys and values, or later positions
    too; `cross` where it reads the encoder's output.
    """

    heads: int
    kv_heads: int
    key_width: int
    value_width: int
    tensors: tuple[Tensor, ...]
    reach: Reach = Reach()
    cached: bool = True
    cross: bool = False
    component: str = "attention"


class Indexer(NamedTuple):
    """A light scorer (DeepSeek-V3.2) that chooses the `top` positions each query reads."""

    heads: int
    width: int
    top: int
    tensors: tuple[Tensor, ...]
    cached: bool = True


class LatentAttention(NamedTuple):
    """Multi-head latent attention: a token is cached as one latent and one rotary key."""

    heads: int
    content_width: int
    rope_width: int
    value_width: int
    latent_width: int
    tensors: tuple[Tensor, ...]
    indexer: Indexer | None = None
    component: str = "attention"


class CompressedAttention(NamedTuple):
    """DeepSeek-V4's attention: a window of tokens and, beyond, one entry per `stride` tokens.

    One shared key/value vector of `width` per entry; with an `indexer`, a query reads at most
    `indexer.top` of the compressed entries. `stride` 0: the window only.
    """

    heads: int
    width: int
    window: int
    stride: int
    tensors: tuple[Tensor, ...]
    indexer: Indexer | None = None
    component: str = "attention"


class Recurrence(NamedTuple):
    """A layer with a memory of fixed size: `heads` matrices of `key_width` by `value_width`.

    `accesses` counts the multiply-adds per entry of the memory and step: a write (1), a write
    and a read (2), or a read for the error, a write and a read (3, the delta rule). The
    causal convolutions in front of it, `kernel` wide, keep their last `kernel` - 1 inputs:
    `inputs` lists their channels as (units, channels a unit). `chunks` is true where the layer
    has a chunkwise form of matrix products; there `score_heads` products of queries and keys
    serve all heads (a Mamba-2 group shares them).
    """

    kind: str
    heads: int
    key_width: int
    value_width: int
    accesses: int
    tensors: tuple[Tensor, ...]
    inputs: tuple[tuple[int, int], ...] = ()
    kernel: int = 1
    chunks: bool = True
    score_heads: int | None = None
    component: str = "recurrence"

    @property
    def memory(self) -> int:
        """Scalars of recurrent memory per sequence."""
        return self.heads * self.key_width * self.value_width

    @property
    def past_inputs(self) -> int:
        """Scalars of past convolution inputs per sequence."""
        return sum(units * width for units, width in self.inputs) * (self.kernel - 1)


class FeedForward(NamedTuple):
    """A dense feed-forward network."""

    tensors: tuple[Tensor, ...]
    component: str = "feed_forward"


class Experts(NamedTuple):
    """A routed mixture: `chosen` of `count` experts a token, and the shared ones always."""

    count: int
    chosen: int
    router: tuple[Tensor, ...]
    routed: tuple[Tensor, ...]
    shared: tuple[Tensor, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them."""
        return self.router + self.routed + self.shared


Mixer = Attention | LatentAttention | CompressedAttention | Recurrence


class Layer(NamedTuple):
    """One layer: its mixers (attention or recurrence), feed-forward parts, norms and the rest."""

    mixers: tuple[Mixer, ...] = ()
    feed_forwards: tuple[FeedForward | Experts, ...] = ()
    norms: tuple[Tensor, ...] = ()
    others: tuple[Tensor, ...] = ()

    @property
    def mixer(self) -> Mixer | None:
        """The first mixer, which is the only one of most layers."""
        return self.mixers[0] if self.mixers else None

    @property
    def feed_forward(self) -> FeedForward | Experts | None:
        """The first feed-forward part, which is the only one of most layers."""
        return self.feed_forwards[0] if self.feed_forwards else None


class Embeddings(NamedTuple):
    """The token table, and what else stands between the input and the first layer."""

    table: Tensor | None = None
    positions: tuple[Tensor, ...] = ()
    others: tuple[Tensor, ...] = ()


class Head(NamedTuple):
    """What turns the last hidden state into logits; `table` is not stored again when `tied`."""

    table: Tensor | None = None
    tied: bool = False
    others: tuple[Tensor, ...] = ()


class Image(NamedTuple):
    """An image as patches: height and width in pixels, the patch's, and extra tokens."""

    height: int
    width: int
    patch_height: int
    patch_width: int
    extra_tokens: int = 0


class Encoder(NamedTuple):
    """An encoder whose output the decoder's layers read by cross-attention."""

    layers: tuple[Layer, ...]
    others: tuple[Tensor, ...] = ()


class Tower(NamedTuple):
    """A vision tower and its projector into the text model."""

    layers: tuple[Layer, ...]
    embeddings: tuple[Tensor, ...]
    others: tuple[Tensor, ...] = ()
    projector: tuple[Tensor, ...] = ()
    image: Image | None = None


class Module(NamedTuple):
    """A multi-token-prediction module: stored beside the model, not part of its ledger."""

    layers: tuple[Layer, ...]
    others: tuple[Tensor, ...] = ()


class Architecture(NamedTuple):
    """A model, normalised: what `read_config` returns and every counting starts from."""

    model_type: str
    vocabulary: int | None
    hidden: int
    embeddings: Embeddings
    layers: tuple[Layer, ...]
    head: Head
    final: tuple[Tensor, ...] = ()
    encoder: Encoder | None = None
    vision: Tower | None = None
    multi_token_prediction: tuple[Module, ...] = ()
    image: Image | None = None
    decodes: bool = True
    trained_length: int | None = None
    notes: tuple[str, ...] = ()
