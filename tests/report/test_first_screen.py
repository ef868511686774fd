"""The first screen: a series of runs at the same positions."""

import dataclasses
from pathlib import Path

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.report.first_screen import make_answer, score_runs
from tfcomp.report.run_exhibits import group_runs, rename_runs
from tfcomp.training.experiment import train_and_evaluate


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> list[RunAnalysis]:
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
        studies.append(RunAnalysis(load_run(Path(config.run_dir))))
    return studies


def test_a_series_is_drawn_at_the_same_positions(
    series: list[RunAnalysis], tmp_path: Path
) -> None:
    runs = rename_runs(series)
    scored = score_runs(runs, tmp_path)
    answer = make_answer(runs, scored, "Compared.", with_map=False)
    assert answer.sentences[-1] == "Compared."
    scores, exhibit = answer.exhibits
    labels = [axes.get_ylabel() for axes in exhibit.figure.axes]
    assert list(filter(None, labels)) == ["truth", "num_bumps 0", "num_bumps 3"]
    titles = [axes.get_title() for axes in exhibit.figure.axes]
    assert [t.split()[0] for t in titles[:8]] == ["ID"] * 3 + ["OOD"] * 5
    found = {(r["run"], r["subset"]): r for r in exhibit.rows}
    expected = series[1].run.metrics["ood_plus"]["mse"]
    found = found["num_bumps 3", "ood_plus"]["mse"]
    assert found == pytest.approx(expected)
    rows = {row["setting"]: row for row in scores.rows}
    assert list(rows) == ["num_bumps 0", "num_bumps 3"]
    for analysis in runs:
        for subset in ("id", "ood"):
            known = analysis.run.metrics[subset]["relative_mse"]
            shown = rows[analysis.setting][subset.upper()]
            assert float(shown) == pytest.approx(known, abs=0.006)
        untrained = float(rows[analysis.setting]["untrained"])
        known = analysis.run.metrics["untrained"]["ood"]
        assert untrained == pytest.approx(known, abs=0.006)
        ignored = float(rows[analysis.setting]["one factor ignored"])
        found = analysis.run.metrics["references"]
        expected = min(found["without_x"]["ood"], found["without_y"]["ood"])
        assert ignored == pytest.approx(expected, abs=0.006)
    ((_, address),) = rows["num_bumps 0"]["seeds"].parts
    assert (tmp_path / address).resolve() == series[0].run.path


def test_runs_on_other_data_are_a_group_of_their_own(
    series: list[RunAnalysis],
) -> None:
    assert group_runs(series) == [series]
    other = RunAnalysis(series[1].run)
    other.evaluation = dataclasses.replace(
        other.evaluation, truth=other.evaluation.truth + 1e-3
    )
    assert group_runs([*series, other]) == [series, [other]]
