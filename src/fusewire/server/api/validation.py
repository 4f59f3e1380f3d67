"""Validate what a request asks for against the schemas that the OpenAPI document shows.

A few words of JSON Schema are enough for a query and a small body: `type`, `enum`, `minimum`, `maximum`, `minLength`,
`maxLength`, `pattern`, `properties`, `required`. What does not fit is refused in one line that says what is allowed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.exceptions import HTTPException

from fusewire.util.errors import shown

if TYPE_CHECKING:
    from starlette.requests import Request

    from fusewire.views.models import Schema

#: Digits of a whole number in an address: more than any limit here has.
_DIGITS = 16


def read_query(request: Request, schema: Schema) -> dict[str, Any]:
    """The query of an address, with the defaults of what is not said."""
    pairs = request.query_params.multi_items()
    given = dict(pairs)
    if len(given) < len(pairs):
        twice = next(name for name in given if sum(name == one for one, _ in pairs) > 1)
        raise HTTPException(400, f"{shown(twice)} is said twice")
    wanted = schema["properties"]
    typed = {name: _typed(text, wanted[name]) if name in wanted else text for name, text in given.items()}
    defaults = {name: one["default"] for name, one in wanted.items() if "default" in one}
    return {**defaults, **validate(typed, schema)}


async def read_body(request: Request, variants: list[Schema]) -> dict[str, Any]:
    """The JSON object that was sent; of several shapes, the one that it chooses."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "a JSON object is needed: Content-Type: application/json")
    if request.query_params:
        raise HTTPException(400, f"{shown(next(iter(request.query_params)))} belongs in the body, not in the address")
    return validate(_object(await request.body()), variants)


def _object(body: bytes) -> dict[str, Any]:
    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a field is said twice")
        return dict(pairs)

    try:
        found = json.loads(body.decode("utf-8"), parse_constant=no_number, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON object: {str(error)[:120]}") from error
    if not isinstance(found, dict):
        raise HTTPException(400, "the body is no JSON object")
    return found


def validate(given: dict[str, Any], schema: Schema | list[Schema]) -> dict[str, Any]:
    """What was given, if the schema (or the one of several that it chooses) has room for it."""
    if isinstance(schema, list):
        schema = schema[0] if len(schema) == 1 else _chosen(given, schema)
    wanted = schema["properties"]
    for name in given:
        if name not in wanted:
            allowed = f"allowed: {', '.join(wanted)}" if wanted else "nothing can be said here"
            raise HTTPException(400, f"{shown(name)} is not known here; {allowed}")
    for name in schema["required"]:
        if name not in given:
            raise HTTPException(400, f"{name} is needed: {allowed_by(wanted[name])}")
    for name, value in given.items():
        if not _fits(value, wanted[name]):
            raise HTTPException(400, f"{name} = {shown(value)} is refused; allowed: {allowed_by(wanted[name])}")
    return given


def _chosen(given: dict[str, Any], variants: list[Schema]) -> Schema:
    """Shapes of one body differ in a word that they all have: the first that they require."""
    word = variants[0]["required"][0]
    for schema in variants:
        if _fits(given.get(word), schema["properties"][word]):
            return schema
    allowed = ", ".join(one for schema in variants for one in schema["properties"][word]["enum"])
    raise HTTPException(
        400,
        f"{word} = {shown(given[word])} is refused; allowed: {allowed}"
        if word in given
        else f"{word} is needed: {allowed}",
    )


def _typed(text: str, schema: Schema) -> Any:
    """A whole number of an address; anything else stays text, and a text that is wanted as a number does not fit."""
    if schema["type"] == "integer" and text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    return text


def _fits(value: Any, schema: Schema) -> bool:
    if schema["type"] == "string":
        return (
            isinstance(value, str)
            and not any("\ud800" <= char <= "\udfff" for char in value)  # half of a character, which nobody can store
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
            and (value in schema["enum"] if "enum" in schema else True)
            and re.search(schema.get("pattern", ""), value) is not None
        )
    kinds = int if schema["type"] == "integer" else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool):
        return False
    return bool(schema["minimum"] <= value <= schema["maximum"])


def allowed_by(schema: Schema) -> str:
    """In words."""
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if schema["type"] == "string":
        more = f", {schema['description']}" if "pattern" in schema and "description" in schema else ""
        return f"a text of {schema['minLength']} to {schema['maxLength']} characters{more}"
    kind = "a whole number" if schema["type"] == "integer" else "a number"
    return f"{kind} from {schema['minimum']} to {schema['maximum']}"
