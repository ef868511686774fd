"""Analyses of a run at its own points, at other points, and by whose files."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np

from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation import loading
from tfcomp.evaluation.run_analysis import RunAnalysis

FILES = ("run.flags", "metrics.json", "model.keras")


def test_other_points_have_the_results_of_an_analysis_of_their_own(
    smoke_run: RunConfig,
) -> None:
    """Although both share an evaluator, which traces nothing again."""
    analysis = RunAnalysis(loading.load_run(smoke_run.run_dir))
    analysis.metrics  # noqa: B018 (traced)
    part = analysis.for_explorer(40)
    assert len(part.splits.grid) < len(analysis.splits.grid)
    alone = RunAnalysis(dataclasses.replace(analysis.run, dataset=part.dataset))
    for stage, metric in alone.metrics.items():
        np.testing.assert_allclose(part.metrics[stage], metric, rtol=1e-4)
    found, expected = part.evaluation.images, alone.evaluation.images
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for stage, (units, maps) in alone.shown_units.items():
        assert units.tolist() == part.shown_units[stage][0].tolist()
        np.testing.assert_allclose(part.shown_units[stage][1], maps, atol=1e-5)
    assert len(analysis.metrics["image"]) == len(analysis.splits.grid)
    # A complete grid is shown whole.
    assert analysis.for_maps is analysis and analysis.for_pairs is analysis
    assert analysis.for_explorer(4096) is analysis


def test_no_results_are_written_into_the_run(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    """Only the report, and the data of TensorBoard's projector."""
    (events,) = Path(smoke_run.run_dir).glob("*tfevents*")
    for name in (*FILES, events.name):
        shutil.copy(Path(smoke_run.run_dir, name), tmp_path)
    command = ["analyze", str(tmp_path), "--sections=layers,manifolds,tuning"]
    assert analyze.main(command) == 0
    made = {path.name for path in tmp_path.iterdir()} - {*FILES, events.name}
    assert made == {"analysis", "projector", "projector_config.pbtxt"}
