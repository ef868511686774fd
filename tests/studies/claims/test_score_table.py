"""Tables of scores: geometric means, extremes and gates of planted runs."""

import math

from tests.studies.claims.planted import Run, gather, make_run
from tfcomp.studies.claims import score_tables
from tfcomp.studies.claims.score_tables import make_score_tables

ERRORS = (0.1, 0.2, 0.8)


def read_rows(table: str) -> list[list[str]]:
    """The cells of a table, its heading left out."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:]
    ]


def format_sweep(runs: list[Run]) -> str:
    return score_tables.format_sweep(gather(runs).groups)


def plant(*flags: str, fits: tuple[float, ...] = (0.01,) * 3) -> list[Run]:
    """Three seeds of a setting, with errors and positions in place."""
    return [
        make_run(
            "donut.flags",
            100 + seed,
            *flags,
            relative=error,
            fit=fit,
            scores={"ood": {"position_accuracy": error / 2}},
        )
        for seed, (error, fit) in enumerate(zip(ERRORS, fits, strict=True))
    ]


def test_numbers_of_a_setting() -> None:
    [row] = read_rows(format_sweep(plant()))
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
    [row] = read_rows(format_sweep(plant(fits=(0.01, 0.2, 0.01))))
    assert row[1] == "2 of 3"
    assert row[3] == f"{math.sqrt(0.1 * 0.8):.3g} (0.1 to 0.8)"
    [row] = read_rows(format_sweep(plant(fits=(0.1, 0.2, 0.1))))
    assert row[1] == "0 of 3"
    assert row[3].endswith("(0.1 to 0.8)")


def test_stripes_are_fitted_when_their_peaks_are_in_place() -> None:
    runs = plant("--dataset=stripes", "--polarity=bright", fits=(9, 9, 9))
    [row] = read_rows(format_sweep(runs))
    assert row[1] == "3 of 3"


def test_settings_are_rows_in_the_order_of_their_values() -> None:
    runs = [*plant("--depth=10"), *plant("--depth=2")]
    assert [row[0] for row in read_rows(format_sweep(runs))] == ["2", "10"]
    tables = make_score_tables(gather(runs))
    assert tables == {"planted": format_sweep(runs)}
