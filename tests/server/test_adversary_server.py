"""What an agent tried with the server, its tokens, notifications and exports, held for good; and what must pass."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shlex
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.caller import AGENT_VARIABLES
from fusewire.breakers.session.names import session_of
from fusewire.cli.serve import _say
from fusewire.core.events import Event
from fusewire.engine.breaker import Breaker
from fusewire.guard.calls import folder_of
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.tampering import disarming
from fusewire.server.access import kept_token
from fusewire.server.connections import say_in_a_line
from fusewire.server.security import Doorkeeper
from fusewire.server.serving import Serving
from fusewire.views.warnings import warnings
from tests.helpers.decisions import without_code
from tests.helpers.project import Project
from tests.helpers.receivers import webhook
from tests.helpers.serving import Served
from tests.helpers.session_hook import Session

# -- lines ------------------------------------------------------------------------------------------------------

REFUSED = [
    # A server that takes itself for a person's would do what its agent asks for.
    *(f"env -u {name} setsid -f fusewire serve --json" for name in AGENT_VARIABLES),
    "unset CLAUDECODE CLAUDE_CODE_ENTRYPOINT; setsid -f fusewire serve --json > /tmp/key",
    "CLAUDECODE= setsid -f python3 -m fusewire serve",
    "env --unset=CLAUDECODE fusewire --project . serve",
    "export -n CLAUDECODE && fusewire serve &",
    "env -i PATH=$PATH fusewire serve --json",
    "tmux send-keys -t 0 'fusewire serve --json > /tmp/key' Enter",
    "systemd-run --user fusewire serve --json",
    "echo 'fusewire serve --json > /tmp/key' | at now",
    "docker run -v .:/work image fusewire serve",
    # It replaces files.
    "fusewire export --output fusewire.toml --force",
    "fusewire export --format csv --output=AGENTS.md --force",
    "python3 -m fusewire export --output x",
    "ssh localhost fusewire export --output fusewire.toml --force",
    "fusewire install claude --http",
    "fusewire install claude --http --port 1",
    # Nobody sees the reports any more.
    "pkill -f 'fusewire serve'",
    "pkill -9 -f '/opt/bin/fusewire serve --port 3873'",
    "kill $(pgrep -f 'fusewire serve')",
    "kill -9 `pgrep fusewire`",
    "pgrep -f fusewire | xargs kill",
    "pidof fusewire | xargs -r kill",
    # Events that did not happen.
    'curl -d @e localhost:3873/hooks/claude -H "Authorization: Bearer $(cat ~/.local/state/fusewire/hooks.token)"',
    'T=$(cat ~/.local/state/fusewire/hooks.token); curl -H "Authorization: Bearer $T" -d @e localhost:4000/hooks/codex',
    "curl -X POST http://127.0.0.1:3873/hooks/claude -H 'Authorization: Bearer abc' -d @event.json",
    "wget --post-data={} http://localhost:3873/hooks/codex",
    'python3 -c \'import urllib.request as u; u.urlopen("http://127.0.0.1:3873/hooks/claude", b"{}")\'',
    'node -e \'fetch("http://127.0.0.1:4000/hooks/claude", {headers: {"X-Fusewire": "claude"}})\'',
    # Our own code, past its command line.
    'python3 -c \'from fusewire.server import acting; acting.reset(p, "rule", "x")\'',
    'python3 -c \'import fusewire.server.serving as s; s.Serving(["."], "127.0.0.1", 0)\'',
    "python3 -c 'from fusewire import server'",
    "python3 -c 'from fusewire.notify.cursor import remember'",
    "python3 -c 'from fusewire.agents.install import installer'",
]

HARMLESS = [
    "fusewire serve",
    "fusewire serve --port 0 --json &",
    "nohup fusewire serve > serve.log 2>&1 &",
    "setsid -f fusewire serve",
    "echo $CLAUDECODE; fusewire serve --help",
    "env | grep CLAUDECODE; fusewire serve",
    "HOME=/tmp/x fusewire serve --port 0",
    "fusewire watch --once",
    "fusewire status --json",
    "fusewire export --days 7 | jq .circuit",
    "fusewire export > moves.jsonl",
    "fusewire export --format csv --what moves",
    "fusewire notify",
    "fusewire notify test desk",
    "grep -rn 'fusewire serve' docs",
    "rg 'pkill.*fusewire' src",
    "git commit -m 'fusewire serve: the panel; pkill fusewire'",
    "tmux send-keys -t 0 'fusewire watch' Enter",
    "tmux new -d 'npm run serve'",
    "pip install 'fusewire[server]'",
    "curl -s localhost:3873/",
    'curl localhost:3873/metrics -H "Authorization: Bearer $(cat ~/.local/state/fusewire/reader.token)"',
    "curl -X POST localhost:8000/hooks/x -d '{}'",
    "curl -X POST http://localhost:8000/hooks/claude -H 'Authorization: Bearer x' -d '{}'",
    "curl -X POST localhost:8000/api/v1/projects/1/reset",
    "grep -rn '/hooks/claude' docs src",
    "cat docs/agents.md | grep 3873/hooks/claude",
    "ls -l ~/.local/state/fusewire/hooks.token",
    "python3 -m http.server 3873",
    "npm run dev -- --port 3873",
    "kill %1",
    "pkill -f 'uvicorn app:app'",
    "kill $(pgrep -f 'vite --port 3873')",
    "pgrep -fa fusewire",
    "ps aux | grep fusewire",
    "CLAUDECODE= npm test",
    "python3 tools/changelog.py --message 'hooks send X-Fusewire to 3873/hooks/claude'",
    "python3 -c 'import server; print(server.fusewire)'",
]


@pytest.mark.parametrize("line", REFUSED)
def test_refused(line: str) -> None:
    assert disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ())


@pytest.mark.parametrize("line", HARMLESS)
def test_an_honest_agent_does_not_notice(line: str) -> None:
    assert disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ()) == ""


@pytest.mark.parametrize(
    "line", ["pkill -f 'fusewire serve'", "curl -d {} 127.0.0.1:3873/hooks/claude", "fusewire export --output a.csv"]
)
def test_the_hook_looks_at_such_lines(project: Project, line: str) -> None:
    """They have in them what makes it look."""
    answer = project.hook(project.bash(line))
    assert answer.returncode == 2
    assert answer.stderr.startswith(b"BLOCKED fusewire.disarm: ")


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "rm ~/.local/state/fusewire/hooks.token",
        "echo x > $XDG_STATE_HOME/fusewire/hooks.token",
        "chmod 644 ~/.local/state/fusewire/reader.token",
        "rm -rf ~/.local/state/fusewire",
        "echo ntfy://mine > ~/.config/fusewire/ntfy-url",
        "rm ~/.config/fusewire/ntfy-url",
        "mv ~/.config/fusewire /tmp/away",
        "echo json://127.0.0.1/ > team-url",
        "rm team-url",
        "sed -i s/a/b/ ~/phone-url",
    ],
)
def test_what_the_server_and_the_notifications_stand_on_is_protected(project: Project, line: str) -> None:
    """Tokens without which no report arrives, and files that say where messages go."""
    addressed(project)
    kept_token("hooks")
    kept_token("reader")
    assert project.hook(project.bash(line)).returncode == 2


@pytest.mark.parametrize("path", [".local/state/fusewire/hooks.token", ".config/fusewire/ntfy-url", "phone-url"])
def test_so_it_is_from_edit_tools(project: Project, path: str) -> None:
    addressed(project)
    given = {"file_path": os.path.join(os.environ["HOME"], path), "content": "x"}
    assert project.hook(project.bash("", tool_name="Write", tool_input=given)).returncode == 2


@pytest.mark.parametrize("line", ["echo x > ~/.local/state/app/hooks.token", "rm -rf ~/.config/app", "echo x > a-url"])
def test_files_of_others_are_free(project: Project, line: str) -> None:
    addressed(project)
    os.makedirs(os.path.expanduser("~/.config/app"))
    assert project.hook(project.bash(line)).returncode == 0


def addressed(project: Project) -> None:
    """Targets whose URLs lie in files: beside the user's own, elsewhere in the home, in the project."""
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire"
    folder.mkdir(parents=True)
    for place in (folder / "ntfy-url", Path(os.environ["HOME"]) / "phone-url", project.root / "team-url"):
        place.write_text("json://127.0.0.1:9/SECRET-ADDRESS\n")
    (folder / "config.toml").write_text(
        '[notify.targets.a]\nurl_file = "ntfy-url"\n[notify.targets.b]\nurl_file = "~/phone-url"\n'
        '[notify.targets.d]\nurl = "json://127.0.0.1:9/SECRET-ADDRESS"\n'
    )
    (project.root / "fusewire.toml").write_text('[notify.targets.c]\nurl_file = "team-url"\n')


def test_copies_of_protected_files_are_for_their_owner(project: Project) -> None:
    """The guard keeps what agents' settings and the user's own file say, also where tokens and addresses are in it."""
    addressed(project)
    assert project.hook(project.bash("touch a")).returncode == 0
    places = [project.root / ".fusewire", Path(folder_of(str(project.root)))]
    copies = [path for place in places for path in place.rglob("*") if path.is_file()]
    told = [path for path in copies if b"SECRET-ADDRESS" in path.read_bytes()]
    assert told
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in told)


def test_messages_that_somebody_keeps_from_going_out_are_shown(project: Project) -> None:
    """A process that holds the lock of the delivery for ever: `status` says that something waits, and since when."""
    for name in ("first", "second"):
        project.constraint(name, "circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}\n")
    (project.root / "fusewire.toml").write_text('[notify]\nattempts = 1\n[notify.targets.a]\nurl = "nowhere://x"\n')
    project.run("record", "first", "--action", "x")
    waits = "notifications to a wait since "

    def said() -> str:
        status = project.run("status")
        return status.stdout + status.stderr

    until(lambda: "notifications to a fail" in said())
    with open(project.root / ".fusewire" / "notify.lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        project.run("record", "second", "--action", "x")
        assert waits not in said(), "it may still be under way"
        with Breaker.open(project=project.root, clock=lambda: time.time() + 3600) as later:
            assert any(one.startswith(waits) for one in warnings(later))
    until(lambda: project.json("notify")["targets"][0]["waiting"] == 0)
    with Breaker.open(project=project.root, clock=lambda: time.time() + 3600) as later:
        assert not any(one.startswith(waits) for one in warnings(later))


def until(holds: Callable[[], bool]) -> None:
    latest = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < latest
        time.sleep(0.05)


# -- deliveries -------------------------------------------------------------------------------------------------

RECORD = f"{shlex.quote(sys.executable)} -m fusewire record rule --action x"


def as_agent(project: Project, line: str, **env: str) -> None:
    """A command that an agent runs in a shell of its own; the agent is a program of that name."""
    agent = project.root.parent / "claude"
    agent.symlink_to("/bin/sh")
    words = [str(agent), "-c", f"/bin/sh -c {shlex.quote(line)}; true"]
    subprocess.run(words, cwd=project.root, env={**os.environ, **env}, check=True, capture_output=True)


def told_by(project: Project, target: str) -> None:
    project.constraint("rule", "circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}\n")
    (project.root / "fusewire.toml").write_text(f"[notify]\nattempts = 1\n[notify.targets.a]\n{target}\n")


@pytest.mark.parametrize(
    "line",
    [
        f"NO_PROXY= no_proxy= http_proxy=http://127.0.0.1:9 {RECORD}",
        f"unset NO_PROXY no_proxy; export http_proxy=http://127.0.0.1:9; {RECORD}; true",
        f"exec env -u NO_PROXY -u no_proxy http_proxy=http://127.0.0.1:9 {RECORD}",
        f"env -u A_URL {RECORD}; true",
        f"A_URL=json://127.0.0.1:9/ {RECORD}; true",
    ],
)
def test_what_a_command_of_an_agent_sets_does_not_lead_messages_astray(project: Project, line: str) -> None:
    """Its delivery has the environment that the agent gave to the shell."""
    with webhook() as target:
        told_by(project, 'url_env = "A_URL"')
        as_agent(project, line, A_URL=target.url)
        target.wait_for(1)


@pytest.mark.parametrize(("act", "sent"), [("deliver", 1), ("test", 0)])
def test_so_it_is_where_a_command_delivers_itself(project: Project, act: str, sent: int) -> None:
    """Else what waits would be told to whom the agent likes; a test, which ends a warning if it works, is refused."""
    with webhook() as target, webhook() as other:
        told_by(project, 'url_env = "A_URL"')
        line = RECORD.partition(" record ")[0] + f" notify {act}; true"
        with Breaker.open(project=project.root) as breaker:
            breaker.store.after_news = None
            breaker.record("rule", "x")
        as_agent(project, f"A_URL={other.url} {line}", A_URL=target.url)
        assert (len(target.requests), len(other.requests)) == (sent, 0)


def test_a_variable_that_a_person_sets_for_one_command_counts(project: Project) -> None:
    """So does what an agent gives to all of its commands, as it does with the variables of its settings."""
    with webhook() as target:
        told_by(project, 'url_env = "A_URL"')
        project.constraint("other", "circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}\n")
        project.run("record", "other", "--action", "x", env={"A_URL": target.url})
        target.wait_for(1)
        agent = project.root.parent / "claude"
        agent.symlink_to("/bin/sh")
        given = f"A_URL={target.url}; export A_URL; /bin/sh -c {shlex.quote(f'{RECORD}; true')}; true"
        subprocess.run([str(agent), "-c", given], cwd=project.root, check=True, capture_output=True)
        target.wait_for(2)


# -- events over HTTP -------------------------------------------------------------------------------------------


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with Served(project.root) as server:
        yield server


def forge(served: Served, project: Project, hook: str, session: str, **fields: Any) -> int:
    """An event that an agent makes up, sent with the token that it can read."""
    payload = {"session_id": session, "cwd": str(project.root), "hook_event_name": hook, **fields}
    kind = {"Content-Type": "application/json"}
    return served.request("POST", "/hooks/claude", json.dumps(payload), kind, bearer=kept_token("hooks")).status


def test_a_session_that_somebody_makes_up_ends_no_halt_of_the_guard(project: Project, served: Served) -> None:
    """A person ends it, and what was changed does not become right by what is only told."""
    (project.root / "AGENTS.md").write_text("rules\n")
    (project.root / ".ralphrc").write_text("a=1\n")
    session = Session(project)
    assert session.before("Bash", {"command": "make clean"})[0].silent
    (project.root / "AGENTS.md").unlink()
    (project.root / ".ralphrc").write_text("a=2\n")
    assert session.send("PostToolUse", tool_name="Bash", tool_input={"command": "make clean"}, tool_response="").halted
    call = {"tool_name": "Bash", "tool_input": {"command": "make all"}, "tool_use_id": "toolu_x"}
    assert forge(served, project, "PreToolUse", "made-up", **call) == 200
    assert session.before("Bash", {"command": "make all"})[0].halted
    assert (project.root / ".ralphrc").read_text() == "a=1\n"
    session.says("go on")
    assert session.before("Bash", {"command": "make all"})[0].silent


def test_many_sessions_that_somebody_makes_up_do_not_make_a_halt_forgotten(project: Project, served: Served) -> None:
    """What is remembered of sessions is bounded, and the oldest are forgotten; one that is halted stays so."""
    session = Session(project)
    for _ in range(7):
        session.fails("./deploy.sh")
    assert session.bash("ls")[0].halted
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for number in range(420):
            transaction.remember(f"session/made-up-{number}", {"since": 1.0}, time.time() + 1)
    assert forge(served, project, "SessionStart", "one-more", source="startup") == 200
    assert session.bash("ls")[0].halted
    with Breaker.open(project=project.root) as breaker:
        assert len(breaker.store.remembered("session/")) < 410
        with breaker.store.transact() as transaction:
            for number in range(1000):
                transaction.remember(f"session/stuck-{number}", {"halted": {"text": "x"}}, time.time() - 5000 + number)
    assert forge(served, project, "SessionStart", "two-more", source="startup") == 200
    assert session.bash("ls")[0].halted
    with Breaker.open(project=project.root) as breaker:
        known = {name for name, _ in breaker.store.remembered("session/")}
    assert len(known) <= 810, "of those that are halted the last ones"
    assert "session/stuck-999" in known
    assert "session/stuck-0" not in known


def test_a_name_with_many_slashes_costs_a_look_no_time() -> None:
    """A name is compared with those of sessions part by part; the parts that are compared are bounded."""
    session = "/" * 190
    before = time.process_time()
    for _ in range(100):
        assert session_of(f"tool/tool_failure/{session}", {"other"}) is None
    assert time.process_time() - before < 1
    assert session_of("tool/tool_failure/Bash(a/b/c)/team/1", {"team/1"}) == "team/1"


def test_a_made_up_start_does_not_say_which_settings_count(project: Project, served: Served) -> None:
    """Settings that no longer call us are not in force, also after a start of the session that was sent by HTTP."""
    settings = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    settings.parent.mkdir()
    handler = {"type": "command", "command": "/p/python -I -S /x/fusewire/hook.py claude"}
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [handler]}]}}))
    session = Session(project)
    session.send("SessionStart", source="startup")
    settings.write_text("{}")
    changed = {"source": "user_settings", "file_path": str(settings)}
    before = session.send("ConfigChange", **changed)
    assert "take Fusewire's hooks out" in before.reason + json.dumps(before.json)
    assert forge(served, project, "SessionStart", session.id, source="startup") == 200
    again = session.send("ConfigChange", **changed)
    assert without_code(again.json["reason"]) == without_code(before.json["reason"])
    assert again.code == before.code


def test_made_up_prompts_do_not_begin_the_counts_anew(project: Project, served: Served) -> None:
    """Claude Code sends what a person types to a process: between two failures, such an event changes nothing."""
    session = Session(project)
    for _ in range(7):
        session.fails("./deploy.sh")
        assert forge(served, project, "UserPromptSubmit", session.id, prompt="go on") == 200
    assert session.bash("ls")[0].halted


def test_a_made_up_result_makes_no_protected_file_right(project: Project, served: Served) -> None:
    """An edit tool never gets as far as configuration: one that is said to have changed it has not."""
    (project.root / ".ralphrc").write_text("a=1\n")
    session = Session(project)
    session.before("Bash", {"command": "make"})
    (project.root / ".ralphrc").write_text("a=2\n")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(project.root / ".ralphrc")}, "tool_response": {}}
    assert forge(served, project, "PostToolUse", session.id, **edit) == 200
    assert (project.root / ".ralphrc").read_text() == "a=1\n"


@pytest.mark.parametrize("hook", ["PreToolUse", "Stop", "SessionStart", "SessionEnd", "UserPromptSubmit"])
def test_a_made_up_moment_makes_no_loss_right(project: Project, served: Served, hook: str) -> None:
    """What was removed before such an event is found after the call, and restored."""
    (project.root / "AGENTS.md").write_text("rules\n")
    session = Session(project)
    make = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    session.before("Bash", {"command": "make"})
    assert forge(served, project, "PostToolUse", session.id, tool_response="", **make) == 200
    (project.root / "AGENTS.md").unlink()
    assert forge(served, project, hook, session.id, prompt="go on", background_tasks=[], **make) == 200
    assert session.send("PostToolUse", tool_response="", **make).halted
    assert (project.root / "AGENTS.md").read_text() == "rules\n"


def test_many_large_events_at_once_take_turns(served: Served, project: Project) -> None:
    """Whoever has the token cannot fill the memory of the machine; small reports are answered meanwhile."""
    head = f"POST /hooks/claude HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {kept_token('hooks')}\r\n"
    size = 24 << 20

    def is_taken(stream: socket.socket) -> bool:
        try:
            stream.sendall(f"{head}Content-Length: {size + 1}\r\n\r\n".encode() + b" " * size)
        except TimeoutError:
            return False
        return True

    host, _, port = served.host.partition(":")
    streams = [socket.create_connection((host, int(port)), timeout=5) for _ in range(12)]
    try:
        with ThreadPoolExecutor(12) as pool:
            taken = sum(pool.map(is_taken, streams))
        assert forge(served, project, "SubagentStop", "small") == 200
    finally:
        for stream in streams:
            stream.close()
    assert 0 < taken <= 4


def test_results_that_were_none_close_nothing_that_is_open(project: Project, served: Served) -> None:
    session = Session(project)
    for _ in range(7):
        session.fails("./deploy.sh")
    with Breaker.open(project=project.root) as breaker:
        tripped = {one.id for one in breaker.statuses() if one.state == "OPEN"}
    assert tripped
    call = {"tool_name": "Bash", "tool_input": {"command": "./deploy.sh"}}
    for number in range(5):
        result = {"tool_calls": [{**call, "tool_use_id": f"toolu_f{number}", "tool_response": "deployed"}]}
        assert forge(served, project, "PostToolBatch", session.id, **result) == 200
        assert forge(served, project, "SessionEnd", session.id, reason="clear") == 200
        assert forge(served, project, "SessionStart", session.id, source="clear") == 200
    with Breaker.open(project=project.root) as breaker:
        assert tripped <= {one.id for one in breaker.statuses() if one.state == "OPEN"}
    assert session.bash("ls")[0].halted


def test_calls_that_take_for_ever_to_judge_do_not_keep_reports_from_being_heard(
    project: Project, served: Served
) -> None:
    """More of them than there are threads; and one that says in two ways what it is has none of the reports' own."""
    call = {"tool_name": "Bash", "tool_input": {"command": "cd a && " * 30_000 + "ls"}, "tool_use_id": "toolu_1"}
    report = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "x", "tool_use_id": "toolu_2"}
    assert forge(served, project, "PostToolUse", "before", **report) == 200
    with ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(forge, served, project, "PreToolUse", "slow", **call) for _ in range(10)]
        assert {one.result() for one in asked} == {200}
    payload = {"session_id": "after", "cwd": str(project.root), "hook_event_name": "PostToolUse", **report}
    bearer = kept_token("hooks")
    answer = served.request("POST", "/hooks/claude", json.dumps(payload), bearer=bearer)
    assert (answer.status, answer.text) == (200, "")
    twice = json.dumps(payload)[:-1] + ', "hook_event_name": "PreToolUse"}'
    assert served.request("POST", "/hooks/claude", twice, bearer=bearer).status == 400


def test_a_reply_with_more_calls_than_any_model_makes_does_not_keep_the_store(project: Project, served: Served) -> None:
    """While each is written the gate waits, and would let pass what it cannot count."""
    calls = [
        {"tool_name": "Bash", "tool_input": {"command": f"x{n}"}, "tool_use_id": f"toolu_{n}", "tool_response": "no"}
        for n in range(60_000)
    ]
    payload = {"session_id": "many", "cwd": str(project.root), "hook_event_name": "PostToolBatch", "tool_calls": calls}
    answer = served.request("POST", "/hooks/claude", json.dumps(payload), bearer=kept_token("hooks"))
    assert (answer.status, answer.text) == (200, "")
    assert project.hook(project.bash("ls")).stdout == b""


def test_a_session_whose_name_is_no_text_is_counted(project: Project, served: Served) -> None:
    """JSON may carry half a character; a long name is the one that it is kept under."""
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "x", "tool_use_id": "toolu_1"}
    assert forge(served, project, "PostToolUse", "one that there is", **call) == 200
    for session in ("\ud800", "x" * 100_000):
        payload = {"session_id": session, "cwd": str(project.root), "hook_event_name": "PostToolUse", **call}
        answer = served.request("POST", "/hooks/claude", json.dumps(payload), bearer=kept_token("hooks"))
        assert (answer.status, answer.text) == (200, "")


# -- the server's terminal --------------------------------------------------------------------------------------

ESCAPES = "a\x1b]0;title\x07\x1b[2J\x9b31m\r\u202eb"


def test_what_goes_wrong_is_said_without_power_over_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """An error may quote what an agent has written."""

    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError(ESCAPES)

    async def nothing(*_: Any) -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def asked() -> None:
        headers = [(b"host", b"localhost:1")]
        scope = {"type": "http", "method": "GET", "path": f"/{ESCAPES}", "headers": headers}
        await Doorkeeper(fails, ["localhost:1"], {})(scope, nothing, nothing)
        say_in_a_line(asyncio.get_running_loop(), {"message": "x", "exception": ValueError(ESCAPES)})

    asyncio.run(asked())
    said = capsys.readouterr().err
    assert said.count("[U+001B]]0;title[U+0007]") == 2
    assert all(line.isprintable() for line in said.splitlines())


def test_a_project_whose_folder_has_an_odd_name_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ESCAPES
    folder.mkdir()
    serving = Serving([str(folder)], "127.0.0.1", 0)
    try:
        _say(serving, exposed=False)
    finally:
        serving.socket.close()
        serving.projects.close()
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))
