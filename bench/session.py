"""Part 9: what a tool call costs with all breakers of a session on, however long the session is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from fusewire.agents.claude.hooks import AGENT as claude
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.config.rules import load_rules
from fusewire.engine.breaker import default_rules
from fusewire.stores.sqlite import SqliteStore
from measuring import Clock, Contender, goal, interleave, micro, milli, quantile, table, times
from starts import HOOK, environment_of, runner

_LENGTHS = (10, 1_000, 10_000)
_ROUNDS = 25

#: Bytes of transcripts that are read on in.
_SMALL, _LARGE = 2 << 20, 200 << 20

#: How much more a long session may cost, and a bare start of Python.
_FLAT = 1.15
_GOAL, _GOAL_IN_THE_END = 2.0, 1.5


def report(folder: str) -> str:
    return "\n".join(
        [
            "9. Inside a session",
            "",
            *_in_process(folder),
            "",
            *_as_hooks(folder),
            "",
            *_with_transcripts(folder),
        ]
    )


def _payload(root: str, hook: str, number: int, transcript: str = "") -> dict[str, object]:
    payload: dict[str, object] = {
        "session_id": "bench",
        "transcript_path": transcript,
        "cwd": root,
        "hook_event_name": hook,
        "tool_name": "Bash",
        "tool_input": {"command": f"grep -n total src/module_{number}.py"},
        "tool_use_id": f"toolu_{number}",
    }
    if hook == "PostToolUse":
        payload["tool_response"] = {"stdout": f"{number % 97}: def total(rows):\n" * 20, "stderr": ""}
    if hook == "PostToolBatch":
        call = {name: payload.pop(name) for name in ("tool_name", "tool_input", "tool_use_id")}
        payload["tool_calls"] = [{**call, "tool_response": f"{number % 97}: def total(rows):\n" * 20}]
    return payload


class _Calls:
    """Calls of one session, one after the other, each with a result and each a turn."""

    def __init__(self, watch: ToolCallBreakers, root: str, clock: Clock) -> None:
        self.watch, self.root, self.clock, self.number = watch, root, clock, 0

    def one(self) -> None:
        for hook in ("PreToolUse", "PostToolUse"):
            event = claude.parse(_payload(self.root, hook, self.number), self.root)
            assert event is not None
            answer = self.watch.handle(event, [["grep", "-n", "total"]], looks=True)
            assert answer.verdict == "allow", answer
        self.number += 1
        self.clock.now += 5


def _session(folder: str, length: int) -> _Calls:
    root = os.path.join(folder, f"session-{length}")
    os.makedirs(root, exist_ok=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    clock = Clock()
    store = SqliteStore(os.path.join(root, ".fusewire", "state.db"))
    calls = _Calls(ToolCallBreakers(store, default_rules(), clock), root, clock)
    for _ in range(length):
        calls.one()
    return calls


def _in_process(folder: str) -> list[str]:
    sessions = {length: _session(folder, length) for length in _LENGTHS}
    contenders = [
        Contender(f"{length:,} calls", (lambda calls: lambda: calls.one)(sessions[length])) for length in _LENGTHS
    ]
    interleave(contenders, rounds=10, calls=40)
    base = contenders[0].median
    rows = [
        (one.name, micro(one.median), micro(quantile(one.samples, 0.9)), times(one.median, base)) for one in contenders
    ]
    flat = max(one.median for one in contenders) <= _FLAT * base
    return [
        "  before and after one call in a process that runs already, µs, by the calls that went before",
        "",
        table(("", "p50", "p90", "x the shortest"), rows),
        "",
        goal(f"the longest session costs at most {_FLAT:.2f} x the shortest", flat),
    ]


def _as_hooks(folder: str) -> list[str]:
    environment = environment_of(folder)
    numbers = iter(range(1_000_000, 2_000_000))

    def hook(length: int, name: str) -> Callable[[], Callable[[], None]]:
        root = os.path.join(folder, f"session-{length}")
        load_rules(root, keeps=True)

        def prepare() -> Callable[[], None]:
            # A result belongs to the call of the same round; each call is another one.
            number = next(numbers)
            path = os.path.join(root, f"{name}.json")
            with open(path, "w") as file:
                json.dump(_payload(root, name, number), file)
            return runner((sys.executable, "-I", "-S", HOOK, "claude"), root, path, environment, 0)

        return prepare

    bare = Contender(
        "python3 -I -S -c pass",
        lambda: runner((sys.executable, "-I", "-S", "-c", "pass"), folder, os.devnull, environment, 0),
    )
    before = [Contender(f"PreToolUse, {length:,} calls", hook(length, "PreToolUse")) for length in _LENGTHS]
    after = [Contender(f"PostToolBatch, {length:,} calls", hook(length, "PostToolBatch")) for length in _LENGTHS]
    interleave([bare, *before, *after], rounds=_ROUNDS, calls=1, warm_up=1)
    everything = [bare, *before, *after]
    rows = [
        (one.name, milli(one.median), milli(quantile(one.samples, 0.9)), times(one.median, bare.median))
        for one in everything
    ]
    ratio = max(before[1].median, after[1].median) / bare.median
    return [
        "  one hook process with all breakers on, ms, by the calls that went before",
        "",
        table(("", "p50", "p90", "x bare Python"), rows),
        "",
        goal(f"an allowing call, and a batch of results, within {_GOAL:.1f} x bare Python", ratio <= _GOAL),
        goal(f"in the end: within {_GOAL_IN_THE_END:.1f} x", ratio <= _GOAL_IN_THE_END),
        goal(
            f"flat: the longest session at most {_FLAT:.2f} x the shortest",
            before[2].median <= _FLAT * before[0].median and after[2].median <= _FLAT * after[0].median,
        ),
    ]


def _with_transcripts(folder: str) -> list[str]:
    """A new message in a long transcript costs what it costs in a short one, once the rest has been read."""
    from fusewire.agents.spending.ledger import read_on

    prices = default_rules().prices
    line = _message(0, "x" * 4000)
    contenders = []
    for name, size in (("2 MB", _SMALL), ("200 MB", _LARGE)):
        path = os.path.join(folder, f"{size}.jsonl")
        with open(path, "wb") as file:
            for _ in range(size // len(line) // 256 + 1):
                file.write(line * 256)
        memory: dict[str, object] = {}
        while (after := read_on(memory, path, prices)) is not memory:
            memory = after
        contenders.append(Contender(f"{name} of transcript", _reading_on(path, memory, prices)))
    interleave(contenders, rounds=10, calls=20)
    small, large = contenders
    rows = [
        (one.name, micro(one.median), micro(quantile(one.samples, 0.9)), times(one.median, small.median))
        for one in contenders
    ]
    return [
        "  one more message in a transcript, µs (with writing it)",
        "",
        table(("", "p50", "p90", "x the small one"), rows),
        "",
        goal("200 MB cost at most 1.5 x 2 MB", large.median <= 1.5 * small.median),
    ]


def _message(number: int, text: str) -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage}
    record = {"type": "assistant", "message": {**message, "content": [{"type": "text", "text": text}]}}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _reading_on(path: str, memory: dict[str, object], prices: object) -> Callable[[], Callable[[], None]]:
    from fusewire.agents.spending.ledger import read_on

    state = {"memory": memory, "number": 1}

    def one() -> None:
        with open(path, "ab") as file:
            file.write(_message(state["number"], "y"))  # type: ignore[arg-type]
        state["number"] += 1  # type: ignore[operator]
        state["memory"] = read_on(state["memory"], path, prices)  # type: ignore[arg-type]

    return lambda: one
