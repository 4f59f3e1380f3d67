"""What a person does beside an agent is right: never undone, never a reason to halt; and nothing written is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusewire.core.messages import agent_message
from fusewire.guard.baseline import is_unchanged
from fusewire.guard.calls import base, folder_of, is_fallback, read
from fusewire.guard.integrity import Integrity
from fusewire.guard.integrity_check import IntegrityCheck
from fusewire.guard.policy import protected_of
from tests.guard.test_guard_hook import (
    FILES,
    MAKE,
    SESSION,
    after,
    assert_halts,
    assert_silent,
    assert_told,
    before,
    call,
    edit_of,
    says,
)
from tests.helpers import SOURCE
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0", "-c", "commit.gpgsign=false")


def git(shop: Project, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=shop.root, check=True, capture_output=True)


def shell(shop: Project, line: str) -> None:
    subprocess.run(["bash", "-ec", line], cwd=shop.root, check=True, capture_output=True)


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with every protected file, committed, and another branch with other versions of them."""
    for name, text in FILES.items():
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project.starts_hooks = False
    git(project, "add", "-A")
    git(project, "commit", "-qm", "files")
    git(project, "branch", "-M", "main")
    git(project, "switch", "-qc", "other")
    shell(
        project,
        "rm -r specs/deep memory; echo other > AGENTS.md; echo '{}' >> .claude/settings.json; echo n > specs/n.md",
    )
    git(project, "add", "-A")
    git(project, "commit", "-qm", "other")
    git(project, "switch", "-q", "main")
    return project


def contents(shop: Project) -> dict[str, str]:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude=.fusewire"], cwd=shop.root, capture_output=True, text=True, check=True
    )
    return {name: (shop.root / name).read_text() for name in files.stdout.split() if (shop.root / name).is_file()}


def event(shop: Project, name: str, **fields: Any) -> Any:
    return shop.hook({"session_id": SESSION, "hook_event_name": name, "cwd": str(shop.root), **fields})


#: What people do in another terminal.
PERSON: dict[str, Callable[[Project], None]] = {
    "switch": lambda shop: git(shop, "switch", "-q", "other"),
    "merge": lambda shop: git(shop, "merge", "-q", "other"),
    "rebase": lambda shop: (git(shop, "commit", "-q", "--allow-empty", "-m", "x"), git(shop, "rebase", "-q", "other"))[
        0
    ],
    "stash": lambda shop: (shell(shop, "echo mine >> AGENTS.md; echo '{}' >> .ralphrc"), git(shop, "stash"))[0],
    "stash and pop": lambda shop: (
        shell(shop, "echo mine >> AGENTS.md"),
        git(shop, "stash"),
        git(shop, "stash", "pop"),
    )[0],
    "reset": lambda shop: git(shop, "reset", "-q", "--hard", "other"),
    "squash": lambda shop: git(shop, "merge", "-q", "--squash", "other"),
    "pick": lambda shop: git(shop, "cherry-pick", "-n", "other"),
    "delete": lambda shop: shell(shop, "rm -r specs/deep CLAUDE.md"),
    "rename": lambda shop: shell(shop, "mv specs/a.md specs/b.md; mv memory memories"),
    "empty": lambda shop: shell(shop, ": > AGENTS.md"),
    "configure": lambda shop: shell(shop, "echo '{\"mine\": 1}' > .claude/settings.json; rm .ralphrc"),
    "clean": lambda shop: shell(shop, "rm -rf .fusewire specs"),
}
BY_GIT = ("switch", "merge", "rebase", "stash and pop", "reset")


@pytest.mark.parametrize("act", PERSON)
@pytest.mark.parametrize("moment", ["between calls", "at a prompt", "before a session", "after a refused call"])
def test_what_a_person_does_between_calls_stays(shop: Project, act: str, moment: str) -> None:
    """Nothing comes back, nobody is halted or told; what is there then is what comes back later."""
    assert_silent(before(shop))
    if moment != "after a refused call":  # a person said no, so that nothing comes behind it
        assert_silent(after(shop))
    PERSON[act](shop)
    there = contents(shop)
    if moment == "before a session":
        assert event(shop, "SessionStart", source="startup").returncode == 0
    elif moment != "between calls":
        assert_silent(says(shop))
    assert contents(shop) == there
    assert_silent(before(shop))
    assert_silent(after(shop))
    assert contents(shop) == there


@pytest.mark.parametrize("act", BY_GIT)
def test_git_may_move_while_a_call_runs(shop: Project, act: str) -> None:
    """In another terminal or by the call itself: what git brings is the new baseline."""
    assert_silent(before(shop))
    PERSON[act](shop)
    there = contents(shop)
    assert_silent(after(shop))
    assert contents(shop) == there
    assert_silent(before(shop))
    (shop.root / "AGENTS.md").unlink()
    assert_halts(after(shop), "AGENTS.md")
    assert contents(shop) == there


def test_a_stash_takes_and_brings_while_a_call_runs(shop: Project) -> None:
    """What was not committed is in the stash, so that nothing is lost; untracked files too."""
    shell(shop, "echo mine >> AGENTS.md; echo B=1 >> .ralphrc; echo u > specs/untracked.md")
    there = contents(shop)
    for act in (("stash", "-u"), ("stash", "pop")):
        assert_silent(before(shop))
        git(shop, *act)
        assert_silent(after(shop))
    assert contents(shop) == there


def test_what_a_script_commits_is_not_brought_by_git(shop: Project) -> None:
    """A commit moves nothing in the working tree: configuration that a script changed and committed is restored."""
    assert_silent(before(shop))
    shell(shop, "echo B=1 >> .ralphrc")
    git(shop, "commit", "-qam", "by a script")
    assert_halts(after(shop), ".ralphrc")
    assert (shop.root / ".ralphrc").read_text() == FILES[".ralphrc"]


def test_a_worktree_is_a_project_of_its_own(shop: Project, tmp_path: Path) -> None:
    """Its git directory lies elsewhere; its versions do not mix with those of the main one."""
    git(shop, "worktree", "add", "-q", str(tmp_path / "tree"), "other")
    tree = Project(tmp_path / "tree", starts_hooks=False)
    assert_silent(before(tree))
    git(tree, "checkout", "-q", "--detach", "main")
    assert_silent(after(tree))
    assert (tree.root / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    assert_silent(before(tree))
    (tree.root / "AGENTS.md").unlink()
    assert_halts(after(tree), "AGENTS.md")
    assert folder_of(str(tree.root)) != folder_of(str(shop.root))


@pytest.mark.parametrize("act", ["delete", "rename", "configure", "empty"])
def test_an_edit_tool_cannot_have_changed_other_files(shop: Project, act: str) -> None:
    """While only an edit of a named file was running, everything else is a person's."""
    edit = edit_of(shop, "Edit", "src/app.py")
    assert_silent(call(shop, "Edit", edit))
    PERSON[act](shop)
    there = contents(shop)
    assert_silent(call(shop, "Edit", edit, "PostToolUse"))
    assert contents(shop) == there


def test_what_a_person_did_before_permitting_a_call_stays(shop: Project) -> None:
    """The client asks for permission between the two hooks; how long the command itself ran is told."""
    assert_silent(before(shop))
    for name in os.listdir(folder_of(str(shop.root))):
        if name.startswith("call."):  # it was asked a minute ago
            os.utime(Path(folder_of(str(shop.root))) / name, (time.time() - 60, time.time() - 60))
    (shop.root / "CLAUDE.md").unlink()
    os.utime(shop.root, (time.time() - 30, time.time() - 30))
    assert_silent(after(shop, duration_ms=100))
    assert not (shop.root / "CLAUDE.md").exists()


def test_a_permission_that_a_person_grants_for_ever_stays(shop: Project) -> None:
    """The client writes it while the call is pending; a rule for something else is a script's doing."""
    settings = shop.root / ".claude/settings.local.json"
    settings.write_text('{"permissions": {"allow": ["Bash(ls:*)"]}}')
    assert_silent(before(shop))
    granted = '{"permissions": {"allow": ["Bash(ls:*)", "Bash(make all)", "Bash(make:*)"], "deny": []}}'
    settings.write_text(granted)
    assert_silent(after(shop))
    assert settings.read_text() == granted
    for rules in ('["Bash(ls:*)"]', '["Bash(ls:*)", "Bash(make all)", "Bash(make:*)", "Bash(rm:*)"]', '["Bash"]'):
        says(shop)
        settings.write_text(granted)
        before(shop)
        settings.write_text(f'{{"permissions": {{"allow": {rules}}}}}')
        assert_halts(after(shop), "settings.local.json")
        assert settings.read_text() == granted


def test_what_a_person_wrote_during_the_session_comes_back(shop: Project) -> None:
    """Not the version from its start; files that were added are covered, and so are modes and empty folders."""
    before(shop)
    after(shop)
    (shop.root / "specs/a.md").write_text("a person's later version\n")
    (shop.root / "specs/new.md").write_text("new\n")
    (shop.root / "specs/new.md").chmod(0o640)
    (shop.root / "specs/drafts/empty").mkdir(parents=True)
    (shop.root / "specs/drafts").chmod(0o750)
    before(shop)
    shutil.rmtree(shop.root / "specs")
    assert_halts(after(shop), "specs/new.md: restored")
    assert (shop.root / "specs/a.md").read_text() == "a person's later version\n"
    assert (shop.root / "specs/new.md").stat().st_mode & 0o777 == 0o640
    assert (shop.root / "specs/drafts").stat().st_mode & 0o777 == 0o750
    assert (shop.root / "specs/drafts/empty").is_dir()


def test_an_empty_folder_comes_back_without_a_halt(shop: Project) -> None:
    """Nothing that somebody wrote is lost with it."""
    (shop.root / "specs/drafts").mkdir()
    before(shop)
    (shop.root / "specs/drafts").rmdir()
    assert_told(after(shop), "specs/drafts/")
    assert (shop.root / "specs/drafts").is_dir()


LOCKED = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from fusewire.guard.policy import protected_of
from fusewire.guard.integrity_check import IntegrityCheck
root = sys.argv[1]
watch = IntegrityCheck(protected_of(root))
assert watch.renew(time.time()) is None
os.chmod(root + "/specs", 0)
decision = watch.after("x", time.time())
assert decision and decision.verdict == "halt", decision
assert open(root + "/specs/a.md").read() == "a"
assert os.stat(root + "/specs").st_mode & 0o777 == 0o755
"""


def test_a_folder_that_was_locked_is_opened_again(tmp_path: Path) -> None:
    """Its files cannot be reached, which is as bad as a loss."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs").chmod(0o755)
    (tmp_path / "specs/a.md").write_text("a")
    words = [*UNPRIVILEGED, sys.executable, "-c", LOCKED, str(tmp_path), str(SOURCE.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- losses that reach far ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "git clean -fdxq; git rm -rqf specs; rm -rf .fusewire",
        "rm -rf .fusewire specs AGENTS.md",
        "mv specs specs2",
        "mkdir old; mv specs memory .ralph old; rm -rf .fusewire",
        "git rm -rqf specs memory",
        "find . -name '*.md' -delete",
    ],
)
def test_an_opaque_command_takes_nothing_with_it(shop: Project, damage: str) -> None:
    """Whatever is in an npm script: untracked files too come back, from copies that lie elsewhere."""
    (shop.root / ".gitignore").write_text("memory/secret.md\n")
    (shop.root / "memory/secret.md").write_text("not committed\n")
    there = contents(shop)
    (shop.root / "package.json").write_text(json.dumps({"scripts": {"clean": damage}}))
    shop.starts_hooks = True
    assert_silent(before(shop, "npm run build"))
    shell(shop, damage)
    assert_halts(after(shop, "npm run build"), "restored")
    now = contents(shop)
    assert {name: now.get(name) for name in there if protected_of(str(shop.root)).kind_of(str(shop.root / name))} == {
        name: text for name, text in there.items() if protected_of(str(shop.root)).kind_of(str(shop.root / name))
    }
    assert (shop.root / "memory/secret.md").read_text() == "not committed\n"


def test_a_project_that_is_renamed_by_a_call_is_a_clear_halt(shop: Project) -> None:
    """It says where it is now; moved by a person, it takes its versions along."""
    shop.starts_hooks = True
    before(shop)
    moved = shop.root.with_name("moved")
    shop.root.rename(moved)
    away = Project(moved)
    payload = away.bash(MAKE, hook_event_name="PostToolUse", cwd=str(shop.root), tool_response={"stdout": ""})
    answer = away.hook(payload, env={"CLAUDE_PROJECT_DIR": str(shop.root)})
    assert f"moved to {moved}" in json.loads(answer.stdout)["stopReason"]
    (moved / "AGENTS.md").unlink()
    assert away.run("guard", "restore", "AGENTS.md").returncode == 0
    assert (moved / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    copy = shutil.copytree(moved, moved.with_name("copy"))
    assert away.run("guard", "verify").returncode == 0
    assert Project(copy).run("guard", "verify").returncode == 1  # it has no snapshot yet
    assert away.run("guard", "verify").returncode == 0


# -- background commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["Stop", "UserPromptSubmit", "SessionStart", "PreToolUse"])
def test_what_a_background_command_deletes_is_found(shop: Project, moment: str) -> None:
    """The call ends at once, its command goes on: at the end of the turn, at the next prompt, session or call."""
    started = {"command": "make watch", "run_in_background": True}
    assert_silent(call(shop, "Bash", started))
    assert_silent(call(shop, "Bash", started, "PostToolUse"))
    (shop.root / "specs/a.md").unlink()
    (shop.root / "CLAUDE.md").write_text("a person's\n")
    fields = (
        {"prompt": "go on"}
        if moment == "UserPromptSubmit"
        else {"background_tasks": [{"id": "1", "status": "running"}]}
    )
    answer = before(shop) if moment == "PreToolUse" else event(shop, moment, **fields)
    assert b"specs/a.md: restored" in answer.stdout
    assert b"make watch" in answer.stdout
    assert (b'"continue":false' in answer.stdout.replace(b" ", b"")) == (moment in ("Stop", "PreToolUse"))
    assert (shop.root / "specs/a.md").read_text() == "a\n"
    assert (shop.root / "CLAUDE.md").read_text() == "a person's\n"


def test_a_deletion_after_the_background_command_has_ended_is_a_persons(shop: Project) -> None:
    """The agent says at each stop what is still running."""
    started = {"command": "make watch", "run_in_background": True}
    call(shop, "Bash", started)
    call(shop, "Bash", started, "PostToolUse")
    assert event(shop, "Stop", background_tasks=[]).stdout == b""
    (shop.root / "specs/a.md").unlink()
    assert_silent(says(shop))
    assert_silent(before(shop))
    assert_silent(after(shop))
    assert not (shop.root / "specs/a.md").exists()


# -- several calls at once ----------------------------------------------------------------------------------


def test_a_loss_during_parallel_calls_is_found_by_the_first_that_ends(shop: Project) -> None:
    """While one call runs, the start of another takes nothing for a person's."""
    before(shop, tool_use_id="one")
    (shop.root / "specs/a.md").unlink()
    assert_silent(before(shop, tool_use_id="two", agent_id="helper"))
    assert_silent(before(shop, session_id="another", tool_use_id="three"))
    assert_halts(after(shop, tool_use_id="two", agent_id="helper"), "specs/a.md")
    assert (shop.root / "specs/a.md").exists()


def test_what_a_person_did_before_parallel_calls_is_theirs(shop: Project) -> None:
    """The hooks of all calls of a reply run at once: the first takes the record, the others wait for it."""
    before(shop)
    after(shop)
    (shop.root / "specs/a.md").unlink()
    words = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(shop.root)}
    payloads = [json.dumps(shop.bash(MAKE, session_id=f"s{number}")).encode() for number in range(64)]
    running = [subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, env=environment) for _ in payloads]
    answers = []
    for process, payload in zip(running, payloads, strict=True):
        assert process.stdin
        process.stdin.write(payload)
        process.stdin.close()
        process.stdin = None
    for process in running:
        answers.append((*process.communicate(timeout=120), process.returncode))
    assert set(answers) == {(b"", b"", 0)}
    assert_silent(after(shop, session_id="s7"))
    assert not (shop.root / "specs/a.md").exists()
    (shop.root / "AGENTS.md").unlink()
    assert_halts(after(shop, session_id="s8"), "AGENTS.md")


# -- while somebody writes ----------------------------------------------------------------------------------


def test_nothing_is_restored_while_git_is_in_the_middle_of_something(shop: Project) -> None:
    """It is looked at again when git is done."""
    git(shop, "switch", "-q", "other")
    shell(shop, "echo third > AGENTS.md")
    git(shop, "commit", "-qam", "third")
    before(shop)
    merged = subprocess.run([*GIT, "merge", "-q", "main~0"], cwd=shop.root, capture_output=True, check=False)
    assert merged.returncode == 0 or (shop.root / ".git/MERGE_HEAD").exists()
    (shop.root / ".git/MERGE_HEAD").touch()
    (shop.root / "specs/a.md").unlink()
    assert_silent(after(shop))
    assert_silent(before(shop))
    assert not (shop.root / "specs/a.md").exists()
    (shop.root / ".git/MERGE_HEAD").unlink()
    assert_halts(after(shop), "specs/a.md")
    assert (shop.root / "specs/a.md").read_text() == "a\n"


def test_a_file_that_somebody_has_open_for_writing_is_left(shop: Project) -> None:
    """An editor has emptied it and has not written yet; once it is closed and still empty, it is restored."""
    before(shop)
    with open(shop.root / "specs/a.md", "w") as editor:
        assert_silent(after(shop))
        assert (shop.root / "specs/a.md").stat().st_size == 0
        editor.write("saved\n")
    assert (shop.root / "specs/a.md").read_text() == "saved\n"
    assert_told(after(shop), "specs/a.md", "+saved")
    before(shop)
    with open(shop.root / "specs/a.md", "w"):
        assert_silent(after(shop))
    assert_halts(after(shop), "specs/a.md")
    assert (shop.root / "specs/a.md").read_text() == "saved\n"


def test_a_late_writer_keeps_its_text(shop: Project) -> None:
    """What replaced a file is moved aside as the very file that it was."""
    before(shop)
    (shop.root / ".ralphrc").write_text("by a script\n")
    inode = (shop.root / ".ralphrc").stat().st_ino
    assert_halts(after(shop), ".ralphrc")
    aside = shop.root / ".ralphrc.fusewire-aside-1"
    assert aside.stat().st_ino == inode
    assert ".ralphrc.fusewire-aside-1" not in [one.path for one in guarded(shop).verify()]


def guarded(shop: Project) -> Integrity:
    protected = protected_of(str(shop.root))
    return Integrity(protected.root, protected.entries)


EDITOR = """
import os, sys, time
path, count = sys.argv[1], int(sys.argv[2])
lost = 0
for number in range(count):
    text = f"{sys.argv[3]} {number}\\n" * 20
    with open(path, "w") as file:
        for at in range(0, len(text), 64):
            file.write(text[at : at + 64])
            file.flush()
            if sys.argv[3] == "generator" and at % 256 == 0:
                time.sleep(0.0005)
    time.sleep(0.0002 * (number % 5))
    with open(path) as file:
        lost += file.read() != text
print(lost)
"""


def test_no_save_is_lost_while_hooks_run(shop: Project) -> None:
    """A generator that writes slowly and an editor that empties the file first: 2,000 saves, hooks all the time."""
    hooks = 0
    names = {"generator": "specs/a.md", "editor": "IMPLEMENTATION_PLAN.md"}
    writers = [
        subprocess.Popen([sys.executable, "-c", EDITOR, str(shop.root / name), "1000", who], stdout=-1)
        for who, name in names.items()
    ]
    try:
        while any(writer.poll() is None for writer in writers):
            before(shop)
            after(shop)
            hooks += 1
        assert [int(writer.communicate(timeout=60)[0]) for writer in writers] == [0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert hooks > 5
    assert read(str(shop.root), "halt") == ""
    assert not list(shop.root.rglob("*.fusewire-aside-*"))
    for who, name in names.items():
        assert (shop.root / name).read_text() == f"{who} 999\n" * 20


def test_a_killed_hook_leaves_a_consistent_manifest(shop: Project) -> None:
    """Whenever it dies: the manifest can be read, and a loss is restored by the next one."""
    for number in range(200):
        (shop.root / f"specs/{number}.md").write_text(f"{number}\n" * 100)
    words = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(shop.root)}
    for number in range(20):
        for name in range(0, 200, 7):
            (shop.root / f"specs/{name}.md").write_text(f"{number} {name}\n" * 100)
        process = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, env=environment)
        assert process.stdin
        process.stdin.write(json.dumps(shop.bash(MAKE)).encode())
        process.stdin.close()
        time.sleep(0.01 * number)  # the moment of death is the point
        process.send_signal(signal.SIGKILL)
        process.stdin = None
        process.communicate()
        integrity = guarded(shop)
        integrity.verify()
        assert integrity.problem is None
    says(shop)
    before(shop)
    there = contents(shop)
    shutil.rmtree(shop.root / "specs")
    assert_halts(after(shop), "restored")
    assert contents(shop) == there


# -- where it is kept ---------------------------------------------------------------------------------------


def test_without_a_home_the_copies_lie_in_the_project(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only home, a container: the state folder of the project has to do, and doctor says so."""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    assert_silent(before(shop))
    assert is_fallback(str(shop.root))
    assert (shop.root / ".fusewire/guard/manifest.bin").exists()
    (shop.root / "AGENTS.md").unlink()
    assert_halts(after(shop), "AGENTS.md")
    assert "/proc/none" in shop.run("doctor").stdout


def test_what_was_kept_of_projects_that_are_gone_goes_after_a_month(shop: Project, tmp_path: Path) -> None:
    """Copies of a project that was removed an hour ago are all that is left of it."""
    for name, days in (("old", 40), ("young", 20)):
        place = tmp_path / name
        place.mkdir()
        folder = Path(folder_of(str(place), make=True))
        shutil.rmtree(place)
        os.utime(folder, (time.time() - days * 86400,) * 2)
    before(shop)
    assert sorted(name.partition("-")[0] for name in os.listdir(base())) == ["project", "young"]


def test_the_versions_of_release_0_1_are_taken_over(shop: Project) -> None:
    """Its manifest was JSON inside the project, with the contents beside it."""
    import hashlib

    guard = shop.root / ".fusewire/guard"
    files, history, mode = {}, {}, (shop.root / "AGENTS.md").stat().st_mode
    for name, text in {"AGENTS.md": FILES["AGENTS.md"], "CLAUDE.md": "gone since\n", "old": "older\n"}.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        blob = guard / "blobs" / digest[:2] / digest
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_text(text)
        if name == "old":
            history["AGENTS.md"] = [[5.0, digest, len(text), "snapshot", mode]]
        else:
            files[name] = [mode, len(text), 1, 1, 1, digest, 1, 9.0]
    (guard / "manifest.json").write_text(
        json.dumps({"format": 1, "session": "x", "files": files, "folders": {}, "history": history})
    )
    assert [(one.path, one.kind) for one in guarded(shop).verify() if one.kind != "new"] == [("CLAUDE.md", "changed")]
    assert shop.run("guard", "restore", "CLAUDE.md").returncode == 0
    assert (shop.root / "CLAUDE.md").read_text() == "gone since\n"
    assert not (guard / "manifest.json").exists()
    assert not (guard / "blobs").exists()
    assert shop.run("guard", "restore", "AGENTS.md").returncode == 0
    assert (shop.root / "AGENTS.md").read_text() == "older\n"


@pytest.mark.parametrize("by", ["the hook", "a person"])
def test_modes_of_files_and_folders_come_back(shop: Project, by: str) -> None:
    """Another mode loses nothing, so the agent is told and goes on; with `guard restore` a person has the same."""
    modes = {"AGENTS.md": 0o644, "specs/a.md": 0o640, ".ralphrc": 0o600, "specs": 0o755, "specs/deep": 0o750}
    for name, mode in modes.items():
        (shop.root / name).chmod(mode)
    assert_silent(before(shop))
    shell(shop, "chmod 600 specs/a.md; chmod +x AGENTS.md .ralphrc; chmod 700 specs; chmod 777 specs/deep")
    if by == "the hook":
        text = assert_told(after(shop), "AGENTS.md", "specs/a.md", "specs/deep/", ".ralphrc")
        assert "got another mode" in text
    else:
        assert shop.run("guard", "restore", *modes).returncode == 0
        assert_silent(after(shop))
    assert {name: (shop.root / name).stat().st_mode & 0o7777 for name in modes} == modes
    assert_silent(before(shop))
    assert_silent(after(shop))


def test_a_mode_that_a_person_sets_between_calls_stays(shop: Project) -> None:
    assert_silent(before(shop))
    assert_silent(after(shop))
    shell(shop, "chmod 600 specs/a.md; chmod 700 specs")
    for _ in range(2):
        assert_silent(before(shop))
        assert_silent(after(shop))
    assert [(shop.root / name).stat().st_mode & 0o777 for name in ("specs/a.md", "specs")] == [0o600, 0o700]


def test_a_rewrite_of_history_is_no_move(shop: Project) -> None:
    """`git filter-branch` removes what it filters from the working tree too, and no version has it any more."""
    there = contents(shop)
    for _ in range(2):
        assert_silent(says(shop))
        assert_silent(before(shop))
        rewrite = "git rm -rq --cached --ignore-unmatch specs"
        git(shop, "filter-branch", "-f", "--index-filter", rewrite, "HEAD")
        assert_halts(after(shop), "specs/a.md")
        assert contents(shop) == there
        git(shop, "add", "-A")
        git(shop, "commit", "-qm", "again")


NEW_SETTINGS = (
    *(".claude/settings.local.json", ".codex/config.toml", ".codex/hooks.json", ".gemini/settings.json"),
    *(".gemini/.env", ".github/hooks/own.json", ".github/copilot/settings.json"),
)


@pytest.mark.parametrize("name", NEW_SETTINGS)
def test_settings_that_a_command_creates_are_taken_away(shop: Project, name: str) -> None:
    """They would be in force from the next start on; their content is kept, and a person can have it."""
    path = shop.root / name
    assert_silent(before(shop))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"hooks": {}}')
    text = assert_halts(after(shop), name, "was added", "taken away")
    assert not path.exists()
    kept = text.partition("is kept in ")[2].partition(")")[0]
    assert (shop.root / kept).read_text() == '{"hooks": {}}'
    assert_silent(says(shop))
    path.write_text("a person's")  # who has decided that it is wanted
    for _ in range(2):
        assert_silent(before(shop))
        assert_silent(after(shop))
    assert path.read_text() == "a person's"


def test_settings_behind_a_new_link_are_taken_away(shop: Project) -> None:
    assert_silent(before(shop))
    shell(shop, "mkdir evil; echo '{}' > evil/settings.json; ln -s evil .gemini")
    assert_halts(after(shop), "settings.json was added")
    assert not (shop.root / ".gemini/settings.json").exists()


#: What creates no settings, or not by a command.
NO_SETTINGS = {
    "a folder of commands": "mkdir -p .claude/commands .claude/agents; echo x > .claude/commands/x.md",
    "the state of a loop": "echo x > .ralph/new.json",
    "a branch": "git switch -q settings",
    "a stash": "git stash pop -q",
}


@pytest.mark.parametrize("act", NO_SETTINGS)
def test_other_new_files_are_not_taken_away(shop: Project, act: str) -> None:
    git(shop, "switch", "-qc", "settings")
    shell(shop, "mkdir .codex; echo a > .codex/config.toml")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "settings")
    git(shop, "switch", "-q", "main")
    shell(shop, "mkdir .gemini; echo b > .gemini/.env")
    git(shop, "stash", "-u")
    assert_silent(before(shop))
    shell(shop, NO_SETTINGS[act])
    there = contents(shop)
    assert_silent(after(shop))
    assert contents(shop) == there
    assert_silent(before(shop))
    assert_silent(after(shop))


def test_the_first_permission_that_a_person_grants_for_ever_stays(shop: Project) -> None:
    """The client creates its settings while the call waits; a script that grants itself something else does not."""
    path = shop.root / ".claude/settings.local.json"
    assert_silent(before(shop))
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(make all)"]}}))
    assert_silent(after(shop))
    assert path.exists()
    path.unlink()
    assert_silent(before(shop))
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(curl:*)"]}}))
    assert_halts(after(shop), ".claude/settings.local.json was added")


def test_a_large_project_is_recorded_in_parts(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no time for is recorded at the next calls. Nothing is said, and nothing is taken for an agent's."""
    for number in range(300):
        (shop.root / f"specs/deep/{number}.md").write_text(f"{number}\n")
    watch = IntegrityCheck(protected_of(str(shop.root)))
    monkeypatch.setattr("fusewire.guard.integrity_check._PATIENCE", 0.0)
    assert watch.renew(time.time()) is None
    assert watch.after("make", time.time()) is None
    assert watch.integrity.verify()
    assert not is_unchanged(watch.integrity.folder, str(shop.root), watch.integrity.key)
    monkeypatch.setattr("fusewire.guard.integrity_check._PATIENCE", 3.0)
    assert watch.renew(time.time()) is None
    assert watch.integrity.verify() == []

    for number in range(300):  # a person's generator, and again no time
        (shop.root / f"specs/deep/{number}.md").write_text(f"changed {number}\n")
    monkeypatch.setattr("fusewire.guard.integrity_check._PATIENCE", 0.0)
    for _ in range(2):
        assert watch.renew(time.time()) is None
        assert watch.after("make", time.time()) is None
    assert len(watch.integrity.verify()) == 300
    (shop.root / "AGENTS.md").unlink()
    decision = watch.after("make", time.time())
    assert decision is not None
    assert (decision.verdict, "300" in agent_message(decision)) == ("halt", False)
    monkeypatch.setattr("fusewire.guard.integrity_check._PATIENCE", 3.0)
    assert watch.renew(time.time()) is None
    assert watch.integrity.verify() == []
    assert (shop.root / "AGENTS.md").read_text() == FILES["AGENTS.md"]


def test_a_squash_may_remove_a_file_that_the_other_branch_has_removed(shop: Project) -> None:
    git(shop, "switch", "-qc", "more")
    git(shop, "rm", "-q", "specs/a.md")
    git(shop, "commit", "-qm", "more")
    git(shop, "switch", "-q", "main")
    assert_silent(before(shop))
    git(shop, "merge", "-q", "--squash", "more")
    assert_silent(after(shop))
    assert not (shop.root / "specs/a.md").exists()


@pytest.mark.parametrize("words", [("merge", "-q", "--squash", "more"), ("cherry-pick", "-n", "more")])
def test_git_may_bring_content_without_a_commit(shop: Project, words: tuple[str, ...]) -> None:
    git(shop, "switch", "-qc", "more")
    shell(shop, "echo more >> specs/a.md; echo B=1 >> .ralphrc")
    git(shop, "commit", "-qam", "more")
    git(shop, "switch", "-q", "main")
    assert_silent(before(shop))
    git(shop, *words)
    there = contents(shop)
    assert_silent(after(shop))
    assert contents(shop) == there
