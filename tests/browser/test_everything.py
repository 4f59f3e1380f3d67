"""The page of everything in a browser: forty projects with worktrees, what needs a person first, live, by keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import screenshots, until
from tests.browser.test_every_page import CONTRAST, HEADINGS, KNOW, LOOK, NAMELESS, SHIFTS, SIZES
from tests.helpers.many_projects import abandon, damage, halt, many_projects, remove, violate_once
from tests.helpers.project import Project
from tests.helpers.serving import Served

Open = Callable[..., Page]


@dataclass
class Machine:
    """A person's projects, and the server that shows them."""

    served: Served
    projects: list[Project]


def fill(folder: Path, count: int) -> list[Project]:
    made = many_projects(folder, count)
    if count > 1:
        halt(made[3], "halted-479528ae", "make the tests of the login pass")
        abandon(made[1])
        violate_once(made[2])
    if count > 5:
        damage(made[8])
        remove(made[9])
    return made


@pytest.fixture(scope="module", params=[1, 5, 40])
def sized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Served]]:
    """One, five and forty projects, each in a home of its own."""
    with _Machine(tmp_path_factory.mktemp(f"of{request.param}"), request.param) as made:
        yield request.param, made.served


@pytest.fixture
def forty(tmp_path: Path) -> Iterator[Machine]:
    with _Machine(tmp_path, 40) as made:
        yield made


class _Machine:
    """As a context manager: the person's folder lies beside the projects, for the server and for the hooks."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder, self._count = folder, count
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Machine:
        home = self._folder / "home"
        home.mkdir(mode=0o700)
        self._patch.setenv("HOME", str(home))
        self._patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        self._patch.setenv("XDG_STATE_HOME", str(home / ".local/state"))
        self._patch.chdir(home)
        made = fill(self._folder / "code", self._count)
        self._served = Served(arguments=("--all",))
        return Machine(self._served, made)

    def __exit__(self, *error: object) -> None:
        self._served.stop()
        self._patch.undo()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_can_be_read(sized: tuple[int, Served], open_page: Open, size: str, scheme: str) -> None:
    """Enough contrast, nothing wider than the screen, a name for whatever can be used, headings in order."""
    count, served = sized
    page = open_page(served, viewport=SIZES[size], color_scheme=scheme)
    page.wait_for_selector("main h1")
    folder = screenshots()
    if folder is not None:
        page.screenshot(path=folder / f"everything-{count}-{size}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for node in page.locator("summary").all():
        node.click()
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    levels = page.evaluate(HEADINGS)
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False)), levels
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_it_keeps_still_when_it_is_loaded_anew(sized: tuple[int, Served], open_page: Open) -> None:
    """What was unfolded stays so, and no element is replaced."""
    page = open_page(sized[1])
    if page.locator("#group-quiet").count():
        page.evaluate("document.getElementById('group-quiet').open = true")
    for times in range(1, 21):  # an age changes once a minute: that is a change
        until(page, f"Number(document.getElementById('main').dataset.refreshed || 0) >= {times}")
        before = page.evaluate(KNOW)
        page.evaluate("refresh()")
        until(page, f"Number(document.getElementById('main').dataset.refreshed) >= {times + 1}")
        after = page.evaluate(LOOK)
        if after == before:
            break
    assert after == before
    assert page.evaluate(SHIFTS) < 0.02


def test_what_needs_a_person_is_first_and_comes_by_itself(forty: Machine, open_page: Open) -> None:
    """One halted session among forty projects is on the first screen; another one is there without anybody's doing."""
    page = open_page(forty.served)
    expect(page.locator("h1")).to_contain_text("3 things need you, in 3 projects")
    expect(page).to_have_title("(3) Everything · Fusewire")
    first = page.locator(".projects > li").first
    expect(first).to_contain_text("service-03")
    expect(first).to_contain_text('claude "make the tests of the login pass"')
    expect(first).to_be_in_viewport()
    expect(page.locator("#group-quiet")).not_to_have_attribute("open", "")
    expect(page.locator("main")).to_contain_text("1 folder no longer there")
    halt(forty.projects[0], "another-479528ae", "write the docs")
    expect(page.locator("h1")).to_contain_text("4 things need you")
    expect(page.locator(".projects > li").first).to_contain_text('claude "write the docs"')
    expect(page).to_have_title("(4) Everything · Fusewire")


def test_worktrees_stand_under_their_project(forty: Machine, open_page: Open) -> None:
    page = open_page(forty.served)
    root = str(forty.projects[-1].root.parent / "service-39")
    project = page.locator(f"[id={json.dumps(f'project-{root}')}]")
    expect(project.locator("h4")).to_have_text(["service-39-idea", "service-39-fix", "service-39"])


def test_a_person_gets_to_the_halted_session_by_keyboard(forty: Machine, open_page: Open) -> None:
    page = open_page(forty.served)
    for _ in range(20):
        page.keyboard.press("Tab")
        if "make the tests of the login pass" in page.evaluate("document.activeElement.textContent"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("halted-479528ae")
    expect(page.get_by_role("link", name="Everything")).to_be_visible()
    page.get_by_role("link", name="Everything").click()
    expect(page.locator("h1")).to_contain_text("things need you")
