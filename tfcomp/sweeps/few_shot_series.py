"""Training and drawing of the few-shot series (see `few_shot`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.pictures import choose_spread
from tfcomp.evaluation.pictures import get_pixel_mask
from tfcomp.figures import draw_rows
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.training.experiment import train_and_evaluate


def run_series(
    series: dict[int, RunConfig],
) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Trains what is not trained yet, and draws the series.

    Args:
        series: Runs by their number of bumps, all on the same region.

    Returns:
        The folder of the figure and its CSV, and the OOD scores of every
        run by a label.
    """
    results = {}
    for count, config in series.items():
        results[count] = train_and_evaluate(config)
        keras.backend.clear_session()
    configs = list(series.values())
    folder = Path(configs[0].log_dir) / f"{_common_name(configs)}_few_shot"
    save_exhibit(make_exhibit(series, results), folder)
    scores = {_label(count): result["ood"] for count, result in results.items()}
    return folder, scores


def make_exhibit(
    series: dict[int, RunConfig], results: dict[int, dict[str, Any]]
) -> Exhibit:
    """OOD outputs, one row of images per number of bumps."""
    images = {}
    for count, config in series.items():
        run = load_run(config.run_dir)
        evaluation = Evaluator(run.model, run.dataset).evaluate()
        ood = np.flatnonzero(run.dataset.splits.is_ood)
        shown = choose_spread(ood)
        images.setdefault("truth", evaluation.truth[shown])
        images[_label(count)] = evaluation.images[shown]
    figure = draw_rows(
        images,
        run.dataset.splits.grid[shown],
        get_pixel_mask(run.dataset),
        title="Held-out positions after stripes and some bumps",
    )
    caption = (
        "Outputs at held-out positions (column titles: x, y in pixels) of "
        "networks trained on all stripes and the given number of bumps "
        f"outside the region {run.config.data.region}. The first row is the "
        "true bump."
    )
    rows = [
        {"num_bumps": count, "truth": truth, **results[count][subset]}
        for count in series
        for truth, subset in (("bump", "ood"), ("plus", "ood_plus"))
    ]
    return Exhibit("few_shot", "Few-shot series", caption, figure, rows)


def _label(count: int) -> str:
    return f"{count} bumps"


def _common_name(configs: list[RunConfig]) -> str:
    return configs[0].run_name.rpartition("_")[0]
