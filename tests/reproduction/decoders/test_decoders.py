"""Decoders on splits: planted runs, and the committed table and page."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pytest import approx

from reproduction.claims.judge import estimate
from reproduction.decoders import cells
from reproduction.decoders.command import main
from tests.reproduction.claims.worlds import plant_run
from tests.tables.test_read import write_run
from tfcomp.config.errors import ConfigError
from tfcomp.statistics.limits import AT_MOST_ONE
from tfcomp.tables.read import Results

ROOT = Path(__file__).parents[3]
GOOD = [0.90, 0.92, 0.91]
BUMPS = {"dataset": "gaussian_bumps", "region": "corner:9"}
SPRITES = {"dataset": "sprites", "region": "x:#2,y:#2"}
DISTINCT = SPRITES | {"sprite_shapes": cells.DISTINCT}


def make_runs(
    ood_r2: list[float],
    flags: dict[str, Any] = BUMPS,
    unfitted: int = 0,
    **numbers: float,
) -> list[Any]:
    """Runs of a decoder, whose mean image has half the error of a blank one."""
    runs = []
    flags = flags | {"model": "cnn"}
    for seed, r2 in enumerate(ood_r2):
        id_r2 = 0.98
        if seed < unfitted:
            id_r2 = 0.5
        scores = {
            "r2/id": id_r2,
            "r2/ood": r2,
            "id/relative_mse": 0.5 * (1 - id_r2),
            "ood/relative_mse": 0.5 * (1 - r2),
            "references/additive/ood": 0.25,  # an R² of .5
            "references/nearest_id/ood": 0.6,
        }
        runs.append(plant_run(flags, seed, scores | numbers))
    return runs


def judge(runs: list[Any]) -> pd.DataFrame:
    table = cells.read_table(Results(runs))
    return cells.judge_splits(table)


@pytest.mark.parametrize(
    "ood_r2, unfitted, answer",
    [
        (GOOD, 0, "yes"),
        ([0.40, 0.42, 0.41], 0, "no"),
        ([0.9, 0.1, 0.9], 0, "open"),
        (GOOD[:2], 0, "open"),
        ([0.1, *GOOD], 1, "yes"),  # one that does not fit has no say
        ([0.1] * 4 + GOOD, 4, "open"),  # fewer than half fit
        (GOOD, 3, "not fitted"),
    ],
)
def test_a_decoder_composes_above_predictors(
    ood_r2: list[float],
    unfitted: int,
    answer: str,
):
    fitted = pd.Series(ood_r2[unfitted:], dtype=float)
    number = estimate(fitted, "mean", AT_MOST_ONE)

    runs = make_runs(ood_r2, unfitted=unfitted)

    row = judge(runs).iloc[0]

    assert row["composes"] == answer
    assert row["fitted"] == len(fitted)
    assert row["predictor"] == "additive"
    assert row["predictor_r2"] == 0.5
    interval = row[["r2", "low", "high"]].tolist()
    expected = [number.mean, number.low, number.high]
    assert interval == approx(expected, nan_ok=True)


def test_the_mean_of_held_out_images_is_a_predictor():
    errors = {"references/additive/ood": 0.9, "references/nearest_id/ood": 0.9}
    runs = make_runs([-0.1, -0.12, -0.11], **errors)

    row = judge(runs).iloc[0]

    assert row["predictor"] == "held_out_mean"
    assert row["predictor_r2"] == 0
    assert row["composes"] == "no"


def test_r2_follows_from_errors_where_it_was_not_recorded():
    runs = make_runs(GOOD)
    for run in runs[1:]:
        run.numbers[:] = [row for row in run.numbers if "r2/" not in row[3]]

    row = judge(runs).iloc[0]

    assert row["r2"] == approx(np.mean(GOOD))
    assert row["fitted"] == 3


def test_settings_and_images_are_not_mixed():
    wide = make_runs([0.1, 0.12], BUMPS | {"width": 99})
    large = make_runs([0.2, 0.22, 0.21], BUMPS | {"grid_size": 64})

    rows = judge(make_runs(GOOD) + wide + large)

    assert rows["runs"].tolist() == [3, 3]
    assert sorted(rows["r2"].round(2)) == [0.21, 0.91]


def test_copies_and_networks_on_all_are_left_out(tmp_path: Path):
    # Squares look the same after a turn.
    copies = make_runs(GOOD, SPRITES)
    trained = make_runs(GOOD, DISTINCT | {"train_all": True})
    assert cells.read_table(Results(copies + trained)).empty

    write_run(tmp_path / "r", "--train_all=true")
    output = tmp_path / "o"
    with pytest.raises(ConfigError):
        main(["decoders", f"--runs={tmp_path}", f"--output={output}"])
    assert not output.exists()


def test_families():
    poor = [0.1, 0.12, 0.11]
    runs = []
    for region, ood_r2, share in (
        ("x:#1", GOOD, 1.0),
        ("x:#2", poor, 1.0),
        ("x:#3", GOOD, 0.3),
    ):
        certified = {"certificate/1/certified": share}
        runs += make_runs(ood_r2, DISTINCT | {"region": region}, **certified)
    table = cells.read_table(Results(runs))

    families = cells.average_families(cells.judge_splits(table))

    rows = families.set_index("family")
    # A mean over both splits at each seed.
    assert rows.loc["sprites", "r2"] == approx(np.mean([GOOD, poor]))
    assert rows.loc["sprites", "composing"] == 1
    assert rows.loc["sprites", "splits"] == 2
    assert rows.loc[cells.UNDETERMINED, "composing"] == 1


def test_the_page_is_that_of_the_evidence(tmp_path: Path):
    runs = ROOT / "reproduction/decoders/evidence"

    assert main(["decoders", f"--runs={runs}", f"--output={tmp_path}"]) == 0

    page = (tmp_path / "decoders.md").read_text("utf-8")
    table = (tmp_path / "decoders.csv").read_text("utf-8")
    assert page == (ROOT / "docs/decoders.md").read_text("utf-8")
    assert table == (ROOT / "docs/tables/decoders.csv").read_text("utf-8")
    assert len(page.splitlines()) <= 120
    sizes = []
    for folder in (tmp_path, ROOT / "docs/figures"):
        with Image.open(folder / "decoders.png") as picture:
            sizes.append(picture.size)
    assert sizes[0] == sizes[1]
