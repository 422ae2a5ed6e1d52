# SPDX-License-Identifier: Apache-2.0
"""Routes that refuse what their operation does not know: query parameters by name, and bodies that are not JSON.

A misspelt filter that is ignored answers with everything there is, and a misspelt `preview` books.
"""

from collections.abc import Callable, Coroutine, Iterable
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from broker.desk.ground.problems import Problem

_MAX_NAMED = 20
_MAX_NAME = 60


def make_router(tag: str, prefix: str = "") -> APIRouter:
    """A router of the API's own routes, under one tag of the contract."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=Route)


class Route(APIRoute):
    """An operation of the contract. Answers 422 for query parameters and 415 for media types that the contract does not name."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the checks of query parameters and media types."""
        handle = super().get_route_handler()
        known = frozenset(field.alias for field in get_flat_params(self.dependant) if isinstance(field.field_info, Query))
        takes_body = self.body_field is not None

        async def checked(request: Request) -> Response:
            if request.scope["query_string"]:
                _refuse_unknown(request.query_params.keys(), known)
            if takes_body:
                await _refuse_other_media(request)
            return await handle(request)

        return checked


def _refuse_unknown(given: Iterable[str], known: frozenset[str]) -> None:
    unknown = [name for name in given if name not in known]
    if not unknown:
        return
    there_are = f"there are {', '.join(sorted(known))}" if known else "this operation has none"
    named = unknown[:_MAX_NAMED]
    errors = [{"field": name[:_MAX_NAME], "detail": f"unknown query parameter; {there_are}"} for name in named]
    more = {"errors": errors} | ({"errors_total": len(unknown)} if len(unknown) > len(named) else {})
    raise Problem("invalid", f"unknown query parameter {unknown[0][:_MAX_NAME]!r}; {there_are}", more)


async def _refuse_other_media(request: Request) -> None:
    given = request.headers.get("content-type")
    if given is None:
        if await request.body():  # a missing body has a refusal of its own, which names what is missing
            raise Problem("unsupported-media-type", "the body has no Content-Type; send application/json")
    elif not _is_json(given):
        raise Problem("unsupported-media-type", f"{given[:100]!r} is not taken; send application/json")


@lru_cache(maxsize=128)
def _is_json(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
