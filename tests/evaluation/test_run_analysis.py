"""Analyses of a run at its own points, at other points, and by whose files."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tfcomp import analyze
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation import loading
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.storage.code_version import compute_code_version, hash_files

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


def test_a_complete_grid_is_shown_whole(smoke_run: RunConfig) -> None:
    analysis = RunAnalysis(loading.load_run(smoke_run.run_dir))
    assert analysis.for_maps is analysis and analysis.for_pairs is analysis
    assert analysis.for_explorer(4096) is analysis


@pytest.fixture
def copy(smoke_run: RunConfig, tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(Path(smoke_run.run_dir, name), tmp_path / name)
    return tmp_path


def name_old_result(run: Path, name: str) -> Path:
    """The file of earlier versions with a result at the points of a run."""
    grid = loading.load_run(run).dataset.splits.grid
    points = hashlib.sha256(grid.tobytes()).hexdigest()[:8]
    (run / "computed").mkdir(exist_ok=True)
    return run / "computed" / f"{name}-{points}.npz"


def test_planted_results_are_not_believed(copy: Path) -> None:
    """A run with the true images in place of outputs had an error of 0."""
    data = loading.load_run(copy).dataset
    version = (
        f"{compute_code_version('')} {hash_files((n, copy / n) for n in FILES)}"
    )
    tree = json.dumps({"version": version, "value": {"array": "a0"}}).encode()
    np.savez(
        name_old_result(copy, "outputs"),
        a0=data.render_array(data.splits.grid),
        tree=np.frombuffer(tree, np.uint8),
    )
    output = copy / "report"
    command = ["analyze", str(copy), f"--output={output}", "--sections=runs"]
    assert analyze.main(command) == 0
    recorded = json.loads((copy / "metrics.json").read_text())
    expected = f"{recorded['ood']['relative_mse']:.4g}"
    lines = (output / "scores.csv").read_text().splitlines()
    assert f"{float(lines[1].split(',')[2]):.4g}" == expected
    assert {path.name for path in copy.iterdir()} == {
        *(*FILES, "computed", "report")
    }


@pytest.mark.timeout(120)
def test_a_planted_pipe_does_not_hang(copy: Path) -> None:
    os.mkfifo(name_old_result(copy, "geometry"))
    output = f"--output={copy / 'report'}"
    assert (
        analyze.main(["analyze", str(copy), output, "--sections=layers"]) == 0
    )


def test_no_results_are_written_into_the_run(
    copy: Path, smoke_run: RunConfig
) -> None:
    """Only the report, and the data of TensorBoard's projector."""
    (events,) = Path(smoke_run.run_dir).glob("*tfevents*")
    shutil.copy(events, copy)
    command = ["analyze", str(copy), "--sections=layers,manifolds,tuning"]
    assert analyze.main(command) == 0
    made = {path.name for path in copy.iterdir()} - {*FILES, events.name}
    assert made == {"analysis", "projector", "projector_config.pbtxt"}
