"""Runs of several settings: their names, and the first screen."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.figures.exhibits import save_exhibit
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
            {"untrained": {"id": 1.5}},
            "",
        )
        analyses.append(RunAnalysis.of_run(run))
    return analyses


def test_a_series_is_drawn_at_the_same_positions(series, tmp_path):
    runs = rename_runs(series)
    scored = score_runs(runs, tmp_path)

    table, pictures = make_answer(runs, scored).exhibits

    panels = pictures.figure.axes
    labels = [axes.get_ylabel() for axes in panels[::8]]
    subsets = [axes.get_title().split()[0] for axes in panels[:8]]
    assert labels == ["truth", "run_0", "run_3"]
    assert subsets == ["ID"] * 3 + ["OOD"] * 5
    for row, analysis in zip(table.rows, runs, strict=True):
        scores = analysis.evaluation.scores
        references = analysis.references
        ignored = [references[f"mean_over_{name}"]["ood"] for name in "xy"]
        assert row["trained"] == approx(scores["id"]["relative_mse"])
        assert row["held out"] == approx(scores["ood"]["relative_mse"])
        assert row["mean over a factor"] == approx(min(ignored))
        assert row["setting"] == analysis.setting
        ((_, address),) = row["seeds"].parts
        assert (tmp_path / address).resolve() == analysis.run.path


def test_errors_before_training_have_a_table(series):
    exhibits = make_errors(series).exhibits

    tables = {exhibit.name: exhibit.rows for exhibit in exhibits}
    assert tables["untrained"] == [
        {
            "run": "run_0",
            "id": 1.5,
        },
        {
            "run": "run_3",
            "id": 1.5,
        },
    ]


def test_a_run_that_cannot_be_written(series, capsys):
    write_projections(series[0])

    assert "event files" in capsys.readouterr().err
    assert not list(series[0].run.path.iterdir())


@pytest.mark.usefixtures("few_pictures")
def test_controls_draw_nothing_new(tmp_path):
    flags = "--flagfile=smoke.flags --grid_size=8 --train_all"
    dataset = make_dataset(
        parse_config([*flags.split(), "--region=square:3-4"])
    )
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
    errors = {
        "id": 0.01,
        "ood": 0.5,
    }
    runs = [
        ScoredRun(
            "a",
            seed,
            errors,
            link=f"{seed}/",
        )
        for seed in (2, 0)
    ]

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


def make_corner(name: str, repeats: int = 1) -> RunAnalysis:
    """A perfect model of random images at 6 x 6 places."""
    rng = np.random.default_rng(0)
    images = rng.random((36, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        np.repeat(images, repeats, axis=0),
        np.repeat(np.argwhere(np.ones((6, 6))), repeats, axis=0),
        names=["x", "y"],
    )
    return tfcomp.evaluate(
        table.draw,
        table,
        "x:3-5,y:3-5",
        name=name,
    ).analysis


def test_there_is_a_map_for_each_split(series):
    model = make_corner("a")
    again = model.rename("c", "c")

    maps = make_landscapes([model, series[0], again, series[1]])

    names = [exhibit.name for exhibit in maps]
    assert names == ["landscape_a", "landscape_run_0"]


@pytest.mark.usefixtures("few_pictures")
def test_runs_with_other_scores_share_a_table(tmp_path):
    """Of several images of a combination there are more scores."""
    models = [make_corner("once"), make_corner("twice", repeats=2)]

    exhibit = make_output_rows(rename_runs(models))

    table_alone = dataclasses.replace(exhibit, figure=None)
    (path,) = save_exhibit(table_alone, tmp_path)
    table = pd.read_csv(path)
    names = ["once", "twice"]  # models from elsewhere keep theirs
    assert table["run"].unique().tolist() == names
    assert table["floor_mse"].isna().tolist() == [True, True, False, False]


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
    assert list_names(
        {
            "a": "",
            "b": flags,
        }
    ) == [("a", "a"), ("b", "b")]


def test_seeds_of_runs_that_users_named_share_a_setting():
    runs = {
        "a": "--depth=2",
        "b": "--depth=2 --seed=1",
        "c": "--depth=3",
    }

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
        (["--depth=2 --width=8", "--depth=3 --width=9"], ["depth", "width"]),
        (["--depth=2", "--depth=3", "--depth=2 --seed=1"], []),
    ],
)
def test_flags_that_change_only_together(flags: list, names: list):
    configs = [parse_config(line.split()) for line in flags]

    sentence = describe_confounds(configs)

    assert bool(sentence) == bool(names)
    for name in names:
        assert name in sentence


def test_a_subtitle_has_what_all_runs_share():
    mlp = {
        "region": "corner:5",
        "model": "mlp",
        "train_all": False,
    }
    cnn = mlp | {"model": "cnn"}
    control = mlp | {"train_all": True}

    assert describe_common([mlp, cnn]) == "Held out corner:5."
    assert "model cnn" in describe_common([cnn])
    assert "control" in describe_common([control])
