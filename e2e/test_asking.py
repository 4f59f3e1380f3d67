"""A question for the person is one: in front of the real client, who says yes lets the call run, who says no not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.bench import Bench
from harness.calls import Call, shell, write
from harness.script import Script, do, script
from harness.server import model
from harness.terminal import Terminal

#: Five agents, where one is usual: the person is asked. There is no such program, and a file shows that the line ran.
LIMIT = "[tool]\nresource_limits.max_agents_per_session = 1\n"
AGENTS = shell("codex exec a; codex exec b; codex exec c; codex exec d; codex exec e; touch ran")
NEXT = shell("touch went-on")

#: About this file, the guard asks.
NOTE = ".claude/commands/note.md"

#: How each client starts without questions of its own, what it shows when it waits for words, and when it asks.
AT_WORK = {
    "claude": (("--permission-mode", "bypassPermissions"), "shift+tab to cycle", "Do you want to"),
    "gemini": (("-m", "gemini-2.5-pro", "--yolo"), "Type your message", "Allow once"),
    "copilot": (("--allow-all-tools",), "? help", "Do you want to allow this"),
}
YES, NO = "\r", "\x1b"

KEY = "not-a-key-at-all-but-long-enough"


def prepare(bench: Bench) -> dict[str, str]:
    """What a person has answered before: that the folder is trusted, and that the key is to be used."""
    home, root = bench.client.home, str(bench.root)
    if bench.name == "claude":
        file = home / ".claude.json"
        known = {
            "theme": "dark",
            "numStartups": 5,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {root: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }
        file.write_text(json.dumps({**json.loads(file.read_text()), **known}))
        settings = bench.client.registration
        given = json.loads(settings.read_text()) if settings.exists() else {}
        settings.write_text(json.dumps({**given, "skipDangerousModePermissionPrompt": True}))
        return {"ANTHROPIC_API_KEY": KEY}
    if bench.name == "copilot":
        (home / ".copilot" / "config.json").write_text(json.dumps({"trusted_folders": [root], "banner": "never"}))
    return {}


@contextmanager
def at_terminal(bench: Bench, played: Script, *words: str) -> Iterator[Terminal]:
    """The client, with a person in front of it who has told it to begin."""
    variables = prepare(bench)
    client = bench.client
    usual, ready, _ = AT_WORK[bench.name]
    with model(client.vendor, played, client.tool) as port:
        client.point(port)
        environment = {**client.environment(port), "TERM": "xterm-256color", **variables}
        command = [client.program, *(words or usual)]
        with Terminal(command, cwd=client.project, environment=environment, home=client.home) as terminal:
            terminal.begins(ready, "go on", lambda: played.requests)
            yield terminal


def answered(bench: Bench, key: str, *calls: Call, words: tuple[str, ...] = ()) -> tuple[Script, str]:
    """What the model was told, and what the person saw, who has pressed this key at the first question."""
    played = script(*map(do, calls))
    with at_terminal(bench, played, *words) as terminal:
        terminal.sees(AT_WORK[bench.name][2])
        if key == YES:
            terminal.presses(key, lambda: len(played.requests) > len(calls))
        else:
            terminal.presses(key, lambda: terminal.shows("nterrupted", "ancelled", "ejected", "Denied by user"))
        return played, terminal.screen()


#: What is asked about: a file that extends an agent, and more agents than usual; what it does, and what names the rule.
#: About such a file Claude Code has a question of its own, which stands in place of ours; about agents it has none.
QUESTIONS = {
    "guard": (write(NOTE, "hi\n"), NOTE, "guard.change", ("--permission-mode", "acceptEdits")),
    "limit": (AGENTS, "ran", "tool.agents", ()),
}


@pytest.mark.only("claude", "gemini", "copilot")
@pytest.mark.parametrize("question", QUESTIONS)
def test_who_says_yes_lets_the_call_run(bench: Bench, question: str) -> None:
    bench.put("fusewire.toml", LIMIT)
    call, file, rule, words = QUESTIONS[question]
    bench.path(NOTE).parent.mkdir(parents=True)  # Copilot makes no folders
    played, screen = answered(bench, YES, call, NEXT, words=words if bench.name == "claude" else ())
    assert bench.path(file).exists(), played.requests
    assert bench.path("went-on").exists(), played.requests
    assert rule in screen or words, screen


@pytest.mark.only("claude", "gemini", "copilot")
@pytest.mark.parametrize("question", QUESTIONS)
def test_who_says_no_does_not(bench: Bench, question: str) -> None:
    bench.put("fusewire.toml", LIMIT)
    call, file, _, words = QUESTIONS[question]
    played, _ = answered(bench, NO, call, NEXT, words=words if bench.name == "claude" else ())
    assert not bench.path(file).exists(), played.requests


@pytest.mark.only("claude", "gemini", "copilot")
def test_must_not_ask_about_what_no_rule_asks_about(bench: Bench) -> None:
    """The control: without the limit, the same keys at the same client, and nobody is asked."""
    played = script(do(AGENTS), do(NEXT))
    with at_terminal(bench, played) as terminal:
        terminal.reads_until(lambda: len(played.requests) > 2)
        assert AT_WORK[bench.name][2] not in terminal.screen()
    assert bench.path("ran").exists(), played.requests


@pytest.mark.only("claude", "gemini", "copilot")
def test_without_a_person_the_same_call_is_refused(bench: Bench) -> None:
    """Whatever the environment says that the client was started with."""
    bench.put("fusewire.toml", LIMIT)
    run = bench.run(do(AGENTS), do(NEXT), variables={"CLAUDE_CODE_SESSION_ATTENDED": "1"})
    assert run.code == 0, run
    assert "tool.agents" in run.told_at(1), run
    assert not bench.path("ran").exists(), run
    assert bench.path("went-on").exists(), run


@pytest.mark.only("claude")
def test_where_the_question_would_be_skipped_the_file_is_refused(bench: Bench) -> None:
    """Without permission prompts Claude Code drops a hook's question about files that its own rules would ask about."""
    played = script(do(write(NOTE, "hi\n")), do(NEXT))
    with at_terminal(bench, played) as terminal:
        terminal.reads_until(lambda: len(played.requests) > 2)
    assert bench.text(NOTE) is None, played.requests
    assert "BLOCKED guard.change" in played.requests[1].told, played.requests
    assert bench.path("went-on").exists(), played.requests
