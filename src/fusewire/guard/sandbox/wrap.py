"""The program that Claude Code's shell wrapper starts for every command: `python3 -I -S .../wrap.py COMMAND`.

It is kept short because a script is compiled each time it runs; the work is in `shell`. Modules that it always needs
are named here, so that no folder has to be searched for them.
"""

import sys
from _frozen_importlib_external import spec_from_file_location
from posix import execv

PACKAGES = ("fusewire", "fusewire.guard", "fusewire.guard.sandbox")
NAMES = ("shell", "lines", "namespaces", "prepared", "start")
MODULES = tuple(f"{PACKAGES[2]}.{name}" for name in NAMES)

root = __file__.rpartition("/fusewire/")[0]


class SandboxFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]
        place = f"{root}/{name.replace('.', '/')}"
        if name in PACKAGES:
            return spec_from_file_location(name, f"{place}/__init__.py", submodule_search_locations=[place])
        return spec_from_file_location(name, f"{place}.py") if name in MODULES else None


if __name__ == "__main__":
    sys.path.append(root)  # last, so that nothing beside the package stands in for a module of Python's own
    sys.meta_path.insert(0, SandboxFinder)
    try:
        from fusewire.guard.sandbox.shell import main
    except Exception:  # a broken installation: nobody loses their shell, and the hook says what is wrong
        execv("/bin/bash", ["bash", "-c", *sys.argv[1:]])
    main(sys.argv[1:])
