"""When it is asked to end, say more than a pipe holds, and only then end."""

import os
import signal
import sys
import time
from types import FrameType


def speak(number: int, frame: FrameType | None) -> None:
    sys.stdout.buffer.write(b"y" * 300_000 + b"last words")
    sys.stdout.buffer.flush()
    os._exit(7)


signal.signal(signal.SIGTERM, speak)
os.write(1, b"ready\n")
time.sleep(60)
