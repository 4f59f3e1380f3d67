"""Claude Code with `install --http`: what it only reports goes to a server, and it is stopped as if it were not so."""

from __future__ import annotations

import py_compile
import re
import socket
import sys
from collections.abc import Iterator

import pytest

from fusewire.engine.breaker import Breaker
from harness.bench import FILES, Bench
from harness.calls import shell, spawn
from harness.processes import comes_true
from harness.script import Script, do, part, script
from harness.serving import serving
from test_honest import case, module, work
from test_loops import FAILURES, REFUSALS, STUCK

pytestmark = pytest.mark.only("claude")

#: Calls of one tool in a row that bring nothing that anybody has seen.
IN_A_ROW = 10


@pytest.fixture
def over_http(bare: Bench) -> Iterator[Bench]:
    with serving(bare) as port:
        bare.fusewire("install", "claude", "--http", "--port", str(port))
        yield bare


@pytest.fixture
def without_server(bare: Bench) -> Iterator[Bench]:
    """Installed for a server that nobody has started; its port is kept from others, and nobody listens."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        bare.fusewire("install", "claude", "--http", "--port", str(kept.getsockname()[1]))
        yield bare


def doings(bench: Bench) -> list[tuple[str, str]]:
    """What is on record of the session: (kind, text), oldest first."""
    session = bench.json("status", "--session")["session"]
    with Breaker.open(project=bench.root) as breaker:
        return [(one.kind, one.text) for one in breaker.store.doings(session)]


def test_a_stuck_model_is_stopped_after_as_many_replies_as_with_processes(over_http: Bench) -> None:
    run = over_http.play(script(STUCK, forever=True))
    assert run.code is not None, f"it did not end by itself\n{run}"
    assert run.count() == FAILURES + REFUSALS, run
    assert any(name.startswith("tool/tool_failure/Bash(python3 ") for name in over_http.tripped())
    assert "CIRCUIT OPEN tool.tool_failure" in run.told, "told by the answer to a report"
    assert "BLOCKED tool.tool_failure" in run.told
    kinds = [kind for kind, _ in doings(over_http)]
    assert kinds.count("failed") == FAILURES, "each result has arrived, once"
    last = [kind for kind in kinds if kind != "spend"][-1]
    assert last == "halted", "what the last reply costs may be told later, by the end of the session"


def test_a_helper_that_is_stuck_stops_the_main_agent_too(over_http: Bench) -> None:
    helpers = {"HELPER-1": part(STUCK, forever=True)}
    after = tuple(do(shell(f"echo {number} >> went-on.txt")) for number in range(40))
    run = over_http.play(Script(part(do(spawn("HELPER-1: make the test pass.")), *after), helpers))
    assert run.code is not None, f"it did not end by itself\n{run}"
    assert run.count("HELPER-1") == FAILURES + REFUSALS, run
    assert run.count() == 1, run
    assert over_http.text("went-on.txt") is None, f"the main agent went on\n{run}"


def test_the_answer_to_a_report_halts_at_once(over_http: Bench) -> None:
    """What an opaque program has done to a protected file is undone, and the agent does not get another reply."""
    over_http.put("fusewire.toml", 'sandbox = "off"\n')  # or the kernel would not let it come to that
    source = over_http.put("tidy.py", "import os\nos.remove('specs/a.md')\n")
    py_compile.compile(str(source), cfile=str(over_http.path("tidy.pyc")))
    source.unlink()
    run = over_http.run(do(shell(f"{sys.executable} tidy.pyc")), do(shell("touch went-on")))
    assert run.code is not None, run
    assert run.count() == 1, run
    assert over_http.text("specs/a.md") == FILES["specs/a.md"], run
    assert not over_http.path("went-on").exists(), run


def test_every_report_arrives_and_also_from_elsewhere(over_http: Bench) -> None:
    """Results, helpers and the end of the session; also once the agent has gone into another folder."""
    over_http.put("deep/down/note.txt", "x\n")
    over_http.git("init", "-q", "deep")
    helpers = {"HELPER-1": part(do(shell("echo from the helper")))}
    steps = ("cd deep/down", "pwd", "false", "echo back")
    replies = (*(do(shell(step)) for step in steps), do(spawn("HELPER-1: look.")), do(shell("echo last")))
    run = over_http.play(Script(part(*replies), helpers))
    assert run.code == 0, run
    assert run.count() == len(replies) + 1, run
    assert "fusewire" not in run.told, run
    texts = doings(over_http)
    for step in steps[:2] + steps[3:]:
        assert ("ok", step) in texts, texts
    assert ("failed", "false") in texts
    assert ("ok", "echo from the helper") in texts
    assert comes_true(lambda: over_http.json("status", "--session")["ended"]), "nobody waits for the last report"
    assert not (over_http.path("deep") / ".fusewire").exists(), "counted where it was started"


def test_without_a_server_the_gate_still_stops_it(without_server: Bench) -> None:
    """Nothing of what came back is known, so that it takes longer; and what is protected is protected."""
    run = without_server.run(do(shell("rm specs/a.md")))
    assert "BLOCKED guard." in run.told_at(1), run
    run = without_server.play(script(STUCK, forever=True))
    assert run.code is not None, f"it did not end by itself\n{run}"
    assert run.count() <= IN_A_ROW + REFUSALS, run
    assert any(name.startswith("tool/sequential_tools/") for name in without_server.tripped())


@pytest.mark.parametrize("wrong", ["nobody listens", "a wrong token"])
def test_honest_work_goes_on_whatever_becomes_of_its_reports(bare: Bench, wrong: str) -> None:
    """The client passes over a report that fails; the model hears nothing of it, and nothing is refused."""
    with serving(bare) as port:
        bare.fusewire("install", "claude", "--http", "--port", str(port if wrong == "a wrong token" else 9))
        registered = bare.client.registration.read_text()
        bare.client.registration.write_text(re.sub('(?<=Bearer )[^"]+', "x" * 43, registered))
        bare.git("config", "user.name", "Agent")
        bare.git("config", "user.email", "agent@example.org")
        for number in (2, 3):
            bare.put(f"src/part{number}.py", module(number, "0"))
            bare.put(f"tests/test_part{number}.py", case(number))
        replies = [do(*calls, tokens_in=300) for number in (2, 3) for calls in work(number)]
        run = bare.run(*replies)
    assert run.code == 0, run
    assert run.count() == len(replies) + 1, run
    assert not any(word in run.told for word in ("fusewire", "BLOCKED", "HALTED", "hook error", "ECONNREFUSED"))
    assert bare.git("log", "--oneline").count("Mend part") == 2
    assert not bare.tripped()
    assert not [kind for kind, _ in doings(bare) if kind in ("ok", "failed")], "nothing was reported"
