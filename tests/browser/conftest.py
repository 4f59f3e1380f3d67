"""A real Chromium, driven by Playwright, on a real server: `make test-browser`. Every page that a test opens is held to
three things: no error in its console, no request to anywhere else, no answer that failed unless the test says so."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.helpers.lived_in import live_in
from tests.helpers.serving import Served
from tests.helpers.wire import quiet_server

#: Milliseconds that a busy machine gets for anything on a page.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.exit("no Chromium here: install Debian's chromium, or name one with CHROMIUM=...", 1)
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # No sandbox of its own for whoever is root, as in a container; nothing but our own server is opened.
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server on a project in which everything has happened; tests that change something use one of their own."""
    with quiet_server(tmp_path_factory, live_in) as served:
        yield served


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a path of a server, logged in by the address that it printed; at the end everything is checked."""
    contexts = []
    problems: list[str] = []

    def watched(page: Page, served: Served) -> None:
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("console", lambda said: said.type in ("error", "warning") and problems.append(f"console: {said.text}"))
        page.on("request", lambda sent: _own(sent.url, served) or problems.append(f"request to {sent.url}"))
        page.on("response", lambda answer: answer.status < 400 or problems.append(f"{answer.status} {answer.url}"))

    def opened(served: Served, path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watched(page, served)
        page.goto(served.login)
        page.wait_for_selector("header nav")
        assert "token" not in page.url
        if path != "/":
            page.goto(served.address.rstrip("/") + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def _own(url: str, served: Served) -> bool:
    return url.startswith((served.address, "data:"))


def until(page: Page, expression: str) -> None:
    """Wait until an expression is true on the page. Playwright's own way is an `eval`, which our pages do not allow."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def screenshots() -> Path | None:
    """Where pictures are kept, if somebody wants them: SCREENSHOTS=folder make test-browser."""
    folder = os.environ.get("SCREENSHOTS")
    return Path(folder) if folder else None
