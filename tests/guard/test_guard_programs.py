"""What the guard knows of programs that find, pack, copy and rewrite: against tables, and against the programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from fusewire.guard.effects import READ
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN
from tests.helpers.project import effects_of

FILES = {
    "a.md": "alpha\nTODO one\n",
    "b.txt": "beta\n",
    "list.txt": "a.md\nb.txt\n",
    "empty.log": "",
    "two words.md": "two\n",
    "src/app.py": "print(1)\n",
    "src/old.pyc": "x\n",
    "src/deep/c.md": "TODO gamma\n",
    "src/deep/lib.js": "let x\n",
    "node_modules/m/i.js": "let y\n",
    ".hidden/h.md": "TODO hidden\n",
    "docs/one.md": "# One\n",
    "docs/two.md": "# Two\n",
    "cmds.sh": "rm a.md\n",
    "fix.diff": "--- a/docs/one.md\n+++ b/docs/one.md\n@@ -1 +1 @@\n-# One\n+# 1\n",
    "gone.diff": "--- a/docs/two.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Two\n",
    "new.diff": "--- /dev/null\n+++ b/docs/three.md\n@@ -0,0 +1 @@\n+# Three\n",
    "plain.diff": "--- b.txt\t2020-01-01 00:00:00\n+++ b.txt\t2020-01-02 00:00:00\n@@ -1 +1 @@\n-beta\n+b\n",
    "curl.cfg": "url = file:///etc/hostname\noutput = b.txt\n",
}
MADE = """
mkdir -p empty pack/docs && cp docs/one.md pack/docs/ && echo new > pack/fresh.md && ln -s docs alias
tar cf p.tar -C pack docs/one.md fresh.md && tar czf p.tgz -C pack docs fresh.md && rm -r pack
gzip -k b.txt && mv b.txt.gz z.txt.gz
touch -d 2020-01-01 a.md docs/one.md
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs") / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["bash", "-ec", MADE], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    with zipfile.ZipFile(folder / "d.zip", "w") as archive:
        archive.write(folder / "docs/one.md", "one.md")
        archive.write(folder / "docs/two.md", "two.md")
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.write(folder / "docs/one.md", "docs/one.md")
    return folder


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "project", symlinks=True)


def changes(command: str, folder: Path) -> set[str]:
    """`write a.md`, `delete docs`, with `?` for what is unknown and `/` behind what is meant with all below."""
    found = set()
    for effect in effects_of(command, folder).found:
        if effect.kind != READ:
            path = effect.path.replace(UNKNOWN, "?")
            path = path if path[0] == "?" else os.path.relpath(os.path.normpath(path), folder)
            found.add(f"{effect.kind} {path}{'/' if effect.recursive else ''}")
    return found


# (command, what it changes, separated by commas)
SEARCH = [
    ("find . -name '*.pyc' -delete", "delete src/old.pyc"),
    ("find . -name '*.md' -not -path './.hidden/*' -maxdepth 1 -delete", "delete a.md, delete two words.md"),
    ("find docs -delete", "delete docs, delete docs/one.md, delete docs/two.md"),
    ("find docs -name 'doc*' -delete", ""),
    ("find docs/ -type f -delete", "delete docs/one.md, delete docs/two.md"),
    ("find alias -name '*.md' -delete", ""),
    ("find alias/ -name '*.md' -delete", "delete alias/one.md, delete alias/two.md"),
    ("find -L alias -name 'o*' -delete", "delete alias/one.md"),
    ("find -H alias -name 'o*' -delete", "delete alias/one.md"),
    ("find . -type l -delete", "delete alias"),
    ("find . -type d -empty -delete", "delete empty"),
    ("find . -type f -empty -delete", "delete empty.log"),
    ("find . -path ./src -prune -o -name '*.py' -exec rm {} +", ""),
    ("find . -path './src/*' -name '*.py' -exec rm {} +", "delete src/app.py"),
    ("find src \\( -name '*.py' -o -name '*.pyc' \\) -exec rm {} \\;", "delete src/app.py, delete src/old.pyc"),
    ("find src -type f ! -name '*.py' ! -name '*.js' ! -name '*.md' -delete", "delete src/old.pyc"),
    ("find docs -name one.md -execdir rm {} \\;", "delete docs/one.md"),
    ("find docs -name one.md -exec sh -c 'rm \"$1\"' _ {} \\;", "delete docs/one.md"),
    ("find docs -name one.md -exec mv {} {}.bak \\;", "move docs/one.md/, write docs/one.md.bak"),
    ("find docs -name one.md -exec grep -l x {} +", ""),
    ("find docs -name one.md -fprint found.txt", "write found.txt"),
    ("find . -maxdepth 1 -type f -newer a.md -name b.txt -delete", "delete b.txt"),
    ("find . -maxdepth 1 -newer b.txt -name a.md -delete", ""),
    ("find . -name a.md -mtime +300 -delete", "delete a.md"),
    ("find . -name a.md ! -mtime +300 -delete", ""),
    ("find . -iname A.MD -delete", "delete a.md"),
    ("find . -regex '.*/one\\.md' -delete", "delete docs/one.md"),
    ("find . -regextype posix-extended -regex '.*/(one|two)\\.md' -delete", "delete docs/one.md, delete docs/two.md"),
    ("find nothing -delete", ""),
    ("find . -name a.md", ""),
    # GNU's find refuses this; others do it, and do not prune
    ("find . -name src -prune -o -name '*.js' -delete", "delete src/deep/lib.js, delete node_modules/m/i.js"),
    ("find . -false -delete", ""),
    ("find docs -name one.md -quit -o -name two.md -delete", "delete docs/two.md"),
    ("find docs -type f | xargs rm", "delete docs/one.md, delete docs/two.md"),
    ("find docs -type f -print0 | xargs -0 rm", "delete docs/one.md, delete docs/two.md"),
    ("find docs -mindepth 1 -maxdepth 1 -name 't*' | xargs -I{} rm {}", "delete docs/two.md"),
    ("find . -maxdepth 1 -name 'two*' -print0 | xargs -0 rm", "delete two words.md"),
    ("ls docs | grep -v two | xargs touch", "write one.md"),
    ("ls docs | grep -E '^(one|three)' | xargs touch", "write one.md"),
    ("ls docs | grep -iF ONE | xargs touch", "write one.md"),
    ("ls docs | grep -q one", ""),
    ("echo a.md b.txt | xargs rm", "delete a.md, delete b.txt"),
    ("echo 'two\\ words.md' | xargs rm", "delete two words.md"),
    ("echo '\"two words.md\"' | xargs rm", "delete two words.md"),
    ("echo a.md b.txt | xargs -n1 rm", "delete a.md, delete b.txt"),
    ("xargs -a list.txt rm", "delete a.md, delete b.txt"),
    ("xargs rm < list.txt", "delete a.md, delete b.txt"),
    ("xargs --arg-file=list.txt --max-args=1 rm", "delete a.md, delete b.txt"),
    ("printf 'a.md,b.txt' | xargs -d, rm", "delete a.md, delete b.txt"),
    ("echo md | xargs -I% sh -c 'rm a.%'", "delete a.md"),
    ("echo a.md | xargs -i rm {}", "delete a.md"),
    ("xargs -a /dev/null rm a.md", "delete a.md"),
    ("xargs -r -a /dev/null rm a.md", ""),
    ("curl -s http://x | xargs rm", "delete ?"),
    ("echo a.md | xargs", ""),
]
ARCHIVES = [
    ("tar xf p.tar", "write docs/one.md, write fresh.md"),
    ("tar -xvf p.tar -C empty", "write empty/docs/one.md, write empty/fresh.md"),
    ("tar xzf p.tgz", "write docs/one.md, write fresh.md"),
    ("tar --extract --file=p.tgz --directory empty fresh.md", "write empty/fresh.md"),
    ("tar --ext -f p.tar docs", "write docs/one.md"),
    ("tar xf p.tar --strip-components=1", "write one.md"),
    ("tar xkf p.tar", "write fresh.md"),
    ("tar xf p.tar --skip-old-files", "write fresh.md"),
    ("tar xf p.tar --exclude='*.md'", ""),
    ("tar xf p.tar --wildcards 'docs/*'", "write docs/one.md"),
    ("tar xf p.tar --one-top-level", "write p/docs/one.md, write p/fresh.md"),
    ("tar xOf p.tar", ""),
    ("tar tf p.tar", ""),
    ("tar xf p.tar --transform 's/\\(a\\)/b/'", "write ?/"),
    ("cat p.tar | tar xf - -C docs", "write docs/?/"),
    ("tar xf p.tar --to-command='rm a.md'", "delete a.md"),
    ("tar cf o.tar docs --checkpoint=1 --checkpoint-action=exec='rm a.md'", "write o.tar, delete a.md"),
    ("tar czf o.tgz docs", "write o.tgz"),
    ("tar cf o.tar --remove-files docs", "write o.tar, delete docs/"),
    ("tar cf - docs | gzip > o.tgz", "write o.tgz"),
    ("tar xf nothing.tar", ""),
    ("unzip -qo d.zip", "write one.md, write two.md"),
    ("unzip -q d.zip -d docs one.md", "write docs/one.md"),
    ("unzip -o d.zip -x 'two*'", "write one.md"),
    ("unzip -n all.zip", ""),
    ("unzip -jo all.zip", "write one.md"),
    ("unzip -l d.zip", ""),
    ("zip -qr o.zip docs", "write o.zip"),
    ("zip -qm o a.md", "write o.zip, delete a.md"),
    ("zip -d d.zip one.md", "write d.zip"),
    ("gzip a.md", "write a.md.gz, delete a.md"),
    ("gzip -k a.md", "write a.md.gz"),
    ("gzip -c a.md", ""),
    ("gzip -d z.txt.gz", "write z.txt, delete z.txt.gz"),
    ("gunzip z.txt.gz", "write z.txt, delete z.txt.gz"),
    ("gzip -t z.txt.gz", ""),
    ("gzip -r docs", "write docs/one.md.gz, write docs/two.md.gz, delete docs/one.md, delete docs/two.md"),
    ("zstd a.md", "write a.md.zst"),
    ("zstd --rm a.md", "write a.md.zst, delete a.md"),
    ("xz --keep a.md", "write a.md.xz"),
    ("bzip2 a.md", "write a.md.bz2, delete a.md"),
    ("rsync -a docs/ empty/", "write empty/one.md, write empty/two.md"),
    ("rsync -a docs empty", "write empty/docs/one.md, write empty/docs/two.md"),
    ("rsync docs empty", ""),
    ("rsync -an --delete docs/ src/", ""),
    ("rsync a.md b.txt", "write b.txt"),
    ("rsync -a --exclude two.md docs/ empty/", "write empty/one.md"),
    (
        "rsync -a --delete --exclude=deep docs/ src/",
        "write src/one.md, write src/two.md, delete src/app.py, delete src/old.pyc",
    ),
    ("rsync -a --existing docs/ src/", ""),
    ("rsync -a alias/ docs/", ""),
    ("rsync -a host:x/ docs", "write docs/?/"),
    ("rsync -a docs host:x", ""),
    (
        "rsync -a --remove-source-files docs/ empty",
        "write empty/one.md, write empty/two.md, delete docs/one.md, delete docs/two.md",
    ),
    ("patch -p1 < fix.diff", "write docs/one.md"),
    ("patch -p1 -i fix.diff", "write docs/one.md"),
    ("patch -p1 --dry-run < fix.diff", ""),
    ("patch < fix.diff", ""),
    ("patch -d docs < fix.diff", "write docs/one.md"),
    ("patch -p1 < gone.diff", "delete docs/two.md"),
    ("patch -p1 < new.diff", "write docs/three.md"),
    ("patch < plain.diff", "write b.txt"),
    ("patch b.txt plain.diff", "write b.txt"),
    ("patch -o o.txt b.txt plain.diff", "write o.txt"),
    ("curl -sSLo b.txt http://x/y", "write b.txt"),
    ("curl -s --output docs/one.md http://x/y", "write docs/one.md"),
    ("curl -s http://x", ""),
    ("wget -q -O b.txt http://x", "write b.txt"),
    ("wget -qO- http://x", ""),
    ("wget -nc http://x/a.md", ""),
    ("wget --spider http://x/a.md", ""),
    ("wget -o log.txt --spider http://x", "write log.txt"),
]
FORMATTERS = [
    ("prettier --write a.md", ""),
    ("prettier -w src", ""),
    ("prettier --write '**/*.js'", ""),
    ("prettier --check a.md", ""),
    ("prettier a.md", ""),
    ("black src", ""),
    ("black --check src", ""),
    ("isort src/app.py --diff", ""),
    ("yapf src/app.py", ""),
    ("ruff format", ""),
    ("ruff check .", ""),
    ("ruff check --fix src", ""),
    ("ruff format --check .", ""),
    ("eslint --fix src", ""),
    ("eslint src", ""),
    ("mdformat docs", ""),
    ("yq .a b.txt", ""),
    ("sd -p a b a.md", ""),
    ("biome check src", ""),
    ("gcc -O2 -Wall x.c -o b.txt", "write b.txt"),
    ("pandoc a.md -o b.txt", "write b.txt"),
    ("iconv -f latin1 -t utf8 a.md -o b.txt", "write b.txt"),
    ("iconv -f latin1 a.md", ""),
    ("openssl rand -out b.txt 12", "write b.txt"),
    ("watch -n 1 'rm a.md'", "delete a.md"),
    ("watch -n1 rm a.md", "delete a.md"),
    ("su -c 'rm a.md'", "delete a.md"),
    ("su - me -c 'rm a.md'", "delete a.md"),
    ("tmux ls", ""),
    ("screen -ls", ""),
]

TOOLS = [
    ("sqlite3 b.txt 'select 1'", ""),
    ("sqlite3 b.txt .schema", ""),
    ("sqlite3 b.txt 'pragma table_info(t)'", ""),
    ("sqlite3 -readonly b.txt 'delete from t'", ""),
    ("sqlite3 'file:b.txt?mode=ro' 'select 1'", ""),
    ("sqlite3 b.txt \"attach 'c.db' as y; select * from y.t\"", ""),
    ("gpg --batch --yes -o a.md --dearmor < b.txt", "write a.md"),
    ("gpg --verify a.sig a.md", ""),
    ("xxd a.md", ""),
    ("strace -c ls", ""),
    ("/usr/bin/time -f %e rm a.md", "delete a.md"),
    ("script -qc ls /dev/null", ""),
    ("flock a.md true", ""),
    ("flock 9", ""),
    ("gcc -MM src/x.c", ""),
    ("gcc -fsyntax-only src/x.c", ""),
    ("as -o x.o x.s", "write x.o"),
    ("ssh-keygen -l -f key", ""),
    ("ctags -x src/app.py", ""),
    ("utmpdump -o x /dev/null", "write x"),
    ("rename.ul -n one 1 docs/one.md", ""),
    ("cmake -E echo hi", ""),
    ("cmake --build build", ""),
    ("echo 'message(hi)' > x.cmake; cmake -P x.cmake", "write x.cmake"),
    ("gdb -batch -ex bt", ""),
    ("npm exec -c 'rm a.md'", "delete a.md"),
    ("npm exec -- rm a.md", "delete a.md"),
    ("npx --call='rm a.md'", "delete a.md"),
    ('echo \'{"scripts":{"x":"rm"}}\' > package.json; npm run x -- a.md', "write package.json, delete a.md"),
    ('echo \'{"scripts":{"pretest":"rm a.md"}}\' > package.json; npm t', "write package.json, delete a.md"),
    ('echo \'{"scripts":{"x":"rm a.md"}}\' > package.json; npm run y', "write package.json"),
    ('echo \'{"scripts":{"x":"rm a.md"}}\' > package.json; yarn x', "write package.json, delete a.md"),
    ("npm run build", ""),
    ("pip --log a.md list", "write a.md"),
    ("pip install x", ""),
    ("go build -o app ./...", "write app"),
    ("go test ./...", ""),
    ("tsc --noEmit", ""),
    ("docker ps", ""),
    ("history", ""),
    ("taskset -c 0 rm a.md", "delete a.md"),
    ("chrt -b 0 rm a.md", "delete a.md"),
    ("setarch x86_64 rm a.md", "delete a.md"),
    ("setarch -R rm a.md", "delete a.md"),
    ("unshare --wd=docs -m rm one.md", "delete docs/one.md"),
    ("ionice -c 3 rm a.md", "delete a.md"),
    ("env -iC docs rm one.md", "delete docs/one.md"),
    ("runuser -u root -- rm a.md", "delete a.md"),
]


@pytest.mark.parametrize(("command", "expected"), SEARCH + ARCHIVES + FORMATTERS + TOOLS)
def test_a_command_changes_what_the_table_says(command: str, expected: str, project: Path) -> None:
    assert changes(command, project) == {one for one in expected.split(", ") if one}


# What really happens in a throw-away folder must be exactly what is reported.
REAL = [
    "find . -name '*.pyc' -delete",
    "find docs -delete",
    "find . -name 'doc*' -delete",
    "find . -type d -empty -delete",
    "find . -empty -delete",
    "find alias -delete",
    "find alias/ -delete",
    "find -L alias -type f -delete",
    "find . -name '*.md' -prune -o -type f -name '*.js' -exec rm {} +",
    "find . -name node_modules -prune -o -name '*.js' -exec rm {} \\;",
    "find . -maxdepth 1 -name '*.md' ! -name 'two*' -delete",
    "find src -name '*.md' -execdir rm {} +",
    "find . -newer docs/two.md -name '*.zzz' -delete",
    "find . -mindepth 2 -name '*.md' -not -path '*/.hidden/*' -exec rm {} \\;",
    "find docs \\( -name one.md , -name two.md \\) -delete",
    "find . -maxdepth 1 -type f -name '[a-b]*' -exec rm -- {} +",
    "find . -name one.md -print -o -name two.md -delete",
    "find docs -name '*.md' -fprintf out.txt '%p'",
    "find docs -type f | grep -v one | xargs rm",
    "xargs -a list.txt -n1 rm",
    "xargs -L1 rm < list.txt",
    "printf '%s\\n' 'two words.md' | xargs -I{} rm {}",
    "printf '%s\\n' a.md | xargs -I{} sh -c 'rm {}; touch {}.x'",
    "tar xf p.tar",
    "tar xzf p.tgz -C empty --strip-components=1",
    "tar xf p.tar --skip-old-files",
    "tar -C empty -xf ../p.tar",
    "tar -C empty -xf p.tar fresh.md",
    "tar xf p.tar --exclude=docs",
    "tar xf p.tar --one-top-level=new",
    "tar cf o.tar docs --remove-files",
    "tar tf p.tar",
    "unzip -qo d.zip",
    "unzip -qn all.zip",
    "unzip -qo d.zip one.md -d docs",
    "unzip -q d.zip -x one.md",
    "zip -q o a.md",
    "zip -qrm o.zip docs",
    "patch -sp1 < fix.diff",
    "patch -sp1 -i gone.diff",
    "patch -sp1 < new.diff",
    "patch -s < plain.diff",
    "patch -s --dry-run -p1 < fix.diff",
    "patch -s < fix.diff",
    "patch -s -d docs -i ../fix.diff",
    "gzip a.md",
    "gzip -rk docs",
    "gunzip z.txt.gz",
    "gunzip -c z.txt.gz",
    "bzip2 -k b.txt",
    "xz b.txt",
    "zstd -q b.txt",
    "zstd -q --rm b.txt -o o.zst",
    'curl -s -o b.txt "file://$PWD/a.md"',
    'curl -s -o /dev/null "file://$PWD/a.md"',
]


def contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            if os.path.islink(path):
                known: object = os.readlink(path)
            elif os.path.isdir(path):
                known = "folder"
            else:
                known = (Path(path).read_bytes(), os.stat(path).st_ino, os.stat(path).st_ctime_ns)
            found[os.path.relpath(path, folder)] = known
    return found


def reported(command: str, folder: Path) -> set[str]:
    """The paths that would change, all below those that are meant with all below."""
    found = set()
    for effect in effects_of(command, folder).found:
        if effect.kind == READ:
            continue
        path = os.path.normpath(effect.path)
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        found.add(os.path.relpath(real, folder))
        if effect.recursive:
            inside = Path(real).rglob("*") if not os.path.islink(real) else []
            found |= {os.path.relpath(inner, folder) for inner in inside}
    return found


@pytest.mark.parametrize("command", REAL)
def test_a_command_does_what_is_reported(command: str, project: Path) -> None:
    programs = ("zip", "unzip", "patch", "gzip", "gunzip", "bzip2", "xz", "zstd", "curl", "ar", "tar", "find", "xargs")
    missing = [name for name in programs if f"{name} " in f"{command} " and not shutil.which(name)]
    if missing or ("zip" in command and not shutil.which("zip")):
        return  # what is reported is in the tables above; only the proof needs the program
    before = contents(project)
    said = reported(command, project)
    subprocess.run(
        ["bash", "-c", command], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, timeout=45, check=False
    )
    after = contents(project)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    made = {name for name in changed - said if after.get(name) == "folder" and name not in before}
    assert said == changed - {name for name in made if any(path.startswith(f"{name}/") for path in said)}


# -- smaller things ------------------------------------------------------------------------------------------------


def test_long_options_may_be_abbreviated() -> None:
    argv = Argv(["--fi", "a", "--ext"], "", "file= extract")
    assert (argv.value("file"), argv.has("extract"), argv.operands) == ("a", True, [])


def test_options_keep_their_order() -> None:
    words = ["-vC", "a", "x", "-fb", "--", "-y"]
    assert Argv(words, "Cf").given == [("v", ""), ("C", "a"), ("", "x"), ("f", "b"), ("", "-y")]


def test_an_archive_that_holds_too_much_is_not_unpacked(project: Path) -> None:
    script = "mkdir big && head -c 90000000 /dev/zero > big/x && echo y > big/y && tar czf big.tgz big && rm -r big"
    subprocess.run(["bash", "-ec", script], cwd=project, check=True)
    assert changes("tar xzf big.tgz", project) == {"write ?/"}


def test_a_broken_archive_is_unknown(project: Path) -> None:
    (project / "bad.tgz").write_bytes(b"\x1f\x8bnothing")
    assert changes("tar xzf bad.tgz -C docs", project) == {"write docs/?/"}


def test_more_matches_than_are_followed_end_in_an_unknown_one(project: Path) -> None:
    (project / "many").mkdir()
    for number in range(2005):
        (project / "many" / str(number)).touch()
    found = changes("find many -type f -exec rm {} \\;", project)
    assert len(found) == 2001
    assert "delete ?" in found


def test_a_file_that_the_line_writes_is_found(project: Path) -> None:
    assert "write docs/new.zz" in changes("echo x > new.zz; find . -name '*.zz' -exec cp {} docs \\;", project)
