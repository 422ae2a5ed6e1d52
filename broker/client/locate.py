# SPDX-License-Identifier: Apache-2.0
"""Finding the broker: by the state directory of `bwb up` on this machine, or by BWB_URL and BWB_TOKEN for a broker anywhere."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from broker.client.errors import NoBroker


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of the broker, and the token for it."""

    url: str
    token: str = field(repr=False)  # excluded from logs and tracebacks


def default_state_dir() -> Path:
    """The directory that `bwb up` chooses (broker.settings.state_dir; a test keeps the two equal)."""
    given = os.environ.get("BWB_STATE_DIR")
    return Path(given) if given else platformdirs.user_state_path("bandwidth-broker")


def locate(state_dir: Path | None = None) -> Endpoint:
    """`state_dir` if given, else BWB_URL + BWB_TOKEN, else the default state directory. Raises NoBroker."""
    if state_dir is None and (url := os.environ.get("BWB_URL")):
        if not url.startswith(("http://", "https://")):
            raise NoBroker(f"BWB_URL is {url!r}; it must begin with http:// or https://")
        token = os.environ.get("BWB_TOKEN", "").strip()
        if not token:
            raise NoBroker(f"BWB_URL is {url} but BWB_TOKEN is not set; `bwb token create` makes one")
        return Endpoint(url.rstrip("/"), token)
    directory = default_state_dir() if state_dir is None else state_dir
    try:
        url = json.loads((directory / "bwb.json").read_text())["url"]
        return Endpoint(url, (directory / "admin.token").read_text().strip())
    except FileNotFoundError:
        raise NoBroker(
            f"no broker runs on {directory}; start one with `bwb up`, name another --state-dir, or set BWB_URL and BWB_TOKEN"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoBroker(f"{directory} cannot be read as a state directory of `bwb up`: {error}") from None
