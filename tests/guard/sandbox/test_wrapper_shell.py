"""The shell wrapper as Claude Code starts it: real commands, as an ordinary user and as root."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fusewire.agents.claude.shell_wrapper import wrapper_path, wrapper_text
from fusewire.config.rules import find_guarded
from fusewire.guard.sandbox.shell import project_of
from tests.helpers.sandbox_inside import SOURCE, Guarded, as_user
from tests.helpers.sandbox_inside import guarded as guarded


class Shell:
    """Claude Code's shell in a guarded project."""

    def __init__(self, guarded: Guarded, *, always: bool = False) -> None:
        self.guarded = guarded
        settings = str(guarded.home / ".claude" / "settings.json")
        self.wrapper = wrapper_path(settings, always=always)
        self.write(guarded.python)

    def write(self, python: str, source: str = str(SOURCE), always: bool = False) -> None:
        Path(self.wrapper).write_text(wrapper_text([python, "-I", "-S", f"{source}/fusewire/hook.py"], always=always))
        Path(self.wrapper).chmod(0o755)
        self.guarded.own()

    def bash(self, command: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command of the Bash tool, in the form that the client gives it."""
        quoted = "'" + command.replace("'", "'\"'\"'") + "'"
        text = f"source /nowhere 2>/dev/null || true && eval {quoted} < /dev/null && pwd -P >| {self.guarded.home}/cwd"
        return self.start(text, cwd, **variables)

    def start(self, text: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Whatever the client starts by its wrapper."""
        return subprocess.run(
            [*as_user(self.guarded.user), self.wrapper, text],
            cwd=cwd or self.guarded.root,
            env={**self.guarded.variables, "SHELL": "/bin/bash", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def test_what_the_bash_tool_starts_cannot_change_protected_files(guarded: Guarded) -> None:
    """Nothing else is in its way, and its exit code, its output and its folder are what they were."""
    shell, before = Shell(guarded), guarded.protected()
    done = shell.bash("cd src; make -C .. clean; echo it\\'s > ../out.txt; printf 'a  b'; exit 7")
    assert (done.returncode, done.stdout.endswith("a  b")) == (7, True), done
    assert "Read-only file system" in done.stderr, done
    assert guarded.protected() == before, done
    assert (guarded.root / "out.txt").read_text() == "it's\n"
    done = shell.bash("cd src")
    assert (done.returncode, (guarded.home / "cwd").read_text()) == (0, f"{guarded.root}/src\n"), done


def test_hooks_servers_and_the_status_line_pass_through(guarded: Guarded) -> None:
    """They are a person's, and are recognised by what they are not: a command of the Bash tool."""
    done = Shell(guarded).start("echo more >> specs/a.md; exit 3")
    assert (done.returncode, done.stderr) == (3, "")
    assert (guarded.root / "specs" / "a.md").read_text() == "spec a\nmore\n"


def test_git_moves_to_another_version_whole_or_not_at_all(guarded: Guarded) -> None:
    """Documents are writable for it, and configuration is not."""
    shell = Shell(guarded)
    change = "echo other > specs/a.md && echo 2 > src/app.py"
    guarded.outside(f"git switch -qc other && {change} && git commit -qam o && git switch -q -", check=True)
    done = shell.bash("git switch other 2>&1 | tail -1")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert (guarded.root / "specs" / "a.md").read_text() == "other\n"
    assert guarded.outside("git status --short").stdout == ""
    guarded.outside("echo x > docs/constraints/c.md && git commit -qam c && git switch -q -", check=True)
    before = (guarded.root / "docs" / "constraints" / "c.md").read_text()
    shell.bash("git switch other")
    assert (guarded.root / "docs" / "constraints" / "c.md").read_text() == before


def test_a_person_lets_commands_out_or_switches_it_off(guarded: Guarded) -> None:
    shell = Shell(guarded)
    (guarded.root / "fusewire.toml").write_text('[sandbox]\noutside = ["make cl*"]\n')
    guarded.own()
    assert shell.bash("rm specs/a.md").returncode == 1
    shell.bash("make clean")
    assert not (guarded.root / "specs").exists()
    (guarded.root / "fusewire.toml").write_text('sandbox = "off"\n')
    assert shell.bash("rm linked/real.md").returncode == 0


def test_sessions_that_a_person_attends_are_left_alone_unless_asked_for(guarded: Guarded) -> None:
    shell = Shell(guarded)
    assert shell.bash("echo x >> specs/a.md", CLAUDE_CODE_SESSION_ATTENDED="1").returncode == 0
    assert shell.bash("echo x >> specs/a.md", CLAUDE_CODE_SESSION_ATTENDED="0").returncode != 0
    shell.write(guarded.python, always=True)
    assert shell.bash("echo x >> specs/a.md", CLAUDE_CODE_SESSION_ATTENDED="1").returncode != 0


def test_nobody_loses_their_shell_when_fusewire_is_gone(guarded: Guarded) -> None:
    """Neither without its Python, nor without its files, nor when these are damaged, nor without a state folder."""
    shell = Shell(guarded)
    broken = guarded.home / "broken" / "fusewire" / "guard" / "sandbox"
    broken.mkdir(parents=True)
    (broken / "wrap.py").write_text((SOURCE / "fusewire" / "guard" / "sandbox" / "wrap.py").read_text())
    for python, source in (
        ("/nowhere/python", SOURCE),
        (guarded.python, "/nowhere"),
        (guarded.python, broken.parents[2]),
    ):
        shell.write(python, str(source))
        done = shell.bash("echo works; exit 5")
        assert (done.returncode, done.stdout, done.stderr) == (5, "works\n", ""), (python, source)
        assert shell.start("echo hook").stdout == "hook\n"
    shell.write(guarded.python)
    done = shell.bash("echo works", XDG_STATE_HOME="/proc/nowhere", CLAUDE_PID="not a number")
    assert (done.returncode, done.stdout) == (0, "works\n"), done


def test_where_it_is_required_nothing_runs_without_it(guarded: Guarded) -> None:
    """A sandbox in a sandbox whose /proc is of no use cannot be made: the line says why, once."""
    shell = Shell(guarded)
    (guarded.root / "fusewire.toml").write_text('sandbox = "require"\n')
    guarded.own()
    assert shell.bash("echo works").stdout == "works\n"
    text = "eval 'echo ran' < /dev/null && pwd -P >| /dev/null"
    words = ["unshare", "-U", "--map-root-user", "-m", "bash", "-c", 'mount -t tmpfs none /proc; exec "$0" "$1"']
    done = guarded.run([*as_user(guarded.user), *words, shell.wrapper, text])
    if "unshare" in done.stderr:
        pytest.skip(f"no second namespace here: {done.stderr}")
    assert (done.returncode, done.stdout) == (126, ""), done
    assert done.stderr.count("\n") == 1, done
    assert 'sandbox = "require"' in done.stderr, done
    (guarded.root / "fusewire.toml").write_text("")
    done = guarded.run([*as_user(guarded.user), *words, shell.wrapper, text])
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", ""), done


@pytest.mark.parametrize("theirs", ["{home}/own", "{home}/own -v", "{home}/own --log 'a b'"])
def test_a_persons_own_wrapper_runs_inside_of_ours(guarded: Guarded, theirs: str) -> None:
    """With its options, as the client itself would pass them; and around hooks, too."""
    own = guarded.home / "own"
    own.write_text('#!/bin/bash\nprintf "<%s>" "${@:1:$#-1}" >&2\nexec bash -c "${@: -1}"\n')
    own.chmod(0o755)
    shell = Shell(guarded)
    prefix = theirs.format(home=guarded.home)
    done = shell.bash("echo in; echo x >> specs/a.md", FUSEWIRE_SHELL_PREFIX=prefix)
    assert done.stdout == "in\n", done
    options = {"own": "<>", "own -v": "<-v>", "own --log 'a b'": "<--log><a b>"}[theirs.partition("/")[2]]
    assert done.stderr.startswith(options), done
    assert "Read-only file system" in done.stderr, done
    done = shell.start("echo hook", FUSEWIRE_SHELL_PREFIX=prefix)
    assert (done.stdout, done.stderr) == ("hook\n", options), done


def test_the_project_is_the_one_that_the_client_was_started_in(guarded: Guarded) -> None:
    """Its commands may run in any folder."""
    elsewhere = guarded.home / "elsewhere"
    elsewhere.mkdir()
    shell = Shell(guarded)
    client = subprocess.Popen([*as_user(guarded.user), "sleep", "60"], cwd=guarded.root, stdin=subprocess.DEVNULL)
    try:
        done = shell.bash(f"echo x >> {guarded.root}/specs/a.md", elsewhere, CLAUDE_PID=str(client.pid))
    finally:
        client.kill()
        client.wait()
    assert done.returncode != 0, done
    assert (guarded.root / "specs" / "a.md").read_text() == "spec a\n"


def test_the_project_is_found_as_the_hook_finds_it(tmp_path: Path) -> None:
    """With and without constraints and repositories on the way up."""
    for name in (
        "a/.git",
        "a/docs/constraints",
        "a/b/c",
        "a/b/.git",
        "d/e/docs/constraints",
        "d/e/f",
        "g/h",
        "i/.git/x",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "docs").mkdir()
    (tmp_path / "a" / "b" / "c" / "docs" / "constraints").write_text("a file\n")
    for start in ("a", "a/b", "a/b/c", "d/e/f", "d", "g/h", "i/.git/x", "."):
        folder = str((tmp_path / start).resolve())
        assert project_of(folder) == find_guarded(folder), start
    assert project_of("/") == find_guarded("/")


def test_a_wrong_call_is_one_line(guarded: Guarded) -> None:
    script = str(SOURCE / "fusewire" / "guard" / "sandbox" / "wrap.py")
    done = guarded.run([guarded.python, "-I", "-S", script])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
