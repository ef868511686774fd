"""Tables of threshold studies: means, extremes, failures and slopes."""

import dataclasses

import pytest

from tests.studies.claims.planted import make_study
from tests.studies.claims.test_score_table import read_rows
from tfcomp.studies.claims.score_tables import format_study


def test_numbers_of_a_study() -> None:
    study = make_study("study")
    table = format_study(study)
    assert (
        "| N = 16 | N = 20 | N = 24 | N = 32 | slope |" in table.splitlines()[0]
    )
    bumps, stripes = read_rows(table)
    assert bumps[0] == "bumps" and stripes[0] == "stripes and bumps"
    assert bumps[2] == stripes[2] == "position accuracy"
    # The planted law of bumps is cubic, that of stripes linear.
    means = [float(cell.split()[0]) for cell in bumps[3:-1]]
    assert means[3] / means[0] == pytest.approx(8, rel=0.02)
    assert bumps[-1].startswith("3 [") and stripes[-1].startswith("1 [")


def test_failed_searches_are_counted_and_left_out() -> None:
    study = make_study("study")
    table = study.thresholds.copy()
    bumps = table["kind"] == "bumps"
    lost = table.index[bumps & (table["grid_size"] == 32)]
    table.loc[lost[0], "reached"] = False
    some = dataclasses.replace(study, thresholds=table)
    assert read_rows(format_study(some))[0][6].endswith(", 1 not reached")
    table.loc[lost, "reached"] = False
    none = dataclasses.replace(study, thresholds=table)
    assert read_rows(format_study(none))[0][6] == "–, 3 not reached"
