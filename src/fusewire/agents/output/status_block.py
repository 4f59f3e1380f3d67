"""Read how an answer ends: its status block, leniently but never out of a template, and a question to the user."""

from __future__ import annotations

import re

from fusewire.agents.output.answer import StatusBlock
from fusewire.core.events import plain

_MARK = r"^[ \t*_`#-]*---[ \t]*{}RALPH_STATUS[ \t]*---[ \t*_`\r]*$"
_START = re.compile(_MARK.format(""), re.MULTILINE | re.IGNORECASE)
_END = re.compile(_MARK.format("END_"), re.MULTILINE | re.IGNORECASE)
_FIELD = re.compile(r"^\s*(?:[-*+] +)?[*_`]*([A-Za-z][A-Za-z_ ]{0,40}?)[*_`]*\s*:\s*[*_`]*\s*(.*?)\s*$")
_ITEM = re.compile(r"^\s*[-*+] +\S")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\w*\s*$")

_NAMES = {
    "STATUS": "status",
    "TASKS_COMPLETED_THIS_LOOP": "tasks_completed",
    "FILES_MODIFIED": "files_modified",
    "TESTS_STATUS": "tests_status",
    "WORK_TYPE": "work_type",
    "EXIT_SIGNAL": "exit_signal",
    "RECOMMENDATION": "recommendation",
    "APPROACH": "approach",
    "TASK": "task",
}
_COUNTS = ("tasks_completed", "files_modified")
_WORDS = ("status", "tests_status", "work_type")
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}

#: A count beyond this is no count.
_MOST = 1_000_000
_LONGEST = 500

_WAITING = ("BLOCKED", "WAITING", "NEEDS_INPUT")
_SENTENCE = re.compile(r"(?<=[.!?:])[*_\"')\]`]*\s+")


def read_status(text: str) -> StatusBlock | None:
    """The last complete block that says anything; None if there is none.

    One that is quoted in the middle of a text (in a fence, and the text goes on) is an example.
    """
    for start, end in reversed(_blocks(text)):
        block = _read(text[start:end])
        if block != StatusBlock() and not _is_quoted(text, start, end):
            return block
    return None


def _is_quoted(text: str, start: int, end: int) -> bool:
    fences = [line for line in text[:start].splitlines() if _FENCE.match(line)]
    rest = text[end:].splitlines()[1:]
    return len(fences) % 2 == 1 and any(line.strip() and not _FENCE.match(line) for line in rest)


def without_status(text: str) -> str:
    """The text before its last block: what the agent says in sentences."""
    starts = list(_START.finditer(text))
    return text[: starts[-1].start()] if starts else text


def _blocks(text: str) -> list[tuple[int, int]]:
    """Where the insides of complete blocks are; the last may lack its end if the text ends with it."""
    starts = [match.end() for match in _START.finditer(text)]
    blocks = []
    for index, start in enumerate(starts):
        until = starts[index + 1] if index + 1 < len(starts) else len(text)
        end = _END.search(text, start, until)
        if end:
            blocks.append((start, end.start()))
        elif until == len(text) and all(map(_belongs, text[start:].splitlines())):
            blocks.append((start, until))
    return blocks


def _belongs(line: str) -> bool:
    field = _FIELD.match(line)
    return not line.strip() or bool(_FENCE.match(line) or _ITEM.match(line) or (field and _name(field[1])))


def _name(key: str) -> str | None:
    return _NAMES.get(key.strip().upper().replace(" ", "_"))


def _read(inside: str) -> StatusBlock:
    fields: dict[str, str | int | bool] = {}
    listed: list[str] = []
    current = None
    for line in inside.splitlines():
        match = _FIELD.match(line)
        name = _name(match[1]) if match else None
        if match and name:
            current = name
            value = _value(name, re.sub(r"[*_`]+$", "", match[2]).strip())
            if value is not None:
                fields[name] = value
        elif current == "files_modified" and _ITEM.match(line):
            listed.append(line)
    if listed and "files_modified" not in fields:
        fields["files_modified"] = len(listed)
    return StatusBlock(**fields)  # type: ignore[arg-type]


def _value(name: str, text: str) -> str | int | bool | None:
    if not text or _is_template(text):
        return None
    if name == "exit_signal":
        return _TRUTH.get(text.split()[0].strip(".,;").lower())
    if name in _COUNTS:
        return _count(text, listed=name == "files_modified")
    if name in _WORDS:
        return plain(re.sub(r"[\s-]+", "_", text.upper()), 80)
    return plain(text, _LONGEST)


def _is_template(text: str) -> bool:
    """`true | false`, `<number>`, `[list]`: what the prompt shows, not what an agent says."""
    return " | " in text or bool(re.fullmatch(r"<[^>]*>|\[[A-Za-z][\w -]*\]|\{[^}]*\}|\.\.\.", text))


def _count(text: str, *, listed: bool) -> int | None:
    """A number, or how many are listed; `none` is 0."""
    number = re.match(r"\+?(\d+)(?![\w.])", text)
    if number:
        count = int(number[1]) if len(number[1]) < 10 else _MOST + 1
        return count if count <= _MOST else None
    if text.lower().strip(".") in ("none", "[]", "no files", "n/a"):
        return 0
    if not listed or text.startswith("-"):
        return None
    return len([part for part in re.split(r"[,;]", text.strip("[]")) if part.strip()])


def question_in(text: str, status: StatusBlock | None) -> str | None:
    """What an answer asks that waits for a person: its last sentence if that is a question; else what a waiting block
    recommends."""
    asked = _last_question(without_status(text))
    if asked or status is None or status.status not in _WAITING:
        return asked
    return status.recommendation or status.status


def _last_question(text: str) -> str | None:
    """Rhetorical ones stand in the middle; the last sentence of the last paragraph is meant."""
    text = text[-8000:].rstrip(" \t\r\n*_`~-")
    paragraph = re.split(r"\n[ \t]*\n", text)[-1]
    sentence = _SENTENCE.split(paragraph.strip())[-1].strip()
    if not sentence.rstrip("*_\"')]` ").endswith("?"):
        return None
    return plain(" ".join(sentence.split()), _LONGEST)
