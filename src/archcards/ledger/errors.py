"""What the ledger says when it does not know."""

__all__ = ["UnsupportedConfig"]


class UnsupportedConfig(ValueError):
    """A configuration that the ledger cannot read exactly, and therefore does not read at all.

    Its message is one line: the field's path, what was expected there, and what came.
    """
