# SPDX-License-Identifier: Apache-2.0
"""The dashboard in headless Chromium on a real broker: how soon one sees something, how it moves, and what it keeps."""

import gzip
import itertools
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.dashboard import chromium
from tests.dashboard.forms import settled
from tests.dashboard.running import RunningBroker, bundle, running, sign_in

_VISITS = 5
_CHANGE_POINTS = 100_000
_ON_THE_LINK = 500
_TRANSFERS = 10_000
_BATCH = 2_500
_PAN_S = 3
_LIVE_EVENTS = 1_800  # half an hour with one event a second
_WARM_EVENTS = 200
_SIZE = {"width": 1366, "height": 768}
_LINK = "many-steps"


def measure() -> dict[str, Any]:
    if chromium.executable() is None:
        return {"skipped": "no chromium on PATH; as root, `make tools` installs it"}
    figures: dict[str, Any] = {"script_gzipped_kb": _script_kb(bundle())}
    with (
        tempfile.TemporaryDirectory(prefix="bwb-bench-") as directory,
        running(Path(directory) / "state") as broker,
        chromium.running() as browser,
    ):
        figures["first_view_ms"] = _first_view(browser, broker)
        _fill_link(broker)
        figures["link"] = _link(browser, broker)
        _fill_list(broker)
        figures["transfers"] = _filter(browser, broker)
        figures["live"] = _live(browser, broker)
    return figures


def _script_kb(folder: Path) -> float:
    return round(sum(len(gzip.compress(path.read_bytes())) for path in folder.glob("assets/*.js")) / 1000, 1)


def _context(browser: Browser, broker: RunningBroker) -> BrowserContext:
    # wait_for_function, which sees every frame, evaluates text; the page's policy forbids that.
    context = browser.new_context(base_url=broker.url, viewport=_SIZE, bypass_csp=True)  # type: ignore[arg-type]
    context.set_default_timeout(60_000)
    sign_in(context, broker.token)
    return context


def _first_view(browser: Browser, broker: RunningBroker) -> dict[str, float]:
    """The overview with nothing in any cache: from the navigation until all of it is there."""
    took = []
    for _ in range(_VISITS):
        with _context(browser, broker) as context:
            page = context.new_page()
            page.goto("/")
            settled(page)
            took.append(page.evaluate("performance.now()"))
    return {"median": round(statistics.median(took)), "max": round(max(took))}


# -- a link with 1e5 change points -------------------------------------------------------------------------------------------------------


def _fill_link(broker: RunningBroker) -> None:
    begin = datetime.now(UTC).replace(microsecond=0)
    steps = [
        {"from": f"{begin + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}", "bps": (40 + number * 7919 % 60) * 10**9}
        for number in range(_CHANGE_POINTS)
    ]
    link = {"id": _LINK, "source": "steps-a", "target": "steps-b", "capacity_bps": 100 * 10**9, "available": steps}
    broker.ask("POST", "/v1/links", link)
    asked = [
        {
            "source": "steps-a",
            "destination": "steps-b",
            "volume_bytes": 10**11 + number * 10**9,
            "rate_max_bps": 4 * 10**9,
            "label": f"step {number}",
        }
        for number in range(_ON_THE_LINK)
    ]
    items = broker.ask("POST", "/v1/transfers/batch", asked)["items"]
    assert all(item["status"] == 201 for item in items)


# Frames are counted from the start of the page: what is drawn late shows as a long one.
_WATCH_FRAMES = """
window.frames_ = [];
(function next() { requestAnimationFrame((at) => { window.frames_.push(at); next(); }); })();
"""
# The data has come, a canvas is there, and since then two frames have followed each other without a pause.
_DRAWN = """() => {
  const asked = performance.getEntriesByType("resource").filter((one) => /\\/v1\\/links\\/[^/]+\\/(calendar|bookings)/.test(one.name));
  if (asked.length === 0 || !document.querySelector("main canvas")) return null;
  const data = Math.max(...asked.map((one) => one.responseEnd));
  const frames = window.frames_.filter((at) => at >= data);
  for (let index = 2; index < frames.length; index += 1)
    if (frames[index] - frames[index - 1] < 50 && frames[index - 1] - frames[index - 2] < 50) return { data, drawn: frames[index - 2] };
  return null;
}"""


def _link(browser: Browser, broker: RunningBroker) -> dict[str, Any]:
    day = f"from={time.time():.0f}&to={time.time() + _CHANGE_POINTS:.0f}"
    with _context(browser, broker) as context:
        context.add_init_script(_WATCH_FRAMES)
        page = context.new_page()
        page.goto(f"/links/{_LINK}?{day}")
        settled(page)
        seen = page.wait_for_function(_DRAWN).json_value()
        found: dict[str, Any] = {
            "change_points": _CHANGE_POINTS, "transfers": _ON_THE_LINK, "drawn_ms_after_data": round(seen["drawn"] - seen["data"]),
        }  # fmt: skip
        return found | _pan(page)


def _pan(page: Page) -> dict[str, float]:
    """Drag the plot to and fro, and count frames."""
    box = page.locator("main canvas").first.bounding_box()
    assert box is not None
    y, left, width = box["y"] + box["height"] / 2, box["x"] + box["width"] * 0.3, box["width"] * 0.4
    page.mouse.move(left, y)
    page.mouse.wheel(0, -600)  # closer, so that there is somewhere to go
    page.wait_for_timeout(500)
    page.mouse.down()
    begin = page.evaluate("performance.now()")
    end = time.monotonic() + _PAN_S
    step = 0
    while time.monotonic() < end:
        step += 1
        page.mouse.move(left + width * abs(step % 80 - 40) / 40, y)
    frames = page.evaluate("(since) => window.frames_.filter((at) => at >= since)", begin)
    page.mouse.up()
    gaps = [after - before for before, after in itertools.pairwise(frames)]
    return {
        "pan_frames_per_s": round(1000 * len(gaps) / sum(gaps), 1),
        "pan_frame_p95_ms": round(statistics.quantiles(gaps, n=20)[-1], 1),
    }


# -- a list of 1e4 transfers -------------------------------------------------------------------------------------------------------------


def _fill_list(broker: RunningBroker) -> None:
    missing = _TRANSFERS - broker.ask("GET", "/v1/transfers?count=true&limit=1")["total"]
    for first in range(0, missing, _BATCH):
        asked = [
            {
                "source": "sacr-cr6",
                "destination": "sunn-cr6",
                "volume_bytes": 10**10,
                "rate_max_bps": 10**8,
                "label": f"list {number}",
            }
            for number in range(first, min(first + _BATCH, missing))
        ]
        broker.ask("POST", "/v1/transfers/batch", asked)


def _filter(browser: Browser, broker: RunningBroker) -> dict[str, Any]:
    """From the last key until the rows are those that were asked for: the pause of typing, the question, the answer, the table."""
    with _context(browser, broker) as context:
        page = context.new_page()
        page.goto("/transfers")
        settled(page)
        search = page.get_by_role("searchbox").first
        took = []
        for number in range(_VISITS):
            wanted = f"list {4000 + number}"
            search.fill(wanted[:-1])
            page.wait_for_function(_ONLY, arg=wanted[:-1])
            begin = page.evaluate("performance.now()")
            search.press_sequentially(wanted[-1])
            shown = page.wait_for_function(_ONLY, arg=wanted).json_value()
            took.append(shown - begin)
    return {"transfers": _TRANSFERS, "filter_ms": {"median": round(statistics.median(took)), "max": round(max(took))}}


_ONLY = """(wanted) => {
  const rows = [...document.querySelectorAll("main tbody tr:not(.gap)")];
  return rows.length > 0 && rows.every((row) => row.textContent.includes(wanted)) && performance.now();
}"""


# -- half an hour of live updates --------------------------------------------------------------------------------------------------------


def _live(browser: Browser, broker: RunningBroker) -> dict[str, Any]:
    """The list of transfers under as many events as half an hour brings at one a second, as fast as they can be made."""
    book = {
        "source": "sacr-cr6",
        "destination": "sunn-cr6",
        "volume_bytes": 10**10,
        "rate_max_bps": 10**8,
        "label": "changes all the time",
    }
    transfer = broker.ask("POST", "/v1/transfers", book)["id"]
    with _context(browser, broker) as context:
        page = context.new_page()
        page.goto("/transfers?search=changes+all+the+time")
        settled(page)
        _change(broker, transfer, _WARM_EVENTS)
        before = _kept(page)
        _change(broker, transfer, _LIVE_EVENTS)
        after = _kept(page)
    return {
        "events": _LIVE_EVENTS,
        "before": before,
        "after": after,
        "heap_growth_mb": round(after["heap_mb"] - before["heap_mb"], 2),
    }


def _change(broker: RunningBroker, transfer: str, times: int) -> None:
    for number in range(times):
        broker.ask("PATCH", f"/v1/transfers/{transfer}", {"label": f"changes all the time, {number}"})


def _kept(page: Page) -> dict[str, float]:
    """What is left when all that can be forgotten is forgotten."""
    page.wait_for_timeout(3_000)  # the last question of the live updates
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {
        "heap_mb": round(metrics["JSHeapUsedSize"] / 1e6, 2),
        "nodes": int(metrics["Nodes"]),
        "listeners": int(metrics["JSEventListeners"]),
    }
