"""`fusewire run` in CI: no terminal, a summary for the job, and the steps of action.yml run by bash."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.helpers.action_runner import Job, job
from tests.helpers.agents.run_stage import IDLE, WORK, Stage, claude, prepared, staged, status

Acting = Callable[..., Job]
DOCS = Path(__file__).parents[2] / "docs" / "ci.md"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = staged(tmp_path, None)
    yield stage
    stage.close()


@pytest.fixture
def act(tmp_path: Path) -> Acting:
    """Runs the action on a repository, with the `fusewire` of this environment already installed."""
    program = tmp_path / "bin" / "fusewire"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m fusewire "$@"\n')
    program.chmod(0o755)
    workspace = prepared(tmp_path / "workspace")

    def acts(script: str, **inputs: str) -> Job:
        command = shlex.join(["sh", "-c", f"n=$FUSEWIRE_ITERATION\n{script}"])
        return job(workspace, tmp_path / "temp", str(program.parent), command=command, **inputs).run()

    return acts


# -- the summary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("does", "options", "code", "says"),
    [
        (f"{WORK}; {status(exit_signal='true')}", (), 0, ("## Fusewire: DONE", "1 iteration in ")),
        (WORK, ("--max-iterations", "2"), 4, ("## Fusewire: CAPPED", "Cap that fired: `--max-iterations`")),
        (f"{WORK}; sleep 0.2", ("--max-time", "500ms"), 4, ("Cap that fired: `--max-time`",)),
        (
            f"{WORK}\n{claude('A step.', total_cost_usd=0.04)}",
            ("--max-cost", "0.05"),
            4,
            ("Cap that fired: `--max-cost`", "$0.08 at list price"),
        ),
        (IDLE, (), 3, ("## Fusewire: HALTED", r"CIRCUIT OPEN loop.no\_progress", "→ OPEN", "- Next: ")),
        ("echo 'Which one?'", (), 5, ("## Fusewire: BLOCKED ON A HUMAN", "> Which one?")),
    ],
    ids="done iterations time cost halted human".split(),
)
def test_the_summary_says_how_it_ended(
    stage: Stage, does: str, options: tuple[str, ...], code: int, says: tuple[str, ...]
) -> None:
    summary, report = stage.outside / "summary.md", stage.outside / "report.json"
    ended = stage.run(does, *options, "--summary", str(summary), "--summary", str(report))
    assert ended.returncode == code, ended.stderr
    text = summary.read_text()
    for words in says:
        assert words in text
    reported = json.loads(report.read_text())
    assert reported["exit"] == code
    assert f"## Fusewire: {reported['verdict']}\n" in text
    assert (reported["cap"] is not None) == (code == 4)
    assert text.count("\n| ") == reported["iterations"] + 1
    assert "`.fusewire/loop/status.md`" in text


def test_in_github_actions_the_summary_is_the_steps_own(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is appended to, as other steps write there as well; a file that is named goes before it."""
    own, named = stage.outside / "step", stage.outside / "named.md"
    own.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(own))
    stage.run(WORK, "--max-iterations", "1")
    text = own.read_text()
    assert text.startswith("before\n## Fusewire: CAPPED\n")
    stage.run(WORK, "--max-iterations", "1", "--summary", str(named))
    assert named.read_text().startswith("## Fusewire: CAPPED\n")
    assert own.read_text() == text


def test_without_either_no_summary_is_written(stage: Stage) -> None:
    stage.run(WORK, "--max-iterations", "1")
    assert not list(stage.root.glob("*.md"))


def test_what_an_agent_says_is_no_markup(stage: Stage) -> None:
    summary = stage.outside / "summary.md"
    stage.run("echo 'Is <img src=//e.vil/x> or [this](http://e.vil) | `right`?'", "--summary", str(summary))
    text = summary.read_text()
    assert r"Is \<img src=//e.vil/x\> or \[this\]\(http://e.vil\) \| \`right\`?" in text
    (quoted,) = [line for line in text.splitlines() if line.startswith("> ")]
    assert not re.search(r"(?<!\\)[<>\[\]()|`]", quoted.removeprefix("> "))


def test_a_summary_that_cannot_be_written_is_said_before_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named file is checked first; that of the job costs no run its verdict."""
    ended = stage.run(WORK, "--summary", str(stage.outside / "no" / "folder.md"))
    assert (ended.returncode, stage.starts()) == (1, [])
    assert "the summary cannot be written" in ended.stderr
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(stage.outside / "no" / "folder"))
    ended = stage.run(WORK, "--max-iterations", "1")
    assert ended.returncode == 4
    assert "the summary could not be written" in ended.stderr


# -- the action -------------------------------------------------------------------------------------------


def test_the_action_runs_the_agent_and_passes_on_its_end(act: Acting) -> None:
    done = act(f"cat > got; {WORK}", until="test -e work2.txt", prompt="src/app.py", verify="true")
    assert done.code == 0, done.log
    assert {**done.outputs, "files": ""} == {
        "exit-code": "0",
        "verdict": "DONE",
        "cap": "",
        "question": "",
        "iterations": "2",
        "files": "",
    }
    assert done.summary.startswith("## Fusewire: DONE\n")
    assert "def total" in (done.workspace / "got").read_text()
    kept = ["output/iteration-000001.log", "output/iteration-000002.log", "report.json", "status.md", "summary.md"]
    assert done.artifact == kept


@pytest.mark.parametrize(
    ("does", "inputs", "outputs"),
    [
        (WORK, {"max_iterations": "2"}, {"exit-code": "4", "verdict": "CAPPED", "cap": "max-iterations"}),
        (IDLE, {}, {"exit-code": "3", "verdict": "HALTED", "iterations": "3"}),
        ("echo 'Which one?'", {}, {"exit-code": "5", "verdict": "BLOCKED ON A HUMAN", "question": "Which one?"}),
        (WORK, {"options": "--junit ' with a space.xml' --no-such"}, {"exit-code": "2", "verdict": "ERROR"}),
    ],
    ids="cap halt human usage".split(),
)
def test_the_action_fails_with_the_code_of_the_run(
    act: Acting, does: str, inputs: dict[str, str], outputs: dict[str, str]
) -> None:
    done = act(does, **inputs)
    assert done.code == int(outputs["exit-code"]), done.log
    assert {name: done.outputs[name] for name in outputs} == outputs
    assert done.log.splitlines()[-1] == f"::error title=Fusewire::{outputs['verdict']}; see the summary of the job"
    assert "summary.md" in done.artifact


def test_inputs_are_no_commands_and_neither_is_what_the_agent_prints(act: Acting, tmp_path: Path) -> None:
    """An input with a quote stays one word; the runner does not obey a line of the agent's."""
    until = f"echo '$(touch {tmp_path}/no)\";' | grep -q zzz"
    done = act(f"echo '::add-mask::e'; {WORK}", until=until, max_iterations="1")
    assert done.code == 4, done.log
    assert not os.path.exists(tmp_path / "no")
    lines = done.log.splitlines()
    begun = next(line for line in lines if line.startswith("::stop-commands::"))
    token = begun.removeprefix("::stop-commands::")
    assert lines.index(begun) < lines.index("::add-mask::e") < lines.index(f"::{token}::")


def test_the_action_works_in_a_folder_and_without_an_artifact(act: Acting) -> None:
    done = act(f"pwd; {WORK}", working_directory="src", max_iterations="1", artifact="")
    assert (done.workspace / "src" / "work1.txt").exists()
    assert (done.artifact, "Keep the files of the run" in done.ran) == ([], False)
    assert (Path(done.outputs["files"]) / "status.md").exists()


def test_the_recipe_is_a_workflow_whose_inputs_exist() -> None:
    action = yaml.safe_load((DOCS.parents[1] / "action.yml").read_text())
    recipe = yaml.safe_load(DOCS.read_text().split("```yaml\n")[1].split("```")[0])
    steps = [step for one in recipe["jobs"].values() for step in one["steps"]]
    (ours,) = [step for step in steps if "fusewire" in step.get("uses", "")]
    assert set(ours["with"]) <= set(action["inputs"])
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= set(ours["with"])
    text = DOCS.read_text()
    assert [name for name in (*action["inputs"], *action["outputs"]) if f"`{name}`" not in text] == []
