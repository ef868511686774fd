"""The search: planted thresholds, ends of the range, its trainings."""

import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from reproduction.thresholds import one_search
from reproduction.thresholds.cases import Case
from reproduction.thresholds.search_settings import SearchSettings
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config

INF = math.inf
FLAGS = (
    "--flagfile=smoke.flags --polarity=bright --model=mlp --width=16 "
    "--batch_size=8 --learning_rate=1e-2"
).split()


def make_case(
    kind: str, region: str, *flags: str, size: int = 8, **settings: object
) -> Case:
    base = parse_config([*FLAGS, *flags])
    return Case(kind, region, size, 0, base, SearchSettings(**settings))


@pytest.mark.parametrize("threshold", [1, 2, 15, 16, 17, 100, 4095, 4096])
@pytest.mark.parametrize("first", [1, 10, 4096])
@pytest.mark.parametrize("tolerance", [1.001, 1.2, 2.5])
def test_step_is_found_within_the_tolerance(
    threshold: int, first: int, tolerance: float
) -> None:
    count, answers = one_search.find_threshold(
        lambda n: n >= threshold, first, 4096, tolerance=tolerance
    )
    assert answers[count]
    assert threshold <= count <= max(threshold * tolerance, threshold + 1)
    if tolerance < 1.01:
        # Counts up to 1000 are nearer to each other than the tolerance.
        assert count == threshold or threshold > 1000


@pytest.mark.parametrize(
    ("threshold", "maximum", "minimum", "count", "tried"),
    [
        (0, 4096, 0, 0, [0]),
        (1, 4096, 0, 1, [0, 16, 8, 4, 2, 1]),
        # Zero is not tried where it makes no sense.
        (0, 4096, 1, 1, [16, 8, 4, 2, 1]),
        (INF, 1000, 1, 1000, [16, 32, 64, 128, 256, 512, 1000]),
        # Up to the bracket (64, 128], then two halvings of a factor of 2.
        (100, 4096, 1, 108, [16, 32, 64, 128, 91, 108]),
    ],
)
def test_what_is_tried_and_found(
    threshold: float, maximum: int, minimum: int, count: int, tried: list[int]
) -> None:
    asked = []

    def reaches(n: int) -> bool:
        asked.append(n)
        return n >= threshold

    found = one_search.find_threshold(reaches, 16, maximum, minimum)
    assert found == (count, {n: n >= threshold for n in tried})
    assert asked == list(found[1]) == tried


def test_any_response_gives_a_count_above_a_failing_one(
    rng: np.random.Generator,
) -> None:
    reached_at_all = 0
    for _ in range(300):
        table = rng.uniform(size=1001) < rng.uniform(0.05, 0.95)
        first, minimum = int(rng.integers(1, 1001)), int(rng.integers(2))
        count, answers = one_search.find_threshold(
            lambda n, table=table: table[n], first, 1000, minimum
        )
        if not answers[count]:
            assert count == 1000 and not table[1000]
            continue
        reached_at_all += 1
        assert table[count]
        failed = {n for n, reached in answers.items() if not reached}
        below = max((n for n in failed if n < count), default=0)
        assert count <= max(below * 1.2, below + 1)
    assert reached_at_all > 100


def test_a_search_has_a_row_for_each_criterion() -> None:
    """Makes scores: positions are right from 40 bumps on, all from 200."""
    counts = []

    def train(config: RunConfig) -> one_search.Scores:
        counts.append(count := config.data.num_train)
        return {
            "position_accuracy": 1.0 if count >= 40 else 0.1,
            "relative_mse": 0.1 if count >= 200 else 0.9,
        }

    settings = {"criterion": "position_accuracy,relative_mse"}
    case = make_case("bumps", "none", size=16, target="0.9,0.5", **settings)
    right, proper = one_search.search(case, train)
    assert len(counts) == len(set(counts))
    names = [right["criterion"], proper["criterion"]]
    assert ",".join(names) == settings["criterion"]
    assert 40 <= right["num_bumps"] <= 48
    assert 200 <= proper["num_bumps"] <= 240
    assert right["num_examples"] == right["num_bumps"]
    assert right["reached"] is True
    assert (right["score"], proper["score"]) == (1.0, 0.1)


def test_trainings_depend_on_their_data_alone() -> None:
    case = make_case("bumps", "none", "--depth=1", steps=150)
    config = case.make_config(250)
    before = one_search.train_and_score(config)
    # Else no threshold would say anything about data.
    assert before["position_accuracy"] > 0.9
    assert before["relative_mse"] < 0.5
    other = make_case(
        "stripes_and_bumps",
        "corner:0.5",
        "--depth=1",
        "--precision=mixed_bfloat16",
        "--learning_rate=1e30",
        steps=2,
    ).make_config(5)
    # A training that diverges reaches nothing.
    diverged = one_search.train_and_score(other)
    assert diverged["position_accuracy"] == 0.0
    assert diverged["relative_mse"] is None
    assert one_search.train_and_score(config) == before
    assert keras.config.floatx() == "float32"


def test_region_is_what_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tfcomp.training.fit.fit_without_pause", lambda *arguments: None
    )
    monkeypatch.setattr(
        "tfcomp.metrics.point_scores.evaluate_images",
        lambda data, _: SimpleNamespace(scores=data.subsets),
    )
    config = make_case("bumps", "corner:0.5").make_config(10)
    assert np.sum(one_search.train_and_score(config)) == 16  # of 64
