# SPDX-License-Identifier: Apache-2.0
"""Who may do what; what happens to tokens; and that no secret is ever shown twice."""

import pytest

from broker.fleet.tokens import Scope
from tests.api.bodies import GOOD
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked, client_of

# (method, path, the least scope, body)
ROUTES = [
    ("GET", "/v1/transfers", Scope.READ, None),
    ("GET", "/v1/links", Scope.READ, None),
    ("GET", "/v1/hosts", Scope.READ, None),
    ("GET", "/v1/links/L1/calendar", Scope.READ, None),
    ("POST", "/v1/quotes", Scope.READ, GOOD),
    ("POST", "/v1/transfers", Scope.SUBMIT, GOOD),
    ("POST", "/v1/transfers/batch", Scope.SUBMIT, [GOOD]),
    ("POST", "/v1/links", Scope.OPERATE, {"id": "L2", "source": "A", "target": "B", "capacity_bps": 1}),
    ("PATCH", "/v1/links/L1", Scope.OPERATE, {"metric": 1}),
    ("POST", "/v1/links/L1/windows", Scope.OPERATE, {"begin": at(1e6), "end": at(2e6)}),
    ("POST", "/v1/hosts/enrolment-tokens", Scope.OPERATE, {"host": "h", "node": "A", "nic_bps": 1}),
    ("GET", "/v1/audit", Scope.OPERATE, None),
    ("GET", "/v1/audit-log", Scope.OPERATE, None),
    ("GET", "/v1/tokens", Scope.ADMIN, None),
    ("POST", "/v1/tokens", Scope.ADMIN, {"name": "x", "scopes": ["read"]}),
    ("DELETE", "/v1/links/L2", Scope.OPERATE, None),
]
INCLUDES = {
    Scope.READ: {Scope.READ},
    Scope.SUBMIT: {Scope.READ, Scope.SUBMIT},
    Scope.OPERATE: {Scope.READ, Scope.SUBMIT, Scope.OPERATE},
    Scope.ADMIN: {Scope.READ, Scope.ADMIN},
    Scope.AGENT: set(),
}


@pytest.mark.parametrize("held", list(Scope))
async def test_every_route_asks_for_its_scope(held: Scope, service: Service) -> None:
    await service.link()
    client = service.as_token(await service.token(held, host="h" if held is Scope.AGENT else None))
    for method, path, needed, body in ROUTES:
        response = await client.request(method, path, json=body)
        if needed in INCLUDES[held]:
            assert response.status_code < 300, (held, path, response.text)
        else:
            assert problem(response, 403, "forbidden")["scope"] == needed, (held, path)


async def test_every_route_is_closed_to_strangers(service: Service) -> None:
    """Taken from the contract, so that a new route is not forgotten."""
    open_to_all = {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("POST", "/v1/agents/enrol"),
        ("POST", "/v1/session"),
    }
    # What a host needs before it has a token; no secret is in it.
    open_to_all |= {("GET", f"/v1/agents/{name}") for name in ("install.sh", "download/{platform}", "download/{platform}.sha256")}
    stranger = client_of(service.app, "")
    checked_routes = 0
    for path, operations in service.app.openapi()["paths"].items():
        for method in operations:
            if (method.upper(), path) in open_to_all:
                continue
            response = await stranger.request(method, path.replace("{", "").replace("}", ""))
            assert response.headers["www-authenticate"] == "Bearer", (method, path, response.text)
            problem(response, 401, "unauthorized")
            checked_routes += 1
    assert checked_routes > 25


async def test_tokens_that_are_none(service: Service, clock: Clock) -> None:
    for header in ("", "Bearer", "Bearer ", "Basic YTpi", "Bearer bwb_wrong", "Bearer \xff\xfe", "Bearer " + "x" * 5000):
        stranger = client_of(service.app, "")
        response = await stranger.get("/v1/transfers", headers=[(b"Authorization", header.encode("latin-1"))])
        problem(response, 401, "unauthorized")


async def test_a_token_ends(service: Service, clock: Clock) -> None:
    body = {"name": "robot", "scopes": ["read"], "expires": at(100)}
    made = checked(await service.client.post("/v1/tokens", json=body), 201)
    robot = service.as_token(made["token"])
    checked(await robot.get("/v1/transfers"))
    clock.advance(101)
    problem(await robot.get("/v1/transfers"), 401, "unauthorized")
    made = checked(await service.client.post("/v1/tokens", json={"name": "robot 2", "scopes": ["read"]}), 201)
    robot = service.as_token(made["token"])
    checked(await robot.get("/v1/transfers"))
    assert (await service.client.delete(f"/v1/tokens/{made['id']}")).status_code == 204
    problem(await robot.get("/v1/transfers"), 401, "unauthorized")
    problem(await service.client.delete(f"/v1/tokens/{made['id']}"), 404, "not-found")
    problem(await service.client.post("/v1/tokens", json={**body, "expires": at(1)}), 422, "invalid", "expires")
    problem(await service.client.post("/v1/tokens", json={**body, "scopes": ["agent"]}), 422, "invalid", "scopes.0")


async def test_secrets_are_shown_once_and_stored_nowhere(service: Service) -> None:
    await service.link()
    secrets = [checked(await service.client.post("/v1/tokens", json={"name": "t", "scopes": ["read"]}), 201)["token"]]
    body = {"host": "h1", "node": "A", "nic_bps": 10**9}
    secrets.append(checked(await service.client.post("/v1/hosts/enrolment-tokens", json=body), 201)["token"])
    agent = await service.enrol("h2", "B")
    secrets.append(agent.headers["authorization"].split()[1])
    for path in ("/v1/tokens", "/v1/hosts", "/v1/audit-log", "/metrics", "/v1/links"):
        shown = (await service.client.get(path)).text
        assert not any(secret in shown for secret in secrets), path
    async with service.database.transaction() as connection:
        tables = await connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in tables.all():
            rows = await connection.exec_driver_sql(f"SELECT CAST(t AS text) FROM {table} AS t")
            assert not any(secret in row[0] for row in rows for secret in secrets), table


async def test_other_peoples_transfers(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    stranger = service.as_token(await service.token(Scope.SUBMIT))
    operator = service.as_token(await service.token(Scope.OPERATE))
    path = f"/v1/transfers/{transfer['id']}"
    assert checked(await stranger.get(path)) == transfer
    assert problem(await stranger.post(path + "/cancel"), 403, "forbidden")["scope"] == "operate"
    problem(await stranger.patch(path, json={"priority": 9}), 403, "forbidden")
    assert checked(await operator.post(path + "/cancel"))["state"] == "CANCELED"


async def test_what_a_token_is_used_for(service: Service, clock: Clock) -> None:
    made = checked(await service.client.post("/v1/tokens", json={"name": "robot", "scopes": ["submit"]}), 201)
    assert made["last_used"] is None

    async def shown() -> tuple[str | None, int, int]:
        [found] = [item for item in checked(await service.client.get("/v1/tokens")) if item["id"] == made["id"]]
        return found["last_used"], found["sessions"], found["transfers"]

    assert await shown() == (None, 0, 0)
    robot = service.as_token(made["token"])
    await service.link()
    body = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}
    transfer = checked(await robot.post("/v1/transfers", json=body), 201)
    first, *_ = await shown()
    checked(await robot.get("/v1/links"))
    assert first is not None and await shown() == (first, 0, 1), "written once a minute at most"
    checked(await robot.post(f"/v1/transfers/{transfer['id']}/cancel"))
    clock.advance(61)
    checked(await service.client.post("/v1/session", json={"token": made["token"]}), 201)
    later, sessions, transfers = await shown()
    assert (later or "") > first and (sessions, transfers) == (1, 0)
    clock.advance(service.app.state.settings.session_idle_s)
    assert await shown() == (later, 0, 0)
