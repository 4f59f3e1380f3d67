"""`fusewire run` in the sandbox: an agent writes neither state nor configuration, and its hooks are still counted."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.gate import relay
from fusewire.run.process import run_agent
from fusewire.run.sandbox import entrance_of
from tests.helpers.agents.run_stage import Stage, prepared, staged
from tests.helpers.sandbox_inside import require_sandbox

HOOK = Path(__file__).parents[3] / "src" / "fusewire" / "hook.py"

#: Before an agent's script: `event HOOK COMMAND [ID]` prints a payload, `hook` answers one, `fusewire` is the program.
TOOLS = f"""
event() {{ printf '{{"session_id":"s1","hook_event_name":"%s","cwd":"%s","tool_name":"Bash","tool_use_id":"%s",\
"tool_input":{{"command":"%s"}},"tool_response":{{"stdout":"%s"}}}}' "$1" "$PWD" "${{3:-c1}}" "$2" "${{3:-ok}}"; }}
hook() {{ "$PYTHON" -I -S {shlex.quote(str(HOOK))} claude; }}
fusewire() {{ "$PYTHON" -m fusewire "$@"; }}
"""

ONCE = ("--max-iterations", "1", "--sandbox")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("prepared") / "repository")


@pytest.fixture
def stage(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A project with documents, constraints and settings, and a person who uses Claude Code."""
    require_sandbox()
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text("{}\n")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    made = staged(tmp_path, repository)
    made.write("specs/a.md", "spec\n")
    made.write("fusewire.toml", "[loop]\nno_progress = 9\n")
    rule = "---\ntitle: No force push\nmatch:\n  - command: git push --force\n---\nNever.\n"
    made.write("docs/constraints/no-force.md", rule)
    yield made
    made.close()


def session(stage: Stage) -> dict[str, object]:
    found: dict[str, object] = json.loads(stage.call("status", "--session", "s1", "--json").stdout)
    return found


def told(text: str) -> str:
    """What a hook has told the agent."""
    return str(json.loads(text)["hookSpecificOutput"]) if text.strip() else ""


def test_an_agent_writes_its_work_and_no_configuration(stage: Stage) -> None:
    """The kernel refuses; the run is not halted for it, and leaves neither placeholder nor socket behind."""
    attack = """
    for path in .fusewire/state.db .fusewire/x fusewire.toml docs/constraints/no-force.md \\
        "$HOME/.claude/settings.json" "$HOME/.config/fusewire/config.toml" .claude/settings.json \\
        "$(cat .fusewire/supervisors/*)"; do
      (echo evil >> "$path") 2>> "$OUT/refused" && echo "$path" >> "$OUT/written"
      rm -f "$path" 2>> "$OUT/refused" || true
    done
    mv .fusewire gone 2>> "$OUT/refused" && echo moved >> "$OUT/written"
    echo new > specs/a.md && echo state > "$HOME/.claude/projects/s.jsonl" && echo code > code.py
    git add -A && git -c user.name=A -c user.email=a@example.org commit -qm work
    dirname "$(cat .fusewire/supervisors/*)" > "$OUT/folder"
    """
    ended = stage.run(attack, *ONCE)
    assert (ended.returncode, stage.read("written")) == (4, ""), ended.stderr + stage.read("refused")
    assert "Sandbox: on" in ended.stderr
    assert "Read-only file system" in stage.read("refused")
    assert (stage.root / "specs" / "a.md").read_text() == "new\n"
    assert "work" in subprocess.run(["git", "log"], cwd=stage.root, capture_output=True, text=True, check=True).stdout
    assert not (stage.root / ".claude").exists()
    assert not (stage.root / relay.SUPERVISORS).exists()
    assert not Path(stage.read("folder").strip()).exists()
    assert stage.left() == []


def test_hooks_inside_are_answered_outside(stage: Stage) -> None:
    """They are counted, refuse what a hook refuses, and work without any variable of ours."""
    script = f"""{TOOLS}
    event SessionStart x | hook > "$OUT/start"
    event PreToolUse "pytest -q" | hook > "$OUT/plain"
    event PreToolUse "rm -rf specs" c2 | hook > "$OUT/guard" 2>&1; echo $? > "$OUT/code"
    event PreToolUse "git push --force" c3 | env -i PYTHON="$PYTHON" "$PYTHON" -I -S {HOOK} claude > "$OUT/rule" 2>&1
    event PostToolUse "pytest -q" | hook
    """
    ended = stage.run(script, *ONCE)
    assert ended.returncode == 4, ended.stderr
    assert stage.read("plain") == ""
    assert "BLOCKED guard." in stage.read("guard")
    assert "breaks a constraint" in told(stage.read("rule")), "a count that only the state outside can give"
    history = stage.call("history", "no-force")
    assert "git push --force" in history.stdout, history
    assert session(stage)["session"] == "s1"


def test_64_hooks_at_once_lose_nothing(stage: Stage) -> None:
    """More than are answered at the same time."""
    script = f"""{TOOLS}
    event SessionStart x | hook
    for n in $(seq 64); do event PreToolUse "git push --force" "c$n" > "$OUT/e$n"; done
    for n in $(seq 64); do (hook < "$OUT/e$n" > "$OUT/a$n" 2>&1; echo $? >> "$OUT/codes") & done; wait
    """
    ended = stage.run(script, *ONCE)
    assert ended.returncode == 4, ended.stderr
    assert len(stage.read("codes").split()) == 64
    silent = [n for n in range(1, 65) if "no-force" not in stage.read(f"a{n}")]
    assert silent == [], stage.read(f"a{silent[0]}") if silent else ""
    assert all("does not answer" not in stage.read(f"a{n}") for n in range(1, 65))


def test_what_agents_are_told_to_run_works_inside(stage: Stage) -> None:
    """Commands that write are carried out by the supervisor; what only a person may do is refused there as here."""
    stage.write("test_it.py", "import os\ndef test_it():\n    assert not os.access('.fusewire', os.W_OK)\n")
    script = f"""{TOOLS}
    fusewire status > "$OUT/status"; fusewire check no-force > "$OUT/check"
    PYTHONPATH=/nowhere "$PYTHON" -m fusewire attempt start S-1 test_it > "$OUT/start" 2>&1
    echo "x = 1" > app.py
    fusewire attempt run S-1 test_it --strategy "look" -- sh -c 'echo x > .fusewire/y; echo "FAILED test_it"; exit 1' \\
        > "$OUT/failed" 2>&1; echo $? >> "$OUT/codes"
    fusewire attempt run S-1 test_it --strategy "again" -- "$PYTHON" -m pytest -q -p no:cacheprovider test_it.py \\
        > "$OUT/passed" 2>&1; echo $? >> "$OUT/codes"
    fusewire phase begin GREEN > "$OUT/phase" 2>&1; echo $? >> "$OUT/codes"
    fusewire reset no-force --reason "mine" > "$OUT/reset" 2>&1; echo $? >> "$OUT/codes"
    cd specs && fusewire --project .. status --json > "$OUT/json"
    """
    ended = stage.run(script, *ONCE)
    assert ended.returncode == 4, ended.stderr
    assert "no-force" in stage.read("check"), stage.read("check")
    assert "checkpoint" in stage.read("start"), stage.read("start")
    assert "1 of 3 failed attempts" in stage.read("failed"), stage.read("failed")
    assert stage.read("codes").split() == ["1", "0", "0", "3"], stage.read("passed") + stage.read("phase")
    assert "is for a person" in stage.read("reset")
    assert "circuits" in json.loads(stage.read("json"))
    assert not (stage.root / ".fusewire" / "y").exists()


def test_a_killed_server_is_started_again(stage: Stage) -> None:
    """An agent can end processes of its own user; hooks that come meanwhile wait for the next server."""
    kill = """
import os, signal
for name in filter(str.isdecimal, os.listdir("/proc")):
    try:
        words = open(f"/proc/{name}/cmdline").read()
        fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
    except OSError:
        continue
    if "hook_" + "server" in words and fields[1] == os.environ["FUSEWIRE_SUPERVISOR"]:
        os.kill(int(name), signal.SIGKILL)
        print("killed")
"""
    script = f"""{TOOLS}
    "$PYTHON" -c {shlex.quote(kill)} > "$OUT/killed"
    event PreToolUse "git push --force" | hook > "$OUT/answer"
    """
    ended = stage.run(script, *ONCE)
    assert stage.read("killed") == "killed\n", ended.stderr
    assert "breaks a constraint" in told(stage.read("answer"))
    assert stage.left() == []


def test_a_killed_supervisor_takes_its_agent_with_it(stage: Stage) -> None:
    """Nothing of the run is left, no process, no socket; what a dead machine has left, the next run removes."""
    run = stage.start('cat .fusewire/supervisors/* > "$OUT/path"; touch "$OUT/ready"; exec sleep 600', *ONCE)
    wait_for(stage, "ready", run)
    run.kill()
    run.wait()
    deadline = time.monotonic() + 60
    while stage.left():
        assert time.monotonic() < deadline, stage.left()
        time.sleep(0.05)
    assert not Path(stage.read("path")).parent.exists()
    assert not (stage.root / relay.SUPERVISORS).exists()
    folder = stage.outside / "fusewire-dead"
    folder.mkdir()
    stage.write(f"{relay.SUPERVISORS}/4194303", str(folder / "socket"))
    assert stage.run("true", *ONCE).returncode == 4
    assert not folder.exists()
    assert not (stage.root / relay.SUPERVISORS).exists()


def test_a_run_inside_a_run_has_a_sandbox_of_its_own(stage: Stage) -> None:
    """In another project: its state is read-only for its agent, and the outer one's stays so; both are supervised."""
    inner = f"""{TOOLS}
    (echo evil > .fusewire/x) 2> /dev/null && echo inner >> "$OUT/written"
    (echo evil > "$OUTER/.fusewire/x") 2> /dev/null && echo outer >> "$OUT/written"
    event PreToolUse "pytest -q" | hook > "$OUT/answer" 2>&1
    echo $FUSEWIRE_DEPTH > "$OUT/depth"
    """
    script = f"""{TOOLS}
    export OUTER="$PWD"; mkdir "$OUT/other"; cd "$OUT/other"
    fusewire run --no-wait --max-iterations 1 --sandbox -- sh -c {shlex.quote(inner)} > "$OUT/inner" 2>&1
    echo $? > "$OUT/code"
    """
    ended = stage.run(script, *ONCE)
    assert (ended.returncode, stage.read("code")) == (4, "4\n"), stage.read("inner")
    assert "Sandbox: on" in stage.read("inner")
    assert (stage.read("written"), stage.read("answer"), stage.read("depth")) == ("", "", "2\n")


def wait_for(stage: Stage, name: str, run: subprocess.Popen[str]) -> None:
    """Until the agent has made a file outside of the project."""
    deadline = time.monotonic() + 60
    while not (stage.outside / name).exists():
        assert run.poll() is None, stage.said()
        assert time.monotonic() < deadline, stage.said()
        time.sleep(0.02)


def test_nobody_else_is_answered(stage: Stage) -> None:
    """A process that is not of the run, nonsense, and a request that is too large: no answer, and no harm."""
    talk = """
import glob, socket, sys
path = open(glob.glob(sys.argv[1] + "/.fusewire/supervisors/*")[0]).read()
for request in (b"", b"nonsense" * 100, b"\\xff" * 8, b"\\0\\0\\0\\2\\0\\0\\0\\0[]"):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(path)
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1) + connection.recv(1)
        except ConnectionError:
            answer = b""
        print(len(answer.strip(b"+")))
"""
    named = stage.outside / "fusewire"  # called like our program, and so heard
    named.write_text(talk)
    script = f"""{TOOLS}
    "$PYTHON" -c {shlex.quote(talk)} . > "$OUT/inside" 2>&1
    "$PYTHON" "$OUT/fusewire" . > "$OUT/named" 2>&1
    touch "$OUT/ready"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done
    event PreToolUse "git push --force" | hook > "$OUT/answer"
    """
    run = stage.start(script, *ONCE)
    wait_for(stage, "ready", run)
    done = subprocess.run([sys.executable, named, stage.root], capture_output=True, text=True, check=False)
    (stage.outside / "go").touch()
    assert run.wait(60) == 4, stage.said()
    assert done.stdout.split() == stage.read("inside").split() == stage.read("named").split() == ["0"] * 4, done.stderr
    assert "breaks a constraint" in told(stage.read("answer"))


def enter(stage: Stage, script: str) -> subprocess.CompletedProcess[str]:
    """A script in a sandbox of this project that no run has made."""
    words, more = entrance_of(str(stage.root)).prepare(str(stage.root))
    return subprocess.run(
        [*words, "sh", "-c", TOOLS + script],
        cwd=stage.root,
        env={**os.environ, "PYTHON": sys.executable, "OUT": str(stage.outside)},
        **more,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("supervisor", ["dead", "none"])
def test_without_a_supervisor_what_protects_refuses_and_the_rest_passes(stage: Stage, supervisor: str) -> None:
    """Decision by the failure policy, said to the agent; never silence, never a traceback."""
    stage.call("record", "no-force")
    if supervisor == "dead":
        stage.write(f"{relay.SUPERVISORS}/4194303", str(stage.outside / "gone" / "socket"))
    done = enter(
        stage,
        """
    event PreToolUse "pytest -q" | hook > "$OUT/plain"
    event PreToolUse "rm -rf specs" | hook > "$OUT/guard" 2>&1
    event PreToolUse "git push --force" | hook > "$OUT/rule" 2>&1
    event Stop x | hook > "$OUT/stop" 2>&1; echo $? > "$OUT/code"
    fusewire status --all > "$OUT/status"; echo $? >> "$OUT/code"
    """,
    )
    assert "Traceback" not in done.stderr
    plain = json.loads(stage.read("plain") or f"no answer: {done}")
    assert "deny" not in str(plain)
    assert "out of order" in str(plain)
    assert ("does not answer" in str(plain)) == (supervisor == "dead")
    assert "BLOCKED guard." in stage.read("guard")
    assert "BLOCKED constraint:no-force" in stage.read("rule")
    assert stage.read("code").split() == ["0", "0"], stage.read("stop") + done.stderr
    assert "CLOSED (1)" in stage.read("status"), "what only looks works on a state that cannot be written"


def test_a_listener_in_place_of_the_supervisor_is_not_believed(stage: Stage) -> None:
    """Should an agent have got its own socket there: the kernel tells who listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        (stage.outside / "agents").mkdir()
        listener.bind(str(stage.outside / "agents" / "mine"))
        listener.listen()
        stage.write(f"{relay.SUPERVISORS}/1", str(stage.outside / "agents" / "mine"))
        done = enter(stage, "event PreToolUse 'pytest -q' | hook")
    assert f"process {os.getpid()} listens in place of the supervisor 1" in done.stdout, done


@pytest.mark.parametrize("means", ["namespaces", "bubblewrap"])
def test_an_agent_ends_in_the_sandbox_as_it_does_outside(stage: Stage, means: str) -> None:
    """Its exit code, its output, a signal, a time-out and what it left behind; a program that is not there is said."""
    if means == "bubblewrap" and subprocess.run(["bwrap", "--dev-bind", "/", "/", "true"], check=False).returncode:
        pytest.skip("bubblewrap does not work here")
    (stage.root / ".fusewire").mkdir(exist_ok=True)

    def run(*command: str, timeout: float = 30) -> tuple[str, int | None, str]:
        heard = bytearray()
        ended = run_agent(
            command,
            cwd=str(stage.root),
            environment={**os.environ, "OUT": str(stage.outside), "PATH": "/usr/bin:/bin"},
            given=b"prompt",
            timeout=timeout,
            idle=None,
            on_output=heard.extend,
            on_error=heard.extend,
            on_tick=lambda: None,
            stop=lambda: False,
            mark=os.urandom(8).hex(),
            grace=0.5,
            entrance=entrance_of(str(stage.root), means),
        )
        return ended.why, ended.code, heard.decode()

    told = f"prompt{stage.root}\n"
    assert run("sh", "-c", "cat; pwd; touch .fusewire/x 2> /dev/null || exit 7") == ("exit", 7, told)
    assert run("sh", "-c", "kill -TERM $$")[1] == 143
    assert run("sh", "-c", "setsid sleep 600 & sleep 600", timeout=1)[:2] == ("timeout", 124)
    assert run("no-such-program")[:2] == run("./missing")[:2] == ("launch", 127)
    assert stage.left() == []


def test_a_sandbox_that_is_required_and_missing_ends_the_run(stage: Stage) -> None:
    """Exit 3 and why; by default one line, and the run goes on without."""
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        pytest.skip("needs unshare and setpriv")
    without = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all "
    words = [sys.executable, "-m", "fusewire", "run", "--no-wait", "--max-iterations", "1"]
    for option, code, says in (
        (["--sandbox"], 3, "a sandbox is required, and there is none here"),
        ([], 4, "Sandbox: not available"),
        (["--no-sandbox"], 4, "Sandbox: off"),
    ):
        command = shlex.join([*words, *option, "--", "true"])
        done = subprocess.run(
            ["unshare", "-Ur", "sh", "-c", without + command],
            cwd=stage.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, says in done.stderr) == (code, True), done
