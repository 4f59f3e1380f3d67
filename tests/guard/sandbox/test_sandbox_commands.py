"""Everyday commands: each is run inside the sandbox and outside, and ends in the same way, with the same output."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.sandbox_inside import Guarded, as_user, guarded_project
from tests.helpers.sandbox_inside import guarded as guarded

_C = "printf '#include <stdio.h>\\nint main(void) { puts(\"ran\"); return 3; }\\n' > m.c"
_WHEEL = """$PY -c '
import zipfile
with zipfile.ZipFile("tiny-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "print(41)")
    wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
    wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.dist-info/RECORD", "")
'"""
_SERVER = """$PY -u -m http.server --bind 127.0.0.1 0 > log 2>&1 & server=$!
until port=$(grep -o 'port [0-9]*' log); do kill -0 $server || exit; done; port=${port#port }"""

#: program -> a script that uses it; several of one program are told apart behind a space
COMMANDS = {
    # build tools and compilers
    "make": "printf 'all: out\\nout:\\n\\techo built > out\\n' > b.mk && make -f b.mk && cat out",
    "gcc": f"{_C}; gcc -o m m.c && ./m",
    "g++": "printf '#include <iostream>\\nint main() { std::cout << 1; }' > m.cc && g++ -o m m.cc && ./m",
    "clang": f"{_C}; clang -o m m.c && ./m",
    "cmake": f"{_C}; printf 'project(m C)\\nadd_executable(m m.c)\\n' > CMakeLists.txt"
    " && cmake -S . -B build > log 2>&1 && cmake --build build >> log 2>&1 && build/m",
    "ninja": "printf 'rule cp\\n  command = cp $in $out\\nbuild o: cp src/app.py\\n' > build.ninja && ninja && cat o",
    "rustc": "echo 'fn main() { println!(\"ran\") }' > m.rs && rustc m.rs && ./m",
    "cargo": "cargo init -q --vcs none --name m crate && cd crate && cargo build -q --offline && target/debug/m",
    "go": "mkdir g && cd g && go mod init m && echo 'package main; func main() { println(1) }' > m.go && go run .",
    "javac": "echo 'class M { public static void main(String[] a) { System.out.println(1); } }' > M.java"
    " && javac M.java && java M",
    "mvn": "mvn -o -q -B help:nothing > log 2>&1; echo $?",
    # package managers and test runners
    "npm": "mkdir p && cd p && npm init -y > log && npm pack --silent && ls",
    "npm scripts": 'echo \'{"scripts": {"clean": "rm -rf build && echo cleaned"}}\' > package.json && npm run -s clean',
    "npm install": 'mkdir d && echo \'{"name": "d", "version": "1.0.0"}\' > d/package.json'
    " && echo '{}' > package.json && npm install --offline --silent --no-audit ./d && ls -A node_modules",
    "node": 'node -e \'console.log(require("fs").readdirSync("specs"))\'',
    "node tests": 'echo \'require("node:test")("t", () => {})\' > t.test.js && node --test t.test.js > log && echo $?',
    "node file watcher": 'node -e \'const fs = require("fs"); const w = fs.watch("src", (e, f) => { console.log(f);'
    ' w.close() }); setImmediate(() => fs.writeFileSync("src/new", ""))\'',
    "node workers": 'node -e \'const w = require("worker_threads"); w.isMainThread && 1;'
    ' new w.Worker("console.log(7)", {eval: true})\'',
    "python3": "$PY -c 'import multiprocessing as m; print(m.get_context(\"fork\").Pool(2).map(abs, [-1, 2]))'",
    "python3 tests": "echo 'import unittest\nclass T(unittest.TestCase):\n    def test(self): pass' > test_t.py"
    " && $PY -m unittest -q test_t 2> log; echo $?",
    "pip": f"{_WHEEL}; $PY -m venv --without-pip v && $PY -m pip install -q --no-index --disable-pip-version-check"
    " --target v/lib tiny-1-py3-none-any.whl 2> log && PYTHONPATH=v/lib $PY -c 'import tiny'",
    "uv": "uv venv -q --offline v && v/bin/python -c 'print(1)'",
    "ruby": 'ruby -e \'require "fileutils"; FileUtils.mkdir_p("r"); puts Dir["*"].sort\'',
    "perl": 'perl -MFile::Temp=tempfile -e \'my ($f) = tempfile(); print $f "x"; print -s $f, "\\n"\'',
    "php": 'php -r \'file_put_contents("x", 1); echo filesize("x");\'',
    # version control
    "git push": "git init -q --bare ../r && git push -q ../r HEAD:refs/heads/main && git ls-remote ../r | wc -l",
    "git rebase": "git switch -qc b && echo 1 > f && git add f && git commit -qm f && git rebase -q HEAD~1 && cat f",
    "git submodule": "git init -q ../s && git -C ../s commit -q --allow-empty -m s && git -c protocol.file.allow=always"
    " submodule --quiet add ../s sub && ls -A sub",
    "git hooks": "printf '#!/bin/sh\\necho hook\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit"
    " && git commit -q --allow-empty -m x 2>&1",
    # files, text, data
    "rsync": "mkdir t && rsync -a --delete src/ t/ && ls t",
    "tar": "tar czf a.tgz specs src && mkdir t && tar xzf a.tgz -C t && find t | sort",
    "zip": "zip -qr a.zip specs && unzip -q a.zip -d t && find t | sort",
    "jq": "echo '{\"a\": [1, 2]}' | jq -c .a",
    "rg": "rg -l spec specs | sort",
    "find": "find . -path ./.git -prune -o -name '*.md' -print0 | sort -z | xargs -0 wc -l",
    "sed": "cp AGENTS.md a && sed -i s/rules/x/ a && cat a",
    "awk": "awk '{ print FILENAME, $1 }' specs/a.md > o && cat o",
    "patch": "cp AGENTS.md a && printf -- '--- a\\n+++ a\\n@@ -1 +1 @@\\n-rules\\n+more\\n' | patch -s a && cat a",
    "sqlite3": "sqlite3 x.db 'pragma journal_mode = wal; create table t (a); insert into t values (1)' && ls",
    "openssl": "openssl rand -out key 16 && openssl dgst -sha256 < AGENTS.md",
    "gpg": "mkdir -m 700 g && echo x | gpg --homedir g --batch -q --passphrase y -c > x.gpg; echo $?;"
    " gpgconf --homedir g --kill all",
    # network, containers
    "curl": f"{_SERVER}; curl -s http://127.0.0.1:$port/AGENTS.md; kill $server",
    "wget": f"{_SERVER}; wget -qO- http://127.0.0.1:$port/AGENTS.md; kill $server",
    "docker": "docker --version; docker -H unix:///nonexistent ps > log 2>&1; echo $?",
    "psql": "psql --version; psql -h $P -c x > log 2>&1; echo $?",
    # terminals, editors, language servers, debuggers, watchers
    "tmux": "t='tmux -S s -f /dev/null'; $t new -d \"echo in tmux > o; $t wait -S d; sleep 60\" && $t wait d && cat o"
    "; $t kill-server",
    "screen": "SCREENDIR=$P/s screen -D -m -c /dev/null sh -c 'echo in screen > o' && cat o",
    "script": "script -qec 'stty size; echo x' /dev/null < /dev/null",
    "vim": "vim -es -u NONE -c 's/print/x/' -c wq src/app.py; cat src/app.py",
    "emacs": "emacs -Q --batch src/app.py --eval '(progn (insert \"x\") (save-buffer))' && cat src/app.py",
    "nano": "nano --version | head -1",
    "gdb": f"{_C}; gcc -g -o m m.c && gdb -nx -batch -ex 'b main' -ex run -ex bt -ex kill m 2>&1 | grep -c 'main ()'",
    "gdb of a process": "sleep 60 & gdb -nx -batch -p $! -ex 'info proc' > log 2>&1; kill $!; grep -c ^exe log",
    "strace": f"{_C}; gcc -o m m.c && strace -f -o t ./m; grep -c write t",
    "lldb": "lldb --version",
    "inotifywait": "inotifywait -q -t 20 -e create --format %f src > o & until grep -qs inotify /proc/$!/fdinfo/*"
    "; do :; done; touch src/n; wait; cat o",
    "clangd": f"{_C}; clangd --check=m.c > log 2>&1; echo $?",
    "gopls": "gopls version",
    "rust-analyzer": "rust-analyzer --version",
    "pyright": "pyright --version",
    "typescript-language-server": "typescript-language-server --version",
    # processes and limits
    "flock": "flock lock sh -c 'flock -n lock echo twice || echo locked'",
    "timeout": "timeout 0.1 sleep 60; echo $?",
    "nice": "nice -n 5 nice",
    "setsid": "setsid -w sh -c 'echo $(($$ == $(ps -o sid= $$)))'",
    "at": "at -V 2>&1 | head -1",
    "crontab": "crontab -l > log 2>&1; echo $?",
}


def _program(name: str) -> str:
    return name.split()[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_everyday_command_ends_inside_as_it_does_outside(guarded: Guarded, name: str) -> None:
    """Its exit code, and what it prints."""
    there = guarded.outside(f"command -v {_program(name)} && {_program(name)} --version < /dev/null")
    if not there.stdout or there.returncode == 126:
        pytest.skip(f"{_program(name)} is not on this machine")
    before = guarded.protected()
    inside = guarded.inside(COMMANDS[name])
    assert guarded.protected() == before
    with guarded_project(guarded.user) as another:
        outside = another.outside(COMMANDS[name])
        paths = (str(another.root), str(guarded.root))
    assert (inside.returncode, inside.stdout) == (outside.returncode, outside.stdout.replace(*paths)), (
        f"inside: {inside.stderr[-500:]}\noutside: {outside.stderr[-500:]}"
    )


# -- ssh --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ssh_server(guarded: Guarded) -> Iterator[list[str]]:
    """A server of this user on the loopback; yields the words of a client that may log in."""
    server = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
    if server is None or shutil.which("ssh") is None:
        pytest.skip("ssh or sshd is not on this machine")
    if not guarded.user and not os.path.isdir("/run/sshd"):
        pytest.skip("sshd of root needs /run/sshd")
    try:
        name = pwd.getpwuid(guarded.user).pw_name
    except KeyError:
        pytest.skip("ssh needs a user with a name")
    folder = guarded.home / "ssh"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir(mode=0o700)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    settings = {"ListenAddress": f"127.0.0.1:{port}", "HostKey": folder / "host", "PidFile": "none", "UsePAM": "no"}
    settings |= {"AuthorizedKeysFile": folder / "authorized", "StrictModes": "no", "LogLevel": "ERROR"}
    (folder / "config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    guarded.own()
    words = [*as_user(guarded.user), server, "-D", "-e", "-f", str(folder / "config")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, cwd="/", env=guarded.variables)
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as there:
                there.recv(4)
                break
        else:
            pytest.skip(f"sshd does not run here: {process.stderr.read().decode()}")  # type: ignore[union-attr]
        known = ["-o", f"UserKnownHostsFile={folder}/known", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"]
        yield ["ssh", "-p", str(port), "-i", str(folder / "user"), *known, "-l", name]
    finally:
        process.kill()
        process.communicate()


def test_ssh_and_git_over_ssh_work_inside(guarded: Guarded) -> None:
    """A push over ssh, by a client that reads the system's settings."""
    with _ssh_server(guarded) as client:
        words = " ".join(client)
        if guarded.outside(f"{words} 127.0.0.1 true").returncode:
            pytest.skip("nobody can log in by ssh here")
        done = guarded.inside(f"{words} 127.0.0.1 echo hello")
        assert (done.stdout, done.returncode) == ("hello\n", 0), done
        script = f"""git init -q --bare ~/r.git && export GIT_SSH_COMMAND="{words}" &&
            git push -q 127.0.0.1:{guarded.home}/r.git HEAD:refs/heads/main && git -C ~/r.git rev-parse main"""
        done = guarded.inside(script)
        assert done.stdout == guarded.outside("git rev-parse HEAD").stdout, done


@pytest.mark.root
@pytest.mark.parametrize("means", ["namespaces", "bubblewrap"])
def test_ssh_settings_of_the_system_are_accepted_inside(means: str) -> None:
    """Files of root in /etc/ssh/ssh_config.d, one of which includes another: some distributions ship them."""
    if shutil.which("ssh") is None or not os.path.isdir("/etc/ssh/ssh_config.d"):
        pytest.skip("no ssh with /etc/ssh/ssh_config.d on this machine")
    from tests.helpers.sandbox_inside import OTHER_USER, python_of_all, require_sandbox

    require_sandbox()
    if not python_of_all():
        pytest.skip("no Python that another user may run")
    with guarded_project(OTHER_USER) as project:
        Path(project.home, "included").write_text("Port 4242\n")
        os.chown(project.home / "included", 0, 0)
        words = " ".join(f"'{word}'" for word in project.words("ssh", "-G", "example.invalid"))
        script = f"""mount -t tmpfs none /etc/ssh/ssh_config.d && cd /etc/ssh/ssh_config.d &&
            echo 'Include {project.home}/included' > 50-system.conf && echo 'User somebody' > 60-more.conf &&
            chmod 644 * {project.home}/included && cd {project.root} && {words}"""
        if means == "bubblewrap" and project.outside("bwrap --dev-bind / / true").returncode:
            pytest.skip("bubblewrap does not run here")
        done = project.run(["unshare", "-m", "env", f"MEANS={means}", "sh", "-c", script])
    assert {"port 4242", "user somebody"} <= set(done.stdout.splitlines()), done
