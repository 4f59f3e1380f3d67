"""What git prints, read as changes and as names of commits."""

from __future__ import annotations


def raw_changes(text: str) -> list[tuple[str, str, str, str, bool]]:
    """(status, name, old id, new id, same mode) of `--raw -z`; an id that git has not computed is empty."""
    parts = text.split("\0")
    found = []
    for at in range(0, len(parts) - 1, 2):
        fields = parts[at].split(" ")
        if len(fields) < 5:
            continue
        old_mode, new_mode, old, new, status = fields[:5]
        found.append(
            (status[:1], parts[at + 1], old.strip("0") and old, new.strip("0") and new, old_mode[1:] == new_mode)
        )
    return found


def parent_of(rest: str) -> str:
    """`~2` seen from one commit further up: `~1`."""
    if rest[0] == "^":
        return rest[1:].lstrip("1") if rest[:2] != "^2" else rest
    digits = ""
    for char in rest[1:]:
        if not char.isdigit():
            break
        digits += char
    steps = int(digits[:6] or "1") - 1
    return (f"~{steps}" if steps > 0 else "") + rest[1 + len(digits) :]
