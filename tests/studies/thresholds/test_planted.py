"""Does the search recover an exponent that was planted?

It searches in made-up noisy scores whose thresholds grow as N, N^2 and N^3,
and fits the laws of 100 whole studies. No network is trained.
"""

import numpy as np
import pytest
from scipy import stats

from tfcomp.statistics.power_law import average_sizes, fit_power_law
from tfcomp.studies.thresholds.one_search import find_threshold

SIZES = (16, 20, 24, 28, 32)
NUM_SEEDS = 3
TARGET = 0.8
REPEATS = 100


def search(
    exponent: float, luck: float, size: int, rng: np.random.Generator
) -> int:
    """What a search finds whose score rises with the log of the count.

    score = 1 / (1 + (c / count)^4) + noise, with c = 0.5 size^exponent times
    the luck of the size and that of the seed (a spread of 15 %).
    """
    middle = 0.5 * size**exponent * np.exp(luck + rng.normal(0, 0.15))

    def reaches(count: int) -> bool:
        score = 1 / (1 + (middle / count) ** 4)
        return score + rng.normal(0, 0.02) >= TARGET

    first = round(size**2 / 4 * 2 ** rng.uniform())
    return find_threshold(reaches, first, 64 * size**3)[0]


def run_study(
    exponent: float, rng: np.random.Generator, size_luck: float = 0.0
) -> tuple[list[int], list[int]]:
    """Sizes, and what the search found for each seed of each of them.

    Luck that all seeds of a size share is a departure from the law.
    """
    sizes, counts = [], []
    for size in SIZES:
        luck = rng.normal(0, size_luck)
        for _ in range(NUM_SEEDS):
            sizes.append(size)
            counts.append(search(exponent, luck, size, rng))
    return sizes, counts


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_planted_exponent_is_recovered(exponent: int) -> None:
    rng = np.random.default_rng(exponent)
    laws = [
        fit_power_law(average_sizes(*run_study(exponent, rng)))
        for _ in range(REPEATS)
    ]
    slopes = np.array([law.slope for law in laws])
    # The mean of 100 estimates: no bias of the search above 0.05.
    assert slopes.mean() == pytest.approx(exponent, abs=0.05)
    assert slopes.std() < 0.3
    covered = np.mean([law.low <= exponent <= law.high for law in laws])
    assert covered >= 0.89


def test_interval_holds_where_sizes_depart_from_the_law() -> None:
    """What all seeds of a size share must widen the interval."""
    rng = np.random.default_rng(0)
    covered = {"means": [], "points": []}
    for _ in range(REPEATS):
        sizes, counts = run_study(2, rng, size_luck=0.15)
        law = fit_power_law(average_sizes(sizes, counts))
        covered["means"].append(law.low <= 2 <= law.high)
        line = stats.linregress(np.log(sizes), np.log(counts))
        half_width = stats.t.ppf(0.975, len(sizes) - 2) * line.stderr
        covered["points"].append(abs(line.slope - 2) <= half_width)
    assert np.mean(covered["means"]) >= 0.89
    assert np.mean(covered["points"]) < 0.90
