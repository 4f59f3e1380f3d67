"""The hook as Claude Code starts it: its own payloads in, its own protocol out, nothing else."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import DATA, SOURCE
from tests.helpers.project import Project

ID = "git-safety"
NO_DEDUP = "circuit_breaker:\n  dedup_seconds: 0\n"
FORCE_PUSH = "match:\n  - tool: Bash\n    command: [git push --force*, git push -f]\n"
TRIPS_AT_ONCE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
PAYLOADS = sorted((DATA / "payloads").glob("claude.PreToolUse.*.json"))
Answer = subprocess.CompletedProcess[bytes]

#: For each payload a `match:` that forbids it.
FORBIDS = {
    "claude.PreToolUse.Bash.json": "{tool: Bash, command: ls}",
    "claude.PreToolUse.Bash.in_subagent.json": "{command: echo in-subagent}",
    "claude.PreToolUse.Read.json": "{tool: Read}",
    "claude.PreToolUse.Write.json": "{path: /home/dev/project/note.txt}",
    "claude.PreToolUse.Agent.json": "{tool: Agent}",
}


def assert_silent(answer: Answer) -> None:
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"", b"")


def assert_denied(answer: Answer) -> str:
    """Exit 2, the reason on stderr, and the same reason as JSON on stdout."""
    assert answer.returncode == 2, (answer.stdout, answer.stderr)
    assert b"Traceback" not in answer.stderr
    reason = answer.stderr.decode().strip()
    assert reason.startswith("BLOCKED ")
    output = json.loads(answer.stdout)
    assert set(output) == {"hookSpecificOutput"}
    denial = output["hookSpecificOutput"]
    # JSON may carry lone surrogates, a terminal may not.
    denial["permissionDecisionReason"] = denial["permissionDecisionReason"].encode("utf-8", "replace").decode()
    assert denial == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return reason


def assert_told(answer: Answer) -> str:
    """Exit 0 and additional context, without a permissionDecision that would skip the user's own permissions."""
    assert (answer.returncode, answer.stderr) == (0, b"")
    output = json.loads(answer.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert "permissionDecision" not in answer.stdout.decode()
    context: str = output["additionalContext"]
    return context


def level(project: Project, name: str = ID) -> int:
    return project.json("status", name)["circuits"][0]["level"]  # type: ignore[no-any-return]


# -- golden payloads ------------------------------------------------------------------------------------


def test_there_are_five_recorded_payloads_and_each_is_forbidden_by_something() -> None:
    """The files beside this test are the recorded ones."""
    assert {path.name for path in PAYLOADS} == set(FORBIDS)


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
def test_a_recorded_payload_both_ways(project: Project, path: Path) -> None:
    """Without a rule it passes in silence; with one whose limit is 1 it is denied from the first time on."""
    payload = json.loads(path.read_text())
    assert_silent(project.hook(payload))
    project.constraint("unrelated", "match: {tool: Bash, command: terraform destroy}\n")
    assert_silent(project.hook(payload))
    # Recorded paths lie in /home/dev/project, outside of this one: only an absolute pattern speaks of them.
    project.constraint(ID, f"{TRIPS_AT_ONCE}match: {FORBIDS[path.name]}\n")
    assert f"docs/constraints/{ID}.md" in assert_denied(project.hook(payload))
    reason = assert_denied(project.hook(payload))
    assert reason.startswith(f"BLOCKED constraint:{ID}: ")
    assert f"fusewire reset {ID} --reason" in reason
    assert "UTC" in reason
    entries = project.json("history", ID)["entries"]
    assert {entry["session"] for entry in entries} == {payload["session_id"]}


def test_four_violations_pass_the_fifth_trips_the_sixth_is_denied(project: Project) -> None:
    """The seed's flow: allow and record, trip and notify, block; harmless calls pass all the time."""
    project.constraint(ID, NO_DEDUP + FORCE_PUSH, "# Never force-push\n")
    payload = project.bash("git push --force origin main")
    for number in range(1, 5):
        context = assert_told(project.hook(payload))
        assert "Never force-push" in context
        assert f"{number} of 5" in context
    trip = assert_told(project.hook(payload))
    assert "5 violations within 30d (limit 5)" in trip
    assert "fusewire reset" in trip
    reason = assert_denied(project.hook(payload))
    assert "git push --force origin main" in reason
    assert "Next:" in reason
    assert_silent(project.hook(project.bash("git push origin main")))
    assert_silent(project.hook(project.bash("ls")))
    assert level(project) == 6


def test_a_hasty_retry_is_not_counted_twice(project: Project) -> None:
    """Within 300 seconds the same constraint counts once, through the hook too."""
    project.constraint(ID, FORCE_PUSH)
    for _ in range(6):
        assert_told(project.hook(project.bash("git push -f")))
    assert level(project) == 1


def test_a_subagent_counts_together_with_its_session(project: Project) -> None:
    """agent_id and agent_type make no second account: the circuit is the project's."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 2\n  dedup_seconds: 0\n" + FORCE_PUSH)
    inside = {"agent_id": "af9343ffae0bf4732", "agent_type": "general-purpose"}
    assert_told(project.hook(project.bash("git push -f")))
    assert_told(project.hook(project.bash("git push -f", **inside)))
    assert_denied(project.hook(project.bash("git push -f", **inside)))
    assert_denied(project.hook(project.bash("git push -f")))


def test_an_override_passes_with_a_word_and_a_reset_ends_the_block(project: Project) -> None:
    """What a person does at the terminal is in force on the next call."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    call = project.bash("git push -f")
    project.hook(call)
    assert_denied(project.hook(call))
    project.run("override", ID, "--reason", "production is down", "--for", "1h")
    assert "production is down" in assert_told(project.hook(call))
    project.run("override", ID, "--end")
    assert_denied(project.hook(call))
    project.run("reset", ID, "--reason", "mended")
    assert_silent(project.hook(project.bash("git push")))
    assert project.json("status", ID)["circuits"][0]["state"] == "CLOSED"


def test_the_command_line_is_the_same_hook(project: Project) -> None:
    """`fusewire hook claude` answers as the file does."""
    project.constraint(ID, NO_DEDUP + "  violation_threshold: 2\n" + FORCE_PUSH)
    for check in (assert_told, assert_told, assert_denied):
        answer = subprocess.run(
            [sys.executable, "-m", "fusewire", "hook", "claude"],
            input=json.dumps(project.bash("git push -f")).encode(),
            cwd=project.root,
            capture_output=True,
            check=False,
        )
        check(answer)


# -- malformed input ------------------------------------------------------------------------------------


def malformed(project: Project) -> dict[str, bytes]:
    good = project.bash("ls")

    def changed(**fields: Any) -> bytes:
        return json.dumps({**good, **fields}).encode()

    def without(field: str) -> bytes:
        return json.dumps({key: value for key, value in good.items() if key != field}).encode()

    return {
        "empty": b"",
        "white space": b" \n\t ",
        "no JSON": b"git push --force",
        "half of it": json.dumps(good).encode()[:-30],
        "two of them": json.dumps(good).encode() * 2,
        "a list": b"[]",
        "a text": b'"PreToolUse"',
        "a number": b"7",
        "null": b"null",
        "an empty object": b"{}",
        "no event": without("hook_event_name"),
        "event of the wrong type": changed(hook_event_name=["PreToolUse"]),
        "no tool_name": without("tool_name"),
        "empty tool_name": changed(tool_name=""),
        "tool_name of the wrong type": changed(tool_name=7),
        "no tool_input": without("tool_input"),
        "tool_input of the wrong type": changed(tool_input="ls"),
        "command of the wrong type": changed(tool_input={"command": ["git", "push", "--force"]}),
        "no command": changed(tool_input={"description": "nothing"}),
        "file_path of the wrong type": changed(tool_name="Write", tool_input={"file_path": ["x"], "content": ""}),
        "nested too deeply": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "brackets without end": b"[" * 1_000_000,
        "NaN": changed(x=float("nan")),
        "Infinity": changed(x=float("inf")),
        "invalid UTF-8": json.dumps(good).encode().replace(b"ls", b"l\xff"),
        "UTF-16": json.dumps(good).encode("utf-16"),
        "a number of 10000 digits": b'{"x":' + b"9" * 10_000 + b"}",
        "a NUL in a path": changed(tool_name="Write", tool_input={"file_path": "a\0b", "content": ""}),
    }


def test_malformed_input_is_denied_in_one_clear_line(project: Project) -> None:
    """Whatever cannot be judged is denied in Claude's protocol, and never with a traceback."""
    project.constraint(ID, FORCE_PUSH)
    wrong = {}
    for name, raw in malformed(project).items():
        answer = project.hook(None, raw=raw)
        assert b"Traceback" not in answer.stderr + answer.stdout, name
        try:
            reason = assert_denied(answer)
        except AssertionError:
            wrong[name] = (answer.returncode, answer.stderr[:200])
            continue
        if "\n" in reason or not reason.startswith("BLOCKED fusewire.input: ") or len(reason) > 500:
            wrong[name] = (2, reason[:200])
    assert wrong == {}


def test_numbers_and_unknown_fields_that_are_merely_strange_pass(project: Project) -> None:
    """Large numbers, long texts, new fields and nested input of other tools are none of our business."""
    project.constraint(ID, FORCE_PUSH)
    assert_silent(project.hook(project.bash("ls", new_field={"a": [1, 2, {"b": 1e308}]}, x=10**300, y="z" * 100_000)))
    assert_silent(
        project.hook(project.bash("", tool_name="mcp__db__query", tool_input={"command": {"sql": "x"}, "path": 7}))
    )
    assert_silent(project.hook(project.bash("ls", session_id=None, tool_use_id=5, cwd=7)))


def test_the_last_of_duplicate_keys_counts(project: Project) -> None:
    """As every JSON parser of the agents reads it: a harmless first value hides nothing."""
    project.constraint(ID, FORCE_PUSH)
    raw = json.dumps(project.bash("ls")).replace('"command": "ls"', '"command": "ls", "command": "git push --force"')
    assert_told(project.hook(None, raw=raw.encode()))


def test_a_command_of_a_megabyte_is_judged(project: Project) -> None:
    """Long input is no way round, and the answer stays below the 10,000 characters that Claude takes."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    long = f"echo '{'x' * 500_000}' {'y ' * 250_000}; git push --force"
    assert len(assert_denied(project.hook(project.bash(long)))) < 10_000


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("here-documents", "a<<b;" * 6000 + "git push --force\n"),
        ("wrappers", "sudo " * 20_000 + "git push --force"),
        ("evals", "eval " * 40 + "git push --force"),
    ],
)
def test_a_command_made_to_exhaust_the_hook_is_no_way_round(project: Project, name: str, command: str) -> None:
    """A few kilobytes must not buy minutes or gigabytes: the agent runs the tool when its hook times out or dies."""
    project.constraint(ID, FORCE_PUSH)
    answer = subprocess.run(
        [
            "bash",
            "-c",
            'ulimit -v 1500000; exec "$@"',
            "-",
            sys.executable,
            "-I",
            "-S",
            str(SOURCE / "hook.py"),
            "claude",
        ],
        input=json.dumps(project.bash(command)).encode(),
        cwd=project.root,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert answer.returncode == 2 or b"additionalContext" in answer.stdout, (answer.returncode, answer.stderr[:300])


def test_strange_characters_in_a_command_go_through(project: Project) -> None:
    """Lone surrogates, control characters, other scripts: counted, stored, shown, never a crash."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    call = project.bash("git push --force '\ud800 \x1b[31m \u0000 日本語 \"'")
    assert_denied(project.hook(call))
    for command in ("status", "history", "check"):
        assert "Traceback" not in project.run(command, ID).stderr
    assert project.json("history", ID)["entries"]


def test_other_events_pass_in_silence(project: Project) -> None:
    """Only PreToolUse asks for a decision; what is known and what is new passes."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    for event in ("PostToolUse", "Stop", "SessionEnd", "SomethingNew"):
        assert_silent(project.hook(project.bash("git push -f", hook_event_name=event)))
    stop = {"session_id": "s", "cwd": str(project.root), "hook_event_name": "Stop", "stop_hook_active": False}
    assert_silent(project.hook(stop))
    assert level(project) == 1


# -- when the breaker itself fails ----------------------------------------------------------------------


def test_a_locked_store_denies_the_matching_call_only(project: Project) -> None:
    """A forbidden call fails closed with the reason; a harmless one passes, and the person is told."""
    project.constraint(ID, FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    other = sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        reason = assert_denied(project.hook(project.bash("git push -f")))
        assert "locked" in reason
        assert f"constraint:{ID}" in reason
        harmless = project.hook(project.bash("ls"))
        assert harmless.returncode == 0
        assert "out of order" in json.loads(harmless.stdout)["systemMessage"]
        assert "hookSpecificOutput" not in json.loads(harmless.stdout)
    finally:
        other.rollback()
        other.close()
    assert_told(project.hook(project.bash("git push -f")))


def test_a_corrupt_store_does_not_open_the_gate(project: Project) -> None:
    """An open circuit stays open after its database was destroyed; harmless calls pass."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    for leftover in (project.root / ".fusewire").glob("state.db*"):
        leftover.write_bytes(b"garbage" * 1000)
    assert_silent(project.hook(project.bash("ls")))
    assert_denied(project.hook(project.bash("git push -f")))
    assert project.json("status")["warnings"]


def test_a_writer_killed_in_the_middle_of_its_line_does_not_stop_a_rebuild(project: Project) -> None:
    """The audit trail ends in half a line and the database is lost: the hook still knows the open circuit."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    with (project.root / ".fusewire/audit.jsonl").open("a") as trail:
        trail.write('{"time":"2026-02-13T10:0')
    for leftover in (project.root / ".fusewire").glob("state.db*"):
        leftover.write_bytes(b"garbage" * 1000)
    reason = assert_denied(project.hook(project.bash("git push -f")))
    assert reason.startswith(f"BLOCKED constraint:{ID}: 1 violation")


def test_a_state_that_is_half_a_text_is_rebuilt_by_the_hook(project: Project) -> None:
    """One row of the database is damaged: refolded from the log, and a circuit that was open stays open."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    database = sqlite3.connect(project.root / ".fusewire/state.db")
    database.execute("UPDATE circuits SET state = '{\"since\": 17'")
    database.commit()
    database.close()
    reason = assert_denied(project.hook(project.bash("git push -f")))
    assert reason.startswith(f"BLOCKED constraint:{ID}: 1 violation")


def test_an_unusable_store_denies_the_matching_call_only(project: Project) -> None:
    """A database of a newer version, which cannot be read: fail closed for what is forbidden."""
    project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("ls"))
    with sqlite3.connect(project.root / ".fusewire" / "state.db") as database:
        database.execute("PRAGMA user_version=99")
    reason = assert_denied(project.hook(project.bash("git push -f")))
    assert f"constraint:{ID}" in reason
    harmless = project.hook(project.bash("ls"))
    assert harmless.returncode == 0
    assert "out of order" in json.loads(harmless.stdout)["systemMessage"]


def test_broken_rules_files_do_not_lock_the_user_out(project: Project) -> None:
    """Front matter that is no YAML, a constraint that is a folder: harmless calls still pass in silence."""
    project.constraint(ID, "circuit_breaker: [unclosed\n")
    (project.root / "docs/constraints/folder.md").mkdir()
    (project.root / "fusewire.toml").write_text("[[[")
    assert_silent(project.hook(project.bash("ls")))
    project.constraint(ID, f"circuit_breaker:\n  window_days: {'9' * 400}\n{FORCE_PUSH}")
    assert_silent(project.hook(project.bash("ls")))
    assert_told(project.hook(project.bash("git push -f")))


def test_a_mistake_in_front_matter_does_not_disarm_the_rule(project: Project) -> None:
    """What a file forbids can no longer be read: the hook may deny or say so, but it must not be silent."""
    path = project.constraint(ID, TRIPS_AT_ONCE + FORCE_PUSH)
    project.hook(project.bash("git push -f"))
    assert_denied(project.hook(project.bash("git push -f")))
    path.write_text(path.read_text().replace("circuit_breaker:\n", "circuit_breaker: [\n"))
    answer = project.hook(project.bash("git push -f"))
    assert f"{ID}.md" in (answer.stdout + answer.stderr).decode() or answer.returncode == 2


@pytest.mark.parametrize("missing", ["gate", "util/fast_json.py", "agents", "guard/plain.py", "engine/breaker.py"])
def test_a_broken_installation_is_said_and_lets_the_call_pass(project: Project, tmp_path: Path, missing: str) -> None:
    """Exit 1 with a line on stderr: Claude shows it and goes on, nobody is locked out."""
    project.constraint(ID, FORCE_PUSH)
    copy = tmp_path / "broken" / "fusewire"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    victim = copy / missing
    shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(copy / "hook.py"), "claude"],
        input=json.dumps(project.bash("git push --force")).encode(),
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (1, b""), answer.stderr
    assert answer.stderr.startswith(b"fusewire: ")
    assert answer.stderr.count(b"\n") == 1
    assert b"Traceback" not in answer.stderr


def test_a_syntax_error_in_the_installation_lets_the_call_pass(project: Project, tmp_path: Path) -> None:
    """An upgrade that was cut off in the middle of a file is a broken installation too."""
    copy = tmp_path / "broken" / "fusewire"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "gate/process.py").write_text((copy / "gate/process.py").read_text()[:2000] + "\ndef (")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(copy / "hook.py"), "claude"],
        input=json.dumps(project.bash("ls")).encode(),
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith(b"fusewire: ")
    assert b"Traceback" not in answer.stderr


def test_the_hook_needs_the_name_of_an_agent(project: Project) -> None:
    """No name, or one that is unknown: one line that lists what is allowed."""
    for arguments in ((), ("emacs",), ("claude", "more")):
        answer = subprocess.run(
            [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), *arguments],
            input=b"{}",
            cwd=project.root,
            capture_output=True,
            check=False,
        )
        assert answer.returncode == 2
        assert b"claude" in answer.stderr
        assert answer.stderr.count(b"\n") == 1


# -- which project, which files -------------------------------------------------------------------------


def test_a_changed_constraint_is_in_force_on_the_very_next_call(project: Project) -> None:
    """New, edited, retired and removed: no command in between, no stale compiled rules."""
    call = project.bash("git push --force")
    assert_silent(project.hook(call))
    path = project.constraint(ID, NO_DEDUP + "match: {command: git push --farce}\n")
    assert_silent(project.hook(call))
    path.write_text(path.read_text().replace("--farce", "--force"))
    assert_told(project.hook(call))
    path.write_text(path.read_text().replace("--force", "--farce"))
    assert_silent(project.hook(call))
    project.constraint(ID, NO_DEDUP + FORCE_PUSH)
    assert_told(project.hook(call))
    project.constraint(ID, "status: retired\n" + FORCE_PUSH)
    assert_silent(project.hook(call))
    archived = json.loads((project.root / "docs/constraints/.circuit-state-archive.json").read_text())
    assert archived[ID]["total_violations"] == 2
    project.constraint(ID, FORCE_PUSH).unlink()
    assert_silent(project.hook(call))


def test_where_the_agent_has_moved_to_does_not_change_its_rules(project: Project, tmp_path: Path) -> None:
    """CLAUDE_PROJECT_DIR rules, not the payload's cwd; without it the cwd's git top level does."""
    project.constraint(ID, NO_DEDUP + FORCE_PUSH)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    call = project.bash("git push -f", cwd=str(elsewhere))
    assert_told(project.hook(call))
    inner = project.root / "src" / "deep"
    inner.mkdir(parents=True)
    assert_told(project.hook(project.bash("git push -f", cwd=str(inner)), env={"CLAUDE_PROJECT_DIR": ""}))
    assert_told(project.hook(project.bash("git push -f"), env={"CLAUDE_PROJECT_DIR": str(inner)}))
    assert_silent(project.hook(call, env={"CLAUDE_PROJECT_DIR": ""}))
    assert level(project) == 3
    assert [path.name for path in elsewhere.iterdir()] == [".fusewire"]


def test_a_path_pattern_knows_the_file_in_every_spelling(project: Project) -> None:
    """Edit and Write: relative, absolute, with `..`, through a link; Read passes, and so does a neighbour."""
    project.constraint(
        "secrets",
        "circuit_breaker:\n  dedup_seconds: 0\n  violation_threshold: 12\nmatch: {path: [secrets/**, .env]}\n",
    )
    (project.root / "secrets").mkdir()
    (project.root / "src").mkdir()
    (project.root / "secrets/key").write_text("k")
    (project.root / "door").symlink_to("secrets")
    (project.root / "src/innocent").symlink_to("../secrets/key")
    root = str(project.root)

    def call(tool: str, path: str, **fields: Any) -> Answer:
        return project.hook(project.bash("", tool_name=tool, tool_input={"file_path": path}, **fields))

    for path in (
        f"{root}/secrets/key",
        f"{root}/secrets/new/file",
        f"{root}/src/../secrets/key",
        f"{root}//secrets/./key",
        "secrets/key",
        f"{root}/door/key",
        f"{root}/src/innocent",
        f"{root}/.env",
        f"{root}/src/.env",
    ):
        assert_told(call("Edit", path))
    assert_told(call("Write", "../secrets/key", cwd=f"{root}/src"))
    assert_told(call("MultiEdit", f"{root}/secrets/key"))
    notebook = project.bash("", tool_name="NotebookEdit", tool_input={"notebook_path": f"{root}/secrets/n.ipynb"})
    assert_told(project.hook(notebook))
    assert_denied(call("Write", f"{root}/secrets/key"))
    for tool, path in (
        ("Read", f"{root}/secrets/key"),
        ("Edit", f"{root}/src/secrets.py"),
        ("Write", f"{root}/secrets-of-success.md"),
        ("Edit", "/etc/secrets/key"),
        ("Grep", f"{root}/secrets"),
    ):
        assert_silent(call(tool, path))


# -- the agent cannot disarm its breaker ----------------------------------------------------------------


DISARMING = [
    "fusewire reset git-safety --reason 'go on'",
    "fusewire override git-safety --reason x",
    "fusewire config git-safety",
    "fusewire archive git-safety",
    "fusewire import forged.json",
    "fusewire doctor --acknowledge",
    "fusewire --project . reset git-safety",
    "sudo fusewire reset git-safety",
    "sudo -u ada fusewire reset git-safety",
    "env -u CLAUDECODE fusewire reset git-safety",
    "env -i PATH=/usr/bin fusewire reset git-safety",
    "CLAUDECODE= fusewire reset git-safety",
    "unset CLAUDECODE; fusewire reset git-safety",
    "bash -c 'fusewire reset git-safety'",
    'bash -lc "env -u CLAUDECODE fusewire reset git-safety"',
    "sh <<EOF\nfusewire reset git-safety\nEOF",
    "echo git-safety | xargs fusewire reset",
    "echo $(fusewire reset git-safety)",
    "timeout 10 fusewire reset git-safety &",
    "cd /tmp && /home/dev/.venv/bin/fusewire reset git-safety",
    "python -m fusewire reset git-safety",
    "python3.12 -m fusewire reset git-safety",
    ".venv/bin/python -I -m fusewire reset git-safety",
    "python3 -Im fusewire reset git-safety",
    "python3 -mfusewire reset git-safety",
    "uv run fusewire reset git-safety",
    "uvx fusewire reset git-safety",
    "fuse''wire reset git-safety",
    "'fusewire' reset git-safety",
    "FUSEWIRE_DEPTH=0 claude -p 'go on'",
    "unset FUSEWIRE_DEPTH; claude -p x",
    "(unset FUSEWIRE_DEPTH; claude -p x)",
    "x=$(FUSEWIRE_DEPTH=0 claude -p x)",
    "env --unset FUSEWIRE_DEPTH claude -p x",
    "env --unset=FUSEWIRE_DEPTH claude -p x",
    "runuser x -c 'fusewire reset tool'",
    "sg x 'fusewire reset tool'",
    "env -u FUSEWIRE_DEPTH codex exec x",
    "fusewire grant 5 --reason more",
    "echo {} > .claude/memory/circuit_breaker_config.json; fusewire reset x",
]


def test_the_agent_cannot_run_what_is_for_a_person(project: Project) -> None:
    """reset, override, config, archive, import and acknowledging, in every spelling; also without any constraint."""
    project.starts_hooks = False
    passed = []
    for number, command in enumerate(DISARMING):
        answer = project.hook(project.bash(command, session_id=f"s-{number}"))
        if answer.returncode == 0:
            passed.append(command)
            continue
        reason = assert_denied(answer)
        assert "fusewire.disarm" in reason
        assert "person" in reason
    assert passed == []


HARMLESS = [
    "fusewire status",
    "fusewire status --all --json",
    "fusewire check git-safety",
    "fusewire history git-safety",
    "fusewire record git-safety --action 'git push --force'",
    "fusewire record git-safety --action reset",
    "fusewire check config",
    "python -m fusewire check git-safety",
    "fusewire doctor",
    "grep reset fusewire.md",
    "grep -rn 'fusewire reset' docs",
    'echo "fusewire reset git-safety"',
    'git commit -m "fusewire reset"',
    "git log --grep fusewire reset",
    "cat <<EOF > notes.md\nfusewire reset git-safety\nEOF",
    "# fusewire reset git-safety",
    "pip install fusewire",
    "python -m pytest tests/test_fusewire.py -k reset",
    "echo $FUSEWIRE_DEPTH",
    "git commit -m 'unset FUSEWIRE_DEPTH=1'",
    "fusewire janitor --dry-run",
    "fusewire memory",
    "fusewire spend",
    "fusewire status --session",
]


def test_the_agent_may_look_and_may_talk_about_it(project: Project) -> None:
    """Looking at circuits passes, and so does text that merely contains such a command."""
    project.starts_hooks = False
    denied = [command for command in HARMLESS if project.hook(project.bash(command)).returncode]
    assert denied == []


def test_the_agent_cannot_edit_state_policy_or_rules(project: Project) -> None:
    """The state folder, the configuration, the mirrored files, and an existing constraint; reading them passes."""
    project.constraint(ID, FORCE_PUSH)
    root = str(project.root)
    (project.root / "link").symlink_to(".fusewire")
    own = [
        f"{root}/.fusewire/state.db",
        f"{root}/.fusewire/audit.jsonl",
        f"{root}/link/state.db",
        f"{root}/src/../.fusewire/state.db",
        ".fusewire/rules.bin",
        f"{root}/fusewire.toml",
        f"{root}/docs/constraints/.circuit-state.json",
        f"{root}/docs/constraints/.circuit-state-archive.json",
        f"{root}/docs/constraints/{ID}.md",
        f"{os.environ['XDG_CONFIG_HOME']}/fusewire/config.toml",
    ]
    passed = []
    for path in own:
        for tool in ("Edit", "Write"):
            payload = project.bash("", tool_name=tool, tool_input={"file_path": path}, session_id=path)
            answer = project.hook(payload)
            if answer.returncode == 0:
                passed.append(f"{tool} {path.removeprefix(root)}")
            else:
                assert assert_denied(answer).startswith(("BLOCKED fusewire.disarm", "BLOCKED guard.change"))
    assert_silent(project.hook(project.bash("", tool_name="Read", tool_input={"file_path": own[0]})))
    for path in ("src/fusewire.py", "docs/fusewire.md", "my.fusewire/x", "docs/fusewire.toml.md"):
        assert_silent(project.hook(project.bash("", tool_name="Edit", tool_input={"file_path": f"{root}/{path}"})))
    assert passed == []


def test_the_command_line_refuses_inside_an_agent(project: Project) -> None:
    """With CLAUDECODE=1 in the environment: exit 3, one line, nothing changed; looking is allowed."""
    project.constraint(ID, TRIPS_AT_ONCE)
    project.run("record", ID, "--action", "x")
    (project.root / "forged.json").write_text('{"git-safety": {"state": "CLOSED"}}')
    inside = {"CLAUDECODE": "1"}
    for arguments in (
        ("reset", ID, "--reason", "x"),
        ("override", ID, "--reason", "x"),
        ("config", ID),
        ("archive", ID),
        ("import", "forged.json"),
        ("doctor", "--acknowledge"),
    ):
        result = project.run(*arguments, env=inside)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (3, "", 1), arguments
        assert "person" in result.stderr
    assert project.run("status", ID, env=inside).returncode == 0
    assert project.run("history", ID, env=inside).returncode == 0
    assert project.run("check", ID, env=inside).returncode == 3
    assert project.run("record", ID, "--action", "y", env=inside).returncode == 0
    assert project.run("status", ID).stdout.splitlines()[0].endswith("OPEN")
    for variable in ("CLAUDE_CODE_ENTRYPOINT", "GEMINI_CLI", "CODEX_SANDBOX", "FUSEWIRE_AGENT"):
        assert project.run("reset", ID, env={variable: "1"}).returncode == 3


# -- text is no violation -------------------------------------------------------------------------------


TEXT = [
    'git commit -m "never git push --force again"',
    "git commit -m 'revert: git push -f'",
    'echo "git push --force"',
    "printf '%s\\n' 'git push --force'",
    "grep -rn 'git push --force' .",
    "rg 'git push -f'",
    "ls # git push --force",
    "# git push --force",
    "cat <<'EOF' > notes.md\ngit push --force\nEOF",
    "cat <<EOF | tee notes.md\ngit push -f\nEOF",
    "gh pr create --title x --body 'please do not git push --force'",
    "git push origin main",
    "git push --follow-tags",
    "git log --oneline --format=--force push",
    "mygit push --force",
]

DEEDS = [
    "git push --force",
    "git push origin main --force",
    "git push --force-with-lease",
    "git -C app push -f",
    "cd app && git push -f",
    "FOO=1 git push --force",
    "sudo git push --force",
    "timeout 60 git push --force",
    "bash -c 'git push --force'",
    "true; /usr/bin/git push --force",
    "echo $(git push --force)",
    "if true; then git push --force; fi",
    "bash <<EOF\ngit push --force\nEOF",
    "git \\\n  push --force",
    "git push '--force'",
]


def test_text_is_no_violation_and_a_deed_is_one_in_every_dress(project: Project) -> None:
    """Heredoc, commit message, echo, grep and comment pass in silence; the same words as a command are counted."""
    project.starts_hooks = False
    project.constraint(ID, "circuit_breaker:\n  dedup_seconds: 0\n  violation_threshold: 1000\n" + FORCE_PUSH)
    assert [command for command in TEXT if project.hook(project.bash(command)).stdout] == []
    assert [command for command in DEEDS if not project.hook(project.bash(command)).stdout] == []
    assert level(project) == len(DEEDS)


RARER_DEEDS = [
    "find . -name x -exec git push --force \\;",
    "bash -o pipefail -c 'git push --force'",
    "bash -euo pipefail -c 'git push --force'",
    "sh -c -- 'git push --force'",
    "bash <<< 'git push --force'",
    "time -p git push --force",
    "function publish { git push --force; }; publish",
    "sudo --user ada git push --force",
    "uv run git push --force",
]


def test_a_deed_in_a_rarer_dress_is_one_too(project: Project) -> None:
    """What runs another command as it stands is looked through: find -exec, shell options, here-strings, functions."""
    project.constraint(ID, "circuit_breaker:\n  dedup_seconds: 0\n  violation_threshold: 1000\n" + FORCE_PUSH)
    assert [command for command in RARER_DEEDS if not project.hook(project.bash(command)).stdout] == []


# -- what extends the agent -----------------------------------------------------------------------------


def assert_asked(answer: Answer) -> str:
    """Exit 0 and the question as JSON: the person decides in Claude Code's own prompt."""
    assert (answer.returncode, answer.stderr) == (0, b"")
    output = json.loads(answer.stdout)
    assert set(output) == {"hookSpecificOutput"}
    question = output["hookSpecificOutput"]
    assert set(question) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    assert (question["hookEventName"], question["permissionDecision"]) == ("PreToolUse", "ask")
    reason: str = question["permissionDecisionReason"]
    return reason


ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


def written(project: Project, path: str, **fields: Any) -> dict[str, Any]:
    given = {"file_path": os.path.join(project.root, os.path.expanduser(path)), "content": "hi\n"}
    return project.bash("", tool_name="Write", tool_input=given, **{"permission_mode": "default", **fields})


@pytest.mark.parametrize("folder", ["commands", "skills/x", "agents", "output-styles"])
def test_a_person_is_asked_about_what_extends_the_agent(project: Project, folder: str) -> None:
    """Skills and their like may be written after a question if somebody is there to answer it, else not."""
    project.starts_hooks = False
    for place in (f".claude/{folder}/note.md", f"~/.claude/{folder}/note.md"):
        payload = written(project, place)
        assert "note.md" in assert_asked(project.hook(payload, env=ATTENDED))
        for env in ({}, {"CLAUDE_CODE_SESSION_ATTENDED": "0"}, {**ATTENDED, "FUSEWIRE_DEPTH": "1"}):
            assert "no person attends this session" in assert_denied(project.hook(payload, env=env))


def test_a_question_that_the_client_may_skip_is_a_refusal(project: Project) -> None:
    """Measured: where its own rules would ask too, Claude Code without permission prompts lets the call run."""
    project.starts_hooks = False
    payload = written(project, ".claude/skills/x/SKILL.md", permission_mode="bypassPermissions")
    assert "may skip the question (bypassPermissions)" in assert_denied(project.hook(payload, env=ATTENDED))
    for mode in ("acceptEdits", "dontAsk", "auto", "plan"):
        assert_asked(project.hook({**payload, "permission_mode": mode}, env=ATTENDED))


def test_settings_hooks_and_plugins_are_never_asked_about(project: Project, tmp_path: Path) -> None:
    """Nor is a link that leads there, nor a removal, nor a shell command."""
    project.starts_hooks = False
    (project.root / ".claude/skills").mkdir(parents=True)
    (project.root / ".claude/settings.json").write_text("{}")
    (project.root / ".claude/skills/note.md").symlink_to("../settings.json")
    (project.root / ".claude/skills/here.md").write_text("text")
    os.link(project.root / ".claude/settings.json", project.root / ".claude/skills/same.md")
    for path in (
        *(".claude/settings.json", ".claude/hooks/x.sh", ".claude/plugins/x.json", "~/.claude/plugins/x.json"),
        *(".claude/skills/note.md", ".claude/skills/same.md", ".claude/skills/../settings.json", ".claude/skills"),
    ):
        assert_denied(project.hook(written(project, path), env=ATTENDED))
    assert_denied(project.hook(project.bash("echo x > .claude/skills/here.md"), env=ATTENDED))
    assert_denied(project.hook(project.bash("rm .claude/skills/here.md"), env=ATTENDED))


def test_a_change_that_a_person_has_allowed_stays(project: Project) -> None:
    """What was asked about and then written is not taken for damage by the check after the call."""
    project.starts_hooks = False
    payload = written(project, ".claude/skills/x/SKILL.md")
    assert_asked(project.hook(payload, env=ATTENDED))
    path = project.root / ".claude/skills/x/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("hi\n")
    after = {**payload, "hook_event_name": "PostToolUse", "tool_response": {"type": "create"}}
    answer = project.hook(after, env=ATTENDED)
    assert (answer.returncode, path.read_text()) == (0, "hi\n")
    assert b"continue" not in answer.stdout
    assert_silent(project.hook(project.bash("ls"), env=ATTENDED))


def test_a_question_of_the_guard_does_not_lift_a_constraint(project: Project) -> None:
    """The stricter answer counts."""
    project.constraint(ID, f"match:\n  - tool: Write\n{TRIPS_AT_ONCE}")
    project.starts_hooks = False
    payload = written(project, ".claude/skills/x/SKILL.md")
    project.hook(payload, env=ATTENDED)
    assert ID in assert_denied(project.hook(payload, env=ATTENDED))
