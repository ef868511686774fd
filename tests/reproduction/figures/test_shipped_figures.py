"""Figures of the paper that pages show are those that their command draws."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from reproduction.figures import command

ROOT = Path(__file__).parents[3]
PINNED = (ROOT / "constraints.txt").read_text("utf-8").split()


def read(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), float)


@pytest.mark.skipif(
    f"matplotlib=={matplotlib.__version__}" not in PINNED,
    reason="other versions of matplotlib move text",
)
@pytest.mark.parametrize(
    ("runs", "files"),
    [
        ("reproduction/evidence/*threshold*", {"4c": "fig_4c_1"}),
        (
            "reproduction/evidence",
            {"symptoms": "fig_symptoms_1", "cures": "fig_cures_1"},
        ),
    ],
)
def test_shipped_figures(runs: str, files: dict, tmp_path: Path) -> None:
    flags = [f"--runs={ROOT / runs}", f"--only={','.join(files)}"]
    assert command.main(["", *flags, f"--output={tmp_path}"]) == 0
    for name in files.values():
        shown = read(ROOT / f"docs/figures/{name}.png")
        drawn = read(tmp_path / f"{name}.png")
        assert shown.shape == drawn.shape
        # Another processor may round a pixel otherwise.
        assert np.abs(shown - drawn).mean() < 0.5, name
