"""Rows of images: a series of runs at the same held-out positions."""

from pathlib import Path

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.study import Study
from tfcomp.report.row_section import make_row_comparison
from tfcomp.training.experiment import train_and_evaluate


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> list[Study]:
    """Runs on stripes and 0 and 3 bumps."""
    folder = tmp_path_factory.mktemp("series")
    flags = [
        "--flagfile=stripes.flags",
        "--grid_size=12",
        "--region=corner:8",
        "--depth=2",
        "--width=4",
        "--epochs=1",
        "--steps_per_epoch=2",
        "--pictures=false",
        "--export=false",
        f"--log_dir={folder / 'logs'}",
        f"--export_dir={folder / 'models'}",
    ]
    studies = []
    for count in (0, 3):
        name = [f"--num_bumps={count}", f"--run_name=stripes_{count}"]
        config = parse_config([*flags, *name])
        train_and_evaluate(config)
        studies.append(Study(load_run(Path(config.run_dir))))
    return studies


def test_a_series_is_drawn_at_the_same_positions(series: list[Study]) -> None:
    (exhibit,) = make_row_comparison(series).exhibits
    labels = [axes.get_ylabel() for axes in exhibit.figure.axes]
    assert list(filter(None, labels)) == ["truth", "num_bumps 0", "num_bumps 3"]
    keys = ("run", "num_bumps", "subset")
    assert [tuple(row[key] for key in keys) for row in exhibit.rows] == [
        (f"stripes_{count}", count, subset)
        for count in (0, 3)
        for subset in ("ood", "ood_plus")
    ]
    expected = series[1].run.metrics["ood_plus"]["mse"]
    assert exhibit.rows[3]["mse"] == pytest.approx(expected)


def test_a_single_run_has_nothing_beside_it(series: list[Study]) -> None:
    assert not make_row_comparison(series[:1]).exhibits
