"""The memory and the time of a run are told before anything is allocated."""

import time
from pathlib import Path

import pytest

from tfcomp.config import machine
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config, parse_flags
from tfcomp.datasets import make_dataset
from tfcomp.models import config_checks
from tfcomp.models.config_checks import (
    SLOW_PRECISION,
    Part,
    check_memory,
    estimate_memory,
    list_announcements,
)
from tfcomp.studies.thresholds import command as threshold
from tfcomp.sweeps import scheduler_options
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import define_flags, make_sweep


def estimate(*flags: str) -> dict[str, int]:
    config = parse_config(flags)
    dataset = make_dataset(config)
    return {p.content: p.size for p in estimate_memory(config, dataset)}


def test_parts_of_the_donut() -> None:
    parts = estimate("--flagfile=donut.flags")
    assert parts["images of the grid"] == 2 * 784 * 784 * 4
    assert parts["weights"] == pytest.approx(5 * 4 * 381_313, rel=0.01)
    assert sum(parts.values()) < 100e6
    more = estimate("--flagfile=donut.flags", "--examples_dir=here")
    assert more["training images"] == 2 * 495 * 784 * 4


def test_refusal_names_the_largest_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 15 * 10**9)
    config = parse_config(["--width=256"])
    tables = Part("tables", "grid_size", 6 * 10**9)
    check_memory(config, [tables, Part("weights", "width", 9 * 10**9)])
    with pytest.raises(ConfigError) as caught:
        check_memory(config, [tables, Part("weights", "width", 12 * 10**11)])
    assert str(caught.value) == (
        "--width must be smaller: the run takes 1,206.0 GB of memory or more "
        "(weights: 1,200.0 GB), this machine has 15.0 GB, got 256"
    )


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        (["--grid_size=1000"], "width"),
        (["--grid_size=600", "--eval_points=360000"], "grid_size"),
        (["--model=mlp", "--width=60000"], "width"),
        (["--batch_size=100000"], "batch_size"),
        (
            [
                *("--flagfile=rotated_digits.flags", "--num_angles=99999"),
                "--eval_points=1000000",
            ],
            "num_angles",
        ),
    ],
)
def test_runs_that_no_machine_holds(
    flags: list[str], flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 15 * 10**9)
    config = parse_config(flags)
    with pytest.raises(ConfigError, match=f"--{flag}.* must be smaller"):
        list_announcements(config)
    list_announcements(config, here=False)


@pytest.mark.parametrize(
    ("cpu", "is_slow"),
    [
        ("model name\t: EPYC\nflags\t\t: fpu sse2 avx2 fma", True),
        ("flags\t\t: fpu sse2 avx2 avx512f avx512_bf16", False),
        ("flags\t\t: fpu sse2 avx2 avx_ne_convert", False),
        ("Features\t: fp asimd", False),  # ARM: nobody has measured it
        (None, False),
    ],
)
def test_bfloat16_without_instructions_for_it(
    cpu: str | None, is_slow: bool, tmp_path: Path, monkeypatch
) -> None:
    file = tmp_path / "cpuinfo"
    if cpu:
        file.write_text(cpu)
    monkeypatch.setattr(machine, "CPU_FILE", file)
    monkeypatch.setattr(machine, "GPU_FILE", tmp_path / "none")
    config = parse_config(["--flagfile=smoke.flags"])
    slow = parse_config(
        ["--flagfile=smoke.flags", "--precision=mixed_bfloat16"]
    )
    assert list_announcements(config) == list_announcements(slow, here=False)
    added = list_announcements(slow)[len(list_announcements(config)) :]
    assert added == [SLOW_PRECISION] * is_slow


def test_trials_of_a_cluster_may_be_larger_than_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 10**6)
    with pytest.raises(ConfigError, match="this machine has 0.0 GB"):
        make_sweep(parse_flags(["--depth=3"], define_flags()))
    flags = ["--depth=3", "--scheduler=tcp://there:1"]
    assert make_sweep(parse_flags(flags, define_flags())).items


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
