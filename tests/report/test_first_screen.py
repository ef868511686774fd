"""Runs of several settings: their names, and the first screen."""

import dataclasses

import numpy as np
import pytest

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.figures.projector import write_projections
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import LoadedRun
from tfcomp.models.registry import make_model
from tfcomp.report.report_build import (
    group_runs,
    make_answer,
    make_errors,
    make_landscapes,
    make_output_rows,
)
from tfcomp.report.score_table import ScoredRun, make_table, score_runs
from tfcomp.report.verbalize import (
    describe_common,
    describe_confounds,
    name_runs,
    rename_runs,
)

pytestmark = pytest.mark.usefixtures("untraced")

HASHES = ["0123456789abcdef", "fedcba9876543210", "00112233aabbccdd"]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> list[RunAnalysis]:
    """Untrained networks on stripes and 0 or 3 bumps."""
    analyses = []
    for count in (0, 3):
        flags = (
            "--flagfile=stripes.flags --grid_size=12 --region=corner:8 "
            f"--depth=2 --width=4 --num_bumps={count} --run_name=run_{count}"
        )
        config = parse_config(flags.split())
        dataset = make_dataset(config)
        run = LoadedRun(
            tmp_path_factory.mktemp("series"),
            config,
            dataset,
            make_model(config, dataset, "float32"),
            {"untrained": {"id": 1.5, "ood": 2.25 + count}},
            "",
        )
        analyses.append(RunAnalysis.of_run(run))
    return analyses


def test_a_series_is_drawn_at_the_same_positions(series, tmp_path):
    runs = rename_runs(series)
    scored = score_runs(runs, tmp_path)

    table, pictures = make_answer(runs, scored).exhibits

    panels = pictures.figure.axes
    labels = [axes.get_ylabel() for axes in panels if axes.get_ylabel()]
    titles = [axes.get_title() for axes in panels[:8]]
    subsets = [title.split()[0] for title in titles]
    assert labels == ["truth", "run_0", "run_3"]
    assert subsets == ["ID"] * 3 + ["OOD"] * 5
    for row, analysis in zip(table.rows, runs, strict=True):
        scores = analysis.evaluation.scores
        references = analysis.references
        ignored = [references[f"mean_over_{name}"]["ood"] for name in "xy"]
        expected = {
            "trained": scores["id"]["relative_mse"],
            "held out": scores["ood"]["relative_mse"],
            "mean over a factor": min(ignored),
        }
        numbers = {name: float(row[name]) for name in expected}
        assert numbers == pytest.approx(expected, abs=0.006)
        assert row["setting"] == analysis.setting
        ((_, address),) = row["seeds"].parts
        folder = (tmp_path / address).resolve()
        assert folder == analysis.run.path


def test_errors_before_training_have_a_table(series):
    exhibits = make_errors(series).exhibits

    tables = {exhibit.name: exhibit.rows for exhibit in exhibits}
    assert tables["untrained"] == [
        {
            "run": "run_0",
            "id": 1.5,
            "ood": 2.25,
        },
        {
            "run": "run_3",
            "id": 1.5,
            "ood": 5.25,
        },
    ]


def test_a_run_that_cannot_be_written(series, capsys):
    write_projections(series[0])

    assert "event files" in capsys.readouterr().err
    assert not list(series[0].run.path.iterdir())


@pytest.mark.usefixtures("no_pdf")
def test_controls_draw_nothing_new(tmp_path):
    flags = "--flagfile=smoke.flags --grid_size=8 --region=square:3-4"
    dataset = make_dataset(parse_config([*flags.split(), "--train_all"]))
    model = tfcomp.evaluate(
        dataset.render_array,
        dataset,
        name="all",
    )

    page = model.write_report(tmp_path, ["explorer"]).read_text()

    assert "4 of their 4 images" in page
    assert "all: control" in page


def test_runs_on_other_data_are_another_group(series):
    other = RunAnalysis.of_run(series[1].run)
    truth = other.evaluation.truth + 1e-3
    other.evaluation = dataclasses.replace(other.evaluation, truth=truth)

    assert group_runs([*series, other]) == [series, [other]]


def test_seeds_of_a_setting_are_in_order():
    errors = {"id": 0.01, "ood": 0.5}
    runs = [ScoredRun("a", seed, errors, link=f"{seed}/") for seed in (2, 0)]

    (row,) = make_table(runs).rows

    assert row["seeds"] == "0, 2"
    assert row["seeds"].parts[0] == ("0", "0/")


def test_a_predictor_has_a_mean_if_every_run_has_its_error():
    first = ScoredRun(
        "a",
        0,
        {},
        others={"additive": 3.0},
    )
    second = ScoredRun("a", 1, {})

    (alone,) = make_table([first]).rows
    (both,) = make_table([first, second]).rows

    assert alone["additive"] == 3.0
    assert both["additive"] is None


def make_corner(region: str, name: str, repeats: int = 1) -> RunAnalysis:
    """A perfect model of random images at 6 x 6 places."""
    rng = np.random.default_rng(0)
    places = np.argwhere(np.ones((6, 6)))
    images = rng.random((36, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        np.repeat(images, repeats, axis=0),
        np.repeat(places, repeats, axis=0),
        names=["x", "y"],
    )
    return tfcomp.evaluate(
        table.draw,
        table,
        region,
        name=name,
    ).analysis


def test_there_is_a_map_for_each_split(series):
    model = make_corner("x:3-5,y:3-5", "a")
    again = model.rename("c", "c")

    maps = make_landscapes([model, series[0], again, series[1]])

    names = [exhibit.name for exhibit in maps]
    assert names == ["landscape_a", "landscape_run_0"]


def test_runs_with_other_scores_share_a_table():
    """Of several images of a combination there are more scores."""
    once = make_corner("x:0,y:0", "once")
    twice = make_corner("x:0,y:0", "twice", repeats=2)

    models = rename_runs([once, twice])
    exhibit = make_output_rows([once, twice])

    names = [model.name for model in models]
    assert names == ["once", "twice"]  # models from elsewhere keep theirs
    first, *_, last = exhibit.rows
    scores = once.evaluation.scores["id"]
    assert first.keys() == last.keys()
    assert first.keys() > scores.keys()


def list_names(runs: dict[str, str]) -> list[tuple[str, str]]:
    """Names and settings of runs, from their flags."""
    configs = []
    for name, flags in runs.items():
        configs.append(parse_config([f"--run_name={name}", *flags.split()]))
    return name_runs(configs)


def test_trials_have_no_hashes():
    flags = ["--depth=2", "--depth=3", "--depth=3 --seed=1"]

    assert list_names(dict(zip(HASHES, flags, strict=True))) == [
        ("depth 2, seed 0", "depth 2"),
        ("depth 3, seed 0", "depth 3"),
        ("depth 3, seed 1", "depth 3"),
    ]
    two = dict(zip(HASHES[:2], flags, strict=False))
    assert [name for name, _ in list_names(two)] == ["depth 2", "depth 3"]


@pytest.mark.parametrize(
    "flags",
    ["--depth=2 --width=9 --encoding=bump --rank=3", "--encoding=ramp", ""],
)
def test_names_that_users_gave_stay(flags):
    """Whether much differs, or one flag, or only the names."""
    assert list_names({"a": "", "b": flags}) == [("a", "a"), ("b", "b")]


def test_seeds_of_runs_that_users_named_share_a_setting():
    runs = {"a": "--depth=2", "b": "--depth=2 --seed=1", "c": "--depth=3"}

    assert list_names(runs) == [
        ("a", "depth 2"),
        ("b", "depth 2"),
        ("c", "depth 3"),
    ]


@pytest.mark.parametrize(
    "flags, names",
    [
        (["--encoding=bump", "--encoding=ramp --seed=1"], ["encoding", "seed"]),
        (["--encoding=bump", "--encoding=ramp"], []),
        (["", "--seed=1"], []),
        (["--depth=2 --width=8", "--depth=3 --width=9"], ["depth", "width"]),
        (
            [
                "--depth=2",
                "--depth=3",
                "--depth=2 --seed=1",
                "--depth=3 --seed=1",
            ],
            [],
        ),
    ],
)
def test_flags_that_change_only_together(flags: list, names: list):
    configs = [parse_config(line.split()) for line in flags]

    sentence = describe_confounds(configs)

    assert bool(sentence) == bool(names)
    for name in names:
        assert name in sentence


def test_a_subtitle_has_what_all_runs_share():
    flags = {"dataset": "gaussian_bumps", "region": "corner:5"}
    mlp = flags | {"model": "mlp", "train_all": False}
    cnn = mlp | {"model": "cnn"}
    control = flags | {"train_all": True}

    subtitle = describe_common([mlp, cnn])

    assert "gaussian_bumps" in subtitle
    assert "corner:5" in subtitle
    assert "model" not in subtitle
    assert "model cnn" in describe_common([cnn])
    assert "control" in describe_common([control])
