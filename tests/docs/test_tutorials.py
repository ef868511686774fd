"""README, start page, tutorials and claims do what they show: `make docs`.

With `UPDATE_PAGES=1` in the environment, the slow test writes what the blocks
print into the pages.
"""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.page_blocks import ROOT, Reader, find_difference, list_blocks
from tfcomp.config.run_flags import SHIPPED

PAGES = ["docs/index.md", "docs/claims.md"] + sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("docs/tutorials/*.md")
)
# The README's first command begins with the installation.
INSTALLATION = re.compile(
    r"^python3 -m venv .* && (?=\.venv/bin/tfcomp )", re.MULTILINE
)
# It trains the donut, here a small one of the same name.
SMALL_DONUT = f"""\
--flagfile={SHIPPED / "donut.flags"}
--grid_size=8
--region=square:2-5
--width=4
--epochs=2
--steps_per_epoch=5
--eval_every=0
--layerwise_every=0
--pictures=false
--export=false
"""


@pytest.fixture
def clone(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with what a clone has and pages refer to."""
    for name in ("docs", "pipelines", "reproduction"):
        (working_folder / name).symlink_to(ROOT / name)
    (working_folder / ".venv").symlink_to(sys.prefix)
    monkeypatch.syspath_prepend(working_folder)
    return working_folder


@pytest.mark.slow
@pytest.mark.timeout(1800)  # several runs are trained, by other processes
def test_the_readme_runs(clone: Path) -> None:
    """What it shows is of the donut in full, so nothing is compared."""
    (clone / "donut.flags").write_text(SMALL_DONUT)
    text = (ROOT / "README.md").read_text("utf-8")
    reader = Reader(clone)
    for block in list_blocks(INSTALLATION.sub("", text)):
        reader.read(block)
    assert (clone / "tensorboard_logs/my_depth/trials.csv").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, clone: Path) -> None:
    path = ROOT / page
    text = path.read_text("utf-8")
    reader = Reader(clone)
    compared = 0
    updated = []
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
