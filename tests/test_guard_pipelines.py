"""What programs print is what the next one is given: lines with pipes, and the commands that they come to."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import effects_of
from fusewire.guard.effects import READ
from fusewire.guard.programs.awk_output import awk_prints
from fusewire.guard.programs.sed_output import sed_prints
from fusewire.shell.outputs import printed
from fusewire.shell.values import UNKNOWN

FILES = {
    "a.md": "alpha\nTODO one\n",
    "b.txt": "beta\n",
    "docs/one.md": "# One\nTODO two\n",
    "docs/two.md": "# Two\n",
    "names.json": '{"files": ["a.md", "b.txt"], "one": {"path": "docs/one.md"}}\n',
    "src/app.py": "print(1)\n",
}
MADE = """
git init -q . && git config user.name a && git config user.email a@b && git add . && git commit -qm one
echo changed > docs/two.md && git commit -qam two && echo dirty >> b.txt
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines") / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["bash", "-ec", MADE], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder


def changes(command: str, folder: Path) -> set[str]:
    """`write a.md`, `delete docs`, with `?` for what is unknown."""
    found = set()
    for effect in effects_of(command, folder).found:
        if effect.kind != READ:
            path = os.path.relpath(os.path.normpath(effect.path.replace(UNKNOWN, "?")), folder)
            found.add(f"{effect.kind} {path}")
    return found


# (command, what it changes, separated by commas)
PIPELINES = [
    ("grep -rn TODO --include='*.md' . | cut -d: -f1 | xargs rm", "delete a.md, delete docs/one.md"),
    ("grep -n TODO a.md docs/*.md | cut -d: -f1 | xargs rm", "delete a.md, delete docs/one.md"),
    ("grep -c TODO *.md docs/*.md | grep -v ':0' | cut -d: -f1 | xargs rm", "delete a.md, delete docs/one.md"),
    ("grep -rn Nothing docs | cut -d: -f1 | xargs -r rm", ""),
    ("grep -rhn TODO docs | cut -d: -f1 | xargs touch", "write 2"),
    ("grep -rno 'T.D' docs | cut -d: -f3 | xargs touch", "write TOD"),
    ("grep -rn -m1 '#' docs | cut -d: -f1 | sort -u | head -n 1 | xargs rm", "delete docs/one.md"),
    ("grep -rn TODO docs | while IFS=: read -r f n _; do rm $f; done", "delete docs/one.md"),
    ("find . -name 'o*.md' | cut -c3- | xargs rm", "delete docs/one.md"),
    ("find docs -name '*.md' -printf '%P\\0' | xargs -0 touch", "write one.md, write two.md"),
    ("find . -name 'one.md' -printf '%h/%f\\n' | xargs rm", "delete docs/one.md"),
    ("find . -name 'one.md' -printf '%T@ %p\\n' | sort -n | cut -d' ' -f2- | xargs rm", "delete docs/one.md"),
    ("find . -name 'one.md' | tr '\\n' '\\0' | xargs -0 rm", "delete docs/one.md"),
    ("find . -name '*.none' | cut -c3- | xargs -r rm", ""),
    ("ls *.md | paste -sd' ' | xargs rm", "delete a.md"),
    ("ls docs | paste -d/ - - | xargs touch", "write one.md/two.md"),
    ("paste -sd' ' b.txt | xargs touch", "write beta, write dirty"),
    ("ls *.md *.txt | column -t | xargs rm", "delete a.md, delete b.txt"),
    ("comm -23 <(ls *.md *.txt | sort) <(echo a.md) | xargs rm", "delete b.txt"),
    ("comm -12 <(ls *.md *.txt | sort) <(echo a.md) | xargs rm", "delete a.md"),
    ("file *.md | cut -d: -f1 | xargs rm", "delete a.md"),
    ("sha256sum *.md | cut -d' ' -f3 | xargs rm", "delete a.md"),
    ("stat -c '%Y %n' *.md | sort -n | cut -d' ' -f2 | xargs rm", "delete a.md"),
    ("stat -c %n docs/one.md | xargs rm", "delete docs/one.md"),
    ("wc -l < b.txt | xargs touch", "write 2"),
    ("wc -l b.txt | cut -d' ' -f2 | xargs rm", "delete b.txt"),
    ("du -a docs | cut -f2 | grep one | xargs rm", "delete docs/one.md"),
    ("jq -r '.files[]' names.json | xargs rm", "delete a.md, delete b.txt"),
    ("jq -r .one.path names.json | xargs rm", "delete docs/one.md"),
    ("jq -r '.files | .[0]' names.json | xargs rm", "delete a.md"),
    ("""echo '{"f":"b.txt"}' | jq -r .f | xargs rm""", "delete b.txt"),
    ("jq -r '.one|keys[]' names.json | xargs touch", "write path"),
    ("echo 'rm b.txt' | shuf | sh", "delete b.txt"),
    ("echo 'rm b.txt' | nl | cut -f2 | sh", "delete b.txt"),
    ("echo 'rm b.txt' | fold -w 80 | expand | sh", "delete b.txt"),
    ("yes b.txt | head -1 | xargs rm", "delete b.txt"),
    ("printf 'a.md\\nb.txt\\n' | head -n 1 | xargs rm", "delete a.md"),
    ("printf 'a.md\\nb.txt\\n' | tail -n +2 | xargs rm", "delete b.txt"),
    ("rm $(expr b.txt.old : '\\(.*\\).old')", "delete b.txt"),
    ("X=b.txt; export X; rm $(printenv X)", "delete b.txt"),
    ("touch report-$(date +%F).txt", "write report-?.txt"),
    ("rm $(printf '%b' '\\0142.txt')", "delete b.txt"),
    ('rm $(printf "\\\\$(printf %o 98).txt")', "delete b.txt"),
    ("rm $(printf '%*s' 5 b.txt)", "delete b.txt"),
    ("git grep -n TODO | cut -d: -f1 | sort -u | xargs rm", "delete a.md, delete docs/one.md"),
    ("git grep -l TODO HEAD | cut -d: -f2 | xargs rm", "delete a.md, delete docs/one.md"),
    ("git status -s | cut -c4- | xargs rm", "delete b.txt"),
    ("git ls-tree -r HEAD docs | cut -f2 | xargs rm", "delete docs/one.md, delete docs/two.md"),
    ("git ls-files -s a.md | cut -f2 | xargs rm", "delete a.md"),
    ("git show --name-only --pretty= | xargs rm", "delete docs/two.md"),
    ("git whatchanged -1 --name-only --pretty= | xargs rm", "delete docs/two.md"),
    ("git diff --stat HEAD~1 HEAD | grep md | cut -d'|' -f1 | xargs rm", "delete docs/two.md"),
    ("git branch old HEAD~1; git checkout -q old", "write docs/two.md"),
    ("git branch old HEAD~1; git switch -q old", "write docs/two.md"),
    ("git branch old HEAD~1; git reset -q --hard old", "write docs/two.md, write b.txt"),
    ("git tag old HEAD~1; git checkout -q old", "write docs/two.md"),
    ("git update-ref refs/heads/old HEAD~1; git checkout -q old", "write docs/two.md"),
    ("git fetch -q . HEAD~1:old; git checkout -q old", "write docs/two.md"),
    ("git branch fix && git checkout fix", ""),
    ("git branch fix && git switch fix && git checkout -b other", ""),
    ("git tag v1 && git push --tags", ""),
    ("git branch -d old; git branch --list; git branch -vv", ""),
    ("git stash list; git tag -l; git branch --show-current", ""),
    ("git -c core.editor='rm a.md;true' config -e", "delete a.md"),
    ("git -c core.editor='rm a.md;true' branch --edit-description", "delete a.md"),
    ("git -c core.editor='rm a.md;true' tag -a v1", "delete a.md"),
    ("git -c core.editor='rm a.md;true' branch x", ""),
    ("git grep --open-files-in-pager='rm -f' TODO", "delete a.md, delete docs/one.md"),
    ("git grep -Orm TODO -- docs", "delete docs/one.md"),
    ("git grep TODO", ""),
    ("GIT_INDEX_FILE=docs/idx git add .", "write docs/idx"),
    ("GIT_INDEX_FILE=docs/idx git status", ""),
    ("git diagnose -o docs", "write docs"),
    ("git-checkout HEAD~1 -- docs", "write docs/two.md"),
    ("/nowhere/git-checkout HEAD~1 -- docs", "write docs/two.md"),
    ("git-status && git-log", ""),
]


@pytest.mark.parametrize(("command", "expected"), PIPELINES, ids=[command for command, _ in PIPELINES])
def test_what_a_pipeline_changes(project: Path, command: str, expected: str) -> None:
    assert changes(command, project) == {part for part in expected.split(", ") if part}


TEXT = "./docs/one.md:3:TODO a\nREADME.md:10:TODO b c\n\nx 2 3 b.txt\nx 2 3 b.txt\n"

#: Compared with what the programs really print.
FILTERS = [
    *("head -n 2", "head -1", "head -n -1", "head -c 3", "head -n 0", "tail -1", "tail -n +2", "tail -c 3"),
    *("tail -n 0", "sort", "sort -r", "sort -u", "sort -n", "sort -k2 -n", "sort -t: -k2", "uniq", "uniq -c"),
    *("uniq -d", "cut -d: -f1", "cut -d: -f2-", "cut -c1-3", "cut -c3-", "cut -f2", "cut -sd: -f1,3"),
    *("cut --complement -d: -f1", "rev", "tac", "tr a b", "tr -d 'a\\n'", "tr -s b", "tr a-z A-Z"),
    *("tr '[:lower:]' '[:upper:]'", "tr -cd 'a-c\\n'", "tr -s '\\n' ' '", "tr '\\n' '\\0'", "paste -sd,"),
    *("paste - -", "paste -d: - -", "nl", "nl -ba", "fold -w 7", "date +x%%y", "expr 3 + 4", "expr 7 / -2"),
    *("expr substr abcdef 2 3", "echo -e 'a\\0163b'", "echo -e 'a\\cb'", "echo -ne 'x\\x41\\n'", "echo -E 'a\\n'"),
    *("printf '%o %x %X' 115 255 255", "printf '%*s|' 5 ab", "printf '%-5s|' ab", "printf '%03d' 7"),
    *("printf '%s\\n' a b", "printf '%b' 'a\\cb' c", "printf '%5.1s|' abc", "printf '%i\\n' 0x1f"),
]


@pytest.mark.parametrize("command", FILTERS)
def test_a_text_program_prints_what_it_prints(command: str) -> None:
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
    real = subprocess.run(["bash", "-c", command], input=TEXT, capture_output=True, text=True, env=environment)
    assert printed(shlex.split(command), TEXT) == real.stdout


AWKS = [
    *("{print $1}", "-F: {print $1}", '-F: {print "rm " $1}', "{print $NF}", "/TODO/{print $2}", "!/TODO/", "NR>1"),
    *("NR==2{print;exit}", "END{print NR}", 'BEGIN{FS=":"}{print $1}', 'BEGIN{OFS=","}{$1=$1; print}'),
    *("!seen[$0]++", '{print $2"/"$3}', "NF>2{print $(NF-1)}", '$1=="x"{print $4}', "$1 ~ /^x/ {print $4}"),
    *('{gsub(/o/,"0"); print}', '{sub(/:.*/,""); print}', '{printf "%s\\n", $1}', "{print substr($1,2,3)}"),
    *('{if($2>1) print $4; else print "no"}', "NR%2==0", '{print "a" > "/dev/null"; print "b"}', "-F[:/] {print $2}"),
]


@pytest.mark.parametrize("command", AWKS)
def test_awk_prints_what_it_prints(command: str) -> None:
    option, _, code = command.partition(" ") if command[:1] == "-" else ("", "", command)
    options = [option] if option else []
    real = subprocess.run([shutil.which("awk") or "awk", *options, code], input=TEXT, capture_output=True, text=True)
    assert awk_prints(code, options, TEXT) == real.stdout


SEDS = [
    *("s/a/b/", "s/:.*//", r"s|^\./||", "s/^..//", "-n 2p", "-n /TODO/p", 's/.*/rm "&"/', "1d", "$d", "/^$/d"),
    *(r"s/\(.*\):\(.*\):\(.*\)/\2 \1/", r"-E s/(.*):([0-9]+):(.*)/\1/", "2,3d", "-n 2,$p", "s/o/0/g;s/x/y/", "2q"),
    *("y/abc/xyz/", "/TODO/!d", "1a foo", "s#/#_#g", "-n s/TODO/X/p", "s/[^/]*$//", "/TODO/{s/a/b/;p}"),
    *("/README/,/x/d", "s/todo/x/I", "s/ \\+/,/g", "s/^/- /", "s/[[:space:]]/_/g"),
]


@pytest.mark.parametrize("command", SEDS)
def test_sed_prints_what_it_prints(command: str) -> None:
    option, _, script = command.partition(" ") if command[:1] == "-" else ("", "", command)
    options = [option] if option else []
    real = subprocess.run(["sed", *options, script], input=TEXT, capture_output=True, text=True)
    assert sed_prints(script, options, TEXT) == real.stdout


@pytest.mark.parametrize("script", ["s/a/b/w x", "1e rm", "w f", "r f", "s/a/b/e", "N;P", "s/(/x", "s/a/\\U&/"])
def test_a_sed_script_that_does_more_is_not_foretold(script: str) -> None:
    assert sed_prints(script, [], TEXT) is None


@pytest.mark.parametrize("code", ['{system("rm x")}', '"ls" | getline', "{while(1) print}", "{print $1", "f(x)"])
def test_an_awk_program_that_does_more_is_not_foretold(code: str) -> None:
    assert awk_prints(code, [], TEXT) is None


def test_what_is_unknown_in_a_line_stays_so_and_what_is_known_too() -> None:
    line = f"{UNKNOWN} {UNKNOWN} name\n"
    assert awk_prints("{print $3}", [], line) == "name\n"
    assert awk_prints("{print $1}", [], line) == f"{UNKNOWN}\n"
    assert awk_prints("{print $7}", [], line) == f"{UNKNOWN}\n"
    assert awk_prints("/x/", [], line) == line
    assert printed(["cut", "-d", " ", "-f3"], line) == "name\n"
    assert printed(["cut", "-c4-"], line) == f"{UNKNOWN}\n"
    assert printed(["head", "-1"], line + "a\n") == line + "a\n"
    assert sed_prints("/x/d", [], line) == line
