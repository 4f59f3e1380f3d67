"""Parse and write JSON on the hot path: the standard library's own C scanner and encoder, without `re`.

`import json` costs a hook process about as much as starting Python, because it compiles regular
expressions; the C functions behind it need none. Where they are missing or have another shape,
`json` itself serves: same results, later start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    #: A JSON object as somebody else wrote it: an agent's payload, a line of a transcript, a settings file.
    JsonObject = dict[str, Any]
else:
    JsonObject = dict


def _not_serialisable(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class _ScannerOptions:
    """What `_json.make_scanner` reads off a `json.JSONDecoder`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)


def _from_c() -> tuple[Callable[[str], Any], Callable[[object], str], Callable[[object], str]]:
    import _json

    scan = _json.make_scanner(_ScannerOptions())  # type: ignore[arg-type]
    as_text = _json.encode_basestring_ascii
    encode, encode_in_order = (
        _json.make_encoder(None, _not_serialisable, as_text, None, ":", ",", is_sorted, False, False)
        for is_sorted in (True, False)
    )

    def loads(text: str) -> Any:
        text = text.strip(" \t\n\r")
        try:
            value, end = scan(text, 0)
        except StopIteration as stop:
            raise ValueError(f"a value is expected at character {stop.value}") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except SystemError:  # the C scanner cannot name its error while `json` is not loaded
            return _from_json()[0](text)
        if end != len(text):
            raise ValueError(f"extra data at character {end}")
        return value

    def dumps(value: object) -> str:
        return "".join(encode(value, 0))

    def dumps_in_order(value: object) -> str:
        return "".join(encode_in_order(value, 0))

    if loads(dumps({"a": [1, 2.5, None, True, "\u00e9"]})) != {"a": [1, 2.5, None, True, "\u00e9"]}:
        raise ImportError("the C functions of json have another shape here")
    return loads, dumps, dumps_in_order


def _from_json() -> tuple[Callable[[str], Any], Callable[[object], str], Callable[[object], str]]:
    import json

    def loads(text: str) -> Any:
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise ValueError("nested too deeply") from None

    def dumps(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)

    def dumps_in_order(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    return loads, dumps, dumps_in_order


try:
    loads, dumps, dumps_in_order = _from_c()
except (ImportError, AttributeError, TypeError):
    loads, dumps, dumps_in_order = _from_json()
