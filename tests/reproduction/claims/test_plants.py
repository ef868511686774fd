"""Planted cases on which a verdict, or its sentence, once said too much.

Each says what both columns must give.
"""

import dataclasses

import pytest

from reproduction.claims.evidence import FIRST_SEED, NEXT_SEED
from reproduction.verdicts import Verdict
from tests.reproduction.claims.planted import (
    BY_NAME,
    LOW_RANK,
    STRIPED,
    Planted,
    Run,
    gather,
    judge_evidence,
    judge_runs,
    make_studies,
    plant,
    plant_claim,
    set_flags,
    set_measures,
    set_scores,
    split_runs,
)

REPRODUCED, REFUTED = Verdict.REPRODUCED, Verdict.REFUTED
COUNTS = (0, 10, 50, 100)


@pytest.mark.parametrize("change", [-0.01, 0.01])
def test_c6_as_published_counts_where_runs_have_it(change: float) -> None:
    def judge(**measures: list[float]) -> tuple[str, str]:
        runs = set_measures(planted.runs, **measures)
        result = judge_runs("C6", runs)
        assert result.verdict is REPRODUCED  # of the stricter test
        return result.paper_word, result.paper_meaning

    planted = plant_claim("C6", "reproduced")
    waits = "stage 0: not run yet for donut, bump, donut, ramp"
    word, meaning = judge()
    assert word == REPRODUCED and meaning.endswith(waits)
    stages = planted.runs[0].measures["stages"]
    rising = [0.9 + change * n for n in range(len(stages))]
    word, meaning = judge(factorization_gradient_ratio_of_means=rising)
    assert word == (REPRODUCED if change < 0 else REFUTED)
    assert waits not in meaning


@pytest.mark.parametrize(
    ("errors", "paper", "meaning"),
    [
        # Nothing composes.
        ([2.0, 2.0, 2.0, 2.0], False, "not above 0.5 for both (0 of 10)"),
        # The order of the paper; the stricter test asks that one penalty is
        # not enough.
        (
            [2.2, 0.7, 0.02, 0.01],
            True,
            "not below 0.5 for variance alone (10 of 10)",
        ),
    ],
)
def test_c12_penalties(errors, paper, meaning) -> None:
    ids = {"_none": 4e-4, "_entropy": 7e-4, "_variance": 6e-3, "": 2e-3}
    runs = []
    for (ending, inside), outside in zip(ids.items(), errors, strict=True):
        numbers = dict.fromkeys(["id/relative_mse", "id/mse"], inside)
        numbers |= dict.fromkeys(["ood/relative_mse", "ood/mse"], outside)
        numbers["ood/position_accuracy"] = 0.999 if outside < 0.1 else 0.2
        runs += plant(numbers, LOW_RANK.format(ending))
    result = judge_runs("C12", runs)
    assert result.verdict is REFUTED and meaning in result.meaning
    assert (result.paper_word == "reproduced") is paper


def test_c16_bumps_needed_grow_faster_than_the_cube() -> None:
    result = judge_evidence("C16", Planted(studies=make_studies(shift=2.0)))
    assert result.verdict is REFUTED
    assert "not between 2.5 and 3.5 for small CNN (5)" in result.meaning


def test_c5_the_codes_exchanged() -> None:
    good, bad = (
        plant_claim("C5", kind).runs for kind in ("reproduced", "refuted")
    )
    runs = split_runs(good, "encoding", "ramp")[0]
    runs += split_runs(bad, "encoding", "bump")[0]
    result = judge_runs("C5", runs)
    assert "above 0.02 for donut, ramp" in result.meaning
    assert "not above 0.02 for donut, bump" in result.meaning
    assert result.badge == "refuted (donut, bump); reproduced (donut, ramp)"
    assert result.word == "in parts"


def test_c15_a_perfect_network() -> None:
    rising, falling = (0.9, 0.95, 0.985, 0.999), (6.0, 0.9, 0.05, 0.002)
    runs = []
    for count, interaction, error in zip(COUNTS, rising, falling, strict=True):
        numbers = {"interaction_r2_ood": interaction, "ood/relative_mse": error}
        runs += plant(numbers, f"{STRIPED} --num_bumps={count}")
    claim = dataclasses.replace(BY_NAME["C15"], controls=())
    result = claim.judge(gather(runs))
    assert result.paper_word == "reproduced"
    assert result.verdict is Verdict.UNDECIDED and "0.976" in result.reason


def test_c18_only_the_untrained_networks_fall() -> None:
    start = [0.66, 0.32, 0.25, 0.21, 0.16]
    names = [f"{STRIPED} --num_bumps={count}" for count in COUNTS]

    def judge(trained: list[float]):
        numbers = {"product_less_sum": trained, "start/product_less_sum": start}
        return judge_runs("C18", plant(numbers, *names))

    result = judge([-0.6] * 5)
    assert result.verdict is not REPRODUCED
    assert result.paper_word != "reproduced"
    rising = judge([-0.6, -0.2, 0.1, 0.4, 0.5])
    assert rising.verdict is REPRODUCED and rising.paper_word == "reproduced"


def test_c11_most_trainings_diverge() -> None:
    runs = plant_claim("C11", "reproduced").runs
    lost = set_scores(
        runs, "id", relative_mse=lambda seed: 0.5 if seed % 5 else 1e-3
    )
    result = judge_runs("C11", lost)
    assert result.verdict is not REPRODUCED
    assert "2 of 10" in result.meaning


def copy_runs(runs: list[Run], first: int, count: int) -> list[Run]:
    """The runs of ten seeds at many seeds, in turn."""
    return [
        run._replace(flags=run.flags | {"seed": first + n})
        for n in range(count)
        for run in runs
        if run.seed % 10 == n % 10
    ]


@pytest.mark.parametrize("is_copied", [True, False])
def test_c3_one_run_under_three_seeds(is_copied: bool) -> None:
    places = {f"number_{n}": 0.1 * n for n in range(50)}
    run = set_measures(plant_claim("C3", "reproduced").runs[:1], **places)
    runs = [
        other
        for n in range(3)
        for other in set_measures(
            set_flags(run, seed=FIRST_SEED + n),
            number_0=0.0 if is_copied else 0.01 * n,
        )
    ]
    result = judge_runs("C3", runs)
    assert result.verdict is (Verdict.UNDECIDED if is_copied else REPRODUCED)
    assert ("same run" in result.meaning) is is_copied


def make_deviations(
    inside: list[float], outside: list[float], start: list[float]
) -> dict[str, list[float]]:
    """Deviations of log-volumes at ID and OOD points, by stage."""
    name = "log_volume_median_deviation"
    numbers = {f"{name}_id": inside, f"{name}_ood": outside}
    return numbers | {f"start/{name}_{s}": start for s in ("id", "ood")}


def test_c9_training_evens_out_id_alone() -> None:
    odd = [0.5] * 5
    numbers = make_deviations([0.5, 0.4, 0.3, 0.2, 0.1], odd, start=odd)
    result = judge_runs("C9", plant(numbers, "donuts"))
    assert result.verdict is REFUTED
    assert "of OOD points, net of the start" in result.meaning


def plant_arms(
    bumps: tuple[float, float], stripes: tuple[float, float]
) -> list[Run]:
    """Deviations (ID, OOD) of both arms of C17."""
    runs = []
    for name, (inside, outside) in {
        "corner.flags --polarity=bright": bumps,
        f"{STRIPED} --epochs=50 --steps_per_epoch=63": stripes,
    }.items():
        stages = [0, *[inside] * 4], [0, *[outside] * 4]
        runs += plant(make_deviations(*stages, start=[0.0] * 5), name)
    return runs


def test_c17_stripes_crumple_everything() -> None:
    result = judge_runs("C17", plant_arms((0.0, 0.6), (3.0, 3.0)))
    assert result.verdict is REFUTED
    honest = judge_runs("C17", plant_arms((0.0, 0.6), (0.1, 0.1)))
    assert honest.verdict is REPRODUCED


@pytest.mark.parametrize(
    ("share", "verdict"), [(3e-8, REFUTED), (0.78, REPRODUCED)]
)
def test_c14_a_plus_and_a_thousandth_of_a_bump(share, verdict) -> None:
    numbers = {"ood/position_accuracy": 0.999, "interaction_r2_ood": 1.0}
    numbers |= {"interaction_share": [0, 0.1, 0.2, 0.3, share]}
    result = judge_runs("C14", plant(numbers, "stripes.flags"))
    assert result.verdict is verdict


def test_seeds_beyond_the_plan_are_not_looked_at() -> None:
    (planned,) = BY_NAME["C17"].fresh.values()
    runs = plant_arms((0.0, 0.6), (0.1, 0.1))
    bad = plant_arms((0.0, 0.6), (3.0, 3.0))
    fresh = copy_runs(runs, NEXT_SEED, planned)
    beyond = copy_runs(bad, NEXT_SEED + planned, planned)
    found = judge_runs("C17", runs, fresh, beyond)
    assert judge_runs("C17", runs, fresh).verdict is REPRODUCED
    assert found.verdict is REPRODUCED
    counts = [part.estimate.count for part in found.parts if part.decides]
    assert set(counts) == {planned}


def test_c2_an_error_of_little_more_than_half_a_blank() -> None:
    runs = plant_claim("C2", "reproduced").runs
    result = judge_runs("C2", set_scores(runs, "ood", relative_mse=0.6))
    assert result.verdict is REPRODUCED
    assert "above 0.5 for MLP, bump (0.6)" in result.meaning


@pytest.mark.parametrize("linear", [0.6, 0.98])
def test_c19_the_nearest_edge_is_no_blend(linear: float) -> None:
    numbers = {"edge_r2": 0.99, "edge_linear_r2": linear}
    result = judge_runs("C19", plant(numbers, "rotated_mnist.flags"))
    is_blend = linear > 0.8
    assert (result.verdict is REPRODUCED) is is_blend
    assert (result.paper_word == "reproduced") is is_blend


@pytest.mark.parametrize(
    ("name", "fault"),
    [("C4", "even grey"), ("C8", "no re-entanglement"), ("C21", "no height")],
)
def test_a_measure_with_a_known_fault_refutes_nothing(name, fault) -> None:
    claim = dataclasses.replace(BY_NAME[name], controls=())
    result = claim.judge(plant_claim(name, "refuted").gather())
    assert result.verdict is Verdict.UNDECIDED and fault in result.reason


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.95, REPRODUCED), (0.01, REFUTED)]
)
def test_c21_is_valid_once_trained_networks_have_run(share, verdict) -> None:
    """Untrained networks have several peaks; networks trained on all do not."""

    def plant_peaks(several: float, *flags: str) -> list[Run]:
        numbers = {"multiple_peaks_ood": several, "multiple_peaks_id": 0.0}
        numbers |= {"no_peak_ood": 0.0, "start/no_peak_ood": 0.0}
        numbers |= {"start/multiple_peaks_ood": 1.0}
        return plant(numbers, " ".join(["donut.flags", *flags]))

    claim = dataclasses.replace(BY_NAME["C21"], history=(), doubt="")
    alone = claim.judge(gather(plant_peaks(share)))
    assert alone.verdict is Verdict.NOT_VALID
    on_all = plant_peaks(0.01, "--train_all")
    result = claim.judge(gather(plant_peaks(share), on_all))
    assert result.verdict is verdict
