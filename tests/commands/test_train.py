"""What `tfcomp train` prints at the end, of planted metrics."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.train import format_report, main

METRICS: dict[str, Any] = {
    "id": {"relative_mse": 0.00228, "r2": 0.9977, "position_accuracy": 1.0},
    "ood": {"relative_mse": 0.8227, "r2": 0.1447, "position_accuracy": 0.64},
    "points": {"id": 119, "ood": 25},
    "reference": "blank 1",
    "references": {
        "additive": {"ood": 1.2, "ood_r2": -0.5285},
        "mean_over_x": {"ood": 1.5, "ood_r2": -0.8527},
    },
    "certificate": {"1": {"certified": 1.0}, "2": {"certified": 0.0}},
    "explained": {"1": 0.14},
}


def test_an_interruption_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
    working_folder: Path,
):
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("tfcomp.train.run_training", interrupt)

    with pytest.raises(KeyboardInterrupt, match="--resume"):
        main(["", "smoke"])


def format_smoke(**changes: Any) -> dict[str, str]:
    """The lines by their first word, of a smoke run with planted metrics."""
    config = parse_config(["--flagfile=smoke.flags"])
    text = format_report(config, make_dataset(config), METRICS | changes)
    assert max(map(len, text.splitlines())) <= 90
    lines = {}
    for line in text.splitlines():
        lines[line.partition("  ")[0]] = line
    return lines


def test_scores_stand_in_columns_under_their_names():
    lines = format_smoke()
    assert lines["relative MSE"].split()[-2:] == ["0.0023", "0.82"]
    assert lines["R²"].split()[-2:] == ["0.998", "0.145"]
    assert lines["peaks within 1 px"].split()[-2:] == ["100.0%", "64.0%"]
    assert lines["baselines"].split()[-1] == "-0.85"
    assert "12 values" in lines["factors"]
    assert "5 held out" in lines["factors"]
    assert {"identifiable", "run", "saved model", "look"} <= lines.keys()


def test_scores_that_do_not_exist_are_left_out_or_dashes():
    scores = {"relative_mse": 0.5, "r2": None, "position_accuracy": None}
    lines = format_smoke(ood=scores, id=scores | {"r2": 0.9})
    assert lines["R²"].split()[-2:] == ["0.9", "-"]
    assert "peaks within 1 px" not in lines


def test_metrics_of_users_have_rows_with_their_labels():
    lines = format_smoke(
        own_measures={"sharpness": {"per": "image", "label": "how sharp"}},
        ood={**METRICS["ood"], "sharpness": 0.25},
    )
    assert lines["how sharp"].split()[-2:] == ["-", "0.25"]


@pytest.mark.parametrize("subset", ["ood_new", "id_plus"])
def test_more_subsets_have_columns(subset: str):
    lines = format_smoke(**{subset: {"relative_mse": 0.25}})
    assert lines["relative MSE"].split()[-3:] == ["0.0023", "0.82", "0.25"]
