// Keeps a page as it is on the server: listens, loads itself anew when something has changed, and puts in only what differs.
const main = document.getElementById("main");
const news = document.getElementById("news");
const lost = document.getElementById("connection");

// -- putting in only what differs: what has the same id stays the same element, and keeps focus and what is open in it

const keyOf = (node) => (node.nodeType === 1 && node.id) || "";

function isBusy(node) {
  // Somebody is typing in it, or has opened it: it stays.
  const form = node.matches("form") ? node : null;
  return form !== null && form.contains(document.activeElement);
}

function bringUp(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== 1) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (isBusy(old)) return;
  const keepsOpen = old.hasAttribute("data-keep");
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(keepsOpen && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !(keepsOpen && name === "open")) old.setAttribute(name, value);
  }
  if (!(old.matches("input, select, textarea"))) bringUpChildren(old, fresh);
}

function bringUpChildren(old, fresh) {
  const kept = new Set([...fresh.children].map((node) => node.id).filter(Boolean));
  const known = new Map([...old.children].filter((node) => node.id).map((node) => [node.id, node]));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const same = known.get(keyOf(wanted));
    if (same) {
      if (same !== at && same.contains(document.activeElement)) {
        // Moved, it would lose the focus: so what is before it goes behind it.
        const behind = same.nextSibling;
        while (at && at !== same) {
          const next = at.nextSibling;
          old.insertBefore(at, behind);
          at = next;
        }
      }
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      bringUp(same, wanted);
      continue;
    }
    if (at && !keyOf(at) && at.nodeName === wanted.nodeName) {
      const next = at.nextSibling;
      bringUp(at, wanted);
      at = next;
    } else {
      old.insertBefore(wanted, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    if (!kept.has(keyOf(at))) at.remove();
    at = next;
  }
}

// -- loading anew: one at a time, and once more if something changed meanwhile

let loading = false;
let again = false;
let unread = false;

// Time alone changes a page, too: windows move on, sessions fall silent. So it is loaded anew after a while, if anybody looks.
const REST = 30_000;
let begun = performance.now();

function showLost(isLost) {
  lost.hidden = !isLost || (unread && main.querySelector("[data-unread]") !== null); // a page that says so itself
}

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  const began = (begun = performance.now());
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html", "Fusewire-Refresh": "1" }, credentials: "same-origin" });
    if (answer.redirected) return location.reload(); // logged out
    unread = !answer.ok;
    showLost(unread);
    if (unread) {
      setTimeout(refresh, 3000); // the state cannot be read, or what the page is about is gone: perhaps not for long
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (fresh && fresh.hasAttribute("data-live")) {
      document.title = page.title;
      // What was said to a person stays until the page is left.
      fresh.prepend(...[...main.querySelectorAll(":scope > [data-said]")].map((node) => node.cloneNode(true)));
      bringUpChildren(main, fresh);
      main.dataset.refreshed = String(Number(main.dataset.refreshed || 0) + 1);
    }
  } catch {
    showLost(true); // the stream says when the server is back
  } finally {
    // However much happens, a page takes no more than a third of the server's time.
    setTimeout(loaded, Math.min(2 * (performance.now() - began), 2000));
  }
}

function loaded() {
  loading = false;
  if (again) {
    again = false;
    refresh();
  }
}

// -- listening

function say(moves) {
  const last = moves[moves.length - 1];
  const where = main.querySelectorAll(".box").length > 1 ? `${last.project}, ` : "";
  const now = last.from_phase === last.to_phase ? last.cause : last.to.replace("_", "-"); // a note of what a person did
  const what = `${where}${last.circuit}: ${now}`;
  tell(moves.length === 1 ? what : `${moves.length} moves, the last: ${what}`);
}

function tell(text) {
  news.textContent = text;
  news.classList.add("shown");
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => news.classList.remove("shown"), 8000);
}

function concerns(projects) {
  const mine = main.dataset.live;
  return mine === "*" || projects.includes(mine);
}

// The server is heard at least every five seconds; a connection can be dead without anybody having closed it.
const SILENCE = 12_000;
let heard = performance.now();

function listen() {
  const stream = new EventSource(`/events?after=${encodeURIComponent(main.dataset.place)}`);
  const hear = () => {
    heard = performance.now();
    showLost(unread);
  };
  for (const name of ["open", "beat", "moved", "missed", "changed"]) stream.addEventListener(name, hear);
  stream.addEventListener("error", () => {
    showLost(true);
    if (stream.readyState !== EventSource.CLOSED) return;
    setTimeout(listen, 3000);
    refresh(); // the stream was refused: perhaps nobody is logged in here any more, and the page itself says so
  });
  stream.addEventListener("moved", (event) => {
    const moves = JSON.parse(event.data).filter((move) => concerns([move.project]));
    main.dataset.moves = String(Number(main.dataset.moves || 0) + moves.length);
    if (moves.length) say(moves);
  });
  stream.addEventListener("missed", (event) => {
    if (concerns(Object.keys(JSON.parse(event.data)))) tell("Some moves happened while this page was away; it is up to date now.");
  });
  stream.addEventListener("changed", (event) => {
    if (concerns(JSON.parse(event.data))) refresh();
  });
}

// -- time left, counted down here; at its end the server says what comes now

function shown(seconds) {
  // As the server says it, so that an update does not look like a change.
  const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0s";
  const [size, unit] = parts[first];
  const rest = parts[first + 1] ? Math.floor((seconds % size) / parts[first + 1][0]) : 0;
  return `${Math.floor(seconds / size)}${unit}` + (rest ? ` ${rest}${parts[first + 1][1]}` : "");
}

function tick() {
  if (performance.now() - heard > SILENCE) showLost(true);
  if (performance.now() - begun > REST && !document.hidden) refresh();
  let ended = false;
  for (const element of main.querySelectorAll("[data-left]")) {
    const given = element.getAttribute("data-left");
    if (element.lastGiven !== given) {
      element.lastGiven = given;
      element.endsAt = performance.now() + Number(given) * 1000;
    }
    const left = Math.max(0, Math.round((element.endsAt - performance.now()) / 1000));
    const text = shown(left);
    if (element.textContent !== text) element.textContent = text;
    const bar = element.closest("section")?.querySelector("progress");
    if (bar) bar.value = bar.max - left;
    if (left === 0 && !element.ended) ended = element.ended = true;
  }
  if (ended) setTimeout(refresh, 1000);
}

// -- a choice that wants guidance says so before the form is sent, and nothing that was typed is lost

main.addEventListener("change", ({ target }) => {
  const guidance = target.name === "choice" && target.form.elements.guidance;
  if (guidance) guidance.required = target.value === "modify";
});

if (main.dataset.live) {
  listen();
  setInterval(tick, 1000);
}
