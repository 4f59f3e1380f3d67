"""What holds for every page: light and dark, phone and desk, quiet console, nothing off the machine."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import screenshots, until
from tests.helpers.lived_in import RULE, SESSION
from tests.helpers.serving import Served

Open = Callable[..., Page]

PAGES = {
    "panel": "/",
    "circuit": f"/p/project/circuit?id={RULE}",
    "tool-circuit": f"/p/project/circuit?id={quote(f'tool/tool_failure/Bash(pytest)/{SESSION}')}",
    "sessions": "/p/project/sessions",
    "session": f"/p/project/session?id={SESSION}",
    "loop": "/p/project/loop",
    "attempts": "/p/project/attempts",
    "memory": "/p/project/memory",
}
SIZES = {"desk": {"width": 1200, "height": 800}, "phone": {"width": 390, "height": 844}}

CONTRAST = """() => {
  const channel = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const c = parse(getComputedStyle(at).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll('main *, header *, footer')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest('svg') || !node.checkVisibility({ opacityProperty: true })) continue;
    const a = light(parse(getComputedStyle(node).color)), b = light(ground(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = node.textContent.trim().slice(0, 40);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${node.tagName} ${node.className} ${text}`);
  }
  return found;
}"""

NAMELESS = """() => [...document.querySelectorAll('button, a[href], input:not([type=hidden]), select, summary')]
  .filter(node => !(node.textContent.trim() || node.labels?.length || node.ariaLabel || node.title))
  .map(node => node.outerHTML.slice(0, 80))"""

LOOK = """() => {
  const nodes = [...document.querySelectorAll('main *')];
  const shape = nodes.map(node => `${node.tagName}#${node.id}`).join(' ');
  const fresh = nodes.filter(node => !node.known).map(node => node.outerHTML);
  return { shape, fresh, place: [scrollY, document.body.scrollHeight] };
}"""

KNOW = f"""() => {{
  document.querySelectorAll('main *').forEach(node => node.known = true);
  scrollTo(0, 200);
  return ({LOOK})();
}}"""

SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(one => sum += one.value))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 300);
})"""

HEADINGS = """() => [...document.querySelectorAll('h1, h2, h3, h4')].map(node => Number(node.tagName[1]))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_read(lived: Served, open_page: Open, name: str, size: str, scheme: str) -> None:
    """Enough contrast, nothing wider than the screen, a name for whatever can be used, headings in order."""
    page = open_page(lived, PAGES[name], viewport=SIZES[size], color_scheme=scheme)
    page.wait_for_selector("main h1")
    folder = screenshots()
    if folder is not None:
        page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    levels = page.evaluate(HEADINGS)
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False)), levels
    assert page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_keeps_still_when_it_is_loaded_anew(lived: Served, open_page: Open, name: str) -> None:
    """A live update in which nothing has changed moves nothing: no element is replaced, the scroll stays."""
    page = open_page(lived, PAGES[name])
    page.wait_for_selector("main h1")
    for times in range(1, 21):  # as time goes by a cooldown ends, an axis gets another mark: those are changes
        until(page, f"Number(document.getElementById('main').dataset.refreshed || 0) >= {times}")
        before = page.evaluate(KNOW)
        page.evaluate("refresh()")
        until(page, f"Number(document.getElementById('main').dataset.refreshed) >= {times + 1}")
        after = page.evaluate(LOOK)
        if after["shape"] == before["shape"]:
            break
    assert after == before


@pytest.mark.parametrize("name", PAGES)
def test_nothing_jumps_while_a_page_comes_and_lives(lived: Served, open_page: Open, name: str) -> None:
    """As browsers measure it: what moves without anybody having done something, while it loads and is loaded anew."""
    page = open_page(lived, PAGES[name])
    for times in range(1, 4):
        until(page, f"Number(document.getElementById('main').dataset.refreshed || 0) >= {times}")
        page.evaluate("refresh()")
    assert page.evaluate(SHIFTS) < 0.02
    page.evaluate("main.prepend(document.createElement('div')); main.firstChild.style.height = '200px'")
    assert page.evaluate(SHIFTS) > 0.02, "a jump would be seen"


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(lived: Served, open_page: Open, name: str) -> None:
    page = open_page(lived, PAGES[name])
    links = page.evaluate("[...document.querySelectorAll('main a[href], nav a[href]')].map(node => node.href)")
    lived.log_in()
    for link in dict.fromkeys(links):
        path = link.removeprefix(lived.address.rstrip("/")).partition("#")[0]
        assert lived.get(path).status == 200, link


def test_no_script_no_problem(lived: Served, open_page: Open) -> None:
    """Pages come whole from the server: without scripts they are only not live."""
    page = open_page(lived)
    cookies = page.context.cookies()
    bare = page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    try:
        bare.add_cookies(cookies)  # type: ignore[arg-type]
        plain = bare.new_page()
        plain.goto(lived.address)
        assert RULE in plain.inner_text("main")
    finally:
        bare.close()


def test_the_cookie_is_out_of_reach(lived: Served, open_page: Open) -> None:
    """No script can read it, no other site makes the browser send it; the token is nowhere in the browser."""
    page = open_page(lived)
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    assert lived.token not in page.content()
    assert page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"
    assert page.evaluate("performance.getEntries().some(one => one.name.includes('token='))") is False
