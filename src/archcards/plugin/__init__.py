"""The site: an MkDocs plugin that places what the runner proved, and refuses the rest."""

from .site import ArchitectureCards

__all__ = ["ArchitectureCards"]
