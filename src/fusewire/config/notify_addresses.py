"""Resolve the URL of a notification target, and hide its secrets in what is shown.

Of many services the URL is a secret in all of its parts, the one where a host usually stands too.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from fusewire.config.notify_targets import Target, is_url
from fusewire.util.errors import FusewireError
from fusewire.util.files import read_regular

#: Schemes behind which a host stands.
_HOSTED = frozenset("http https json jsons form forms xml xmls mailto mailtos".split())

#: Parts of a URL that are shorter say nothing.
_SHORTEST = 4

_LONGEST_FILE = 8192


class Unusable(FusewireError):
    """A target that cannot be reached, however often one tries."""


def address_of(target: Target, root: str) -> str:
    """The URL of a target; Unusable if it is not to be had here."""
    if target.kind == "url":
        return target.address
    if target.kind == "url_env":
        found = os.environ.get(target.address, "").strip()
        where = f"the environment variable {target.address}"
        if not found:
            raise Unusable(f"{where} is not set in the process that delivers")
    else:
        path = file_of(target, root)
        where = f"the first line of {path}"
        try:
            found = read_regular(path, _LONGEST_FILE).decode("utf-8", "replace").strip().partition("\n")[0].strip()
        except OSError as error:
            raise Unusable(f"{path} cannot be read: {error.strerror}") from error
    if not is_url(found):
        raise Unusable(f"{where} is no URL; allowed: desktop: or SCHEME://...")
    return found


def file_of(target: Target, root: str) -> str:
    """The file that has a target's URL: relative to the project, or to the user's own file where that names it."""
    folder = os.path.dirname(target.source) if os.path.isabs(target.source) else root
    return os.path.join(folder, os.path.expanduser(target.address))


def shown(url: str) -> str:
    """What may be said of a URL: its scheme, and its host where it is one."""
    scheme, colon, _ = url.partition(":")
    if scheme == "desktop":
        return "desktop:"
    host = _host(url)
    return f"{scheme}://{host}/..." if host else f"{scheme}{colon}//..."


def shown_address(target: Target) -> str:
    """The same for a target, whether its URL is to be had or not."""
    return shown(target.address) if target.kind == "url" else f"{target.kind} {target.address}"


def scrubbed(text: str, url: str) -> str:
    """A line that somebody else wrote, without any part of the URL that may be a secret."""
    rest = url.partition(":")[2]
    for mark in "/@:?&=#,+;":
        rest = rest.replace(mark, " ")
    host = _host(url).partition(":")[0]
    parts = {url, *(part for word in rest.split() for part in (word, unquote(word)))}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _SHORTEST and part != host:
            text = text.replace(part, "...")
    return text


def _host(url: str) -> str:
    """The host and its port where a host stands; empty where it may be something else."""
    if url.partition(":")[0].lower() not in _HOSTED:
        return ""
    try:
        parts = urlsplit(url)
        if "@" in parts.path + parts.query + parts.fragment:
            return ""  # what stands in front of it may be a part of a password
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        return ""
