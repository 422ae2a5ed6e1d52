# SPDX-License-Identifier: Apache-2.0
"""Limits of tokens over the API: shown, set, and in force at once; what a refusal says; and whose jobs find room."""

from typing import Any

import pytest

from broker.core.allowance import LIMITS
from broker.fleet.tokens import Scope
from broker.store import jobs
from tests.api.problems import problem
from tests.service import Service, checked

NETWORK = {"links": [{"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}]}
SIMULATION = {"requests": 50, "load": 0.8, "planners": ["vbls"], "network": NETWORK}
BOOK = {"source": "A", "destination": "B", "volume_bytes": 10**9}


async def make(service: Service, *scopes: Scope, **limits: Any) -> tuple[str, Any]:
    body = {"name": "x", "scopes": [str(scope) for scope in scopes], "limits": limits}
    made = checked(await service.client.post("/v1/tokens", json=body), 201)
    return made["id"], service.as_token(made["token"])


async def test_limits_are_shown_set_and_in_force_at_once(service: Service) -> None:
    await service.link()
    token, user = await make(service, Scope.SUBMIT, open_transfers=1)
    checked(await user.post("/v1/transfers", json=BOOK), 201)
    said = problem(await user.post("/v1/transfers", json=BOOK), 409, "limit-exceeded")
    assert said["limit"] == {"name": "open_transfers", "value": 1, "used": 1} and "bwb token set" in said["detail"]
    problem(await user.post("/v1/quotes", json=BOOK), 409, "limit-exceeded")
    items = checked(await user.post("/v1/transfers/batch", json=[BOOK, BOOK]))["items"]
    assert [item["status"] for item in items] == [409, 409]

    answer = await service.client.get(f"/v1/tokens/{token}")
    shown = checked(answer)
    assert shown["limits"].keys() == set(LIMITS)
    assert shown["limits"]["open_transfers"] == {"value": 1, "default": False, "used": 1}
    assert shown["limits"]["priority"] == {"value": 100, "default": True, "used": None}
    assert 0 < shown["limits"]["booked_gb_hours"]["used"] < 1
    changed = await service.client.patch(
        f"/v1/tokens/{token}",
        json={"limits": {"open_transfers": 3, "priority": "unlimited"}},
        headers={"If-Match": answer.headers["etag"]},
    )
    assert checked(changed)["limits"]["priority"] == {"value": None, "default": False, "used": None}
    stale = {"limits": {"jobs": 1}}
    problem(
        await service.client.patch(f"/v1/tokens/{token}", json=stale, headers={"If-Match": answer.headers["etag"]}),
        412,
        "precondition-failed",
    )
    assert [item["status"] for item in checked(await user.post("/v1/transfers/batch", json=[BOOK] * 3))["items"]] == [201, 201, 409]
    listed = {item["id"]: item for item in checked(await service.client.get("/v1/tokens"))}
    assert (
        listed[token]["limits"]["open_transfers"] == {"value": 3, "default": False, "used": 3} and listed[token]["transfers"] == 3
    )
    default = checked(await service.client.patch(f"/v1/tokens/{token}", json={"limits": {"open_transfers": None}}))
    assert default["limits"]["open_transfers"] == {"value": 50_000, "default": True, "used": 3}
    (event, *_) = checked(await service.client.get("/v1/audit-log", params={"action": "token.changed"}))["items"]
    assert (event["subject"], event["after"]) == (token, {"limits": {"priority": "unlimited"}})
    await service.audit()


@pytest.mark.parametrize(
    "limits",
    [{"open_transfers": -1}, {"open_transfers": "many"}, {"priority": 1001}, {"horizon_s": 0}, {"colour": 1}, {"jobs": True}],
)
async def test_limits_that_are_none(limits: dict[str, Any], service: Service) -> None:
    token, _ = await make(service, Scope.READ)
    answer = problem(await service.client.patch(f"/v1/tokens/{token}", json={"limits": limits}), 422, "invalid")
    assert all(error["field"].startswith(f"limits.{next(iter(limits))}") for error in answer["errors"])
    problem(await service.client.patch("/v1/tokens/tok_none", json={"limits": {}}), 404, "not-found")


async def test_the_year_2052(service: Service) -> None:
    await service.link()
    _, user = await make(service, Scope.SUBMIT)
    for field in ("not_before", "deadline"):
        wish = {**BOOK, field: "2052-01-01T00:00:00Z"}
        for path in ("/v1/transfers", "/v1/quotes"):
            assert problem(await user.post(path, json=wish), 422, "beyond-limits", field)["limit"]["name"] == "horizon_s"
    made = checked(await user.post("/v1/transfers", json=BOOK), 201)
    change = {"deadline": "2052-01-01T00:00:00Z"}
    problem(await user.patch(f"/v1/transfers/{made['id']}", json=change), 422, "beyond-limits", "deadline")
    problem(await user.post("/v1/transfers", json={**BOOK, "priority": 101}), 422, "beyond-limits", "priority")
    checked(await service.client.patch(f"/v1/transfers/{made['id']}", json=change))  # an operator may


async def test_a_hundred_simulations_turn_no_operator_away(service: Service) -> None:
    """Nor another user: each has a few, and operators have places of their own and the first turn."""
    await service.link()
    service.app.state.settings.job_queue = 6
    _, greedy = await make(service, Scope.SUBMIT)
    answers = [await greedy.post("/v1/simulations", json=SIMULATION) for _ in range(20)]
    assert [answer.status_code for answer in answers] == [202] * 4 + [409] * 16
    assert problem(answers[-1], 409, "limit-exceeded")["limit"] == {"name": "jobs", "value": 4, "used": 4}
    others = [(await make(service, Scope.SUBMIT))[1] for _ in range(2)]
    assert [(await user.post("/v1/simulations", json=SIMULATION)).status_code for user in others] == [202, 202]
    problem(await others[0].post("/v1/simulations", json=SIMULATION), 503, "unavailable")
    plan = checked(await service.client.post("/v1/plans", json={}), 202)
    async with service.database.transaction() as connection:
        taken = await jobs.claim(connection, service.clock(), 1)
    assert taken is not None and taken.id == plan["id"], "the operator's comes first"
    checked(await greedy.post(f"/v1/simulations/{answers[0].json()['id']}/cancel"))
    checked(await greedy.post("/v1/simulations", json=SIMULATION), 202)
