"""Configuration: four layers, every kind of bad value, and warnings that stay until they are mended."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.helpers.project import Project

ID = "git-safety"
FILE = f"docs/constraints/{ID}.md"


def user_config() -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def warnings_of(project: Project) -> list[str]:
    return project.json("status")["warnings"]  # type: ignore[no-any-return]


def setting(project: Project, key: str, circuit: str = ID) -> tuple[object, str]:
    found = project.json("config", circuit)["config"][key]
    return found["value"], found["source"]


# -- layers -----------------------------------------------------------------------------------------------


def test_each_layer_covers_the_one_below(project: Project) -> None:
    """Defaults < the user's file < the project's file < front matter, key by key, each with its source."""
    assert project.constraint(ID).is_file()
    project.constraint("plain")
    assert setting(project, "window_days") == (30, "default")
    user = user_config()
    user.write_text("[constraint]\nviolation_threshold = 7\nwindow_days = 20\ncooldown_hours = 12\n")
    assert setting(project, "violation_threshold") == (7, str(user))
    (project.root / "fusewire.toml").write_text("[constraint]\nwindow_days = 10\ncooldown_hours = 36\n")
    project.constraint(ID, "circuit_breaker:\n  cooldown_hours: 48\n")
    config = project.json("config", ID)["config"]
    assert config == {
        "violation_threshold": {"value": 7, "source": str(user)},
        "window_days": {"value": 10, "source": "fusewire.toml"},
        "cooldown_hours": {"value": 48, "source": FILE},
        "dedup_seconds": {"value": 300, "source": "default"},
        "mode": {"value": "count", "source": "default"},
    }
    text = project.run("config", ID)
    assert re.search(rf"cooldown_hours +48 +{re.escape(FILE)}", text.stdout)
    assert re.search(r"window_days +10 +fusewire\.toml", text.stdout)
    assert text.stderr == ""
    assert setting(project, "cooldown_hours", "plain") == (36, "fusewire.toml")
    assert project.json("status", ID)["circuits"][0]["threshold"] == 7


def test_pyproject_serves_where_there_is_no_fusewire_toml(project: Project) -> None:
    """`[tool.fusewire]` is the project's layer; with fusewire.toml beside it, that one wins and it is said."""
    project.constraint(ID)
    pyproject = project.root / "pyproject.toml"
    pyproject.write_text('[project]\nname = "x"\n[tool.other]\na = 1\n')
    assert warnings_of(project) == []
    pyproject.write_text('[project]\nname = "x"\n[tool.fusewire.constraint]\nviolation_threshold = 9\n')
    assert setting(project, "violation_threshold") == (9, "pyproject.toml")
    (project.root / "fusewire.toml").write_text("[constraint]\nwindow_days = 3\n")
    assert setting(project, "violation_threshold") == (5, "default")
    assert setting(project, "window_days") == (3, "fusewire.toml")
    (warning,) = warnings_of(project)
    assert "pyproject.toml" in warning
    assert "fusewire.toml" in warning


def test_other_breakers_are_configured_by_their_own_tables(project: Project) -> None:
    """Durations as people write them, dotted names of the seeds, counts; each circuit shows its own keys."""
    (project.root / "fusewire.toml").write_text(
        '[loop]\ncooldown = "1h 30m"\nno_progress = 4\n'
        "[phase.GREEN]\nno_progress_threshold = 3\n"
        "[tool.tool_failure]\nthreshold = 6\ncooldown_base_seconds = 20\n"
    )
    assert setting(project, "cooldown", "loop/no_progress") == ("1h 30m", "fusewire.toml")
    assert project.json("status", "loop/no_progress")["circuits"][0]["threshold"] == 4
    assert setting(project, "GREEN.no_progress_threshold", "phase/GREEN") == (3, "fusewire.toml")
    assert setting(project, "tool_failure.threshold", "tool/tool_failure/Bash(pytest)")[0] == 6
    assert project.json("config", "attempt/S-1")["config"]["slice_failures"] == {"value": 7, "source": "locked"}
    assert warnings_of(project) == []


# -- bad values -------------------------------------------------------------------------------------------

#: (front matter under circuit_breaker, key, the value as the warning must show it, a word of what is allowed)
BAD_FRONT_MATTER = [
    ("cooldown_hours: 0", "cooldown_hours", "0", "above 0"),
    ("cooldown_hours: -1", "cooldown_hours", "-1", "above 0"),
    ("cooldown_hours: .nan", "cooldown_hours", "nan", "above 0"),
    ("cooldown_hours: .inf", "cooldown_hours", "inf", "above 0"),
    ("cooldown_hours: true", "cooldown_hours", "True", "above 0"),
    ("cooldown_hours: '24'", "cooldown_hours", "'24'", "above 0"),
    ("cooldown_hours: [24]", "cooldown_hours", "[24]", "above 0"),
    ("cooldown_hours:", "cooldown_hours", "None", "above 0"),
    ("window_days: 2026-01-01", "window_days", "2026", "above 0"),
    ("window_days: 99999999", "window_days", "99999999", "above 0"),
    (f"window_days: {'9' * 400}", "window_days", "99999", "above 0"),
    ("violation_threshold: 0", "violation_threshold", "0", "whole number"),
    ("violation_threshold: 2.5", "violation_threshold", "2.5", "whole number"),
    ("violation_threshold: 1001", "violation_threshold", "1001", "1000"),
    (f"violation_threshold: {'9' * 400}", "violation_threshold", "99999", "whole number"),
    ("dedup_seconds: -0.5", "dedup_seconds", "-0.5", "0 or more"),
    ("violation_treshold: 3", "violation_treshold", "3", "violation_threshold"),
    ("nested: {deep: 1}", "nested", "'...'", "no such setting"),
]


@pytest.mark.parametrize(
    ("line", "key", "value", "allowed"), BAD_FRONT_MATTER, ids=[b[0][:40] for b in BAD_FRONT_MATTER]
)
def test_a_bad_value_in_front_matter_leaves_the_default_in_force(
    project: Project, line: str, key: str, value: str, allowed: str
) -> None:
    """The default for that key, the good keys beside it stay, and the warning has file, key, value, allowed."""
    project.constraint(ID, f"circuit_breaker:\n  {line}\n  {'dedup_seconds: 60' if 'dedup' not in line else ''}\n")
    result = project.run("config", ID)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr[-300:]
    (warning,) = [text for text in result.stderr.splitlines() if text.startswith("Warning")]
    for part in (FILE, key, value, allowed):
        assert part in warning
    values = {row.split()[0]: row.split()[1:] for row in result.stdout.splitlines()[1:]}
    if key in values:
        defaults = {"violation_threshold": "5", "window_days": "30", "cooldown_hours": "24", "dedup_seconds": "300"}
        assert values[key] == [defaults[key], "default"]
    if key != "dedup_seconds":
        assert values["dedup_seconds"] == ["60", FILE]


#: (content of fusewire.toml, words that its one warning must have)
BAD_TOML = {
    "loop cooldown of 10m": ('[loop]\ncooldown = "10m"\n', ("[loop] cooldown", "10m", "30m")),
    "loop cooldown of 29m 59s": ('[loop]\ncooldown = "29m 59s"\n', ("[loop] cooldown", "29m 59s", "at least 30m")),
    "loop cooldown of zero": ('[loop]\ncooldown = "0s"\n', ("cooldown", "0s", "30m")),
    "a bare number where a duration belongs": ("[loop]\ncooldown = 3600\n", ("cooldown", "3600", "duration")),
    "negative": ("[constraint]\nwindow_days = -3\n", ("window_days", "-3", "above 0")),
    "nan": ("[constraint]\nwindow_days = nan\n", ("window_days", "nan", "above 0")),
    "inf": ("[constraint]\nwindow_days = inf\n", ("window_days", "inf", "above 0")),
    "bool": ("[constraint]\nviolation_threshold = true\n", ("violation_threshold", "True", "whole number")),
    "string": ('[constraint]\nviolation_threshold = "5"\n', ("violation_threshold", "'5'", "whole number")),
    "date": ("[constraint]\nviolation_threshold = 2026-01-01\n", ("violation_threshold", "2026", "whole number")),
    "share above 1": ("[loop]\ntest_fix_share = 1.5\n", ("test_fix_share", "1.5", "up to 1")),
    "flag as a word": ('[tool.tool_failure]\nenabled = "no"\n', ("tool_failure.enabled", "'no'", "true or false")),
    "unknown key": ("[constraint]\nwindow_day = 3\n", ("window_day", "window_days")),
    "unknown table": ("[constraints]\nwindow_days = 3\n", ("constraints", "no such table", "constraint")),
    "a table that is none": ("constraint = 5\n", ("constraint", "5", "table")),
    "a locked number": ("[attempt]\ntest_failures = 10\n", ("test_failures", "10", "locked at 3")),
    "the other locked number": ("[attempt]\nslice_failures = 99\n", ("slice_failures", "99", "locked at 7")),
    "no TOML": ("[constraint\nwindow_days = 3\n", ("fusewire.toml", "TOML")),
    "a key twice": ("[constraint]\nwindow_days = 3\nwindow_days = 4\n", ("fusewire.toml", "TOML")),
    "a number of 5000 digits": (f"[constraint]\nwindow_days = {'9' * 5000}\n", ("fusewire.toml",)),
    "nested 3000 deep": (f"a = {'[' * 3000}\n", ("fusewire.toml",)),
}


@pytest.mark.parametrize(("content", "words"), BAD_TOML.values(), ids=BAD_TOML)
def test_a_bad_project_file_is_a_warning(project: Project, content: str, words: tuple[str, ...]) -> None:
    """One warning that names file, key, value and what is allowed; the defaults are in force; nothing crashes."""
    project.constraint(ID)
    (project.root / "fusewire.toml").write_text(content)
    result = project.run("config", ID)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr[-300:]
    (warning,) = [text for text in result.stderr.splitlines() if text.startswith("Warning")]
    for word in ("fusewire.toml", *words):
        assert word in warning
    numbers = [line.split()[1:] for line in result.stdout.splitlines() if line.endswith("  default")]
    assert numbers == [["5", "default"], ["30", "default"], ["24", "default"], ["300", "default"], ["count", "default"]]
    if "cooldown" in content:
        assert setting(project, "cooldown", "loop/no_progress") == ("30m", "default")


def test_a_bad_value_leaves_the_layer_below_in_force(project: Project) -> None:
    """The user's good value stays when the project's is bad, and the warning says which is used."""
    project.constraint(ID, "circuit_breaker:\n  window_days: 0\n")
    user_config().write_text("[constraint]\nwindow_days = 20\n")
    (project.root / "fusewire.toml").write_text("[constraint]\nwindow_days = -1\n")
    assert setting(project, "window_days") == (20, str(user_config()))
    found = warnings_of(project)
    assert len(found) == 2
    assert all("20" in warning for warning in found)


def test_a_file_that_is_not_utf8_or_not_readable_is_a_warning(project: Project) -> None:
    """The user's file, the project's file and pyproject.toml: each is named, none is used, nothing crashes."""
    project.constraint(ID)
    user_config().write_bytes(b"# caf\xe9\n[constraint]\nwindow_days = 3\n")
    (project.root / "fusewire.toml").mkdir()
    (project.root / "pyproject.toml").write_bytes(b"\xff\xfe\x00")
    result = project.run("config", ID)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False)
    for name in (str(user_config()), "fusewire.toml", "pyproject.toml"):
        assert sum(f"Warning: {name}" in line for line in result.stderr.splitlines()) == 1
    assert re.search(r"window_days +30 +default", result.stdout)


@pytest.mark.parametrize(
    "front",
    [
        "circuit_breaker: [unclosed",
        "circuit_breaker:\n\tviolation_threshold: 3",
        "a: b: c",
        "x: !!python/object:os.system {}",
        "severity: !!bool maybe",
        "severity: !!timestamp maybe",
        "x: 2026-13-45",
        "&a [*a, *b]",
    ],
)
def test_front_matter_that_is_no_yaml_keeps_the_constraint(project: Project, front: str) -> None:
    """The rule still exists: same id, the default numbers, one warning with the file and the reason."""
    (project.root / "docs/constraints").mkdir(parents=True)
    (project.root / "docs/constraints/other-name.md").write_text(f"---\nid: {ID}\n{front}\n---\n# Rule\n")
    result = project.run("check", ID)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr[-300:]
    (warning,) = [text for text in result.stderr.splitlines() if text.startswith("Warning")]
    assert "docs/constraints/other-name.md" in warning
    assert "front matter" in warning


def test_front_matter_that_is_a_list_keeps_the_constraint(project: Project) -> None:
    """Under the file's name, with the defaults and a warning."""
    (project.root / "docs/constraints").mkdir(parents=True)
    (project.root / FILE).write_text("---\n- id: x\n- 5\n---\n# Rule\n")
    result = project.run("check", ID)
    assert result.returncode == 0
    assert FILE in result.stderr
    assert "front matter" in result.stderr


def test_a_constraint_that_is_not_utf8_keeps_its_circuit(project: Project) -> None:
    """A wrong byte in the text must not make an open circuit disappear; the warning names the file."""
    path = project.constraint(ID, "circuit_breaker:\n  violation_threshold: 1\n")
    assert project.run("record", ID, "--action", "x").returncode == 0
    path.write_bytes(path.read_bytes() + b"caf\xe9\n")
    result = project.run("check", ID)
    assert FILE in result.stderr
    assert result.returncode == 3


def test_wrong_shapes_inside_front_matter(project: Project) -> None:
    """circuit_breaker as a word, an id with a slash, a match that makes no sense: one warning each."""
    project.constraint("one", "circuit_breaker: strict\n")
    (project.root / "docs/constraints/two.md").write_text("---\nid: a/b\n---\n")
    (project.root / "docs/constraints/three.md").write_text("---\nid: 7\n---\n")
    bad_matches = ["git push", "5", "{}", "{comand: git push}", "{command: 5}", "{command: []}", "{tool: [Bash, 7]}"]
    for number, match in enumerate(bad_matches):
        project.constraint(f"match-{number}", f"match: {match}\n")
    found = warnings_of(project)
    for name in ("one", "two", *(f"match-{number}" for number in range(len(bad_matches)))):
        assert sum(f"docs/constraints/{name}.md" in warning for warning in found) == 1, name
    ids = {circuit["id"] for circuit in project.json("status", "--all")["circuits"]}
    assert ids >= {"one", "two", "7", "match-0"}


def test_a_bad_match_beside_a_good_one_disarms_only_itself(project: Project) -> None:
    """One entry of the list is nonsense: the other still forbids."""
    project.constraint(ID, "match:\n  - {comand: x}\n  - {command: git push --force}\n")
    assert project.json("enforce", "--tool", "Bash", "--command", "git push --force")["violations"]
    assert len(warnings_of(project)) == 1


def test_duplicate_ids_are_named_and_the_first_file_counts(project: Project) -> None:
    """Two files with one id: both are in the warning, the first one in order is in force."""
    folder = project.root / "docs/constraints"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nid: same\ncircuit_breaker:\n  violation_threshold: 2\n---\n")
    (folder / "b.md").write_text("---\nid: same\ncircuit_breaker:\n  violation_threshold: 9\n---\n")
    (warning,) = warnings_of(project)
    assert "docs/constraints/a.md" in warning
    assert "docs/constraints/b.md" in warning
    assert setting(project, "violation_threshold", "same") == (2, "docs/constraints/a.md")


def test_a_readme_beside_the_constraints_is_none(project: Project) -> None:
    """Markdown without front matter, other files, an empty file: no constraint and no warning."""
    project.constraint(ID)
    folder = project.root / "docs/constraints"
    (folder / "README.md").write_text("# Our rules\n\n---\n\nid: nothing\n")
    (folder / "empty.md").write_text("")
    (folder / "notes.txt").write_text("---\nid: text\n---\n")
    (folder / "image.md.png").write_bytes(b"\x89PNG")
    (folder / "folder.md").mkdir()
    (folder / "deeper").mkdir()
    (folder / "deeper/rule.md").write_text("---\nid: deep-rule\n---\n")
    status = project.json("status", "--all")
    assert [circuit["id"] for circuit in status["circuits"]] == ["deep-rule", ID]
    assert status["warnings"] == []


# -- every command, until it is mended ----------------------------------------------------------------------


def test_every_command_shows_the_warning_until_it_is_mended(project: Project) -> None:
    """Text and JSON; the exit codes stay what they are, errors too; the very next command after mending is silent."""
    path = project.constraint(
        ID, "circuit_breaker:\n  cooldown_hours: 0\n  dedup_seconds: 0\n  violation_threshold: 1\n"
    )
    (project.root / "state.json").write_text('{"git-safety": {}}')
    commands: list[tuple[int, tuple[str, ...]]] = [
        (0, ("status",)),
        (0, ("status", "--all")),
        (0, ("status", ID)),
        (0, ("check", ID)),
        (0, ("history", ID)),
        (0, ("config", ID)),
        (0, ("enforce", "--tool", "Bash", "--command", "ls")),
        (1, ("reset", ID, "--reason", "not open")),
        (0, ("record", ID, "--action", "x")),
        (3, ("check", ID)),
        (0, ("override", ID, "--reason", "x")),
        (0, ("reset", ID, "--reason", "x")),
        (0, ("archive", ID)),
        (0, ("import", "state.json")),
        (1, ("doctor",)),
        (1, ("check", "unknown")),
        (1, ("archive", "unknown")),
    ]
    wrong = []
    for code, arguments in commands:
        result = project.run(*arguments)
        assert "Traceback" not in result.stderr
        assert result.returncode == code, (arguments, result.stderr)
        told = result.stdout if arguments == ("doctor",) else result.stderr  # there it is a finding
        if not (FILE in told and "cooldown_hours" in told):
            wrong.append(" ".join(arguments))
    assert wrong == [], f"commands that do not show the warning: {wrong}"
    assert len(project.json("status")["warnings"]) == 1
    path.write_text(path.read_text().replace("cooldown_hours: 0", "cooldown_hours: 1"))
    mended = project.run("status")
    assert (mended.returncode, mended.stderr) == (0, "")
    assert project.run("doctor").returncode == 0


def test_json_on_standard_output_stays_json_while_warnings_are_shown(project: Project) -> None:
    """Talk goes to stderr: every --json command can still be parsed."""
    project.constraint(ID, "circuit_breaker:\n  cooldown_hours: 0\n")
    for arguments in (("status",), ("check", ID), ("record", ID, "--action", "x"), ("history", ID), ("config", ID)):
        assert isinstance(project.json(*arguments), dict)
    assert project.json("doctor")["healthy"] is False


def test_every_change_of_a_source_is_seen_at_once(project: Project) -> None:
    """Edited, added, removed, renamed, replaced by a file of equal size and age: the compiled rules are never stale."""
    path = project.constraint(ID, "circuit_breaker:\n  violation_threshold: 3\n")

    def threshold() -> object:
        return setting(project, "violation_threshold")[0]

    def in_force() -> float:
        return project.json("status", ID)["circuits"][0]["threshold"]  # type: ignore[no-any-return]

    assert (threshold(), in_force()) == (3, 3)
    path.write_text(path.read_text().replace(": 3", ": 4"))
    assert in_force() == 4
    path.write_text(path.read_text().replace("  violation_threshold: 4\n", ""))
    assert in_force() == 5
    user_config().write_text("[constraint]\nviolation_threshold = 6\n")
    assert in_force() == 6
    (project.root / "fusewire.toml").write_text("[constraint]\nviolation_threshold = 7\n")
    assert in_force() == 7
    (project.root / "fusewire.toml").unlink()
    assert in_force() == 6
    user_config().unlink()
    assert in_force() == 5
    other = project.constraint("second")
    assert len(project.json("status", "--all")["circuits"]) == 2
    other.unlink()
    assert len(project.json("status", "--all")["circuits"]) == 1
    path.rename(path.with_name("renamed.md"))
    assert setting(project, "violation_threshold") == (5, "default")
    path.with_name("renamed.md").unlink()
    assert project.run("check", ID).returncode == 1


def test_an_edit_that_keeps_size_and_time_of_the_file_is_seen(project: Project) -> None:
    """An editor or `rsync --times --inplace` that restores the time of modification does not hide a change."""
    path = project.constraint(ID, "circuit_breaker:\n  violation_threshold: 3\n")
    assert project.json("status", ID)["circuits"][0]["threshold"] == 3
    before = path.stat()
    path.write_text(path.read_text().replace(": 3", ": 4"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert project.json("status", ID)["circuits"][0]["threshold"] == 4


def test_a_damaged_blob_is_compiled_anew(project: Project) -> None:
    """The compiled rules are only a shortcut: garbage, an empty file or a folder in their place changes nothing."""
    project.constraint(ID, "circuit_breaker:\n  violation_threshold: 3\n")
    project.run("status")
    (blob,) = (project.root / ".fusewire").glob("rules*.bin")
    for content in (b"", b"garbage", blob.read_bytes()[:-20], b"i\x01\x00\x00\x00"):
        blob.write_bytes(content)
        assert project.json("status", ID)["circuits"][0]["threshold"] == 3
    blob.unlink()
    blob.mkdir()
    assert project.json("status", ID)["circuits"][0]["threshold"] == 3
