"""Verdicts on decoders, of runs with planted scores."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines import decoders
from tfcomp.claims.decoder_table import judge_truth, list_cases
from tfcomp.claims.evidence import Evidence, Run


def make_runs(
    model: str,
    ood: list[float],
    composition: str = "sum",
    worst_id: float = 0.02,
) -> list[Run]:
    """Runs of a decoder; the mean image has half the error of a blank one."""
    flags = {
        "dataset": "composed",
        "composition": composition,
        "region": "wiedemer:orthogonal:x_a+y_a,x_b+y_b",
        "model": model,
    }
    means = {f"mean_image_relative_mse_{s}": 0.5 for s in ("id", "ood")}
    return [
        Run(
            Path(f"{model}_{seed}"),
            flags | {"seed": seed},
            {
                "id": {"relative_mse": worst_id if seed == 0 else 0.01},
                "ood": {"relative_mse": error},
                "train": {"weights": 10, "seconds": 1.0},
            },
            means | {"additive_relative_mse_ood": 0.25},
        )
        for seed, error in enumerate(ood)
    ]


GOOD, BAD = [0.010, 0.012, 0.011], [0.50, 0.70, 0.60]


@pytest.mark.parametrize(
    ("ood", "worst_id", "verdict"),
    [
        (GOOD, 0.02, "composes"),
        (BAD, 0.02, "fails"),
        ([0.01, 0.2, 0.01], 0.02, "undecided"),
        (GOOD[:2], 0.02, "undecided"),
        (GOOD, 0.06, "not fitted"),  # an R^2 of 0.88 in one seed
        ([0.01, 0.01, 0.01], 0.02, "composes"),  # alike to the last digit
    ],
)
def test_verdict(ood: list[float], worst_id: float, verdict: str) -> None:
    (case,) = list_cases(make_runs("additive", ood, worst_id=worst_id))
    assert case.verdict == verdict and case.expected == "composes"
    assert case.compute_r2("ood")[0] == pytest.approx(1 - ood[0] / 0.5)


@pytest.mark.parametrize(
    ("planted", "verdict"),
    [
        ({"additive": GOOD, "mlp": BAD}, "reproduced"),
        ({"additive": BAD, "mlp": BAD}, "refuted"),
        ({"additive": GOOD, "mlp": GOOD}, "refuted"),
        ({"additive": GOOD, "mlp": GOOD[:2]}, "undecided"),
        ({"mlp": BAD}, "undecided"),  # nobody matches the data
        ({"additive": GOOD, "slots": GOOD}, "reproduced"),  # may do either
    ],
)
def test_truth_table(planted: dict[str, list[float]], verdict: str) -> None:
    runs = [
        run for name, ood in planted.items() for run in make_runs(name, ood)
    ]
    assert judge_truth(list_cases(runs)) == verdict


def test_tables_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        *make_runs("additive", GOOD),
        *make_runs("mlp", BAD),
        *make_runs("product", GOOD, "product"),
        *make_runs("mlp", BAD, "product", worst_id=0.3),
    ]
    monkeypatch.setattr(
        "tfcomp.claims.read_some_evidence", lambda _: Evidence(tuple(runs))
    )
    flags = ["decoders", "--runs=somewhere", f"--output={tmp_path}"]
    assert decoders.main(flags) == 0
    text = (tmp_path / "decoders.md").read_text()
    assert "| additive |  | yes 0.98 |" in text
    assert "| mlp | – -0.20 | no -0.20 |" in text
    assert "Truth table: reproduced" in text
    row = (tmp_path / "decoders.csv").read_text().splitlines()[1].split(",")
    assert row[:5] == [
        "composed product orthogonal",
        "mlp",
        "3",
        "not fitted",
        "fails",
    ]
    assert (tmp_path / "decoders.png").read_bytes()[:4] == b"\x89PNG"


def test_occlusion_is_expected_where_objects_meet() -> None:
    (case,) = list_cases(make_runs("mlp", BAD, "occlusion"))
    assert case.split == "composed occlusion orthogonal"
    assert case.expected is None
    run = case.runs[0]
    region = "wiedemer:diagonal:.4:x_a+y_a,x_b+y_b"
    wider = replace(run, flags=run.flags | {"region": region})
    (case,) = list_cases([wider])
    assert case.split == "composed occlusion diagonal:.4"
    assert case.expected == "fails"
