"""After the commit, in order, at least once, by a process of its own that nobody waits for."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from fusewire.breakers import start_delivery as starting
from fusewire.breakers.session.opening import quick_store
from fusewire.config.rules import load_rules
from fusewire.engine.breaker import Breaker
from fusewire.notify.cursor import MOST_LOST, PAUSE, Health
from fusewire.notify.delivery import deliver_pending
from fusewire.stores.rows import AUDIT_ROWS, AuditRow
from fusewire.util.durations import show_time
from tests.gate.test_hot_path import HOT_PATH, modules_of
from tests.helpers import SOURCE, TESTS
from tests.helpers.paying import paying
from tests.helpers.project import Project
from tests.helpers.receivers import Webhook, until, webhook
from tests.helpers.session_hook import Session

#: Of a service that apprise knows, and that nobody asked for.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

SECRET = "T0K3N-that-nobody-may-see"
TRIPS_AT_ONCE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
FORBIDS = f"match: {{command: git push --force}}\n{TRIPS_AT_ONCE}"
WORKERS = TESTS / "helpers" / "workers.py"


def delivering(root: Path) -> list[int]:
    """The processes that deliver for this project, or wait for their turn."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if any(word.endswith(b"notify/deliver.py") for word in words) and os.fsencode(root) in words:
            found.append(int(entry))
    return sorted(found)


def is_over(pid: int) -> bool:
    """Whether a child of ours has ended with all its threads, and waits for us to notice."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


@pytest.fixture
def target(project: Project) -> Iterator[Webhook]:
    """A web server; what still delivers to it is over before the test is."""
    with webhook() as server:
        yield server
    until(lambda: not delivering(project.root), "the end of every delivery")


def tells(project: Project, target: Webhook, more: str = "", settings: str = "attempts = 1") -> None:
    (project.root / "fusewire.toml").write_text(
        f'[notify]\n{settings}\n[notify.targets.hook]\nurl = "{target.url}/{SECRET}"\n{more}\n'
    )


def quiet(project: Project, clock: list[float] | None = None) -> Breaker:
    """A breaker whose moves start no process: the test delivers itself."""
    breaker = Breaker.open(project=project.root, clock=(lambda: clock[0]) if clock else time.time)
    breaker.store.after_news = None
    return breaker


def deliver(project: Project, clock: list[float]) -> int:
    return deliver_pending(str(project.root), lambda: clock[0])


def fails(breaker: Breaker, circuit: str) -> None:
    """A circuit of a tool opens: a trip, but no constraint's."""
    for _ in range(3):
        breaker.record(circuit, "x")


def shown(project: Project) -> dict[str, object]:
    (found,) = project.json("notify")["targets"]
    return dict(found)


# -- processes --------------------------------------------------------------------------------------------


def test_a_trip_is_told_by_a_process_that_the_hook_does_not_wait_for(project: Project, target: Webhook) -> None:
    """The agent has its answer while the target still hangs; the delivery outlives the hook, alone in its session."""
    project.constraint("rule", FORBIDS)
    tells(project, target)
    target.answers.clear()
    answer = project.hook(project.bash("git push --force"))
    assert b"BLOCKED constraint:rule" in answer.stdout
    target.wait_for(1)
    assert not target.answers.is_set()
    (pid,) = delivering(project.root)
    assert os.getsid(pid) == pid
    assert shown(project)["waiting"] == 1
    target.answers.set()
    until(lambda: not delivering(project.root), "the end of the delivery")
    assert target.titles == ["Fusewire: OPEN rule (project project)"]
    assert (shown(project)["waiting"], shown(project)["sent"], shown(project)["last_failure"]) == (0, 1, None)


def test_command_line_and_library_start_it_the_same_way(project: Project, target: Webhook) -> None:
    """Whoever commits a move; what has ended is not left behind as a zombie by a process that lives on."""
    for name in ("one", "two", "three"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    project.run("record", "one", "--action", "x")
    target.wait_for(1)
    breaker = Breaker.open(project=project.root)
    for number, name in enumerate(("two", "three"), 2):
        breaker.record(name, "x")
        target.wait_for(number)
        until(lambda: all(map(is_over, starting._started)), "the end of the delivery")
    assert target.titles == [f"Fusewire: OPEN {name} (project project)" for name in ("one", "two", "three")]
    assert len(starting._started) == 1


def test_a_loop_that_ends_its_agent_does_not_end_the_delivery(
    project: Project, target: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no child of the agent that is left behind: it has not the mark by which a loop knows those."""
    project.constraint("rule", FORBIDS)
    tells(project, target)
    target.answers.clear()
    project.hook(project.bash("git push --force"), env={"FUSEWIRE_MARK": "m-1", "A_URL": "kept"})
    target.wait_for(1)
    (pid,) = delivering(project.root)
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert b"A_URL=kept" in environment
    assert not [entry for entry in environment if entry.startswith(b"FUSEWIRE_MARK")]
    from fusewire.util.reaper import find

    assert find("m-1") == []


def test_an_agent_that_waits_for_its_pipes_does_not_wait_for_the_target(project: Project, target: Webhook) -> None:
    """A pipe that the hook has inherited is closed with the hook, although the delivery goes on."""
    project.constraint("rule", FORBIDS)
    tells(project, target)
    target.answers.clear()
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    line = [sys.executable, "-m", "fusewire", "record", "rule", "--action", "x"]
    subprocess.run(line, cwd=project.root, pass_fds=[writing], capture_output=True, check=True, timeout=60)
    os.close(writing)
    target.wait_for(1)
    assert len(delivering(project.root)) == 1
    with open(reading, "rb") as pipe:
        assert pipe.read() == b""


def test_without_targets_nothing_is_started(project: Project) -> None:
    """Nobody to tell, no process: neither by the hook nor by the library; also if all are switched off."""
    project.constraint("rule", FORBIDS)
    for toml in ("", '[notify.targets.hook]\nurl = "http://127.0.0.1:1/"\nenabled = false\n'):
        (project.root / "fusewire.toml").write_text(toml)
        rules = load_rules(str(project.root))
        assert rules.notify == ()
        assert Breaker.open(project=project.root).store.after_news is None
        assert quick_store(str(project.root), rules).after_news is None
        project.hook(project.bash("git push --force"))
    assert delivering(project.root) == []
    assert not list((project.root / ".fusewire").glob("notify*"))


def test_a_call_that_moves_nothing_costs_no_more_with_targets(project: Project) -> None:
    """The hook knows from its compiled rules that there are some, and loads nothing for it."""
    (project.root / "fusewire.toml").write_text('[notify.targets.hook]\nurl = "http://127.0.0.1:1/"\n')
    payload = project.bash("ls -la")
    project.hook(payload)
    bare = modules_of(["-c", "pass"], None, project.root)
    assert modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root) - bare <= HOT_PATH


#: Starts `true` in place of Python, from many threads, as a server does; then says which children nobody has reaped.
STARTS = """
import os, shutil, sys, threading, time
from fusewire.breakers import start_delivery as starting
sys.executable = shutil.which("true")
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=lambda: [starting.start(root) for root in sys.argv[1:]]) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ends = time.monotonic() + 45
while starting._started and time.monotonic() < ends:
    starting._reap()
    time.sleep(0.01)
try:
    print("left over:", os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("none left over")
"""


def test_what_threads_have_started_leaves_no_zombie(tmp_path: Path) -> None:
    """A server lives on, and several of its threads start deliveries at the same time."""
    roots = [tmp_path / str(number) for number in range(25)]
    for root in roots:
        (root / ".fusewire").mkdir(parents=True)
    line = [sys.executable, "-c", STARTS, *map(str, roots)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "none left over\n"


def test_however_much_happens_one_process_delivers_and_one_waits(project: Project, target: Webhook) -> None:
    """While a target hangs; and what came meanwhile is told by the one that waits."""
    tells(project, target, settings="attempts = 1\nper_minute = 60")
    for number in range(40):
        project.constraint(f"rule-{number}", TRIPS_AT_ONCE)
    target.answers.clear()
    with Breaker.open(project=project.root) as breaker:
        breaker.record("rule-0", "x")
        target.wait_for(1)
        before = set(starting._started)
        for number in range(1, 40):
            breaker.record(f"rule-{number}", "x")
            assert len(delivering(project.root)) <= 2
        assert len(set(starting._started) - before) == 1
    target.answers.set()
    target.wait_for(40)
    until(lambda: not delivering(project.root), "the end of the delivery")
    assert target.titles == [f"Fusewire: OPEN rule-{number} (project project)" for number in range(40)]


def test_where_a_sandbox_lets_nothing_out_the_next_process_delivers(project: Project, target: Webhook) -> None:
    """Whoever tried from there would only lose the message."""
    project.constraint("one", TRIPS_AT_ONCE)
    project.constraint("two", TRIPS_AT_ONCE)
    tells(project, target)
    project.run("record", "one", "--action", "x", env={"CODEX_SANDBOX_NETWORK_DISABLED": "1"})
    assert (delivering(project.root), target.requests, shown(project)["waiting"]) == ([], [], 1)
    project.run("record", "two", "--action", "x")
    target.wait_for(2)
    assert target.titles == [f"Fusewire: OPEN {name} (project project)" for name in ("one", "two")]


def test_the_order_is_kept_and_nothing_is_lost_with_32_processes_at_once(project: Project, target: Webhook) -> None:
    """Each trips a circuit of its own; all are told once, as they stand in the audit trail."""
    names = [f"rule-{number}" for number in range(32)]
    for name in names:
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target, settings="attempts = 1\nper_minute = 60")
    Breaker.open(project=project.root).status("rule-0")  # the rules are compiled before the race
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKERS), "open_and_record", str(project.root), name, "x"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in names
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(b"go\n")
            worker.stdin.flush()
        for worker in workers:
            assert worker.communicate(timeout=60)[0].strip() == b'"done"'
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
            worker.communicate()
    target.wait_for(32)
    until(lambda: not delivering(project.root), "the end of the delivery")
    trail = [row.circuit for _, row in quiet(project).store.moves()]
    assert sorted(trail) == sorted(names)
    assert [body["circuit"] for body in target.bodies] == trail


def test_at_most_one_delivers_and_one_waits(project: Project, target: Webhook) -> None:
    """However much happens meanwhile: whoever waits will see it all."""
    names = [f"rule-{number}" for number in range(6)]
    for name in names:
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    target.answers.clear()
    breaker = Breaker.open(project=project.root)
    breaker.record(names[0], "x")
    target.wait_for(1)
    for name in names[1:]:
        breaker.record(name, "x")
    until(lambda: len(delivering(project.root)) <= 2, "all but two have left")
    target.answers.set()
    target.wait_for(len(names))
    assert [body["circuit"] for body in target.bodies] == names


def test_a_delivery_that_is_killed_is_gone_on_with(project: Project, target: Webhook) -> None:
    """At least once: what was under way is sent again, before what came later; nothing else is."""
    for name in ("one", "two", "three"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    breaker = Breaker.open(project=project.root)
    breaker.record("one", "x")
    target.wait_for(1)
    until(lambda: not delivering(project.root), "the end of the first delivery")
    target.answers.clear()
    breaker.record("two", "x")
    target.wait_for(2)
    (pid,) = delivering(project.root)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not delivering(project.root), "the end of what was killed")
    assert shown(project)["waiting"] == 1
    target.answers.set()
    breaker.record("three", "x")
    target.wait_for(4)
    assert [body["circuit"] for body in target.bodies] == ["one", "two", "two", "three"]


def test_a_person_can_deliver_what_was_left_over(project: Project, target: Webhook) -> None:
    """Without waiting for the next thing to happen."""
    project.constraint("rule", TRIPS_AT_ONCE)
    tells(project, target)
    quiet(project).record("rule", "x")
    assert project.json("notify", "deliver") == {"sent": 1}
    assert project.run("notify", "deliver").stdout == "0 messages sent\n"
    assert target.titles == ["Fusewire: OPEN rule (project project)"]


def test_one_target_that_hangs_keeps_no_other_waiting(project: Project, target: Webhook) -> None:
    """Each has a thread of its own; the message reaches the second while the first has not answered."""
    project.constraint("rule", TRIPS_AT_ONCE)
    with webhook() as silent:
        silent.answers.clear()
        tells(project, silent, f'[notify.targets.second]\nurl = "{target.url}"')
        Breaker.open(project=project.root).record("rule", "x")
        silent.wait_for(1)
        target.wait_for(1)
        assert not silent.answers.is_set()
        silent.answers.set()
        until(lambda: not delivering(project.root), "the end of the delivery")


# -- what is told, and what is left out -------------------------------------------------------------------


def test_the_same_within_ten_minutes_is_told_once_and_counted(project: Project, target: Webhook) -> None:
    """The next message says how many were left out, and since when; another circuit is not the same."""
    project.constraint("rule", TRIPS_AT_ONCE)
    project.constraint("other", TRIPS_AT_ONCE)
    tells(project, target)
    clock = [time.time() + 5]
    breaker = quiet(project, clock)
    for wait in (0, 60, 60, 400, 200):
        clock[0] += wait
        breaker.record("rule", f"after {wait}")
        breaker.reset("rule", "mended")
        deliver(project, clock)
    assert [body["circuit"] for body in target.bodies] == ["rule", "rule"]
    assert "more time" not in target.bodies[0]["message"]
    assert "And 3 more times since " in target.bodies[1]["message"]
    breaker.record("other", "x")
    deliver(project, clock)
    assert [body["circuit"] for body in target.bodies] == ["rule", "rule", "other"]


def test_two_sessions_that_run_into_the_same_are_told_once(project: Project, target: Webhook) -> None:
    """The session in a circuit's id does not make it another message."""
    tells(project, target)
    clock = [time.time() + 5]
    breaker = quiet(project, clock)
    for session in ("s-1", "s-2"):
        for _ in range(3):
            breaker.record(f"tool/tool_failure/Bash(pytest)/{session}", "pytest", session=session)
    assert deliver(project, clock) == 1
    assert target.titles == ["Fusewire: OPEN tool/tool_failure/Bash(pytest) (project project)"]


def test_rules_by_circuit_and_severity_choose_who_is_told(project: Project, target: Webhook) -> None:
    """One wants everything of one rule, the other only what a person should look at."""
    project.constraint("git-safety", TRIPS_AT_ONCE)
    project.constraint("other", TRIPS_AT_ONCE)
    with webhook() as second:
        tells(
            project,
            target,
            f'circuits = ["git-*"]\nseverity = "info"\n'
            f'[notify.targets.second]\nurl = "{second.url}"\nseverity = "alert"',
        )
        clock = [time.time() + 5]
        breaker = quiet(project, clock)
        for name in ("git-safety", "other"):
            breaker.record(name, "x")
        breaker.reset("git-safety", "mended")
        with breaker.store.transact() as transaction:
            transaction.notice("a protected file was changed", clock[0])
        assert deliver(project, clock) == 3
        assert target.titles == [f"Fusewire: {what} git-safety (project project)" for what in ("OPEN", "CLOSED")]
        assert second.titles == ["Fusewire: ALERT, NOTICE (project project)"]


def test_who_is_named_later_is_not_told_what_was_before(project: Project, target: Webhook) -> None:
    """But everything from then on, the first thing too; and what is older than a day is told to nobody."""
    for name in ("before", "after", "old"):
        project.constraint(name, TRIPS_AT_ONCE)
    now = time.time()
    quiet(project, [now - 30]).record("before", "x")
    tells(project, target)
    clock = [time.time() + 1]
    quiet(project, clock).record("after", "x")
    assert deliver(project, clock) == 1
    clock[0] += 1
    quiet(project, clock).record("old", "x")
    clock[0] += 90_000
    assert (shown(project)["waiting"], deliver(project, clock)) == (1, 0)
    assert [body["circuit"] for body in target.bodies] == ["after"]


def test_an_agent_that_is_halted_is_an_alert(project: Project, target: Webhook) -> None:
    """It waits for a person: told with the rule, the call and the reason."""
    tells(project, target, 'circuits = ["halt"]\nseverity = "alert"')
    session = Session(project)
    for _ in range(12):
        if session.bash("pytest -q", error="Exit code 1\nFAILED tests/test_a.py::test_b - assert 1 == 2")[0].halted:
            break
    else:
        pytest.fail("nobody was halted")
    target.wait_for(1)
    (body,) = target.bodies
    assert body["title"] == f"Fusewire: ALERT, HALTED session {session.id[:8]} (project project)"
    assert f"The agent of session {session.id} (claude, since " in body["message"]
    assert " was stopped at " in body["message"]
    assert "It wanted: pytest -q" in body["message"]
    assert "HALTED tool." in body["message"]
    assert body["message"].endswith("It goes on when you speak to it.")


def test_a_limit_of_dollars_that_is_near_is_a_warning(project: Project, target: Webhook) -> None:
    """The circuit does not move there: what the agent is told, a person is told as well, once; then comes the halt."""
    tells(project, target, 'circuits = ["tool/spend/*"]\nseverity = "warning"')
    with (project.root / "fusewire.toml").open("a") as file:
        file.write("[tool.resource_limits]\nagent_cost_block_usd = 5\n")
    payer = paying(project)
    payer.pays(4.25)
    assert "WARNING tool.spend" in payer.asks().told
    target.wait_for(1)
    assert payer.asks().silent
    payer.pays(4)
    assert payer.asks().code == 2
    target.wait_for(2)
    warned, halted = target.bodies
    assert (warned["severity"], warned["event"], warned["session"]) == ("warning", "warned", payer.id)
    assert warned["title"] == "Fusewire: WARNED session session- (project project)"
    assert "It wanted: ls part" in warned["message"]
    assert "WARNING tool.spend: $4.25 spent in this session at list price (limit $5.00)." in warned["message"]
    assert 'run: fusewire grant 5 --reason "..."' in warned["message"]
    assert warned["message"].endswith("It goes on.")
    assert (halted["severity"], halted["event"]) == ("alert", "halted")
    assert 'run: fusewire grant 5 --reason "..."' in halted["message"]
    assert halted["message"].endswith("\nIt goes on when a person grants more.")


def test_a_loop_of_calls_that_is_told_is_one_warning(project: Project, target: Webhook) -> None:
    """Its circuit has moved to the warning level, and that is what is told."""
    tells(project, target, 'severity = "warning"')
    session = Session(project)
    while not session.bash("cat notes.txt", "nothing new")[1].told:
        assert session.calls < 10, "it was never told"
    target.wait_for(1)
    until(lambda: not delivering(project.root), "the end of every delivery")
    (body,) = target.bodies
    assert (body["severity"], body["event"]) == ("warning", "half_open")
    assert body["circuit"].startswith("tool/repetition/")


def test_a_halt_of_the_guard_is_told(project: Project, target: Webhook) -> None:
    """It writes a notice, which is told like every other."""
    (project.root / "CLAUDE.md").write_text("rules\n")
    tells(project, target, 'severity = "alert"')
    session = Session(project)
    asked, call = session.before("Bash", {"command": "python3 build.py"})
    assert asked.allowed
    (project.root / "CLAUDE.md").unlink()
    session.send("PostToolUse", **call, tool_response={"stdout": "", "stderr": ""})
    target.wait_for(1)
    assert target.titles == ["Fusewire: ALERT, NOTICE (project project)"]
    assert "CLAUDE.md" in target.bodies[0]["message"]


# -- targets that fail ------------------------------------------------------------------------------------


def test_an_attempt_that_fails_is_tried_again(project: Project, target: Webhook) -> None:
    """What goes out in the end was not lost; what does not is given up, and the next message says so."""
    for name in ("one", "two", "three"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target, settings="attempts = 2")
    clock = [time.time()]
    breaker = quiet(project, clock)
    target.first = [500, 200, 500, 503]
    for name in ("one", "two", "three"):
        breaker.record(name, "x")
    assert deliver(project, clock) == 2
    assert [body["circuit"] for body in target.bodies] == ["one", "one", "two", "two", "three"]
    said = [body["message"].splitlines()[-1] for body in target.bodies]
    assert said[-1] == "1 message before this one could not be delivered; see: fusewire notify"
    assert not [line for line in said[:-1] if "could not be delivered" in line]
    found = shown(project)
    assert (found["sent"], found["lost"], found["lost_in_a_row"]) == (2, 1, 0)
    assert "503" in str(found["problem"])
    assert project.run("status").stderr == ""


def test_what_is_decided_stands_although_nobody_can_be_told(
    project: Project, target: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that cannot be started is no error of whoever made the move; the next one delivers."""
    for name in ("one", "two"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    breaker = Breaker.open(project=project.root)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(project.root / "gone"))
        assert breaker.record("one", "x").tripped
        patched.setattr(sys, "executable", "")
        assert not breaker.check("one").allowed
    breaker.record("two", "x")
    target.wait_for(2)
    assert [body["circuit"] for body in target.bodies] == ["one", "two"]


def test_a_target_that_fails_is_shown_and_left_alone(project: Project, target: Webhook) -> None:
    """After five lost messages for an hour, then one try; a test that works ends that. No secret is shown anywhere."""
    names = [f"tool/tool_failure/Bash({number})" for number in range(MOST_LOST + 4)]
    tells(project, target)
    target.status = 503
    clock = [time.time()]
    breaker = quiet(project, clock)
    for name in names[: MOST_LOST + 2]:
        fails(breaker, name)
    assert deliver(project, clock) == 0
    assert len(target.requests) == MOST_LOST
    found = shown(project)
    assert (found["lost"], found["waiting"], found["paused_until"] is not None) == (MOST_LOST + 2, 0, True)
    clock[0] += PAUSE
    for name in names[MOST_LOST + 2 :]:
        fails(breaker, name)
    deliver(project, clock)
    assert len(target.requests) == MOST_LOST + 1

    line = "notifications to hook fail: Failed to send JSON POST notification: "
    printed = [project.run(*words) for words in (("notify",), ("status",), ("doctor",), ("notify", "test"))]
    assert [result.returncode for result in printed] == [0, 0, 1, 1]
    assert all(f"Warning: {line}" in result.stderr for result in printed if result is not printed[2])
    assert "project: notifications to hook fail" in printed[2].stdout
    assert "    do: fusewire notify test hook\n" in printed[2].stdout
    target.status = 200
    assert project.run("notify", "test").returncode == 0
    assert project.run("status").stderr == ""
    found = shown(project)
    assert (found["lost_in_a_row"], found["paused_until"], found["lost"]) == (0, None, MOST_LOST + 4)

    written = [path.read_bytes() for path in (project.root / ".fusewire").rglob("*") if path.is_file()]
    texts = [text for result in printed for text in (result.stdout, result.stderr)]
    assert not [text for text in (*texts, *breaker.store.notices(), repr(found)) if SECRET in text]
    assert not [data for data in written if SECRET.encode() in data]


def test_what_is_urgent_is_tried_once_also_while_a_target_is_left_alone(project: Project, target: Webhook) -> None:
    """A broken constraint or an alert, and with it all that is there; it ends the pause or prolongs none."""
    for name in ("one", "two", "three"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target, settings="attempts = 3")
    clock = [time.time()]
    breaker = quiet(project, clock)
    with breaker.store.transact() as transaction:
        health = Health(lost=5, lost_in_a_row=5, given_up_in_a_row=5, problem="429", paused_until=clock[0] + PAUSE)
        transaction.remember("notify/hook", asdict(health), clock[0])
    paused = shown(project)["paused_until"]
    fails(breaker, "tool/tool_failure/Bash(pytest)")
    assert (deliver(project, clock), target.requests) == (0, [])
    target.status = 429
    breaker.record("one", "x")
    assert deliver(project, clock) == 0
    assert [body["circuit"] for body in target.bodies] == ["one"]
    assert (shown(project)["lost"], shown(project)["paused_until"]) == (7, paused)
    target.status = 200
    fails(breaker, "tool/tool_failure/Bash(make)")
    breaker.record("two", "x")
    breaker.record("three", "x")
    assert deliver(project, clock) == 1
    assert [one["circuit"] for one in target.bodies[-1]["items"]] == [*("two", "three", "tool/tool_failure/Bash(make)")]
    assert "7 messages before this one could not be delivered" in target.bodies[-1]["message"]
    found = shown(project)
    assert (found["lost"], found["lost_in_a_row"], found["paused_until"], found["waiting"]) == (7, 0, None, 0)


# -- more than a service takes ----------------------------------------------------------------------------


def test_what_comes_at_once_is_told_together_with_the_last_message_of_a_minute(
    project: Project, target: Webhook
) -> None:
    """In order; what matters most is first in it, and everything is counted."""
    tells(project, target)
    clock = [time.time()]
    breaker = quiet(project, clock)
    for number in range(44):
        fails(breaker, f"tool/tool_failure/Bash({number})")
    project.constraint("real", TRIPS_AT_ONCE)
    breaker = quiet(project, clock)
    breaker.record("real", "git push --force")
    with breaker.store.transact() as transaction:
        transaction.notice("a protected file was changed", clock[0])
    assert deliver(project, clock) == 10
    singles, together = target.bodies[:-1], target.bodies[-1]
    assert [body["circuit"] for body in singles] == [f"tool/tool_failure/Bash({number})" for number in range(9)]
    assert together["title"] == "Fusewire: ALERT, and 37 more (project project)"
    lines = together["message"].splitlines()
    assert lines[:4] == [
        "And 37 more, told together because so much came at once:",
        "ALERT, NOTICE: a protected file was changed",
        "OPEN real: 1 violation within 30d (limit 1)",
        f"OPEN tool/tool_failure/Bash(9): {target.bodies[0]['reason']}",
    ]
    assert lines[-1] == f"... and {37 - (len(lines) - 2)} others; see: fusewire status --all"
    assert len(together["message"]) <= 2000
    assert (together["event"], together["severity"], together["circuit"]) == ("more", "alert", None)
    assert [one["circuit"] for one in together["items"][1:3]] == ["real", "tool/tool_failure/Bash(9)"]
    assert len(together["items"]) == 37
    found = shown(project)
    assert (found["sent"], found["lost"], found["waiting"]) == (10, 0, 0)


def test_what_a_minute_has_no_room_for_waits_until_there_is_and_keeps_no_other_target_waiting(
    project: Project, target: Webhook
) -> None:
    """A minute is as long as the clock says: here it passes in a second. What was told is not told again."""
    with webhook() as second:
        other = f'[notify.targets.second]\nurl = "{second.url}"\ncircuits = ["rule"]'
        tells(project, target, other, "attempts = 1\nper_minute = 2")
        clock = [time.time()]
        breaker = quiet(project, clock)
        for number in range(3):
            fails(breaker, f"tool/tool_failure/Bash({number})")
        assert deliver(project, clock) == 2
        for number in range(3, 6):
            fails(breaker, f"tool/tool_failure/Bash({number})")
        project.constraint("rule", TRIPS_AT_ONCE)
        quiet(project, clock).record("rule", "x")
        began, before = clock[0], time.monotonic()
        sent = deliver_pending(str(project.root), lambda: began + 60 * (time.monotonic() - before))
        assert (sent, len(second.requests)) == (3, 1)
        assert [body["circuit"] for body in target.bodies] == [
            *("tool/tool_failure/Bash(0)", None, "tool/tool_failure/Bash(3)", None)
        ]
        assert [one["circuit"] for one in target.bodies[-1]["items"]] == [
            *("rule", "tool/tool_failure/Bash(4)", "tool/tool_failure/Bash(5)")
        ]


def test_what_was_to_be_told_together_and_could_not_is_lost_one_by_one(project: Project, target: Webhook) -> None:
    """Counted each, but it is one message that was given up: nobody is left alone for it."""
    tells(project, target, settings="attempts = 1\nper_minute = 2")
    clock = [time.time()]
    breaker = quiet(project, clock)
    target.status = 429
    for number in range(9):
        fails(breaker, f"tool/tool_failure/Bash({number})")
    deliver(project, clock)
    found = shown(project)
    assert (len(target.requests), found["lost"], found["lost_in_a_row"]) == (2, 9, 9)
    assert (found["paused_until"], found["waiting"]) == (None, 0)


def test_moves_that_the_audit_trail_has_dropped_before_they_were_told_are_counted(
    project: Project, target: Webhook
) -> None:
    """A delivery was held up; what opened meanwhile and is still open is told nevertheless, once, and nothing else."""
    for name in ("before", "kept", "mended"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    clock = [time.time() + 5]
    breaker = quiet(project, clock)
    breaker.record("before", "x")
    assert deliver(project, clock) == 1
    clock[0] += 900
    breaker.record("kept", "git push --force")
    breaker.record("mended", "x")
    breaker.reset("mended", "mended")
    with breaker.store.transact() as transaction:
        for _ in range(2 * AUDIT_ROWS):
            transaction.audit(AuditRow("loop/rate", clock[0], "open", "closed", "settled", "", ""))
    breaker.override("kept", "a release", 60)
    first = breaker.store.moves(0, limit=1)[0][0]
    clock[0] += 900
    assert deliver(project, clock) == 1
    assert [body["circuit"] for body in target.bodies] == ["before", "kept"]
    body = target.bodies[-1]
    assert body["message"].startswith("CIRCUIT OPEN constraint:kept: 1 violation within 30d (limit 1).")
    assert f"{first - 2} messages before this one could not be delivered; see: fusewire notify" in body["message"]
    found = shown(project)
    assert (found["lost"], found["lost_in_a_row"], found["waiting"]) == (first - 2, 0, 0)
    assert found["problem"] == f"{first - 2} moves left the audit trail untold"
    assert deliver(project, clock) == 0


def test_dropped_moves_are_shown_until_the_next_message_and_are_none_of_a_new_target(
    project: Project, target: Webhook
) -> None:
    """Also where the first message behind them finds no room, and is looked for again and again."""
    tells(project, target, settings="attempts = 1\nper_minute = 1")
    clock = [time.time() + 5]
    breaker = quiet(project, clock)
    fails(breaker, "tool/tool_failure/Bash(0)")
    deliver(project, clock)
    with breaker.store.transact() as transaction:
        for _ in range(2 * AUDIT_ROWS):
            transaction.audit(AuditRow("loop/rate", clock[0], "open", "closed", "settled", "", ""))
    first = breaker.store.moves(0, limit=1)[0][0]
    deliver(project, clock)
    assert f"moves left the audit trail untold (at {show_time(clock[0])}" in project.run("status").stderr
    fails(breaker, "tool/tool_failure/Bash(1)")
    began, before = clock[0], time.monotonic()
    assert deliver_pending(str(project.root), lambda: began + 30 * (time.monotonic() - before)) == 1
    lost = shown(project)["lost"]
    assert lost == first - 2
    (project.root / "fusewire.toml").write_text(f'[notify.targets.late]\nurl = "{target.url}"\n')
    clock[0] += 3600
    deliver(project, clock)
    assert (shown(project)["lost"], shown(project)["problem"]) == (0, None)


def test_what_was_remembered_and_is_damaged_starts_anew(project: Project, target: Webhook) -> None:
    """Numbers that do not fit the store, or no numbers at all, keep nobody from being told."""
    for name in ("one", "two", "three", "four"):
        project.constraint(name, TRIPS_AT_ONCE)
    tells(project, target)
    clock = [time.time() + 5]
    quiet(project, clock).record("one", "x")
    deliver(project, clock)
    for name, data in (
        ("two", '{"upto": 3, "said": []}'),
        ("three", '{"upto": {"moves": 99, "answers": 0, "notices": 0}}'),
        ("four", '{"upto": {"moves": 3, "answers": 0, "notices": 0}, "tries": [null], "at": "x", "missed_upto": NaN}'),
    ):
        with sqlite3.connect(project.root / ".fusewire" / "state.db") as connection:
            connection.execute("UPDATE memories SET data = ? WHERE name = 'notify/hook/told'", (data,))
            connection.execute("UPDATE memories SET data = '[]' WHERE name = 'notify/hook'")
        connection.close()
        quiet(project, clock).record(name, "x")
        deliver(project, clock)
        assert name in [body["circuit"] for body in target.bodies]
