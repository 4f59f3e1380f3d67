"""Run a command as if no coding agent stood above it: `python outside_agent.py COMMAND...`.

What only a person may do is refused wherever an agent is among the processes above (see `agents.caller`); the tests
of it would all fail where an agent runs the tests. So the command is adopted by init, with an environment of its own;
its exit code comes back through a pipe.
"""

from __future__ import annotations

import os
import signal
import sys

from fusewire.agents.caller import AGENT_VARIABLES, require_person
from fusewire.util.errors import AgentRefused

REPORTS = 'code=0; "$@" || code=$?; echo $code >&{pipe}'


def main(command: list[str]) -> int:
    # A script lets what it starts in the background ignore Ctrl-C, and nohup the end of the terminal: tests send both.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        require_person("this")
    except AgentRefused:
        return adopted(command)
    return os.spawnvp(os.P_WAIT, command[0], command)


def adopted(command: list[str]) -> int:
    """Run it as a child of init: its parent ends before it begins."""
    own = {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    if os.fork() == 0:
        if os.fork() == 0:
            os.close(reading)
            os.execve("/bin/sh", ["sh", "-c", REPORTS.format(pipe=writing), "sh", *command], own)
        os._exit(0)
    os.close(writing)
    os.wait()
    with open(reading, "rb") as pipe:
        report = pipe.read().strip()
    return int(report) if report else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
