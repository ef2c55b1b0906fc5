"""The site: an MkDocs plugin that places what the runner proved, and refuses the rest.

What needs no MkDocs (links, policy, mathematics, the swap) can be imported and called without it.
"""

__all__ = ["ArchitectureCards"]


def __getattr__(name: str) -> object:
    if name == "ArchitectureCards":
        from .site import ArchitectureCards

        return ArchitectureCards
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
