"""Collect what one agent's JSON has said so far; each format fills the same fields in its own way."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusewire.agents.output.answer import Limit
from fusewire.agents.values import amount, part
from fusewire.core.events import plain
from fusewire.core.pacing import Window
from fusewire.testruns.evidence import RunEvidence
from fusewire.testruns.run import Problem, problem
from fusewire.util.fast_json import JsonObject

#: How much of an answer's text is kept, from its end, and of one line that is shown to a person.
TEXT = 65_536
_SHOWN = 160
_DENIED = 50

#: A limit that is lifted later than this was misread.
_FARTHEST = 400 * 86_400


@dataclass
class Conversation:
    """The state of a format's reader; `take` is given every message, `close` what is left to conclude."""

    now: float
    format: str = "text"
    text: str = ""
    session: str | None = None
    ended: str = ""
    is_error: bool = False
    #: whether the format's own last message came
    complete: bool = False
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    denied: list[str] = field(default_factory=list)
    denied_in_a_row: int = 0
    #: what would allow what was denied, in the words of the agent's command line
    remedy: str = ""
    question: str | None = None
    limit: Limit | None = None
    outage: str = ""
    #: the provider has answered a request
    replied: bool = False
    #: how far the windows of the provider's limit are used
    windows: tuple[Window, ...] = ()
    failures: list[Problem] = field(default_factory=list)
    work: RunEvidence = field(default_factory=RunEvidence)
    #: calls that were denied in a row just now
    _denied_now: int = 0

    def take(self, message: JsonObject) -> str:
        """Read one message; what a person should be shown of it."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more will come."""

    def say(self, text: str) -> str:
        """The agent's own words."""
        self.text = text[-TEXT:]
        return text if text.endswith("\n") or not text else text + "\n"

    def deny(self, names: list[str], in_a_row: int) -> None:
        self.denied = [plain(name, 200) for name in names[:_DENIED]]
        self.denied_in_a_row = in_a_row

    def count_denial(self, name: str) -> None:
        """One more call was denied, in a row with the one before it unless `end_denials` was called since."""
        self._denied_now += 1
        if self._denied_now > self.denied_in_a_row:
            self.denied_in_a_row = self._denied_now
        if len(self.denied) < _DENIED:
            self.denied.append(plain(name, 200))

    def end_denials(self) -> None:
        """A call was not denied: the row is over."""
        self._denied_now = 0

    def refused(self, status: int | None, message: str, kind: str = "") -> None:
        """The provider refused a request, as its status says: a limit, an outage, or something to be mended."""
        if status == 429:
            self.limit = self.limit or Limit(None, kind or "429")
        elif status is None or status >= 500 or status == 408:
            self.outage = plain(message, 300) or "the model could not be reached"
        else:
            self.failures.append(problem("agent", f"api {status}", message))

    def moment(self, value: object) -> float | None:
        """A time in seconds or milliseconds since the epoch, if it can be one."""
        number = amount(value)
        if number is None:
            return None
        number = number / 1000 if number > 1e11 else number
        return number if 0 < number < self.now + _FARTHEST else None


class Requests:
    """Counts requests to a model where the format does not: what follows a tool's result answers another request."""

    def __init__(self) -> None:
        self.count = 0
        self._due = True

    def answered(self) -> None:
        """The model said or called something."""
        self.count += self._due
        self._due = False

    def result(self) -> None:
        """A tool has answered, so the model is asked again."""
        self._due = True


def tool_line(name: str, given: object) -> str:
    """One short line for a call of a tool: its name and the first text among its arguments."""
    return _line(f"[{name}] {_main_argument(given)}") + "\n"


def call_label(name: str, given: object) -> str:
    """A call of a tool in a list: `Bash(npm install)`."""
    said = _line(_main_argument(given))
    return f"{name}({said})" if said else name


def _main_argument(given: object) -> str:
    arguments = part(given)
    preferred = [
        arguments.get(key) for key in ("command", "file_path", "path", "pattern", "query", "url", "description")
    ]
    return next((text for text in [*preferred, *arguments.values()] if isinstance(text, str) and text.strip()), "")


def _line(text: str) -> str:
    line = " ".join(text[: _SHOWN * 2].split())
    return "".join(letter for letter in line[:_SHOWN] if letter.isprintable())
