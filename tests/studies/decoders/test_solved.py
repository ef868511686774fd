"""Splits by certificate, of runs with planted scores and of real splits."""

import csv
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.studies.claims.evidence import Run, read_evidence
from tfcomp.studies.decoders.solved import (
    Solved,
    _compute_tau,
    correlate,
    list_new,
    list_splits,
)
from tfcomp.studies.decoders.solved_report import (
    format_splits,
    list_rows,
    write_splits,
)
from tfcomp.studies.decoders.split_facts import find_facts, get_r2

ROOT = Path(__file__).parents[3]
SPRITES = [
    "--flagfile=sprites.flags",
    "--grid_size=16",
    "--sprite_sizes=2,2,2,3,3",
    "--eval_points=0",
]
REGIONS = (  # certified: all, some, none, all
    "x:#2,y:#2",
    "wiedemer:diagonal:.4",
    "montero:extrapolation",
    "shape:#0,x:#0",
    "random:.8:1",
)


def make_runs(
    region: str,
    model: str = "acting",
    ood: float = 0.95,
    ids: tuple[float, ...] = (0.99, 0.98, 0.97),
    first_seed: int = 200,
    **r2: float,
) -> list[Run]:
    """Runs with R^2 of ID and of held-out points."""
    config = parse_config([*SPRITES, f"--region={region}", "--model=mlp"])
    flags = config.to_flags() | {"model": model}
    return [
        Run(
            Path(f"{model}_{region}_{place}"),
            flags | {"seed": first_seed + place},
            {
                "r2": {"id": value, "ood": ood + 0.01 * place, **r2},
                "references": {
                    "additive": {"ood": 0.5},
                    "nearest_id": {"ood": 0.25},
                },
            },
        )
        for place, value in enumerate(ids)
    ]


def test_a_second_look_counts_when_it_is_complete() -> None:
    first = make_runs(REGIONS[0], ood=0.5)
    for count, expected, shown in ((2, 0.51, None), (3, 0.81, 0.51)):
        second = make_runs(REGIONS[0], ood=0.8, first_seed=210)[:count]
        (split,) = list_splits([*first, *second])
        assert split.decoders["acting"].mean == pytest.approx(expected)
        means = [look.mean for look in split.earlier.get("acting", ())]
        assert means == ([] if shown is None else [pytest.approx(shown)])
        # Laws were judged by the first look.
        assert split.get_first("acting").mean == pytest.approx(0.51)
    (row, before, *_) = list_rows(split)
    assert (row["first_seed"], before["first_seed"]) == (210, 200)
    assert re.search(
        r"0\.81 .*; first look 0\.51 ", format_splits([split], Path())
    )
    # Version 1 had other rules, and is no look at this one.
    older = make_runs(REGIONS[0], ood=0.2, first_seed=0)
    (split,) = list_splits([*older, *first])
    assert "first look" not in format_splits([split], Path())
    assert not split.earlier and split.decoders["acting"].runs[0].seed == 200


def test_a_third_look_counts_when_all_that_was_planned_has_run() -> None:
    looks = [
        *make_runs(REGIONS[0], ood=0.5),
        *make_runs(REGIONS[0], ood=0.6, first_seed=210),
    ]
    third = make_runs(REGIONS[0], ood=0.7, ids=20 * (0.99,), first_seed=220)
    (split,) = list_splits([*looks, *third[:19]])
    assert split.decoders["acting"].mean == pytest.approx(0.61)
    (split,) = list_splits([*looks, *third])
    assert split.decoders["acting"].mean == pytest.approx(0.7 + 0.095)
    assert split.get_first("acting").mean == pytest.approx(0.51)
    text = format_splits([split], Path())
    assert re.search(r"0\.79 .*; first look 0\.51 .*; second look 0\.61", text)
    seeds = [row["first_seed"] for row in list_rows(split)[:3]]
    assert seeds == [220, 200, 210]


def test_a_run_that_does_not_fit_has_no_say_and_is_counted() -> None:
    found = Solved.make(make_runs(REGIONS[0], ids=(0.5, 0.95, 0.91, 0.89)))
    assert found.values == {201: 0.96, 202: 0.97}
    assert found.mean == pytest.approx(0.965)
    assert str(found).endswith("2 of 4")
    assert [found.count(gate) for gate in (0.85, 0.95)] == [3, 1]
    none = Solved.make(make_runs(REGIONS[0], ids=(0.5, 0.2)))
    assert none.mean is None and str(none) == "not fitted (0 of 2)"


def test_facts_are_those_of_the_data() -> None:
    (run, *_) = make_runs("wiedemer:diagonal:.4")
    facts = find_facts(run)
    config = parse_config([*SPRITES, "--region=wiedemer:diagonal:.4"])
    dataset = make_dataset(config)
    splits = dataset.splits
    assert facts.num_train == len(splits.train)
    truth = dataset.render_array(splits.grid)[splits.is_ood].astype(float)
    # A blank image is black, so that its error is that of the sum of squares.
    around = ((truth - truth.mean(axis=0)) ** 2).sum()
    assert facts.spread["ood"] == pytest.approx(around / (truth**2).sum())
    # The mean image has an R^2 of 0, whatever it is a multiple of.
    mean = np.broadcast_to(truth.mean(axis=0), truth.shape)
    relative = ((mean - truth) ** 2).sum() / (truth**2).sum()
    assert facts.convert(relative, "ood") == pytest.approx(0)
    assert facts.convert(0.0, "ood") == 1
    assert facts.convert(None, "ood") is None


def test_packed_r2_is_what_follows_from_errors_and_images() -> None:
    """Added to the runs of the first comparison, which did not record it."""
    archive = ROOT / "docs/decoder_evidence/decoders_sprites.tar.xz"
    runs = read_evidence([str(archive)]).runs
    assert len(runs) == 300
    for run in runs[::60]:
        bare = {k: v for k, v in run.metrics.items() if k != "r2"}
        bare = dataclasses.replace(run, metrics=bare)
        for subset in ("id", "ood"):
            assert run.get(f"r2/{subset}") == pytest.approx(
                get_r2(bare, subset), abs=1e-9
            )


def test_runs_of_earlier_versions_have_it_from_their_errors() -> None:
    (run, *_) = make_runs(REGIONS[0])
    assert get_r2(run, "ood") == 0.95
    del run.metrics["r2"]
    run.metrics["ood"] = {"relative_mse": 0.1}
    facts = find_facts(run)
    assert get_r2(run, "ood") == pytest.approx(1 - 0.1 / facts.spread["ood"])
    assert get_r2(run, "certified") is None
    run.flags["dataset"], run.flags["data"] = "table", "nowhere.npz"
    assert get_r2(run, "ood") is None  # data that are not here


def test_tau_is_that_of_scipy(rng: np.random.Generator) -> None:
    pairs = rng.integers(0, 4, (50, 8, 2)).astype(float)
    pairs[0, :, 0] = 1.0  # constant
    found = _compute_tau(pairs)
    expected = [stats.kendalltau(*part.T)[0] for part in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.isnan(found[0]) and np.isfinite(found[1:]).all()


def test_what_runs_have_recorded_is_not_rendered_again() -> None:
    (run, *_) = make_runs(REGIONS[0])
    rendered = find_facts(run).spread
    run.metrics["r2"] = {"id": 0.9, "ood": 0.5}
    for name, r2 in run.metrics["r2"].items():
        run.metrics[name] = {"relative_mse": (1 - r2) * rendered[name]}
    assert find_facts(run).spread == pytest.approx(rendered)
    run.metrics["ood"]["relative_mse"] *= 2
    assert find_facts(run).spread["ood"] == pytest.approx(2 * rendered["ood"])
    run.metrics["r2"]["ood"] = 1.0  # says nothing of the spread
    assert find_facts(run).spread == pytest.approx(rendered)


def test_splits_are_in_the_order_of_what_they_determine() -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[0], "cnn", 0.2, first_seed=0)
    # Fresh seeds of a decoder take the place of older ones.
    runs += make_runs(REGIONS[0], "acting", -1.0, first_seed=0)
    splits = list_splits(runs)
    shares = [split.certified for split in splits]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1 and shares[-1] == 0
    (first,) = [s for s in splits if s.name == REGIONS[0]]
    assert set(first.decoders) == {"acting", "cnn"}
    assert first.decoders["acting"].mean == pytest.approx(0.96)
    predicted = first.facts.convert(0.5, "ood")
    assert first.predictors["additive"] == pytest.approx(predicted)
    assert first.predictors["blank"] < 0 < first.predictors["nearest"]


@pytest.mark.parametrize(("slope", "sign"), [(1.0, 1), (-1.0, -1), (0.0, 0)])
def test_a_law_is_found_where_it_is(slope: float, sign: int) -> None:
    regions = [*REGIONS, "wiedemer:diagonal:.5", "x:#0,y:#0|x:#1,y:#1"]
    shares = {
        split.name: split.certified
        for split in list_splits([r for g in regions for r in make_runs(g)])
    }
    runs = [
        run
        for region, share in shares.items()
        for run in make_runs(region, ood=0.5 * slope * share)
    ]
    found = correlate(list_splits(runs), "acting")
    if not sign:  # all alike: no rank at all
        assert found is None or not found[1] > 0
        return
    tau, low, high, count = found
    assert count == len(regions) and sign * tau > 0.5
    assert low <= tau <= high
    assert correlate(list_splits(runs)[:3], "acting") is None


def test_what_runs_later_does_not_make_a_law_of_more_splits() -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[1], "cnn")
    runs += make_runs(REGIONS[3], "cnn", first_seed=0)  # had been run
    before = [split.name for split in list_new(list_splits(runs))]
    runs += [r for g in REGIONS for r in make_runs(g, "hard_rendering")]
    after = [split.name for split in list_new(list_splits(runs))]
    assert before == after == [REGIONS[1]]


def test_tables_and_picture(tmp_path: Path) -> None:
    runs = [run for region in REGIONS for run in make_runs(region)]
    runs += make_runs(REGIONS[1], "cnn", 0.1, (0.95, 0.2, 0.3))
    for run in runs:
        if run.flags["region"] == REGIONS[1]:
            run.metrics["r2"] |= {"certified": 0.875, "others": 0.625}
    text = write_splits(list_splits(runs), tmp_path)
    (row,) = [x for x in text.splitlines() if x.startswith(f"| `{REGIONS[1]}`")]
    assert "| 0.88, 0.62 |" in row and "cnn 0.10, 1 of 3" in row
    assert "not run" in text
    with open(tmp_path / "solved.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    (cnn,) = [r for r in rows if r["decoder"] == "cnn"]
    assert (cnn["runs"], cnn["fitted"], cnn["r2"]) == ("3", "1", "0.1")
    assert cnn["fitted_at_95"] == "1"
    assert {"(additive)", "(nearest)", "(blank)"} <= {
        r["decoder"] for r in rows
    }
    assert (tmp_path / "solved.png").read_bytes()[:4] == b"\x89PNG"
    assert write_splits([], tmp_path / "none") == ""
