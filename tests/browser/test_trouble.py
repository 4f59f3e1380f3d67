"""What a person meets on a bad day: several projects, one that cannot be read, long names, a page that stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fusewire.engine.breaker import Breaker
from tests.browser.conftest import PATIENCE, until
from tests.helpers.lived_in import RULE, trip
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.session_hook import Session

Open = Callable[..., Page]

LONG = "a-rule-" + "with-a-very-long-name-" * 4 + "end"

_BEYOND = """() => {
  const edge = document.body.getBoundingClientRect().right + 1;
  return [...document.querySelectorAll('body *')]
    .filter(node => !node.closest('.scroll, svg, .skip') && node.checkVisibility())
    .filter(node => node.getBoundingClientRect().right > edge)
    .map(node => `${node.tagName} ${node.className} ${node.textContent.trim().slice(0, 40)}`);
}"""


@pytest.fixture
def troubled(project: Project, tmp_path: Path) -> Iterator[Served]:
    """Long names and long words in one project, and another in which nothing has happened."""
    project.starts_hooks = False
    project.constraint(LONG, "circuit_breaker: {dedup_seconds: 0, violation_threshold: 1}\n", f"# {'Never ' * 60}\n")
    with Breaker.open(project=project.root) as breaker:
        breaker.record(LONG, "x" * 290)
    named = Session(project, id=f"team/{'z' * 90}/日本語")
    for _ in range(4):
        named.fails(f"make {'/deep/folder' * 20}", "Exit code 2")
    other = tmp_path / "Мой проект"
    other.mkdir()
    with Served(project.root, other) as server:
        yield server


@pytest.mark.parametrize("width", [320, 390, 640, 800, 1920])
def test_nothing_is_wider_than_the_screen_whatever_the_names_are(troubled: Served, open_page: Open, width: int) -> None:
    """From the smallest phone to the widest desk; 640 is also a laptop whose page is twice as large."""
    page = open_page(troubled, viewport={"width": width, "height": 800})
    expect(page.locator("h1")).to_contain_text("2 projects: ")
    assert page.evaluate(_BEYOND) == []
    for link in ("Мой проект", "project"):
        page.goto(troubled.address)
        page.locator(".where").get_by_role("link", name=link, exact=True).click()
        page.wait_for_selector("h1")
        assert page.evaluate(_BEYOND) == []
    page.get_by_role("link", name="Its session").first.click()
    expect(page.locator(".where")).to_contain_text("team/zz")
    assert page.evaluate(_BEYOND) == []


def test_the_overview_leads_to_the_project(troubled: Served, open_page: Open) -> None:
    page = open_page(troubled)
    page.locator(".overview").get_by_role("link", name="Мой проект").click()
    expect(page.locator("section.box").nth(1)).to_be_in_viewport()


def test_a_page_of_a_project_that_cannot_be_read_goes_on_by_itself(project: Project, browser: Browser) -> None:
    """It says what is wrong, keeps the ways to the other pages, and is the page as soon as that can be read."""
    trip(project)
    database = project.root / ".fusewire" / "state.db"
    with Served(project.root) as served:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(served.login)
        page.wait_for_selector("header nav")
        away = {path: path.with_name(f"away-{path.name}") for path in database.parent.glob("state.db*")}
        for path, other in away.items():
            path.rename(other)
        page.goto(f"{served.address}p/project/circuit?id={RULE}")
        expect(page.locator("h1")).to_have_text("The state cannot be read")
        expect(page.locator("nav")).to_contain_text("Sessions")
        for path, other in away.items():
            other.rename(path)
        expect(page.locator("h1")).to_have_text(RULE, timeout=PATIENCE)
        expect(page.locator("#connection")).to_be_hidden()
        context.close()


def test_a_page_that_is_left_open_is_loaded_anew_though_nothing_happens(troubled: Served, open_page: Open) -> None:
    """Windows move on and sessions fall silent by time alone."""
    page = open_page(troubled)
    until(page, "Number(document.getElementById('main').dataset.refreshed || 0) >= 1")
    page.wait_for_timeout(2500)
    before = page.evaluate("Number(document.getElementById('main').dataset.refreshed)")
    page.evaluate("begun -= 31_000")
    until(page, f"Number(document.getElementById('main').dataset.refreshed) > {before}")


def test_what_came_of_an_act_has_the_focus(troubled: Served, open_page: Open) -> None:
    """So that a screen reader reads it, and the keyboard goes on from there."""
    page = open_page(troubled)
    fuse = page.locator(f'[id="fuse-project-{LONG}"]')
    fuse.get_by_text("Reset…").click()
    fuse.get_by_label("Reason").fill("I looked at it")
    page.keyboard.press("Enter")
    said = page.locator("[data-said]")
    expect(said).to_contain_text("is closed")
    expect(said).to_be_focused()
    for times in (1, 2):
        until(page, f"Number(document.getElementById('main').dataset.refreshed || 0) >= {times}")
        expect(said).to_be_focused()
        expect(said).to_have_count(1)
        assert page.evaluate("document.getElementById('main').firstElementChild.hasAttribute('data-said')")
        expect(said).to_be_in_viewport()
        page.evaluate("refresh()")


def test_a_choice_that_wants_guidance_is_not_sent_without(project: Project, open_page: Open) -> None:
    """What was typed is still there then."""
    for _ in range(3):
        project.run("phase", "begin", "GREEN")
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=2", "--metric", "tests_total=6")
    with Served(project.root) as served:
        page = open_page(served)
        page.get_by_text("Resolve…").click()
        page.get_by_label("Choice").select_option("modify")
        page.get_by_label("Reason").fill("it looks wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("textbox", name="Guidance")).to_be_focused()
        expect(page.get_by_label("Reason")).to_have_value("it looks wrong")
        page.get_by_label("Choice").select_option("reset")
        page.get_by_label("Reason").press("Enter")
        expect(page.locator("[data-said]")).to_contain_text("GREEN is closed")
