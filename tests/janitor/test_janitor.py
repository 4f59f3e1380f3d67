"""The memory janitor: rotation, pruning, truncation, the folder's limit, and all that it must not touch."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire
from fusewire.janitor.janitor import Janitor, at_session_start
from fusewire.janitor.ledgers import merge_summary
from fusewire.janitor.limits import Limits, first_time
from fusewire.janitor.names import parse_rotation, rotation_name, session_of
from fusewire.janitor.report import Cleanup, space
from fusewire.util.errors import FusewireError
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

NOW = 1_794_000_000.0
DAY = 86400.0
KB = 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "memory").mkdir(parents=True)
    return tmp_path


def memory(root: Path) -> Path:
    return root / ".claude" / "memory"


def janitor(root: Path, active: tuple[str, ...] = (), **limits: Any) -> Janitor:
    return Janitor(str(root), Limits(**limits), active=active)


def put(root: Path, name: str, content: str | bytes, age: float = 0.0) -> Path:
    path = memory(root) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (NOW - age, NOW - age))
    return path


def telemetry(lines: int, start: int = 0) -> str:
    return "".join(f'{{"n": {number}}}\n' for number in range(start, start + lines))


def session(root: Path, name: str, age: float = 0.0, **state: Any) -> Path:
    return put(root, f"session_{name}_state.json", json.dumps({"id": name, **state}), age)


def names(root: Path) -> list[str]:
    return sorted(path.name for path in memory(root).iterdir())


def rotations(root: Path, stem: str) -> list[Path]:
    return sorted(memory(root).glob(f"{stem}.*.jsonl.gz"))


def listing(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Everything below, with its mode, its time of change, its inode and what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = b"" if path.is_dir() or path.is_symlink() else path.read_bytes()
        text = os.readlink(path) if path.is_symlink() else hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, facts.st_ino, text)
    return found


# -- the seed's scenarios ---------------------------------------------------------------------------------


def test_scenario_5_telemetry_over_1000_lines_is_rotated(root: Path) -> None:
    """The seed: "Let telemetry grow >1000 lines -> Verify auto-rotation"."""
    path = put(root, "performance_telemetry.jsonl", telemetry(1001))
    path.chmod(0o640)
    cleanup = janitor(root).clean(NOW)
    (packed,) = rotations(root, "performance_telemetry")
    assert gzip.decompress(packed.read_bytes()).decode() == telemetry(1001)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"", 0o640)
    assert packed.stat().st_mode & 0o777 == 0o640
    assert names(root) == [packed.name, path.name]
    freed = len(telemetry(1001)) - packed.stat().st_size
    assert (cleanup.files_rotated, cleanup.sessions_pruned, cleanup.bytes_freed) == (1, 0, freed)
    assert cleanup.report() == f"Memory cleanup: 1 file rotated, 0 sessions pruned, {space(freed)} freed"
    assert (cleanup.problems, cleanup.failures) == ([], 0)


def test_scenario_6_of_15_sessions_the_last_10_stay(root: Path) -> None:
    """The seed: "Create 15 sessions -> Verify old sessions pruned (keep 10)"."""
    for number in range(15):
        session(root, f"s{number:02}", age=number * 3600)
    cleanup = janitor(root).clean(NOW)
    assert names(root) == ["session_archives", *(f"session_s{number:02}_state.json" for number in range(10))]
    packed = sorted(path.relative_to(memory(root)) for path in memory(root).rglob("*.gz"))
    assert [path.name for path in packed] == [f"s{number}_state.json.gz" for number in range(10, 15)]
    assert {path.parent.parent.name for path in packed} == {"session_archives"}
    state = gzip.decompress((memory(root) / packed[0]).read_bytes())
    assert json.loads(state) == {"id": "s10"}
    assert cleanup.sessions_pruned == 5
    assert cleanup.report().startswith("Memory cleanup: 0 files rotated, 5 sessions pruned, ")


def test_the_report_is_in_the_words_of_the_seed() -> None:
    cleanup = Cleanup(files_rotated=2, sessions_pruned=5, bytes_freed=1_258_291)
    assert cleanup.report() == "Memory cleanup: 2 files rotated, 5 sessions pruned, 1.2 MB freed"
    one = Cleanup(files_rotated=1, sessions_pruned=1, bytes_freed=-20)
    assert one.report() == "Memory cleanup: 1 file rotated, 1 session pruned, 0 KB freed"
    assert [space(size) for size in (1, 700, 1536, 487 * KB, 5 << 20)] == [
        "1 byte",
        "700 bytes",
        "1.5 KB",
        "487 KB",
        "5 MB",
    ]


# -- rotation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "age", "due"),
    [
        (b"x" * (50 * KB), 0, False),
        (b"x" * (50 * KB + 1), 0, True),
        (telemetry(1000).encode(), 0, False),
        (telemetry(1001).encode(), 0, True),
        (telemetry(1001).encode()[:-1], 0, True),
        (telemetry(1000).encode()[:-1], 0, False),
        (b'{"a": 1}\n', 7 * DAY, False),
        (b'{"a": 1}\n', 7 * DAY + 1, True),
        (b"", 30 * DAY, False),
    ],
    ids=["50 KB", "over 50 KB", "1000 lines", "1001 lines", "1001 unended", "1000 unended", "7 days", "older", "empty"],
)
def test_what_is_exactly_at_a_limit_is_not_over_it(root: Path, content: bytes, age: float, due: bool) -> None:
    path = put(root, "a_telemetry.jsonl", content, age)
    assert janitor(root).is_due(NOW) is due
    cleanup = janitor(root).clean(NOW)
    assert cleanup.files_rotated == due
    assert [gzip.decompress(one.read_bytes()) for one in rotations(root, "a_telemetry")] == ([content] if due else [])
    assert path.read_bytes() == (b"" if due else content)
    assert not janitor(root).is_due(NOW)


@pytest.mark.parametrize("key", ["timestamp", "time", "ts", "at"])
@pytest.mark.parametrize("form", ["iso", "zone", "epoch", "milliseconds"])
def test_the_age_is_that_of_the_first_line(root: Path, key: str, form: str) -> None:
    """A file that is written to every day would never be a week old by its time of change."""
    from datetime import UTC, datetime, timedelta, timezone

    begun = NOW - 7 * DAY - 60
    moment = datetime.fromtimestamp(begun, UTC)
    value = {
        "iso": moment.isoformat().replace("+00:00", "Z"),
        "zone": moment.astimezone(timezone(timedelta(hours=5))).isoformat(),
        "epoch": begun,
        "milliseconds": int(begun * 1000),
    }[form]
    put(root, "a_telemetry.jsonl", json.dumps({key: value}) + "\n" + json.dumps({key: NOW}) + "\n")
    put(root, "b_telemetry.jsonl", json.dumps({key: NOW}) + "\n" + json.dumps({key: value}) + "\n")
    janitor(root).clean(NOW)
    assert (len(rotations(root, "a_telemetry")), len(rotations(root, "b_telemetry"))) == (1, 0)


@pytest.mark.parametrize(
    "line",
    [b'{"time": true}', b'{"time": "soon"}', b'{"time": 4e9}', b"[1]", b"\xff\xfe", b'{"at": NaN}', b'{"ts": null}'],
)
def test_a_first_line_that_says_no_time_leaves_the_time_of_change(line: bytes) -> None:
    assert first_time(line + b"\n", NOW) is None


def test_rotations_within_one_second_and_after_a_clock_set_back_do_not_collide(root: Path) -> None:
    for number, now in enumerate((NOW, NOW, NOW + 0.1, NOW - 3600)):
        put(root, "a_telemetry.jsonl", telemetry(1001, start=number * 2000))
        janitor(root).clean(now)
    found = [gzip.decompress(path.read_bytes()).decode() for path in rotations(root, "a_telemetry")]
    assert found == [telemetry(1001, start=number * 2000) for number in range(4)]


def test_the_last_5_rotations_of_each_name_are_kept(root: Path) -> None:
    for number in range(7):
        for name in ("a_telemetry.jsonl", "b_telemetry.jsonl"):
            put(root, name, telemetry(1001, start=number))
        cleanup = janitor(root).clean(NOW + number)
    for stem in ("a_telemetry", "b_telemetry"):
        found = [gzip.decompress(path.read_bytes()).decode() for path in rotations(root, stem)]
        assert found == [telemetry(1001, start=number) for number in range(2, 7)]
    assert cleanup.archives_removed == 2


def test_only_files_that_the_settings_name_are_rotated(root: Path) -> None:
    large = telemetry(5000)
    for name in ("notes.jsonl", "a_telemetry.json", "a_telemetry.jsonl.bak", "circuit_breaker_config.json", "x.log"):
        put(root, name, large, 100 * DAY)
    put(root, "sub/a_telemetry.jsonl", large)
    before = listing(memory(root))
    assert janitor(root).clean(NOW).actions == []
    assert listing(memory(root)) == before
    put(root, "circuit_breaker_incidents.jsonl", large)
    assert janitor(root).clean(NOW).files_rotated == 1
    assert janitor(root, telemetry=("notes.jsonl", "*")).clean(NOW).files_rotated == 1
    assert (memory(root) / "circuit_breaker_config.json").read_text() == large


def test_odd_names_are_files_like_others(root: Path) -> None:
    odd = ["*[x]_telemetry.jsonl", "a b\nc_telemetry.jsonl", "-rf_telemetry.jsonl", "ü_telemetry.jsonl"]
    odd.append(os.fsdecode(b"\xff_telemetry.jsonl"))
    for name in odd:
        put(root, name, telemetry(1001))
    session(root, "x\ny", age=8 * DAY)
    cleanup = janitor(root).clean(NOW)
    assert (cleanup.files_rotated, cleanup.sessions_pruned, cleanup.problems) == (5, 1, [])
    assert all("\n" not in line for line in cleanup.actions)
    assert len(list(memory(root).glob("*.gz"))) == 5
    assert [path.name for path in memory(root).glob("session_archives/*/*")] == ["x\ny_state.json.gz"]


def test_a_name_that_is_too_long_for_a_rotation_is_said(root: Path) -> None:
    path = put(root, "a" * 235 + "_telemetry.jsonl", telemetry(1001))
    cleanup = janitor(root).clean(NOW)
    assert (cleanup.files_rotated, cleanup.failures) == (0, 1)
    assert "could not be rotated" in cleanup.problems[0]
    assert path.read_text() == telemetry(1001)


@given(stem=st.text("a._Z*", min_size=1, max_size=9), micros=st.integers(0, 250_000_000_000_000_000))
@settings(max_examples=60, deadline=None)
def test_the_name_of_a_rotation_says_what_it_is_of_and_when(stem: str, micros: int) -> None:
    name = f"{stem}.jsonl"
    found = parse_rotation(rotation_name(name, micros, ".gz"))
    assert found is not None
    assert (found.live, found.micros, found.packed) == (name, micros, True)
    assert rotation_name(name, micros, "") < rotation_name(name, micros + 1, "")


@pytest.mark.parametrize(
    "name",
    [
        "a_telemetry.jsonl.gz",
        "a_telemetry.20261315T101112-123456Z.jsonl.gz",
        "a_telemetry.20261115T101112-12345xZ.jsonl.gz",
        "a_telemetry.99991231T235959-999999Z.jsonl.gz",
        "a_telemetry.20261115T101112-123456Z.json.gz",
        ".20261115T101112-123456Z.jsonl.gz",
        "a_telemetry.20261115T101112-123456Z.jsonl.rotating.bak",
    ],
)
def test_other_names_are_no_rotations(name: str) -> None:
    assert parse_rotation(name) is None


# -- sessions ---------------------------------------------------------------------------------------------


def test_sessions_older_than_7_days_go_and_active_ones_never(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "mine")
    for name in ("old", "active", "mine", "479528ae"):
        session(root, name, age=8 * DAY)
    session(root, "at-limit", age=7 * DAY)
    cleanup = janitor(root, active=("active", "479528ae-91f4-4945-992c-9db9f0bba192")).clean(NOW)
    assert cleanup.sessions_pruned == 1
    assert [session_of(name) for name in names(root) if session_of(name)] == ["479528ae", "active", "at-limit", "mine"]
    day = next((memory(root) / "session_archives").iterdir())
    assert [path.name for path in day.iterdir()] == ["old_state.json.gz"]
    assert len(day.name) == 10


def test_of_too_many_the_oldest_that_are_not_active_go(root: Path) -> None:
    for number in range(14):
        session(root, f"s{number:02}", age=(number + 1) * 60)
    active = tuple(f"s{number}" for number in range(11, 14))
    janitor(root, active=active).clean(NOW)
    left = [session_of(name) for name in names(root) if session_of(name)]
    assert left == [*(f"s{number:02}" for number in range(7)), *active]


def test_more_active_sessions_than_the_limit_all_stay(root: Path) -> None:
    for number in range(13):
        session(root, f"s{number:02}", age=30 * DAY)
    active = tuple(f"s{number:02}" for number in range(13))
    assert janitor(root, active=active).clean(NOW).sessions_pruned == 0
    assert len(names(root)) == 13


def test_an_archive_that_is_there_is_not_overwritten(root: Path) -> None:
    """A session that comes back with the same id on the same day gets an archive of its own."""
    for turn in range(3):
        session(root, "s", age=8 * DAY, turn=turn)
        assert janitor(root).clean(NOW).sessions_pruned == 1
    found = {path.name: json.loads(gzip.decompress(path.read_bytes()))["turn"] for path in memory(root).rglob("*.gz")}
    assert found == {"s_state.json.gz": 0, "s_state.2.json.gz": 1, "s_state.3.json.gz": 2}


def test_an_archive_with_the_same_content_is_not_made_twice(root: Path) -> None:
    for _ in range(2):
        session(root, "s", age=8 * DAY)
        janitor(root).clean(NOW)
    assert [path.name for path in memory(root).rglob("*.gz")] == ["s_state.json.gz"]


# -- ledgers ----------------------------------------------------------------------------------------------


def test_ledger_and_history_keep_their_last_entries(root: Path) -> None:
    ledger = [{"n": number, "boost": number} for number in range(130)]
    path = session(root, "s", age=3600, evidence_ledger=ledger, tool_history=list(range(80)), note="ü")
    path.chmod(0o600)
    cleanup = janitor(root).clean(NOW)
    state = json.loads(path.read_text())
    assert state["evidence_ledger"] == ledger[30:]
    assert state["tool_history"] == list(range(30, 80))
    summary = state["evidence_ledger_summary"]
    assert (summary["count"], summary["average_boost"]) == (30, 14.5)
    assert (state["id"], state["note"]) == ("s", "ü")
    assert (path.stat().st_mode & 0o777, path.stat().st_mtime) == (0o600, NOW - 3600)
    assert cleanup.ledgers_truncated == 1
    assert cleanup.bytes_freed > 0
    assert "evidence_ledger 130 -> 100, tool_history 80 -> 50" in cleanup.actions[0]
    assert not janitor(root).is_due(NOW)


def test_what_is_dropped_later_is_added_to_the_summary_by_weight(root: Path) -> None:
    path = session(root, "s", evidence_ledger=[{"boost": 2}] * 20 + [{"boost": 10}] * 100)
    janitor(root).clean(NOW)
    state = json.loads(path.read_text())
    assert state["evidence_ledger_summary"]["average_boost"] == 2
    state["evidence_ledger"] += [{"boost": 0}] * 60
    path.write_text(json.dumps(state))
    janitor(root).clean(NOW)
    summary = json.loads(path.read_text())["evidence_ledger_summary"]
    assert (summary["count"], summary["average_boost"]) == (80, (20 * 2 + 60 * 10) / 80)


@given(st.lists(st.lists(st.one_of(st.floats(-100, 100), st.none()), max_size=8), max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_summary_does_not_depend_on_how_often_it_was_made(batches: list[list[float | None]]) -> None:
    """Entries without a boost are counted, and weigh nothing in the average."""
    summary = None
    for batch in batches:
        summary = merge_summary(summary, [{} if boost is None else {"boost": boost} for boost in batch], NOW)
    boosts = [boost for batch in batches for boost in batch if boost is not None]
    if summary is not None:
        assert summary["count"] == sum(map(len, batches))
        average = sum(boosts) / len(boosts) if boosts else None
        assert summary["average_boost"] == (average if average is None else pytest.approx(average, abs=1e-4))


def test_lists_of_the_allowed_length_are_left_as_they_are(root: Path) -> None:
    session(root, "s", evidence_ledger=[{}] * 100, tool_history=[1] * 50)
    before = listing(memory(root))
    assert janitor(root).clean(NOW).actions == []
    assert listing(memory(root)) == before


@pytest.mark.parametrize(
    "content",
    [b"{", b"[1, 2]", b"", b"\xff", b'{"evidence_ledger": ' + b"[" * 5000, b'{"a": NaN}'],
    ids=["cut", "list", "empty", "bytes", "deep", "nan"],
)
def test_a_state_that_is_no_json_object_is_left_alone_and_named(root: Path, content: bytes) -> None:
    put(root, "session_x_state.json", content)
    before = listing(memory(root))
    cleanup = janitor(root).clean(NOW)
    assert cleanup.problems == ["session_x_state.json is not a JSON object: left alone"]
    assert (cleanup.actions, cleanup.failures) == ([], 0)
    assert listing(memory(root)) == before


def test_a_summary_that_is_none_is_not_overwritten(root: Path) -> None:
    path = session(root, "s", evidence_ledger=[{}] * 101, evidence_ledger_summary="mine")
    before = path.read_bytes()
    assert "evidence_ledger_summary is not a summary" in janitor(root).clean(NOW).problems[0]
    assert path.read_bytes() == before


def test_the_form_of_a_state_stays(root: Path) -> None:
    text = json.dumps({"z": 1, "a": "é", "tool_history": list(range(60))}, indent=2, ensure_ascii=False) + "\n"
    path = put(root, "session_s_state.json", text)
    janitor(root).clean(NOW)
    wanted = {"z": 1, "a": "é", "tool_history": list(range(10, 60))}
    assert path.read_text() == json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"


# -- the whole --------------------------------------------------------------------------------------------


def noise(size: int) -> bytes:
    return os.urandom(size // 2).hex().encode()


def test_the_whole_stays_under_its_limit_and_the_oldest_archives_go_first(root: Path) -> None:
    for number in range(4):
        put(root, "a_telemetry.jsonl", noise(100 * KB))
        session(root, f"s{number}", age=(20 - number) * DAY, data=noise(60 * KB).decode())
        janitor(root).clean(NOW + number)
    total = sum(path.stat().st_size for path in memory(root).rglob("*") if path.is_file())
    newest = rotations(root, "a_telemetry")[1:]
    cleanup = janitor(root, total_max_kb=180).clean(NOW + 10)
    left = sum(path.stat().st_size for path in memory(root).rglob("*") if path.is_file())
    assert left <= 180 * KB < total
    assert rotations(root, "a_telemetry") == newest
    assert cleanup.bytes_freed == total - left
    assert list((memory(root) / "session_archives").iterdir()) == []  # all of them were older than any rotation
    assert cleanup.problems == []


def test_files_that_nobody_knows_are_named_when_they_are_the_reason(root: Path) -> None:
    """They are not removed, and the archives do not pay for them."""
    put(root, "a_telemetry.jsonl", telemetry(1001))
    janitor(root).clean(NOW)
    put(root, "embeddings.bin", b"\0" * (6 << 20))
    before = listing(memory(root))
    cleanup = janitor(root).clean(NOW)
    assert listing(memory(root)) == before
    assert cleanup.problems == [
        ".claude/memory is over 5MB, and archives are not the reason: embeddings.bin (6 MB), a_telemetry.jsonl (0 KB)"
    ]


def test_names_that_only_look_like_archives_are_not_removed(root: Path) -> None:
    kept = ["a_telemetry.old.jsonl.gz", "session_archives/notes.gz", "session_archives/2026-01-01/readme.md"]
    kept += ["session_archives/someday/s_state.json.gz", "backup/2026-01-01/s_state.json.gz", "x.jsonl.gz"]
    for name in kept:
        put(root, name, noise(10 * KB), 100 * DAY)
    put(root, "session_archives/2026-01-01/s_state.json.gz", noise(10 * KB), 100 * DAY)
    cleanup = janitor(root, total_max_kb=30).clean(NOW)
    assert cleanup.archives_removed == 0  # what is not ours is over the limit by itself
    cleanup = janitor(root, total_max_kb=65).clean(NOW)
    assert cleanup.archives_removed == 1
    assert all((memory(root) / name).exists() for name in kept)


# -- must not touch ---------------------------------------------------------------------------------------


def test_links_and_other_names_of_files_are_left_alone_and_said(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big.jsonl").write_text(telemetry(5000))
    (outside / "state.json").write_text(json.dumps({"tool_history": list(range(99))}))
    (memory(root) / "a_telemetry.jsonl").symlink_to(outside / "big.jsonl")
    os.link(outside / "big.jsonl", memory(root) / "b_telemetry.jsonl")
    (memory(root) / "session_a_state.json").symlink_to(outside / "state.json")
    os.link(outside / "state.json", memory(root) / "session_b_state.json")
    os.mkfifo(memory(root) / "c_telemetry.jsonl")
    (memory(root) / "d_telemetry.jsonl").mkdir()
    before = listing_without_pipes(tmp_path)
    cleanup = janitor(root).clean(NOW + 100 * DAY)
    assert listing_without_pipes(tmp_path) == before
    assert sorted(cleanup.problems) == [
        "a_telemetry.jsonl is a symbolic link: left alone",
        "b_telemetry.jsonl has another name somewhere (a hard link): left alone",
        "c_telemetry.jsonl is not a regular file: left alone",
        "d_telemetry.jsonl is not a regular file: left alone",
        "session_a_state.json is a symbolic link: left alone",
        "session_b_state.json has another name somewhere (a hard link): left alone",
    ]
    assert cleanup.failures == 0


def listing_without_pipes(folder: Path) -> dict[str, Any]:
    """Content and inode of everything but pipes and our own state."""
    return {
        str(path): (path.lstat().st_ino, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo() and ".fusewire" not in path.parts
    }


@pytest.mark.parametrize("link", [".claude", ".claude/memory"])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    (outside / "memory").mkdir(parents=True)
    for folder in (outside, outside / "memory"):
        (folder / "a_telemetry.jsonl").write_text(telemetry(5000))
    root = tmp_path / "project"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside)
    with pytest.raises(
        FusewireError, match=f"^{link} is a symbolic link, which the janitor does not follow; allowed: "
    ):
        janitor(root).clean(NOW)
    assert at_session_start(str(root), {}, None, (), NOW).startswith("Memory cleanup was not done: .claude")
    assert (outside / "memory" / "a_telemetry.jsonl").read_text() == telemetry(5000)


def test_archives_do_not_go_through_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (memory(root) / "session_archives").symlink_to(outside)
    path = session(root, "s", age=8 * DAY)
    cleanup = janitor(root).clean(NOW)
    assert list(outside.iterdir()) == []
    assert path.exists()
    assert cleanup.failures == 1


@pytest.mark.parametrize("folder", ["..", "../other", "/", ".git", ".fusewire/guard", "~", "a/../../b"])
def test_a_folder_outside_of_the_project_is_refused(root: Path, folder: str) -> None:
    with pytest.raises(
        FusewireError, match=r"^memory_limits\.folder = .* is refused; allowed: a folder of the project"
    ):
        janitor(root, folder=folder).clean(NOW)


def test_a_folder_elsewhere_is_used_if_it_is_named_among_the_others(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a_telemetry.jsonl").write_text(telemetry(1001))
    inside = root / "deep" / "project"
    inside.mkdir(parents=True)
    cleanup = janitor(inside, folder=str(elsewhere), other_folders=(str(elsewhere),)).clean(NOW)
    assert cleanup.files_rotated == 1
    assert len(list(elsewhere.glob("*.gz"))) == 1


def test_a_missing_folder_is_nothing_to_do_and_nothing_is_made(tmp_path: Path) -> None:
    cleanup = janitor(tmp_path).clean(NOW)
    assert cleanup.report() == "Memory cleanup: 0 files rotated, 0 sessions pruned, 0 KB freed"
    assert not janitor(tmp_path).usage().exists
    assert list(tmp_path.iterdir()) == []


# -- bad conditions ---------------------------------------------------------------------------------------

CLEAN = """
import resource, sys
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
root, now, size = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
if size:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
cleanup = Janitor(root, Limits()).clean(now)
print(cleanup.files_rotated, cleanup.sessions_pruned, cleanup.failures)
print("\\n".join(cleanup.problems))
"""


def cleaned_by_another(root: Path, *, size: int = 0) -> list[str]:
    """A run without the rights of root, with a limit for the size of files (as good as a full disk)."""
    words = [*UNPRIVILEGED, sys.executable, "-c", CLEAN, str(root), str(NOW), str(size)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_a_full_disk_loses_nothing_and_the_next_run_finishes(root: Path) -> None:
    content = noise(200 * KB)
    put(root, "a_telemetry.jsonl", content)
    state = session(root, "s", age=8 * DAY, data=noise(100 * KB).decode()).read_bytes()
    lines = cleaned_by_another(root, size=8 * KB)
    assert lines[0] == "1 0 2"
    assert "could not be packed, nothing of it is lost: File too large" in lines[1]
    (aside,) = memory(root).glob("a_telemetry.*.rotating")
    assert aside.read_bytes() == content
    assert names(root) == sorted([aside.name, "a_telemetry.jsonl", "session_archives", "session_s_state.json"])
    janitor(root).clean(NOW)
    assert [gzip.decompress(path.read_bytes()) for path in rotations(root, "a_telemetry")] == [content]
    assert [gzip.decompress(path.read_bytes()) for path in memory(root).rglob("s_state.json.gz")] == [state]


def test_a_folder_that_cannot_be_written_is_said_and_left_as_it_is(root: Path) -> None:
    put(root, "a_telemetry.jsonl", telemetry(1001))
    session(root, "s", age=8 * DAY)
    session(root, "t", age=2 * 3600, tool_history=[1] * 60)
    memory(root).chmod(0o555)
    before = listing(memory(root))
    lines = cleaned_by_another(root)
    memory(root).chmod(0o755)
    assert lines[0] == "0 0 3"
    assert sorted(line.rpartition(": ")[2] for line in lines[1:]) == ["Permission denied"] * 3
    assert listing(memory(root)) == before


def test_where_the_kernel_gives_no_lease_a_file_waits_for_an_hour(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("fcntl.F_SETLEASE")
    put(root, "a_telemetry.jsonl", telemetry(1001))
    cleanup = janitor(root).clean(NOW + 3599)
    assert "packed when that has closed it" in cleanup.actions[0]
    assert [name for name in names(root) if name.endswith(".rotating")]
    assert janitor(root).clean(NOW + 3601).actions[0].startswith("finished the rotation of a_telemetry.jsonl")
    assert len(rotations(root, "a_telemetry")) == 1


# -- dry run ----------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_a_run_does_and_changes_nothing(root: Path) -> None:
    put(root, "a_telemetry.jsonl", telemetry(3000))
    put(root, "b_telemetry.20200101T000000-000000Z.jsonl.rotating", telemetry(10))
    put(root, "session_z_state.json.pruning", "{}")
    put(root, ".fusewire-janitor.tmp", "half")
    for number in range(12):
        session(root, f"s{number:02}", age=number * 60, tool_history=list(range(60)))
    for number in range(7):
        put(root, f"c_telemetry.2020010{number + 1}T000000-000000Z.jsonl.gz", b"x")
    before = listing(root)
    dry = janitor(root).clean(NOW, dry_run=True)
    assert listing(root) == before
    wet = janitor(root).clean(NOW)
    assert listing(root) != before
    for key in ("files_rotated", "sessions_pruned", "ledgers_truncated", "archives_removed"):
        assert getattr(dry, key) == getattr(wet, key), key
    assert (dry.files_rotated, dry.sessions_pruned, dry.archives_removed) == (1, 3, 2)
    assert all(line.startswith("would ") for line in dry.actions)
    assert dry.bytes_freed > 0


# -- other folders ----------------------------------------------------------------------------------------


def test_other_folders_are_first_shown_and_then_packed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "transcripts"
    (other / "deep").mkdir(parents=True)
    (root / "p").mkdir()
    old = {"deep/a.jsonl": telemetry(10), "b.log": "line\n"}
    kept = {"new.jsonl": telemetry(9), "old.txt": "x", "empty.log": "", ".git/x.log": "x"}
    for name, content in {**old, **kept}.items():
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_text(content)
        os.utime(other / name, (NOW - 8 * DAY, NOW - (8 * DAY if name != "new.jsonl" else 0)))
    (other / "link.log").symlink_to(other / "b.log")
    held = open(other / "held.log", "a")  # noqa: SIM115
    held.write("x\n")
    held.flush()
    os.utime(other / "held.log", (NOW - 8 * DAY, NOW - 8 * DAY))
    before = listing(other)
    mine = janitor(root / "p", other_folders=(str(other),))
    dry = mine.clean(NOW, dry_run=True)
    assert sorted(line.split(" (")[0] for line in dry.actions) == [
        f"would pack {other}/b.log",
        f"would pack {other}/deep/a.jsonl",
    ]
    first = mine.clean(NOW)
    assert "seen for the first time" in first.actions[0]
    assert (len(first.actions), first.files_rotated, first.bytes_freed) == (3, 0, 0)
    assert listing(other) == before
    second = mine.clean(NOW)
    held.close()
    assert second.files_rotated == 2
    assert not (other / "b.log").exists()
    assert not (other / "deep" / "a.jsonl").exists()
    assert [gzip.decompress(path.read_bytes()).decode() for path in sorted(other.rglob("*.gz"))] == [
        "line\n",
        telemetry(10),
    ]
    assert [path.name for path in sorted(other.rglob("*.gz"))][1].endswith(".jsonl.gz")
    assert all((other / name).read_text() == content for name, content in kept.items())
    assert (other / "held.log").read_text() == "x\n"
    assert mine.clean(NOW + 1).files_rotated == 1  # nobody has it open any more


def test_at_the_start_of_a_session_other_folders_are_not_touched(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "logs"
    other.mkdir()
    (other / "a.log").write_text("x")
    os.utime(other / "a.log", (1, 1))
    put(root, "a_telemetry.jsonl", telemetry(1001))
    settings_ = {"memory_limits.other_folders": (str(other),)}
    for _ in range(3):
        at_session_start(str(root), settings_, None, (), NOW)
    assert [path.name for path in other.iterdir()] == ["a.log"]


def test_a_folder_around_the_project_is_refused_as_another(root: Path) -> None:
    for folder in ("..", "/", "~", str(root)):
        cleanup = janitor(root, other_folders=(folder,)).clean(NOW)
        assert "is refused; allowed: a folder of logs" in cleanup.problems[0], folder


# -- the start of a session -------------------------------------------------------------------------------


def test_the_start_of_a_session_cleans_and_says_so_once(root: Path) -> None:
    put(root, "a_telemetry.jsonl", telemetry(1001))
    session(root, "mine", age=8 * DAY)
    session(root, "other", age=8 * DAY)
    session(root, "gone", age=8 * DAY)
    settings_ = {"memory_limits.telemetry_max_lines": 1000, "tool_failure.threshold": 3}
    line = at_session_start(str(root), settings_, "mine", ("other",), NOW)
    assert line.startswith("Memory cleanup: 1 file rotated, 1 session pruned, ")
    assert at_session_start(str(root), settings_, "mine", ("other",), NOW) == ""


def test_where_nothing_is_due_nothing_is_written_and_nothing_slow_is_imported(root: Path) -> None:
    put(root, "a_telemetry.jsonl", telemetry(900))
    for number in range(10):
        session(root, f"s{number}", evidence_ledger=[{"boost": 1}] * 100)
    before = listing(root)
    script = (
        "import sys; from fusewire.janitor.janitor import at_session_start\n"
        f"print(repr(at_session_start({str(root)!r}, {{}}, 'x', (), {NOW})))\n"
        "print(sorted({'json', 're', 'zlib', 'dataclasses', 'sqlite3', 'subprocess'} & set(sys.modules)))"
    )
    source = str(Path(fusewire.__file__).parents[1])
    script = f"import sys; sys.path.insert(0, {source!r})\n{script}"
    result = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["''", "[]"]
    assert listing(root) == before


def test_what_takes_too_long_at_the_start_is_left_for_later(root: Path) -> None:
    put(root, "a_telemetry.jsonl", telemetry(50_000))
    cleanup = janitor(root).clean(NOW, seconds=0.0)
    assert cleanup.files_rotated == 1
    assert "takes too long now: left for a later run" in cleanup.problems[0]
    assert rotations(root, "a_telemetry") == []
    assert ".fusewire-janitor.tmp" not in names(root)
    janitor(root).clean(NOW)
    assert [gzip.decompress(path.read_bytes()).decode() for path in rotations(root, "a_telemetry")] == [
        telemetry(50_000)
    ]


# -- commands ---------------------------------------------------------------------------------------------


def test_the_janitor_command(project: Project) -> None:
    put(project.root, "a_telemetry.jsonl", telemetry(1001))
    dry = project.run("janitor", "--dry-run")
    assert (dry.returncode, dry.stdout.splitlines()[0][:44]) == (0, "would rotate a_telemetry.jsonl (over 1000 li")
    assert dry.stdout.splitlines()[-1].endswith(" freed (dry run: nothing was changed)")
    put(project.root, "session_broken_state.json", "{", -DAY)
    os.utime(memory(project.root) / "session_broken_state.json")
    result = project.run("janitor")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("rotated a_telemetry.jsonl (over 1000 lines) -> a_telemetry.2")
    assert lines[-1].startswith("Memory cleanup: 1 file rotated, 0 sessions pruned, ")
    assert result.stderr == "Warning: session_broken_state.json is not a JSON object: left alone\n"
    data = project.json("janitor")
    assert (data["files_rotated"], data["actions"], data["failures"]) == (0, [], 0)
    assert data["report"] == "Memory cleanup: 0 files rotated, 0 sessions pruned, 0 KB freed"


def test_the_limits_come_from_the_project(project: Project) -> None:
    (project.root / "fusewire.toml").write_text('[tool.memory_limits]\nfolder = "mem"\ntelemetry_max_lines = 5\n')
    (project.root / "mem").mkdir()
    (project.root / "mem" / "a_telemetry.jsonl").write_text(telemetry(6))
    assert project.json("janitor")["files_rotated"] == 1
    (project.root / "fusewire.toml").write_text('[tool.memory_limits]\nfolder = "../mem"\n')
    result = project.run("janitor")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: memory_limits.folder = '../mem' is refused; allowed: ")


def test_the_usage_in_the_figures_of_the_seed(root: Path) -> None:
    """The seed: "Total: 487KB / 5MB limit (9.7% used)": of 5,000 KB, which the seed calls 5 MB."""
    put(root, "notes.txt", b"x" * 487 * KB)
    put(root, "a_telemetry.jsonl", b"")
    assert janitor(root, total_max_kb=5000).usage().lines() == [
        "Total: 487KB / 5MB limit (9.7% used)",
        "Telemetry: 0 lines (0% of 1000 limit)",
        "Sessions: 0 active (limit 10)",
        "Next auto-cleanup: SessionStart",
    ]
    for number in range(11):
        session(root, str(number))
    assert janitor(root, total_max_kb=300).usage().lines()[0] == "Total: 487KB / 300KB limit (162.4% used)"
    assert janitor(root).usage().lines()[2] == "Sessions: 11 active (over the limit of 10)"


def test_the_memory_command_in_the_words_of_the_seed(project: Project) -> None:
    assert project.run("memory").stdout == "Nothing yet: there is no .claude/memory\n"
    put(project.root, "performance_telemetry.jsonl", telemetry(308))
    for number in range(10):
        session(project.root, f"s{number}")
    size = sum(path.stat().st_size for path in memory(project.root).iterdir())
    put(project.root, "embeddings.bin", b"\0" * (487 * KB - size))
    result = project.run("memory")
    assert result.returncode == 0
    share = 100 * 487 * KB / project.json("memory")["limit_bytes"]
    assert result.stdout.splitlines()[:5] == [
        "Memory Health:",
        f"  • Total: 487KB / 5MB limit ({share:.1f}% used)",
        "  • Telemetry: 308 lines (30% of 1000 limit)",
        "  • Sessions: 10 active (at limit)",
        "  • Next auto-cleanup: SessionStart",
    ]
    assert any(
        line.split()[0] == "embeddings.bin" and line.endswith("unknown") for line in result.stdout.splitlines()[6:]
    )
    data = project.json("memory")
    assert (data["total_bytes"], data["sessions_active"], data["unknown"]) == (487 * KB, 10, ["embeddings.bin"])
    assert data["telemetry"][0]["lines"] == 308
