# SPDX-License-Identifier: Apache-2.0
"""What to simulate: the workload, the planners, the rules. `Specification.from_document` takes it from JSON and names every mistake."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.core.network import Network
from broker.core.request import DEFAULT_PATHS, DEFAULT_PLANNER, MAX_PATHS, FieldProblem, Options
from broker.core.units import MAX_RATE_BPS, MAX_TIME_US, MAX_VOLUME_BYTES, US_PER_S, format_time, parse_time
from broker.simulate.choice import NAMES
from broker.simulate.distributions import Exponential, Fixed, Pareto, Sizes
from broker.simulate.reading import Reader

MAX_REQUESTS = 200_000
MAX_PLANNERS = 20
MAX_CLASSES = 100
MAX_PAIRS = 20_000
MAX_POINTS = 2_000
MAX_NODES = 300  # that all send to all
MAX_SECONDS = 10_000 * 365 * 86_400  # nothing that one would wait for

PAPER_SIZES = Pareto(1.1, 500_000_000, 100_000_000_000)  # Veeraraghavan et al. 2004, section 3.3.1


class SpecificationError(ValueError):
    """Everything that is wrong, by field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.field}: {problem.detail}" for problem in problems))


@dataclass(frozen=True, slots=True)
class RateClass:
    """A share of the requests, by weight, that has this Rmax; None: as much as the path carries."""

    rate_max_bps: int | None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Where traffic goes from and to, and its share of all."""

    source: str
    destination: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Range:
    """A share of the requests has a value between two bounds, uniformly drawn; the others have none."""

    share: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a trace, on a clock that begins at 0 s. What is None is drawn as for other requests."""

    arrival_us: int
    volume_bytes: int
    source: str | None = None
    destination: str | None = None
    rate_max_bps: int | None = None
    not_before_us: int | None = None
    deadline_us: int | None = None


@dataclass(frozen=True, slots=True)
class Specification:
    """A simulation. With the same network and the same specification the result is the same, except for the planning times.

    `load`: what arrives, as a share of what the busiest link carries if every transfer takes its shortest path; or `arrivals_per_s`.
    A trace has arrivals of its own. `deadlines`: as multiples of the time that the transfer takes at its full rate on its shortest path.
    `leads`: seconds from a request's arrival to its not_before. `batch_us`: how often planners that plan together do it, and
    `solver_time_limit_s` how long the solvers may take for it; where that strikes, the result depends on the machine.
    `points`: of the utilisation over time. Times begin at `begin_us`.
    """

    planners: tuple[str, ...] = (DEFAULT_PLANNER,)
    requests: int = 1000
    seed: int = 1
    load: float | None = None
    arrivals_per_s: float | None = None
    sizes: Sizes = PAPER_SIZES
    rates: tuple[RateClass, ...] = (RateClass(None),)
    deadlines: Range = Range(0.0, 2.0, 10.0)
    leads: Range = Range(0.0, 0.0, 0.0)
    pairs: tuple[Pair, ...] = ()
    nodes: tuple[str, ...] = ()
    trace: tuple[Entry, ...] = ()
    batch_us: int = 10 * US_PER_S
    solver_time_limit_s: float = 10.0
    begin_us: int = 0
    options: Options = field(default_factory=Options)
    points: int = 200

    @classmethod
    def from_document(cls, document: object) -> "Specification":
        """Raises SpecificationError with one entry per mistake. Absent fields and those that are null have their defaults."""
        problems: list[FieldProblem] = []
        specification = _specification(Reader(document, problems))
        if problems:
            raise SpecificationError(problems)
        return specification

    def problems(self, network: Network) -> Iterator[FieldProblem]:
        """What does not fit together with this network: `run` raises SpecificationError for it."""
        named = [(f"nodes[{i}]", node) for i, node in enumerate(self.nodes)]
        for i, pair in enumerate(self.pairs):
            named += [(f"matrix[{i}].source", pair.source), (f"matrix[{i}].destination", pair.destination)]
        for i, entry in enumerate(self.trace):
            named += [(f"trace[{i}].source", entry.source or ""), (f"trace[{i}].destination", entry.destination or "")]
        for place, node in named:
            if node and node not in network.nodes:
                yield FieldProblem(place, f"no link of the network touches {node!r}")
        if not network.links:
            yield FieldProblem("network", "has no links")
        drawn = not self.pairs and not (self.trace and all(entry.source is not None for entry in self.trace[: self.requests]))
        if drawn and len(self.nodes or network.nodes) > MAX_NODES:
            yield FieldProblem(
                "nodes", f"{len(self.nodes or network.nodes)} nodes are too many to send to each other; name at most {MAX_NODES}"
            )


def _specification(reader: Reader) -> Specification:
    planners = _planners(reader)
    trace = reader.each("trace", MAX_REQUESTS, _entry)
    nodes = reader.texts("nodes", MAX_PAIRS)
    if len(nodes) == 1:
        reader.complain("nodes", "name at least two, or none for all of the network")
    requests = reader.whole("requests", 1, MAX_REQUESTS, len(trace) or 1000)
    if trace and requests > len(trace):
        reader.complain("requests", f"the trace has {len(trace)} requests")
    specification = Specification(
        planners=planners,
        requests=requests,
        seed=reader.whole("seed", 0, 2**63 - 1, 1),
        load=reader.number("load", 0.001, 100.0) if "load" in reader else None,
        arrivals_per_s=reader.number("arrivals_per_s", 1e-9, 1e6) if "arrivals_per_s" in reader else None,
        sizes=_sizes(reader.part("sizes")),
        rates=reader.each("rates", MAX_CLASSES, _rate_class) or (RateClass(None),),
        deadlines=_range(reader.part("deadlines"), "factor", 1.0, 1e6, (2.0, 10.0)),
        leads=_range(reader.part("leads"), "seconds", 0.0, MAX_SECONDS, (0.0, 0.0)),
        pairs=reader.each("matrix", MAX_PAIRS, _pair),
        nodes=nodes,
        trace=trace,
        batch_us=round(reader.number("batch_s", 1e-3, 1e7, 10.0) * US_PER_S),
        solver_time_limit_s=reader.number("solver_time_limit_s", 0.1, 3600.0, 10.0),
        begin_us=_begin(reader),
        options=_options(reader.part("options")),
        points=reader.whole("points", 1, MAX_POINTS, 200),
    )
    _check_arrivals(reader, specification)
    reader.end()
    return specification


def _check_arrivals(reader: Reader, specification: Specification) -> None:
    given = [name for name in ("load", "arrivals_per_s") if getattr(specification, name) is not None]
    if specification.trace and given:
        reader.complain(given[0], "a trace has arrivals of its own; leave it out")
    elif not specification.trace and not given:
        reader.complain("load", "is missing: give load (a share of the busiest link) or arrivals_per_s")
    elif len(given) == 2:
        reader.complain("arrivals_per_s", "follows from load; give one of the two")
    if specification.nodes and specification.pairs:
        reader.complain("nodes", "the matrix names its nodes; give one of the two")
    for name, weights in (("rates", specification.rates), ("matrix", specification.pairs)):
        if weights and sum(each.weight for each in weights) <= 0:
            reader.complain(name, "all weights are 0")


def _planners(reader: Reader) -> tuple[str, ...]:
    names = reader.texts("planners", MAX_PLANNERS) if "planners" in reader else (DEFAULT_PLANNER,)
    for i, name in enumerate(names):
        if name not in NAMES:
            reader.complain(f"planners[{i}]", f"{name[:60]!r} is unknown; there are: {', '.join(NAMES)}")
        elif name in names[:i]:
            reader.complain(f"planners[{i}]", f"{name!r} is there already")
    return names


def _sizes(reader: Reader) -> Sizes:
    name = reader.text("distribution", "pareto")
    sizes: Sizes = PAPER_SIZES
    if name == "pareto":
        least = reader.whole("least_bytes", 1, MAX_VOLUME_BYTES, PAPER_SIZES.least_bytes)
        sizes = Pareto(
            reader.number("shape", 0.01, 100.0, PAPER_SIZES.shape),
            least,
            reader.whole("most_bytes", 1, MAX_VOLUME_BYTES, max(PAPER_SIZES.most_bytes, least)),
        )
        if sizes.least_bytes > sizes.most_bytes:
            reader.complain("most_bytes", f"{sizes.most_bytes} is below least_bytes {sizes.least_bytes}")
    elif name == "exponential":
        sizes = Exponential(reader.whole("mean_bytes", 1, MAX_VOLUME_BYTES))
    elif name == "fixed":
        sizes = Fixed(reader.whole("mean_bytes", 1, MAX_VOLUME_BYTES))
    else:
        reader.complain("distribution", f"{name[:60]!r} is unknown; there are: exponential, fixed, pareto")
        return sizes
    reader.end()
    return sizes


def _rate_class(reader: Reader) -> RateClass:
    rate = reader.whole("rate_max_bps", 1, MAX_RATE_BPS) if "rate_max_bps" in reader else None
    found = RateClass(rate, reader.number("weight", 0.0, 1e9, 1.0))
    reader.end()
    return found


def _pair(reader: Reader) -> Pair:
    found = Pair(reader.text("source"), reader.text("destination"), reader.number("weight", 0.0, 1e9, 1.0))
    if found.source and found.source == found.destination:
        reader.complain("destination", f"source and destination are both {found.source!r}")
    reader.end()
    return found


def _range(reader: Reader, what: str, least: float, most: float, default: tuple[float, float]) -> Range:
    """{"share": 0.5, "least_<what>": 2, "most_<what>": 10}; a share that is not given is everybody, if anything else is."""
    low_name, high_name = f"least_{what}", f"most_{what}"
    asked = low_name in reader or high_name in reader
    low = reader.number(low_name, least, most, default[0])
    high = reader.number(high_name, least, most, max(default[1], low))
    if low > high:
        reader.complain(high_name, f"{high:g} is below {low_name} {low:g}")
    found = Range(reader.number("share", 0.0, 1.0, 1.0 if asked else 0.0), low, high)
    reader.end()
    return found


def _entry(reader: Reader) -> Entry:
    found = Entry(
        _instant(reader, "arrival_s") or 0,
        reader.whole("volume_bytes", 1, MAX_VOLUME_BYTES),
        reader.text("source") if "source" in reader else None,
        reader.text("destination") if "destination" in reader else None,
        reader.whole("rate_max_bps", 1, MAX_RATE_BPS) if "rate_max_bps" in reader else None,
        _instant(reader, "not_before_s") if "not_before_s" in reader else None,
        _instant(reader, "deadline_s") if "deadline_s" in reader else None,
    )
    if (found.source is None) != (found.destination is None):
        reader.complain("destination", "give source and destination, or neither: then both are drawn")
    elif found.source is not None and found.source == found.destination:
        reader.complain("destination", f"source and destination are both {found.source!r}")
    earliest = found.arrival_us
    if found.not_before_us is not None:
        if found.not_before_us < earliest:
            reader.complain("not_before_s", "lies before arrival_s")
        earliest = max(earliest, found.not_before_us)
    if found.deadline_us is not None and found.deadline_us <= earliest:
        reader.complain("deadline_s", "must lie after arrival_s and not_before_s")
    reader.end()
    return found


def _instant(reader: Reader, name: str) -> int | None:
    return round(reader.number(name, 0.0, MAX_SECONDS) * US_PER_S)


def _begin(reader: Reader) -> int:
    text = reader.text("begin", "1970-01-01T00:00:00Z")
    try:
        begin_us = parse_time(text)
    except ValueError as error:
        reader.complain("begin", str(error))
        return 0
    if not 0 <= begin_us <= MAX_TIME_US // 2:
        reader.complain("begin", "must lie in the years 1970 to 5000")
    return begin_us


def _options(reader: Reader) -> Options:
    shortest = reader.number("shortest_segment_s", 0.0, 1e6, 0.0)
    options = Options(
        paths=reader.whole("paths", 1, MAX_PATHS, DEFAULT_PATHS),
        split=reader.flag("split"),
        shortest_segment_us=round(shortest * US_PER_S) or None,
        most_segments=reader.whole("most_segments", 1, 10_000) if "most_segments" in reader else None,
    )
    for problem in options.problems():
        reader.complain(problem.field, problem.detail)
    reader.end()
    return options


def as_document(specification: Specification) -> dict[str, Any]:
    """The JSON form, every default written out; `from_document` takes it back. A trace is given by its length alone."""
    sizes = specification.sizes
    document: dict[str, Any] = {
        "planners": list(specification.planners),
        "requests": specification.requests,
        "seed": specification.seed,
        "load": specification.load,
        "arrivals_per_s": specification.arrivals_per_s,
        "sizes": _sizes_document(sizes),
        "rates": [{"rate_max_bps": each.rate_max_bps, "weight": each.weight} for each in specification.rates],
        "deadlines": _range_document(specification.deadlines, "factor"),
        "leads": _range_document(specification.leads, "seconds"),
        "matrix": [{"source": each.source, "destination": each.destination, "weight": each.weight} for each in specification.pairs]
        or None,
        "nodes": list(specification.nodes) or None,
        "batch_s": specification.batch_us / US_PER_S,
        "solver_time_limit_s": specification.solver_time_limit_s,
        "begin": format_time(specification.begin_us),
        "options": {
            "paths": specification.options.paths,
            "split": specification.options.split,
            "shortest_segment_s": (specification.options.shortest_segment_us or 0) / US_PER_S,
            "most_segments": specification.options.most_segments,
        },
        "points": specification.points,
    }
    return document


def _sizes_document(sizes: Sizes) -> Mapping[str, Any]:
    if isinstance(sizes, Pareto):
        return {
            "distribution": "pareto",
            "shape": sizes.shape,
            "least_bytes": sizes.least_bytes,
            "most_bytes": sizes.most_bytes,
        }
    return {"distribution": "fixed" if isinstance(sizes, Fixed) else "exponential", "mean_bytes": round(sizes.mean_bytes)}


def _range_document(found: Range, what: str) -> Mapping[str, float]:
    return {"share": found.share, f"least_{what}": found.least, f"most_{what}": found.most}
