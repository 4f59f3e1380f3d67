"""The program that an agent starts for every tool call: `python3 -I -S /path/to/fusewire/hook.py AGENT`.

It is kept to a few lines because a script, unlike a module, is compiled each time it runs; the work is in
`gate`. `-I -S` leaves the installed packages out of reach, so the one folder it needs is named here; it comes last,
so that nothing that lies beside the package stands in for a module of Python's own.
"""

import gc
import sys
from posix import close, dup, read, write

#: Exit code of a broken installation: the message must not lock people out of their agent. Copilot denies on any code
#: but 0.
broken = 0 if sys.argv[1:2] == ["copilot"] else 1
if sys.version_info < (3, 11):  # noqa: UP036  # the plugin runs whatever python3 is
    found = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.stderr.write(f"fusewire: nothing is guarded: Python 3.11 or newer is needed, and python3 is {found} here\n")
    sys.exit(broken)


def fail(error: BaseException) -> None:
    """End with one line. An installation that is broken lets the call pass; a machine that has no more descriptors or
    memory does not, because it cannot be judged. A stop that is denied would keep the agent going."""
    scarce = isinstance(error, MemoryError) or getattr(error, "errno", 0) in (12, 23, 24)  # ENOMEM, ENFILE, EMFILE
    if not scarce and not any(words in str(error) for words in ("open files", "allocate memory", "failed to map")):
        text, code = f"fusewire: the hook is not installed properly, nothing is guarded: {error}", broken
    else:
        text, code = f"fusewire: the breaker has too few file descriptors or too little memory: {error!r}", broken
        name = read(0, 65536).partition(b'"hook_event_name"')[2].split(b'"', 2)[1:2]
        if sys.argv[1:2] != ["statusline"] and name in ([], [b"PreToolUse"], [b"BeforeTool"], [b"PermissionRequest"]):
            text, code = f"BLOCKED fusewire.failure: this call cannot be judged; {text}", 2
    write(2, text.replace("\n", " ").encode("utf-8", "replace") + b"\n")
    sys.exit(code)


gc.set_threshold(100_000)  # the process ends before there is anything to collect
root = __file__.rpartition("/fusewire/")[0]
sys.path.append(root)
try:
    bytes(32 << 20)  # not touched, so that it takes no time; and below: more than a hook needs of both
    for spare in [dup(2) for _ in range(16)]:
        close(spare)
except (MemoryError, OSError) as error:
    if getattr(error, "errno", 24) == 24:  # else standard error is closed
        fail(error)
try:
    from _frozen_importlib_external import SourceFileLoader

    import_cache = type(sys)("fusewire.gate.import_cache")  # run, not imported: that would first look through folders
    SourceFileLoader(import_cache.__name__, f"{root}/fusewire/gate/import_cache.py").exec_module(import_cache)
    finish = import_cache.install(f"{root}/fusewire")
except Exception:
    finish = None  # without it everything works, only slower
try:
    if sys.argv[1:2] == ["statusline"]:
        from fusewire.gate import statusline as gate
    else:
        from fusewire.gate import process as gate  # type: ignore[no-redef]
except Exception as error:
    fail(error)
gate.at_end = finish
gate.main(sys.argv[1:])
