"""C9 and C10: what the code itself has is no warp of the network."""

import pytest

from tests.studies.claims.planted import Run, gather, judge_runs, make_runs
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.columns import read_shift


def plant(values: list[float], name: str = "cnns") -> list[Run]:
    """Runs of both codes with these stages, OOD less ID, the code first."""
    none = [0.0] * len(values)
    return make_runs(
        name,
        log_volume_median_id=none,
        log_volume_median_ood=values,
        log_volume_median_deviation_id=none,
        log_volume_median_deviation_ood=values,
        log_volume_sd_id=none,
        log_volume_sd_ood=values,
        start={
            "log_volume_median_deviation_id": none,
            "log_volume_median_deviation_ood": [values[0]] * len(values),
        },
    )


def test_the_border_of_the_code_is_no_warp() -> None:
    inherited = plant([0.15] * 5)
    assert judge_runs("C9", inherited).verdict is Verdict.REFUTED
    (first, *_) = judge_runs("C9", inherited).parts
    assert first.estimate.mean == pytest.approx(0)


def test_the_code_is_subtracted_at_every_stage() -> None:
    group, _ = gather(plant([0.2, 0.5, -0.1, 0.2, 0.0])).groups
    expected = [0.0, 0.3, -0.3, 0.0, -0.2]
    assert read_shift(group).iloc[0].tolist() == pytest.approx(expected)


def test_the_constant_of_the_code_gives_no_sign() -> None:
    # Positive at all stages for the CNN, but only by the code's 0.0885.
    cnn = plant([0.0885] * 5)
    mlp = plant([0.0885, *[-0.5] * 4], "mlps")
    result = judge_runs("C10", cnn, mlp)
    assert result.verdict is Verdict.REFUTED
    assert "sign for the CNN is not known" in result.parts[1].reason


@pytest.mark.parametrize(
    ("cnn", "mlp", "verdict"),
    [
        (-0.5, 0.3, Verdict.REPRODUCED),
        (0.5, -0.3, Verdict.REPRODUCED),
        (-0.5, 0.05, Verdict.REFUTED),  # within the margin
        (0.5, -0.05, Verdict.REFUTED),
        (-0.05, 0.3, Verdict.REFUTED),
        (-0.5, -0.3, Verdict.REFUTED),
    ],
)
def test_signs_beyond_a_margin(cnn, mlp, verdict) -> None:
    code = 0.0885
    first = plant([code, *[code + cnn] * 4])
    second = plant([code, *[code + mlp] * 4], "mlps")
    assert judge_runs("C10", first, second).verdict is verdict
