"""Tables: laws of rows, zeros, searches that never reached the target."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tfcomp.figures.exhibits import save_exhibit
from tfcomp.thresholds.threshold_exhibits import make_exhibits
from tfcomp.thresholds.threshold_tables import Law
from tfcomp.thresholds.threshold_tables import Row
from tfcomp.thresholds.threshold_tables import fit_laws
from tfcomp.thresholds.threshold_tables import make_slope_row
from tfcomp.thresholds.threshold_tables import write_tables

COLUMNS = (
    "kind,region,criterion,grid_size,seed,num_bumps,num_examples,reached,"
    "score,target,num_trainings"
)
SIZES = (16, 20, 24)
BUMPS = ("bumps", "none", "position_accuracy")
STRIPES = ("stripes_and_bumps", "corner:0.5", "position_accuracy")


def make_row(
    key: tuple[str, str, str],
    size: int,
    seed: int,
    num_bumps: int,
    reached: bool = True,
) -> Row:
    kind, region, criterion = key
    stripes = 2 * size if kind == "stripes_and_bumps" else 0
    values = (
        *(kind, region, criterion, size, seed),
        *(num_bumps, num_bumps + stripes, reached, 0.96, 0.95, 6),
    )
    return dict(zip(COLUMNS.split(","), values, strict=True))


def make_square_rows() -> list[Row]:
    """N^2 for every seed: a slope of 2 without spread."""
    return [
        make_row(BUMPS, size, seed, size**2)
        for size in SIZES
        for seed in range(3)
    ]


def find(laws: list[Law], quantity: str) -> dict[str, object]:
    (law,) = [law for law in laws if law.quantity == quantity]
    return make_slope_row(law)


def test_slope_of_bumps() -> None:
    for quantity in ("num_bumps", "num_examples"):
        row = find(fit_laws(make_square_rows()), quantity)
        assert row["slope"] == pytest.approx(2)
        assert (row["low"], row["high"]) == pytest.approx((2, 2), abs=1e-6)
        assert (row["n"], row["num_sizes"], row["not_reached"]) == (9, 3, 0)
        assert row["note"] == ""


def test_zero_bumps_have_no_slope_but_examples_have() -> None:
    rows = [make_row(STRIPES, size, 0, 0) for size in SIZES]
    laws = fit_laws(rows)
    bumps, examples = find(laws, "num_bumps"), find(laws, "num_examples")
    assert bumps["slope"] is None and bumps["low"] is None
    assert bumps["note"] == "0 suffices in 3: no slope"
    assert examples["slope"] == pytest.approx(1)
    assert examples["note"] == "stripes alone: linear by construction"


def test_what_is_not_reached_is_counted_and_left_out() -> None:
    rows = make_square_rows()
    rows += [make_row(BUMPS, size, 9, 4 * size**3, False) for size in (24, 28)]
    row = find(fit_laws(rows), "num_bumps")
    assert row["slope"] == pytest.approx(2)
    assert (row["n"], row["num_sizes"], row["not_reached"]) == (9, 3, 2)
    assert row["note"] == "2 of 11 searches not reached"


def test_nothing_is_reached() -> None:
    rows = [make_row(BUMPS, size, 0, 99, False) for size in SIZES]
    row = find(fit_laws(rows), "num_bumps")
    assert row["slope"] is None
    assert (row["n"], row["not_reached"]) == (0, 3)
    assert "fewer than 2 sizes: no slope" in row["note"]


def test_two_sizes_have_no_interval() -> None:
    rows = [row for row in make_square_rows() if row["grid_size"] < 24]
    row = find(fit_laws(rows), "num_bumps")
    assert row["slope"] == pytest.approx(2)
    assert row["low"] is None
    assert row["note"] == "2 sizes: no interval"


def test_laws_are_kept_apart() -> None:
    rows = make_square_rows()
    rows += [make_row(STRIPES, n, 0, 3 * n) for n in SIZES]
    other = (*STRIPES[:2], "relative_mse")
    rows += [make_row(other, n, 0, 3 * n**3) for n in SIZES]
    slopes = [make_slope_row(law)["slope"] for law in fit_laws(rows)]
    assert slopes[:5] == pytest.approx([2, 2, 1, 1, 3])
    assert 1 < slopes[5] < 3  # 2 N stripes beside the bumps


def test_files(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = make_square_rows()
    rows += [make_row(STRIPES, n, s, n + s) for n in SIZES for s in range(2)]
    rows += [make_row(STRIPES, 28, 0, 999, False)]
    laws = fit_laws(rows)
    write_tables(tmp_path, rows)
    header = (tmp_path / "thresholds.csv").read_text().splitlines()[0]
    assert header == COLUMNS
    text = (tmp_path / "slopes.csv").read_text().splitlines()
    found = list(csv.DictReader(text))
    assert [row["quantity"] for row in found] == [
        *("num_bumps", "num_examples") * 2
    ]
    assert float(found[0]["slope"]) == pytest.approx(2)
    targets = {"position_accuracy": 0.95, "relative_mse": 0.5}
    (exhibit,) = make_exhibits(laws, targets)
    save_exhibit(exhibit, tmp_path / "figures")
    table = tmp_path / "figures" / "threshold_position_accuracy.csv"
    assert {path.name for path in table.parent.iterdir()} == {
        table.with_suffix(f".{e}").name for e in ("png", "pdf", "csv")
    }
    means = list(csv.DictReader(table.read_text().splitlines()))
    assert [m["kind"] for m in means] == ["bumps"] * 3 + [STRIPES[0]] * 3
    assert float(means[0]["mean_examples"]) == pytest.approx(256)
    legend = exhibit.figure.legends[0].get_texts()
    texts = " ".join(" ".join(t.get_text().split()) for t in legend)
    assert "bumps, region none: N^2.00 (2.00 to 2.00)" in texts
    assert "linear, N" in texts and "cubic, N³" in texts


def test_nothing_is_written_without_rows(tmp_path: Path) -> None:
    write_tables(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
