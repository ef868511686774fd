"""Held-out images that training contains: their scores and their names."""

import json

import numpy as np
import pytest

from tfcomp import solvable
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.scores import evaluate_images

DATA = ("--dataset=sprites", "--grid_size=12", "--sprite_sizes=3,2,4,2,2")
# Ellipses at 180 degrees are those at 0; hearts at 270 degrees are new.
PART = "shape:#1,orientation:#2|shape:#2,orientation:#3"


def test_a_network_that_only_copies_has_no_new_image():
    """Draws held-out ellipses exactly, and nothing for held-out hearts."""
    dataset = make_dataset(parse_config([*DATA, f"--region={PART}"]))
    grid = dataset.splits.grid
    is_ood = dataset.splits.is_ood
    is_heart = grid[:, 0] == 2
    is_new = is_ood & is_heart
    truth = dataset.render_array(grid)
    images = truth.copy()
    images[is_new] = 0.0

    scores = evaluate_images(dataset, lambda _: truth, images).scores

    assert list(scores) == ["id", "ood", "ood_new"]
    errors = np.square(images - truth).mean(axis=(1, 2, 3))
    mean = errors[is_ood].mean()
    mean_new = errors[is_new].mean()
    assert scores["ood"]["mse"] == pytest.approx(mean)
    assert scores["ood_new"]["mse"] == pytest.approx(mean_new)
    assert scores["ood_new"]["relative_mse"] == pytest.approx(1)


def test_solvable_finds_them(capsys: pytest.CaptureFixture):
    flags = [*DATA, "--region=shape:#1-2,orientation:#1-3"]
    groups = "0 = 90 = 180 = 270"

    assert solvable.main(["tfcomp solvable", *flags]) == 0
    assert f"orientation: {groups}" in capsys.readouterr().out

    assert solvable.main(["tfcomp solvable", *flags, "--json"]) == 0
    copies = json.loads(capsys.readouterr().out)["copies"]
    assert copies["num_held_out"] == 48


def test_solvable_answers_about_the_images_that_are_named(tmp_path, capsys):
    """Before, it told about bumps where `--dataset=table` was forgotten."""
    file = tmp_path / "images.npz"
    np.savez(file, images=np.zeros((4, 8, 8)), x=np.arange(4))
    with pytest.raises(ConfigError, match="--dataset=table"):
        solvable.main(["tfcomp solvable", f"--data={file}"])

    flags = ["smoke", "--grid_size=8", "--region=square:3-4", "--factors=shape"]
    assert solvable.main(["tfcomp solvable", *flags]) == 0
    assert "without effect" in capsys.readouterr().out
