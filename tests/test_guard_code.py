"""Code behind `-c` and `-e`: what it would do to files is found without running it, and nothing else is."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fusewire.guard.code import UNKNOWN, code_effects

U = UNKNOWN
HOME = "~HOME~"  # stands for the home folder of whoever runs the test

Effects = list[tuple[str, str]]
Case = tuple[str, list[str], Effects | None]

LANGUAGES = ["python", "perl", "ruby", "node", "php", "awk", "lua", "sed", "ed"]

CHANGING: dict[str, list[Case]] = {
    "python": [
        ("open('a','w').write('x')", [], [("write", "a")]),
        ("open('a', mode='a')", [], [("write", "a")]),
        ("open('a','r+')", [], [("write", "a")]),
        ("open(file='a', mode='x')", [], [("write", "a")]),
        ("import io; io.open('a','wb')", [], [("write", "a")]),
        ("with open('a') as f, open('b','w') as g: g.write(f.read())", [], [("read", "a"), ("write", "b")]),
        ("import json; json.dump({}, open('.claude/settings.json','w'))", [], [("write", ".claude/settings.json")]),
        (
            "import os; os.remove('a'); os.unlink('b'); os.rmdir('c')",
            [],
            [("delete", "a"), ("delete", "b"), ("delete", "c")],
        ),
        (
            "import os as o, shutil as s; o.rename('a','b'); s.rmtree('c')",
            [],
            [("move", "a"), ("write", "b"), ("delete_tree", "c")],
        ),
        ("from shutil import rmtree as r; r('specs')", [], [("delete_tree", "specs")]),
        ("from os import *; remove('a')", [], [("delete", "a")]),
        ("import os\nf = os.remove\nf('a')", [], [("delete", "a")]),
        ("import os; getattr(os, 'rem' + 'ove')('a')", [], [("delete", "a")]),
        ("__import__('os').remove('a')", [], [("delete", "a")]),
        ("import importlib; importlib.import_module('os').remove('a')", [], [("delete", "a")]),
        ("import os; vars(os)['remove']('a'); os.__dict__['unlink']('b')", [], [("delete", "a"), ("delete", "b")]),
        ("import sys; sys.modules['os'].remove('a')", [], [("delete", "a")]),
        ("__builtins__.open('a','w')", [], [("write", "a")]),
        ("import posix; posix.unlink('a')", [], [("delete", "a")]),
        ("import operator, os; operator.attrgetter('rem'+'ove')(os)('a')", [], [("delete", "a")]),
        ("import operator, pathlib; operator.methodcaller('unl'+'ink')(pathlib.Path('a'))", [], [("delete", "a")]),
        ("import ctypes; ctypes.CDLL(None).unlink(b'a')", [], [("delete", "a")]),
        ("import os; getattr(os, input())('a')", [], [("write", "a")]),
        ("\uff4f\uff50\uff45\uff4e('a','w')", [], [("write", "a")]),
        ("from pathlib import Path; Path('a').write_text('x')", [], [("write", "a")]),
        ("import pathlib; (pathlib.Path('a') / 'b').unlink()", [], [("delete", "a/b")]),
        ("from pathlib import Path\nPath('a').joinpath('b').with_suffix('.md').touch()", [], [("write", "a/b.md")]),
        (
            "from pathlib import Path; Path('x/a.md').with_name('b.md').rename('c')",
            [],
            [("move", "x/b.md"), ("write", "c")],
        ),
        ("from pathlib import Path; Path('a').open('w')", [], [("write", "a")]),
        ("from pathlib import Path; Path('a/b').parent.chmod(0)", [], [("mode", "a")]),
        ("from pathlib import Path; Path('new').symlink_to('old')", [], [("link", "old"), ("write", "new")]),
        ("from pathlib import Path; (Path.home() / 'x').unlink()", [], [("delete", HOME + "/x")]),
        ("from pathlib import Path; list(map(Path.unlink, Path('specs').iterdir()))", [], [("delete", "specs/" + U)]),
        (
            "from pathlib import Path\nfor p in Path('specs').rglob('*.md'): p.unlink()",
            [],
            [("delete", f"specs/{U}.md")],
        ),
        ("import glob, os\nfor p in glob.glob('specs/*.md'): os.remove(p)", [], [("delete", f"specs/{U}.md")]),
        (
            "import os\nfor n in os.listdir('specs'): os.remove(os.path.join('specs', n))",
            [],
            [("delete", "specs/" + U)],
        ),
        (
            "import os\nfor root, dirs, files in os.walk('specs'):\n  for f in files: os.remove(root + '/' + f)",
            [],
            [("delete", "specs/" + U), ("delete", f"specs/{U}/{U}")],
        ),
        ("import os; [os.remove(p) for p in ('a','b')]", [], [("delete", "a"), ("delete", "b")]),
        ("import os; list(map(os.remove, ['a','b']))", [], [("delete", "a"), ("delete", "b")]),
        ("import os\nfor a, b in [('x','y'),('u','v')]: os.remove(a + b)", [], [("delete", "xy"), ("delete", "uv")]),
        ("import os; d='specs'; n='a'; n += '.md'; os.remove(f'{d}/{n}')", [], [("delete", "specs/a.md")]),
        ("a, b = 'x', 'y'; open('%s/%s' % (a, b), 'w')", [], [("write", "x/y")]),
        ("open('{}/{n}'.format('x', n='y'), 'w')", [], [("write", "x/y")]),
        ("open('/'.join(['x','y']), 'w')", [], [("write", "x/y")]),
        ("if (p := 'a'): open(p, 'w')", [], [("write", "a")]),
        ("open('dm.STNEGA'[::-1], 'w')", [], [("write", "AGENTS.md")]),
        ("open(chr(97) + 'B'.lower() + ' c '.strip(), 'w')", [], [("write", "abc")]),
        ("import base64; open(base64.b64decode('QUdFTlRTLm1k').decode(), 'w')", [], [("write", "AGENTS.md")]),
        ("open(bytes.fromhex('61').decode(), 'w')", [], [("write", "a")]),
        ("import codecs; open(codecs.decode('NTRAGF.zq', 'rot13'), 'w')", [], [("write", "AGENTS.md")]),
        ("exec(\"import os; os.remove('a')\")", [], [("delete", "a")]),
        ("exec(compile('open(\"a\",\"w\")', 'x', 'exec'))", [], [("write", "a")]),
        ("eval(\"__import__('os').remove('a')\")", [], [("delete", "a")]),
        ("exec(input())", [], [("write", U)]),
        ("exec(open('x.py').read())", [], [("read", "x.py"), ("shell", "python3 x.py")]),
        ("import sys; open(sys.argv[1], 'w')", ["AGENTS.md"], [("write", "AGENTS.md")]),
        ("import sys, os\nfor p in sys.argv[1:]: os.remove(p)", ["a", "b"], [("delete", "a"), ("delete", "b")]),
        ("import sys; open(sys.stdin.read(), 'w')", [], [("write", U)]),
        ("import os; open(os.environ['X'] + '/a', 'w')", [], [("write", U + "/a")]),
        (
            "import os; open(os.path.expanduser('~/a'), 'w'); open('~/b', 'w')",
            [],
            [("write", HOME + "/a"), ("write", "~/b")],
        ),
        ("def f(p, mode='w'): open('specs/' + p, mode)\nf('a')", [], [("write", "specs/a")]),
        ("f = lambda p: __import__('os').remove(p); f('a')", [], [("delete", "a")]),
        ("import os\ndef rm(p):\n  for c in os.listdir(p): rm(p + '/' + c)\n  os.rmdir(p)\nrm('s')", [], None),
        (
            "class A:\n  def __init__(self, p): self.p = p\n  def go(self): open(self.p, 'w')\nA('a').go()",
            [],
            [("write", "a")],
        ),
        ("import functools, os; functools.partial(os.remove, 'a')()", [], [("delete", "a")]),
        ("import threading, os; threading.Thread(target=os.remove, args=('a',)).start()", [], [("delete", "a")]),
        ("import atexit, os; atexit.register(os.remove, 'a')", [], [("delete", "a")]),
        ("import sys\np = 'a' if sys.argv else 'b'\nopen(p, 'w')", [], [("write", "a"), ("write", "b")]),
        (
            "import os\nif os.path.exists('a'): p = 'a'\nelse: p = 'b'\nos.remove(p)",
            [],
            [("delete", "a"), ("delete", "b")],
        ),
        ("n = 0\nwhile n < 3:\n  open(f'o{n}', 'w'); n += 1", [], [("write", "o0"), ("write", "o1"), ("write", "o2")]),
        (
            "try: open('a')\nexcept OSError: open('b', 'w')\nfinally: open('c', 'a')",
            [],
            [("read", "a"), ("write", "b"), ("write", "c")],
        ),
        ("import os; os.open('a', os.O_WRONLY | os.O_CREAT)", [], [("write", "a")]),
        ("import os; os.truncate('a', 0); os.chmod('b', 0); os.link('c', 'd'); os.makedirs('e')", [], None),
        ("import shutil; shutil.copy('a.md', 'AGENTS.md')", [], [("read", "a.md"), ("write", "AGENTS.md")]),
        (
            "import shutil; shutil.move('a.json', '.claude')",
            [],
            [("move", "a.json"), ("write", ".claude"), ("write", ".claude/a.json")],
        ),
        ("import shutil; shutil.copytree('a', 'b')", [], [("read", "a"), ("write", "b"), ("write", "b/" + U)]),
        ("import shutil; shutil.unpack_archive('a.zip', 'b')", [], [("read", "a.zip"), ("write", "b/" + U)]),
        ("import zipfile; zipfile.ZipFile('a.zip').extractall('b')", [], [("read", "a.zip"), ("write", "b/" + U)]),
        ("import tarfile\nwith tarfile.open('a.tar') as t: t.extractall()", [], [("read", "a.tar"), ("write", U)]),
        ("import fileinput\nfor l in fileinput.input('a', inplace=True): print(l)", [], [("write", "a")]),
        ("import sqlite3; sqlite3.connect('a.db').execute('delete from x')", [], [("read", "a.db"), ("write", "a.db")]),
        ("import os; os.chdir('specs'); os.remove('a')", [], [("chdir", "specs"), ("delete", "a")]),
        ("import subprocess; subprocess.run(['rm', '-rf', 'a b'])", [], [("shell", "rm -rf 'a b'")]),
        ("import subprocess; subprocess.call('rm a', shell=True, cwd='specs')", [], [("shell", "cd specs && rm a")]),
        ("from subprocess import Popen as P; P('rm a'.split())", [], [("shell", "rm a")]),
        ("import subprocess; subprocess.run(['bash'], input='rm a')", [], [("shell", "bash"), ("shell", "rm a")]),
        ("import os; os.system('rm a'); os.popen('rm b')", [], [("shell", "rm a"), ("shell", "rm b")]),
        (
            "import os; os.execvp('rm', ['rm', 'a']); os.spawnlp(0, 'rm', 'rm', 'b')",
            [],
            [("shell", "rm a"), ("shell", "rm b")],
        ),
        ("import subprocess; subprocess.run(cmd)", [], [("shell", U)]),
        ('import timeit; timeit.timeit(\'open("a","w")\', number=9)', [], [("write", "a")]),
        ("  import os\n  os.remove('a')", [], [("delete", "a")]),
        ("def f(x=open('a', 'w')): pass", [], [("write", "a")]),
        ("class A:\n  def __str__(self): open('a', 'w')\nprint(A())", [], [("write", "a")]),
        ("type('X', (), {'__init__': lambda s: open('a', 'w')})()", [], [("write", "a")]),
    ],
    "perl": [
        ("open(my $f, '>', 'a'); print $f 1", [], [("write", "a")]),
        ("open F, '>>a'; print F 1", [], [("write", "a")]),
        ("open(F, '+<', 'a')", [], [("write", "a")]),
        ("unlink 'a', 'b'", [], [("delete", "a"), ("delete", "b")]),
        ("unlink('a') or die", [], [("delete", "a")]),
        ("unlink @ARGV", ["a", "b"], [("delete", "a"), ("delete", "b")]),
        ("unlink $ARGV[1]", ["a", "b"], [("delete", "b")]),
        ("unlink shift", ["a"], [("delete", "a")]),
        ("unlink glob('specs/*.md')", [], [("delete", f"specs/{U}.md")]),
        ("unlink <specs/*>", [], [("delete", "specs/" + U)]),
        ("unlink for qw(a b)", [], [("delete", "a"), ("delete", "b")]),
        ("unlink $_ for glob 'specs/*'", [], [("delete", "specs/" + U)]),
        (
            "my $d = 'specs'; foreach my $f ('a', 'b') { unlink \"$d/$f\" }",
            [],
            [("delete", "specs/a"), ("delete", "specs/b")],
        ),
        ("my ($a, $b) = ('x', 'y'); rename $a, $b", [], [("move", "x"), ("write", "y")]),
        ("my $p = 'a' . '/' . 'b'; unlink $p", [], [("delete", "a/b")]),
        ("rename 'a', 'b'", [], [("move", "a"), ("write", "b")]),
        ("rmdir 'a'; mkdir 'b'; truncate 'c', 0", [], [("delete", "a"), ("write", "b"), ("write", "c")]),
        ("chmod 0644, 'a', 'b'", [], [("mode", "a"), ("mode", "b")]),
        ("symlink 'old', 'new'", [], [("link", "old"), ("write", "new")]),
        ("use File::Copy; copy('a.md', 'b.md'); move('c.md', 'd.md')", [], None),
        ("use File::Path qw(remove_tree); remove_tree('specs')", [], [("delete_tree", "specs")]),
        ("use Fcntl; sysopen(F, 'a', O_WRONLY|O_CREAT)", [], [("write", "a")]),
        ("system('rm', '-rf', 'a b')", [], [("shell", "rm -rf 'a b'")]),
        ("system 'rm a'; exec 'rm b'", [], [("shell", "rm a"), ("shell", "rm b")]),
        ("my $x = `rm a`; qx(rm b)", [], [("shell", "rm a"), ("shell", "rm b")]),
        ("open(P, '|-', 'tee a'); open(Q, 'rm b |')", [], [("shell", "tee a"), ("shell", "rm b")]),
        ("eval \"unlink 'a'\"", [], [("delete", "a")]),
        ("eval { unlink 'a' }", [], [("delete", "a")]),
        ("s/x/unlink 'a'/e", [], [("delete", "a")]),
        ("BEGIN { @ARGV = ('a') } unlink @ARGV", [], [("delete", "a")]),
        ("system {'rm'} 'x', 'a'", [], [("shell", "rm a")]),
        ("map { unlink } glob 'specs/*'", [], [("delete", "specs/" + U)]),
        ("chdir 'specs'; unlink 'a'", [], [("chdir", "specs"), ("delete", "a")]),
    ],
    "ruby": [
        ("File.write('a', 'x')", [], [("write", "a")]),
        ("File.open('a', 'w') { |f| f.puts 1 }", [], [("write", "a")]),
        ("open('a', mode: 'a')", [], [("write", "a")]),
        ("File.delete('a', 'b')", [], [("delete", "a"), ("delete", "b")]),
        ("File.rename 'a', 'b'", [], [("move", "a"), ("write", "b")]),
        ("require 'fileutils'; FileUtils.rm_rf 'specs'", [], [("delete_tree", "specs")]),
        ("require 'fileutils'; include FileUtils; rm_rf %w[a b]", [], [("delete_tree", "a"), ("delete_tree", "b")]),
        ("FileUtils.mv('a.md', 'b.md', force: true)", [], [("move", "a.md"), ("write", "b.md")]),
        ("FileUtils.chmod 0644, 'a'", [], [("mode", "a")]),
        ("Dir.glob('specs/*').each { |f| File.delete(f) }", [], [("delete", "specs/" + U)]),
        ("Dir['specs/*.md'].each(&File.method(:delete))", [], [("delete", f"specs/{U}.md")]),
        ("ARGV.each do |f| File.unlink(f) end", ["a"], [("delete", "a")]),
        ("d = 'specs'; File.write(\"#{d}/a\", '')", [], [("write", "specs/a")]),
        ("File.write(File.join('a', 'b'), '')", [], [("write", "a/b")]),
        ("Pathname.new('a').delete; Pathname('b').write('x')", [], [("delete", "a"), ("write", "b")]),
        ("p = Pathname('a'); p.delete", [], [("delete", "a")]),
        ("File.send(:delete, 'a')", [], [("delete", "a")]),
        ("system 'rm', 'a b'", [], [("shell", "rm 'a b'")]),
        ("system('rm a'); `rm b`; %x(rm c)", [], [("shell", "rm a"), ("shell", "rm b"), ("shell", "rm c")]),
        ("require 'open3'; Open3.capture2('rm a')", [], [("shell", "rm a")]),
        ("eval \"File.delete('a')\"", [], [("delete", "a")]),
        ("Dir.rmdir('a')", [], [("delete", "a")]),
    ],
    "node": [
        ("require('fs').writeFileSync('a', 'x')", [], [("write", "a")]),
        ("fs.appendFileSync('a', 'x')", [], [("write", "a")]),
        ("const f = require('node:fs'); f.unlinkSync('a')", [], [("delete", "a")]),
        (
            "const {rmSync: r, unlinkSync} = require('fs'); r('a', {recursive: true}); unlinkSync('b')",
            [],
            [("delete_tree", "a"), ("delete", "b")],
        ),
        ("import fs from 'node:fs'; fs.rmSync('a')", [], [("delete", "a")]),
        ("import {writeFileSync as w} from 'fs'; w('a', '')", [], [("write", "a")]),
        ("fs.promises.rm('a', {recursive: true})", [], [("delete_tree", "a")]),
        ("require('fs/promises').unlink('a')", [], [("delete", "a")]),
        ("fs['unlink' + 'Sync']('a')", [], [("delete", "a")]),
        ("const u = fs.unlinkSync; u('a')", [], [("delete", "a")]),
        (
            "fs.renameSync('a', 'b'); fs.copyFileSync('c', 'd')",
            [],
            [("move", "a"), ("write", "b"), ("read", "c"), ("write", "d")],
        ),
        ("fs.openSync('a', 'w')", [], [("write", "a")]),
        ("fs.createWriteStream('a').end('x')", [], [("write", "a")]),
        ("fs.chmodSync('a', 0o644); fs.symlinkSync('b', 'c')", [], [("mode", "a"), ("link", "b"), ("write", "c")]),
        ("['a', 'b'].forEach(f => fs.unlinkSync('specs/' + f))", [], [("delete", "specs/a"), ("delete", "specs/b")]),
        ("['a', 'b'].forEach(fs.unlinkSync)", [], [("delete", "a"), ("delete", "b")]),
        ("for (const f of ['a', 'b']) fs.unlinkSync(f)", [], [("delete", "a"), ("delete", "b")]),
        ("const d = 'specs'; fs.writeFileSync(`${d}/a`, '')", [], [("write", "specs/a")]),
        ("fs.writeFileSync(path.join('a', 'b'), '')", [], [("write", "a/b")]),
        ("fs.writeFileSync(process.argv[1], '')", ["a"], [("write", "a")]),
        ("fs.readdirSync('specs').forEach(f => fs.unlinkSync('specs/' + f))", [], [("delete", "specs/" + U)]),
        ("require('child_process').execSync('rm a')", [], [("shell", "rm a")]),
        (
            "const {execSync} = require('child_process'); execSync('rm a', {cwd: 'specs'})",
            [],
            [("shell", "cd specs && rm a")],
        ),
        ("require('child_process').spawnSync('rm', ['-rf', 'a b'])", [], [("shell", "rm -rf 'a b'")]),
        ("eval(\"fs.unlinkSync('a')\")", [], [("delete", "a")]),
        ("(async () => { await (await import('fs')).promises.unlink('a') })()", [], None),
        ("fs.writeFileSync(Buffer.from('QUdFTlRTLm1k', 'base64').toString(), '')", [], [("write", "AGENTS.md")]),
        ("const {promises: p} = require('fs'); p.unlink('a')", [], [("delete", "a")]),
        ("const p = require('path'); fs.unlinkSync(p.join('a', 'b'))", [], [("delete", "a/b")]),
        (
            "fs.unlinkSync.call(fs, 'a'); Reflect.apply(fs.unlinkSync, fs, ['b'])",
            [],
            [("delete", "a"), ("delete", "b")],
        ),
        ("import('fs').then(({unlinkSync}) => unlinkSync('a'))", [], [("delete", "a")]),
        ("process.chdir('specs'); fs.unlinkSync('a')", [], [("chdir", "specs"), ("delete", "a")]),
    ],
    "php": [
        ("file_put_contents('a', 'x');", [], [("write", "a")]),
        ("unlink('a'); RENAME('b', 'c');", [], [("delete", "a"), ("move", "b"), ("write", "c")]),
        ("$f = fopen('a', 'w'); fwrite($f, 'x');", [], [("write", "a")]),
        ("$d = 'specs'; unlink(\"$d/a\"); unlink($d . '/b');", [], [("delete", "specs/a"), ("delete", "specs/b")]),
        ("array_map('unlink', glob('specs/*'));", [], [("delete", "specs/" + U)]),
        ("foreach (glob('specs/*') as $f) unlink($f);", [], [("delete", "specs/" + U)]),
        ("$f = 'unlink'; $f('a');", [], [("delete", "a")]),
        ("copy('a', 'b'); chmod('c', 0); touch('d'); rmdir('e');", [], None),
        ("unlink($argv[1]);", ["a"], [("delete", "a")]),
        (
            "system('rm a'); echo `rm b`; shell_exec('rm c');",
            [],
            [("shell", "rm a"), ("shell", "rm b"), ("shell", "rm c")],
        ),
        ("eval('unlink(\"a\");');", [], [("delete", "a")]),
    ],
    "lua": [
        ("local f = io.open('a', 'w'); f:write('x')", [], [("write", "a")]),
        ("os.remove('a'); os.rename('b', 'c')", [], [("delete", "a"), ("move", "b"), ("write", "c")]),
        ("os.remove 'a'", [], [("delete", "a")]),
        ("os.execute('rm a'); io.popen('rm b')", [], [("shell", "rm a"), ("shell", "rm b")]),
        (
            "for _, f in ipairs({'a', 'b'}) do os.remove('specs/' .. f) end",
            [],
            [("delete", "specs/a"), ("delete", "specs/b")],
        ),
        ("local r = os.remove; r('a')", [], [("delete", "a")]),
        ("os['remove']('a')", [], [("delete", "a")]),
        ("os.remove(arg[1])", ["a"], [("delete", "a")]),
        ("load(\"os.remove('a')\")()", [], [("delete", "a")]),
    ],
    "awk": [
        ('{ print > "a" }', [], [("write", "a")]),
        ('{ print $1, $2 >> "a" }', [], [("write", "a")]),
        ('{ print > "out/" $1 ".txt" }', [], [("write", f"out/{U}.txt")]),
        ("{ print > f }", ["f=a", "in"], [("write", "a")]),
        ('{ print > (FILENAME ".bak") }', ["in"], [("write", "in.bak")]),
        ('BEGIN { o = "a"; printf "%s", 1 > o }', [], [("write", "a")]),
        ('BEGIN { system("rm a") }', [], [("shell", "rm a")]),
        ('{ print | "tee a" }', [], [("shell", "tee a")]),
        ('BEGIN { "rm a" | getline x }', [], [("shell", "rm a")]),
        ('BEGIN { while ((getline l < "a") > 0) print l > "b" }', [], [("read", "a"), ("write", "b")]),
    ],
    "sed": [
        ("w out", [], [("write", "out")]),
        ("/x/w out", [], [("write", "out")]),
        ("s/a/b/w out", [], [("write", "out")]),
        ("s|a|b|gw out\np", [], [("write", "out")]),
        ("1e rm a", [], [("shell", "rm a")]),
        ("s/.*/rm a/e", [], [("shell", "rm a")]),
        ("s/^x/rm &/e", [], [("shell", f"{U}rm {U}{U}")]),
        ("$!{/a/,+2W out\n}", [], [("write", "out")]),
        ("r in", [], [("read", "in")]),
        ("e", [], [("shell", U)]),
    ],
    "ed": [
        ("1d\nw\nq", ["a"], [("write", "a")]),
        ("w b", ["a"], [("write", "b")]),
        (",s/x/y/g\nwq", ["a"], [("write", "a")]),
        ("1,3w b", ["a"], [("write", "b")]),
        ("!rm b", ["a"], [("shell", "rm b")]),
        ("r !rm b", ["a"], [("shell", "rm b")]),
        ("w !tee b", ["a"], [("shell", "tee b")]),
        ("f b\nw", ["a"], [("write", "b")]),
        ("%s/a/b/ | wq", ["a"], [("write", "a")]),
        (":w! b", ["a"], [("write", "b")]),
        ("saveas b", ["a"], [("write", "b")]),
        ("g/x/d\nx", ["a"], [("write", "a")]),
        ("call delete('b')", ["a"], [("delete", "b")]),
        ("call writefile(['x'], 'b')", ["a"], [("write", "b")]),
        ("wqa", ["a", "b"], [("write", "a"), ("write", "b")]),
        ("%!sort", ["a"], [("shell", "sort")]),
        ("silent! w", ["a"], [("write", "a")]),
        ("a\ntext\n.\nw", ["a"], [("write", "a")]),
        ("lua os.remove('b')", ["a"], [("delete", "b")]),
    ],
}

#: Nothing is changed here; all that may be reported is what is read.
HARMLESS: dict[str, list[Case]] = {
    "python": [
        ("print(open('AGENTS.md').read())", [], [("read", "AGENTS.md")]),
        ("import json; print(json.load(open('.claude/settings.json')))", [], [("read", ".claude/settings.json")]),
        ("print('rm -rf specs')", [], []),
        ("print(\"os.remove('a')\")", [], []),
        ("# os.remove('a')\nprint(1)", [], []),
        ("'''open('a', 'w')'''\nprint(1)", [], []),
        ("import re; print(re.sub('open', 'write', 'x'))", [], []),
        ("x = 'a b'.replace('a', 'b'); print(x)", [], []),
        ("import sys; print(sys.stdin.read().replace('a', 'b'))", [], []),
        ("xs = ['a', 'b']; xs.remove('a'); print(xs)", [], []),
        ("import os; print(os.remove)", [], []),
        ("import os; print(os.path.exists('a'), os.listdir('.'))", [], []),
        ("from pathlib import Path; print(Path('a').exists(), Path('a').name)", [], []),
        ("from pathlib import Path; print(Path('AGENTS.md').read_text())", [], [("read", "AGENTS.md")]),
        ("def f():\n  open('a', 'w')\nprint('never called')", [], []),
        ("if False: open('a', 'w')", [], []),
        ("import copy; print(copy.deepcopy([1]))", [], []),
        ("import tempfile; f = tempfile.NamedTemporaryFile('w'); f.write('x')", [], []),
        ("import tempfile\nwith tempfile.TemporaryDirectory() as d: print(d)", [], []),
        ("import io; io.StringIO().write('x')", [], []),
        ("import sys; sys.stdout.write('open')", [], []),
        ("import datetime; print(datetime.datetime.now().replace(hour=0))", [], []),
        ("import os; os.open('AGENTS.md', os.O_RDONLY)", [], [("read", "AGENTS.md")]),
        ("import sqlite3; sqlite3.connect(':memory:').execute('create table x (a)')", [], []),
        ("print(eval('1 + 1'))", [], []),
        ("open('a', 'w'", [], []),
        ("print 'python 2'; open('a','w')", [], []),
        ("import collections; collections.Counter('open')", [], []),
        ("d = {'write': 1, 'remove': 2}; print(d.get('write'))", [], []),
        ("import ast; print(ast.dump(ast.parse('open(1)')))", [], []),
        ("for i in range(300):\n  for j in range(300): print(i * j, 'open')", [], []),
        (
            "import hashlib; print(hashlib.sha256(open('AGENTS.md','rb').read()).hexdigest())",
            [],
            [("read", "AGENTS.md")],
        ),
        ("import json,sys; d=json.load(sys.stdin); print(d['open'])", [], []),
        ("class A:\n  def write(self, x): pass\nA().write('a')", [], []),
        ("import math; print(math.trunc(1.5))", [], []),
        ("from dataclasses import replace; print(replace)", [], []),
        ("import logging; logging.info('open %s', 'a')", [], []),
        ("import itertools; print(list(itertools.chain([1],[2])), 'move')", [], []),
    ],
    "perl": [
        ("print 'unlink specs'", [], []),
        ("# unlink 'a'\nprint 1", [], []),
        ("s/foo/bar/g; print if /unlink/", [], []),
        ("open(my $f, '<', 'AGENTS.md'); print <$f>", [], [("read", "AGENTS.md")]),
        ("open F, 'AGENTS.md'; print <F>", [], [("read", "AGENTS.md")]),
        ("print join(',', map { $_ * 2 } 1..3)", [], []),
        ("my %h = (unlink => 1); print $h{unlink}", [], []),
        ("print q(system('rm a')), qq{exec 'x'}", [], []),
        ("while (<STDIN>) { s/rename/move/; print }", [], []),
        ('print "copy and move\\n" x 3', [], []),
        ("my $s = 'x'; $s =~ tr/a-z/A-Z/; print $s, ' open'", [], []),
        ("print sprintf('%s %s', 'chmod', 'a')", [], []),
    ],
    "ruby": [
        ("puts File.read('AGENTS.md')", [], [("read", "AGENTS.md")]),
        ("puts 'File.delete'", [], []),
        ("# File.delete('a')\nputs 1", [], []),
        ("puts 'a b'.delete('a')", [], []),
        ("h = {delete: 1, 'open' => 2}; puts h", [], []),
        ("puts ARGF.read.gsub(/open/, 'write')", [], []),
        ("File.open('AGENTS.md') { |f| puts f.read }", [], [("read", "AGENTS.md")]),
        ("[1, 2].each { |x| puts x }; puts 'system'", [], []),
        ("puts %w[rm_rf delete].inspect", [], []),
    ],
    "node": [
        ("console.log(fs.readFileSync('AGENTS.md', 'utf8'))", [], [("read", "AGENTS.md")]),
        ("console.log('fs.unlinkSync(1)')", [], []),
        ("// fs.unlinkSync('a')\nconsole.log(1)", [], []),
        ("/* fs.unlinkSync('a') */ console.log(1)", [], []),
        ("console.log(/rm/.exec('rm -rf'))", [], []),
        ("const m = new Map(); m.delete('a'); m.set('rename', 1)", [], []),
        ("console.log(JSON.parse(fs.readFileSync('package.json')).name)", [], [("read", "package.json")]),
        ("console.log('a/b'.replace(/unlink/g, 'x'))", [], []),
        ("const o = {unlink: 1, write: 2}; console.log(o.unlink)", [], []),
        ("console.log(fs.existsSync('a'), path.join('a', 'rm'))", [], []),
        ("process.stdout.write('open')", [], []),
        ("console.log(require('os').platform(), 'exec')", [], []),
        ("console.log([1,2].map(x => x * 2).join(','), 'link')", [], []),
    ],
    "php": [
        ("echo file_get_contents('AGENTS.md');", [], [("read", "AGENTS.md")]),
        ("echo 'unlink(1)'; // unlink('a')", [], []),
        ("# unlink('a')\necho 1;", [], []),
        ("$f = fopen('AGENTS.md', 'r');", [], [("read", "AGENTS.md")]),
        ("echo str_replace('copy', 'move', 'x');", [], []),
        ("$o->unlink('a');", [], []),
    ],
    "lua": [
        ("print(io.open('AGENTS.md'):read('a'))", [], [("read", "AGENTS.md")]),
        ("print('os.remove')", [], []),
        ("-- os.remove('a')\nprint(1)", [], []),
        ("print([[os.execute('rm a')]])", [], []),
        ("t = {1, 2}; table.remove(t, 1)", [], []),
    ],
    "awk": [
        ("{ print $1 }", [], []),
        ("$1 > 3 { print $2 }", [], []),
        ('{ print "a > b" }', [], []),
        ("{ print ($1 > $2) }", [], []),
        ("/a|b/ { n++ } END { print n }", [], []),
        ('{ print > "/dev/stderr" }', [], []),
        ("{ if ($1 >= 2 || $2 > 3) print }", [], []),
        ('# print > "a"\n{ print }', [], []),
    ],
    "sed": [
        ("s/a/b/g", [], []),
        ("s/w/e/", [], []),
        ("/w out/d", [], []),
        ("s/[/]w x/y/p", [], []),
        ("5q", [], []),
        ("y/we/ew/", [], []),
        ("a\\\nw out", [], []),
        ("s,a,w b,;n;d", [], []),
        (":w\ns/x/y/;tw", [], []),
        ("w /dev/stdout", [], []),
    ],
    "ed": [
        (",p\nq", ["a"], []),
        ("a\nw b\n.\nq", ["a"], []),
        ("/w b/p", ["a"], []),
        ("%s/w/x/gp", ["a"], []),
        ("q!", ["a"], []),
        ("set number", ["a"], []),
        ("g/write/p", ["a"], []),
    ],
}


def rows(table: dict[str, list[Case]]) -> list[tuple[str, str, list[str], Effects | None]]:
    return [(language, *case) for language, cases in table.items() for case in cases]


def at_home(effects: Effects) -> Effects:
    return [(kind, text.replace(HOME, os.path.expanduser("~"))) for kind, text in effects]


def test_there_are_enough_cases() -> None:
    """Every language has both sorts; nearly half of all is harmless."""
    assert set(CHANGING) == set(HARMLESS) == set(LANGUAGES)
    assert len(rows(CHANGING)) + len(rows(HARMLESS)) >= 150
    assert len(rows(HARMLESS)) >= 75


@pytest.mark.parametrize(("language", "code", "arguments", "expected"), rows(CHANGING))
def test_what_the_code_would_do_is_found(
    language: str, code: str, arguments: list[str], expected: Effects | None
) -> None:
    """Each effect with its path, in order; without a list, that there is one."""
    found = code_effects(language, code, arguments)
    if expected is None:
        assert {kind for kind, _ in found} - {"read", "chdir"}
        assert all(text != UNKNOWN for _, text in found)
    else:
        assert found == at_home(expected)


@pytest.mark.parametrize(("language", "code", "arguments", "expected"), rows(HARMLESS))
def test_what_changes_nothing_is_left_alone(language: str, code: str, arguments: list[str], expected: Effects) -> None:
    """Words in texts, comments and patterns are no calls; reading is only reading."""
    assert code_effects(language, code, arguments) == expected


def test_the_folder_may_be_known() -> None:
    """With a hint, `getcwd` is that folder, also after the code went elsewhere and back."""
    code = "import os; h = os.getcwd(); os.chdir('specs'); os.chdir(h); open(os.getcwd() + '/a', 'w')"
    assert code_effects("python", code, [], cwd_hint="/p") == [("chdir", "specs"), ("chdir", "/p"), ("write", "/p/a")]
    assert code_effects("python", "import os; open(os.getcwd() + '/a', 'w')", []) == [("write", "./a")]


def test_code_that_cannot_change_anything_costs_no_import() -> None:
    """The usual one-liner is let go before `ast` is loaded."""
    program = (
        "import sys; from fusewire.guard.code import code_effects as e; "
        "e('python', 'import json,sys; print(json.load(sys.stdin)[1])', []); e('awk', '{print $1}', []); "
        "sys.exit('ast' in sys.modules or 're' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-S", "-c", program], env=path_to_source()).returncode == 0


def path_to_source() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}


# -- any input -------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(
            "open",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "'",
            '"',
            "`",
            ",",
            ";",
            ":",
            ".",
            "->",
            "=>",
            "=",
            "+",
            "$",
            "$x",
            "@ARGV",
        ),
        *(
            "%w",
            "#",
            "/",
            "\\",
            "|",
            ">",
            "<",
            "\n",
            "os",
            "remove",
            "unlink",
            "fs",
            "File",
            "system",
            "for",
            "in",
            "qw",
        ),
        *("<<EOF", "EOF", "${", "#{", "s/", "y/", "w", "e", "import", "def", "f", "lambda", "x", "while", "if", "else"),
        *("class", "return", "yield", "print", "1", "999999999", "*", "**", "a", "b", "eval", "exec", "do", "end"),
    ]
)


@given(st.sampled_from(LANGUAGES), st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=30).map(" ".join)))
@settings(max_examples=700, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("python", "open('a' * 10**12, 'w')")
@example("python", "open('%0999999999d' % 1, 'w')")
@example("python", "open('{:>999999999}'.format(1), 'w')")
@example("python", "x = 9 ** 9 ** 9 ** 9; open(str(x), 'w')")
@example("python", "def f(x): return f(x) + f(x)\nopen(f(1), 'w')")
@example("python", "def f(x): f(x + 'a'); g(x)\ndef g(x): f(x); f(x); open(x, 'w')\nf('')")
@example("python", "x = 'a'\nfor i in range(10**9): x += x\nopen(x, 'w')")
@example("python", "x = ['a']\nwhile True: x += x\nopen(x[0], 'w')")
@example("python", "x = 'exec(x)'; exec(x)")
@example("python", "open(" * 300)
@example("python", "open(" + "-" * 5000 + "1, 'w')")
@example("python", "open(" + "'a'+" * 3000 + "'b', 'w')")
@example("python", "a = []; a.append(a); open(a, 'w')")
@example("python", "open\0('a','w')")
@example("perl", "unlink " + "(" * 3000)
@example("perl", '"' + '${"' * 50)
@example("node", "eval(" * 2000)
@example("node", "x=`" + "${`" * 500)
@example("ruby", "File.delete" + "[" * 3000)
@example("perl", "File.delete 'a', " * 2000)
@example("ruby", "File.delete 'a', " * 2000)
@example("node", "unlink(" * 2000)
@example("lua", "a[" * 5000)
@example("awk", "print > " * 2000)
@example("sed", "s/" * 1000)
@example("ed", "g/g/" * 1000)
def test_no_code_is_too_strange(language: str, code: str) -> None:
    """Whatever stands there, an answer comes, soon, and is of the agreed form."""
    start = time.process_time()
    found = code_effects(language, code, ["a"])
    assert time.process_time() - start < 2
    kinds = {"write", "delete", "delete_tree", "move", "mode", "link", "read", "chdir", "shell"}
    assert all(kind in kinds and isinstance(text, str) for kind, text in found)


def test_what_is_too_much_to_follow_may_write_anything() -> None:
    """The bound on the work is no way around the guard."""
    code = "import os\nfor a in range(9):\n" + "".join(
        " " * (depth + 1) + f"for x{depth} in 'abcdefgh':\n" for depth in range(8)
    )
    code += " " * 10 + "pass\nos.remove('a')"
    found = code_effects("python", code, [])
    assert ("delete", "a") in found or ("write", UNKNOWN) in found
    assert code_effects("python", "x = " + "-" * 5000 + "1; open('a', 'w')", [])[-1:] in (
        [("write", UNKNOWN)],
        [("write", "a")],
    )


# -- the truth -------------------------------------------------------------------------------------------

INTERPRETERS = {
    "python": [sys.executable, "-c"],
    "perl": ["perl", "-e"],
    "node": ["node", "-e"],
    "awk": ["awk"],
    "sed": ["sed", "-n"],
    "ruby": ["ruby", "-e"],
    "php": ["php", "-r"],
    "lua": ["lua", "-e"],
}
#: Folders of their own would be needed for these: they need a package, a terminal, a network, or end badly.
UNRUN = ("CDLL", "~/", "home()", "input()", "stdin", "STDIN", "run(cmd)", "ARGF", "exec", "spawn", "$o->", "copytree")


def truths() -> list[tuple[str, str, list[str]]]:
    """Cases whose code is safe to run in a folder of its own: no shell, and no path outside."""
    found = []
    for language, code, arguments, expected in rows(CHANGING) + rows(HARMLESS):
        is_shell = any(kind == "shell" for kind, _ in expected or [])
        if language in INTERPRETERS and not is_shell and not any(mark in code for mark in UNRUN):
            found.append((language, code, arguments))
    return found


def listing(root: Path) -> dict[str, tuple[int, bytes, int]]:
    """Every path with its mode, content and time."""
    found = {}
    for path in sorted(root.rglob("*")):
        state = path.lstat()
        content = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""
        found[str(path.relative_to(root))] = (state.st_mode, content, 0 if path.is_dir() else state.st_mtime_ns)
    return found


def covers(effects: Effects, path: str) -> bool:
    """Whether one of the effects names the path, a folder that it is in, or something that may be it."""
    folder = ""
    for kind, text in effects:
        if kind == "chdir":
            folder = os.path.normpath(os.path.join(folder, text))
            continue
        pattern = os.path.normpath(os.path.join(folder, text))
        pattern = "".join("*" if char == U else f"[{char}]" if char in "[*?" else char for char in pattern)
        inside = kind in ("delete_tree", "move", "write") and fnmatch.fnmatchcase(path, pattern + "/*")
        if kind != "read" and (fnmatch.fnmatchcase(path, pattern) or inside):
            return True
    return False


@pytest.mark.parametrize(("language", "code", "arguments"), truths())
def test_what_really_changes_was_foretold(language: str, code: str, arguments: list[str], tmp_path: Path) -> None:
    """The code is run in a folder full of files; each path that differs afterwards is among the effects."""
    program = INTERPRETERS[language]
    if shutil.which(program[0]) is None:
        return  # what it says is in the tables above; only the proof by running it needs the program
    for folder in ("specs", "x", ".claude", "out"):
        (tmp_path / folder).mkdir()
    for name in (
        "a.md",
        "AGENTS.md",
        "a.json",
        "specs/a",
        "specs/a.md",
        "specs/b",
        "specs/b.md",
        "x/b.md",
        "old",
        "in",
    ):
        (tmp_path / name).write_text("x y\n")
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).write_text("x y\n")
    (tmp_path / "package.json").write_text('{"name": 1}')
    before = listing(tmp_path)
    operands = arguments or (["in"] if language in ("awk", "sed") else [])
    operands = [*operands, "in"] if language == "awk" and operands[-1:] != ["in"] else operands
    subprocess.run([*program, code, *operands], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=45)
    after = listing(tmp_path)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    effects = code_effects(language, code, operands)
    assert [path for path in changed if not covers(effects, path)] == []
    if (code, arguments) in [(code, arguments) for code, arguments, _ in HARMLESS[language]]:
        assert changed == []
        assert {kind for kind, _ in effects} <= {"read"}


def test_the_truth_is_told_about_many_cases() -> None:
    """The test above is worth its name: most snippets are run, and most of them do change something."""
    assert len([case for case in truths() if case[0] in ("python", "perl", "node")]) >= 100


# -- what code sees of the line around it ----------------------------------------------------------------

#: Lines that change AGENTS.md, though the code alone does not say so.
AROUND = [
    "F=AGENTS.md python3 -c 'import os; os.remove(os.environ[\"F\"])'",
    "F=AGENTS.md python3 -c 'import os; os.remove(os.getenv(\"F\"))'",
    'python3 -c \'import os; os.environ["F"]="AGENTS.md"; os.system("rm $F")\'',
    "export F=AGENTS.md; node -e 'require(\"fs\").unlinkSync(process.env.F)'",
    "F=AGENTS.md perl -e 'unlink $ENV{F}'",
    "F=AGENTS.md awk 'BEGIN{print 1 > ENVIRON[\"F\"]}'",
    "echo AGENTS.md | python3 -c 'import os; os.remove(input())'",
    "echo AGENTS.md | python3 -c 'import os, sys; os.remove(sys.stdin.read().strip())'",
    "echo AGENTS.md | python3 -c 'import os, sys\nfor l in sys.stdin: os.remove(l.strip())'",
    "echo AGENTS.md | python3 -c 'import os, fileinput\nfor l in fileinput.input(): os.remove(l.strip())'",
    "python3 -c 'print(\"rm AGENTS.md\")' | bash",
    'echo x > $(python3 -c \'print("AGENTS" + ".md")\')',
    "perl -e 'print \"rm AGENTS.md\\n\"' | bash",
    "node -e 'console.log(\"rm AGENTS.md\")' | sh",
    "node -p '\"AGENTS.md\"' | xargs rm",
    "awk 'BEGIN{print \"rm AGENTS.md\"}' | sh",
    'python3 -c \'open("x.sh","w").write("rm AGENTS.md")\'; bash x.sh',
    'python3 -c \'import subprocess; subprocess.Popen(["bash"], stdin=-1).communicate(b"rm AGENTS.md")\'',
    'python3 -c \'import os; d=os.open(".",0); os.unlink("AGENTS.md", dir_fd=d)\'',
    'echo \'open("AGENTS.md","w")\' > x.py; python3 -m x',
    "echo 'open(\"AGENTS.md\",\"w\")' > x.py; python3 -c 'import x'",
    "echo 'def f(): open(\"AGENTS.md\",\"w\")' > x.py; python3 -c 'from x import f; f()'",
    'mkdir p; echo \'open("AGENTS.md","w")\' > p/__main__.py; python3 p',
    'mkdir p; echo \'open("AGENTS.md","w")\' > p/sitecustomize.py; PYTHONPATH=p python3 -c 1',
    'printf \'def test_a():\\n    open("AGENTS.md","w")\\n\' > test_a.py; python3 -m pytest -q',
    'echo \'open("AGENTS.md","w")\' > conftest.py; pytest -q',
    'echo \'open("AGENTS.md","w")\' > x.py; python3 -m cProfile x.py',
    "python3 -m cProfile -o AGENTS.md x.py",
    'python3 -m timeit -n1 \'open("AGENTS.md","w")\'',
    "python3 -m zipfile -c AGENTS.md x",
    'python3 -m code <<< \'open("AGENTS.md","w")\'',
    'python3 -c \'from pathlib import Path\nfor p in Path(".").iterdir():\n    if p.suffix == ".md": p.touch()\'',
    'python3 -c \'import os\nopen([n for n in os.listdir(".") if n.startswith("AG")][0], "w")\'',
    'echo \'require("fs").unlinkSync("AGENTS.md")\' > x.js; node x',
    'echo \'require("fs").unlinkSync("AGENTS.md")\' > x.js; node -e \'require("./x")\'',
    "echo 'require(\"fs\").unlinkSync(\"AGENTS.md\")' > x.js; NODE_OPTIONS='-r ./x.js' node -e 1",
    "node --redirect-warnings=AGENTS.md -e 1",
    "perl -e 'system qw(rm AGENTS.md)'",
    'perl -MFile::Copy=mv -e \'mv("x","AGENTS.md")\'',
    'perl -e \'@ARGV=("AGENTS.md"); $^I=""; while(<>){print}\'',
    'perl -e \'local @ARGV=glob("*.md"); local $^I=".bak"; while(<>){print}\'',
    "echo 'unlink \"AGENTS.md\"' > x.pl; perl -e 'do \"./x.pl\"'",
    "echo AGENTS.md | awk '{system(\"rm \" $0)}'",
    'awk \'{print "rm " $1 | "sh"}\' <<< AGENTS.md',
    'awk \'BEGIN{f=toupper("agents") ".md"; print 1 > f}\'',
    "echo 'BEGIN{system(\"rm AGENTS.md\")}' | awk -f -",
    "echo 'w AGENTS.md' | sed -f - x",
    "echo 'rm AGENTS.md' | sed e",
    "rm $(echo ./AGENTS.md | sed 's|^./||')",
    "make --eval='x: ; rm AGENTS.md' x",
    "printf 'D=AGENTS.md\\nx:\\n\\trm $(D)\\n' > m; make -f m",
    "printf 'x:\\n\\trm $(D)\\n' > m; make --makefile=m D=AGENTS.md",
    "printf 'x := $(shell rm AGENTS.md)\\nall:\\n' > GNUmakefile; make",
    "printf 'AGENTS.md: x\\n\\tcp $< $@\\n' > m; make -f m",
    "printf 'all: a\\na:\\n\\tfor f in AGENTS.md; do rm $$f; done\\n' > m; make -fm",
    "make -n --eval='x: ; +rm AGENTS.md' x",
    "vim -es -c 'silent !rm AGENTS.md' -c q",
    "vim -es -c 'redir! > AGENTS.md' -c q",
    "ex -sc '1d|x' AGENTS.md",
    "ex -sc 'w! AGENTS.md|q' x",
]

#: Lines that look like them and leave it alone.
BESIDE = [
    "F=out python3 -c 'import os; os.remove(os.environ[\"F\"])'; cat AGENTS.md",
    "python3 -c 'print(\"cat AGENTS.md\")' | bash",
    "echo AGENTS.md | python3 -c 'import sys; print(sys.stdin.read())'",
    'python3 -c \'import os\nfor f in os.listdir("."):\n    if f.endswith(".tmp"): os.remove(f)\'',
    'python3 -c \'open("x.sh","w").write("cat AGENTS.md")\'; bash x.sh',
    'printf \'def test_a(tmp_path):\\n    (tmp_path / "AGENTS.md").write_text("x")\\n\' > test_a.py; pytest -q',
    "printf 'all:\\n\\techo AGENTS.md\\nclean:\\n\\trm AGENTS.md\\n' > m; make -f m all",
    "make -n --eval='x: ; rm AGENTS.md' x",
    "awk '{print $1}' AGENTS.md",
    "python3 -m json.tool AGENTS.md",
    "ex -sc '1p|q' AGENTS.md",
]


@pytest.mark.parametrize(
    ("line", "decision"), [(one, "BLOCKED") for one in AROUND] + [(one, "ALLOWED") for one in BESIDE]
)
def test_code_is_read_together_with_the_line_around_it(line: str, decision: str, tmp_path: Path) -> None:
    from fusewire.guard.check import check_command

    (tmp_path / "AGENTS.md").write_text("rules\n")
    (tmp_path / "x").write_text("x\n")
    assert check_command(line, cwd=str(tmp_path), root=str(tmp_path)).decision == decision
