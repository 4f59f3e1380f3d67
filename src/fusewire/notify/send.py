"""Send one message to one URL: through apprise, or to the desktop. Whatever goes wrong is one line without secrets."""

from __future__ import annotations

import html
import logging
import subprocess
import threading
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from fusewire.config.notify_addresses import Unusable, scrubbed
from fusewire.util.errors import FusewireError, in_a_line
from fusewire.util.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.notify.messages import Message

#: Seconds that one attempt may take.
LIMIT = 10.0

#: Those of apprise lie on somebody's server, and who reads the message would fetch them there.
_NO_PICTURES: dict[str, Any] = {"image_url_mask": "", "image_url_logo": "", "app_url": ""}

INSTALL = "apprise is not installed; do: pip install 'fusewire[notify]'"

_LONGEST_PROBLEM = 200

#: What apprise calls it; services choose a colour, a sound or a priority by it.
_TYPES = {"info": "INFO", "warning": "WARNING", "trip": "FAILURE", "alert": "FAILURE"}

_APPLESCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Undelivered(FusewireError):
    """One attempt failed; another may do better."""


def send(url: str, message: Message, limit: float = LIMIT) -> None:
    """Undelivered if it did not go out in time, Unusable if it never will."""
    work = _to_desktop if url.partition(":")[0] == "desktop" else _through_apprise
    try:
        _limited(lambda: work(url, message), limit)
    except FusewireError as error:
        text = " ".join(scrubbed(str(error), url).split()).removesuffix(".")
        raise type(error)(text if len(text) <= _LONGEST_PROBLEM else f"{text[: _LONGEST_PROBLEM - 3]}...") from None


def _limited(work: Callable[[], None], limit: float) -> None:
    """Services read for as long as bytes come; who sends one every second would hold us for ever."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        raise Undelivered(f"no answer within {limit:g} s")
    for error in failed:
        raise error if isinstance(error, FusewireError) else Undelivered(in_a_line(error))


# -- apprise ----------------------------------------------------------------------------------------------

#: What apprise said while it sent one message; it may do so in a thread of its own.
_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


class _Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        said = _said.get()
        if said is not None:
            said.append(record.getMessage())


_listener = _Listener(logging.WARNING)


def _through_apprise(url: str, message: Message) -> None:
    try:
        import apprise
    except ImportError:
        raise Unusable(INSTALL) from None
    logger = logging.getLogger("apprise")
    logger.addHandler(_listener)
    logger.propagate = False  # what it says may have secrets in it
    said: list[str] = []
    _said.set(said)
    asset = apprise.AppriseAsset(app_id="Fusewire", app_desc="Fusewire", async_mode=False, **_NO_PICTURES)
    service = apprise.Apprise.instantiate(_webhook(url, message) or url, asset=asset)
    if service is None:
        raise Unusable(f"apprise cannot use this {url.partition(':')[0]}:// URL: no such service, or a part is missing")
    _wait_as_long_as_we_do(service)
    said.clear()  # what it said while it looked for the service
    sender = apprise.Apprise(asset=asset)
    sender.add(service)
    kind, text = getattr(apprise.NotifyType, _TYPES[message.severity]), apprise.NotifyFormat.TEXT
    if not sender.notify(body=message.body, title=message.title, notify_type=kind, body_format=text):
        raise Undelivered(said[-1] if said else "it was refused, and nobody said why")


def _wait_as_long_as_we_do(service: object) -> None:
    """What apprise gives up too early has arrived, and would come again; a URL that says how long has its way."""
    for name in ("socket_connect_timeout", "socket_read_timeout"):
        if name not in vars(service):
            setattr(service, name, max(getattr(service, name, LIMIT), LIMIT))


def _webhook(url: str, message: Message) -> dict[str, Any] | None:
    """What apprise needs for a JSON body to a plain address; None for the address of a service that it knows."""
    import apprise

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or apprise.Apprise.instantiate(url) is not None:
        return None
    try:
        port = parts.port
    except ValueError:
        raise Unusable("the port of this URL is no number up to 65535") from None
    if not parts.hostname:
        raise Unusable("this URL has no host")
    return {
        "schema": "jsons" if parts.scheme == "https" else "json",
        "secure": parts.scheme == "https",
        "host": f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "fullpath": parts.path or "/",
        "params": parse_qs(parts.query, keep_blank_values=True),
        "payload": message.fields,
    }


# -- the desktop ------------------------------------------------------------------------------------------


def _to_desktop(url: str, message: Message) -> None:
    """Words of a command, never a line for a shell: they may come from an agent."""
    notifier, script = find_program("notify-send"), find_program("osascript")
    if notifier:
        urgency = "critical" if message.severity == "alert" else "normal"
        body = html.escape(message.body, quote=False)  # it may have marks in it that would be obeyed
        line = [notifier, "--app-name=Fusewire", f"--urgency={urgency}", "--", message.title, body]
    elif script:
        line = [script, *(word for part in _APPLESCRIPT for word in ("-e", part)), "--", message.title, message.body]
    else:
        raise Unusable("neither notify-send nor osascript is on the PATH")
    try:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise Undelivered(f"{line[0]} cannot be run: {in_a_line(error)}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Undelivered(f"{line[0]} ended with {done.returncode}" + (f": {said}" if said else ""))
