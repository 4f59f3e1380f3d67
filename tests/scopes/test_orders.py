"""Halts and pauses of the person: what holds where, what a lost or damaged file leaves in force, what is copied."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fusewire.config import user_state_folder
from fusewire.core.events import Event
from fusewire.scopes import once, order_changes, orders
from fusewire.scopes.orders import COPY, HaltOrder, OnceAllowed, PauseOrder, halt_of, paused_rules, read_orders
from fusewire.scopes.register import note_session
from fusewire.scopes.user import open_user_store
from fusewire.util.errors import FusewireError, NotFound, StoreError
from fusewire.util.files import FileLock
from tests.helpers.project import Project


def folder() -> Path:
    return Path(user_state_folder())


def halt(root: Path | str, scope: str = "project", key: str | None = None, reason: str = "going home") -> HaltOrder:
    order = HaltOrder(scope, str(root) if key is None else key, reason, "kim", time.time())
    assert order_changes.halt(order, str(root)) == ""
    return order


def other(project: Project, name: str) -> Path:
    """Another project of the person, in which an agent was heard of."""
    root = project.root.parent / name
    shutil.copytree(project.root, root)
    facts = {"root": str(root), "project": str(root), "agent": "claude", "at": 1.0}
    note_session(open_user_store(), f"session-of-{name}", facts, time.time())
    return root


def test_without_any_order_nothing_is_made_and_nothing_holds(project: Project) -> None:
    found = read_orders(str(project.root))
    assert (found.halts, found.pauses, found.once, found.damage) == ((), (), (), "")
    assert not folder().exists()


def test_a_project_s_halt_holds_in_it_and_in_no_other(project: Project) -> None:
    elsewhere = other(project, "elsewhere")
    halt(project.root)
    found = halt_of(read_orders(str(project.root)), str(project.root), "s")
    assert found is not None
    assert found.reason == "going home"
    assert halt_of(read_orders(str(elsewhere)), str(elsewhere), "s") is None


def test_a_project_s_halt_holds_in_its_worktrees(project: Project, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=k", "-c", "user.email=k@x", "-C", str(project.root)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    halt(project.root)
    tree = str(tmp_path / "tree")
    assert halt_of(read_orders(tree), tree, None) is not None


def test_the_widest_halt_is_the_one_that_is_said(project: Project) -> None:
    halt(project.root, "session", "s1")
    halt(project.root, "all", "")
    found = halt_of(read_orders(str(project.root)), str(project.root), "s1")
    assert found is not None
    assert found.scope == "all"


def test_a_second_halt_of_the_same_scope_takes_the_place_of_the_first(project: Project) -> None:
    halt(project.root)
    halt(project.root, reason="and now really")
    assert [one.reason for one in read_orders(str(project.root)).halts] == ["and now really"]


def test_no_halt_is_dropped_for_another_one(project: Project) -> None:
    """There is a limit, which refuses; the oldest would be lifted by nobody."""
    for number in range(100):
        halt(project.root, "session", f"s{number}")
    with pytest.raises(FusewireError, match="100 halts hold already"):
        halt(project.root, "session", "one-more")
    assert len(read_orders().halts) == 100
    assert not read_orders().damage


def test_every_known_project_gets_a_copy_and_loses_it_with_the_halt(project: Project) -> None:
    elsewhere = other(project, "elsewhere")
    halt(project.root, "all", "")
    assert (project.root / COPY).exists()
    assert (elsewhere / COPY).exists()
    order_changes.resume(lambda one: True, str(project.root), "", "kim", time.time())
    assert not (project.root / COPY).exists()
    assert not (elsewhere / COPY).exists()


def test_losing_the_person_s_folder_lifts_no_halt(project: Project) -> None:
    halt(project.root)
    shutil.rmtree(folder())
    found = read_orders(str(project.root))
    assert found.copied
    assert halt_of(found, str(project.root), "s") is not None


def test_another_order_after_the_loss_lifts_no_halt_either(project: Project) -> None:
    """The file is there again and knows nothing of the halt: it is another file, so the copy still holds."""
    elsewhere = other(project, "elsewhere")
    halt(elsewhere)
    shutil.rmtree(folder())
    now = time.time()
    order_changes.pause(PauseOrder("all", "", ("tool.cycle",), now + 60, "x", "kim", now))
    found = read_orders(str(elsewhere))
    assert found.copied
    assert halt_of(found, str(elsewhere), None) is not None


def test_a_halt_that_only_a_copy_knows_can_be_resumed_there(project: Project) -> None:
    halt(project.root)
    shutil.rmtree(folder())
    lifted = order_changes.resume(lambda one: True, str(project.root), "", "kim", time.time())
    assert len(lifted) == 1
    assert not read_orders(str(project.root)).halts


def test_a_copy_that_could_not_be_removed_halts_nothing_while_the_file_is_there(project: Project) -> None:
    halt(project.root)
    kept = (project.root / COPY).read_bytes()
    order_changes.resume(lambda one: True, str(project.root), "", "kim", time.time())
    (project.root / COPY).write_bytes(kept)
    assert not read_orders(str(project.root)).halts


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"halts": 3}', b'{"halts": [{"scope": "all"}], "pauses": []}', b"\xff\xfe", b"null"]
)
def test_a_damaged_file_is_said_and_the_copies_hold(project: Project, content: bytes) -> None:
    halt(project.root)
    (folder() / "orders.json").write_bytes(content)
    found = read_orders(str(project.root))
    assert "orders.json" in found.damage
    assert halt_of(found, str(project.root), None) is not None


def test_the_next_order_sets_a_damaged_file_aside_and_keeps_its_halts(project: Project) -> None:
    halt(project.root)
    (folder() / "orders.json").write_bytes(b"{")
    halt(project.root, "session", "s1")
    found = read_orders(str(project.root))
    assert not found.damage
    assert sorted(one.scope for one in found.halts) == ["project", "session"]
    assert list(folder().glob("orders.json.set-aside*"))


def test_a_link_in_the_place_of_the_file_is_not_followed(project: Project, tmp_path: Path) -> None:
    halt(project.root)
    (tmp_path / "mine.json").write_text('{"halts": [], "pauses": [], "once": [], "epoch": "x"}')
    (folder() / "orders.json").unlink()
    (folder() / "orders.json").symlink_to(tmp_path / "mine.json")
    found = read_orders(str(project.root))
    assert found.damage
    assert halt_of(found, str(project.root), None) is not None


def test_a_pause_ends_by_itself_and_a_clock_that_is_set_back_does_not_make_it_longer(project: Project) -> None:
    now = time.time()
    order_changes.pause(PauseOrder("project", str(project.root), ("guard.*",), now + 60, "x", "kim", now))
    found, root = read_orders(), str(project.root)
    assert paused_rules(found, root, None, now + 59) == ["guard.*"]
    assert paused_rules(found, root, None, now + 60) == []
    assert paused_rules(found, root, None, now - 1) == []


@pytest.mark.parametrize("seconds", [0, -1, 86401])
def test_a_pause_without_an_end_in_a_day_is_refused(project: Project, seconds: int) -> None:
    now = time.time()
    with pytest.raises(FusewireError, match="24h"):
        order_changes.pause(PauseOrder("all", "", ("*",), now + seconds, "x", "kim", now))


def test_what_cannot_be_audited_is_not_softened_but_is_halted(project: Project) -> None:
    now = time.time()
    order = HaltOrder("all", "", "x", "kim", now)
    with open_user_store().transact():  # another process holds the store, and does not let go of it
        with pytest.raises(StoreError):
            order_changes.pause(PauseOrder("all", "", ("*",), now + 60, "x", "kim", now))
        assert not read_orders().pauses
        assert "audit" in order_changes.halt(order, str(project.root))
    assert read_orders().halts == (order,)


def test_every_order_is_in_the_audit_trail(project: Project) -> None:
    now = time.time()
    halt(project.root, "all", "")
    order_changes.resume(lambda one: True, str(project.root), "done", "lee", now)
    order_changes.pause(PauseOrder("all", "", ("tool.cycle",), now + 60, "polling", "lee", now))
    rows = [(row.circuit, row.cause, row.actor) for row in open_user_store().audit_of(None)]
    assert rows == [("halt/all", "halt", "kim"), ("halt/all", "resume", "lee"), ("pause/tool.cycle", "pause", "lee")]
    assert "polling" in open_user_store().audit_of("pause/tool.cycle")[0].reason


def test_a_person_s_folder_that_cannot_be_named_is_one_clear_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    assert not read_orders(str(project.root)).halts
    with pytest.raises(FusewireError, match="HOME or XDG_STATE_HOME"):
        halt(project.root)


# -- one call, once -------------------------------------------------------------------------------------------


def call(command: str = "rm specs/a.md", session: str = "s1", cwd: str = "/p", **given: object) -> Event:
    return Event("before_tool", "Bash", command=command, session=session, cwd=cwd, input={"command": command, **given})


def test_only_the_same_call_has_the_same_key() -> None:
    key = once.call_key(call())
    assert key == once.call_key(call(description="in other words"))
    others = [call("rm specs/b.md"), call(session="s2"), call(cwd="/q"), call(run_in_background=True)]
    assert key not in [once.call_key(one) for one in others]
    assert key != once.call_key(call().replace(subagent="a1"))
    assert key != once.call_key(call().replace(tool="Shell"))


def test_the_order_of_arguments_makes_no_other_call() -> None:
    first = call().replace(tool="Edit", command=None, input={"a": 1, "b": [1, {"c": 2, "d": 3}]})
    second = first.replace(input={"b": [1, {"d": 3, "c": 2}], "a": 1})
    assert once.call_key(first) == once.call_key(second)


def test_the_code_is_that_of_the_decision_unless_it_stands_for_another_call() -> None:
    code = once.offer(call(), "/p", "guard.rm", "no", 1000.0, "K7QXM")
    assert code == "K7QXM"
    assert once.offer(call(), "/p", "guard.rm", "no", 1300.0, "K7QXM") == code
    assert once.offer(call("rm specs/b.md"), "/p", "guard.rm", "no", 1300.0, "K7QXM") != code
    store = open_user_store()
    assert once.find(store, code, 1899.0)["call"] == "rm specs/a.md"
    assert once.find(store, code, 1900.0) == {}
    assert once.find(store, code, 999.0) == {}


def test_offers_are_bounded() -> None:
    for number in range(130):
        once.offer(call(f"rm {number}"), "/p", "guard.rm", "no", 1000.0 + number / 1000)
    assert len(open_user_store().remembered(once.OFFER)) <= 101
    for number in range(30):  # the same call again and again does not drive out the others
        once.offer(call("rm 129"), "/p", "guard.rm", "no", 1001.0 + number)
    assert once.find(open_user_store(), once.offer(call("rm 120"), "/p", "guard.rm", "no", 1040.0), 1040.0)
    assert len(once.offers_of(open_user_store(), once.call_key(call("rm 129")), 1040.0)) <= 5


def test_a_code_is_used_up_by_the_person_and_what_it_allows_by_one_call() -> None:
    now = time.time()
    code = once.offer(call(), "/p", "guard.rm", "no", now)
    allowed = OnceAllowed(once.call_key(call()), "s1", now + 600, code, "kim")
    order_changes.allow_once(allowed, "guard.rm", now)
    with pytest.raises(NotFound, match="used already"):
        order_changes.allow_once(allowed, "guard.rm", now)
    key = once.call_key(call())
    assert order_changes.take_once(key, "toolu_1", now)
    assert order_changes.take_once(key, "toolu_1", now), "a hook that is registered twice asks twice"
    assert not order_changes.take_once(key, "toolu_2", now)
    assert not order_changes.take_once(key, "", now)


def test_what_was_allowed_ends_after_ten_minutes() -> None:
    now = time.time()
    code = once.offer(call(), "/p", "guard.rm", "no", now)
    key = once.call_key(call())
    order_changes.allow_once(OnceAllowed(key, "s1", now + 600, code, "kim"), "guard.rm", now)
    assert not order_changes.take_once(key, "t", now + 600)


# -- killed in the middle -------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, time
from fusewire.scopes import order_changes
from fusewire.scopes.orders import HaltOrder
from fusewire.util import files

left = int(sys.argv[2])
for name in ("replace", "unlink"):
    def counted(*arguments, act=getattr(os, name), **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*arguments, **more)
    setattr(os, name, counted)
root = sys.argv[3]
if sys.argv[1] == "halt":
    order_changes.halt(HaltOrder("project", root, "again", "kim", time.time()), root)
else:
    order_changes.resume(lambda one: True, root, "", "kim", time.time())
print("done")
"""


@pytest.mark.parametrize("at", range(4))
def test_a_resume_that_is_killed_has_lifted_all_or_nothing_and_says_done_only_then(project: Project, at: int) -> None:
    halt(project.root)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "resume", str(at), str(project.root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL)
    holds = halt_of(read_orders(str(project.root)), str(project.root), None) is not None
    shutil.rmtree(folder())  # and even then the copy does not know less than the file did
    if holds:
        assert read_orders(str(project.root)).halts
    assert holds or at > 0
    assert not (done.stdout and holds)


@pytest.mark.parametrize("at", range(4))
def test_a_halt_that_is_killed_has_not_lifted_the_one_before(project: Project, at: int) -> None:
    halt(project.root, "session", "s1")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "halt", str(at), str(project.root)], capture_output=True, text=True, check=False
    )
    found = read_orders(str(project.root))
    assert not found.damage
    assert halt_of(found, str(project.root), "s1") is not None
    if done.stdout:
        assert halt_of(found, str(project.root), "s2") is not None


def test_no_order_is_lost_with_many_people_at_once(project: Project) -> None:
    script = (
        "import sys, time\nfrom fusewire.scopes import order_changes\nfrom fusewire.scopes.orders import HaltOrder\n"
        "order_changes.halt(HaltOrder('session', sys.argv[1], 'x', 'kim', time.time()), None)"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, f"s{number}"]) for number in range(12)]
    assert [one.wait() for one in running] == [0] * 12
    assert {one.key for one in read_orders().halts} == {f"s{number}" for number in range(12)}
    assert orders.orders_path() == os.path.join(user_state_folder(), "orders.json")


def test_a_process_that_holds_the_lock_keeps_nobody_from_halting(project: Project) -> None:
    folder().mkdir(parents=True)
    with FileLock(str(folder() / "orders.lock")):
        halt(project.root)
        with pytest.raises(StoreError, match=r"orders\.json"):
            order_changes.change_orders(lambda one: None, [], time.time(), wait=0.1)
    assert read_orders().halts
