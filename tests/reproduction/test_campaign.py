"""Flagfiles of the campaign describe sweeps and searches."""

from pathlib import Path

import pytest

from pipelines.profile import make_work
from reproduction import FLAGFILES

FILES = sorted(FLAGFILES.rglob("*.flags"))
SIZES = {"01_hard_found": 20, "threshold_donut": 24, "01_donut_bump_next": 10}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_flagfile_can_be_run(file: Path, tmp_path: Path):
    arguments = [f"--flagfile={file}", f"--log_dir={tmp_path}"]

    work = make_work(file.stem, arguments)

    count = len(work.items)
    assert count == SIZES.get(file.stem, count) > 0
    assert list(tmp_path.iterdir()) == []  # nothing was written
