"""Results that threads compute while others are drawn."""

import dataclasses
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tfcomp
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation import ahead, loading
from tfcomp.evaluation.kept_property import kept_property
from tfcomp.evaluation.run_analysis import RunAnalysis


def test_everything_is_computed_once_and_the_same(
    smoke_run: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = RunAnalysis(loading.load_run(smoke_run.run_dir))
    expected = alone.metrics, alone.superposition
    study, threads = RunAnalysis(loading.load_run(smoke_run.run_dir)), []
    measure = study._evaluator.measure_geometry

    def count() -> dict:
        threads.append(threading.current_thread())
        return measure()

    monkeypatch.setattr(study._evaluator, "measure_geometry", count)
    with ahead.computed_ahead([study], ["layers", "superposition"]):
        found = study.metrics, study.superposition
    assert len(threads) == 1
    for stage, metric in expected[0].items():
        np.testing.assert_array_equal(found[0][stage], metric)
    np.testing.assert_equal(found[1].r2, expected[1].r2)


def test_looks_at_other_points_are_those_of_a_study_of_its_own(
    smoke_run: RunConfig,
) -> None:
    """Although they share an evaluator, which traces nothing again."""
    study = RunAnalysis(loading.load_run(smoke_run.run_dir))
    study.metrics  # noqa: B018 (traced)
    look = study.for_explorer(40)
    assert len(look.splits.grid) < len(study.splits.grid)
    alone = RunAnalysis(dataclasses.replace(study.run, dataset=look.dataset))
    for stage, metric in alone.metrics.items():
        np.testing.assert_allclose(look.metrics[stage], metric, rtol=1e-4)
    found, expected = look.evaluation.images, alone.evaluation.images
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for stage, (units, maps) in alone.shown_units.items():
        assert units.tolist() == look.shown_units[stage][0].tolist()
        np.testing.assert_allclose(look.shown_units[stage][1], maps, atol=1e-5)
    assert len(study.metrics["image"]) == len(study.splits.grid)


def test_looks_compute_what_their_origin_does_not_know(
    smoke_run: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = RunAnalysis(loading.load_run(smoke_run.run_dir))
    every = study.dataset.splits
    some = dataclasses.replace(
        every, points=every.points[::3], is_complete=False
    )
    study = study._at_points(dataclasses.replace(study.dataset, splits=some))
    study._origin, counts = None, []
    look = study._at_points(dataclasses.replace(study.dataset, splits=every))
    for name in ("measure_geometry", "draw"):
        compute = getattr(look._evaluator, name)

        def count(points: np.ndarray, compute: Callable = compute) -> Any:
            counts.append(len(points))
            return compute(points)

        monkeypatch.setattr(look._evaluator, name, count)
    known = study.metrics["stage_0"], study.evaluation.images
    found = look.metrics["stage_0"], look.evaluation.images
    for ours, theirs in zip(found, known, strict=True):
        np.testing.assert_array_equal(ours[::3], theirs)
    assert counts == [96, 96]  # of 144 points
    alone = RunAnalysis(loading.load_run(smoke_run.run_dir))
    metrics = alone.metrics["stage_0"]
    np.testing.assert_allclose(found[0], metrics, rtol=1e-4)
    np.testing.assert_allclose(found[1], alone.evaluation.images, atol=1e-5)


def test_geometry_is_what_training_kept_unless_a_file_has_changed(
    smoke_run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = RunAnalysis(loading.load_run(smoke_run.run_dir))
    expected, counts = alone.metrics, []
    names = ("run.flags", "metrics.json", "model.keras", "computed")
    for name in names:
        copy = shutil.copytree if name == "computed" else shutil.copy
        copy(Path(smoke_run.run_dir, name), tmp_path / name)
    compute = alone._evaluator.measure_geometry

    def count(*_: Any) -> dict:
        counts.append(1)
        return compute()

    for expected_count in (0, 1):
        study = tfcomp.load_run(tmp_path).analysis
        monkeypatch.setattr(study._evaluator, "measure_geometry", count)
        for stage, metric in expected.items():
            np.testing.assert_array_equal(study.metrics[stage], metric)
        assert len(counts) == expected_count
        with open(tmp_path / "metrics.json", "a") as file:
            file.write("\n")


def test_a_further_computation_gives_its_result_or_its_error() -> None:
    with ahead.computed_ahead([], []) as begin:
        good, bad = begin(lambda: 7), begin(lambda: [][0])
        assert good() == 7
        with pytest.raises(IndexError):
            bad()


def test_nothing_is_computed_that_is_not_shown(smoke_run: RunConfig) -> None:
    study = RunAnalysis(loading.load_run(smoke_run.run_dir))
    with ahead.computed_ahead([study], ["runs"]):
        pass
    assert not {"_geometry", "numbers", "superposition"} & vars(study).keys()


def test_a_failure_is_told_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(study: object) -> None:
        raise RuntimeError("no memory")

    lane = {("layers",): fail}
    monkeypatch.setattr(ahead, "LANES", (lane,))
    study = SimpleNamespace()
    with ahead.computed_ahead([study], ["layers"]):
        pass
    with pytest.raises(RuntimeError, match="no memory"):
        fail(study)


@pytest.mark.parametrize("where", ["loop", "finalizer"])
def test_an_interrupt_does_not_wait_and_says_nothing(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is lost: pytest makes an error of what would be printed."""
    begun, never = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        begun.set()
        while not never.wait(0.001):
            pass

    class Busy:
        __del__ = wait

    last = {"loop": wait, "finalizer": lambda _: Busy()}[where]
    monkeypatch.setattr(ahead, "LANES", ({("layers",): last},))
    with (
        pytest.raises(KeyboardInterrupt),
        ahead.computed_ahead([SimpleNamespace()], ["layers"]),
    ):
        assert begun.wait(60)
        raise KeyboardInterrupt
    assert not [t for t in threading.enumerate() if "_compute" in t.name]


def test_who_asks_meanwhile_waits_for_the_same_value() -> None:
    begun, allowed = threading.Event(), threading.Event()

    class Slow(RunAnalysis):
        def __init__(self) -> None:
            self.kept, self.count = None, 0
            self.locks = {"value": threading.RLock()}

        @kept_property
        def value(self) -> int:
            begun.set()
            assert allowed.wait(60)
            self.count += 1
            return 7

    slow, found = Slow(), []
    first = threading.Thread(target=lambda: slow.value)
    first.start()
    assert begun.wait(60)
    second = threading.Thread(target=lambda: found.append(slow.value))
    second.start()
    allowed.set()
    first.join(60)
    second.join(60)
    assert found == [7]
    assert slow.count == 1
