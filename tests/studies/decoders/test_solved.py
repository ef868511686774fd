"""Splits by certificate, of runs with planted scores."""

import csv
import re
from pathlib import Path

import pytest

from tests.studies.decoders.planted import Run, make_groups
from tfcomp.studies.decoders.report import (
    format_cell,
    format_splits,
    list_rows,
    write_splits,
)
from tfcomp.studies.decoders.splits import (
    Split,
    count_ordered,
    list_new,
    list_splits,
)

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
    share: float | None = None,
    **r2: float,
) -> list[Run]:
    """Runs with R^2 of ID and of held-out points.

    The mean image has half the error of a blank one.
    """
    certified = SHARES.get(region, share)
    flags = {"dataset": "sprites", "region": region, "model": model}
    return [
        (
            flags | {"seed": first_seed + place},
            {
                "r2": {"id": value, "ood": ood + 0.01 * place, **r2},
                "id": {"relative_mse": 0.5 * (1 - value)},
                "ood": {"relative_mse": 0.5 * (1 - ood - 0.01 * place)},
                "certificate": {
                    "1": {"certified": certified, "missing_rank": 2}
                },
                "coverage": {"pixels": 0.75},
                "points": {"id": 1000, "ood": 24},
                "references": {
                    "additive": {"ood": 0.25},
                    "nearest_id": {"ood": 0.375},
                },
            },
        )
        for place, value in enumerate(ids)
    ]


def split_runs(runs: list[Run]) -> list[Split]:
    return list_splits(make_groups(runs), "sprites")


def list_means(split: Split, decoder: str = "acting") -> list[float]:
    """The mean R^2 of each round of a decoder, the latest last."""
    return [cell.estimate.mean for cell in split.rounds[decoder]]


def test_sprites_of_other_shapes_are_other_data() -> None:
    shapes = {"sprite_shapes": "heart,triangle,l"}
    old, new = make_runs("x:#2,y:#2"), make_runs("x:#2,y:#2", ood=0.5)
    runs = old + [(flags | shapes, numbers) for flags, numbers in new]
    groups = make_groups(runs)
    for data, mean in (("sprites", 0.96), ("sprites:heart,triangle,l", 0.51)):
        (split,) = list_splits(groups, data)
        assert split.name == "x:#2,y:#2"
        assert list_means(split) == pytest.approx([mean])


def test_rounds_of_seeds_stand_beside_each_other() -> None:
    first = make_runs(REGIONS[0], ood=0.5)
    second = make_runs(REGIONS[0], ood=0.8, first_seed=210)
    (split,) = split_runs([*first, *second])
    assert list_means(split) == pytest.approx([0.51, 0.81])
    (row, before, *_) = list_rows(split)
    assert (row["first_seed"], before["first_seed"]) == (210, 200)
    assert re.search(r"0\.81 .*; first look 0\.51 ", format_splits([split]))
    # Version 1 had other rules, and is no round of this one.
    older = make_runs(REGIONS[0], ood=0.2, first_seed=0)
    (split,) = split_runs([*older, *first])
    assert list_means(split) == pytest.approx([0.51])


def test_a_run_that_does_not_fit_has_no_say_and_is_counted() -> None:
    (split,) = split_runs(make_runs(REGIONS[0], ids=(0.5, 0.95, 0.91, 0.89)))
    (cell,) = split.rounds["acting"]
    assert cell.fitted.seeds == [201, 202]
    assert cell.estimate.mean == pytest.approx(0.965)
    assert format_cell(cell).endswith("2 of 4")
    row = list_rows(split)[0]
    assert (row["fitted_at_85"], row["fitted_at_95"]) == (3, 1)
    (none,) = split_runs(make_runs(REGIONS[0], ids=(0.5, 0.2)))
    assert format_cell(none.latest["acting"]) == "not fitted (0 of 2)"


def test_facts_are_those_that_the_runs_have_recorded() -> None:
    (split,) = split_runs(make_runs(REGIONS[0]))
    row = list_rows(split)[0]
    assert (row["training_images"], row["missing_images"]) == (1000, 2)
    assert (row["lit_pixels"], row["certified_1"]) == (0.75, 1.0)
    assert row["certified_2"] is row["certified_3"] is None
    # R^2 is about the mean image, whose error is half of a blank one.
    expected = {"additive": 0.5, "nearest_id": 0.25}
    assert split.references == pytest.approx(expected)
    runs = make_runs(REGIONS[0])
    for _, metrics in runs:
        for name in ("points", "certificate", "coverage", "references"):
            del metrics[name]
        del metrics["r2"]  # as in runs of version 0.1
    (split,) = split_runs(runs)
    assert split.share == 0 and split.read("points/id") is None
    assert "| – | – | – | – |" in format_splits([split])


def test_splits_are_in_the_order_of_what_they_determine() -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[0], "cnn", 0.2, first_seed=0)
    # Fresh seeds of a decoder take the place of older ones.
    runs += make_runs(REGIONS[0], "acting", -1.0, first_seed=0)
    splits = split_runs(runs)
    assert [s.share for s in splits] == sorted(SHARES.values(), reverse=True)
    assert list_means(splits[0]) == pytest.approx([0.96])
    assert set(splits[0].rounds) == {"acting", "cnn"}


@pytest.mark.parametrize(("slope", "ordered"), [(1.0, 4), (-1.0, 0), (0.0, 0)])
def test_pairs_in_order_are_counted(slope: float, ordered: int) -> None:
    runs = [
        run
        for region, share in SHARES.items()
        for run in make_runs(region, ood=0.5 * slope * share)
    ]
    splits = split_runs(runs)
    assert count_ordered(splits, "acting") == (1, 4, ordered)
    assert count_ordered(splits, "cnn") == (0, 0, 0)


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
    runs = make_runs(REGIONS[0], ood=ood)
    for _, metrics in runs:
        metrics["references"]["nearest_id"]["ood"] = nearest
    (split,) = split_runs(runs)
    assert split.is_solved(split.latest["acting"]) == expected


def test_what_runs_later_does_not_make_a_law_of_more_splits() -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[1], "cnn")
    runs += make_runs(REGIONS[3], "cnn", first_seed=0)  # had been run
    before = [split.name for split in list_new(split_runs(runs))]
    runs += [r for g in REGIONS for r in make_runs(g, "hard_rendering")]
    after = [split.name for split in list_new(split_runs(runs))]
    assert before == after == [REGIONS[1]]


def test_tables_and_picture(tmp_path: Path) -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[1], "cnn", 0.1, (0.95, 0.2, 0.3))
    for flags, metrics in runs:
        if flags["region"] == REGIONS[1]:
            metrics["r2"] |= {"certified": 0.875, "others": 0.625}
    text = write_splits(split_runs(runs), tmp_path, "solved")
    (row,) = [x for x in text.splitlines() if x.startswith(f"| `{REGIONS[1]}`")]
    assert "| 0.88, 0.62 |" in row and "cnn 0.10, 1 of 3" in row
    assert "not run" in text
    with open(tmp_path / "solved.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    (cnn,) = [r for r in rows if r["decoder"] == "cnn"]
    assert (cnn["runs"], cnn["fitted"], cnn["r2"]) == ("3", "1", "0.1")
    assert cnn["fitted_at_95"] == "1"
    assert {"(additive)", "(nearest_id)"} <= {r["decoder"] for r in rows}
    assert (tmp_path / "solved.png").read_bytes()[:4] == b"\x89PNG"
    others = split_runs([({"dataset": "gaussian_bumps"}, {})])
    assert write_splits(others, tmp_path / "none", "solved") == ""
