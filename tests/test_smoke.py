from __future__ import annotations

from tests.helpers.project import Project


def test_a_new_project_has_no_circuits_and_gets_no_state_folder(project: Project) -> None:
    """Looking must not leave anything behind."""
    status = project.json("status")
    assert (status["circuits"], status["warnings"], status["loop"]["iterations"]) == ([], [], 0)
    assert [path.name for path in project.root.iterdir()] == [".git"]
