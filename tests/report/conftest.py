"""A browser for the pages that tests open, where the system has one."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright, of the extra `test`"
    )
    paths = [path for name in BROWSERS if (path := shutil.which(name))]
    if not paths:
        pytest.skip(f"needs one of {', '.join(BROWSERS)}")
    # As root there is no sandbox to be had.
    options = [] if os.geteuid() else ["--no-sandbox"]
    with playwright.sync_playwright() as found:
        chromium = found.chromium.launch(
            executable_path=paths[0],
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
