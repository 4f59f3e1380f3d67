"""`fusewire run` with an agent that asks: blocked on a human is an end of its own. Real processes, agents in sh."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.breakers.loop.questions import times_asked
from fusewire.engine.breaker import Breaker
from fusewire.notify.messages import message_of
from fusewire.notify.news import KINDS, news
from tests.helpers.agents.run_stage import WORK, Stage, staged, status

ASKS = "echo 'I need to know: Which database should I use?'"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = staged(tmp_path, None)
    yield stage
    stage.close()


@pytest.mark.parametrize(
    "does",
    [
        ASKS,
        # Other marks around the same words are the same question.
        "[ $n = 1 ] && echo 'Which database should I use?' || echo '**Which database -- should I use?**'",
        status(status="BLOCKED", recommendation="Which database should I use?"),
        # An outage between is nobody's answer.
        f'[ $n != 2 ] || {{ cat "$ANSWERS/claude_json_api529.out"; exit 1; }}; {ASKS}',
    ],
    ids="same marks status outage".split(),
)
def test_the_same_question_twice_ends_the_run(stage: Stage, does: str) -> None:
    """Exit 5 at the second one, with the question and the way on; nothing is open, so that the answer is enough."""
    ended = stage.run(does)
    assert ended.returncode == 5, ended.stderr
    end = ended.stderr[ended.stderr.index("BLOCKED ON A HUMAN after") :]
    assert "the same question was asked 2 times in a row (limit 2)" in end
    assert re.search(r"\nQuestion: (\*\*)?Which database", end)
    assert "\nNext: answer the question in the prompt" in end
    assert {one.state for one in stage.circuits().values()} == {"CLOSED"}
    answered = stage.run(f"{WORK}; {status(exit_signal='true')}")
    assert answered.returncode == 0, answered.stderr
    assert stage.loop()["question"] is None


def test_after_its_first_question_an_agent_is_told_what_to_do(stage: Stage) -> None:
    """It may have other work; the prompt says what a second question means."""
    advised = '[ $n != 2 ] || echo "$FUSEWIRE_ADVICE" > advice'
    ended = stage.run(f"[ $n = 1 ] && {{ {ASKS}; exit; }}; {advised}; {WORK}", "--max-iterations", "3")
    assert (
        "You asked: Which database should I use? No person answers while the loop runs."
        in (stage.root / "advice").read_text()
    )
    assert ended.returncode == 4, ended.stderr


def test_a_question_in_every_iteration_is_blocked_on_a_human_too(stage: Stage) -> None:
    """Five different ones open the circuit of neutral iterations, and the exit code says why."""
    ended = stage.run('set -- One Two Three Four Five; shift $((n - 1)); echo "$1 or not $1?"')
    assert (ended.returncode, stage.starts()) == (5, [1, 2, 3, 4, 5]), ended.stderr
    assert "5 iterations in a row blocked on a human" in ended.stderr
    assert "\nQuestion: Five or not Five?" in ended.stderr
    assert stage.circuits()["loop/neutral"].state == "OPEN"


def test_the_report_the_status_and_the_notification_have_the_question(stage: Stage) -> None:
    ended = stage.call("run", "--json", "--", "sh", "-c", ASKS)
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["exit"]) == (5, 5)
    assert report["question"] == report["loop"]["question"] == "Which database should I use?"
    assert report["decision"]["rule"] == "loop.blocked_on_human"
    assert "BLOCKED ON A HUMAN: Which database should I use?" in stage.call("status", "loop").stdout
    with Breaker.open(project=stage.root) as breaker:
        (told,) = [one for one in news(breaker, dict.fromkeys(KINDS, 0)) if one.severity != "info"]
        message = message_of(told, breaker, breaker.engine.clock())
    assert told.severity == "alert"
    assert "blocked on a human, asked 2 times in a row: Which database should I use?" in message.body


@pytest.mark.parametrize(
    "does",
    [
        # Work that ends with the same polite question each time.
        f"{WORK}; echo 'Shall I go on with the next part?'",
        # A question, then work.
        f"[ $((n % 2)) = 1 ] && echo 'Shall I go on?' || {{ {WORK}; }}",
        # Another one each time, with work before the fifth.
        f'[ $((n % 4)) = 0 ] && {{ {WORK}; }} || echo "Is this part $n of the work?"',
    ],
    ids="polite alternating different".split(),
)
def test_questions_of_an_agent_that_works_end_nothing(stage: Stage, does: str) -> None:
    ended = stage.run(does, "--max-iterations", "12")
    assert ended.returncode == 4, ended.stderr


def test_an_outage_after_a_question_is_not_the_question_again() -> None:
    """Only where the last iteration asked is anything asked at all."""
    asked = {"kind": "neutral", "blocked": "blocked on human: Which one?"}
    outage = {"kind": "neutral", "blocked": "the model could not be reached: 529"}
    rows = [asked, outage], [asked, outage, asked], [asked, {**asked, "kind": "progress"}, asked]
    assert [times_asked(history) for history in rows] == [0, 2, 1]  # type: ignore[arg-type]
