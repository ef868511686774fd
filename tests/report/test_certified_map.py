"""The map of what training determines, in the report."""

from pathlib import Path

import numpy as np

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.models.initial_model import make_model
from tfcomp.report.error_section import map_certified


def make_study(region: str) -> RunAnalysis:
    """A study of a network before training."""
    config = parse_config(
        [
            "--dataset=sprites",
            "--grid_size=16",
            "--sprite_sizes=3,3,4,8,8",
            "--model=mlp",
            "--width=8",
            "--encoding=one_hot",
            f"--region={region}",
        ]
    )
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    return RunAnalysis(LoadedRun(Path("run"), config, dataset, model, {}, ""))


def test_a_map_of_certified_combinations() -> None:
    study = make_study("wiedemer:diagonal:.4")
    (exhibit,) = map_certified(study)
    assert exhibit.figure is not None
    rows = exhibit.rows
    marks = np.array([row["order 1"] for row in rows], float)
    is_ood = np.array([row["is_ood"] for row in rows])
    assert np.isnan(marks[~is_ood]).all()
    assert set(marks[is_ood]) == {0.0, 1.0}
    # The points of the map are those of the certificate.
    found = certify_dataset(study.dataset)[1].certified
    space, every = study.dataset.space, study.dataset.splits.all.factors
    known = dict(
        zip(map(tuple, space.to_index(every)), found.tolist(), strict=True)
    )
    shown = space.to_index(study.for_maps.dataset.splits.grid)
    for place, mark in zip(map(tuple, shown), marks, strict=True):
        assert np.isnan(mark) or bool(mark) is known[place]


def test_there_is_none_where_all_are_alike() -> None:
    assert map_certified(make_study("montero:range")) == []
    assert map_certified(make_study("montero:extrapolation")) == []
