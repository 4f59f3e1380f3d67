"""Ways around a constraint that a persistent agent finds, and the work that merely looks like one of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fusewire.breakers.constraint.detect import word_fits
from fusewire.guard.code import found_in
from tests.helpers import SOURCE
from tests.helpers.project import Project

RULE = "match:\n  - command: git push --force\n  - command: git push -f\n  - command: git reset --hard\n"

PYTHON = 'import subprocess\nsubprocess.run(["git", "push", "--force"], check=True)\n'
NODE = 'const { execSync } = require("child_process");\nexecSync("git push --force");\n'

FILES = {
    "push.sh": "#!/bin/sh\nset -e\ngit push --force\n",
    "args.sh": '#!/bin/bash\ngit push "$@"\n',
    "outer.sh": "cd .\nbash ./push.sh\n",
    "mentions.sh": "# git push --force is forbidden here\necho 'git push --force'\ngit push\n",
    "chosen.sh": 'case "$1" in\n  hard) git push --force ;;\n  *) git push ;;\nesac\n',
    "push.py": PYTHON,
    "helper.py": 'import subprocess\n\ndef never():\n    subprocess.run(["git", "push", "--force"])\n\nprint("hi")\n',
    "words.py": 'RULE = "git push --force"\nprint(RULE)\n',
    "push.js": NODE,
    "words.js": 'console.log("git push --force");\n',
    "Makefile": (
        "FLAGS = --force\nall: test\ntest:\n\tpytest\nrelease: build\n\t@git push $(FLAGS)\n"
        "build:\n\techo build  # git push --force\nnested:\n\t$(MAKE) release\n"
    ),
    "package.json": (
        '{"scripts": {"test": "jest", "release": "npm run build && git push --force", "build": "tsc",'
        ' "ship": "npm run release", "preout": "git push -f", "out": "true", "say": "echo git push --force"}}'
    ),
}


@pytest.fixture
def bound(project: Project) -> Project:
    """A project with a rule, and with scripts that break it and scripts that do not."""
    project.starts_hooks = False
    project.constraint("no-force", RULE)
    for name, text in FILES.items():
        (project.root / name).write_text(text)
        (project.root / name).chmod(0o755)
    git(project, "config", "alias.pf", "push --force")
    git(project, "config", "alias.sh", "!f() { git push --force; }; f")
    git(project, "config", "alias.twice", "pf origin")
    git(project, "config", "alias.st", "status --short")
    git(project, "config", "alias.p", "push")
    return project


def git(project: Project, *words: str) -> None:
    subprocess.run(["git", "-C", str(project.root), *words], check=True, capture_output=True)


def breaks(project: Project, line: str) -> bool:
    result = project.hook(project.bash(line))
    assert result.returncode == 0, result.stderr
    return b"breaks a constraint" in result.stdout


@pytest.mark.parametrize(
    "line",
    [
        "git pf",
        "git pf origin main",
        "git twice",
        "git sh",
        "git -C . pf",
        "git p --force",
        "git config alias.x 'push --force'; git x",
        "git config --global alias.y 'push -f' && git y",
        "git -c alias.z='push -f' z",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.w GIT_CONFIG_VALUE_0='push --force' git w",
        "git push --forc",
        "git push origin main --for",
        "git reset --har",
        "git reset --ha HEAD~1",
        "bash push.sh",
        "./push.sh",
        "sh -e push.sh",
        "source push.sh",
        ". ./push.sh",
        'sh -c "$(cat push.sh)"',
        'eval "$(cat push.sh)"',
        "bash < push.sh",
        "cat push.sh | sh",
        "bash outer.sh",
        "./args.sh --force",
        "bash chosen.sh hard",
        "printf 'git push --force\\n' > new.sh; bash new.sh",
        "cat > new.sh <<'EOF'\ngit push --force\nEOF\nchmod +x new.sh && ./new.sh",
        "python push.py",
        "python3 -u ./push.py now",
        "python -c 'import os; os.system(\"git push --force\")'",
        "python - <<'EOF'\n" + PYTHON + "EOF",
        "cat > new.py <<'EOF'\n" + PYTHON + "EOF\npython new.py",
        "node -e \"require('child_process').execSync('git push --force')\"",
        "node push.js",
        "make release",
        "make nested",
        "make -C . release",
        "npm run release",
        "npm run ship",
        "npm run out",
        "yarn release",
        "pnpm run release",
    ],
)
def test_a_constraint_is_not_evaded(bound: Project, line: str) -> None:
    assert breaks(bound, line)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git p",
        "git st",
        "git push --force-with-lease",
        "git push --follow-tags",
        "git push --fo",
        "git log --oneline",
        "git commit -m 'git push --force'",
        "git commit -m 'never bash push.sh'",
        "git config alias.other 'push --force'",
        "echo 'git push --force' > notes.txt",
        "cat > later.sh <<'EOF'\ngit push --force\nEOF",
        "cat push.sh",
        "grep -rn 'push --force' .",
        "bash -n push.sh",
        "bash mentions.sh",
        "bash args.sh",
        "bash chosen.sh soft",
        "chmod +x push.sh",
        "python words.py",
        "python helper.py",
        "python -c 'print(\"git push --force\")'",
        "python -m py_compile push.py",
        "node words.js",
        "make",
        "make build",
        "make -n test",
        "npm test",
        "npm run build",
        "npm run say",
        "npm install",
    ],
)
def test_what_only_speaks_of_it_passes(bound: Project, line: str) -> None:
    assert not breaks(bound, line)


def test_an_alias_of_the_users_own_configuration_counts(bound: Project) -> None:
    Path(os.environ["HOME"], ".gitconfig").write_text('[alias]\n\tmine = "push --force"\n')
    assert breaks(bound, "git mine")


def test_nothing_from_the_repository_runs(bound: Project, tmp_path: Path) -> None:
    """Aliases, recipes and scripts are read; `$(shell ...)`, `!...` and hooks do not run."""
    canary = tmp_path / "ran"
    touch = f"touch {canary}"
    git(bound, "config", "alias.run", f"!{touch}")
    (bound.root / "Makefile").write_text(f"X := $(shell {touch})\nall:\n\t{touch}\n")
    (bound.root / "package.json").write_text(f'{{"scripts": {{"x": "{touch}"}}}}')
    (bound.root / "x.py").write_text(f'import os\nos.system("{touch}")\n')
    for line in ("git run", "make", "npm run x", "python x.py", f"bash -c '{touch}'"):
        breaks(bound, line)
    assert not canary.exists()


def test_recipes_that_are_too_long_stop_nobody(bound: Project) -> None:
    """They are read as far as they can be, and what is beyond is not held against the line."""
    (bound.root / "Makefile").write_text("all:\n" + "\tfor i in {1..2000}; do rm -rf out$$i; done\n" * 200)
    result = bound.hook(bound.bash("make"))
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (PYTHON, ["git push --force"]),
        ('import os as o\no.system("git push")', ["git push"]),
        ('from subprocess import check_call as c\nc("git push --force".split())', ["git push --force"]),
        ('import subprocess, shlex\nx = "git push"\nsubprocess.Popen(shlex.split(x))', ["git push"]),
        ('import subprocess\na = ["git"]\nsubprocess.run(a + ["push", "-f"])', ["git push -f"]),
        ('import subprocess\nsubprocess.run(args=["git", "push"])', ["git push"]),
        ('import os\nos.execvp("git", ["git", "push"])', ["git push"]),
        ('import os\nos.execlp("git", "git", "push", "-f")', ["git push -f"]),
        ('import os\nos.spawnlp(os.P_WAIT, "git", "git", "push")', ["git push"]),
        ('import os\nclass A:\n    def go(self):\n        os.system("git push")\nA().go()', ["git push"]),
        ('import subprocess\ndef dead():\n    subprocess.run(["git"])\n', []),
        ("print(\"subprocess.run(['git'])\")", []),
        ("import subprocess\nrun(['git'])", []),
        ("import subprocess\nsubprocess.run(", []),
        ("import subprocess\nx = x\nsubprocess.run(x)", ["\ufdd0"]),
        ("import subprocess\n" + "(" * 500, []),
    ],
)
def test_literals_of_python_are_found_without_running_it(code: str, lines: list[str]) -> None:
    assert [text for kind, text, _ in found_in("python", code, []) if kind == "shell"] == lines


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (NODE, ["git push --force"]),
        ("require('child_process').spawnSync('git', ['push', '--force'])", ["git push --force"]),
        ("const cp = require('node:child_process'); cp.execFile(\"git\", [\n'push' ])", ["git push"]),
        ("/x/.exec('git push')", []),
        ("console.log('git push')", []),
    ],
)
def test_literals_of_node_are_found(code: str, lines: list[str]) -> None:
    assert [text for kind, text, _ in found_in("node", code, []) if kind == "shell"] == lines


@pytest.mark.parametrize(
    ("word", "pattern", "fits"),
    [
        ("--forc", "--force", True),
        ("--for", "--force", True),
        ("--fo", "--force", False),
        ("--force", "--force-with-lease", False),
        ("--force-w", "--force-with-lease", True),
        ("--force-with-lease", "--force", False),
        ("--follow-tags", "--force", False),
        ("--no", "--no-verify", False),
        ("--no-v", "--no-verify", True),
        ("--ha", "--hard", True),
        ("--", "--force", False),
        ("--all", "--all-tags", False),
    ],
)
def test_an_abbreviation_is_the_option_unless_it_is_one_of_its_own(word: str, pattern: str, fits: bool) -> None:
    assert word_fits(word, pattern) is fits


@pytest.mark.parametrize("line", ['bash -O dotglob -c "rm -rf *"', "bash -O extglob -O dotglob -c 'rm -r ./*'"])
def test_an_option_that_a_shell_is_started_with_counts(project: Project, line: str) -> None:
    project.hook(project.bash("touch a"))
    assert b"it would delete .fusewire" in project.hook(project.bash(line)).stderr
    assert project.hook(project.bash(line.replace("dotglob", "nullglob"))).returncode == 0


PROMPT = '{"hook_event_name":"UserPromptSubmit","session_id":"479528ae-91f4-4945-992c-9db9f0bba192","prompt":"go on"}'


@pytest.mark.parametrize("run", ["sh p.sh", "make x", "npm run x", "bash ./p.sh", "cd . && make x"])
@pytest.mark.parametrize(
    "does",
    [f"echo '{PROMPT}' | python3 -I -S {SOURCE}/hook.py claude", "rm -rf .fusewire", "fusewire reset loop --reason x"],
    ids=["hook", "state", "reset"],
)
def test_scripts_and_recipes_do_not_disarm_either(project: Project, run: str, does: str) -> None:
    """What a line may not do, a script or a recipe that it runs may not do; without any constraint in the project."""
    project.starts_hooks = False
    files = {"p.sh": f"{does}\n", "Makefile": f"x:\n\t{does}\n", "package.json": json.dumps({"scripts": {"x": does}})}
    for name, text in files.items():
        (project.root / name).write_text(text)
    answer = project.hook(project.bash(run))
    assert answer.returncode == 2
    assert json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny", answer


@pytest.mark.parametrize("run", ["sh p.sh", "make x", "npm run x"])
@pytest.mark.parametrize(
    "does", ["fusewire status", "rm -rf build", "echo .fusewire/ >> notes", "grep -r fusewire docs"]
)
def test_scripts_and_recipes_that_only_name_us_pass(project: Project, run: str, does: str) -> None:
    project.starts_hooks = False
    files = {"p.sh": f"{does}\n", "Makefile": f"x:\n\t{does}\n", "package.json": json.dumps({"scripts": {"x": does}})}
    for name, text in files.items():
        (project.root / name).write_text(text)
    assert "deny" not in project.hook(project.bash(run)).stdout.decode()
