"""Runs that decide claims, and the code's part that is subtracted."""

import pytest

from reproduction.claims.evidence import Evidence
from reproduction.claims.own_checks import choose_study, read_shift
from reproduction.verdicts import Verdict
from tests.reproduction.claims.planted import (
    DONUT_SEARCH,
    STRIPED,
    Run,
    gather,
    judge_evidence,
    judge_runs,
    make_study,
    plant,
    plant_claim,
    set_flags,
    set_scores,
    split_runs,
)

FALLING = [1.0, 0.9, 0.8, 0.7, 0.6]
OLD = "--epochs=25"
# Runs on bumps alone, of all that C17 needs.
PLAIN = ("dataset", "gaussian_bumps")


def plant_stages(
    values: list[float],
    flags: str = "",
    count: int = 3,
    start: list[float] | None = None,
) -> list[Run]:
    """Runs of both codes with a value per stage, and an even start."""
    names = ("factorization", "probe_r2_grid", "probe_r2_ood")
    even = start or [values[0]] * len(values)
    numbers = dict.fromkeys(names, values)
    numbers |= {f"start/{name}": even for name in names[:2]}
    lines = [f"{name}.flags {flags}" for name in ("donut", "ramp")]
    return plant(numbers, *lines, count=count)


def test_the_start_has_no_say() -> None:
    """A fall of the untrained network is subtracted."""
    same = plant_stages(FALLING, start=FALLING)
    for name in ("C6", "C8"):
        for part in judge_runs(name, same).parts:
            if part.decides:
                assert part.estimate.mean == pytest.approx(0)
                assert part.verdict is not Verdict.REPRODUCED


def test_a_fall_in_the_image_alone_is_none_of_a_representation() -> None:
    result = judge_runs("C8", plant_stages([1.0, 0.9, 0.9, 0.9, 0.6]))
    assert result.verdict is Verdict.REFUTED
    beside = [p for p in result.parts if p.label.endswith("to the image")]
    assert all(part.verdict is Verdict.REPRODUCED for part in beside)


def test_a_stray_depth_does_not_undo_the_others() -> None:
    runs = plant_stages(FALLING), plant_stages(FALLING, "--depth=5", count=1)
    result = judge_runs("C6", *runs)
    assert result.verdict is Verdict.REPRODUCED
    deciding = [part for part in result.parts if part.decides]
    assert {part.of for part in deciding} == {"bump, depth 4", "ramp, depth 4"}
    assert deciding[0].groups[0].others == ("depth=5 (1 seeds)",)
    # Alone, it is what there is.
    alone = judge_runs("C6", runs[1])
    assert alone.verdict is Verdict.UNDECIDED
    assert "1 of at least 3 seeds" in alone.parts[0].reason


def test_another_setting_stands_beside() -> None:
    old = [plant_stages(FALLING[::-1], f"--depth={n} {OLD}") for n in (2, 3)]
    deep = plant_stages(FALLING, "--depth=6")
    result = judge_runs("C6", plant_stages(FALLING), deep, *old)
    assert result.verdict is Verdict.REPRODUCED
    labels = {part.of for part in result.parts if part.decides}
    assert labels == {
        f"{c}, depth {d}" for c in ("bump", "ramp") for d in (4, 6)
    }
    beside = {part.of for part in result.parts} - labels
    assert {label.split(",")[1] for label in beside} == {" depth 2", " depth 3"}


def test_depth_6_is_preferred() -> None:
    def plant_drop(drop: float, flags: str, count: int = 3) -> list[Run]:
        stages = [1.0, 1.0, 0.99, 0.99 - drop, 0.98 - drop]
        return plant_stages(stages, flags, count)

    runs = plant_drop(0.3, "--depth=2") + plant_drop(0.1, "--depth=6")
    unfitted = [
        set_scores(plant_drop(0.1, f"--depth={n} {OLD}"), "id", relative_mse=1)
        for n in (2, 3, 4)
    ]
    for strays in (
        [],
        [plant_drop(0.5, "--depth=10", count=1)],
        [plant_drop(0.5, "--depth=10")],
        unfitted,  # more depths, but of an old setting
    ):
        part = judge_runs("C7", runs, *strays).parts[0]
        assert part.label == "ramp, depth 2 less depth 6"
        assert part.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("name", ["C15", "C18"])
def test_a_stray_number_of_bumps_undoes_nothing(name: str) -> None:
    stages = [-1.0, 0.9, 0.6, 0.3, 0.0]
    numbers = {
        "ood/relative_mse": 3.0,
        "interaction_r2_ood": -1.0,
        "product_less_sum": stages,
        "start/product_less_sum": stages[::-1],
    }
    stray = plant(numbers, f"{STRIPED} --num_bumps=25", count=1)
    runs = plant_claim(name, "reproduced").runs
    assert judge_runs(name, runs, stray).verdict is Verdict.REPRODUCED


def test_more_runs_of_one_arm_undo_nothing() -> None:
    published = plant_claim("C13", "reproduced").runs
    short = set_flags(published, epochs=500)
    both = split_runs(published, "variance_weight", 0)[1]
    result = judge_runs("C13", short, both[:3])
    assert result.verdict is Verdict.REPRODUCED
    groups = [group for part in result.parts for group in part.groups]
    assert {group.flags["epochs"] for group in groups} == {500}
    # What is not used is named.
    assert any("(3 seeds)" in other for g in groups for other in g.others)


def test_the_nearest_of_two_whole_families() -> None:
    published = plant_claim("C12", "refuted").runs
    short = set_flags(plant_claim("C12", "reproduced").runs, epochs=500)
    for runs in ((published, short), (short, published)):
        result = judge_runs("C12", *runs)
        assert result.verdict is Verdict.REFUTED
        used = {g.flags["epochs"] for p in result.parts for g in p.groups}
        assert used == {published[0].flags["epochs"]}


def test_stripes_are_compared_after_equal_training() -> None:
    plain, striped = split_runs(plant_claim("C17", "reproduced").runs, *PLAIN)
    short = set_flags(striped, epochs=25, steps_per_epoch=40)
    result = judge_runs("C17", plain, short)
    assert result.verdict is Verdict.UNDECIDED
    reason = "not comparable: 3150 training steps and 1000"
    assert result.parts[0].reason == reason
    # With both there are two that are alike, and the short ones beside.
    result = judge_runs("C17", short, plain, striped)
    assert result.verdict is Verdict.REPRODUCED
    # As many steps in other epochs are as many steps.
    longer = set_flags(striped, epochs=25, steps_per_epoch=126)
    assert judge_runs("C17", plain, longer).verdict is Verdict.REPRODUCED


def test_stripes_are_fitted_by_their_places() -> None:
    plain, striped = split_runs(plant_claim("C17", "reproduced").runs, *PLAIN)
    unfitted = set_scores(striped, "id", position_accuracy=0.90)
    result = judge_runs("C17", plain, unfitted)
    assert result.verdict is Verdict.UNDECIDED
    assert result.parts[0].reason == "not fitted: 0 of 10 fitted"
    # Their error on bumps says nothing.
    striped = set_scores(striped, "id", relative_mse=9.5)
    assert judge_runs("C17", plain, striped).verdict is Verdict.REPRODUCED


def plant_volumes(values: list[float], name: str) -> list[Run]:
    """Log-volumes of stages, OOD less ID, the code first."""
    none, even = [0.0] * len(values), [values[0]] * len(values)
    numbers = {}
    for measure in ("log_volume_median", "log_volume_median_deviation"):
        numbers |= {f"{measure}_id": none, f"{measure}_ood": values}
        numbers |= {f"start/{measure}_id": none, f"start/{measure}_ood": even}
    return plant(numbers, name, count=3)


def test_the_border_of_the_code_is_no_warp() -> None:
    result = judge_runs("C9", plant_volumes([0.15] * 5, "donuts"))
    assert result.verdict is Verdict.REFUTED
    assert result.parts[0].estimate.mean == pytest.approx(0)
    runs = plant_volumes([0.2, 0.5, -0.1, 0.2, 0.0], "donut")
    (group,) = gather(runs).groups
    expected = [0.0, 0.3, -0.3, 0.0, -0.2]
    shift = read_shift(group).loc[102].tolist()
    assert shift == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("cnn", "mlp", "verdict"),
    [
        (-0.5, 0.3, Verdict.REPRODUCED),
        (0.5, -0.3, Verdict.REPRODUCED),
        (-0.5, 0.05, Verdict.REFUTED),  # within the margin
        (-0.05, 0.3, Verdict.REFUTED),
        (-0.5, -0.3, Verdict.REFUTED),
        (0.0, -0.5, Verdict.REFUTED),  # the sign of the CNN is the code's
    ],
)
def test_signs_beyond_a_margin(cnn, mlp, verdict) -> None:
    code = 0.0885
    first = plant_volumes([code, *[code + cnn] * 4], "donuts")
    second = plant_volumes([code, *[code + mlp] * 4], "mlps")
    result = judge_runs("C10", first, second)
    assert result.verdict is verdict
    is_unknown = "sign for the CNN is not known" in result.parts[1].reason
    assert is_unknown is (abs(cnn) < 0.1)


def judge_searches(*studies):
    """The small CNN's studies, beside one of the donut's."""
    donut = make_study("donut", *DONUT_SEARCH)
    return judge_evidence("C16", Evidence(studies=(*studies, donut)))


def test_a_quick_study_does_not_decide_beside_a_good_one() -> None:
    good = make_study("good")
    quick = make_study("quick", "--target=0.5,0.9", shift=-2.0, sizes=(16, 24))
    for studies in ((good, quick), (quick, good)):
        result = judge_searches(*studies)
        assert result.verdict is Verdict.REPRODUCED
        assert len(result.parts) == 4
        assert "not used: quick" in result.parts[0].note


def test_order_of_preference_of_studies() -> None:
    few_seeds = make_study("few", sizes=(8, 16, 24, 32, 40), seeds=2)
    other = make_study("other", "--target=0.5,0.9")
    good = make_study("published")
    assert choose_study([few_seeds, other, good], "bumps") is good
    assert choose_study([few_seeds, other], "bumps") is other
    more = make_study("more", "--steps=100", sizes=(8, 16, 20, 24, 32))
    assert choose_study([good, more], "bumps") is more
    assert choose_study([good], "nothing") is None
    assert "target=0.5,0.9" in judge_searches(other).parts[0].note


def test_studies_that_decide_nothing() -> None:
    for changes, reason in (
        ({"seeds": 2}, "2 of at least 3 seeds at size 16"),
        ({"sizes": (16, 24)}, "2 of at least 3 sizes"),
    ):
        result = judge_searches(make_study("study", **changes))
        assert result.verdict is Verdict.UNDECIDED
        assert result.parts[0].reason == reason
    study = make_study("study")
    study.slopes.loc[0, "not_reached"] = 2
    study.slopes.loc[1, ["slope", "low", "high"]] = None
    study.slopes.loc[1, "note"] = "2 sizes"
    result = judge_searches(study)
    assert result.verdict is Verdict.UNDECIDED
    assert "did not reach" in result.parts[0].reason
    assert result.parts[1].reason == "2 sizes"
