"""Read the patches of `apply_patch`: which files one changes, and what becomes of each."""

from __future__ import annotations

#: Of a file that is added, the patch shows what is in it.
_FATES = {
    "*** Add File": "empty",
    "*** Update File": "update",
    "*** Move to": "update",
    "*** Delete File": "delete",
}


def patched_files(text: str) -> dict[str, str]:
    """What a patch does to its files: update, empty or delete. One that is moved away is deleted where it was."""
    fates: dict[str, str] = {}
    current = ""
    for raw in text.split("\n"):
        line = raw.strip()
        verb, _, path = line.partition(": ") if line.startswith("*** ") else ("", "", "")
        path = path.strip()
        if verb in _FATES and path:
            fates[path] = _FATES[verb]
            if verb == "*** Move to" and current:
                fates[current] = "delete"
            current = path
        elif fates.get(current) == "empty" and raw.startswith("+") and line != "+":
            fates[current] = "update"
    return fates
