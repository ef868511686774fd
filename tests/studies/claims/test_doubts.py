"""What the page of results says against its own verdicts, from the evidence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tfcomp

DOCS = Path(__file__).parents[3] / "docs"
PAGE = " ".join((DOCS / "results.md").read_text("utf-8").split())


def read_fitted(sweep: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Runs of the first round, their numbers, and scores [runs, names]."""
    runs, numbers = tfcomp.read_runs(DOCS / f"evidence/{sweep}.csv.xz")
    scores = numbers[(numbers["when"] == "end") & (numbers["stage"] == "")]
    path = scores["subset"] + "/" + scores["name"]
    scores = scores.assign(path=path).pivot(
        index="run", columns="path", values="value"
    )
    runs = runs.set_index("run")
    is_fitted = scores["id/relative_mse"].reindex(runs.index) < 0.05
    return runs[is_fitted & (runs["round"] == 1)], numbers, scores


@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_probes_of_hidden_stages_hardly_fall(code: str) -> None:
    runs, numbers, _ = read_fitted(f"donut_{code}")
    chosen = numbers["run"].isin(runs.index) & (
        numbers["name"] == "probe_r2_grid"
    )
    wide = numbers[chosen].pivot(
        index="run", columns=["when", "stage"], values="value"
    )
    net = wide["end"] - wide["start"]
    last = sorted(stage for stage in net if stage.startswith("stage_"))[-1]
    fall = (net["stage_0"] - net[last]).mean()
    assert f"{code} {fall:.4f}" in PAGE


def test_untrained_networks_share_as_much() -> None:
    runs, numbers, _ = read_fitted("donut_bump")
    numbers = numbers[numbers["run"].isin(runs.index)]
    shown = []
    for name in ("sharing_far_r2", "multiple_peaks_ood"):
        means = numbers[numbers["name"] == name].groupby("when")["value"].mean()
        shown += [f"{means[when]:.3f}" for when in ("end", "start")]
    assert "R² is {} after training and {} before it".format(*shown) in PAGE
    assert "share is {} after training and {} before it".format(*shown[2:]) in (
        PAGE
    )


def test_variance_alone_composes() -> None:
    runs, _, scores = read_fitted("penalties")
    weights = runs["entropy_weight"], runs["variance_weight"]
    arms = [
        runs[(weights[0] == entropy) & (weights[1] == 0.01)].join(scores)
        for entropy in (0.0, 0.1)
    ]
    alone, both = (arm.set_index("seed") for arm in arms)
    composing = (alone["ood/position_accuracy"] > 0.95) & (
        alone["ood/relative_mse"] < 0.1
    )
    words = f"passes the rule of C11 in {composing.sum()} of {len(alone)}"
    assert words in PAGE
    seeds = alone.index.intersection(both.index)
    better = alone["ood/mse"][seeds] < both["ood/mse"][seeds]
    assert f"smaller in {better.sum()} of {len(seeds)} pairs" in PAGE


@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_probes_of_id_positions_fall(code: str) -> None:
    runs, numbers, _ = read_fitted(f"donut_{code}")
    probes = numbers[
        numbers["run"].isin(runs.index)
        & (numbers["name"] == "probe_r2_ood")
        & (numbers["when"] == "end")
    ]
    means = probes.groupby("stage")["value"].mean()
    last = sorted(stage for stage in means.index if stage[:6] == "stage_")[-1]
    assert f"{means['stage_0']:.2f}" == "1.00"
    assert f"{means[last]:.2f} ({code})" in PAGE


def test_settings_of_penalties_have_the_order_of_the_paper() -> None:
    paths = sorted((DOCS / "evidence").glob("penalties_fresh*.csv.xz"))
    runs, numbers = tfcomp.read_runs(*paths)
    scores = numbers[numbers["name"] == "relative_mse"].pivot(
        index="run", columns="subset", values="value"
    )
    fitted = runs.set_index("run").join(scores).query("id < 0.05")
    weights = fitted["entropy_weight"] > 0, fitted["variance_weight"] > 0
    arms = {
        (False, False): "none",
        (True, False): "entropy",
        (False, True): "variance",
        (True, True): "both",
    }
    names = [arms[pair] for pair in zip(*weights, strict=True)]
    logs = np.log(fitted[["id", "ood"]])
    means = np.exp(logs.groupby(np.array(names)).mean())
    assert list(means["id"].sort_values().index) == [
        "none",
        "entropy",
        "both",
        "variance",
    ]
    ood = means["ood"].sort_values(ascending=False)
    assert list(ood.index) == ["none", "entropy", "variance", "both"]
    shown = (f"{name} {value:.3g}" for name, value in ood.items())
    assert f"OOD: {', '.join(shown)}." in PAGE


def test_interaction_and_units_of_stripes() -> None:
    runs, numbers = tfcomp.read_runs(DOCS / "evidence/stripes_fresh.csv.xz")
    numbers = numbers.merge(runs[["run", "num_bumps"]], on="run")
    ends = numbers[numbers["when"] == "end"]
    parts = ends[ends["name"] == "interaction_r2_ood"]
    means = parts.groupby("num_bumps")["value"].mean()
    *first, last = (f"{value:.2f}" for value in means)
    assert f"{', '.join(first)} and {last}" in PAGE
    units = numbers[numbers["name"] == "product_less_sum"].pivot_table(
        index="num_bumps", columns=["when", "stage"], values="value"
    )
    rise = {
        w: units[w]["stage_4"] - units[w]["stage_0"]
        for w in units.columns.levels[0]
    }
    assert "half of the number comes from the untrained networks" in PAGE
    assert (
        (-rise["start"] / (rise["end"] - rise["start"]))[[50, 100]]
        .round(1)
        .eq(0.5)
        .all()
    )
    hidden = units["end"][["stage_0", "stage_1", "stage_2", "stage_3"]]
    assert (hidden.diff(axis=1).iloc[:, 1:].loc[100] < 0).all()
