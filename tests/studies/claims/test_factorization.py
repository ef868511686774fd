"""C6 to C8: trends after the code, in one setting, that could be seen."""

import pytest

from tests.studies.claims.planted import Run, judge_runs, make_runs
from tfcomp.statistics.verdicts import Verdict

FALLING = [1.0, 0.9, 0.8, 0.7, 0.6]
OLD = ("--epochs=25",)


def plant(values: list[float], *flags: str, **kwargs) -> list[Run]:
    """Runs of both codes with a value per stage, and none at the start."""
    even = [values[0]] * len(values)
    start = {"factorization": even, "probe_r2_grid": even}
    numbers = {
        "factorization": values,
        "probe_r2_grid": values,
        "probe_r2_ood": values,
        "start": start,
    }
    return make_runs("cnns", *flags, **(numbers | kwargs))


def test_the_start_has_no_say() -> None:
    """What an untrained network does, too, is no fall."""
    start = {"factorization": FALLING, "probe_r2_grid": FALLING}
    same = plant(FALLING, start=start)
    for name in ("C6", "C8"):
        for part in judge_runs(name, same).parts:
            if part.decides:
                assert part.estimate.mean == pytest.approx(0)
                assert part.verdict is not Verdict.REPRODUCED


def test_a_fall_in_the_image_alone_is_none_of_a_representation() -> None:
    late = [1.0, 0.9, 0.9, 0.9, 0.6]
    result = judge_runs("C8", plant(late))
    assert result.verdict is Verdict.REFUTED
    beside = [p for p in result.parts if p.label.endswith("to the image")]
    assert all(part.verdict is Verdict.REPRODUCED for part in beside)


def test_a_stray_depth_does_not_undo_the_others() -> None:
    runs = plant(FALLING), plant(FALLING, "--depth=5", seeds=[0])
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
    rising = FALLING[::-1]
    old = [plant(rising, f"--depth={depth}", *OLD, fit=0.3) for depth in (2, 3)]
    evidence = plant(FALLING), plant(FALLING, "--depth=6"), *old
    result = judge_runs("C6", *evidence)
    assert result.verdict is Verdict.REPRODUCED
    labels = {part.of for part in result.parts if part.decides}
    assert labels == {
        f"{c}, depth {d}" for c in ("bump", "ramp") for d in (4, 6)
    }
    beside = {part.of for part in result.parts} - labels
    assert {label.split(",")[1] for label in beside} == {" depth 2", " depth 3"}


def make_drop(drop: float) -> list[float]:
    return [1.0, 1.0, 0.99, 0.99 - drop, 0.98 - drop]


def test_depth_6_is_preferred() -> None:
    shallow, deep = plant(make_drop(0.3), "--depth=2"), make_drop(0.1)
    runs = [shallow, plant(deep, "--depth=6")]
    assert judge_runs("C7", *runs).verdict is Verdict.REPRODUCED
    for stray in (
        plant(make_drop(0.5), "--depth=10", seeds=[0]),
        plant(make_drop(0.5), "--depth=10"),
        # More depths, but of an old setting that is not fitted.
        [
            run
            for depth in (2, 3, 4)
            for run in plant(deep, f"--depth={depth}", *OLD, fit=0.3)
        ],
    ):
        part = judge_runs("C7", *runs, stray).parts[0]
        assert part.label == "ramp, depth 2 less depth 6"
        assert part.verdict is Verdict.REPRODUCED
