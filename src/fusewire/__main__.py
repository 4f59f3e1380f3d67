"""`python -m fusewire` and the `fusewire` program."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv[2:]):
        from fusewire.gate import main as hook  # an agent is waiting: nothing else is loaded

        hook(sys.argv[2:])
    if sys.argv[1:2] == ["wrap"]:
        from fusewire.session.wrapping import quick  # an agent is waiting for somebody's hook

        code = quick(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from fusewire.cli.app import main as command_line

    sys.exit(command_line())


if __name__ == "__main__":
    main()
