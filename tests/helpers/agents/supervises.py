"""A supervisor for the tests that kill one: it runs the agent that is named by its arguments, with a warden.

It says, as one line each, the warden's pid, and then everything that the agent says.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "src"))
from fusewire.run.process import run_agent
from fusewire.run.watchdog import Warden


def say(data: bytes) -> None:
    os.write(1, data)


mark, *command = sys.argv[1:]
with Warden() as warden:
    say(b"%d\n" % warden.pid)
    ended = run_agent(
        command,
        cwd=os.getcwd(),
        environment=os.environ,
        given=b"",
        timeout=60.0,
        idle=None,
        on_output=say,
        on_error=say,
        on_tick=lambda: None,
        stop=lambda: False,
        mark=mark,
        grace=0.5,
        warden=warden,
    )
    say(f"{ended.why}\n".encode())
