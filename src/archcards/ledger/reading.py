"""From a config.json, or what it holds, to an `Architecture`."""

import json
import os
from collections.abc import Mapping

from .architecture import Architecture
from .errors import UnsupportedConfig
from .families import READERS, reader
from .fields import Fields, shown

__all__ = ["LARGEST_FILE", "load", "parse", "read_config"]

LARGEST_FILE = 4 * 2**20
"""Bytes. Real configurations stay below a tenth of it."""


def parse(text: str | bytes, origin: str = "config") -> dict:
    """The JSON object in `text`, strictly: no duplicate keys, no NaN, no other top level."""

    def unique(pairs: list[tuple[str, object]]) -> dict:
        found: dict[str, object] = {}
        for name, value in pairs:
            if name in found:
                raise UnsupportedConfig(
                    f"{origin}: expected each key once, came {shown(name)} twice"
                )
            found[name] = value
        return found

    def not_finite(word: str) -> object:
        raise UnsupportedConfig(f"{origin}: expected finite numbers, came {word}")

    def finite(word: str) -> float:
        value = float(word)
        if value in (float("inf"), float("-inf")):
            raise UnsupportedConfig(f"{origin}: expected finite numbers, came {word[:40]}")
        return value

    if len(text) > LARGEST_FILE:
        raise UnsupportedConfig(
            f"{origin}: expected at most {LARGEST_FILE} bytes, came {len(text)}"
        )
    if not text.strip():
        raise UnsupportedConfig(f"{origin}: expected a JSON object, came an empty file")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        value = json.loads(
            text, object_pairs_hook=unique, parse_constant=not_finite, parse_float=finite
        )
    except UnsupportedConfig:
        raise
    except RecursionError:
        raise UnsupportedConfig(
            f"{origin}: expected a flat JSON object, came one nested too deeply"
        ) from None
    except UnicodeDecodeError as error:
        raise UnsupportedConfig(
            f"{origin}: expected JSON in UTF-8, came byte "
            f"{error.object[error.start]:#04x} at {error.start}"
        ) from None
    except json.JSONDecodeError as error:
        raise UnsupportedConfig(
            f"{origin}: expected JSON, came something else at line "
            f"{error.lineno}, column {error.colno} ({error.msg})"
        ) from None
    except ValueError:
        raise UnsupportedConfig(
            f"{origin}: expected numbers of a readable length, came one with thousands of digits"
        ) from None
    if not isinstance(value, dict):
        raise UnsupportedConfig(f"{origin}: expected a JSON object, came {shown(value)}")
    return value


def load(path: str | os.PathLike) -> dict:
    """The JSON object in a file, or in the `config.json` of a folder; never more than 4 MiB."""
    name = os.fspath(path)
    label = shown(name)
    if os.path.isdir(name):
        inside = os.path.join(name, "config.json")
        if not os.path.isfile(inside):
            raise UnsupportedConfig(
                f"{label}: expected a config.json, came a directory without one"
            )
        name = inside
    try:
        size = os.path.getsize(name)
        if size > LARGEST_FILE:
            raise UnsupportedConfig(f"{label}: expected at most {LARGEST_FILE} bytes, came {size}")
        with open(name, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except UnsupportedConfig:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such path"
        raise UnsupportedConfig(f"{label}: expected a readable file, came an error ({reason})") from None
    return parse(data, label)


def read_config(config: str | os.PathLike | Mapping[str, object]) -> Architecture:
    """Reads a model's configuration into an `Architecture`, exactly or not at all.

    Args:
        config: the path of a `config.json` (or of a directory that holds one), or its contents.

    Raises:
        UnsupportedConfig: the model type is unknown, a field is missing, has an impossible
            value, or could change the result and is not understood. The message is one line.

    Example:
        >>> llama = read_config({
        ...     "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        ...     "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})
        >>> len(llama.layers), llama.layers[0].mixer.kv_heads
        (32, 32)
    """
    if isinstance(config, Mapping):
        values = config
    elif isinstance(config, (str, os.PathLike)):
        values = load(config)
    else:
        raise UnsupportedConfig(
            f"config: expected a path or a mapping, came {type(config).__name__}"
        )
    fields = Fields(values)
    model_type = fields.text("model_type")
    if model_type is None:
        raise fields.refuse("model_type", "the name of a model family")
    if model_type not in READERS:
        raise UnsupportedConfig(
            f"model_type: expected a family that the ledger reads (archcards "
            f"models --families lists them), came {shown(model_type)}"
        )
    architecture = reader(model_type)(fields)
    if architecture.encoder is None and not fields.asked("is_encoder_decoder"):
        fields.only("is_encoder_decoder", False)
    fields.finish()
    return architecture._replace(
        model_type=model_type, notes=tuple(dict.fromkeys((*architecture.notes, *fields.notes)))
    )
