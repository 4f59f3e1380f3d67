"""One agent is run: real processes, most of them hostile, and none of them is left."""

from __future__ import annotations

import os
import signal
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire.util import processes as proctable
from tests.helpers.agents import Run, agent, carriers, is_running, kill


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """A run in an empty folder; whatever a failing test leaves is killed, one by one."""
    mark = f"test-{os.getpid()}-{abs(hash(request.node.name))}"
    yield Run(tmp_path, mark)
    while left := carriers(mark):
        for pid in left:
            kill(pid)


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


# -- how it ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_the_code_is_what_a_shell_would_show(run: Run, command: str, code: int) -> None:
    """The exit status as it is, a signal as 128 and its number; it ended by itself, and nothing was left."""
    ended = run(["sh", "-c", command])
    assert (ended.why, ended.code, ended.problem, ended.left) == ("exit", code, "", 0)
    assert 0 < ended.seconds < 50


@pytest.mark.parametrize(
    ("program", "code", "problem"),
    [
        ("no-such-program", 127, "no such program: no-such-program"),
        ("./missing", 127, "no such program: ./missing"),
        ("./folder", 126, "not executable: ./folder"),
        ("./plain", 126, "not executable: ./plain"),
        ("./nameless", 126, "neither a program nor a script that names its interpreter: ./nameless"),
        ("./orphan", 127, "its interpreter is missing: ./orphan"),
        ("a\0b", 126, "cannot be passed to a program: embedded null byte"),
        ("", 127, "no program is named"),
    ],
)
def test_what_cannot_be_started_says_why(run: Run, program: str, code: int, problem: str) -> None:
    """A failed launch is a result with one line, never an exception."""
    (run.folder / "folder").mkdir()
    script(run.folder / "plain", "#!/bin/sh\n", 0o644)
    script(run.folder / "nameless", "echo hello\n")
    script(run.folder / "orphan", "#!/no/such/interpreter\n")
    ended = run([program, "argument"], given=b"prompt")
    assert (ended.why, ended.code, ended.problem) == ("launch", code, problem)


def test_a_missing_folder_and_an_empty_command_are_failed_launches(run: Run) -> None:
    """It is the folder that is named, not the program, which is there."""
    ended = run(["true"], cwd=str(run.folder / "nowhere"))
    assert (ended.why, ended.code, ended.problem) == ("launch", 126, f"no such folder: {run.folder / 'nowhere'}")
    assert run([]).problem == "no program is named"


@pytest.mark.parametrize("mark", ["", "two words", "line\nbreak", "nul\0", "straße"])
def test_a_mark_that_could_be_confused_is_refused(run: Run, mark: str) -> None:
    """Before anything is started."""
    with pytest.raises(ValueError, match="not a mark"):
        run(["touch", "started"], mark=mark)
    assert not (run.folder / "started").exists()


def test_it_gets_the_folder_the_environment_and_a_group_of_its_own(run: Run) -> None:
    """Nothing of our environment but what is given, and the mark."""
    run(["/bin/sh", "-c", "pwd; /usr/bin/env; ps -o pgid=,sid= -p $$; echo $$"], environment={"A": "b c"})
    lines = run.output.decode().splitlines()
    assert lines[0] == str(run.folder)
    assert {"A=b c", f"FUSEWIRE_MARK={run.mark}"} <= set(lines)
    assert not any(line.startswith("HOME=") for line in lines)
    assert lines[-2].split() == [lines[-1], lines[-1]]


# -- what it says -----------------------------------------------------------------------------------------


def test_both_streams_arrive_apart_and_byte_by_byte(run: Run) -> None:
    """Binary, without a newline at the end."""
    run(["sh", "-c", r"printf '\000\377\r\n\200end'; printf 'problem\0' >&2"])
    assert run.output == b"\x00\xff\r\n\x80end"
    assert run.error == b"problem\0"


def test_what_is_said_without_a_newline_is_heard_at_once(run: Run) -> None:
    """A question without a line end, of an agent that then says nothing more."""
    ended = run(["sh", "-c", "printf 'ready?'; sleep 60"], stop=run.is_ready)
    assert ended.why == "stopped"
    assert ended.code == 143
    assert ended.seconds < 40


def test_a_hundred_megabytes_pass_quickly_and_take_no_memory(run: Run) -> None:
    """Nothing is collected on the way, no piece is larger than 64 KB, and the ticks go on."""
    sizes: list[int] = []
    began = time.process_time()
    tracemalloc.start()
    try:
        ended = run(agent("floods.py", 100_000_000), on_output=lambda data: sizes.append(len(data)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (ended.why, ended.code, sum(sizes)) == ("exit", 0, 100_000_000)
    assert max(sizes) <= 65536
    assert peak < 4_000_000
    assert time.process_time() - began < 5


def test_ticks_go_on_while_output_floods(run: Run) -> None:
    """The view is alive, and whoever wants to stop is asked, though there is always something to read."""
    ended = run(agent("floods.py", 0), on_output=lambda data: None, stop=lambda: len(run.ticks) >= 3)
    assert ended.why == "stopped"
    gaps = [later - earlier for earlier, later in zip(run.ticks, run.ticks[1:], strict=False)]
    assert min(gaps[:2]) > 0.2
    assert max(gaps[:2]) < 10


def test_last_words_are_heard_to_their_end(run: Run) -> None:
    """What an agent says after it was asked to end, more than a pipe holds, arrives; it has its grace for that."""
    ended = run(agent("last_words.py"), stop=run.is_ready, grace=10.0)
    assert (ended.why, ended.code) == ("stopped", 7)
    assert run.output.endswith(b"y" * 300_000 + b"last words")


# -- what it is given -------------------------------------------------------------------------------------

PROMPT = b"do it\n" * 900_000


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (agent("reads.py"), str(len(PROMPT)).encode()),
        (["cat"], PROMPT),
        (["sh", "-c", "head -c 6"], b"do it\n"),
        (["sh", "-c", "exec <&-; echo closed"], b"closed\n"),
        (["echo", "at once"], b"at once\n"),
    ],
)
def test_a_prompt_of_megabytes_hangs_nobody(run: Run, command: list[str], output: bytes) -> None:
    """Read slowly, given back while it is still being written, read in part, closed, not looked at."""
    ended = run(command, given=PROMPT)
    assert (ended.why, ended.code) == ("exit", 0)
    assert run.output == output


def test_an_agent_that_never_reads_is_ended_like_any_other(run: Run) -> None:
    """Megabytes wait in vain, and the time-out comes all the same."""
    ended = run(["sleep", "60"], given=PROMPT, timeout=0.3)
    assert (ended.why, ended.code) == ("timeout", 124)


def test_without_a_prompt_there_is_an_end_of_input(run: Run) -> None:
    """An agent that asks for input gets none, instead of waiting for it."""
    assert run(["cat"]).why == "exit"


# -- time -------------------------------------------------------------------------------------------------

#: Where an agent on a busy machine was slower than a short time allows, it is asked once more, at another pace.
PACES = (1, 10)


@pytest.mark.parametrize(
    ("command", "limits", "why"),
    [
        ("printf begun; sleep 60", {"timeout": 0.4}, "timeout"),
        ("printf begun; sleep 60", {"idle": 0.4}, "idle"),
        ("printf begun; exec >&- 2>&-; sleep 60", {"idle": 0.4}, "idle"),
        ("while :; do printf begun; sleep 0.05; done", {"idle": 5.0, "timeout": 0.6}, "timeout"),
    ],
)
def test_time_limits_end_it_and_keep_what_it_said(run: Run, command: str, limits: dict[str, Any], why: str) -> None:
    """In total, or without a word."""
    for pace in PACES:
        ended = run(["sh", "-c", command], **{name: pace * seconds for name, seconds in limits.items()})
        assert (ended.why, ended.code, ended.left) == (why, 124, 0)
        assert ended.seconds >= 0.4 * pace
        if run.output:
            break
    assert run.output.startswith(b"begun")
    assert not carriers(run.mark)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_word_on_either_stream_starts_the_idle_time_anew(run: Run, stream: int) -> None:
    """It takes longer than the idle time, and is never silent for so long."""
    command = "for i in $(seq {}); do printf . >&{}; sleep 0.1; done"
    assert any(run(["sh", "-c", command.format(11 * pace, stream)], idle=0.8 * pace).why == "exit" for pace in PACES)


@pytest.mark.parametrize("callback", ["on_tick", "on_output"])
def test_a_callback_that_takes_long_is_no_silence_of_the_agent(run: Run, callback: str) -> None:
    """What waits in the pipe while we are busy has been said in time."""
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.1; done"]
    takes = [(0.6 * pace, {callback: lambda *data, pace=pace: time.sleep(0.7 * pace)}) for pace in PACES]
    assert any(run(command, idle=idle, **slow).why == "exit" for idle, slow in takes)


# -- hostile agents ---------------------------------------------------------------------------------------

HOSTILE = [
    ("ignores.py", ()),
    ("stops.sh", ()),
    ("daemon.py", ("stay",)),
    ("multiplies.py", (10, "all")),
    ("hops.py", (0.005,)),
    ("hops.py", (0.0005,)),
]


@pytest.mark.parametrize(("name", "arguments"), HOSTILE)
def test_a_hostile_agent_is_gone_with_everything_it_has_started(run: Run, name: str, arguments: tuple[Any]) -> None:
    """It ignores requests, is stopped, has a daemon, multiplies, or is never twice the same process."""
    ended = run(agent(name, *arguments), stop=run.is_ready)
    assert ended.why in ("stopped", "exit")  # the one that hops has ended long ago, and its descendants are left
    assert b"ready" in run.output or ended.left
    assert not carriers(run.mark)


@pytest.mark.parametrize(("name", "arguments", "code"), [("stops.sh", (), 143), ("multiplies.py", (100,), 137)])
def test_a_long_grace_is_not_used_up_in_vain(run: Run, name: str, arguments: tuple[Any], code: int) -> None:
    """What is stopped is let go on, so that it can end; what multiplies instead of ending is not waited for."""
    ended = run(agent(name, *arguments), stop=run.is_ready, grace=30.0, timeout=60.0)
    assert (ended.why, ended.code) == ("stopped", code)
    assert ended.seconds < 25
    assert not carriers(run.mark)


def test_children_that_hold_the_pipes_are_not_waited_for(run: Run) -> None:
    """The agent has ended: what it left is counted and ended, and its own code is the result."""
    ended = run(agent("leaves.sh", 3))
    assert (ended.why, ended.code, ended.left) == ("exit", 3, 3)
    assert run.output == b"done\n"
    assert ended.seconds < 40
    assert not carriers(run.mark)


def test_children_that_flood_are_not_listened_to_for_ever(run: Run) -> None:
    """There is always something to read from a child that outlives the agent."""
    ended = run(["sh", "-c", "yes & exit 0"], on_output=lambda data: None)
    assert (ended.why, ended.code, ended.left) == ("exit", 0, 1)
    assert 2.0 <= ended.seconds < 40


def test_a_daemon_that_is_left_is_found_by_its_mark(run: Run) -> None:
    """Neither its group nor its session nor a pipe leads to it, and it ignores requests."""
    ended = run(agent("daemon.py", "exit"))
    assert (ended.why, ended.code, ended.left) == ("exit", 0, 1)
    assert not carriers(run.mark)


def test_a_child_without_the_mark_goes_with_its_parent(run: Run) -> None:
    """Another session, an empty environment: its parent is all that leads to it."""
    command = "(env -i setsid sleep 60 & echo $! > child; echo ready; wait)"
    run(["sh", "-c", command], stop=run.is_ready)
    assert not is_running(int((run.folder / "child").read_text()))


def test_without_proc_the_group_is_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other systems have no /proc: `ps` knows the group, and what it left is counted."""
    monkeypatch.setattr(proctable, "PROC", str(run.folder / "none"))
    ended = run(agent("leaves.sh", 2))
    assert (ended.why, ended.code, ended.left) == ("exit", 3, 2)
    assert run(agent("ignores.py"), stop=run.is_ready).why == "stopped"
    assert not carriers(run.mark)


@pytest.mark.parametrize("missing", [["pidfd_open"], ["pidfd_open", "waitid"]])
def test_systems_without_newer_calls_do_the_same(run: Run, monkeypatch: pytest.MonkeyPatch, missing: list[str]) -> None:
    """No handles for processes, no look at one that has ended without collecting it."""
    for name in missing:
        monkeypatch.delattr(os, name)
    assert run(["sh", "-c", "exit 4"]).code == 4
    assert run(agent("leaves.sh", 2)).left == 2
    assert run(agent("daemon.py", "stay"), stop=run.is_ready).why == "stopped"
    assert not carriers(run.mark)


# -- exceptions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["on_output", "on_error", "on_tick", "stop"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_of_a_callback_ends_the_agent_and_is_passed_on(
    run: Run, where: str, error: type[BaseException]
) -> None:
    """Also one that is raised again and again, and one that is no error."""

    def fail(*arguments: object) -> bool:
        raise error("in a callback")

    with pytest.raises(error, match="in a callback"):
        run(["sh", "-c", "echo out; echo err >&2; sleep 60"], **{where: fail})
    assert not carriers(run.mark)


def test_after_an_exception_the_agent_still_has_its_grace(run: Run) -> None:
    """What it says while it ends is read, so that it need not wait, and given to nobody; its clean-up is let be."""
    heard: list[bytes] = []

    def fail(data: bytes) -> None:
        heard.append(data)
        raise ZeroDivisionError

    command = "trap 'echo bye; sleep 0.5 && touch cleaned; exit 0' TERM; echo out; while :; do sleep 0.02; done"
    with pytest.raises(ZeroDivisionError):
        run(["sh", "-c", command], on_output=fail, grace=10.0)
    assert heard == [b"out\n"]
    assert (run.folder / "cleaned").exists()


def test_a_second_interruption_shortens_the_grace(run: Run) -> None:
    """Whoever presses the key twice does not want to wait for an agent that ignores requests."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def stop() -> bool:
        if run.is_ready():
            signal.setitimer(signal.ITIMER_REAL, 0.4)
            raise KeyboardInterrupt
        return False

    before = signal.signal(signal.SIGALRM, interrupt)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(agent("ignores.py"), stop=stop, grace=30.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 25
    assert not carriers(run.mark)


def test_nothing_of_ours_stays_open(run: Run) -> None:
    """Neither a descriptor nor a child, however it has ended."""
    before, others = os.listdir("/proc/self/fd"), _children()  # other tests may have left some to this process
    for command in (["true"], ["no-such-program"], agent("leaves.sh", 1)):
        run(command)
    run(["sleep", "60"], given=PROMPT, timeout=0.1)
    assert os.listdir("/proc/self/fd") == before
    assert not [pid for pid in _children() if pid not in others and not is_running(pid)]


def _children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]


def test_an_agent_that_is_killed_from_outside_has_ended_by_itself(run: Run) -> None:
    """A person, or the system in need of memory, kills the agent: its code says so."""

    def murder() -> None:
        kill(next(pid for pid in carriers(run.mark) if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()))

    ended = run(["sleep", "60"], on_tick=murder)
    assert (ended.why, ended.code) == ("exit", 137)
