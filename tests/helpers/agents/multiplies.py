"""Fork so many times a second, deaf to requests; with `all`, every child does the same, else they only live."""

import os
import signal
import sys
import time

pause, until = 1 / float(sys.argv[1]), time.monotonic() + 8
signal.signal(signal.SIGTERM, signal.SIG_IGN)
born = 0
while time.monotonic() < until and born < 300:
    time.sleep(pause)
    born += 1
    if os.fork() == 0:
        if "all" not in sys.argv:
            time.sleep(60)
        born = 0
    if born == 3:
        os.write(1, b"ready\n")
time.sleep(60)
