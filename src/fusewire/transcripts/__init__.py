"""What an agent did, step by step, from the file that it leaves behind: one shape for the formats of four agents."""

from __future__ import annotations

from fusewire.transcripts.reader import FORMATS, Transcript, steps
from fusewire.transcripts.step import SHELL, Step

__all__ = ["FORMATS", "SHELL", "Step", "Transcript", "steps"]
