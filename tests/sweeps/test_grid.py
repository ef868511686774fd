"""Grids, trials and sweeps: what they mean, and every mistake."""

import re
from pathlib import Path

import pytest

from tfcomp import sweep
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import (
    define_run_flags,
    list_flagfiles,
    parse_flags,
)
from tfcomp.sweeps import grid, pool
from tfcomp.sweeps.grid import (
    Trial,
    make_label,
    make_trials,
    parse_grid,
)


def test_number_of_trials_is_bounded():
    specs = [f"{name}=1,2,3,4,5,6,7,8,9,10" for name in ("depth", "width")]
    assert len(parse_grid(specs, num_seeds=1000)) == 100
    with pytest.raises(ConfigError, match="100100"):
        parse_grid(specs, num_seeds=1001)


def test_cross_product_with_linked_flags():
    (setting,) = parse_grid(["entropy_weight=0", "depth=2", "model=cnn"])
    assert [type(value) for value in setting.values()] == [float, int, str]
    specs = ["depth=2,3", "encoding/epochs=bump/50, ramp/100"]
    assert parse_grid(specs) == [
        {"depth": 2, "encoding": "bump", "epochs": 50},
        {"depth": 2, "encoding": "ramp", "epochs": 100},
        {"depth": 3, "encoding": "bump", "epochs": 50},
        {"depth": 3, "encoding": "ramp", "epochs": 100},
    ]


def test_values():
    assert parse_grid([]) == [{}]
    quoted = parse_grid(['region="box:x:6-22,y:0-9",corner:14'])
    assert quoted == [{"region": "box:x:6-22,y:0-9"}, {"region": "corner:14"}]
    assert parse_grid(["region=a=b"]) == [{"region": "a=b"}]


@pytest.mark.parametrize(
    ("specs", "word"),
    [
        ("depth", "depth=2,3,4"),
        ("depth=", "depth=2,3,4"),
        ("depth=2,,3", "value of depth"),
        ("depth/width=2/8,3", "value of depth/width"),
        ("learning_rate=1e-3,0.001", "0.001 once"),
        ("depth/depth=2/3", "vary depth"),
        ("depth=two", "integer"),
        ('region="corner:3', "CSV"),
        ("seed=0,1", "vary seed"),
        ("depht=1", "--depht"),
        ("nopictures=1", "--nopictures"),
        ("undefok=1", "--undefok"),
        ("depth=2 depth/width=3/4", "depth"),  # a flag of two axes
    ],
)
def test_mistakes(specs: str, word: str):
    with pytest.raises((ConfigError, RunError), match=word):
        parse_grid(specs.split())


def make(
    settings: list[dict],
    seeds: list[int],
    *flags: str,
) -> tuple[list[Trial], list[str]]:
    arguments = ["smoke", "--run_name=sweep", *flags]
    run = parse_flags(arguments, define_run_flags())
    return make_trials(run, settings, seeds)


def name(*flags: str, **setting: object) -> str:
    """The hash in the name of a trial."""
    (trial,), _ = make([setting], [0], *flags)
    return trial.name.rpartition("-")[2]


def test_trials_are_settings_times_seeds():
    trials, notes = make([{"depth": 2}, {"depth": 3}], [4, 5])
    assert [trial.describe() for trial in trials] == [
        "depth=2 seed=4",
        "depth=2 seed=5",
        "depth=3 seed=4",
        "depth=3 seed=5",
    ]
    assert trials[0].config.model.depth == 2
    assert trials[0].config.training.seed == 4
    assert len({trial.name for trial in trials}) == 4
    assert notes == []
    _, notes = make([{"depth": 2}], [4, 5], "--seed=7")
    assert notes == ["ignored: --seed, seeds begin at --first_seed"]


def test_folders_of_a_trial():
    (trial,), _ = make([{}], [0], "--log_dir=logs", "--export_dir=models")
    assert trial.path == Path("logs/sweep/trials") / trial.name
    assert trial.config.export_path == f"models/sweep/{trial.name}"
    label, _, digest = trial.name.rpartition("-")
    assert label == "seed=0"
    assert int(digest, 16) >= 0
    assert trial.config.resume


def test_a_trial_keeps_its_folder_when_an_axis_is_added(
    working_folder: Path,
):
    (before,), _ = make([{"depth": 2}], [0])
    before.path.mkdir(parents=True)
    added, _ = make([{"depth": 2, "width": 16}, {"depth": 2, "width": 9}], [0])
    paths = [trial.path for trial in added]
    assert before.path in paths
    assert len(set(paths)) == 2


@pytest.mark.parametrize(
    "region", ["box:x:6-22,y:0-9", "..", "a/b|c", "g:'R&B'", "x" * 300]
)
def test_names_of_trials_are_names_of_folders(region: str):
    label = make_label({"region": region, "seed": 3})
    assert re.fullmatch(r"[\w=+-][\w.=+-]*", label)
    assert len(label) <= 80
    assert label.endswith("seed=3")


def test_the_name_follows_from_what_is_computed():
    same = name()
    assert same == name("--run_name=other", "--log_dir=elsewhere")
    assert same == name("--data_dir=/data", "--resume", "--pictures")
    assert same == name("--seed=7")  # the seed is the sweep's
    assert same == name(depth=2)  # as the flagfile has it
    others = {name(depth=3), name(learning_rate=1e-4), name(width=17)}
    assert len(others | {same}) == 4


def test_the_name_follows_from_the_code(
    monkeypatch: pytest.MonkeyPatch,
):
    before = name()
    monkeypatch.setattr(grid, "compute_code_version", lambda plugins: "other")
    assert name() != before


@pytest.mark.parametrize(
    ("name", "value"), [("depth", 1), ("region", "x:99"), ("encoding", "morse")]
)
def test_every_combination_is_checked(name: str, value: object):
    with pytest.raises(ConfigError, match=f"--{name}"):
        make([{}, {name: value}], [0])


SWEEPS = [name for name in list_flagfiles() if name.startswith("sweep_")]


@pytest.mark.parametrize("name", SWEEPS)
def test_shipped_sweeps(name: str, capsys: pytest.CaptureFixture):
    flags = parse_flags([f"--flagfile={name}"], sweep.define_flags())

    work = sweep.make_sweep(flags)

    assert work.folder.name == name.removesuffix(".flags")
    trials = {trial.name for trial in work.items}
    assert len(trials) == len(work.items) > 1
    assert capsys.readouterr().out == ""  # no region hides a value


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("", []),
        ("-1", []),
        ("0,2", ["0", "2"]),
        ("1,-1,2", ["1"]),
        ("GPU-8a,GPU-9b", ["GPU-8a", "GPU-9b"]),
    ],
)
def test_gpus_that_the_environment_allows(
    visible: str,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert pool.list_gpus() == expected
