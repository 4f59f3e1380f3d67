"""`fusewire sandbox`, its settings, what the machine can do and why not, and the profile for macOS."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.config.rules import load_rules
from fusewire.guard.policy import protected_of
from fusewire.guard.sandbox.namespaces import MountPlan
from fusewire.guard.sandbox.plan import hard_links, plan
from fusewire.guard.sandbox.programs import seatbelt_profile, words_before
from fusewire.guard.sandbox.support import support
from tests.helpers.project import Project
from tests.helpers.sandbox_inside import require_sandbox


@pytest.fixture
def guarded(project: Project) -> Project:
    (project.root / "AGENTS.md").write_text("rules\n")
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("spec\n")
    return project


def without_namespaces(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program on a machine that forbids them: a limit of none, in a user namespace of its own."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin "$@"'
    words = ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-m", "fusewire", *arguments]
    done = subprocess.run(words, cwd=project.root, capture_output=True, text=True, check=False)
    if "max_user_namespaces" in done.stderr and "cannot create" in done.stderr:
        pytest.skip("no limit can be set here")
    return done


# -- the command ------------------------------------------------------------------------------------------


def test_a_command_runs_with_the_protected_files_read_only(guarded: Project) -> None:
    """What is printed is the command's, and so is the exit code."""
    require_sandbox()
    done = guarded.run("sandbox", "--", "sh", "-c", "echo x > AGENTS.md; echo x > new; cat new; exit 5")
    assert (done.returncode, done.stdout) == (5, "x\n")
    assert (guarded.root / "AGENTS.md").read_text() == "rules\n"


def test_documents_may_be_left_writable(guarded: Project) -> None:
    """Configuration is read-only all the same."""
    require_sandbox()
    (guarded.root / "fusewire.toml").write_text("")
    done = guarded.run("sandbox", "--no-documents", "--", "sh", "-c", "echo x > AGENTS.md; echo x > fusewire.toml")
    assert done.returncode != 0
    assert (guarded.root / "AGENTS.md").read_text() == "x\n"
    assert (guarded.root / "fusewire.toml").read_text() == ""


def test_options_of_the_command_are_its_own(guarded: Project) -> None:
    """Behind `--`, and also without it."""
    require_sandbox()
    assert guarded.run("sandbox", "--", "printf", "%s|", "--check", "--json").stdout == "--check|--json|"
    assert guarded.run("sandbox", "printf", "%s|", "--help").stdout == "--help|"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "give a command"),
        (("--check", "--", "true"), 2, "give a command"),
        (("--json", "--", "true"), 2, "--json belongs to --check"),
        (("--project", "no-folder", "--", "true"), 1, "no such folder: no-folder"),
        (("--", "no-such-program"), 127, "no-such-program: command not found"),
        (("--", "/"), 126, "/: Permission denied"),
        (("--", ""), 127, "command not found"),
    ],
)
def test_bad_input_is_refused_in_one_line(guarded: Project, arguments: tuple[str, ...], code: int, text: str) -> None:
    require_sandbox()
    done = guarded.run("sandbox", *arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_setting_is_named_and_the_default_holds(guarded: Project) -> None:
    """What is allowed is said."""
    require_sandbox()
    (guarded.root / "fusewire.toml").write_text('[sandbox]\nmode = "on"\noutside = "make deploy"\n')
    done = guarded.run("sandbox", "--", "sh", "-c", "echo x > AGENTS.md")
    assert "allowed: auto, require, off" in done.stderr
    assert "[sandbox] outside" in done.stderr
    assert (guarded.root / "AGENTS.md").read_text() == "rules\n"


@pytest.mark.parametrize("text", ['sandbox = "off"', '[sandbox]\nmode = "off"', 'sandbox.mode = "off"'])
def test_the_sandbox_can_be_switched_off(guarded: Project, text: str) -> None:
    """Then the command runs, and that it is not protected is said."""
    (guarded.root / "fusewire.toml").write_text(text)
    done = guarded.run("sandbox", "--", "sh", "-c", "echo x > AGENTS.md")
    assert (guarded.root / "AGENTS.md").read_text() == "x\n"
    assert "switched off" in done.stderr


def test_the_settings_reach_the_rules(guarded: Project) -> None:
    assert load_rules(str(guarded.root)).sandbox == ("auto", ())
    (guarded.root / "fusewire.toml").write_text('[sandbox]\nmode = "require"\noutside = ["make deploy"]\n')
    assert load_rules(str(guarded.root)).sandbox == ("require", ("make deploy",))


def test_without_a_sandbox_nothing_is_run(guarded: Project) -> None:
    """Whoever asks for it gets it or a refusal, with what would help."""
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("unshare or setpriv is missing")
    done = without_namespaces(guarded, "sandbox", "--", "touch", "ran")
    assert done.returncode == 3, done
    assert done.stderr.startswith("BLOCKED sandbox: this machine has none: unshare: ")
    assert "Next: " in done.stderr
    assert not (guarded.root / "ran").exists()


# -- --check ----------------------------------------------------------------------------------------------


def test_check_says_what_would_be_read_only_and_what_cannot_be(guarded: Project) -> None:
    require_sandbox()
    os.link(guarded.root / "specs" / "a.md", guarded.root / "other.md")
    done = guarded.run("sandbox", "--check")
    assert done.returncode == 0
    assert re.match(r"Sandbox: (namespaces|bubblewrap)\n", done.stdout)
    parts = dict(re.findall(r"^(\S[^\n]*):\n((?:  [^\n]*\n)*)", done.stdout, re.MULTILINE))
    assert {"AGENTS.md", "specs"} <= set(parts["Read-only"].split())
    assert parts["Can be changed under another name (hard links)"].split() == ["specs/a.md"]
    assert "CLAUDE.md" in parts["Not there, so the kernel cannot keep it from being created"].split()


def test_check_as_json(guarded: Project) -> None:
    require_sandbox()
    found = json.loads(guarded.run("sandbox", "--check", "--json").stdout)
    assert set(found) == {
        *("means", "reason", "help", "mode", "read_only", "writable"),
        *("kept_from_being_created", "absent", "hard_links", "warnings"),
    }
    assert str(guarded.root / "AGENTS.md") in found["read_only"]
    assert str(guarded.root / "CLAUDE.md") in found["absent"]


def test_check_where_there_is_none_says_why_and_what_would_help(guarded: Project) -> None:
    """Exit 3; the cause is the limit that was set for this test."""
    done = without_namespaces(guarded, "sandbox", "--check", "--json")
    assert done.returncode == 3, done
    found = json.loads(done.stdout)
    assert found["means"] is None
    assert found["reason"].startswith("unshare: ")
    assert "sysctl user.max_user_namespaces" in found["help"]


def test_the_attempt_leaves_this_process_as_it_was() -> None:
    """It is made in a child."""
    before = os.readlink("/proc/self/ns/mnt"), os.readlink("/proc/self/ns/user"), os.listdir("/proc/self/fd")
    support()
    assert (os.readlink("/proc/self/ns/mnt"), os.readlink("/proc/self/ns/user"), os.listdir("/proc/self/fd")) == before


# -- plans ------------------------------------------------------------------------------------------------


def test_what_git_writes_with_every_commit_is_left_out(guarded: Project) -> None:
    """Fusewire's own references are protected by the other rings."""
    (guarded.root / ".git" / "packed-refs").write_text("")
    (guarded.root / ".git" / "refs" / "fusewire").mkdir(parents=True)
    made = plan(protected_of(str(guarded.root)), documents=True)
    assert not [path for path in made.read_only() if "/.git/" in path]


def test_a_plan_can_leave_paths_writable(guarded: Project) -> None:
    """Also inside of a protected folder, and also a protected path itself."""
    inner = guarded.root / "specs" / "drafts"
    inner.mkdir()
    agents = guarded.root / "AGENTS.md"
    made = plan(protected_of(str(guarded.root)), documents=True, writable=(str(inner), str(agents)))
    assert (str(inner), False) in made.mounts
    assert (str(guarded.root / "specs"), True) in made.mounts
    assert str(agents) not in dict(made.mounts)


def test_too_many_files_for_a_pattern_are_said(guarded: Project) -> None:
    (guarded.root / "fusewire.toml").write_text('[guard]\nalso_documents = ["many/*.txt"]\n')
    (guarded.root / "many").mkdir()
    for number in range(700):
        (guarded.root / "many" / f"{number}.txt").touch()
    (warning,) = plan(protected_of(str(guarded.root)), documents=True).warnings
    assert "many" in plan(protected_of(str(guarded.root)), documents=True).scanned[0]
    assert warning.startswith("*.txt stands for more files than")


def test_a_file_with_another_name_is_said(guarded: Project) -> None:
    os.link(guarded.root / "AGENTS.md", guarded.root / "other.md")
    made = plan(protected_of(str(guarded.root)), documents=True)
    assert [warning for warning in made.warnings if "AGENTS.md has 2 names" in warning]
    assert hard_links(made) == ([str(guarded.root / "AGENTS.md")], False)


# -- macOS ------------------------------------------------------------------------------------------------


def test_the_profile_for_macos(tmp_path: Path) -> None:
    """The last rule that fits decides: a folder before what stays writable in it; missing paths are refused, too."""
    made = MountPlan(
        "/p",
        (("/p/.claude", True), ("/p/.claude/memory", False), ('/p/a "quoted" \\ name', True)),
        ("/p", "/p/docs"),
        ("/p/.codex",),
        ("/p/fusewire.toml",),
    )
    assert seatbelt_profile(made).splitlines() == [
        "(version 1)",
        "(allow default)",
        '(deny file-write* (subpath "/p/.claude"))',
        '(allow file-write* (subpath "/p/.claude/memory"))',
        '(deny file-write* (subpath "/p/.codex"))',
        '(deny file-write* (subpath "/p/a \\"quoted\\" \\\\ name"))',
        '(deny file-write* (subpath "/p/fusewire.toml"))',
        '(deny file-write-unlink (literal "/p"))',
        '(deny file-write-unlink (literal "/p/docs"))',
    ]
    assert words_before(made, "seatbelt")[:2] == ["/usr/bin/sandbox-exec", "-p"]
