"""The OpenAPI document is true: every answer is as it says, and schemathesis finds nothing that it does not say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs

from fusewire.server.api.endpoints import ENDPOINTS
from fusewire.server.api.openapi import document
from fusewire.server.api.orders import ROUTES as ORDER_ROUTES
from fusewire.server.api.routes import ROUTES as PROJECT_ROUTES
from tests.helpers import ROOT
from tests.helpers.lived_in import QUIET_RULE, RULE, SESSION, live_in
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.server.test_server_api import token, trip

ROUTES = [*PROJECT_ROUTES, *ORDER_ROUTES]

#: What each endpoint that needs an id is asked for, in a project in which everything has happened once.
CIRCUITS = [RULE, QUIET_RULE, "loop/no_progress", "loop/rate", "phase/GREEN", "attempt/S-1", f"tool/spend/{SESSION}"]
IDS = {"circuit": CIRCUITS, "history": CIRCUITS, "settings": CIRCUITS, "session": [SESSION], "slice": ["S-1"]}


def strict(schema: Any) -> Any:
    """The same, with no room for fields that it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema and "required" in schema else {}
    return {**closed, **{name: strict(one) for name, one in schema.items()}}


def test_every_answer_is_as_the_document_says_and_has_nothing_else(project: Project) -> None:
    """A field that is missing, new, or of another type than documented shows here."""
    live_in(project)
    components = strict(document("cookie")["components"])
    with Served(project.root) as server:
        assert server.get("/api/v1/openapi.json").json() == document(f"fusewire-{server.host.rpartition(':')[2]}")
        asked = [("/api/v1/projects", "Projects")]
        for endpoint in ENDPOINTS:
            path = endpoint.path.replace("{project}", "project")
            queries = [f"?{urlencode({'id': one})}" for one in IDS.get(endpoint.name, [])] or [""]
            asked += [(path + query, endpoint.answer) for query in queries if not endpoint.body]
        assert len(asked) > 30
        for path, name in asked:
            answer = server.get(path, bearer=token("reader"))
            assert answer.status == 200, (path, answer.text)
            schema = {"$ref": f"#/components/schemas/{name}", "components": components}
            found = jsonschema_rs.Draft202012Validator(schema, validate_formats=True).iter_errors(answer.json())
            assert [(list(one.instance_path), one.message[:200]) for one in found] == [], path


def test_the_document_names_every_route_and_every_route_is_in_the_docs() -> None:
    """With an id, who may use it, and every answer that it can give."""
    made = document("cookie")
    operations = {
        (method.upper(), path): one
        for path, methods in made["paths"].items()
        for method, one in methods.items()
        if method in ("get", "post")
    }
    routes = {(method, route.path) for route in ROUTES for method in route.methods or () if method != "HEAD"}
    assert set(operations) == routes
    assert len({one["operationId"] for one in operations.values()}) == len(operations)
    for (method, path), one in operations.items():
        assert {"200", "400", "401", "403"} <= set(one["responses"]), path
        assert {"409", "413", "415", "503"} <= set(one["responses"]) or method == "GET", path
        assert one["security"][0] == {"bearer": []}
    table = set(re.findall(r"^\| (GET|POST) `(/[^`]*)` \|", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE))
    assert {(method, f"/api/v1{path}") for method, path in table} == {*routes, ("GET", "/api/v1/openapi.json")}


def test_schemathesis_finds_nothing(project: Project, tmp_path: Path) -> None:
    """Examples, the edges of every schema, what does not fit, other methods, no token, and one request after another.

    With the person's token, so that acts are done, in a project that is thrown away. Nothing leaves the machine: what
    is not for it would go to a proxy that is not there.
    """
    trip(project)
    with Served(project.root) as server:
        described = server.get("/api/v1/openapi.json").json()
        # Else nearly every question would be about a project that is not there.
        described["components"]["parameters"]["project"]["schema"]["enum"] = ["project"]
        (tmp_path / "openapi.json").write_text(json.dumps(described))
        nowhere = {f"{scheme}_PROXY": "http://127.0.0.1:9" for scheme in ("HTTP", "HTTPS", "ALL")}
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", server.address),
                *("--header", f"Authorization: Bearer {server.token}", "--checks", "all", "--mode", "all"),
                *("--phases", "examples,coverage,fuzzing,stateful", "--generation-deterministic", "--no-color"),
                *("--max-examples", "4", "--continue-on-failure", "--warnings", "off"),
            ],
            cwd=tmp_path,
            env={
                **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
                **nowhere,
                "NO_PROXY": "127.0.0.1",
                "PYTHONPATH": str(ROOT),
                "SCHEMATHESIS_HOOKS": "tests.helpers.api_hooks",
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        tested = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        assert tested is not None, done.stdout[-3000:]
        assert tested[1] == tested[2]
        assert int(tested[1]) > 300
        assert f"Tested: {len(ROUTES)}" in done.stdout
        moves = server.get("/api/v1/projects/project/moves", bearer=server.token).json()["moves"]
        assert {"tool/spend_day", "tool/spend_project"} & {one["circuit"] for one in moves}  # acts were really done
        _, errors = server.stop()
    assert "failed" not in errors
    assert "Traceback" not in errors
