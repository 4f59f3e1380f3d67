"""What a session has cost: every message once, only what is new is read, and nothing odd is counted or raises."""

from __future__ import annotations

import copy
import json
import marshal
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire.agents.claude.usage import tokens_of
from fusewire.agents.spending import ledger
from fusewire.agents.spending.ledger import READ, SUBAGENT_FILES, read_on
from fusewire.cli.app import main
from fusewire.config.prices import load_prices, parse_prices
from fusewire.core.money import KINDS, cost_of, plain_name, price_of
from tests.helpers import SOURCE
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project, lines_run

PRICES = load_prices()
OPUS = "claude-opus-5-5"
M = 1_000_000


def claude_cost(usage: dict[str, Any], model: str, prices: Any) -> float | None:
    return cost_of(tokens_of(usage, []), model, prices, fast=usage.get("speed") == "fast")


def claude(identity: str | None, second: int = 0, *, model: str = OPUS, block: str = "text", **usage: Any) -> bytes:
    """A line of Claude Code's transcript for one content block of a message."""
    given = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": block, "text": 'a quote: "usage" and more'}],
        "usage": {**given, **usage},
    }
    record = {"type": "assistant", "message": message, "uuid": f"u-{identity}-{block}", "sessionId": "s"}
    return line({**record, "timestamp": f"2026-11-15T21:{second // 60:02d}:{second % 60:02d}.000Z"})


def line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def result(size: int = 100) -> bytes:
    """A line that costs nothing, though its text looks as if."""
    said = 'he said "usage": {"input_tokens": 5} ' + "x" * size
    block = {"type": "tool_result", "tool_use_id": "t", "content": said}
    return line({"type": "user", "message": {"role": "user", "content": [block]}, "sessionId": "s"})


def codex(kind: str, second: int = 0, **payload: Any) -> bytes:
    return line({"timestamp": f"2026-11-15T21:00:{second:02d}.000Z", "type": kind, "payload": payload})


def counted(second: int, total: tuple[int, int, int], last: tuple[int, int, int] | None = None) -> bytes:
    """Codex's token_count; each is input, of it cached, output."""

    def usage(counts: tuple[int, int, int]) -> dict[str, int]:
        names = ("input_tokens", "cached_input_tokens", "output_tokens")
        return {**dict(zip(names, counts, strict=True)), "reasoning_output_tokens": 1, "total_tokens": 9}

    info = {"total_token_usage": usage(total), "last_token_usage": usage(last or total), "model_context_window": 272000}
    return codex("event_msg", second, type="token_count", info=info, rate_limits=None)


def gemini(identity: str, second: int = 0, model: str = "gemini-2.5-pro", **tokens: int) -> dict[str, Any]:
    record = {"id": identity, "timestamp": f"2026-11-15T21:00:{second:02d}.000Z", "type": "gemini", "content": "hi"}
    return {**record, "tokens": tokens, "model": model} if tokens else record


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def read_all(path: Path, memory: dict[str, Any] | None = None, prices: Any = PRICES) -> dict[str, Any]:
    """As the hook does: look after look, through the store's JSON, until there is nothing new."""
    memory = memory or {}
    for _ in range(200):
        after = read_on(memory, str(path), prices)
        if after is memory:
            return memory
        memory = json.loads(json.dumps(after))
    raise AssertionError("there is always something new")


def usd(path: Path, **options: Any) -> float:
    return float(read_all(path, **options).get("usd", 0.0))


# -- each message once ------------------------------------------------------------------------------------


def test_the_lines_of_one_message_are_charged_once(session: Path) -> None:
    """One line for the text, one for the call, two for parallel calls: the same id, the same usage, one price."""
    usage = {"input_tokens": 1200, "cache_read_input_tokens": 800, "output_tokens": 40}
    lines = [claude("m1", 1, **usage), claude("m1", 1, block="tool_use", **usage), result()]
    lines += [
        claude("m2", 2, block="tool_use", **usage),
        claude("m2", 3, block="tool_use", **usage),
        result(),
        result(),
    ]
    session.write_bytes(b"".join(lines))
    memory = read_all(session)
    one = (1200 * 4 + 800 * 0.2 + 40 * 20) / M
    assert memory["usd"] == pytest.approx(2 * one)
    assert memory["models"] == {OPUS: [2400, 80, 1600, 0, 0, 0, pytest.approx(2 * one)]}
    assert memory["unknown"] == {}
    assert "problem" not in memory


@pytest.mark.parametrize("at_once", [True, False])
def test_a_later_line_that_says_more_is_charged_the_difference(session: Path, at_once: bool) -> None:
    """Also if other messages and another look came between; a line that says less changes nothing."""
    grows = [claude("m1", 1, input_tokens=100, output_tokens=3), claude("m2", 2, output_tokens=10)]
    grows += [claude("m1", 3, input_tokens=100, output_tokens=50), claude("m1", 4, input_tokens=100, output_tokens=7)]
    memory: dict[str, Any] = {}
    for part in [b"".join(grows)] if at_once else grows:
        with session.open("ab") as file:
            file.write(part)
        memory = read_all(session, memory)
    assert memory["usd"] == pytest.approx((100 * 4 + 60 * 20) / M)


def test_messages_without_an_id_are_charged_by_their_request_or_line(session: Path) -> None:
    session.write_bytes(claude(None, 1, output_tokens=10) + claude("", 2, output_tokens=10, block="tool_use"))
    assert usd(session) == pytest.approx(20 * 20 / M)


def test_a_reply_of_the_client_itself_costs_nothing(session: Path) -> None:
    session.write_bytes(claude("m1", model="<synthetic>", output_tokens=10))
    memory = read_all(session)
    assert (memory["usd"], memory["models"], memory["unknown"]) == (0.0, {}, {})


# -- prices -----------------------------------------------------------------------------------------------


def test_each_kind_of_token_has_its_price() -> None:
    """Input, output, cache reads, and writes by how long they are kept; searches of the web."""
    usage = {
        "input_tokens": M,
        "output_tokens": M,
        "cache_read_input_tokens": M,
        "cache_creation_input_tokens": 3 * M,
        "cache_creation": {"ephemeral_5m_input_tokens": 2 * M, "ephemeral_1h_input_tokens": M},
        "server_tool_use": {"web_search_requests": 100},
    }
    assert claude_cost(usage, "claude-opus-4-5-20251101", PRICES) == pytest.approx(5 + 25 + 0.5 + 2 * 6.25 + 10 + 1)
    for split in ({}, None, {"ephemeral_5m_input_tokens": 0}):  # as older clients tell it, or do not
        whole = {"cache_creation_input_tokens": M, "cache_creation": split}
        assert claude_cost(whole, "claude-opus-4-5", PRICES) == pytest.approx(6.25)
    assert cost_of([M, 0, 0, 0, 0, 0], "gpt-5-codex", PRICES) == pytest.approx(1.25)
    assert claude_cost(usage, "nobody-1", PRICES) is None


def test_a_long_prompt_costs_more_as_a_whole() -> None:
    """Cached tokens are a part of the prompt's length; exactly at the limit it is not long."""
    usage = {"input_tokens": 50_000, "cache_read_input_tokens": 150_000, "output_tokens": 1000}
    short = (50_000 * 3 + 150_000 * 0.3 + 1000 * 15) / M
    assert claude_cost(usage, "claude-sonnet-4-5", PRICES) == pytest.approx(short)
    long = (50_001 * 6 + 150_000 * 0.6 + 1000 * 22.5) / M
    assert claude_cost({**usage, "input_tokens": 50_001}, "claude-sonnet-4-5", PRICES) == pytest.approx(long)


def test_fast_mode_costs_a_multiple_or_is_said_to_be_unknown(session: Path) -> None:
    assert claude_cost({"output_tokens": M, "speed": "fast"}, "claude-opus-4-6", PRICES) == pytest.approx(150)
    session.write_bytes(claude("m1", model="claude-haiku-4-5", output_tokens=M, speed="fast"))
    memory = read_all(session)
    assert memory["usd"] == pytest.approx(5)
    assert memory["problem"] == "what claude-haiku-4-5 costs in fast mode is not known; counted as usual"


def test_what_is_done_beside_a_message_is_charged_with_it(session: Path) -> None:
    """Compacting the conversation is not in the message's own counts; another model may have been asked."""
    steps = [
        {"type": "compaction", "input_tokens": 1000, "output_tokens": 100},
        {"type": "advisor_message", "model": "claude-haiku-4-5", "input_tokens": 10, "output_tokens": 1},
        {"type": "message", "input_tokens": 7, "output_tokens": 5},
    ]
    usage = {"input_tokens": 7, "output_tokens": 5, "iterations": steps}
    session.write_bytes(claude("m1", 1, **usage) + claude("m1", 1, block="tool_use", **usage))
    memory = read_all(session)
    assert memory["models"][OPUS][:2] == [1007, 105]
    assert memory["models"]["claude-haiku-4-5"][:2] == [10, 1]


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"),
        ("anthropic/claude-opus-4.1", "claude-opus-4-1"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5.1-codex-max", "gpt-5.1-codex-max"),
        ("models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-3-pro-preview", "gemini-3-pro"),
        ("claude-opus-4-9", None),
        ("claude-opus-4-10", None),
        ("claude-opus-45", None),
        ("gpt-5-turbo", None),
        ("gpt-5.9", None),
        ("o3-deep-research", None),
        ("", None),
    ],
)
def test_a_model_is_found_by_its_name_and_a_newer_one_is_not_guessed(model: str, known: str | None) -> None:
    found = price_of(model, PRICES)
    assert (found and found[0]) == known


def test_the_shipped_table_is_sound() -> None:
    """Dated, every name in the form that it is looked up by, and no kind of token free or dearer than it can be."""
    as_of, models = PRICES
    assert date(2026, 1, 1) < date.fromisoformat(as_of)
    assert len(models) > 40
    for name, usual, above, long, fast in models:
        assert plain_name(name) == name
        for rates in (usual, long) if above else (usual,):
            assert len(rates) == len(KINDS)
            new, told, read, write, hour, _ = rates
            assert 0 < read <= new <= write <= hour
            assert new < told
        assert not above or all(dear >= cheap for dear, cheap in zip(long, usual, strict=True))
        assert fast == 0 or fast > 1
    assert marshal.loads(marshal.dumps(PRICES)) == PRICES


# -- unknown models, and prices of one's own --------------------------------------------------------------


def test_an_unknown_model_is_named_and_not_free(session: Path) -> None:
    """Its tokens are kept by name; once a price is given, they are charged."""
    session.write_bytes(
        claude("m1", model="claude-next-9", input_tokens=M, output_tokens=M) + claude("m2", 1, output_tokens=M)
    )
    memory = read_all(session)
    assert memory["usd"] == pytest.approx(20)
    assert memory["unknown"] == {"claude-next-9": [M, M, 0, 0, 0, 0]}
    given, problems = parse_prices({"claude-next-9": {"input": 100.0, "output": 200}})
    assert problems == []
    priced = read_all(session, memory, load_prices(given))
    assert priced["usd"] == pytest.approx(320)
    assert priced["unknown"] == {}
    assert read_all(session, priced, load_prices(given))["usd"] == pytest.approx(320)


def test_without_any_prices_every_model_is_unknown(session: Path) -> None:
    session.write_bytes(claude("m1", output_tokens=5))
    assert read_all(session, prices=())["unknown"] == {OPUS: [0, 5, 0, 0, 0, 0]}


def test_a_price_of_ones_own_wins_and_what_it_does_not_say_stays(session: Path) -> None:
    given, problems = parse_prices(
        {OPUS: {"output": 1}, "claude-*": {"input": 7.0, "output": 8.0}, "GPT-5": {"fast": 3}}
    )
    prices = load_prices(given)
    assert problems == []
    assert price_of(OPUS, prices) == (OPUS, (4.0, 1.0, 0.2, 5.0, 8.0, 10.0), 0, (), 2.0)
    assert price_of("claude-unheard-of", prices) == ("claude-*", (7.0, 8.0, 7.0, 8.75, 14.0, 10.0), 0, (), 0.0)
    assert price_of("gpt-5", prices) == ("gpt-5", (1.25, 10.0, 0.125, 1.25, 2.5, 10.0), 0, (), 3.0)
    stepped, problems = parse_prices({"x": {"input": 1, "output": 2, "above_input_tokens": 10, "long": {"input": 5}}})
    assert problems == []
    assert cost_of([11, 0, 0, 0, 0, 0], "x", load_prices(stepped)) == pytest.approx(55 / M)
    assert cost_of([10, M, 0, 0, 0, 0], "x", load_prices(stepped)) == pytest.approx(2 + 10 / M)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"m": 5}, '[prices."m"] = 5 is refused; allowed: a table with input'),
        ({"m": {"input": 1}}, "allowed: output must be given"),
        ({"m": {}}, "allowed: input and output must be given"),
        ({OPUS: {"inptu": 1}}, f'[prices."{OPUS}"] inptu = 1 is refused: no such setting (did you mean input?)'),
        ({OPUS: {"input": -1}}, "input = -1 is refused; allowed: dollars per million tokens, from 0 to 100000"),
        ({OPUS: {"input": float("nan")}}, "input = nan is refused"),
        ({OPUS: {"input": float("inf")}}, "input = inf is refused"),
        ({OPUS: {"input": True}}, "input = True is refused"),
        ({OPUS: {"output": "5"}}, "output = '5' is refused"),
        ({OPUS: {"fast": -2}}, "allowed: a factor of all prices"),
        ({OPUS: {"web_search": -1}}, "allowed: dollars per thousand searches"),
        ({OPUS: {"above_input_tokens": 1.5}}, "allowed: a whole number of tokens"),
        ({OPUS: {"long": 3}}, "long = 3 is refused; allowed: a table of prices for longer prompts"),
        ({OPUS: {"long": {"long": 3}}}, "long.long = 3 is refused: no such setting"),
        ({OPUS: {"long": {"input": "x"}}}, "long: input = 'x' is refused"),
        ({"": {"input": 1, "output": 1}}, "[prices] = '' is refused; allowed: a model's name"),
        ({"*": {"input": 1, "output": 1}}, "[prices] = '*' is refused"),
        ({"a*b": {"input": 1, "output": 1}}, "[prices] = 'a*b' is refused"),
        ({"m" * 101: {"input": 1, "output": 1}}, "allowed: a model's name of up to 100 characters"),
    ],
)
def test_a_price_that_cannot_be_used_is_named_and_left_out(table: dict[str, Any], says: str) -> None:
    given, problems = parse_prices(table, "my.toml")
    assert len(problems) == 1
    assert str(problems[0]).startswith("my.toml: ")
    assert says in str(problems[0])
    assert load_prices(given) == PRICES


def test_there_is_an_end_to_the_prices_of_ones_own() -> None:
    given, problems = parse_prices({f"m{number}": {"input": 1, "output": 1} for number in range(500)})
    assert (len(given), len(problems)) == (200, 1)


# -- only what is new -------------------------------------------------------------------------------------


def test_nothing_new_is_the_same_object_and_the_old_memory_is_never_changed(session: Path) -> None:
    empty: dict[str, Any] = {}
    session.write_bytes(claude("m1", 1, output_tokens=5))
    first = read_on(empty, str(session), PRICES)
    assert empty == {}
    kept = copy.deepcopy(first)
    assert read_on(first, str(session), PRICES) is first
    with session.open("ab") as file:
        file.write(claude("m1", 2, output_tokens=9) + claude("m2", 3, model="who", output_tokens=1))
    second = read_on(first, str(session), PRICES)
    assert first == kept
    assert second["usd"] == pytest.approx(9 * 20 / M)


MESSAGES = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from([OPUS, "claude-sonnet-4-5", "nobody"]),
        st.integers(0, 300_000),
        st.integers(0, 900),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(main=MESSAGES, agent=MESSAGES, cuts=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=5))
def test_looks_at_a_growing_file_see_what_one_look_sees(
    tmp_path_factory: pytest.TempPathFactory,
    main: list[tuple[str, str, int, int]],
    agent: list[tuple[str, str, int, int]],
    cuts: list[tuple[float, float]],
) -> None:
    """Wherever the file ended when it was looked at, in the middle of a line or of a character too."""

    def told(prefix: str, rows: list[tuple[str, str, int, int]]) -> bytes:
        lines = [
            claude(f"{prefix}{name}-{model}", second, model=model, input_tokens=given, output_tokens=out) + result(7)
            for second, (name, model, given, out) in enumerate(rows)
        ]
        return b"".join(lines).replace(b"more", "mehr \u00e9\u4e2d".encode())

    folder = tmp_path_factory.mktemp("grows")
    whole, grown = folder / "w" / "s.jsonl", folder / "g" / "s.jsonl"
    contents = {"s.jsonl": told("m", main), "s/subagents/agent-1.jsonl": told("a", agent)}
    for root in (whole.parent, grown.parent):
        (root / "s" / "subagents").mkdir(parents=True)
    for name, content in contents.items():
        (whole.parent / name).write_bytes(content)
    memory: dict[str, Any] = {}
    for at in [*sorted(cuts), (1.0, 1.0)]:
        for share, (name, content) in zip(at, contents.items(), strict=True):
            path = grown.parent / name
            known = path.stat().st_size if path.exists() else 0
            with path.open("ab") as file:
                file.write(content[known : int(share * len(content))])
        memory = read_all(grown, memory)
    once = read_all(whole)
    assert memory.get("unknown") == once.get("unknown")
    assert memory.get("usd", 0) == pytest.approx(once.get("usd", 0))
    assert {name: row[:6] for name, row in memory.get("models", {}).items()} == {
        name: row[:6] for name, row in once.get("models", {}).items()
    }
    assert "problem" not in memory


def test_a_large_backlog_is_read_in_parts(session: Path) -> None:
    """No look reads more than its budget, and the looks together miss nothing."""
    count = 60
    parts = [claude(f"m{number}", number, output_tokens=1) + result(200_000) for number in range(count)]
    session.write_bytes(b"".join(parts))
    memory: dict[str, Any] = {}
    looks = 0
    while (after := read_on(memory, str(session), PRICES)) is not memory:
        memory, looks = after, looks + 1
    assert looks == -(-session.stat().st_size // READ)
    assert memory["models"][OPUS][1] == count


def test_a_huge_transcript_costs_a_look_no_more_than_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 MB before the last line, or 2 MB: the same lines run, the same bytes read."""
    read: list[int] = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *given: read.append(given[1]) or real(*given))
    costs = []
    for size in (2, 200):
        path = tmp_path / f"{size}.jsonl"
        path.write_bytes(claude("m1", 1, output_tokens=1))
        with path.open("r+b") as file:  # long lines of holes, which take no room on the disk
            for at in range(1, size + 1):
                file.seek(at * M)
                file.write(b"\n")
            file.write(claude("m2", 2, output_tokens=1))
        memory = read_all(path)
        assert memory["models"][OPUS][1] == 2
        with path.open("ab") as file:
            file.write(claude("m3", 3, output_tokens=1))
        read.clear()
        after: dict[str, Any] = {}
        ran = lines_run(lambda: after.update(read_on(memory, str(path), PRICES)), "spending")  # noqa: B023
        assert after["models"][OPUS][1] == 3
        costs.append((ran, sum(read)))
        assert read_on(after, str(path), PRICES) is after
    assert costs[0] == costs[1]
    assert costs[0][1] < 10_000


def test_what_is_remembered_stays_small(session: Path) -> None:
    """After 10,000 messages of a main agent, many models, and more sub-agents than are watched."""
    lines = [claude(f"msg_{number:024d}", number % 3600, output_tokens=1) for number in range(10_000)]
    lines += [claude(f"k{number}", 1, model=f"known-{number % 50}", output_tokens=1) for number in range(200)]
    session.write_bytes(b"".join(lines))
    small = read_all(session)
    assert small["models"][OPUS][1] == 10_000
    assert sum(row[1] for row in small["unknown"].values()) == 200
    assert len(small["unknown"]) <= 33
    assert len(json.dumps(small)) < 6_000
    agents(session, SUBAGENT_FILES * 3)
    large = read_all(session, small)
    assert large["models"][OPUS][1] == 10_000 + SUBAGENT_FILES * 3
    assert len(json.dumps(large)) < 20_000


# -- files that are replaced ------------------------------------------------------------------------------


def lines_of(first: int, last: int) -> bytes:
    return b"".join(claude(f"m{number}", number, output_tokens=10) + result(300) for number in range(first, last))


PER_LINE = 10 * 20 / M


@pytest.mark.parametrize(
    ("after", "count"),
    [
        pytest.param(lines_of(0, 50), 100, id="cut off"),
        pytest.param(lines_of(0, 50) + lines_of(100, 200), 200, id="cut off and grown beyond"),
        pytest.param(b"{}\n" + lines_of(0, 100), 100, id="written anew with another beginning"),
        pytest.param(b"{}\n" + lines_of(0, 102), 102, id="written anew and grown"),
        pytest.param(lines_of(200, 203), 103, id="another session's"),
        pytest.param(lines_of(0, 2), 100, id="cut off near its beginning"),
    ],
)
@pytest.mark.parametrize("renamed", [True, False])
def test_a_file_that_was_replaced_is_noticed_and_nothing_is_counted_twice(
    session: Path, after: bytes, count: int, renamed: bool
) -> None:
    """Money that was spent stays spent, although its line is gone."""
    session.write_bytes(lines_of(0, 100))
    memory = read_all(session)
    assert memory["usd"] == pytest.approx(100 * PER_LINE)
    if renamed:
        other = session.with_name("other")
        other.write_bytes(after)
        other.replace(session)
    else:
        session.write_bytes(b"")
        memory = read_all(session, memory)  # looked at in the very moment in which it is empty
        session.write_bytes(after)
    memory = read_all(session, memory)
    assert memory["usd"] == pytest.approx(count * PER_LINE)
    with session.open("ab") as file:
        file.write(lines_of(300, 305))
    assert read_all(session, memory)["usd"] == pytest.approx((count + 5) * PER_LINE)


def test_a_file_that_was_only_moved_or_copied_is_read_on(session: Path) -> None:
    session.write_bytes(lines_of(0, 20))
    memory = read_all(session)
    moved = session.with_name("moved.jsonl")
    session.rename(moved)
    memory = read_all(moved, memory)
    assert memory["usd"] == pytest.approx(20 * PER_LINE)
    assert list(memory["files"]) == [str(moved)]
    copy_of = session.with_name("copy")
    copy_of.write_bytes(moved.read_bytes() + lines_of(20, 21))
    copy_of.replace(moved)
    assert read_all(moved, memory)["usd"] == pytest.approx(21 * PER_LINE)


# -- sessions that go on from others ----------------------------------------------------------------------


def test_messages_that_were_copied_from_another_session_are_not_charged(session: Path) -> None:
    """A fork begins with the messages of the session that it goes on from: marked as such, or older than itself."""
    copied = json.loads(claude("m1", 1, output_tokens=10))
    session.write_bytes(line({**copied, "forkedFrom": {"sessionId": "other"}}) + claude("m2", 2, output_tokens=5))
    assert usd(session) == pytest.approx(5 * 20 / M)
    session.write_bytes(lines_of(0, 100))
    memory = read_on({}, str(session), PRICES, "2026-11-15T21:00:59.500Z")
    assert memory["usd"] == pytest.approx(40 * PER_LINE)
    with session.open("ab") as file:
        file.write(lines_of(100, 101))
    later = read_on(memory, str(session), PRICES, "2026-11-15T23:00:00.000Z")
    assert later["usd"] == pytest.approx(41 * PER_LINE)


def test_codex_tells_the_counts_of_the_thread_that_it_goes_on_from_again(session: Path) -> None:
    """All within the second of the fork; the first count after that is charged by what it has more."""
    lines = [
        codex("session_meta", 7, id="new", forked_from_id="old"),
        codex("turn_context", 7, model="gpt-5"),
        counted(7, (M, 0, 1000)),
        counted(7, (2 * M, 0, 2000), (M, 0, 1000)),
        counted(9, (2 * M + 100, 0, 2010), (100, 0, 10)),
    ]
    session.write_bytes(b"".join(lines))
    assert read_all(session)["models"] == {"gpt-5": [100, 10, 0, 0, 0, 0, pytest.approx((125 + 100) / M)]}


# -- sub-agents -------------------------------------------------------------------------------------------


def agents(session: Path, count: int, first: int = 0) -> list[Path]:
    folder = session.with_suffix("") / "subagents"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"agent-a{number:04d}.jsonl" for number in range(first, first + count)]
    for number, path in enumerate(paths, first):
        path.write_bytes(claude(f"agent{number}", 1, output_tokens=1))
        os.utime(path, ns=(number, number))
    return paths


def test_sub_agents_are_counted_with_their_session(session: Path) -> None:
    """Also when the hook is called inside of one and names its transcript; other files beside them are not theirs."""
    session.write_bytes(claude("m1", 1, output_tokens=10))
    (path,) = agents(session, 1)
    (path.parent / "notes.jsonl").write_bytes(claude("n1", 1, output_tokens=10))
    (path.parent / "agent-x.meta.json").write_bytes(claude("n2", 1, output_tokens=10))
    memory = read_all(session)
    assert memory["models"][OPUS][1] == 11
    assert read_on(memory, str(path), PRICES) is memory
    with path.open("ab") as file:
        file.write(claude("agent0", 1, block="tool_use", output_tokens=4) + claude("later", 2, output_tokens=2))
    assert read_all(path, memory)["models"][OPUS][1] == 10 + 4 + 2


def test_a_sub_agent_that_is_no_longer_watched_is_not_counted_again(session: Path) -> None:
    """More agents than are watched: each is counted once, and those that still work are the ones that are watched."""
    session.write_bytes(claude("m1", 1, output_tokens=1))
    agents(session, 150)
    memory = read_all(session)
    assert memory["models"][OPUS][1] == 151
    assert sum(name.startswith("agent-") for name in memory["files"]) == SUBAGENT_FILES
    assert len(memory["past"]) == 150 - SUBAGENT_FILES
    paths = agents(session, 30, first=150)
    memory = read_all(session, memory)
    assert memory["models"][OPUS][1] == 181
    for path in paths:
        with path.open("ab") as file:
            file.write(claude(f"more of {path.name}", 2, output_tokens=5))
    memory = read_all(session, memory)
    assert memory["models"][OPUS][1] == 181 + 30 * 5
    assert read_on(memory, str(session), PRICES) is memory


def test_messages_of_many_agents_at_once_are_each_charged_once(session: Path) -> None:
    """A backlog of long transcripts, and then a second line for the last message of each of them."""
    session.write_bytes(lines_of(0, 60))
    paths = agents(session, 20)
    for number, path in enumerate(paths):
        path.write_bytes(b"".join(claude(f"a{number}-{at}", at, output_tokens=1) for at in range(50)))
    memory = read_all(session)
    before = memory["models"][OPUS][1]
    assert before == 600 + 20 * 50
    for number, path in enumerate(paths):
        with path.open("ab") as file:
            file.write(claude(f"a{number}-49", 50, block="tool_use", output_tokens=1))
    assert read_all(session, memory)["models"][OPUS][1] == before


def test_a_transcript_that_waits_behind_the_budget_gets_its_turn(session: Path) -> None:
    """A sub-agent's long line while the main agent writes, too: the next look begins with it."""
    (path,) = agents(session, 1)
    path.write_bytes(result(READ - 50_000) + claude("late", 2, output_tokens=7))
    memory: dict[str, Any] = {}
    for number in range(4):
        with session.open("ab") as file:
            file.write(claude(f"m{number}", number, output_tokens=1) + result(100_000))
        memory = json.loads(json.dumps(read_on(memory, str(session), PRICES)))
    assert memory["models"][OPUS][1] == 4 + 7
    assert "problem" not in memory


# -- other agents -----------------------------------------------------------------------------------------


def test_codex_counts_on_and_only_the_difference_is_charged(session: Path) -> None:
    """The same count again costs nothing; a count that has fallen has started anew; the model may change."""
    lines = [
        codex("session_meta", 0, id="s"),
        codex("turn_context", 0, model="gpt-5-codex"),
        codex("event_msg", 1, type="token_count", info=None, rate_limits={}),
        counted(2, (1000, 600, 10)),
        counted(3, (1000, 600, 10)),
        counted(4, (3000, 1600, 50), (2000, 1000, 40)),
        codex("turn_context", 5, model="gpt-5.2-codex"),
        counted(6, (4000, 1600, 60), (1000, 0, 10)),
        counted(7, (500, 100, 5), (300, 100, 3)),
        counted(8, (700, 100, 8), (200, 0, 3)),
    ]
    memory: dict[str, Any] = {}
    for one in lines:
        with session.open("ab") as file:
            file.write(one)
        memory = read_all(session, memory)
    assert memory["models"]["gpt-5-codex"][:3] == [1400, 50, 1600]
    assert memory["models"]["gpt-5.2-codex"][:3] == [1000 + 200 + 200, 10 + 3 + 3, 100]
    first = (1400 * 1.25 + 50 * 10 + 1600 * 0.125) / M
    second = (1400 * 1.75 + 16 * 14 + 100 * 0.175) / M
    assert memory["usd"] == pytest.approx(first + second)
    assert usd(session) == pytest.approx(first + second)
    session.write_bytes(b"{}\n" + session.read_bytes())
    assert read_all(session, memory)["usd"] == pytest.approx(first + second)


def test_codex_that_goes_on_from_another_thread_is_charged_for_its_own_turns(session: Path) -> None:
    session.write_bytes(codex("turn_context", 0, model="gpt-5") + counted(1, (9 * M, 0, M), (100, 0, 10)))
    assert read_all(session)["models"]["gpt-5"][:2] == [100, 10]


def test_codex_says_what_was_written_to_the_cache_and_how_long_the_prompt_was(session: Path) -> None:
    usage = {"input_tokens": 300_000, "cached_input_tokens": 100_000, "cache_write_input_tokens": 50_000}
    info = {"total_token_usage": {**usage, "output_tokens": 10}, "last_token_usage": {**usage, "output_tokens": 10}}
    lines = codex("turn_context", 0, model="gpt-6-sol") + codex("event_msg", 1, type="token_count", info=info)
    session.write_bytes(lines)
    memory = read_all(session)
    assert memory["models"]["gpt-6-sol"][:5] == [150_000, 10, 100_000, 50_000, 0]
    assert memory["usd"] == pytest.approx((150_000 * 4 + 10 * 15 + 100_000 * 0.4 + 50_000 * 5) / M)


def test_codex_that_counts_two_prompts_at_once_has_had_no_long_one(session: Path) -> None:
    session.write_bytes(
        codex("turn_context", 0, model="gpt-6-sol")
        + counted(1, (0, 0, 1))
        + counted(2, (400_000, 0, 1), (200_000, 0, 0))
    )
    assert usd(session) == pytest.approx((400_000 * 2 + 10) / M)


def test_codex_without_a_model_is_unknown(session: Path) -> None:
    session.write_bytes(counted(1, (10, 0, 1)))
    assert read_all(session)["unknown"] == {"codex, model not told": [10, 1, 0, 0, 0, 0]}


GEMINI = gemini("g2", 3, input=1000, output=20, cached=400, thoughts=30, tool=5, total=1055)
GEMINI_USD = (605 * 1.25 + 50 * 10 + 400 * 0.125) / M


def test_gemini_in_lines(tmp_path: Path) -> None:
    """A message comes again when it has grown; what sub-agents used lies in a folder of the session's whole id."""
    path = tmp_path / "session-2026-11-15T21-00-e5fc9c38.jsonl"
    head = {"sessionId": "e5fc9c38-495a", "projectHash": "h", "kind": "main"}
    small = gemini("g2", 3, input=1000, output=1, cached=400)
    records = [head, gemini("g1", 2), small, GEMINI, {**GEMINI, "toolCalls": []}, {"$set": {"lastUpdated": "x"}}]
    path.write_bytes(b"".join(map(line, records)))
    memory = read_all(path)
    assert memory["models"] == {"gemini-2.5-pro": [605, 50, 400, 0, 0, 0, pytest.approx(GEMINI_USD)]}
    below = tmp_path / "e5fc9c38-495a"
    below.mkdir()
    (below / "sub.jsonl").write_bytes(line(gemini("g9", 4, output=100)))
    assert read_all(path, memory)["usd"] == pytest.approx(GEMINI_USD + 100 * 10 / M)


def test_gemini_as_one_document_that_is_written_anew(tmp_path: Path) -> None:
    """Older clients write all of it each time; when such a session goes on in lines, it is not counted again."""
    path = tmp_path / "session-1.json"
    messages = [gemini(f"g{second}", second, output=M) for second in range(50)]
    document = {"sessionId": "s", "projectHash": "h", "messages": messages}
    path.write_text(json.dumps(document, indent=2))
    memory = read_all(path)
    assert memory["usd"] == pytest.approx(500)
    path.write_text(json.dumps(document, indent=2)[:-30])  # looked at while it is being written
    memory = read_all(path, memory)
    assert memory["usd"] == pytest.approx(500)
    assert memory["problem"] == "a transcript is no JSON"
    messages.append(gemini("g50", 50, output=M))
    path.write_text(json.dumps(document, indent=2))
    memory = read_all(path, memory)
    assert memory["usd"] == pytest.approx(510)
    assert "problem" not in memory
    lines = tmp_path / "session-1.jsonl"
    lines.write_bytes(b"".join(line(one) for one in [{"projectHash": "h"}, *messages, gemini("g51", 51, output=M)]))
    assert read_all(lines, memory)["usd"] == pytest.approx(520)


def test_a_document_that_is_too_large_is_said(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.write_text('{\n"messages": [],\n"x": "' + "x" * READ + '"}')
    assert read_all(path)["problem"] == "a transcript that is one JSON document of more than 4 MB is not counted"


# -- whatever else may lie there --------------------------------------------------------------------------


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file or directory"),
        (Path.mkdir, "not a regular file"),
        (make_pipe, "not a regular file"),
        (make_loop, "Too many levels of symbolic links"),
    ],
    ids=["missing", "folder", "pipe", "loop"],
)
def test_what_is_no_file_is_a_problem_until_it_is_one(session: Path, make: Callable[[Path], None], says: str) -> None:
    make(session)
    memory = read_all(session)
    assert memory["problem"] == f"the transcript cannot be read: {says}"
    assert memory["usd"] == 0.0
    if session.is_dir():
        session.rmdir()
    else:
        session.unlink(missing_ok=True)
    session.write_bytes(claude("m1", output_tokens=1))
    assert "problem" not in read_all(session, memory)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "\udcff/\ud800"])
def test_a_path_that_cannot_be_one(path: str) -> None:
    memory = read_on({}, path, PRICES)
    assert memory.get("usd", 0.0) == 0.0


def test_a_file_that_may_not_be_read(session: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from fusewire.agents.spending.ledger import read_on\n"
        "print(read_on({}, sys.argv[2], ())['problem'])"
    )
    session.write_bytes(claude("m1", output_tokens=1))
    session.chmod(0o000)
    given = [*UNPRIVILEGED, sys.executable, "-c", script, str(SOURCE.parent), str(session)]
    ran = subprocess.run(given, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "the transcript cannot be read: Permission denied"


def test_a_line_that_is_cut_waits_for_its_end(session: Path) -> None:
    whole = claude("m1", 1, output_tokens=5)
    session.write_bytes(whole[:-20])
    memory = read_all(session)
    assert memory["usd"] == 0.0
    assert "problem" not in memory
    with session.open("ab") as file:
        file.write(whole[-20:])
    assert read_all(session, memory)["usd"] == pytest.approx(5 * 20 / M)


def test_garbage_is_left_out_and_the_rest_is_counted(session: Path) -> None:
    garbage = [
        b'{"type":"assistant","message":{"usage"\n',
        b'\xff\xfe"usage"\x00\n',
        b'"usage"\n',
        b'["usage"]\n',
        b'{"usage":1}\n',
        b'{"type":"assistant","message":5,"x":"usage","usage":0}\n',
        b'{"type":"assistant","message":{"usage":[]}}\n',
        b'{"type":"event_msg","payload":"token_count","x":{"token_count":1}}\n',
        b'{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":7}},"x":"\\"token_count\\""}\n',
        b'{"type":"turn_context","payload":{"model":7}}\n',
        b'{"type":"gemini","tokens":5}\n',
        b"[" * 100_000 + b'"usage"\n',
        b"\n\n\r\n",
    ]
    session.write_bytes(b"".join(garbage) + claude("m1", 1, output_tokens=5))
    memory = read_all(session)
    assert memory["usd"] == pytest.approx(5 * 20 / M)
    assert memory["problem"] == "a line that is no JSON was left out"
    assert memory["unknown"] == {}


def test_a_line_that_is_too_long_is_left_out_and_said(session: Path) -> None:
    """Wherever it begins, however long it is, and whatever its end looks like."""
    long = [line({"type": "user", "text": "x" * size, "usage": {"output_tokens": 9}}) for size in (3 * READ, READ + 10)]
    parts = [claude("m1", 1, output_tokens=1), long[0], claude("m2", 2, output_tokens=1), long[1]]
    session.write_bytes(b"".join(parts) + claude("m3", 3, output_tokens=1))
    memory = read_all(session)
    assert memory["models"][OPUS][1] == 3
    assert memory["problem"] == "a line longer than 4 MB was left out"


@pytest.mark.parametrize("bad", [-5, 10**15, 1e6, True, "7", [1], {"a": 1}, 10**400])
def test_numbers_that_cannot_be_are_not_counted(session: Path, bad: Any) -> None:
    """The other numbers of the message are."""
    session.write_bytes(claude("m1", 1, input_tokens=bad, output_tokens=5) + claude("m2", 2, output_tokens=5))
    memory = read_all(session)
    assert memory["usd"] == pytest.approx(10 * 20 / M)
    assert memory["problem"].startswith("a count of tokens is ")
    assert len(memory["problem"]) < 100


@pytest.mark.parametrize("bad", [-5, 10**30, "x"])
def test_odd_counts_of_codex(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        codex("turn_context", 0, model="gpt-5")
        + counted(1, (100, 0, 1))
        + counted(2, (bad, 0, 2))
        + counted(3, (200, 0, 3), (100, 0, 2))
    )
    memory = read_all(path)
    assert memory["models"]["gpt-5"][:2] == [200, 3]
    assert memory["problem"].startswith("a count of tokens is ")


@pytest.mark.parametrize("bad", [-5, 10**30, "x"])
def test_odd_counts_of_gemini(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "session-1.jsonl"
    path.write_bytes(line(gemini("g1", 4, output=bad, input=10)))
    memory = read_all(path)
    assert memory["models"]["gemini-2.5-pro"][:2] == [10, 0]
    assert memory["problem"].startswith("a count of tokens is ")


def test_the_hook_pays_little_for_the_ledger() -> None:
    """It is loaded on every tool call, so it loads nothing that is slow to load."""
    script = "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
    script += "import fusewire.agents.spending.ledger\n"
    script += "print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(SOURCE.parent)], capture_output=True, text=True, check=True
    )
    ours = {name for name in ran.stdout.split() if name.startswith("fusewire")}
    parts = ("", ".agents", ".agents.spending", ".agents.spending.ledger", ".core", ".core.money", ".util")
    # Every hook has these anyway.
    parts += (".core.events", ".guard", ".guard.known_agents", ".util.errors", ".util.fast_json")
    assert ours == {f"fusewire{part}" for part in parts}
    assert set(ran.stdout.split()) - ours <= {
        "_json",
        "os",
        "os.path",
        "__future__",
        "stat",
        "_stat",
        "posixpath",
        "genericpath",
        "_collections_abc",
    }
    assert ledger.__doc__


# -- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def spend(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command in a project: its exit code, standard output and standard error."""
    monkeypatch.chdir(project.root)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["spend", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_spend_shows_what_transcripts_cost(spend: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_bytes(claude("m1", 1, input_tokens=1_234_567, output_tokens=1000, cache_creation_input_tokens=10))
    two.write_bytes(claude("m1", 1, output_tokens=M) + claude("m2", 2, model="who-1", output_tokens=3))
    code, out, err = spend(str(one), str(two))
    assert code == 0
    lines = out.splitlines()
    assert lines[:4] == [
        str(one),
        "  model                input  output  cache read  cache write      usd",
        "  claude-opus-5-5  1,234,567   1,000           0           10  $4.9583",
        "  total $4.96 at list price",
    ]
    assert "  who-1                0          3           0            0   unknown" in lines
    assert lines[-1] == "  total $24.96 at list price and what the unknown models cost"
    assert "no price is known for who-1: not in the total, and not free" in err
    assert f"Prices of {PRICES[0]}" in err


def test_spend_in_json(spend: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(claude("m1", 1, output_tokens=M) + claude("m2", 2, model="who-1", output_tokens=3) + b'"usage"{\n')
    code, out, _ = spend(str(path), "--json")
    told = json.loads(out)
    zero = dict.fromkeys(KINDS, 0)
    assert code == 0
    assert told == {
        "usd": 20.0,
        "prices_as_of": PRICES[0],
        "unknown_models": ["who-1"],
        "transcripts": [
            {
                "path": str(path),
                "usd": 20.0,
                "models": {OPUS: {**zero, "output": M, "usd": 20.0}},
                "unknown": {"who-1": {**zero, "output": 3}},
                "problem": "a line that is no JSON was left out",
            }
        ],
    }


def test_spend_takes_the_prices_of_the_project(spend: Any, project: Project, tmp_path: Path) -> None:
    """And says what is wrong with them."""
    path = tmp_path / "one.jsonl"
    path.write_bytes(claude("m1", 1, model="who-1", output_tokens=M))
    (project.root / "fusewire.toml").write_text('[prices."who-1"]\ninput = 1\noutput = 3.5\ncache_reed = 1\n')
    code, out, err = spend(str(path))
    assert code == 0
    assert out.splitlines()[-1] == "  total $3.50 at list price"
    assert 'fusewire.toml: [prices."who-1"] cache_reed = 1 is refused' in err


def test_spend_of_what_cannot_be_read_is_one_line(spend: Any, tmp_path: Path) -> None:
    code, out, err = spend(str(tmp_path / "none.jsonl"))
    assert (code, out) == (1, "")
    assert err == f"Error: {tmp_path / 'none.jsonl'}: the transcript cannot be read: No such file or directory\n"


def test_spend_of_a_transcript_without_tokens(spend: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.traj"
    path.write_text('{\n "trajectory": []}')
    code, out, _ = spend(str(path))
    assert (code, out) == (0, f"{path}\n  no tokens are reported in it\n  total $0.00 at list price\n")


def test_spend_without_a_transcript_tells_what_the_hook_has_counted(spend: Any, project: Project) -> None:
    from fusewire.engine.breaker import Breaker

    code, out, _ = spend()
    assert code == 0
    assert out.startswith("Nothing yet")
    memory = {
        "sessions": {"old": {"usd": 1.5, "at": 1794700000}, "new": {"usd": 0.25, "at": 1794777470.0}, "odd": 5},
        "days": {"2026-11-15": 1.75, "2026-11-14": 1},
        "usd": 2.75,
    }
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember("spend", memory, 1.0)
    code, out, _ = spend()
    assert code == 0
    new, old = (time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) for at in (1794777470, 1794700000))
    assert out.splitlines() == [
        f"{new}  $    0.25  session (new)",
        f"{old}  $    1.50  session (old)",
        "2026-11-15            $    1.75",
        "2026-11-14            $    1.00",
        "total $2.75 at list price",
    ]
    told = json.loads(spend("--json")[1])
    assert told["usd"] == 2.75
    assert [session["session"] for session in told["sessions"]] == ["new", "old"]
    assert told["sessions"][0]["at"] == "2026-11-15T21:17:50Z"
