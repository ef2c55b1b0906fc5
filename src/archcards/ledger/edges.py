"""How many (query, key) pairs a mask leaves visible, in closed form.

`queries` stand at the end of `keys`; without `keys` there are as many as queries, T. Each function
is the count that `archcards.mechanisms.masks` gives by adding up the mask.
"""

from .architecture import Reach

__all__ = [
    "all_pairs",
    "bidirectional_window",
    "causal",
    "chosen",
    "chunked",
    "of",
    "per_query",
    "sliding_window",
    "widest",
    "with_global",
]


def _sizes(queries: int, keys: int | None) -> tuple[int, int]:
    keys = queries if keys is None else keys
    for name, value in (("queries", queries), ("keys", keys)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name}: expected a whole number of at least 0, came {value!r}")
    return queries, keys


def _size(name: str, value: int, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, came {value!r}")
    return value


def _triangle(n: int) -> int:
    """1 + 2 + … + n, and 0 below."""
    return n * (n + 1) // 2 if n > 0 else 0


def _offset(queries: int, keys: int, offset: int | None) -> int:
    if offset is None:
        return keys - queries
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise ValueError(f"offset: expected a whole number, came {offset!r}")
    return offset


def _ramp(first: int, count: int, top: int) -> int:
    """The sum of min(max(x, 0), top) for `count` whole numbers from `first` on."""

    def below(x: int) -> int:
        """The same sum from 1 up to x."""
        return _triangle(min(x, top)) + max(x - top, 0) * top

    return below(first + count - 1) - below(first - 1) if count > 0 else 0


def causal(
    queries: int, keys: int | None = None, *, offset: int | None = None, sinks: int = 0
) -> int:
    """Pairs of a causal mask: query `i` reads keys 0 to `offset + i`.

    T(T + 1)/2 for T queries over as many keys. `sinks` change nothing: they are read anyway.

    Example:
        >>> causal(4096)
        8390656
        >>> causal(2, 5)
        9
    """
    queries, keys = _sizes(queries, keys)
    _size("sinks", sinks, 0)
    return _ramp(_offset(queries, keys, offset) + 1, queries, keys)


def sliding_window(
    queries: int, window: int, *, keys: int | None = None, offset: int | None = None, sinks: int = 0
) -> int:
    """Pairs of a causal window that counts the query itself: TW − W(W − 1)/2 for W ≤ T.

    The first `sinks` keys stay readable once they are reached.

    Example:
        >>> sliding_window(4096, 1024)
        3670528
        >>> 4096 * 1024 - 1024 * 1023 // 2
        3670528
    """
    queries, keys = _sizes(queries, keys)
    window, sinks = _size("window", window), min(_size("sinks", sinks, 0), keys)
    start = _offset(queries, keys, offset)
    # Of the keys up to the query's position, those below position − window + 1 are lost,
    # but for the sinks among them; keys end at `keys`, wherever the query stands.
    readable = _ramp(start + 1, queries, keys)
    lost = _ramp(start - window + 1, queries, keys)
    return readable - lost + _ramp(start - window + 1, queries, sinks)


def chunked(
    queries: int, chunk: int, *, keys: int | None = None, offset: int | None = None, sinks: int = 0
) -> int:
    """Pairs of a causal mask cut at multiples of `chunk`: (T/C) · C(C + 1)/2 where C divides T.

    Example:
        >>> chunked(16384, 8192) == 2 * causal(8192)
        True
    """
    queries, keys = _sizes(queries, keys)
    chunk, sinks = _size("chunk", chunk), min(_size("sinks", sinks, 0), keys)
    start = _offset(queries, keys, offset)

    def below(length: int) -> tuple[int, int]:
        """Over queries at 0 … length − 1: keys of the own chunk, and sinks before it."""
        length = max(length, 0)

        def own(count: int) -> int:
            return count // chunk * _triangle(chunk) + _triangle(count % chunk)

        # Keys end at `keys`: a query in the last, cut chunk reads those there are; later none.
        last = keys // chunk * chunk
        read = own(min(length, last))
        read += _ramp(1, min(length, last + chunk) - last, keys - last)
        # A query of chunk n has min(n · chunk, sinks) sinks before its chunk.
        full = sinks // chunk
        whole, rest = divmod(length, chunk)
        before = chunk * chunk * _triangle(min(whole - 1, full))
        before += chunk * sinks * max(whole - 1 - full, 0)
        before += rest * min(whole * chunk, sinks)
        return read, before

    high, low = below(start + queries), below(start)
    return high[0] + high[1] - low[0] - low[1]


def with_global(queries: int, tokens: int, *, window: int | None = None) -> int:
    """Pairs where the first `tokens` read and are read by all, beside a two-sided window.

    `window` keys to each side (none: only the global tokens' rows and columns and each query
    itself). Not cut to the causal triangle.

    Example:
        >>> with_global(6, 1, window=1)
        24
    """
    queries, _ = _sizes(queries, None)
    tokens = min(_size("tokens", tokens, 0), queries)
    radius = 0 if window is None else _size("window", window, 0)
    rest = queries - tokens
    return 2 * tokens * queries - tokens * tokens + bidirectional_window(rest, radius=radius)


def bidirectional_window(queries: int, radius: int) -> int:
    """Pairs of a window of `radius` keys to each side: n(2r + 1) − r(r + 1) for r < n.

    Example:
        >>> bidirectional_window(4096, 256)
        2035456
    """
    queries, _ = _sizes(queries, None)
    radius = min(_size("radius", radius, 0), max(queries - 1, 0))
    return queries * (2 * radius + 1) - radius * (radius + 1)


def all_pairs(queries: int, keys: int | None = None) -> int:
    """Pairs where nothing is masked."""
    queries, keys = _sizes(queries, keys)
    return queries * keys


def chosen(queries: int, *, top: int) -> int:
    """Pairs where each query reads at most `top` of what is before it and itself.

    As many as in a window of `top`: only which ones differs.
    """
    return sliding_window(queries, window=top)


def of(reach: Reach, length: int) -> int:
    """Pairs of a whole sequence of `length` under `reach`."""
    if reach.kind == "all":
        return all_pairs(length)
    if reach.kind == "around":
        return bidirectional_window(length, radius=reach.size)
    if reach.kind == "full":
        return causal(length)
    if reach.kind == "chunk":
        return chunked(length, chunk=reach.size)
    return sliding_window(length, window=reach.size)


def per_query(reach: Reach, length: int) -> int:
    """Keys that the last of `length` positions reads."""
    if reach.kind in ("full", "all"):
        return length
    if reach.kind == "chunk":
        return (length - 1) % reach.size + 1 if length else 0
    if reach.kind == "around":
        return min(length, reach.size + 1)
    return min(length, reach.size)


def widest(reach: Reach) -> int:
    """Keys that a query reads at most, where the reach has a size."""
    return 2 * reach.size + 1 if reach.kind == "around" else reach.size
