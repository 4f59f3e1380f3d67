"""Cache the plan of a project and the means of this machine from one command to the next.

To make a plan takes half as long as to start Python; to look whether one still holds takes a few dozen `lstat`. What is
remembered lies in the user's state folder, which is read-only in the sandbox.
"""

import posix as os
import sys
from _imp import source_hash
from _stat import S_ISREG
from marshal import dumps, loads
from time import time

from fusewire.guard.sandbox.namespaces import MountPlan, environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Raised when the shape of what is remembered changes.
_FORMAT = 2

_HASH = 8
_LARGEST = 1 << 20

#: Seconds after which a machine that had no sandbox is tried again.
_TRIED_AGAIN_AFTER = 600

#: More than there are projects: all are forgotten, and the next command remembers its own.
_MOST_FILES = 200

#: Endings of the variables that a plan depends on: HOME, XDG_STATE_HOME, and those that name agents' home folders. The
#: table of agents is not imported here, because this runs before every shell command.
VARIABLE_ENDINGS = (b"HOME", b"_CONFIG_DIR")

#: Files of ours that it depends on.
_SOURCES = (
    "guard/known_agents.py",
    "guard/policy.py",
    "guard/protected.py",
    "guard/sandbox/plan.py",
    "config/policies/guard.toml",
)


def prepare(root: str, *, documents: bool) -> "tuple[MountPlan, str, tuple[str, tuple[str, ...]]]":
    """The plan of a project, the means to carry it out (none where this machine has none), and its settings."""
    machine = os.uname()
    variables = sorted(item for item in environment().items() if item[0].endswith(VARIABLE_ENDINGS))
    made_for = [_FORMAT, root, documents, os.geteuid(), sys.executable, machine.release, machine.nodename, variables]
    file = _file(dumps(made_for))
    try:
        known, made_at, means, paths, stamps, data, settings = _read(file)
        if known == made_for and stamps == _stamps(*paths) and (means or time() - made_at < _TRIED_AGAIN_AFTER):
            return MountPlan(*data), means, settings
    except (OSError, ValueError, EOFError, TypeError):
        pass
    return _make(root, documents, made_for, file)


def _file(key: bytes) -> str:
    given = environment()
    home = given.get(b"XDG_STATE_HOME") or given.get(b"HOME", b"") + b"/.local/state"
    if not home.startswith(b"/") or home == b"/.local/state":
        return ""  # nobody's home: nothing is remembered
    return f"{home.decode('utf-8', 'surrogateescape')}/fusewire/sandbox/{source_hash(_FORMAT, key).hex()}"


def _read(path: str) -> "Any":
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(file).st_uid != os.geteuid():
            raise ValueError("somebody else's")
        content = os.read(file, _LARGEST)
    finally:
        os.close(file)
    if source_hash(_FORMAT, content[_HASH:]) != content[:_HASH]:
        raise ValueError("damaged")
    return loads(content[_HASH:])


def _stamps(places: "list[str]", contents: "list[str]") -> "list[Any]":
    """What would be different if one of the places came, went or were another file, or a content had changed."""
    found: list[Any] = []
    for path in places:
        try:
            facts = os.lstat(path)
            found.append((facts.st_mode, facts.st_ino, S_ISREG(facts.st_mode) and facts.st_nlink))
        except OSError:
            found.append(None)
    for path in contents:
        try:
            facts = os.stat(path)
            found.append((facts.st_mtime_ns, facts.st_ino, facts.st_size))
        except OSError:
            found.append(None)
    return found


def _make(root: str, documents: bool, made_for: "list[Any]", file: str) -> "tuple[MountPlan, str, Any]":
    """Make the plan, try the means, and remember both if that is possible."""
    from os import makedirs, path

    from fusewire.config.rules import SESSION_CONFIG, load_rules, user_config_path
    from fusewire.guard.policy import protected_of
    from fusewire.guard.sandbox.plan import plan
    from fusewire.guard.sandbox.support import support

    folder = path.dirname(file)
    try:
        if folder:
            makedirs(folder, 0o700, exist_ok=True)  # before the plan, which makes it read-only
    except OSError:
        folder = ""
    package = path.dirname(path.dirname(path.dirname(path.realpath(__file__))))
    contents = [path.join(package, name) for name in _SOURCES]
    contents += [path.join(root, name) for name in ("fusewire.toml", "pyproject.toml", SESSION_CONFIG)]
    contents.append(user_config_path())
    rules = load_rules(root, keeps=True)
    first = plan(protected_of(root, rules), documents=documents)
    paths = [[root, *first.looked_at], [*contents, *first.scanned]]
    stamps = _stamps(*paths)
    made = plan(protected_of(root, load_rules(root)), documents=documents)
    means = support().means
    if folder and made.data() == first.data():  # nothing has changed between the plan and the stamps
        _save(folder, file, dumps((made_for, time(), means, paths, stamps, made.data(), rules.sandbox)))
    return made, means, rules.sandbox


def _save(folder: str, file: str, content: bytes) -> None:
    from fusewire.util.files import replace_file

    try:
        names = os.listdir(folder)
        for name in names if len(names) > _MOST_FILES else ():
            os.unlink(f"{folder}/{name}")
        if len(content) < _LARGEST - _HASH:
            replace_file(file, source_hash(_FORMAT, content) + content, mode=0o600)
    except OSError:
        pass
