"""The panel in a browser: seen at a glance, live, usable by keyboard, on a phone and in the dark."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE, until
from tests.helpers.lived_in import QUIET_RULE, RULE, trip, violate
from tests.helpers.project import Project
from tests.helpers.serving import Served

Open = Callable[..., Page]


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    """A server of the test's own."""
    trip(project)
    project.constraint(QUIET_RULE, "circuit_breaker: {dedup_seconds: 0, violation_threshold: 2}\n")
    with Served(project.root) as server:
        yield server


def test_it_answers_in_one_look(lived: Served, open_page: Open) -> None:
    """Is anything tripped, why, what does it cost, what must I do: all on the first screen."""
    page = open_page(lived)
    expect(page.locator("h1").first).to_contain_text("circuits are open")
    first = page.locator(".fuses.tripped")
    expect(first).to_be_in_viewport()
    expect(first).to_contain_text(RULE)
    expect(first).to_contain_text("Never force-push")
    expect(first).to_contain_text("git push --force origin main~4")
    expect(first).to_contain_text("fusewire reset")
    expect(page.locator(".facts").first).to_contain_text("$2.40")


def test_open_circuits_come_first(lived: Served, open_page: Open) -> None:
    page = open_page(lived)
    states = page.locator(".fuse .state").all_inner_texts()
    order = ["OPEN", "HALF-OPEN", "CLOSED"]
    places = [order.index(state.split()[0]) for state in states]
    assert places == sorted(places)
    assert {0, 2} <= set(places)


def test_a_trip_comes_to_the_page_by_itself(served: Served, project: Project, open_page: Open) -> None:
    """Without anybody touching the page; it is also said to a screen reader, and stands in the tab."""
    page = open_page(served)
    expect(page).to_have_title("(1) Panel · Fusewire")
    violate(project, 1, QUIET_RULE)
    violate(project, 2, QUIET_RULE)
    committed = time.monotonic()
    page.wait_for_selector(f'.fuses.tripped [id="fuse-project-{QUIET_RULE}"]')
    assert time.monotonic() - committed < 5  # mostly 0.2 s; a busy machine gets more
    expect(page).to_have_title("(2) Panel · Fusewire")
    expect(page.get_by_role("status").filter(has_text=f"{QUIET_RULE}: OPEN")).to_be_visible()


def test_what_somebody_types_survives_what_happens(served: Served, project: Project, open_page: Open) -> None:
    """A form that is open keeps its text and the focus while the page around it changes."""
    page = open_page(served)
    fuse = page.locator(f'[id="fuse-project-{RULE}"]')
    page.get_by_text("Reset…").click()
    fuse.get_by_label("Reason").fill("half a sen")
    before = fuse.bounding_box()
    violate(project, 1, QUIET_RULE)
    violate(project, 2, QUIET_RULE)
    page.wait_for_selector(f'.fuses.tripped [id="fuse-project-{QUIET_RULE}"]')
    expect(fuse.get_by_label("Reason")).to_have_value("half a sen")
    expect(fuse.get_by_label("Reason")).to_be_focused()
    after = fuse.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] == before["width"]


def test_a_person_resets_by_keyboard_alone(served: Served, project: Project, open_page: Open) -> None:
    """Tab to the form, a reason, Enter: the circuit is closed, and the page says so."""
    page = open_page(served)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "Reset…":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("I looked at it")
    page.keyboard.press("Enter")
    page.wait_for_selector(".told.done")
    expect(page.locator(".told.done")).to_contain_text(f"{RULE} is closed")
    expect(page.locator("h1")).to_have_text("Nothing is tripped")
    assert project.json("history", RULE)["transitions"][0]["reason"] == "I looked at it"


def test_without_a_reason_the_browser_sends_nothing(served: Served, project: Project, open_page: Open) -> None:
    page = open_page(served)
    page.get_by_text("Reset…").click()
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    assert project.json("status", RULE)["circuits"][0]["state"] == "OPEN"


def test_the_printed_address_works_in_a_tab_that_asks_for_the_key(served: Served, browser: Browser) -> None:
    """Only what stands behind the `#` differs then, and the browser loads nothing anew."""
    page = browser.new_page()
    page.goto(served.address + "login")
    page.goto(served.login)
    expect(page.locator("header nav")).to_be_visible(timeout=PATIENCE)
    assert "token" not in page.url
    page.close()


def test_a_page_whose_browser_was_logged_out_asks_for_the_key(served: Served, browser: Browser) -> None:
    """By another tab, or because the server was started anew: nothing is left to be seen, and it is said what to do."""
    context = browser.new_context()
    page, other = context.new_page(), context.new_page()
    page.goto(served.login)
    expect(page.locator("header nav")).to_be_visible(timeout=PATIENCE)
    other.goto(served.address)
    page.get_by_role("button", name="Log out").click()
    expect(other.get_by_label("Key")).to_be_visible(timeout=PATIENCE)
    context.close()


def test_the_skip_link_leads_to_the_content(lived: Served, open_page: Open) -> None:
    page = open_page(lived)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_a_server_that_falls_silent_is_said_and_comes_back(served: Served, open_page: Open) -> None:
    """What is on the page may be old then, and a person has to know."""
    page = open_page(served)
    until(page, "Number(document.getElementById('main').dataset.refreshed || 0) >= 1")
    expect(page.locator("#connection")).to_be_hidden()
    served.process.send_signal(signal.SIGSTOP)
    try:
        expect(page.locator("#connection")).to_be_visible(timeout=PATIENCE)
    finally:
        served.process.send_signal(signal.SIGCONT)
    expect(page.locator("#connection")).to_be_hidden(timeout=PATIENCE)


def test_time_left_is_counted_down(lived: Served, open_page: Open) -> None:
    page = open_page(lived)
    seen = "[...document.querySelectorAll('[data-left]')].map(node => node.textContent).join()"
    before = page.evaluate(seen)
    until(page, f"{seen} !== {json.dumps(before)}")
