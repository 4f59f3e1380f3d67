"""`fusewire loop` around real scripts, the small Python API, and what the loop learns from its trips."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire import Blocked, Loop
from fusewire.breakers.loop.loop import OwnIteration
from tests.helpers import ROOT
from tests.helpers.project import Project

#: The fake `claude`: its nth start keeps its prompt and does what its nth step says; after the last it is finished.
CLAUDE = """#!/bin/bash
folder=$(dirname "$0")
count=$(($(cat "$folder/count") + 1))
echo $count > "$folder/count"
cat > "$folder/prompt-$count"
answer() {
  printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s","num_turns":1}\\n' \\
    "$1" "$count-$RANDOM"
}
if [ -e "$folder/step-$count" ]; then . "$folder/step-$count"; else answer "$finished"; fi
"""

FINISHED = "All is done.\n---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\n"

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: the same again\n'


class Scripts:
    """Bash scripts in a project, with `fusewire` and a fake `claude` on their path."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.root, self.folder = project.root, folder
        folder.mkdir()
        self._program("fusewire", f'#!/bin/sh\nexec "{sys.executable}" -m fusewire "$@"\n')
        self._program("claude", CLAUDE)
        (folder / "count").write_text("0\n")
        (self.root / "PROMPT.md").write_text("Build the shop.\n")
        finished = FINISHED.replace("\n", "\\n")
        self.env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "finished": finished, "OUT": str(folder)}

    def _program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def steps(self, *steps: str) -> None:
        for number, step in enumerate(steps, 1):
            (self.folder / f"step-{number}").write_text(step)

    def prompt(self, number: int) -> str:
        return (self.folder / f"prompt-{number}").read_text()

    def starts(self) -> int:
        return int((self.folder / "count").read_text())

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / "script.sh"
        path.write_text(text)
        return subprocess.run(
            ["bash", str(path)], cwd=self.root, env=self.env, capture_output=True, text=True, timeout=60, check=False
        )

    def start(self, text: str) -> subprocess.Popen[str]:
        """A script that says `begun` and then waits for a line."""
        command = ["bash", "-c", text + "\ntrue"]
        pipe = subprocess.PIPE
        script = subprocess.Popen(command, cwd=self.root, env=self.env, stdin=pipe, stdout=pipe, text=True)
        assert script.stdout is not None
        while script.stdout.readline() not in ("begun\n", ""):
            pass
        return script


@pytest.fixture
def scripts(project: Project, tmp_path: Path) -> Scripts:
    return Scripts(project, tmp_path / "tools")


@pytest.fixture
def loop(project: Project) -> Iterator[Loop]:
    loop = Loop.open(project.root)
    yield loop
    loop.breaker.close()


def once(
    loop: Loop, output: str | bytes = "", *, work: str = "", file: str = "work.txt", code: int = 0
) -> OwnIteration:
    """One iteration in this process; `work` is what it adds to a file."""
    with loop.iteration() as iteration:
        if work:
            with open(Path(loop.root) / file, "a") as opened:
                opened.write(f"{work}\n")
        iteration.answered(output, exit_code=code)
    return iteration


def trip(loop: Loop) -> None:
    """Open loop/no_progress (and the score's circuit with it)."""
    for _ in range(3):
        once(loop)
    assert loop.view()["state"] == "OPEN"


def end_cooldowns(loop: Loop) -> None:
    """As a person does it: `fusewire reset` of every circuit that is open."""
    for status in loop.breaker.statuses():
        if status.state == "OPEN":
            loop.breaker.reset(status.id, "x")


# -- the script of the help -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed() -> str:
    """The script that `fusewire loop --help` prints."""
    command = [sys.executable, "-m", "fusewire", "loop", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.removeprefix("  ") for line in shown.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("while"))
    return "\n".join(lines[start : lines.index("exit 3", start) + 1]) + "\n"


def test_the_printed_script_ends_when_the_agent_is_finished(scripts: Scripts, loop: Loop, printed: str) -> None:
    """Two iterations of work and one that says EXIT_SIGNAL: true; the prompt arrives each time."""
    scripts.steps("echo one > one.py; answer 'One.'", "echo two > two.py; answer 'Two.'")
    done = scripts.run(printed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert scripts.starts() == 3
    assert scripts.prompt(1).strip() == "Build the shop."
    assert [loop.view()[name] for name in ("iterations", "running", "calls_left")] == [3, 0, 97]


def test_the_printed_script_stops_an_agent_that_does_nothing(scripts: Scripts, printed: str) -> None:
    """Exactly three starts: the file into which the script writes the answer is nobody's work. The third was warned."""
    scripts.steps(*["answer 'Nothing to be done.'"] * 6)
    done = scripts.run(printed.replace(" --wait", ""))  # which would wait for 30 minutes now
    assert (done.returncode, scripts.starts()) == (3, 3)
    assert "Warning: 2 of 3 on loop/no_progress. Consider: Regenerate plan" in scripts.prompt(3)
    assert "CIRCUIT OPEN loop.no_progress: 3 iterations in a row brought no meaningful change" in done.stderr


def test_the_page_shows_the_printed_script(printed: str) -> None:
    """docs/loop.md has the same lines."""
    page = ROOT / "docs" / "loop.md"
    assert printed in page.read_text()


# -- begin and end --------------------------------------------------------------------------------------------

ENDS = {
    "work": ("echo x > a.py", "", "CONTINUE", 0),
    "nothing": ("true", "", "CONTINUE", 0),
    "the answer on standard input": ("echo x > a.py", "--output - <<< 'I wrote a.py.'", "CONTINUE", 0),
    "garbage": ("head -c 300000 /dev/urandom > $OUT/answer", "--output $OUT/answer", "CONTINUE", 0),
    "half an answer": ("""echo '{"type":"result","res' > $OUT/answer""", "--output $OUT/answer", "CONTINUE", 0),
    "a crash": ("true", "--exit-code 139", "CONTINUE", 0),
    "finished": ('printf "${finished}" > $OUT/answer', "--output $OUT/answer", "FINISHED", 0),
    "the plan is done": ("echo '- [x] a' > IMPLEMENTATION_PLAN.md", "", "FINISHED", 0),
    "a protected file is gone": ("rm AGENTS.md", "", "HALTED", 3),
    "no such output": ("true", "--output $OUT/none", "", 1),
    "no such test results": ("true", "--junit $OUT/none", "", 1),
    "no such iteration": ("true", "--token 000000000000", "", 1),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_end_says_of_an_iteration(scripts: Scripts, case: str) -> None:
    """One word on standard output and its exit code; an error is one line on standard error and no word."""
    act, options, word, code = ENDS[case]
    (scripts.root / "IMPLEMENTATION_PLAN.md").write_text("- [ ] a\n")
    (scripts.root / "AGENTS.md").write_text("Be careful.\n")
    done = scripts.run(f"fusewire loop begin\n{act}\nfusewire loop end {options}\n")
    assert (done.stdout.strip(), done.returncode) == (word, code), done.stderr
    if code == 1:
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
    assert (scripts.root / "AGENTS.md").read_text() == "Be careful.\n"


def test_end_without_begin_is_one_clear_line(scripts: Scripts) -> None:
    """Nothing is judged, and the exit code says that it is an error."""
    done = scripts.run("fusewire loop end\n")
    assert done.returncode == 1
    assert done.stderr == "Error: no iteration of this script is under way; begin one: fusewire loop begin\n"


def test_an_end_that_failed_can_be_repeated(scripts: Scripts, loop: Loop) -> None:
    """After a wrong file name the iteration is still under way and counts once."""
    text = "fusewire loop begin\necho x > a.py\nfusewire loop end --output $OUT/none\nfusewire loop end\n"
    assert scripts.run(text).stdout == "CONTINUE\n"
    assert [loop.view()[name] for name in ("iterations", "running", "score")] == [1, 0, 1]


def test_a_time_out_keeps_the_work(scripts: Scripts, loop: Loop) -> None:
    """124 is a time-out: what was changed counts, and what was printed is no error."""
    scripts.run("fusewire loop begin\necho x > a.py\nfusewire loop end --exit-code 124 --output - <<< 'Half a sen'\n")
    last = loop.view()["last"]
    assert [last[name] for name in ("ended", "kind", "score", "errors")] == ["timeout", "progress", 1, []]


def test_junit_results_are_read_and_are_no_work(scripts: Scripts, loop: Loop) -> None:
    """What the script itself hands over (answer, test results) may lie in the project; writing it changes nothing."""
    failing = "<testcase name='b'><failure/></testcase>"
    report = f"<testsuite time='$RANDOM'><testcase name='a'/>{failing}</testsuite>"
    script = (
        f'fusewire loop begin\necho "{report}" > report.xml\necho "Nothing $RANDOM." > answer.txt\n'
        "fusewire loop end --output answer.txt --junit report.xml\n"
    )
    assert scripts.run(script).stdout == "CONTINUE\n"
    last = loop.view()["last"]
    assert last["tests"] == [1, 1, 0, 0]
    assert [last["kind"], last["names"]] == ["none", []]


def test_the_third_iteration_without_a_change_is_halted(scripts: Scripts, loop: Loop) -> None:
    """HALTED and exit 3 at the end; begin is refused from then on, says why on standard error and counts no call."""
    once(loop)
    once(loop)
    text = "fusewire loop begin > $OUT/advice\nfusewire loop end\necho $?\nfusewire loop begin\necho $?\n"
    done = scripts.run(text)
    assert done.stdout == "HALTED\n3\n3\n"
    assert "Warning: 2 of 3 on loop/no_progress" in (scripts.folder / "advice").read_text()
    opened, refused = done.stderr.split("BLOCKED ")
    assert "CIRCUIT OPEN loop.no_progress: 3 iterations in a row brought no meaningful change (limit 3)." in opened
    assert "No iteration runs while it is open." in opened
    assert "A probe is allowed at" in refused
    assert "fusewire reset loop --reason" in refused
    assert [loop.view()[name] for name in ("iterations", "running", "calls_left")] == [3, 0, 97]


def test_json_of_begin_and_end(project: Project, loop: Loop) -> None:
    """Programs get the token, the advice as a list, the verdict with its points; and the refusal."""
    begun = project.json("loop", "begin")
    assert begun.items() >= {"decision": "ALLOWED", "iteration": 1, "state": "CLOSED", "calls_left": 99}.items()
    assert begun["advice"] == []
    ended = project.json("loop", "end", "--token", begun["token"])
    facts = {"verdict": "CONTINUE", "iteration": 1, "kind": "none", "score": -3, "risk": "MEDIUM"}
    assert ended.items() >= {**facts, "halted": None, "finished": None}.items()
    assert ended["trips"] == []
    assert ended["points"] == {"no file was changed": -3}
    once(loop)
    once(loop)
    refused = project.json("loop", "begin")
    assert [refused["decision"], refused["state"]] == ["BLOCKED", "OPEN"]
    assert 1700 < refused["retry_after"] <= 1800


# -- waiting --------------------------------------------------------------------------------------------------


def waiting(scripts: Scripts) -> subprocess.Popen[str]:
    """`loop begin --wait`, once it has said what it waits for."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "fusewire", "loop", "begin", "--wait"]
    process = subprocess.Popen(command, cwd=scripts.root, env=scripts.env, stdout=pipe, stderr=pipe, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("waiting 29m 5")
    return process


def test_a_reset_ends_the_wait_with_a_probe(scripts: Scripts, project: Project, loop: Loop) -> None:
    """While a circuit is open --wait waits; a person's reset of what is open lets the one probe begin, with advice."""
    trip(loop)
    process = waiting(scripts)
    assert project.run("reset", "loop/no_progress", "--reason", "mended").returncode == 0
    assert process.poll() is None
    assert project.run("reset", "loop/score", "--reason", "mended").returncode == 0
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "(iteration 4, circuit HALF_OPEN)" in said
    assert "- Strategy 1 of 4: Regenerate plan with fresh analysis." in said


def test_a_wait_can_be_interrupted(scripts: Scripts, loop: Loop) -> None:
    """Ctrl-C ends it with 130, and no iteration has begun."""
    trip(loop)
    process = waiting(scripts)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert loop.view()["running"] == 0


# -- whose iteration ------------------------------------------------------------------------------------------

TOKEN = "$(fusewire loop begin --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"token\"])')"


def test_tokens_name_iterations(scripts: Scripts) -> None:
    """One script with two iterations at once ends each by its token, in any order."""
    text = (
        "fusewire loop begin --json > $OUT/one; fusewire loop begin --json > $OUT/two\n"
        """token() { python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])' < $OUT/$1; }\n"""
        "fusewire loop end --json --token $(token one); fusewire loop end --json --token $(token two)\n"
    )
    assert [one["iteration"] for one in documents(scripts.run(text).stdout)] == [1, 2]


def test_a_token_that_went_through_a_pipe_is_not_lost(scripts: Scripts, loop: Loop) -> None:
    """The subshell of `$(... | jq)` ends at once; the script goes on, so no other begin may settle what it began."""
    other = "bash -c 'fusewire loop begin; echo x > b.py; fusewire loop end; true'"
    done = scripts.run(f"token={TOKEN}\n{other}\nfusewire loop end --token $token\n")
    assert (done.stdout, done.returncode) == ("CONTINUE\nCONTINUE\n", 0), done.stderr
    assert loop.view()["iterations"] == 2


def test_a_line_of_shell_is_a_script(scripts: Scripts) -> None:
    """A shell replaces itself by its last command; `end` still knows whose iteration it is."""
    command = ["bash", "-c", "fusewire loop begin; echo x > a.py; fusewire loop end"]
    done = subprocess.run(command, cwd=scripts.root, env=scripts.env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("CONTINUE\n", 0), done.stderr


def test_two_scripts_at_once_end_what_they_began(scripts: Scripts, loop: Loop) -> None:
    """Each gets a number of its own and ends its own iteration; that both see the work of both is no going round."""
    text = "fusewire loop begin\necho begun\nread\necho {0} > {0}.py\necho written\nread\nfusewire loop end --json"
    both = [scripts.start(text.format(name)) for name in "ab"]
    for script in both:
        assert script.stdin is not None
        assert script.stdout is not None
        script.stdin.write("\n")
        script.stdin.flush()
        assert script.stdout.readline() == "written\n"
    ended = [json.loads(script.communicate("\n", timeout=60)[0]) for script in both]
    assert [one["iteration"] for one in ended] == [1, 2]
    assert [loop.view()[name] for name in ("iterations", "running", "calls_left")] == [2, 0, 98]
    assert [one["verdict"] for one in ended] == ["CONTINUE", "CONTINUE"], ended[1]["trips"]


@pytest.mark.parametrize(("work", "kind"), [("echo x > a.py", "progress"), ("true", "neutral")])
def test_a_killed_script_is_settled_by_the_next_begin(scripts: Scripts, loop: Loop, work: str, kind: str) -> None:
    """What it had changed counts; if it had changed nothing, nobody knows."""
    script = scripts.start(f"fusewire loop begin\n{work}\necho begun\nread")
    script.kill()
    script.communicate()
    assert loop.view()["running"] == 1
    assert scripts.run("fusewire loop begin\nfusewire loop end\n").stdout == "CONTINUE\n"
    history = loop.view()
    assert [history["iterations"], history["running"], history["calls_left"]] == [2, 0, 98]
    status = (scripts.root / ".fusewire" / "loop" / "status.md").read_text()
    assert "## Iteration 1 " in status
    assert ("Progress score: none (neutral)" in status) == (kind == "neutral")


def test_the_probe_of_a_killed_script_is_free_again(scripts: Scripts, loop: Loop) -> None:
    """It has neither failed nor succeeded: the next one is the probe, with the same strategy."""
    trip(loop)
    end_cooldowns(loop)
    script = scripts.start("fusewire loop begin\necho begun\nread")
    script.kill()
    script.communicate()
    done = scripts.run("fusewire loop begin\n")
    assert "circuit HALF_OPEN" in done.stdout
    assert "Strategy 1 of 4" in done.stdout


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON objects that stand one after the other in a text."""
    found, at = [], 0
    while at < len(text.rstrip()):
        one, end = json.JSONDecoder().raw_decode(text[at:])
        found.append(one)
        at += end + 1
    return found


WORKER = """
import json, os, sys
from fusewire import Loop

root, name = sys.argv[1:]
loop = Loop.open(root)
print("ready", flush=True)
sys.stdin.readline()
numbers = []
for step in "abcde":
    with loop.iteration() as iteration:
        with open(os.path.join(root, f"{name}-{step}.txt"), "w") as file:
            file.write(f"the work of {name} at {step}")
        said = f"Task {name}{step}.\\n---RALPH_STATUS---\\nTASKS_COMPLETED_THIS_LOOP: 1\\n---END_RALPH_STATUS---\\n"
        iteration.answered(said)
    numbers.append([iteration.number, iteration.result.number])
print(json.dumps(numbers))
"""


def test_eight_processes_at_once(project: Project, loop: Loop) -> None:
    """Five iterations each: every number is given once, none is lost, every call and every iteration is counted."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", WORKER, str(project.root)]
    workers = [subprocess.Popen([*command, name], stdin=pipe, stdout=pipe, text=True) for name in "abcdefgh"]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    pairs = [pair for worker in workers for pair in json.loads(worker.communicate(timeout=60)[0])]
    assert sorted(begun for begun, _ in pairs) == list(range(1, 41))
    assert all(begun == ended for begun, ended in pairs)
    view = loop.view()
    assert [view[name] for name in ("iterations", "running", "calls_left", "state")] == [40, 0, 60, "CLOSED"]
    log = (project.root / ".fusewire" / "loop" / "status.md").read_text()
    assert sorted(int(line.split()[2]) for line in log.splitlines() if line.startswith("## ")) == list(range(1, 41))


# -- the Python API -------------------------------------------------------------------------------------------


def test_the_python_api(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project around the current folder; the answer may come in parts, as text or bytes."""
    folder = project.root / "src"
    folder.mkdir()
    monkeypatch.chdir(folder)
    loop = Loop.open()
    with loop.iteration() as it:
        assert (it.number, it.advice) == (1, "")
        (folder / "a.py").write_text("a = 1\n")
        it.answered("All is")
        it.answered(FINISHED[6:].encode())
    assert (it.result.score, it.result.kind, it.result.state) == (1, "progress", "CLOSED")
    assert it.result.change.files == ("src/a.py",)
    assert it.result.finished == "the agent says EXIT_SIGNAL: true"


def test_a_box_that_the_first_iteration_ticks_is_a_task(project: Project) -> None:
    """What was ticked before it is known from its beginning; ticked again it is no task."""
    plan = project.root / "IMPLEMENTATION_PLAN.md"
    plan.write_text("- [x] a\n- [ ] b\n- [ ] c\n")
    loop = Loop.open(project.root)
    seen = []
    for text in ("- [x] a\n- [x] b\n- [ ] c\n", "- [x] a\n- [ ] b\n- [ ] c\n", "- [x] a\n- [x] b\n- [ ] c\n"):
        with loop.iteration() as it:
            plan.write_text(text)
        seen.append(it.result.entry["tasks"])
    assert seen == [1, 0, 0]


def test_few_calls_left_are_told_to_the_agent(project: Project) -> None:
    """From 80 % of the limit on; when the hour is full nothing begins, and nothing has opened."""
    (project.root / "fusewire.toml").write_text("[loop]\nmax_calls_per_hour = 5\n")
    loop = Loop.open(project.root)
    told = [once(loop, work=f"step {step}").advice for step in range(5)]
    assert told[:3] == ["", "", ""]
    assert "1 of 5 calls are left in this hour: do what matters most first." in told[3]
    assert "0 of 5 calls are left" in told[4]
    with pytest.raises(Blocked, match=r"loop\.rate: 5 of 5 calls within 1h"):
        once(loop)
    assert loop.view()["state"] == "CLOSED"


def test_blocked_is_raised(loop: Loop) -> None:
    """The body does not run, nothing is counted, and the exception says why and for how long."""
    trip(loop)
    with pytest.raises(Blocked, match=r"loop\.(no_progress|score): ") as caught, loop.iteration():
        pytest.fail("it ran")
    assert 1700 < (caught.value.decision.retry_after or 0) <= 1800
    assert [loop.view()[name] for name in ("iterations", "running", "calls_left")] == [3, 0, 97]


def test_an_exception_inside_is_an_error_of_the_iteration(loop: Loop) -> None:
    """It goes through to the caller; the same one twice is the same error."""
    for _ in range(2):
        with pytest.raises(ValueError, match="no model"), loop.iteration() as it:
            raise ValueError("no model")
    assert it.result.entry["errors"] == ["exit 1: ValueError: no model"]
    assert it.result.points == {"the same error as before": -2, "no file was changed": -3}


def test_an_interruption_gives_the_probe_back(loop: Loop) -> None:
    """Neither good nor bad: no iteration is judged, the call stays counted, the next one is the probe."""
    trip(loop)
    end_cooldowns(loop)
    with pytest.raises(KeyboardInterrupt), loop.iteration():
        raise KeyboardInterrupt
    assert [loop.view()[name] for name in ("iterations", "running", "calls_left")] == [3, 0, 96]
    assert "Strategy 1 of 4" in once(loop, work="at last").advice
    assert loop.view()["state"] == "CLOSED"


@pytest.mark.parametrize(("work", "kind"), [("half", "progress"), ("", "none")])
def test_a_time_out_in_python(loop: Loop, work: str, kind: str) -> None:
    """Told by `timed_out`; only the work decides."""
    with loop.iteration() as it:
        if work:
            (Path(loop.root) / "a.py").write_text(work)
        it.answered("I am about to", exit_code=-9, timed_out=True)
    assert (it.result.ended, it.result.kind, it.result.entry["errors"]) == ("timeout", kind, [])


@pytest.mark.parametrize("output", ["half a \ud83d character", b"\xff\xfe\x00", "", "\0" * 70_000])
def test_any_output_can_be_told(loop: Loop, output: str | bytes) -> None:
    """Also half of a surrogate pair, which JSON may carry."""
    assert once(loop, output, work="x").result.score == 1


def test_a_folder_without_git(tmp_path: Path) -> None:
    """Its files are looked at themselves: a new one is progress, and nothing is none."""
    loop = Loop.open(tmp_path)
    assert once(loop, work="x").result.change.files == ("work.txt",)
    assert once(loop).result.kind == "none"


# -- recovery and lessons -------------------------------------------------------------------------------------


def _nothing(loop: Loop, step: int) -> OwnIteration:
    return once(loop)


def _same_error(loop: Loop, step: int) -> OwnIteration:
    task = f"Task {chr(97 + step)}.\n---RALPH_STATUS---\nTASKS_COMPLETED_THIS_LOOP: 1\n---END_RALPH_STATUS---\n"
    return once(loop, f"{TRACEBACK}\n{task}", work=f"step {step}", code=1)


def _test_fix(loop: Loop, step: int) -> OwnIteration:
    with loop.iteration() as iteration:
        (Path(loop.root) / "test_shop.py").write_text(f"def test_shop():\n    assert 1 + {step} == {1 + step}\n")
    return iteration


def _circular(loop: Loop, step: int) -> OwnIteration:
    approach = "a larger timeout" if step % 2 else "a retry"
    said = f"---RALPH_STATUS---\nAPPROACH: {approach}\n---END_RALPH_STATUS---\n"
    return once(loop, said, work=f"step {step}", file=f"step{step}.py")


#: The seed's recovery table: what leads there, after how many iterations, and the four strategies.
RECOVERY: dict[str, tuple[Callable[[Loop, int], OwnIteration], int, tuple[str, str, str, str]]] = {
    "no_progress": (
        *(_nothing, 3),
        (
            "Regenerate plan with fresh analysis",
            "Break stuck task into 3+ subtasks",
            "Skip to next task, return later",
            "Escalate to user",
        ),
    ),
    "same_error": (
        *(_same_error, 5),
        (
            "Change approach entirely",
            "Check if error is environmental",
            "Search for known issue/workaround",
            "Escalate with error log",
        ),
    ),
    "test_fix": (
        *(_test_fix, 3),
        (
            "Review test assumptions",
            "Check if implementation approach is flawed",
            "Simplify implementation scope",
            "Escalate with test analysis",
        ),
    ),
    "circular": (
        *(_circular, 4),
        (
            "Step back and re-analyze root cause",
            "Try approach NOT yet attempted",
            "Reduce scope to minimal working version",
            "Escalate with approach history",
        ),
    ),
}


@pytest.mark.parametrize("name", RECOVERY)
def test_strategies_are_handed_out_step_by_step(loop: Loop, name: str) -> None:
    """Each failed probe leads to the next strategy, and the cooldown doubles; what helped in the end is learned."""
    act, at, strategies = RECOVERY[name]
    (Path(loop.root) / "test_shop.py").write_text("def test_shop():\n    pass\n")
    trips = [[one.circuit for one in act(loop, step).result.trips] for step in range(at)]
    assert trips[:-1] == [[]] * (at - 1)
    assert f"loop/{name}" in trips[-1]
    circuit = f"loop/{name}"
    for step, strategy in enumerate(strategies, 1):
        until = loop.breaker.status(circuit).retry_after
        assert until == pytest.approx(1800 * 2 ** (step - 1), abs=20)
        end_cooldowns(loop)
        probe = once(loop, work="it works now" if step == 4 else "")
        assert f"The circuit {circuit} opened: " in probe.advice
        assert f"- Strategy {step} of 4: {strategy}.\n" in probe.advice
        assert probe.result.escalates == (step == 3)
    assert loop.view()["state"] == "CLOSED"
    (lesson,) = [one for one in loop.view()["lessons"] if one["circuit"] == circuit]
    assert lesson["tried"] == list(strategies)
    assert lesson["helped"] == strategies[3]


def test_a_trip_becomes_a_lesson_for_later_runs(scripts: Scripts, project: Project, loop: Loop) -> None:
    """With what helped, once the probe has succeeded. A later run's first iteration is given it, its second is not."""
    assert project.run("loop", "lessons").stdout == "nothing yet: no circuit of this project's loop has opened\n"
    trip(loop)
    pattern = "loop/no_progress: 3 iterations in a row brought no meaningful change (limit 3)"
    shown = project.run("loop", "lessons").stdout
    assert f" {pattern} (the agent ended; no file changed, no task completed)\n" in shown
    for circuit in ("loop/no_progress", "loop/score"):
        assert project.run("reset", circuit, "--reason", "x").returncode == 0
    once(loop, work="it works now")
    lessons = {one["circuit"]: one for one in project.json("loop", "lessons")["lessons"]}
    assert set(lessons) == {"loop/no_progress", "loop/score"}
    assert lessons["loop/no_progress"]["helped"] == "Regenerate plan with fresh analysis"
    assert lessons["loop/no_progress"]["text"].startswith(pattern)
    agent = 'cat > "$OUT/given-$FUSEWIRE_ITERATION"; date +%N >> work.txt'
    command = ["run", "--prompt", "PROMPT.md", "--max-iterations", "2", "--", "bash", "-c", agent]
    assert project.run(*command, env=scripts.env).returncode == 4
    first, second = ((scripts.folder / f"given-{number}").read_text() for number in (5, 6))
    assert f"- Learned before: {pattern}" in first
    assert "What helped: Regenerate plan with fresh analysis." in first
    assert second == "Build the shop.\n"


def test_a_new_script_is_given_the_lessons_once(scripts: Scripts, loop: Loop) -> None:
    """Its first `loop begin` prints them as a run's first prompt has them; its second does not."""
    trip(loop)
    end_cooldowns(loop)
    once(loop, work="it works now")
    begin = "fusewire loop begin\necho x >> a.py\nfusewire loop end\n"
    first, second, _ = scripts.run(begin * 2).stdout.split("CONTINUE\n")
    assert "- Learned before: loop/no_progress: " in first
    assert second == ""


def test_a_probe_is_given_what_was_tried_before(loop: Loop) -> None:
    """What failed in earlier probes stands there as tried in vain."""
    trip(loop)
    end_cooldowns(loop)
    assert "Learned before" not in once(loop).advice
    end_cooldowns(loop)
    assert "Tried in vain: Regenerate plan with fresh analysis." in once(loop).advice


def test_thirty_lessons_are_kept(project: Project) -> None:
    """The oldest give way; the same trip again is one lesson, with how often it has come."""
    (project.root / "fusewire.toml").write_text("[loop]\nsame_error = 1\n")
    loop = Loop.open(project.root)
    letters = "abcdefghijklmnopqrstuvwxyzäöüß" + "zéè"
    for step, letter in enumerate(letters):
        output = TRACEBACK.replace("the same again", f"number {letter * 3} is wrong")
        tripped = once(loop, output, work=f"{step} {letter}", code=1).result.trips
        assert [one.circuit for one in tripped] == ["loop/same_error"]
        end_cooldowns(loop)
        once(loop, f"Mended {letter}.", work=f"{step} mended")
    lessons = loop.view()["lessons"]
    assert len(lessons) == 30
    assert "number ccc is wrong" in lessons[0]["cause"]
    assert "number èèè is wrong" in lessons[-1]["cause"]
    assert [one["times"] for one in lessons if "number zzz" in one["cause"]] == [2]
    assert all(one["helped"] == "Change approach entirely" for one in lessons)
