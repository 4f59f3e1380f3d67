"""The small API for a loop of one's own in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.agents.output.reader import AnswerReader

if TYPE_CHECKING:
    from types import TracebackType

    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.types import IterationResult


class OwnIteration:
    """One iteration of somebody's own loop: tell it what the agent printed; its `result` is there afterwards."""

    result: IterationResult

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._code: int | None = 0
        self._why = "exit"

    def __enter__(self) -> OwnIteration:
        self._begun = self._loop.begin()
        self._reader = AnswerReader(self._loop.engine.clock())
        return self

    @property
    def number(self) -> int:
        return self._begun.number

    @property
    def advice(self) -> str:
        """What to add to the prompt; often nothing."""
        return self._begun.advice.in_prompt(self._begun.number, self._begun.state)

    def answered(self, output: str | bytes, *, exit_code: int = 0, timed_out: bool = False) -> None:
        """What the agent printed (may come in parts), and how it ended."""
        self._reader.feed(output.encode("utf-8", "replace") if isinstance(output, str) else output)
        self._code, self._why = exit_code, "timeout" if timed_out else "exit"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):  # interrupted: neither good nor bad
            self._loop.abandon(self._begun.token)
            return
        if error is not None:
            self._reader.feed_error(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
            self._code = self._code or 1
        answer = self._reader.finish(self._code, partial=self._why == "timeout")
        self.result = self._loop.end(
            self._begun.token, why=self._why, code=self._code, answer=answer, begun=self._begun
        )
