"""Where the implementations come from."""

import importlib.util
from pathlib import Path

__all__ = ["FLA", "SCIPY", "TORCH", "TRANSFORMERS", "naive"]

FLA, SCIPY, TORCH, TRANSFORMERS = "fla-core", "scipy", "torch", "transformers"


def naive(operation):
    """The reference module of an operation of flash-linear-attention.

    The file is loaded alone: importing the package needs a compiler for GPU kernels and redirects
    functions of Transformers to them.
    """
    (folder,) = importlib.util.find_spec("fla").submodule_search_locations
    path = Path(folder, "ops", operation, "naive.py")
    spec = importlib.util.spec_from_file_location(f"fla_{operation}_naive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
