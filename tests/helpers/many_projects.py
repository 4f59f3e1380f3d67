"""A person with many projects and worktrees, made by real git and real hook events in this process."""

from __future__ import annotations

import gc
import shutil
import subprocess
from pathlib import Path

from fusewire.breakers.session import opening
from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

AT_ONE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=dev", "-c", "user.email=dev@localhost")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def make_repository(folder: Path, *worktrees: str) -> list[Project]:
    """A repository with a commit, and worktrees beside it."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    found = [folder]
    for name in worktrees:
        git(folder, "worktree", "add", "-q", "-b", name, str(folder.parent / f"{folder.name}-{name}"))
        found.append(folder.parent / f"{folder.name}-{name}")
    return [Project(one, starts_hooks=False) for one in found]


def work(project: Project, session: str, prompt: str = "fix the login") -> Session:
    """An agent is spoken to, and works."""
    made = Session(project, id=session)
    made.says(prompt)
    made.bash("ls", "app.py")
    return made


def halt(project: Project, session: str, prompt: str = "make the tests pass") -> None:
    """A session asks for the same thing until it is halted."""
    made = work(project, session, prompt)
    for number in range(12):
        asked, _ = made.bash("pytest -q", f"{number // 99} failed")
        if asked.halted:
            return
    raise AssertionError("it was not halted")


def end(session: Session) -> None:
    session.send("SessionEnd", reason="exit")


def abandon(project: Project) -> None:
    """A phase is open, and only a person can say how it goes on."""
    for _ in range(3):
        project.run("phase", "begin", "GREEN")
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=2", "--metric", "tests_total=6")


def violate_once(project: Project) -> None:
    """A constraint's circuit is open for a day."""
    project.constraint("no-force-push", AT_ONE, "# Never force-push\n")
    with Breaker.open(project=project.root) as breaker:
        breaker.record("no-force-push", "git push --force origin main")


def many_projects(folder: Path, count: int = 40) -> list[Project]:
    """Repositories of which every fifth has two worktrees more; in each an agent was heard of, and in most has gone."""
    made = []
    for number in range(count):
        trees = make_repository(folder / f"service-{number:02}", *(("fix", "idea") if number % 5 == 4 else ()))
        for at, project in enumerate(trees):
            session = work(project, f"{number:04}-{at}-479528ae", f"task {number}: rename the column")
            if number % 3:
                end(session)
        made += trees
    end_hooks()
    return made


def end_hooks() -> None:
    """Close what the processes of hooks would have closed with their end."""
    for store in (opening.kept or {}).values():  # where a test has made a server in this process
        store.close()
    gc.collect()


def damage(project: Project) -> None:
    """The database is no database any more."""
    (project.root / ".fusewire" / "state.db").write_bytes(b"no database at all\n" * 400)


def remove(project: Project) -> None:
    shutil.rmtree(project.root)
