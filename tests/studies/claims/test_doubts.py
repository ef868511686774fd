"""What the page of results says against its own verdicts, from the evidence."""

from pathlib import Path
from statistics import fmean

import pytest

from tfcomp.studies.claims import read_evidence
from tfcomp.studies.claims.controls import FIRST_SEED
from tfcomp.studies.claims.evidence import Run

DOCS = Path(__file__).parents[3] / "docs"
PAGE = " ".join((DOCS / "results.md").read_text("utf-8").split())


def read_fitted(sweep: str) -> list[Run]:
    evidence = read_evidence([str(DOCS / f"evidence/{sweep}.tar.xz")])
    return [
        run
        for run in evidence.runs
        if run.seed >= FIRST_SEED and run.get("id/relative_mse") < 0.05
    ]


@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_probes_of_hidden_stages_hardly_fall(code: str) -> None:
    falls = []
    for run in read_fitted(f"donut_{code}"):
        trained, start = (
            each.measures["probe_r2_grid"] for each in (run, run.start)
        )
        net = [a - b for a, b in zip(trained, start, strict=True)]
        falls.append(net[1] - net[-2])  # the code is before stage 0
    assert f"{code} {fmean(falls):.4f}" in PAGE


def test_untrained_networks_share_as_much() -> None:
    runs = read_fitted("donut_bump")
    shown = [
        f"{fmean(each.measures[name] for each in found):.3f}"
        for name in ("sharing_far_r2", "multiple_peaks_ood")
        for found in (runs, [run.start for run in runs])
    ]
    assert "R² is {} after training and {} before it".format(*shown) in PAGE
    assert "share is {} after training and {} before it".format(*shown[2:]) in (
        PAGE
    )


def test_variance_alone_composes() -> None:
    arms: dict[tuple[float, float], dict[int, Run]] = {}
    for run in read_fitted("penalties"):
        key = run.flags["entropy_weight"], run.flags["variance_weight"]
        arms.setdefault(key, {})[run.seed] = run
    alone, both = arms[0.0, 0.01], arms[0.1, 0.01]
    composing = [
        run
        for run in alone.values()
        if run.get("ood/position_accuracy") > 0.95
        and run.get("ood/relative_mse") < 0.1
    ]
    assert f"passes the rule of C11 in {len(composing)} of {len(alone)}" in PAGE
    seeds = alone.keys() & both.keys()
    better = [
        seed
        for seed in seeds
        if alone[seed].get("ood/mse") < both[seed].get("ood/mse")
    ]
    assert f"smaller in {len(better)} of {len(seeds)} pairs" in PAGE
