"""Tutorials print what they show.

CI follows the pages with the wheel (`.ci/walk`). The slow test is for those
who change a page. With `UPDATE_PAGES=1` in the environment, it writes what the
blocks print.
"""

import os
from pathlib import Path

import pytest

from tests.docs.page_blocks import ROOT, Reader, find_difference, list_blocks

PAGES = ["docs/index.md", "docs/claims.md"] + sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("docs/tutorials/*.md")
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(
    page: str, working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a clone has and a page refers to.
    for name in ("docs", "pipelines", "reproduction"):
        (working_folder / name).symlink_to(ROOT / name)
    monkeypatch.syspath_prepend(working_folder)
    path = ROOT / page
    text = path.read_text("utf-8")
    reader, compared, updated = Reader(working_folder), 0, []
    for block in list_blocks(text):
        if block.language != "text":
            reader.read(block)
            continue
        compared += 1
        difference = find_difference(block.body, reader.printed)
        if "UPDATE_PAGES" not in os.environ:
            assert not difference, difference
        elif difference:
            updated.append((block.span, reader.printed.strip("\n") + "\n"))
    for (start, end), printed in reversed(updated):
        text = text[:start] + printed + text[end:]
    if updated:
        path.write_text(text, "utf-8")
    assert compared, f"{page} shows nothing"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("mse   8.676e-06  0.5\n", "mse 8.68e-06    0.501\n", True),
        ("mse  0.5\n", "mse  0.6\n", False),
        ("a 1\n...\nb 2\n", "a 1\nx\ny\nb 2\n", True),
        ("a 1\n...\n", "b 1\n", False),
        ("[0.5 -1.0]", "[0.5 1.0]", False),
    ],
)
def test_what_a_page_shows_is_compared(
    shown: str, printed: str, same: bool
) -> None:
    assert (find_difference(shown, printed) == "") == same
