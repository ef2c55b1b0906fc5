"""Where the implementations come from."""

import importlib.util
import sys
import warnings
from pathlib import Path
from unittest import mock

__all__ = ["FLA", "SCIPY", "TORCH", "TRANSFORMERS", "naive"]

FLA, SCIPY, TORCH, TRANSFORMERS = "fla-core", "scipy", "torch", "transformers"


def naive(operation):
    """The reference module of an operation of flash-linear-attention.

    The file is loaded alone: importing the package needs a compiler for GPU kernels and redirects
    functions of Transformers to them. What it imports from the package is for texts of different
    lengths laid end to end, which is not compared here.
    """
    (folder,) = importlib.util.find_spec("fla").submodule_search_locations
    path = Path(folder, "ops", operation, "naive.py")
    spec = importlib.util.spec_from_file_location(f"fla_{operation.replace('/', '_')}_naive", path)
    module = importlib.util.module_from_spec(spec)
    absent = {name: mock.MagicMock() for name in ("fla.ops.utils", "fla.ops.utils.pooling")}
    with mock.patch.dict(sys.modules, absent), warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # a package of kernels is not installed
        spec.loader.exec_module(module)
    return module
