# SPDX-License-Identifier: Apache-2.0
"""The dashboard: what `make dashboard` leaves in broker/dashboard/dist, served under every path that is none of the API's.

A path that names no file shows the page all the same: it is a view, and the page knows which.
"""

import asyncio
import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

import broker

FOLDER = Path(broker.__file__).parent / "dashboard" / "dist"

_INDEX = "index.html"
_HASHED = "assets/"  # the name of a file in it says what is in the file
_COMPRESSED = frozenset({".js", ".css", ".html", ".svg", ".json", ".map"})
_NOT_BUILT = """<!doctype html>
<html lang="en">
<title>Bandwidth broker</title>
<h1>The dashboard is not built</h1>
<p>The broker runs. To see its dashboard here, run <code>make dashboard</code> in the sources and load this page again.</p>
<p>The API is under <code>/v1</code>; <a href="/openapi.json">its contract</a>; the command <code>bwb</code> shows the rest.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class _File:
    version: tuple[int, int, int]
    body: bytes
    zipped: bytes | None
    tag: str
    media_type: str


class Dashboard:
    """An ASGI application for paths without a route."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder.resolve()
        self._files: dict[str, _File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file of the dashboard, or its page for a path of its own."""
        path = scope["path"].lstrip("/")
        if scope["method"] not in ("GET", "HEAD") or path.split("/")[0] == "v1":
            raise HTTPException(404)
        headers = Headers(scope=scope)
        name = self._name(path, headers.get("accept", ""))
        found = await asyncio.to_thread(self._read, name)
        if found is not None:
            answer = _answer(name, found, headers)
        elif name == _INDEX:
            answer = HTMLResponse(_NOT_BUILT, 404)
        else:
            raise HTTPException(404)
        await answer(scope, receive, send)

    def _name(self, path: str, accept: str) -> str:
        """The file for a path. Names of hosts and links have dots as well: what asks for a page gets the page."""
        if path.startswith(_HASHED):
            return path
        if "text/html" not in accept and PurePosixPath(path).suffix in mimetypes.types_map:
            return path
        return path if path and self._path(path) is not None else _INDEX

    def _path(self, name: str) -> Path | None:
        """The file of that name in our folder, and in no other."""
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder) and path.is_file()
        except (OSError, ValueError):  # a name that is too long, or has a NUL in it
            return None
        return path if inside else None

    def _read(self, name: str) -> _File | None:
        path = self._path(name)
        if path is None:
            return None
        about = path.stat()
        version = (about.st_ino, about.st_size, about.st_mtime_ns)
        known = self._files.get(name)
        if known is None or known.version != version:
            body = path.read_bytes()
            zipped = gzip.compress(body, mtime=0) if path.suffix in _COMPRESSED else None
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            known = self._files[name] = _File(version, body, zipped, hashlib.sha256(body).hexdigest()[:32], media_type)
        return known


def _answer(name: str, file: _File, asked: Headers) -> Response:
    zipped = file.zipped is not None and "gzip" in asked.get("accept-encoding", "")
    tag = f'"{file.tag}{"-gzip" if zipped else ""}"'
    headers = {
        "ETag": tag,
        "Vary": "Accept-Encoding",
        "Cache-Control": "public, max-age=31536000, immutable" if name.startswith(_HASHED) else "no-cache",
    }
    if tag in asked.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if not zipped:
        return Response(file.body, headers=headers, media_type=file.media_type)
    return Response(file.zipped, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media_type)
