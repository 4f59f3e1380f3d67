"""The program that an agent starts for every tool call: `python3 -I -S /path/to/fusewire/hook.py AGENT`.

It is kept to a few lines because a script, unlike a module, is compiled anew each time it runs; the work is in
`gate`. `-I -S` leaves the installed packages out of reach, so the one folder it needs is named here; it comes last,
so that nothing that lies beside the package stands in for a module of Python's own.
"""

import gc
import sys

#: How an installation that is broken ends: it is said, but it locks nobody out of their agent. Copilot denies whatever
#: ends with anything but 0.
broken = 0 if sys.argv[1:2] == ["copilot"] else 1
if sys.version_info < (3, 11):  # noqa: UP036  # the plugin runs whatever python3 is
    found = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.stderr.write(f"fusewire: nothing is guarded: Python 3.11 or newer is needed, and python3 is {found} here\n")
    sys.exit(broken)
gc.set_threshold(100_000)  # the process ends before there is anything to collect
root = __file__.rpartition("/fusewire/")[0]
sys.path.append(root)
try:
    from _frozen_importlib_external import SourceFileLoader

    hotload = type(sys)("fusewire.hotload")  # run, not imported: that would first look through folders
    SourceFileLoader(hotload.__name__, f"{root}/fusewire/hotload.py").exec_module(hotload)
    finish = hotload.install(f"{root}/fusewire")
except Exception:
    finish = None  # without it everything works, only slower
try:
    if sys.argv[1:2] == ["statusline"]:
        from fusewire import statusline as gate
    else:
        from fusewire import gate  # type: ignore[no-redef]
except (ImportError, SyntaxError) as error:
    sys.stderr.write(f"fusewire: the hook is not installed properly, nothing is guarded: {error}\n")
    sys.exit(broken)
gate.at_end = finish
gate.main(sys.argv[1:])
