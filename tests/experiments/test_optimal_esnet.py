# SPDX-License-Identifier: Apache-2.0
"""The experiment of docs/experiments/optimal.md on one batch: never worse than the list planners, and by as much as the page says."""

from tests.bench.optimal import esnet
from tests.experiments.optimal_esnet import serve, spread


def test_300_transfers_on_esnet() -> None:
    network = esnet()
    row = serve(network, 1, split=False)
    assert row.admitted["vbls"] < 300
    assert row.optimal_volume > row.volume["vbls"] > row.volume["fbls"]
    assert row.optimal_volume >= max(row.volume.values())
    assert row.optimal_admitted >= max(row.admitted.values())
    assert row.volume_bound is not None
    assert row.optimal_volume <= row.volume_bound * (1 + 1e-9)
    spaghetti, optimal, bound = spread(network, 1, split=True)
    assert bound is not None
    assert bound * (1 - 1e-9) <= optimal <= min(spaghetti, bound * 1.01)
