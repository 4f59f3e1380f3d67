"""`fusewire guard` as a person uses it: questions, explanations, copies and their way back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusewire.guard.calls import folder_of
from tests.helpers.program import fusewire
from tests.helpers.project import Project

FIELDS = {"decision", "state", "phase", "rule", "reason", "evidence", "retry_after", "next", "affected"}

TRACKED = {
    ".gitignore": "*.log\nbuild/\nmemory/\n",
    "README.md": "readme\n",
    "src/app.py": "app\n",
    "AGENTS.md": "agents\n",
    "CLAUDE.md": "claude\n",
    "specs/a.md": "a\n",
}
UNTRACKED = {
    "new.txt": "new\n",
    "debug.log": "log\n",
    "build/out.o": "out\n",
    "specs/draft.md": "draft\n",
    "memory/today.md": "today\n",
    "odd/ü name.txt": "odd\n",
}


@pytest.fixture
def shop(project: Project) -> Project:
    """A repository with one commit, and files that are untracked or ignored."""
    write(project.root, TRACKED)
    for words in ("add -A", "-c user.name=d -c user.email=d@x commit -qm x"):
        subprocess.run(["git", *words.split()], cwd=project.root, check=True)
    write(project.root, UNTRACKED)
    return project


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def check(project: Project, command: str, *more: str) -> Any:
    return project.json("guard", "check", "--command", command, *more)


def batch(
    project: Project, *lines: object, arguments: tuple[str, ...] = (), cwd: Path | None = None
) -> tuple[int, list[Any], list[str]]:
    """`guard check --batch`: exit code, verdicts, lines on standard error. Objects become JSON, texts stay."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    result = fusewire(
        *("guard", "check", "--batch", *arguments),
        cwd=cwd or project.root,
        env={**os.environ},
        stdin=text.encode("utf-8", "surrogatepass"),
    )
    verdicts = [json.loads(line) for line in result.stdout.decode().splitlines()]
    return result.returncode, verdicts, result.stderr.decode().splitlines()


def assert_error(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One line on standard error, nothing on standard output."""
    assert (result.returncode, result.stdout) == (code, ""), result
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


# -- check --------------------------------------------------------------------------------------------------


def test_allowed_exits_with_0_and_blocked_with_3(shop: Project) -> None:
    """As text: a word that says it, the reason, the evidence and a next step on standard output."""
    fine = shop.run("guard", "check", "--command", "rm -rf build")
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout.startswith("ALLOWED")
    assert "build/out.o" in fine.stdout
    bad = shop.run("guard", "check", "--command", "rm -rf specs")
    assert (bad.returncode, bad.stderr) == (3, "")
    assert bad.stdout.startswith("BLOCKED guard.rm: ")
    for word in ("specs", "protected", "delete specs: rm -rf specs", "Next: "):
        assert word in bad.stdout
    assert not (shop.root / ".fusewire").exists()


def test_json_has_every_field_of_a_decision(shop: Project) -> None:
    """The same names as of every other decision, and what would be affected."""
    blocked = check(shop, "rm -rf specs")
    assert set(blocked) == FIELDS
    assert (blocked["decision"], blocked["rule"], blocked["retry_after"]) == ("BLOCKED", "guard.rm", None)
    assert (blocked["state"], blocked["phase"]) == ("CLOSED", "closed")
    assert "specs" in blocked["reason"]
    assert blocked["evidence"] == ["delete specs: rm -rf specs"]
    assert blocked["next"]
    assert {"specs/a.md", "specs/draft.md"} <= set(blocked["affected"])
    allowed = check(shop, "rm -rf build")
    assert set(allowed) == FIELDS
    assert (allowed["decision"], allowed["rule"], allowed["reason"]) == ("ALLOWED", None, "")
    assert (allowed["evidence"], allowed["next"], allowed["retry_after"]) == ([], [], None)
    assert "build/out.o" in allowed["affected"]


@pytest.mark.parametrize("command", ["git clean -fdx", "git clean -fd", "git clean -fdX", "git clean -f", "rm -rf *"])
def test_affected_is_what_the_command_really_removes(shop: Project, tmp_path: Path, command: str) -> None:
    """Run for real in a copy: every file that is gone was named, untracked and ignored ones too."""
    copy = tmp_path / "copy"
    shutil.copytree(shop.root, copy)
    subprocess.run(["bash", "-c", command], cwd=copy, check=True, capture_output=True)
    names = [*TRACKED, *UNTRACKED]
    gone = {name for name in names if not (copy / name).exists()}
    verdict = check(shop, command)
    assert gone <= set(verdict["affected"])
    assert not (set(names) - gone) & set(verdict["affected"])
    protected = {name for name in gone if name.startswith(("specs", "memory", "AGENTS", "CLAUDE"))}
    assert verdict["decision"] == ("BLOCKED" if protected else "ALLOWED")
    for name in protected:
        assert name.split("/")[0] in verdict["reason"]


def test_git_clean_names_every_protected_file_it_would_take(shop: Project) -> None:
    """`-x` takes the ignored ones as well."""
    verdict = check(shop, "git clean -fdx")
    assert (verdict["decision"], verdict["rule"]) == ("BLOCKED", "guard.git.clean")
    for name in ("specs/draft.md", "memory/today.md"):
        assert name in verdict["reason"]
        assert name in verdict["affected"]
    assert {"new.txt", "debug.log", "build/out.o", "odd/ü name.txt"} <= set(verdict["affected"])


def test_the_safer_command_is_named_and_is_safe(shop: Project) -> None:
    """`git clean -fd -e specs`: it is allowed, and does the rest of what was asked for."""
    verdict = check(shop, "git clean -fd")
    assert verdict["next"][0] == "git clean -fd -e specs"
    safe = check(shop, "git clean -fd -e specs")
    assert safe["decision"] == "ALLOWED"
    assert set(verdict["affected"]) - {"specs/draft.md"} == set(safe["affected"])


CLEANING = (
    "git clean -fdx",
    "git clean -f -d -x",
    "git clean --force -d",
    "git clean -fdx -e build",
    "git clean -fd --exclude=new.txt",
    "git clean -fd --exclude new.txt",
    "git clean -fd .",
    "git clean -fd specs",
    "git clean -fd specs build",
    "git -C . clean -fd",
    "git -C specs clean -fd",
)


def test_the_safer_command_takes_nothing_that_the_refused_one_would_not(shop: Project) -> None:
    """Whoever follows the advice is not refused again, and loses no file that he did not mean."""
    refused = batch(shop, *({"cmd": command} for command in CLEANING))[1]
    assert {verdict["decision"] for verdict in refused} == {"BLOCKED"}
    advice = [next((text for text in one["next"] if text.startswith("git")), "true") for one in refused]
    followed = batch(shop, *({"cmd": command} for command in advice))[1]
    wrong = [
        (command, text)
        for command, text, first, second in zip(CLEANING, advice, refused, followed, strict=True)
        if second["decision"] != "ALLOWED" or not set(second["affected"]) <= set(first["affected"])
    ]
    assert wrong == []


RULES = {
    "rm AGENTS.md": "guard.rm",
    "rm -rf specs": "guard.rm",
    "sudo rm -rf specs": "guard.rm",
    "bash -c 'rm -rf specs'": "guard.rm",
    "ls | xargs rm -rf": "guard.rm",
    "rmdir specs; rm -r specs": "guard.rm",
    "unlink AGENTS.md": "guard.unlink",
    "shred AGENTS.md": "guard.shred",
    "mv AGENTS.md old.md": "guard.mv",
    "mv README.md AGENTS.md": "guard.mv",
    "cp README.md AGENTS.md": "guard.cp",
    "install README.md AGENTS.md": "guard.install",
    "ln -sf README.md AGENTS.md": "guard.ln",
    "dd if=README.md of=AGENTS.md": "guard.dd",
    "truncate -s 0 AGENTS.md": "guard.truncate",
    "chmod 000 AGENTS.md": "guard.chmod",
    "touch specs/new.md": "guard.touch",
    "echo x | tee AGENTS.md": "guard.tee",
    "sort -o AGENTS.md README.md": "guard.sort",
    "echo x > AGENTS.md": "guard.redirect",
    "echo x >> specs/a.md": "guard.redirect",
    ": > AGENTS.md": "guard.redirect",
    "cat > specs/new.md <<EOF\nx\nEOF": "guard.redirect",
    "sed -i s/a/b/ AGENTS.md": "guard.sed",
    "perl -pi -e s/a/b/ AGENTS.md": "guard.perl",
    "awk '{print > \"AGENTS.md\"}' README.md": "guard.awk",
    "find specs -delete": "guard.find",
    "find . -name '*.md' -exec rm {} +": "guard.rm",
    "python3 -c \"open('AGENTS.md', 'w')\"": "guard.python",
    "python -c \"import shutil; shutil.rmtree('specs')\"": "guard.python",
    "node -e \"require('fs').unlinkSync('AGENTS.md')\"": "guard.node",
    "ruby -e \"File.delete('AGENTS.md')\"": "guard.ruby",
    "tar xf x.tar -C specs --transform s/a/b/; tar cf AGENTS.md src": "guard.tar",
    "rsync -a --delete src/ specs/": "guard.rsync",
    "curl -o AGENTS.md https://example.com": "guard.curl",
    "wget -O AGENTS.md https://example.com": "guard.wget",
    "git clean -fd": "guard.git.clean",
    "git rm specs/a.md": "guard.git.rm",
    "git mv AGENTS.md x.md": "guard.git.mv",
    "echo y > src/app.py; git checkout HEAD -- AGENTS.md; rm AGENTS.md": "guard.rm",
    "git diff --output=AGENTS.md": "guard.git.diff",
    "sometool --output AGENTS.md": "guard.output",
    "rm -rf .fusewire": "guard.rm",
    "echo > fusewire.toml": "guard.redirect",
}


def test_rule_ids_stay_the_same(shop: Project) -> None:
    """`guard.` and the program that would do it, whatever is wrapped around it."""
    _, verdicts, errors = batch(shop, *({"cmd": command} for command in RULES))
    assert errors == []
    found = {command: verdict["rule"] for command, verdict in zip(RULES, verdicts, strict=True)}
    assert found == RULES
    assert {verdict["decision"] for verdict in verdicts} == {"BLOCKED"}


def test_git_rules_are_those_of_the_subcommand(shop: Project) -> None:
    """A changed specification that git would overwrite: checkout, restore, reset and stash each have a rule."""
    (shop.root / "specs/a.md").write_text("work\n")
    commands = {
        "git checkout .": "guard.git.checkout",
        "git checkout -- specs/a.md": "guard.git.checkout",
        "git restore specs": "guard.git.restore",
        "git reset --hard": "guard.git.reset",
        "git stash": "guard.git.stash",
    }
    _, verdicts, _ = batch(shop, *({"cmd": command} for command in commands))
    assert [verdict["rule"] for verdict in verdicts] == list(commands.values())
    assert all(verdict["next"] for verdict in verdicts)


def test_the_folder_in_which_a_command_would_run_counts(shop: Project, tmp_path: Path) -> None:
    """--cwd, relative and absolute, decides what a name means; the project is found from there."""
    assert check(shop, "rm a.md", "--cwd", "specs")["decision"] == "BLOCKED"
    assert check(shop, "rm a.md", "--cwd", str(shop.root / "specs"))["affected"][0] == "specs/a.md"
    assert check(shop, "rm a.md")["decision"] == "ALLOWED"
    other = tmp_path / "other"
    write(other, {"specs/a.md": "x"})
    assert check(shop, "rm -rf specs", "--cwd", str(other))["decision"] == "BLOCKED"
    assert check(shop, "rm -rf specs", "--cwd", str(other), "--project", str(shop.root))["decision"] == "ALLOWED"
    elsewhere = Project(other)
    for arguments in (
        ("guard", "check", "--command", f"rm -r {shop.root}/specs", "--project", str(shop.root)),
        ("--project", str(shop.root), "guard", "check", "--command", f"rm -r {shop.root}/specs"),
    ):
        assert elsewhere.run(*arguments).returncode == 3
    assert elsewhere.run("guard", "check", "--command", f"rm -r {shop.root}/specs").returncode == 0


def test_a_folder_that_is_none_is_an_error_of_one_line(shop: Project) -> None:
    """Unknown --cwd and --project: exit 1 and the name."""
    for command in ("check", "explain"):
        asked = ("guard", command, "--command", "ls")
        assert_error(shop.run(*asked, "--cwd", "/no/such/folder"), 1, "/no/such/folder")
        assert_error(shop.run(*asked, "--project", "/no/such/folder"), 1, "/no/such/folder")
    for command in ("snapshot", "verify", "restore"):
        assert_error(shop.run("guard", command, "--project", "/no/such/folder"), 1, "/no/such/folder")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "--tool", "Edit"),
        ("check", "--path", "AGENTS.md"),
        ("check", "--command", "ls", "--tool", "Edit", "--path", "x"),
        ("check", "--command", "ls", "--path", "x"),
        ("check", "--command", "ls", "--batch"),
        ("check", "--command"),
        ("check", "ls"),
        ("explain",),
        ("explain", "--command"),
        ("snapshot", "x"),
        ("verify", "x"),
        ("restore", "--nosuch"),
        ("nosuch",),
    ],
)
def test_wrong_usage_exits_with_2(shop: Project, arguments: tuple[str, ...]) -> None:
    """Usage on standard error, nothing on standard output."""
    result = shop.run("guard", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert result.stderr


def test_structured_tools_are_asked_about_by_name_and_path(shop: Project) -> None:
    """Edit may update documents, not the configuration; several paths are one call; relative to --cwd."""

    def asked(*arguments: str) -> tuple[int, str | None]:
        result = shop.run("guard", "check", *arguments, "--json")
        return result.returncode, json.loads(result.stdout)["rule"]

    assert asked("--tool", "Edit", "--path", "AGENTS.md") == (0, None)
    assert asked("--tool", "Edit", "--path", ".ralphrc") == (3, "guard.change")
    assert asked("--tool", "Edit", "--path", "src/app.py", "--path", ".claude/settings.json") == (3, "guard.change")
    assert asked("--tool", "Edit", "--path", "../.ralphrc", "--cwd", "src") == (3, "guard.change")
    assert asked("--tool", "Edit", "--path", ".ralphrc", "--cwd", "src") == (0, None)
    assert asked("--tool", "Write", "--path", str(shop.root / "fusewire.toml")) == (3, "guard.change")
    text = shop.run("guard", "check", "--tool", "Edit", "--path", ".ralphrc").stdout
    assert text.startswith("BLOCKED guard.change: Edit would change .ralphrc")
    assert "a person" in text


def test_an_empty_or_odd_command_is_answered(shop: Project) -> None:
    """Nothing to run, nothing to change, no crash."""
    for command in ("", "é ü 日本 \x1b[31m"):
        result = shop.run("guard", "check", "--command", command, "--json")
        assert (result.returncode, result.stderr) == (0, "")
        assert json.loads(result.stdout)["decision"] == "ALLOWED"
    odd = (" ", "\n", "#", ";", "'", '"', "$(", "\\", "((", "&&", "|", ">", "<<", "{", "if", "do", "case x in", "!")
    code, verdicts, errors = batch(shop, *({"cmd": command} for command in odd))
    assert (code, errors) == (0, [])
    assert [verdict["decision"] for verdict in verdicts] == ["ALLOWED"] * len(odd)


# -- check --batch ------------------------------------------------------------------------------------------


def test_a_batch_answers_every_line_in_its_order(shop: Project) -> None:
    """300 lines, with and without a folder; empty lines are left out; exit 0 although some are blocked."""
    lines: list[object] = []
    wanted = []
    for number in range(100):
        lines += [
            {"cmd": f"rm build/{number}.o"},
            {"cmd": "rm a.md", "cwd": str(shop.root / "specs")},
            "",
            {"cmd": f"echo {number} > AGENTS.md", "cwd": None},
        ]
        wanted += ["ALLOWED", "BLOCKED", "BLOCKED"]
    code, verdicts, errors = batch(shop, *lines)
    assert (code, errors) == (0, [])
    assert [verdict["decision"] for verdict in verdicts] == wanted
    assert all(set(verdict) == FIELDS for verdict in verdicts)
    assert batch(shop) == (0, [], [])


def test_a_bad_line_is_blocked_and_said_and_the_others_are_answered(shop: Project) -> None:
    """guard.input, one line on standard error with its number, and exit 1 in the end."""
    bad: list[object] = [
        "no json",
        "[1, 2]",
        "5",
        "null",
        "{}",
        {"cmd": 5},
        {"cmd": None},
        {"cmd": ["rm", "x"]},
        {"cmd": "ls", "cwd": 7},
        {"cmd": "ls", "cwd": "/no/such/folder"},
        '{"cmd": "ls"',
    ]
    lines: list[object] = []
    for line in bad:
        lines += [line, {"cmd": "rm AGENTS.md"}]
    code, verdicts, errors = batch(shop, *lines)
    assert code == 1
    assert len(verdicts) == len(lines)
    assert [verdict["rule"] for verdict in verdicts] == ["guard.input", "guard.rm"] * len(bad)
    assert {verdict["decision"] for verdict in verdicts} == {"BLOCKED"}
    assert len(errors) == len(bad)
    for number, error in enumerate(errors):
        assert error.startswith(f"Error: line {2 * number + 1}: ")


def test_a_line_that_is_nested_too_deeply_is_one_bad_line(shop: Project) -> None:
    """100,000 brackets: blocked and said like any other bad line, and the line behind it is answered."""
    code, verdicts, errors = batch(shop, "[" * 100_000, {"cmd": "rm AGENTS.md"})
    assert [verdict["rule"] for verdict in verdicts] == ["guard.input", "guard.rm"]
    assert (code, len(errors)) == (1, 1)


def test_a_line_that_is_not_utf8_is_answered_too(shop: Project) -> None:
    """Bytes that are no text make one bad line, not a crash of the whole batch."""
    result = subprocess.run(
        [sys.executable, "-m", "fusewire", "guard", "check", "--batch"],
        cwd=shop.root,
        input=b'{"cmd": "ls"}\n{"cmd": "rm \xff AGENTS.md"}\n{"cmd": "rm AGENTS.md"}\n',
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in result.stderr
    verdicts = [json.loads(line)["decision"] for line in result.stdout.splitlines()]
    assert (verdicts[0], verdicts[-1], len(verdicts)) == ("ALLOWED", "BLOCKED", 3)


def test_odd_texts_in_a_batch_are_answered(shop: Project) -> None:
    """NUL, lone surrogates, astral characters, escapes; the words around them still count."""
    lines = [
        {"cmd": "rm AGENTS.md\0"},
        {"cmd": "echo \0; rm AGENTS.md"},
        {"cmd": "echo \ud800 && rm AGENTS.md"},
        {"cmd": "echo 日本語 🎉 && rm AGENTS.md"},
        {"cmd": "echo \x1b[31m; rm AGENTS.md"},
        {"cmd": "rm '\u202eAGENTS.md'"},
        {"cmd": "\ufeffls"},
    ]
    code, verdicts, errors = batch(shop, *lines)
    assert (code, errors) == (0, [])
    assert [verdict["decision"] for verdict in verdicts[1:]] == ["BLOCKED"] * 4 + ["ALLOWED"] * 2


def test_a_command_of_200_kilobytes_is_answered(shop: Project) -> None:
    """Long and harmless is allowed or said to be unreadable; long with an `rm` of a specification is blocked."""
    words = " ".join(f"word{number}" for number in range(22_000))
    _, verdicts, _ = batch(
        shop,
        {"cmd": f"echo {words}"},
        {"cmd": f"rm -rf specs {words}"},
        {"cmd": f"echo {words}; rm -rf specs"},
        {"cmd": f"cat > notes.txt <<'EOF'\n{words}\nEOF"},
        {"cmd": "( " * 50_000 + "rm -rf specs" + " )" * 50_000},
    )
    assert [verdict["decision"] for verdict in verdicts] == ["ALLOWED", "BLOCKED", "BLOCKED", "ALLOWED", "BLOCKED"]


def test_several_projects_in_one_batch(shop: Project, tmp_path: Path) -> None:
    """Each line is judged by the project of its folder, with that project's own settings."""
    other = tmp_path / "other"
    write(other, {"fusewire.toml": '[guard]\ndocuments = ["plan.txt"]\n', "plan.txt": "x", "specs/a.md": "x"})
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    lines = [
        {"cmd": command, "cwd": str(cwd)} for cwd in (shop.root, other) for command in ("rm -r specs", "rm plan.txt")
    ]
    wanted = ["BLOCKED", "ALLOWED", "ALLOWED", "BLOCKED"]
    assert [verdict["decision"] for verdict in batch(shop, *lines, *lines)[1]] == wanted * 2
    named = batch(shop, *lines, arguments=("--project", str(shop.root)), cwd=tmp_path)[1]
    assert [verdict["decision"] for verdict in named] == ["BLOCKED", "ALLOWED", "ALLOWED", "ALLOWED"]


# -- explain ------------------------------------------------------------------------------------------------


def test_explain_shows_commands_effects_and_the_verdict(shop: Project) -> None:
    """What runs where, what it does to which file, what of it is protected, and by which rule it is refused."""
    result = shop.run("guard", "explain", "--command", "cat README.md > out.txt; cd specs && sed -i s/a/b/ *.md")
    assert (result.returncode, result.stderr) == (3, "")
    commands, _, rest = result.stdout.partition("Effects\n")
    effects, _, verdict = rest.partition("Verdict\n")
    assert commands.startswith("Commands\n")
    assert f"sed -i s/a/b/ a.md draft.md    (in {shop.root}/specs)" in commands
    assert f"cat README.md    (in {shop.root})" in commands
    lines = effects.splitlines()
    assert any(line.split() == ["write", "specs/a.md", "[guard.sed]", "PROTECTED"] for line in lines)
    assert any(line.split()[:2] == ["read", "README.md"] and "PROTECTED" not in line for line in lines), effects
    assert any(line.split() == ["write", "out.txt", "[guard.redirect]"] for line in lines), effects
    assert verdict.split() == ["BLOCKED", "guard.sed"]


def test_explain_of_something_harmless_exits_with_0(shop: Project) -> None:
    """No effects are said to be none."""
    result = shop.run("guard", "explain", "--command", "true")
    assert (result.returncode, result.stderr) == (0, "")
    assert "none" in result.stdout
    assert result.stdout.rstrip().endswith("ALLOWED")


def test_explain_as_json(shop: Project) -> None:
    """Commands, effects and the verdict's own fields; what is unknown is shown as …"""
    found = shop.json("guard", "explain", "--command", 'rm -rf specs; echo "$NOBODY_KNOWS"')
    assert set(found) == FIELDS | {"commands", "effects"}
    assert found["commands"][0] == {"words": ["rm", "-rf", "specs"], "cwd": str(shop.root)}
    assert found["commands"][1]["words"] == ["echo", "…"]
    effect = found["effects"][0]
    assert (effect["effect"], effect["path"], effect["rule"]) == ("delete", "specs", "guard.rm")
    assert (effect["recursive"], effect["protected"]) == (True, True)
    assert found["decision"] == "BLOCKED"


# -- snapshot, verify, restore ------------------------------------------------------------------------------


def test_a_round_trip_brings_back_contents_modes_and_links(shop: Project) -> None:
    """Recorded, damaged in every way, found by verify, restored; what was replaced is kept and can be read."""
    root = shop.root
    (root / "AGENTS.md").write_bytes(b"\x00\xffbytes\r\n")
    (root / "CLAUDE.md").chmod(0o755)
    (root / "specs/link.md").symlink_to("a.md")
    taken = shop.json("guard", "snapshot")
    assert set(taken) == {"files", "bytes", "changed", "skipped"}
    assert taken["files"] == len(taken["changed"]) == 6
    assert taken["skipped"] == []
    assert shop.run("guard", "verify").returncode == 0
    (root / "AGENTS.md").write_text("newer\n")
    (root / "CLAUDE.md").chmod(0o600)
    (root / "specs/link.md").unlink()
    (root / "specs/a.md").write_text("")
    (root / "memory/today.md").unlink()
    (root / "specs/new.md").write_text("new\n")
    seen = shop.run("guard", "verify", "--json")
    assert seen.returncode == 3
    kinds = {one["path"]: one["kind"] for one in json.loads(seen.stdout)["findings"]}
    assert kinds == {
        "AGENTS.md": "changed",
        "CLAUDE.md": "mode",
        "specs/link.md": "missing",
        "specs/a.md": "emptied",
        "memory/today.md": "missing",
        "specs/new.md": "new",
    }
    text = shop.run("guard", "verify")
    assert text.returncode == 3
    assert "fusewire guard restore" in text.stdout
    restored = {one["path"]: one for one in shop.json("guard", "restore")["restored"]}
    assert set(restored) == set(kinds) - {"specs/new.md"}
    assert all(one["problem"] is None for one in restored.values())
    assert (root / restored["AGENTS.md"]["kept"]).read_text() == "newer\n"
    assert (root / "AGENTS.md").read_bytes() == b"\x00\xffbytes\r\n"
    assert (root / "CLAUDE.md").stat().st_mode & 0o777 == 0o755
    assert os.readlink(root / "specs/link.md") == "a.md"
    assert (root / "specs/a.md").read_text() == "a\n"
    assert (root / "specs/new.md").exists()
    assert shop.json("guard", "verify")["intact"] is True
    assert "nothing to restore" in shop.run("guard", "restore").stdout


def test_the_texts_of_snapshot_and_restore_have_numbers_and_names(shop: Project) -> None:
    """How many files and bytes, what is new, what was restored and where the other version is."""
    first = shop.run("guard", "snapshot")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("5 protected files recorded (")
    assert "5 of them new or changed" in first.stdout
    (shop.root / "AGENTS.md").write_text("other\n")
    assert "0 of them" not in shop.run("guard", "snapshot").stdout
    assert "0 of them" in shop.run("guard", "snapshot").stdout
    (shop.root / "AGENTS.md").write_text("third\n")
    line = shop.run("guard", "restore").stdout
    assert line.startswith("AGENTS.md: restored (what was there is kept in ")
    assert (shop.root / "AGENTS.md").read_text() == "other\n"


def test_only_the_named_files_are_restored(shop: Project) -> None:
    """A file, a folder, a name relative to where one is; what was never recorded is an error."""
    shop.run("guard", "snapshot")
    for name in ("AGENTS.md", "CLAUDE.md", "specs/a.md", "specs/draft.md"):
        (shop.root / name).unlink()
    assert shop.run("guard", "restore", "AGENTS.md").returncode == 0
    assert (shop.root / "AGENTS.md").exists()
    assert not (shop.root / "CLAUDE.md").exists()
    inside = Project(shop.root / "specs")
    assert inside.run("guard", "restore", "a.md", "../CLAUDE.md").returncode == 0
    assert (shop.root / "specs/a.md").exists()
    assert (shop.root / "CLAUDE.md").exists()
    assert not (shop.root / "specs/draft.md").exists()
    assert shop.run("guard", "restore", "specs").returncode == 0
    assert (shop.root / "specs/draft.md").exists()
    unknown = shop.run("guard", "restore", "nosuch.md")
    assert unknown.returncode == 1
    assert "nosuch.md" in unknown.stderr


def test_without_a_snapshot_verify_and_restore_are_errors(shop: Project) -> None:
    """One line that says how to take one; the project stays untouched."""
    assert_error(shop.run("guard", "verify"), 1, "no snapshot", "fusewire guard snapshot")
    assert_error(shop.run("guard", "restore"), 1, "no snapshot")
    assert_error(shop.run("guard", "verify", "--json"), 1, "no snapshot")
    assert not (shop.root / ".fusewire").exists()


@pytest.mark.parametrize(
    ("command", "damage"), [("verify", b""), ("verify", b"\xffgarbage"), ("restore", b'{"format": 99}')]
)
def test_a_damaged_manifest_is_an_error_and_is_kept(shop: Project, command: str, damage: bytes) -> None:
    """One line; the damaged file can be looked at; the next snapshot starts anew."""
    shop.run("guard", "snapshot")
    manifest = Path(folder_of(str(shop.root))) / "manifest.bin"
    manifest.write_bytes(damage)
    assert_error(shop.run("guard", command), 1, "manifest", "damaged")
    (aside,) = manifest.parent.glob("manifest.bin.corrupt*")
    assert aside.read_bytes() == damage
    assert shop.run("guard", "snapshot").returncode == 0
    assert shop.run("guard", "verify").returncode == 0


def test_inside_an_agent_copies_are_not_for_the_taking(shop: Project) -> None:
    """snapshot and restore are refused with exit 3 and change nothing; asking is free."""
    shop.run("guard", "snapshot")
    (shop.root / "AGENTS.md").write_text("by the agent\n")
    place = Path(folder_of(str(shop.root))) / "manifest.bin"
    manifest = place.read_bytes()
    for variable in ("CLAUDECODE", "FUSEWIRE_AGENT"):
        for arguments in (("snapshot",), ("restore",), ("restore", "AGENTS.md"), ("snapshot", "--json")):
            result = shop.run("guard", *arguments, env={variable: "1"})
            assert_error(result, 3, "person", variable, f"guard {arguments[0]}")
    assert (shop.root / "AGENTS.md").read_text() == "by the agent\n"
    assert place.read_bytes() == manifest
    agent = {"CLAUDECODE": "1"}
    assert shop.run("guard", "check", "--command", "ls", env=agent).returncode == 0
    assert shop.run("guard", "check", "--command", "rm AGENTS.md", env=agent).returncode == 3
    assert shop.run("guard", "explain", "--command", "ls", env=agent).returncode == 0
    assert shop.run("guard", "verify", env=agent).returncode == 3


def test_a_snapshot_in_a_project_with_nothing_to_protect(project: Project) -> None:
    """Nothing is recorded, and that is said; verify is content."""
    result = project.run("guard", "snapshot")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("0 protected files")
    assert project.run("guard", "verify").returncode == 0


def test_guard_commands_show_what_is_wrong_with_the_configuration(shop: Project) -> None:
    """Like every other command: a setting that is not in force must not be taken for one that is."""
    (shop.root / "fusewire.toml").write_text('[guard]\nalso_documents = "README.md"\n')
    for arguments in (("check", "--command", "rm README.md"), ("explain", "--command", "ls"), ("snapshot",)):
        result = shop.run("guard", *arguments)
        assert "also_documents" in result.stderr, arguments
