# SPDX-License-Identifier: Apache-2.0
"""How fast the view of a link draws and pans with 1e5 change points of 500 transfers.

The page is the real one; its questions about the link are answered by synthetic data, so that the broker's own time does not count.
"""

import json
import random
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, CDPSession, Page, Route

from broker.core.units import US_PER_S, format_time, parse_time

LINK = "synthetic"
CAPACITY_BPS = 400 * 10**9
TRANSFERS, SEGMENTS = 500, 200
FRAMES = 120

# When the whole body of the bookings is there, and when the canvas was last drawn on.
_CLOCKS = """
window.speed = { arrived: 0, drawn: 0, layers: 0 };
const ask = window.fetch;
window.fetch = async (...given) => {
  const answer = await ask(...given);
  if (!String(given[0]).includes("/bookings?")) return answer;
  const body = await answer.text();
  window.speed.arrived = performance.now();
  window.speed.layers = 0;
  return new Response(body, { status: answer.status, headers: answer.headers });
};
const fill = CanvasRenderingContext2D.prototype.fill;
CanvasRenderingContext2D.prototype.fill = function (...given) {
  fill.apply(this, given);
  window.speed.layers += 1;
  requestAnimationFrame(() => { window.speed.drawn = performance.now(); });
};
"""

_SHOWN = """
() => new Promise((resolve) => {
  const look = () => {
    const { arrived, drawn, layers } = window.speed;
    if (layers > 8 && drawn > arrived) resolve(drawn - arrived);
    else setTimeout(look, 20);
  };
  look();
})
"""

# One move of the hand in each frame, as fast as frames come; the plot must have been drawn again in each.
_PAN = """
async ([frames, x, y]) => {
  const area = document.querySelector(".u-over");
  const times = [];
  let drawn = 0;
  for (let frame = 0; frame <= frames; frame += 1) {
    const before = window.speed.layers;
    const clientX = x - 150 + 300 * Math.abs(Math.sin(frame / 20));
    area.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY: y, bubbles: true, buttons: 1 }));
    await new Promise(requestAnimationFrame);
    times.push(performance.now());
    if (window.speed.layers > before) drawn += 1;
  }
  return { times, drawn };
}
"""


@dataclass(frozen=True)
class Speed:
    drawn_ms: float  # from the arrival of the data to the frame that shows it
    drawn_cpu_ms: float  # of the page's main thread, for all of it: what is left when others keep the machine busy
    pan_frames_s: float
    pan_slowest_ms: float
    pan_cpu_ms: float  # a frame


def measure(context: BrowserContext, seed: int = 1) -> Speed:
    """`context` is signed in."""
    context.add_init_script(_CLOCKS)
    page = context.new_page()
    transfers = _transfers(random.Random(seed), int(datetime.now(UTC).timestamp()) * US_PER_S)
    page.route(f"**/v1/links/{LINK}", lambda route: route.fulfill(json=_link()))
    page.route(f"**/v1/links/{LINK}/calendar?*", lambda route: route.fulfill(json=_calendar(route)))
    page.route(f"**/v1/links/{LINK}/bookings?*", lambda route: route.fulfill(json=_bookings(route, transfers)))
    meter = context.new_cdp_session(page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"/links/{LINK}", wait_until="domcontentloaded")
    before = _cpu_ms(meter)
    drawn_ms = page.evaluate(_SHOWN)
    drawn_cpu_ms = _cpu_ms(meter) - before
    return Speed(drawn_ms, drawn_cpu_ms, *_pan(page, meter))


def _cpu_ms(meter: CDPSession) -> float:
    metrics = meter.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def _pan(page: Page, meter: CDPSession) -> tuple[float, float, float]:
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before = _cpu_ms(meter)
    found = page.evaluate(_PAN, [FRAMES, x, y])
    cpu_ms = _cpu_ms(meter) - before
    page.mouse.up()
    assert found["drawn"] >= FRAMES * 0.9, found["drawn"]
    lengths = [after - before for before, after in pairwise(found["times"])]
    return 1000 / statistics.fmean(lengths), max(lengths), cpu_ms / FRAMES


def _transfers(draw: random.Random, now_us: int) -> list[dict[str, Any]]:
    """Each changes its rate 200 times in two days around now, no two at the same instant."""
    day = 24 * 3600 * US_PER_S
    made = []
    for number in range(TRANSFERS):
        instants = sorted(draw.sample(range(now_us - day // 2, now_us + 3 * day // 2), SEGMENTS + 1))
        segments = [[begin, end, draw.randrange(1, CAPACITY_BPS // TRANSFERS)] for begin, end in pairwise(instants)]
        made.append({
            "id": f"tr_{number:04d}", "label": f"Run {number}", "project": f"project {number % 20}", "state": "RESERVED", "source": "A",
            "destination": "B", "booked_bytes": 10**12, "segments": segments,
        })  # fmt: skip
    return made


def _range(route: Route) -> tuple[int, int, int]:
    asked = parse_qs(urlsplit(route.request.url).query)
    return parse_time(asked["from"][0]), parse_time(asked["to"][0]), int(asked["points"][0])


def _bookings(route: Route, transfers: list[dict[str, Any]]) -> dict[str, Any]:
    begin, end, _ = _range(route)
    span = (end - begin) // 500
    measured = {"begin_us": begin, "span_us": span, "rates_bps": [CAPACITY_BPS // 2 if n % 7 else None for n in range(500)]}
    rest = {"transfers": 0, "booked_bytes": 0, "segments": []}
    return {
        "link": LINK, "begin": format_time(begin), "end": format_time(end), "transfers": transfers, "rest": rest, "measured": measured,
    }  # fmt: skip


def _calendar(route: Route) -> dict[str, Any]:
    begin, end, points = _range(route)
    instants = [begin + n * (end - begin) // points for n in range(points)]
    steps = [
        {
            "begin": format_time(at),
            "capacity_bps": CAPACITY_BPS - n % 3 * 10**9,
            "booked_bps": CAPACITY_BPS // 2,
            "free_bps": CAPACITY_BPS // 2,
        }
        for n, at in enumerate(instants)
    ]
    return {"link": LINK, "begin": format_time(begin), "end": format_time(end), "decimated": True, "steps": steps}


def _link() -> dict[str, Any]:
    return {
        "id": LINK, "source": "A", "target": "B", "capacity_bps": CAPACITY_BPS, "mtu_bytes": None, "channel_bps": None, "slot_us": 1,
        "metric": None, "available": [], "windows": [], "reverse": None, "host": None, "version": 1, "revision": 1,
    }  # fmt: skip


if __name__ == "__main__":
    import sys
    from pathlib import Path

    from tests.dashboard import chromium

    state = Path(sys.argv[1])
    with chromium.running() as browser:
        context = browser.new_context(
            base_url=json.loads((state / "bwb.json").read_text())["url"], viewport={"width": 1920, "height": 1080}
        )
        assert context.request.post("/v1/session", data={"token": (state / "admin.token").read_text().strip()}).ok
        print(measure(context))
