"""Read what a person tells the breakers in a message to the agent: agents may start in parallel, or spend more.

Only what is really said counts: not in a quotation, a code block, a quoted line or a tag, not where it is asked about,
and not behind a word that denies it. A person can always run `fusewire grant`.
"""

from __future__ import annotations

#: Lifts the limits on agents until the person speaks again.
SUDO = "SUDO PARALLEL"

#: More than anybody grants at once.
MOST = 1000.0

_DENYING = frozenset("not never no don't dont without cannot can't cant won't wont didn't refuse stop instead".split())
_ASKING = frozenset("what why how does do did is are was should shall when which who whether".split())

#: A word that denies something stands at most so many words before it.
_REACH = 4

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "<": ">"}


def lifts_agents(text: str) -> bool:
    """Whether the limits on agents are lifted."""
    wanted = SUDO.split()
    return any(
        words[at : at + len(wanted)] == wanted and _is_meant(words, at, asks)
        for words, asks in _sentences(text)
        for at in range(len(words))
    )


def granted(text: str) -> float:
    """The dollars of `grant another $5` or `grant $5 more`; 0 if nobody said so."""
    for words, asks in _sentences(text):
        for at, word in enumerate(words):
            if word.lower() == "grant" and _is_meant(words, at, asks):
                following = [one.lower() for one in words[at + 1 : at + 4]]
                if following[:1] in (["another"], ["more"]):
                    return _dollars(following[1:2])
                if "more" in following[1:]:
                    return _dollars(following[:1])
    return 0.0


def _is_meant(words: list[str], at: int, asks: bool) -> bool:
    """Whether what begins there is said, and neither denied by the words before it nor asked about."""
    before = [word.lower() for word in words[:at]]
    return _DENYING.isdisjoint(before[-_REACH:]) and not (asks and before and before[0] in _ASKING)


def _dollars(words: list[str]) -> float:
    amount = words[0].removeprefix("$") if words and words[0].startswith("$") else ""
    return float(amount) if amount.isascii() and amount.replace(".", "", 1).isdigit() else 0.0


def _sentences(text: str) -> list[tuple[list[str], bool]]:
    """The sentences that are the person's own, as words, and whether each of them asks something."""
    found: list[tuple[list[str], bool]] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            found += _of_line(_unquoted(line))
    return found


def _of_line(line: str) -> list[tuple[list[str], bool]]:
    found: list[tuple[list[str], bool]] = []
    words: list[str] = []
    for word in line.split():
        words.append(word.rstrip(".,;:!?") or word)
        if word[-1] in ".!?;":
            found.append((words, word[-1] == "?"))
            words = []
    return [*found, (words, False)]


def _unquoted(line: str) -> str:
    """The line without what stands in quotes or is a tag; an apostrophe inside a word is none."""
    kept = []
    at = 0
    while at < len(line):
        closing = _QUOTES.get(line[at])
        opens = closing is not None and (at == 0 or not line[at - 1].isalnum())
        end = line.find(closing, at + 1) if opens and closing else -1
        if end > at:
            kept.append(" ")
            at = end + 1
        else:
            kept.append(line[at])
            at += 1
    return "".join(kept)
