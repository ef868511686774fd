"""Runs of several settings: their names, and the first screen."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.figures.projector import write_projections
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import LoadedRun
from tfcomp.models.stages import make_model
from tfcomp.report.report_build import (
    group_runs,
    make_answer,
    make_errors,
    make_landscapes,
    make_output_rows,
)
from tfcomp.report.score_table import (
    ScoredRun,
    make_table,
    read_scored,
    score_runs,
)
from tfcomp.report.verbalize import (
    describe_common,
    name_runs,
    rename_runs,
)

HASHES = ("0123456789abcdef", "fedcba9876543210", "00112233aabbccdd")


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> list[RunAnalysis]:
    folder, analyses = tmp_path_factory.mktemp("series"), []
    for count in (0, 3):
        flags = (
            "--flagfile=stripes.flags --grid_size=12 --region=corner:8 "
            f"--depth=2 --width=4 --num_bumps={count} --run_name=run_{count}"
        )
        config = parse_config(flags.split())
        data = make_dataset(config)
        model = make_model(config, data, "float32")
        metrics = {"untrained": {"id": 1.5, "ood": 2.25 + count}}
        run = LoadedRun(folder / f"{count}", config, data, model, metrics, "")
        analyses.append(RunAnalysis.of_run(run))
    return analyses


def test_a_series_is_drawn_at_the_same_positions(
    series: list[RunAnalysis], tmp_path: Path
) -> None:
    runs = rename_runs(series)
    scored = score_runs(runs, tmp_path)
    answer = make_answer(runs, scored)
    scores, exhibit = answer.exhibits
    labels = [axes.get_ylabel() for axes in exhibit.figure.axes]
    assert list(filter(None, labels)) == ["truth", "num_bumps 0", "num_bumps 3"]
    titles = [axes.get_title() for axes in exhibit.figure.axes]
    assert [t.split()[0] for t in titles[:8]] == ["ID"] * 3 + ["OOD"] * 5
    rows = {row["setting"]: row for row in scores.rows}
    assert list(rows) == ["num_bumps 0", "num_bumps 3"]
    for analysis in runs:
        row, splits = rows[analysis.setting], analysis.splits
        truth, images = analysis.evaluation.truth, analysis.evaluation.images
        errors = np.square(images - truth).mean(axis=(1, 2, 3))
        blank = np.square(truth).mean(axis=(1, 2, 3))
        for subset, chosen in (("ID", splits.is_id), ("OOD", splits.is_ood)):
            expected = errors[chosen].mean() / blank[chosen].mean()
            assert float(row[subset]) == pytest.approx(expected, abs=0.006)
        found = analysis.references
        expected = min(found["without_x"]["ood"], found["without_y"]["ood"])
        assert float(row["one factor ignored"]) == pytest.approx(
            expected, abs=0.006
        )
    ((_, address),) = rows["num_bumps 0"]["seeds"].parts
    assert (tmp_path / address).resolve() == series[0].run.path


def test_errors_before_training_have_a_table(
    series: list[RunAnalysis],
) -> None:
    tables = {e.name: e.rows for e in make_errors(series).exhibits}
    assert tables["untrained"] == [
        {"run": "run_0", "id": 1.5, "ood": 2.25},
        {"run": "run_3", "id": 1.5, "ood": 5.25},
    ]


def test_a_run_that_cannot_be_written(series: list, capsys) -> None:
    write_projections(series[0])
    assert "0 has no event files" in capsys.readouterr().err


def test_controls_draw_nothing_new(tmp_path: Path, open_page: Callable) -> None:
    flags = "--flagfile=smoke.flags --train_all".split()
    data = make_dataset(parse_config(flags))
    model = tfcomp.evaluate(lambda f: data.render_array(f), data, name="all")
    text = model.write_report(tmp_path, ["explorer"]).read_text()
    assert "training contains 25 of their 25 images" in text
    assert "all: control: trained on the region as well" in text
    page = open_page((tmp_path / "report.html").as_uri())
    said = page.locator('#explorer [data-part="marks"]').inner_text()
    assert said.startswith("In the region, which this control was trained on.")


def test_runs_on_other_data_are_another_group(series: list) -> None:
    assert group_runs(series) == [series]
    other = RunAnalysis.of_run(series[1].run)
    truth = other.evaluation.truth + 1e-3
    other.evaluation = dataclasses.replace(other.evaluation, truth=truth)
    assert group_runs([*series, other]) == [series, [other]]


def test_seeds_of_a_setting_are_in_order() -> None:
    errors = {"id": 0.01, "ood": 0.5}
    runs = [ScoredRun("a", seed, errors, link=f"{seed}/") for seed in (2, 0)]
    (row,) = make_table(runs).rows
    assert row["seeds"] == "0 2"
    assert row["seeds"].parts[0] == ("0", "0/")


def test_a_predictor_has_a_mean_if_every_run_has_its_error() -> None:
    known = ScoredRun("a", 0, {}, others={"nearest image": 3.0})
    unknown = ScoredRun("a", 1, {})
    for runs, expected in (([known], 3.0), ([known, unknown], None)):
        (row,) = make_table(runs).rows
        assert row["nearest image"] == expected


def test_of_predictors_that_ignore_a_factor_the_best_has_a_column() -> None:
    least = {"without_x": {"ood": 0.4}, "modulo_y": {"ood": 0.2}}
    (row,) = make_table([read_scored("a", 0, {"references": least})]).rows
    assert row["one factor ignored"] == 0.2


def make_corner(region: str, name: str, repeats: int = 1) -> RunAnalysis:
    """A perfect model of random images at 6 x 6 places."""
    places = np.stack(np.divmod(np.arange(36), 6), axis=1)
    images = np.random.default_rng(0).random((36, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        np.repeat(images, repeats, axis=0),
        np.repeat(places, repeats, axis=0),
        names=["x", "y"],
    )
    return tfcomp.evaluate(table.draw, table, region, name=name).analysis


def test_models_from_elsewhere_keep_their_names() -> None:
    models = [make_corner("x:3-5,y:3-5", "a"), make_corner("x:0,y:0", "b")]
    assert [model.name for model in rename_runs(models)] == ["a", "b"]


def test_there_is_a_map_for_each_split(series: list[RunAnalysis]) -> None:
    model = make_corner("x:3-5,y:3-5", "a")
    several = [model, series[0], model.rename("c", "c"), series[1]]
    maps = [exhibit.name for exhibit in make_landscapes(several)]
    assert maps == ["landscape_a", "landscape_run_0"]


def test_runs_with_other_scores_share_a_table() -> None:
    """Of several images of a combination there are more scores."""
    once = make_corner("x:0,y:0", "once")
    twice = make_corner("x:0,y:0", "twice", repeats=2)
    rows = make_output_rows([once, twice]).rows
    assert (
        rows[0].keys() == rows[-1].keys() > once.evaluation.scores["id"].keys()
    )


def list_names(*runs: list[str]) -> list[tuple[str, str]]:
    configs = [parse_config([f"--run_name={n}", *flags]) for n, *flags in runs]
    return name_runs(configs)


def test_trials_have_no_hashes() -> None:
    runs = [[n, f"--depth={d}"] for n, d in zip(HASHES, (2, 3), strict=False)]
    assert [name for name, _ in list_names(*runs)] == ["depth 2", "depth 3"]
    more = [*runs, [HASHES[2], "--depth=3", "--seed=1"]]
    assert list_names(*more) == [
        ("depth 2, seed 0", "depth 2"),
        ("depth 3, seed 0", "depth 3"),
        ("depth 3, seed 1", "depth 3"),
    ]


def test_names_that_users_gave_stay_where_much_differs() -> None:
    flags = ["--depth=2", "--width=9", "--encoding=bump", "--rank=3"]
    own = [("a", "a"), ("b", "b")]
    assert list_names(["a"], ["b", *flags]) == own
    assert list_names(["a"], ["b"]) == own  # equal but for the name


def test_a_subtitle_has_what_all_runs_share() -> None:
    flags = {"dataset": "gaussian_bumps", "region": "corner:5", "epochs": 30}
    control = [flags | {"train_all": True, "depth": 0}]
    said = "held out corner:5, but trained on as a control, depth 0, 30"
    assert said in describe_common(control)
    flags["train_all"] = False
    runs = [flags | {"model": model} for model in ("mlp", "cnn")]
    expected = "Dataset gaussian_bumps, held out corner:5, 30 epochs."
    assert describe_common(runs) == expected
    assert "model cnn" in describe_common(runs[1:])
