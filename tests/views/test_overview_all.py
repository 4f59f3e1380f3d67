"""Everything of a person: what is collected, in which order, how cheaply, and that looking writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.scopes.order_changes import change_orders
from fusewire.scopes.orders import HaltOrder, Orders, PauseOrder
from fusewire.views.overview_all import Everything
from fusewire.views.overview_folder import OverviewFolder
from tests.helpers.many_projects import (
    abandon,
    damage,
    end,
    end_hooks,
    git,
    halt,
    make_repository,
    many_projects,
    remove,
    violate_once,
    work,
)
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

#: Commits to a project as fast as it can, until it is killed.
WRITER = """
import sys
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
breaker = Breaker.open(project=sys.argv[1], patience=20.0)
print("ready", flush=True)
for number in range(10**9):
    signals = [Signal("bad", "tool/tool_failure/x", "tool_failed", text=f"{number}")] * 3
    breaker.engine.apply([*signals, Signal("reset", "tool/tool_failure/x", "reset", text="r")], "load")
"""


def folders(everything: Everything) -> dict[str, OverviewFolder]:
    return {one.name: one for project in everything.refresh().projects for one in project.folders}


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    end_hooks()
    return {str(one): (one.lstat().st_mtime_ns, one.lstat().st_size) for one in folder.rglob("*")}


def open_databases() -> list[str]:
    """Hooks that are asked in this process may keep theirs."""
    found = (os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd"))
    return sorted(one for one in found if one.endswith(("state.db", "user.db", "-wal", "-shm")))


def wait_for_rest() -> None:
    """A folder that was just read is not read again at once."""
    time.sleep(0.6)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return tmp_path / "code"


def test_nobody_has_been_heard_of(code: Path) -> None:
    overview = Everything().refresh()
    assert (overview.projects, overview.needs, overview.problems, overview.gone) == ([], 0, [], [])
    assert overview.headline == "Nothing needs you; nothing runs"


def test_what_needs_an_answer_is_first_then_what_runs_waits_and_is_quiet(code: Path) -> None:
    (quiet,), (waiting,), (running,), (phase,), (halted,) = (make_repository(code / name) for name in "abcde")
    end(work(quiet, "s-quiet"))
    end(work(waiting, "s-waiting"))
    violate_once(waiting)
    end(work(phase, "s-phase"))
    abandon(phase)
    halt(halted, "s-halted", "make the tests pass")
    work(running, "s-running")
    overview = Everything().refresh()
    assert [(one.name, one.rank) for one in overview.projects] == [
        ("e", "answer"),
        ("d", "answer"),
        ("c", "running"),
        ("b", "waiting"),
        ("a", "quiet"),
    ]
    session, circuit = (one.folders[0].needs[0] for one in overview.projects[:2])
    assert (session.kind, session.subject, session.title) == (
        "session",
        "s-halted",
        'claude "make the tests pass" (s-halted)',
    )
    assert session.next == "it goes on as soon as you write to it"
    assert (circuit.kind, circuit.subject) == ("circuit", "phase/GREEN")
    assert circuit.next.startswith("a person can run: fusewire ")
    (stop,) = overview.projects[3].folders[0].stops
    assert (stop.id, stop.state) == ("no-force-push", "OPEN")
    assert stop.until
    assert overview.headline == "2 things need you, in 2 projects; 1 session runs"


def test_a_person_who_wrote_to_it_is_not_asked_again(code: Path) -> None:
    (project,) = make_repository(code / "api")
    halt(project, "s-1")
    everything = Everything()
    assert everything.refresh().needs == 1
    wait_for_rest()
    work(project, "s-1", "try something else")
    assert everything.refresh().needs == 0
    assert folders(everything)["api"].rank == "running"


def test_a_question_of_a_run_comes_before_all_else(code: Path) -> None:
    (asking,), (halted,) = make_repository(code / "asking"), make_repository(code / "halted")
    asks = "echo 'I need to know: Which database should I use?'"
    assert asking.run("run", "--no-wait", "--", "sh", "-c", asks).returncode == 5
    end(work(asking, "s-asking"))
    halt(halted, "s-halted")
    first, second = Everything([str(asking.root)]).refresh().projects
    (need,) = first.folders[0].needs
    assert (need.kind, need.text) == ("question", "Which database should I use?")
    assert (first.name, second.name) == ("asking", "halted")


def test_worktrees_of_one_repository_are_one_project(code: Path) -> None:
    main, fix, idea = make_repository(code / "api", "fix", "idea")
    work(main, "s-main")
    halt(fix, "s-fix")
    end(work(idea, "s-idea"))
    (project,) = Everything().refresh().projects
    assert (project.name, project.root, project.needs, project.running) == ("api", str(main.root), 1, 1)
    assert [(one.name, one.rank) for one in project.folders] == [
        ("api-fix", "answer"),
        ("api", "running"),
        ("api-idea", "quiet"),
    ]


def test_what_time_ends_and_what_has_ended_asks_nobody(code: Path) -> None:
    """Must not fire: a cooldown, a silent session, an ended one, an overview of a project with warnings."""
    (project,) = make_repository(code / "api")
    end(work(project, "s-1"))
    violate_once(project)
    (project.root / "fusewire.toml").write_text("[tool]\nno_such_key = 3\n")
    folder = folders(Everything())["api"]
    assert (folder.needs, folder.rank) == ([], "waiting")
    assert folder.warnings


def test_a_new_project_appears_and_a_deleted_one_leaves(code: Path) -> None:
    (first,), (second,) = make_repository(code / "first"), make_repository(code / "second")
    work(first, "s-1")
    everything = Everything()
    assert set(folders(everything)) == {"first"}
    work(second, "s-2")
    time.sleep(1.1)  # the register is looked at once a second
    assert set(folders(everything)) == {"first", "second"}
    remove(first)
    assert set(folders(everything)) == {"second"}
    assert everything.refresh().gone == [str(first.root)]
    assert Everything().refresh().gone == [str(first.root)]  # also of who comes later


def test_a_folder_that_comes_back_is_looked_at_afresh(code: Path) -> None:
    (project,) = make_repository(code / "api")
    halt(project, "s-1")
    everything = Everything()
    remove(project)
    assert everything.refresh().projects == []
    git(code, "init", "-q", "api")
    assert folders(everything)["api"].needs == []


def test_a_damaged_state_is_said_and_nothing_is_shown_as_fine(code: Path) -> None:
    (project,), (other,) = make_repository(code / "api"), make_repository(code / "web")
    work(project, "s-1")
    work(other, "s-2")
    everything = Everything()
    everything.refresh()
    wait_for_rest()
    damage(project)
    before = listing(project.root)
    folder = folders(everything)["api"]
    assert folder.rank == "answer"
    assert [one.kind for one in folder.needs] == ["state"]
    assert "cannot be read" in (folder.problem or "")
    assert (folder.headline.closed, folder.running) == (0, 0)
    assert folders(everything)["web"].rank == "running"
    assert listing(project.root) == before  # mending is for whoever works there


def test_a_state_that_was_there_and_is_gone_is_not_one_without_circuits(code: Path) -> None:
    (project,) = make_repository(code / "api")
    halt(project, "s-1")
    everything = Everything()
    everything.refresh()
    wait_for_rest()
    for file in (project.root / ".fusewire").glob("state.db*"):
        file.unlink()
    assert "is gone" in (folders(everything)["api"].problem or "") or "missing" in (
        folders(everything)["api"].problem or ""
    )


@pytest.mark.parametrize("closed", ["", ".fusewire"])
def test_a_project_that_may_not_be_read_says_so(code: Path, closed: str) -> None:
    """As one of another user: seen by a process for which file modes count."""
    (project,), (other,) = make_repository(code / "api"), make_repository(code / "web")
    work(project, "s-1")
    work(other, "s-2")
    (project.root / closed).chmod(0)
    ask = (
        "from fusewire.views.overview_all import Everything\n"
        "for project in Everything().refresh().projects:\n"
        "    print(project.name, project.rank, project.folders[0].problem)\n"
    )
    try:
        command = [*UNPRIVILEGED, sys.executable, "-c", ask]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        (project.root / closed).chmod(0o755)
    assert done.stderr == ""
    api, web = sorted(done.stdout.splitlines())
    assert api.startswith("api answer the state ")
    assert "Permission denied" in api
    assert web == "web running None"


def test_looking_writes_nothing(code: Path, tmp_path: Path) -> None:
    """No file comes, goes or changes, in no project and not in the person's folder; nothing stays open."""
    made = many_projects(code, 6)
    violate_once(made[0])
    before, opened = listing(tmp_path), open_databases()
    state = listing(Path(os.environ["XDG_STATE_HOME"]))
    everything = Everything([str(made[0].root)])
    for _ in range(3):
        everything.refresh()
    assert listing(tmp_path) == before
    assert listing(Path(os.environ["XDG_STATE_HOME"])) == state
    assert open_databases() == opened


def test_what_is_written_meanwhile_is_never_damage_and_the_last_word_is_seen(code: Path) -> None:
    (project,) = make_repository(code / "api")
    work(project, "s-1")
    everything = Everything()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(project.root)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert folders(everything)["api"].problem is None
    finally:
        writer.kill()
        writer.communicate()
    with Breaker.open(project=project.root) as breaker:
        breaker.engine.apply([Signal("bad", "tool/tool_failure/last", "tool_failed", text="x")] * 3, "test")
    deadline = time.monotonic() + 20
    while not any(one.id == "tool/tool_failure/last" for one in folders(everything)["api"].stops):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_where_nothing_is_new_a_refresh_of_forty_projects_is_cheap(code: Path) -> None:
    """It reads no database: that is what its time is made of, and what no busy machine changes."""
    many_projects(code)
    everything = Everything()
    first = everything.refresh()
    assert len(first.projects) == 40
    wait_for_rest()
    everything.refresh()  # what was written just before the first look is read twice
    seen: list[str] = []

    def profile(frame: object, event: str, argument: object) -> None:
        if event == "c_call" and getattr(argument, "__name__", "") in ("execute", "connect"):
            seen.append(argument.__name__)  # type: ignore[attr-defined]

    sys.setprofile(profile)
    try:
        again = everything.refresh()
    finally:
        sys.setprofile(None)
    assert seen == []
    assert again is everything.refresh()


def test_orders_of_the_person_are_shown_until_they_end(code: Path) -> None:
    (project,) = make_repository(code / "api")
    work(project, "s-1")
    everything = Everything()
    now = time.time()

    def give(orders: Orders) -> None:
        orders.halts = (HaltOrder(scope="all", key="", reason="lunch", by="dev", at=now),)
        orders.pauses = (
            PauseOrder(scope="all", key="", rules=("guard.*",), until=now + 60, reason="a move", by="dev", at=now),
            PauseOrder(scope="all", key="", rules=("*",), until=now - 1, reason="is over", by="dev", at=now - 5),
        )

    change_orders(give, [], now - 10)
    overview = everything.refresh()
    assert overview.headline.startswith("All agents are halted; ")
    assert [(one.scope, one.reason) for one in overview.orders.halts] == [("all", "lunch")]
    assert [(one.rules, one.reason) for one in overview.orders.pauses] == [(["guard.*"], "a move")]


def test_a_damaged_register_keeps_what_was_known_and_is_said(code: Path) -> None:
    (project,) = make_repository(code / "api")
    work(project, "s-1")
    everything = Everything()
    everything.refresh()
    path = Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / "user.db"
    path.write_bytes(b"no database at all\n" * 400)
    time.sleep(1.1)
    overview = everything.refresh()
    assert [one.name for one in overview.projects] == ["api"]
    assert "the list of projects cannot be read" in overview.problems[0]
    path.unlink()
    time.sleep(1.1)
    assert "is gone" in everything.refresh().problems[0]


def test_a_project_without_a_register_entry_is_known_where_it_is_named(code: Path, project: Project) -> None:
    """One of version 0.1, in which no agent was heard of since."""
    violate_once(project)
    assert Everything().refresh().projects == []
    (known,) = Everything([str(project.root)]).refresh().projects
    assert (known.name, known.rank, known.heard) == ("project", "waiting", None)


def test_links_to_a_project_make_no_second_one(code: Path) -> None:
    (project,) = make_repository(code / "api")
    work(project, "s-1")
    (code / "link").symlink_to(project.root)
    assert len(Everything([str(code / "link")]).refresh().projects) == 1
