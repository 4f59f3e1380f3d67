"""The backstop behind the guard: real files, real damage, real processes that race and that are killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire.guard import manifest as manifest_module
from fusewire.guard import vault as vault_module
from fusewire.guard.baseline import unpack
from fusewire.guard.calls import folder_of
from fusewire.guard.integrity import Integrity, IntegrityFinding, RestoredFile
from fusewire.guard.vault import settled, signature
from tests.helpers.program import UNPRIVILEGED

NOW = 1_000_000.0


def walk(folder: str) -> Iterator[str]:
    """Every file and link below a folder, but nothing of Fusewire's own."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != ".fusewire":
                yield from walk(entry.path)
        elif ".fusewire-aside-" not in entry.path:
            yield entry.path


def guarded(root: Path) -> Integrity:
    return Integrity(str(root), lambda: walk(str(root)))


def age(root: Path) -> None:
    """Let the tick pass in which the files were written: until then a snapshot does not trust their times."""
    newest = max((os.lstat(path).st_ctime_ns for path in walk(str(root))), default=0)
    while time.time_ns() < newest + 60_000_000:
        time.sleep(0.005)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "rules.md").write_bytes(b"# rules\r\n\x00\xff\n")
    (root / "docs" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (root / "docs" / "deep" / "run.sh").chmod(0o750)
    (root / "docs" / "link").symlink_to("deep/run.sh")
    (root / "docs" / "dangling").symlink_to("/no/such/place")
    (root / "empty").touch()
    return root


def state(root: Path) -> dict[str, Any]:
    """Every file and link below a folder: its type and mode, and its content or target."""
    found: dict[str, Any] = {}
    for path in walk(str(root)):
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            found[os.path.relpath(path, root)] = (mode, os.readlink(path))
        elif stat.S_ISREG(mode):
            found[os.path.relpath(path, root)] = (mode, Path(path).read_bytes())
    return found


def kinds(integrity: Integrity) -> dict[str, str]:
    return {finding.path: finding.kind for finding in integrity.verify()}


def store(root: Path) -> Path:
    """Where the guard keeps what it knows of a project."""
    return Path(folder_of(str(root)))


def blobs(root: Path) -> list[Path]:
    return sorted(path for path in (store(root) / "blobs").glob("??/*"))


def bytes_kept(root: Path) -> int:
    return sum(path.stat().st_size for path in blobs(root))


def manifest(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = unpack((store(root) / "manifest.bin").read_bytes())
    return loaded


# -- snapshot and verify ----------------------------------------------------------------------------------


def test_a_snapshot_counts_what_it_recorded_and_nothing_has_changed_since(root: Path) -> None:
    """Files, bytes, all of them changed at first; the second one finds nothing to do."""
    guard = guarded(root)
    assert not guard.exists()
    assert guard.verify() == []
    first = guard.snapshot(NOW)
    assert first.files == 5
    assert first.bytes == sum(os.lstat(path).st_size for path in walk(str(root)))
    assert first.changed == ["docs/dangling", "docs/deep/run.sh", "docs/link", "empty", "rules.md"]
    assert first.skipped == []
    assert guard.exists()
    assert guard.verify() == []
    assert guard.snapshot(NOW + 1).changed == []
    assert (root / ".fusewire/.gitignore").read_text() == "*\n"
    assert not (root / ".fusewire/guard").exists()
    assert stat.S_IMODE(store(root).stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o400 for path in blobs(root))


def test_every_kind_of_damage_is_told_apart(root: Path) -> None:
    """Missing, emptied, changed, of another mode, of another type, new."""
    for name in ("emptied", "changed", "same-size", "longer", "mode", "linked", "folder", "both"):
        (root / name).write_text(f"content of {name}")
        (root / name).chmod(0o644)
    guard = guarded(root)
    guard.snapshot(NOW)
    (root / "rules.md").unlink()
    (root / "emptied").write_text("")
    (root / "changed").write_text("x")
    (root / "same-size").write_text("CONTENT of same-size")
    (root / "longer").write_text("content of longer and more")
    (root / "mode").chmod(0o755)
    (root / "linked").unlink()
    (root / "linked").symlink_to("changed")
    (root / "folder").unlink()
    (root / "folder").mkdir()
    (root / "both").write_text("other")
    (root / "both").chmod(0o600)
    (root / "docs/link").unlink()
    (root / "docs/link").symlink_to("../empty")
    (root / "docs/dangling").unlink()
    (root / "docs/dangling").write_text("a file now")
    (root / "new").write_text("new")
    assert kinds(guard) == {
        "rules.md": "missing",
        "emptied": "emptied",
        "changed": "changed",
        "same-size": "changed",
        "longer": "changed",
        "mode": "mode",
        "linked": "type",
        "folder": "type",
        "both": "changed",
        "docs/link": "changed",
        "docs/dangling": "type",
        "new": "new",
    }
    assert [finding.path for finding in guard.verify()] == sorted(kinds(guard))
    assert IntegrityFinding("missing", "rules.md") in guard.verify()


def test_an_empty_file_that_stays_empty_is_not_emptied(root: Path) -> None:
    """Written anew without content, it is what it was."""
    guard = guarded(root)
    guard.snapshot(NOW)
    (root / "empty").unlink()
    (root / "empty").touch()
    assert guard.verify() == []


def test_a_forged_time_hides_nothing(root: Path) -> None:
    """The same size, the same inode and the old modification time: the change time still tells."""
    age(root)
    guard = guarded(root)
    guard.snapshot(NOW)
    before = os.stat(root / "rules.md")
    with open(root / "rules.md", "r+b") as file:
        file.write(b"# RULES")
    os.utime(root / "rules.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(root / "rules.md").st_mtime_ns == before.st_mtime_ns
    assert kinds(guard) == {"rules.md": "changed"}


def test_times_are_trusted_only_once_their_tick_is_over(root: Path) -> None:
    """A change in the same tick would have the same times, so a file just written is recorded as one to be read."""
    found = os.lstat(root / "rules.md")
    assert settled(found, found.st_ctime_ns + 10_000_000) != signature(found)
    assert settled(found, found.st_ctime_ns + 100_000_000) == signature(found)
    guard = guarded(root)
    for number in range(20):
        (root / "rules.md").write_text(f"even {number:03}")
        guard.snapshot(NOW, only=[str(root / "rules.md")])
        with open(root / "rules.md", "r+b") as file:
            file.write(b"odd!")
        assert kinds(guard)["rules.md"] == "changed"


def opened_by(root: Path, work: str) -> list[str]:
    """Do some work in a fresh process; every file of the project that it opened."""
    script = f"""
import sys, os
from fusewire.guard.integrity import Integrity
import hashlib
root = {str(root)!r}
def walk(folder):
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != ".fusewire":
                yield from walk(entry.path)
        else:
            yield entry.path
guard = Integrity(root, lambda: walk(root))
opened = []
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        opened.append(arguments[0])
sys.addaudithook(hook)
{work}
sys.stdout.write("\\0".join(opened))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [os.path.relpath(path, root) for path in done.stdout.split("\0") if path]


def test_nothing_but_the_manifest_is_opened_when_nothing_has_changed(tmp_path: Path) -> None:
    """10,000 files are verified by `lstat` alone."""
    root = tmp_path / "project"
    for folder in range(100):
        (root / str(folder)).mkdir(parents=True)
        for number in range(100):
            (root / str(folder) / str(number)).write_text("same")
    age(root)
    assert guarded(root).snapshot(NOW).files == 10_000
    assert len(blobs(root)) == 1
    opened = opened_by(root, "assert guard.verify() == []")
    assert [os.path.basename(path) for path in opened] == ["manifest.bin", "."]


def test_a_moved_stat_with_the_same_content_is_no_finding_and_is_read_once(root: Path) -> None:
    """`git checkout` writes the same content again; the next snapshot knows that it has read it."""
    age(root)
    guarded(root).snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    (root / "rules.md").unlink()
    (root / "rules.md").write_bytes(content)
    age(root)
    assert any(path.endswith("rules.md") for path in opened_by(root, "assert guard.snapshot(1.0).changed == []"))
    again = opened_by(root, "assert guard.snapshot(1.0).changed == [] and guard.verify() == []")
    assert not any(path.endswith("rules.md") for path in again)


def test_names_that_are_not_utf8_survive(tmp_path: Path) -> None:
    """Bytes, quotes, line breaks and astral characters in names and in targets of links."""
    root = tmp_path / "project"
    root.mkdir()
    names = [
        b"caf\xe9",
        b"\xff\xfe",
        "\U0001f600\udc80".encode("utf-8", "surrogateescape"),
        b'a"b\\c\nd',
        b"\xed\xa0\x80",
    ]
    for number, name in enumerate(names):
        (root / os.fsdecode(name)).write_text(str(number))
        (root / f"link-{number}").symlink_to(os.fsdecode(name))
    before = state(root)
    guard = guarded(root)
    assert guard.snapshot(NOW).files == 10
    assert guard.verify() == []
    for path in list(walk(str(root))):
        os.unlink(path)
    assert set(kinds(guard).values()) == {"missing"}
    assert all(result.problem is None for result in guard.restore(NOW))
    assert state(root) == before


def test_only_the_named_files_are_recorded_anew(root: Path) -> None:
    """After a permitted edit: the edit counts, what else was changed in the meantime does not."""
    guard = guarded(root)
    guard.snapshot(NOW)
    (root / "rules.md").write_text("permitted")
    (root / "empty").write_text("not permitted")
    done = guard.snapshot(NOW + 1, only=[str(root / "rules.md")])
    assert (done.changed, done.files) == (["rules.md"], 5)
    assert kinds(guard) == {"empty": "changed"}


def test_a_named_file_that_is_gone_is_dropped_and_its_version_is_kept(root: Path) -> None:
    """A permitted removal, of a file or of a whole folder, is no finding; the content can still be had."""
    guard = guarded(root)
    guard.snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    (root / "rules.md").unlink()
    shutil.rmtree(root / "docs")
    done = guard.snapshot(NOW + 1, only=[str(root / "rules.md"), str(root / "docs")])
    assert done.changed == ["docs/dangling", "docs/deep/run.sh", "docs/link", "rules.md"]
    assert guard.verify() == []
    (version,) = guard.versions("rules.md")
    assert (version.when, version.size, version.how) == (NOW, len(content), "snapshot")
    assert Path(guard.blob(version.digest)).read_bytes() == content
    (result,) = guard.restore(NOW, ["rules.md"])
    assert result.problem is not None
    assert f"the newest is {store(root)}/blobs/" in result.problem


def test_pipes_and_sockets_and_our_own_files_are_no_protected_files(root: Path) -> None:
    """Whatever the list says: a pipe would hang the reader, and a snapshot of itself would never be done."""
    os.mkfifo(root / "pipe")
    guard = Integrity(str(root), lambda: [*walk(str(root)), str(store(root) / "manifest.bin")])
    assert guard.snapshot(NOW).files == 5
    assert guard.snapshot(NOW).files == 5
    assert guard.verify() == []
    (root / "rules.md").unlink()
    os.mkfifo(root / "rules.md")
    assert kinds(guard) == {"rules.md": "type"}


def test_files_outside_the_project_are_named_by_their_absolute_path(root: Path, tmp_path: Path) -> None:
    """A person's own configuration may be protected too."""
    outside = tmp_path / "home" / "deep" / "config"
    outside.parent.mkdir(parents=True)
    outside.write_text("mine")
    guard = Integrity(str(root), lambda: [*walk(str(root)), *([str(outside)] if outside.exists() else [])])
    guard.snapshot(NOW)
    shutil.rmtree(tmp_path / "home")
    assert guard.verify() == [IntegrityFinding("missing", str(outside))]
    assert guard.restore(NOW) == [RestoredFile(str(outside))]
    assert outside.read_text() == "mine"


def test_a_moved_project_takes_its_snapshot_along(root: Path) -> None:
    """Names inside the project are relative."""
    guarded(root).snapshot(NOW)
    moved = root.with_name("moved")
    root.rename(moved)
    (moved / "rules.md").unlink()
    assert guarded(moved).restore(NOW) == [RestoredFile("rules.md")]
    assert guarded(moved).verify() == []


UNREADABLE = """
import os, sys
from fusewire.guard.integrity import IntegrityFinding, Integrity
root = sys.argv[1]
guard = Integrity(root, lambda: [root + "/closed", root + "/open"])
done = guard.snapshot(1.0)
assert (done.files, done.skipped) == (2, [("closed", "permission denied")]), done
assert guard.verify() == []
os.unlink(root + "/closed")
assert guard.verify() == [IntegrityFinding("missing", "closed")]
(result,) = guard.restore(2.0)
assert result.problem == "it could not be read when the snapshot was taken", result
os.chmod(root + "/open", 0)
assert guard.verify() == [IntegrityFinding("missing", "closed"), IntegrityFinding("mode", "open")]
assert guard.snapshot(3.0, only=[root + "/open"]).skipped == [("open", "permission denied")]
assert [result.problem for result in guard.restore(4.0, ["open"])] == [None]
os.unlink(root + "/open")
os.chmod(root, 0o555)
assert [result.problem for result in guard.restore(5.0, ["open"])] == ["permission denied"]
os.chmod(root, 0o755)
assert [result.problem for result in guard.restore(6.0, ["open"])] == [None]
assert open(root + "/open").read() == "open"
"""


def test_what_may_not_be_read_or_written_is_said(tmp_path: Path) -> None:
    """Permission denied is a reason, no crash, and does not keep the others from being recorded and restored."""
    root = tmp_path / "unreadable"
    root.mkdir()
    (root / "open").write_text("open")
    (root / "closed").write_text("closed")
    (root / "closed").chmod(0)
    words = [*UNPRIVILEGED, sys.executable, "-c", UNREADABLE, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- restore ----------------------------------------------------------------------------------------------


def test_everything_comes_back_as_it_was(root: Path) -> None:
    """Bytes, modes, links, and the folders with their modes."""
    (root / "docs/deep").chmod(0o710)
    before = state(root)
    guard = guarded(root)
    guard.snapshot(NOW)
    shutil.rmtree(root / "docs")
    (root / "rules.md").write_text("")
    (root / "empty").write_text("full")
    (root / "empty").chmod(0o777)
    (root / "new").write_text("is left alone")
    results = guard.restore(NOW + 1)
    assert [(result.path, result.problem) for result in results] == [(path, None) for path in sorted(before)]
    assert (root / "new").read_text() == "is left alone"
    (root / "new").unlink()
    assert state(root) == before
    assert stat.S_IMODE((root / "docs/deep").stat().st_mode) == 0o710
    assert guard.verify() == []
    assert guard.restore(NOW + 2) == []


def test_the_newer_version_is_kept_and_can_be_found_again(root: Path) -> None:
    """Whatever a restore replaces is in the vault, and listed."""
    guard = guarded(root)
    guard.snapshot(NOW)
    (root / "rules.md").write_text("a person's later thought")
    (root / "docs/link").unlink()
    (root / "docs/link").symlink_to("elsewhere")
    results = {result.path: result for result in guard.restore(NOW + 5)}
    kept = results["rules.md"].kept
    assert kept is not None
    assert (root / kept).read_text() == "a person's later thought"
    assert [(version.when, version.how) for version in guard.versions("rules.md")] == [
        (NOW + 5, "replaced"),
        (NOW, "snapshot"),
    ]
    assert (root / kept) == Path(guard.blob(guard.versions("rules.md")[0].digest))
    assert Path(guard.blob(guard.versions("docs/link")[0].digest)).read_bytes() == b"elsewhere"
    (root / "empty").write_text("something else changes, and the blobs are swept")
    guard.snapshot(NOW + 6)
    assert (root / kept).read_text() == "a person's later thought"


def test_only_what_is_named_is_restored(root: Path) -> None:
    """A file, a folder, relative or absolute; what the snapshot does not know is said."""
    guard = guarded(root)
    guard.snapshot(NOW)
    shutil.rmtree(root / "docs")
    (root / "rules.md").unlink()
    (root / "empty").unlink()
    assert [result.path for result in guard.restore(NOW, ["docs"])] == [
        "docs/dangling",
        "docs/deep/run.sh",
        "docs/link",
    ]
    assert [result.path for result in guard.restore(NOW, [str(root / "rules.md")])] == ["rules.md"]
    assert guard.restore(NOW, ["nothing"]) == [RestoredFile("nothing", None, "the snapshot has no such file")]
    assert kinds(guard) == {"empty": "missing"}
    assert guard.restore(NOW, ["."]) == [RestoredFile("empty")]


def test_a_changed_mode_is_set_back_without_touching_the_content(root: Path) -> None:
    """Nothing is replaced, so nothing is kept; the inode stays."""
    guard = guarded(root)
    guard.snapshot(NOW)
    inode = (root / "docs/deep/run.sh").stat().st_ino
    (root / "docs/deep/run.sh").chmod(0o444)
    assert guard.restore(NOW) == [RestoredFile("docs/deep/run.sh")]
    found = (root / "docs/deep/run.sh").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_ino) == (0o750, inode)
    assert guard.verify() == []


def test_a_folder_in_the_place_of_a_file_is_moved_aside(root: Path) -> None:
    """With all that is in it; the second one gets another name."""
    guard = guarded(root)
    guard.snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    for number in (1, 2):
        (root / "rules.md").unlink()
        (root / "rules.md").mkdir()
        (root / "rules.md" / "inside").write_text(str(number))
        assert guard.restore(NOW) == [RestoredFile("rules.md", f"rules.md.fusewire-aside-{number}")]
        assert (root / "rules.md").read_bytes() == content
        assert (root / f"rules.md.fusewire-aside-{number}" / "inside").read_text() == str(number)


def test_a_file_in_the_place_of_a_folder_is_moved_aside(root: Path) -> None:
    """The folder is made again above it."""
    before = state(root)
    guard = guarded(root)
    guard.snapshot(NOW)
    shutil.rmtree(root / "docs")
    (root / "docs").write_text("a file")
    results = guard.restore(NOW)
    assert [result.kept for result in results] == ["docs.fusewire-aside-1", None, None]
    assert state(root) == before
    assert (root / "docs.fusewire-aside-1").read_text() == "a file"


def test_nothing_is_written_through_a_link(root: Path, tmp_path: Path) -> None:
    """A folder that became a link is a finding for each of its files, even if they look the same over there."""
    guard = guarded(root)
    guard.snapshot(NOW)
    elsewhere = tmp_path / "elsewhere"
    (root / "docs").rename(elsewhere)
    (root / "docs").symlink_to(elsewhere)
    guard = Integrity(str(root), lambda: [str(root / "rules.md")])
    assert set(kinds(guard)) == {"docs/dangling", "docs/deep/run.sh", "docs/link"}
    assert set(kinds(guard).values()) == {"type"}
    (elsewhere / "deep/run.sh").write_text("over there")
    before = state(elsewhere)
    for result in guard.restore(NOW):
        assert result.problem == f"docs is now a link to {elsewhere}; nothing is written through it"
    assert state(elsewhere) == before
    (root / "docs").unlink()
    assert all(result.problem is None for result in guard.restore(NOW))
    assert (root / "docs/deep/run.sh").read_text() == "#!/bin/sh\n"


def test_a_link_that_led_there_at_the_snapshot_may_be_followed(root: Path, tmp_path: Path) -> None:
    """A shared folder that the project links to is the project's own choice."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "policy").write_text("shared")
    (root / "shared").symlink_to(shared)
    guard = Integrity(str(root), lambda: [str(root / "shared/policy")])
    guard.snapshot(NOW)
    assert guard.verify() == []
    (shared / "policy").unlink()
    assert guard.restore(NOW) == [RestoredFile("shared/policy")]
    assert (shared / "policy").read_text() == "shared"
    (root / "shared").unlink()
    (result,) = guard.restore(NOW)
    assert result.problem == f"shared was a link to {shared} and is gone"


def test_a_link_in_the_place_of_a_file_is_replaced_and_its_target_left_alone(root: Path, tmp_path: Path) -> None:
    """The link is kept as a version; where it leads nothing is written."""
    victim = tmp_path / "victim"
    victim.write_text("do not touch")
    guard = guarded(root)
    guard.snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    (root / "rules.md").unlink()
    (root / "rules.md").symlink_to(victim)
    (result,) = guard.restore(NOW)
    assert result.kept is not None
    assert (root / result.kept).read_bytes() == os.fsencode(victim)
    assert not (root / "rules.md").is_symlink()
    assert (root / "rules.md").read_bytes() == content
    assert victim.read_text() == "do not touch"


def test_a_damaged_content_is_never_restored(root: Path) -> None:
    """Neither one that does not match its digest nor one that is gone; what is in the place stays."""
    guard = guarded(root)
    guard.snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    blob = Path(guard.blob(guard.versions("rules.md")[0].digest))
    (root / "rules.md").write_text("other")
    blob.chmod(0o644)
    blob.write_bytes(content[::-1])
    problem = "its kept content is missing or damaged; nothing was written"
    assert guard.restore(NOW) == [RestoredFile("rules.md", None, problem)]
    blob.unlink()
    assert guard.restore(NOW) == [RestoredFile("rules.md", None, problem)]
    assert (root / "rules.md").read_text() == "other"
    (root / "rules.md").write_bytes(content)
    guard.snapshot(NOW)
    (root / "rules.md").unlink()
    assert guard.restore(NOW) == [RestoredFile("rules.md")]
    assert (root / "rules.md").read_bytes() == content


# -- bounds -----------------------------------------------------------------------------------------------


def test_the_same_content_is_kept_once(root: Path) -> None:
    """Ten copies, one blob."""
    for number in range(10):
        (root / f"copy-{number}").write_text("the same")
    guard = guarded(root)
    guard.snapshot(NOW)
    assert len({version.digest for n in range(10) for version in guard.versions(f"copy-{n}")}) == 1
    assert len(blobs(root)) == 6  # rules.md, run.sh, the two links, empty, and the ten


def test_a_file_beyond_the_limit_is_recorded_but_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is verified by its digest like any other; a restore says why it cannot bring it back."""
    monkeypatch.setattr(vault_module, "FILE_LIMIT", 1000)
    (root / "large").write_bytes(b"x" * 1001)
    guard = guarded(root)
    for _ in range(2):
        ((path, reason),) = guard.snapshot(NOW).skipped
        assert (path, reason) == ("large", "its 1001 bytes are not kept: the limit for one file is 1000")
        age(root)
    assert max(path.stat().st_size for path in blobs(root)) < 1000
    assert guard.verify() == []
    (root / "large").write_bytes(b"y" * 1001)
    assert kinds(guard) == {"large": "changed"}
    (result,) = guard.restore(NOW)
    assert result.problem == reason
    assert guard.versions("large") == []


def test_a_large_file_that_is_replaced_is_moved_aside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the vault has no room for is not overwritten either."""
    guard = guarded(root)
    guard.snapshot(NOW)
    monkeypatch.setattr(vault_module, "FILE_LIMIT", 1000)
    (root / "rules.md").write_bytes(b"x" * 1001)
    assert guard.restore(NOW) == [RestoredFile("rules.md", "rules.md.fusewire-aside-1")]
    assert (root / "rules.md.fusewire-aside-1").read_bytes() == b"x" * 1001


def test_the_oldest_versions_go_first_when_the_room_is_used_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current contents stay in any case."""
    monkeypatch.setattr(vault_module, "TOTAL_LIMIT", 3500)
    for path in list(walk(str(root))):
        os.unlink(path)
    guard = guarded(root)
    for number in range(5):
        (root / "a").write_bytes(bytes([number]) * 1000)
        guard.snapshot(NOW + number)
        assert bytes_kept(root) <= 3500
    assert [version.when - NOW for version in guard.versions("a")] == [4, 3, 2]
    (root / "b").write_bytes(b"b" * 1000)
    guard.snapshot(NOW + 9)
    assert [version.when - NOW for version in guard.versions("a")] == [4, 3]
    for name in "cd":
        (root / name).write_bytes(name.encode() * 1000)
    done = guard.snapshot(NOW + 10)
    assert done.skipped == [("d", "its 1000 bytes are not kept: all files together may have 3500")]
    assert bytes_kept(root) <= 3500
    assert [version.when - NOW for version in guard.versions("a")] == [4]
    (root / "a").unlink()
    assert guard.restore(NOW) == [RestoredFile("a")]
    (root / "c").unlink()
    assert guard.snapshot(NOW + 11).skipped == []  # there is room again


def test_a_file_has_five_versions_at_most_and_what_nobody_needs_is_swept(root: Path) -> None:
    """The current one, and the four before it."""
    guard = guarded(root)
    for number in range(9):
        (root / "rules.md").write_text(f"version {number}")
        guard.snapshot(NOW + number)
    assert [version.when - NOW for version in guard.versions("rules.md")] == [8, 7, 6, 5, 4]
    assert len(blobs(root)) == 4 + 5
    for number in range(9):
        (root / "rules.md").write_text(f"damage {number}")
        guard.restore(NOW + 10 + number)
    assert (root / "rules.md").read_text() == "version 8"
    versions = guard.versions("rules.md")
    assert [version.when - NOW for version in versions] == [18, 17, 16, 15, 8]
    assert [version.how for version in versions] == ["replaced"] * 4 + ["snapshot"]
    assert len(blobs(root)) == 4 + 5


def test_a_file_that_goes_back_and_forth_has_two_versions(root: Path) -> None:
    """The same content is listed once, at its latest time."""
    guard = guarded(root)
    for number in range(6):
        (root / "rules.md").write_text(f"version {number % 2}")
        guard.snapshot(NOW + number)
    assert [version.when - NOW for version in guard.versions("rules.md")] == [5, 4]


def test_the_history_does_not_grow_with_files_that_come_and_go(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are bounded too, not only bytes."""
    monkeypatch.setattr(manifest_module, "HISTORY_ROWS", 10)
    guard = guarded(root)
    for number in range(15):
        (root / f"passing-{number}").write_text("x")
        guard.snapshot(NOW + number)
        (root / f"passing-{number}").unlink()
    guard.snapshot(NOW + 20)
    assert sorted(manifest(root)["history"]) == sorted(f"passing-{number}" for number in range(5, 15))


def test_a_clock_that_went_back_loses_no_replaced_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a restore has just kept is dropped last, whatever the time says."""
    monkeypatch.setattr(vault_module, "TOTAL_LIMIT", 3500)
    guard = guarded(root)
    for number in range(3):
        (root / "rules.md").write_bytes(bytes([number]) * 1000)
        guard.snapshot(NOW + number)
    (root / "rules.md").write_bytes(b"n" * 1000)
    (result,) = guard.restore(5.0)
    assert result.kept is not None
    assert (root / result.kept).read_bytes() == b"n" * 1000
    assert 5.0 in [version.when for version in guard.versions("rules.md")]


# -- damage to the store ----------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"fusewire guard 2\n", "cut", "flipped", "longer"])
def test_a_damaged_manifest_is_set_aside(root: Path, damage: bytes | str) -> None:
    """It counts as no snapshot, is said, and stays to be looked at; nothing is raised."""
    guard = guarded(root)
    guard.snapshot(NOW)
    path = store(root) / "manifest.bin"
    good = path.read_bytes()
    changes = {"cut": good[:-1], "flipped": good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], "longer": good + b"x"}
    damage = changes[damage] if isinstance(damage, str) else damage
    path.write_bytes(damage)
    assert guard.verify() == []
    assert guard.problem is not None
    assert "manifest.bin.corrupt-1" in guard.problem
    assert not guard.exists()
    assert guard.restore(NOW, ["rules.md"]) == [RestoredFile("rules.md", None, "no snapshot was taken")]
    assert path.with_name("manifest.bin.corrupt-1").read_bytes() == damage
    path.write_bytes(damage)
    assert guard.snapshot(NOW).files == 5
    assert path.with_name("manifest.bin.corrupt-2").read_bytes() == damage
    assert guard.verify() == []


@pytest.mark.parametrize("thing", ["folder", "pipe"])
def test_something_else_in_the_place_of_the_manifest_hangs_nobody(root: Path, thing: str) -> None:
    """A pipe would wait for a writer for ever."""
    guard = guarded(root)
    guard.snapshot(NOW)
    path = store(root) / "manifest.bin"
    path.unlink()
    path.mkdir() if thing == "folder" else os.mkfifo(path)
    assert guard.verify() == []
    assert guard.problem is not None
    assert guard.snapshot(NOW).files == 5


def test_contents_that_a_damaged_manifest_spoke_of_stay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be all that is left of a file; they go only when their room is needed."""
    guard = guarded(root)
    guard.snapshot(NOW)
    content = (root / "rules.md").read_bytes()
    blob = Path(guard.blob(guard.versions("rules.md")[0].digest))
    (store(root) / "manifest.bin").write_text("damaged")
    (root / "rules.md").write_text("destroyed")
    guard.snapshot(NOW)
    assert blob.read_bytes() == content
    monkeypatch.setattr(vault_module, "TOTAL_LIMIT", 60)
    (root / "rules.md").write_text("destroyed again")
    guard.snapshot(NOW)
    assert not blob.exists()


# -- many at once, and killed -----------------------------------------------------------------------------

WORK = """
import os, sys
from fusewire.guard.integrity import Integrity
root, first = sys.argv[1], sys.argv[2]
names = [f"{root}/{first}-{n}" for n in range(20)]
def listed():
    return [entry.path for entry in os.scandir(root) if entry.is_file(follow_symlinks=False)]
guard = Integrity(root, listed)
print("ready", flush=True)
sys.stdin.readline()
"""


def start(root: Path, name: str, work: str) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK + work, str(root), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def let_go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()


def test_eight_processes_snapshot_at_once(tmp_path: Path) -> None:
    """Each records its own files only; in the end the manifest has all of them, and every content."""
    root = tmp_path / "project"
    root.mkdir()
    work = """
for number in range(5):
    for name in names:
        with open(name, "w") as file:
            file.write(f"{name} {number}")
    guard.snapshot(float(number), only=names)
    guard.verify()
"""
    workers = [start(root, str(number), work) for number in range(8)]
    for worker in workers:
        let_go(worker)
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    guard = guarded(root)
    assert guard.verify() == []
    assert len(manifest(root)["files"]) == 160
    assert guard.problem is None
    before = state(root)
    for path in list(walk(str(root))):
        os.unlink(path)
    assert all(result.problem is None for result in guard.restore(NOW))
    assert state(root) == before
    assert not [name for name in os.listdir(store(root)) if "corrupt" in name or ".tmp-" in name]


KILLED = {
    "snapshot": """
number = 0
while True:
    number += 1
    for name in names:
        with open(name, "w") as file:
            file.write(f"{number} " * 2000)
    guard.snapshot(float(number))
""",
    "restore": """
guard.snapshot(0.0)
number = 0
while True:
    number += 1
    for name in names:
        with open(name + ".part", "w") as file:
            file.write(f"{number} " * 2000)
        os.replace(name + ".part", name)
    guard.restore(float(number))
""",
}


@pytest.mark.parametrize("work", ["snapshot", "restore"])
def test_a_killed_process_leaves_a_readable_state(tmp_path: Path, work: str) -> None:
    """Whenever it dies: the manifest can be read, what it speaks of is in the vault, and the next one goes on."""
    root = tmp_path / "project"
    root.mkdir()
    chance = random.Random(7)
    for number in range(20):
        (root / f"0-{number}").write_text("at first")
    guard = guarded(root)
    guard.snapshot(NOW)
    for _ in range(15):
        worker = start(root, "0", KILLED[work])
        let_go(worker)
        time.sleep(chance.uniform(0.0, 0.15))  # no clock to move by hand: the moment of death is the point
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        assert guard.exists(), guard.problem
        for name in manifest(root)["files"]:
            for version in guard.versions(name):
                assert Path(guard.blob(version.digest)).exists()
        assert not [result for result in guard.restore(NOW) if result.problem]
        assert set(kinds(guard).values()) <= {"new"}
    guard.snapshot(NOW)
    assert guard.problem is None
    assert sorted(os.listdir(store(root))) == ["blobs", "lock", "manifest.bin", "root"]


def test_what_is_replaced_is_on_file_before_it_is_replaced(root: Path) -> None:
    """Killed between two files of one restore: the version that the first one had can still be found."""
    guard = guarded(root)
    guard.snapshot(NOW)
    (root / "empty").write_text("the later version")
    (root / "rules.md").write_text("another")
    work = """
def hook(event, arguments):
    if event == "os.link" and arguments[1] == "rules.md":
        os.kill(os.getpid(), 9)
sys.addaudithook(hook)
guard.restore(5.0)
"""
    worker = start(root, "0", work)
    let_go(worker)
    worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL
    assert (root / "empty").read_text() == ""
    assert (root / "rules.md.fusewire-aside-1").read_text() == "another"
    (kept,) = [version for version in guard.versions("empty") if version.how == "replaced"]
    assert Path(guard.blob(kept.digest)).read_text() == "the later version"
    assert [result.path for result in guard.restore(NOW)] == ["rules.md"]


# -- any tree, any damage ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/a", "f/g/h/a", "f/b"])
CONTENTS = st.binary(max_size=40)
THINGS = st.one_of(
    st.tuples(st.just("file"), CONTENTS, st.sampled_from([0o644, 0o600, 0o755, 0o444])),
    st.tuples(st.just("link"), st.sampled_from(["a", "../b", "/nowhere"]), st.just(0)),
)
DAMAGE = st.one_of(
    THINGS,
    st.tuples(st.sampled_from(["remove", "empty", "folder", "pipe", "rmtree", "blocked"]), st.just(b""), st.just(0)),
    st.tuples(st.just("mode"), st.just(b""), st.sampled_from([0o777, 0o640])),
)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def put(root: Path, name: str, thing: tuple[str, Any, int]) -> None:
    """Make or damage one path; what cannot be done where it is is left."""
    kind, content, mode = thing
    path = root / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "mode":
            if path.is_file() and not path.is_symlink():
                path.chmod(mode)
            return
        if kind in ("rmtree", "blocked"):
            remove(root / name.split("/")[0])
            if kind == "blocked":
                (root / name.split("/")[0]).write_text("in the way")
            return
        remove(path)
        if kind == "file":
            path.write_bytes(content)
            path.chmod(mode)
        elif kind == "link":
            path.symlink_to(content)
        elif kind == "empty":
            path.touch()
        elif kind == "folder":
            (path / "inside").mkdir(parents=True)
        elif kind == "pipe":
            os.mkfifo(path)
    except (FileExistsError, NotADirectoryError):
        return


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    tree=st.dictionaries(NAMES, THINGS, min_size=1),
    damage=st.lists(st.tuples(NAMES, DAMAGE), max_size=10),
    twice=st.booleans(),
)
def test_any_tree_comes_back_after_any_damage(
    tree: dict[str, tuple[str, Any, int]], damage: list[tuple[str, tuple[str, Any, int]]], twice: bool
) -> None:
    """All protected files are what they were, and what was there instead is still somewhere."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, thing in tree.items():
            put(root, name, thing)
        before = state(root)
        guard = guarded(root)
        guard.snapshot(NOW)
        if twice:
            guard.snapshot(NOW + 1)
        for name, thing in damage:
            put(root, name, thing)
        found = kinds(guard)
        present = {
            name: content
            for name, (mode, content) in state(root).items()
            if name in before and (mode, content) != before[name] and stat.S_ISREG(mode)
        }
        results = guard.restore(NOW + 2)
        assert not [result for result in results if result.problem]
        assert {result.path for result in results} == {name for name, kind in found.items() if kind != "new"}
        after = state(root)
        assert {name: after.get(name) for name in before} == before
        assert set(kinds(guard).values()) <= {"new"}
        for name, content in present.items():
            versions = [Path(guard.blob(version.digest)).read_bytes() for version in guard.versions(name)]
            assert content in versions
