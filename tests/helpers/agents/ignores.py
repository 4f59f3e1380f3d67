"""Ignore every request to end, with a child that does so, too."""

import os
import signal
import time

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.fork()
os.write(1, b"ready\n")
time.sleep(60)
