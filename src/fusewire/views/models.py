"""Turn read models into JSON, and describe that JSON as JSON Schema: both from the same fields.

A read model is a frozen dataclass, or a TypedDict where a breaker keeps what is shown as JSON. Its annotations say
everything: `Annotated[int, ("minimum", 0)]` adds a keyword of JSON Schema to a type. A field that would be named like a
keyword of Python has an underscore behind it (`from_`), which JSON has not.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, Any]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def to_json(value: Any) -> Any:
    """The value with every read model in it as an object."""
    if is_dataclass(value):
        return {field.name.rstrip("_"): to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value


def schema_of(model: type, named: dict[type, str]) -> Schema:
    """The schema of a read model; models in it that have a name are referred to by it."""
    hints = get_type_hints(model, include_extras=True)
    required = getattr(model, "__required_keys__", hints)
    return {
        "type": "object",
        "properties": {name.rstrip("_"): _schema(hint, named) for name, hint in hints.items()},
        "required": [name.rstrip("_") for name in hints if name in required],
    }


def _schema(hint: Any, named: dict[type, str]) -> Schema:
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if hint is Any:
        return {}
    if hint in named:
        return {"$ref": f"#/components/schemas/{named[hint]}"}
    arguments = get_args(hint)
    match get_origin(hint):
        case _ if is_dataclass(hint) or is_typeddict(hint):
            return schema_of(hint, named)
        case origin if origin is Annotated:
            return _schema(arguments[0], named) | dict(arguments[1:])
        case origin if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        case origin if origin in (Union, types.UnionType):
            return _any_of([_schema(one, named) for one in arguments])
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _schema(arguments[1], named)}
        case origin if origin is list:
            return {"type": "array", "items": _schema(arguments[0], named)}
    raise TypeError(f"{hint} has no schema")


def _any_of(choices: list[Schema]) -> Schema:
    """One of these; mere types, and null, are said in one list of types."""
    first, *others = choices
    has_type = "type" in first and "enum" not in first
    if has_type and (others == [{"type": "null"}] or all(one.keys() == {"type"} for one in choices)):
        return {**first, "type": [one["type"] for one in choices]}
    return {"anyOf": choices}
