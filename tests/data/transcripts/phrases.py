"""What tools are asked and what they answer, in the words of the real ones: pytest, git, npm, Claude Code itself."""

from __future__ import annotations

from recorded import ROOT, Call, Session


def bash(command: str, result: str = "", *, failed: bool = False, takes: float = 0.8, code: int = 1) -> Call:
    """Claude Code puts the exit code in front of what a failed command printed."""
    text = f"Exit code {code}\n{result}" if failed else result or "(Bash completed with no output)"
    return Call("Bash", {"command": command, "description": "Run a command"}, text, failed, takes)


def read(path: str, text: str = "", **where: int) -> Call:
    lines = (
        text or f"# {path}\nfrom shop import basket\n\n\ndef total(prices):\n    return sum(prices)\n"
    ).splitlines()
    start = where.get("offset", 1)
    shown = "\n".join(f"{start + at:6}→{line}" for at, line in enumerate(lines))
    return Call("Read", {"file_path": f"{ROOT}/{path}", **where}, shown, takes=0.05)


def missing(path: str) -> Call:
    text = f"<tool_use_error>File does not exist. Note: your current working directory is {ROOT}.</tool_use_error>"
    return Call("Read", {"file_path": f"{ROOT}/{path}"}, text, failed=True, takes=0.05)


def edit(path: str, old: str, new: str) -> Call:
    given = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new, "replace_all": False}
    return Call("Edit", given, f"The file {ROOT}/{path} has been updated successfully.", takes=0.1)


def edit_misses(path: str, old: str, new: str) -> Call:
    given = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new, "replace_all": False}
    text = f"<tool_use_error>String to replace not found in file.\nString: {old}</tool_use_error>"
    return Call("Edit", given, text, failed=True, takes=0.1)


def write(path: str, content: str, *, new: bool = True) -> Call:
    done = "File created successfully at" if new else "The file has been updated:"
    return Call("Write", {"file_path": f"{ROOT}/{path}", "content": content}, f"{done} {ROOT}/{path}", takes=0.1)


def grep(pattern: str, *found: str, path: str = "src") -> Call:
    result = f"Found {len(found)} files\n" + "\n".join(found) if found else "No files found"
    return Call("Grep", {"pattern": pattern, "path": f"{ROOT}/{path}"}, result, takes=0.1)


def glob(pattern: str, *found: str) -> Call:
    return Call(
        "Glob", {"pattern": pattern}, "\n".join(f"{ROOT}/{one}" for one in found) or "No files found", takes=0.1
    )


def todo(*tasks: str, done: int) -> Call:
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(tasks)
    todos = [{"content": task, "status": state, "activeForm": task} for task, state in zip(tasks, states, strict=False)]
    text = (
        "Todos have been modified successfully. Ensure that you continue to use the todo list to track your "
        "progress. Please proceed with the current tasks if applicable"
    )
    return Call("TodoWrite", {"todos": todos}, text, takes=0.05)


def agent(description: str, prompt: str, identifier: str) -> Call:
    given = {
        "description": description,
        "prompt": prompt,
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    text = f"Async agent launched successfully.\nagentId: {identifier}\nThe agent is working in the background."
    return Call("Agent", given, text, takes=0.1)


def finished(identifier: str, description: str) -> str:
    return (
        f"<task-notification>\n<task-id>{identifier}</task-id>\n<status>completed</status>\n"
        f'<summary>Agent "{description}" finished</summary>\n</task-notification>'
    )


# -- test runners and their like --------------------------------------------------------------------------


def pytest_passes(s: Session, passed: int, command: str = "pytest -q") -> Call:
    dots = "." * min(passed, 60)
    return bash(command, f"{dots} [100%]\n{passed} passed in {s.seconds(0.8, 3.0)}s", takes=3)


def pytest_fails(
    s: Session, test: str, error: str, *, line: int, failed: int = 1, passed: int = 20, command: str = "pytest -q"
) -> Call:
    file, _, name = test.partition("::")
    text = (
        f"{'.' * min(passed, 40)}{'F' * failed} [100%]\n=================================== FAILURES "
        f"===================================\n____ {name} ____\n\n    def {name}():\n>       {_source(error)}\n"
        f"E       {error}\n\n{file}:{line}: {error.split(':')[0]}\n=========================== short test summary "
        f"info ============================\nFAILED {test} - {error}\n{failed} failed, {passed} passed "
        f"in {s.seconds(0.8, 3.0)}s"
    )
    return bash(command, text, failed=True, takes=3)


def _source(error: str) -> str:
    return error.removeprefix("AssertionError: ") if "assert" in error else "call()"


def git_status(*changed: str) -> Call:
    if not changed:
        return bash("git status", "On branch main\nnothing to commit, working tree clean", takes=0.1)
    names = "\n".join(f"\tmodified:   {name}" for name in changed)
    return bash("git status", f"On branch main\nChanges not staged for commit:\n{names}\n\nno changes added to commit")


def git_commit(s: Session, message: str, files: int) -> Call:
    counted = f"{files} file{'s' if files > 1 else ''} changed, {files * 7} insertions(+), {files * 2} deletions(-)"
    return bash(f'git commit -m "{message}"', f"[main {s.hexadecimal(7)}] {message}\n {counted}", takes=0.2)


# -- Codex and SWE-agent ----------------------------------------------------------------------------------


def run(command: str, result: str = "", *, failed: bool = False, takes: float = 0.8) -> Call:
    """Codex's shell."""
    return Call("exec_command", {"cmd": command, "workdir": ROOT}, result, failed, takes)


def patch(path: str, old: str, new: str) -> Call:
    text = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
    return Call("apply_patch", {"input": text}, f"Success. Updated the following files:\nM {path}\n", takes=0.1)


def act(command: str, observation: str, takes: float = 0.6) -> Call:
    """SWE-agent: an action is a line, what it shows is all that is known of it."""
    return Call("act", {"command": command}, observation, takes=takes)
