"""The guard as an agent meets it: the real hook, before and after every call, over whole sessions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusewire.guard.baseline import unpack
from fusewire.guard.calls import folder_of
from tests.helpers import SOURCE
from tests.helpers.decisions import without_code
from tests.helpers.project import Project

Answer = subprocess.CompletedProcess[bytes]

FILES = {
    "AGENTS.md": "# Agents\n",
    "CLAUDE.md": "# Claude\n",
    "IMPLEMENTATION_PLAN.md": "# Plan\n",
    "specs/a.md": "a\n",
    "specs/deep/b.md": "b\n",
    "memory/lessons.md": "lessons\n",
    ".ralphrc": "LOOPS=3\n",
    ".ralph/state.json": "{}\n",
    ".claude/settings.json": "{}\n",
    "src/app.py": "app\n",
    "src/specs/free.md": "free\n",
    "README.md": "readme\n",
    "Makefile": "all:\n\ttrue\n",
}
MAKE = "make all"
SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with every protected file."""
    for name, text in FILES.items():
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project.starts_hooks = False
    return project


def call(project: Project, tool: str, tool_input: dict[str, Any], event: str = "PreToolUse", **more: Any) -> Answer:
    """One hook call for a tool, before or after it."""
    payload = project.bash("", hook_event_name=event, tool_name=tool, tool_input=tool_input, **more)
    if event != "PreToolUse":
        payload["tool_response"] = {"stdout": "", "stderr": "", "interrupted": False}
    return project.hook(payload)


def before(project: Project, command: str = MAKE, **more: Any) -> Answer:
    return call(project, "Bash", {"command": command}, **more)


def after(project: Project, command: str = MAKE, event: str = "PostToolUse", **more: Any) -> Answer:
    return call(project, "Bash", {"command": command}, event, **more)


def says(project: Project, session: str = SESSION) -> Answer:
    """A person speaks."""
    return project.hook({"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": "go on"})


def assert_silent(answer: Answer) -> None:
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"", b"")


def assert_denied(answer: Answer, *words: str) -> str:
    """Exit 2, the reason on stderr and in the JSON, with a next step."""
    assert answer.returncode == 2, (answer.stdout, answer.stderr)
    reason = answer.stderr.decode().strip()
    output = json.loads(answer.stdout)
    assert set(output) == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    assert reason.startswith("BLOCKED ")
    assert "\nNext: " in reason
    for word in words:
        assert word in reason, reason
    return reason


def assert_halts(answer: Answer, *words: str, event: str = "PostToolUse") -> str:
    """`continue` is false, and both the agent and the person are told why."""
    assert (answer.returncode, answer.stderr) == (0, b"")
    output = json.loads(answer.stdout)
    assert output["continue"] is False
    text: str = output["stopReason"]
    assert output["systemMessage"] == text
    assert output["hookSpecificOutput"] == {"hookEventName": event, "additionalContext": text}
    assert text.startswith("BLOCKED guard.integrity: ")
    for word in (*words, "Next: "):
        assert word in text, text
    return without_code(text)


def assert_told(answer: Answer, *words: str, event: str = "PostToolUse") -> str:
    """The agent goes on and is told."""
    assert (answer.returncode, answer.stderr) == (0, b"")
    output = json.loads(answer.stdout)
    assert "continue" not in output
    assert output["hookSpecificOutput"]["hookEventName"] == event
    text: str = output["hookSpecificOutput"]["additionalContext"]
    for word in words:
        assert word in text, text
    return text


def manifest(project: Project) -> Path:
    return Path(folder_of(str(project.root))) / "manifest.bin"


def recorded(project: Project) -> set[str]:
    return set(unpack(manifest(project).read_bytes())["files"])


# -- before: shell commands -------------------------------------------------------------------------------

#: command -> (rule, path that the reason names)
DENIED = {
    "rm AGENTS.md": ("guard.rm", "AGENTS.md"),
    "rm -rf specs": ("guard.rm", "specs"),
    "rm -rf *": ("guard.rm", "AGENTS.md"),
    "cd specs && rm a.md": ("guard.rm", "specs/a.md"),
    "true; rm -f ./specs/../CLAUDE.md": ("guard.rm", "CLAUDE.md"),
    "mv memory old": ("guard.mv", "memory"),
    "echo done > IMPLEMENTATION_PLAN.md": ("guard.redirect", "IMPLEMENTATION_PLAN.md"),
    "echo x >> AGENTS.md": ("guard.redirect", "AGENTS.md"),
    "cp README.md AGENTS.md": ("guard.cp", "AGENTS.md"),
    "sed -i s/a/b/ specs/a.md": ("guard.sed", "specs/a.md"),
    "echo x | tee -a CLAUDE.md": ("guard.tee", "CLAUDE.md"),
    "find specs -name '*.md' -delete": ("guard.find", "specs/a.md"),
    "git clean -fdx": ("guard.git.clean", "AGENTS.md"),
    "truncate -s 0 memory/lessons.md": ("guard.truncate", "memory/lessons.md"),
    "python3 -c \"import os; os.remove('AGENTS.md')\"": ("guard.python", "AGENTS.md"),
    "bash -c 'rm -r specs'": ("guard.rm", "specs"),
    "ls | xargs rm -rf": ("guard.rm", "AGENTS.md"),
    "sudo rm .ralphrc": ("guard.rm", ".ralphrc"),
    "rm -rf .ralph": ("guard.rm", ".ralph"),
    # its own files
    "rm -rf .fusewire": ("guard.rm", ".fusewire"),
    "echo '' > fusewire.toml": ("guard.redirect", "fusewire.toml"),
    "sed -i x docs/constraints/r.md": ("guard.sed", "docs/constraints/r.md"),
    "echo '{\"disableAllHooks\":true}' > .claude/settings.json": ("guard.redirect", ".claude/settings.json"),
    "echo '{}' > .claude/settings.local.json": ("guard.redirect", ".claude/settings.local.json"),
    "echo '{\"disableAllHooks\":true}' > ~/.claude/settings.json": ("guard.redirect", ".claude/settings.json"),
    'cp /dev/null "$HOME/.claude/settings.json"': ("guard.cp", ".claude/settings.json"),
    "rm ~/.config/fusewire/config.toml": ("guard.rm", ".config/fusewire/config.toml"),
    "echo x >> $HOME/.config/fusewire/config.toml": ("guard.redirect", ".config/fusewire/config.toml"),
    "echo '{}' > .codex/hooks.json": ("guard.redirect", ".codex/hooks.json"),
    f"rm -rf {SOURCE}/guard": ("guard.rm", "fusewire/guard"),
    f"sed -i d {SOURCE}/hook.py": ("guard.sed", "hook.py"),
}


@pytest.mark.parametrize("command", DENIED)
def test_a_command_that_changes_a_protected_file_is_denied(shop: Project, command: str) -> None:
    """Exit 2 and JSON, with the rule, the path and a next step; nothing is recorded for a call that does not run."""
    rule, path = DENIED[command]
    shop.constraint("r")
    (shop.root / "docs/constraints/r.md").write_text("---\nid: r\n---\n")
    reason = assert_denied(before(shop, command), path)
    assert reason.startswith(f"BLOCKED {rule}: ")
    assert not manifest(shop).exists()


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat AGENTS.md specs/a.md",
        "grep -rn 'rm -rf specs' .",
        "git commit -m 'rm -rf specs'",
        "echo 'rm -rf specs'",
        "cat <<'EOF'\nrm -rf specs\nEOF",
        "cp -r specs /tmp/copy-of-specs",
        "rm -rf build node_modules",
        "rm -rf src/specs",
        "echo x > README.md",
        "sed s/a/b/ specs/a.md > out.md",
        "git add -A && git status",
        "git clean -fdxn",
        "pytest -q > out.txt 2>&1",
        "find . -name '*.pyc' -delete",
        "python3 -c \"print(open('AGENTS.md').read())\"",
        'for f in specs/*.md; do wc -l "$f"; done',
        "tar czf /tmp/specs.tgz specs",
        "mkdir -p build && echo x > build/AGENTS.md",
        MAKE,
    ],
)
def test_a_harmless_command_passes_in_silence(shop: Project, command: str) -> None:
    """Reading, mentioning, copying out, and everything that is not protected; before it and after it."""
    assert_silent(before(shop, command))
    assert_silent(after(shop, command))


def test_the_folder_of_the_payload_is_where_a_command_runs(shop: Project) -> None:
    """`rm a.md` is harmless in the project's folder and is not in specs."""
    shop.starts_hooks = True
    assert_silent(before(shop, "rm -f a.md"))
    assert_denied(before(shop, "rm -f a.md", cwd=str(shop.root / "specs")), "specs/a.md")
    assert_denied(before(shop, "rm ../AGENTS.md", cwd=str(shop.root / "src")), "AGENTS.md")
    assert_silent(before(shop, "rm -rf specs", cwd=str(shop.root / "src")))


def test_claude_project_dir_decides_which_project_is_guarded(shop: Project, tmp_path: Path) -> None:
    """The agent may be anywhere: what the project protects is protected, the same names elsewhere are free."""
    shop.starts_hooks = True
    other = tmp_path / "other"
    (other / "specs").mkdir(parents=True)
    (other / "specs/a.md").write_text("free\n")
    assert_silent(before(shop, "rm -rf specs", cwd=str(other)))
    assert_denied(before(shop, f"rm -rf {shop.root}/specs", cwd=str(other)), "specs")
    payload = shop.bash("rm -rf specs", cwd=str(other))
    assert_denied(shop.hook(payload, env={"CLAUDE_PROJECT_DIR": str(other)}), "specs")
    payload = shop.bash("rm -rf specs", cwd=str(shop.root))
    assert_denied(shop.hook(payload, env={"CLAUDE_PROJECT_DIR": ""}), "specs")


def test_a_subagent_is_judged_like_its_session(shop: Project) -> None:
    """agent_id and agent_type change nothing."""
    shop.starts_hooks = True
    inside = {"agent_id": "af9343ffae0bf4732", "agent_type": "general-purpose"}
    assert_denied(before(shop, "rm -rf specs", **inside), "guard.rm")
    assert_silent(before(shop, "rm -rf build", **inside))


def test_a_reason_stays_short_and_names_at_most_a_few_files(shop: Project) -> None:
    """A thousand protected files in one command make no endless text."""
    for number in range(1000):
        (shop.root / f"specs/{number}-{'x' * 80}.md").write_text("x")
    reason = assert_denied(before(shop, "rm specs/*.md"), "guard.rm", " more")
    assert len(reason) < 9000


# -- before: tools ------------------------------------------------------------------------------------------

EDITS = {
    "Edit": {"old_string": "a", "new_string": "b"},
    "Write": {"content": "new\n"},
    "MultiEdit": {"edits": [{"old_string": "a", "new_string": "b"}]},
    "NotebookEdit": {"new_source": "x"},
}


def edit_of(project: Project, tool: str, path: str, **fields: Any) -> dict[str, Any]:
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"
    return {name: path if path[0] in "/~" else str(project.root / path), **EDITS.get(tool, {}), **fields}


@pytest.mark.parametrize("tool", EDITS)
def test_edit_tools_may_update_documents_but_not_the_configuration(shop: Project, tool: str) -> None:
    """Documents and everything else pass in silence; what only a person may change is denied with its path."""
    shop.constraint("r")
    for path in ("AGENTS.md", "specs/a.md", "specs/new.md", "memory/lessons.md", "src/app.py", "src/.claude/x"):
        assert_silent(call(shop, tool, edit_of(shop, tool, path)))
    for path in (".ralph/state.json", ".ralphrc", ".claude/settings.json", ".claude/new.json"):
        assert_denied(call(shop, tool, edit_of(shop, tool, path)), "guard.change", path, tool, "a person")
    for path in (".fusewire/x", "fusewire.toml", "docs/constraints/r.md", "docs/constraints/new.md"):
        assert_denied(call(shop, tool, edit_of(shop, tool, path)), path, "person")
    for path in ("~/.claude/settings.json", os.path.expanduser("~/.config/fusewire/config.toml"), f"{SOURCE}/hook.py"):
        assert_denied(call(shop, tool, edit_of(shop, tool, path)), os.path.basename(path), "person")


def test_a_relative_path_is_one_from_the_folder_of_the_payload(shop: Project) -> None:
    """Dots, links and relative names lead to the same answer."""
    (shop.root / "link").symlink_to(".claude")
    for cwd, path in ((".", ".ralphrc"), ("src", "../.ralphrc"), (".", "src/../.ralph/x"), (".", "link/settings.json")):
        answer = call(shop, "Edit", {"file_path": path}, cwd=os.path.normpath(shop.root / cwd))
        assert_denied(answer, "guard.change")
    assert_silent(call(shop, "Edit", {"file_path": ".ralphrc"}, cwd=str(shop.root / "src")))


@pytest.mark.parametrize("content", ["", " ", "\n\n \t\n"])
def test_a_document_must_not_be_emptied_by_writing_nothing(shop: Project, content: str) -> None:
    """Write without content is denied on documents; elsewhere it is nobody's business."""
    assert_denied(call(shop, "Write", edit_of(shop, "Write", "AGENTS.md", content=content)), "guard.empty", "AGENTS.md")
    assert_denied(call(shop, "Write", edit_of(shop, "Write", ".ralphrc", content=content)), ".ralphrc")
    assert_silent(call(shop, "Write", edit_of(shop, "Write", "src/__init__.py", content=content)))
    assert_silent(call(shop, "Write", edit_of(shop, "Write", "AGENTS.md", content="x")))


@pytest.mark.parametrize(
    ("tool", "tool_input", "rule"),
    [
        ("mcp__fs__write_file", {"path": "src/app.py", "content": "x"}, ""),
        ("mcp__fs__write_file", {"path": "AGENTS.md", "content": "x"}, ""),
        ("mcp__fs__write_file", {"path": "AGENTS.md", "content": ""}, "guard.empty"),
        ("mcp__fs__write_file", {"path": ".ralphrc", "content": "x"}, "guard.change"),
        ("mcp__fs__edit_file", {"path": ".claude/settings.json", "edits": []}, "guard.change"),
        ("mcp__fs__create_file", {"file_path": ".claude/x.json"}, "guard.change"),
        ("mcp__serena__replace_content", {"relative_path": ".ralphrc"}, "guard.change"),
        ("mcp__fs__delete_file", {"path": "AGENTS.md"}, "guard.delete"),
        ("mcp__fs__delete_file", {"path": "src/app.py"}, ""),
        ("mcp__fs__delete_directory", {"path": "specs"}, "guard.delete"),
        ("mcp__fs__delete_directory", {"path": "specs/deep"}, "guard.delete"),
        ("mcp__fs__delete_directory", {"path": "."}, "guard.delete"),
        ("mcp__fs__delete_directory", {"path": "src"}, ""),
        ("mcp__fs__remove_file", {"path": "AGENTS.md"}, "guard.delete"),
        ("mcp__fs__rename_file", {"path": "specs/a.md", "new_name": "b.md"}, "guard.delete"),
        ("mcp__fs__move_file", {"path": "specs/a.md", "to": "x"}, "guard.delete"),
        ("mcp__fs__move_file", {"source": "AGENTS.md", "destination": "old.md"}, "guard."),
        ("mcp__fs__move_file", {"source": "README.md", "destination": "AGENTS.md"}, "guard."),
        ("mcp__fs__move_file", {"source": "README.md", "destination": "old.md"}, ""),
        ("mcp__fs__delete_files", {"paths": ["README.md", "AGENTS.md"]}, "guard.delete"),
        ("mcp__fs__read_file", {"path": "AGENTS.md"}, ""),
        ("mcp__fs__list_directory", {"path": ".claude"}, ""),
        ("mcp__shell__run", {"command": "rm -rf specs"}, "guard.rm"),
        ("mcp__shell__run", {"command": "rm", "args": ["-rf", "specs"]}, "guard.rm"),
        ("mcp__shell__run", {"command": ["rm", "-rf", "specs"]}, "guard.rm"),
        ("mcp__shell__run", {"cmd": "ls specs"}, ""),
    ],
)
def test_mcp_tools_are_judged_by_their_names_and_their_inputs(
    shop: Project, tool: str, tool_input: dict[str, Any], rule: str
) -> None:
    """They may update documents; deleting, moving away and emptying is denied, and so is the configuration."""
    answer = call(shop, tool, tool_input)
    if rule:
        assert_denied(answer, f"BLOCKED {rule}")
    else:
        assert_silent(answer)


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": "AGENTS.md"}),
        ("Read", {"file_path": ".claude/settings.json"}),
        ("Grep", {"pattern": "x", "path": ".ralph"}),
        ("Glob", {"pattern": "**/*.md", "path": "specs"}),
        ("WebFetch", {"url": "https://example.com", "prompt": "rm -rf specs"}),
        ("TodoWrite", {"todos": [{"content": "rm -rf specs"}]}),
        ("Task", {"prompt": "rm -rf specs", "description": "x", "subagent_type": "y"}),
    ],
)
def test_reading_tools_pass_and_leave_no_trace(shop: Project, tool: str, tool_input: dict[str, Any]) -> None:
    """Before and after: silence, and no snapshot is taken for them."""
    assert_silent(call(shop, tool, tool_input))
    assert_silent(call(shop, tool, tool_input, "PostToolUse"))
    assert not manifest(shop).exists()


# -- after: the backstop ------------------------------------------------------------------------------------


def test_the_first_opaque_call_takes_a_snapshot_and_looking_ones_do_not(shop: Project) -> None:
    """`ls`, `git status`, `grep "x" file` leave nothing behind; `make` records every protected file."""
    shop.starts_hooks = True
    for command in ("ls", "git status", "cat AGENTS.md | head -5", 'grep -n "x" AGENTS.md', "cd specs && ls"):
        assert_silent(before(shop, command))
        assert_silent(after(shop, command))
        assert not manifest(shop).exists(), command
    assert_silent(before(shop))
    wanted = {name for name in FILES if name.split("/")[0] not in ("src", "README.md", "Makefile")}
    assert recorded(shop) >= wanted
    assert not any(name.startswith(("src", "README")) for name in recorded(shop))
    assert not (shop.root / ".fusewire/guard").exists()
    assert_silent(after(shop))


def test_a_file_that_vanishes_is_restored_and_the_agent_is_halted(shop: Project) -> None:
    """Byte for byte and with its mode; `status` and `doctor` show it until a person has read it."""
    shop.starts_hooks = True
    victim = shop.root / "specs/a.md"
    victim.write_bytes(b"\x00\xff exact \r\n")
    victim.chmod(0o640)
    before(shop)
    victim.unlink()
    assert_halts(after(shop), "specs/a.md is gone", MAKE, "specs/a.md: restored")
    assert victim.read_bytes() == b"\x00\xff exact \r\n"
    assert victim.stat().st_mode & 0o777 == 0o640
    for command in ("status", "doctor"):
        shown = shop.run(command)
        assert "guard.integrity" in shown.stdout + shown.stderr, command
        assert "specs/a.md" in shown.stdout + shown.stderr, command
    assert shop.run("doctor", "--acknowledge").returncode == 0
    shown = shop.run("status")
    assert "guard.integrity" not in shown.stderr
    assert "guard.integrity: specs/a.md is gone" in shown.stdout, "the agent is still halted"


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        ("rm -r specs", "are gone"),
        (": > AGENTS.md", "AGENTS.md was emptied"),
        ("rm AGENTS.md && mkdir AGENTS.md", "AGENTS.md was replaced by something else"),
        ("rm AGENTS.md && ln -s README.md AGENTS.md", "AGENTS.md was replaced by something else"),
        ("mv specs old", "are gone"),
        ("rm -r .ralph .claude", "are gone"),
    ],
)
def test_every_kind_of_loss_is_undone(shop: Project, damage: str, word: str) -> None:
    """Deleted, emptied, replaced or moved away: all protected files are what they were."""
    before(shop)
    subprocess.run(["bash", "-c", damage], cwd=shop.root, check=True)
    assert_halts(after(shop), word)
    for name, text in FILES.items():
        path = shop.root / name
        assert not path.is_symlink()
        assert path.read_text() == text
    assert shop.run("guard", "verify").returncode == 0


def test_a_changed_document_is_reported_with_a_diff_and_stays(shop: Project) -> None:
    """The agent goes on and is told once; the earlier version is one command away, and so is the way back."""
    before(shop)
    (shop.root / "AGENTS.md").write_text("# Agents\nchanged by make\n")
    assert_told(after(shop), "AGENTS.md", "+changed by make", "fusewire guard restore AGENTS.md")
    assert_silent(after(shop))
    assert_silent(before(shop))
    assert "changed by make" in (shop.root / "AGENTS.md").read_text()
    (shop.root / "CLAUDE.md").write_text("# also\n")
    text = assert_told(after(shop), "CLAUDE.md", "-# Claude", "+# also")
    assert "AGENTS.md" not in text
    assert shop.run("guard", "restore", "AGENTS.md").returncode == 0
    assert (shop.root / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    assert_silent(after(shop))
    assert shop.run("guard", "restore", "AGENTS.md").returncode == 0
    assert "changed by make" in (shop.root / "AGENTS.md").read_text()


@pytest.mark.parametrize("name", [".ralphrc", ".claude/settings.json"])
def test_changed_configuration_is_restored_and_the_agent_is_halted(shop: Project, name: str) -> None:
    """A script of the agent may not change what only a person may; what it wrote is kept."""
    before(shop)
    (shop.root / name).write_text("by a script\n")
    text = assert_halts(after(shop), f"{name} was changed", f"{name}: restored (what was there is kept in ")
    assert (shop.root / name).read_text() == FILES[name]
    kept = Path(text.partition("is kept in ")[2].partition(")")[0])
    assert kept.read_text() == "by a script\n"


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
def test_a_permitted_edit_is_the_new_version(shop: Project, tool: str) -> None:
    """What an edit tool has written is no finding afterwards, and it is what comes back when it is lost."""
    before(shop)
    for name in ("AGENTS.md", "specs/new.md"):
        tool_input = edit_of(shop, tool, name)
        assert_silent(call(shop, tool, tool_input))
        (shop.root / name).write_text(f"edited {tool}\n")
        assert_silent(call(shop, tool, tool_input, "PostToolUse"))
    assert_silent(after(shop))
    for name in ("AGENTS.md", "specs/new.md"):
        (shop.root / name).unlink()
    assert_halts(after(shop), "AGENTS.md", "specs/new.md")
    for name in ("AGENTS.md", "specs/new.md"):
        assert (shop.root / name).read_text() == f"edited {tool}\n"


def test_an_edit_of_one_file_permits_no_other(shop: Project) -> None:
    """A file that vanished in the meantime is found after any tool that changes files."""
    before(shop)
    (shop.root / "AGENTS.md").write_text("edited\n")
    (shop.root / "specs/a.md").unlink()
    assert_halts(call(shop, "Edit", edit_of(shop, "Edit", "AGENTS.md"), "PostToolUse"), "specs/a.md")
    assert (shop.root / "AGENTS.md").read_text() == "edited\n"
    assert (shop.root / "specs/a.md").read_text() == "a\n"


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
@pytest.mark.parametrize("damage", ["gone", "emptied"])
def test_an_edit_tool_does_not_make_a_loss_right(shop: Project, event: str, damage: str) -> None:
    """A document that is gone or empty after an edit of it is restored: no tool may delete or empty one."""
    before(shop)
    victim = shop.root / "AGENTS.md"
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_text("")
    assert_halts(call(shop, "Edit", edit_of(shop, "Edit", "AGENTS.md"), event), "AGENTS.md", event=event)
    assert victim.read_text() == FILES["AGENTS.md"]


def batch(project: Project, *calls: tuple[str, dict[str, Any]], **more: Any) -> Answer:
    """PostToolBatch: all calls of one reply."""
    payload = project.bash("", hook_event_name="PostToolBatch", **more)
    for field in ("tool_name", "tool_input", "tool_use_id"):
        del payload[field]
    payload["tool_calls"] = [{"tool_name": tool, "tool_input": tool_input} for tool, tool_input in calls]
    return project.hook(payload)


def test_a_batch_is_compared_as_a_whole(shop: Project) -> None:
    """Edits in it are permitted, losses are restored and named with the commands; looking ones are not compared."""
    shop.starts_hooks = True
    before(shop)
    edit = ("Edit", edit_of(shop, "Edit", "AGENTS.md"))
    make = ("Bash", {"command": MAKE})
    (shop.root / "AGENTS.md").write_text("edited\n")
    assert_silent(batch(shop, edit, make))
    assert_silent(batch(shop, ("Read", {"file_path": "AGENTS.md"}), ("Bash", {"command": "ls"})))
    (shop.root / "specs/a.md").unlink()
    text = assert_halts(batch(shop, make, ("Bash", {"command": "pytest -q"})), "specs/a.md", event="PostToolBatch")
    assert MAKE in text
    assert (shop.root / "specs/a.md").exists()
    says(shop)
    (shop.root / "CLAUDE.md").write_text("changed\n")
    assert_told(batch(shop, make), "CLAUDE.md", event="PostToolBatch")


@pytest.mark.parametrize("command", ["./tidy -rf build", "git diff", "echo LS | tr A-Z a-z | sh", "python3 release.py"])
def test_what_may_run_something_else_is_compared(shop: Project, command: str) -> None:
    """The words change nothing, but the program that they run may: what it removed is restored."""
    assert_silent(before(shop, command))
    (shop.root / "specs/a.md").unlink()
    assert_halts(after(shop, command), "specs/a.md")
    assert (shop.root / "specs/a.md").exists()


def test_a_batch_without_sense_passes(shop: Project) -> None:
    """No list, no calls, calls that are none: nothing to compare by name, and no crash."""
    before(shop)
    for calls in (None, [], "x", [1, None, {}], [{"tool_name": 5, "tool_input": {"command": 7}}]):
        payload = shop.bash("", hook_event_name="PostToolBatch", tool_calls=calls)
        assert_silent(shop.hook(payload))


# -- a halted session ---------------------------------------------------------------------------------------


def halted(shop: Project, event: str = "PostToolUseFailure", session: str = SESSION) -> str:
    """A session that lost a file; behind a failed call Claude Code ignores the halt."""
    before(shop, session_id=session)
    (shop.root / "specs/a.md").unlink()
    return assert_halts(after(shop, event=event, session_id=session), "specs/a.md", event=event)


def assert_halted_before(answer: Answer, text: str) -> None:
    """Refused and halted at once."""
    assert answer.returncode == 2
    output = json.loads(answer.stdout)
    assert output["continue"] is False
    assert without_code(output["stopReason"]) == text
    assert output["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert without_code(answer.stderr.decode().strip()) == text


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_a_halted_session_stays_halted_until_a_person_speaks(shop: Project, event: str) -> None:
    """Whatever may change something is refused with `continue: false`; looking is free; a prompt lifts it."""
    text = halted(shop, event)
    for _ in range(2):
        assert_halted_before(before(shop), text)
    assert_halted_before(before(shop, "rm -rf build"), text)
    assert_halted_before(call(shop, "Edit", edit_of(shop, "Edit", "src/app.py")), text)
    assert_silent(before(shop, "ls -la"))
    assert_silent(before(shop, "git status"))
    assert_silent(call(shop, "Read", {"file_path": "AGENTS.md"}))
    assert_silent(says(shop))
    assert_silent(before(shop))
    assert_silent(after(shop))


def test_another_session_is_not_halted_and_begins_anew(shop: Project) -> None:
    """A person started it."""
    halted(shop)
    assert_silent(before(shop, session_id="second"))
    assert_silent(before(shop, session_id="second"))


def test_a_persons_snapshot_lifts_the_halt(shop: Project) -> None:
    """`fusewire guard snapshot` at the terminal, and the agent may go on."""
    text = halted(shop)
    assert_halted_before(before(shop), text)
    assert shop.run("guard", "snapshot").returncode == 0
    assert_silent(before(shop))


def test_a_new_session_starts_from_what_is_there(shop: Project) -> None:
    """A person deleted, emptied and changed files between two sessions: no halt, nothing comes back."""
    before(shop)
    after(shop)
    (shop.root / "CLAUDE.md").unlink()
    (shop.root / "AGENTS.md").write_text("")
    (shop.root / "specs/a.md").write_text("a person's\n")
    assert_silent(before(shop, session_id="second"))
    assert_silent(after(shop, session_id="second"))
    assert not (shop.root / "CLAUDE.md").exists()
    assert (shop.root / "AGENTS.md").read_text() == ""
    assert (shop.root / "specs/a.md").read_text() == "a person's\n"


def test_two_sessions_at_once_do_not_hide_each_others_losses(shop: Project) -> None:
    """While one session's call runs, another session makes its first call: the loss is still found and undone."""
    before(shop, session_id="one")
    (shop.root / "specs/a.md").unlink()
    before(shop, session_id="two")
    assert_halts(after(shop, session_id="one"), "specs/a.md")
    assert (shop.root / "specs/a.md").read_text() == "a\n"


def test_the_halt_is_that_of_the_session_which_lost_the_file(shop: Project) -> None:
    """With two sessions at work, the guilty one stays halted and the other one goes on."""
    before(shop, session_id="one")
    before(shop, session_id="two")
    (shop.root / "specs/a.md").unlink()
    text = assert_halts(after(shop, event="PostToolUseFailure", session_id="one"), event="PostToolUseFailure")
    assert_silent(before(shop, session_id="two"))
    assert_halted_before(before(shop, session_id="one"), text)


def test_an_agent_may_not_answer_its_own_hook(shop: Project) -> None:
    """A payload that says a person spoke, or that a session begins, is for the agent's program to send."""
    prompt = '{"hook_event_name":"UserPromptSubmit","session_id":"x"}'
    for program in (
        "fusewire hook claude",
        "python3 -m fusewire hook claude",
        f"python3 -I -S {SOURCE}/hook.py claude",
    ):
        assert_denied(before(shop, f"echo '{prompt}' | {program}"), "person")


# -- odd circumstances --------------------------------------------------------------------------------------


def test_a_folder_with_nothing_to_protect_keeps_its_sessions_only(tmp_path: Path) -> None:
    """No git, no protected file: calls pass, and nothing is left behind but what the session's breakers count."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "x.txt").write_text("x")
    bare = Project(folder)
    for command in (MAKE, "ls", "rm -rf build", "echo x > y.txt"):
        assert_silent(before(bare, command))
        assert_silent(after(bare, command))
    assert_silent(call(bare, "Write", {"file_path": str(folder / "y.txt"), "content": "y"}))
    assert_silent(says(bare))
    assert sorted(path.name for path in folder.iterdir()) == [".fusewire", "x.txt"]


def test_a_folder_without_git_is_guarded_where_it_has_protected_files(tmp_path: Path) -> None:
    """A plan in a bare folder is recorded and restored like any other."""
    (tmp_path / "AGENTS.md").write_text("plan\n")
    bare = Project(tmp_path)
    assert_denied(before(bare, "rm AGENTS.md"), "guard.rm")
    assert_silent(before(bare))
    (tmp_path / "AGENTS.md").unlink()
    assert_halts(after(bare), "AGENTS.md")
    assert (tmp_path / "AGENTS.md").read_text() == "plan\n"


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure", "PostToolBatch", "UserPromptSubmit"])
def test_bad_payloads_after_a_call_do_not_crash(shop: Project, event: str) -> None:
    """Missing fields and fields of wrong types: an answer that is empty or JSON, no traceback, no hanging."""
    good = shop.bash(MAKE, hook_event_name=event)
    for change in (
        {"tool_input": None},
        {"tool_input": []},
        {"tool_input": {}},
        {"tool_input": {"command": 5}},
        {"tool_name": None},
        {"tool_name": 7},
        {"session_id": 5},
        {"cwd": None},
        {"cwd": "/no/such/folder"},
        {"tool_name": "Edit", "tool_input": {"file_path": "a\0b"}},
        {"tool_name": "Edit", "tool_input": {"file_path": "x" * 5000}},
    ):
        answer = shop.hook({**good, **change})
        assert b"Traceback" not in answer.stderr
        assert b"fusewire.failure" not in answer.stderr + answer.stdout, change
        assert answer.returncode in (0, 2)
        assert not answer.stdout or json.loads(answer.stdout)


@pytest.mark.parametrize("damage", [b"", b"garbage", b'{"format": 1}', b"\xff\xfe", b"[]"])
def test_a_broken_manifest_is_no_crash_and_does_not_stay(shop: Project, damage: bytes) -> None:
    """It is set aside; the next session records anew and is guarded again."""
    before(shop)
    manifest(shop).write_bytes(damage)
    for answer in (after(shop), before(shop), after(shop)):
        assert answer.returncode == 0
        assert b"Traceback" not in answer.stderr
    assert_silent(before(shop, session_id="second"))
    assert "AGENTS.md" in recorded(shop)
    (shop.root / "AGENTS.md").unlink()
    assert_halts(after(shop, session_id="second"), "AGENTS.md")


def test_a_broken_manifest_is_told(shop: Project) -> None:
    """The agent's person hears that the protected files cannot be compared; silence would look like health."""
    before(shop)
    manifest(shop).write_bytes(b"garbage")
    (shop.root / "AGENTS.md").unlink()
    assert_told(after(shop), "manifest")


def test_a_manifest_that_is_gone_is_recorded_anew_within_the_session(shop: Project) -> None:
    """Without a snapshot nothing can be compared, so the next call that may change something takes one."""
    before(shop)
    manifest(shop).unlink()
    assert after(shop).returncode == 0
    assert_silent(before(shop))
    assert "AGENTS.md" in recorded(shop)


def test_eight_first_calls_at_once_leave_one_readable_snapshot(shop: Project) -> None:
    """An agent starts its calls in parallel: all are answered in silence, and a loss is found afterwards."""
    for number in range(200):
        (shop.root / f"specs/{number}.md").write_text(f"{number}\n")
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(shop.root)}
    words = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) for _ in range(8)]
    payload = json.dumps(shop.bash(MAKE)).encode()
    for process in running:
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.flush()
    answers = [process.communicate(timeout=60) for process in running]
    assert [(process.returncode, *answer) for process, answer in zip(running, answers, strict=True)] == [
        (0, b"", b"")
    ] * 8
    assert len([name for name in recorded(shop) if name.startswith("specs/")]) == 202
    assert list(manifest(shop).parent.glob("*corrupt*")) == []
    (shop.root / "specs/7.md").unlink()
    assert_halts(after(shop), "specs/7.md")
    assert shop.run("guard", "verify").returncode == 0


def test_a_state_folder_that_cannot_be_written_lets_calls_pass_but_the_guard_still_says_no(shop: Project) -> None:
    """A file in the place of .fusewire: no backstop, no crash, and a forbidden command is denied all the same."""
    shop.starts_hooks = True
    (shop.root / ".fusewire").write_text("in the way")
    assert_denied(before(shop, "rm -rf specs"), "guard.rm")
    for answer in (before(shop), after(shop), says(shop)):
        assert answer.returncode == 0
        assert b"Traceback" not in answer.stderr


def test_the_verdict_holds_when_the_configuration_is_broken(shop: Project) -> None:
    """A fusewire.toml that is no TOML leaves the defaults in force."""
    shop.starts_hooks = True
    (shop.root / "fusewire.toml").write_text("[guard\n")
    assert_denied(before(shop, "rm AGENTS.md"), "guard.rm")
    assert_silent(before(shop))


def test_an_installation_inside_the_project_is_protected_like_any_other(project: Project) -> None:
    """What runs is not for the agent to change, also where it is in the project's own virtual environment."""
    home = project.root / ".venv/lib/python3.11/site-packages"
    shutil.copytree(SOURCE, home / "fusewire", ignore=shutil.ignore_patterns("__pycache__"))
    hook = home / "fusewire/hook.py"
    payload = project.bash("", tool_name="Write", tool_input={"file_path": str(hook), "content": "pass\n"})
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(hook), "claude"],
        input=json.dumps(payload).encode(),
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        check=False,
    )
    assert answer.returncode == 2
    assert b"hook.py" in answer.stderr
