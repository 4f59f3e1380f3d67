"""What the processes of the provider tests do: `python tests/helpers/asking_providers.py CIRCUIT`.

Each says `ready`, waits for a line, asks once and prints what it was answered. One that got the probe then waits for
another line: `answered`, `refused`, or nothing at all until it is killed.
"""

from __future__ import annotations

import json
import os
import sys

from fusewire.scopes.providers import Providers, Refusal
from fusewire.util.processes import process_identity


def main(circuit: str) -> None:
    providers, lease = Providers(), f"{process_identity(os.getpid())} test"
    print("ready", flush=True)
    sys.stdin.readline()
    decision = providers.ask(circuit, lease)
    print(json.dumps({"verdict": decision.verdict, "lease": decision.lease == lease}), flush=True)
    word = sys.stdin.readline().strip()
    if word == "answered":
        providers.answered(circuit, "s", lease=lease)
    elif word == "refused":
        providers.refused(circuit, Refusal("529", is_outage=True))
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
