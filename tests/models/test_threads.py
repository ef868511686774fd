"""Small networks train on one thread, unless the environment says more."""

import os

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.models.registry import limit_threads

INTRA = "TF_NUM_INTRAOP_THREADS"
INTER = "TF_NUM_INTEROP_THREADS"


@pytest.mark.parametrize(
    ("flagfile", "given", "expected"),
    [
        ("smoke", {}, {INTRA: "1", INTER: "1"}),
        ("smoke", {INTRA: "4"}, {INTRA: "4", INTER: "1"}),
        ("smoke", {INTER: "2"}, {INTRA: "1", INTER: "2"}),
        ("donut", {}, {}),
    ],
)
def test_threads_of_a_network(flagfile, given, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(given))

    limit_threads(parse_config([flagfile]))

    assert os.environ == expected
