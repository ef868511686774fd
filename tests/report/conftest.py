"""A browser for the pages that tests open, where the system has one."""

import os
import shutil
from collections.abc import Iterator

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """The system's Chromium, without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright, of the extra `test`"
    )
    paths = [path for name in BROWSERS if (path := shutil.which(name))]
    if not paths:
        pytest.skip(f"needs one of {', '.join(BROWSERS)}")
    # As root there is no sandbox to be had.
    options = [] if os.geteuid() else ["--no-sandbox"]
    with playwright.sync_playwright() as found:
        chromium = found.chromium.launch(executable_path=paths[0], args=options)
        yield chromium
        chromium.close()
