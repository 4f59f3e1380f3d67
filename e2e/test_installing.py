"""Installed, used, taken out: what is left; and what becomes of an agent whose Fusewire is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fusewire
from harness.bench import FILES, Bench
from harness.calls import shell
from harness.script import do

#: What a person has there before, with a hook of their own; of the clients that keep their hooks in a shared file.
OWN = {
    "claude": '{\n  "model": "opus",\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}\n',
    "codex": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n',
}


def test_installed_and_taken_out_leaves_no_trace(bare: Bench) -> None:
    file = bare.client.registration
    if bare.name in OWN:
        file.write_text(OWN[bare.name])
    before = file.read_bytes() if file.exists() else None
    bare.install()
    assert file.read_bytes() != before
    run = bare.run(do(shell("rm -rf specs")), do(shell("touch done.txt")))
    assert "BLOCKED guard." in run.told_at(1), run
    if bare.name == "claude":  # it writes into this file itself; what is ours is looked for by name
        bare.fusewire("uninstall", bare.name)
        assert b'"command": "true"' in file.read_bytes()
    else:
        bare.fusewire("uninstall", bare.name, "--user")
        assert (file.read_bytes() if file.exists() else None) == before
    for path in (bare.client.home, bare.root):
        named = subprocess.run(
            ["grep", "-rIl", "fusewire", str(path)], capture_output=True, text=True, check=False
        ).stdout
        left = [one for one in named.split("\n") if one and not is_record(bare, Path(one))]
        assert not left, left
    assert not [path for path in bare.client.home.rglob("*fusewire*") if not is_record(bare, path)]
    again = bare.run(do(shell("rm specs/a.md")))
    assert bare.text("specs/a.md") is None, f"nobody is guarded any more\n{again}"


def is_record(bench: Bench, path: Path) -> bool:
    """Our state in the project and of the user, which is documented; and what the client itself writes down."""
    if ".fusewire" in path.parts or path.name == "circuit_breaker_incidents.jsonl":
        return True
    if path.is_relative_to(bench.client.home / ".local" / "state" / "fusewire"):
        return True
    return (
        any(part in RECORDS for part in path.relative_to(bench.client.home).parts)
        if path.is_relative_to(bench.client.home)
        else False
    )


#: Transcripts, logs and caches of the clients.
RECORDS = {
    *("projects", "debug", "shell-snapshots", "sessions", "tmp", "history.jsonl", "logs", "session-state", "backups"),
    *("session-store.db", "session-store.db-wal", "trusted_hooks.json", "log", ".cache", "history", "config.toml"),
}


def test_a_missing_interpreter_locks_nobody_out(bare: Bench, tmp_path: Path) -> None:
    """The environment that Fusewire was installed in has moved away: the agent works, unguarded, and says so."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    packages = next(place.glob("lib/python*/site-packages"))
    known = [one for one in sys.path if one.endswith("site-packages")]
    (packages / "known.pth").write_text("\n".join([*known, str(Path(fusewire.__file__).parents[1])]))
    done = subprocess.run(
        [place / "bin" / "python", "-m", "fusewire", "install", bare.name, "--user"],
        cwd=bare.root,
        env={"HOME": str(bare.client.home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(place) in bare.client.registration.read_text()
    bare.client.trust()
    guarded = bare.run(do(shell("rm specs/a.md")))
    assert "BLOCKED guard." in guarded.told_at(1), guarded
    place.rename(tmp_path / "moved")
    run = bare.run(do(shell("touch done.txt")), do(shell("rm specs/a.md")))
    assert run.code == 0, run
    assert bare.path("done.txt").exists(), f"nobody is locked out of their agent\n{run}"
    assert bare.text("specs/a.md") is None, f"and nothing is guarded\n{run}"
    assert bare.text("specs/b.md") == FILES["specs/b.md"]
    assert SAYS[bare.name] in run.shown, run
    doctor = bare.fusewire("doctor", check=False)
    assert doctor.returncode == 1, doctor.stdout
    assert str(place) in doctor.stdout, f"it names what is gone: {doctor.stdout}"


#: What a person who runs the client without a terminal sees of a hook that fails. Copilot says nothing: `doctor` does.
SAYS = {
    "claude": "this hook is gone, nothing is guarded",
    "codex": "hook: PreToolUse Failed",
    "gemini": "this hook is gone, nothing is guarded",
    "copilot": "",
}
