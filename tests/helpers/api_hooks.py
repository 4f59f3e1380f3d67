"""Loaded by schemathesis (see test_server_openapi.py): no client of ours sends a body with GET, and it is refused."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis.core import NOT_SET


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    if case.method.upper() in ("GET", "HEAD"):
        case.body = NOT_SET
