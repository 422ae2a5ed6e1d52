# SPDX-License-Identifier: Apache-2.0
"""/v1/topology: the whole network at once."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response

from broker.api import network_answers, render
from broker.api.context import BrokerDependency, ExpectedRevision, Operator, Reader, etag
from broker.api.contract.parts import TAGGED
from broker.api.network_schemas import TopologyBody, TopologyChangeOut, TopologyOut
from broker.api.routing import make_router
from broker.core.link_document import document_of
from broker.core.network import Link
from broker.core.request import FieldProblem
from broker.desk.ground.command import Preview
from broker.desk.network.topology import PutTopology
from broker.store import bookings, nodes
from broker.store.nodes import Node

router = make_router("links", "/v1/topology")


@router.get("", operation_id="getTopology", response_model=TopologyOut, responses={200: TAGGED})
async def show(broker: BrokerDependency, _: Reader) -> Response:
    """The network as PUT takes it: every link but hosts' NICs, without windows."""
    async with broker.database.transaction() as connection:
        # The revision first: what a change in between adds is then met with a revision that is too old, never the other way round.
        revision = await bookings.topology_version(connection)
        records = await bookings.load_links(connection)
        known = await nodes.read_all(connection)
    links = [document_of(record.link) for record in records.values() if record.host is None]
    return render.answer(
        {"links": links, "nodes": [asdict(node) for node in known.values()], "revision": revision}, headers={"ETag": etag(revision)}
    )


@router.put("", operation_id="putTopology", response_model=TopologyChangeOut, responses={200: TAGGED})
async def put(
    body: TopologyBody,
    broker: BrokerDependency,
    caller: Operator,
    revision: ExpectedRevision,
    preview: Annotated[bool, Query(description="change nothing, and answer what would be with on_broken=replan")] = False,
) -> Response:
    """Replace the network in one step. Hosts' NICs and windows are not changed.

    Where this takes capacity from under bookings, it is refused with the promises that would break, unless `on_broken` is `replan`.
    The same document a second time changes nothing.
    """
    links = [network_answers.link_of(item) for item in body.links]
    places = None if body.nodes is None else [Node(**node.model_dump()) for node in body.nodes]
    network_answers.refuse([*_mistakes(links), *_node_mistakes(places or ())])
    expected = body.revision if revision is None else revision
    command = PutTopology(links, caller.id, body.prune, preview or body.on_broken == "replan", expected, broker.policy, places)
    done = await broker.desk.submit(Preview(command) if preview else command)
    answer: dict[str, Any] = {
        "created": done.created,
        "changed": done.changed,
        "deleted": done.deleted,
        "unchanged": done.unchanged,
        "cut_off": done.cut_off,
        "revision": done.revision,
    }
    return render.answer(answer | network_answers.describe_outcomes(done.outcomes, preview), headers={"ETag": etag(done.revision)})


def _node_mistakes(given: Sequence[Node]) -> Iterator[FieldProblem]:
    first: dict[str, int] = {}
    for number, node in enumerate(given):
        if first.setdefault(node.id, number) != number:
            yield FieldProblem(f"nodes.{number}.id", f"{node.id!r} is the id of nodes.{first[node.id]} already")
        if (node.latitude is None) != (node.longitude is None):
            missing = "latitude" if node.latitude is None else "longitude"
            yield FieldProblem(f"nodes.{number}.{missing}", "a place has a latitude and a longitude")


def _mistakes(links: list[Link]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    first: dict[str, int] = {}
    for number, link in enumerate(links):
        if first.setdefault(link.id, number) != number:
            found.append(FieldProblem(f"links.{number}.id", f"{link.id!r} is the id of links.{first[link.id]} already"))
        found.extend(network_answers.mistakes(link, f"links.{number}."))
    return found
