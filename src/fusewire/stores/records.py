"""Check the records of breakers as they are read back from a store."""

from __future__ import annotations


def require_types(record: object, initial: object) -> None:
    """ValueError unless every field is of the type that it has at the beginning; a whole number is a number, too.

    A field that is None at the beginning is checked by the code that decodes it.
    """
    for name, value in vars(initial).items():
        found = type(getattr(record, name))
        if value is not None and found is not type(value) and (type(value), found) != (float, int):
            raise ValueError(f"not what was remembered: {name}")
