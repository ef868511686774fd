"""Held-out images that training contains, through the whole chain."""

import json

import numpy as np
import pytest

import tfcomp
from tfcomp import solvable
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.point_scores import evaluate_images
from tfcomp.metrics.scores import average_scores, score_images
from tfcomp.train import run_training

DATA = ("--dataset=sprites", "--grid_size=12", "--sprite_sizes=3,2,4,3,2")
# Ellipses at 180 degrees are those at 0; hearts at 270 degrees are new.
PART = "shape:#1,orientation:#2|shape:#2,orientation:#3"
QUICK = (
    "--model=mlp --width=8 --depth=1 --epochs=1 --steps_per_epoch=2 "
    "--eval_every=0 --nopictures --noexport --layerwise_every=0 "
    "--run_name=copied"
).split()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    folder = tmp_path_factory.mktemp("copies")
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")
    return parse_config([*DATA, f"--region={PART}", *QUICK, *places])


def test_a_network_that_only_copies_has_no_new_image(config: RunConfig) -> None:
    """Draws held-out ellipses exactly, and nothing for held-out hearts."""
    dataset = make_dataset(config)
    grid, is_ood = dataset.splits.grid, dataset.splits.is_ood
    truth = dataset.render_array(grid)
    is_new = is_ood & (grid[:, 0] == 2)
    images = np.where(is_new[:, None, None, None], 0.0, truth)
    found = evaluate_images(dataset, lambda _: {}, images.astype(np.float32))
    assert list(found.scores) == ["id", "ood", "ood_new"]
    for name, rows in (("ood", is_ood), ("ood_new", is_new)):
        pairs = (images[rows], truth[rows], None, "bright", dataset.reference)
        expected = average_scores(score_images(*pairs))
        assert found.scores[name]["mse"] == pytest.approx(expected["mse"])
    assert found.scores["ood_new"]["relative_mse"] == pytest.approx(1)
    assert 0.4 < found.scores["ood"]["relative_mse"] < 0.7


@pytest.mark.slow
def test_the_run_has_scores_of_new_images(config: RunConfig) -> None:
    metrics = run_training(config)
    assert metrics["ood_new"].keys() == metrics["ood"].keys()
    assert metrics["points"] == {"id": 120, "ood": 24, "ood_new": 12}
    assert metrics["copies"]["num_copies"] == 12
    assert metrics["ood_new"]["mse"] != metrics["ood"]["mse"]
    _, numbers = tfcomp.read_runs(config.log_dir)
    rows = numbers.query("subset == 'ood_new' and when == 'end'")
    scores = dict(zip(rows["name"], rows["value"], strict=True))
    assert scores["mse"] == metrics["ood_new"]["mse"]


def test_solvable_finds_them(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [*DATA, "--region=shape:#1-2,orientation:#1-3"]
    assert solvable.main(["tfcomp solvable", *flags, "--json"]) == 0
    copies = json.loads(capsys.readouterr().out)["copies"]
    groups = "0 = 90 = 180 = 270"
    assert copies["aliases"] == {"orientation": [groups]}
    assert copies["num_held_out"] == 72
    assert solvable.main(["tfcomp solvable", *flags]) == 0
    assert f"orientation: {groups}" in capsys.readouterr().out
