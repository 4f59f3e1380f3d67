"""Read what an agent prints while it prints, in bounded memory, and say at the end what is known of it.

Three layers: the JSON of a known format; the text that can be taken out of a damaged one; the raw text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from fusewire.agents import agent_modules
from fusewire.agents.output.answer import AgentOutput
from fusewire.agents.output.conversation import TEXT, Conversation
from fusewire.agents.output.format import OutputFormat, looks_like_an_answer, salvage
from fusewire.agents.output.status_block import question_in, read_status
from fusewire.agents.output.stream import Pieces, Tail
from fusewire.core.events import fingerprint, plain
from fusewire.testruns.errors import LIMIT, problems_in
from fusewire.testruns.evidence import exit_problem, last_lines
from fusewire.testruns.masks import normalised
from fusewire.testruns.run import Problem
from fusewire.util.fast_json import JsonObject, loads

#: How much plain text is kept, from its end: more than the answer's own, because errors and test runs are looked for.
_OUTPUT = 524_288
_ERRORS = 65_536

#: What agents print, in the order in which it is tried.
_FORMATS: list[OutputFormat] = [module.FORMAT for module in agent_modules("output")]
_SHAPES = [shape for one in _FORMATS for shape in one.shapes]
_DOCUMENTS = frozenset(name for one in _FORMATS for name in one.documents)


class AnswerReader:
    """One answer; `feed` what comes, then `finish` once."""

    def __init__(self, now: float, given: str = "") -> None:
        self._now = now
        #: the prompt: where an agent echoes it, what stands in it is not the agent's word
        self._given = given.strip()
        self._pieces = Pieces()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._output = Tail(_OUTPUT)
        self._errors = Tail(_ERRORS)
        self._conversation: Conversation | None = None
        self._format: OutputFormat | None = None
        self._damaged = 0

    def feed(self, data: bytes) -> str:
        """Standard output as it comes; what a person should be shown of it now."""
        self._output.count(data)
        return self._read(self._pieces.feed(data))

    @property
    def replied(self) -> bool:
        """Whether the provider has answered a request, as far as that can be seen."""
        return self._conversation is not None and self._conversation.replied

    def feed_error(self, data: bytes) -> None:
        """Standard error: looked at only if the process failed."""
        self._errors.count(data)
        self._errors.keep(data)

    def finish(self, exit_code: int | None, *, partial: bool = False) -> AgentOutput:
        """What is known; `partial`: the process was ended by a time-out, so its exit status is ours."""
        self._read(self._pieces.rest())
        raw = self._output.text()
        if self._pieces.too_long and looks_like_an_answer(raw):
            self._damaged += self._pieces.too_long
        conversation = self._conversation or self._from_errors(raw)
        damage = self._damage(conversation, partial)
        rescued = salvage(raw, _SHAPES) if self._damaged and not (conversation and conversation.text) else None
        conversation = conversation or self._plain(raw, rescued[0] if rescued else "")
        if rescued:
            conversation.say(rescued[1])
        conversation.close()
        return self._answer(conversation, damage, exit_code if not partial else None)

    def _from_errors(self, raw: str) -> Conversation | None:
        """A failure of which some agents print only an object on standard error."""
        errors = self._errors.text() if not raw.strip() else ""
        for one in _FORMATS if errors else ():
            message = one.error_in(errors)
            if message is not None:
                conversation = one.reader(self._now)
                conversation.take(message)
                return conversation
        return None

    def _plain(self, raw: str, rescued: str) -> Conversation:
        conversation = Plain(self._now, format=rescued or "text")
        if not rescued:
            conversation.read(raw)
        return conversation

    def _read(self, pieces: Iterable[tuple[bool, bytes]]) -> str:
        shown = []
        for may_be_json, data in pieces:
            read = self._message(data) if may_be_json else None
            if read is None:
                self._output.keep(data)
                read = self._decoder.decode(data)
            shown.append(read)
        return "".join(shown)

    def _message(self, data: bytes) -> str | None:
        """What is shown of a JSON text, or None if it is no message of an agent."""
        text = data.decode("utf-8", "replace")
        try:
            value = loads(text)
        except ValueError:
            self._damaged += looks_like_an_answer(text)
            return None
        messages = value if isinstance(value, list) else [value]
        taken = [self._take(message) for message in messages if isinstance(message, dict)]
        if isinstance(value, list) and self._conversation is not None and self._format and self._format.array:
            self._conversation.format = self._format.array
        shown = [one for one in taken if one is not None]
        return "".join(shown) if shown else None

    def _take(self, message: JsonObject) -> str | None:
        if self._format is None or self._conversation is None:
            self._format = next((one for one in _FORMATS if one.recognises(message)), None)
            if self._format is None:
                return None
            self._conversation = self._format.reader(self._now)
        if not self._format.recognises(message) and message.get("type") not in self._format.later_types:
            return None
        return plain(self._conversation.take(message))

    def _damage(self, conversation: Conversation | None, partial: bool) -> str:
        if self._damaged:
            return f"{self._damaged} JSON text{'s' if self._damaged > 1 else ''} cut or damaged"
        if conversation and not conversation.complete and not partial:
            return "the last message is missing"
        return ""

    def _answer(self, conversation: Conversation, damage: str, exit_code: int | None) -> AgentOutput:
        text = conversation.text.encode("utf-8", "replace")[-TEXT:].decode("utf-8", "ignore")
        status = read_status(text.replace(self._given, "") if self._given else text)
        return AgentOutput(
            format=conversation.format,
            is_document=conversation.format in _DOCUMENTS,
            damage=damage,
            text=text,
            fingerprint=fingerprint(normalised(text)) if text.strip() else "",
            lines=self._output.lines + self._errors.lines,
            bytes=self._output.bytes + self._errors.bytes,
            status=status,
            tests=conversation.work.tests,
            problems=tuple(self._problems(conversation, exit_code)[:LIMIT]),
            ended=conversation.ended,
            is_error=conversation.is_error,
            calls=conversation.calls,
            input_tokens=conversation.input_tokens,
            output_tokens=conversation.output_tokens,
            cost=conversation.cost,
            session=plain(conversation.session, 200) if conversation.session else None,
            denied=tuple(conversation.denied),
            denied_in_a_row=conversation.denied_in_a_row,
            remedy=conversation.remedy,
            question=conversation.question or question_in(text, status),
            limit=conversation.limit,
            outage=conversation.outage,
            replied=conversation.replied,
            windows=conversation.windows,
        )

    def _problems(self, conversation: Conversation, exit_code: int | None) -> list[Problem]:
        """What failed; an exit status speaks only if nothing better is known."""
        found = conversation.failures + conversation.work.problems()
        if found or not exit_code or conversation.limit or conversation.outage or conversation.is_error:
            return found
        errors = self._errors.text()
        found = problems_in(errors)
        if found:
            return found
        said = last_lines(errors) or last_lines(self._output.text()) or last_lines(conversation.text)
        return [exit_problem(exit_code, said)]


class Plain(Conversation):
    """No JSON: the output is the answer."""

    def read(self, raw: str) -> None:
        self.say(raw)
        # No exit status says whether something in it failed: a shape of an error in it is one, until a test run passes.
        self.work.saw(raw, failed=True)
