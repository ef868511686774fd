"""Small runs, and runs of an earlier version, are analyzed.

`tests/fixtures/earlier_runs.zip` holds two small runs, a CNN and a low-rank
network, as tfcomp wrote them before its files moved into packages: run
folder, Keras model and SavedModel.
"""

import csv
import json
import re
import shutil
import zipfile
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import tensorflow as tf

from tfcomp import analyze
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.run_config import RunConfig
from tfcomp.metrics import registry
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import load_run
from tfcomp.storage.run_folder import read_metrics


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def report(smoke_run: RunConfig, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    flags = [f"--run={smoke_run.run_dir}", f"--output={folder}"]
    flags += ["--sections=explorer,errors,layers,runs"]
    assert analyze.main(["analyze", *flags]) == 0
    return folder


def test_every_figure_has_both_formats(report: Path) -> None:
    images = {path.stem for path in report.glob("*.png")}
    assert images == {path.stem for path in report.glob("*.pdf")}
    assert all(p.read_bytes()[:4] == b"%PDF" for p in report.glob("*.pdf"))
    for kind in (
        "samples_smoke",
        "landscape_smoke",
        "factorization",
        "probes",
        "log_volume",
        "smoke_log_volume",
    ):
        assert kind in images


def test_page_is_self_contained(report: Path) -> None:
    text = (report / "report.html").read_text("utf-8")
    sources = re.findall(r'\ssrc="([^"]*)"', text)
    assert sources and all(source.startswith("data:") for source in sources)
    assert "<link" not in text
    links = re.findall(r'<a [^>]*href="([^"]*)"', text)
    anchors = {link[1:] for link in links if link.startswith("#")}
    files = {unquote(link) for link in links if not link.startswith("#")}
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert len(set(ids)) == len(ids) and anchors <= set(ids)
    for pattern in ("*.pdf", "*.csv"):
        assert {path.name for path in report.glob(pattern)} <= files
    assert all((report / name).is_file() for name in files)
    assert "--region=square:4-8" in text  # the flags are part of it


def test_sections_are_listed(capsys) -> None:
    assert analyze.main(["analyze", "--sections=list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"explorer", "layers", "umap", "runs"} <= set(names)


def test_numbers_behind_the_landscape(
    report: Path, smoke_run: RunConfig
) -> None:
    run = load_run(smoke_run.run_dir)
    rows = read_csv(report / "landscape_smoke.csv")
    grid = np.array([[float(r["x"]), float(r["y"])] for r in rows])
    np.testing.assert_array_equal(grid, run.dataset.splits.grid)
    images = run.model.predict(run.dataset.splits.grid, verbose=0)
    truth = run.dataset.render_array(run.dataset.splits.grid)
    error = ((images - truth) ** 2).mean(axis=(1, 2, 3))
    blank = ((1.0 - truth) ** 2).mean(axis=(1, 2, 3))
    shown = np.array([float(r["smoke"]) for r in rows])
    np.testing.assert_allclose(shown, error / blank, rtol=1e-4)
    is_ood = [r["is_ood"] == "True" for r in rows]
    np.testing.assert_array_equal(is_ood, run.dataset.splits.is_ood)


def test_patterns_and_links(
    smoke_run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of data managers are links; a name may have a comma or brackets."""
    reported: list[Path] = []

    def build_report(runs: list[RunAnalysis], *_: object) -> None:
        reported.extend(run.run.path.resolve() for run in runs)

    name = "tfcomp.report.report_build.build_report"
    monkeypatch.setattr(name, build_report)
    folder = tmp_path / "runs, a [2026]"
    run = Path(shutil.copytree(smoke_run.run_dir, folder / "smoke"))
    (run / "model.keras").rename(tmp_path / "object")
    (run / "model.keras").symlink_to(tmp_path / "object")
    (tmp_path / "logs").symlink_to(folder)

    for text in (str(run), f"{tmp_path}/logs/*"):
        assert analyze.main(["analyze", f"--run={text}"]) == 0
    assert reported == [run, run]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "--run must name"),
        ("--run=/nowhere", "does not exist"),
        ("--run={run},{run}", "different"),
        ("--run={run} --output=/dev/null/report", "--output"),
        ("--run={run} --sections=layer", "did you mean layers"),
        ("--measure --run=/nowhere/*", "--run must match a folder"),
        ("--measure --run=//", "root"),
        ("--measure --run={run}/analysis", "--run must match"),
    ],
)
def test_bad_input(
    flags: str, message: str, smoke_run: RunConfig, working_folder: Path
) -> None:
    words = flags.format(run=smoke_run.run_dir).split()
    with pytest.raises((ConfigError, RunError), match=message):
        analyze.main(["analyze", "--output=report", *words])
    assert not list(working_folder.iterdir())


ARCHIVE = Path(__file__).parents[1] / "fixtures" / "earlier_runs.zip"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the logs and the SavedModels of both runs."""
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("name", ["earlier_cnn", "earlier"])
def test_the_models_have_their_scores(earlier: Path, name: str) -> None:
    run = load_run(earlier / "tensorboard_logs" / name)
    scores = RunAnalysis(run.model, run.dataset).evaluation.scores
    for subset in ("id", "ood"):
        # Scores that were added since have no counterpart.
        known = {name: scores[subset][name] for name in run.metrics[subset]}
        assert known == pytest.approx(run.metrics[subset], rel=1e-5)
    served = tf.saved_model.load(str(earlier / "saved_models" / name / "1"))
    grid = run.dataset.splits.grid.astype(np.float32)
    drawn = served.signatures["serving_default"](factors=tf.constant(grid))
    np.testing.assert_allclose(drawn["image"], run.model(grid), atol=1e-6)
    metrics = served.signatures["geometry"](factors=tf.constant(grid))
    assert metrics["image"].shape == (len(grid), 2, 2)


def test_two_runs(earlier: Path, tmp_path: Path) -> None:
    """Low-rank with indices, and one without a region."""
    logs = tmp_path / "logs"
    shutil.copytree(earlier / "tensorboard_logs", logs)
    low_rank = logs / "earlier"
    whole = logs / "earlier_cnn"
    lines = (whole / "run.flags").read_text()
    lines = lines.replace("--region=square:3-5", "--region=none")
    (whole / "run.flags").write_text(lines)
    metrics = json.loads((whole / "metrics.json").read_text())
    del metrics["ood"]
    (whole / "metrics.json").write_text(json.dumps(metrics))

    flags = [f"--run={low_rank},{whole}", "--sections=embeddings,runs"]
    assert analyze.main(["analyze", *flags]) == 0
    folder = logs / "analysis_earlier_earlier_cnn"
    assert (folder / "earlier_embedding_x.png").exists()
    assert (folder / "earlier_embedding_y.csv").exists()
    runs = [row["run"] for row in read_csv(folder / "settings.csv")]
    assert runs == ["earlier", "earlier_cnn"]


# Metrics beyond the scores


@pytest.fixture
def sweep(smoke_run: RunConfig, tmp_path: Path) -> Path:
    """A folder of trials: one finished run, one that is not."""
    trials = tmp_path / "sweep" / "trials"
    keep = shutil.ignore_patterns("checkpoints", "events*", "projector*")
    shutil.copytree(smoke_run.run_dir, trials / "ab12", ignore=keep)
    (trials / "cd34").mkdir()
    shutil.copy(trials / "ab12" / "run.flags", trials / "cd34")
    return tmp_path / "sweep"


def measure(runs: str) -> int:
    return analyze.main(["analyze", runs, "--measure"])


def test_a_trained_run_is_measured_once(sweep: Path, capsys) -> None:
    assert measure(str(sweep)) == 0
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
    assert measure(f"{sweep}/trials/*") == 0
    assert "1 runs, 0 to measure" in capsys.readouterr().out
    assert file.stat().st_mtime_ns == written


def test_a_damaged_run_does_not_stop_the_others(
    sweep: Path, capsys, monkeypatch
) -> None:
    trials = sweep / "trials"
    shutil.copytree(trials / "ab12", trials / "aa00")
    (trials / "aa00" / "model.keras").write_bytes(b"not a model")

    def write(run: Path) -> None:
        registry.write_run_metrics(load_run(run).path, {"stages": []})

    monkeypatch.setattr("tfcomp.metrics.run_analysis.measure_run", write)
    scores = read_metrics(trials / "ab12")
    older = scores | {"measures": {"version": "older", "stages": []}}
    (trials / "ab12" / "metrics.json").write_text(json.dumps(older))
    assert measure(str(sweep)) == 1
    error = capsys.readouterr().err
    assert "aa00" in error and error.count("\n") == 1
    assert not registry.is_measured(trials / "aa00")
    entry = {"version": compute_code_version(), "stages": []}
    assert read_metrics(trials / "ab12") == scores | {"measures": entry}
