"""Agents that start agents, and runs beside runs: a chain ends at its limit, and so does a crowd."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.breakers.session import nesting
from fusewire.breakers.session.messages import LIMIT
from fusewire.engine.breaker import Breaker
from fusewire.run.registry import CIRCUIT, NAME, RegisteredRun, under_way
from tests.helpers.agents import comes_true, is_running
from tests.helpers.agents.run_stage import WORK, Stage, staged

#: An agent that works until it is told to go, or ended.
WORKS = f'echo "$$" >> "$OUT/pids"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done; {WORK}'

#: How deep the tests themselves run.
BASE = nesting.depth(os.environ)

SETTINGS = {"hook_recursion.enabled": True, "hook_recursion.max_depth": 5}

PROGRAM = f"{sys.executable} -m fusewire"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = staged(tmp_path, None)
    yield stage
    stage.close()


def begin(stage: Stage, count: int, does: str = WORKS, *options: str) -> list[subprocess.Popen[str]]:
    """So many runs, one after the other, each with its agent at work."""
    runs = []
    for _ in range(count):
        before = len(agents(stage))
        runs.append(stage.start(does, "--max-iterations", "1", *options))
        assert comes_true(lambda before=before: len(agents(stage)) > before), stage.said()  # type: ignore[misc]
    return runs


def agents(stage: Stage) -> list[int]:
    """The agents in the order in which they have begun."""
    return [int(word) for word in stage.read("pids").split()]


def known(stage: Stage) -> list[RegisteredRun]:
    with Breaker.open(project=stage.root) as breaker:
        return under_way(breaker.store)


def remember(stage: Stage, *runs: object) -> None:
    """Put runs into the registry that nobody has registered."""
    with Breaker.open(project=stage.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember(
            NAME, {"runs": [dict(vars(run)) if isinstance(run, RegisteredRun) else run for run in runs]}, 1.0
        )


def limited(stage: Stage, most: int) -> None:
    stage.write("fusewire.toml", f"[tool]\nresource_limits.max_concurrent_agents = {most}\n")


# -- a crowd -----------------------------------------------------------------------------------------------


def test_the_sixth_run_is_refused_and_told_which_are_running(stage: Stage) -> None:
    """Exit 3 in the seed's words: the five that run, the oldest first, with pid and age, and the ways on."""
    runs = begin(stage, 5)
    ended = stage.run(WORKS, "--max-iterations", "1", "--json")
    assert (ended.returncode, len(agents(stage))) == (3, 5), ended.stderr
    limit = f"{LIMIT} 5 runs of this project are under way (limit 5)"
    assert f"BLOCKED tool.agents: {limit}.\n" in ended.stderr
    assert re.findall(r"^  pid (\d+) \(\d+s\) sh -c ", ended.stderr, re.M) == [str(run.pid) for run in runs]
    for way in ("wait until one of them has ended", "fusewire run --end-oldest", "max_concurrent_agents under [tool]"):
        assert way in ended.stderr
    report = json.loads(ended.stdout)
    assert (report["exit"], report["iterations"], report["decision"]["rule"]) == (3, 0, "tool.agents")
    assert report["decision"]["reason"] == limit
    assert [run.poll() for run in runs] == [None] * 5
    for run in runs:
        run.send_signal(signal.SIGINT)
    assert [run.wait(45) for run in runs] == [130] * 5
    assert known(stage) == []
    (stage.outside / "go").touch()
    assert stage.run(WORKS, "--max-iterations", "1").returncode == 4


def test_of_six_at_once_exactly_one_is_refused(stage: Stage) -> None:
    """Nobody counts before another has written."""
    runs = [stage.start(WORKS, "--max-iterations", "1") for _ in range(6)]
    assert comes_true(lambda: len(agents(stage)) == 5 and any(run.poll() is not None for run in runs))
    assert sorted(str(run.poll()) for run in runs) == ["3", *["None"] * 5]
    assert {run.pid for run in known(stage)} == {run.pid for run in runs if run.poll() is None}


def test_a_killed_run_frees_its_place(stage: Stage) -> None:
    """kill -9 leaves an entry that the next look drops, and its agent is ended all the same."""
    limited(stage, 2)
    first, _ = begin(stage, 2)
    first.kill()
    first.wait()
    (third,) = begin(stage, 1)
    assert first.pid not in [run.pid for run in known(stage)]
    assert third.pid in [run.pid for run in known(stage)]
    assert comes_true(lambda: not is_running(agents(stage)[0]))
    assert stage.run(WORKS).returncode == 3


@pytest.mark.parametrize(
    "entries",
    ["nothing", ["a"], [{"process": "x:1:b", "command": "c", "at": 1.0}], [{"process": "1:1", "command": 1, "at": 0}]],
)
def test_an_odd_registry_stops_nobody(stage: Stage, entries: object) -> None:
    """What cannot be read is no run."""
    with Breaker.open(project=stage.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember(NAME, {"runs": entries}, 1.0)
    assert known(stage) == []
    assert stage.run("echo x > w", "--max-iterations", "1").returncode == 4


def test_a_run_that_was_forgotten_says_again_that_it_is_there(stage: Stage) -> None:
    """A state that was lost and rebuilt knows none: otherwise that would lift the limit for as long as they run."""
    limited(stage, 1)
    run = stage.start(f'[ "$n" = 1 ] && rm -f "$OUT/go"; {WORKS}')
    assert comes_true(lambda: agents(stage)), stage.said()
    remember(stage)
    (stage.outside / "go").touch()
    assert comes_true(lambda: len(agents(stage)) > 1), stage.said()
    assert [one.pid for one in known(stage)] == [run.pid], stage.said()


# -- the oldest makes room ---------------------------------------------------------------------------------


def test_exactly_the_oldest_is_ended_in_order(stage: Stage) -> None:
    """It exits 130 and says for whom, its agent is gone, its iteration is no judgement, and the act is audited."""
    limited(stage, 3)
    runs = begin(stage, 3)
    begin(stage, 1, WORKS, "--end-oldest")
    assert [run.poll() for run in runs] == [130, None, None], stage.said()
    assert f"ending the oldest run to make room: pid {runs[0].pid} (" in stage.said()
    newest = known(stage)[-1]
    assert f"ended to make room for another run (pid {newest.pid}, --end-oldest)" in stage.said(0)
    assert [one.pid for one in known(stage)] == [runs[1].pid, runs[2].pid, newest.pid]
    assert [is_running(pid) for pid in agents(stage)] == [False, True, True, True]
    assert (stage.loop()["running"], stage.loop()["iterations"]) == (3, 0)
    with Breaker.open(project=stage.root) as breaker:
        (row,) = breaker.store.audit_of(CIRCUIT)
    assert row.reason.startswith(f"ended to make room for pid {newest.pid}: pid {runs[0].pid} (")
    assert (row.cause, row.actor != "") == ("ended", True)
    assert "ended to make room" in stage.call("history", CIRCUIT).stdout


def test_where_there_is_room_nobody_is_ended(stage: Stage) -> None:
    limited(stage, 2)
    (run,) = begin(stage, 1)
    begin(stage, 1, WORKS, "--end-oldest")
    assert (run.poll(), len(known(stage))) == (None, 2)


def test_two_that_end_the_oldest_end_two(stage: Stage) -> None:
    """Each inherits the place of one, and nobody takes it in between."""
    limited(stage, 3)
    runs = begin(stage, 3)
    heirs = [stage.start(WORKS, "--max-iterations", "1", "--end-oldest") for _ in range(2)]
    assert comes_true(lambda: len(agents(stage)) == 5), [stage.said(one) for one in range(5)]
    assert [run.wait(45) for run in runs[:2]] == [130, 130]
    assert [runs[2].poll(), *(heir.poll() for heir in heirs)] == [None, None, None]
    assert {one.pid for one in known(stage)} == {runs[2].pid, *(heir.pid for heir in heirs)}


def test_a_stopped_run_is_ended_too(stage: Stage) -> None:
    """Ctrl-Z: it has to go on in order to end."""
    limited(stage, 1)
    (run,) = begin(stage, 1)
    run.send_signal(signal.SIGSTOP)
    begin(stage, 1, WORKS, "--end-oldest")
    assert run.wait(45) == 130


def test_a_run_that_ignores_the_signal_is_killed_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time; neither its group nor whoever started it is touched, and its agent is ended by others."""
    limited(stage, 1)
    deaf = stage.outside / "deaf.py"
    deaf.write_text(
        "import signal, sys\nfrom fusewire.cli.app import main\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsys.exit(main(sys.argv[1:]))\n"
    )
    shell = f'"$0" "$1" run -- sh -c \'{WORKS}\' & wait $!; echo "$?" > "$OUT/code"; sleep 60'
    environment = {**os.environ, "OUT": str(stage.outside)}
    beside = subprocess.Popen(["sh", "-c", shell, sys.executable, str(deaf)], cwd=stage.root, env=environment)
    try:
        assert comes_true(lambda: agents(stage))
        monkeypatch.setattr("fusewire.run.registry._GRACE", 0.5)
        from fusewire.run.registry import RunPlace

        with Breaker.open(project=stage.root) as breaker:
            place = RunPlace(breaker.engine, 1, ["sh"])
            assert place.take() is not None
            assert place.inherit("me", lambda: False, lambda text: None) is None
            place.leave()
        assert comes_true(lambda: stage.read("code").strip() == "137")
        assert beside.poll() is None
        assert comes_true(lambda: not is_running(agents(stage)[0]))
    finally:
        beside.kill()
        beside.wait()


def test_a_number_that_somebody_else_has_by_now_is_neither_counted_nor_signalled(stage: Stage) -> None:
    """The registry says this pid, but another start: a bystander."""
    limited(stage, 1)
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        start, boot = (Path("/proc") / str(bystander.pid) / "stat").read_text().rpartition(")")[2].split()[19], "boot"
        remember(stage, RegisteredRun(f"{bystander.pid}:{int(start) - 1}:{boot}", "an old run", 1.0))
        assert known(stage) == []
        begin(stage, 1, WORKS, "--end-oldest")
        assert bystander.poll() is None
        assert "ending the oldest" not in stage.said()
    finally:
        bystander.kill()
        bystander.wait()


def test_a_number_that_changes_hands_before_the_signal_is_not_signalled(stage: Stage) -> None:
    """Between the look and the signal: only the process that registered itself gets one."""
    from fusewire.run.registry import _signal

    bystander = subprocess.Popen(["sleep", "60"])
    try:
        _signal(RegisteredRun(f"{bystander.pid}:1:boot", "an old run", 1.0), signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            bystander.wait(0.3)
    finally:
        bystander.kill()
        bystander.wait()


def test_too_many_for_one_to_make_room(stage: Stage) -> None:
    """The limit was lowered: nobody is ended in vain."""
    runs = begin(stage, 2)
    limited(stage, 1)
    ended = stage.run(WORKS, "--end-oldest")
    assert (ended.returncode, [run.poll() for run in runs]) == (3, [None] * 2)
    assert (
        "2 runs of this project are under way (limit 1), and ending the oldest one would not make room" in ended.stderr
    )


def test_an_interrupted_wait_for_the_oldest_takes_no_place(stage: Stage) -> None:
    """Ctrl-C while the oldest is being ended: exit 130, and the claim is gone."""
    limited(stage, 1)
    begin(stage, 1, f"trap '' TERM; {WORKS}")
    heir = stage.start(WORKS, "--end-oldest")
    assert comes_true(lambda: "ending the oldest run" in stage.said())
    heir.send_signal(signal.SIGINT)
    assert heir.wait(45) == 130
    assert [one.heir for one in known(stage)] in ([""], [])


@pytest.mark.parametrize("variable", ["CLAUDECODE", "FUSEWIRE_AGENT"])
def test_an_agent_does_not_end_other_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """A person does."""
    limited(stage, 1)
    (run,) = begin(stage, 1)
    monkeypatch.setenv(variable, "1")
    ended = stage.run(WORKS, "--end-oldest")
    assert (ended.returncode, run.poll()) == (3, None)
    assert "BLOCKED: `fusewire run --end-oldest` is for a person" in ended.stderr


# -- a chain -----------------------------------------------------------------------------------------------


def chain(stage: Stage, cleaned: str = "") -> subprocess.CompletedProcess[str]:
    """An agent that starts a run of itself, each in a project of its own; every level writes down its depth."""
    agent = stage.outside / "agent.sh"
    agent.write_text(
        'echo "$FUSEWIRE_DEPTH" >> "$OUT/depths"\n'
        'next="$OUT/level$FUSEWIRE_DEPTH"; mkdir -p "$next"; cd "$next" || exit 9\n'
        f'{cleaned} {PROGRAM} --project "$next" run --max-iterations 1 -- sh "$OUT/agent.sh" 2>> "$OUT/said"\n'
        'echo "$?" >> "$OUT/codes"\n'
    )
    ended: subprocess.CompletedProcess[str] = stage.run('. "$OUT/agent.sh"', "--max-iterations", "1")
    return ended


@pytest.mark.parametrize("cleaned", ["", "env FUSEWIRE_DEPTH=0"], ids=["plain", "cleaned"])
def test_a_chain_of_runs_ends_at_the_sixth(stage: Stage, cleaned: str) -> None:
    """Each in another project, so that no other rule stops it; cleaning the environment does not help."""
    ended = chain(stage, cleaned)
    assert ended.returncode == 4, ended.stderr
    assert stage.read("depths").split() == [str(level) for level in range(BASE + 1, 6)]
    assert stage.read("codes").split() == ["3", *["4"] * (4 - BASE)]
    refused = (
        "BLOCKED tool.hook_recursion: Circuit breaker tripped: agents that start agents are 6 deep here (limit 5)."
    )
    assert stage.read("said").count(refused) == 1
    assert "A person can allow more: hook_recursion.max_depth" in stage.read("said")


@pytest.mark.parametrize(("setting", "code"), [("max_depth = 2", 4), ("max_depth = 1", 3), ("enabled = false", 4)])
def test_the_limit_of_the_chain_is_a_setting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, setting: str, code: int
) -> None:
    """It counts how deep the agent would be that is to be started."""
    monkeypatch.setenv("FUSEWIRE_DEPTH", "7" if "enabled" in setting else "1")
    stage.write("fusewire.toml", f"[tool]\nhook_recursion.{setting}\n")
    ended = stage.run(WORK, "--max-iterations", "1")
    assert (ended.returncode, "2 deep here (limit 1)" in ended.stderr) == (code, code == 3)
    assert len(stage.starts()) == (code == 4)


@pytest.mark.parametrize(
    ("given", "found"),
    [("", 0), ("0", 0), ("3", 3), ("-1", 0), ("+2", 0), (" 4", 0), ("1_0", 0), ("٣", 0), ("x", 0), ("9" * 5000, 0)],
)
def test_what_is_no_depth_is_none(given: str, found: int) -> None:
    assert nesting.depth({"FUSEWIRE_DEPTH": given}) == found


def test_an_agent_is_refused_beyond_the_limit_and_told_why() -> None:
    """At the limit it works; one deeper it is told in the seed's words, with a way on."""
    assert nesting.depth({}) == 0
    assert nesting.refusal({}, SETTINGS) == nesting.refusal({"FUSEWIRE_DEPTH": "5"}, SETTINGS) == ""
    text = nesting.refusal({"FUSEWIRE_DEPTH": "6"}, SETTINGS)
    assert text.startswith("BLOCKED tool.hook_recursion: Circuit breaker tripped: ")
    assert "6 deep here (limit 5).\nNext: " in text
    assert text.splitlines()[-1].startswith("A person can allow more: ")
    assert nesting.refusal({"FUSEWIRE_DEPTH": "6"}, {**SETTINGS, "hook_recursion.enabled": False}) == ""


# -- what an agent's commands are given --------------------------------------------------------------------


def told(file: Path, depth: str | None = None) -> None:
    environment = {"CLAUDE_ENV_FILE": str(file)}
    nesting.pass_on(environment if depth is None else {**environment, "FUSEWIRE_DEPTH": depth})


def test_the_commands_of_an_agent_are_one_deeper(tmp_path: Path) -> None:
    """As a shell that reads the file sees it; written once, and only for the one who owns it."""
    file = tmp_path / "hook-0.sh"
    for _ in range(3):
        told(file)
    assert file.read_text() == "export FUSEWIRE_DEPTH=1\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = subprocess.run(["sh", "-c", f". {file}; env"], capture_output=True, text=True, check=True, env={})
    assert "FUSEWIRE_DEPTH=1" in shown.stdout.splitlines()
    told(file, "3")  # resumed by an agent that is deeper itself: the last line holds
    assert file.read_text() == "export FUSEWIRE_DEPTH=1\nexport FUSEWIRE_DEPTH=4\n"


@pytest.mark.parametrize("before", ["export A=b\n", "export A=b", "# no newline \xe9", "export FUSEWIRE_DEPTHS=1"])
def test_what_others_wrote_stays(tmp_path: Path, before: str) -> None:
    """Also where their last line has no end."""
    file = tmp_path / "hook-0.sh"
    file.write_bytes(before.encode("latin-1"))
    told(file, "1")
    told(file, "1")
    assert file.read_bytes() == before.rstrip("\n").encode("latin-1") + b"\nexport FUSEWIRE_DEPTH=2\n"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither to a file that is there nor to one that is not."""
    target = tmp_path / "bashrc"
    target.write_text("mine\n")
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "made")
    told(link)
    told(dangling)
    assert target.read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bashrc", "dangling", "link"]


def test_what_cannot_be_written_is_silent(tmp_path: Path) -> None:
    """No variable, a relative path, no folder, a folder, a pipe that nobody reads, a file of enormous size."""
    nesting.pass_on({})
    os.mkfifo(tmp_path / "pipe")
    huge = tmp_path / "huge"
    huge.touch()
    os.truncate(huge, 1 << 30)
    for path in (
        "",
        "relative",
        str(tmp_path / "no" / "file"),
        str(tmp_path),
        str(tmp_path / "pipe"),
        str(huge),
        "/a\0b",
    ):
        done = threading.Thread(target=nesting.pass_on, args=({"CLAUDE_ENV_FILE": path},), daemon=True)
        done.start()
        done.join(45)
        assert not done.is_alive(), path
    assert not Path("relative").exists()
    assert (sorted(path.name for path in tmp_path.iterdir()), huge.stat().st_size) == (["huge", "pipe"], 1 << 30)


def test_the_hooks_process_can_afford_it() -> None:
    """It runs at every tool call: none of the slow modules."""
    script = (
        "import os, sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]);"
        " from fusewire.breakers.session import nesting;"
        " nesting.refusal({'FUSEWIRE_DEPTH': '9'}, {'hook_recursion.enabled': True, 'hook_recursion.max_depth': 5});"
        " print(*sorted(set(sys.modules) - before))"
    )
    source = str(Path(nesting.__file__).parents[3])
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, source], capture_output=True, text=True, check=True
    )
    loaded = set(shown.stdout.split()) - {"__future__"}
    assert loaded == {"fusewire", "fusewire.breakers", "fusewire.breakers.session", "fusewire.breakers.session.nesting"}
