"""Tables of sweeps and threshold studies, of planted runs and searches."""

import math

import pytest

from tests.studies.claims.planted import Run, gather, make_run, make_study
from tfcomp.studies.claims.result_text import (
    format_study,
    format_sweep,
    make_score_tables,
)

ERRORS = (0.1, 0.2, 0.8)


def read_rows(table: str) -> list[list[str]]:
    """The cells of a table, its heading left out."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:]
    ]


def plant(*flags: str, fits: tuple[float, ...] = (0.01,) * 3) -> list[Run]:
    """Three seeds of a setting, with errors and positions in place."""
    return [
        make_run(
            "donut.flags",
            100 + seed,
            *flags,
            relative=error,
            fit=fit,
            layers={"ood/position_accuracy": error / 2},
        )
        for seed, (error, fit) in enumerate(zip(ERRORS, fits, strict=True))
    ]


def format_runs(runs: list[Run]) -> list[list[str]]:
    return read_rows(format_sweep(gather(runs).groups))


def test_numbers_of_a_setting() -> None:
    [row] = format_runs(plant())
    mean = math.prod(ERRORS) ** (1 / 3)
    assert row == [
        "all",
        "3 of 3",
        "0.01 (all)",
        f"{mean:.3g} (0.1 to 0.8)",
        f"{mean / 250:.3g} (4.0e-04 to 0.0032)",
        f"{100 * sum(ERRORS) / 6:.3g} (5 to 40)",
    ]


def test_only_fitted_seeds_count_unless_none_is() -> None:
    [row] = format_runs(plant(fits=(0.01, 0.2, 0.01)))
    assert row[1] == "2 of 3"
    assert row[3] == f"{math.sqrt(0.1 * 0.8):.3g} (0.1 to 0.8)"
    [row] = format_runs(plant(fits=(0.1, 0.2, 0.1)))
    assert row[1] == "0 of 3" and row[3].endswith("(0.1 to 0.8)")
    # Stripes are fitted when their peaks are in place.
    flags = "--dataset=stripes", "--polarity=bright"
    [row] = format_runs(plant(*flags, fits=(9, 9, 9)))
    assert row[1] == "3 of 3"


def test_settings_are_rows_in_the_order_of_their_values() -> None:
    runs = [*plant("--depth=10"), *plant("--depth=2")]
    assert [row[0] for row in format_runs(runs)] == ["2", "10"]
    evidence = gather(runs)
    tables = make_score_tables(evidence)
    assert tables == {"planted": format_sweep(evidence.groups)}


def test_numbers_of_a_study() -> None:
    study = make_study("study")
    table = format_study(study)
    head = table.splitlines()[0]
    assert "| N = 16 | N = 20 | N = 24 | N = 32 | slope |" in head
    bumps, stripes = read_rows(table)
    assert bumps[0] == "bumps" and stripes[0] == "stripes and bumps"
    assert bumps[2] == stripes[2] == "position accuracy"
    # The planted law of bumps is cubic, that of stripes linear.
    means = [float(cell.split()[0]) for cell in bumps[3:-1]]
    assert means[3] / means[0] == pytest.approx(8, rel=0.02)
    assert bumps[-1].startswith("3 [") and stripes[-1].startswith("1 [")
    # Failed searches are counted and left out.
    found = study.thresholds
    is_last = (found["kind"] == "bumps") & (found["grid_size"] == 32)
    for lost, end in ((1, ", 1 not reached"), (3, "–, 3 not reached")):
        found.loc[found.index[is_last][:lost], "reached"] = False
        assert read_rows(format_study(study))[0][6].endswith(end)
