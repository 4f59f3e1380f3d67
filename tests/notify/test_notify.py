"""Who is told: configuration, what a message says, and how it reaches each kind of target."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fusewire.config.notify_addresses import Unusable, address_of, scrubbed, shown
from fusewire.config.notify_targets import Target
from fusewire.config.rulebook import Rulebook, read_rulebook
from fusewire.config.rules import Rules, load_rules, user_config_path
from fusewire.engine.breaker import Breaker
from fusewire.notify.messages import Message, message_of
from fusewire.notify.news import KINDS, Item, news, subject_of
from fusewire.notify.send import Undelivered, send
from fusewire.stores.rows import Doing
from tests.helpers.project import Project
from tests.helpers.receivers import mail_server, webhook

#: Of a service that apprise knows, and that nobody asked for.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

SECRET = "T0K3N-that-nobody-may-see"
TRIPS_AT_ONCE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"

MESSAGE = Message("Fusewire: OPEN rule (project p)", "A reason <b> & more.\nNext: a step.", "trip", {"circuit": "rule"})


def configured(project: Project, toml: str, user: str = "") -> Rulebook:
    (project.root / "fusewire.toml").write_text(toml)
    if user:
        path = Path(user_config_path())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(user)
    return read_rulebook(project.root)


def quiet(project: Project) -> Breaker:
    """A breaker whose moves start no process."""
    breaker = Breaker.open(project=project.root)
    breaker.store.after_news = None
    return breaker


def items(breaker: Breaker) -> list[Item]:
    return news(breaker, dict.fromkeys(KINDS, 0))


# -- configuration ----------------------------------------------------------------------------------------


def test_targets_of_user_and_project_are_put_over_each_other_by_name(project: Project) -> None:
    """A project narrows or switches off what its user has, and adds its own."""
    book = configured(
        project,
        '[notify.targets.phone]\nenabled = false\n[notify.targets.desk]\nseverity = "alert"\n'
        '[notify.targets.team]\nurl_env = "TEAM_URL"\ncircuits = ["loop/*"]\n[notify]\ndedup = "0s"\n',
        '[notify.targets.phone]\nurl = "ntfy://topic"\n[notify.targets.desk]\nurl = "desktop:"\n'
        "[notify]\nattempts = 2\n",
    )
    assert book.warnings == []
    assert [(target.name, target.severity) for target in book.targets.enabled()] == [
        ("desk", "alert"),
        ("team", "trip"),
    ]
    assert [target.name for target in book.targets.usable()] == ["phone", "desk", "team"]
    assert book.values["notify"].parsed == {"dedup": 0.0, "attempts": 2, "per_minute": 10}
    assert load_rules(str(project.root)).notify == ("desk", "team")


def test_a_project_cannot_send_elsewhere_what_its_user_is_told(project: Project) -> None:
    """Where a target leads is said by the first file that has it; a later one is refused, and named."""
    book = configured(project, '[notify.targets.a]\nurl = "http://b/"\n', '[notify.targets.a]\nurl = "http://a/"\n')
    assert [target.address for target in book.targets.enabled()] == ["http://a/"]
    (warning,) = map(str, book.warnings)
    assert warning.startswith(
        "fusewire.toml: [notify.targets.a] url = '...' is refused; allowed: nothing: where a leads"
    )


def test_a_target_that_a_user_does_not_have_can_be_switched_off(project: Project) -> None:
    """A project's file is for many people; not all of them have the same targets."""
    book = configured(project, "[notify.targets.phone]\nenabled = false\n")
    assert (book.warnings, book.targets.usable(), Rules(*book.compile({})).notify) == ([], [], ())


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (f'notify = "{SECRET}"', "notify = '...' is refused; allowed: a table [notify] of settings"),
        (
            f'[notify]\nurl = "http://{SECRET}"',
            "[notify] url = '...' is refused: no such setting; allowed: dedup",
        ),
        (
            f'[notify.target.a]\nurl = "{SECRET}"',
            "[notify] target = '...' is refused: no such setting (did you mean targets?)",
        ),
        ('[notify]\ndedup = "soon"', "[notify] dedup = 'soon' is refused; allowed: a duration of at least 0s"),
        ("[notify]\nattempts = 0", "[notify] attempts = 0 is refused; allowed: a whole number from 1 to 5"),
        (
            f'[notify]\ntargets = "{SECRET}"',
            "[notify] targets = '...' is refused; allowed: tables [notify.targets.NAME]",
        ),
        (f'[notify.targets]\na = "{SECRET}"', "[notify.targets.a] = '...' is refused; allowed: a table with url"),
        ('[notify.targets."a/b"]\nurl = "desktop:"', "[notify.targets] = 'a/b' is refused; allowed: letters"),
        (f'[notify.targets.a]\nurl = "{SECRET}"', "url = '...' is refused; allowed: desktop: or SCHEME://..."),
        (
            f'[notify.targets.a]\nurl_env = "https://{SECRET}"',
            "url_env = '...' is refused; allowed: the name of an env",
        ),
        (f'[notify.targets.a]\nurl_file = "https://{SECRET}"', "url_file = '...' is refused; allowed: the path"),
        (
            f'[notify.targets.a]\nurl = "desktop:"\ntoken = "{SECRET}"',
            "token = '...' is refused: no such setting; allowed: url,",
        ),
        (
            '[notify.targets.a]\nurl = "desktop:"\nseverity = "loud"',
            "severity = 'loud' is refused; allowed: info, warn",
        ),
        ('[notify.targets.a]\nurl = "desktop:"\ncircuits = "loop"', "circuits = 'loop' is refused; allowed: a list"),
        ('[notify.targets.a]\nurl = "desktop:"\nenabled = 1', "enabled = 1 is refused; allowed: true or false"),
        ('[notify.targets.a]\nseverity = "info"', "[notify.targets.a] = 'no address' is refused; allowed: one of url,"),
        ('[notify.targets.a]\nurl = "desktop:"\nurl_env = "A"', "= 'url and url_env' is refused; allowed: one of"),
    ],
)
def test_what_cannot_be_used_is_a_warning_without_secrets(project: Project, toml: str, said: str) -> None:
    """Which file, which key, what is allowed; never the value where it may be a secret."""
    (project.root / "fusewire.toml").write_text(toml)
    result = project.run("status")
    assert result.returncode == 0
    assert said in result.stderr
    assert SECRET not in result.stdout + result.stderr
    assert project.run("doctor").returncode == 1


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("desktop:", "desktop:"),
        (f"https://hooks.example.org/services/{SECRET}?k={SECRET}", "https://hooks.example.org/..."),
        (f"http://dev:{SECRET}@127.0.0.1:8080/x", "http://127.0.0.1:8080/..."),
        (f"mailto://dev:{SECRET}@example.org", "mailto://example.org/..."),
        (f"http://{SECRET}/x@example.org", "http://..."),
        (f"http://example.org:{SECRET}/", "http://..."),
        (f"ntfy://{SECRET}", "ntfy://..."),
        (f"slack://{SECRET}/B/C", "slack://..."),
    ],
)
def test_of_a_url_only_scheme_and_host_are_shown(url: str, told: str) -> None:
    """And no host where the service has its secret in that place."""
    assert shown(url) == told
    said = f"could not reach {url}: {SECRET} was refused"
    assert SECRET not in scrubbed(said, url) or SECRET not in url


def test_a_url_comes_from_the_environment_or_a_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no secret need be in a repository; a file is looked for beside the file that names it."""
    root = str(project.root)
    (project.root / "url.txt").write_text("json://127.0.0.1/a\nand a comment\n")
    Path(user_config_path()).parent.mkdir(parents=True)
    Path(user_config_path()).with_name("url.txt").write_text("json://127.0.0.1/b")
    monkeypatch.setenv("A_URL", " json://127.0.0.1/c ")

    def found(kind: str, address: str, source: str = "fusewire.toml") -> str:
        return address_of(Target("a", source, kind, address, ("*",), "trip", True), root)

    assert found("url_file", "url.txt") == "json://127.0.0.1/a"
    assert found("url_file", "url.txt", user_config_path()) == "json://127.0.0.1/b"
    assert found("url_env", "A_URL") == "json://127.0.0.1/c"
    for kind, address, why in (
        ("url_env", "B_URL", "the environment variable B_URL is not set in the process that delivers"),
        ("url_file", "none.txt", "none.txt cannot be read: No such file or directory"),
        ("url_file", "fusewire", "fusewire cannot be read"),
        ("url_file", "docs.txt", "the first line of .*docs.txt is no URL"),
    ):
        (project.root / "docs.txt").write_text(SECRET)
        (project.root / "fusewire").mkdir(exist_ok=True)
        with pytest.raises(Unusable, match=why) as caught:
            found(kind, address)
        assert SECRET not in str(caught.value)


# -- what is told -----------------------------------------------------------------------------------------


def test_a_trip_is_told_with_reason_evidence_way_on_and_time(project: Project) -> None:
    """The block message of the house, after a title that says what happened to what, and where."""
    project.constraint("rule", TRIPS_AT_ONCE)
    breaker = quiet(project)
    breaker.record("rule", "git push\x1b[31m --force", session="s-1")
    (item,) = items(breaker)
    told = message_of(item, breaker, breaker.engine.clock(), again=2, since=item.at, lost=1)
    clock = told.body.split("CLOSED -> OPEN at ")[1][:20]
    assert told.title == "Fusewire: OPEN rule (project project)"
    lines = told.body.splitlines()
    assert lines[0] == "CIRCUIT OPEN constraint:rule: 1 violation within 30d (limit 1)."
    assert "Last: git push [31m --force" in lines
    assert "Session: s-1" in lines
    assert any(line.startswith("Next: do the work in a way that keeps to the constraint") for line in lines)
    assert any(line.startswith("A probe is allowed at ") for line in lines)
    assert 'A person can run: fusewire reset rule --reason "..."' in lines
    assert lines[-2:] == [
        f"And 2 more times since {clock}, which was not told one by one.",
        "1 message before this one could not be delivered; see: fusewire notify",
    ]
    assert told.fields["circuit"] == "rule"
    assert (told.fields["event"], told.fields["severity"], told.severity) == ("open", "trip", "trip")


def test_moves_have_severities_and_say_who_acted(project: Project) -> None:
    """open is a trip; what people do, and what closes, is information; a warning of a phase is a warning."""
    project.constraint("rule", TRIPS_AT_ONCE)
    breaker = quiet(project)
    breaker.record("rule", "x")
    breaker.override("rule", "a release", 60)
    breaker.reset("rule", "mended")
    found = items(breaker)
    assert [(item.what, item.severity) for item in found] == [
        ("OPEN", "trip"),
        ("OVERRIDDEN", "info"),
        ("CLOSED", "info"),
    ]
    bodies = [message_of(item, breaker, item.at).body for item in found]
    assert bodies[0].endswith("It has moved on since: it is CLOSED now.")
    assert bodies[1].startswith("constraint:rule: a release (for 1m).\noverridden at ")
    assert ", by " in bodies[1]
    assert bodies[2].startswith("constraint:rule: mended.\nOPEN -> CLOSED at ")
    assert [item.session for item in found] == ["", "", ""]
    breaker.record("phase/REFACTOR", "x", signal="no_progress")
    for _ in range(3):
        breaker.record("phase/REFACTOR", "x", signal="no_progress")
    assert [(item.what, item.severity) for item in items(breaker)[3:]][:1] == [("HALF_OPEN", "warning")]


LURE = "[Reset was approved](https://evil.example/login) @everyone [so][1] <@&5>"
HARMLESS = "[Reset was approved]\u200b(https://evil.example/login) @\u200beveryone [so]\u200b[1] <@\u200b&5>"


def test_what_an_agent_writes_is_neither_a_link_nor_a_mention(project: Project) -> None:
    """Chats take Markdown and names in any text; facts for programs are what they were."""
    for name in ("rule", "other"):
        project.constraint(name, TRIPS_AT_ONCE)
    breaker = quiet(project)
    breaker.record("rule", LURE, session="@here")
    breaker.reset("rule", LURE)
    with breaker.store.transact() as transaction:
        transaction.notice(LURE, breaker.engine.clock())
        transaction.happened(Doing("@here", "", breaker.engine.clock(), "halted", "Bash", f"rule@all: {LURE}"))
    for _ in range(3):
        breaker.record("tool/tool_failure/@all/s", LURE)
    breaker.reset("tool/tool_failure/@all/s", "mended")
    breaker.record("other", LURE, session="@here")
    found = items(breaker)
    told = [message_of(item, breaker, item.at) for item in found]
    assert len(told) == 7
    for one in told:
        assert not re.search(r"@(?!\u200b)|\][(\[]", one.title + one.body)
    evidence = [one.body.partition("Last: ")[2].partition("\n")[0] for one in told]
    assert evidence[-1] == HARMLESS
    assert {one.fields["reason"] for one in told} >= {LURE}
    assert {one.fields["session"] for one in told} >= {"@here"}
    assert {one.fields["circuit"] for one in told} >= {"tool/tool_failure/@all/s"}


def test_a_circuit_that_trips_again_and_again_is_an_alert(project: Project) -> None:
    """From the fifth trip in a row on; before, it is a trip like any other."""
    breaker = quiet(project)
    now = [breaker.engine.clock()]
    breaker.engine.clock = lambda: now[0]
    circuit = "tool/tool_failure/Bash(pytest)"
    for _ in range(3):
        breaker.record(circuit, "pytest")
    for _ in range(4):
        now[0] += 10_000
        lease = breaker.check(circuit).lease
        assert lease is not None
        before = items(breaker)[-1]
        breaker.record(circuit, "pytest", lease=lease)
        opened = [item for item in items(breaker) if item.what == "OPEN"]
        assert before.what == "HALF_OPEN"
    assert (opened[-1].severity, opened[-1].names) == ("alert", (circuit, "notice"))
    assert {(item.severity, item.names) for item in opened[:-1]} == {("trip", (circuit,))}
    assert message_of(opened[-1], breaker, now[0]).title.startswith(
        "Fusewire: ALERT, OPEN tool/tool_failure/Bash(pytest) "
    )


def test_a_notice_is_an_alert_until_it_is_acknowledged(project: Project) -> None:
    """What a person must acknowledge is told as an alert, and not afterwards."""
    breaker = quiet(project)
    with breaker.store.transact() as transaction:
        transaction.notice("a protected file\x07 was changed", breaker.engine.clock())
    (found,) = items(breaker)
    assert (found.what, found.severity, found.names) == ("NOTICE", "alert", ("notice",))
    told = message_of(found, breaker, found.at)
    assert told.title == "Fusewire: ALERT, NOTICE (project project)"
    assert told.body == "a protected file  was changed\nA person who has seen it can run: fusewire doctor --acknowledge"
    with breaker.store.transact() as transaction:
        transaction.acknowledge()
    assert items(breaker) == []


def test_sessions_are_left_out_of_what_makes_two_messages_the_same() -> None:
    """One session after the other that runs into the same is the same; another tool is not."""
    session = "479528ae-91f4-4945-992c-9db9f0bba192"
    for circuit, subject in (
        (f"tool/tool_failure/Bash(pytest)/{session}", "tool/tool_failure/Bash(pytest)"),
        (f"tool/hook_recursion/format/{session}:a1", "tool/hook_recursion/format"),
        ("tool/tool_failure/Bash(pytest)", "tool/tool_failure/Bash(pytest)"),
        (f"tool/repetition/{session}/a-b-c", "tool/repetition"),
        (f"tool/spend/{session}", "tool/spend"),
        ("tool/spend_day", "tool/spend_day"),
        ("attempt/S-1/test_login", "attempt/S-1/test_login"),
        ("loop/no_progress", "loop/no_progress"),
        ("git-safety", "git-safety"),
    ):
        assert subject_of(circuit) == subject


def test_targets_choose_by_circuit_and_severity() -> None:
    """The least severity, and any of the globs; `*` goes across slashes."""
    target = Target("a", "fusewire.toml", "url", "desktop:", ("loop/*", "halt", "git-*"), "trip", True)
    assert target.wants(("loop/no_progress",), "trip")
    assert target.wants(("halt", "tool/spend/s"), "alert")
    assert target.wants(("git-safety",), "alert")
    assert not target.wants(("loop/no_progress",), "warning")
    assert not target.wants(("tool/spend/s",), "alert")


# -- how it gets there ------------------------------------------------------------------------------------


def test_a_webhook_gets_the_text_and_the_facts_as_json() -> None:
    """Path and query as they were given, and beside title and text the same facts for programs."""
    with webhook() as target:
        send(f"{target.url}/hook/{SECRET}?k=a%20b&k=c", MESSAGE)
        ((path, body),) = target.requests
    assert path == f"/hook/{SECRET}?k=a+b&k=c"
    assert (body["title"], body["message"], body["type"]) == (MESSAGE.title, MESSAGE.body, "failure")
    assert body["circuit"] == "rule"


def test_ntfy_gets_topic_title_and_text_and_no_picture_from_elsewhere() -> None:
    with webhook() as target:
        send(f"ntfy://127.0.0.1:{target.port}/alerts", MESSAGE)
        ((_, body),) = target.requests
    assert body == {"topic": "alerts", "title": MESSAGE.title, "message": MESSAGE.body}


def test_slack_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an agent wrote is no mark-up there; only the address of the service is another one here."""
    from apprise.plugins.slack import NotifySlack

    with webhook() as target:
        target.answer = b"ok"
        monkeypatch.setattr(NotifySlack, "webhook_url", f"{target.url}/services")
        send("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7/#general", MESSAGE)
        ((path, body),) = target.requests
    assert path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7"
    assert MESSAGE.title in json.dumps(body)
    assert "A reason &lt;b&gt; &amp; more." in json.dumps(body)


def test_mail_is_sent_and_nothing_in_it_is_mark_up() -> None:
    with mail_server() as mailbox:
        where = f"smtp=127.0.0.1&mode=insecure&from=fuse@example.org&to=dev@example.org&port={mailbox.port}"
        send(f"mailto://example.org:{mailbox.port}/?{where}", MESSAGE)
        (letter,) = mailbox.letters
    assert "rcpt to:<dev@example.org>" in [line.lower() for line in mailbox.heard]  # Pythons differ in the case
    from email import message_from_string
    from email.header import decode_header, make_header

    mail = message_from_string(letter)
    assert str(make_header(decode_header(mail["Subject"]))) == MESSAGE.title
    assert mail.get_content_type() == "text/plain"
    written = mail.get_payload(decode=True)
    assert isinstance(written, bytes)
    assert written.decode().split() == MESSAGE.body.split()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, and empty."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, does: str = "") -> Path:
    """A program that writes down its words, one a line with their ends marked."""
    out = folder / f"{name}.out"
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\nopen({str(out)!r}, 'w').write(json.dumps(sys.argv[1:]))\n{does}\n"
    )
    path.chmod(0o755)
    return out


def test_the_desktop_is_told_by_its_own_program(programs: Path) -> None:
    """notify-send where it is, else osascript; what an agent wrote is a word, never a line or mark-up."""
    with pytest.raises(Unusable, match="neither notify-send nor osascript is on the PATH"):
        send("desktop:", MESSAGE)
    out = program(programs, "osascript")
    send("desktop:", MESSAGE)
    assert json.loads(out.read_text())[-3:] == ["--", MESSAGE.title, MESSAGE.body]
    out = program(programs, "notify-send")
    send("desktop://", MESSAGE)
    assert json.loads(out.read_text()) == [
        *("--app-name=Fusewire", "--urgency=normal", "--"),
        *(MESSAGE.title, "A reason &lt;b&gt; &amp; more.\nNext: a step."),
    ]
    program(programs, "notify-send", "sys.exit('no display')")
    with pytest.raises(Undelivered, match="notify-send ended with 1: no display"):
        send("desktop:", MESSAGE)


@contextmanager
def dripping() -> Iterator[int]:
    """A server that answers one byte after the other, and never comes to an end."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # nobody came
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.05):
                    try:
                        connection.sendall(b"X")
                    except OSError:
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_what_goes_wrong_is_one_line_without_secrets() -> None:
    """An error, nobody there, no answer, an answer without an end, a URL that leads nowhere."""
    cases: list[tuple[str, type[Exception], str]] = []
    with webhook(status=500) as broken, webhook() as silent, dripping() as endless:
        silent.answers.clear()
        cases += [
            (f"{broken.url}/{SECRET}", Undelivered, "Internal server error., error=500"),
            (f"http://dev:{SECRET}@127.0.0.1:1/", Undelivered, "Connection error"),
            (f"{silent.url}/{SECRET}", Undelivered, "no answer within 1 s"),
            (f"http://127.0.0.1:{endless}/{SECRET}", Undelivered, "no answer within 1 s"),
            (f"nosuch://{SECRET}/", Unusable, "apprise cannot use this nosuch:// URL"),
            (f"http://127.0.0.1:99999/{SECRET}", Unusable, "no number up to 65535"),
            (f"http:///{SECRET}", Unusable, "no host"),
        ]
        for url, kind, said in cases:
            with pytest.raises(kind, match=said) as caught:
                send(url, MESSAGE, limit=1.0)
            assert SECRET not in str(caught.value)
            assert "\n" not in str(caught.value)


def test_a_service_that_takes_its_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as an attempt may take, not as long as apprise would; unless the URL itself says how long."""
    from apprise import URLBase

    monkeypatch.setattr(URLBase, "socket_read_timeout", 0.1)
    for schema in ("http", "json", "ntfy"):
        with webhook() as slow:
            slow.answers.clear()
            threading.Timer(0.5, slow.answers.set).start()
            send(f"{schema}://127.0.0.1:{slow.port}/hook", MESSAGE)
            assert len(slow.requests) == 1
    with webhook() as slow:
        slow.answers.clear()
        with pytest.raises(Undelivered):
            send(f"json://127.0.0.1:{slow.port}/hook?rto=0.1", MESSAGE)
        assert not slow.answers.is_set()


# -- the command ------------------------------------------------------------------------------------------


def test_the_command_shows_targets_and_tests_them(project: Project) -> None:
    """What each is told and how it fares; a test says what went wrong, and exits with 1."""
    result = project.run("notify")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("No targets yet.")
    assert "fusewire/config.toml" in result.stdout
    assert project.run("notify", "test").returncode == 1
    with webhook() as target:
        configured(
            project,
            f'[notify.targets.good]\nurl = "{target.url}/{SECRET}"\ncircuits = ["loop/*"]\n'
            f'[notify.targets.bad]\nurl = "http://127.0.0.1:1/{SECRET}"\nseverity = "alert"\n'
            f'[notify.targets.off]\nurl = "{target.url}/off"\nenabled = false\n',
        )
        good = project.run("notify", "test", "good")
        assert (good.returncode, good.stderr) == (0, "")
        assert good.stdout.startswith(f"good: sent to {target.url}/... in ")
        everyone = project.run("notify", "test")
        assert everyone.returncode == 1
        assert everyone.stderr.splitlines() == [
            "Error: bad: A Connection error occurred sending JSON notification to 127.0.0.1"
        ]
        assert [path for path, _ in target.requests] == [f"/{SECRET}"] * 2
        assert target.titles == ["Fusewire: test (project project)"] * 2
        facts = target.requests[0][1]
        assert (facts["event"], facts["circuit"], facts["session"]) == ("test", None, None)
        assert facts["reason"] == "a test"
        tested = json.loads(project.run("notify", "test", "off", "--json").stdout)
        assert [(one["name"], one["ok"]) for one in tested["targets"]] == [("off", True)]
        assert json.loads(project.run("notify", "--json", "test", "off").stdout)["targets"][0]["ok"]
    unknown = project.run("notify", "test", "none")
    assert (unknown.returncode, unknown.stderr) == (1, "Error: no target named 'none'; allowed: good, bad, off\n")
    listed = project.run("notify")
    lines = listed.stdout.splitlines()
    assert lines[0].startswith(f"good  {target.url}/...")
    assert "  trip and above of loop/*: 2 sent, the last at " in lines[0]
    assert "  alert: 0 lost; failed at " in lines[1]
    assert lines[2].endswith("trip and above: off (fusewire.toml)")
    first, second, third = project.json("notify")["targets"]
    assert (first["sent"], first["problem"], first["waiting"], first["circuits"]) == (2, None, 0, ["loop/*"])
    assert (second["severity"], second["lost"], second["enabled"], third["enabled"]) == ("alert", 0, True, False)
    assert SECRET not in listed.stdout + json.dumps([first, second, third]) + everyone.stdout + everyone.stderr


def test_without_apprise_it_is_said_what_to_install(project: Project, tmp_path: Path) -> None:
    """In one line, and the desktop works nevertheless."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "apprise.py").write_text("raise ImportError('not here')\n")
    out = program(hidden, "notify-send")
    configured(project, '[notify.targets.hook]\nurl = "http://127.0.0.1:1/"\n[notify.targets.desk]\nurl = "desktop:"\n')
    env = {"PYTHONPATH": str(hidden), "PATH": f"{hidden}:{os.environ['PATH']}"}
    result = project.run("notify", "test", env=env)
    assert (result.returncode, result.stderr) == (
        1,
        "Error: hook: apprise is not installed; do: pip install 'fusewire[notify]'\n",
    )
    assert result.stdout.startswith("desk: sent to desktop: in ")
    assert "Fusewire: test (project project)" in json.loads(out.read_text())


def test_an_agent_neither_tests_targets_nor_changes_them(project: Project) -> None:
    """Test after test would use up what a service takes; where messages go is in files that are protected."""
    with webhook() as target:
        configured(project, f'[notify.targets.hook]\nurl = "{target.url}"\n')
        refused = project.run("notify", "test", "hook", env={"CLAUDECODE": "1"})
        assert (refused.returncode, refused.stdout, target.requests) == (3, "", [])
        assert refused.stderr.startswith("BLOCKED: `fusewire notify test` is for a person at a terminal")
        assert project.run("notify", env={"CLAUDECODE": "1"}).returncode == 0
    for path in (str(project.root / "fusewire.toml"), user_config_path()):
        payload = project.bash(
            "", tool_name="Edit", tool_input={"file_path": path, "old_string": "a", "new_string": ""}
        )
        assert b"BLOCKED" in project.hook(payload).stdout + project.hook(payload).stderr
