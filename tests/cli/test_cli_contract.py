"""The command line as a contract: help, exit codes, options, pipes, and every kind of circuit."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fusewire.cli.app import COMMANDS
from fusewire.cli.guard import guard_command
from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project

ID = "git-safety"
TRIPS_AT_ONCE = "circuit_breaker:\n  violation_threshold: 1\n"

#: circuit -> (one of its signals, how many of them open it, what a reset leads to, or None if there is none)
CIRCUITS: dict[str, tuple[str, int, str | None]] = {
    "loop/no_progress": ("no_progress", 3, "HALF_OPEN"),
    "phase/GREEN": ("no_progress", 2, "CLOSED"),
    "tool/tool_failure/Bash(pytest)": ("tool_failed", 3, "CLOSED"),
    "attempt/S-1/test_login": ("test_failed", 3, None),
    "attempt/S-1": ("test_failed", 7, None),
}


# -- help and usage ---------------------------------------------------------------------------------------


def test_the_program_lists_its_commands_and_exit_codes(project: Project) -> None:
    """--help, -h, --version: exit 0, everything that exists is named, stderr is empty."""
    for flag in ("--help", "-h"):
        result = project.run(flag)
        assert (result.returncode, result.stderr) == (0, "")
        for name in COMMANDS:
            assert f"\n  {name} " in result.stdout
        for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 "):
            assert code in result.stdout.split("Exit codes:")[1]
    version = project.run("--version")
    assert (version.returncode, version.stdout.startswith("fusewire")) == (0, True)
    assert list(project.root.iterdir()) == [project.root / ".git"]


#: Every command at least once: lines of one project, each with its exit code.
CALLS: dict[str, str] = {
    "constraints": f"""
        0 record {ID} --action x
        3 check {ID}
        0 status --all
        0 history {ID}
        0 export
        0 config {ID}
        0 config show
        0 config schema
        0 constraints list
        0 enforce --tool Bash --command ls
        0 override {ID} --for 1h --reason x
        0 reset {ID} --reason x
        0 archive {ID}
        1 import nowhere.json
        0 doctor
        0 install claude --dry-run
        0 uninstall claude
        0 statusline
        2 serve --host 0.0.0.0
        2 hook claude""",
    "loop": """
        0 wait --at 12:00 --check
        0 loop begin
        0 loop end
        0 loop lessons
        4 run --max-iterations 1 -- true""",
    "phase": """
        0 phase start
        0 phase begin GREEN
        0 phase end GREEN --metric tests_passing=1 --metric tests_failing=1
        1 phase resolve reset
        0 phase status
        1 phase import nowhere.json""",
    "attempt": """
        0 attempt start S-1 test_a
        1 attempt run S-1 test_a --strategy x -- false
        0 attempt record S-1 test_a --infra
        0 attempt status S-1
        0 attempt prior S-1
        0 attempt arch-stop S-1 --reason x
        1 attempt report S-1
        0 attempt retry S-1 --guidance x
        0 attempt finish S-1""",
    "scope": """
        0 scope set S-1 a.py
        0 scope show S-1
        3 scope check S-1 b.py
        3 scope justify S-1 b.py --test t --reason x --relationship y""",
    "guard": """
        0 guard check --command ls
        0 guard explain --command ls
        0 guard snapshot
        0 guard verify
        0 guard restore
        2 sandbox""",
    "session": """
        0 wrap format -- true
        1 grant 1 --reason x
        0 spend
        0 watch --once
        0 janitor
        0 memory
        0 notify
        1 notify test
        0 notify deliver
        0 log
        0 why
        2 replay nowhere.jsonl""",
    "orders": """
        0 pause --for 1h --reason x
        0 pause --end
        0 halt --reason x
        0 resume
        1 allow-once ABCDEFGH""",
    "demo": "0 demo constraint",
}


def test_every_command_is_called_in_an_interpreter_of_its_own() -> None:
    """A new command has to be added to the calls."""
    assert {line.split()[1] for lines in CALLS.values() for line in lines.strip().splitlines()} == {*COMMANDS}


@pytest.mark.parametrize("story", CALLS)
def test_commands_import_what_they_need(project: Project, story: str) -> None:
    """`python -m fusewire` itself: other tests run a copy of a process that has everything imported already."""
    project.constraint(ID, TRIPS_AT_ONCE)
    asked = [line.split() for line in CALLS[story].strip().splitlines()]
    for code, *arguments in asked:
        result = subprocess.run(
            [sys.executable, "-m", "fusewire", *arguments],
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, "Traceback" in result.stderr) == (int(code), False), (arguments, result.stderr)


@pytest.mark.parametrize("name", [*COMMANDS, *(f"guard {name}" for name in guard_command.commands)])
def test_every_command_says_what_it_does(project: Project, name: str) -> None:
    """--help exits 0 with a sentence, a usage line and a word on every option; -h is the same."""
    result = project.run(*name.split(), "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == project.run(*name.split(), "-h").stdout
    usage, _, rest = result.stdout.partition("\n\n")
    assert usage.startswith(f"Usage: fusewire {name}")
    sentence = rest.strip().splitlines()[0]
    assert len(sentence.split()) > 3
    options = [line for line in result.stdout.splitlines() if line.startswith("  -")]
    assert options
    assert all(len(line.split("  ")) > 2 for line in options if not line.startswith("  -h, --help"))
    if name not in ("hook", "demo", "guard", "loop", "phase", "attempt", "scope", "constraints"):
        assert "--json" in result.stdout
        assert "--project" in result.stdout


def test_wrong_usage_exits_with_2(project: Project) -> None:
    """An unknown command or option, a missing id, too many of them: usage on stderr, nothing on stdout."""
    project.constraint(ID)
    for arguments in (
        ("nosuch",),
        ("status", "--nosuch"),
        ("status", ID, "another"),
        ("check",),
        ("record",),
        ("record", ID),
        ("reset",),
        ("history",),
        ("history", ID, "--days"),
        ("config",),
        ("enforce",),
        ("override", ID),
        ("archive",),
        ("hook",),
        ("hook", "emacs"),
        ("--project",),
    ):
        result = project.run(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
        assert result.stderr
        assert "Traceback" not in result.stderr


def test_unknown_ids_exit_with_1_and_one_line(project: Project) -> None:
    """Constraints and circuits of every kind, in every command that takes an id."""
    known_to_nobody = ("nope", "loop/nope", "phase/PURPLE", "tool/x/y", "attempt/", "a/b/c/d", "")
    asked = [("check", circuit) for circuit in known_to_nobody]
    asked += [
        ("status", "loop/nope"),
        ("record", "loop/nope", "--action", "x"),
        ("history", "nope"),
        ("config", "nope"),
    ]
    for arguments in asked:
        result = project.run(*arguments)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), (arguments, result)
        assert arguments[1] in result.stderr
        assert "not found" in result.stderr


# -- the project ------------------------------------------------------------------------------------------


def test_the_project_may_stand_before_and_behind_the_command(project: Project, tmp_path: Path) -> None:
    """From another folder; the one behind wins; a folder that is none is an error of one line."""
    project.constraint(ID)
    elsewhere = Project(tmp_path / "elsewhere")
    elsewhere.root.mkdir()
    root = str(project.root)
    for arguments in (
        ("--project", root, "check", ID),
        ("check", "--project", root, ID),
        ("check", ID, "--project", os.path.relpath(root, elsewhere.root)),
        ("--project", str(elsewhere.root), "check", ID, "--project", root),
    ):
        assert elsewhere.run(*arguments).returncode == 0, arguments
    assert elsewhere.run("check", ID).returncode == 1
    missing = elsewhere.run("--project", str(tmp_path / "missing"), "status")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "missing" in missing.stderr
    assert elsewhere.run("--project", str(project.root / "docs/constraints" / f"{ID}.md"), "status").returncode == 2
    assert list(elsewhere.root.iterdir()) == []


def test_without_it_the_git_top_level_above_is_the_project(project: Project, tmp_path: Path) -> None:
    """From a folder deep inside; and without a repository the folder itself."""
    project.constraint(ID)
    inner = Project(project.root / "src" / "deep")
    inner.root.mkdir(parents=True)
    assert inner.run("record", ID, "--action", "x").returncode == 0
    assert (project.root / ".fusewire").is_dir()
    assert list(inner.root.iterdir()) == []
    bare = Project(tmp_path / "bare")
    bare.root.mkdir()
    bare.constraint("here")
    assert bare.run("check", "here").returncode == 0


# -- output -----------------------------------------------------------------------------------------------


def on_a_terminal(project: Project, *arguments: str, **environment: str) -> str:
    """What the program prints when a terminal is at its end."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fusewire", *arguments],
        cwd=project.root,
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    parts = []
    try:
        while part := os.read(leader, 65536):
            parts.append(part)
    except OSError:
        pass  # the other end is closed
    os.close(leader)
    process.wait(timeout=45)
    return b"".join(parts).decode()


def test_colour_is_for_terminals_and_no_colour_wins(project: Project) -> None:
    """Colour on a terminal, none with NO_COLOR, none in a pipe; the words are the same."""
    project.constraint(ID, TRIPS_AT_ONCE)
    project.run("record", ID, "--action", "x")
    assert "\x1b[" in on_a_terminal(project, "check", ID)
    plain = on_a_terminal(project, "check", ID, NO_COLOR="1")
    assert "\x1b[" not in plain
    assert plain.startswith("BLOCKED")
    assert "\x1b[" not in project.run("check", ID).stdout
    assert "\x1b[" not in on_a_terminal(project, "demo", "constraint", NO_COLOR="1")
    story = on_a_terminal(project, "demo", FUSEWIRE_DEMO_PACE="0")
    assert "\x1b[31m\x1b[1mCIRCUIT OPEN" in story
    assert "\x1b[32m\x1b[1mDONE after" in story


def test_a_reader_that_has_gone_is_no_traceback(project: Project) -> None:
    """The pipe is closed before anything is written (`| head -0`)."""
    project.constraint(ID)
    for arguments in (["status", "--all"], ["check", ID, "--json"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run(
            [sys.executable, "-m", "fusewire", *arguments],
            cwd=project.root,
            stdout=writer,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        os.close(writer)
        assert b"Traceback" not in result.stderr, arguments
        assert b"Exception ignored" not in result.stderr, arguments


def test_closed_standard_streams_are_no_traceback(project: Project) -> None:
    """`>&-` and `<&-`, as some supervisors start their children."""
    project.constraint(ID, TRIPS_AT_ONCE)
    project.run("record", ID, "--action", "x")
    program = shlex.join([sys.executable, "-m", "fusewire"])
    for redirection, code in ((">&-", 3), ("<&-", 3)):
        result = subprocess.run(
            ["bash", "-c", f"{program} check {ID} {redirection}"],
            cwd=project.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in result.stderr, redirection
        assert result.returncode == code, redirection


def test_nothing_ever_asks(project: Project) -> None:
    """Every command ends by itself with nothing on its standard input, the acts of a person too."""
    project.constraint(ID, TRIPS_AT_ONCE)
    project.run("record", ID, "--action", "x")
    for arguments in (("override", ID, "--reason", "x"), ("reset", ID), ("archive", ID), ("import",), ("doctor",)):
        result = project.run(*arguments)  # it would time out
        assert result.returncode in (0, 1), arguments
        assert "[y/N]" not in result.stdout + result.stderr


def test_words_of_other_scripts_and_odd_names_are_printed(project: Project) -> None:
    """UTF-8 in actions, reasons and titles, whatever the locale says."""
    project.constraint(ID, TRIPS_AT_ONCE, "# Ein Gesetz über Größe 日本\n")
    project.run("record", ID, "--action", "größer 日本")
    for environment in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        result = project.run("status", ID, env=environment)
        assert (result.returncode, "Traceback" in result.stderr) == (0, False), environment
        assert "OPEN" in result.stdout


# -- the demonstration ------------------------------------------------------------------------------------


#: What each story must show, in this order.
STORIES = {
    "constraint": (
        *("passes", "DENIED", "BLOCKED constraint:git-safety-force-push", "fusewire.disarm"),
        "OPEN -> CLOSED",
    ),
    "loop": (
        *(
            "Circuit breaker is active",
            "[1] agent: I implement add()",
            "(a task was completed",
            "HALTED",
            "specs/calculator.md: restored",
        ),
        *("CIRCUIT OPEN loop.same_error: ", "waiting ", "HALF_OPEN: one probe. Strategy 1 of 4"),
        *("[6] agent: So I look at it afresh", "[7]", "DONE after", "LOOP CLOSED", "What helped: Change approach"),
    ),
    "loop --verbose": (
        *("Circuit breaker is active", "[1] CLOSED", "a task was completed", "HALTED", "specs/calculator.md: restored"),
        *("CIRCUIT OPEN loop.no_progress: 3 iterations in a row", "waiting ", "HALF_OPEN (the one probe)"),
        *("Strategy 1 of 4: Change approach", "CLOSED", "DONE after", "LOOP CLOSED", "What helped: Change approach"),
        "## Iteration 7",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_the_demonstrations_run_to_their_end_and_leave_nothing_behind(project: Project, story: str) -> None:
    """Every step of the story is shown in its order. Inside an agent too."""
    place = project.root.parent / "temporary"
    place.mkdir()
    script = 'exec "$0" -m fusewire demo $1 2>&1'  # one stream, as a newcomer sees it
    result = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, story],
        cwd=project.root,
        env={**os.environ, "TMPDIR": str(place), "CLAUDECODE": "1", "FUSEWIRE_DEMO_PACE": "0", "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    rest = result.stdout
    for words in STORIES[story]:
        assert words in rest, words
        rest = rest.partition(words)[2]
    assert story != "loop" or result.stdout.count("\n") <= 40
    assert "\x1b" not in result.stdout
    assert list(place.iterdir()) == []
    assert list(project.root.iterdir()) == [project.root / ".git"]
    assert tempfile.gettempdir() != str(place)
    home = Path(os.environ["HOME"])
    assert list(home.rglob("*")) == []


# -- circuits of every kind ---------------------------------------------------------------------------------


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_the_commands_work_on_every_kind_of_circuit(project: Project, circuit: str) -> None:
    """check, record --signal, status, history, config, and the reset that the policy has."""
    signal, limit, after_reset = CIRCUITS[circuit]
    first = project.run("check", circuit)
    assert (first.returncode, first.stdout.startswith(f"ALLOWED {circuit}")) == (0, True)
    for number in range(1, limit + 1):
        recorded = project.json("record", circuit, "--action", f"failure {number}", "--signal", signal)
        assert recorded["tripped"] is (number == limit), number
    blocked = project.json("check", circuit)
    assert (blocked["decision"], blocked["state"], blocked["id"]) == ("BLOCKED", "OPEN", circuit)
    assert blocked["next"]
    assert str(limit) in blocked["reason"]
    text = project.run("check", circuit)
    assert text.returncode == 3
    assert text.stdout.startswith("BLOCKED ")
    assert "Next:" in text.stdout
    (status,) = project.json("status", circuit)["circuits"]
    kind = circuit.split("/")[0]
    assert (status["kind"], status["state"], status["level"], status["threshold"]) == (kind, "OPEN", limit, limit)
    assert circuit in project.run("status").stdout
    assert f"failure {limit}" in project.run("history", circuit).stdout
    config = project.run("config", circuit)
    assert (config.returncode, config.stdout.splitlines()[0]) == (0, circuit)
    assert len(config.stdout.splitlines()) > 1
    reset = project.run("reset", circuit, "--reason", "looked into it")
    if after_reset is None:
        assert (reset.returncode, reset.stdout, reset.stderr.count("\n")) == (1, "", 1)
        assert project.run("check", circuit).returncode == 3
    else:
        assert (reset.returncode, f"{circuit}: OPEN -> {after_reset}" in reset.stdout) == (0, True)
        assert project.run("check", circuit).returncode == 0
    assert not (project.root / "docs").exists()


def test_the_command_that_a_message_recommends_can_be_pasted(project: Project) -> None:
    """An id with parentheses is quoted in `fusewire reset ...`, so that a shell takes the line as it is."""
    circuit = "tool/tool_failure/Bash(pytest)"
    for _ in range(3):
        project.run("record", circuit, "--action", "x")
    (step,) = [step for step in project.json("check", circuit)["next"] if "fusewire reset" in step]
    line = step[step.index("fusewire reset") :]
    checked = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert shlex.split(line)[2] == circuit


def test_a_probe_of_the_loop_after_a_reset_decides(project: Project) -> None:
    """The loop's reset only ends the cooldown; to look at it takes no probe, a failure reopens."""
    for _ in range(3):
        project.run("record", "loop/no_progress", "--action", "x")
    project.run("reset", "loop/no_progress", "--reason", "look again")
    for _ in range(2):
        probe = project.json("check", "loop/no_progress")
        assert (probe["decision"], probe["state"], probe["lease"]) == ("WARN", "HALF_OPEN", None)
    assert "ready for one probe" in project.run("check", "loop/no_progress").stdout
    failed = project.json("record", "loop/no_progress", "--action", "no change again")
    assert failed["state"] == "OPEN"
    assert 3590 < failed["retry_after"] <= 3600


def test_a_good_signal_settles_and_clears(project: Project) -> None:
    """`record --ok --signal progress` clears the count of a loop; a probe that went well closes."""
    circuit = "loop/no_progress"
    for _ in range(2):
        project.run("record", circuit, "--action", "x")
    assert project.run("record", circuit, "--ok", "--signal", "progress").returncode == 0
    assert project.json("status", circuit)["circuits"][0]["level"] == 0
    for _ in range(3):
        project.run("record", circuit, "--action", "x")
    project.run("reset", circuit, "--reason", "look again")
    with Breaker.open(project=project.root) as breaker:
        assert breaker.check(circuit).lease
    settled = project.run("record", circuit, "--ok", "--signal", "progress")
    assert (settled.returncode, "CLOSED" in settled.stdout) == (0, True)


def test_all_circuits_of_the_loop_have_one_name(project: Project) -> None:
    """`loop` in check, history, config and reset; the hour is not used up by looking; a reset needs a reason."""
    assert "ALLOWED loop: CLOSED, the strictest of 9 circuits" in project.run("check", "loop").stdout
    for _ in range(3):
        project.run("record", "loop/no_progress", "--action", "nothing done")
    blocked = project.json("check", "loop")
    assert (blocked["decision"], blocked["rule"], len(blocked["ids"])) == ("BLOCKED", "loop.no_progress", 9)
    assert project.json("status")["loop"]["calls_left"] == 100
    assert project.run("history", "loop").stdout.count("nothing done") == 3
    assert "no_progress" in project.run("config", "loop").stdout
    for circuit in ("loop", "loop/no_progress"):
        for reason in ((), ("--reason", " ")):
            refused = project.run("reset", circuit, *reason)
            assert (refused.returncode, "needs a reason" in refused.stderr) == (2, True)
    assert project.run("reset", "loop", "--reason", "the plan was wrong").returncode == 0


def test_an_unknown_signal_is_an_error_that_lists_the_known_ones(project: Project) -> None:
    """One line, exit 1, nothing recorded."""
    result = project.run("record", "phase/GREEN", "--action", "x", "--signal", "nosuch")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    for known in ("no_progress", "error", "progress"):
        assert known in result.stderr
    assert project.json("status")["circuits"] == []


def test_the_same_error_of_a_phase_is_recognised_by_its_text(project: Project) -> None:
    """Different errors in a row are not the same error."""
    for number in range(3):
        recorded = project.json("record", "phase/RED", "--action", f"error {number}", "--signal", "error")
        assert not recorded["tripped"]
    assert project.json("status", "phase/RED")["circuits"][0]["level"] == 1
