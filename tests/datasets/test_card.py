"""Cards of models: numbers, split, code that loads them."""

import re

import numpy as np
import pytest

from tests.datasets.own_tables import make_data, make_table
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset
from tfcomp.datasets.notes import (
    format_factors,
    format_model_card,
    list_factors,
)
from tfcomp.datasets.tables import make_table_dataset

LINE = "smoke --grid_size=8 --region=square:3-4"
CONFIG = parse_config(["--dataset=table", "--region=none"])
METRICS = {
    "id": {"mse": 0.125, "relative_mse": 0.25},
    "ood": {"mse": 0.5, "relative_mse": None},
    "r2": {"id": 0.75, "ood": 0.375},
    "copies": {"num_held_out": 4, "num_copies": 3},
}


def make_card(*flags: str, dataset: Dataset | None = None) -> str:
    if dataset is None:
        dataset = make_data(LINE, *flags)
    config = parse_config([*LINE.split(), *flags])
    calls = ["image = draw(factors)"]
    return format_model_card(config, dataset, METRICS, calls)


def run_code(card: str) -> dict:
    """Runs all Python code of a card; returns its names."""
    names: dict = {"draw": lambda factors: factors.sum()}
    for block in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        exec(block, names)
    return names


def test_a_card_has_the_scores_and_the_split():
    card = make_card("--seed=7")
    assert "| mse | 0.125 | 0.5 |" in card
    assert "| relative_mse | 0.25 | – |" in card
    facts = ("0.375", "3 of 4", "seed 7", "60 combin", "4 are out")
    for fact in facts:
        assert fact in card


def test_a_card_has_the_flags_that_are_no_defaults():
    card = make_card()
    flags = dict(re.findall(r"^--(\w+)=(.*)$", card, re.MULTILINE))
    assert flags["grid_size"] == "8"
    assert flags["region"] == "square:3-4"
    defaults = RunConfig().identity()
    for name, value in flags.items():
        assert value != defaults[name]


def test_the_code_of_a_card_runs():
    names = run_code(make_card())
    assert names["factors"].shape == (1, 2)
    assert names["image"] == names["factors"].sum()


@pytest.mark.parametrize(
    "flags, held_out, included",
    [
        ([], True, False),
        (["--train_all"], False, True),
        (["--region=none"], False, False),
    ],
)
def test_a_card_says_what_was_held_out(flags, held_out, included):
    card = make_card(*flags)
    assert ("`square:3-4` was held out" in card) == held_out
    assert ("included the region" in card) == included


def test_a_sample_is_called_one():
    assert "sample of 50" in make_card("--eval_points=50")


def test_factors_are_listed():
    """By kind, from a table and in the card."""
    classes = np.argwhere(np.ones((2, 4, 3, 5)))
    table = make_table(
        classes,
        names=["shape", "angle", "x", "dose"],
        kinds=["categorical", "periodic:360", "ordered", "continuous:2"],
        levels=[["l", "heart"], None, None, None],
        units=["", "deg", "px", ""],
    )
    dataset = make_table_dataset(CONFIG, table)

    rows = [list(row.values()) for row in list_factors(dataset)]

    assert rows == [
        ["shape", "categorical", "l, heart", "", ""],
        ["angle", "periodic", "4 values from 0 to 270", "360 = 0 deg", "deg"],
        ["x", "ordered", "3 values from 0 to 2", "", "px"],
        ["dose", "continuous", "0 to 4 in 2 bins", "", ""],
    ]
    card = make_card(dataset=dataset)
    for row in rows:
        assert f"| {' | '.join(row)} |" in card


def test_a_table_of_many_factors_is_short():
    classes = np.random.default_rng(0).integers(0, 2, (200, 40))
    dataset = make_table_dataset(CONFIG, make_table(classes))
    text = format_factors(dataset)
    assert len(text.splitlines()) < 30
    assert "factor_0" in text
    assert "factor_39" in text
    assert "unit" not in text
