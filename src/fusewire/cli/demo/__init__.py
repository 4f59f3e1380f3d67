"""The bundled demonstrations, each in a folder that is thrown away."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import click


@click.command("demo")
@click.option("--verbose", is_flag=True, help="Everything that the agent prints and the loop says, not only the story.")
@click.argument("story", metavar="[loop|constraint]", type=click.Choice(["loop", "constraint"]), default="loop")
def demo_command(story: str, verbose: bool) -> int:
    """Show the breakers at work: a supervised loop with the bundled agent, or an agent's hook and a constraint."""
    if story == "loop":
        from fusewire.cli.demo.loop import play
    else:
        from fusewire.cli.demo.constraint import play  # says everything anyway
    folder = Path(tempfile.mkdtemp(prefix="fusewire-demo-"))
    os.environ |= {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    try:
        play(folder, verbose=verbose)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0
