"""Name the provider and the account behind an agent, so that what one session learns of a limit holds for all of them.

An account is told by what is no secret: another home folder of the client (two logins side by side), and whether an
API key is given, which has limits of its own. The key itself is neither kept nor hashed. Two keys, or two logins in
turn in the same folder, are taken for one account: an answer of either closes the circuit.
"""

from __future__ import annotations

import os

from fusewire.agents import agent_module
from fusewire.core.events import Noun, plain
from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.scopes.providers import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Login(Noun):
    """How one client reaches its provider: `LOGIN` of its `login` module."""

    provider: str
    #: variables that switch to another provider, and to which
    switches: tuple[tuple[str, str], ...] = ()
    #: the variable with the address of another server, and the provider's own host
    address: str = ""
    host: str = ""
    #: variables with an API key
    keys: tuple[str, ...] = ()


_OFF = ("", "0", "false", "no")


def provider_circuit(agent: str, environment: Mapping[str, str]) -> str:
    """The circuit of the provider that a client of this name uses; empty if the client is not known."""
    if agent not in AGENTS_BY_NAME:
        return ""
    login: Login = agent_module(agent, "login").LOGIN
    provider = _host(environment.get(login.address, ""), login) if login.address else ""
    for variable, other in login.switches:
        if environment.get(variable, "").lower() not in _OFF:
            provider = other
    parts = [_home(agent, environment), "api-key" if any(environment.get(key) for key in login.keys) else ""]
    account = " ".join(filter(None, parts))
    return PREFIX + (provider or login.provider) + (f"/{plain(account, 120)}" if account else "")


def agent_of_program(command: str) -> str:
    """The client that a program is, by its name or the package that it lies in; empty if it is none."""
    from fusewire.guard.known_agents import agent_of_package

    name = os.path.basename(command)
    return name if name in AGENTS_BY_NAME else agent_of_package(os.path.realpath(command))


def agent_of_format(form: str) -> str:
    """The client that prints a format of `agents.output`; empty for plain text."""
    name = form.partition("-")[0]
    return name if name in AGENTS_BY_NAME else ""


def _host(address: str, login: Login) -> str:
    """The host of an address, without a user and a password; empty for the provider's own, or if there is none."""
    host = address.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    return "" if host == login.host else plain(host, 60)


def _home(agent: str, environment: Mapping[str, str]) -> str:
    """The client's home folder, where it is another one than usual."""
    known = AGENTS_BY_NAME[agent]
    given = environment.get(known.home_variable, "")
    usual = os.path.expanduser("~") if known.home_below else os.path.expanduser(known.home)
    if not given or os.path.realpath(given) == os.path.realpath(usual):
        return ""
    home = os.path.expanduser("~").rstrip("/")
    given = os.path.realpath(given)
    return f"~{given[len(home) :]}" if home and given.startswith(f"{home}/") else given
