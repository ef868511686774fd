"""What XLA is told before TensorFlow starts on a machine with a GPU."""

import os
from pathlib import Path

import pytest

from tfcomp.config import quiet


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", quiet.XLA_FLAG),
        ("--xla_dump_to=x", f"--xla_dump_to=x {quiet.XLA_FLAG}"),
        (
            "--xla_gpu_deterministic_ops=false",
            "--xla_gpu_deterministic_ops=false",
        ),
    ],
)
def test_kernels_repeat_their_bits(
    given: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a user has set stays."""
    monkeypatch.setenv("XLA_FLAGS", given)
    quiet.choose_deterministic_kernels()
    assert os.environ["XLA_FLAGS"] == expected


def test_without_a_gpu_nothing_is_set() -> None:
    if not Path("/dev/nvidiactl").exists():
        assert quiet.XLA_FLAG not in os.environ.get("XLA_FLAGS", "")
