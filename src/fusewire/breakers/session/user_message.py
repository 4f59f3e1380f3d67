"""Read what a person grants the breakers in a message to the agent: agents in parallel, dollars, API calls.

Only what is really said counts: no question, no condition, nothing that is reported, denied, or stands in a quotation,
a code block, a quoted line or an element. In doubt nothing is granted; a person can always run `fusewire grant`.
"""

from __future__ import annotations

#: Lifts the limits on agents until the person speaks again.
SUDO = "SUDO PARALLEL"

#: More than anybody grants at once: dollars, and calls.
MOST = 1000.0

_DENYING = frozenset("not never no don't dont without cannot can't cant won't wont didn't refuse stop instead".split())
_ASKING = frozenset("what why how does do did is are was should shall when which who whether".split())
_MODAL = frozenset("can could would should may might shall will must".split())
_IF = frozenset("if unless when whenever once whether until suppose maybe perhaps".split())
_REPORTING = frozenset(
    "say says said saying ask asks asked asking tell tells told wrote writes read reads type types typed"
    " message phrase words example mention".split()
)

#: Directly behind it, they make it a condition, or a sentence about it.
_BEHIND = _IF | frozenset("or only after later tomorrow provided mean means is was does would lifts".split())

#: What may stand in front of `grant` in its own clause.
_OPENING = frozenset(
    "ok okay please yes yeah yep sure fine alright good great well now then so and but also just go on ahead i"
    " hereby thanks continue".split()
)

#: A word that denies or reports something stands at most so many words before it.
_REACH = 4

_END, _LINE = ".!?;", "\n"
_BREAKS = (",", ":", "-", "\u2013", "\u2014", _LINE)

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "<": ">"}


def lifts_agents(text: str) -> bool:
    """Whether the limits on agents are lifted."""
    wanted = SUDO.split()
    for words, asks in _sentences(text):
        for at in range(len(words)):
            if words[at : at + 2] == wanted:
                before, behind = _lower(words[:at]), _lower(words[at + 2 :])
                clause = _last_clause(before, (",", _LINE))
                near = {*clause[-_REACH:]} & (_REPORTING | _IF) or {*before[-_REACH:]} & _DENYING
                asked = clause[:1] and (clause[0] in _ASKING or not _MODAL.isdisjoint(clause[:2]))
                asked = asked or (asks and not any(one in _BREAKS for one in behind))
                if not (near or asked or _is_condition(behind)):
                    return True
    return False


def granted_dollars(text: str) -> float:
    """The dollars of `grant another $5` or `grant $5 more`; 0 if nobody said so."""
    amount, unit = _granted(text, "$")
    return float(amount) if unit == "$" and amount.replace(".", "", 1).isdigit() else 0.0


def granted_calls(text: str) -> int:
    """The API calls of `grant another 20 calls` or `grant 20 more API calls`; 0 if nobody said so."""
    amount, unit = _granted(text, "calls")
    return int(amount) if unit == "calls" and amount.isdigit() and len(amount) < 9 else 0


def _granted(text: str, wanted: str) -> tuple[str, str]:
    """The amount and its unit, `$` or `calls`, where more of what is wanted is granted."""
    for words, asks in _sentences(text):
        for at, word in enumerate(words):
            if word.lower() != "grant":
                continue
            before, behind = _lower(words[:at]), _lower(words[at + 1 :])
            amount, unit, rest = _amount(behind)
            if unit == wanted and _is_order(before) and not _is_condition(rest) and not (asks and _LINE not in behind):
                return amount, unit
    return "", ""


def _amount(words: list[str]) -> tuple[str, str, list[str]]:
    """`another $5`, `$5 more`, `20 more API calls`: the amount, the unit, and what comes behind."""
    more = words[:1] in (["another"], ["more"])
    amount, rest = "".join(words[more : more + 1]), words[more + 1 :]
    if rest[:1] == ["more"]:
        more, rest = True, rest[1:]
    if not more or not amount.isascii():
        return "", "", rest
    if amount.startswith("$"):
        return amount[1:], "$", rest
    rest = rest[1:] if rest[:1] in (["api"], ["external"]) else rest
    return amount, "calls" if rest[:1] in (["calls"], ["call"]) else "", rest[1:]


def _is_order(before: list[str]) -> bool:
    """Whether `grant` begins its clause, and nothing in front of it asks, denies, reports or makes it a condition."""
    asked = before[:1] and before[0] in _ASKING | _MODAL
    doubt = {*before} & (_REPORTING | _IF) or {*before[-_REACH:]} & _DENYING
    return not (asked or doubt) and _OPENING.issuperset(_last_clause(before, _BREAKS))


def _is_condition(behind: list[str]) -> bool:
    return not _BEHIND.isdisjoint(behind[1:2] if behind[:1] == [","] else behind[:1])


def _last_clause(words: list[str], breaks: tuple[str, ...]) -> list[str]:
    starts = (at + 1 for at in range(len(words) - 1, -1, -1) if words[at] in breaks)
    return words[next(starts, 0) :]


def _lower(words: list[str]) -> list[str]:
    return [word.lower().replace("\u2019", "'") for word in words]


def _sentences(text: str) -> list[tuple[list[str], bool]]:
    """The sentences that are the person's own, as words and marks between them, and whether each asks something."""
    own: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            own.append("")
        else:
            quotes = fenced or line.lstrip().startswith(">") or line.startswith(("    ", "\t"))
            own.append("" if quotes else line)
    found: list[tuple[list[str], bool]] = []
    words: list[str] = []
    for line in _unquoted("\n".join(own)).split("\n"):
        if not line.strip() and words:
            found.append((words, False))
            words = []
        for word in line.split():
            bare = word.rstrip(".,;:!?")
            marks = word[len(bare) :]
            words += [bare] if bare else []
            if marks and marks[-1] in _END:
                found.append((words, "?" in marks))
                words = []
            elif marks:
                words.append(marks[-1])
        if words:
            words.append(_LINE)
    return [*found, (words, False)]


def _unquoted(text: str) -> str:
    """The text without what stands in quotes or in an element; an apostrophe inside a word is none."""
    kept = []
    at = 0
    while at < len(text):
        closing = _QUOTES.get(text[at])
        opens = closing is not None and (at == 0 or not text[at - 1].isalnum())
        end = text.find(closing, at + 1) if opens and closing else -1
        # A single quote may be an apostrophe, and a bracket less than; the others close in the same paragraph.
        if end > at and ("\n" if text[at] in "'\u2018<" else "\n\n") not in text[at:end]:
            name = text[at + 1 : end].split()[:1] if text[at] == "<" else []
            close = text.find(f"</{name[0]}>", end) if name else -1
            kept.append(" ")
            at = (close + len(name[0]) + 3 if close > end else end + 1) if name else end + 1
        else:
            kept.append(text[at])
            at += 1
    return "".join(kept)
