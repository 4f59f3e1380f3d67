"""The corpus of transcripts: honest work is let through, loops are caught in time, by the code path of the hook."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fusewire.agents.transcripts.reader import Transcript
from fusewire.replay.files import outcome, replay, replay_all, transcripts
from fusewire.replay.replayed import Manner, Replayed, Trip
from tests.helpers import DATA, ROOT
from tests.helpers.project import Project

CORPUS = DATA / "transcripts"


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("detection", ROOT / "bench" / "detection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["detection"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


DETECTION = benchmark()
LABELS = DETECTION.labels()


def named(label: object) -> str:
    return label.path.stem  # type: ignore[attr-defined, no-any-return]


# -- the corpus itself ------------------------------------------------------------------------------------


def test_the_files_are_what_the_scenes_tell(tmp_path: Path) -> None:
    """`python tests/transcripts/make.py` writes them anew; nobody edits one by hand."""
    subprocess.run([sys.executable, str(CORPUS / "make.py"), str(tmp_path)], check=True)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {
        path.relative_to(CORPUS): path.read_text()
        for part in ("honest", "loops")
        for path in (CORPUS / part).rglob("*")
        if path.is_file()
    }
    assert made.keys() == kept.keys()
    assert [str(name) for name in made if made[name] != kept[name]] == []


def test_every_transcript_has_its_label() -> None:
    assert {label.path for label in LABELS} == set(
        map(Path, transcripts([str(CORPUS / "honest"), str(CORPUS / "loops")]))
    )


@pytest.mark.parametrize("label", LABELS, ids=named)
def test_every_transcript_is_read_whole(label) -> None:  # type: ignore[no-untyped-def]
    """As many calls as were written, each with its result, in replies that end, after a message of a person."""
    written = written_calls(label.path)
    transcript = Transcript(label.path)
    assert transcript.format == label.format
    found = list(transcript.steps())
    assert transcript.broken == 0
    calls = [step for step in found if step.kind == "call"]
    results = {(step.agent, step.call) for step in found if step.kind == "result"}
    assert len(calls) == written >= 20
    assert {(step.agent, step.call) for step in calls} == results
    assert sum(step.kind == "prompt" for step in found) >= 1
    assert sum(step.kind == "reply_end" for step in found) >= len({(step.agent, step.turn) for step in calls})
    assert all(isinstance(step.input, dict) and step.tool for step in calls)


def written_calls(path: Path) -> int:
    """Counted by the marks of the formats, not by the reader under test."""
    if path.suffix == ".traj":
        return len(json.loads(path.read_text())["trajectory"])
    files = [path, *(path.parent / path.stem / "subagents").glob("*.jsonl")]
    text = "".join(file.read_text() for file in files)
    return text.count('"type":"tool_use"') + text.count('"type":"function_call"') + text.count('"custom_tool_call"')


# -- what the breakers say of it --------------------------------------------------------------------------


@pytest.mark.parametrize("label", [label for label in LABELS if label.honest], ids=named)
def test_honest_work_is_neither_blocked_nor_halted(label) -> None:  # type: ignore[no-untyped-def]
    (one,) = replay(str(label.path), [Manner(DETECTION.RULES)])
    assert one.problem == ""
    assert [trip for trip in one.trips if trip.action in ("block", "halt")] == [], label.why


@pytest.mark.parametrize("label", [label for label in LABELS if not label.honest], ids=named)
def test_a_loop_is_caught_in_time(label) -> None:  # type: ignore[no-untyped-def]
    (one,) = replay(str(label.path), [Manner(DETECTION.RULES)])
    assert one.problem == ""
    found = DETECTION.verdicts(label, one)
    assert [verdict.kind for verdict in found if verdict.kind != "false tell"] == ["caught"], (label.why, found)


# -- the judge --------------------------------------------------------------------------------------------


def judged(*trips: Trip, **fields: object) -> list[str]:
    honest = fields.pop("honest", False)
    label = DETECTION.Label("x", Path("x"), "claude", honest, "", ("repetition", "cycle"), 5, 9, 12)
    return [verdict.kind for verdict in DETECTION.verdicts(label, Replayed("x", trips=list(trips)))]


def test_the_judge_knows_caught_late_missed_and_false() -> None:
    told, blocked = Trip("repetition", "tell", 8, ""), Trip("repetition", "block", 11, "")
    assert judged(told, blocked) == ["caught"]
    assert judged(told, Trip("cycle", "halt", 12, "")) == ["caught"]
    assert judged(blocked) == ["late"]  # nobody was told by call 9
    assert judged(told, Trip("repetition", "block", 13, "")) == ["late"]
    assert judged(told) == ["missed"]
    assert judged() == ["missed"]
    assert judged(Trip("tool_failure", "block", 8, "")) == ["missed"]  # by a rule that does not fit
    assert judged(Trip("repetition", "tell", 4, ""), told, blocked) == ["false tell", "caught"]
    assert judged(told, blocked, honest=True) == ["false tell", "false block"]
    assert judged(honest=True) == []


# -- replay as a program ----------------------------------------------------------------------------------


def test_replay_prints_a_line_for_each_and_a_table_of_rules(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("honest/todo_updates.jsonl", "loops/same_call_same_result.jsonl"):
        (folder / Path(name).name).write_text((CORPUS / name).read_text())
    (folder / "results.json").write_text('{"resolved": 3}')
    (folder / "notes.txt").write_text("no transcript, and not looked at")
    result = project.run("replay", str(folder))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "results.json: cannot be read" in lines[0]
    assert "told by repetition at call" in lines[1]
    assert lines[2].endswith("25 calls, 26 turns, unattended (nothing tells of a person); nothing to say")
    assert lines[4] == "3 transcripts, 1 of them not readable, 49 calls"
    assert lines[6].split() == ["rule", "told", "asked", "refused", "halted", "logged", "answers"]
    assert "repetition" in result.stdout.split("answers")[1]

    data = project.json("replay", str(folder))
    assert [one["calls"] for one in data["transcripts"]] == [0, 24, 25]
    assert data["unreadable"] == 1
    assert data["rules"]["repetition"]["told"] == 1
    assert not (project.root / ".claude").exists()  # no incident of the past is logged


def test_replay_takes_the_limits_of_the_project(project: Project) -> None:
    loop = str(CORPUS / "loops" / "same_call_same_result.jsonl")
    (project.root / "fusewire.toml").write_text("[tool.repetition]\ntell = 12\nblock = 14\n")
    (trip, *_) = project.json("replay", loop)["transcripts"][0]["trips"]
    assert (trip["rule"], trip["action"], trip["call"]) == ("repetition", "tell", 4 + 12)


def test_two_processes_say_what_one_says() -> None:
    paths = [str(CORPUS / "loops" / f"{name}.jsonl") for name in ("spawn_storm", "api_spam", "two_take_turns")]
    assert list(replay_all(paths, jobs=2)) == list(replay_all(paths))


def test_wrong_usage(project: Project) -> None:
    for arguments, said in (((), "PATH..."), (("missing.jsonl",), "missing.jsonl"), (("--jobs", "0", "."), "--jobs")):
        result = project.run("replay", *arguments)
        assert result.returncode == 2
        assert said in result.stderr


def test_files_of_sub_agents_belong_to_their_session(tmp_path: Path) -> None:
    """With their session they are one transcript; without it each stands for itself."""
    inner = tmp_path / "s1" / "subagents"
    inner.mkdir(parents=True)
    (inner / "agent-a1.jsonl").write_text("")
    assert list(transcripts([str(tmp_path)])) == [str(inner / "agent-a1.jsonl")]
    (tmp_path / "s1.jsonl").write_text("")
    assert list(transcripts([str(tmp_path)])) == [str(tmp_path / "s1.jsonl")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"trajectory": [], "info": {"exit_status": "exit_cost"}}', "exit_cost"),
        ('{"info": {"exit_status": "submitted"}, "resolved": true}', "resolved"),
        ('{"info": {"exit_status": null}}', ""),
        ('{"trajectory": [{"observation": "{\\"exit_status\\": \\"submitted\\"}"}], "info": {}}', ""),
        (f'{{"pad": "{"x" * ((1 << 20) - 20)}", "info": {{"exit_status": "early_exit"}}}}', "early_exit"),
    ],
)
def test_the_outcome_of_a_run_is_read_from_its_keys(tmp_path: Path, text: str, said: str) -> None:
    """Not from a text that quotes one, and also where a block of the file ends in the middle of it."""
    path = tmp_path / "run.traj"
    path.write_text(text)
    assert outcome(str(path)) == said


def test_a_file_that_is_no_transcript_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    for name, content in {
        "a.jsonl": b"",
        "b.traj": b"\xff\xfe\x00",
        "c.json": b"[1, 2",
        "d.jsonl": b"{}\n" * 9,
    }.items():
        (tmp_path / name).write_bytes(content)
        (found,) = replay(str(tmp_path / name))
        assert found.problem, name
        assert "\n" not in found.problem
        assert (found.calls, found.trips) == (0, [])
    assert replay(str(tmp_path / "gone.jsonl"))[0].problem
