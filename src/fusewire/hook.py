"""The program that an agent starts for every tool call: `python3 -I -S /path/to/fusewire/hook.py AGENT`.

It is kept to a few lines because a script, unlike a module, is compiled anew each time it runs; the work is in
`gate`. `-I -S` leaves the installed packages out of reach, so the one folder it needs is named here.
"""

import sys

sys.path.insert(0, __file__.rpartition("/fusewire/")[0])
try:
    from fusewire.gate import main
except (ImportError, SyntaxError) as error:  # a broken installation is said, but it locks nobody out of their agent
    sys.stderr.write(f"fusewire: the hook is not installed properly, nothing is guarded: {error}\n")
    sys.exit(1)
main(sys.argv[1:])
