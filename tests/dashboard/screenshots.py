# SPDX-License-Identifier: Apache-2.0
"""Pictures of every page with the ESnet network and 500 transfers, light and dark, into docs/dashboard: `make screenshots`."""

import io
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.dashboard import addresses, chromium
from tests.dashboard.forms import settled
from tests.dashboard.running import ROOT, RunningBroker, running, sign_in

FOLDER = ROOT / "docs" / "dashboard"
SIZE = {"width": 1440, "height": 900}
MAX_BYTES = 250_000
_HISTORY_S = 20  # until the first transfers have ended, so that there is a past to see
_DRAWN_MS = 1_500


def main() -> int:
    if chromium.executable() is None:
        sys.exit("no chromium on PATH: `.ci/browser` installs it as root")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bwb-pictures-") as directory, running(Path(directory) / "state") as broker:
        pages = addresses.of(broker)
        time.sleep(_HISTORY_S)
        with chromium.running() as browser:
            for theme in ("light", "dark"):
                _take(browser, broker, pages, theme)
    return 0


def _take(browser: Browser, broker: RunningBroker, pages: dict[str, str], theme: str) -> None:
    options = {"base_url": broker.url, "viewport": SIZE, "color_scheme": theme, "locale": "en-GB", "timezone_id": "UTC"}
    with browser.new_context(**options) as context:  # type: ignore[arg-type]
        page = context.new_page()
        for name, address in sorted(pages.items(), key=lambda item: item[0] != "signin"):  # while nobody is signed in
            page.goto(address)
            settled(page)
            page.wait_for_timeout(_DRAWN_MS)
            _keep(page, f"{name}-{theme}.png")
            if name == "signin":
                sign_in(context, broker.token)


def _keep(page: Page, name: str) -> None:
    """With as many colours as fit: a page has few, a map many."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for colours in (256, 128, 64, 32):
        written = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
        if written.tell() <= MAX_BYTES:
            break
    (FOLDER / name).write_bytes(written.getvalue())
    print(f"{FOLDER.relative_to(ROOT) / name}: {written.tell() // 1000} kB, {colours} colours")


if __name__ == "__main__":
    sys.exit(main())
