"""`fusewire run` from end to end: real processes, real git, agents in sh; every agent that is started is counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fusewire.guard.sandbox.support import support
from tests.helpers.agents import comes_true, is_running
from tests.helpers.agents.run_honest import HONEST
from tests.helpers.agents.run_stage import IDLE, WORK, Stage, claude, prepared, staged, status
from tests.helpers.agents.run_stuck import STUCK

Staging = Callable[[str], Stage]

#: The seed's first two strategies for an agent that brings nothing.
FIRST, SECOND = "Regenerate plan with fresh analysis", "Break stuck task into 3+ subtasks"

#: A run that waits says so once, with the whole time or a second less of it.
WAITING = re.compile(r"waiting (30m|29m \d+s): loop\.no_progress")

#: Seconds in which a waiting run notices a person's reset: two, and what a busy machine adds. It would wait 30 minutes.
NOTICED = 30.0


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("prepared") / "repository")


@pytest.fixture
def staging(tmp_path: Path, repository: Path) -> Iterator[Staging]:
    """Stages by the kind of their project."""
    stages = []

    def made(kind: str) -> Stage:
        stage = staged(tmp_path, repository if kind == "repository" else None)
        for name in ("api", "web") if kind == "several" else ():
            shutil.copytree(repository, stage.root / name)
        stages.append(stage)
        return stage

    yield made
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(staging: Staging) -> Stage:
    return staging("repository")


@pytest.fixture
def bare(staging: Staging) -> Stage:
    """Without a repository: for tests that are not about git."""
    return staging("none")


def numbers(last: int) -> list[int]:
    return list(range(1, last + 1))


# -- each condition at its number --------------------------------------------------------------------------


@pytest.mark.parametrize("name", STUCK)
def test_an_agent_that_is_stuck_is_stopped_at_its_number(stage: Stage, name: str) -> None:
    """Exit 3 after exactly so many starts, with the rule, the numbers, the evidence, the time and the way on."""
    stuck = STUCK[name]
    if stuck.settings:
        stage.write("fusewire.toml", f"[loop]\n{stuck.settings}\n")
    ended = stage.run(stuck.does, *stuck.options)
    assert (ended.returncode, stage.starts()) == (3, numbers(stuck.at)), ended.stderr
    halted = ended.stderr[ended.stderr.index("HALTED after") :]
    assert f"CIRCUIT OPEN {stuck.rule}: " in halted
    way_on = ("\nLast: ", "\nNext: ", "\nA probe is allowed at ", "(in 30m)", "\nA person can run: fusewire reset ")
    for words in (*stuck.says, *way_on):
        assert words in halted, halted
    assert "Traceback" not in ended.stderr.replace("Traceback handling", "")
    assert stage.left() == []


def test_one_of_anything_is_told_in_the_singular(bare: Stage) -> None:
    """One iteration, one call; but two files are gone."""
    bare.write("fusewire.toml", "[loop]\nno_progress = 1\nmax_calls_per_hour = 2\n")
    ended = bare.run(IDLE)
    assert "1 iteration in a row brought no meaningful change" in ended.stderr
    assert "[1] CLOSED, 1 call left" in ended.stderr
    bare.reset()
    bare.write("AGENTS.md", "# A\n")
    bare.write("CLAUDE.md", "# C\n")
    ended = bare.run(f"{WORK}; rm AGENTS.md CLAUDE.md", "--no-sandbox")
    assert "AGENTS.md, CLAUDE.md are gone" in ended.stderr, ended.stderr
    assert ".." not in ended.stderr.replace("...", "")


def test_one_iteration_before_its_number_nothing_is_open(bare: Stage) -> None:
    """Two idle iterations warn; the third opens the circuit, in another run just as well."""
    first = bare.run(IDLE, "--max-iterations", "2")
    assert (first.returncode, bare.loop()["state"], bare.loop()["risk"]) == (4, "CLOSED", "HIGH")
    second = bare.run(IDLE)
    assert (second.returncode, bare.starts(), bare.loop()["state"]) == (3, [1, 2, 3], "OPEN")
    assert "Warning: 2 of 3 on loop/no_progress" in second.stderr


SCRIPTS = {
    "no-interpreter": "#!/no/such/interpreter\n",
    "no-shebang": "echo working\n",
    "not-executable": "#!/bin/sh\n",
}


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("cluade", "no such program: cluade"),
        ("./no-interpreter", "its interpreter is missing: ./no-interpreter"),
        ("./no-shebang", "neither a program nor a script that names its interpreter: ./no-shebang"),
        ("./not-executable", "not executable: ./not-executable"),
    ],
)
@pytest.mark.parametrize("sandbox", ["--sandbox", "--no-sandbox"])
def test_a_mistyped_command_is_told_at_once_and_counts_nowhere(
    bare: Stage, program: str, says: str, sandbox: str
) -> None:
    """Exit 1 with one line: no iteration, no call, no state at all."""
    for name, text in SCRIPTS.items():
        bare.write(name, text)
        (bare.root / name).chmod(0o644 if name == "not-executable" else 0o755)
    ended = bare.call("run", sandbox, "--", program, "-p")
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert ended.stderr == f"Error: the agent cannot be started: {says}\n"
    assert sorted(os.listdir(bare.root)) == sorted(SCRIPTS)


def test_a_command_that_cannot_be_passed_on_ends_the_run_at_once(bare: Stage) -> None:
    """Only the system finds it: the prompt is too long for an argument. No iteration is judged."""
    bare.write("PROMPT.md", "word " * 1_000_000)
    ended = bare.call("run", "--prompt", "PROMPT.md", "--", "echo", "{prompt}")
    assert (ended.returncode, bare.loop()["iterations"]) == (1, 0), ended.stderr
    assert ended.stderr.splitlines()[-1] == "Error: the agent could not be started: echo: Argument list too long"


@pytest.mark.parametrize(
    "agent",
    ["#!/bin/sh\necho x > work.txt; rm ./agent\n", "#!/usr/bin/env no-such-interpreter\n"],
    ids=["gone", "dies"],
)
def test_a_program_that_starts_and_dies_counts(bare: Stage, agent: str) -> None:
    """Nor does the loop try for ever where the program of an agent that ran is gone later."""
    bare.write("agent", agent)
    (bare.root / "agent").chmod(0o755)
    ended = bare.call("run", "--no-wait", "--json", "--max-iterations", "9", "--", "./agent")
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["iterations"], report["decision"]["state"]) == (3, 3, "OPEN"), ended.stderr


@pytest.mark.parametrize("resets", [WORK, f"{WORK}; kill -SEGV $$"], ids=["work", "work and a crash"])
def test_work_in_between_begins_the_count_anew(bare: Stage, resets: str) -> None:
    """Two idle iterations, a finished task, two idle ones: nothing trips; the third in a row does."""
    task = f'echo "done with $n things"; {status(tasks_completed_this_loop=1)}'
    ended = bare.run(f'[ "$n" != 3 ] || {{ {task}; {resets}; }}; [ "$n" = 3 ] || {IDLE}')
    assert (ended.returncode, bare.starts()) == (3, numbers(6)), ended.stderr


# -- honest work -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_never_trips(staging: Staging, name: str) -> None:
    """A dozen iterations, a dozen starts, every circuit closed, and the run ends at its own cap."""
    honest = HONEST[name]
    stage = staging(honest.project)
    if honest.before:
        subprocess.run(["sh", "-ec", honest.before], cwd=stage.root, check=True, env={**os.environ, "n": "0"})
    ended = stage.run(honest.does, "--max-iterations", str(honest.iterations), *honest.options)
    assert (ended.returncode, stage.starts()) == (4, numbers(honest.iterations)), ended.stderr[-3000:]
    assert "CIRCUIT OPEN" not in ended.stderr
    assert {one.state for one in stage.circuits().values()} == {"CLOSED"}
    loop = stage.loop()
    assert (loop["state"], loop["iterations"], loop["running"]) == ("CLOSED", honest.iterations, 0)


# -- how it ends -------------------------------------------------------------------------------------------

FINISHED = f'{WORK}; echo "All of it works."; {status(exit_signal="true")}'


@pytest.mark.parametrize(
    ("does", "options", "code", "starts", "says"),
    [
        (FINISHED, (), 0, 1, "DONE after 1 iteration in"),
        (f"{WORK}; {status(exit_signal='true | false')}", ("--max-iterations", "2"), 4, 2, "CAPPED after 2 iterations"),
        (f"{FINISHED}; kill -KILL $$", ("--max-iterations", "2"), 4, 2, "CAPPED after 2 iterations"),
        (f"{FINISHED}; exit 1", ("--max-iterations", "2"), 4, 2, "CAPPED after 2 iterations"),
        (WORK, ("--until", "test -e work3.txt"), 0, 3, "`test -e work3.txt` succeeds"),
        (WORK, ("--until", "exit 1", "--max-iterations", "2"), 4, 2, "(--max-iterations 2)"),
        (f"{WORK}; sleep 0.2", ("--max-time", "500ms"), 4, None, "CAPPED after"),
        (
            f"{WORK}\n{claude('A step.', total_cost_usd=0.04)}",
            ("--max-cost", "0.1"),
            4,
            3,
            "$0.12 were spent (--max-cost 0.1)",
        ),
        (f'{WORK}\ncat "$ANSWERS/claude_json_limit.out"', (), 3, 1, "fusewire reset provider/anthropic"),
        (f'{WORK}\ncat "$ANSWERS/claude_json_success.out"', (), 0, 1, "EXIT_SIGNAL: true"),
    ],
    ids="signal template killed failed until until-fails time cost limit json-signal".split(),
)
def test_a_run_ends_with_the_code_of_its_reason(
    bare: Stage, does: str, options: tuple[str, ...], code: int, starts: int | None, says: str
) -> None:
    """Finished is 0, a cap is 4, a halt is 3; the last block says which, and no halt looks like a success."""
    ended = bare.run(does, *options)
    assert ended.returncode == code, ended.stderr
    assert starts is None or bare.starts() == numbers(starts)
    assert says in ended.stderr.splitlines()[-1]
    assert ended.stderr.startswith(
        "Circuit breaker is active — monitoring for stagnation, rate limits, and file protection.\n"
    )
    assert ("DONE" in ended.stderr) == (code == 0)


@pytest.mark.parametrize(("does", "score"), [("", None), (WORK, 1), ('echo "# $n" >> tests/test_app.py', 1)])
def test_an_iteration_that_the_runs_own_time_ends_is_not_judged(stage: Stage, does: str, score: int | None) -> None:
    """Six short runs in a row: each ends at its cap, no circuit counts one of them, and what was done counts."""
    for _ in range(6):
        ended = stage.run(f"{does}\nsleep 60", "--max-time", "300ms")
        assert (ended.returncode, "its time is up" in ended.stderr) == (4, True), ended.stderr
    loop = stage.loop()
    assert (loop["state"], loop["risk"], loop["iterations"]) == ("CLOSED", "LOW", 6)
    assert set(loop["scores"]) == ({score} if score else set())


def test_the_runs_own_time_fails_no_probe(bare: Stage) -> None:
    """It is free again; a time-out of the iteration itself is a failure, of a probe as well."""
    bare.run(IDLE)
    bare.reset()
    assert bare.run("sleep 60", "--max-time", "300ms").returncode == 4
    assert bare.loop()["state"] == "HALF_OPEN"
    assert bare.run("sleep 60", "--timeout", "300ms").returncode == 3
    assert bare.loop()["state"] == "OPEN"


def test_who_says_finished_must_pass_the_persons_command(bare: Stage) -> None:
    """With --verify the loop goes on, tells the next prompt what failed, and ends once the command passes."""
    bare.write("PROMPT.md", "Write the parser.\n")
    bare.write(".gitignore", "")
    does = f'cat > "$OUT/prompt$n"; [ "$n" = 1 ] || echo ok > verified.txt; {FINISHED}'
    verify = "cat verified.txt || { echo the parser fails on tabs; exit 7; }"
    ended = bare.run(does, "--prompt", "PROMPT.md", "--verify", verify)
    assert (ended.returncode, bare.starts()) == (0, [1, 2]), ended.stderr
    assert f"but `{verify}` ended with 7" in ended.stderr
    assert bare.read("prompt1") == "Write the parser.\n"
    assert "You said that you are finished, but" in bare.read("prompt2")
    assert "the parser fails on tabs" in bare.read("prompt2")


def test_the_next_prompt_has_what_the_check_of_the_end_said(bare: Stage) -> None:
    """Quoted: an agent that repeats its prompt has not failed again by that; a check that is silent adds nothing."""
    bare.write("PROMPT.md", "Write the parser.\n")
    until = 'case $(ls | wc -l) in 2) echo "tabs: 1 failed"; echo "=== 1 failed, 2 passed in 0.1s ==="; esac; exit 1'
    ended = bare.run(
        f'cat | tee "$OUT/prompt$n"; {WORK}', *("--prompt", "PROMPT.md", "--until", until, "--max-iterations", "3")
    )
    assert ended.returncode == 4, ended.stderr
    assert "tabs: 1 failed\n=== 1 failed, 2 passed in 0.1s ===\n```" in bare.read("prompt2")
    assert (bare.read("prompt1"), bare.read("prompt3")) == ("Write the parser.\n",) * 2
    log = (bare.root / ".fusewire" / "loop" / "status.md").read_text()
    assert re.findall(r"Errors encountered: (.*)", log) == ["failed: 1 of 3 tests", "none", "none"]


def test_a_plan_with_all_boxes_ticked_ends_the_loop(stage: Stage) -> None:
    """The plan is protected, and ticking its boxes is the agent's work: it is neither restored nor halted."""
    stage.write("IMPLEMENTATION_PLAN.md", "# Plan\n- [ ] task 1\n- [ ] task 2\n- [ ] task 3\n")
    ended = stage.run('sed -i "s/\\[ \\] task $n/[x] task $n/" IMPLEMENTATION_PLAN.md')
    assert (ended.returncode, stage.starts()) == (0, [1, 2, 3]), ended.stderr
    assert re.search(r"DONE after 3 iterations .*IMPLEMENTATION_PLAN\.md.*ticked", ended.stderr)
    assert "a task was completed" in ended.stderr
    assert stage.loop()["metrics"][1]["value"] == 3


def test_an_open_circuit_starts_no_agent(bare: Stage) -> None:
    """A restart is no reset: with --no-wait it is exit 3 at once, and nothing was counted as a call."""
    bare.run(IDLE)
    before = bare.loop()["calls_left"]
    ended = bare.run(IDLE)
    assert (ended.returncode, bare.starts(), bare.loop()["calls_left"]) == (3, [1, 2, 3], before)
    assert "HALTED after 0 iterations" in ended.stderr
    assert "BLOCKED loop.no_progress: 3 iterations in a row" in ended.stderr


@pytest.mark.parametrize(
    ("does", "path", "says"),
    [
        ("rm -rf specs", "specs/login.md", "specs/login.md: restored"),
        (": > AGENTS.md", "AGENTS.md", "AGENTS.md was emptied"),
        ("printf '[loop]\\nno_progress = 99\\n' > fusewire.toml", "fusewire.toml", "fusewire.toml was changed"),
        ("rm fusewire.toml", "fusewire.toml", "fusewire.toml is gone"),
        ("git clean -qfdx -e .fusewire; git rm -qrf . ", "specs/login.md", "restored"),
    ],
)
def test_a_loss_of_protected_files_is_restored_and_halts_the_loop(
    stage: Stage, does: str, path: str, says: str
) -> None:
    """Without a sandbox: the file is back, the run is over with exit 3, and no further agent was started."""
    stage.write("specs/login.md", "# Login\n")
    stage.write("AGENTS.md", "# Agents\n")
    stage.write("fusewire.toml", "[loop]\nno_progress = 4\n")
    before = (stage.root / path).read_text()
    ended = stage.run(f"{WORK}\n{does}", "--no-sandbox")
    assert (ended.returncode, stage.starts()) == (3, [1]), ended.stderr
    assert (stage.root / path).read_text() == before
    assert says in ended.stderr
    assert "HALTED after 1 iteration" in ended.stderr


def test_a_halt_for_a_protected_file_leaves_a_trace(bare: Stage) -> None:
    """In `status`, in the log and in `doctor`, also after the next run, until a person has acknowledged it."""
    bare.write("specs/login.md", "# Login\n")
    said = "guard.integrity: specs/login.md is gone after: iteration 2 of the loop; specs/login.md: restored"
    ended = bare.run(f'{WORK}; [ "$n" != 2 ] || rm -rf specs', "--no-sandbox", "--max-iterations", "4")
    assert ended.returncode == 3, ended.stderr
    errors = re.findall(r"- Errors encountered: (.*)", (bare.root / ".fusewire" / "loop" / "status.md").read_text())
    assert errors == ["none", said]
    bare.run(WORK, "--max-iterations", "1")
    assert json.loads(bare.call("status", "--json").stdout)["warnings"] == [f"the loop was halted: {said}"]
    assert f"Warning: the loop was halted: {said}" in bare.call("status").stderr
    assert f"the loop was halted: {said}" in bare.call("doctor").stdout
    assert bare.call("doctor", "--acknowledge").returncode == 0
    assert "halted" not in bare.call("doctor").stdout + bare.call("status").stderr


def test_a_configuration_that_an_agent_adds_is_not_taken(bare: Stage) -> None:
    """Where there was no fusewire.toml, writing one is a change of it: undone, halted, and without effect later."""
    ended = bare.run(f"{WORK}; printf '[loop]\\nneutral = 99\\n' > fusewire.toml", "--max-iterations", "2")
    assert (ended.returncode, bare.starts()) == (3, [1]), ended.stderr
    assert not (bare.root / "fusewire.toml").exists()
    assert bare.run('echo "Is it $n?"', "--max-iterations", "8").returncode == 5
    assert bare.starts() == numbers(6)


@pytest.mark.parametrize("does", ["rm -rf .fusewire", "rm -f .fusewire/state.db*", "echo x > .fusewire/state.db"])
def test_state_that_an_agent_removes_is_put_back(bare: Stage, does: str) -> None:
    """Counters, calls and the number of the iteration go on; where not all could be rebuilt, the loop is halted."""
    bare.write("AGENTS.md", "# Agents\n")
    bare.run(IDLE, "--max-iterations", "1")
    ended = bare.run(f"{IDLE}; {does}", "--max-iterations", "1", "--no-sandbox")
    assert ended.returncode == 3 or "was damaged" in ended.stderr, ended.stderr
    assert bare.starts() == [1, 2]
    assert (bare.loop()["iterations"], bare.loop()["calls_left"]) == (2, 98)
    assert (bare.run(IDLE).returncode, bare.starts(), bare.loop()["state"]) == (3, [1, 2, 3], "OPEN")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "which agent?"),
        (("--",), 2, "which agent?"),
        (("--", "true", "{prompt}"), 2, "--prompt names no file"),
        (("--prompt", "MISSING.md", "--", "true"), 1, "no such prompt: MISSING.md"),
        (("--plan", "MISSING.md", "--", "true"), 1, "no such plan: MISSING.md"),
        (("--timeout", "soon", "--", "true"), 2, "'soon' is no duration"),
        (("--max-time", "0s", "--", "true"), 2, "'0s' is no duration"),
        (("--idle-timeout", "-5m", "--", "true"), 2, "is no duration"),
        (("--max-iterations", "0", "--", "true"), 2, "--max-iterations"),
        (("--max-cost", "0", "--", "true"), 2, "--max-cost"),
        (("--no-such-option", "--", "true"), 2, "--no-such-option"),
        (("--project", "nowhere", "--", "true"), 1, "no such folder: nowhere"),
    ],
)
def test_wrong_usage_is_told_in_words(bare: Stage, arguments: tuple[str, ...], code: int, says: str) -> None:
    """Nothing is started or written, standard output stays empty, and there is no traceback."""
    ended = bare.call("run", *arguments)
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert says in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert code == 2 or len(ended.stderr.splitlines()) == 1
    assert os.listdir(bare.root) == []


@pytest.mark.parametrize("recovered", [False, True], ids=["plain", "just recovered"])
def test_a_run_that_ended_well_starts_the_next_one_with_empty_windows(bare: Stage, recovered: bool) -> None:
    """Two iterations that only read are not halted, the third is; a run that hit its cap goes on counting."""
    if recovered:
        bare.run(IDLE)
        bare.reset()
    assert bare.run(f"{WORK}; [ -e again ] && {{ {FINISHED}; }}; touch again", "--max-iterations", "3").returncode == 0
    assert bare.loop()["risk"] == "LOW"
    first = len(bare.starts())
    assert bare.run(IDLE, "--max-iterations", "2").returncode == 4
    assert bare.run(IDLE).returncode == 3
    assert len(bare.starts()) == first + 3


def test_files_count_up_to_three(bare: Stage) -> None:
    """One point each, and no more for a hundred: volume buys no progress."""
    bare.run('for i in $(seq $n); do echo "$n" > "f$i.py"; done', "--max-iterations", "5")
    assert bare.loop()["scores"] == [1, 2, 3, 3, 3]


# -- what the agent is given -------------------------------------------------------------------------------


def test_the_prompt_is_on_standard_input_and_read_anew(bare: Stage) -> None:
    """Word for word while there is no advice; a person can change it while the loop runs."""
    bare.write("PROMPT.md", "Größe: 'a' \"b\" $HOME\n")
    ended = bare.run(
        f'cat > "$OUT/prompt$n"; {WORK}; echo "Now the second." > PROMPT.md',
        *("--prompt", "PROMPT.md", "--max-iterations", "2"),
    )
    assert ended.returncode == 4, ended.stderr
    assert [bare.read("prompt1"), bare.read("prompt2")] == ["Größe: 'a' \"b\" $HOME\n", "Now the second.\n"]


def test_the_prompt_stands_where_the_command_wants_it(bare: Stage) -> None:
    """As one argument, never read by a shell; then nothing is on standard input."""
    bare.write("PROMPT.md", "two words; $(touch broken) `x` 'y'\n")
    script = 'printf %s "$2" > "$OUT/argument"; cat > "$OUT/input"'
    ended = bare.call(
        *(
            "run",
            "--max-iterations",
            "1",
            "--prompt",
            "PROMPT.md",
            "--",
            "sh",
            "-c",
            script,
            "agent",
            "-p",
            "<{prompt}>",
        )
    )
    assert ended.returncode == 4, ended.stderr
    assert bare.read("argument") == "<two words; $(touch broken) `x` 'y'\n>"
    assert (bare.outside / "input").read_text() == ""


def test_an_agent_is_told_before_it_is_stopped_and_what_to_try_after(bare: Stage) -> None:
    """Warned before the trip; at the probe the reason and the first strategy, at the next probe the second one."""
    bare.write("PROMPT.md", "Go on.\n")
    does, options = f'cat > "$OUT/prompt$n"; {IDLE}', ("--prompt", "PROMPT.md")
    bare.run(does, *options)
    assert [bare.read("prompt1"), bare.read("prompt2")] == ["Go on.\n", "Go on.\n"]
    assert "(iteration 3, circuit CLOSED)" in bare.read("prompt3")
    assert f"- Warning: 2 of 3 on loop/no_progress. Consider: {FIRST}." in bare.read("prompt3")
    bare.reset()
    bare.run(does, *options)
    assert "(iteration 4, circuit HALF_OPEN)" in bare.read("prompt4")
    assert "The circuit loop/no_progress opened: 3 iterations in a row" in bare.read("prompt4")
    assert f"Strategy 1 of 4: {FIRST}." in bare.read("prompt4")
    bare.reset()
    bare.run(does, *options)
    assert f"Strategy 2 of 4: {SECOND}." in bare.read("prompt5")
    assert f"Tried in vain: {FIRST}" in bare.read("prompt5")


def test_the_environment_says_where_the_loop_stands(bare: Stage) -> None:
    """Number, state, advice, calls left, and that this is an agent; the loop's own variables reach nobody else."""
    does = 'env -0 > "$OUT/env$n"; ' + IDLE
    bare.run(does, "--until", "env -0 > $OUT/until; exit 1")
    bare.reset()
    bare.run(does)
    seen = []
    for name in ("env1", "env3", "env4", "until"):
        entries = (entry.partition("=") for entry in bare.read(name).split("\0"))
        seen.append({key[9:]: value for key, _, value in entries if key.startswith("FUSEWIRE_")})
    for environment in seen:
        environment.pop("MARK")
        environment.pop("SUPERVISOR", None)  # where there is a sandbox
        assert environment.pop("PROJECT") == str(bare.root.resolve())
        assert environment.pop("DEPTH") == "1"
    runs = [environment.pop("RUN", "") for environment in seen]
    assert all(one.startswith("run-") for one in runs)
    assert runs == [runs[0], runs[0], runs[2], runs[0]], "all that a run starts has its name"
    assert runs[0] != runs[2]
    first, third, probe, until = seen
    assert first == {"AGENT": "loop", "ITERATION": "1", "STATE": "CLOSED", "ADVICE": "", "CALLS_LEFT": "99"}
    assert third.pop("ADVICE").startswith("Warning: 2 of 3 on loop/no_progress.")
    assert third == {"AGENT": "loop", "ITERATION": "3", "STATE": "CLOSED", "CALLS_LEFT": "97"}
    assert f"Strategy 1 of 4: {FIRST}." in probe.pop("ADVICE").splitlines()
    assert probe == {"AGENT": "loop", "ITERATION": "4", "STATE": "HALF_OPEN", "CALLS_LEFT": "96"}
    assert until == {"AGENT": "check"}


@pytest.mark.parametrize(
    "command", ["reset loop/no_progress --reason please", "config loop/no_progress", "guard restore"]
)
def test_an_agent_cannot_disarm_its_own_breaker(bare: Stage, command: str) -> None:
    """Inside the loop what is for a person is refused with exit 3, and the loop trips as it would have."""
    ended = bare.run(f'"$PYTHON" -m fusewire {command} 2> "$OUT/refused"; echo $? >> "$OUT/codes"')
    assert (ended.returncode, bare.starts(), bare.read("codes").split()) == (3, [1, 2, 3], ["3"] * 3)
    assert "is for a person at a terminal" in bare.read("refused")


@pytest.mark.parametrize("circuit", ["loop/score", "loop/no_progress", "phase/GREEN", "tool/tool_failure/Bash(x)"])
def test_an_agent_records_nothing_on_what_judges_it(bare: Stage, circuit: str) -> None:
    """Neither that its probe went well nor anything else; what it looks at is still there for the run."""
    bare.run(IDLE)
    bare.reset()
    program = '"$PYTHON" -m fusewire'
    does = f"for how in --ok '--action x'; do {program} record '{circuit}' $how; echo $? >> \"$OUT/codes\"; done"
    ended = bare.run(f"{does}; {program} check loop; {program} check loop/no_progress; {IDLE}")
    assert (ended.returncode, bare.starts(), bare.read("codes").split()) == (3, [1, 2, 3, 4], ["3", "3"]), ended.stderr
    assert "the probe failed" in ended.stderr
    assert f"to record on {circuit} is for a person at a terminal" in ended.stdout


# -- hostile agents ----------------------------------------------------------------------------------------

ORPHANS = "(sleep 60 & sleep 60 &) ; setsid sleep 60 & nohup sleep 60 > /dev/null 2>&1 &"


@pytest.mark.parametrize(
    ("does", "options", "says"),
    [
        (f"{WORK}; kill -SEGV $$", (), "crash"),
        (f"{WORK}; sleep 60", ("--timeout", "300ms"), "timeout"),
        (f"{WORK}; echo ready; sleep 60", ("--idle-timeout", "300ms"), "idle"),
        (f"{WORK}; head -c 300000 /dev/urandom", (), "1 file"),
        (f'{WORK}; printf \'\\000\\377\\376{{"type":"result","is_error"\'; printf \'\\033[2J\'', (), "1 file"),
        (f"{WORK}; exec >&- 2>&-; sleep 0.1", (), "1 file"),
        (f"{WORK}\n{ORPHANS}\nexit 5", (), "4 processes left behind were ended"),
        (f"{WORK}\n{ORPHANS}\nsleep 60", ("--timeout", "300ms"), "timeout"),
    ],
    ids="crash hang idle garbage half-json closed orphans hang-with-orphans".split(),
)
def test_a_hostile_agent_neither_stops_the_loop_nor_stays(
    bare: Stage, does: str, options: tuple[str, ...], says: str
) -> None:
    """Its work counts, the loop goes on to its cap, and no process is left."""
    bare.write("PROMPT.md", "A prompt that nobody reads.\n" * 40_000)
    ended = bare.run(does, "--max-iterations", "2", "--prompt", "PROMPT.md", *options)
    assert (ended.returncode, bare.starts()) == (4, [1, 2]), ended.stderr
    assert ended.stderr.count(says) == 2
    assert ended.stderr.count("a file was changed") == 2
    assert bare.left() == []


def test_an_agent_that_does_not_want_to_end_is_ended(bare: Stage) -> None:
    """SIGTERM is ignored by it and its children: after the grace they are killed."""
    began = time.monotonic()
    ended = bare.run(
        f"trap '' TERM INT HUP; {WORK}; sleep 60 & sleep 60", "--timeout", "300ms", "--max-iterations", "1"
    )
    assert (ended.returncode, bare.left()) == (4, [])
    assert 5 < time.monotonic() - began < 55


def test_a_flood_is_read_in_bounded_memory_and_kept_in_a_bounded_log(bare: Stage) -> None:
    """100 MB in one iteration: the supervisor stays below 150 MB, the log near 1 MB with its beginning and its end."""
    does = (
        f'{WORK}; echo first; head -c 100000000 /dev/zero | tr "\\0" x; echo; echo last; cp /proc/$PPID/status "$OUT/"'
    )
    ended = bare.run(does, "--json", "--max-iterations", "1")
    assert (ended.returncode, json.loads(ended.stdout)["iterations"]) == (4, 1), ended.stderr
    peak = re.search(r"VmHWM:\s+(\d+) kB", bare.read("status"))
    assert peak is not None
    assert int(peak[1]) < 150_000
    (log,) = (bare.root / ".fusewire" / "loop" / "output").iterdir()
    kept = log.read_bytes()
    assert len(kept) < 1_200_000
    assert kept.startswith(b"first\n")
    assert kept.endswith(b"x\nlast\n")
    assert b"bytes left out]" in kept


# -- killed, interrupted, started again --------------------------------------------------------------------

UNDER_WAY = 'echo $$ > "$OUT/pid"; sleep 60'


def killed(stage: Stage, does: str, *options: str, when: str = "pid") -> None:
    """Start a run, wait for a file outside, kill the supervisor; its agent ends within seconds."""
    run = stage.start(does, *options)
    assert comes_true(lambda: stage.read(when)), stage.said()
    run.kill()
    run.wait()
    assert comes_true(lambda: stage.left() == []), stage.left()


@pytest.mark.parametrize(
    ("does", "options", "when", "settled"),
    [
        (UNDER_WAY, (), "pid", "neutral"),
        (f"{WORK}; {UNDER_WAY}", (), "pid", "progress"),
        (f"{WORK}; (setsid sleep 60 &); {UNDER_WAY}", (), "pid", "progress"),
        (WORK, ("--until", 'echo > "$OUT/until"; sleep 60'), "until", "progress"),
    ],
    ids="nothing-done work-done orphans until".split(),
)
def test_a_killed_supervisor_loses_nothing(
    bare: Stage, does: str, options: tuple[str, ...], when: str, settled: str
) -> None:
    """Its agent ends, the iteration is settled once by the next run, and the numbers and calls go on."""
    killed(bare, does, *options, when=when)
    assert (bare.starts(), bare.loop()["running"], bare.loop()["iterations"]) == ([1], 1, 0)
    again = bare.run(WORK, "--max-iterations", "1")
    assert (again.returncode, bare.starts()) == (4, [1, 2]), again.stderr
    assert f"Iteration 1 was cut off when its supervisor died; it is settled as {settled}." in again.stderr
    third = bare.run(WORK, "--max-iterations", "1")
    assert "was cut off" not in third.stderr
    after = bare.loop()
    assert (bare.starts(), after["running"], after["iterations"], after["calls_left"]) == ([1, 2, 3], 0, 3, 97)
    log = (bare.root / ".fusewire" / "loop" / "status.md").read_text()
    assert re.findall(r"## Iteration (\d+)", log) == ["1", "2", "3"]


def test_counters_outlive_a_killed_supervisor(bare: Stage) -> None:
    """Two idle iterations, one that nobody saw the end of, one more idle one: that is the third in a row."""
    killed(bare, f'[ "$n" -lt 3 ] || {{ {UNDER_WAY}; }}')
    ended = bare.run(IDLE)
    assert (ended.returncode, bare.starts(), bare.loop()["iterations"]) == (3, [1, 2, 3, 4], 4), ended.stderr
    assert "3 iterations in a row brought no meaningful change" in ended.stderr


def test_a_supervisor_killed_in_its_wait_goes_on_waiting(bare: Stage) -> None:
    """The cooldown is the circuit's and not the process's: the next run is refused for the rest of it."""
    run = bare.start(IDLE, wait=True)
    assert comes_true(lambda: "waiting " in bare.said()), bare.said()
    run.kill()
    run.wait()
    ended = bare.run(IDLE)
    assert (ended.returncode, bare.starts()) == (3, [1, 2, 3])
    assert "(in 29m " in ended.stderr or "(in 30m)" in ended.stderr


def test_killed_at_any_moment_no_iteration_runs_twice(bare: Stage) -> None:
    """A quick loop is killed again and again: numbers only grow, every call is counted, every iteration settled."""
    for moment in range(6):
        run = bare.start(WORK)
        before = len(bare.starts())
        assert comes_true(lambda before=before: len(bare.starts()) > before + 1)  # type: ignore[misc]
        time.sleep(0.007 * moment)
        run.kill()
        run.wait()
    ended = bare.run(WORK, "--max-iterations", "1")
    assert ended.returncode == 4, ended.stderr
    starts, loop = bare.starts(), bare.loop()
    assert starts == sorted(set(starts))
    assert (loop["running"], loop["iterations"], 100 - loop["calls_left"]) == (0, starts[-1], starts[-1])
    assert len(starts) >= starts[-1] - 6
    assert bare.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_ends_in_order(bare: Stage, number: signal.Signals) -> None:
    """130, the agent ended, nothing under way; the next run goes on with the next number and the same counters."""
    run = bare.start(f'[ "$n" -lt 3 ] || {{ (sleep 60 &); {UNDER_WAY}; }}')
    assert comes_true(lambda: bare.read("pid")), bare.said()
    run.send_signal(number)
    assert run.wait(45) == 130
    assert "INTERRUPTED after 3 iterations" in bare.said()
    assert not is_running(int(bare.read("pid")))
    assert bare.left() == []
    assert (bare.loop()["running"], bare.loop()["state"]) == (0, "CLOSED")
    assert (bare.run(IDLE).returncode, bare.starts()) == (3, [1, 2, 3, 4])


def test_a_waiting_run_can_be_interrupted(bare: Stage) -> None:
    """Ctrl-C ends a wait at once."""
    run = bare.start(IDLE, wait=True)
    assert comes_true(lambda: WAITING.search(bare.said())), bare.said()
    run.send_signal(signal.SIGINT)
    assert run.wait(45) == 130
    assert bare.starts() == [1, 2, 3]


def test_a_waiting_run_ends_at_its_own_cap(bare: Stage) -> None:
    """--max-time counts while it waits, and it is a cap then as well."""
    bare.run(IDLE)
    ended = bare.run(IDLE, "--max-time", "1s", wait=True)
    assert (ended.returncode, bare.starts()) == (4, [1, 2, 3]), ended.stderr
    assert "its time is up (--max-time)" in ended.stderr


# -- recovery ----------------------------------------------------------------------------------------------


def test_what_a_halt_tells_a_person_to_run_is_enough(bare: Stage) -> None:
    """One trip, however many circuits it opened: the commands in the message end the cooldown, the next run probes."""
    ended = bare.run(IDLE)
    commands = re.findall(r'fusewire (reset \S+) --reason "\.\.\."', ended.stderr)
    assert commands
    for command in dict.fromkeys(commands):
        assert bare.call(*command.split(), "--reason", "looked at").returncode == 0
    assert bare.run(WORK, "--max-iterations", "1").returncode == 4
    assert (bare.starts(), bare.loop()["state"]) == ([1, 2, 3, 4], "CLOSED")


def test_a_cooldown_cannot_be_configured_away(bare: Stage) -> None:
    """Less than 30 minutes is refused with a warning, and 30 minutes hold."""
    bare.write("fusewire.toml", '[loop]\ncooldown = "1s"\n')
    ended = bare.run(IDLE)
    assert (ended.returncode, "(in 30m)" in ended.stderr) == (3, True)
    assert ended.stderr.startswith("Warning: fusewire.toml: [loop] cooldown = '1s' is refused")


def test_a_probe_with_a_positive_score_closes_the_circuit(bare: Stage) -> None:
    """One probe, HALF_OPEN; then CLOSED, the lesson says what helped, and the loop goes on."""
    bare.run(IDLE)
    bare.reset()
    ended = bare.run(WORK, "--max-iterations", "2")
    assert (ended.returncode, bare.starts()) == (4, [1, 2, 3, 4, 5]), ended.stderr
    assert "[4] HALF_OPEN (the one probe)" in ended.stderr
    assert "[5] CLOSED" in ended.stderr
    loop = bare.loop()
    assert (loop["state"], loop["risk"]) == ("CLOSED", "MEDIUM")
    assert f"What helped: {FIRST}" in loop["lessons"][0]["text"]
    assert "What helped" in bare.call("loop", "lessons").stdout


def test_a_failed_probe_doubles_the_cooldown(bare: Stage) -> None:
    """30, 60, 120 minutes; exactly one start each time."""
    bare.run(IDLE)
    for probe, minutes in ((4, 60), (5, 120)):
        bare.reset()
        ended = bare.run(IDLE)
        assert (ended.returncode, bare.starts()) == (3, numbers(probe)), ended.stderr
        waits = bare.circuits()["loop/no_progress"].retry_after
        assert waits is not None
        assert minutes * 60 - 30 < waits <= minutes * 60


_PORT = (
    'printf "Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in x\\n    go()\\nValueError: no port\\n"'
)
_SWINGS = f"set -- Caching Locking; shift $((n % 2))\n{status(approach='$1')}"


@pytest.mark.parametrize(
    ("does", "settings", "cause", "tried", "log"),
    [
        (
            f"{WORK}; git add -A; git commit -qm x; {_PORT}",
            "same_error = 2",
            "the same error came again: ValueError: no port",
            "Change approach entirely; Check if error is environmental; Search for known issue/workaround",
            ["Error log:", *(f"  iteration {n}: ValueError: no port" for n in range(1, 6))],
        ),
        (
            f"{WORK}\n{_SWINGS}",
            "",
            "2 approaches alternate: ",
            "Step back and re-analyze root cause; Try approach NOT yet attempted; "
            "Reduce scope to minimal working version",
            ["Approach history:", "  iteration 6: caching", "  iteration 7: locking"],
        ),
        (
            'echo "assert $n" >> tests/test_app.py',
            "",
            "only tests changed again: tests/test_app.py",
            "Review test assumptions; Check if implementation approach is flawed; Simplify implementation scope",
            ["Test analysis:", "  iteration 6: not run; tests/test_app.py"],
        ),
        (
            IDLE,
            "",
            "score -3 (no file was changed); the agent ended; no file changed",
            f"{FIRST}; {SECOND}; Skip to next task, return later",
            [],
        ),
    ],
    ids="error circular tests idle".split(),
)
def test_a_failed_probe_names_its_cause_and_the_last_one_what_was_tried(
    stage: Stage, does: str, settings: str, cause: str, tried: str, log: list[str]
) -> None:
    """Once each; after the last strategy a person gets all that were tried, and the log that the strategy asks for."""
    stage.write("fusewire.toml", f"[loop]\n{settings}\n")
    ended = stage.run(does, "--max-iterations", "9")
    for _ in range(3):
        assert (ended.returncode, "All strategies were tried" in ended.stderr) == (3, False), ended.stderr
        stage.reset()
        ended = stage.run(does, "--max-iterations", "9")
        block = ended.stderr[ended.stderr.index("HALTED after") :]
        assert block.count(f"the probe failed: {cause}") == 2, block
        assert "Last: " not in block
    assert f"All strategies were tried: {tried}\n" in ended.stderr
    assert "\nNext: Escalate " in ended.stderr
    lines = ended.stderr.splitlines()
    assert [line for line in log if line not in lines] == []


def test_stagnation_right_after_a_recovery_is_for_a_person(bare: Stage) -> None:
    """Three iterations are watched closely: the first idle one opens the circuit again, and a waiting run ends."""
    bare.run(IDLE)
    bare.reset()
    ended = bare.run(f'if [ "$n" = 4 ]; then {WORK}; else {IDLE}; fi', wait=True)
    assert (ended.returncode, bare.starts()) == (3, [1, 2, 3, 4, 5]), ended.stderr
    assert "HALTED after 2 iterations" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_probe_that_was_cut_off_is_free_again(bare: Stage, number: signal.Signals) -> None:
    """It has neither succeeded nor failed: the cooldown is not doubled, and the next run probes at once."""
    bare.run(IDLE)
    bare.reset()
    run = bare.start(UNDER_WAY)
    assert comes_true(lambda: bare.read("pid")), bare.said()
    run.send_signal(number)
    run.wait(45)
    ended = bare.run(WORK, "--max-iterations", "1")
    assert (ended.returncode, bare.starts(), bare.loop()["state"]) == (4, [1, 2, 3, 4, 5], "CLOSED"), ended.stderr
    assert "[5] HALF_OPEN (the one probe)" in ended.stderr


def test_a_waiting_run_notices_a_persons_reset(bare: Stage) -> None:
    """Without a restart: the wait ends, the one probe runs, and the loop goes on."""
    run = bare.start(f'if [ "$n" -lt 4 ]; then {IDLE}; else {WORK}; fi', "--max-iterations", "5", wait=True)
    assert comes_true(lambda: WAITING.search(bare.said())), bare.said()
    bare.reset()
    assert comes_true(lambda: 4 in bare.starts(), NOTICED), bare.said()
    assert run.wait(45) == 4
    assert (bare.starts(), bare.loop()["state"]) == ([1, 2, 3, 4, 5], "CLOSED")
    assert bare.said().count("waiting ") == 1


def test_only_one_of_several_supervisors_probes(bare: Stage) -> None:
    """Four at once after a reset: one agent is started, the others are refused while its probe is under way."""
    bare.run(IDLE)
    bare.reset()
    does = f'while [ ! -e "$OUT/go" ]; do sleep 0.02; done; {WORK}'
    runs = [bare.start(does, "--max-iterations", "1") for _ in range(4)]
    assert comes_true(lambda: [run.poll() for run in runs].count(3) == 3), [bare.said(one) for one in range(4)]
    assert bare.starts() == [1, 2, 3, 4]
    (bare.outside / "go").touch()
    assert sorted(run.wait(45) for run in runs) == [3, 3, 3, 4]
    assert (bare.starts(), bare.loop()["state"]) == ([1, 2, 3, 4], "CLOSED")


@pytest.mark.parametrize(
    "where", ["> out.txt 2>&1", "2> out.txt", "2>&1 | tee out.txt > /dev/null", "2>&1 | cat | tee -a out.txt | cat"]
)
def test_the_runs_own_output_is_no_work(stage: Stage, where: str) -> None:
    """A file, or behind a pipeline: an idle agent is stopped at 3, one that writes another file is not."""
    for does, starts in ((IDLE, 3), ('echo "$n" >> other.txt', 7)):
        agent = f"echo $FUSEWIRE_ITERATION >> $OUT/starts; n=$FUSEWIRE_ITERATION; {does}"
        line = f"\"$PYTHON\" -m fusewire run --no-wait --max-iterations 4 -- sh -c '{agent}' {where}"
        subprocess.run(
            ["bash", "-c", line], cwd=stage.root, env=stage.environment(), check=False, stdout=subprocess.DEVNULL
        )
        assert stage.starts() == numbers(starts), (stage.root / "out.txt").read_text()
        stage.reset()


def test_what_helped_once_is_known_when_the_same_cause_returns(bare: Stage) -> None:
    """The lesson keeps it through the next trip, and the probe is told."""
    bare.write("PROMPT.md", "Go on.\n")
    bare.write("fusewire.toml", "[loop]\nscore_over = 50\n")
    does = f'cat > "$OUT/prompt$n"; case $n in 4|5|6|7) {WORK};; *) {IDLE};; esac'
    options = ("--prompt", "PROMPT.md", "--max-iterations", "10")
    assert bare.run(does, *options).returncode == 3
    bare.reset()
    assert bare.run(does, *options).returncode == 3
    assert bare.starts() == numbers(10)
    bare.reset()
    assert bare.run(does, *options).returncode == 3
    assert f"What helped: {FIRST}" in bare.read("prompt11")
    lessons = {lesson["circuit"]: lesson for lesson in bare.loop()["lessons"]}
    assert (lessons["loop/no_progress"]["times"], lessons["loop/no_progress"]["tried"]) == (2, [FIRST])


def test_the_score_alerts_no_more_after_a_recovery(bare: Stage) -> None:
    """What was before the probe has been dealt with."""
    bare.run(IDLE)
    assert [row["alert"] for row in bare.loop()["metrics"] if row["metric"] == "Progress score"] == [True]
    bare.reset()
    bare.run(WORK, "--max-iterations", "1")
    loop = bare.loop()
    assert [(row["alert"], row["value"]) for row in loop["metrics"] if row["metric"] == "Progress score"] == [
        (False, 1)
    ]
    assert loop["score"] == 1


def test_the_status_log_has_time_outs(bare: Stage) -> None:
    """Among the errors, with the time."""
    bare.run("sleep 60", "--timeout", "300ms", "--max-iterations", "1")
    log = (bare.root / ".fusewire" / "loop" / "status.md").read_text()
    assert re.search(r"^- Errors encountered: timeout after 0\.[3-9]\d*s$", log, re.MULTILINE), log


# -- the rate limit ----------------------------------------------------------------------------------------


def test_the_hour_is_never_exceeded_and_restarts_do_not_help(bare: Stage) -> None:
    """Four calls are four starts; then exit 3 names the limit and the time, at once and in every later run."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 4\n")
    assert bare.run(WORK, "--max-iterations", "3").returncode == 4
    for starts in (4, 4):
        ended = bare.run(WORK)
        assert (ended.returncode, bare.starts()) == (3, numbers(starts)), ended.stderr
        assert "BLOCKED loop.rate: 4 of 4 calls within 1h" in ended.stderr
        assert re.search(r"There is room again at \d{4}-\d\d-\d\d \d\d:\d\d UTC \(in (1h|59m.*)\)", ended.stderr)
    assert {one.state for one in bare.circuits().values()} == {"CLOSED"}
    assert "reset loop/rate" not in ended.stderr


def test_several_loops_share_one_hour(bare: Stage) -> None:
    """Three at once on one project start no more agents than one would."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 7\n")
    runs = [bare.start(WORK) for _ in range(3)]
    assert [run.wait(45) for run in runs] == [3, 3, 3]
    assert (sorted(bare.starts()), bare.loop()["running"]) == (numbers(7), 0)


def test_loops_that_overlap_are_not_taken_for_one_that_swings(bare: Stage) -> None:
    """One begins, the other begins and ends, the one ends: the tree before the first is no return to it."""
    first = bare.start(
        f'{WORK}; touch "$OUT/ready"; while [ ! -e "$OUT/go" ]; do sleep 0.02; done', "--max-iterations", "1"
    )
    assert comes_true((bare.outside / "ready").exists), bare.said()
    assert bare.run(WORK, "--max-iterations", "1").returncode == 4
    (bare.outside / "go").touch()
    assert first.wait(45) == 4, bare.said()
    # The first one sees the files of both.
    assert (bare.loop()["state"], bare.loop()["scores"]) == ("CLOSED", [1, 2])


def test_the_last_fifth_of_the_hour_is_told(bare: Stage) -> None:
    """From 80 % on the agent and the person hear how many calls are left; before that nobody does."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 10\n")
    bare.write("PROMPT.md", "Go on.\n")
    ended = bare.run(f'cat > "$OUT/prompt$n"; {WORK}', "--prompt", "PROMPT.md")
    assert bare.starts() == numbers(10)
    assert re.findall(r"(\d+) of 10 calls are left in this hour", ended.stderr) == ["2", "1", "0"]
    assert "calls are left" not in bare.read("prompt7")
    assert "2 of 10 calls are left in this hour: do what matters most first." in bare.read("prompt8")


def test_a_call_is_one_start_however_many_turns_the_model_takes(bare: Stage) -> None:
    """Two productive iterations of 57 turns leave 98 calls; the turns are shown."""
    ended = bare.run(f"{WORK}\n{claude('A step.', num_turns=57)}", "--max-iterations", "2")
    assert (ended.returncode, bare.loop()["calls_left"]) == (4, 98), ended.stderr
    assert ended.stderr.count("57 model turns") == 2


def test_model_turns_are_limited_where_a_person_says_so(bare: Stage) -> None:
    """Off by default; the iteration that fills the hour is not stopped in the middle."""
    bare.write("fusewire.toml", "[loop]\nmax_turns_per_hour = 10\n")
    ended = bare.run(f"{WORK}\n{claude('A step.', num_turns=4)}")
    assert (ended.returncode, bare.starts(), bare.loop()["calls_left"]) == (3, [1, 2, 3], 97), ended.stderr
    assert "BLOCKED loop.rate: 12 of 10 model turns within 1h" in ended.stderr


def test_a_raised_limit_ends_the_wait_under_way(bare: Stage) -> None:
    """Without a restart, and no further than the new limit."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 2\n")
    run = bare.start(WORK, wait=True)
    assert comes_true(lambda: "waiting " in bare.said()), bare.said()
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 4\n")
    assert comes_true(lambda: bare.said().count("waiting ") == 2, NOTICED), bare.said()
    assert (bare.starts(), run.poll()) == ([1, 2, 3, 4], None)
    assert "BLOCKED loop.rate: 4 of 4 calls within 1h" in bare.said()


def test_status_shows_a_full_hour_and_when_it_frees(bare: Stage) -> None:
    """As text and as data; an hour with room has no such time."""
    bare.write("fusewire.toml", "[loop]\nmax_calls_per_hour = 2\n")
    bare.run(WORK, "--max-iterations", "1")
    assert bare.loop()["calls_free_in"] is None
    assert "the hour is full" not in bare.call("status", "loop").stdout
    bare.run(WORK)
    assert 3500 < bare.loop()["calls_free_in"] <= 3600
    shown = bare.call("status", "loop").stdout
    assert re.search(r"0 of 2 calls left in this hour; the hour is full, the next call in (1h|59m.*)\n", shown), shown


def test_the_limit_of_calls_is_an_option_too(bare: Stage) -> None:
    """It holds exactly, for this run; an agent can only lower it."""
    ended = bare.run(WORK, "--max-calls-per-hour", "3")
    assert (ended.returncode, bare.starts()) == (3, [1, 2, 3]), ended.stderr
    assert "BLOCKED loop.rate: 3 of 3 calls within 1h" in ended.stderr
    assert bare.run(WORK, "--max-iterations", "1").returncode == 4
    program = [sys.executable, "-m", "fusewire", "run", "--max-iterations", "1"]
    inside = {**os.environ, "CLAUDECODE": "1"}
    for limit, code in (("101", 3), ("50", 4)):
        arguments = [*program, "--max-calls-per-hour", limit, "--", "true"]
        done = subprocess.run(arguments, cwd=bare.root, env=inside, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr


# -- for programs and for people ---------------------------------------------------------------------------

METRICS = [
    ("Loop count", ">20 for a single task"),
    ("Tasks completed", "0 for 3+ iterations"),
    ("Files modified", "0 for 3+ iterations"),
    ("Test pass rate", "Declining for 3+ iterations"),
    ("Error frequency", "Increasing for 3+ iterations"),
    ("Output volume", "70% decline"),
    ("API calls remaining", "<20% remaining"),
    ("Progress score", "Negative for 3 iterations"),
]


def test_a_run_for_programs_prints_one_object(bare: Stage) -> None:
    """Everything is in it, and what the agent says is not among it."""
    ended = bare.run(f"{IDLE}\n{claude('A step.', total_cost_usd=0.25)}", "--json")
    report = json.loads(ended.stdout)
    assert (report["exit"], report["iterations"], report["cost"]) == (ended.returncode, 3, 0.75) == (3, 3, 0.75)
    decision = report["decision"]
    assert (decision["rule"], decision["state"]) == ("loop.no_progress", "OPEN")
    assert decision["evidence"]
    assert 1790 < decision["retry_after"] <= 1800
    loop = json.loads(bare.call("status", "--json").stdout)["loop"]
    assert report["loop"] | {"retry_after": 0} == loop | {"retry_after": 0}


def test_status_shows_the_loop(bare: Stage) -> None:
    """Risk, score, trend, calls and the eight metrics with their thresholds, as data and as text."""
    bare.write("notes.md", "old\n")
    bare.run(f'[ "$n" -gt 2 ] || {WORK}; [ "$n" = 3 ] || exit 0; {IDLE}', "--max-iterations", "3")
    loop = json.loads(bare.call("status", "--json").stdout)["loop"]
    assert [(row["metric"], row["threshold"]) for row in loop["metrics"]] == METRICS
    assert {row["metric"]: row["value"] for row in loop["metrics"]} == {
        **dict.fromkeys(("Tasks completed", "Error frequency"), 0),
        "Loop count": 3,
        "Files modified": 2,
        "Test pass rate": "not run",
        "Output volume": 1,
        "API calls remaining": 97,
        "Progress score": -1,
    }
    assert {row["metric"] for row in loop["metrics"] if row["alert"]} == {"Tasks completed", "Progress score"}
    assert (loop["scores"], loop["score"], loop["trend"], loop["calls_left"]) == ([1, 1, -3], -1, "falling", 97)
    assert (loop["state"], loop["risk"]) == ("OPEN", "HIGH")
    text = bare.call("status", "loop").stdout
    assert all(name in text for name, _ in METRICS)
    assert "stagnation risk HIGH" in bare.call("status", "--all").stdout


def test_the_status_log_has_the_form_of_the_seed(bare: Stage) -> None:
    """Nine lines for each iteration, in order, with what it did."""
    bare.write("plan.md", "- [ ] one\n- [ ] two\n")
    run = "===== 1 failed, 2 passed, 1 skipped in 0.1s ====="
    does = f'[ "$n" = 2 ] && {{ {IDLE}; exit 0; }}; sed -i "1s/ ]/x]/" plan.md; {WORK}; echo "{run}"'
    ended = bare.run(does, "--plan", "plan.md", "--max-iterations", "2")
    assert ended.returncode == 4, ended.stderr
    log = (bare.root / ".fusewire" / "loop" / "status.md").read_text()
    assert re.sub(r"(?m) — \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$", " — [timestamp]", log) == (
        "## Iteration 1 — [timestamp]\n- Circuit state: CLOSED\n- Tasks completed: 1\n"
        "- Files modified: plan.md, work1.txt\n- Tests: 2 passed, 1 failed, 1 skipped\n"
        "- Errors encountered: failed: 1 of 4 tests\n- Progress score: +7\n- API calls remaining: 99\n"
        "- Stagnation risk: LOW\n\n"
        "## Iteration 2 — [timestamp]\n- Circuit state: CLOSED\n- Tasks completed: 0\n- Files modified: none\n"
        "- Tests: not run\n- Errors encountered: none\n- Progress score: -3\n- API calls remaining: 98\n"
        "- Stagnation risk: LOW\n\n"
    )


# -- what a new user and an adversary met -----------------------------------------------------------------------


def test_an_agent_runs_where_it_was_started(bare: Stage) -> None:
    """In a subfolder of the project: agent, check, plan and results are looked up there."""
    folder = bare.root / "packages" / "api"
    folder.mkdir(parents=True)
    (folder / "agent.sh").write_text("pwd\necho x > done.txt\n")
    (folder / "PLAN.md").write_text("- [ ] one\n- [ ] two\n")
    options = ["--plan", "PLAN.md", "--until", "test -f done.txt", "--max-iterations", "2"]
    ended = subprocess.run(
        [sys.executable, "-m", "fusewire", "run", *options, "--", "sh", "agent.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, str(folder)), ended.stderr
    assert (bare.root / ".fusewire").is_dir() or (folder / ".fusewire").is_dir()


QUOTED = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\n"


@pytest.mark.parametrize(
    "does",
    ["cat; echo 'I could not do anything yet.'", f"printf 'Later I print:\n```\n{QUOTED}```\nTwo tasks are left.\n'"],
    ids=["echoed prompt", "quoted example"],
)
def test_a_status_block_that_is_only_shown_ends_nothing(bare: Stage, does: str) -> None:
    """The prompt's example comes back, or stands in a fence in the middle of the answer."""
    bare.write("PROMPT.md", f"Print this when all is done:\n{QUOTED}")
    ended = bare.run(does, "--prompt", str(bare.root / "PROMPT.md"), "--max-iterations", "1")
    assert ended.returncode == 4, ended.stderr


def test_open_boxes_that_are_deleted_are_not_done(bare: Stage) -> None:
    """A plan without open boxes ends the loop only if they were ticked."""
    bare.write("IMPLEMENTATION_PLAN.md", "- [x] one\n- [ ] two\n- [ ] three\n")
    ended = bare.run("sed -i '/\\[ \\]/d' IMPLEMENTATION_PLAN.md", "--max-iterations", "1")
    assert ended.returncode == 4, ended.stderr


def test_protected_files_survive_the_loss_of_their_copies(bare: Stage) -> None:
    """One command removes the files and everything that Fusewire keeps: the supervisor remembers them."""
    bare.write("specs/a.md", "# A\n")
    bare.write("AGENTS.md", "# Agents\n")
    ended = bare.run("rm -rf specs AGENTS.md .fusewire", "--max-iterations", "3")
    assert (ended.returncode, bare.starts()) == (3, [1]), ended.stderr
    assert "specs/a.md: restored" in ended.stderr
    assert (bare.root / "specs" / "a.md").read_text() == "# A\n"
    assert (bare.root / "AGENTS.md").read_text() == "# Agents\n"


def test_rules_that_an_agent_changes_halt_the_loop(bare: Stage) -> None:
    """Wherever they stand: the next start would follow them."""
    added = "[tool.fusewire.loop]\\nno_progress = 900\\n"
    ended = bare.run(f"printf '{added}' > pyproject.toml", "--max-iterations", "3")
    assert (ended.returncode, bare.starts()) == (3, [1]), ended.stderr
    assert "loop.rules" in ended.stderr
    other = bare.run("printf '[project]\\nname = \"x\"\\n' > pyproject.toml", "--max-iterations", "1")
    assert other.returncode == 3  # it takes the rules away again, which is a change of them as well


def test_a_person_may_edit_the_settings_while_the_agent_is_confined(bare: Stage) -> None:
    """In a sandbox nobody else can: it is told, kept and halts nothing; without one it is not known who it was."""
    if not support():
        pytest.skip("no sandbox here")
    for option, code in (("--sandbox", 4), ("--no-sandbox", 3)):
        bare.write("fusewire.toml", "[loop]\nno_progress = 4\n")
        number = len(bare.starts()) + 1
        does = f'touch "$OUT/here$n"; while [ ! -e "$OUT/go$n" ]; do sleep 0.02; done; {WORK}'
        run = bare.start(does, option, "--max-iterations", "1")
        assert comes_true((bare.outside / f"here{number}").exists), bare.said()
        bare.write("fusewire.toml", "[loop]\nno_progress = 6\n")
        (bare.outside / f"go{number}").touch()
        assert run.wait(45) == code, bare.said()
        assert ("no_progress = 6" in (bare.root / "fusewire.toml").read_text()) == (code == 4)
        assert ("edited from outside the sandbox" in bare.said()) == (code == 4)


@pytest.mark.parametrize("place", [".fusewire/loop/status.md", ".fusewire/guard.id", "IMPLEMENTATION_PLAN.md"])
def test_a_pipe_in_the_place_of_a_file_hangs_nobody(bare: Stage, place: str) -> None:
    """Nobody will ever write into it."""
    bare.write("IMPLEMENTATION_PLAN.md", "- [ ] one\n")
    ended = bare.run(f"rm -f {place}; mkfifo {place}; echo x > w$n", "--max-iterations", "2")
    assert ended.returncode in (3, 4), ended.stderr


def test_an_agent_cannot_take_part_in_its_own_loop(bare: Stage) -> None:
    """Not by resetting it, not by ending its own iteration, not with a cleaned environment."""
    program = f"{sys.executable} -m fusewire"
    for command in ("loop begin", "loop end", "run -- true", "reset loop --reason x"):
        clean = f"env -u FUSEWIRE_AGENT -u FUSEWIRE_PROJECT {program} {command}"
        bare.run(f'{clean} 2> "$OUT/said"; echo $? > "$OUT/code"; echo $n > w$n', "--max-iterations", "1")
        assert (bare.read("code").strip(), "BLOCKED" in bare.read("said")) == ("3", True), (command, bare.read("said"))


def test_a_signal_that_no_person_sent_leaves_a_trace(bare: Stage) -> None:
    """An agent that ends its supervisor again and again is stopped by the circuit of neutral iterations."""
    codes = [bare.run("kill -TERM $PPID; sleep 5").returncode for _ in range(6)]
    assert codes == [130] * 5 + [3]


def test_a_reader_that_is_gone_ends_no_run(bare: Stage) -> None:
    """`fusewire run ... | head -1`: the loop goes on, and its exit code is its own."""
    script = (
        "exec 3>&1; { \"$0\" -m fusewire run --max-iterations 3 -- sh -c 'echo one; echo two > w$FUSEWIRE_ITERATION'"
    )
    script += "; echo $? >&3; } | head -1 > /dev/null"
    ended = subprocess.run(
        ["bash", "-c", script, sys.executable], cwd=bare.root, capture_output=True, text=True, check=False
    )
    assert ended.stdout.strip() == "4", ended.stderr
