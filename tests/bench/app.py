# SPDX-License-Identifier: Apache-2.0
"""The broker with one more route: a POST that validates the same body behind the same token and does nothing. The yardstick."""

from fastapi import FastAPI, Response

from broker.api import render
from broker.api.context import BrokerDependency, Submitter
from broker.api.parse_request import parse_ask
from broker.api.schemas import TransferRequest
from broker.main import create_app as create_broker


def create_app() -> FastAPI:
    app = create_broker()

    @app.post("/v1/no-op", status_code=201)
    async def no_op(body: TransferRequest, broker: BrokerDependency, caller: Submitter) -> Response:
        asked = parse_ask(body, broker.new_id("tr"))
        return render.answer({"id": asked.id, "owner": caller.id}, 201)

    return app
