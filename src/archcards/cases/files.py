"""The published cases as files: arrays in `.npz`, everything else in a JSON manifest beside it."""

import hashlib
import inspect
import io
import json
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

from ._registry import Published, mechanisms
from .bounds import EPSILON, SAFETY, error_bounds

__all__ = ["VERSION", "files", "npz", "write"]

VERSION = 2
"""Raised whenever a case or an expected result changes."""

_CONVENTIONS = (
    "Arrays end in (..., time, feature), heads before time. A mask is true where a key may be read, "
    "and queries are aligned at the end of the keys. Logarithms are natural. The page Conventions "
    "says the rest."
)


def write(folder: str | Path) -> None:
    """Write the cases of all mechanisms, and `index.json`, into a folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(folder)
        ...     vectors = np.load(f"{folder}/delta_write.npz")
        ...     manifest = json.loads(Path(folder, "delta_write.json").read_text())
        >>> manifest["cases"][0]["arguments"]["beta"]
        {'array': 'two-memories/beta', 'shape': [2], 'dtype': 'float64'}
        >>> vectors["two-memories/beta"].shape
        (2,)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (folder / name).write_bytes(content)


def files() -> dict[str, bytes]:
    """The files by name; the same bytes each time."""
    made, index = {}, {}
    for name in sorted(mechanisms):
        arrays, manifest = _published(mechanisms[name])
        made[f"{name}.npz"] = archive = npz(arrays)
        manifest["sha256"] = hashlib.sha256(archive).hexdigest()
        made[f"{name}.json"] = _json(manifest)
        index[name] = {
            "cases": len(manifest["cases"]),
            "arrays": f"{name}.npz",
            "manifest": f"{name}.json",
            "sha256": manifest["sha256"],
        }
    made["index.json"] = _json({"version": VERSION, "mechanisms": index})
    return made


def _json(content) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def npz(arrays: dict[str, np.ndarray], compression: int = zipfile.ZIP_STORED) -> bytes:
    """As `numpy.savez`, but with a fixed time stamp, so that equal arrays are equal files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.array(array, order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), compression)
    return buffer.getvalue()


def _published(published: Published):
    arrays: dict[str, np.ndarray] = {}
    cases = []
    for case in published.cases:
        results = {
            name: _described(arrays, f"{case.slug}/expected/{name}", array)
            for name, array in published.expected(case).items()
        }
        for dtype in EPSILON:
            for name, bound in error_bounds(published, case, dtype).items():
                # Two digits, rounded up: a bound is no result to compare with.
                results[name].setdefault("bound", {})[dtype] = float(f"{1.05 * bound:.1e}")
        cases.append(
            {
                "name": case.name,
                "degenerate": case.degenerate,
                "arguments": {
                    name: _described(arrays, f"{case.slug}/{name}", value)
                    for name, value in case.arguments.items()
                },
                "expected": results,
            }
        )
    manifest = {
        "mechanism": published.mechanism,
        "version": VERSION,
        "conventions": _CONVENTIONS,
        "summary": inspect.getdoc(published.reference).split("\n")[0],
        "defaults": {
            name: _default(parameter.default)
            for name, parameter in inspect.signature(published.reference).parameters.items()
            if parameter.default is not parameter.empty
        },
        "choices": list(published.choices),
        "returns": list(published.returns),
        "axes": {name: list(axes) for name, axes in published.axes.items()},
        "tolerance": {"float64": published.tolerance},
        "bounds": "8 times the largest change of the result when every input is moved by half a "
        "unit in its last place, or half a unit of the largest result",
        "safety": SAFETY,
        "cases": cases,
    }
    return arrays, manifest


def _described(arrays, key, value):
    """What the manifest says about a value; arrays are put aside under a key."""
    if isinstance(value, np.ndarray):
        value = value.astype("<i8") if value.dtype.kind in "iu" else value
        arrays[key] = value
        return {"array": key, "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return _described(arrays, key, value.item())
    if isinstance(value, np.ufunc):
        return {"elementwise": value.__name__}
    if callable(value):
        return {"mechanism": value.__name__}
    if is_dataclass(value) or hasattr(value, "_fields"):
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        return {
            "record": type(value).__name__,
            "fields": {
                n: _described(arrays, f"{key}/{n}", _plain(getattr(value, n))) for n in names
            },
        }
    if isinstance(value, tuple | list) and value and not isinstance(value[0], int | float):
        return {"list": [_described(arrays, f"{key}/{i}", part) for i, part in enumerate(value)]}
    return {"value": list(value) if isinstance(value, tuple) else value}


def _default(value):
    """A default in JSON, which has no infinity."""
    if isinstance(value, tuple):
        return [_default(part) for part in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value):
    """A list of lists, which a record may hold for an array, as an array."""
    return np.asarray(value) if isinstance(value, list) else value
