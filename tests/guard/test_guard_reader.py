"""The reader on what really happens to people: recipes, scripts, archives, searches, unknown names, and its limits.

No command is run. What is unsure passes where the kernel protects the files, and what is certain is refused there too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusewire.cli import guard as guard_cli
from fusewire.guard import disk
from fusewire.guard.check import judge_reading, read_command
from fusewire.guard.policy import protected_of
from fusewire.guard.shell.commands import only_looks
from tests.helpers import SOURCE
from tests.helpers.project import Project

FILES = {
    "AGENTS.md": "# Agents\n",
    "specs/login.md": "# Login\n",
    "specs/api.md": "# API\n",
    "src/app.py": "print(1)\n",
    "src/photo": "x\n",
    "build/out.o": "x\n",
    "build/old.tmp": "x\n",
    "other/specs/login.md": "another one\n",
    "Makefile": "OUT = specs\nall: app\napp:\n\tgcc -o app a.c\nclean:\n\t@rm -rf $(OUT)\ntidy:\n\trm -rf build\n",
    "package.json": '{"scripts": {"clean": "rimraf specs", "build": "tsc", "test": "jest", "pretest": "rm -r specs"}}',
    "clean.sh": "#!/bin/sh\nset -e\nrm -rf specs\n",
    "tidy.sh": '#!/bin/bash\nrm -rf "$1" build\n',
    "clean.py": "import shutil\nfrom pathlib import Path\n\nROOT = Path('.')\nshutil.rmtree(ROOT / 'specs')\n",
    "tidy.py": "import shutil\nshutil.rmtree('build')\nprint(open('specs/login.md').read())\n",
    "tool.js": "const fs = require('fs');\nfs.rmSync('specs', {recursive: true});\n",
}


@pytest.fixture
def shop(project: Project) -> Path:
    for name, text in FILES.items():
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return project.root


def refused(root: Path, command: str, *, kernel: bool = False) -> str:
    """The rule that refuses a command; empty if it passes."""
    reading = read_command(command, cwd=str(root), protected=protected_of(str(root)), environment={"HOME": "/nowhere"})
    return judge_reading(reading, kernel_decides=lambda: kernel).rule


# -- recipes, scripts and code ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "make clean",
        "make -C . clean",
        "cd src && make -C .. clean",
        "make OUT=AGENTS.md clean",
        "npm run clean",
        "npm test",
        "yarn clean",
        "pnpm run clean",
        "./clean.sh",
        "bash clean.sh",
        "bash tidy.sh specs",
        "python3 clean.py",
        "node tool.js",
        "timeout 5 make clean",
        "cat > new.sh <<'E'\nrm -rf specs\nE\nsh new.sh",
    ],
)
def test_what_a_recipe_or_script_deletes_is_refused_before_it_runs(shop: Path, command: str) -> None:
    assert refused(shop, command)


@pytest.mark.parametrize(
    "command",
    ["make", "make tidy", "make -n clean", "npm run build", "npm install", "./tidy.sh build", "python3 tidy.py"],
)
def test_must_not_refuse_recipes_that_leave_protected_files_alone(shop: Path, command: str) -> None:
    assert refused(shop, command) == ""


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.remove('AGENTS.md')",
        "import os\nfor n in ['login.md', 'api.md']:\n    os.unlink(os.path.join('specs', n))",
        "from pathlib import Path\nfor p in Path('specs').glob('*.md'):\n    p.unlink()",
        "from pathlib import Path\nPath('AGENTS.md').write_text('x')",
        "p = 'specs/login.md'\nwith open(p, 'w') as f:\n    f.write('x')",
        "import subprocess\nsubprocess.run(['rm', '-rf', 'specs'])",
        "import os; os.system('rm -rf specs')",
        "import os; os.chdir('specs'); os.remove('login.md')",
        "import shutil; shutil.move('specs', 'old')",
    ],
)
def test_literal_paths_in_python_are_found(shop: Path, code: str) -> None:
    (shop / "x.py").write_text(code)
    assert refused(shop, "python3 x.py"), "as a file"
    assert refused(shop, f"python3 - <<'E'\n{code}\nE"), "as input"


@pytest.mark.parametrize(
    "code",
    [
        "print(open('AGENTS.md').read())",
        "text = open('specs/login.md').read(); open('build/copy.md', 'w').write(text)",
        "import os, sys\nfor p in sys.argv[1:]: os.remove(p)",
        "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nopen('AGENTS.md', 'w')",
        "def clean():\n    import shutil\n    shutil.rmtree('specs')",
        "name = 'AGENTS.md'.replace('A', 'specs')",
    ],
)
def test_must_not_refuse_code_that_reads_or_is_not_certain(shop: Path, code: str) -> None:
    (shop / "x.py").write_text(code)
    assert refused(shop, "python3 x.py build/out.o") == ""


# -- archives and copies of trees ---------------------------------------------------------------------------------


def packed(shop: Path) -> None:
    with tarfile.open(shop / "over.tgz", "w:gz") as tar, zipfile.ZipFile(shop / "over.zip", "w") as archive:
        tar.add(shop / "specs/login.md", "specs/login.md")
        archive.writestr("specs/login.md", "x")
    with tarfile.open(shop / "free.tar", "w") as tar:
        tar.add(shop / "src/app.py", "dist/app.py")
    for name in ("bad.tar", "bad.zip"):
        (shop / name).write_bytes(b"no archive at all")


UNKNOWN_NAMES = [
    "tar xf bad.tar",
    "unzip -o bad.zip",
    "curl -sL https://example.com/x.tgz | tar xz",
    "git archive HEAD | tar x",
    "cp -r $SRC/. .",
    "rsync -a --delete host:site/ ./",
]


@pytest.mark.parametrize("command", UNKNOWN_NAMES)
def test_unknown_names_over_protected_files_pass_only_with_the_kernel(shop: Path, command: str) -> None:
    packed(shop)
    assert refused(shop, command)
    assert refused(shop, command, kernel=True) == ""


@pytest.mark.parametrize(
    ("command", "stops"),
    [
        ("tar xzf over.tgz", True),
        ("unzip -o over.zip", True),
        ("rsync -a other/ ./", True),
        ("rsync -a --delete src/ ./", True),
        ("cp -r other/. .", True),
        ("tar xf free.tar", False),
        ("tar xzf over.tgz -C build", False),
        ("tar xzf over.tgz --exclude=specs", False),
        ("unzip -n over.zip", False),
        ("unzip -o over.zip -d build", False),
        ("tar xf bad.tar -C build", False),
        ("tar xf missing.tar", False),
        ("cp -r $SRC/. build", False),
        ("curl -sL https://example.com/x.tgz | tar xz -C build", False),
        ("tar czf over2.tgz specs", False),
    ],
)
def test_the_names_in_an_archive_or_a_folder_decide(shop: Path, command: str, stops: bool) -> None:
    packed(shop)
    assert bool(refused(shop, command)) is stops


# -- searches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "stops"),
    [
        ("find . -regex '.*\\.tmp' -delete", False),
        ("find . -regex './specs/.*' -delete", True),
        ("find . -newermt 2999-01-01 -delete", False),
        ("find . -newermt 1999-01-01 -type f -delete", True),
        ("find . -inum 1 -delete", False),
        ("find . -user nosuchuser -delete", False),
        ("find . -fstype nfs -delete", False),
        ("find build -name '*.tmp' -exec mv {} {}.jpg \\;", False),
        ("find . -name 'phot*' -exec mv {} {}.jpg \\;", False),
        ("find specs -name '*.md' -exec mv {} {}.jpg \\;", True),
        ("find . -name '*.md' -exec grep -l Login {} +", False),
        ("ls -t build | head -1 | xargs rm", False),
        ("ls -t | tail -n +3 | xargs rm -f", False),
        ("printf 'specs\\n' | xargs -iX rm -rf X", True),
        ("printf 'build\\n' | xargs -iX rm -rf X", False),
        ("ls | grep -v src | xargs rm -rf", True),
        ("ls | grep build | xargs rm -rf", False),
    ],
)
def test_a_search_hits_what_it_finds_and_nothing_else(shop: Path, command: str, stops: bool) -> None:
    assert bool(refused(shop, command)) is stops


@pytest.mark.parametrize(
    "command",
    [
        "find / -name '*.conf'",
        "find / -type f -newer /etc/passwd 2>/dev/null | head -5",
        "find / -name x -exec cat {} +",
        "find . -type f -print0 | wc -c",
        "du -sh / && ls -R / > /dev/null",
        "grep -rn x /",
    ],
)
def test_no_tree_is_walked_where_no_effect_follows(shop: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def fail(*given: object) -> list[str]:
        raise AssertionError("the disk was walked")

    monkeypatch.setattr(disk.Disk, "listing", fail)
    assert refused(shop, command) == ""


# -- what is not known ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        'rm -rf "$BUILD_DIR"',
        "rm -rf $DIR/*",
        "rm -rf ./$(date +%s)",
        "$TOOL -rf specs",
        "r${x}m -rf build",
        "chmod -R u+w .",
        "chmod +x src/app.py specs/login.md",
        "chmod -R u+w .fusewire .claude",
        "npx prettier --write .",
        "black . && ruff format .",
        "find $DIR -name '*.md' -delete",
    ],
)
def test_must_not_refuse_what_is_unknown_or_destroys_nothing(shop: Path, command: str) -> None:
    (shop / ".fusewire").mkdir()
    assert refused(shop, command) == ""


@pytest.mark.parametrize(
    "command",
    ['rm -rf "$X/specs"', "rm -rf specs/$X", "chmod -R a-r .", "chmod 000 specs", "cat specs/x | xargs rm -rf"],
)
def test_a_known_part_that_points_to_a_protected_file_counts(shop: Path, command: str) -> None:
    assert refused(shop, command)
    assert refused(shop, command, kernel=True) == "", "the kernel decides"


@pytest.mark.parametrize(
    "command",
    [
        "wget -q http://127.0.0.1/x-1.2.tar.gz && tar -xzf x-1.2.tar.gz",
        "curl -LO http://127.0.0.1/x.zip && unzip x.zip",
        "curl -o x.tar.gz http://127.0.0.1/x; tar xf x.tar.gz",
    ],
)
def test_must_not_refuse_to_unpack_what_was_just_downloaded(shop: Path, command: str) -> None:
    assert refused(shop, command) == ""
    assert refused(
        shop,
        command.replace("tar -", "tar -C specs -")
        .replace("tar xf", "tar -C specs -xf")
        .replace("unzip", "unzip -d specs"),
    )


@pytest.mark.parametrize("command", ["rm -rf specs", "echo x > AGENTS.md", "mv specs old", "make clean", "rm -rf *"])
def test_what_is_certain_is_refused_with_the_kernel_too(shop: Path, command: str) -> None:
    assert refused(shop, command, kernel=True)


# -- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("find / -name x | head", True),
        ("cat a b | sort | uniq -c", True),
        ("git log --oneline | wc -l 2>/dev/null", True),
        ("sudo ls -R / 2>&1", True),
        ("git status && git log --oneline", True),
        ("x=$(git rev-parse HEAD); echo $x > /dev/null 2>&1", True),
        ("sed -n '1,20p' a.py", True),
        ('for f in *.py; do head -5 "$f"; done', True),
        ("cat <<'END'\nrm x\nEND\n", True),
        ("command -v python3 && timeout 5 cat x | xargs grep y", True),
        ("find / -name x -delete", False),
        ("ls > out.txt", False),
        ("ls; rm x", False),
        ("sort -o x y", False),
        ("make", False),
        ("./tidy -rf specs", False),
        ("git diff", False),
        ("git log -p", False),
        ("git -c core.pager=x log", False),
        ("echo 'rm -rf SPECS' | tr A-Z a-z | sh", False),
        ('[ "$(sort -u <<< a)" = a ] && rm -rf specs', False),
        ("declare -p foo || rm -rf specs", False),
        ('find . -user "$(id -un)" -delete', False),
        ("find . $X", False),
        ("python3 -m json.tool a a", False),
        ("cat ${x:-$(rm y)}", False),
        ("cat <<END\n$(rm x)\nEND\n", False),
        ("if false; then rm x; fi", False),
        ("case x in y) rm x;; esac", False),
        ("ls() { rm x; }; ls", False),
        ("ls <(rm x)", False),
        ("PATH=. ls", False),
        ("uniq a b", False),
        ("sed -n 'w x' y", False),
        ("ls <> x", False),
    ],
)
def test_a_reading_line_is_known_by_its_words(line: str, looks: bool) -> None:
    assert only_looks(line) is looks


@pytest.mark.parametrize(("command", "code"), [("find / -name '*.md' | sort", 0), ("rm -rf build", 2)])
def test_the_deadline_refuses_no_reading(project: Project, tmp_path: Path, command: str, code: int) -> None:
    """The hook is held up until its deadline, of one second in this copy: what reads passes, what writes does not."""
    copy = shutil.copytree(SOURCE, tmp_path / "fusewire")
    gate = (copy / "gate" / "process.py").read_text()
    (copy / "gate" / "process.py").write_text(gate.replace("_DEADLINE = 10", "_DEADLINE = 1"))
    with (copy / "config" / "rules.py").open("a") as rules:
        rules.write("\n\ndef load_rules(root, keeps=False):\n    import time\n\n    time.sleep(30)\n")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(copy / "hook.py"), "claude"],
        input=json.dumps(project.bash(command)).encode(),
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == code, answer.stderr


def test_a_crash_in_a_batch_is_one_error_among_verdicts(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = guard_cli.check_command

    def crashing(command: str, **given: object) -> object:
        if command == "boom":
            raise RuntimeError("dictionary changed size")
        return check(command, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(guard_cli, "check_command", crashing)
    lines = [json.dumps({"cmd": command, "cwd": str(shop)}) for command in ("ls", "boom", "rm -rf specs")]
    result = CliRunner().invoke(guard_cli.guard_command, ["check", "--batch"], input="\n".join(lines))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["decision"], one["rule"]) for one in found] == [
        ("ALLOWED", None),
        ("BLOCKED", "guard.failure"),
        ("BLOCKED", "guard.rm"),
    ]
    assert "dictionary changed size" in result.stderr


def test_allowed_claims_no_more_than_is_known(project: Project) -> None:
    result = project.run("guard", "check", "--command", "pytest -q")
    assert result.stdout == "ALLOWED: no change to a protected file detected\n"
