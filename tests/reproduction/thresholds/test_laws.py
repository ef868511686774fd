"""Laws of rows, zeros, missed targets, and of planted exponents."""

import csv
from pathlib import Path

import numpy as np
import pytest

from reproduction.thresholds.cases import Row
from reproduction.thresholds.command import list_slopes, make_exhibits
from reproduction.thresholds.one_search import find_threshold
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.statistics.seed_statistics import average_sizes, fit_power_law
from tfcomp.storage.files import make_folder

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
    total = num_bumps + (0 if key is BUMPS else 2 * size)
    values = *key, size, seed, num_bumps, total, reached, 0.96, 0.95, 6
    return dict(zip(COLUMNS.split(","), values, strict=True))


# N^2 for every seed: a slope of 2 without spread.
SQUARE = [make_row(BUMPS, n, s, n**2) for n in SIZES for s in range(3)]
ALONE = [make_row(STRIPES, n, 0, 0) for n in SIZES]
MISSED = [make_row(BUMPS, n, 9, 4 * n**3, False) for n in (24, 28)]


def find(rows: list[Row], quantity: str) -> Row:
    (slope,) = [s for s in list_slopes(rows) if s["quantity"] == quantity]
    return slope


@pytest.mark.parametrize(
    ("rows", "numbers", "note"),
    [
        (SQUARE, (2, 2, 2, 9, 3, 0), ""),
        (SQUARE[:6], (2, None, None, 6, 2, 0), "2 sizes: no interval"),
        (ALONE, (None, None, None, 3, 3, 0), "0 suffices in 3: no slope"),
        (SQUARE + MISSED, (2, 2, 2, 9, 3, 2), "2 of 11 searches not reached"),
        (
            MISSED,
            (None, None, None, 0, 0, 2),
            "2 of 2 searches not reached; fewer than 2 sizes: no slope",
        ),
    ],
)
def test_law_of_bumps(
    rows: list[Row], numbers: tuple[float | None, ...], note: str
) -> None:
    row = find(rows, "num_bumps")
    columns = ("slope", "low", "high", "n", "num_sizes", "not_reached")
    found = tuple(row[name] for name in columns)
    assert found == pytest.approx(numbers, abs=1e-6)
    assert row["note"] == note


def test_law_of_examples() -> None:
    bumps, examples = list_slopes(SQUARE)
    assert examples == {**bumps, "quantity": "num_examples"}
    # Zero bumps have no slope, but the stripes have.
    alone = find(ALONE, "num_examples")
    assert alone["slope"] == pytest.approx(1)
    assert alone["note"] == "stripes alone: linear by construction"


def test_figure(tmp_path: Path) -> None:
    rows = [*SQUARE, make_row(STRIPES, 28, 0, 999, False)]
    rows += [make_row(STRIPES, n, s, n + s) for n in SIZES for s in range(2)]
    (exhibit,) = make_exhibits(rows)
    assert exhibit.title == "position accuracy of at least 0.95"
    save_exhibit(exhibit, make_folder(tmp_path / "figures"))
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


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_planted_exponent_is_recovered(exponent: int) -> None:
    """Searches with noisy scores and a threshold near 0.5 size^exponent."""
    rng, slopes, covered = np.random.default_rng(exponent), [], []
    for _ in range(100):
        sizes, counts = [], []
        for size in (16, 20, 24, 28, 32) * 3:  # three seeds
            middle = 0.5 * size**exponent * np.exp(rng.normal(0, 0.15))

            def reaches(count: int, middle: float = middle) -> bool:
                score = 1 / (1 + (middle / count) ** 4)
                return score + rng.normal(0, 0.02) >= 0.8

            first = round(size**2 / 4 * 2 ** rng.uniform())
            sizes.append(size)
            counts.append(find_threshold(reaches, first, 64 * size**3)[0])
        law = fit_power_law(average_sizes(sizes, counts))
        slopes.append(law.slope)
        covered.append(law.low <= exponent <= law.high)
    # The mean of 100 estimates: no bias of the search above 0.05.
    assert np.mean(slopes) == pytest.approx(exponent, abs=0.05)
    assert np.std(slopes) < 0.3
    assert np.mean(covered) >= 0.89
