"""Sessions have names that people recognise, and are found by the beginning of their id."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from fusewire.config import user_state_folder
from fusewire.engine.breaker import Breaker
from fusewire.scopes.register import sessions
from fusewire.scopes.user import open_user_store
from fusewire.util.errors import FusewireError, NotFound
from fusewire.views.session_names import SessionNames
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

ONE, TWO = "479528ae-91f4-4945-992c-9db9f0bba192", "479528ae-92f4-4945-992c-9db9f0bba192"


def names(project: Project) -> SessionNames:
    return SessionNames.of(Breaker.open(project=project.root))


def start(project: Project, session: str = ONE, prompt: str | None = "fix the login test", model: str = "") -> Session:
    """A session that begins, and to which a person says something."""
    project.starts_hooks = False
    found = Session(project, session)
    found.send("SessionStart", source="startup", model=model or None)
    if prompt is not None:
        found.says(prompt)
    return found


def test_a_session_is_named_by_its_agent_its_first_prompt_and_a_short_id(project: Project) -> None:
    session = start(project, model="claude-opus-4-1")
    session.says("and now the other one")
    assert names(project).name(ONE) == 'claude "fix the login test" (479528ae)'
    assert names(project).facts(ONE).model == "claude-opus-4-1"
    line = names(project).facts(ONE).line
    assert line.startswith('claude "fix the login test" (479528ae), claude-opus-4-1, since ')
    assert line.endswith(", $0.00, running")


def test_a_project_whose_register_is_lost_shows_the_agent_the_start_and_a_short_id(project: Project) -> None:
    start(project)
    shutil.rmtree(user_state_folder())
    assert names(project).name(ONE).startswith("claude since ")
    assert names(project).name(ONE).endswith(" (479528ae)")


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"x" * 5000])
def test_a_register_that_cannot_be_read_costs_only_the_prompt(project: Project, content: bytes) -> None:
    start(project)
    for name in os.listdir(user_state_folder()):
        if name.startswith("user.db"):
            Path(user_state_folder(), name).unlink()
    Path(user_state_folder(), "user.db").write_bytes(content)
    assert names(project).name(ONE).startswith("claude since ")


def test_a_session_that_nobody_knows_is_its_short_id(project: Project) -> None:
    assert names(project).facts("0d9c1b3e-91f4-4945-unheard").line == "session (0d9c1b3e)"


def test_control_and_bidi_characters_of_a_prompt_are_escaped_and_it_is_cut(project: Project) -> None:
    start(project, prompt="a\x1b[31m\u202eb\nc" + "d" * 500)
    prompt = names(project).facts(ONE).prompt
    assert prompt.startswith("a[U+001B][31m[U+202E]b c")
    assert prompt.isprintable()
    assert len(prompt) == 60


def test_prompts_are_only_in_the_persons_own_store_which_nobody_else_may_read(project: Project) -> None:
    start(project, prompt="sesame opens the vault")
    for path in project.root.rglob("*"):
        assert not path.is_file() or b"sesame" not in path.read_bytes(), path
    found = [path for path in Path(user_state_folder()).iterdir() if path.is_file()]
    assert any(b"sesame" in path.read_bytes() for path in found)
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


def test_an_id_is_found_by_a_beginning_that_only_it_has(project: Project) -> None:
    start(project)
    start(project, TWO, prompt=None)
    assert names(project).resolve(ONE) == names(project).resolve(ONE[:11]) == ONE
    assert names(project).resolve(" 479528ae-92 ") == TWO
    assert names(project).name(ONE).endswith("(479528ae-91)")
    with pytest.raises(
        FusewireError, match=r"^2 sessions begin with '4795': .*\(479528ae-9[12]\); .*\(479528ae-9[12]\)$"
    ):
        names(project).resolve("4795")
    for unknown in ("5", "", " ", ONE + "0"):
        with pytest.raises(NotFound, match=r"^no session "):
            names(project).resolve(unknown)


def test_an_id_that_begins_another_one_is_itself(project: Project) -> None:
    start(project, "one")
    start(project, "one-more")
    assert names(project).resolve("one") == "one"


def test_without_a_project_the_sessions_are_the_persons(project: Project) -> None:
    start(project)
    known = SessionNames(None, 0.0)
    assert known.ids == [ONE]
    assert known.resolve("4795") == ONE
    assert known.name(ONE) == 'claude "fix the login test" (479528ae)'


def test_the_model_is_the_one_that_a_later_event_names(project: Project) -> None:
    session = start(project, model="claude-haiku-4-5")
    session.send("SessionStart", source="resume", model="claude-opus-4-1")
    session.says("go on")
    assert sessions(open_user_store())[ONE]["model"] == "claude-opus-4-1"
