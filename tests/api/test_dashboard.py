# SPDX-License-Identifier: Apache-2.0
"""What is served beside the API: the page under every path, its files and no others, and the headers that keep it to itself."""

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from broker.api.dashboard import Dashboard
from broker.main import create_app
from broker.settings import Settings
from tests.api.problems import problem
from tests.service import Service

PAGE = "<!doctype html><title>built</title>"
PAGE_WANTED = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "main-abc123.js").write_text("export {};" * 100)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "way-out").symlink_to(tmp_path)
    app = create_app(Settings(database_url="postgresql://nobody/none"))
    app.router.default = Dashboard(folder)
    return app


@pytest.fixture
async def client(app: FastAPI) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://broker", headers={"Accept-Encoding": "identity"})


@pytest.mark.parametrize("path", ["/", "/links/L1", "/hosts/dtn.example.org", "/transfers?state=ACTIVE", "/hosts/a.js", "/V1/x"])
async def test_every_path_shows_the_page(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=PAGE_WANTED)
    assert (answer.status_code, answer.text) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8" and answer.headers["cache-control"] == "no-cache"
    again = await client.get(path, headers=PAGE_WANTED | {"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"") and again.headers["etag"] == answer.headers["etag"]


async def test_files_are_served_as_what_they_are(client: httpx.AsyncClient) -> None:
    script = await client.get("/assets/main-abc123.js")
    assert script.headers["content-type"].startswith("text/javascript") and script.text.startswith("export")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    zipped = await client.get("/assets/main-abc123.js", headers={"Accept-Encoding": "gzip, br"})
    assert zipped.headers["content-encoding"] == "gzip" and zipped.text == script.text
    assert int(zipped.headers["content-length"]) < int(script.headers["content-length"])
    assert zipped.headers["etag"] != script.headers["etag"] and zipped.headers["vary"] == "Accept-Encoding"
    assert (await client.get("/icon.svg")).headers["content-type"] == "image/svg+xml"
    head = await client.head("/")
    assert head.status_code == 200 and head.content == b""


@pytest.mark.parametrize(
    "path",
    [
        "/assets/gone-1.js", "/assets/", "/favicon.ico", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/way-out/secret.txt",
        "//etc/passwd.txt", "/a%00b.js", "/" + "x" * 5000 + ".js",
    ],
)  # fmt: skip
async def test_other_files_are_not_there(client: httpx.AsyncClient, path: str) -> None:
    problem(await client.get(path), 404, "not-found")
    page = await client.get(path, headers=PAGE_WANTED)
    assert "secret" not in page.text


async def test_the_api_keeps_its_errors(client: httpx.AsyncClient) -> None:
    problem(await client.get("/v1/nothing", headers=PAGE_WANTED), 404, "not-found")
    problem(await client.post("/links/L1", headers=PAGE_WANTED), 404, "not-found")
    problem(await client.put("/healthz"), 405, "method-not-allowed")


async def test_a_new_build_is_seen(app: FastAPI, client: httpx.AsyncClient, tmp_path: Path) -> None:
    before = await client.get("/")
    (tmp_path / "dist" / "index.html").write_text("another")
    after = await client.get("/", headers={"If-None-Match": before.headers["etag"]})
    assert after.text == "another"


async def test_without_a_build_it_says_how(app: FastAPI, client: httpx.AsyncClient, tmp_path: Path) -> None:
    app.router.default = Dashboard(tmp_path / "none")
    answer = await client.get("/links/L1", headers=PAGE_WANTED)
    assert answer.status_code == 404 and "make dashboard" in answer.text


async def test_every_answer_is_kept_to_itself(service: Service, client: httpx.AsyncClient) -> None:
    script_only = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'"
    )
    for answer in [await client.get("/"), await service.client.get("/v1/links"), await service.client.get("/v1/none")]:
        assert answer.headers["content-security-policy"].startswith(script_only)
        assert answer.headers["content-security-policy"].endswith("frame-ancestors 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert (await service.client.get("/v1/links")).headers["cache-control"] == "no-store"


async def test_the_contract_is_shown_without_foreign_hosts(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200 and "://" not in page.text and "/swagger/swagger-ui-bundle.js" in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]
