"""How the output of one agent's command line is recognised, read, and saved from damage."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from fusewire.agents.output.conversation import Conversation
    from fusewire.util.fast_json import JsonObject

#: The inside of a JSON string, which may be cut.
JSON_STRING = r'"([^"\\]*(?:\\.[^"\\]*)*)'


def _no_error(text: str) -> JsonObject | None:
    return None


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """What an agent's `output.py` gives as `FORMAT`."""

    recognises: Callable[[JsonObject], bool]
    reader: type[Conversation]
    #: format, what must stand in a damaged text to be it, and where its text is; in the order of trust
    shapes: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]
    #: formats that are one JSON object
    documents: tuple[str, ...] = ()
    #: the format of messages that come as one array, if that is another one
    array: str = ""
    #: types of messages that only count once the format is known
    later_types: tuple[str, ...] = ()
    #: the object of a failure that is printed on standard error, and nothing else
    error_in: Callable[[str], JsonObject | None] = _no_error
