# SPDX-License-Identifier: Apache-2.0
"""`bwb serve`, `bwb worker`, `bwb migrate`: single parts of the broker, each in any number."""

import os
import socket
import sys
import time
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

DEFAULT_PORT = 7410
_APP = "broker.main:create_app"
_EMBEDDED_START_S = 30
_GRACE_S = 3  # event streams do not end by themselves; all other requests have ended by then


def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = DEFAULT_PORT,
    workers: Annotated[int, typer.Option(min=1, help="API processes behind the port.")] = 1,
    access_log: Annotated[bool, typer.Option(help="Log each request.")] = False,
    fd: Annotated[int | None, typer.Option(hidden=True, help="An inherited socket, in place of host and port.")] = None,
) -> None:
    """Run the API and the dashboard. Needs BWB_DATABASE_URL; `bwb up` brings its own database."""
    import uvicorn

    from broker.api.connections import Guarded, raise_file_limit

    raise_file_limit()
    options: dict[str, Any] = {
        "factory": True,
        "loop": "uvloop",
        "http": Guarded,
        "ws": "none",  # WebSockets are not used, and their connections would not be monitored
        "proxy_headers": False,  # uvicorn would trust any process on this machine; BWB_TRUSTED_PROXIES names the trusted ones
        "lifespan": "on",
        "access_log": access_log,
        "log_config": _log_config(),
        "server_header": False,
        "timeout_graceful_shutdown": _GRACE_S,
    }
    if fd is None:
        uvicorn.run(_APP, host=host, port=port, workers=workers, **options)
        return
    import_module(_APP.partition(":")[0])  # takes a while, and `bwb up` starts this process before its database
    if token_dir := sys.stdin.read():  # `bwb up` sends it at the first start, but not at a restart
        _prepare(Path(token_dir), _EMBEDDED_START_S)
    server = uvicorn.Server(uvicorn.Config(_APP, **options))
    server.run(sockets=[socket.socket(fileno=fd)])
    if not server.started:
        raise typer.Exit(3)  # the same exit code as uvicorn.run


def _log_config() -> dict[str, Any]:
    """uvicorn's log configuration, and our loggers in the same form: each line has the id of its request."""
    from uvicorn.config import LOGGING_CONFIG

    config = deepcopy(LOGGING_CONFIG)
    config["filters"] = {"of_request": {"()": "broker.api.request_ids.OfRequest"}}
    for formatter in config["formatters"].values():
        formatter["fmt"] += "%(of_request)s"
    for handler in config["handlers"].values():
        handler["filters"] = ["of_request"]
    config["loggers"]["broker"] = {"handlers": ["default"], "level": "WARNING", "propagate": False}
    return config


def worker_command(
    beat: Annotated[bool, typer.Option("--beat", help="Also send the periodic jobs; exactly one of your workers should.")] = False,
    schedule: Annotated[Path, typer.Option(help="Where beat remembers when each job last ran.")] = Path("beat-schedule"),
    concurrency: Annotated[
        int, typer.Option(min=1, help="Periodic jobs at the same time; long jobs have BWB_JOB_SLOTS beside.")
    ] = 1,
    log_level: Annotated[str, typer.Option()] = "INFO",
) -> None:
    """Run background jobs: re-optimisation, simulations, invariants. Needs BWB_DATABASE_URL and BWB_REDIS_URL."""
    from broker.settings import settings

    celery = [sys.executable, "-m", "celery", "--app", "broker.jobs.celery_app:app", "worker"]
    # One pool process monitors each long job: the additional ones keep periodic tasks from waiting for it.
    options = ["--concurrency", str(concurrency + settings().job_slots), "--loglevel", log_level]
    options += [
        "--without-mingle",
        "--without-gossip",
        "--without-heartbeat",
    ]  # workers coordinate through the database only
    if beat:
        options += ["--beat", "--schedule", str(schedule)]
    os.execv(celery[0], celery + options)  # noqa: S606  the worker takes our pid: signals reach it, nothing stays in between


def migrate_command(
    token_dir: Annotated[
        Path | None, typer.Option(help="Also see to it that admin.token in this directory is a valid token with all scopes.")
    ] = None,
    wait: Annotated[float, typer.Option(metavar="SECONDS", help="Give the database so long to answer.")] = 5,
) -> None:
    """Upgrade the database of BWB_DATABASE_URL to the newest schema. `bwb up` does this automatically."""
    _prepare(token_dir, wait)


def _prepare(token_dir: Path | None, wait_s: float) -> None:
    from broker.embedded import UpError
    from broker.embedded.prepare import prepare
    from broker.settings import settings

    if not settings().database_url:
        typer.echo("set BWB_DATABASE_URL", err=True)
        raise typer.Exit(2)
    began = time.monotonic()
    try:
        prepare(settings().database_url, token_dir, wait_s)
    except UpError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(f"the database has the newest schema ({time.monotonic() - began:.2f} s)")
