"""Give the steps of the pipeline the project of an event, its rules and store, and its command line, read once."""

from __future__ import annotations

import os

from fusewire.breakers.session.opening import quick_store
from fusewire.config.rules import SCOPE_FILE, find_project, load_rules
from fusewire.core.events import changes_files
from fusewire.guard.plain import only_look, plain_commands
from fusewire.scopes.orders import Orders, read_orders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.config.rules import Rules
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.guard.check import Reading
    from fusewire.guard.protected import Protected
    from fusewire.stores.scoped import ScopedStore
    from fusewire.stores.sqlite import SqliteStore

#: What the depth says of an event that came by HTTP; see `breakers.session.nesting`, which most calls need not load.
_BY_HTTP = "0"


#: Characters of the name of a run, which begins with `run-`.
_LONGEST_TASK = 40


class Context:
    """The project and the call of one event; what takes time is made on first use."""

    __slots__ = (
        *("_attended", "_commands", "_home", "_protected", "_reading", "changed", "earlier", "environment", "event"),
        *("is_by_http", "is_nested", "logged", "looks", "orders", "plain", "refusal", "root", "rules", "start"),
    )

    def __init__(
        self, event: Event, root: str, start: str, environment: Mapping[str, str], rules: Rules | None = None
    ) -> None:
        self.event = event
        #: the project whose rules hold for the agent
        self.root = root
        #: the folder that the agent was started in
        self.start = start
        self.environment = environment
        self.rules: Rules = rules or load_rules(root, keeps=True)
        #: halts and pauses of the person
        self.orders = read_orders(root) if rules is None else Orders()  # an event of the past obeys none
        if self.orders.pauses:
            self._pause_rules()
        depth = environment.get("FUSEWIRE_DEPTH")
        #: whether the event came by HTTP: an agent may have made it up
        self.is_by_http = depth == _BY_HTTP
        #: whether another agent has started this one
        self.is_nested = bool(depth)
        #: the paths that a tool which changes files names
        self.changed: tuple[str, ...] = event.paths if changes_files(event.tool) else ()
        #: the commands of a plain line, which needs not be read; None of any other
        self.plain = plain_commands(event.command) if event.command else []
        # A skill may have commands in it that its program runs by itself: only what they have done can be seen.
        opaque = changes_files(event.tool) or event.tool == "Skill"
        #: whether the call changes nothing
        self.looks = self.plain is not None and not opaque and only_look(self.plain)
        #: the decision of an earlier step that refuses the call
        self.refusal: Decision | None = None
        #: what rules in `log` mode would have answered
        self.logged: list[Decision] = []
        #: what the steps so far have decided
        self.earlier: list[Decision] = []
        self._commands = self.plain
        self._home = ""
        self._protected: Protected | None = None
        self._reading: Reading | None = None
        self._attended: bool | None = None

    @property
    def home(self) -> str:
        """The project that the command line finds where the agent was started: what people begin there lies in it.

        It differs from `root` where a repository lies in the folder of a guarded project: an agent can make one, so
        that it must not choose the rules; but slices, phases and loops belong to the repository.
        """
        if not self._home:
            self._home = self.root if self.root == self.start else find_project(self.start)
        return self._home

    @property
    def run(self) -> str:
        """The run of `fusewire run` that the agent is a part of."""
        run: str = self.environment.get("FUSEWIRE_RUN", "")[:_LONGEST_TASK]
        return run

    def find_task(self) -> str:
        """That run, else the slice that the agent works on."""
        if self.run or not self.is_scoped:
            return self.run
        from fusewire.breakers.attempt.scope.active import slice_of

        return slice_of(self.home, self.event.session)

    @property
    def store(self) -> SqliteStore | ScopedStore:
        return quick_store(self.root, self.rules)

    @property
    def commands(self) -> list[list[str]]:
        """What the line would run, as far as its words say."""
        if self._commands is None:
            from fusewire.guard.shell.commands import simple_commands

            self._commands = simple_commands(self.event.command or "")
        return self._commands

    def read_commands(self) -> list[list[str]]:
        """The same, read as a shell would also where the line is plain: what it wraps is found as well."""
        if self.plain and self._commands is self.plain:
            self._commands = None
        return self.commands

    @property
    def is_scoped(self) -> bool:
        """Whether a slice with a scope is active."""
        return os.path.lexists(os.path.join(self.home, SCOPE_FILE))

    @property
    def protected(self) -> Protected:
        """The protected files of the project, and the agent's own record of the session."""
        if self._protected is None:
            from fusewire.guard.policy import below, protected_of

            moving = below(self.root, self.start) if self.root != self.start else ()
            self._protected = protected_of(self.root, self.rules, (*_records(self.event), *moving))
        return self._protected

    @property
    def reading(self) -> Reading | None:
        """What the line does to files, with the scripts, recipes and code that it runs; None if there is no line."""
        if self._reading is None and self.event.command:
            from fusewire.guard.check import read_command

            event = self.event
            self._reading = read_command(
                event.command or "", cwd=event.cwd or self.root, protected=self.protected, lists=self.is_scoped
            )
        return self._reading

    @property
    def was_read(self) -> bool:
        """Whether the line had to be read in full."""
        return self._reading is not None

    def _pause_rules(self) -> None:
        """Let the rules that a person has paused only log."""
        from time import time

        from fusewire.scopes.orders import paused_rules

        patterns = paused_rules(self.orders, self.root, self.event.session, time())
        self.rules.modes = (*self.rules.modes, *((pattern, "log") for pattern in patterns))

    @property
    def is_attended(self) -> bool:
        """Whether a person can answer: where nothing says so, nobody is there."""
        if self._attended is None:
            self._attended = self._find_person()
        return self._attended

    def _find_person(self) -> bool:
        profile = self.rules.tool.get("profile")
        if profile == "unattended" or self.is_nested or self.environment.get("CI", "") not in ("", "0", "false"):
            return False
        if profile != "attended":
            from fusewire.agents import agent_named

            if not self.event.agent or not agent_named(self.event.agent).is_attended(self.environment):
                return False
        # Last, because it costs a look at the processes above: an agent may have cleaned the environment.
        from fusewire.agents.caller import client_in_agent

        return not client_in_agent()

    @property
    def asks(self) -> bool:
        """Whether a person can be asked before this call."""
        if self.event.kind != "before_tool" or not self.event.agent or not self.is_attended:
            return False
        from fusewire.agents import agent_named

        return agent_named(self.event.agent).ASKS

    @property
    def cannot_ask(self) -> str:
        """Why it is not certain that a person is asked before this call; empty if it is."""
        if self.event.unasked and self.asks:
            return f"this session may skip the question ({self.event.unasked})"
        if self.asks:
            return ""
        if not self.is_attended:
            from fusewire.guard.tools import UNATTENDED

            return UNATTENDED
        return "this agent's program cannot ask the user"


def _records(event: Event) -> tuple[str, ...]:
    """What the agent's own program writes down of the session: what it costs is read there."""
    path = event.transcript
    if not path or not os.path.isabs(path) or not path.endswith(".jsonl"):
        return ()
    # Helpers have a folder of their own: named like the file, or after the session.
    folder = os.path.join(os.path.dirname(path), event.session) if event.session else path.removesuffix(".jsonl")
    return (path, f"{path.removesuffix('.jsonl')}/", f"{folder}/")
