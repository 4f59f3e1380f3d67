"""Read the records of one transcript as steps: what the readers of all formats share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusewire.agents.transcripts.step import TranscriptStep
from fusewire.agents.values import amount
from fusewire.util.durations import parse_time
from fusewire.util.fast_json import JsonObject


def moment(value: object) -> float | None:
    """Seconds since the epoch: of an ISO time, or of a number of seconds."""
    if isinstance(value, str):
        try:
            return parse_time(value)
        except (ValueError, OverflowError):
            return None
    return amount(value)


class FormatReader:
    """Takes the records of one file in their order and gives steps; `agent` is set where a sub-agent wrote the file."""

    #: the format's name, as people know the agent
    name = ""

    def __init__(self, session: str = "", agent: str = "") -> None:
        self.session = session
        self.agent = agent
        #: the reply that each agent of the file is in the middle of
        self._open: dict[str, str] = {}
        #: where the agent works
        self.cwd = ""
        self._last: dict[str, float | None] = {}
        #: what the file says of the situation: whether a person was there, and in which words
        self.is_attended: bool | None = None
        self.says = ""

    @staticmethod
    def recognises(key: str, record: Any) -> bool:
        """Whether a record is of this format; its key is empty in a file of lines."""
        raise NotImplementedError

    @classmethod
    def of_file(cls, path: str, session: str) -> FormatReader:
        """The reader of one file; `session` is given for that of a sub-agent."""
        return cls(session)

    @staticmethod
    def files_below(path: str) -> list[str]:
        """The transcripts of the session's sub-agents that lie beside its own."""
        return []

    def take(self, key: str, record: Any) -> Iterator[TranscriptStep]:
        raise NotImplementedError

    def _started_by(self, where: str, *, is_attended: bool | None) -> None:
        """The file says which program started the session; the first word holds."""
        if is_attended is not None and self.is_attended is None:
            self.is_attended, self.says = is_attended, where

    def close(self) -> Iterator[TranscriptStep]:
        """The file has ended: what was open is over."""
        for agent in list(self._open):
            yield from self._end(agent, self._last.get(agent))

    def _call(
        self, at: float | None, turn: str, tool: str, given: JsonObject, call: str, agent: str | None = None
    ) -> TranscriptStep:
        """A call of a tool, by the main agent of the file unless another is named."""
        agent = self.agent if agent is None else agent
        return TranscriptStep("call", at, agent, turn, tool, given, call, session=self.session, cwd=self.cwd)

    def _result(
        self, at: float | None, turn: str, call: str, text: str, failed: bool | None, agent: str | None = None
    ) -> TranscriptStep:
        """What a call gave back."""
        agent = self.agent if agent is None else agent
        return TranscriptStep("result", at, agent, turn, call=call, text=text, failed=failed, session=self.session)

    def _begin(self, turn: str, at: float | None, agent: str = "") -> Iterator[TranscriptStep]:
        """The model speaks: another reply than before ends that one."""
        if self._open.get(agent) != turn:
            yield from self._end(agent, at)
            self._open[agent] = turn
        self._last[agent] = at if at is not None else self._last.get(agent)

    def _end(self, agent: str, at: float | None) -> Iterator[TranscriptStep]:
        turn = self._open.pop(agent, None)
        if turn is not None:
            yield TranscriptStep("reply_end", at, agent, turn, session=self.session)

    def _prompt(self, text: str, at: float | None) -> Iterator[TranscriptStep]:
        """A person speaks to the main agent."""
        yield from self._end(self.agent, at)
        yield TranscriptStep("prompt", at, self.agent, text=text, session=self.session)
