"""Processes without a supervisor: which of them are an agent's, who they are, and who ends them when it is dead."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fusewire.run.watchdog import Warden
from fusewire.util import processes as proctable
from fusewire.util.processes import Process, look
from fusewire.util.reaper import end, end_marked, find, is_alive, process_identity
from tests.helpers.agents import HERE, Run, agent, carriers, comes_true, is_running, kill, state


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> Iterator[str]:
    """A mark that no other test has; whatever has it at the end is killed, one by one."""
    text = f"test-{os.getpid()}-{abs(hash(request.node.name))}"
    yield text
    while left := carriers(text):
        for pid in left:
            kill(pid)


@contextmanager
def sleeper(environment: dict[str, str] | None = None, program: str = "sleep") -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, killed at the end."""
    process = subprocess.Popen([program, "60"], env={**os.environ, **(environment or {})}, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


# -- who they are -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("proc", ["/proc", "/nowhere"])
def test_a_process_is_known_by_more_than_its_number(monkeypatch: pytest.MonkeyPatch, proc: str) -> None:
    """Alive while it runs; dead as soon as it has ended, collected or not; with /proc and without."""
    monkeypatch.setattr(proctable, "PROC", proc)
    with sleeper() as process:
        identity = process_identity(process.pid)
        assert identity is not None
        assert identity == process_identity(process.pid)
        assert is_alive(identity)
        process.kill()
        assert comes_true(lambda: state(process.pid) == "Z")
        assert not is_alive(identity)
        process.wait()
        assert not is_alive(identity)
        assert process_identity(process.pid) is None


@pytest.mark.parametrize("change", ["{0}:1{1}:{2}", "{0}:{1}:other-boot", "{0}:{1}", "{0}", "", "x:{1}:{2}", ":::"])
def test_another_start_another_boot_or_no_identity_is_not_alive(change: str) -> None:
    """The number is in use, by somebody else."""
    identity = process_identity(os.getpid())
    assert identity is not None
    assert is_alive(identity)
    assert not is_alive(change.format(*identity.split(":")))


def test_a_name_with_brackets_and_spaces_confuses_nobody(tmp_path: Path) -> None:
    """/proc/PID/stat has the name in brackets, and a name may have any."""
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / "a) Z 1 (b")
    with sleeper(program=str(program)) as process:
        found = look(process.pid)
        assert found is not None
        assert (found.parent, found.group, found.session, found.dead) == (os.getpid(), process.pid, process.pid, False)


# -- which of them are an agent's -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"FUSEWIRE_MARK": "{}"}, True),
        ({"FUSEWIRE_MARK": "{}", "ZZZ": "x" * 100_000}, True),
        ({"FUSEWIRE_MARK": "{}1"}, False),
        ({"FUSEWIRE_MARK": "1{}"}, False),
        ({"XFUSEWIRE_MARK": "{}"}, False),
        ({"OTHER": "FUSEWIRE_MARK={}"}, False),
        ({"OTHER": "a\nFUSEWIRE_MARK={}\n"}, False),
        ({}, False),
    ],
)
def test_only_the_exact_entry_counts(mark: str, environment: dict[str, str], found: bool) -> None:
    """Not a part of one, not the same text elsewhere."""
    with sleeper({name: text.format(mark) for name, text in environment.items()}) as process:
        assert [one.pid for one in find(mark)] == ([process.pid] if found else [])


def test_a_process_that_becomes_another_program_all_the_time_is_found(mark: str, tmp_path: Path) -> None:
    """In the middle of an exec its environment cannot be read, and yet it is there."""
    (tmp_path / "again").write_text('#!/bin/sh\nexec "$0"\n')
    (tmp_path / "again").chmod(0o755)
    with sleeper({"FUSEWIRE_MARK": mark}, str(tmp_path / "again")) as process:
        assert all([one.pid for one in find(mark)] == [process.pid] for _ in range(200))


def test_the_processes_of_a_dead_supervisor_are_ended(mark: str) -> None:
    """All with the mark, whatever their session; the number of them is the answer, and then there are none."""
    with sleeper({"FUSEWIRE_MARK": mark}) as one, sleeper({"FUSEWIRE_MARK": mark}) as two, sleeper() as other:
        assert end_marked(mark, 5.0) == 2
        assert (one.wait(), two.wait()) == (-signal.SIGTERM, -signal.SIGTERM)
        assert other.poll() is None
        assert end_marked(mark, 5.0) == 0


def test_we_never_end_ourselves(mark: str, tmp_path: Path) -> None:
    """A supervisor may itself have the mark; its children that have it, too, are ended, and it goes on."""
    code = (
        "import subprocess, sys; from fusewire.util.reaper import end_marked\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print(end_marked(sys.argv[1], 5.0), child.wait())\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, mark],
        env={**os.environ, "FUSEWIRE_MARK": mark},
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert (shown.stdout, shown.returncode) == ("1 -15\n", 0), shown.stderr


def test_a_number_that_was_given_to_somebody_else_is_left_alone(mark: str) -> None:
    """What is known of the agent is older than the process that has its number now."""
    with sleeper() as process:
        now = look(process.pid)
        assert now is not None
        before = Process(now.pid, now.parent, now.group, now.session, str(int(now.start) - 1), False)
        assert end(mark, before, 0.0) == 0
        assert process.poll() is None
        assert end(mark, now, 5.0) == 1
        assert process.wait() == -signal.SIGTERM


def test_one_that_is_only_waiting_to_be_collected_is_not_left(mark: str) -> None:
    """A zombie does nothing any more, and no signal helps."""
    with sleeper({"FUSEWIRE_MARK": mark}) as process:
        process.kill()
        assert comes_true(lambda: state(process.pid) == "Z")
        assert find(mark, look(process.pid)) == []


# -- the warden -------------------------------------------------------------------------------------------


class Supervisor:
    """A supervisor in a process of its own, with an agent that is in place."""

    def __init__(self, folder: Path, mark: str, command: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "supervises.py"), mark, *command],
            cwd=folder,
            env={**os.environ, "FUSEWIRE_MARK": f"{mark}-outer"},
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.warden = int(self.process.stdout.readline())
        self.said = self.process.stdout.readline()

    def end(self, number: int) -> bytes:
        """Send a signal, and read what it and all that share its output still say, to the end."""
        os.kill(self.process.pid, number)
        return self.process.communicate(timeout=45)[0]


@contextmanager
def supervised(folder: Path, mark: str, command: list[str]) -> Iterator[Supervisor]:
    supervisor = Supervisor(folder, mark, command)
    try:
        assert supervisor.said == b"ready\n"
        yield supervisor
    finally:
        kill(supervisor.warden)
        supervisor.process.kill()
        supervisor.process.communicate()


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "echo ready; sleep 60"],
        agent("ignores.py"),
        agent("stops.sh"),
        agent("daemon.py", "stay"),
    ],
    ids=["plain", "ignores", "stopped", "daemon"],
)
def test_a_killed_supervisor_leaves_nothing(tmp_path: Path, mark: str, command: list[str]) -> None:
    """kill -9: its output ends at once, its agent and every daemon of it are ended, and the warden ends last."""
    with supervised(tmp_path, mark, command) as supervisor:
        assert carriers(mark)
        supervisor.end(signal.SIGKILL)
        assert comes_true(lambda: not carriers(mark))
        assert comes_true(lambda: not is_running(supervisor.warden))


def test_an_agent_that_has_dropped_its_mark_is_known_to_the_warden_by_its_group(tmp_path: Path, mark: str) -> None:
    """A program with an emptied environment in the agent's place."""
    command = ["sh", "-c", "echo $$ > agent; echo ready; exec env -i sleep 60"]
    with supervised(tmp_path, mark, command) as supervisor:
        pid = int((tmp_path / "agent").read_text())
        assert comes_true(lambda: not carriers(mark))
        assert is_running(pid)
        supervisor.end(signal.SIGKILL)
        assert comes_true(lambda: not is_running(pid))


def test_an_interrupted_supervisor_ends_its_agent_and_its_warden_itself(tmp_path: Path, mark: str) -> None:
    """Ctrl-C: when the supervisor is gone, everything else is gone already."""
    with supervised(tmp_path, mark, agent("ignores.py")) as supervisor:
        supervisor.end(signal.SIGINT)
        assert supervisor.process.returncode in (130, -signal.SIGINT)
        assert not carriers(mark)
        assert not is_running(supervisor.warden)


def test_the_run_goes_on_without_its_warden(tmp_path: Path, mark: str) -> None:
    """Somebody kills the warden: the agent is not disturbed, and the supervisor ends as it should."""
    command = ["sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo worked"]
    with supervised(tmp_path, mark, command) as supervisor:
        kill(supervisor.warden)
        assert comes_true(lambda: not is_running(supervisor.warden))
        (tmp_path / "go").touch()
        assert supervisor.process.communicate(timeout=45)[0] == b"worked\nexit\n"
        assert supervisor.process.returncode == 0


def test_the_next_agent_has_a_warden_again(tmp_path: Path, mark: str) -> None:
    """One that is gone is replaced when there is something to watch; the one that is closed is gone."""
    run = Run(tmp_path, mark)
    with Warden() as warden:
        first = warden.pid
        kill(first)
        assert comes_true(lambda: state(first) == "Z")
        assert run(["true"], warden=warden).code == 0
        second = warden.pid
        assert second != first
        assert is_running(second)
    assert not state(first)
    assert not state(second)


def test_a_warden_that_reads_nothing_is_replaced_before_it_blocks(mark: str) -> None:
    """Stopped, its pipe fills; the supervisor must not wait for it, not even when it closes it."""
    with Warden() as warden:
        first = warden.pid
        os.kill(first, signal.SIGSTOP)
        for _ in range(3000):
            warden.watch(0, mark)
            warden.rest()
        assert warden.pid != first
        assert not state(first)


def test_a_warden_has_no_mark_no_terminal_no_output_and_ignores_what_is_meant_for_others(
    tmp_path: Path, mark: str
) -> None:
    """A session of its own; nothing but the pipe; requests to end do not stop it from doing its duty."""
    with supervised(tmp_path, mark, ["sh", "-c", "echo ready; sleep 60"]) as supervisor:
        pid = supervisor.warden
        ignored = Path(f"/proc/{pid}/status")
        assert comes_true(lambda: int(ignored.read_text().split("SigIgn:")[1].split()[0], 16) & 1 << 14)
        process = look(pid)
        assert process is not None
        assert process.session == process.group == pid
        assert b"FUSEWIRE_MARK" not in Path(f"/proc/{pid}/environ").read_bytes()
        targets = {os.readlink(f"/proc/{pid}/fd/{number}").split(":")[0] for number in (0, 1, 2)}
        assert targets == {"pipe", "/dev/null"}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        supervisor.end(signal.SIGKILL)
        assert comes_true(lambda: not carriers(mark))
        assert comes_true(lambda: not is_running(pid))


def test_an_agent_does_not_hold_the_wardens_pipe(tmp_path: Path, mark: str) -> None:
    """It has its three pipes and nothing else of ours."""
    run = Run(tmp_path, mark)
    with Warden() as warden:
        run(agent("descriptors.py"), warden=warden)
    assert run.output == b"0 1 2"


def test_a_warden_at_rest_ends_nothing(mark: str) -> None:
    """What it has watched before is none of its business once it was told so, and closing it is no alarm."""
    with sleeper({"FUSEWIRE_MARK": mark}) as process:
        with Warden() as warden:
            warden.watch(process.pid, mark)
            warden.rest()
        with Warden() as warden:
            warden.watch(process.pid, mark)
        assert process.poll() is None
