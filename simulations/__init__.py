"""Whole federations on one machine."""

from .local import Federation

__all__ = ["Federation"]
