"""Sweeps and searches that are too large are refused before they start."""

import time

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.thresholds import command as threshold
from tfcomp.sweeps import scheduler_options
from tfcomp.sweeps.scheduler_options import SchedulerOptions


def test_processes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_options, "count_memory", lambda: 4 * 10**9)
    assert SchedulerOptions(workers=8).workers == 8
    with pytest.raises(ConfigError, match="must be at most 8, as many as"):
        SchedulerOptions(workers=9)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--seeds=1000000000", "--seeds must be at most 10000"),
        ("--seeds=9999 --grid_sizes=8,12,16,20,24,28", "at most 100000 sear"),
        ("--grid_sizes=100000", "--grid_size must be at most 1024"),
        (f"--grid_sizes={'9' * 5000}", "--grid_sizes must be positive int"),
        ("--max_bumps=1000000000000", "--max_bumps must be at most 10000000"),
    ],
)
def test_searches_are_counted_before_they_are_made(
    flags: str, message: str
) -> None:
    start = time.monotonic()
    values = parse_flags(flags.split(), threshold.define_flags())
    with pytest.raises(ConfigError, match=message):
        threshold.make_searches(values)
    assert time.monotonic() - start < 5


def test_many_seeds_are_checked_once() -> None:
    flags = ["--flagfile=threshold_quick.flags", "--seeds=2000"]
    values = parse_flags(flags, threshold.define_flags())
    assert len(threshold.make_searches(values).items) > 2000
