"""What a chapter states, computed and proved: checks with controls, facts, derivations, pictures."""

from .check import check
from .fact import fact
from .record import CheckFailed
from .table import table

__all__ = ["CheckFailed", "check", "fact", "table"]
