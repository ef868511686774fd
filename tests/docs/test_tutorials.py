"""README, start page, tutorials and claims do what they show: `make docs`.

With `UPDATE_PAGES=1` in the environment, the slow test writes what the blocks
print into the pages.
"""

import os
import re
from pathlib import Path

import pytest

from tests.docs.page_blocks import ROOT, Reader, find_difference, list_blocks
from tests.sweeps.fake_sweep import use_pool
from tests.sweeps.pool_here import PoolHere
from tfcomp.config.run_flags import SHIPPED

# Pages that are read one after the other, in one folder: the tutorial on the
# donut begins with the run of the start page. Of two processes one gets the
# README and the first two, which takes as long as the others.
READINGS = [
    ["docs/tutorials/own_parts.md"],
    ["docs/claims.md"],
    ["docs/tutorials/embeddings.md"],
    ["docs/tutorials/own_data.md"],
    ["docs/tutorials/samples.md"],
    ["docs/index.md", "docs/tutorials/donut.md"],
]
# The README's first command begins with the installation.
INSTALLATION = re.compile(
    r"^python3 -m venv .* && \.venv/bin/(?=tfcomp )", re.MULTILINE
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
    """The working folder, with what a clone has and pages refer to.

    Sweeps run their trials in this process: workers would import TensorFlow,
    and trace the networks, once more. Nor does a page show what PDF files
    have, which take a seventh of the time.
    """
    use_pool(monkeypatch, PoolHere())
    pdf = "tfcomp.figures.exhibits.figure_to_pdf"
    monkeypatch.setattr(pdf, lambda _: b"")
    for name in ("docs", "pipelines", "reproduction"):
        (working_folder / name).symlink_to(ROOT / name)
    monkeypatch.syspath_prepend(working_folder)
    return working_folder


@pytest.mark.slow
@pytest.mark.timeout(1800)  # several runs are trained
def test_the_readme_runs(clone: Path):
    """What it shows is of the donut in full, so nothing is compared."""
    (clone / "donut.flags").write_text(SMALL_DONUT)
    text = (ROOT / "README.md").read_text("utf-8")
    reader = Reader(clone)
    for block in list_blocks(INSTALLATION.sub("", text)):
        reader.read(block)
    assert (clone / "tensorboard_logs/my_depth/trials.csv").exists()


def test_every_tutorial_is_read():
    tutorials = ROOT.glob("docs/tutorials/*.md")
    names = {str(path.relative_to(ROOT)) for path in tutorials}
    assert names <= {page for pages in READINGS for page in pages}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("pages", READINGS, ids=" ".join)
def test_pages_do_what_they_say(pages: list[str], clone: Path):
    for page in pages:
        compare_page(ROOT / page, Reader(clone))


def compare_page(path: Path, reader: Reader):
    """Follows a page, and compares or updates what it shows."""
    text = path.read_text("utf-8")
    compared = 0
    updated = []
    for block in list_blocks(text):
        if block.language != "text":
            reader.read(block)
            continue
        compared += 1
        difference = find_difference(block.body, reader.printed)
        if "UPDATE_PAGES" not in os.environ:
            assert not difference, f"{path.name}: {difference}"
        elif difference:
            updated.append((block.span, reader.printed.strip("\n") + "\n"))
    for (start, end), printed in reversed(updated):
        text = text[:start] + printed + text[end:]
    if updated:
        path.write_text(text, "utf-8")
    assert compared, f"{path.name} shows nothing"
