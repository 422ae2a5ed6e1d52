# SPDX-License-Identifier: Apache-2.0
"""The Celery application and the beat schedule. Redis is transport only: a lost message means one round later."""

from celery import Celery

from broker.jobs.transport import LOOK, transport
from broker.settings import settings

app = Celery("broker", broker=transport(settings().redis_url), include=["broker.jobs.periodic", "broker.jobs.long"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,  # every periodic task is idempotent and comes again soon: better lost than twice
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # Redis may be away for a night; the worker waits
    broker_transport_options={"visibility_timeout": 3600},
    timezone="UTC",
    beat_max_loop_interval=1,
    beat_schedule={
        "tick": {"task": "broker.jobs.periodic.tick", "schedule": 1.0, "options": {"expires": 5}},
        # A message at each POST makes jobs start at once; this finds those whose message was lost, and those whose worker died.
        "jobs": {"task": LOOK, "schedule": 2.0, "options": {"expires": 4}},
        "audit": {"task": "broker.jobs.periodic.audit_invariants", "schedule": 30.0, "options": {"expires": 60}},
        "prune": {"task": "broker.jobs.periodic.prune", "schedule": 3600.0, "options": {"expires": 3600}},
    },
)
