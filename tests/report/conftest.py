"""A browser for the pages that tests open, where the system has one."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def few_pictures(no_pdf: None, monkeypatch: pytest.MonkeyPatch):
    """Draws two samples in place of eight, and no PDF files."""
    monkeypatch.setattr("tfcomp.figures.pictures.SHOWN_SAMPLES", 2)
    monkeypatch.setattr("tfcomp.report.report_build.NUM_HELD_OUT", 1)


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    """The one page of a browser; each further one takes a second."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright, of the extra `test`"
    )
    paths = [shutil.which(name) for name in BROWSERS]
    installed = list(filter(None, paths))
    if not installed:
        pytest.skip(f"needs one of {', '.join(BROWSERS)}")
    # As root there is no sandbox to be had.
    options = []
    if not os.geteuid():
        options.append("--no-sandbox")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=installed[0],
            args=options,
        )
        yield chromium.new_page()
        chromium.close()


@pytest.fixture(scope="module")
def open_page(window: Any) -> Callable[[str], Any]:
    """Opens a page, which collects what goes wrong in `problems`."""
    window.problems = []
    window.on("console", lambda message: window.problems.append(message.text))
    window.on("pageerror", lambda error: window.problems.append(str(error)))

    def open_page(url: str) -> Any:
        window.goto("about:blank")
        window.problems.clear()
        window.goto(url)
        return window

    return open_page
