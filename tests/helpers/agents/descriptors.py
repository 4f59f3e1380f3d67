"""Say which descriptors it was given."""

import os


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


found = [str(number) for number in range(1024) if is_open(number)]
os.write(1, " ".join(found).encode())
