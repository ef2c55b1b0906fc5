"""Transformer-family architectures, computed, proved and counted."""
