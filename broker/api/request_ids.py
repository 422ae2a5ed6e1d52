# SPDX-License-Identifier: Apache-2.0
"""An id for each request: in a header of its answer, in its problem and in the log, so that what a caller saw is found in what we logged."""

import itertools
import logging
import os
import re
from contextvars import ContextVar

from starlette.types import Scope

HEADER = "X-Request-ID"

_NAME = HEADER.lower().encode()
_FIT = re.compile(rb"[A-Za-z0-9._:-]{1,64}")  # for a header and a line of the log
_PROCESS = os.urandom(6).hex()  # counting on from it costs a tenth of drawing each id
_numbers = itertools.count(1)
_current: ContextVar[str] = ContextVar("request_id", default="")


def begin(scope: Scope) -> bytes:
    """The id of the request that begins here: the caller's own where it is fit to be logged, else a new one."""
    for name, value in scope["headers"]:
        if name == _NAME and _FIT.fullmatch(value):
            request_id: bytes = value
            break
    else:
        request_id = b"%s-%x" % (_PROCESS.encode(), next(_numbers))
    _current.set(request_id.decode())
    return request_id


def current() -> str:
    """The id of the request that is being answered; empty outside of any."""
    return _current.get()


class OfRequest(logging.Filter):
    """Adds `of_request` to each record: the id in brackets, or nothing outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes."""
        request_id = current()
        record.of_request = f" [{request_id}]" if request_id else ""
        return True
