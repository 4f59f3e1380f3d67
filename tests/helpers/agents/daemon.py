"""Fork twice, with a session of its own in between, as daemons do; without the pipes; deaf to requests.

The arguments: `exit` or `stay` for the first process, `bare` for a daemon whose environment is emptied.
"""

import os
import signal
import sys
import time


def become_a_daemon() -> None:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    if "bare" in sys.argv:
        os.execve("/bin/sleep", ["sleep", "60"], {})
    time.sleep(60)
    os._exit(0)


child = os.fork()
if child == 0:
    become_a_daemon()
os.waitpid(child, 0)
os.write(1, b"ready\n")
if "stay" in sys.argv:
    time.sleep(60)
