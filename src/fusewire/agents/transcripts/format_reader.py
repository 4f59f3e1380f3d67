"""What the readers of the formats share: pieces of JSON that may be anything, and the bounds of a model's reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fusewire.agents.output.conversation import amount, part, words
from fusewire.agents.transcripts.step import TranscriptStep
from fusewire.util.durations import parse_time

if TYPE_CHECKING:
    from fusewire.util.fast_json import JsonObject

__all__ = ["FormatReader", "moment", "part", "parts", "text_of", "words"]


def parts(value: object) -> list[JsonObject]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def moment(value: object) -> float | None:
    """Seconds since the epoch: of an ISO time, or of a number of seconds."""
    if isinstance(value, str):
        try:
            return parse_time(value)
        except (ValueError, OverflowError):
            return None
    return amount(value)


def text_of(content: object) -> str:
    """A text, or the texts of a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_of(content.get("content") if "content" in content else content.get("text"))
    found = (
        [one if isinstance(one, str) else words(part(one).get("text")) for one in content or ()]
        if isinstance(content, list)
        else []
    )
    return "\n".join(text for text in found if text)


class FormatReader:
    """Takes the records of one file in their order and gives steps; `agent` is set where a sub-agent wrote the file."""

    #: the format's name, as people know the agent
    name = ""

    def __init__(self, session: str = "", agent: str = "") -> None:
        self.session = session
        self.agent = agent
        #: the reply that each agent of the file is in the middle of
        self._open: dict[str, str] = {}
        self._last: dict[str, float | None] = {}

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

    def close(self) -> Iterator[TranscriptStep]:
        """The file has ended: what was open is over."""
        for agent in list(self._open):
            yield from self._end(agent, self._last.get(agent))

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
