"""Ring one: protected paths are read-only for a process and for everything that it starts.

`plan` says what must be mounted, `namespaces`, `bubblewrap` and `seatbelt` are the means, `support` finds out which of
them this machine has, and `start` turns this process into a command inside.
"""
