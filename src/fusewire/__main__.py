"""`python -m fusewire` and the `fusewire` program."""

from __future__ import annotations

import sys

from fusewire.util.environment import altering


def main() -> None:
    if altering():
        from fusewire.agents.caller import start_clean

        start_clean(_isolated())
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv[2:]):
        from fusewire.gate.process import main as hook  # an agent is waiting: nothing else is loaded

        hook(sys.argv[2:])
    if sys.argv[1:2] == ["wrap"]:
        from fusewire.breakers.session.wrap import quick  # an agent is waiting for somebody's hook

        code = quick(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from fusewire.gate.relay import relay_command

    code = relay_command(sys.argv[1:])
    if code is not None:
        sys.exit(code)
    from fusewire.cli.app import main as command_line

    sys.exit(command_line())


def _isolated() -> list[str]:
    """This command for an interpreter that ignores its environment. Where the packages lie is passed on, because they
    may be installed for the user alone (`pip --user`); the caller's own folders and the current one are not."""
    import os

    given = {"", *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    try:
        given.add(os.getcwd())
    except FileNotFoundError:  # the folder is gone, and with it whatever could be imported from there
        pass
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [root, *(path for path in sys.path[1:] if path not in given)]
    code = f"import sys; sys.path += {paths!r}; from fusewire.__main__ import main; main()"
    return ["-I", "-c", code, *sys.argv[1:]]


if __name__ == "__main__":
    main()
