"""Verdicts on decoders, of runs with planted scores."""

from pathlib import Path

import pytest

from tests.studies.decoders.planted import Run, make_cells, make_results
from tfcomp.studies.decoders import command as decoders
from tfcomp.studies.decoders.cells import (
    EXACT,
    SUPPORTS,
    judge_expectations,
)


def make_runs(
    model: str,
    ood: list[float],
    composition: str = "sum",
    worst_id: float = 0.02,
    **flags: object,
) -> list[Run]:
    """Runs of a decoder; the mean image has half the error of a blank one.

    Of seed 0 alone R² is recorded.
    """
    flags = {
        "dataset": "composed",
        "composition": composition,
        "region": "wiedemer:orthogonal:x_a+y_a,x_b+y_b",
        "model": model,
    } | flags
    # Of training images, whose mean is another one.
    references = {
        "mean_image": {"id": 0.5, "ood": 0.75},
        "additive": {"id": 0.25, "ood": 0.25},
    }
    r2 = {"r2": {"id": 1 - worst_id / 0.5, "ood": 1 - ood[0] / 0.5}}
    return [
        (
            flags | {"seed": seed},
            {
                "id": {"relative_mse": worst_id if seed == 0 else 0.01},
                "ood": {"relative_mse": error},
                "train": {"weights": 10, "seconds": 1.0},
                "references": references,
            }
            | (r2 if seed == 0 else {}),
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
        (GOOD, 0.06, "undecided"),  # an R^2 of 0.88 in one seed: two are left
        ([*GOOD, 0.011], 0.06, "composes"),  # and here three
        ([0.01, 0.01, 0.01], 0.02, "composes"),  # alike to the last digit
    ],
)
def test_verdict(ood: list[float], worst_id: float, verdict: str) -> None:
    (cell,) = make_cells(make_runs("additive", ood, worst_id=worst_id))
    assert cell.verdict == verdict and cell.expected == "composes"
    kept = ood if worst_id < 0.05 else ood[1:]
    assert cell.estimate is not None
    values = list(cell.estimate.values.values())
    assert values == pytest.approx([1 - e / 0.5 for e in kept])


def test_none_fits() -> None:
    runs = make_runs("additive", GOOD)
    for _, metrics in runs:
        metrics["id"]["relative_mse"] = 0.1
        metrics.get("r2", {})["id"] = 0.8
    (cell,) = make_cells(runs)
    assert cell.verdict == "not fitted" and cell.estimate is None


@pytest.mark.parametrize(
    ("planted", "verdict"),  # of the matching decoder, of the others
    [
        ({"additive": GOOD, "mlp": BAD}, ("reproduced", "reproduced")),
        ({"additive": BAD, "mlp": BAD}, ("refuted", "reproduced")),
        ({"additive": GOOD, "mlp": GOOD}, ("reproduced", "refuted")),
        ({"additive": GOOD, "mlp": GOOD[:2]}, ("reproduced", "undecided")),
        # One that is decided otherwise refutes, whatever others leave open.
        (
            {"additive": GOOD, "mlp": GOOD, "cnn": BAD[:2]},
            ("reproduced", "refuted"),
        ),
        ({"mlp": BAD}, ("not run", "reproduced")),
        # These may do either.
        ({"slots": GOOD, "attention": GOOD}, ("not run", "not run")),
    ],
)
def test_truth_table(
    planted: dict[str, list[float]], verdict: tuple[str, str]
) -> None:
    runs = [
        run for name, ood in planted.items() for run in make_runs(name, ood)
    ]
    first, *others, every = judge_expectations(make_cells(runs))
    assert first == ["composed sum orthogonal", *verdict]
    assert {row[1] for row in others} == {"not run"}
    # Splits that were not run leave the whole open, unless one refutes it.
    left = {"reproduced": "undecided"}
    assert every == ["all", *(left.get(found, found) for found in verdict)]


def test_the_whole_needs_every_split() -> None:
    runs = []
    for composition, exact in EXACT.items():
        for support in SUPPORTS:
            region = f"wiedemer:{support}:x_a+y_a,x_b+y_b"
            for name, ood in ((exact, GOOD), ("mlp", BAD)):
                runs += make_runs(name, ood, composition, region=region)
    *rows, every = judge_expectations(make_cells(runs))
    assert len(rows) == 5
    assert every == ["all", "reproduced", "reproduced"]


def test_runs_of_other_settings_are_cases_of_their_own() -> None:
    wide = make_runs("additive", BAD, width=64)
    narrow = make_runs("additive", GOOD, width=32)
    cells = make_cells([*wide, *narrow])
    assert [cell.split for cell in cells] == [
        "composed sum orthogonal (width 64)",
        "composed sum orthogonal (width 32)",
    ]
    assert [cell.verdict for cell in cells] == ["fails", "composes"]


@pytest.mark.parametrize("subset", ["id", "ood"])
def test_a_seed_without_scores_is_not_left_out(subset: str) -> None:
    runs = make_runs("additive", [*GOOD, 0.011])
    del runs[2][1][subset]
    (cell,) = make_cells(runs)
    # Without an ID score a run does not fit; without an OOD score it does, and
    # a mean over the others could flatter.
    assert len(cell.fitted) == {"id": 3, "ood": 4}[subset]
    assert cell.verdict == {"id": "composes", "ood": "undecided"}[subset]


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
        "tfcomp.tables.read_results", lambda *_, **__: make_results(runs)
    )
    flags = ["decoders", "--runs=somewhere", f"--output={tmp_path}"]
    assert decoders.main(flags) == 0
    text = (tmp_path / "decoders.md").read_text()
    assert "| additive |  | yes 0.98 |" in text
    assert "| mlp | ? -0.30 (2 of 3) | no -0.20 |" in text
    assert "| composed sum orthogonal | reproduced | reproduced |" in text
    assert "| composed product orthogonal | reproduced | undecided |" in text
    assert "| all | undecided | undecided |" in text
    assert "| decoder | composed: weights | composed: s of training |" in text
    assert "| mlp | 10 | 1 |" in text
    row = (tmp_path / "decoders.csv").read_text().splitlines()[1].split(",")
    assert row[:5] == [
        "composed product orthogonal",
        "mlp",
        "3",
        "2",
        "undecided",
    ]
    assert (tmp_path / "decoders.png").read_bytes()[:4] == b"\x89PNG"


def test_occlusion_is_expected_where_objects_meet() -> None:
    (cell,) = make_cells(make_runs("mlp", BAD, "occlusion"))
    assert cell.split == "composed occlusion orthogonal"
    assert cell.expected is None
    region = "wiedemer:diagonal:.4:x_a+y_a,x_b+y_b"
    (cell,) = make_cells(make_runs("mlp", BAD, "occlusion", region=region))
    assert cell.split == "composed occlusion diagonal:.4"
    assert cell.expected == "fails"
