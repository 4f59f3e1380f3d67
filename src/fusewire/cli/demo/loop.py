"""The main demonstration: the bundled agent in the supervised loop, from work to trouble and back."""

from __future__ import annotations

import os
import sys
import time
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from fusewire.breakers.loop.loop import Loop
from fusewire.breakers.loop.overview import overview
from fusewire.breakers.loop.report import summary
from fusewire.cli.demo import agent
from fusewire.cli.demo.constraint import fusewire_command, title
from fusewire.cli.demo.project import make_project
from fusewire.cli.plain import QuietView
from fusewire.cli.run import ANNOUNCEMENT, supervise
from fusewire.cli.streams import tell, tell_text
from fusewire.config.rules import Rules, load_rules
from fusewire.core.circuit import Policy
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import Breaker
from fusewire.run.supervisor import Supervisor
from fusewire.run.types import Options
from fusewire.util.durations import counted, show_duration
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.loop.types import IterationResult, IterationStart
    from fusewire.core.decision import Decision
    from fusewire.run.process import ProcessEnd

#: Seconds, instead of the 30 minutes that no configuration can shorten.
COOLDOWN = 6.0


def play(folder: Path, *, verbose: bool) -> None:
    """Two runs of one agent in a folder that is thrown away."""
    project = folder / "project"
    project.mkdir()
    make_project(project)
    os.environ["FUSEWIRE_DEMO_COUNTER"] = str(folder / "starts")
    heading = title if verbose else _heading
    heading("A small project: a plan with four open boxes, a specification, tests. Its agent works alone, in a loop:")
    tell('   fusewire run --prompt PROMPT.md --verify "python -m unittest" -- python agent.py')
    tell(f"   (real processes, real git; but a cooldown of {show_duration(COOLDOWN)} instead of 30 minutes)")
    first = _run(project, verbose)
    heading("It did good work, and then it deleted its own specification: restored, and the loop was halted (exit 3).")
    _expect(first == 3 and (project / "specs" / "calculator.md").exists())
    tell("   A person has read that, and starts the loop again. State, counts and lessons go on.")
    second = _run(project, verbose)
    _expect(second == 0)
    heading("What a person sees afterwards: fusewire status loop")
    if verbose:
        fusewire_command(project, "status", "loop")
        title("And the log of every iteration, .fusewire/loop/status.md. Its end:")
        log = (project / ".fusewire" / "loop" / "status.md").read_text("utf-8")
        tell_text("## Iteration" + log.rpartition("## Iteration")[2].rstrip())
        tell("")
    else:
        with Breaker.open(project=project) as breaker:
            found = overview(breaker)
        tell(*summary(found), f"  learned: {found.lessons[0]['text']}")
    tell("More: fusewire demo --verbose (every word), fusewire demo constraint (the hook that an agent calls itself),")
    tell("fusewire run --help; fusewire watch and fusewire serve show every circuit while it moves.")


def _heading(text: str) -> None:
    tell(text, bold=True)


def _run(project: Path, verbose: bool) -> int:
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
        loop = Loop(breaker)
        if verbose:
            return supervise(loop, options).code
        tell(ANNOUNCEMENT)
        outcome = Supervisor(loop, options, StoryView()).run()
        done = outcome.code == 0
        verdict = f"{'DONE' if done else 'HALTED'} after {counted(outcome.iterations, 'iteration')}: {outcome.reason}"
        tell(*verdict.split("\nNext: ")[0].split("\n"), fg="green" if done else "red", bold=True)
        return outcome.code


class StoryView(QuietView):
    """Two lines an iteration: what the agent says that it does, and what that was worth."""

    def __init__(self) -> None:
        self._printed = ""
        self._waits = False

    def began(self, begun: IterationStart) -> None:
        self._printed, self._waits = "", False
        if begun.held:
            tell(f"{begun.state}: one probe. {begun.advice.lines[-1]}", fg="yellow")

    def output(self, text: str) -> None:
        self._printed += text

    def judged(self, result: IterationResult, ended: ProcessEnd) -> None:
        said = takewhile(lambda line: "Error" not in line and line[:1] not in "-.", self._printed.splitlines())
        tell(f"[{result.number}] agent: {list(said)[-1]}")
        tests = result.entry["tests"]
        passed = f"; {tests[0]} of {sum(tests)} tests pass" if tests else ""
        points = ", ".join(result.points)
        tell(f"    score {result.score:+d} ({points}){passed}", fg="green" if result.score > 0 else "yellow")

    def waits(self, why: str, left: float, whole: float, skip: str | None = None) -> bool:
        if not self._waits:
            tell(f"waiting {show_duration(left)} ...", dim=True)
        self._waits = True
        return False

    def opened(self, trip: Decision) -> None:
        first, _, *rest = message_lines(trip, time.time())
        tell(first, fg="red", bold=True)
        tell(*(f"    {line}" for line in rest))

    def tells(self, *lines: str) -> None:
        pass


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
