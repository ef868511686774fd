"""Splits by certificate, of runs with planted scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduction.decoders.report import write_splits
from reproduction.decoders.splits import list_pairs, list_rows
from tests.reproduction.decoders.planted import Run, make_table

# Regions to their certified share.
SHARES = {
    "x:#2,y:#2": 1.0,
    "wiedemer:diagonal:.4": 0.31,
    "montero:extrapolation": 0.0,
    "shape:#0,x:#0": 0.9,
    "random:.8:1": 0.6,
}
REGIONS = list(SHARES)


def make_runs(
    region: str,
    model: str = "acting",
    ood: float = 0.95,
    ids: tuple[float, ...] = (0.99, 0.98, 0.97),
    first_seed: int = 200,
    nearest: float = 0.375,
) -> list[Run]:
    """Runs whose mean image has half the error of a blank one."""
    flags = {"dataset": "sprites", "region": region, "model": model}
    certificate = {"1": {"certified": SHARES[region], "missing_rank": 2}}
    # Of the mean image of training.
    errors = {"additive": 0.25, "nearest_id": nearest, "mean_image": 0.3}
    runs = []
    for place, value in enumerate(ids):
        r2 = {"id": value, "ood": ood + 0.01 * place}
        metrics: dict[str, Any] = {
            "r2": r2,
            "certificate": certificate,
            "coverage": {"pixels": 0.75},
            "points": {"id": 1000, "ood": 24},
            "references": {name: {"ood": e} for name, e in errors.items()},
            **{n: {"relative_mse": 0.5 * (1 - r2[n])} for n in r2},
        }
        runs.append((flags | {"seed": first_seed + place}, metrics))
    return runs


def solve(runs: list[Run]) -> pd.DataFrame:
    return pd.DataFrame(list_rows(make_table(runs)))


def format_rows(runs: list[Run], folder: Path) -> str:
    return write_splits(list_rows(make_table(runs)), folder, "solved")


def test_sprites_of_other_shapes_are_other_data() -> None:
    shapes = {"sprite_shapes": "heart,triangle,l"}
    runs = make_runs(REGIONS[0])
    new = make_runs(REGIONS[0], ood=0.5)
    table = make_table(runs + [(f | shapes, numbers) for f, numbers in new])
    for data, mean in (("sprites", 0.96), ("sprites:heart,triangle,l", 0.51)):
        row, *_ = list_rows(table, data)
        assert row["split"] == REGIONS[0]
        assert row["r2"] == pytest.approx(mean)


def test_runs_of_two_settings_are_never_averaged() -> None:
    runs = make_runs(REGIONS[0], "cnn")
    wide = make_runs(REGIONS[0], "cnn", ood=0.2)[:2]
    wide = [(flags | {"width": 99}, metrics) for flags, metrics in wide]
    # Nor compared with runs on other images.
    sizes, large = {"sprite_sizes": "3,6,40,32,32"}, {"grid_size": 64}
    wide += [(f | sizes, m) for f, m in make_runs(REGIONS[0], "mlp")[:1]]
    wide += [(f | large, m) for f, m in make_runs(REGIONS[0], "slots")[:1]]
    for both in (runs + wide, wide + runs):
        row, *others = solve(both).to_dict("records")
        assert all(r["decoder"].startswith("(") for r in others)
        assert (row["decoder"], row["runs"]) == ("cnn", 3)
        assert row["r2"] == pytest.approx(0.96)


def test_rounds_of_seeds_stand_beside_each_other(tmp_path: Path) -> None:
    first = make_runs(REGIONS[0], ood=0.5)
    second = make_runs(REGIONS[0], ood=0.8, first_seed=210)
    rows = solve([*first, *second])
    assert rows["first_seed"][:2].tolist() == [210, 200]
    assert rows["r2"][:2].tolist() == pytest.approx([0.81, 0.51])
    text = format_rows([*first, *second], tmp_path)
    assert "; first look 0.51 " in text
    # Version 1 had other rules, and is no round of this one.
    older = make_runs(REGIONS[0], ood=0.2, first_seed=0)
    rows = solve([*older, *first]).dropna(subset="first_seed")
    assert rows["r2"].tolist() == pytest.approx([0.51])


def test_a_run_that_does_not_fit_has_no_say_and_is_counted(
    tmp_path: Path,
) -> None:
    runs = make_runs(REGIONS[0], ids=(0.5, 0.95, 0.91, 0.89))
    row = solve(runs).iloc[0]
    assert (row["runs"], row["fitted"]) == (4, 2)
    assert (row["fitted_at_85"], row["fitted_at_95"]) == (3, 1)
    assert row["r2"] == pytest.approx(0.965)
    assert ", 2 of 4 |" in format_rows(runs, tmp_path)
    text = format_rows(make_runs(REGIONS[0], ids=(0.5, 0.2)), tmp_path)
    assert "| not fitted (0 of 2) |" in text


def test_facts_are_those_that_the_runs_have_recorded(tmp_path: Path) -> None:
    rows = solve(make_runs(REGIONS[0]))
    row = rows.iloc[0]
    assert (row["training_images"], row["missing_images"]) == (1000, 2)
    assert (row["lit_pixels"], row["certified_1"]) == (0.75, 1.0)
    assert np.isnan(row["certified_2"]) and np.isnan(row["certified_3"])
    # R^2 is about the mean image, whose error is half of a blank one.
    references = rows.set_index("decoder")["r2"][1:].to_dict()
    expected = {"(additive)": 0.5, "(nearest_id)": 0.25}
    assert references == pytest.approx(expected)
    runs = make_runs(REGIONS[0])
    for _, metrics in runs:
        for name in ("points", "certificate", "coverage", "references"):
            del metrics[name]
        del metrics["r2"]  # as in runs of version 0.1
    text = format_rows(runs, tmp_path)
    assert "| 0% | – | – | – | – |" in text
    others = [({"dataset": "gaussian_bumps"}, {})]
    assert format_rows(others, tmp_path / "none") == ""


def test_splits_are_in_the_order_of_what_they_determine() -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[0], "cnn", 0.2, first_seed=0)
    # Fresh seeds of a decoder take the place of older ones.
    runs += make_runs(REGIONS[0], "acting", -1.0, first_seed=0)
    rows = solve(runs).dropna(subset="first_seed")
    shares = rows["certified_1"].unique().tolist()
    assert shares == sorted(SHARES.values(), reverse=True)
    first = rows[rows["split"] == REGIONS[0]].set_index("decoder")["r2"]
    assert first.to_dict() == pytest.approx({"acting": 0.96, "cnn": 0.21})


@pytest.mark.parametrize(
    ("ood", "nearest", "expected"),
    [
        (0.95, 0.375, "yes"),
        (0.95, 0.01, "no"),  # the nearest image has .98
        (0.95, 0.02, "?"),  # and here .96, as its mean
        (0.5, 0.375, "no"),
        (0.89, 0.375, "?"),
    ],
)
def test_a_split_is_solved_above_the_best_reference(
    ood: float, nearest: float, expected: str
) -> None:
    rows = solve(make_runs(REGIONS[0], ood=ood, nearest=nearest))
    assert rows["solves"][0] == expected


@pytest.mark.parametrize(("slope", "ordered"), [(1.0, 4), (-1.0, 0), (0.0, 0)])
def test_pairs_in_order_are_counted(slope: float, ordered: int) -> None:
    runs = []
    for region, share in SHARES.items():
        runs += make_runs(region, ood=0.5 * slope * share)
        runs += make_runs(region, "cnn", ood=0.5)
    expected = ["acting", "5", "4", f"{ordered} of 4"]
    assert list_pairs(solve(runs)) == [expected, ["cnn", "5", "4", "0 of 4"]]
    # Splits that had been run before, and those without a rival, do not count.
    runs += make_runs(REGIONS[3], "slots", first_seed=0)
    acting, _ = list_pairs(solve(runs))[:2]
    assert acting[1:3] == ["4", "3"]
    alone = [r for region in REGIONS for r in make_runs(region)]
    assert list_pairs(solve(alone)) == []
