"""A small runner of a composite action's steps: bash as GitHub starts it, the inputs, and the files of a job.

It knows what action.yml uses: `${{ inputs.x }}`, `${{ steps.id.outputs.x }}`, `${{ github.action_path }}`, `if` with
one comparison, and `actions/upload-artifact`, of which it keeps what would be uploaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
_COMPARED = re.compile(r"([\w.-]+) (==|!=) '([^']*)'")


@dataclass
class Job:
    """A job with one action in it, in a workspace."""

    action: Path
    workspace: Path
    temp: Path
    environment: dict[str, str]
    inputs: dict[str, str]
    code: int = 0
    log: str = ""
    #: outputs of the action, and what its artifact has in it
    outputs: dict[str, str] = field(default_factory=dict)
    artifact: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    _steps: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        path = self.temp / "summary"
        return path.read_text() if path.exists() else ""

    def run(self) -> Job:
        """All steps until one fails."""
        definition = yaml.safe_load((self.action / "action.yml").read_text())
        defaults = {name: str(one.get("default", "")) for name, one in definition["inputs"].items()}
        needed = {name for name, one in definition["inputs"].items() if one.get("required")}
        assert needed <= set(self.inputs) <= set(defaults), "an input is missing, or unknown"
        self.inputs = {**defaults, **self.inputs}
        self.temp.mkdir()
        assert definition["runs"]["using"] == "composite"
        for step in definition["runs"]["steps"]:
            if not self.code and self._holds(step.get("if", "")):
                self.ran.append(step["name"])
                self._upload(step) if "uses" in step else self._bash(step)
        self.outputs = {name: self._filled(one["value"]) for name, one in definition["outputs"].items()}
        return self

    def _bash(self, step: dict[str, Any]) -> None:
        assert step["shell"] == "bash"
        script, outputs = self.temp / "step.sh", self.temp / "outputs"
        script.write_text(step["run"])
        outputs.write_text("")
        files = {
            "GITHUB_OUTPUT": outputs,
            "GITHUB_STEP_SUMMARY": self.temp / "summary",
            "GITHUB_PATH": self.temp / "path",
        }
        given = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace / self._filled(step.get("working-directory", ".")),
            env={**self.environment, "RUNNER_TEMP": str(self.temp), **{k: str(v) for k, v in files.items()}, **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        self.code, self.log = done.returncode, self.log + done.stdout
        lines = (line.partition("=") for line in outputs.read_text().splitlines())
        self._steps[step.get("id", "")] = {name: value for name, _, value in lines}

    def _upload(self, step: dict[str, Any]) -> None:
        assert step["uses"].startswith("actions/upload-artifact@")
        folder = Path(self._filled(step["with"]["path"]))
        self.artifact = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def _filled(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self._value(found[1]), str(text))

    def _value(self, name: str) -> str:
        if name == "github.action_path":
            return str(self.action)
        first, _, rest = name.partition(".")
        if first == "inputs":
            return self.inputs[rest]
        assert first == "steps", f"unknown expression {name}"
        step, _, output = rest.partition(".outputs.")
        return self._steps.get(step, {}).get(output, "")

    def _holds(self, condition: str) -> bool:
        if not condition:
            return True
        found = _COMPARED.fullmatch(condition)
        assert found, f"unknown condition {condition}"
        return (self._value(found[1]) == found[3]) == (found[2] == "==")


def job(workspace: Path, temp: Path, path: str, **inputs: str) -> Job:
    """A job as on a runner: no terminal, CI set, and a home of its own."""
    home = workspace.parent / "home"
    home.mkdir(exist_ok=True)
    system = os.environ["PATH"]
    assert shutil.which("bash", path=system)
    environment = {"PATH": f"{path}:{system}", "HOME": str(home), "CI": "true", "GITHUB_ACTIONS": "true"}
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return Job(Path(__file__).parents[2], workspace, temp, environment, named)
