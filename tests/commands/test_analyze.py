"""Small runs, and runs of an earlier version, are analyzed.

`tests/fixtures/earlier_runs.zip` holds two small runs, a CNN and a low-rank
network, as tfcomp wrote them before its files moved into packages: run
folder, Keras model and SavedModel.
"""

import json
import re
import shutil
import zipfile
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import unquote

import pandas as pd
import pytest
from numpy.testing import assert_allclose

from tfcomp import analyze
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.run_config import RunConfig
from tfcomp.figures import exhibits
from tfcomp.metrics import registry, run_analysis
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.report import report_build
from tfcomp.storage.run_folder import read_metrics

pytestmark = pytest.mark.usefixtures("untraced", "no_pdf")

# One report has the PDF files that users get, in spite of `no_pdf`.
FIGURE_TO_PDF = exhibits.figure_to_pdf
ARCHIVE = Path(__file__).parents[1] / "fixtures" / "earlier_runs.zip"


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> LoadedRun:
    return load_run(smoke_run.run_dir)


@pytest.fixture(scope="module")
def report(run: LoadedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    flags = [f"--run={run.path}", f"--output={folder}"]
    sections = "--sections=layers,runs"
    with pytest.MonkeyPatch.context() as patch:
        # The report of two runs has the PNG files that users get.
        patch.setattr(exhibits, "figure_to_png", lambda _: b"")
        patch.setattr(exhibits, "figure_to_pdf", FIGURE_TO_PDF)
        assert analyze.main(["analyze", *flags, sections]) == 0
    return folder


def test_every_figure_has_both_formats(report: Path):
    images = {path.stem for path in report.glob("*.png")}

    assert images == {path.stem for path in report.glob("*.pdf")}
    for path in report.glob("*.pdf"):
        assert path.read_bytes().startswith(b"%PDF")
    assert images >= {
        "samples_smoke",
        "factorization",
        "probes",
        "log_volume",
        "smoke_log_volume",
    }


def test_page_is_self_contained(report: Path):
    text = (report / "report.html").read_text("utf-8")
    ids = re.findall(r'\sid="([^"]*)"', text)
    links = re.findall(r'<a [^>]*href="([^"]*)"', text)
    sources = re.findall(r'\ssrc="([^"]*)"', text)

    assert {source[:5] for source in sources} == {"data:"}
    assert "<link" not in text
    assert len(set(ids)) == len(ids)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert (report / unquote(link)).is_file()
    for path in [*report.glob("*.pdf"), *report.glob("*.csv")]:
        assert f'href="{path.name}"' in text
    assert "--region=square:4-8" in text  # the flags are part of it


def test_sections_are_listed(capsys: pytest.CaptureFixture):
    assert analyze.main(["analyze", "--sections=list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    names = {line.split()[0] for line in lines}
    assert names > {"explorer", "layers", "umap", "runs"}


def copy_smoke(run: RunConfig, folder: Path) -> Path:
    """Copies the smoke run without its large files."""
    keep = shutil.ignore_patterns("checkpoints", "events*", "projector*")
    return shutil.copytree(run.run_dir, folder, ignore=keep)


@pytest.fixture
def build_report(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for what is done with the runs of a report."""
    build = Mock()
    monkeypatch.setattr(report_build, "build_report", build)
    return build


@pytest.mark.parametrize("pattern", ["runs, a [2026]/smoke", "logs/*", "log?"])
def test_patterns_and_links(
    pattern: str,
    smoke_run: RunConfig,
    working_folder: Path,
    build_report: Mock,
):
    """Runs of data managers are links; a name may have a comma or brackets."""
    folder = working_folder / "runs, a [2026]"
    copy_smoke(smoke_run, folder / "smoke")
    model = folder / "smoke/model.keras"
    model.rename("object")
    model.symlink_to(working_folder / "object")
    Path("logs").symlink_to(folder)
    (folder / "analysis_smoke").mkdir()  # of an earlier report

    assert analyze.main(["analyze", f"--run={pattern}"]) == 0

    ((analysis,), *_), _ = build_report.call_args
    assert analysis.run.path.resolve() == folder / "smoke"


@pytest.mark.parametrize("coverage", ["", "random:.8"])
def test_a_sweep_has_one_seed_of_each_setting(
    coverage: str,
    smoke_run: RunConfig,
    working_folder: Path,
    build_report: Mock,
    capsys: pytest.CaptureFixture,
):
    """With --coverage every seed draws a region, so regions differ, too."""
    sweep = working_folder / "rates"
    for name, seed, rate in [("a", 2, 0.1), ("b", 1, 0.1), ("c", 1, 0.2)]:
        trial = copy_smoke(smoke_run, sweep / "trials" / name)
        with (trial / "run.flags").open("a") as file:
            file.write(f"--seed={seed}\n--learning_rate={rate}\n")
            if coverage:
                file.write(f"--region=random:0.2:{seed}\n")
    unfinished = sweep / "trials" / "d"
    unfinished.mkdir()
    shutil.copy(sweep / "trials" / "a" / "run.flags", unfinished)
    (sweep / "sweep.flags").write_text(f"--coverage={coverage}\n")

    assert analyze.main(["analyze", "rates"]) == 0

    (analyses, folder, _), _ = build_report.call_args
    assert sorted(each.run.path.name for each in analyses) == ["b", "c"]
    assert folder == Path("rates/analysis")
    assert "2 of 3 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "--run must name"),
        ("--run=/nowhere", "does not exist"),
        ("--run=/nowhere/*", "--run must match"),
        ("--run={run}/check*", "at least one"),
        ("--run={run},{run}", "different"),
        ("--run={run} --output=/dev/null/report", "--output"),
        ("--run={run} --sections=layer", "did you mean layers"),
        ("--measure --run=/nowhere/*", "--run must match"),
        ("--measure --run=//", "root"),
        ("--measure --run={run}/analysis", "--run must match"),
    ],
)
def test_bad_input(
    flags: str,
    message: str,
    smoke_run: RunConfig,
    working_folder: Path,
):
    words = flags.format(run=smoke_run.run_dir).split()

    with pytest.raises((ConfigError, RunError), match=message):
        analyze.main(["analyze", "--output=report", *words])

    assert not list(working_folder.iterdir())


def test_a_damaged_run_leaves_no_report(
    smoke_run: RunConfig,
    working_folder: Path,
):
    shutil.copytree(smoke_run.run_dir, "damaged")
    Path("damaged/metrics.json").write_text("[]")
    before = sorted(working_folder.rglob("*"))

    with pytest.raises(RunError, match="damaged"):
        analyze.main(["analyze", "--run=damaged"])

    assert sorted(working_folder.rglob("*")) == before


# Runs of an earlier version


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The folder of both runs."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "tensorboard_logs"


@pytest.mark.parametrize("name", ["earlier_cnn", "earlier"])
def test_the_models_have_their_scores(logs: Path, name: str):
    run = load_run(logs / name)

    scores = RunAnalysis(run.model, run.dataset).evaluation.scores

    for subset in ("id", "ood"):
        expected = run.metrics[subset]
        for name, value in expected.items():
            assert scores[subset][name] == pytest.approx(value, rel=1e-5)


def test_two_runs(logs: Path):
    """Low-rank with indices, and one without a region."""
    cnn = logs / "earlier_cnn"
    text = (cnn / "run.flags").read_text()
    text = text.replace("--region=square:3-5", "--region=none")
    (cnn / "run.flags").write_text(text)
    metrics = read_metrics(cnn)
    del metrics["ood"]
    (cnn / "metrics.json").write_text(json.dumps(metrics))

    flags = [f"--run={logs}/earlier,{cnn}", "--sections=embeddings,runs"]
    assert analyze.main(["analyze", *flags]) == 0

    folder = logs / "analysis_earlier_earlier_cnn"
    assert (folder / "earlier_embedding_x.png").exists()
    assert (folder / "earlier_embedding_y.csv").exists()
    runs = pd.read_csv(folder / "settings.csv")["run"]
    assert runs.tolist() == ["earlier", "earlier_cnn"]


# Metrics beyond the scores


@pytest.fixture
def trials(smoke_run: RunConfig, tmp_path: Path) -> Path:
    """A folder of trials: one finished run, one that is not."""
    folder = tmp_path / "sweep" / "trials"
    copy_smoke(smoke_run, folder / "ab12")
    (folder / "cd34").mkdir()
    shutil.copy(folder / "ab12" / "run.flags", folder / "cd34")
    return folder


def measure(runs: object) -> int:
    return analyze.main(["analyze", str(runs), "--measure"])


def test_a_trained_run_is_measured_once(
    trials: Path,
    capsys: pytest.CaptureFixture,
):
    assert measure(trials.parent) == 0

    assert "1 to measure" in capsys.readouterr().out
    file = trials / "ab12" / "metrics.json"
    metrics = json.loads(file.read_text())
    measures = metrics["measures"]
    stages = ["code", "stage_0", "stage_1", "stage_2", "image"]
    assert measures["version"] == compute_code_version()
    assert measures["stages"] == stages
    # The means over stages are those of metrics.json.
    layers = pd.DataFrame([metrics["layers"][stage] for stage in stages])
    differences = layers["log_volume_ood"] - layers["log_volume_id"]
    assert_allclose(measures["log_volume_difference"], differences, atol=1e-3)
    factorization = layers["factorization"]
    assert_allclose(measures["factorization"], factorization, atol=1e-4)
    # The untrained network has the same metrics, and the same code.
    before = measures["start"]
    assert before.keys() == measures.keys() - {"version", "stages", "start"}
    first, *rest = before["factorization"]
    assert first == pytest.approx(measures["factorization"][0], abs=1e-4)
    assert rest != pytest.approx(measures["factorization"][1:], abs=1e-3)

    time = file.stat().st_mtime_ns
    assert measure(trials / "*") == 0
    assert "0 to measure" in capsys.readouterr().out
    assert file.stat().st_mtime_ns == time


def test_a_damaged_run_does_not_stop_the_others(
    trials: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    finished = trials / "ab12"
    damaged = shutil.copytree(finished, trials / "aa00")
    (damaged / "model.keras").write_bytes(b"not a model")
    scores = read_metrics(finished)
    older = scores | {"measures": {"version": "older", "stages": []}}
    (finished / "metrics.json").write_text(json.dumps(older))

    def write(run: Path):
        registry.write_run_metrics(load_run(run).path, {"stages": []})

    monkeypatch.setattr(run_analysis, "measure_run", write)

    assert measure(trials.parent) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert "aa00" in line
    assert not registry.is_measured(damaged)
    measures = {"version": compute_code_version(), "stages": []}
    assert read_metrics(finished) == scores | {"measures": measures}
