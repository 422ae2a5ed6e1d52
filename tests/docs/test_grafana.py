# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard asks for metrics and labels that the broker has, and docs/operator.md names them all."""

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from broker.api.metrics import Metrics

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana" / "bandwidth-broker.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def known() -> dict[str, tuple[str, ...]]:
    """Every series of /metrics by its name as Prometheus stores it, with its labels."""
    registry: CollectorRegistry = Metrics().registry
    found = {}
    for collector, names in registry._collector_to_names.items():
        for name in names:
            found[name] = tuple(collector._labelnames)  # type: ignore[attr-defined]
    return found


def test_every_query_is_of_a_metric_that_there_is() -> None:
    metrics = known()
    for query in QUERIES:
        names = re.findall(r"\bbwb_\w+", query)
        assert names and set(names) <= metrics.keys(), query
        labels = {label for name in names for label in metrics[name]}
        grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
        matched = set(re.findall(r"(\w+)=~?\"", query))
        assert grouped | matched <= labels | {"le", "instance"}, query


def test_every_metric_is_shown_and_described() -> None:
    shown = {name for query in QUERIES for name in re.findall(r"\bbwb_\w+", query)}
    described = set(re.findall(r"`(bwb_\w+)", (DOCS / "operator.md").read_text()))
    for name in {re.sub(r"_(bucket|count|sum|created|total)$", "", name) for name in known()}:
        assert any(series.startswith(name) for series in shown), f"no panel shows {name}"
        assert any(series.startswith(name) for series in described), f"docs/operator.md does not describe {name}"


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
