"""The page of a sweep: sentences on planted numbers, figures, its files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tfcomp.evaluation.metrics import find_limits
from tfcomp.statistics.seed_statistics import summarize
from tfcomp.sweeps.sweep_numbers import SweepNumbers
from tfcomp.sweeps.sweep_page import draw_lines, make_page
from tfcomp.sweeps.sweep_reports import write_page

Planted = dict[int, tuple[list[float], list[float]]]


def plant(
    numbers: Planted, planned: int = 6, pairs: list[dict] | None = None
) -> SweepNumbers:
    """ID and OOD errors of the seeds of some depths."""
    rows = [
        {"depth": depth, "seed": seed, "score": score, "value": value}
        for depth, errors in numbers.items()
        for score, values in zip(
            ("id_relative_mse", "ood_relative_mse"), errors, strict=True
        )
        for seed, value in enumerate(values)
    ]
    seeds = pd.DataFrame(rows)
    scores = summarize(seeds, ["depth", "score"], find_limits)
    nothing, paired = pd.DataFrame(), pd.DataFrame(pairs or [])
    tables = (seeds, scores, nothing, nothing, paired)
    return SweepNumbers("planted", ["depth"], *tables, "S", planned)


def test_how_many_fit_and_how_many_are_missing() -> None:
    errors = {2: ([0.01] * 3, [0.5] * 3), 4: ([0.2] * 3, [0.4] * 3)}
    answer, _ = make_page(plant(errors, 9))
    assert answer.sentences == [
        "6 of 9 trials have scores.",
        "1 of 2 settings fit their training data, by a mean ID relative error "
        "of at most 5 %.",
    ]


ERRORS: Planted = {
    d: ([0.01, 0.02, 0.03], [0.1 * d, 0.2 * d, 0.3 * d]) for d in (1, 2, 3)
}


def test_pairs() -> None:
    pair = {"score": "ood_relative_mse", "p_holm": 0.01}
    rows = [pair, pair | {"p_holm": 0.2}, pair | {"p_holm": None}]
    rows.append({"score": "id_mse", "p_holm": 0.01})
    _, (*_, section) = make_page(plant(ERRORS, pairs=rows))
    assert "differs in 1 of 2 pairs" in section.finding


def test_page(tmp_path: Path) -> None:
    sweep = plant(ERRORS, 9)
    write_page(tmp_path, sweep)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="figure-scores"' in page and "depth 3" in page
    assert 'href="figures/scores.pdf"' in page
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"scores.pdf", "by_depth.png", "by_depth.csv"} <= names
    assert 'id="section-figures"' in page
    assert 'id="section-paired"' not in page


@pytest.mark.parametrize(("num_seeds", "bands"), [(1, 0), (2, 0), (3, 1)])
def test_two_seeds_have_no_band(num_seeds: int, bands: int) -> None:
    table = pd.DataFrame(
        {
            "depth": 2,
            "quantity": "probe_r2_ood",
            "stage": range(3),
            "mean": [0.9, 0.8, 0.7],
            "low": [-2.0, -2.0, -2.0],
            "high": [3.0, 3.0, 3.0],
            "sd": 0.1 if num_seeds > 1 else None,
            "n": num_seeds,
        }
    )
    names = {"probe_r2_ood": "probe R²"}
    (exhibit,) = draw_lines(plant(ERRORS), table, names, "stage", "layers")
    (axes,) = exhibit.figure.axes
    assert len(axes.collections) == bands
    # A band that is not drawn does not stretch the axis either.
    assert (axes.get_ylim()[1] > 1.5) == bool(bands)
    # The table has it all the same.
    assert np.allclose([row["high"] for row in exhibit.rows], 3.0)
