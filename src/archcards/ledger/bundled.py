"""The configurations that travel with the package."""

import json
import os
import re
from functools import cache

from .architecture import Architecture
from .errors import UnsupportedConfig
from .fields import shown
from .reading import parse, read_config

__all__ = ["bundled", "bundled_config", "bundled_names", "find", "provenance"]


def _stored(name: str) -> bytes:
    """A file beside this module, also from within an archive."""
    return __loader__.get_data(os.path.join(os.path.dirname(__file__), "models", name))


@cache
def bundled_names() -> tuple[str, ...]:
    """The names of the bundled models, `organisation/model`, in order."""
    return tuple(sorted(json.loads(_stored("index.json")), key=str.lower))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _suggestions(name: str) -> list[str]:
    from difflib import get_close_matches

    plain = {
        _plain(part): whole for whole in bundled_names() for part in (whole, whole.split("/")[1])
    }
    return list(
        dict.fromkeys(plain[match] for match in get_close_matches(_plain(name), plain, 3, 0.6))
    )


def find(name: str) -> str:
    """The bundled model that `name` means: case, punctuation and the organisation are optional.

    A part of a name will do if it fits one model only.

    Raises:
        UnsupportedConfig: none fits, or several do; the message suggests some.
    """
    wanted = _plain(name.replace("__", "/"))
    exact, part = [], []
    for whole in bundled_names():
        if wanted in (_plain(whole), _plain(whole.split("/")[1])):
            exact.append(whole)
        elif wanted and wanted in _plain(whole):
            part.append(whole)
    found = exact or part
    if len(found) == 1:
        return found[0]
    if found:
        raise UnsupportedConfig(
            f"model: expected one bundled model, came {shown(name)}, which fits "
            f"{', '.join(found[:6])}{' and others' if len(found) > 6 else ''}"
        )
    close = _suggestions(name) if len(name) < 200 else []
    hint = f"; did you mean {' or '.join(close)}?" if close else "; archcards models lists them"
    raise UnsupportedConfig(f"model: expected a path or a bundled model, came {shown(name)}{hint}")


def bundled_config(name: str) -> dict:
    """The configuration of a bundled model."""
    whole = find(name)
    return parse(_stored(whole.replace("/", "__") + ".json"), whole)


def provenance(name: str) -> dict[str, str]:
    """Where the configuration of a bundled model comes from, and what is known to agree with it.

    Example:
        >>> provenance("Jamba")["agrees with"]
        'the defaults of JambaConfig in transformers 5.24.0, in every count'
    """
    whole = find(name)
    return {
        "repository": f"https://huggingface.co/{whole}",
        "revision": "not recorded",
        "fields": "those of the architecture; of which file or table each was taken is not recorded",
        **json.loads(_stored("index.json"))[whole],
    }


def bundled(name: str) -> Architecture:
    """A bundled model, found forgivingly by its name.

    Example:
        >>> bundled("mixtral").model_type
        'mixtral'
    """
    return read_config(bundled_config(name))
