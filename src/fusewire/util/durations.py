"""Parse and format durations and times: "30d", "24h", "2026-02-12T10:30:00Z"."""

from __future__ import annotations

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_duration(text: str) -> float:
    """Seconds of "90s", "1h 30m", "30d"; raises ValueError for anything else."""
    total = 0.0
    rest = text.strip()
    if not rest:
        raise ValueError("empty")
    while rest:
        digits = 0
        while digits < len(rest) and ((rest[digits].isascii() and rest[digits].isdigit()) or rest[digits] == "."):
            digits += 1
        letters = digits
        while letters < len(rest) and rest[letters].isalpha():
            letters += 1
        unit = UNITS.get(rest[digits:letters])
        if unit is None or not digits:
            raise ValueError(text)
        total += float(rest[:digits]) * unit
        rest = rest[letters:].lstrip()
    return total


def show_duration(seconds: float) -> str:
    """The two largest units that matter: "23h 59m", "30d", "45s"."""
    if seconds <= 0:
        return "0s"
    seconds = round(seconds, 3 if seconds < 1 else 1)
    if seconds < 60:
        return f"{number(seconds)}s"
    whole = int(seconds)
    parts: list[tuple[int, str]] = []
    for unit in ("d", "h", "m", "s"):
        amount, whole = divmod(whole, int(UNITS[unit]))
        if amount or parts:
            parts.append((amount, unit))
    return " ".join(f"{amount}{unit}" for amount, unit in parts[:2] if amount)


def seconds_until(moment: float, now: float) -> float:
    """In whole milliseconds, rounded up: whoever waits that long is not refused again."""
    return -int(-max(0.0, moment - now) * 1000 // 1) / 1000


def number(value: float) -> str:
    """5 and not 5.0; 0.67 and not 0.6666666; never an exponent."""
    if value == int(value):
        return str(int(value))
    digits = 2 if abs(value) >= 0.5 else 3 if abs(value) >= 0.1 else 6  # within 1 % of what it is
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def counted(count: int, what: str) -> str:
    """1 file, 2 files."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def show_time(moment: float | None) -> str | None:
    """The time as `format_time` has it; None for none."""
    return None if moment is None else format_time(moment)


def format_time(moment: float) -> str:
    """ISO 8601 in UTC; milliseconds only where there are any."""
    from datetime import UTC, datetime

    text = datetime.fromtimestamp(round(moment, 3), UTC).isoformat(timespec="milliseconds")
    return text.replace(".000", "").replace("+00:00", "Z")


def parse_time(text: str) -> float:
    """Seconds since the epoch of an ISO 8601 time; one without a zone is UTC."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
