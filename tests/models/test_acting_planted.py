"""The acting decoder finds what was planted, and shows what it cannot fit."""

from pathlib import Path

import numpy as np
import pytest

from tfcomp import load_run
from tfcomp.config.run_flags import parse_config
from tfcomp.train import train_run

pytestmark = pytest.mark.slow
SHORT = (
    "--flagfile=acting.flags --candidates=4 --epochs=4 --nopictures --noexport"
).split()


def write_discs(path: Path, only_left: bool) -> None:
    """Discs at 6 x 6 places of three sizes, which may differ left only."""
    classes = np.stack(np.unravel_index(np.arange(108), (3, 6, 6)), axis=1)
    rows, columns = np.mgrid[:16, :16]
    images = []
    for size, x, y in classes:
        grown = 0.9 * size * (x < 3 or not only_left)
        apart = np.hypot(columns - 3 - 2 * x, rows - 3 - 2 * y)
        images.append(np.clip(1.7 + grown - apart, 0, 1))
    np.savez(
        path,
        images=(255 * np.stack(images)).astype(np.uint8),
        classes=classes,
        names=["size", "x", "y"],
    )


def train_on(path: Path, *flags: str) -> dict:
    folders = [f"--log_dir={path}/logs", f"--export_dir={path}/exported"]
    return train_run(parse_config([*SHORT, *folders, *flags]))


def test_growth_on_the_left_alone_is_not_fitted(tmp_path: Path) -> None:
    errors = {}
    for only_left in (False, True):
        data = tmp_path / f"discs_{only_left}.npz"
        write_discs(data, only_left)
        flags = [f"--data={data}", "--dataset=table", "--region=random:.3"]
        metrics = train_on(tmp_path, *flags, f"--run_name=discs_{only_left}")
        errors[only_left] = metrics["id"]["relative_mse"]
        if not only_left:
            assert metrics["ood"]["relative_mse"] < 0.01
            assert "x" in metrics["channels"]["x"]
            assert "y" in metrics["channels"]["y"]
            assert "size" in metrics["channels"]["size"]
    assert errors[True] > 10 * errors[False]


def test_a_hue_without_color_is_not_fitted(tmp_path: Path) -> None:
    # Four hues would turn the square to no effect, as they start.
    flags = [
        *("--candidates=8", "--epochs=8"),
        *("--sprite_sizes=1,2,1,4,4,5", "--region=scale:1,x:#2-3,hue:#0"),
        f"--run_name={tmp_path.name}",
    ]
    colored = train_on(tmp_path, *flags)
    assert set(colored["channels"]["hue"]) == {"color"}
    assert colored["ood"]["relative_mse"] < 0.05
    config = parse_config([*SHORT, *flags, f"--log_dir={tmp_path}/logs"])
    page = load_run(config.run_dir).write_report(tmp_path / "report")
    assert "hue" in page.read_text("utf-8")
    plain = train_on(
        *(tmp_path, *flags, "--run_name=plain"),
        "--channels=x,y,angle,size,template",
    )
    assert plain["id"]["relative_mse"] > 5 * colored["id"]["relative_mse"]
    assert plain["id"]["relative_mse"] > 0.05


def test_digits_turn_about_their_middle(tmp_path: Path) -> None:
    """The 4 is never seen at half of its angles; other digits turn there."""
    metrics = train_on(
        *(tmp_path, "--dataset=rotated_digits", "--digit_source=stand_in"),
        *("--digit_classes=0,1,4", "--num_angles=25", "--grid_size=28"),
        *("--region=box:digit:4-4,angle:90-255", "--run_name=digits"),
    )
    assert set(metrics["channels"]["angle"]) == {"angle"}
    assert "template" in metrics["channels"]["digit"]
    assert metrics["id"]["relative_mse"] < 0.05
    assert metrics["ood"]["relative_mse"] < 0.1
