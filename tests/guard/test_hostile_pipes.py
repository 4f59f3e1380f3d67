"""A pipe, a socket or a folder where a file of ours should be: every hook and command answers at once."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.project import Project

ECHO = "match:\n  - command: 'echo *'\ncircuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
NAMES = (
    *(".fusewire/state.db", ".fusewire/state.db-wal", ".fusewire/state.db-shm", ".fusewire/audit.jsonl"),
    *(f".fusewire/rules.{sys.implementation.cache_tag}.bin", ".fusewire/scope.bin", ".fusewire/mark"),
    *(".fusewire/recovery.lock", ".fusewire/mirror.lock", ".fusewire/guard/manifest.json", ".fusewire/guard.id"),
    *("docs/constraints/.circuit-state.json", ".prp-session/circuit-breaker.json", "docs/constraints/pipe.md"),
    *(".claude/memory/circuit_breaker_incidents.jsonl", ".fusewire/loop/status.md"),
)
COMMANDS = (("status",), ("doctor",), ("record", "no-echo", "x"), ("phase", "status"), ("loop", "begin"), ("log",))

#: Seconds. Whatever waits for the other end of a pipe would wait for ever; a busy machine is given some time.
SOON = 15.0


def put(place: Path, kind: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        here = os.getcwd()
        os.chdir(place.parent)  # the name of a socket may have no more than a hundred characters
        try:
            socket.socket(socket.AF_UNIX).bind(place.name)
        finally:
            os.chdir(here)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_nothing_waits_for_what_is_no_file(project: Project, kind: str) -> None:
    """All of them at once, in a folder that is ours; the circuit opens all the same, and stays so."""
    project.constraint("no-echo", ECHO)
    project.hook(project.bash("ls"))
    for name in NAMES:
        put(project.root / name, kind)
    for command in ("ls", "touch a", "echo one", "echo two"):
        started = time.monotonic()
        done = project.hook(project.bash(command))
        assert time.monotonic() - started < SOON, command
        assert b"Traceback" not in done.stderr
        assert b"fusewire.failure" not in done.stdout, done.stdout
    assert b"BLOCKED constraint:no-echo" in done.stderr
    for arguments in COMMANDS:
        started = time.monotonic()
        said = project.run(*arguments)
        assert time.monotonic() - started < SOON, arguments
        assert "Traceback" not in said.stderr, said.stderr
    (circuit,) = project.json("status", "no-echo")["circuits"]
    assert circuit["state"] == "OPEN"


@pytest.mark.parametrize("name", NAMES)
def test_a_status_line_waits_for_no_pipe(project: Project, name: str) -> None:
    """It is drawn again and again while a person types."""
    project.constraint("no-echo", ECHO)
    project.hook(project.bash("ls"))
    put(project.root / name, "pipe")
    started = time.monotonic()
    done = project.run("statusline")
    assert time.monotonic() - started < SOON
    assert "Traceback" not in done.stderr
