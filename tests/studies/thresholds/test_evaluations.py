"""Recorded scores: a killed search repeats nothing."""

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.studies.thresholds import cases as module
from tfcomp.studies.thresholds.cases import (
    Case,
    Evaluations,
    MissingError,
    Scores,
)
from tfcomp.studies.thresholds.one_search import search_case
from tfcomp.studies.thresholds.threshold_settings import SearchSettings
from tfcomp.studies.thresholds.threshold_tables import list_rows

SETTINGS = SearchSettings(
    criterion="position_accuracy,relative_mse", target="0.9,0.5"
)


def make_case(seed: int = 0, **settings: object) -> Case:
    chosen = dataclasses.replace(SETTINGS, **settings)
    base = parse_config(["--flagfile=smoke.flags"])
    return Case("bumps", "none", 16, seed, base, chosen)


class Trainer:
    """A made-up training; is killed after some of them.

    The position is right from 40 bumps on, the shape from 200 on.
    """

    def __init__(self, survives: int = 1000) -> None:
        self.counts: list[int] = []
        self._survives = survives

    def __call__(self, config: RunConfig) -> Scores:
        if len(self.counts) == self._survives:
            raise KeyboardInterrupt
        count = config.data.num_train
        self.counts.append(count)
        return {
            "position_accuracy": 1.0 if count >= 40 else 0.1,
            "relative_mse": 0.1 if count >= 200 else 0.9,
        }


def test_search_is_repeated_from_its_records(tmp_path: Path) -> None:
    case, trainer = make_case(), Trainer()
    evaluations = Evaluations(tmp_path)
    assert list_rows(case, evaluations) is None
    search_case(case, evaluations, trainer)
    assert len(trainer.counts) == len(set(trainer.counts))
    right, proper = list_rows(case, evaluations)
    assert (right["criterion"], proper["criterion"]) == tuple(SETTINGS.targets)
    assert 40 <= right["num_bumps"] <= 48
    assert 200 <= proper["num_bumps"] <= 240
    assert right["num_examples"] == right["num_bumps"]
    assert right["reached"] is True
    assert (right["score"], proper["score"]) == (1.0, 0.1)


def test_killed_searches_repeat_nothing(tmp_path: Path) -> None:
    whole = Trainer()
    search_case(make_case(), Evaluations(tmp_path / "whole"), whole)
    done: list[int] = []
    evaluations = Evaluations(tmp_path / "killed")
    while list_rows(make_case(), evaluations) is None:
        trainer = Trainer(survives=1)
        with contextlib.suppress(KeyboardInterrupt):
            search_case(make_case(), evaluations, trainer)
        done += trainer.counts
    assert done == whole.counts
    assert len(done) > 5
    expected = list_rows(make_case(), Evaluations(tmp_path / "whole"))
    assert list_rows(make_case(), evaluations) == expected


def test_other_target_asks_only_for_what_is_new(tmp_path: Path) -> None:
    evaluations = Evaluations(tmp_path)
    search_case(make_case(), evaluations, Trainer())
    trainer = Trainer()
    search_case(make_case(target="0.8,0.6"), evaluations, trainer)
    assert trainer.counts == []
    search_case(make_case(tolerance=1.01), evaluations, trainer)
    assert 0 < len(trainer.counts) < 12


def test_other_seed_steps_and_code_are_other_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations = Evaluations(tmp_path)
    search_case(make_case(), evaluations, Trainer())
    assert list_rows(make_case(), evaluations) is not None
    assert list_rows(make_case(seed=1), evaluations) is None
    assert list_rows(make_case(steps=7), evaluations) is None
    monkeypatch.setattr(module, "TRIAL", "tfcomp.studies.thresholds.search")
    assert list_rows(make_case(), Evaluations(tmp_path)) is None


def test_record_says_what_it_is_of(tmp_path: Path) -> None:
    config = make_case().make_config(5)
    evaluations = Evaluations(tmp_path)
    with pytest.raises(MissingError):
        evaluations.get_scores(config)
    evaluations.write_scores(config, {"relative_mse": None}, 1.5)
    assert evaluations.get_scores(config) == {"relative_mse": None}
    content = json.loads(next(tmp_path.iterdir()).read_text())
    assert content["flags"] == config.identity()
    assert content["seconds"] == 1.5


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_damaged_record_is_made_again(tmp_path: Path, text: str) -> None:
    config = make_case().make_config(5)
    evaluations = Evaluations(tmp_path)
    evaluations.write_scores(config, {"relative_mse": None}, 1.5)
    next(tmp_path.iterdir()).write_text(text)
    with pytest.raises(MissingError):
        evaluations.get_scores(config)
    evaluations.write_scores(config, {"relative_mse": 0.5}, 1.5)
    assert evaluations.get_scores(config) == {"relative_mse": 0.5}
