# SPDX-License-Identifier: Apache-2.0
"""POST /v1/simulations, by a worker."""

from broker.core.link_document import link_of
from broker.jobs.run import Run
from broker.jobs.simulation_work import SimulationTask
from broker.store import bookings


async def run_simulation(run: Run) -> None:
    """Raises Problem where it cannot be done, JobLost."""
    wanted = dict(run.job.request)
    network = wanted.pop("network")
    if network == "current":
        async with run.database.transaction() as connection:
            links = [record.link for record in (await bookings.load_links(connection)).values()]
    else:
        links = [link_of(document) for document in network["links"]]
    async with run.child() as child:
        await run.done(await child.ask("simulation", SimulationTask(wanted, tuple(links)), run.progress))
