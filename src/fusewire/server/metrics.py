"""`/metrics` for Prometheus: the numbers of all projects, collected when they are asked for (names: docs/api.md).

Labels have few values: a project, a kind, a state, a breaker. What belongs to one session is added up by its breaker,
so that no id of a session and no text of anybody's becomes a label.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from fusewire import __version__
from fusewire.core.state import Policy
from fusewire.server.requests import require_role
from fusewire.util.errors import FusewireError
from fusewire.util.json_types import Kind, State
from fusewire.views.panel import UnreadablePanel
from fusewire.views.session_list import STATES as SESSION_STATES
from fusewire.views.trail import Trail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric
    from starlette.applications import Starlette
    from starlette.requests import Request

    from fusewire.server.live import Live
    from fusewire.server.projects import Projects, WatchedProject
    from fusewire.stores.rows import AuditRow
    from fusewire.views.cards import CircuitCard

#: Circuits of one project that have a line of their own: open ones first, then those that are nearest to it.
_CIRCUITS = 200

#: Their circuits are named in files of the project or of ours; those of the others come and go with sessions.
_NAMED = ("constraint", "loop", "phase")
_STATES = get_args(State)


class Numbers(Collector):
    """Everything but the histogram."""

    def __init__(self, projects: Projects, live: Live) -> None:
        self.projects = projects
        self.live = live
        self.trips = [Trips(project) for project in projects.measured()]

    def describe(self) -> Iterable[Metric]:
        """Nothing: the stores need not be read in order to start."""
        return ()

    def _followed(self) -> list[Trips]:
        """Those of the projects that are measured, each counted from when it was measured first."""
        known = {trips.project: trips for trips in self.trips}
        self.trips = [known.get(one) or Trips(one) for one in self.projects.measured()]
        return self.trips

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        for trips in self._followed():
            families.add_project(trips.project, trips)
        yield from families.all()
        listeners = GaugeMetricFamily("fusewire_page_listeners", "Pages and programs that listen to the events.")
        listeners.add_metric([], self.live.listeners)
        yield listeners
        build = InfoMetricFamily("fusewire_build", "The version that runs.")
        build.add_metric([], {"version": __version__})
        yield build


class _Families:
    """The numbers of all projects at one moment; of a project that cannot be read, only that it cannot."""

    def __init__(self) -> None:
        def gauge(name: str, about: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"fusewire_{name}", about, labels=["project", *labels])

        self.readable = gauge("store_readable", "Whether the project's state can be read: 1 or 0.")
        self.circuits = gauge("circuits", "Circuits by kind and state.", "kind", "state")
        self.state = gauge("circuit_state", "A circuit's state: 0 closed, 1 half open, 2 open.", "circuit")
        self.trips = CounterMetricFamily(
            "fusewire_trips", "Trips since the server started.", labels=["project", "breaker"]
        )
        self.spend = gauge("spend_usd", "US dollars spent: today (UTC), and in the project so far.", "period")
        self.sessions = gauge("sessions", "Sessions that are remembered, by state.", "state")
        self.agents = gauge("agents_running", "Helpers that run in these sessions.")
        self.iterations = gauge("loop_iterations", "Iterations of the loop so far.")
        self.score = gauge("loop_score", "Progress score of the loop's last three iterations.")
        self.calls_left = gauge("loop_calls_left", "Calls that the loop may still make in this hour.")
        self.warnings = gauge("warnings", "What is wrong with the project's configuration or state.")

    def all(self) -> list[Metric]:
        return list(vars(self).values())

    def add_project(self, project: WatchedProject, trips: Trips) -> None:
        panel = project.panel()
        try:
            counted = None if isinstance(panel, UnreadablePanel) else trips.counted()
        except FusewireError:
            counted = None
        name = project.name
        self.readable.add_metric([name], 0 if counted is None else 1)
        if counted is None or isinstance(panel, UnreadablePanel):
            return
        for breaker, count in counted.items():
            self.trips.add_metric([name, breaker], count)
        self._add_circuits(name, panel.circuits)
        self.spend.add_metric([name, "day"], panel.spend.today_usd)
        self.spend.add_metric([name, "project"], panel.spend.project_usd)
        for state in SESSION_STATES:
            self.sessions.add_metric([name, state], getattr(panel.session_counts, state))
        self.agents.add_metric([name], panel.session_counts.agents)
        self.iterations.add_metric([name], panel.loop.iterations)
        self.score.add_metric([name], panel.loop.score)
        self.calls_left.add_metric([name], panel.loop.calls_left)
        self.warnings.add_metric([name], len(panel.warnings))

    def _add_circuits(self, name: str, circuits: Iterable[CircuitCard]) -> None:
        counts = Counter((one.kind, one.state) for one in circuits)
        for kind in get_args(Kind):
            for state in _STATES:
                self.circuits.add_metric([name, kind, state], counts[kind, state])
        for one in [one for one in circuits if one.kind in _NAMED][:_CIRCUITS]:
            self.state.add_metric([name, one.id], _STATES.index(one.state))


# -- trips ------------------------------------------------------------------------------------------------


class Trips:
    """How often circuits have opened since the server started, by breaker: a number that never falls.

    What is stored of circuits is forgotten with them. So the audit trail is followed, from where it was at the start.
    """

    def __init__(self, project: WatchedProject) -> None:
        self.project = project
        self._trail = Trail()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        try:
            self._count()
        except FusewireError:  # it will be told by what can be read later
            pass

    def counted(self) -> dict[str, int]:
        """By breaker; those that have not tripped are 0."""
        with self._lock:
            self._count()
            policies = self.project.breaker().rules.policies.values()
            known = {Policy.from_data(data).name: 0 for data in policies}
            for breaker, count in self._counts.items():
                name = breaker if breaker in known else "other"
                known[name] = known.get(name, 0) + count
            return known

    def _count(self) -> None:
        self._counts.update(_breaker(row) for _, row in self._trail.news(self.project.store) if _opens(row))


def _opens(row: AuditRow) -> bool:
    return row.target == "open" and row.source != "open"


def _breaker(row: AuditRow) -> str:
    """The name of a circuit's policy, from the circuit's id."""
    parts = row.circuit.split("/")
    if len(parts) == 1:
        return "constraint"
    if parts[0] == "attempt":
        return "attempt.test" if len(parts) > 2 else "attempt.slice"
    return ".".join(parts[:2])


# -- the endpoint ------------------------------------------------------------------------------------------


class Metrics:
    """The numbers of one running server, in a registry of its own."""

    def __init__(self, projects: Projects, live: Live) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(Numbers(projects, live))
        self.hook_seconds = Histogram(
            "fusewire_http_hook_seconds",
            "Seconds from an agent's event over HTTP to its answer.",
            ["agent"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
        )


def observe_hook(app: Starlette, agent: str, seconds: float) -> None:
    """One event over HTTP was answered. `agent` is one that we know, never a text that came with the request."""
    metrics: Metrics = app.state.metrics
    metrics.hook_seconds.labels(agent).observe(seconds)


async def metrics(request: Request) -> Response:
    """In the format that the scraper prefers."""
    require_role(request, "reader", "person")
    try:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
    except (TypeError, ValueError):  # a version that is no number
        encode, kind = choose_encoder("")
    return Response(await run_in_threadpool(encode, request.app.state.metrics.registry), media_type=kind)


ROUTES = [Route("/metrics", metrics)]
