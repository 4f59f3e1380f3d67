"""`fusewire sandbox`: run a command with the protected files read-only, or say what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fusewire.cli.common import common_options, print_json, project_root, rules_of
from fusewire.cli.streams import tell, warn
from fusewire.guard.policy import protected_of
from fusewire.guard.sandbox.plan import hard_links, plan
from fusewire.guard.sandbox.start import SandboxError, command, execute
from fusewire.guard.sandbox.support import support
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.guard.sandbox.plan import MountPlan
    from fusewire.guard.sandbox.support import Support

#: Lines of one kind that are printed.
_MOST_LINES = 25


@click.command("sandbox", context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--check", is_flag=True, help="Show what this machine can do and what would be read-only; run nothing.")
@click.option("--documents/--no-documents", default=True, help="Whether documents are read-only, too (default: yes).")
@common_options
def sandbox_command(project: str | None, words: tuple[str, ...], check: bool, documents: bool, as_json: bool) -> int:
    """Run a command with the protected files read-only, enforced by the kernel.

    \b
    fusewire sandbox -- make clean
    fusewire sandbox --check

    Everything that the command starts is in the sandbox, too. The exit code is the command's own; 127 if it is not
    found, 126 if it cannot be run; 3 if this machine has no sandbox: then nothing is run. --check exits 0 where there
    is a sandbox, else 3.
    """
    if check == bool(words):
        raise click.UsageError("give a command, fusewire sandbox [OPTIONS] -- COMMAND..., or --check")
    if as_json and not check:
        raise click.UsageError("--json belongs to --check")
    root = project_root(project)
    rules = rules_of(root)
    made = plan(protected_of(root, rules), documents=documents)
    if check:
        return _check(made, support(), rules.sandbox[0], as_json)
    if rules.sandbox[0] == "off":
        warn("the sandbox is switched off ([sandbox] mode); the command runs without it")
        execute(words)
    found = support()
    if not found:
        tell(f"BLOCKED sandbox: this machine has none: {found.reason}", f"Next: {found.help}", err=True)
        return 3
    try:
        command(made, words, means=found.means)
    except SandboxError as error:
        raise FusewireError(f"the sandbox could not be entered: {error}") from error


def _check(made: MountPlan, found: Support, mode: str, as_json: bool) -> int:
    linked, is_cut = hard_links(made)
    writable = [path for path, is_read_only in made.mounts if not is_read_only]
    code = 0 if found else 3
    if as_json:
        print_json(
            {
                "means": found.means or None,
                "reason": found.reason,
                "help": found.help,
                "mode": mode,
                "read_only": made.read_only(),
                "writable": writable,
                "kept_from_being_created": list(made.missing),
                "absent": list(made.absent),
                "hard_links": linked,
                "warnings": list(made.warnings),
            }
        )
        return code
    if found:
        tell(f"Sandbox: {found.means}" + (f" ({found.reason})" if found.reason else ""), fg="green")
    else:
        tell(f"No sandbox on this machine: {found.reason}", f"Next: {found.help}", fg="red")
    tell(f"Setting: [sandbox] mode = {mode}")
    _list("Read-only", made.read_only(), made.root)
    _list("Writable inside of these", writable, made.root)
    _list("Kept from being created", made.missing, made.root)
    absent = [path for path in made.absent if path.startswith(f"{made.root}/")]
    _list("Not there, so the kernel cannot keep it from being created", absent, made.root)
    _list("Can be changed under another name (hard links)", linked, made.root)
    warn(*made.warnings, *["too many files to look for hard links in all of them"] * is_cut)
    return code


def _list(title: str, paths: list[str] | tuple[str, ...], root: str) -> None:
    shown = [path.removeprefix(f"{root}/") for path in paths if path.startswith(f"{root}/")]
    shown += [path for path in paths if not path.startswith(f"{root}/")]
    if shown:
        more = [f"  and {len(shown) - _MOST_LINES} more (--json lists all)"] if len(shown) > _MOST_LINES else []
        tell(f"{title}:", *(f"  {path}" for path in shown[:_MOST_LINES]), *more)
