"""A transcript of any of the four formats, told by what is in it, as steps; sub-agents' files are read along."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from pathlib import Path

from fusewire.agents.claude.transcript import ClaudeReader, is_claude
from fusewire.agents.codex.transcript import CodexReader, is_codex
from fusewire.agents.gemini.transcript import GeminiReader, is_gemini
from fusewire.agents.transcripts.records import Records
from fusewire.agents.transcripts.step import Step
from fusewire.agents.transcripts.swe_agent import SweAgentReader, is_swe_agent
from fusewire.agents.transcripts.values import FormatReader
from fusewire.util.errors import FusewireError

FORMATS = ("claude", "codex", "gemini", "swe-agent")

#: Records of a file that are looked at to tell its format.
_LOOKED_AT = 200


class Transcript:
    """One transcript; `steps` may be asked for again, and `broken` then tells how much could not be read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.format = _format_of(self.path)
        self.broken = 0

    def steps(self, *, agents: bool = True) -> Iterator[Step]:
        """In the order of time; without `agents` only what stands in this very file."""
        self.broken = 0
        below = _agents_below(self.path) if agents and self.format == "claude" else []
        if not below:
            yield from self._file(self.path)
            return
        session = Path(self.path).stem
        files = [self._file(self.path)] + [self._agent(path, session) for path in below]
        yield from heapq.merge(*files, key=lambda step: step.at or 0.0)  # each file stays in its own order

    def _agent(self, path: str, session: str) -> Iterator[Step]:
        """A sub-agent's file that cannot be read does not keep the rest from being told."""
        try:
            yield from self._file(path, session)
        except FusewireError:
            self.broken += 1

    def _file(self, path: str, session: str = "") -> Iterator[Step]:
        reader = _reader(self.format, path, session)
        records = Records(path)
        for key, record in records:
            yield from reader.take(key, record)
        yield from reader.close()
        self.broken += records.broken


def steps(path: str | os.PathLike[str]) -> Iterator[Step]:
    """The steps of a transcript; FusewireError if it is none."""
    return Transcript(path).steps()


def _format_of(path: str) -> str:
    records = Records(path)
    for number, (key, record) in enumerate(records):
        if key == "projectHash":
            return "gemini"
        if is_swe_agent(key, record):
            return "swe-agent"
        if not key or key == "messages":
            if is_gemini(record):
                return "gemini"
            if is_codex(record):
                return "codex"
            if is_claude(record):
                return "claude"
        if number >= _LOOKED_AT:
            break
    raise FusewireError(f"{path}: not a transcript; allowed: one of {', '.join(FORMATS)}")


def _reader(name: str, path: str, session: str) -> FormatReader:
    stem = os.path.basename(path).partition(".")[0]
    if name == "claude":
        return ClaudeReader(session, stem.removeprefix("agent-") if stem.startswith("agent-") else "")
    if name == "codex":
        return CodexReader(session)
    return GeminiReader(session) if name == "gemini" else SweAgentReader(session or stem)


def _agents_below(path: str) -> list[str]:
    """The transcripts of the sub-agents of a session of Claude Code."""
    folder = Path(path).with_suffix("") / "subagents"
    try:
        return sorted(str(one) for one in folder.iterdir() if one.name.startswith("agent-") and one.suffix == ".jsonl")
    except OSError:
        return []
