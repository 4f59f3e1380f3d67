"""Files that people write to define a scope: read whole, or with one line that says why not."""

from __future__ import annotations

import os

from fusewire.util.errors import FusewireError
from fusewire.util.files import read_regular


def read_source(root: str, file: str, limit: int, allowed: str) -> bytes:
    """The content of a file of the project that must be there."""
    try:
        data = read_regular(os.path.join(root, file), limit + 1)
    except OSError as error:
        raise FusewireError(f"{file}: it cannot be read: {error.strerror or error}; allowed: {allowed}") from None
    if len(data) > limit:
        raise FusewireError(f"{file}: it is larger than {limit // 1_000_000} MB; allowed: {allowed}")
    return data
