"""`fusewire install` and `uninstall`: people's settings files, with everything of theirs in them, before and after."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusewire.agents import AGENTS
from fusewire.agents.install import command, files
from fusewire.agents.install import merge as merging
from fusewire.agents.install.jsonc import JsoncError, beyond_json, read
from fusewire.agents.registry import CLIENTS
from fusewire.util.errors import FusewireError
from tests.helpers import SOURCE
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

LINE = ["/opt/it's mine/python", "-I", "-S", "/opt/a b/fusewire/hook.py"]

#: Where each agent's hooks are registered, below the home folder and below a project.
USER = {name: f"{client.known.home.removeprefix('~/')}/{client.file}" for name, client in CLIENTS.items()}
SHARED = {name: client.shared for name, client in CLIENTS.items()}

THEIRS = """{
    // what I like
    "model": "opus", /* the large one */
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]} // mine
        ],
        "BeforeTool": [],
        "Stop": [ {"hooks": []}, {"hooks": []} ]
    },
    "last": [1, 2.50, "\\u00e9"]
}"""


def home() -> Path:
    return Path(os.environ["HOME"])


def plain(text: str) -> str:
    """The same without comments, for agents that read none."""
    for comment in ("// what I like", "/* the large one */", "// mine"):
        text = text.replace(comment, "")
    return text


def user_file(agent: str, text: str | None = None) -> Path:
    path = home() / USER[agent]
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return path


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def ours(path: Path, agent: str) -> dict[str, list[dict[str, Any]]]:
    return merging.registered(read(path.read_text("utf-8-sig")).value, CLIENTS[agent])


# -- the text ---------------------------------------------------------------------------------------------

blanks = st.lists(
    st.sampled_from([" ", "\t", "\n", "\n    ", "\r\n", "\r", "/* c */", "// x  \n", "// */\r\n", "/* //\n*/"]),
    max_size=2,
).map("".join)
scalars = st.sampled_from(["1", "-2.5e3", "true", "null", '"a // b"', '"\\u00e9\\n"', '"}"', '"fusewire"'])


@st.composite
def boxes(draw: st.DrawFn, brackets: str, items: st.SearchStrategy[str], most: int = 3) -> str:
    text = brackets[0] + draw(blanks)
    members = draw(st.lists(items, max_size=most))
    for at, member in enumerate(members):
        comma = at < len(members) - 1 or draw(st.integers(0, 4)) == 0
        text += member + draw(blanks) + ("," + draw(blanks) if comma else "")
    return text + brackets[1]


@st.composite
def members(draw: st.DrawFn, names: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> str:
    return f"{json.dumps(draw(names))}{draw(blanks)}:{draw(blanks)}{draw(values)}"


values = st.recursive(
    scalars, lambda inner: boxes("[]", inner) | boxes("{}", members(st.sampled_from("abc"), inner)), max_leaves=4
)
groups = st.sampled_from(
    ['{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}', '{ "hooks": [ ] }', "7", '"fusewire"']
)
events = st.sampled_from(["PreToolUse", "Stop", "BeforeTool", "PostToolUse", "Other"])
hooks = boxes("{}", members(events, boxes("[]", groups)))


@st.composite
def documents(draw: st.DrawFn) -> str:
    names = st.sampled_from(["model", "env", "permissions", "statusline"])
    root = members(names, values) | members(st.just("hooks"), hooks)
    return draw(st.sampled_from(["", "\ufeff"])) + draw(blanks) + draw(boxes("{}", root, 4)) + draw(blanks)


def test_where_hooks_are_registered() -> None:
    """As the agents' own documents name their settings."""
    assert (USER["claude"], SHARED["claude"]) == (".claude/settings.json", ".claude/settings.json")
    assert (USER["codex"], SHARED["codex"]) == (".codex/hooks.json", ".codex/hooks.json")
    assert (USER["gemini"], SHARED["gemini"]) == (".gemini/settings.json", ".gemini/settings.json")
    assert (USER["copilot"], SHARED["copilot"]) == (".copilot/hooks/fusewire.json", ".github/hooks/fusewire.json")


@settings(max_examples=60, deadline=None)
@given(text=documents(), agent=st.sampled_from(AGENTS), status=st.booleans())
@example(text='{"hooks": {"Stop":\n  [\n7,8 ],"PreToolUse":[  \n  ]}}', agent="codex", status=False)
@example(text='{"hooks": {"Stop": []}, "hooks": {}}', agent="claude", status=True)
@example(text='{\r\n"model": [ // x  \r\n],}', agent="gemini", status=False)
def test_out_is_the_exact_inverse_of_in_whatever_the_file_looks_like(text: str, agent: str, status: bool) -> None:
    """Comments, order, indentation, ends of lines, trailing commas, byte order mark: all bytes as before. While they
    are in, everything that was there is still there; and a second time changes nothing."""
    client, line = CLIENTS[agent], [*LINE, agent]
    before = read(text.removeprefix("\ufeff")).value
    installed = merging.add_entries(text, "f", merging.InstallOptions(client, line, status=status))
    now = read(installed.removeprefix("\ufeff")).value
    assert merging.registered(now, client).keys() == client.events.keys()
    assert merging.is_current(installed, "f", merging.InstallOptions(client, line, status=status), any_wrapper=True)
    assert {key: now[key] for key in before if key != "hooks"} == {k: v for k, v in before.items() if k != "hooks"}
    for event, entries in before.get("hooks", {}).items():
        assert now["hooks"][event][: len(entries)] == entries
    assert beyond_json(installed.removeprefix("\ufeff")) or not beyond_json(text.removeprefix("\ufeff"))
    assert merging.remove_entries(installed, text, "f", client) == text
    forgotten = merging.remove_entries(
        installed, None, "f", client
    )  # the copy is lost: only what was empty may be missing
    rest = read((forgotten or "{}").removeprefix("\ufeff")).value
    assert {key: rest.get(key) for key in before if key != "hooks"} == {k: v for k, v in before.items() if k != "hooks"}
    kept = {event: entries for event, entries in before.get("hooks", {}).items() if entries}
    assert {event: entries for event, entries in rest.get("hooks", {}).items() if entries} == kept


@settings(max_examples=150, deadline=None)
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8,
), indent=st.sampled_from([None, 2, "\t"]))  # fmt: skip
def test_the_reader_agrees_with_python_on_json(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    assert read(text).value == value
    assert beyond_json(text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1 column 1"),
        ("{", "line 1 column 2"),
        ('{"a": 1 "b": 2}', "line 1 column 9"),
        ('{\n  "a": tru\n}', "line 2 column 8"),
        ('{"a": 01}', "line 1 column 8"),
        ("{'a': 1}", "line 1 column 2"),
        ('{"a": "b\n"}', "line 1 column 7"),
        ('{"a" 1}', "line 1 column 6"),
        ("[1,,2]", "line 1 column 4"),
        ("{,}", "line 1 column 2"),
        ("{} {}", "line 1 column 4"),
        ('{"a": 1} /* never', "line 1 column 10"),
        ("\n\n  nul", "line 3 column 3"),
        ("[" * 100_000, "line 1 column 202"),
        ("1" * 10_000, "line 1 column 1"),
    ],
)
def test_what_is_no_json_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(JsoncError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{place}: ")


def test_what_is_put_in_is_written_as_the_file_is() -> None:
    """Four spaces stay four, a tab stays a tab, one line stays one line; the rest of the text is not touched."""
    client = CLIENTS["claude"]
    deep = merging.add_entries('{\n    "a": 1 // one\n}\n', "f", merging.InstallOptions(client, [*LINE, "claude"]))
    assert deep.startswith('{\n    "a": 1, // one\n    "hooks": {\n        "PreToolUse": [\n            {\n')
    assert deep.endswith("\n    }\n}\n")
    tabs = merging.add_entries('{\n\t"a": 1\n}', "f", merging.InstallOptions(client, [*LINE, "claude"]))
    assert tabs.startswith('{\n\t"a": 1,\n\t"hooks": {\n\t\t"PreToolUse": [\n')
    flat = merging.add_entries('{"a": 1}', "f", merging.InstallOptions(client, [*LINE, "claude"]))
    assert flat.count("\n") == 0
    windows = merging.add_entries(
        '{\r\n  "a": 1\r\n}\r\n', "f", merging.InstallOptions(client, [*LINE, "claude"], status=True)
    )
    assert windows.count("\n") == windows.count("\r\n") > 10


def test_a_comment_swallows_nothing_when_what_stood_between_is_taken_out() -> None:
    """Somebody has put another setting into the line in which ours ends."""
    client = CLIENTS["gemini"]
    text = merging.add_entries('{\n  "a": 1 // one\n}', "f", merging.InstallOptions(client, [*LINE, "gemini"]))
    changed = text.removesuffix("\n}") + ', "b": 2 }'
    rest = merging.remove_entries(changed, None, "f", client)
    assert rest is not None
    assert read(rest).value == {"a": 1, "b": 2}
    assert "// one\n" in rest


# -- the program ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS)
def test_a_home_without_settings_is_the_same_afterwards(project: Project, agent: str) -> None:
    """Installed: every event once, in a line that a shell can run. Again: not even touched. Out: no file, no folder."""
    done = project.run("install", agent)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    path = user_file(agent)
    assert f"+++ {path}" in done.stdout
    assert str(path) in done.stderr
    registered = ours(path, agent)
    assert registered.keys() == CLIENTS[agent].events.keys()
    for handlers in registered.values():
        assert [command.parts_of(one, agent) for one in handlers] == [(sys.executable, str(SOURCE / "hook.py"))]
    assert list(home().rglob("*.fusewire*")) == []
    before = path.stat()
    again = project.run("install", agent)
    assert (again.returncode, again.stdout) == (0, "")
    assert "already installed" in again.stderr
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    out = project.run("uninstall", agent)
    assert (out.returncode, everything(home())) == (0, {})
    nothing = project.run("uninstall", agent)
    assert (nothing.returncode, nothing.stdout, everything(home())) == (0, "", {})
    assert "nothing of Fusewire" in nothing.stderr


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("ends", ["\n", "\r\n", ""])
def test_settings_that_people_have_written_keep_everything(project: Project, agent: str, ends: str) -> None:
    """Their hooks run on; the copy is what was there; both keep their mode; out again, every byte is as it was."""
    text = THEIRS if agent == "gemini" else plain(THEIRS)
    text = text.replace("\n", ends) + ends if ends else text
    path = user_file(agent, text)
    path.chmod(0o600)
    first = read(text).value
    assert project.run("install", agent).returncode == 0
    now = read(path.read_bytes().decode()).value
    assert (now["model"], now["last"]) == (first["model"], first["last"])
    for event, entries in first["hooks"].items():
        assert now["hooks"][event][: len(entries)] == entries
    copy = path.with_name(path.name + ".fusewire-backup")
    assert copy.read_bytes() == text.encode()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, copy)] == [0o600, 0o600]
    assert project.run("uninstall", agent).returncode == 0
    assert everything(path.parent) == {path.name: text.encode()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content", ["", "\n \n", "{}", "{ }\n", '{"hooks": {}}', '{"hooks": {"Stop": []}}', "\ufeff{}"]
)
def test_files_with_nothing_in_them_come_back_as_they_were(project: Project, content: str) -> None:
    path = user_file("claude", content)
    assert project.run("install", "claude", "--statusline").returncode == 0
    assert "statusLine" in json.loads(path.read_text("utf-8-sig"))
    assert project.run("uninstall", "claude").returncode == 0
    assert everything(path.parent) == {path.name: content.encode()}


def test_an_empty_folder_that_was_there_stays(project: Project) -> None:
    for folder in (home() / ".claude", home() / ".copilot", project.root / ".github"):
        folder.mkdir()
    before = everything(home()), everything(project.root)
    for arguments in (("claude",), ("copilot",), ("copilot", "--project")):
        assert project.run("install", *arguments).returncode == 0
        assert project.run("uninstall", *arguments).returncode == 0
    assert (everything(home()), everything(project.root)) == before


def test_a_dry_run_writes_nothing_and_shows_the_same(project: Project) -> None:
    path = user_file("gemini", THEIRS)
    for act in ("install", "uninstall"):
        before = everything(home())
        dry = project.run(act, "gemini", "--dry-run")
        assert (dry.returncode, everything(home())) == (0, before)
        assert "dry run" in dry.stderr
        wet = project.run(act, "gemini")
        assert dry.stdout == wet.stdout != ""
    assert path.read_text() == THEIRS


def test_the_difference_can_be_applied(project: Project, tmp_path: Path) -> None:
    """It is a real one: `patch` makes the new file of the old one, also where the last line has no end."""
    path = user_file("gemini", THEIRS)
    copy = tmp_path / "copy.json"
    copy.write_text(THEIRS)
    shown = project.run("install", "gemini").stdout
    subprocess.run(["patch", "-s", str(copy)], input=shown.encode(), check=True)
    assert copy.read_bytes() == path.read_bytes()


def test_entries_of_an_older_installation_are_replaced(project: Project) -> None:
    """Other paths, other events, the slow form, one among somebody's own hooks: ours go, everything else stays."""
    mine = {"type": "command", "command": "./mine.sh"}
    old = [
        {"type": "command", "command": "/old/python -I -S '/old place/fusewire/hook.py' claude"},
        {"type": "command", "command": "/old/python", "args": ["-I", "-S", "/old/fusewire/hook.py", "claude"]},
        {"type": "command", "command": "/old/bin/fusewire hook claude", "timeout": 5},
    ]
    others = [
        {"type": "command", "command": "/old/python -I -S /old/fusewire/hook.py codex"},
        {"type": "command", "command": "echo fusewire/hook.py"},
        {"type": "prompt", "prompt": "fusewire hook claude"},
    ]
    text = json.dumps(
        {
            "hooks": {
                "PreToolUse": [{"matcher": "*", "hooks": [old[0]]}, {"matcher": "Bash", "hooks": [mine, old[1]]}],
                "PostToolUse": [{"hooks": [old[2]]}],
                "Stop": [{"hooks": others}],
            },
            "statusLine": {"type": "command", "command": "/old/python -I -S /old/fusewire/hook.py statusline"},
        },
        indent=2,
    )
    path = user_file("claude", text)
    assert project.run("install", "claude").returncode == 0
    now = json.loads(path.read_text())
    assert ours(path, "claude").keys() == CLIENTS["claude"].events.keys()
    assert "/old/python" not in json.dumps({**now, "hooks": {**now["hooks"], "Stop": []}})
    assert now["hooks"]["PreToolUse"][0] == {"matcher": "Bash", "hooks": [mine]}
    assert now["hooks"]["Stop"][0] == {"hooks": others}
    assert str(SOURCE / "hook.py") in now["statusLine"]["command"]
    assert project.run("install", "claude").stdout == ""
    assert project.run("uninstall", "claude").returncode == 0
    assert json.loads(path.read_text()) == {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [mine]}], "Stop": [{"hooks": others}]}
    }


def test_what_was_changed_in_between_stays(project: Project) -> None:
    """Also if a program has written the whole file anew, and if the copy is lost."""
    path = user_file("claude", plain(THEIRS))
    assert project.run("install", "claude").returncode == 0
    changed = json.loads(path.read_text())
    changed["theme"] = "dark"
    changed["hooks"]["SessionStart"].append({"hooks": [{"type": "command", "command": "./new.sh"}]})
    path.write_text(json.dumps(changed))
    path.with_name(path.name + ".fusewire-backup").unlink()
    assert project.run("uninstall", "claude").returncode == 0
    expected = json.loads(plain(THEIRS))
    del expected["hooks"]["BeforeTool"]
    rest = json.loads(path.read_text())
    assert rest["hooks"].pop("SessionStart") == [{"hooks": [{"type": "command", "command": "./new.sh"}]}]
    rest["hooks"].pop("BeforeTool")
    assert rest == {**expected, "theme": "dark"}


def test_a_file_that_was_only_written_in_another_way_is_not_touched(project: Project) -> None:
    assert project.run("install", "claude").returncode == 0
    path = user_file("claude")
    text = json.dumps(json.loads(path.read_text()), indent=8)
    path.write_text(text)
    again = project.run("install", "claude")
    assert ("already installed" in again.stderr, again.stdout, path.read_text()) == (True, "", text)


def test_a_file_of_ours_in_which_somebody_has_written_stays(project: Project) -> None:
    assert project.run("install", "gemini").returncode == 0
    path = user_file("gemini")
    path.write_text(path.read_text().replace("{\n", '{\n  // mine\n  "theme": "dark",\n', 1))
    assert project.run("uninstall", "gemini").returncode == 0
    assert path.read_text() == '{\n  // mine\n  "theme": "dark"\n}\n'
    assert read(path.read_text()).value == {"theme": "dark"}


def test_a_link_is_followed_and_stays_a_link(project: Project, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    path = user_file("claude")
    path.parent.mkdir()
    path.symlink_to(real)
    done = project.run("install", "claude")
    copy = real.with_name("claude.json.fusewire-backup")
    assert (done.returncode, f"; as it was: {copy}\n" in done.stderr) == (0, True)
    assert copy.read_text() == "{}\n"
    assert path.is_symlink()
    assert "hooks" in json.loads(real.read_text())
    assert project.run("uninstall", "claude").returncode == 0
    assert (path.is_symlink(), everything(real.parent)) == (True, {"claude.json": b"{}\n"})


@pytest.mark.parametrize(
    ("agent", "text", "words"),
    [
        ("claude", '{\n  "a": 1,\n  "b" 2\n}', "line 3 column 7: a colon is expected"),
        ("claude", "[]", "line 1 column 1: settings must be an object"),
        ("claude", '{"hooks": []}', "line 1 column 11: hooks must be an object"),
        ("claude", '{"hooks":\n {"Stop": {}}}', "line 2 column 11: hooks.Stop must be a list"),
        ("claude", '{\n "disableAllHooks": true}', "line 2 column 2: disableAllHooks switches hooks off"),
        ("claude", '{\n // mine\n}', "line 2 column 2: a comment; Claude Code cannot read that"),
        ("claude", '{"a": 1,}', "line 1 column 8: a comma that nothing follows; Claude Code"),
        ("codex", "\ufeff{}", "line 1 column 1: a byte order mark; Codex"),
        ("codex", "{} /* */", "line 1 column 4: a comment; Codex"),
        ("copilot", '{"version": 1, "disableAllHooks": true}', "disableAllHooks switches hooks off"),
        ("gemini", '{"a": 1,} // c', "line 1 column 8: a comma that nothing follows; Gemini CLI"),
        ("gemini", '{"hooksConfig":\n{"enabled": false}}', "line 2 column 2: hooksConfig.enabled switches hooks off"),
        ("gemini", '{"hooksConfig": {"disabled": ["x", "fusewire"]}}', 'take "fusewire" out'),
        ("gemini", '"\xe9"', "line 1 column 1: settings must be an object"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_in_one_line_and_left_alone(
    project: Project, agent: str, text: str, words: str
) -> None:
    path = user_file(agent, text)
    before = everything(home())
    for arguments in (("install", agent), ("install", agent, "--dry-run")):
        result = project.run(*arguments)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
        assert str(path) in result.stderr
        assert words in result.stderr
    assert everything(home()) == before


def test_what_is_no_file_is_said_in_one_line(project: Project, tmp_path: Path) -> None:
    """A folder, a pipe, bytes that are no text, a huge one, a folder that cannot be made."""
    path = user_file("claude")
    path.mkdir(parents=True)
    pipe = user_file("codex")
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    user_file("gemini", "").write_bytes(b'{"a": "\xff"}')
    user_file("copilot", "").write_bytes(b" " * (5 << 20))
    for agent, words in (
        ("claude", "a folder is in the place"),
        ("codex", "not a regular file"),
        ("gemini", "byte 7: not UTF-8; save it as UTF-8, or move it away"),
        ("copilot", "larger than 4 MB"),
    ):
        for act in ("install", "uninstall"):
            result = project.run(act, agent)
            assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
            assert str(user_file(agent)) in result.stderr
            assert words in result.stderr
    (tmp_path / "file").write_text("")
    nowhere = project.run("install", "codex", env={"CODEX_HOME": str(tmp_path / "file" / "x")})
    assert (nowhere.returncode, nowhere.stdout, nowhere.stderr.count("\n")) == (1, "", 1)
    assert str(tmp_path / "file") in nowhere.stderr


def test_a_file_that_may_not_be_written_is_left_alone(project: Project) -> None:
    """Root may write anywhere unless it gives that up."""
    path = user_file("claude", "{}\n")
    path.chmod(0o444)
    words = [*UNPRIVILEGED, sys.executable, "-m", "fusewire", "install", "claude"]
    result = subprocess.run(words, cwd=project.root, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
    assert str(path) in result.stderr
    assert path.read_text() == "{}\n"
    assert [one.name for one in path.parent.iterdir() if one != path and not one.name.endswith("-backup")] == []


@pytest.mark.root
def test_what_root_changes_stays_its_owners(project: Project) -> None:
    """The file, the copy, and what is made anew in somebody's home: else their agent could not write there."""
    whose = 61234, 61235
    path = user_file("claude", "{}\n")
    for one in (path, path.parent, home()):
        os.chown(one, *whose)
    for arguments in (("claude",), ("copilot",)):
        assert project.run("install", *arguments).returncode == 0
    made = [path, Path(f"{path}.fusewire-backup")]
    made += [user_file("copilot"), user_file("copilot").parent, home() / ".copilot"]
    assert [(str(one), one.stat().st_uid, one.stat().st_gid) for one in made] == [(str(one), *whose) for one in made]
    assert project.run("uninstall", "claude").returncode == 0
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text()) == (*whose, "{}\n")


def test_a_file_that_would_change_its_owner_is_left_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that we may write, a file of somebody whom the system does not let us give it back to."""

    def refused(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = user_file("claude", "{}\n")
    facts = list(path.stat())
    facts[stat.ST_UID] += 1
    monkeypatch.setattr(os, "fchown", refused)
    with pytest.raises(FusewireError, match=r"would not be any more: run this as its owner$"):
        files._replace(str(path), "new", os.stat_result(facts))
    assert everything(path.parent) == {path.name: b"{}\n"}


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_home_nothing_is_written(project: Project, tmp_path: Path, agent: str) -> None:
    """An empty HOME would be the top of the disk, a relative one this folder."""
    for nowhere in ("", "here"):
        for arguments in (("install", agent), ("uninstall", agent), ("install", agent, "--dry-run")):
            done = project.run(*arguments, env={"HOME": nowhere})
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
            assert f"HOME is {nowhere!r}" in done.stderr
            assert f"or {CLIENTS[agent].known.home_variable} to that of" in done.stderr
    assert list(project.root.iterdir()) == [project.root / ".git"]
    named = project.run("install", agent, env={"HOME": "", CLIENTS[agent].known.home_variable: str(tmp_path / "own")})
    assert named.returncode == 0, named.stderr


def test_a_folder_that_cannot_be_made_is_said_in_one_line(project: Project) -> None:
    """Some answer for ever that there is no such folder."""
    done = project.run("install", "codex", env={"CODEX_HOME": "/proc/fusewire/x"})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert "/proc/fusewire/x" in done.stderr


def test_wrong_usage(project: Project) -> None:
    for arguments in (
        ("install",),
        ("install", "emacs"),
        ("install", "claude", "--user", "--project"),
        ("install", "claude", "--project", "--local"),
        ("install", "codex", "--local"),
        ("install", "gemini", "--statusline"),
        ("uninstall", "claude", "--statusline"),
    ):
        result = project.run(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
    assert everything(home()) == {}


def test_agents_neither_install_nor_take_out(project: Project) -> None:
    """By their environment; `uninstall` would disarm, and `install` could put something else in the hook's place."""
    assert project.run("install", "claude").returncode == 0
    before = everything(home())
    for arguments in (("uninstall", "claude"), ("install", "codex"), ("install", "claude", "--dry-run")):
        result = project.run(*arguments, env={"CLAUDECODE": "1"})
        assert (result.returncode, result.stdout) == (3, "")
        assert "for a person" in result.stderr
    assert everything(home()) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_the_settings_of_a_project(project: Project, tmp_path: Path, agent: str) -> None:
    """From anywhere with `fusewire --project DIR`. Others get the file, and it names paths of this machine: said."""
    inside = project.root / "src"
    inside.mkdir()
    from_inside = Project(inside).run("install", agent, "--project")
    assert from_inside.returncode == 0, from_inside.stderr
    path = project.root / SHARED[agent]
    assert ours(path, agent).keys() == CLIENTS[agent].events.keys()
    assert "git shares this file" in from_inside.stderr
    assert everything(home()) == {}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = Project(elsewhere).run("--project", str(project.root), "uninstall", agent, "--project")
    assert out.returncode == 0
    assert sorted(one.name for one in project.root.iterdir()) == [".git", "src"]
    assert list(elsewhere.iterdir()) == []


def test_only_git_shares_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "no repository"
    folder.mkdir()
    done = Project(folder).run("install", "claude", "--project")
    assert (done.returncode, "git shares" in done.stderr) == (0, False)
    (tmp_path / ".git").mkdir()
    (folder / "inside").mkdir()
    deep = Project(folder).run("--project", str(folder / "inside"), "install", "claude", "--project")
    assert (deep.returncode, "git shares this file" in deep.stderr) == (0, True)


def test_gemini_runs_the_same_line_once_wherever_it_is_registered(project: Project) -> None:
    assert project.run("install", "gemini").returncode == 0
    twice = project.run("install", "gemini", "--project")
    assert (twice.returncode, "judged twice" in twice.stderr) == (0, False)
    file = user_file("gemini")
    file.write_text(file.read_text().replace("exit 1", "exit 0"))
    other = project.run("install", "gemini", "--project")
    assert "judged twice" in other.stderr, "another line is another hook"


def test_local_settings_and_several_places(project: Project) -> None:
    assert project.run("install", "claude", "--local").returncode == 0
    assert ours(project.root / ".claude/settings.local.json", "claude")
    second = project.run("install", "claude")
    assert "also registered in" in second.stderr
    assert "settings.local.json" in second.stderr
    out = project.run("uninstall", "claude")
    assert "fusewire uninstall claude --local" in out.stderr
    assert project.run("uninstall", "claude", "--local").returncode == 0
    assert list(project.root.iterdir()) == [project.root / ".git"]


@pytest.mark.parametrize(
    ("agent", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/fusewire.json"),
    ],
)
def test_folders_that_the_environment_names(
    project: Project, tmp_path: Path, agent: str, variable: str, file: str
) -> None:
    folder = tmp_path / "its own"
    folder.mkdir()
    assert project.run("install", agent, env={variable: str(folder)}).returncode == 0
    assert ours(folder / file, agent)
    assert everything(home()) == {}
    assert project.run("uninstall", agent, env={variable: str(folder)}).returncode == 0
    assert list(folder.iterdir()) == []


def test_a_status_line_of_the_users_own_stays(project: Project) -> None:
    text = '{"statusLine": {"type": "command", "command": "mine"}}'
    path = user_file("claude", text)
    done = project.run("install", "claude", "--statusline")
    assert (done.returncode, "a status line already" in done.stderr) == (0, True)
    assert json.loads(path.read_text())["statusLine"]["command"] == "mine"
    assert project.run("install", "claude", "--statusline").stdout == ""
    assert project.run("uninstall", "claude").returncode == 0
    assert path.read_text() == text


def test_the_status_line_that_is_installed_shows_a_line(project: Project) -> None:
    assert project.run("install", "claude", "--statusline").returncode == 0
    line = json.loads(user_file("claude").read_text())["statusLine"]["command"]
    given = json.dumps({"session_id": "s", "cwd": str(project.root), "workspace": {"project_dir": str(project.root)}})
    shown = subprocess.run(["/bin/sh", "-c", line], input=given, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr, shown.stdout.count("\n")) == (0, "", 1)
    assert "fusewire" in shown.stdout


def test_json_says_it_all(project: Project) -> None:
    done = project.json("install", "codex")
    assert {key: done[key] for key in ("agent", "scope", "changed", "dry_run", "backup")} == {
        "agent": "codex", "scope": "user", "changed": True, "dry_run": False, "backup": None,
    }  # fmt: skip
    assert done["file"] == str(user_file("codex"))
    assert done["diff"].startswith("--- /dev/null\n")
    assert done["events"] == list(CLIENTS["codex"].events)
    assert any("trust the hooks" in note for note in done["notes"])
    again = project.json("install", "codex")
    assert (again["changed"], again["diff"]) == (False, "")
    assert project.json("uninstall", "codex")["changed"] is True


# -- what is registered -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another installation, in a folder whose name a shell would take for something else."""
    place = tmp_path_factory.mktemp("it's a $HOME; place")
    shutil.copytree(SOURCE, place / "fusewire")
    return place


def copied_run(copied: Path, project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fusewire", *arguments],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(copied)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_odd_paths_are_quoted_for_the_shell_and_a_lost_hook_locks_nobody_out(
    project: Project, copied: Path, agent: str
) -> None:
    """The registered line refuses a forbidden call (install has made sure). With its files gone it is no refusal."""
    done = copied_run(copied, project, "install", agent)
    assert done.returncode == 0, done.stderr
    client = CLIENTS[agent]
    (handler,) = ours(user_file(agent), agent)[client.gate]
    assert command.parts_of(handler, agent)[1] == str(copied / "fusewire/hook.py")
    line = handler["bash" if agent == "copilot" else "command"]
    for shell in ("sh", "bash"):
        asked = subprocess.run([shell, "-c", line], input=b"[]", capture_output=True, cwd=project.root, check=False)
        assert (asked.returncode, b"BLOCKED fusewire.input" in asked.stderr + asked.stdout) == (2, True), asked
        lost = line.replace("/fusewire/hook.py", "/fusewire/lost.py")
        gone = subprocess.run([shell, "-c", lost], input=b"[]", capture_output=True, cwd=project.root, check=False)
        assert gone.returncode == (0 if agent == "copilot" else 1)
        assert b"nothing is guarded" in gone.stderr
    if agent == "claude":  # Copilot CLI reads the same file, and whatever is not 0 is a refusal there
        in_copilot = {**os.environ, "COPILOT_CLI": "1"}
        gone = subprocess.run(["sh", "-c", lost], env=in_copilot, capture_output=True, cwd=project.root, check=False)
        assert gone.returncode == 0


def test_a_hook_that_does_not_work_is_not_registered(project: Project, copied: Path) -> None:
    gate = copied / "fusewire" / "gate" / "process.py"
    whole = gate.read_text()
    gate.write_text("def main(arguments):\n    raise SystemExit(0)\n")
    try:
        result = copied_run(copied, project, "install", "claude")
    finally:
        gate.write_text(whole)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.stderr
    assert "did not refuse" in result.stderr
    assert everything(home()) == {}


def test_a_shim_is_not_taken_for_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version manager's `python` is a script, or a program that starts another; what is behind it is registered."""
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    real = sys.executable
    monkeypatch.setattr(sys, "executable", str(shim))
    assert command.interpreter() == real
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho False\n")  # of another version
    other.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(other))
    assert os.path.realpath(command.interpreter()) == os.path.realpath(real)


def test_the_environments_own_python_is_kept_although_it_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", python)
    assert command.interpreter() == python
    assert command.hook_line("claude")[0] == python


# -- several at once, and killed in the middle --------------------------------------------------------------


def test_whoever_changes_the_file_is_alone(project: Project) -> None:
    path = user_file("gemini", "{}\n")
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    words = [sys.executable, "-m", "fusewire", "install", "gemini"]
    with subprocess.Popen(words, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        assert path.read_text() == "{}\n"
        path.write_text('{"theme": "dark"}\n')
        os.close(folder)
        process.communicate(timeout=45)
        assert process.returncode == 0
    assert read(path.read_text()).value["theme"] == "dark"


def test_eight_at_once_leave_one_entry(project: Project) -> None:
    path = user_file("gemini", THEIRS)

    def run(arguments: tuple[str, ...]) -> int:
        return project.run(*arguments).returncode

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, [("install", "gemini")] * 8)) == [0] * 8
    found = ours(path, "gemini")
    assert (found.keys(), [len(one) for one in found.values()]) == (CLIENTS["gemini"].events.keys(), [1] * len(found))
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(run, [("install", "gemini"), ("uninstall", "gemini")] * 4))
    assert codes == [0] * 8
    assert project.run("uninstall", "gemini").returncode == 0
    assert everything(path.parent) == {path.name: THEIRS.encode()}


def test_eight_at_once_where_nothing_was(project: Project) -> None:
    """Folders are made and taken away meanwhile."""

    def run(number: int) -> int:
        return project.run("uninstall" if number % 2 else "install", "copilot").returncode

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [0] * 8
    assert project.run("install", "copilot").returncode == 0
    assert ours(user_file("copilot"), "copilot")
    assert project.run("uninstall", "copilot").returncode == 0
    assert everything(home()) == {}


#: Ends the process like a power cut just before its Nth file takes the place of another.
KILLED = """
import os, runpy, signal, sys
left, replace = int(sys.argv.pop(1)), os.replace
def cut(*paths):
    global left
    if "fusewire-new" in str(paths[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(*paths)
os.replace = cut
runpy.run_module("fusewire", run_name="__main__")
"""


@pytest.mark.parametrize("act", ["install", "uninstall"])
def test_killed_in_the_middle_the_file_is_the_old_or_the_new_one(project: Project, act: str) -> None:
    """And the next one cleans up after it: nothing is left of either."""
    path = user_file("gemini", THEIRS)
    if act == "uninstall":
        assert project.run("install", "gemini").returncode == 0
    before = path.read_bytes()
    for number in range(2 if act == "install" else 1):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(number), act, "gemini"],
            cwd=project.root,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert path.read_bytes() == before
        assert list(path.parent.glob("*.fusewire-new"))
    assert project.run("install", "gemini").returncode == 0
    assert project.run("uninstall", "gemini").returncode == 0
    assert everything(path.parent) == {path.name: THEIRS.encode()}


def limits(project: Project, agent: str = "claude") -> list[str]:
    """The last five lines that a person reads."""
    return project.run("install", agent, "--dry-run").stderr.splitlines()[-5:]


def test_installing_ends_with_the_limits_in_force(project: Project) -> None:
    lines = limits(project)
    names = [line.partition(":")[0] for line in lines]
    assert names == ["agents", "repeated calls", "files", "money", "attended"]
    assert lines[0] == (
        "agents: 5 at once, 10 a session, 10 s between replies. Unattended: refused; attended: the agent is told,"
        " without the pause; you are asked above 20 at once or 40 since your message"
    )
    assert "same_error 7" in lines[1]
    assert "halted after 3 refusals" in lines[1]
    assert "specs/" in lines[2]
    assert "0 constraints" in lines[2]
    assert "agent_cost_block_usd_unattended $25" in lines[3]
    assert lines[3].endswith("attended: the same, without agent_cost_block_usd_unattended")
    assert "that Claude Code reports as such" in lines[4]
    assert "fusewire.toml" in lines[4]
    found = project.json("install", "claude", "--dry-run")["limits"]
    assert [one["name"] for one in found] == [*names[:4], "situation"]
    assert all({"limit", "unattended", "attended"} <= one.keys() for one in found)
    assert found[0]["limit"] in lines[0]


def test_the_limits_are_those_of_the_project(project: Project) -> None:
    """Whatever is changed, switched off or only logged is said so."""
    project.constraint("no-force")
    (project.root / "fusewire.toml").write_text(
        '[tool]\nprofile = "unattended"\nsame_error.block = 9\ncycle.enabled = false\n'
        "resource_limits.max_concurrent_agents = 3\nresource_limits.agent_spawn_cooldown_seconds = 0\n"
        '[guard]\nalso_documents = ["plans/"]\n[rules]\n"tool.agents" = "log"\n"tool.repetition" = "off"\n'
    )
    lines = limits(project)
    assert "3 at once, 10 a session (only logged)" in lines[0]
    assert "between replies" not in lines[0]
    assert "above 12 at once" in lines[0]
    assert "same_error 9" in lines[1]
    assert "cycle" not in lines[1].replace("long_cycle", "")
    assert "repetition" not in lines[1] or "(off)" in lines[1]
    assert "plans/" in lines[2]
    assert "1 constraint." in lines[2]
    assert lines[4].startswith("attended: none; unattended: every session.")


def test_codex_is_not_said_to_ask(project: Project) -> None:
    lines = limits(project, "codex")
    assert "you are asked" not in "".join(lines)
    assert "refused (Codex cannot ask you)" in lines[1]
    assert "at a terminal" in lines[4]
