"""How the tests of `find` are put together: True, False, or None where it may be either; what is reached, is done."""

from __future__ import annotations

from fusewire.shell.outputs import filled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.programs.trees import Entry

    Test = Callable[[Entry, bool], bool | None]


def true(entry: Entry, sure: bool) -> bool:
    return True


def unsure(entry: Entry, sure: bool) -> None:
    return None


def both(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        first = one(entry, sure)
        if first is False:
            return False
        second = other(entry, sure and first is True)
        return False if second is False else None if first is None or second is None else True

    return test


def either(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        first = one(entry, sure)
        if first is True:
            return True
        second = other(entry, sure and first is False)
        return True if second is True else None if first is None or second is None else False

    return test


def comma(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        one(entry, sure)
        return other(entry, sure)

    return test


def negated(one: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        answer = one(entry, sure)
        return None if answer is None else not answer

    return test


def formatted(form: str, entry: Entry) -> str:
    """`%p` the path, `%P` without where it was found, `%f` its name, `%h` its folder; the rest is unknown."""
    folder = entry.shown.rpartition("/")[0] or "."
    below = entry.shown.split("/")[-entry.depth :] if entry.depth else []
    start = entry.shown.removesuffix("/".join(below)).rstrip("/") or entry.shown
    known = {"p": entry.shown, "P": "/".join(below), "f": entry.name, "h": folder, "H": start}
    known["d"] = str(entry.depth)
    return filled(form, known, longer="ABCT")
