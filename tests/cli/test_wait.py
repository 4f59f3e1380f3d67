"""`fusewire wait`: real processes, transcripts as the clients write them, and programs of the clients' names in sh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.util.quiet_hours import end_of_quiet, next_at, parse_clock, parse_hours
from tests.helpers.agents import comes_true

HOUR = 3600


class Person:
    """Somebody with a home, a project, and a `claude` that says that it was started."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project, self.bin = folder / "home", folder / "project", folder / "bin"
        for made in (self.home, self.project, self.bin):
            made.mkdir()
        for name in ("claude", "codex"):
            program = self.bin / name
            program.write_text(f'#!/bin/sh\necho "{name} $*"\nexit 7\n')
            program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
        self.environment = {**kept, "HOME": str(self.home), "TZ": "UTC", "PATH": f"{self.bin}:{kept['PATH']}"}

    def wait(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self._command(arguments), timeout=60, **self._streams(), check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command(arguments), **self._streams())

    def check(self, *arguments: str) -> dict[str, Any]:
        checked: dict[str, Any] = json.loads(self.wait("--until-reset", "--check", "--json", *arguments).stdout)
        return checked

    def claude(self, *records: dict[str, Any], name: str = "s1", cwd: Path | None = None, age: float = 0) -> None:
        folder = self.home / ".claude" / "projects" / "-project"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.jsonl"
        lines = [{"sessionId": name, "cwd": str(cwd or self.project), **record} for record in records]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(path, (time.time() - age, time.time() - age))

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "fusewire", "wait", *arguments]

    def _streams(self) -> dict[str, Any]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return {"cwd": self.project, "env": self.environment, **pipes}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def limited(resets_in: float | None, **quota: object) -> dict[str, Any]:
    """As Claude Code 2.1.325 writes it after a request that the limit of a subscription refused."""
    if resets_in is not None:
        quota = {"status": "rejected", "resetsAt": int(time.time() + resets_in), "rateLimitType": "five_hour", **quota}
    said = {
        "model": "<synthetic>",
        "content": [{"type": "text", "text": "You've hit your limit · resets 6:52am"}],
    }
    refused = {"error": "rate_limit", "isApiErrorMessage": True, "apiErrorStatus": 429}
    return {"type": "assistant", "message": said, **({"quotaLimits": quota} if quota else {}), **refused}


ANSWERED = {"type": "assistant", "message": {"model": "claude-opus-5", "content": [{"type": "text", "text": "Done."}]}}
SAYS_SO = {"type": "assistant", "message": {"model": "claude-opus-5", "content": "usage limit reached, resets at 5pm"}}


# -- the limit ------------------------------------------------------------------------------------------------


def test_it_waits_for_the_reset_and_then_starts_the_command(person: Person) -> None:
    """The command takes its place: its output, its exit code; and it was not started a moment too early."""
    person.claude(limited(2))
    resets = time.time() + 2
    done = person.wait("--until-reset", "--", "claude", "--continue", "-p", code=7)
    assert time.time() >= int(resets)
    assert done.stdout == "claude --continue -p\n"
    assert "waiting " in done.stderr
    assert "the claude limit (five_hour) resets at " in done.stderr


def test_the_reset_is_read_from_the_last_session(person: Person) -> None:
    person.claude(ANSWERED, limited(2 * HOUR))
    checked = person.check()
    assert 2 * HOUR - 60 < checked["seconds"] < 2 * HOUR + 5
    assert checked["limit"] == "five_hour"
    assert "It would start at " in person.wait("--until-reset", "--check").stdout


@pytest.mark.parametrize(
    "records",
    [(ANSWERED,), (limited(2 * HOUR), ANSWERED), (limited(-60),), (SAYS_SO,), (limited(2 * HOUR), SAYS_SO)],
    ids=["answered", "went on", "over", "only words", "words after"],
)
def test_without_a_limit_in_force_nothing_is_waited_for(person: Person, records: tuple[dict[str, Any], ...]) -> None:
    """Also where an answer speaks of a limit: words are none."""
    person.claude(*records)
    assert person.wait("--until-reset", "--", "claude", code=7).stdout == "claude \n"


def test_only_the_newest_session_of_this_project_counts(person: Person, tmp_path: Path) -> None:
    person.claude(limited(HOUR), name="older", age=500)
    person.claude(ANSWERED, name="newest", age=100)
    person.claude(limited(HOUR), name="elsewhere", cwd=tmp_path / "other", age=10)
    assert person.check()["seconds"] == 0
    (person.project / "sub").mkdir()
    person.claude(limited(HOUR), name="below", cwd=person.project / "sub", age=5)
    assert person.check()["seconds"] > HOUR - 60


def test_a_limit_without_an_end_is_tried_after_five_minutes(person: Person) -> None:
    """An API key's 429 says nothing about when it ends."""
    person.claude(limited(None), age=60)
    assert 230 < person.check()["seconds"] < 245
    person.claude(limited(None), age=400)
    assert person.check()["seconds"] == 0


@pytest.mark.parametrize(("used", "waits"), [(100.0, True), (99.0, False)])
def test_codex_notes_how_full_its_windows_are(person: Person, used: float, waits: bool) -> None:
    folder = person.home / ".codex" / "sessions" / "2026" / "11" / "15"
    folder.mkdir(parents=True)
    windows = {
        "primary": {"used_percent": used, "window_minutes": 300, "resets_at": int(time.time()) + HOUR},
        "secondary": {"used_percent": 40.0, "window_minutes": 10080, "resets_at": int(time.time()) + 50 * HOUR},
    }
    records = [
        {"type": "session_meta", "payload": {"id": "x", "cwd": str(person.project)}},
        {"type": "event_msg", "payload": {"type": "token_count", "rate_limits": windows}},
        {"type": "event_msg", "payload": {"type": "token_count", "rate_limits": None}},
    ]
    (folder / "rollout-2026-11-15T21-26-00-x.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    assert (person.check()["seconds"] > HOUR - 60) == waits
    person.claude(limited(9 * HOUR))
    if not waits:  # the command says whose session counts
        assert person.wait("--until-reset", "--", "codex", "resume", "--last", code=7).stdout == "codex resume --last\n"


def test_damaged_and_long_transcripts_are_read_from_their_end(person: Person) -> None:
    filler = [{"type": "user", "message": {"content": "x" * 100_000}}] * 30
    person.claude(limited(-HOUR), *filler, limited(HOUR))
    path = next((person.home / ".claude").rglob("*.jsonl"))
    with path.open("ab") as file:
        file.write(b'\xff{"type": "assistant", "err\n[1, 2]\n')
    assert person.check()["seconds"] > HOUR - 60


# -- the wait -------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_wait_and_starts_nothing(person: Person) -> None:
    person.claude(limited(HOUR))
    waiting = person.start("--until-reset", "--", "claude")
    assert waiting.stderr is not None
    said = waiting.stderr.readline()
    assert said.startswith("waiting 1h"), said
    waiting.send_signal(signal.SIGINT)
    out, rest = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (130, "")
    assert "nothing was started" in rest
    assert "Traceback" not in rest


def test_on_a_terminal_the_countdown_is_one_line(person: Person) -> None:
    import pty

    person.claude(limited(HOUR))
    leader, follower = pty.openpty()
    streams = {"stdin": follower, "stdout": follower, "stderr": follower}
    process = subprocess.Popen(
        [sys.executable, "-m", "fusewire", "wait", "--until-reset", "--", "claude"],
        cwd=person.project,
        env=person.environment,
        start_new_session=True,
        **streams,
    )
    os.close(follower)
    seen = b""

    def counts() -> bool:
        nonlocal seen
        seen += os.read(leader, 4096)
        return seen.count(b"\rwaiting ") >= 2

    try:
        assert comes_true(counts)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        os.close(leader)
    assert b"\n" not in seen


def hours(first: float, last: float) -> str:
    now = time.time()
    return "-".join(time.strftime("%H:%M", time.gmtime(now + offset)) for offset in (first, last))


def test_nothing_starts_in_quiet_hours(person: Person) -> None:
    """Whether the limit has reset or not: it waits until they end."""
    (person.project / "fusewire.toml").write_text(f'[loop]\nquiet = "{hours(-HOUR, 3 * HOUR)}"\n')
    for resets_in in (-60, HOUR):
        person.claude(limited(resets_in))
        checked = person.check()
        assert 3 * HOUR - 61 <= checked["seconds"] <= 3 * HOUR
        assert "; quiet hours " in checked["reason"]
    person.claude(limited(5 * HOUR))
    assert person.check()["seconds"] > 5 * HOUR - 60
    (person.project / "fusewire.toml").write_text(f'[loop]\nquiet = "{hours(3 * HOUR, 4 * HOUR)}"\n')
    person.claude(limited(-60))
    assert person.check()["seconds"] == 0


def test_quiet_hours_that_cannot_be_read_start_nothing(person: Person) -> None:
    """Whoever wrote them wants to sleep; elsewhere a setting that is refused is only a warning."""
    person.claude(ANSWERED)
    (person.project / "fusewire.toml").write_text('[loop]\nquiet = "23-7"\n')
    done = person.wait("--until-reset", "--", "claude", code=1)
    assert (done.stdout, "quiet = '23-7' is refused; allowed: hours of the day" in done.stderr) == ("", True)
    (person.project / "fusewire.toml").write_text("[loop]\nno_progress = -1\n")
    assert person.wait("--until-reset", "--", "claude", code=7).stdout == "claude \n"


def test_a_time_of_day_serves_clients_that_record_nothing(person: Person) -> None:
    at = time.strftime("%H:%M", time.gmtime(time.time() + 2 * HOUR))
    checked = json.loads(person.wait("--at", at, "--check", "--json").stdout)
    assert 2 * HOUR - 61 <= checked["seconds"] <= 2 * HOUR


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--until-reset", "--", "claude"), 1, "no session of Claude Code or Codex is recorded for this project"),
        (("--until-reset", "--", "cluade"), 1, "no such program: cluade"),
        (("--", "claude"), 2, "either --until-reset or --at"),
        (("--until-reset",), 2, "give a command"),
        (("--at", "25:00", "--", "claude"), 2, "--at '25:00' is refused"),
        (("--until-reset", "--json", "--", "claude"), 2, "--json belongs to --check"),
    ],
)
def test_what_cannot_be_waited_for_is_said_in_a_line(
    person: Person, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = person.wait(*arguments, code=code)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_starts_nothing_with_it(person: Person) -> None:
    """It would be a way past the limits on agents."""
    person.claude(ANSWERED)
    person.environment["CLAUDECODE"] = "1"
    done = person.wait("--until-reset", "--", "claude", code=3)
    assert (done.stdout, "is for a person" in done.stderr) == ("", True)


# -- hours ----------------------------------------------------------------------------------------------------


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def local(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    ("quiet", "moment", "end"),
    [
        ("23:00-07:00", "2026-02-12 22:59", "2026-02-12 22:59"),
        ("23:00-07:00", "2026-02-12 23:00", "2026-02-13 07:00"),
        ("23:00-07:00", "2026-02-13 06:59", "2026-02-13 07:00"),
        ("23:00-07:00", "2026-02-13 07:00", "2026-02-13 07:00"),
        ("23:00-07:00", "2026-02-28 23:30", "2026-03-01 07:00"),
        ("23:00-07:00", "2026-03-28 23:30", "2026-03-29 07:00"),  # the clock goes forward that night
        ("23:00-07:00", "2026-10-24 23:30", "2026-10-25 07:00"),  # and back
        ("09:00-17:30", "2026-02-12 12:00", "2026-02-12 17:30"),
        ("09:00-17:30", "2026-02-12 18:00", "2026-02-12 18:00"),
        ("", "2026-02-12 03:00", "2026-02-12 03:00"),
    ],
)
def test_quiet_hours_end_in_the_persons_own_time(berlin: None, quiet: str, moment: str, end: str) -> None:
    assert end_of_quiet(parse_hours(quiet), local(moment)) == local(end)


def test_a_time_of_day_is_the_next_one(berlin: None) -> None:
    assert next_at(parse_clock("15:00"), local("2026-02-12 14:59")) == local("2026-02-12 15:00")
    assert next_at(parse_clock("15:00"), local("2026-02-12 15:00")) == local("2026-02-13 15:00")


@pytest.mark.parametrize("text", ["23-7", "24:00-07:00", "23:00", "07:00-07:00", "23:60-07:00", "-", "23:00-07:0x"])
def test_other_hours_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_hours(text)


# -- what other sessions know ---------------------------------------------------------------------------------


def shared(person: Person, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The circuits of this person's providers."""
    from fusewire.scopes.providers import Providers

    person.environment["XDG_STATE_HOME"] = str(person.home / ".local" / "state")
    monkeypatch.setenv("XDG_STATE_HOME", person.environment["XDG_STATE_HOME"])
    return Providers()


def test_the_limit_of_another_project_is_waited_for_and_the_command_is_the_probe(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No session of this project is recorded. The command holds the probe until it ends."""
    from fusewire.scopes.providers import Refusal

    providers = shared(person, monkeypatch)
    (person.bin / "claude").write_text("#!/bin/sh\necho started\n")
    providers.refused("provider/anthropic", Refusal("five_hour", time.time() + 1, agent="codex"))
    waiting = person.start("--until-reset", "--", "claude")
    out, err = waiting.communicate(timeout=60)
    assert (out, waiting.returncode) == ("started\n", 0), err
    assert "waiting " in err
    met = providers.met(providers.engine.store, "provider/anthropic")
    assert time.time() > met.resets_at
    _, state = providers.engine.view("provider/anthropic")
    assert state.lease == f"{state.lease.split()[0]} wait"
    assert state.lease.startswith(f"{waiting.pid}:")
    assert providers.ask("provider/anthropic", "next").lease == "next"  # that of one that has ended is free


def test_an_answer_elsewhere_ends_the_wait(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    from fusewire.scopes.providers import Refusal

    providers = shared(person, monkeypatch)
    person.claude(limited(HOUR), age=60)
    providers.refused("provider/anthropic", Refusal("five_hour", time.time() + HOUR))
    waiting = person.start("--until-reset", "--", "claude")
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith("waiting 1h: provider:anthropic: ")
    assert providers.answered("provider/anthropic", "another")
    assert waiting.communicate(timeout=60)[0] == "claude \n"
    assert waiting.returncode == 7
    assert person.check()["reason"] == "the provider has answered another session since"
