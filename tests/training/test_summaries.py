"""TensorBoard: tags and contents, read back from the event files."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util import tensor_util

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.summaries import RunSummaries, list_charted

STAGES = ["code", "stage_0", "stage_1", "stage_2", "image"]


@pytest.fixture(scope="module")
def events(smoke_run: RunConfig, read_events: Callable) -> EventAccumulator:
    return read_events(smoke_run)


@pytest.fixture(scope="module")
def metrics(smoke_run: RunConfig) -> dict:
    return json.loads((Path(smoke_run.run_dir) / "metrics.json").read_text())


def read(events: EventAccumulator, tag: str) -> dict[int, object]:
    return {
        event.step: tensor_util.make_ndarray(event.tensor_proto)
        for event in events.Tensors(tag)
    }


def test_scalar_tags_are_few_and_grouped(
    events: EventAccumulator, metrics: dict
) -> None:
    groups = {}
    for tag in events.Tags()["tensors"]:
        group, _, name = tag.partition("/")
        groups.setdefault(group, set()).add(name)
    assert groups.pop("train") == {"loss", "examples_per_second"}
    for subset in ("id", "ood"):
        assert groups.pop(subset) == set(metrics[subset])
    # TensorBoard sorts them: the scores stand above the stages.
    watched = {name for row in metrics["layers"].values() for name in row}
    watched |= {"mixed_share", "relative_contrast", "total_curvature"}
    for group in (*watched & set(list_charted()), "log_volume_map"):
        assert groups.pop(f"stage_{group}") == set(STAGES)
    first = {"errors", "map", "samples_id", "samples_ood"}
    # TensorBoard opens on the first group that it shows.
    shown = [group for group in groups if not group.startswith("_")]
    assert min(shown) == "answer" and groups.pop("answer") == first
    assert groups.pop("run") == {""}
    assert set(groups) <= {"_hparams_"}


def test_samples_are_also_a_file(smoke_run: RunConfig) -> None:
    """ID above OOD of the last epoch, more than a card of TensorBoard has."""
    with Image.open(Path(smoke_run.run_dir) / "samples.png") as file:
        assert file.width > 1000 and file.height > 600


@pytest.mark.parametrize("tag", ["ood/relative_mse", "id/mse"])
def test_smoothed_curves_end_at_the_final_metrics(
    events: EventAccumulator, metrics: dict, tag: str
) -> None:
    """By TensorBoard's default, an average with the weight 0.6, debiased."""
    subset, name = tag.split("/")
    smoothed, weight = 0.0, 0.0
    for value in read(events, tag).values():  # one for each step, as there
        smoothed = 0.6 * smoothed + 0.4 * value
        weight = 0.6 * weight + 0.4
    expected = metrics[subset][name]
    assert smoothed / weight == pytest.approx(expected, rel=1e-6)


def test_many_points_are_a_curve(
    smoke_run: RunConfig, tmp_path: Path, read_events: Callable
) -> None:
    training = dataclasses.replace(smoke_run.training, epochs=20)
    config = dataclasses.replace(
        smoke_run, log_dir=str(tmp_path), training=training
    )
    summaries = RunSummaries(config, make_dataset(smoke_run))
    for epoch in (10, 19, 20):
        summaries.write_scalars(epoch, {"id/mse": 0.5}, every=1)
        summaries.write_scalars(epoch, {"ood/mse": 0.5}, every=2)
    summaries.close()
    events = read_events(config)
    assert list(read(events, "id/mse")) == [10, 19, 20]
    assert list(read(events, "ood/mse")) == [20]


def test_hyperparameters_are_those_that_say_something(
    smoke_run: RunConfig, events: EventAccumulator
) -> None:
    metadata = events.SummaryMetadata("_hparams_/session_start_info")
    data = HParamsPluginData.FromString(metadata.plugin_data.content)
    shown = set(data.session_start_info.hparams)
    assert {"region", "encoding", "model", "seed", "epochs"} <= shown
    assert "adam_epsilon" not in shown and len(shown) < 25


@pytest.mark.parametrize("tag", ["errors", "samples_ood", "map"])
def test_pictures_have_the_size_of_a_card(
    events: EventAccumulator, tag: str
) -> None:
    width, height = map(int, read(events, f"answer/{tag}")[2][:2])
    assert width == 640 and height < 0.65 * width  # twice the pixels of a card


def test_last_scalars_are_the_final_metrics(
    events: EventAccumulator, metrics: dict
) -> None:
    epochs = metrics["train"]["epochs"]
    for subset in ("id", "ood"):
        values = read(events, f"{subset}/mse")
        assert list(values) == [epochs]  # one point, which nothing smooths
        expected = metrics[subset]["mse"]
        assert values[epochs] == pytest.approx(expected, rel=1e-6)
    for stage in STAGES:
        shown = read(events, f"stage_factorization/{stage}")[epochs]
        expected = metrics["layers"][stage]["factorization"]
        assert shown == pytest.approx(expected, rel=1e-6)


def test_images_can_be_decoded(events: EventAccumulator) -> None:
    for tag in (
        "answer/samples_ood",
        "answer/map",
        "stage_log_volume_map/code",
    ):
        width, height, png = read(events, tag)[2][:3]
        image = matplotlib.image.imread(io.BytesIO(png), format="png")
        assert image.shape[:2] == (int(height), int(width))
        assert image.std() > 0


def test_pictures_can_be_left_out(
    make_smoke: Callable[..., RunConfig], read_events: Callable
) -> None:
    flags = ("--epochs=2", "--steps_per_epoch=1", "--layerwise_every=1")
    plain = make_smoke(*flags, "--pictures=false")
    drawn = make_smoke(*flags, "--pictures=true")
    assert plain.identity() == drawn.identity()
    train_and_evaluate(plain)
    tags = read_events(plain).Tags()["tensors"]
    groups = {tag.partition("/")[0] for tag in tags}
    assert {"ood", "stage_factorization", "stage_log_volume_id"} <= groups
    assert "stage_log_volume_map" not in groups
    assert not [tag for tag in tags if tag.startswith("answer/")]


def test_numbers_beyond_float32_are_left_out_and_named(
    smoke_run: RunConfig,
    tmp_path: Path,
    read_events: Callable,
    capsys: pytest.CaptureFixture,
) -> None:
    config = dataclasses.replace(smoke_run, log_dir=str(tmp_path))
    summaries = RunSummaries(config, make_dataset(smoke_run))
    summaries.write_scalars(1, {"id/mse": 1e60, "ood/mse": 0.5, "id/r2": -1e39})
    summaries.close()
    assert "note: id/mse, id/r2" in capsys.readouterr().err
    assert read(read_events(config), "ood/mse") == {1: 0.5}
