# SPDX-License-Identifier: Apache-2.0
"""Tells the workers that a job waits. The message has no content and may get lost: workers also look every few seconds."""

import logging
import threading

from broker.jobs.transport import LOOK, transport

log = logging.getLogger(__name__)

_EXPIRES_S = 5.0


class Nudge:
    """Call it whenever there is something to do. It never waits and never fails; without Redis it does nothing."""

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url
        self._busy = threading.Lock()

    def __call__(self) -> None:
        """Poke a worker from a thread, unless one does so already. Never raises: the row in the database is what counts."""
        if self._url and self._busy.acquire(blocking=False):
            threading.Thread(target=self._send, name="nudge", daemon=True).start()

    def _send(self) -> None:
        try:
            from celery import Celery  # here: most API processes never queue a job

            options = {"socket_connect_timeout": 2, "socket_timeout": 2}
            with Celery(broker=transport(self._url), set_as_current=False) as app:
                app.conf.broker_transport_options = options
                app.send_task(LOOK, expires=_EXPIRES_S, retry=False, ignore_result=True)
        except Exception as error:  # whatever a transport may raise: beat looks without us
            log.info("no message to the workers (%s); they look by themselves", error)
        finally:
            self._busy.release()
