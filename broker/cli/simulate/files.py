# SPDX-License-Identifier: Apache-2.0
"""From options and files of `bwb simulate run` to the document for `Specification.from_document`; and from its errors to options.

The specification validates the values; this module only checks the files and their syntax.
"""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker.cli.network_file import BadFile, read_requests
from broker.cli.quantities import parse_duration, parse_rate
from broker.core.request import FieldProblem
from broker.core.units import US_PER_S

_MAX_BYTES = 200_000_000

_OPTIONS = {
    "planners": "--planners",
    "requests": "--requests",
    "load": "--load",
    "arrivals_per_s": "--arrivals-per-s",
    "sizes.distribution": "--sizes",
    "sizes.mean_bytes": "--size-mean",
    "sizes.least_bytes": "--size-min",
    "sizes.most_bytes": "--size-max",
    "sizes.shape": "--shape",
    "rates": "--rate-max",
    "deadlines.least_factor": "--deadline-factor",
    "deadlines.most_factor": "--deadline-factor",
    "deadlines.share": "--deadline-share",
    "leads.least_seconds": "--lead",
    "leads.most_seconds": "--lead",
    "leads.share": "--lead-share",
    "nodes": "--nodes",
    "matrix": "--matrix",
    "trace": "--trace",
    "batch_s": "--batch",
    "options.paths": "--paths",
    "options.split": "--split",
    "begin": "--begin",
    "seed": "--seed",
    "network": "--network",
}


def document(spec: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the file, overridden by the values given on the command line. Raises BadFile."""
    base = {} if spec is None else _json(spec)
    if not isinstance(base, dict):
        assert spec is not None
        raise BadFile(spec, ["must be a JSON object"])
    merged = dict(base)
    for name, value in given.items():
        if value is None:
            continue
        part, _, field = name.partition(".")
        if field:
            inner = merged.get(part)
            merged[part] = {**(inner if isinstance(inner, dict) else {}), field: value}
        else:
            merged[name] = value
    return merged


def in_words(problem: FieldProblem, given: Mapping[str, Any], spec: Path | None) -> str:
    """The problem with the name of the option that caused or would solve it; or of the --spec, if its field is wrong."""
    field = problem.field.partition("[")[0]
    option = _OPTIONS.get(field)
    if spec is not None and given.get(field) is None:
        return f"--spec: {spec}: {problem.field}: {problem.detail}"
    if option is None:
        return f"{problem.field}: {problem.detail}"
    entry = problem.field[len(field) :]
    return f"{option}: {entry + ': ' if entry else ''}{problem.detail}"


def rates(text: str) -> list[dict[str, Any]]:
    """10G:0.3,50G:0.7 -> rate classes. Raises ValueError."""
    found = []
    for word in text.split(","):
        rate, colon, weight = word.partition(":")
        try:
            found.append({"rate_max_bps": parse_rate(rate), "weight": float(weight) if colon else 1.0})
        except ValueError as error:
            raise ValueError(f"--rate-max: {error}; write 10G:0.3,50G:0.7") from None
    return found


def factors(text: str | None) -> tuple[float | None, float | None]:
    """2:4 -> (2, 4); 3 -> (3, 3). Raises ValueError."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        return float(low), float(high if colon else low)
    except ValueError:
        raise ValueError(f"--deadline-factor: {text!r}: write 2:4, or 3 for all") from None


def leads(text: str | None) -> tuple[float | None, float | None]:
    """0s:2h -> (0, 7200), in seconds. Raises ValueError."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        return parse_duration(low) / US_PER_S, parse_duration(high if colon else low) / US_PER_S
    except ValueError as error:
        raise ValueError(f"--lead: {error}; two of them with a colon between, as 0s:2h") from None


def matrix(path: Path) -> list[Any]:
    """The traffic matrix of a file. Raises BadFile."""
    if path.suffix.lower() == ".csv":
        return _rows(path, ("source", "destination"), ("weight",), texts=("source", "destination"))
    return _entries(path, "matrix")


def trace(path: Path) -> list[Any]:
    """The arrivals of a trace file. Raises BadFile."""
    if path.suffix.lower() == ".csv":
        optional = ("source", "destination", "rate_max_bps", "not_before_s", "deadline_s")
        return _rows(path, ("arrival_s", "volume_bytes"), optional, texts=("source", "destination"))
    content = _json(path)
    if isinstance(content, dict) and "requests" in content:
        return _planned(path)
    return _entries(path, "trace")


def _planned(path: Path) -> list[Any]:
    """A REQ.json of `bwb plan` as a trace: each request arrives at its `not_before`, the first one at 0 s."""
    requests = read_requests(path).requests
    unfit = [f"requests[{i}].duration_s: a trace has volumes alone" for i, each in enumerate(requests) if each.volume_bytes is None]
    if unfit or not requests:
        raise BadFile(path, unfit or ["has no requests"])
    origin = min(request.not_before_us for request in requests)
    return [
        {
            "arrival_s": (request.not_before_us - origin) / US_PER_S,
            "volume_bytes": request.volume_bytes,
            "source": request.source,
            "destination": request.destination,
            "rate_max_bps": request.rate_max_bps,
            "deadline_s": None if request.deadline_us is None else (request.deadline_us - origin) / US_PER_S,
        }
        for request in requests
    ]


def _entries(path: Path, name: str) -> list[Any]:
    """The entries of a JSON file: a list, or an object with the list under `name`."""
    content = _json(path)
    entries = content.get(name) if isinstance(content, dict) else content
    if not isinstance(entries, list) or not entries:
        raise BadFile(path, [f'must be a list, or {{"{name}": [...]}}, with at least one entry'])
    return entries


def _rows(path: Path, compulsory: tuple[str, ...], optional: tuple[str, ...], texts: tuple[str, ...]) -> list[Any]:
    lines = csv.DictReader(_text(path).splitlines())
    titles = [title.strip() for title in lines.fieldnames or ()]
    missing = [f"column {name!r} is missing in the first line" for name in compulsory if name not in titles]
    unknown = [f"column {title!r} is unknown; there are: {', '.join(compulsory + optional)}" for title in titles
               if title not in compulsory + optional]  # fmt: skip
    if missing or unknown:
        raise BadFile(path, missing + unknown)
    lines.fieldnames = titles
    found, mistakes = [], []
    for row in lines:
        entry: dict[str, Any] = {}
        for title, cell in row.items():
            if title is None or cell is None:
                mistakes.append(f"line {lines.line_num}: has {'more' if title is None else 'fewer'} cells than the first line")
                break
            if not cell.strip():
                continue
            try:
                entry[title] = cell.strip() if title in texts else _number(cell.strip())
            except ValueError:
                mistakes.append(f"line {lines.line_num}: {title}: {cell.strip()[:60]!r} is no number")
        found.append(entry)
    if mistakes or not found:
        raise BadFile(path, mistakes or ["has no rows under the first line"])
    return found


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except RecursionError:
        raise BadFile(path, ["is not JSON that we can read: nested too deeply"]) from None
    except ValueError as error:
        raise BadFile(path, [f"is not JSON: {error}"]) from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise BadFile(path, [f"is larger than {_MAX_BYTES // 1_000_000} MB"])
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadFile(path, [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise BadFile(path, ["is not UTF-8 text"]) from None
