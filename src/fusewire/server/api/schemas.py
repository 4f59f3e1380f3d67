"""The schemas of what the JSON interface can be asked; those of its answers come from the read models."""

from __future__ import annotations

from typing import Any, get_args

from fusewire.breakers.phase.phases import GUIDANCE
from fusewire.breakers.session.user_message import MOST
from fusewire.core.events import TEXT_LIMIT
from fusewire.util.json_types import Kind, State
from fusewire.views.models import Schema


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Schema, description: str, *examples: Any) -> Schema:
    return {**schema, "description": description, **({"examples": list(examples)} if examples else {})}


KIND = one_of(*get_args(Kind))
STATE = one_of(*get_args(State))

ID = described({"type": "string", "minLength": 1, "maxLength": 4000}, "a circuit", "loop/no_progress")
SESSION = described(
    {"type": "string", "minLength": 1, "maxLength": 4000},
    "a session, as its agent names it",
    "479528ae-91f4-4945-992c-9db9f0bba192",
)
SLICE = described(
    {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
    "letters, digits, dots, dashes and underscores",
    "S-1",
)
DAYS = described({"type": "integer", "minimum": 1, "maximum": 36500, "default": 30}, "how far back")
AFTER = described(
    {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "default": 0},
    "the number of the last move that was seen",
)
OFFSET = described(
    {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "default": 0},
    "how many of the first to leave out",
)


def limit(default: int, most: int) -> Schema:
    """How much of a list comes at once."""
    return described({"type": "integer", "minimum": 1, "maximum": most, "default": default}, "how many at most")


REASON = described(
    {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT, "pattern": "[^\\s\\x00-\\x1f]"},
    "not only blanks; it is kept in the audit trail",
    "the network is back",
)
AMOUNT = described({"type": "number", "minimum": 0.01, "maximum": MOST}, "US dollars, rounded to cents", 2.5)
# A character has up to four bytes.
ADVICE = described(
    {"type": "string", "minLength": 1, "maxLength": GUIDANCE // 4, "pattern": "[^\\s\\x00-\\x1f]"},
    "not only blanks; it is given to the agent",
    "answer 409 before the password is looked at",
)


def question(*optional: str, **properties: Schema) -> Schema:
    """A query or a body: what is not optional and has no default must be said, and nothing else can be."""
    required = [name for name, one in properties.items() if name not in optional and "default" not in one]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


RESET = [question(circuit=ID, reason=REASON)]
GRANT = [
    question("session", whom=one_of("session"), amount=AMOUNT, session=SESSION, reason=REASON),
    question(whom=one_of("day", "project"), amount=AMOUNT, reason=REASON),
]
_PROJECT = described(
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9_-]+$"},
    "a project's name, as `projects` has it; left out where the server shows one",
    "web",
)
HALT = [
    question(scope=one_of("all"), reason=REASON),
    question("project", scope=one_of("project"), project=_PROJECT, reason=REASON),
    question(scope=one_of("session"), session=SESSION, reason=REASON),
]
RESUME = [{**shape, "required": [name for name in shape["required"] if name != "reason"]} for shape in HALT]
RESOLVE = [
    question(choice=one_of("reset", "skip", "abort"), reason=REASON),
    question(choice=one_of("modify"), guidance=ADVICE, reason=REASON),
]
