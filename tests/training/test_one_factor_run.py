"""Runs with one ordered factor, from training to the report."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.report import manifold_section
from tfcomp.training.experiment import train_and_evaluate

TINY = (
    "--flagfile=rotated_mnist.flags",
    "--digit_source=stand_in",
    "--num_angles=37",
    "--width=4",
    "--epochs=1",
)
RUNS = {
    "one": ("--region=gap:angle:160-200",),
    "wider": (
        "--region=gap:angle:140-220",
        "--export=false",
        "--pictures=false",
    ),
    "several": (
        "--digit_classes=4,1",
        "--region=box:digit:4-4,angle:160-200",
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunConfig]:
    folder = tmp_path_factory.mktemp("digits")
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")
    configs = {
        name: parse_config([*TINY, *places, f"--run_name={name}", *flags])
        for name, flags in RUNS.items()
    }
    for config in configs.values():
        train_and_evaluate(config)
    return configs


@pytest.fixture(scope="module")
def report(
    runs: dict[str, RunConfig], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The report, in which UMAP, which takes a while to compile, is PCA."""
    folder = tmp_path_factory.mktemp("report")
    paths = ",".join(config.run_dir for config in runs.values())
    arguments = ["analyze", f"--run={paths}", f"--output={folder}"]
    arguments.append("--sections=gaps,layers,manifolds,umap")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifold_section, "has_umap", lambda: True)
        patch.setattr(
            manifold_section,
            "compute_umaps",
            lambda stages: {s: c.features[:, :2] for s, c in stages.items()},
        )
        assert analyze.main(arguments) == 0
    return folder


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("name", RUNS)
def test_metrics(name: str, runs: dict[str, RunConfig]) -> None:
    text = (Path(runs[name].run_dir) / "metrics.json").read_text()
    metrics = json.loads(text)
    assert metrics["ood"]["mse"] > 0
    assert metrics["id"]["position_accuracy"] is None
    code = metrics["layers"]["code"]
    assert code["factorization"] is None  # no pair of ordered factors
    assert code["probe_r2_id"] == pytest.approx(1, abs=1e-3)
    assert code["log_volume_id"] == pytest.approx(-4.0483, abs=1e-3)


@pytest.mark.parametrize(("name", "factors"), [("one", 1), ("several", 2)])
def test_export(name: str, factors: int, runs: dict[str, RunConfig]) -> None:
    model = tf.saved_model.load(f"{runs[name].export_path}/1")
    points = tf.constant([[4.0, 30.0], [1.0, 90.0]])[:, 2 - factors :]
    drawn = model.signatures["serving_default"](factors=points)
    assert drawn["image"].shape == (2, 28, 28, 1)
    metric = model.signatures["geometry"](factors=points)
    assert metric["stage_1"].shape == (2, 1, 1)


@pytest.mark.parametrize("name", ["one", "several"])
def test_images_in_tensorboard(
    name: str, runs: dict[str, RunConfig], read_events: Callable
) -> None:
    tags = read_events(runs[name]).Tags()["tensors"]
    images = {
        f"answer/{name}"
        for name in ("samples_id", "samples_ood", "curve", "errors")
    }
    assert images <= set(tags)
    assert not [
        t for t in tags if t.startswith(("answer/map", "stage_log_volume_m"))
    ]


def test_interpolation_over_gap_widths(report: Path) -> None:
    rows = read_csv(report / "interpolation.csv")
    found = {(r["run"], r["curve"]): float(r["gap_width"]) for r in rows}
    # 160 to 200 in steps of 10: known from 150 and from 210 on.
    assert found == {
        ("region gap:angle:160-200", "angle"): 60,
        ("region gap:angle:140-220", "angle"): 100,
        ("region box:digit:4-4,angle:160-200", "digit 4"): 60,
    }
    assert all(0 <= float(r["interpolation_r2"]) <= 1 for r in rows)
