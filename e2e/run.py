"""`make test-agents`: install the clients that clients.json pins, then run the tests on them, off the network.

Without npm, node or the network nothing can be installed: what is skipped is said, and that is no failure, unless
AGENTS_REQUIRED=1 says that it is one. Further arguments go to pytest.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from harness.clients import CLIENTS, cache, folder, installed  # noqa: E402

#: Set in the process that has a network of its own.
INSIDE = "FUSEWIRE_AGENTS_INSIDE"
#: Seconds for one client; the largest are some 400 MB.
PATIENCE = 600
#: Without a network npm would try for many minutes.
QUIETLY = "--loglevel=error --no-audit --no-fund --no-save --fetch-retries=1 --fetch-retry-mintimeout=1000".split()


def main(arguments: list[str]) -> int:
    if os.environ.pop(INSIDE, ""):
        raise_loopback()
        return test(arguments)
    missing = install()
    for name, why in missing.items():
        print(f"test-agents: {name} is skipped: {why}", file=sys.stderr)
    if missing and os.environ.get("AGENTS_REQUIRED") == "1":
        print("test-agents: AGENTS_REQUIRED=1, so that is a failure", file=sys.stderr)
        return 1
    if len(missing) == len(CLIENTS):
        print("test-agents: no client is here, nothing was tested", file=sys.stderr)
        return 0
    return isolated(arguments)


def install() -> dict[str, str]:
    """Put every client where it is looked for; why it is not there, for each that is missing."""
    missing: dict[str, str] = {}
    npm = shutil.which("npm")
    for name, client in CLIENTS.items():
        why = ""
        if not shutil.which("node"):
            why = "there is no node"
        elif not installed(name):
            why = fetch(npm, name, f"{client['package']}@{client['version']}") if npm else "there is no npm"
        if why:
            missing[name] = why
    return missing


def fetch(npm: str, name: str, package: str) -> str:
    """Beside its place first: an installation that was interrupted is none. Why it failed, or nothing."""
    place = folder(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(f"{place}.{os.getpid()}.part")
    print(f"test-agents: installing {package} into {place}", file=sys.stderr)
    try:
        subprocess.run(
            [npm, "install", *QUIETLY, "--prefix", str(beside), package],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        if not place.exists():
            beside.rename(place)
    except subprocess.TimeoutExpired:
        return f"npm has not installed {package} within {PATIENCE} s"
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stderr or "").splitlines() if "error code" in line]
        return f"npm could not install {package}: {' '.join(said[:1]) or 'it does not say why'}"
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return "" if installed(name) else f"{package} has no program {name}"


def isolated(arguments: list[str]) -> int:
    """Once more in a network namespace, where this machine allows one."""
    for namespace in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if shutil.which("unshare") and _works([*namespace, "true"]):
            os.environ[INSIDE] = "1"
            os.execvp(namespace[0], [*namespace, sys.executable, __file__, *arguments])
    print("test-agents: no network namespace can be made; the clients are only pointed at loopback", file=sys.stderr)
    return test(arguments)


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def raise_loopback() -> None:
    """A new network has a loopback that is down."""
    up, flags = 0x1, 0x8914  # IFF_UP, SIOCSIFFLAGS
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, flags, struct.pack("16sh14x", b"lo", up))


def test(arguments: list[str]) -> int:
    """In the place of this process, so that whoever ends it ends the tests."""
    found = ",".join(name for name in CLIENTS if installed(name))
    print(f"test-agents: {found} from {cache()}", file=sys.stderr)
    workers = ["-n", "2", "--dist", "worksteal"] if not any(one.startswith("-n") for one in arguments) else []
    os.chdir(HERE.parent)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "e2e", f"--clients={found}", *workers, *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
