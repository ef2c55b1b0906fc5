"""What a chapter states, computed and proved: checks with controls, facts, derivations, pictures."""

from .check import check
from .derive import derive
from .fact import fact
from .figure import figure
from .printed import as_printed, beside_printed
from .quote import quoted
from .record import CheckFailed
from .switch import switch
from .table import table

__all__ = [
    "CheckFailed",
    "as_printed",
    "beside_printed",
    "check",
    "derive",
    "fact",
    "figure",
    "quoted",
    "switch",
    "table",
]
