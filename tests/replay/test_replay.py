"""Replay: past sessions through guard, constraints, spend and breakers; two sets of rules side by side; the report."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fusewire.config.rules import compile_rules
from fusewire.replay.files import replay, replay_all
from fusewire.replay.replayed import Manner, Replayed, Trip
from fusewire.replay.report import render
from tests.cli.test_cli_contract import on_a_terminal
from tests.helpers import DATA
from tests.helpers.project import Project

LOOPS = DATA / "transcripts" / "loops"
HONEST = DATA / "transcripts" / "honest"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DATA / "transcripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDED = _load("recorded")


def shell(command: str, result: str = "done", *, failed: bool = False) -> Any:
    return RECORDED.Call("Bash", {"command": command}, result, failed)


def session_of(folder: Path, *calls: Any, name: str = "s1", form: str = "claude") -> str:
    """A transcript in which one call follows the other."""
    told = RECORDED.Session(name)
    told.asked("Do it.")
    for call in calls:
        told.does(call)
    told.ends("Done.")
    folder.mkdir(exist_ok=True)
    getattr(RECORDED, f"write_{form}")(told, folder)
    return str(folder / f"{name}.jsonl")


def trips(one: Replayed) -> set[tuple[str, str, int]]:
    return {(trip.action, trip.rule, trip.call) for trip in one.trips}


# -- the guard, the constraints, the money ----------------------------------------------------------------


def test_the_guard_is_asked_about_every_call(tmp_path: Path, project: Project) -> None:
    """Also about a line that has to be read; and it has nothing against the same done to other files."""
    write = RECORDED.Call("Write", {"file_path": "/home/dev/project/.claude/settings.json", "content": "{}"}, "ok")
    edit = RECORDED.Call("Edit", {"file_path": "src/a.py", "old_string": "1", "new_string": "2"}, "ok")
    path = session_of(
        *(tmp_path, shell("rm -rf build && ls *.py"), edit, shell('rm -rf "fusewire.toml"'), write, shell("ls"))
    )
    (one,) = replay(path, [Manner(compile_rules(str(project.root)))])
    assert one.problem == ""
    assert trips(one) == {("block", "guard.rm", 3), ("block", "guard.change", 4)}
    assert "fusewire.toml" in one.trips[0].evidence


def test_where_the_agent_worked_is_read_from_the_transcript(tmp_path: Path) -> None:
    """The same line destroys something protected in one folder, and nothing in another."""
    path = session_of(tmp_path, shell("cd .. && rm -rf project/fusewire.toml"))
    elsewhere = session_of(tmp_path, shell("cd .. && rm -rf project/fusewire.toml"), name="s2")
    Path(elsewhere).write_text(Path(elsewhere).read_text().replace("/home/dev/project", "/home/dev/other"))
    assert trips(replay(path)[0]) == {("block", "guard.rm", 1)}
    assert trips(replay(elsewhere)[0]) == set()


def test_constraints_are_counted_and_open_as_in_life(tmp_path: Path, project: Project) -> None:
    """The project's circuit counts its own violations: those of the past are not among them."""
    front = "match:\n  - tool: Bash\n    command: git push --force\ncircuit_breaker:\n  violation_threshold: 3\n"
    front += "  dedup_seconds: 0\n"
    project.constraint("no-force", front)
    forced = [shell("git push --force origin main", f"pushed {number}") for number in range(5)]
    path = session_of(tmp_path / "a", shell("git push origin main"), *forced)
    result = project.json("replay", path)
    rows = {(trip["action"], trip["rule"]): trip for trip in result["transcripts"][0]["trips"]}
    assert rows["tell", "constraint:no-force"]["call"] == 2
    assert rows["block", "constraint:no-force"]["call"] == 5
    assert project.json("status", "no-force")["circuits"][0]["level"] == 0


def test_what_a_session_costs_is_added_up_as_it_goes(tmp_path: Path) -> None:
    """To the same sum as `spend`; and what came after a halt is known."""
    path = str(HONEST / "long_session.jsonl")
    limited = tmp_path / "fusewire.toml"
    limited.write_text("[tool.resource_limits]\nagent_cost_block_usd_unattended = 3.0\n")
    rules = compile_rules(str(tmp_path))
    (one,) = replay(path, [Manner(rules)])
    from fusewire.agents.spending.account import account_of

    assert one.usd == pytest.approx(account_of(path, rules.prices).usd)
    halt = one.first("halt", rules=["spend"])
    assert halt is not None
    assert "$3.0" in halt.evidence
    assert one.usd_after_halt == pytest.approx(one.usd - 3.0, abs=0.1)
    assert one.calls_after_halt == one.calls - halt.call


# -- what Fusewire did when it took place -----------------------------------------------------------------

_REASON = "tool.repetition: Circuit breaker tripped: the same call brought the same result 5 times (limit 5)."


@pytest.mark.parametrize(
    ("form", "before"), [("claude", "PreToolUse:Bash hook error: "), ("codex", "Command blocked by PreToolUse hook: ")]
)
def test_a_session_that_was_halted_in_life_says_so(tmp_path: Path, form: str, before: str) -> None:
    refused = [shell("make", f"{before}{verdict} {_REASON}\nLast: make", failed=True) for verdict in ("BLOCKED",) * 2]
    halted = shell("make", f"{before}HALTED {_REASON}\nRefused 3 times.", failed=True)
    path = session_of(tmp_path, shell("ls"), *refused, halted, form=form)
    (one,) = replay(path)
    lived = [(trip.action, trip.rule, trip.call, trip.times) for trip in one.in_life]
    assert lived == [("block", "repetition", 2, 2), ("halt", "repetition", 4, 1)]
    assert one.trips == []  # a call that was refused did not fail, however often


def test_a_halt_after_a_call_is_in_the_records_of_the_client(tmp_path: Path) -> None:
    """As Claude Code 2.1.325 writes it: no result of the call says so."""
    path = Path(session_of(tmp_path, shell("ls"), shell("ls -l", "more")))
    message = f"HALTED {_REASON}\nRefused 3 times."
    about = {"type": "hook_stopped_continuation", "message": message, "hookName": "PostToolBatch"}
    record = {"type": "attachment", "attachment": {**about, "toolUseID": "hook-1", "hookEvent": "PostToolBatch"}}
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, json.dumps({**record, "uuid": "u", "sessionId": "s1"})]) + "\n")
    (one,) = replay(str(path))
    assert [(trip.action, trip.rule) for trip in one.in_life] == [("halt", "repetition")]


@pytest.mark.parametrize(
    "text",
    [
        f"HALTED {_REASON}",  # an agent reads our own texts
        f"docs/session.md: hook\nBLOCKED {_REASON}",
        "PreToolUse:Bash hook error: BLOCKED: use rg, not grep",  # somebody else's hook
        "PreToolUse:Bash hook error: [policy.sh]: HALTED by the administrator",
    ],
)
def test_other_words_are_no_halt_of_ours(tmp_path: Path, text: str) -> None:
    path = session_of(tmp_path, shell("grep -r HALTED docs", text, failed=text.startswith("Pre")))
    assert replay(path)[0].in_life == []


# -- side by side -----------------------------------------------------------------------------------------

LOOP = str(LOOPS / "same_call_same_result.jsonl")


def test_two_sets_of_rules_side_by_side(project: Project, tmp_path: Path) -> None:
    """Rules in `log` mode stand in the same table, and each difference is named."""
    other = tmp_path / "other.toml"
    other.write_text('[rules]\n"tool.repetition" = "log"\n')
    folder = tmp_path / "runs"
    quiet = session_of(folder, shell("ls"))
    (folder / "loop.jsonl").write_text(Path(LOOP).read_text())
    (tmp_path / "labels.csv").write_text("file,resolved,label\ns1.jsonl,1,\nloop.jsonl,1,loop\n")
    more = ("--compare", str(other), "--labels", str(tmp_path / "labels.csv"))
    result = project.run("replay", str(folder), *more)
    assert result.returncode == 0, result.stderr
    rows = {
        re.split(r"  +", line.strip())[0]: re.split(r"  +", line.strip())[1:] for line in result.stdout.splitlines()
    }
    assert rows["transcripts"] == ["the project's", "other.toml"]
    assert rows["all"] == ["2", "2"]
    assert rows["repetition"][:5] == ["1 / 0", "0", "1 / 0", "1 / 0", "0 / 1"]
    assert rows["false stops"] == ["1", "0"]
    assert rows["calls after the halt"][0] > "0"
    assert rows["calls after the halt"][1] == "0"
    assert "1 transcript with another answer:" in result.stdout
    assert "other.toml: logged by repetition" in result.stdout
    (folder / "a_told.jsonl").write_text((HONEST / "a_hard_bug.jsonl").read_text())
    both = project.run("replay", str(folder), *more).stdout.split("with another answer:")[1].splitlines()
    assert [line.partition(":")[0].rpartition("/")[2] for line in both[1:]] == ["loop.jsonl", "a_told.jsonl"]
    assert quiet not in result.stdout

    data = project.json("replay", str(folder), *more)
    assert [one["name"] for one in data["manners"]] == ["the project's", "other.toml"]
    assert data["manners"][1]["rules"]["repetition"]["logged"] == 2


def test_the_same_rules_make_no_difference(project: Project, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("")
    result = project.run("replay", LOOP, "--compare", str(tmp_path / "other.toml"))
    assert "another answer" not in result.stdout
    assert " / " not in result.stdout


def test_several_paces_in_one_pass(project: Project) -> None:
    """Each pace is judged as if it were replayed alone, whatever the number of processes."""
    paces = [Manner(pace=pace, name=f"{pace} s") for pace in (2, 15)]
    alone = [replay(LOOP, [pace])[0] for pace in paces]
    assert replay(LOOP, paces) == alone
    assert list(replay_all([LOOP, LOOP], 2, paces)) == [alone, alone]
    assert alone[0].trips != alone[1].trips
    result = project.run("replay", LOOP, "--pace", "2,15")
    assert re.search(r"^transcripts +2 s +15 s$", result.stdout, re.MULTILINE)
    assert LOOP not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--pace", "2,fast"), 2, "2,fast"),
        (("--pace", "0"), 2, "allowed: seconds from 0.01"),
        (("--compare", "gone.toml"), 2, "gone.toml"),
        (("--compare", "broken.toml"), 1, "broken.toml: file ="),
        (("--compare", "unknown.toml"), 1, "unknown.toml: [tool] repetition.often = 3 is refused"),
        (("--report", "out.pdf"), 2, "allowed: a file that ends with .md or .html"),
        (("--report", "no/such/folder/out.md"), 1, "the report cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_one_clear_line(project: Project, arguments: tuple[str, ...], code: int, said: str) -> None:
    (project.root / "broken.toml").write_text("[tool\n")
    (project.root / "unknown.toml").write_text("[tool.repetition]\noften = 3\n")
    result = project.run("replay", LOOP, *arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr


# -- the report -------------------------------------------------------------------------------------------


def test_a_report_begins_with_what_is_worth_a_look(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    session_of(folder, shell("ls"), name="quiet")
    for name in ("same_call_same_result", "two_take_turns"):
        (folder / f"{name}.jsonl").write_text((LOOPS / f"{name}.jsonl").read_text())
    (tmp_path / "labels.csv").write_text("file,resolved,label\ntwo_take_turns.jsonl,1,\n")
    for ending in ("md", "html"):
        report = tmp_path / f"out.{ending}"
        project.run("replay", str(folder), "--report", str(report), "--labels", str(tmp_path / "labels.csv"))
        text = report.read_text().replace("\\", "")
        false, halted = text.index("halted, although it is known"), text.index("same_call_same_result.jsonl")
        assert false < text.index("two_take_turns.jsonl") < halted
        assert "quiet.jsonl" not in text
        assert "1 transcript more with nothing to say." in text


HOSTILE = '<img src=x onerror="alert(1)"> | a **b** [c](javascript:d) `e` </table>\n# f\x1b[2J'


def test_what_a_transcript_says_is_no_markup() -> None:
    one = Replayed(HOSTILE, 3, label="loop", trips=[Trip("repetition", "halt", 2, HOSTILE)], problem=HOSTILE)
    page = render([Manner(name="now")], [[one]], html=True)
    assert "<img" not in page
    assert page.count("<table>") == page.count("</table>")
    assert "\x1b" not in page
    assert not re.search(r'(?:src|href)="', page)  # it needs nothing from anywhere
    text = render([Manner(name="now")], [[one]], html=False)
    assert "<img" not in text
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        *("# Replay", "## Summary", "## Rules", "## Worth a look", "## Not readable")
    ]
    (row,) = [line for line in text.splitlines() if line.startswith("| halted | ")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 7
    assert not re.search(r"(?<!\\)[*`\[]", row)


def test_a_bar_is_for_terminals_and_for_many(project: Project) -> None:
    many = [LOOP] * 25
    shown = on_a_terminal(project, "replay", *many)
    assert "Replaying" in shown
    assert shown.count("told by repetition") == 25
    assert "Replaying" not in project.run("replay", *many).stderr
    assert "Replaying" not in on_a_terminal(project, "replay", LOOP)
