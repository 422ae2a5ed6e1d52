# SPDX-License-Identifier: Apache-2.0
"""POST /v1/simulations, by a worker."""

from broker.jobs.run import Run


async def run_simulation(run: Run) -> None:
    async with run.child() as child:
        await run.done(await child.ask("simulation", run.job.request, run.progress))
