"""Attacks on protected files: each runs for real inside the sandbox, and afterwards every file is what it was."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from tests.helpers.sandbox_attacks import PLAIN, TRICKS
from tests.helpers.sandbox_inside import Guarded, as_user, guarded_project
from tests.helpers.sandbox_inside import guarded as guarded


@pytest.mark.parametrize("name", PLAIN)
def test_what_changes_a_file_outside_changes_none_inside(guarded: Guarded, name: str) -> None:
    """The same command, first inside and then outside, where it must succeed."""
    script = PLAIN[name]
    before = guarded.protected()
    done = guarded.inside(script)
    assert guarded.protected() == before, done
    with guarded_project(guarded.user) as another:
        before = another.protected()
        done = another.outside(script)
        assert another.protected() != before, f"this attack harms no file, so it proves nothing: {done}"


@pytest.mark.parametrize(
    "name",
    [
        *("redirect", "replace by rename", "remove a folder", "find and delete", "settings in the home folder"),
        *("folder above", "exchange the folder above", "the project folder", "the folder above the project"),
        *("through a link", "the folder of that target", "from a folder inside", "background process"),
    ],
)
def test_bubblewrap_keeps_the_same_files(guarded: Guarded, name: str) -> None:
    """The same plan by other means; only a link itself can be replaced there, which `bwrap` cannot mount on."""
    if guarded.outside("bwrap --dev-bind / / true").returncode:
        pytest.skip("bubblewrap does not run here")
    link = str(guarded.root / "CLAUDE.md")
    before = guarded.protected()
    done = guarded.inside(PLAIN[name], means="bubblewrap")
    assert guarded.protected() | {link: before[link]} == before, done
    assert "bwrap:" not in done.stderr


@pytest.mark.parametrize("name", TRICKS)
def test_no_trick_with_the_kernel_reaches_a_protected_file(guarded: Guarded, name: str) -> None:
    """Namespaces inside ours, the memory and files of processes outside, handles, devices."""
    before = guarded.protected()
    outside = subprocess.Popen(
        [*as_user(guarded.user), "sleep", "60"], cwd=guarded.root, env=guarded.variables, stdin=subprocess.DEVNULL
    )
    try:
        done = guarded.inside(f"export OUTSIDE={outside.pid}\n{TRICKS[name]}")
    finally:
        outside.kill()
        outside.wait()
    assert guarded.protected() == before, done
    assert not (guarded.root / "src" / "traced").exists(), done.stdout


def test_a_link_that_is_swapped_before_the_start_leads_to_what_is_protected_now(guarded: Guarded) -> None:
    """What the link names when the command starts is read-only, and so is the link."""
    guarded.outside("mkdir other; echo kept > other/new.md; ln -sfn other/new.md CLAUDE.md")
    done = guarded.inside("echo evil > other/new.md; rm CLAUDE.md; mv other o; echo evil > CLAUDE.md")
    assert (guarded.root / "other" / "new.md").read_text() == "kept\n", done
    assert os.readlink(guarded.root / "CLAUDE.md") == "other/new.md"


def test_a_link_on_the_way_to_a_protected_folder_stays(guarded: Guarded) -> None:
    """`docs` may be a link: who replaces it would bring another `docs/constraints`."""
    guarded.outside("mv docs documentation && ln -s documentation docs", check=True)
    guarded.inside("rm docs; mkdir -p docs/constraints; echo evil > docs/constraints/c.md; mv documentation d")
    assert os.readlink(guarded.root / "docs") == "documentation"
    assert "evil" not in (guarded.root / "documentation" / "constraints" / "c.md").read_text()


def test_no_descriptor_of_ours_is_left_open_for_the_command(guarded: Guarded) -> None:
    """One that was opened before the mounts would lead around them."""
    left = guarded.inside("ls /proc/self/fd").stdout.split()
    assert left == guarded.outside("ls /proc/self/fd").stdout.split()


def test_the_command_has_no_capability_that_could_undo_the_mounts(guarded: Guarded) -> None:
    """An ordinary user has none in any set; root lacks those that mount, trace, or open by handle."""
    done = guarded.inside("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    found = {key: int(value, 16) for key, value in (line.split(":") for line in done.stdout.splitlines())}
    if guarded.user:
        assert found.pop("NoNewPrivs") == 1
        assert set(found.values()) == {0}
    else:
        lost = sum(1 << number for number in (2, 16, 17, 19, 21, 27))
        assert all(value & lost == 0 for key, value in found.items() if key.startswith("Cap"))


def test_the_folder_that_a_command_starts_in_is_read_only_if_it_is_protected(guarded: Guarded) -> None:
    """A current folder from before the mounts would still be writable."""
    done = guarded.inside("echo evil > new.md; pwd", cwd=guarded.root / "specs")
    assert done.stdout.strip() == str(guarded.root / "specs")
    assert not (guarded.root / "specs" / "new.md").exists()


def test_a_file_system_below_a_protected_folder_is_read_only_too(guarded: Guarded) -> None:
    """Root in a namespace of its own mounts one there; a bind of the folder alone would leave it writable."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing")
    kind = "-m" if not guarded.user else "-Urm"
    words = guarded.words("sh", "-c", "echo evil > specs/deep/new.md; echo ran")[len(as_user(guarded.user)) :]
    script = shlex.join(words)
    done = guarded.run(
        [
            *as_user(guarded.user),
            "unshare",
            kind,
            "sh",
            "-c",
            f"mount -t tmpfs none specs/deep && {script}; ls specs/deep",
        ]
    )
    assert done.stdout.split() == ["ran"], done
