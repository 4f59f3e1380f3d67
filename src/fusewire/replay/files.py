"""Replay files and folders: each transcript once, for every manner of replaying it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fusewire.config.rules import Rules
from fusewire.engine.breaker import default_rules
from fusewire.replay.replayed import Manner, Replayed
from fusewire.replay.session import PastSession
from fusewire.util.errors import FusewireError

#: Of which sessions a person can answer: as each transcript says, or the same for all.
PROFILES = ("auto", "attended", "unattended")

#: Endings of files that a folder is searched for.
ENDINGS = (".jsonl", ".traj", ".json")

_AS_SHIPPED = (Manner(),)

_EXIT_STATUS = re.compile(rb'"exit_status": ?"([^"\\]{1,60})"')
_RESOLVED = re.compile(rb'"resolved": ?(true|false)')


def transcripts(paths: Iterable[str]) -> Iterator[str]:
    """The files that are meant: each that is named, and in folders those that end like a transcript, in order.

    What a sub-agent did is read with its session, so its own file is left out where the session's is there.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if name.endswith(ENDINGS) and not (name.startswith("agent-") and _has_session(folder)):
                    yield os.path.join(folder, name)


def _has_session(folder: str) -> bool:
    session, name = os.path.split(folder)
    return name == "subagents" and os.path.exists(f"{session}.jsonl")


def replay(path: str, manners: Sequence[Manner] = _AS_SHIPPED) -> list[Replayed]:
    """Run one transcript, in each manner; what cannot be read is said in the result, never raised."""
    found = [Replayed(path) for _ in manners]
    problem = said = ""
    try:
        _run(found, manners)
        said = outcome(path)
    except (FusewireError, OSError) as error:
        problem = str(error).replace("\n", " ")
    except Exception as error:  # one odd transcript of a thousand must not cost the others
        words = f"the breakers failed at call {found[0].calls}: {type(error).__name__}: {error}"
        problem = words.replace("\n", " ")
    for one in found:
        one.outcome, one.problem = said, problem
    return found


def _run(found: list[Replayed], manners: Sequence[Manner]) -> None:
    from fusewire.agents.transcripts.reader import Transcript

    rules = [manner.rules or default_rules() for manner in manners]
    transcript = Transcript(found[0].path, rules[0].prices)
    attended, attended_by = False, ""
    sessions = []
    for one, manner, own in zip(found, manners, rules, strict=True):
        if manner.profile != "auto":
            one.attended, one.attended_by = manner.profile == "attended", "as asked for"
        else:
            if not attended_by:
                attended, attended_by = transcript.is_attended()
            one.attended, one.attended_by = attended, attended_by
        sessions.append(PastSession(one, own, transcript, manner))
    try:
        for step in transcript.steps():
            for session in sessions:
                session.take(step)
    finally:  # of a file that is cut off, what was there
        for session in sessions:
            session.end()


def outcome(path: str) -> str:
    """How a run ended, where the file says so (SWE-agent): `submitted`, `exit_cost`, `resolved`; else nothing.

    The keys are looked for as bytes: inside a text of the same file their quotes would be escaped.
    """
    if path.endswith(".jsonl"):
        return ""
    status = ""
    before = b""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            text = before + block
            for match in _EXIT_STATUS.finditer(text):
                status = match[1].decode("utf-8", "replace")
            for match in _RESOLVED.finditer(text):
                return "resolved" if match[1] == b"true" else "unresolved"
            before = block[-100:]
    return status


def replay_all(
    paths: Iterable[str], jobs: int = 1, manners: Sequence[Manner] = _AS_SHIPPED
) -> Iterator[list[Replayed]]:
    """Each transcript in order, in each manner, as soon as it is through; with several jobs, in as many processes."""
    manners = [replace(manner, rules=manner.rules or default_rules()) for manner in manners]
    if jobs <= 1:
        for path in transcripts(paths):
            yield replay(path, manners)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    before = os.environ.get("PYTHONSAFEPATH", "")
    os.environ["PYTHONSAFEPATH"] = "1"  # the current folder may be a project that ships a module of some such name
    data = [(one.rules.to_data() if one.rules else (), one.pace, one.profile, one.name) for one in manners]
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_work, initargs=(data,))
    try:
        yield from pool.map(_work, transcripts(paths))
    except BrokenProcessPool:
        raise FusewireError("a process that read transcripts was killed (no memory left?); try fewer --jobs") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        os.environ["PYTHONSAFEPATH"] = before  # nothing is as good as unset


#: How a worker process replays: the same for all of its transcripts.
_working: Sequence[Manner] = ()


def _begin_work(data: list[tuple[Any, ...]]) -> None:
    """An interrupt is for the one who asked; a worker ends without a word."""
    import signal

    global _working
    _working = [Manner(Rules(*rules), *rest) for rules, *rest in data]
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _work(path: str) -> list[Replayed]:
    return replay(path, _working)
