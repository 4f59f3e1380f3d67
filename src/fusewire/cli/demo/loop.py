"""The main demonstration: the bundled agent in the supervised loop, from work to trouble and back."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fusewire.breakers.loop.loop import Loop
from fusewire.cli.demo import agent
from fusewire.cli.demo.constraint import fusewire_command, title
from fusewire.cli.demo.project import make_project
from fusewire.cli.run import supervise
from fusewire.cli.streams import tell, tell_text
from fusewire.config.rules import Rules, load_rules
from fusewire.core.circuit import Policy
from fusewire.engine.breaker import Breaker
from fusewire.run.types import Options
from fusewire.util.durations import show_duration
from fusewire.util.errors import FusewireError

#: Seconds, instead of the 30 minutes that no configuration can shorten.
COOLDOWN = 6.0


def play(folder: Path) -> None:
    """Two runs of one agent in a folder that is thrown away."""
    project = folder / "project"
    project.mkdir()
    make_project(project)
    os.environ["FUSEWIRE_DEMO_COUNTER"] = str(folder / "starts")
    title("A small project: a plan with four open boxes, a specification, tests. Its agent works alone, in a loop:")
    tell('   fusewire run --prompt PROMPT.md --verify "python -m unittest" -- python agent.py')
    tell(f"   (real processes, real git; but a cooldown of {show_duration(COOLDOWN)} instead of 30 minutes)")
    first = _run(project)
    title("It did good work, and then it deleted its own specification: restored, and the loop was halted (exit 3)")
    _expect(first == 3 and (project / "specs" / "calculator.md").exists())
    tell("   A person has read that, and starts the loop again. State, counts and lessons go on.", "")
    second = _run(project)
    _expect(second == 0)
    title("What a person sees afterwards: fusewire status loop")
    fusewire_command(project, "status", "loop")
    title("And the log of every iteration, .fusewire/loop/status.md. Its end:")
    log = (project / ".fusewire" / "loop" / "status.md").read_text("utf-8")
    tell_text("## Iteration" + log.rpartition("## Iteration")[2].rstrip())
    tell("", "More: fusewire run --help; fusewire demo constraint shows the hook that an agent calls itself;")
    tell("fusewire watch and fusewire serve show every circuit while it moves.")


def _run(project: Path) -> int:
    options = Options(
        command=(sys.executable, "-I", "-B", agent.__file__),
        prompt=str(project / "PROMPT.md"),
        verify=f"{sys.executable} -B -m unittest -q",
        max_iterations=12,
        max_seconds=50.0,
        timeout=20.0,
        idle=20.0,
    )
    with Breaker.open(project=project, rules=shortened(load_rules(str(project)))) as breaker:
        return supervise(Loop(breaker), options).code


def shortened(rules: Rules) -> Rules:
    """The same rules with a cooldown that a newcomer can watch."""
    for name, data in rules.policies.items():
        policy = Policy.from_data(data)
        if policy.schedule == "doubling":
            rules.policies[name] = policy.replace(cooldown=(COOLDOWN,)).to_data()
    return rules


def _expect(went_well: bool) -> None:
    if not went_well:
        raise FusewireError("the demonstration did not go as it should; please report it")
