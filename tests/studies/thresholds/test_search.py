"""The search: planted thresholds, ends of the range, any kind of response."""

import math

import numpy as np
import pytest

from tfcomp.studies.thresholds.search import (
    Found,
    Limits,
    dither,
    find_threshold,
)

INF = math.inf


def search(threshold: float, **limits: float) -> Found:
    chosen = {"first": 16, "maximum": 4096, **limits}
    return find_threshold(lambda count: count >= threshold, Limits(**chosen))


@pytest.mark.parametrize("threshold", [1, 2, 3, 7, 15, 16, 17, 100, 4095, 4096])
@pytest.mark.parametrize("first", [1, 10, 4096])
@pytest.mark.parametrize("tolerance", [1.001, 1.2, 2.5])
def test_step_is_found_within_the_tolerance(
    threshold: int, first: int, tolerance: float
) -> None:
    found = search(threshold, first=first, tolerance=tolerance)
    assert found.reached
    assert threshold <= found.count <= max(threshold * tolerance, threshold + 1)
    if tolerance < 1.01:
        # Counts up to 1000 are nearer to each other than the tolerance.
        assert found.count == threshold or threshold > 1000


@pytest.mark.parametrize(
    ("threshold", "limits", "count", "tried"),
    [
        (0, {"minimum": 0}, 0, [0]),
        (1, {"minimum": 0}, 1, [0, 16, 8, 4, 2, 1]),
        # Zero is not tried where it makes no sense.
        (0, {}, 1, [16, 8, 4, 2, 1]),
        (INF, {"maximum": 1000}, 1000, [16, 32, 64, 128, 256, 512, 1000]),
        # Up to the bracket (64, 128], then two halvings of a factor of 2.
        (100, {}, 108, [16, 32, 64, 128, 91, 108]),
    ],
)
def test_what_is_tried_and_found(
    threshold: float, limits: dict[str, int], count: int, tried: list[int]
) -> None:
    found = search(threshold, **limits)
    answers = {n: n >= threshold for n in tried}
    assert found == Found(count, threshold < INF, answers)
    assert list(found.answers) == tried


def test_a_search_asks_once_and_is_repeated_from_its_answers() -> None:
    asked = []

    def reaches(count: int) -> bool:
        asked.append(count)
        return count >= 50

    limits = Limits(16, 4096, 0, 1.01)
    found = find_threshold(reaches, limits)
    assert asked == list(found.answers)
    assert find_threshold(found.answers.__getitem__, limits) == found


def test_any_response_gives_a_count_above_a_failing_one(
    rng: np.random.Generator,
) -> None:
    reached_at_all = 0
    for _ in range(300):
        table = rng.uniform(size=1001) < rng.uniform(0.05, 0.95)
        limits = Limits(int(rng.integers(1, 1001)), 1000, int(rng.integers(2)))
        found = find_threshold(lambda n, table=table: table[n], limits)
        if not found.reached:
            assert found.count == 1000 and not table[1000]
            continue
        reached_at_all += 1
        assert table[found.count]
        failed = {n for n, reached in found.answers.items() if not reached}
        below = max((n for n in failed if n < found.count), default=0)
        assert found.count <= max(below * limits.tolerance, below + 1)
    assert reached_at_all > 100


def test_dither_is_uniform_in_log_scale_and_reproducible() -> None:
    shifts = [math.log2(dither(1e6, seed, 16) / 1e6) for seed in range(2000)]
    assert 0 <= min(shifts) < 0.01 and 0.99 < max(shifts) <= 1
    assert np.mean(shifts) == pytest.approx(0.5, abs=0.03)
    assert dither(100, 3, 16) == dither(100, 3, 16)
    assert len({dither(1000, 3, size) for size in range(10)}) > 5
