"""Honest work inside the sandbox: it ends as it does outside, and nothing is left behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers.sandbox_inside import Guarded, as_user
from tests.helpers.sandbox_inside import guarded as guarded

#: `mv` copies where a rename is not possible, which would hide that.
_RENAME = "rename() { $PY -c 'import os, sys; os.rename(*sys.argv[1:])' \"$@\"; }"
_BWRAP_PROC = "bwrap --unshare-user --ro-bind / / --dev /dev --proc /proc --unshare-pid sh -c 'echo $$'"
_AGAIN = "$PY -I -S $ENTER $SOURCE $P documents sh -c"

#: Scripts that must succeed in the project, and what they print.
WORK = {
    "commit": ("echo x > new.py && git add -A && git commit -qm x && git log --format=%s -1", "x"),
    "branch": (
        "git switch -qc b && echo x > t && git add t && git commit -qm t && git switch -q - && ls t; echo $?",
        "2",
    ),
    "tag and packed refs": ("git tag v1 && git pack-refs --all && git tag", "v1"),
    "garbage collection": ("git gc -q && git fsck && echo fine", "fine"),
    "stash of other files": ("echo y >> src/app.py && git stash -q && git stash pop -q && tail -1 src/app.py", "y"),
    "worktree": ("git worktree add -q ../o && ls ../o/AGENTS.md && git worktree remove ../o", "../o/AGENTS.md"),
    "documents of a worktree": ("git worktree add -q ../o && echo new > ../o/AGENTS.md && cat ../o/AGENTS.md", "new"),
    "clone": ("git clone -q . ../clone && echo new > ../clone/AGENTS.md && cat ../clone/AGENTS.md", "new"),
    "rename between folders": ("mv src/app.py docs/app.py && mv docs/app.py src/app.py && ls src", "app.py"),
    "rename into the project": ("echo x > ../up && rename ../up src/up && cat src/up", "x"),
    "rename out of the project": ("rename src ../src && ls ../src", "app.py"),
    "rename from the home folder": ("mkdir ~/c && echo x > ~/c/f && rename ~/c/f f && cat f", "x"),
    "hard link from a cache": ("echo x > ~/cached && ln ~/cached src/linked && cat src/linked", "x"),
    "documents beside constraints": ("echo more >> docs/guide.md && tail -1 docs/guide.md", "more"),
    "client state beside its settings": (
        "echo x > ~/.claude/projects/s.jsonl && echo x > ~/.claude.json && echo y",
        "y",
    ),
    "what is ignored in a protected folder": ("echo x > .claude/memory/new.md && cat .claude/memory/new.md", "x"),
    "reading everything": ("cat AGENTS.md CLAUDE.md specs/deep/b.md | wc -l", "3"),
    "copying a protected folder": ("cp -r specs copy && echo x > copy/a.md && cat copy/a.md", "x"),
    "temporary files": ("f=$(mktemp) && echo x > $f && cat $f && rm $f", "x"),
    "temporary folder": ("d=$(mktemp -d) && touch $d/a && rm -r $d && echo x", "x"),
    "executable": ("printf '#!/bin/sh\\necho ran\\n' > run && chmod +x run && ./run", "ran"),
    "deep paths": ("d=$(printf 'deep/%.0s' $(seq 60)) && mkdir -p $d && touch $d/f && rm -r deep && echo x", "x"),
    "odd names": ("mkdir 'a b' && echo x > $'a b/\\n\\u00e9' && rm -r 'a b' && echo x", "x"),
    "pipes": ("yes | head -2 | wc -l; echo ${PIPESTATUS[0]}", "2\n141"),
    "process substitution": ("diff <(echo a) <(echo a) && echo same", "same"),
    "null device": ("echo x > /dev/null && cat /dev/null && head -c 1 /dev/urandom > /dev/null && echo x", "x"),
    "shared memory": ("echo x > /dev/shm/fusewire-$$ && cat /dev/shm/fusewire-$$ && rm /dev/shm/fusewire-$$", "x"),
    "pseudo-terminal": ("script -qec 'echo x' /dev/null < /dev/null | tr -d '\\r'", "x"),
    "signals": ("sleep 60 & kill $!; wait $!; echo $?", "143"),
    "loopback": ("$PY -c 'import socket; print(socket.create_server((\"127.0.0.1\", 0)).fileno() > 2)'", "True"),
    "user namespace of its own": ("unshare -Ur id -u", "0"),
    "nested bubblewrap": ("bwrap --unshare-user --dev-bind / / --ro-bind $P/src $P/src cat src/app.py", "print('app')"),
    "nested bubblewrap with /proc": (f"{_BWRAP_PROC} > /dev/null; echo $?", "0"),
    "who am I": ("test $(id -u) = $(stat -c %u $P) && echo me", "me"),
    "umask": ("umask 027 && touch masked && stat -c %a masked", "640"),
    "this sandbox again": (f"{_AGAIN} 'echo evil > AGENTS.md; echo x > ok; cat ok' 2>/dev/null", "x"),
}

_PROGRAMS = {"bubblewrap": "bwrap", "terminal": "script"}


@pytest.mark.parametrize("name", WORK)
def test_honest_work_succeeds_inside(guarded: Guarded, name: str) -> None:
    """With everything protected read-only."""
    for word, program in _PROGRAMS.items():
        if word in name and shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    script, printed = WORK[name]
    if name == "nested bubblewrap with /proc" and guarded.outside(script).stdout.strip() != printed:
        pytest.skip("bubblewrap mounts no /proc here outside of a sandbox either")
    before = guarded.protected()
    done = guarded.inside(f"{_RENAME}\n{script}")
    assert (done.stdout.strip(), done.returncode) == (printed, 0), done
    assert guarded.protected() == before


def test_documents_stay_writable_for_an_agent_and_configuration_does_not(guarded: Guarded) -> None:
    """As `fusewire run` starts it: its edit tools update documents."""
    script = "echo new > AGENTS.md; echo new > specs/n.md; echo e > .claude/settings.json; echo e > fusewire.toml"
    guarded.inside(script, documents=False)
    assert (guarded.root / "AGENTS.md").read_text() == (guarded.root / "specs" / "n.md").read_text() == "new\n"
    assert (guarded.root / ".claude" / "settings.json").read_text() == "{}\n"
    assert (guarded.root / "fusewire.toml").read_text() == ""


def test_a_document_in_a_configuration_folder_stays_writable_for_an_agent(guarded: Guarded) -> None:
    """The nearest entry of the lists decides."""
    (guarded.root / "fusewire.toml").write_text('[guard]\nalso_documents = [".claude/notes/"]\n')
    guarded.outside("mkdir .claude/notes")
    guarded.inside("echo x > .claude/notes/n.md; echo x > .claude/evil", documents=False)
    assert (guarded.root / ".claude" / "notes" / "n.md").exists()
    assert not (guarded.root / ".claude" / "evil").exists()


def test_what_is_ignored_by_a_pattern_of_a_whole_folder_stays_writable(guarded: Guarded) -> None:
    """`specs/deep/**` names all that is in a folder; a pattern of names cannot be kept, and is said."""
    (guarded.root / "fusewire.toml").write_text('[guard]\nignore = ["specs/deep/**", "specs/*.tmp"]\n')
    guarded.inside("echo x > specs/deep/b.md; echo x > specs/a.md; echo x > specs/n.tmp")
    assert (guarded.root / "specs" / "deep" / "b.md").read_text() == "x\n"
    assert (guarded.root / "specs" / "a.md").read_text() == "spec a\n"
    assert not (guarded.root / "specs" / "n.tmp").exists()


def test_patterns_protect_the_files_that_exist(guarded: Guarded) -> None:
    """`**/notes/` and `*.lock`, in folders below; what they do not fit stays writable."""
    (guarded.root / "fusewire.toml").write_text('[guard]\nalso_documents = ["**/notes/", "src/*.lock"]\n')
    guarded.outside("mkdir -p a/b/notes && echo kept > a/b/notes/n.md && echo kept > src/x.lock")
    done = guarded.inside(
        "echo e > a/b/notes/n.md; echo e > src/x.lock; mv a c; echo x > src/x.txt; mv src s; cat src/x.txt"
    )
    assert (guarded.root / "a" / "b" / "notes" / "n.md").read_text() == "kept\n"
    assert (guarded.root / "src" / "x.lock").read_text() == "kept\n"
    assert done.stdout == "x\n"


def test_a_plan_that_is_remembered_follows_what_happens_on_disk(guarded: Guarded) -> None:
    """Files that come, go or become others, and changed settings, are seen by the next command."""
    script = "echo evil > IMPLEMENTATION_PLAN.md; echo evil > notes.txt; cat IMPLEMENTATION_PLAN.md notes.txt"
    assert guarded.inside(script).stdout == "evil\nevil\n"
    guarded.outside("echo plan > IMPLEMENTATION_PLAN.md")
    assert guarded.inside(script).stdout == "plan\nevil\n"
    guarded.outside("echo note > notes.txt")
    (guarded.root / "fusewire.toml").write_text('[guard]\nalso_documents = ["notes.txt"]\n')
    assert guarded.inside(script).stdout == "plan\nnote\n"
    guarded.outside("rm notes.txt; echo replaced > n; mv n IMPLEMENTATION_PLAN.md")
    assert guarded.inside(script).stdout == "replaced\nevil\n"


def test_a_damaged_memory_of_the_plan_is_made_again(guarded: Guarded) -> None:
    """Garbage, an empty file, a folder in its place."""
    guarded.inside("true")
    (file,) = (guarded.home / ".local" / "state" / "fusewire" / "sandbox").iterdir()
    for content in (b"", b"garbage", file.read_bytes()[:-3] + b"xyz"):
        file.write_bytes(content)
        guarded.own()
        assert guarded.inside("echo evil > AGENTS.md; cat AGENTS.md").stdout == "rules\n"
    file.unlink()
    file.mkdir()
    assert guarded.inside("echo evil > AGENTS.md; cat AGENTS.md").stdout == "rules\n"


def test_what_is_remembered_is_out_of_reach_inside(guarded: Guarded) -> None:
    """A command that could write it would choose what is protected for the next one."""
    script = "cd ~/.local/state/fusewire/sandbox; rm -f *; echo evil > new; rm -rf ~/.local; mv ~/.local ~/l; ls -A"
    (file,) = guarded.inside(script).stdout.split()
    assert guarded.inside(script).stdout.split() == [file]


#: What entering may import beyond what bare Python has: every shell command pays for it (`make bench`).
IMPORTED = {
    *("__future__", "_ctypes", "posix", "sys", "_signal", "_stat", "time", "marshal", "_imp"),
    *("fusewire", "fusewire.guard", "fusewire.guard.sandbox"),
    *(f"fusewire.guard.sandbox.{name}" for name in ("namespaces", "prepared", "start")),
}


def test_entering_with_a_plan_that_is_remembered_imports_next_to_nothing(guarded: Guarded) -> None:
    """Neither `os` nor `ctypes`, and none of the rules."""
    guarded.inside("true")
    words = guarded.words("true")
    at = words.index("-I")
    loaded = guarded.run([*words[:at], "-X", "importtime", *words[at:]]).stderr.splitlines()
    bare = guarded.run([*words[:at], "-X", "importtime", "-I", "-S", "-c", "pass"]).stderr.splitlines()
    names = [{line.split("|")[2].strip() for line in lines if "|" in line} for lines in (loaded, bare)]
    assert names[0] - names[1] <= IMPORTED


@pytest.mark.parametrize("where", ["", "specs", "src"])
def test_the_current_folder_stays(guarded: Guarded, where: str) -> None:
    assert guarded.inside("pwd", cwd=guarded.root / where).stdout.strip() == str(guarded.root / where).rstrip("/")


def test_a_current_folder_that_is_gone_keeps_nobody_from_running(guarded: Guarded) -> None:
    """A shell whose folder was removed still runs commands."""
    words = " ".join(f"'{word}'" for word in guarded.words("echo", "ran"))
    done = guarded.run(["sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && {words}"])
    assert done.stdout == "ran\n", done


def test_the_environment_is_passed_on_as_it_was_given(guarded: Guarded) -> None:
    """Python sets LC_CTYPE where there is no locale; the command must not see that."""
    words = [
        *as_user(guarded.user),
        "env",
        "-i",
        f"HOME={guarded.home}",
        "PATH=/usr/bin:/bin",
        "ODD=\udcff",
        "LC_CTYPE=C",
    ]
    command = guarded.words("env")[len(as_user(guarded.user)) :]
    assert "ODD=\udcff\nLC_CTYPE=C\n" in _raw(guarded, [*words, *command])
    assert "LC_CTYPE" not in _raw(guarded, [*words[:-1], *command])


def _raw(guarded: Guarded, words: list[str]) -> str:
    done = subprocess.run(words, cwd=guarded.root, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", -9), ("kill -TERM $$", -15)]
)
@pytest.mark.parametrize("is_held", [False, True], ids=["plain", "placeholder"])
def test_the_exit_code_is_that_of_the_command(guarded: Guarded, script: str, code: int, is_held: bool) -> None:
    """Also where a process waits for it, and also a death by a signal."""
    if is_held:
        shutil.rmtree(guarded.root / ".claude")
    assert guarded.run(guarded.words("sh", "-c", script)).returncode == code


def test_a_program_that_is_not_there_or_cannot_run_ends_as_in_a_shell(guarded: Guarded) -> None:
    """127 and 126, with one line."""
    for words, code, text in (
        (["no-such-program"], 127, "command not found"),
        (["./no-such-program"], 127, "command not found"),
        (["./AGENTS.md"], 126, "Permission denied"),
        (["./src"], 126, "Permission denied"),
    ):
        done = guarded.run(guarded.words(*words))
        assert (done.returncode, done.stderr) == (code, f"fusewire: {words[0]}: {text}\n")


# -- folders that are missing -----------------------------------------------------------------------------


def _without_settings(guarded: Guarded) -> Path:
    shutil.rmtree(guarded.root / ".claude")
    return guarded.root / ".claude"


def test_a_missing_settings_folder_cannot_be_created_and_no_ghost_stays(guarded: Guarded) -> None:
    """It is there while the command runs, read-only, and gone afterwards."""
    folder = _without_settings(guarded)
    done = guarded.inside(
        "mkdir -p .claude; echo evil > .claude/settings.json; mv .claude c; rmdir .claude; ls -A .claude"
    )
    assert (done.stdout, done.returncode) == ("", 0), done
    assert not folder.exists()
    assert guarded.outside("git status --short").stdout == " D .claude/memory/notes.md\n D .claude/settings.json\n"


def test_folders_of_agents_that_this_person_does_not_use_are_not_touched(guarded: Guarded) -> None:
    """No `~/.codex`, no placeholder; with it, there is one."""
    assert ".codex" not in guarded.inside("ls -A").stdout.split()
    guarded.outside("mkdir ~/.codex")
    assert ".codex" in guarded.inside("ls -A").stdout.split()
    assert not (guarded.root / ".codex").exists()


def test_an_empty_settings_folder_of_a_person_stays(guarded: Guarded) -> None:
    """Only what we made is removed."""
    folder = _without_settings(guarded)
    guarded.outside("mkdir .claude")
    guarded.inside("echo evil > .claude/settings.json")
    assert list(folder.iterdir()) == []


def test_what_a_person_creates_in_a_placeholder_meanwhile_stays(guarded: Guarded) -> None:
    """The folder becomes theirs, with an ordinary mode."""
    folder = _without_settings(guarded)
    guarded.outside("mkfifo started go")
    command = subprocess.Popen(
        guarded.words("sh", "-c", "echo > started; read line < go; echo evil > .claude/evil"),
        cwd=guarded.root,
        env=guarded.variables,
        stderr=subprocess.DEVNULL,
    )
    guarded.outside("read line < started; echo mine > .claude/settings.json; echo > go")
    command.wait(60)
    assert [path.name for path in folder.iterdir()] == ["settings.json"]
    assert folder.stat().st_mode & 0o1000 == 0


def test_what_a_killed_command_left_behind_is_removed_by_the_next_one(guarded: Guarded) -> None:
    """Both its processes die at once, so that nobody cleans up."""
    folder = _without_settings(guarded)
    guarded.outside("mkfifo started")
    command = subprocess.Popen(
        guarded.words("sh", "-c", "echo > started; exec sleep 60"),
        cwd=guarded.root,
        env=guarded.variables,
        start_new_session=True,
    )
    guarded.outside("read line < started")
    os.killpg(command.pid, signal.SIGKILL)
    command.wait(60)
    assert folder.is_dir()
    guarded.inside("echo evil > .claude/settings.json")
    assert not folder.exists()


def test_a_killed_wrapper_takes_its_command_along(guarded: Guarded) -> None:
    """Where no process waits, the wrapper is the command; where one does, killing it must do the same."""
    _without_settings(guarded)
    guarded.outside("mkfifo started")
    words = guarded.words("sh", "-c", "echo > started; exec sleep 60")
    command = subprocess.Popen(words, cwd=guarded.root, env=guarded.variables)
    guarded.outside("read line < started")
    (inner,) = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    file = os.pidfd_open(int(inner))
    command.kill()
    command.wait(60)
    assert select.select([file], [], [], 60)[0], "the command goes on"
    os.close(file)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_a_command_that_is_waited_for(guarded: Guarded, number: signal.Signals) -> None:
    """It handles them, and its own exit code is the one that counts."""
    _without_settings(guarded)
    guarded.outside("mkfifo started")
    name = number.name.removeprefix("SIG")
    command = subprocess.Popen(
        guarded.words("sh", "-c", f"trap 'exit 41' {name}; echo > started; while :; do sleep 0.02; done"),
        cwd=guarded.root,
        env=guarded.variables,
    )
    guarded.outside("read line < started")
    os.kill(command.pid, number)
    assert command.wait(60) == 41
    assert not (guarded.root / ".claude").exists()


def test_64_commands_at_once_share_a_placeholder(guarded: Guarded) -> None:
    """None of them can create the folder, whoever removes it, and none is left."""
    folder = _without_settings(guarded)
    attempt = "mkdir .claude; echo evil > .claude/settings.json; rmdir .claude"
    script = f"for i in 1 2 3; do {attempt}; done; ls -A .claude; echo ran"
    words = guarded.words("sh", "-c", script)
    running = [
        subprocess.Popen(
            words, cwd=guarded.root, env=guarded.variables, stdout=-1, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(64)
    ]
    printed = [command.communicate(timeout=120)[0] for command in running]
    assert printed == ["ran\n"] * 64
    assert not folder.exists()


def test_a_placeholder_is_made_under_any_umask(guarded: Guarded) -> None:
    folder = _without_settings(guarded)
    words = " ".join(f"'{word}'" for word in guarded.words("sh", "-c", "ls -A .claude && umask"))
    assert guarded.run(["sh", "-c", f"umask 0077; {words}"]).stdout == "0077\n"
    assert not folder.exists()


def test_a_project_whose_folder_cannot_be_written_runs_without_a_placeholder(guarded: Guarded) -> None:
    """Then the agent cannot create the folder either."""
    _without_settings(guarded)
    if not guarded.user:
        pytest.skip("root may write everywhere")
    guarded.root.chmod(0o555)
    done = guarded.inside("mkdir .claude 2>/dev/null; ls -d .claude 2>/dev/null; echo ran")
    guarded.root.chmod(0o755)
    assert done.stdout == "ran\n", done


# -- where the project lies -------------------------------------------------------------------------------


def test_a_project_that_is_reached_through_a_link(guarded: Guarded) -> None:
    """Under both names."""
    guarded.outside("ln -s work/project ~/here")
    guarded.inside("echo evil > ~/here/AGENTS.md; echo evil > AGENTS.md", cwd=guarded.home / "here")
    assert (guarded.root / "AGENTS.md").read_text() == "rules\n"


def test_a_project_without_anything_protected(guarded: Guarded) -> None:
    """An empty folder, nothing to mount but what is Fusewire's own."""
    guarded.outside("rm -rf * .claude .git ~/.claude")
    assert guarded.inside("echo x > new; cat new").stdout == "x\n"


def test_a_project_on_another_file_system(guarded: Guarded) -> None:
    """A tmpfs that is mounted below the home folder; whoever mounts it is root there, or root."""
    kind = "-m" if not guarded.user else "-Urm"
    script = "cd $P && echo rules > AGENTS.md && " + " ".join(
        f"'{word}'"
        for word in guarded.words("sh", "-c", "echo evil > AGENTS.md; mv ~/work ~/w; cat $P/AGENTS.md")[
            len(as_user(guarded.user)) :
        ]
    )
    done = guarded.run([*as_user(guarded.user), "unshare", kind, "sh", "-c", f"mount -t tmpfs none $P && {script}"])
    assert done.stdout == "rules\n", done
