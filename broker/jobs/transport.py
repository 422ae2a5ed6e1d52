# SPDX-License-Identifier: Apache-2.0
"""What the API knows of Celery: the broker's address, and the name of the message that it sends."""

LOOK = "broker.jobs.long.look"


def transport(redis_url: str) -> str:
    """The Redis URL as Celery spells it: it knows unix sockets under another scheme."""
    return redis_url.replace("unix://", "redis+socket://", 1) if redis_url else "memory://"
