"""The old place of what is in `words` and `patterns`."""

from __future__ import annotations

from fusewire.guard.programs.patterns import Pattern
from fusewire.guard.programs.words import told_apart

__all__ = ["Pattern", "told_apart"]
