"""Which runs speak for a part: grouping, preference, refusals to mix."""

import pytest

from tests.studies.claims.planted import make_runs
from tfcomp.statistics.seed_tests import correlate_ranks
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.run_numbers import (
    estimate,
    log_ratio,
    take_largest_drop,
)
from tfcomp.studies.claims.selection import (
    Arms,
    Group,
    Series,
    Setting,
    region_is,
)

DONUT = Setting(
    "donut.flags",
    {"model": "cnn", "encoding": "bump", "region": region_is("square")},
)


def make(seeds: int, *flags: str, **numbers) -> list[Run]:
    """Donut runs with so many seeds and further flags."""
    return make_runs("donut.flags", *flags, seeds=range(seeds), **numbers)


def find(*runs: list[Run]) -> Group:
    return DONUT.find(Evidence(tuple(r for group in runs for r in group)))


def test_order_of_preference() -> None:
    near, far = make(3), make(5, "--epochs=49", "--depth=6")
    # Enough seeds: the published setting, though others have more.
    assert find(far, near).runs == tuple(near)
    assert find(near, far).differences == ()
    # Too few seeds decide nothing: the other setting, and it says so.
    few = find(make(2), far)
    assert few.runs == tuple(far)
    assert set(few.differences) == {"epochs=49", "depth=6"}
    assert few.others == ("depth=4, epochs=50 (2 seeds)",)
    # Equally near: more seeds.
    more = make(5, "--epochs=49")
    assert find(make(4, "--epochs=48"), more).runs == tuple(more)


def test_preference_does_not_look_at_results() -> None:
    for good, bad in ((0.9, 0.1), (0.1, 0.9)):
        group = find(
            make(3, "--epochs=49", relative=good),
            make(3, "--epochs=48", relative=bad),
        )
        assert group.differences == ("epochs=49",)


def test_only_matching_runs() -> None:
    corner, ramp = make_runs("corner.flags"), make_runs("ramp.flags")
    assert find(corner, ramp).runs == ()
    other = make(3, "--region=square:8-20")
    assert find(corner, ramp, other).differences == ("region=square:8-20",)


def test_bookkeeping_flags_do_not_split_a_setting() -> None:
    runs = make(2, "--eval_every=7") + make(4)[2:]
    assert [run.seed for run in find(runs).runs] == [0, 1, 2, 3]


def test_estimate_of_a_group() -> None:
    group = Group((*make(1, relative=0.2), make(2, relative=0.4)[1]))
    found = estimate("ood/relative_mse", group)
    assert found.mean == pytest.approx(0.3)
    assert found.values == {0: 0.2, 1: 0.4}
    assert estimate("ood/nothing", group) is None
    assert estimate("ood/mse", Group()) is None


def test_differences_are_taken_at_equal_seeds() -> None:
    first = Group(tuple(make(3, relative=0.1)))
    second = Group(tuple(make(4, relative=0.01)[1:]))
    found = estimate(log_ratio("ood/mse"), first, second)
    assert set(found.values) == {1, 2}
    assert found.mean == pytest.approx(1.0)


def test_series_of_one_setting() -> None:
    shallow, deep = make(3, "--depth=2"), make(3, "--depth=6")
    stray = make(5, "--depth=3", "--epochs=10")
    evidence = Evidence((*stray, *deep, *shallow))
    depths = Series(DONUT, "depth")
    series = depths.find(evidence)
    assert list(series) == [2, 6]
    assert series[6].runs == tuple(deep)
    assert series[6].differences == ()
    assert depths.find(Evidence()) == {}


def test_mismatch() -> None:
    first, second = Group(tuple(make(2))), Group(tuple(make(2, "--depth=6")))
    assert Arms({}, ["depth"]).find_mismatch(first, second) == ""
    reason = "not comparable: only one has depth=6"
    assert Arms({}, []).find_mismatch(first, second) == reason
    assert Arms({}, []).find_mismatch(first, Group()) == ""


def test_numbers_of_a_run() -> None:
    values = [1.0, 0.9, 0.7, 0.75, 0.6]
    (run,) = make(1, layers={"factorization": values})
    assert take_largest_drop("factorization")(run) == pytest.approx(0.2)
    assert take_largest_drop("nothing")(run) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], 1.0),
        ([3, 2, 1], -1.0),
        ([2, 2, 2], 0.0),
        ([1, 2], None),
        ([1, None, 3], None),
        ([], None),
    ],
)
def test_rank_correlation(values: list, expected: float | None) -> None:
    assert correlate_ranks(values) == expected
