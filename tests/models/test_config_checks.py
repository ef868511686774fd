"""Checks of a run before TensorFlow starts."""

from pathlib import Path

import pytest

from tfcomp.config import machine
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config, parse_flags
from tfcomp.models import config_checks
from tfcomp.models.config_checks import SLOW_PRECISION, list_announcements
from tfcomp.sweeps.sweep_run import define_flags, make_sweep


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        (["--grid_size=600", "--eval_points=360000"], "grid_size"),
        (
            [
                *("--flagfile=rotated_digits.flags", "--num_angles=99999"),
                "--eval_points=1000000",
            ],
            "num_angles",
        ),
    ],
)
def test_images_that_no_machine_holds(
    flags: list[str], flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_checks, "count_memory", lambda: 10**8)
    config = parse_config(flags)
    with pytest.raises(ConfigError, match=f"--{flag} must be smaller"):
        list_announcements(config)
    list_announcements(config, here=False)


@pytest.mark.parametrize(
    ("cpu", "is_slow"),
    [
        ("model name\t: EPYC\nflags\t\t: fpu sse2 avx2 fma", True),
        ("flags\t\t: fpu sse2 avx2 avx512f avx512_bf16", False),
        ("flags\t\t: fpu sse2 avx2 avx_ne_convert", False),
        ("Features\t: fp asimd", False),  # ARM was not measured
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
    flags = ["--flagfile=smoke.flags"]
    config = parse_config(flags)
    slow = parse_config([*flags, "--precision=mixed_bfloat16"])
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
