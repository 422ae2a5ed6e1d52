# SPDX-License-Identifier: Apache-2.0
"""How much more `optimal` serves than the list planners on ESnet, and how much emptier it leaves the fullest link.

python -m tests.experiments.optimal_esnet            the table of docs/experiments/optimal.md
python -m tests.experiments.optimal_esnet --seeds 1  fewer batches
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.planners import PLANNERS
from broker.planners.optimal import Optimal
from broker.planners.optimal.measure import congestion
from tests.bench.optimal import QUARTER_US, deadline_transfers, empty, esnet, verified

REQUESTS = 300
# Windows of one to six hours on the quarter hour, 20 TB in the middle: VBLS has to refuse about one in six.
LOADED = {"window": (0.05, 0.25), "median_bytes": 20e12, "grid_us": QUARTER_US}
# A tenth of that: nearly everything fits, and the question is how empty the fullest link can stay.
LIGHT = {**LOADED, "median_bytes": 2e12}


class Row(NamedTuple):
    """What one batch came to: served requests and terabytes by the list planners and by `optimal`."""

    seed: int
    split: bool
    admitted: dict[str, int]
    volume: dict[str, int]
    optimal_volume: int
    volume_bound: float | None
    optimal_admitted: int
    admitted_bound: float | None


def in_turn(name: str, requests: Sequence[Request], network: Network) -> list[Plan | Refusal]:
    """A list planner in file order."""
    calendars = empty(network)
    answers = []
    for request in requests:
        answers.append(answer := PLANNERS[name].plan(request, network, calendars, fewest_rows=True))
        for begin, end, rate, path in answer.segments if isinstance(answer, Plan) else ():
            for link_id in path:
                calendars[link_id].book(begin, end, rate)
    return answers


def serve(network: Network, seed: int, split: bool) -> Row:
    requests = deadline_transfers(network, REQUESTS, seed, split=split, **LOADED)  # type: ignore[arg-type]
    lists = {name: in_turn(name, requests, network) for name in ("vbls", "fbls", "spaghetti")}
    volume = verified(Optimal("volume").solve(requests, network, empty(network)), requests, network)
    admitted = verified(Optimal("admitted").solve(requests, network, empty(network)), requests, network)
    return Row(
        seed,
        split,
        {name: sum(isinstance(answer, Plan) for answer in answers) for name, answers in lists.items()},
        {
            name: sum(r.volume_bytes or 0 for r, answer in zip(requests, answers, strict=True) if isinstance(answer, Plan))
            for name, answers in lists.items()
        },
        int(volume.value),
        volume.bound,
        int(admitted.value),
        admitted.bound,
    )


def spread(network: Network, seed: int, split: bool) -> tuple[float, float, float | None]:
    """(spaghetti, optimal, proven bound) of the congestion factor, for the requests that spaghetti serves."""
    drawn = deadline_transfers(network, REQUESTS, seed, split=split, **LIGHT)  # type: ignore[arg-type]
    requests = [r for r, answer in zip(drawn, in_turn("spaghetti", drawn, network), strict=True) if isinstance(answer, Plan)]
    spaghetti = in_turn("spaghetti", requests, network)
    optimal = verified(Optimal().solve(requests, network, empty(network)), requests, network)
    factor = congestion([answer for answer in spaghetti if isinstance(answer, Plan)], network, empty(network))
    return float(factor), float(optimal.value), optimal.bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    network = esnet()
    print("| seed | paths at once | vbls | fbls | spaghetti | optimal volume | above vbls | above fbls | bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = [serve(network, seed, split) for split in (False, True) for seed in seeds]
    for row in rows:
        lists = " | ".join(f"{row.volume[name] / 1e15:.3f}" for name in ("vbls", "fbls", "spaghetti"))
        more = " | ".join(f"{row.optimal_volume / row.volume[name] - 1:+.1%}" for name in ("vbls", "fbls"))
        bound = "" if row.volume_bound is None else f"{row.volume_bound / 1e15:.3f}"
        print(f"| {row.seed} | {'yes' if row.split else 'no'} | {lists} | {row.optimal_volume / 1e15:.3f} | {more} | {bound} |")
    print("\n| seed | paths at once | vbls | fbls | spaghetti | optimal admitted | bound |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        lists = " | ".join(str(row.admitted[name]) for name in ("vbls", "fbls", "spaghetti"))
        bound = "" if row.admitted_bound is None else f"{row.admitted_bound:.0f}"
        print(f"| {row.seed} | {'yes' if row.split else 'no'} | {lists} | {row.optimal_admitted} | {bound} |")
    print("\n| seed | paths at once | spaghetti | optimal congestion | bound |")
    print("|---|---|---|---|---|")
    factors = [(seed, split, spread(network, seed, split)) for split in (False, True) for seed in seeds]
    for seed, split, (spaghetti, optimal, proven) in factors:
        print(
            f"| {seed} | {'yes' if split else 'no'} | {spaghetti:.4f} | {optimal:.4f} | {'' if proven is None else f'{proven:.4f}'} |"
        )
    worse = any(row.optimal_volume < max(row.volume.values()) for row in rows) or any(f[2][1] > f[2][0] for f in factors)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
