"""The words that shapes are made of, those of JSON Schema, and the shapes of what the JSON interface can be asked."""

from __future__ import annotations

from typing import Any

from fusewire.breakers.phase.phases import GUIDANCE
from fusewire.breakers.session.user_message import MOST
from fusewire.core.events import TEXT_LIMIT

Schema = dict[str, Any]


def fields(**properties: Schema) -> Schema:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def rows(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    if "$ref" in schema or "enum" in schema or "anyOf" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def told(schema: Schema, description: str, *examples: Any) -> Schema:
    return {**schema, "description": description, **({"examples": list(examples)} if examples else {})}


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
YES_NO: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
TEXTS = rows(TEXT)
SECONDS = told(NUMBER, "seconds")
MOMENT = told(NUMBER, "seconds since 1970")
USD = told(NUMBER, "US dollars")

KIND = one_of("constraint", "loop", "phase", "tool", "attempt", "own")
STATE = one_of("CLOSED", "HALF_OPEN", "OPEN")
PHASE = one_of("closed", "watch", "open", "probe")

# -- what is asked ----------------------------------------------------------------------------------------

ID = told({"type": "string", "minLength": 1, "maxLength": 4000}, "a circuit", "loop/no_progress")
SESSION = told(
    {"type": "string", "minLength": 1, "maxLength": 4000},
    "a session, as its agent names it",
    "479528ae-91f4-4945-992c-9db9f0bba192",
)
SLICE = told(
    {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
    "letters, digits, dots, dashes and underscores",
    "S-1",
)
DAYS = told({"type": "integer", "minimum": 1, "maximum": 36500, "default": 30}, "how far back")
AFTER = told(
    {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "default": 0},
    "the number of the last move that was seen",
)
OFFSET = told(
    {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "default": 0},
    "how many of the first to leave out",
)


def limit(default: int, most: int) -> Schema:
    """How much of a list comes at once."""
    return told({"type": "integer", "minimum": 1, "maximum": most, "default": default}, "how many at most")


REASON = told(
    {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT, "pattern": "[^\\s\\x00-\\x1f]"},
    "not only blanks; it is kept in the audit trail",
    "the network is back",
)
AMOUNT = told({"type": "number", "minimum": 0.01, "maximum": MOST}, "US dollars, rounded to cents", 2.5)
# A character has up to four bytes.
ADVICE = told(
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
RESOLVE = [
    question(choice=one_of("reset", "skip", "abort"), reason=REASON),
    question(choice=one_of("modify"), guidance=ADVICE, reason=REASON),
]
