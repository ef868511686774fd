"""A browser for the pages that tests open, where the system has one."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def no_pdf(monkeypatch: pytest.MonkeyPatch):
    """Writes empty PDF files, which take as long as pictures."""
    monkeypatch.setattr("tfcomp.figures.exhibits.figure_to_pdf", lambda _: b"")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
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
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def open_page(browser: Any) -> Callable[..., Any]:
    """Opens a page, which collects what goes wrong in `problems`."""

    def open_page(url: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.problems = []
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto(url)
        return page

    return open_page
