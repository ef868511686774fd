"""The measuring command: files, versions, refusals."""

import json
import shutil
from pathlib import Path

import pytest

from tfcomp import measure
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.metrics import registry as files
from tfcomp.models.loading import load_run
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.run_folder import find_runs, read_metrics


@pytest.fixture
def sweep(smoke_run: RunConfig, tmp_path: Path) -> Path:
    """A folder of trials: one finished run, one that is not."""
    trials = tmp_path / "sweep" / "trials"
    keep = shutil.ignore_patterns("checkpoints", "events*", "projector*")
    shutil.copytree(smoke_run.run_dir, trials / "ab12", ignore=keep)
    (trials / "cd34").mkdir()
    shutil.copy(trials / "ab12" / "run.flags", trials / "cd34")
    return tmp_path / "sweep"


def run(*arguments: str) -> int:
    return measure.main(["measure", *arguments])


def test_a_trained_run_is_measured_once(sweep: Path, capsys) -> None:
    assert run(f"--runs={sweep}") == 0
    assert "1 runs, 1 to measure" in capsys.readouterr().out
    file = sweep / "trials" / "ab12" / "metrics.json"
    metrics = json.loads(file.read_text())
    measures = metrics["measures"]
    assert measures["version"] == compute_code_version()
    stages = ["code", "stage_0", "stage_1", "stage_2", "image"]
    assert measures["stages"] == stages
    # The means of the volumes are those of metrics.json.
    layers = [metrics["layers"][stage] for stage in stages]
    expected = [v["log_volume_ood"] - v["log_volume_id"] for v in layers]
    found = measures["log_volume_difference"]
    assert found == pytest.approx(expected, abs=1e-3)

    expected = [layer["factorization"] for layer in layers]
    assert measures["factorization"] == pytest.approx(expected, abs=1e-4)
    # Of the untrained network the same, and the code is in both.
    start = measures["start"]
    assert {*start} == {*measures} - {"version", "stages", "start"}
    for name in ("factorization", "log_volume_median_deviation_ood"):
        first, *rest = start[name]
        assert first == pytest.approx(measures[name][0], abs=1e-4)
        assert rest != pytest.approx(measures[name][1:], abs=1e-3)

    written = file.stat().st_mtime_ns
    assert run(f"--runs={sweep}/trials/*") == 0
    assert "1 runs, 0 to measure" in capsys.readouterr().out
    assert file.stat().st_mtime_ns == written


def test_a_damaged_run_does_not_stop_the_others(
    sweep: Path, capsys, monkeypatch
) -> None:
    trials = sweep / "trials"
    shutil.copytree(trials / "ab12", trials / "aa00")
    (trials / "aa00" / "model.keras").write_bytes(b"not a model")
    shutil.copytree(trials / "ab12", trials / "aa11")

    def fake(run: Path) -> None:
        if run.name == "aa11":
            raise ConfigError("data", "must be a file", "gone.npz")
        files.write_run_metrics(load_run(run).path, {"stages": []})

    monkeypatch.setattr("tfcomp.metrics.run_analysis.measure_run", fake)
    scores = read_metrics(trials / "ab12")
    older = scores | {"measures": {"version": "older", "stages": []}}
    (trials / "ab12" / "metrics.json").write_text(json.dumps(older))
    assert run(f"--runs={sweep}") == 1
    error = capsys.readouterr().err
    assert "aa00 is damaged" in error and error.count("\n") == 2
    assert "error: --data must be a file, got 'gone.npz'" in error
    assert not files.is_measured(trials / "aa00")
    entry = {"version": compute_code_version(), "stages": []}
    assert read_metrics(trials / "ab12") == scores | {"measures": entry}


def test_search_finds_finished_runs_once(sweep: Path) -> None:
    folder = sweep / "trials" / "ab12"
    patterns = [str(sweep), str(folder), f"{sweep}/**/ab*"]
    assert find_runs(patterns) == [folder.resolve()]
    assert find_runs([str(sweep / "trials" / "cd34")]) == []


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--runs=", "--runs must name run folders"),
        ("--runs=/nowhere/*", "--runs must match a folder"),
        ("--runs=//", "--runs must be a folder of runs, not the root"),
        ("--runs={sweep}/trials/cd34", "--runs must match at least one"),
    ],
)
def test_bad_input(sweep: Path, flag: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(flag.format(sweep=sweep))
