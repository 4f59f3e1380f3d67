"""Plain lines: what is waved through without being read must be what the full reading lets pass as well."""

from __future__ import annotations

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest

from fusewire.guard.check import judge_reading, read_command
from fusewire.guard.plain import plain_commands
from fusewire.guard.policy import protected_of
from fusewire.guard.protected import Protected

FILES = ("AGENTS.md", "CLAUDE.md", "IMPLEMENTATION_PLAN.md", ".ralphrc", "specs/a.md", "specs/deep/b.md", "src/app.py")

#: What a line may speak of: protected or not, there or not.
OPERANDS = (
    "",
    "AGENTS.md",
    "specs",
    "specs/a.md",
    ".claude/settings.json",
    "src/app.py",
    "../AGENTS.md",
    "nosuch",
    "-",
)

#: program -> options that people give it
LOOKING = {
    "basename": ("", "-a"),
    "cat": ("", "-n", "-A"),
    "cd": ("",),
    "cmp": ("", "-s AGENTS.md"),
    "cut": ("-d: -f1", "-c1-20"),
    "date": ("", "-u", "-I", "-r"),
    "df": ("", "-h"),
    "diff": ("", "-u AGENTS.md", "-r", "--brief"),
    "dirname": ("", "-z"),
    "du": ("", "-sh"),
    "echo": ("", "-n", "rm -rf"),
    "file": ("", "-b", "-i"),
    "grep": ("TODO", "-rn TODO", "-l x", "-c x", "-v x"),
    "head": ("", "-n 5", "-5", "-c 10"),
    "hostname": ("",),
    "id": ("", "-u"),
    "jq": (".", "-r .a", "-c ."),
    "ls": ("", "-la", "-R", "-1"),
    "md5sum": ("", "-c"),
    "nl": ("", "-ba"),
    "nproc": ("", "--all"),
    "ps": ("", "aux"),
    "pwd": ("", "-P"),
    "rg": ("TODO", "-n TODO", "-l x"),
    "sha256sum": ("", "-c"),
    "sleep": ("0",),
    "stat": ("", "-L"),
    "tail": ("", "-n 5"),
    "test": ("-f", "-d", "-s", "-e"),
    "tree": ("", "-L 2", "-a"),
    "true": ("",),
    "uname": ("", "-a"),
    "uptime": ("",),
    "wc": ("", "-l"),
    "which": ("", "-a"),
    "whoami": ("",),
}

GIT = {
    "add": ("", "-A", "-u", "-N", "-f", "--all"),
    "blame": ("", "-L1,5"),
    "branch": ("", "-a", "-D x", "-m x y", "-f x HEAD", "--show-current"),
    "describe": ("", "--tags"),
    "diff": ("", "--stat", "--cached", "--name-only", "HEAD --", "--check"),
    "fetch": ("", "--all", "-p", "origin"),
    "log": ("", "--oneline", "-5", "-p", "--stat --"),
    "ls-files": ("", "-o", "-m", "--others"),
    "push": ("", "-f origin", "--force origin main", "origin --delete x", "-u origin main", "--tags"),
    "remote": ("", "-v", "add x"),
    "rev-parse": ("HEAD", "--show-toplevel", "--git-dir"),
    "shortlog": ("-sn HEAD",),
    "show": ("", "HEAD", "--stat", "--name-only"),
    "status": ("", "-s", "--porcelain", "-uall"),
    "tag": ("", "-d v1", "-l", "-f v1"),
}

OPAQUE = {
    "bundle": ("install", "exec rspec"),
    "cargo": ("build", "test", "clippy", "fmt --check"),
    "cmake": ("--version", "--build build"),
    "composer": ("install", "test"),
    "docker": ("ps", "build .", "compose up -d"),
    "dotnet": ("build", "test"),
    "flake8": ("",),
    "go": ("build ./...", "test ./...", "vet ./...", "mod tidy"),
    "gradle": ("build", "test"),
    "jest": ("", "--watch"),
    "just": ("", "test"),
    "kubectl": ("get pods", "apply -f k8s"),
    "mix": ("test",),
    "mvn": ("test", "-q verify"),
    "mypy": ("", "--strict"),
    "ninja": ("", "-C build"),
    "npm": ("install", "test", "run build", "ci"),
    "phpunit": ("",),
    "pip": ("install -r requirements.txt", "list", "freeze"),
    "pip3": ("install -e .",),
    "pnpm": ("install", "test"),
    "psql": ("-l",),
    "pylint": ("",),
    "pyright": ("",),
    "pytest": ("", "-q", "-x --lf", "-k login"),
    "python -m": ("pytest -q", "unittest", "mypy", "pip list", "build", "coverage report", "flake8", "pylint"),
    "python3 -m": ("pytest", "unittest discover -s"),
    "rake": ("", "test"),
    "rspec": ("",),
    "rustc": ("--version",),
    "swift": ("build", "test"),
    "terraform": ("plan", "validate"),
    "tox": ("", "-e py311"),
    "tsc": ("", "--noEmit", "-p"),
    "vitest": ("", "run"),
    "yarn": ("", "install", "test"),
}


def lines_of(programs: dict[str, tuple[str, ...]], prefix: str = "") -> list[str]:
    return [
        " ".join(f"{prefix}{name} {option} {operand}".split())
        for name, options in programs.items()
        for option, operand in product(options, OPERANDS)
    ]


def joined() -> list[str]:
    """Lines of several commands."""
    parts = ["cat AGENTS.md", "git status", "cd specs", "ls -la ..", "pytest -q", "git add specs", "wc -l"]
    return [f"{one}{sign}{two}" for sign in (" && ", " || ", " | ", "&&", "|") for one, two in product(parts, parts)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "project"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    commit = ["git", "-c", "user.name=d", "-c", "user.email=d@x", "commit", "-qm", "x"]
    for words in (["git", "init", "-q"], ["git", "add", "-A"], commit):
        subprocess.run(words, cwd=folder, check=True)
    (folder / "specs/draft.md").write_text("draft\n")
    (folder / "specs/a.md").write_text("changed\n")
    return folder


@pytest.fixture
def protected(root: Path) -> Protected:
    return protected_of(str(root))


def tree(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}


# -- what is known ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [lines_of(LOOKING), lines_of(GIT, "git "), lines_of(OPAQUE), joined()],
    ids=["looking", "git", "opaque", "joined"],
)
def test_what_is_known_is_allowed_by_the_full_reading_too(root: Path, protected: Protected, lines: list[str]) -> None:
    """Every known line, read in full, is ALLOWED and has no effect but reading; most of them are known."""
    wrong = []
    known = 0
    for line in lines:
        commands = plain_commands(line)
        if commands is None:
            continue
        known += 1
        reading = read_command(line, cwd=str(root), protected=protected)
        verdict = judge_reading(reading)
        if not verdict.allowed:
            wrong.append((line, verdict.rule))
    assert wrong == []
    assert known > 0.5 * len(lines)


def test_the_words_are_those_that_a_shell_would_see(root: Path) -> None:
    """Known lines have no quotes and no expansion, so that splitting at blanks is enough."""
    for line in (*lines_of(LOOKING), *lines_of(GIT, "git ")):
        commands = plain_commands(line)
        assert commands is None or commands == [line.split()], line
    assert plain_commands("cat a |wc -l&&git  status || echo no") == [
        ["cat", "a"],
        ["wc", "-l"],
        ["git", "status"],
        ["echo", "no"],
    ]


def test_lines_that_only_look_change_nothing_when_they_are_run(root: Path) -> None:
    """The looking programs and git's looking commands, really run one after the other: no file is another after it."""
    before = tree(root)
    lines = [line for line in (*lines_of(LOOKING), *lines_of(GIT, "git ")) if plain_commands(line) is not None]
    script = "\n".join(f"({line}) </dev/null >/dev/null 2>&1" for line in lines)
    environment = {**os.environ, "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}
    subprocess.run(["bash", "-c", script], cwd=root, env=environment, timeout=60, check=False)
    assert tree(root) == before


# -- what is not known --------------------------------------------------------------------------------------


@pytest.mark.parametrize("special", list("'\"\\`$*?[]{}~!<>();#\n\r\t%^&"))
def test_a_special_character_anywhere_makes_a_line_one_to_be_read(special: str) -> None:
    """In front, in the middle of a word, between words and at the end."""
    for line in (f"{special}ls specs", f"ls sp{special}ecs", f"ls {special} specs", f"ls specs{special}"):
        assert plain_commands(line) is None, line


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "rm AGENTS.md",
        "mv specs x",
        "make",
        "make clean",
        "sed -i x AGENTS.md",
        "python x.py",
        "python -c x",
        "python -m http.server",
        "python -m",
        "python",
        "python3.11 -m pytest",
        "git",
        "git clean -fdx",
        "git checkout .",
        "git -C specs status",
        "git -c core.pager=x log",
        "git --git-dir=x status",
        "git stash",
        "git rm specs/a.md",
        "git config core.pager x",
        "/bin/ls",
        "./pytest",
        "bin/pytest",
        "sudo ls",
        "env ls",
        "xargs ls",
        "bash x",
        "A=1 pytest",
        "PATH=. ls",
        "ls && rm AGENTS.md",
        "ls | xargs rm",
        "cat a | tee AGENTS.md",
        "ls || rm AGENTS.md",
        "ls &",
        "ls & rm x",
        "ls |& cat",
        "ls &&& ls",
        "ls &&",
        "| ls",
        "ls | | ls",
        "&& ls",
        "sort -o AGENTS.md x",
        "cp a b",
        "find . -delete",
        "LS",
        "ls\u00a0-la; rm x",
        "tee AGENTS.md",
        "prettier --write AGENTS.md",
        "pushd specs",
        "alias ls=rm",
        "eval ls",
        "source x",
        ". x",
        "ls " + "x" * 2000,
        "ls\0",
    ],
)
def test_an_unknown_program_or_an_odd_line_has_to_be_read(line: str) -> None:
    """A wrapper, an assignment, a path, a job in the background, an empty part: none of them is known."""
    assert plain_commands(line) is None


def test_blanks_of_other_alphabets_do_not_part_words() -> None:
    """A shell takes a no-break space for part of a word, so `ls<nbsp>x` is an unknown program."""
    for blank in "\u00a0\u2003\u3000\x0b\x0c\x1c\x1f\x85\u2028":
        assert plain_commands(f"ls{blank}AGENTS.md") is None, repr(blank)


# -- what must not be known: lines that name a protected file as what they write -----------------------------

#: Options of programs that otherwise only look.
WITHOUT_BACKSTOP = [
    "tree -o AGENTS.md",
    "tree -oAGENTS.md",
    "tree -a -o specs/a.md",
    "tree --output AGENTS.md",
    "git diff --output=AGENTS.md",
    "git diff --output AGENTS.md",
    "git log -p --output=specs/a.md",
    "git show --output=AGENTS.md HEAD",
    "git shortlog --output=AGENTS.md HEAD",
]


@pytest.mark.parametrize("line", WITHOUT_BACKSTOP)
def test_a_line_that_only_seems_to_look_is_read_and_refused(root: Path, protected: Protected, line: str) -> None:
    """Options with which a looking program writes a file."""
    verdict = judge_reading(read_command(line, cwd=str(root), protected=protected))
    assert (plain_commands(line), verdict.verdict) == (None, "deny")


#: The words themselves name the protected file that is written, replaced or deleted.
WITH_BACKSTOP = [
    "pytest --junitxml=AGENTS.md",
    "pytest --junit-xml AGENTS.md",
    "pytest --log-file=AGENTS.md",
    "mypy --junit-xml AGENTS.md src",
    "pip --log AGENTS.md list",
    "npm exec rm AGENTS.md",
    "pnpm exec rm AGENTS.md",
    "yarn exec rm AGENTS.md",
    "bundle exec rm AGENTS.md",
    "composer exec rm AGENTS.md",
    "go build -o AGENTS.md",
    "go test -coverprofile=AGENTS.md",
    "tsc --outDir specs",
    "tsc --outFile AGENTS.md",
    "python -m coverage erase --data-file=AGENTS.md",
    "psql -o AGENTS.md",
    "terraform plan -out=AGENTS.md",
    "rustc -o AGENTS.md x.rs",
]


@pytest.mark.parametrize("line", WITH_BACKSTOP)
def test_a_tool_that_names_a_protected_file_as_its_output_is_refused(
    root: Path, protected: Protected, line: str
) -> None:
    """The words tell what it would write, replace or delete, so nobody has to wait for the comparison after it."""
    verdict = judge_reading(read_command(line, cwd=str(root), protected=protected))
    assert (plain_commands(line), verdict.verdict) == (None, "deny")
