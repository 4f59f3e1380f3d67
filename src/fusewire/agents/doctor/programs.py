"""Ask an agent's program for its version."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile

#: Seconds; some of them take one to start.
_PATIENCE = 8

_LONGEST = 60


def version_of(program: str, variable: str) -> str | None:
    """The first line that `PROGRAM --version` prints; None if it fails, hangs or prints nothing.

    Some leave files behind even for that, so the `variable` that names its own folder leads it to one that is thrown
    away. Not the whole home: version managers look there for the program, and some would unpack themselves again.
    What it prints goes through a file: a program that has left something running behind it would hold a pipe open.
    """
    with tempfile.TemporaryFile() as output, _own_folder() as folder:
        try:
            process = subprocess.Popen(
                [program, "--version"],
                env={**os.environ, variable: folder},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return None
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        output.seek(0)
        text = output.read(4096).decode(errors="replace")
    line = next((line for line in text.splitlines() if line.strip()), "")
    shown = "".join(char for char in line.strip() if char.isprintable())[:_LONGEST]
    return shown if code == 0 and shown else None


def _own_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for its files; the program may be killed while it writes, so errors of removal are ignored."""
    return tempfile.TemporaryDirectory(prefix="fusewire-version-", ignore_cleanup_errors=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and whatever it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()
