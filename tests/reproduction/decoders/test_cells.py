"""Verdicts on decoders, of runs with planted scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduction.decoders import cells
from reproduction.decoders.command import main
from tests.reproduction.decoders.planted import Run, make_table
from tests.tables.test_read import write_run
from tfcomp.config.errors import ConfigError


def make_runs(
    model: str,
    ood: list[float],
    composition: str = "sum",
    worst_id: float = 0.02,
    **flags: object,
) -> list[Run]:
    """Runs of a decoder, whose mean image has half the error of a blank one."""
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
    train, runs = {"weights": 10, "seconds": 1.0}, []
    for seed, error in enumerate(ood):
        fit = worst_id if seed == 0 else 0.01
        metrics = {"id": {"relative_mse": fit}, "ood": {"relative_mse": error}}
        metrics |= {"train": train, "references": references}
        if seed == 0:  # R^2 of it alone
            metrics["r2"] = {"id": 1 - fit / 0.5, "ood": 1 - error / 0.5}
        runs.append((flags | {"seed": seed}, metrics))
    return runs


def judge(runs: list[Run]) -> list[dict[str, Any]]:
    return cells.list_cells(make_table(runs))


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
        (GOOD[:1], 0.06, "not fitted"),
    ],
)
def test_verdict(ood: list[float], worst_id: float, verdict: str) -> None:
    (cell,) = judge(make_runs("additive", ood, worst_id=worst_id))
    assert cell["verdict"] == verdict and cell["expected"] == "composes"
    kept = ood if worst_id < 0.05 else ood[1:]
    assert cell["fitted"] == len(kept)
    expected = 1 - np.mean(kept or np.nan) / 0.5
    assert cell["ood_r2"] == pytest.approx(expected, nan_ok=True)


def test_controls_on_all_combinations_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_run(tmp_path / "r", "--train_all=true")
    damaged = write_run(tmp_path / "s", "--seed=1") / "metrics.json"
    damaged.write_text("{")
    with pytest.raises(ConfigError, match="finished runs without --train_all"):
        main(["decoders", f"--runs={tmp_path}", f"--output={tmp_path / 'o'}"])
    assert "left out: s cannot be read" in capsys.readouterr().err


def test_r2_of_other_images_changes_no_cell() -> None:
    flags = {"dataset": "gaussian_bumps", "region": "corner:9"}
    runs = make_runs("cnn", GOOD, **flags)
    others = make_runs("mlp", [0.3] * 5, sigma=3.0, **flags)
    for _, metrics in others:
        metrics["r2"] = {"id": 0.99, "ood": -3.0}
    (before,), (after, _) = judge(runs), judge(runs + others)
    assert after["decoder"] == "cnn" and after["ood_r2"] == before["ood_r2"]


def test_few_fitted_runs_and_copies_decide_nothing() -> None:
    runs = make_runs("additive", [*GOOD, 0.5, 0.5, 0.5, 0.5])
    for _, metrics in runs[3:]:
        metrics["id"]["relative_mse"] = 0.4
    (cell,) = judge(runs)
    assert (cell["fitted"], cell["verdict"]) == (3, "undecided")
    runs = make_runs("additive", GOOD)
    for place, (_, metrics) in enumerate(runs):
        metrics["id"] |= {f"other_{n}": float(n + place) for n in range(10)}
    assert judge(runs)[0]["verdict"] == "composes"
    copy = (runs[1][0] | {"seed": 7}, runs[1][1])
    assert judge([*runs, copy])[0]["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("planted", "verdict"),  # of the matching decoder, of the others
    [
        ({"additive": GOOD, "mlp": BAD}, ("reproduced", "reproduced")),
        ({"additive": BAD, "mlp": GOOD}, ("refuted", "refuted")),
        ({"additive": GOOD, "mlp": GOOD[:2]}, ("reproduced", "undecided")),
        # One that is decided otherwise refutes, whatever others leave open.
        (
            {"additive": GOOD, "mlp": GOOD, "cnn": BAD[:2]},
            ("reproduced", "refuted"),
        ),
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
    first, *others, every = cells.judge_expectations(judge(runs))
    assert first == ["composed sum orthogonal", *verdict]
    assert {row[1] for row in others} == {"not run"}
    # Splits that were not run leave the whole open, unless one refutes it.
    left = {"reproduced": "undecided"}
    assert every == ["all", *(left.get(found, found) for found in verdict)]


def test_the_whole_needs_every_split() -> None:
    runs = []
    for composition, exact in cells.EXACT.items():
        for support in cells.SUPPORTS:
            region = f"wiedemer:{support}:x_a+y_a,x_b+y_b"
            for name, ood in ((exact, GOOD), ("mlp", BAD)):
                runs += make_runs(name, ood, composition, region=region)
    *rows, every = cells.judge_expectations(judge(runs))
    assert len(rows) == 5
    assert every == ["all", "reproduced", "reproduced"]
    # Objects that never meet are not told from others by their order.
    for support, expected in (("orthogonal", None), ("diagonal:.4", "fails")):
        split = f"composed occlusion {support}"
        assert cells.find_expected(split, "mlp") == expected


def test_runs_of_other_settings_are_cases_of_their_own() -> None:
    wide = make_runs("additive", BAD, width=64)
    narrow = make_runs("additive", GOOD, width=32)
    found = [(c["split"], c["verdict"]) for c in judge([*wide, *narrow])]
    assert found == [
        ("composed sum orthogonal (width 64)", "fails"),
        ("composed sum orthogonal (width 32)", "composes"),
    ]
    # Other images are another column, whatever their seeds, for any decoder.
    for first in (0, cells.FRESH):
        runs = make_runs("cnn", GOOD) + make_runs("mlp", BAD, num_positions=8)
        for flags, _ in runs[3:]:
            flags["seed"] += first
        found = [cell["split"] for cell in judge([*narrow, *runs])]
        split = "composed sum orthogonal"
        assert found == [split, split, f"{split} (num_positions 8)"]


@pytest.mark.parametrize("subset", ["id", "ood"])
def test_a_seed_without_scores_is_not_left_out(subset: str) -> None:
    runs = make_runs("additive", [*GOOD, 0.011])
    del runs[2][1][subset]
    (cell,) = judge(runs)
    # Without an ID score a run does not fit; without an OOD score it does, and
    # a mean over the others could flatter.
    assert cell["fitted"] == {"id": 3, "ood": 4}[subset]
    assert cell["verdict"] == {"id": "composes", "ood": "undecided"}[subset]
