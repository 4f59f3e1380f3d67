"""What git prints, read: within its time, as changes, as names of commits."""

from __future__ import annotations

import os


def output_of(process: object, stdin: str, limit: int, seconds: float) -> bytes | None:
    """What a process prints within its time and its limit."""
    import subprocess
    from select import select
    from time import monotonic

    assert isinstance(process, subprocess.Popen)
    if stdin:
        try:
            printed, _ = process.communicate(stdin.encode("utf-8", "surrogateescape"), timeout=max(seconds, 0.01))
        except subprocess.TimeoutExpired:
            return None
        return bytes(printed)
    assert process.stdout is not None
    ends = monotonic() + seconds
    output = b""
    while len(output) <= limit:
        left = ends - monotonic()
        if left <= 0 or not select([process.stdout], [], [], left)[0]:
            return None
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            process.wait(timeout=1)
            return output
        output += part
    return None


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


def blob_id(content: bytes) -> str:
    from hashlib import sha1

    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


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
