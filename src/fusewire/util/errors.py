"""Define the errors as types. Messages are one line: a lower-case fact with its values."""

from __future__ import annotations


def shown(value: object) -> str:
    """A value as a message names it."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        text = f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 80 else f"{text[:77]}..."


def in_a_line(error: BaseException) -> str:
    """What went wrong, where nobody knows better words for it."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def is_exhaustion(error: BaseException) -> bool:
    """Whether the machine has no more descriptors or memory. Where a library could not be loaded, only words say so."""
    if isinstance(error, MemoryError) or getattr(error, "errno", 0) in (12, 23, 24):  # ENOMEM, ENFILE, EMFILE
        return True
    return any(words in str(error) for words in ("open files", "allocate memory", "failed to map", "out of memory"))


def is_broken(error: BaseException) -> bool:
    """Whether our installation is at fault, which must lock nobody out of their agent."""
    return isinstance(error, ImportError | SyntaxError) and not is_exhaustion(error)


class FusewireError(Exception):
    """Anything that Fusewire reports to a person as one line."""


class ConfigError(FusewireError):
    """A setting that cannot be used: which file, key and value, what is allowed; why, if it is not the value."""

    def __init__(self, file: str, key: str, value: object, allowed: str, why: str = "") -> None:
        refused = f"is refused: {why}" if why else "is refused"
        super().__init__(f"{file}: {key} = {shown(value)} {refused}{'; allowed: ' * bool(allowed)}{allowed}")
        self.file, self.key, self.value, self.allowed = file, key, value, allowed


class StoreError(FusewireError):
    """The state could not be read or written."""


class StoreRetry(StoreError):
    """Nothing of a unit of work was written, and it may be done again at once."""


class StoreRebuilt(StoreRetry):
    """The storage was damaged, has been rebuilt in the middle of a transaction, and nothing of that was written."""


class NotFound(FusewireError):
    """No circuit of that name."""


class InvalidTransition(FusewireError):
    """A step that the phase table does not have; nothing was changed."""


class AgentRefused(FusewireError):
    """An act that only a person may do, asked for from inside an agent."""
