"""Types of fields that are shown as JSON: `Annotated[int, ("minimum", 0)]` adds a keyword of JSON Schema to a type."""

from __future__ import annotations

from typing import Annotated, Literal


def about(description: str) -> tuple[str, str]:
    """What a field means, where its name does not say it."""
    return "description", description


Count = Annotated[int, ("minimum", 0)]
Time = Annotated[str, ("format", "date-time")]
Seconds = Annotated[float, about("seconds")]
UnixTime = Annotated[float, about("seconds since 1970")]
Usd = Annotated[float, about("US dollars")]

State = Literal["CLOSED", "HALF_OPEN", "OPEN"]
Phase = Literal["closed", "watch", "open", "probe"]
Kind = Literal["constraint", "loop", "phase", "tool", "attempt", "provider", "own"]
