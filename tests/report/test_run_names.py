"""Names of runs by the settings in which they differ."""

from types import SimpleNamespace
from typing import Any

from tfcomp.config.run_flags import parse_config
from tfcomp.report.report_build import _name_settings
from tfcomp.report.run_names import describe_common, name_runs

HASHES = ("0123456789abcdef", "fedcba9876543210", "00112233aabbccdd")


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
    runs = [flags | {"model": model} for model in ("mlp", "cnn")]
    expected = "Dataset gaussian_bumps, held out corner:5, 30 epochs."
    assert describe_common(runs) == expected
    assert "model cnn" in describe_common(runs[1:])


def test_a_title_names_settings_once() -> None:
    def plant(*settings: str) -> Any:
        return [SimpleNamespace(setting=setting) for setting in settings]

    assert _name_settings(plant("depth 2", "depth 3")) == "depth 2; depth 3"
    twice = plant("depth 2", "depth 3", "depth 2")
    assert _name_settings(twice) == "depth 2; depth 3 (3 runs)"
    assert _name_settings(plant("all", "all")) == "2 runs"
