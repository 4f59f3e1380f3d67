"""A command in the sandbox, without the command line of Fusewire: enter.py SOURCE ROOT DOCUMENTS COMMAND..."""

import posix
import sys

sys.path.append(sys.argv[1])
from fusewire.guard.sandbox.prepared import prepare
from fusewire.guard.sandbox.start import SandboxError, command

try:
    plan, means = prepare(sys.argv[2], documents=sys.argv[3] == "documents")[:2]
    means = posix.environ.get(b"MEANS", b"").decode() or means or "namespaces"
    command(plan, sys.argv[4:], means=means)
except SandboxError as error:
    posix.write(2, f"no sandbox: {error}\n".encode())
    sys.exit(99)
