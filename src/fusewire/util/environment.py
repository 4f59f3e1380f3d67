"""Clean the environment: variables by which a caller could change this program, and those of the commands it runs."""

from __future__ import annotations

import os

#: Read by the dynamic loader, by Python as it starts, by libfaketime and by libraries that load others.
_PREFIXES = ("LD_", "DYLD_", "PYTHON", "NIX_PYTHON", "FAKETIME", "OPENSSL_")
_NAMES = frozenset(("GCONV_PATH", "LOCPATH"))

#: Usual in containers, and none of them can make Python run other code or tell another time.
_HARMLESS = frozenset(
    "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PYTHONFAULTHANDLER"
    " PYTHONNOUSERSITE PYTHONOPTIMIZE".split()
)

#: Stands before the name of a variable that was set aside when the program started again without it.
SET_ASIDE = "FUSEWIRE_SET_ASIDE_"


def alters(name: str) -> bool:
    """Whether a variable of this name can change what this program does."""
    return (name.startswith(_PREFIXES) or name in _NAMES) and name not in _HARMLESS


def altering() -> list[str]:
    """The variables of this process that can change what it does."""
    return [name for name in os.environ if alters(name)]


def children_environment() -> dict[str, str]:
    """The environment for a command that runs on the caller's behalf: what was set aside is its own again."""
    return {name.removeprefix(SET_ASIDE): value for name, value in os.environ.items()}
