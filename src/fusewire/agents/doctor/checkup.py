"""Check how each agent is guarded. A finding is something that keeps an agent unguarded or makes it slow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from fusewire.agents.doctor.http_reports import reports_problem
from fusewire.agents.doctor.programs import version_of
from fusewire.agents.doctor.rings import broken_wrapper, rings, wrapper_of
from fusewire.agents.install.canary import Canary, fly
from fusewire.agents.install.client import Client, Registration
from fusewire.agents.install.command import line_of, parts_of, words_of
from fusewire.agents.install.files import SettingsFile, settings_or_none
from fusewire.agents.install.http import reports_to_us
from fusewire.agents.install.merge import InstallOptions, is_current, refuse_unread
from fusewire.agents.install.registrations import registrations
from fusewire.agents.registry import CLIENTS
from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject
from fusewire.util.programs import find_program

#: Allowed calls that are measured.
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What is wrong, and the command or the act that mends it."""

    about: str
    what: str
    do: str


@dataclass(slots=True)
class Checkup:
    """What was found out about one agent."""

    client: Client
    program: str | None
    version: str | None
    registered: list[Registration] = field(default_factory=list)
    findings: list[DoctorFinding] = field(default_factory=list)
    #: what a person should know, although nothing is wrong
    notes: list[str] = field(default_factory=list)
    canary: Canary | None = None
    #: what guards its shell commands
    rings: list[str] = field(default_factory=list)

    @property
    def is_unguarded(self) -> bool:
        """It is installed, and our hook is not registered with it."""
        return self.program is not None and not self.registered

    def finds(self, what: str, do: str) -> None:
        finding = DoctorFinding(self.client.name, what, do)
        if finding not in self.findings:
            self.findings.append(finding)

    def to_json(self) -> JsonObject:
        canary = self.canary
        return {
            "name": self.client.name,
            "program": self.program,
            "version": self.version,
            "registered": [
                {
                    "scope": one.scope,
                    "file": one.file,
                    "events": sorted(one.hooks),
                    "command": line_of(one.gate(self.client)),
                    "http": None if (to := one.http(self.client)) is None else to.url(self.client.name),
                }
                for one in self.registered
            ],
            "rings": self.rings,
            "canary": None if canary is None else asdict(canary) | {"ratio": canary.ratio},
            "findings": [asdict(finding) for finding in self.findings],
            "notes": self.notes,
        }


def all_checkups(root: str, line: list[str], *, canary: bool, sandboxes: bool) -> list[Checkup]:
    """Every agent that we know. `line` is the hook of this installation, without the agent's name; `sandboxes`: this
    machine can make a sandbox."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(CLIENTS)) as pool:  # each takes up to a second to say its version
        checkups = list(pool.map(lambda client: _begin(client, root), CLIENTS.values()))
    for checkup in checkups:
        _settings_files(checkup, root)
        for one in checkup.registered:
            _registration(checkup, one, [*line, checkup.client.name])
            for what, do in checkup.client.distrust(one, root):
                checkup.finds(what, do)
            to = one.http(checkup.client)
            silence = None if to is None else reports_problem(checkup.client, to, root)
            if silence is not None:
                checkup.finds(*silence)
        if checkup.registered:
            _switched_off(checkup, root)
            _twice(checkup)
            checkup.notes += checkup.client.undecided(root)
        for what, do in broken_wrapper(checkup.client, root, line):
            checkup.finds(what, do)
        checkup.rings = rings(checkup.client, root, checkup.registered, sandboxes)
        if canary:
            _fly(checkup, wrapper_of(checkup.client, root) if sandboxes else "")
    return checkups


def _begin(client: Client, root: str) -> Checkup:
    program = find_program(client.name)
    version = version_of(program, client.known.home_variable) if program else None
    return Checkup(client, program, version, list(registrations(client, root)))


def _settings_files(checkup: Checkup, root: str) -> None:
    """Report settings that cannot be read, of an agent that is installed or registered."""
    if checkup.program is None and not checkup.registered:
        return
    for place in checkup.client.places(root).values():
        try:
            refuse_unread(SettingsFile(place.path).read(), place.path, checkup.client)
        except (FusewireError, OSError) as error:
            checkup.finds(f"its settings cannot be read: {error}", f"mend {place.path}")


def _registration(checkup: Checkup, one: Registration, line: list[str]) -> None:
    """Whether what is registered is there, is ours, and is all of it."""
    client, http = checkup.client, one.http(checkup.client)
    mend = client.install_line(one.scope, http)
    known = len(checkup.findings)
    missing = [event for event in client.events if event not in one.hooks]
    if missing:
        checkup.finds(f"not registered in {one.file} for {', '.join(missing)}", mend)
    for handler in (handler for handlers in one.hooks.values() for handler in handlers):
        if reports_to_us(handler, client.name):
            continue
        lost = _lost(handler, client, one)
        if lost:
            are = "are" if len(lost) > 1 else "is"
            what = f"{' and '.join(lost)}, which {are} registered in {one.file}, {are} not there: nothing is guarded"
            checkup.finds(what, mend)
            continue
        for problem in _outdated(handler, client, one, line):
            checkup.finds(problem, mend)
    if len(checkup.findings) == known and one.scope != "plugin":
        text = SettingsFile(one.file).read()
        if text is not None and not is_current(text, one.file, InstallOptions(client, line, http), any_wrapper=True):
            checkup.finds(f"the hooks in {one.file} are those of another version of Fusewire", mend)


def _lost(handler: JsonObject, client: Client, one: Registration) -> list[str]:
    """What of a hook is not there any more; all of it at once, since an environment goes with everything in it."""
    python, hook = parts_of(handler, client.name)
    if not hook:
        program = [] if one.scope == "plugin" else words_of(handler)[:1]
        return [word for word in program if shutil.which(word) is None]
    return [python] * (shutil.which(python) is None) + [hook] * (not os.path.isfile(hook))


def _outdated(handler: JsonObject, client: Client, one: Registration, line: list[str]) -> Iterator[str]:
    """What of a hook that is there could be better. A plugin brings its own."""
    _, hook = parts_of(handler, client.name)
    if one.scope == "plugin":
        return
    if not hook:
        yield f"`{' '.join(words_of(handler))}` in {one.file} works, but starts slowly"
    elif not os.path.samefile(hook, line[3]):
        yield f"{hook}, which is registered in {one.file}, belongs to another installation than this one"


def _switched_off(checkup: Checkup, root: str) -> None:
    client = checkup.client
    for path in [*(place.path for place in client.places(root).values()), *client.other_settings(root)]:
        settings = settings_or_none(path)
        for keys, cure in client.switches(settings):
            checkup.finds(f"{'.'.join(keys)} in {path} switches hooks off: nothing is guarded", cure)
        if client.managed_only and isinstance(settings, dict) and settings.get(client.managed_only) is True:
            checkup.finds(f"{client.managed_only} in {path} lets only managed hooks run", "ask your administrator")


def _twice(checkup: Checkup) -> None:
    """Each of them is a process for every call, unless the agent sees that they are the same."""
    ones, client = checkup.registered, checkup.client
    if not any(client.adds_calls(ones[0].gate(client), one.gate(client)) for one in ones[1:]):
        return
    where = ", ".join(one.scope for one in ones)
    checkup.finds(
        f"registered {len(ones)} times ({where}): every call starts as many processes of ours",
        checkup.client.uninstall_line(ones[-1].scope),
    )


def _fly(checkup: Checkup, wrapper: str) -> None:
    for one in checkup.registered:
        handler = one.gate(checkup.client)
        if handler is not None:
            checkup.canary = fly(checkup.client, handler, _ROUNDS, wrapper)
            if checkup.canary.intact is False:
                checkup.finds(f"a shell command changes protected files through {wrapper}", "fusewire sandbox --check")
            if checkup.canary.problem:
                if not _lost(handler, checkup.client, one):  # that has been found already
                    checkup.finds(f"{checkup.canary.problem} ({one.file})", checkup.client.install_line(one.scope))
                return
