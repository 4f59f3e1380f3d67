"""`/metrics` for Prometheus; the names are documented in docs/api.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import choose_encoder
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from fusewire.server.collector import Numbers
from fusewire.server.requests import require_role

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

    from fusewire.server.live import Live
    from fusewire.server.projects import Projects


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
