"""Profiles: flags resolved, rules checked, mistakes in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import profile as profiles
from pipelines.steps import list_datasets
from tests.pipelines.conftest import RULES
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import list_flagfiles

MakeProfile = Callable[..., profiles.Profile]
WriteProfile = Callable[..., Path]
NAMES = sorted(path.name for path in profiles.SHIPPED.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_shipped_profile_is_valid(name: str):
    profile = profiles.load_profile(name)
    assert profile.name == name
    assert list_datasets(profile)
    # `--flagfile=donut.flags` in a profile means the shipped one.
    files = {f"{part}.flags" for part in profile.parts}
    assert not files & set(list_flagfiles())
    # Both are in `saved_models`, one version after the other.
    assert f"{profile.push_as}.flags" not in list_flagfiles()


def test_profile_is_a_string_with_its_flags(
    tiny_profile: profiles.Profile,
):
    text = tiny_profile.to_json()
    assert "\n" not in text
    assert profiles.Profile.from_json(text) == tiny_profile
    # Without the flagfiles, which another machine does not have.
    flags = tiny_profile.parts["tiny_sweep"]
    assert not any(flag.startswith("--flagfile") for flag in flags)
    assert "--model=cnn" in flags
    assert "--grid_size=8" in flags


def test_bounds_are_read(make_profile: MakeProfile):
    rules = [*RULES, "--max=ood_mse=0.5", "--min=ood_position_accuracy=.95"]
    profile = make_profile(rules=rules)
    assert profile.bounds == [
        ["id_relative_mse", "max", 1000.0],
        ["ood_mse", "max", 0.5],
        ["ood_position_accuracy", "min", 0.95],
    ]


def test_plugins_are_named_by_the_user(
    make_profile: MakeProfile,
    evil: Path,
):
    flag = "--plugins=evil_part"

    with pytest.raises(RunError):
        make_profile(flag)
    assert not evil.exists()

    profile = make_profile(flag, plugins="evil_part")
    assert evil.exists()
    assert flag in profile.parts["tiny_sweep"]


def test_data_sets_are_shared_by_trials(make_profile: MakeProfile):
    profile = make_profile("--grid=depth=2,3", "--grid=sigma=1,2", "--seeds=3")
    (sweep,) = profiles.make_works(profile)
    assert len(sweep.items) == 12
    assert [c.data.sigma for c in list_datasets(profile)] == [1.0, 2.0]


# Mistakes


@pytest.mark.parametrize("name", ["", "nix", "/", "x" * 300])
def test_unknown_profile(name: str):
    with pytest.raises(ConfigError, match="--profile .* quick, smoke"):
        profiles.load_profile(name)


@pytest.mark.parametrize(
    "line",
    [
        "--push_as=a/b",
        "--push_as=.hidden",
        "--push_as=",
        "--candidate=b",
        "--max=id_mse",
        "--min=id_mse=much",
        "--candidat=tiny",
    ],
)
def test_wrong_rules(line: str, make_profile: MakeProfile):
    with pytest.raises((ConfigError, RunError), match=line.partition("=")[0]):
        make_profile(rules=[*RULES, line])


def test_profile_without_thresholds(make_profile: MakeProfile):
    with pytest.raises(ConfigError, match="--max"):
        make_profile(rules=RULES[:2])


def test_two_of_one_name(write_profile: WriteProfile):
    folder = write_profile()
    for kind, flagfile in (("own", "smoke"), ("threshold", "threshold_quick")):
        text = f"--flagfile={flagfile}.flags\n--run_name=same\n"
        (folder / f"{kind}.flags").write_text(text)
    with pytest.raises(ConfigError, match="--run_name"):
        profiles.load_profile(str(folder))


@pytest.mark.parametrize("name", ["./smoke", "smoke/"])
def test_a_path_is_not_the_shipped_profile(
    name: str,
    working_folder: Path,
    write_profile: WriteProfile,
):
    write_profile().rename(working_folder / "smoke")
    assert profiles.load_profile(name).candidate == "tiny"
    assert profiles.load_profile("smoke").candidate == "smoke_low_rank"
