"""Profiles: flags resolved, rules checked, mistakes in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import profile as profiles
from pipelines.steps.examples import list_datasets
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import list_flagfiles

MakeProfile = Callable[..., profiles.Profile]
WriteProfile = Callable[..., Path]
RULES = {
    "push_as": '"a"',
    "sweep": '"tiny"',
    "thresholds": "{id_mse = {below = 1}}",
}
BOUNDS_ARE_NAMED = "must name scores with bounds"
NAMES = sorted(path.name for path in profiles.SHIPPED.iterdir())


def write_rules(**changes: str | None) -> str:
    """Valid rules, with some changed or, by None, left out."""
    values = (RULES | changes).items()
    return "\n".join(f"{k} = {v}" for k, v in values if v is not None)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_profile_is_valid(name: str) -> None:
    profile = profiles.load_profile(name)
    assert profile.name == name
    assert list_datasets(profile)
    # `--flagfile=donut.flags` in a profile means the shipped one.
    names = {path.name for path in (profiles.SHIPPED / name).glob("*.flags")}
    assert not names & set(list_flagfiles())
    # Both are in `saved_models`, one version after the other.
    assert f"{profile.rules.push_as}.flags" not in list_flagfiles()


def test_profile_is_a_string_with_its_flags(
    tiny_profile: profiles.Profile,
) -> None:
    text = tiny_profile.to_json()
    assert "\n" not in text
    assert profiles.parse_profile(text) == tiny_profile
    # Without the flagfiles, which another machine does not have.
    flags = tiny_profile.parts["tiny_sweep"]
    assert not any(flag.startswith("--flagfile") for flag in flags)
    assert "--model=cnn" in flags and "--grid_size=8" in flags


def test_code_is_part_of_a_profile(
    make_profile: MakeProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make_profile()
    sources, *versions = plain.code.split()
    assert len(sources) == 64 and len(versions) == len(profiles.LIBRARIES)
    plugin = tmp_path / "my_parts.py"
    plugin.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with_plugin = make_profile(plugins="my_parts")
    plugin.write_text("# changed\n")
    changed = make_profile(plugins="my_parts")
    assert make_profile(plugins="my_parts") == changed
    assert len({plain.code, with_plugin.code, changed.code}) == 3


def test_plugins_of_a_profile_are_asked_for(
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()"
    (tmp_path / "evil_part_of_profile.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    folder = write_profile("--plugins=evil_part_of_profile")
    with pytest.raises(RunError, match="command line"):
        profiles.load_profile(str(folder))
    assert not mark.exists()
    profiles.load_profile(str(folder), plugins="evil_part_of_profile")
    assert mark.exists()


def test_data_sets_are_shared_by_trials(make_profile: MakeProfile) -> None:
    profile = make_profile("--grid=depth=2,3", "--grid=sigma=1,2", "--seeds=3")
    assert len(profiles.make_works(profile)[0].items) == 12
    assert [c.data.sigma for c in list_datasets(profile)] == [1.0, 2.0]


# Mistakes


@pytest.mark.parametrize("name", ["", "nix", "/", "x" * 300])
def test_unknown_profile(name: str) -> None:
    with pytest.raises(ConfigError, match="must be one of campaign, paper"):
        profiles.load_profile(name)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("thresholds", None, "missing .* 'thresholds'"),
        ("push_as", '"a/b"', "a plain name .* got 'a/b'"),
        ("push_as", '".bashrc.d"', "a plain name .* got '.bashrc.d'"),
        ("sweep", '"b"', "candidate's sweep must be one of tiny, got 'b'"),
        ("extra", "1", "unexpected keyword argument 'extra'"),
        ("setting", "{depth = 9}", "tiny has no trials with {'depth': 9}"),
        ("min_seeds", '"a"', "min_seeds must be an integer, got 'a'"),
        ("min_seeds", "2", "min_seeds is 2, but .* tiny has at most 1 "),
        ("thresholds", "{id_mse = 1}", BOUNDS_ARE_NAMED),
    ],
)
def test_wrong_rules(
    key: str, value: str | None, message: str, make_profile: MakeProfile
) -> None:
    with pytest.raises(RunError, match=f"^--profile: .*{message}"):
        make_profile(rules=write_rules(**{key: value}))


def test_two_of_one_name(write_profile: WriteProfile) -> None:
    folder = write_profile()
    for kind, flagfile in (("own", "smoke"), ("threshold", "threshold_quick")):
        text = f"--flagfile={flagfile}.flags\n--run_name=same\n"
        (folder / f"{kind}.flags").write_text(text)
    with pytest.raises(
        RunError, match="two flagfiles have the same --run_name"
    ):
        profiles.load_profile(str(folder))


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("name", ["./smoke", "smoke/"])
def test_a_path_is_not_the_shipped_profile(
    name: str, write_profile: WriteProfile
) -> None:
    write_profile(name="smoke")
    assert profiles.load_profile(name).rules.sweep == "tiny"
    assert profiles.load_profile("smoke").rules.sweep == "smoke_low_rank"
