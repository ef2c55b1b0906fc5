"""The key/value cache, and attention that reads through it chunk by chunk."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from ._checks import integer, real_array, same_size, shown
from .attention import grouped_attention
from .masks import causal, sliding_window

__all__ = ["KVCache", "cached_attention"]


class KVCache:
    """Keys and values of the past, for a window or for all of it.

    While a chunk of $c$ tokens attends, its first query needs the $W - 1$ keys before it and its
    last query the chunk itself: $W + c - 1$ keys are held. Between chunks $W$ remain.

    Append a chunk, attend with its queries aligned at the end of `key`, then trim. A chunk that is
    appended to an untrimmed cache finds the same keys: appending drops what no later query reads.

    Args:
        window: Number of keys a query reads at most, itself included; no limit unless given.

    Raises:
        ValueError: If the window is smaller than 1.

    Source:
        Jiang et al. 2023, Mistral 7B, arXiv 2310.06825, section 2 (rolling buffer, chunked
        pre-fill).

    Example:
        >>> cache = KVCache(window=3)
        >>> for chunk in (2, 4):
        ...     cache.append(np.zeros((chunk, 8)), np.zeros((chunk, 8)))
        ...     print(cache.key.shape[-2], cache.scalars)
        2 32
        6 48
    """

    def __init__(self, window: int | None = None):
        self._window = None if window is None else integer("window", window, minimum=1)
        self._key = self._value = None
        self._seen = 0

    @property
    def window(self) -> int | None:
        """Number of keys a query reads at most; `None` is no limit."""
        return self._window

    @property
    def seen(self) -> int:
        """Number of tokens ever appended: the position of the next one."""
        return self._seen

    @property
    def key(self) -> Float[ndarray, "*batch held d_k"]:
        """The held keys, read-only, the newest last."""
        return self._held(self._key)

    @property
    def value(self) -> Float[ndarray, "*batch held d_v"]:
        """The held values, read-only, the newest last."""
        return self._held(self._value)

    @property
    def scalars(self) -> int:
        """Number of scalars that remain between chunks, after trimming."""
        if self._key is None:
            return 0
        return sum(self._last(array, self._window).size for array in (self._key, self._value))

    def append(
        self, key: Float[ndarray, "*batch chunk d_k"], value: Float[ndarray, "*batch chunk d_v"]
    ) -> None:
        """Take in a chunk, after dropping what its queries cannot read.

        Args:
            key: Keys of the chunk.
            value: Values of the chunk.

        Raises:
            ValueError: If the chunk does not have the axes of what is held.
        """
        key = real_array("key", key, min_ndim=2)
        value = real_array("value", value, min_ndim=2)
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(
                f"value must have the leading axes and length of key, {key.shape[:-1]}, "
                f"got {value.shape[:-1]}"
            )
        if self._key is None:
            self._key, self._value = key[..., :0, :], value[..., :0, :]
        for name, new, held in (("key", key, self._key), ("value", value, self._value)):
            wanted, got = (x.shape[:-2] + x.shape[-1:] for x in (held, new))
            if wanted != got:
                raise ValueError(
                    f"{name} must have the heads and width of what is held, {wanted}, got {got}"
                )
        past = None if self._window is None else self._window - 1
        self._key = np.concatenate([self._last(self._key, past), key], axis=-2)
        self._value = np.concatenate([self._last(self._value, past), value], axis=-2)
        self._seen += key.shape[-2]

    def trim(self) -> None:
        """Drop all but the last `window` keys and values."""
        if self._key is not None:
            self._key = self._last(self._key, self._window).copy()
            self._value = self._last(self._value, self._window).copy()

    def _held(self, array):
        if array is None:
            raise ValueError("cache must hold a chunk before it is read, got no append")
        view = array.view()
        view.flags.writeable = False
        return view

    @staticmethod
    def _last(array, count):
        if count is None:
            return array
        return array[..., max(array.shape[-2] - count, 0) :, :]


def cached_attention(
    query: Float[ndarray, "*#batch head time d_k"],
    key: Float[ndarray, "*#batch kv_head time d_k"],
    value: Float[ndarray, "*#batch kv_head time d_v"],
    *,
    chunks: Sequence[int],
    window: int | None = None,
) -> Float[ndarray, "... head time d_v"]:
    """Attend causally over a cache that takes in the sequence chunk by chunk.

    The result is that of one pass over the whole sequence with `causal` or `sliding_window`,
    whatever the chunks: one chunk is prefill, chunks of one are decoding.

    Args:
        query: Queries.
        key: Keys; the number of their heads divides that of the query heads.
        value: Values, with as many heads as the keys.
        chunks: Sizes of the chunks; they sum to the length.
        window: Number of keys a query reads at most, itself included; no limit unless given.

    Raises:
        ValueError: If the chunks do not sum to the length, or shapes do not fit.

    Source:
        Jiang et al. 2023, Mistral 7B, arXiv 2310.06825, section 2.

    Example:
        >>> query = key = np.zeros((1, 3, 1))
        >>> value = np.array([[[3.0], [5.0], [10.0]]])
        >>> cached_attention(query, key, value, chunks=[2, 1], window=2).ravel()
        array([3. , 4. , 7.5])
    """
    query = real_array("query", query, min_ndim=3)
    key = real_array("key", key, min_ndim=3)
    value = real_array("value", value, min_ndim=3)
    time = same_size("length", ("query", query.shape[-2]), ("key", key.shape[-2]))
    same_size("length", ("key", time), ("value", value.shape[-2]))
    if np.ndim(chunks) != 1:
        raise ValueError(f"chunks must be a sequence of sizes, got {shown(chunks)}")
    chunks = [integer("chunks", size, minimum=1) for size in chunks]
    if sum(chunks) != time:
        raise ValueError(f"chunks must sum to the length, {time}, got {sum(chunks)}")

    cache = KVCache(window)
    outputs = [grouped_attention(*(x[..., :0, :] for x in (query, key, value)))]
    start = 0
    for size in chunks:
        piece = slice(start, start + size)
        cache.append(key[..., piece, :], value[..., piece, :])
        held = cache.key.shape[-2]
        mask = causal(size, held) if window is None else sliding_window(size, held, window=window)
        outputs.append(grouped_attention(query[..., piece, :], cache.key, cache.value, mask))
        cache.trim()
        start += size
    return np.concatenate(outputs, axis=-2)
