"""Grids: what they mean, and every way to get them wrong."""

import pytest

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps.grid import parse_grid


def test_number_of_trials_is_bounded() -> None:
    specs = [f"{name}=1,2,3,4,5,6,7,8,9,10" for name in ("depth", "width")]
    assert len(parse_grid(specs, num_seeds=1000)) == 100
    specs += [f"{n}=1,2,3,4,5" for n in ("rank", "epochs", "batch_size")]
    with pytest.raises(
        ConfigError, match="at most 100000 trials, not 12500000"
    ):
        parse_grid(specs, num_seeds=1000)


def test_cross_product_with_linked_flags() -> None:
    specs = ["depth=2,3", "encoding/epochs=bump/50, ramp/100"]
    assert parse_grid(specs) == [
        {"depth": 2, "encoding": "bump", "epochs": 50},
        {"depth": 2, "encoding": "ramp", "epochs": 100},
        {"depth": 3, "encoding": "bump", "epochs": 50},
        {"depth": 3, "encoding": "ramp", "epochs": 100},
    ]


def test_values_have_the_type_of_their_flag() -> None:
    (setting,) = parse_grid(["entropy_weight=0", "depth=2", "model=cnn"])
    assert [type(value) for value in setting.values()] == [float, int, str]


@pytest.mark.parametrize(
    ("specs", "settings"),
    [
        ([], [{}]),
        # Quoted, a value may contain a comma.
        (
            ['region="box:x:6-22,y:0-9",corner:14'],
            [{"region": "box:x:6-22,y:0-9"}, {"region": "corner:14"}],
        ),
        (["region=a=b"], [{"region": "a=b"}]),
    ],
)
def test_values(specs: list[str], settings: list[dict[str, str]]) -> None:
    assert parse_grid(specs) == settings


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("depth", "must look like depth=2,3,4"),
        ("=2", "must look like depth=2,3,4"),
        ("depth=", "must look like depth=2,3,4"),
        ("depth=2,,3", "must have a value of depth at each point"),
        ("depth/width=2/,3/4", "must have a value of depth/width at each"),
        ("depth/width=2/8,3", "must have a value of depth/width at each"),
        ("depth=2,3,2", "must have 2 once"),
        ("learning_rate=1e-3,0.001", "must have 0.001 once"),
        ("depth/depth=2/3", "must vary depth once"),
        ("depth=two", "--depth must be an integer"),
        ('region="corner:3', "must be quoted as in CSV"),
        ("seed=0,1", "must not vary seed"),
        ("log_dir=a,b", "must not vary log_dir"),
    ],
)
def test_mistakes(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_grid([spec])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("depht=2", "--depht is not a flag, did you mean --depth"),
        ("nopictures=1", "--nopictures is not a flag, did you mean --pictures"),
        ("flagfile=donut.flags", "--flagfile is not a flag"),
        ("undefok=a,b", "--undefok is not a flag"),
    ],
)
def test_names_that_are_no_flags_of_a_run(spec: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        parse_grid([spec])
