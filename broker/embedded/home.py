# SPDX-License-Identifier: Apache-2.0
"""The state directory of `bwb up`: everything that it must find again after a kill -9 lies here, and only its owner may look."""

import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.embedded import UpError

_SOCKET_PATH_LIMIT = 107  # sockaddr_un.sun_path holds 108 bytes with the final NUL
_LONGEST_SOCKET_NAME = ".s.PGSQL.5432"
# libpq and SQLAlchemy split a host at commas and colons and unquote the rest: sockets lie only where no character is special.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+~-]+")
_LOG_LIMIT_BYTES = 10 * 2**20


class Home:
    """The state directory of `bwb up`: private files, logs, sockets, and the lock on it all."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.stat()
            if found.st_uid != os.geteuid() or found.st_mode & stat.S_ISVTX:
                raise UpError(f"the state directory {self.path} must be a private directory of yours; give another --state-dir")
            self.path.chmod(0o700)
            self.logs = self._private("logs")
        except OSError as error:
            raise UpError(f"cannot use the state directory {self.path}: {error.strerror}") from error
        self.postgres = self.path / "postgres"
        self.token = self.path / "admin.token"
        self.beat_schedule = self._private("beat") / "schedule"
        self._info = self.path / "bwb.json"
        self._children = self.path / "children.json"
        self._lock = -1

    def _private(self, name: str) -> Path:
        directory = self.path / name
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory

    # -- one `bwb up` at a time ------------------------------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The kernel drops the lock with its holder, so that a killed `bwb up` never blocks the next one."""
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UpError(f"the state directory {self.path} is in use by another bwb up ({self._holder()})") from None
            self.holds(None)
            yield
        finally:
            os.close(self._lock)

    def holds(self, url: str | None) -> None:
        """Written into the lock file itself (never renamed: the lock belongs to the inode) for the message that others get."""
        text = json.dumps({"pid": os.getpid(), "url": url}).encode()
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text, 0)

    def _holder(self) -> str:
        try:
            holder = json.loads(os.pread(self._lock, 4096, 0))
        except ValueError:
            return "it has just started"
        return f"pid {holder['pid']}, {holder['url'] or 'not ready yet'}"

    # -- what others read ------------------------------------------------------------------------------------------------------

    def announce(self, url: str, pids: dict[str, int | None]) -> None:
        """Write `bwb.json`, by which client commands find the broker."""
        write_private(self._info, json.dumps({"url": url, "pids": pids}, indent=1) + "\n")

    def withdraw(self) -> None:
        """Remove `bwb.json`: nobody serves here any more."""
        self._info.unlink(missing_ok=True)

    # -- what the next `bwb up` needs ------------------------------------------------------------------------------------------

    def remember_children(self, children: dict[str, Any]) -> None:
        """Write down which processes run, for the next `bwb up`."""
        write_private(self._children, json.dumps(children))

    def remembered_children(self) -> dict[str, Any]:
        """What `remember_children` wrote; nothing where that cannot be read."""
        try:
            children = json.loads(self._children.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return children if isinstance(children, dict) else {}

    def secret_key(self) -> str:
        """The key that signs sessions; made at the first call, kept from then on."""
        path = self.path / "secret.key"
        if not path.exists():
            write_private(path, secrets.token_hex(32) + "\n")
        return path.read_text().strip()

    def sockets(self) -> Path:
        """A private directory for unix sockets: in the state directory, or under the temporary one where that path is too long."""
        inside = self.path / "run"
        if _fits(inside):
            return self._private("run")
        record = self.path / "run.path"
        if record.exists() and _is_private(recorded := Path(record.read_text().strip())) and _fits(recorded):
            return recorded
        for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108  a TMPDIR may be as long as the state directory
            if _fits(Path(parent) / "bwb-12345678"):
                outside = Path(tempfile.mkdtemp(prefix="bwb-", dir=parent))
                write_private(record, f"{outside}\n")
                return outside
        raise UpError(
            f"no directory for unix sockets: {inside} and {tempfile.gettempdir()} are too long or hold special characters"
        )

    def remove_outside_sockets(self) -> None:
        """Remove the directory of sockets that lies outside the state directory, if there is one."""
        record = self.path / "run.path"
        if record.exists():
            outside = Path(record.read_text().strip())
            if _is_private(outside):
                for socket in outside.iterdir():
                    socket.unlink()
                outside.rmdir()
            record.unlink()

    # -- logs ------------------------------------------------------------------------------------------------------------------

    def log(self, name: str) -> Path:
        """The log file to append to; a full one becomes NAME.log.1, in place of an older one."""
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > _LOG_LIMIT_BYTES:
            path.replace(path.with_suffix(".log.1"))
        path.touch(mode=0o600)
        return path


def write_private(path: Path, text: str) -> None:
    """Replace a file at one stroke: a reader, or we after a power cut, sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _fits(directory: Path) -> bool:
    longest = os.fsencode(directory / _LONGEST_SOCKET_NAME)
    return len(longest) <= _SOCKET_PATH_LIMIT and _PLAIN_PATH.fullmatch(str(directory)) is not None


def _is_private(directory: Path) -> bool:
    """Is it (still) ours? Anybody may have made a directory of that name under /tmp since a clean-up removed it."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
