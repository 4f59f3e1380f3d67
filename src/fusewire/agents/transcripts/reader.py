"""Read a transcript as steps. Its format is recognised by its records; sub-agents' files are read along."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.agents import agent_modules
from fusewire.agents.spending.ledger import charging
from fusewire.agents.transcripts.format_reader import FormatReader, moment
from fusewire.agents.transcripts.opencode import OpencodeReader
from fusewire.agents.transcripts.records import Records
from fusewire.agents.transcripts.step import TranscriptStep
from fusewire.agents.transcripts.swe_agent import SweAgentReader
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.core.money import Prices

#: format -> its reader, in the order in which they are tried
_READERS: dict[str, type[FormatReader]] = {
    reader.name: reader
    for reader in (OpencodeReader, SweAgentReader, *(module.READER for module in agent_modules("transcript")))
}
FORMATS = tuple(sorted(_READERS))

#: Records of a file that are looked at to tell its format.
_LOOKED_AT = 200

#: How the client words what a person said no to.
_DECLINED = "The user doesn't want to "

#: What stands in a message that was typed as a command.
_TYPED = "<command-name>"


class Transcript:
    """One transcript; `steps` may be asked for again, and `broken` then tells how much could not be read."""

    def __init__(self, path: str | os.PathLike[str], prices: Prices = ()) -> None:
        self.path = os.fspath(path)
        self.format = _format_of(self.path)
        self.broken = 0
        #: with prices, steps of the kind `cost` tell what the replies have cost
        self._prices = prices
        self._charge: Callable[[Any, str], float] | None = None

    def steps(self, *, agents: bool = True) -> Iterator[TranscriptStep]:
        """In the order of time; without `agents` only what stands in this very file."""
        self.broken = 0
        self._charge = charging(self._prices) if self._prices else None
        below = _READERS[self.format].files_below(self.path) if agents else []
        if not below:
            yield from self._file(self.path)
            return
        session = Path(self.path).stem
        files = [self._file(self.path)] + [self._agent(path, session) for path in below]
        yield from heapq.merge(*files, key=lambda step: step.at or 0.0)  # each file stays in its own order

    def is_attended(self) -> tuple[bool, str]:
        """Whether a person was there, and what tells: the file's own word, else what only a person does."""
        reader = _READERS[self.format].of_file(self.path, "")
        prompts = 0
        for key, record in Records(self.path):
            for step in reader.take(key, record):
                prompts += step.kind == "prompt"
                if reader.is_attended is None and prompts > 1:
                    return True, "a second message"
                if reader.is_attended is None and step.kind == "prompt" and _TYPED in step.text:
                    return True, "a typed command"
                if step.kind == "result" and step.failed and step.text.startswith(_DECLINED):
                    reader.is_attended, reader.says = True, "a call was declined"
            if reader.is_attended is not None:
                return reader.is_attended, reader.says
        return False, "nothing tells of a person"

    def _agent(self, path: str, session: str) -> Iterator[TranscriptStep]:
        """The steps of a sub-agent's file; one that cannot be read is counted, and the rest is still given."""
        try:
            yield from self._file(path, session)
        except FusewireError:
            self.broken += 1

    def _file(self, path: str, session: str = "") -> Iterator[TranscriptStep]:
        reader = _READERS[self.format].of_file(path, session)
        records = Records(path)
        for key, record in records:
            usd = self._charge(record, path) if self._charge else 0
            if usd:
                yield TranscriptStep("cost", moment(record.get("timestamp")), usd=usd)
            yield from reader.take(key, record)
        yield from reader.close()
        self.broken += records.broken


def steps(path: str | os.PathLike[str]) -> Iterator[TranscriptStep]:
    """The steps of a transcript; FusewireError if it is none."""
    return Transcript(path).steps()


def _format_of(path: str) -> str:
    for number, (key, record) in enumerate(Records(path)):
        for name, reader in _READERS.items():
            if reader.recognises(key, record):
                return name
        if number >= _LOOKED_AT:
            break
    raise FusewireError(f"{path}: not a transcript; allowed: one of {', '.join(FORMATS)}")
