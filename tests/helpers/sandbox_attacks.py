"""Commands that try to change a protected file of the project `$P`, as shell scripts.

`PLAIN` change one where there is no sandbox, which the tests verify. `TRICKS` go through the kernel's other doors, and
need not succeed outside. `$PY` is Python, and `$LIB` the beginning of its scripts.
"""

from __future__ import annotations

LIB = """
import ctypes, os, sys
L = ctypes.CDLL(None, use_errno=True)
P = os.environ["P"]
def evil(path):
    try:
        with open(path, "w") as file: file.write("evil")
    except OSError as error: print(path, error)
def call(name, *words):
    result = getattr(L, name)(*words)
    print(name, result, os.strerror(ctypes.get_errno()) if result < 0 else "")
    return result
"""

PLAIN = {
    "redirect": "echo evil > AGENTS.md",
    "append": "echo evil >> AGENTS.md",
    "remove": "rm -f AGENTS.md",
    "move away": "mv AGENTS.md elsewhere.md",
    "replace by rename": "echo evil > new.md; mv -f new.md AGENTS.md",
    "truncate": "truncate -s 0 AGENTS.md",
    "change the mode": "chmod 777 AGENTS.md",
    "change the time": "touch -d 2001-01-01 AGENTS.md",
    "hard link and write": "ln AGENTS.md other.md; echo evil > other.md",
    "dd in place": "printf evil | dd of=AGENTS.md conv=notrunc status=none",
    "sed in place": "sed -i s/rules/evil/ AGENTS.md",
    "perl in place": "perl -pi -e s/rules/evil/ AGENTS.md",
    "Python": '$PY -c \'open("AGENTS.md", "w").write("evil")\'',
    "Python rmtree": "$PY -c 'import shutil; shutil.rmtree(\"specs\", ignore_errors=True)'",
    "map into memory": """$PY -c '
import mmap
with open("AGENTS.md", "r+b") as file: mmap.mmap(file.fileno(), 0)[0:4] = b"evil"'""",
    "unnamed file linked in place": """$PY -c "$LIB
file = os.open(P, os.O_TMPFILE | os.O_RDWR)
os.write(file, b'evil')
call('linkat', -100, f'/proc/self/fd/{file}'.encode(), -100, b't.md', 0x400)
os.replace(P + '/t.md', P + '/AGENTS.md')" """,
    "remove a folder": "rm -rf specs",
    "find and delete": "find . -name '*.md' -delete",
    "new file in a folder": "echo evil > specs/new.md",
    "move a folder": "mv specs other",
    "new settings": "echo '{\"hooks\": 1}' > .claude/settings.local.json",
    "settings in the home folder": "echo '{\"hooks\": 1}' > ~/.claude/settings.json",
    "the folder of these settings": "mv ~/.claude ~/c && mkdir ~/.claude && echo evil > ~/.claude/settings.json",
    "folder above": "mv docs d && mkdir -p docs/constraints && echo evil > docs/constraints/c.md",
    "exchange the folder above": """mkdir -p d/constraints; $PY -c "$LIB
call('renameat2', -100, b'd', -100, b'docs', 2)" """,
    "exchange the file": """echo evil > new.md; $PY -c "$LIB
call('renameat2', -100, b'new.md', -100, b'AGENTS.md', 2)" """,
    "the project folder": "cd .. && mv project p && mkdir project && echo evil > project/AGENTS.md",
    "the folder above the project": "cd ~ && mv work w && mkdir -p work/project && echo evil > work/project/AGENTS.md",
    "remove a link": "rm CLAUDE.md",
    "another target for a link": "echo evil > evil.md; ln -sfn evil.md CLAUDE.md",
    "rename over a link": "echo evil > evil.md; mv -f evil.md CLAUDE.md",
    "through a link": "echo evil > CLAUDE.md",
    "the target of a link": "rm -f linked/real.md",
    "the folder of that target": "mv linked l; mkdir linked; echo evil > linked/real.md",
    "own link to a folder": "ln -s specs s; echo evil > s/a.md",
    "archive": "mkdir x; echo evil > x/AGENTS.md; tar -C x -cf x.tar .; tar xf x.tar",
    "tree copy": "mkdir -p x/specs; echo evil > x/specs/a.md; cp -rf x/. .",
    "make clean": "make -s clean",
    "git clean": "echo secret > specs/untracked.md; git rm -rq --cached specs; git clean -fdxq specs",
    "git checkout of another version": """git switch -qc new; blob=$(echo evil | git hash-object -w --stdin)
git update-index --cacheinfo 100644,$blob,AGENTS.md; git commit -qm evil; git checkout -qf new -- AGENTS.md""",
    "git rm": "git rm -qrf AGENTS.md specs",
    "git with a work tree elsewhere": """git worktree add -q ../other; cd ../other; echo evil > AGENTS.md
git commit -qam evil; git --git-dir=$P/.git --work-tree=$P checkout -qf $(git rev-parse HEAD)""",
    "through /proc/self/root": "echo evil > /proc/self/root$P/AGENTS.md",
    "through /proc/self/cwd": "echo evil > /proc/self/cwd/AGENTS.md",
    "from a folder inside": "cd specs && echo evil > a.md",
    "program without a name": """$PY -c "$LIB
file = os.memfd_create('x', 0)
os.write(file, b'#!/bin/sh\\necho evil > AGENTS.md\\n')
os.execve(file, ['x'], os.environ)" """,
    "background process": """mkfifo done
(setsid sh -c 'echo evil > AGENTS.md; echo evil > done' >/dev/null 2>&1 &); cat done""",
}

#: In a user namespace of their own they are root, with all capabilities over what they make there.
_NESTED = """unshare -Urm --propagation unchanged sh -c '{}; echo evil > $P/AGENTS.md; echo evil > $P/specs/a.md
  mv $P/docs $P/d && mkdir -p $P/docs/constraints && echo evil > $P/docs/constraints/c.md'"""

_NESTED_PYTHON = """unshare -Urm --propagation unchanged $PY -c "$LIB
{}
evil(P + '/AGENTS.md'); evil(P + '/specs/a.md')" """

_PARENT = "parent = os.environ['OUTSIDE']"

TRICKS = {
    "umount": "umount $P/AGENTS.md; umount -l $P/specs; echo evil > AGENTS.md; echo evil > specs/a.md",
    "remount": "mount -o remount,bind,rw $P/specs; echo evil > specs/a.md",
    "nested umount": _NESTED.format("umount $P/AGENTS.md; umount $P/specs"),
    "nested lazy umount": _NESTED.format("umount -l $P/AGENTS.md; umount -l $P/specs; umount -l -R $P/specs"),
    "nested umount of all": _NESTED.format("umount -a; umount -l /proc; umount -l /proc; umount -Rl /proc"),
    "nested remount": _NESTED.format("mount -o remount,bind,rw $P/AGENTS.md; mount -o remount,rw,bind $P/specs"),
    "nested bind of the project": _NESTED.format("mount --bind $P /mnt && echo evil > /mnt/AGENTS.md"),
    "nested bind of everything above": _NESTED.format("mount --bind / /mnt && echo evil > /mnt$P/AGENTS.md"),
    "nested recursive bind": _NESTED.format(
        "mount --rbind $P /mnt; umount -l /mnt/AGENTS.md; umount -l /mnt/specs; echo evil > /mnt/AGENTS.md"
    ),
    "nested move of the mount": _NESTED.format("mkdir -p $P/x; mount --move $P/specs $P/x; mount --move $P/specs /mnt"),
    "nested move of what covers the pins": _NESTED.format("mount --move /proc /mnt; ls /proc"),
    "nested private mounts": _NESTED.format("mount --make-rprivate /; umount $P/specs"),
    "nested cover": _NESTED.format("mount -t tmpfs none $P && mkdir -p $P/specs && umount $P"),
    "nested overlay of the project": _NESTED.format(
        "mkdir -p /tmp/w$$ ~/u/l ~/u/w; mount -t overlay o -o lowerdir=$HOME/u/l,upperdir=$P,workdir=$HOME/u/w /mnt &&"
        " echo evil > /mnt/AGENTS.md"
    ),
    "nested overlay of a folder": _NESTED.format(
        "mkdir -p ~/u/l ~/u/w; mount -t overlay o -o lowerdir=$HOME/u/l,upperdir=$P/specs,workdir=$HOME/u/w /mnt &&"
        " echo evil > /mnt/a.md"
    ),
    "nested chroot": _NESTED.format('chroot / sh -c "echo evil > $P/AGENTS.md"'),
    "nested pivot_root": _NESTED.format("mount --rbind / /mnt; cd /mnt; pivot_root . mnt; echo evil > $P/AGENTS.md"),
    "nested twice": "unshare -Urm unshare -Urm sh -c 'umount -l $P/specs; echo evil > $P/specs/a.md'",
    "nested process namespace": "unshare -Urmpf --mount-proc sh -c 'umount -l $P/specs; echo evil > $P/specs/a.md'",
    "nested open_tree": _NESTED_PYTHON.format("""
for flags in (1, 1 | 0x8000):  # OPEN_TREE_CLONE, AT_RECURSIVE
    tree = call('syscall', 428, -100, P.encode(), flags)
    if tree >= 0:
        call('syscall', 442, tree, b'', 0x9000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)  # no longer read-only
        evil(f'/proc/self/fd/{tree}/AGENTS.md'); evil(f'/proc/self/fd/{tree}/specs/a.md')
        call('syscall', 429, tree, b'', -100, b'/mnt', 4)
        evil('/mnt/AGENTS.md')"""),
    "nested mount_setattr": _NESTED_PYTHON.format("""
for path in (P, P + '/specs', P + '/AGENTS.md', '/'):
    call('syscall', 442, -100, path.encode(), 0x8000, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)"""),
    "nested open by handle": _NESTED_PYTHON.format("""
for above in ('/', P, P + '/docs'):
    handle = ctypes.create_string_buffer(136); handle[0] = 128; number = ctypes.c_int()
    if call('name_to_handle_at', -100, (P + '/AGENTS.md').encode(), handle, ctypes.byref(number), 0) == 0:
        file = call('open_by_handle_at', os.open(above, os.O_RDONLY), handle, os.O_WRONLY)
        if file >= 0: os.write(file, b'evil')"""),
    "open by handle": """$PY -c "$LIB
for above in ('/', P):
    handle = ctypes.create_string_buffer(136); handle[0] = 128; number = ctypes.c_int()
    if call('name_to_handle_at', -100, (P + '/AGENTS.md').encode(), handle, ctypes.byref(number), 0) == 0:
        file = call('open_by_handle_at', os.open(above, os.O_RDONLY), handle, os.O_WRONLY)
        if file >= 0: os.write(file, b'evil')" """,
    "roots of processes": """$PY -c "$LIB
# Root reaches those of root that have fewer capabilities than it kept, which is said in the docs.
for pid in [os.environ['OUTSIDE'], '1'] if os.geteuid() == 0 else filter(str.isdigit, os.listdir('/proc')):
    for way in ('root' + P, 'cwd'):
        evil(f'/proc/{pid}/{way}/AGENTS.md')" """,
    "open files of processes": """$PY -c "$LIB
for pid in [os.environ['OUTSIDE'], '1'] if os.geteuid() == 0 else filter(str.isdigit, os.listdir('/proc')):
    try: files = os.listdir(f'/proc/{pid}/fd')
    except OSError: continue
    for file in files:
        if os.path.isdir(f'/proc/{pid}/fd/{file}'): evil(f'/proc/{pid}/fd/{file}/AGENTS.md')
        evil(f'/proc/{pid}/fd/{file}/..' + P + '/AGENTS.md') if os.path.isdir(f'/proc/{pid}/fd/{file}') else None" """,
    "inherited descriptors": """$PY -c "$LIB
for file in range(3, 64):
    try: found = os.open('AGENTS.md', os.O_WRONLY, dir_fd=file); os.write(found, b'evil')
    except OSError: pass" """,
    "the memory of a process outside": f"""$PY -c "$LIB
{_PARENT}
try:
    with open(f'/proc/{{parent}}/mem', 'r+b') as file: print('opened its memory')
    open(P + '/specs/a.md', 'w').write('evil')
except OSError as error: print(error)
ok = call('process_vm_writev', int(parent), None, 0, None, 0, 0)" """,
    "trace a process outside": f"""$PY -c "$LIB
{_PARENT}
if call('ptrace', 16, int(parent), None, None) == 0: evil(P + '/src/traced')
if call('ptrace', 0x4206, int(parent), None, None) == 0: evil(P + '/src/traced')" """,
    "enter the namespace outside": f"""$PY -c "$LIB
{_PARENT}
for name in ('user', 'mnt'):
    try: call('setns', os.open(f'/proc/{{parent}}/ns/{{name}}', os.O_RDONLY), 0)
    except OSError as error: print(error)
evil(P + '/AGENTS.md')"; nsenter -t $OUTSIDE -m sh -c "echo evil > $P/AGENTS.md" """,
    "pidfd of a process outside": f"""$PY -c "$LIB
{_PARENT}
pid = os.pidfd_open(int(parent))
for number in range(10):
    file = call('syscall', 438, pid, number, 0)
    if file >= 0: evil(P + '/src/traced')
call('setns', pid, 0x20000); evil(P + '/AGENTS.md')" """,
    "map other users": "unshare -U sleep 5 & newuidmap $! 0 0 1; newgidmap $! 0 0 1; kill $!",
    "other user": 'su -c "echo evil > $P/specs/a.md" < /dev/null; sudo -n sh -c "echo evil > $P/specs/a.md"',
    "device": "mknod $P/device b 8 0; mknod ~/device c 1 1; test -e device && echo evil > AGENTS.md",
    "attributes": "chattr +i AGENTS.md; setfattr -n user.x -v evil AGENTS.md; setfacl -m o::rwx AGENTS.md",
    "program with capabilities": "cp $(command -v mount) m; setcap cap_sys_admin+ep m; ./m -o remount,bind,rw $P/specs;"
    " echo evil > specs/a.md",
}
