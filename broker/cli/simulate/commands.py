# SPDX-License-Identifier: Apache-2.0
"""`bwb simulate`: what-if questions offline, without server or database; the same seed gives the same answer."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from broker.cli.quantities import DURATION, RATE, SIZE

if TYPE_CHECKING:  # numba, numpy and matplotlib are loaded only for a simulation
    from broker.core.network import Network

simulate = typer.Typer(
    help="Try planners on traffic that you describe: no server, no database.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_US = 1_000_000

AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON instead of a table.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Also write the figures as CSV.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Also draw them.")]


@simulate.command("vbls-paper")
def paper_command(
    loads: Annotated[
        str | None, typer.Option(metavar="L,L,...", help="Shares of the link's capacity. Default: 0.1 to 0.95.")
    ] = None,
    requests: Annotated[int, typer.Option(metavar="N", help="Files in each run, all of which count.")] = 30_000,
    seeds: Annotated[str, typer.Option(metavar="S,S,...", help="One run for each; the interval is over them.")] = "1,2,3,4,5",
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes. The result is the same with any number.")] = 1,
    as_json: AsJson = False,
    csv: Csv = None,
    png: Png = None,
) -> None:
    """Reproduce section 3.3 of the VBLS paper: delay by load under VBLS, FBLS and packet switching.

    One link of 100 channels of 10 Gb/s; files of 500 MB to 100 GB (bounded
    Pareto, shape 1.1) arrive by a Poisson process and want to start at once, at
    up to 1, 5 or 10 channels. The normalized delay is sum(F d) / sum(F) over
    the files of one Rmax. All schemes get the same files.

    \b
    Examples
      bwb simulate vbls-paper
      bwb simulate vbls-paper --loads 0.5,0.9 --seeds 1,2 --json
      bwb simulate vbls-paper --csv paper.csv --png paper.png --jobs 2
    """
    from broker.cli.simulate import paper as work

    if not 1 <= requests <= work.MAX_REQUESTS:
        _fail(f"--requests: {requests} is not in 1..{work.MAX_REQUESTS}")
    if not 1 <= jobs <= work.MAX_JOBS:
        _fail(f"--jobs: {jobs} is not in 1..{work.MAX_JOBS}")
    try:
        at, with_seeds = work.parse_loads(loads), work.parse_seeds(seeds)
    except ValueError as error:
        _fail(str(error))
    _check_outputs(csv, png)
    results = work.measure_all(at, with_seeds, requests, jobs)
    if as_json:
        _print_json({"results": [result._asdict() for result in results]})
    else:
        work.show(results, len(with_seeds), requests)
    if csv:
        _write(csv, work.as_csv(results).encode(), "--csv")
    if png:
        from broker.simulate.plot import draw_paper

        _write(png, draw_paper(results, len(with_seeds), requests), "--png")


@simulate.command("run")
def run_command(
    network: Annotated[Path | None, typer.Option(metavar="NET.json", help="The links, as for `bwb plan`.")] = None,
    link: Annotated[int | None, typer.Option(metavar="RATE", parser=RATE, help="Or just one link of so much, as 100G.")] = None,
    planners: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,...", help="Of the planners of `bwb plan`, and ps (packet switching). Default: vbls."),
    ] = None,
    requests: Annotated[int | None, typer.Option(metavar="N", help="How many arrive. Default: 1000, or all of the trace.")] = None,
    load: Annotated[float | None, typer.Option(metavar="L", help="What arrives, as a share of the busiest link.")] = None,
    arrivals: Annotated[float | None, typer.Option("--arrivals-per-s", metavar="X", help="Or how many arrive per second.")] = None,
    sizes: Annotated[str | None, typer.Option(metavar="NAME", help="pareto (the default), exponential, fixed.")] = None,
    size_mean: Annotated[
        int | None, typer.Option(metavar="SIZE", parser=SIZE, help="Of exponential and fixed sizes, as 10G.")
    ] = None,
    size_min: Annotated[int | None, typer.Option(metavar="SIZE", parser=SIZE, help="Of pareto. Default: 500M.")] = None,
    size_max: Annotated[int | None, typer.Option(metavar="SIZE", parser=SIZE, help="Of pareto. Default: 100G.")] = None,
    shape: Annotated[float | None, typer.Option(metavar="A", help="Of pareto. Default: 1.1.")] = None,
    rate_max: Annotated[
        str | None,
        typer.Option(metavar="RATE:W,...", help="Rmax with weights, as 10G:0.3,50G:0.7. Default: what the path carries."),
    ] = None,
    deadline_factor: Annotated[
        str | None, typer.Option(metavar="X:Y", help="Deadlines at X to Y times the time that it takes alone.")
    ] = None,
    deadline_share: Annotated[float | None, typer.Option(metavar="P", help="Share of the requests that have one.")] = None,
    lead: Annotated[str | None, typer.Option(metavar="T:T", help="Asked so long before it may begin, as 0s:2h.")] = None,
    lead_share: Annotated[float | None, typer.Option(metavar="P", help="Share of the requests that are.")] = None,
    nodes: Annotated[str | None, typer.Option(metavar="A,B,...", help="Who sends to whom, uniformly. Default: all.")] = None,
    matrix: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Or a traffic matrix: source,destination,weight (CSV or JSON).")
    ] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Requests from a file (CSV or JSON) instead.")] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="TIME", parser=DURATION, help="How often vifi and optimal plan together. Default: 10s.")
    ] = None,
    paths: Annotated[int | None, typer.Option(metavar="K", help="How many paths a planner may choose from. Default: 4.")] = None,
    split: Annotated[bool | None, typer.Option("--split", help="Several paths may carry one transfer at once.")] = None,
    begin: Annotated[str | None, typer.Option(metavar="TIME", help="When it begins, if the network changes with time.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", help="Same seed, same requests. Default: 1.")] = None,
    spec: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="All of this as a file (POST /v1/simulations takes it too).")
    ] = None,
    as_json: AsJson = False,
    csv: Csv = None,
    png: Png = None,
) -> None:
    """Send the same traffic through several planners and compare the results.

    Requests arrive on a virtual clock. List planners (vbls, fbls, ...) answer
    each as it arrives; joint ones (vifi, optimal) plan the arrivals of each
    --batch together; ifs and ps are baselines without planning or refusals.
    Options override the fields of a --spec.

    \b
    Examples
      # One 100 Gb/s link, busy, files as in the VBLS paper
      bwb simulate run --link 100G --load 0.9 --planners vbls,fbls,ps
      # A network, deadlines at 2 to 4 times the ideal, half of the requests
      bwb simulate run --network NET.json --load 0.8 --requests 2000 \\
          --planners vbls,fbls,spaghetti,alap,vifi \\
          --rate-max 1G:0.3,5G:0.3,10G:0.4 \\
          --deadline-factor 2:4 --deadline-share 0.5 --png result.png
      # Three sites; advance reservations up to two hours ahead
      bwb simulate run --network NET.json --nodes A,B,C --load 0.6 \\
          --sizes exponential --size-mean 40G --lead 0s:2h
      # The real requests of last week
      bwb simulate run --network NET.json --trace week.csv --json

    \b
    Trace: arrival_s and volume_bytes; if given also source, destination,
    rate_max_bps, not_before_s, deadline_s (all times on one clock from 0 s).
    Missing values are drawn. A REQ.json of `bwb plan` is a trace as well.
    """
    from broker.cli.network_file import BadFile
    from broker.cli.simulate import files
    from broker.cli.simulate import show as simulate_show
    from broker.simulate import Specification, SpecificationError, run
    from broker.simulate.sheet import as_csv

    given: dict[str, Any] = {
        "planners": _names(planners),
        "requests": requests,
        "load": load,
        "arrivals_per_s": arrivals,
        "sizes.distribution": sizes,
        "sizes.mean_bytes": size_mean,
        "sizes.least_bytes": size_min,
        "sizes.most_bytes": size_max,
        "sizes.shape": shape,
        "deadlines.share": deadline_share,
        "leads.share": lead_share,
        "nodes": _names(nodes),
        "batch_s": None if batch is None else batch / _US,
        "options.paths": paths,
        "options.split": split,
        "begin": begin,
        "seed": seed,
    }
    _check_outputs(csv, png)
    try:
        given["rates"] = None if rate_max is None else files.rates(rate_max)
        given["deadlines.least_factor"], given["deadlines.most_factor"] = files.factors(deadline_factor)
        given["leads.least_seconds"], given["leads.most_seconds"] = files.leads(lead)
        given["matrix"] = None if matrix is None else files.matrix(matrix)
        given["trace"] = None if trace is None else files.trace(trace)
        document = files.document(spec, given)
        if trace is not None:  # it has its own arrivals, which override those of a --spec
            document = {
                name: value for name, value in document.items() if name not in ("load", "arrivals_per_s") or given[name] is not None
            }
        net = _network(network, link)
        specification = Specification.from_document(document)
        problems = list(specification.problems(net))
        if problems:
            raise SpecificationError(problems)
    except SpecificationError as error:
        _fail("\nerror: ".join(files.in_words(problem, given, spec) for problem in error.problems[:20]))
    except (BadFile, ValueError) as error:
        _fail(str(error))
    with simulate_show.progress() as told:
        try:
            result = run(specification, net, told, lambda: False, time.perf_counter)
        except SpecificationError as error:
            _fail("\nerror: ".join(files.in_words(problem, given, spec) for problem in error.problems))
    if as_json:
        _print_json(result)
    else:
        simulate_show.show(result)
    if csv:
        _write(csv, as_csv(result).encode(), "--csv")
    if png:
        from broker.simulate.plot import draw_run

        _write(png, draw_run(result), "--png")


def _network(path: Path | None, link_bps: int | None) -> "Network":
    from broker.cli.network_file import read_network
    from broker.core.network import Link, Network

    if path is not None and link_bps is not None:
        raise ValueError("--link: give --network or --link, not both")
    if path is not None:
        return read_network(path).network
    if link_bps is None:
        raise ValueError("--network: is missing; give a NET.json, or --link 100G for a single link")
    if link_bps == 0:
        raise ValueError("--link: must be above 0")
    return Network([Link("link", "A", "B", link_bps)])


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _check_outputs(csv: Path | None, png: Path | None) -> None:
    """Check that the output files can be written before minutes of work."""
    for option, path in (("--csv", csv), ("--png", png)):
        if path is not None and path.is_dir():
            _fail(f"{option}: {path} is a folder; name a file")
        if path is not None and not path.absolute().parent.is_dir():
            _fail(f"{option}: there is no folder {path.absolute().parent}")


def _write(path: Path, content: bytes, option: str) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        _fail(f"{option}: {path} cannot be written: {error.strerror or error}")
    typer.echo(f"written: {path}", err=True)


def _print_json(document: Any) -> None:
    import orjson

    sys.stdout.flush()
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _fail(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(2)
