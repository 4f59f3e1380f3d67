"""Write a run's summary for a CI job: Markdown for people, or the JSON report where the file's name ends in .json."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from fusewire.breakers.loop.state import LoopRecord
from fusewire.core.messages import message_lines
from fusewire.util.durations import counted, show_duration
from fusewire.util.errors import FusewireError
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.state import HistoryEntry
    from fusewire.run.types import Outcome

#: What ended a run, by its exit code.
VERDICTS = {0: "DONE", 3: "HALTED", 4: "CAPPED", 5: "BLOCKED ON A HUMAN", 130: "INTERRUPTED"}

#: In GitHub Actions, the file in which a step's summary is expected.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"

#: Characters of a text from the agent.
_LONGEST = 200

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def summary_files(named: Sequence[str]) -> tuple[str, ...]:
    """The files to write: those that were named, else the job's own; each can be written."""
    for path in named:
        try:
            open(path, "a").close()
        except OSError as error:
            raise FusewireError(f"the summary cannot be written: {path}: {error.strerror}") from error
    return tuple(map(os.path.abspath, named)) or tuple(filter(None, [os.environ.get(STEP_SUMMARY)]))


def write_summary(path: str, loop: Loop, outcome: Outcome, report: dict[str, object]) -> None:
    """Append Markdown, so that a job may have several runs; a report in JSON replaces what is there."""
    is_json = path.endswith(".json")
    text = json.dumps(report, indent=2) if is_json else markdown(loop, outcome)
    with open(path, "w" if is_json else "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def markdown(loop: Loop, outcome: Outcome) -> str:
    """How the run ended, what to do, its iterations, and where its files are."""
    cost = "" if outcome.cost is None else f", ${outcome.cost:.2f} at list price"
    lines = [
        f"## Fusewire: {VERDICTS[outcome.code]}",
        "",
        f"{counted(outcome.iterations, 'iteration')} in {show_duration(outcome.seconds)}{cost}."
        f" Exit code {outcome.code}: {_text(outcome.reason)}.",
    ]
    if outcome.cap:
        lines += ["", f"Cap that fired: `--{outcome.cap}`"]
    if outcome.question:
        lines += ["", f"> {_text(outcome.question, 500)}"]
    if outcome.decision is not None:
        lines += ["", *(f"- {_text(line, 500)}" for line in message_lines(outcome.decision, loop.engine.clock()))]
    history = LoopRecord.recalled(loop.breaker.store).history
    rows = history[-outcome.iterations :] if outcome.iterations else []
    if rows:
        head = "| Iteration | Circuit | Worth | Files | Tests | Time | Risk |"
        lines += ["", head, "|---|---|---|---|---|---|---|", *map(_row, rows)]
    if len(rows) < outcome.iterations:
        lines += ["", f"The last {len(rows)} of {outcome.iterations} iterations."]
    place = os.path.relpath(loop.places.folder, loop.root)
    lines += ["", f"Log: `{place}/status.md`; the agent's output: `{place}/output/`."]
    return "\n".join(lines)


def _row(entry: HistoryEntry) -> str:
    worth = entry["blocked"] if entry["kind"] == "neutral" else f"{entry['score']:+d} {', '.join(entry['points'])}"
    tests = entry["tests"]
    passed = f"{tests[0]} passed, {tests[1] + tests[3]} failed" if tests else "not run"
    state = f"{entry['state']} → OPEN" if entry["trips"] else entry["state"]
    cells = (str(entry["number"]), state, worth, str(entry["files"]), passed, show_duration(entry["seconds"]))
    return "| " + " | ".join(_text(cell) for cell in (*cells, entry["risk"])) + " |"


def _text(text: str, longest: int = _LONGEST) -> str:
    """In one line, without markup: an agent may have written it."""
    line = " ".join(in_line(text).split())
    return _MARKUP.sub(r"\\\1", line if len(line) <= longest else f"{line[: longest - 3]}...")
