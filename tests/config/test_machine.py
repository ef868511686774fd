"""Threads as a function of the settings."""

import os

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.models.model_rules import limit_threads

VARIABLE = "TF_NUM_INTRAOP_THREADS"


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("smoke", None, "1"),
        ("low_rank", None, "1"),
        ("hard_rendering", None, "1"),
        ("mlp", None, None),
        ("stripes", None, None),
        ("donut", None, None),
        ("rotated_mnist", None, None),
        ("smoke", "3", "3"),
    ],
)
def test_small_networks_have_one_thread(
    name: str,
    given: str | None,
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {} if given is None else {VARIABLE: given}
    monkeypatch.setattr(os, "environ", environment)
    limit_threads(parse_config([f"--flagfile={name}.flags"]))
    assert environment.get(VARIABLE) == expected
