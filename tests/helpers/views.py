"""The views as programs get them: what each collects, as JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fusewire.views import circuits, loop, session_list, sessions, slices, storage
from fusewire.views import panel as panels
from fusewire.views.models import to_json


def _as_json(view: Callable[..., object]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(view)
    def collected(*arguments: Any, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = to_json(view(*arguments, **options))
        return found

    return collected


panel = _as_json(panels.panel)
circuit_view = _as_json(circuits.circuit_view)
session_view = _as_json(sessions.session_view)
sessions_view = _as_json(session_list.sessions_view)
loop_view = _as_json(loop.loop_view)
attempts_view = _as_json(slices.attempts_view)
slice_view = _as_json(slices.slice_view)
memory_view = _as_json(storage.memory_view)
