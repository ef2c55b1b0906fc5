"""What a model stores and does, as exact integers, from its config.json alone.

Standard library only: the same code answers in a terminal, a chapter and a browser.
"""

from . import edges
from .architecture import Architecture
from .bundled import bundled, bundled_config, bundled_names
from .cache import cache, largest_batch, largest_context
from .errors import UnsupportedConfig
from .flops import flops, torchtitan, training_per_token
from .images import image_sequence
from .parameters import parameters
from .reading import read_config

__all__ = [
    "Architecture",
    "UnsupportedConfig",
    "bundled",
    "bundled_config",
    "bundled_names",
    "cache",
    "edges",
    "flops",
    "image_sequence",
    "largest_batch",
    "largest_context",
    "parameters",
    "read_config",
    "torchtitan",
    "training_per_token",
]
