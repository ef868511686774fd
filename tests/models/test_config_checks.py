"""Checks of a run before TensorFlow starts."""

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config, parse_flags
from tfcomp.models import config_checks
from tfcomp.models.config_checks import list_announcements
from tfcomp.sweeps.sweep_run import define_flags, make_sweep


def test_images_that_no_machine_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 10**8)
    config = parse_config(["--grid_size=600", "--eval_points=360000"])
    with pytest.raises(ConfigError, match="--grid_size must be smaller"):
        list_announcements(config)
    list_announcements(config, here=False)


def test_trials_of_a_cluster_may_be_larger_than_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 10**6)
    with pytest.raises(ConfigError, match="this machine has 0.0 GB"):
        make_sweep(parse_flags(["--depth=3"], define_flags()))
    flags = ["--depth=3", "--scheduler=tcp://there:1"]
    assert make_sweep(parse_flags(flags, define_flags())).items
