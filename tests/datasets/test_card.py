"""Cards of models: numbers, split, code that loads them."""

import dataclasses
import re

import numpy as np
import pytest

from tests.datasets.own_tables import make_data
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, Factor, FactorSpace
from tfcomp.datasets.notes import describe_factor, format_model_card

LINE = "smoke --grid_size=8 --region=square:3-4"
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


def test_a_card_has_the_scores_and_the_split() -> None:
    card = make_card("--seed=7")
    assert "| mse | 0.125 | 0.5 |" in card
    assert "| relative_mse | 0.25 | – |" in card
    facts = ("0.375", "3 of 4", "seed 7", "60 combin", "4 are out")
    for fact in facts:
        assert fact in card


def test_a_card_has_the_flags_that_are_no_defaults() -> None:
    card = make_card()
    flags = dict(re.findall(r"^--(\w+)=(.*)$", card, re.MULTILINE))
    assert flags["grid_size"] == "8"
    assert flags["region"] == "square:3-4"
    defaults = RunConfig().identity()
    for name, value in flags.items():
        assert value != defaults[name]


def test_the_code_of_a_card_runs() -> None:
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
def test_a_card_says_what_was_held_out(
    flags: list[str],
    held_out: bool,
    included: bool,
) -> None:
    card = make_card(*flags)
    assert ("`square:3-4` was held out" in card) == held_out
    assert ("included the region" in card) == included


def test_a_sample_is_called_one() -> None:
    assert "sample of 50" in make_card("--eval_points=50")


def test_factors_are_described() -> None:
    periodic = Factor(
        "angle",
        4,
        0,
        360,
        unit="deg",
        periodic=True,
    )
    names = ("l", "heart")
    named = Factor(
        "shape",
        2,
        0,
        1,
        categorical=True,
        names=names,
    )
    assert describe_factor(periodic).startswith("angle: 4 values from 0 to 270")
    assert describe_factor(named) == "shape: l, heart"


def test_a_factor_of_small_values() -> None:
    space = FactorSpace((Factor("x", 3, 0.02, 0.04),))
    dataset = dataclasses.replace(make_data(LINE), space=space)
    card = make_card(dataset=dataset)
    assert run_code(card)["factors"].tolist() == [[np.float32(0.02)]]
