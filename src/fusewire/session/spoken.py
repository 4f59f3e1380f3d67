"""What a person tells the breakers in a message to the agent: agents may start in parallel, or more may be spent.

Only what is really said counts: not in a quotation, a code block, a quoted line or a tag, not in a question, and not in
a sentence that says the opposite. When in doubt it was not said; a person can always run `fusewire grant`.
"""

from __future__ import annotations

#: Lifts the limits on agents until the person speaks again.
SUDO = "SUDO PARALLEL"

#: More than anybody grants at once.
MOST = 1000.0

_OPPOSITE = frozenset(
    "not never no don't dont without cannot can't cant won't wont didn't isn't doesn't nobody refuse".split()
)

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "<": ">"}


def lifts_agents(text: str) -> bool:
    """Whether the limits on agents are lifted."""
    return any(SUDO in " ".join(words) for words in _sentences(text))


def granted(text: str) -> float:
    """The dollars of `grant another $5` or `grant $5 more`; 0 if nobody said so."""
    for words in _sentences(text):
        plain = [word.lower() for word in words]
        for at, word in enumerate(plain):
            if word != "grant":
                continue
            following = plain[at + 1 : at + 4]
            if following[:1] in (["another"], ["more"]):
                return _dollars(following[1:2])
            if "more" in following[1:]:
                return _dollars(following[:1])
    return 0.0


def _dollars(words: list[str]) -> float:
    amount = words[0].removeprefix("$") if words and words[0].startswith("$") else ""
    return float(amount) if amount.isascii() and amount.replace(".", "", 1).isdigit() else 0.0


def _sentences(text: str) -> list[list[str]]:
    """The sentences that say something, as words; without those that ask or deny."""
    found: list[list[str]] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            found += _of_line(_unquoted(line))
    return found


def _of_line(line: str) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    kept = []
    for word in line.split():
        end = word[-1]
        sentences[-1].append(word.rstrip(".,;:!?") or word)
        if end in ".!?;":
            if end != "?":
                kept.append(sentences[-1])
            sentences.append([])
    kept.append(sentences[-1])
    return [words for words in kept if words and _OPPOSITE.isdisjoint(word.lower() for word in words)]


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
