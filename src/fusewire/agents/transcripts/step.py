"""The step of an agent, the same for all formats of transcripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fusewire.util.fast_json import JsonObject

Kind = Literal["prompt", "call", "result", "reply_end", "cost"]

#: The name that every agent's shell goes by here; its `input` has the text of the command as `command`.
SHELL = "Bash"


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """A person's message, a call of a tool, its result, or the end of one reply of the model with all its calls;
    or what it has cost, for those who have given prices."""

    kind: Kind
    #: seconds since the epoch, where the transcript tells it
    at: float | None = None
    #: the sub-agent's id; nothing for the main agent
    agent: str = ""
    #: the reply of the model that the step belongs to
    turn: str = ""
    tool: str = ""
    input: JsonObject = field(default_factory=dict)
    #: what ties a result to its call
    call: str = ""
    text: str = ""
    #: whether a call failed, as its structure tells; None where nothing tells it
    failed: bool | None = None
    session: str = ""
    #: where the agent works, where the transcript tells it
    cwd: str = ""
    #: dollars that the last reply has cost
    usd: float = 0.0
