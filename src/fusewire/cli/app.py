"""The `fusewire` program: finds the command, and turns every error into one line and its exit code."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from fusewire import __version__
from fusewire.cli.streams import silence, tell
from fusewire.util.errors import AgentRefused, FusewireError
from fusewire.util.text import in_line

#: command -> the module of this package that has it
COMMANDS = {
    "status": "circuits",
    "check": "circuits",
    "record": "circuits",
    "reset": "circuits",
    "history": "circuits",
    "log": "log",
    "why": "log",
    "config": "config",
    "constraints": "constraints",
    "enforce": "constraints",
    "override": "constraints",
    "archive": "constraints",
    "import": "constraints",
    "halt": "halt",
    "resume": "halt",
    "pause": "halt",
    "allow-once": "halt",
    "run": "run",
    "loop": "loop",
    "wait": "wait",
    "phase": "phase",
    "attempt": "attempt",
    "scope": "scope",
    "guard": "guard",
    "sandbox": "sandbox",
    "wrap": "hook",
    "grant": "spend",
    "spend": "spend",
    "janitor": "janitor",
    "memory": "janitor",
    "notify": "notify",
    "replay": "replay",
    "hook": "hook",
    "install": "install",
    "uninstall": "install",
    "doctor": "doctor",
    "statusline": "hook",
    "serve": "serve",
    "watch": "watch",
    "export": "export",
    "demo": "demo",
}

EPILOG = """\b
Exit codes: 0 done or allowed, 1 an error, 2 wrong usage, 3 blocked,
4 a loop ended at its own cap, 5 only a person can answer, 130 interrupted."""


class Commands(click.Group):
    """Commands are imported by name, so that one call does not load them all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"fusewire.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fusewire")
@click.option("--project", type=click.Path(file_okay=False), help="The project's folder.")
@click.pass_context
def fusewire(ctx: click.Context, project: str | None) -> None:
    """Circuit breakers for autonomous coding agents."""
    ctx.obj = {"project": project}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code of docs/cli.md."""
    try:
        result: Any = fusewire.main(arguments, prog_name="fusewire", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except click.exceptions.Abort:
        tell("Interrupted.", err=True)
        return 130
    except click.ClickException as error:
        error.message = in_line(error.message)  # type: ignore[misc]  # click itself has no such place
        error.show()
        return error.exit_code
    except AgentRefused as error:
        tell(f"BLOCKED: {error}", err=True)
        return 3
    except FusewireError as error:
        tell(f"Error: {error}", err=True)
        return 1
    except BrokenPipeError:
        silence(1)
        return 1
    except OSError as error:
        silence(1)
        tell(f"Error: {error.filename or 'system'}: {error.strerror or error}", err=True)
        return 1
