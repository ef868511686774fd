"""Cores and GPUs, found without TensorFlow."""

import os

import pytest

from tfcomp.sweeps.scheduler_options import count_threads, list_gpus


def test_cores_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert [count_threads(n) for n in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]


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
    visible: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert list_gpus() == expected
